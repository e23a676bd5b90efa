//! Access tokens of an authorization server. A crate above this one verifies them.

#[cfg(feature = "http-oauth")]
use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
#[cfg(feature = "http-oauth")]
use std::sync::Arc;

#[cfg(feature = "http-oauth")]
use crate::diagnostics::export::Connection;
#[cfg(feature = "http-oauth")]
use crate::secrets::Secrets;
use crate::server::identity::Identity;
#[cfg(feature = "http-oauth")]
use crate::settings::HttpSettings;

/// Makes verifiers of access tokens. A crate above this one implements it.
#[cfg(feature = "http-oauth")]
pub trait TokenVerifierSource: Debug + Sync {
    /// Makes a verifier. Nothing is fetched before the first token. `policy_scopes` are the scopes that rules of the policy name.
    ///
    /// # Errors
    ///
    /// Returns a sentence if the settings are incomplete or a certificate is invalid.
    fn start(
        &self,
        settings: &HttpSettings,
        policy_scopes: &[&'static str],
        secrets: &Secrets,
        connection: Connection,
    ) -> Result<Arc<dyn TokenVerifier>, String>;
}

/// Verifies access tokens.
pub trait TokenVerifier: Send + Sync {
    /// Returns the identity of a token.
    fn verify<'a>(
        &'a self,
        token: &'a str,
        inquiry: Inquiry,
    ) -> Pin<Box<dyn Future<Output = Result<Identity, TokenError>> + Send + 'a>>;

    /// Returns the metadata of the protected resource (RFC 9728), if a path is that of the metadata.
    fn metadata(&self, path: &str) -> Option<&str>;

    /// Returns a challenge (RFC 6750), with an error and its description. It names these scopes in addition to the required ones.
    fn challenge(&self, error: Option<(&str, &str)>, scopes: &[String]) -> String;
}

/// Whether a verifier may ask the authorization server about a single token. Only opaque tokens need that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inquiry {
    /// It may not, so that unknown opaque tokens are refused.
    Never,
    /// It may, but the address has sent many wrong tokens. Such inquiries must not delay those of other addresses.
    Limited,
    /// It may.
    Permitted,
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
    /// The token lacks a required scope.
    Scope,
    /// The authorization server refuses to say anything about this token. It may be a guess, and is counted as one, but the client must
    /// not throw it away.
    Unanswered,
    /// The keys of the authorization server are not available.
    Unavailable,
}
