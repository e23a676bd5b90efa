//! A login: its tokens, and what they are bound to.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ptc_catalog::OAuth2;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use url::Url;
use zeroize::Zeroize as _;

use crate::answer::TokenResponse;
use crate::proof::ProofKey;

/// What a login is bound to. A login with another key is not used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoginKey {
    /// The origin of the upstream, so that a token does not reach another host.
    upstream: String,
    issuer: String,
    token_url: String,
    client_id: String,
    scope: String,
    resource: String,
}

impl LoginKey {
    /// Returns the key of an upstream at `url`.
    pub(crate) fn new(url: &str, oauth: &OAuth2) -> LoginKey {
        LoginKey {
            upstream: Url::parse(url).map(|url| url.origin().ascii_serialization()).unwrap_or_default(),
            issuer: oauth.issuer.to_owned(),
            token_url: oauth.token_url.to_owned(),
            client_id: oauth.client_id.to_owned(),
            scope: oauth.scope.to_owned(),
            resource: oauth.resource.to_owned(),
        }
    }

    /// Returns the name of the login in a store: a digest of all parts, each with its length.
    pub(super) fn digest(&self) -> String {
        let LoginKey { upstream, issuer, token_url, client_id, scope, resource } = self;
        let parts = [upstream, issuer, token_url, client_id, scope, resource].map(|part| format!("{}:{part}", part.len()));
        URL_SAFE_NO_PAD.encode(digest(&SHA256, parts.concat().as_bytes()))
    }

    /// Returns the origin of the upstream. Empty if its URL has none.
    #[cfg(feature = "keyring")]
    pub(super) fn upstream(&self) -> &str {
        &self.upstream
    }
}

/// The tokens of one login. They are overwritten when it is dropped. It deliberately has no `Debug`.
#[derive(Serialize, Deserialize)]
pub struct Login {
    pub(crate) key: LoginKey,
    /// The endpoint that issued the tokens. They are sent to no other.
    pub(crate) token_endpoint: String,
    /// Empty if the server issued none, or has refused it.
    pub(crate) refresh_token: String,
    pub(crate) access_token: String,
    /// When the access token was requested, in seconds since 1970.
    pub(crate) issued_at: u64,
    /// The lifetime of the access token in seconds, if it is known.
    pub(crate) expires_in: Option<u64>,
    /// The scopes that were requested.
    #[serde(default)]
    pub(crate) scope: String,
    /// What the config does not have. `None` if it has everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) found: Option<Found>,
}

/// The client and the authorization server that a login has found. It deliberately has no `Debug`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Found {
    /// The issuer to which the client and the tokens belong.
    pub(crate) issuer: String,
    /// The parameter `resource`.
    pub(crate) resource: String,
    /// Where the upstream names its issuer. Empty if the config has it, or if the upstream has no such metadata.
    pub(crate) resource_metadata: String,
    /// The identifier of the client: registered, or that of the config.
    pub(crate) client_id: String,
    /// The name of its form of authentication.
    pub(crate) client_auth: String,
    /// Empty for a public client.
    pub(crate) client_secret: String,
    /// The private key to which the tokens are bound (RFC 9449), as [`ProofKey::read`] reads it. Empty for bearer tokens.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) proof_key: String,
}

impl Found {
    /// Returns the key to which the tokens are bound. `None` for bearer tokens.
    ///
    /// # Errors
    ///
    /// The stored key is damaged.
    pub(crate) fn proof_key(&self) -> Result<Option<Arc<ProofKey>>, &'static str> {
        (!self.proof_key.is_empty()).then(|| ProofKey::read(&self.proof_key).map(Arc::new)).transpose()
    }
}

impl Drop for Found {
    fn drop(&mut self) {
        self.client_secret.zeroize();
        self.proof_key.zeroize();
    }
}

impl Drop for Login {
    fn drop(&mut self) {
        self.refresh_token.zeroize();
        self.access_token.zeroize();
    }
}

impl Login {
    /// Makes a login of an answer to a request for `scope`. Without a new refresh token, the `earlier` one remains valid (RFC 6749,
    /// section 6).
    pub(crate) fn new(
        key: LoginKey,
        token_endpoint: &Url,
        response: &TokenResponse,
        earlier: &str,
        scope: &str,
        found: Option<Found>,
    ) -> Login {
        Login {
            scope: scope.to_owned(),
            found,
            key,
            token_endpoint: token_endpoint.to_string(),
            refresh_token: response.refresh_token.as_deref().unwrap_or(earlier).to_owned(),
            access_token: response.access_token.clone(),
            issued_at: now(),
            expires_in: response.lifetime.map(|lifetime| lifetime.as_secs()),
        }
    }

    /// Whether tokens can be renewed without a person.
    pub fn has_refresh_token(&self) -> bool {
        !self.refresh_token.is_empty()
    }

    /// Returns the URL of the authorization server: its issuer, or its token endpoint if only that is known.
    pub fn server(&self) -> &str {
        let found = self.found.as_ref().map_or("", |found| &found.issuer);
        [found, &self.key.issuer, &self.token_endpoint].into_iter().find(|url| !url.is_empty()).unwrap_or_default()
    }

    /// Returns the scopes that were requested, separated by spaces.
    pub fn scope(&self) -> &str {
        if self.scope.is_empty() { &self.key.scope } else { &self.scope }
    }

    /// Returns the remaining lifetime of the access token. `None` if it is not known.
    pub fn remaining(&self) -> Option<Duration> {
        let elapsed = now().saturating_sub(self.issued_at);
        self.expires_in.map(|lifetime| Duration::from_secs(lifetime.saturating_sub(elapsed)))
    }

    /// Returns the age of the access token if another process has renewed it, so that it need not be renewed yet.
    pub(crate) fn fresh_since(&self) -> Option<Duration> {
        let age = now().saturating_sub(self.issued_at);
        let is_fresh = self.expires_in.is_none_or(|lifetime| age < lifetime - lifetime.div_ceil(5).min(60));
        is_fresh.then(|| Duration::from_secs(age))
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
