//! The authorization server that an upstream names, as the lock file has it.
//!
//! It is pinned in the same form whether or not the config has an `issuer`: what the config says and what the upstream says are two things,
//! and each can change without the other. Only an upstream whose config leaves the server open must name one.

use std::collections::BTreeSet;

use crate::config::model::{Auth, Transport};
use crate::json::Json;

/// What an upstream said about its authorization server when it was pinned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authorization {
    /// The issuer, exactly as the upstream writes it.
    pub issuer: String,
    /// The parameter `resource` of requests for tokens.
    pub resource: String,
    /// The scopes that the upstream asks for.
    pub scopes: BTreeSet<String>,
    /// Whether the upstream requires tokens that are bound to a key (DPoP). False in files of older compilers.
    pub needs_proof: bool,
}

impl Authorization {
    /// Whether an upstream with this transport may name an authorization server, which is then pinned. OpenAPI services are not asked.
    pub fn is_pinned(transport: &Transport) -> bool {
        matches!(transport, Transport::McpHttp(http) if http.http.auth.iter().any(|auth| auth.oauth().is_some()))
    }

    /// Whether an upstream with this transport must name its authorization server, because the config has none.
    pub fn is_found(transport: &Transport) -> bool {
        transport.http().into_iter().flat_map(|http| &http.auth).filter_map(Auth::oauth).any(ptc_catalog::OAuth2::is_discovered)
    }

    /// Reads a value of a lock file. Returns `None` if it has another shape.
    pub(super) fn from_json(json: &Json) -> Option<Authorization> {
        let text = |key: &str| json.get(key).and_then(Json::as_str).map(str::to_owned);
        let scopes = match json.get("scopes")? {
            Json::Array(scopes) => scopes.iter().map(|scope| scope.as_str().map(str::to_owned)).collect::<Option<_>>()?,
            _ => return None,
        };
        let needs_proof = match json.get("dpop") {
            None => false,
            Some(Json::Bool(required)) => *required,
            Some(_) => return None,
        };
        Some(Authorization { issuer: text("issuer")?, resource: text("resource")?, scopes, needs_proof })
    }

    /// Returns the value of the lock file.
    pub(super) fn to_json(&self) -> Json {
        let scopes = self.scopes.iter().map(|scope| Json::string(&**scope)).collect();
        let json = Json::object()
            .with("issuer", Json::string(&*self.issuer))
            .with("resource", Json::string(&*self.resource))
            .with("scopes", Json::Array(scopes));
        // Left out if it is false, so that the files and digests of other upstreams stay as they are.
        if self.needs_proof { json.with("dpop", Json::Bool(true)) } else { json }
    }
}
