//! Access tokens of an authorization server. A crate above this one verifies them. This module has what clients see: the protected
//! resource metadata (RFC 9728) and the challenges (RFC 6750).

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::diagnostics::export::Connection;
use crate::secrets::Secrets;
use crate::server::identity::Identity;
use crate::settings::OauthSettings;

/// The path of the metadata at the root of the server.
const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

/// Makes verifiers of access tokens. A crate above this one implements it.
pub trait TokenVerifierSource: Debug + Sync {
    /// Makes a verifier. Nothing is fetched before the first token.
    ///
    /// # Errors
    ///
    /// Returns a sentence if the settings are incomplete or a certificate is invalid.
    fn start(
        &self,
        settings: &OauthSettings,
        secrets: &Secrets,
        connection: Connection,
    ) -> Result<Arc<dyn TokenVerifier>, String>;
}

/// Verifies access tokens.
pub trait TokenVerifier: Send + Sync {
    /// Returns the identity of a token.
    fn verify<'a>(&'a self, token: &'a str) -> Pin<Box<dyn Future<Output = Result<Identity, TokenError>> + Send + 'a>>;
}

/// Why a token is refused. The reason is a sentence without parts of the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenError {
    /// The token was not issued by the authorization server, or this cannot be shown. The client does not learn the reason, since it may be an
    /// attacker who looks for a token that is accepted.
    Untrusted(&'static str),
    /// The authorization server has issued the token, but it is not acceptable now or here. The client may learn the reason, since
    /// it can read the same in its token.
    Unacceptable(&'static str),
    /// The keys of the authorization server are not available.
    Unavailable,
}

/// The protected resource that this server is.
pub(super) struct Resource {
    /// The paths of its metadata.
    paths: Vec<String>,
    metadata: String,
    /// The parameters of every challenge.
    challenge: String,
    /// The required scopes, as in a challenge.
    scopes: Vec<String>,
}

impl Resource {
    /// Describes the resource of the settings. `endpoint` is the path of the protocol on this listener.
    pub(super) fn new(settings: &OauthSettings, endpoint: &str) -> Option<Resource> {
        let (issuer, resource) = (settings.issuer.as_deref()?, settings.resource()?);
        let (scheme, rest) = resource.split_once("://")?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let path = path.trim_end_matches('/');
        let mut metadata = Map::new();
        metadata.insert("resource".into(), resource.into());
        metadata.insert("authorization_servers".into(), [issuer].into_iter().collect());
        metadata.insert("bearer_methods_supported".into(), ["header"].into_iter().collect());
        if !settings.scopes.is_empty() {
            metadata.insert("scopes_supported".into(), settings.scopes.clone().into());
        }
        // A reverse proxy may have removed a prefix of the path that clients see.
        let paths = vec![METADATA_PATH.to_owned(), format!("{METADATA_PATH}{path}"), format!("{METADATA_PATH}{endpoint}")];
        let challenge = format!("Bearer resource_metadata=\"{scheme}://{authority}{METADATA_PATH}{path}\"");
        Some(Resource { paths, metadata: Value::from(metadata).to_string(), challenge, scopes: settings.scopes.clone() })
    }

    /// Returns the metadata if a path is one of its paths.
    pub(super) fn metadata(&self, path: &str) -> Option<&str> {
        self.paths.iter().any(|known| known == path).then_some(&self.metadata)
    }

    /// Whether an identity has all required scopes. Owners of other credentials than access tokens have no scopes and need none.
    pub(super) fn permits(&self, identity: &Identity) -> bool {
        self.scopes.iter().all(|scope| identity.scopes.contains(scope))
    }

    /// Returns a challenge with an error and its description.
    pub(super) fn challenge(&self, error: Option<(&str, &str)>) -> String {
        let scopes = Some(self.scopes.join(" ")).filter(|scopes| !scopes.is_empty());
        let scope = scopes.map(|scopes| format!(", scope=\"{scopes}\"")).unwrap_or_default();
        let error = error.map(|(error, why)| format!(", error=\"{error}\", error_description=\"{why}\"")).unwrap_or_default();
        format!("{}{error}{scope}", self.challenge)
    }
}
