//! Access tokens of an authorization server: JWT of the shape that RFC 9068 defines.
//!
//! A server accepts them if its `main` passes [`ACCESS_TOKENS`] in [`Parts::access_tokens`](ptc_runtime::Parts::access_tokens).
//!
//! - `token`: checks header, signature and claims of a token.
//! - `key_set`: the keys of a JSON Web Key Set that can verify a token.
//! - `cache`: keeps the keys of the issuer, and fetches them again within limits.
//! - `discovery`: finds and fetches the keys.
//! - `introspection`: asks the authorization server about opaque tokens. `answers`: keeps the answers. `lane`: the limits of
//!   these requests. `single_flight`: one request for equal tokens.
//! - `resource`: the metadata and the challenges for clients.
//! - `crypto`: the signatures of `jsonwebtoken`, verified with `ring`.

mod answers;
mod cache;
mod crypto;
mod discovery;
mod introspection;
mod key_set;
mod lane;
mod resource;
mod single_flight;
mod token;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use ptc_runtime::diagnostics::export::Connection;
use ptc_runtime::log::{self, Level};
use ptc_runtime::secrets::Secrets;
use ptc_runtime::server::http::access_token::{Inquiry, TokenError, TokenVerifier, TokenVerifierSource};
use ptc_runtime::server::identity::Identity;
use ptc_runtime::settings::HttpSettings;

use crate::cache::KeyCache;
use crate::discovery::Issuer;
use crate::introspection::Introspector;
use crate::resource::Resource;
use crate::token::Expectation;

/// The verification of access tokens: the part that `main` passes to the runtime.
pub static ACCESS_TOKENS: AccessTokens = AccessTokens;

/// Makes verifiers of access tokens.
#[derive(Debug)]
pub struct AccessTokens;

impl TokenVerifierSource for AccessTokens {
    fn start(
        &self,
        settings: &HttpSettings,
        policy_scopes: &[&'static str],
        secrets: &Secrets,
        connection: Connection,
    ) -> Result<Arc<dyn TokenVerifier>, String> {
        let (endpoint, settings) = (&settings.path, &settings.oauth);
        let resource = Resource::new(settings, endpoint, policy_scopes);
        let (Some(issuer), Some(audience), Some(resource)) = (&settings.issuer, &settings.audience, resource) else {
            return Err("--http-oauth-issuer and --http-oauth-audience go together".into());
        };
        crypto::install();
        let introspector = Introspector::new(settings, secrets, connection.clone())?;
        let cache = KeyCache::new(Issuer::new(issuer, secrets, connection)?, settings.refetch);
        log::line(Level::Info, "access tokens are accepted", &[("issuer", issuer), ("audience", audience)]);
        Ok(Arc::new(Verifier { expectation: Expectation::new(issuer, audience), cache, introspector, resource }))
    }
}

/// Verifies the tokens of one issuer.
struct Verifier {
    expectation: Expectation,
    cache: Arc<KeyCache>,
    introspector: Option<Introspector>,
    resource: Resource,
}

impl TokenVerifier for Verifier {
    fn verify<'a>(
        &'a self,
        token: &'a str,
        inquiry: Inquiry,
    ) -> Pin<Box<dyn Future<Output = Result<Identity, TokenError>> + Send + 'a>> {
        Box::pin(async move {
            let identity = self.identity(token, inquiry).await?;
            if self.resource.permits(&identity) { Ok(identity) } else { Err(TokenError::Scope) }
        })
    }

    fn metadata(&self, path: &str) -> Option<&str> {
        self.resource.metadata(path)
    }

    fn challenge(&self, error: Option<(&str, &str)>, scopes: &[String]) -> String {
        self.resource.challenge(error, scopes)
    }
}

impl Verifier {
    async fn identity(&self, token: &str, inquiry: Inquiry) -> Result<Identity, TokenError> {
        let header = match (token::read_header(token), &self.introspector) {
            (Err(token::NOT_A_JWT), Some(introspector)) => return introspector.identity(token, inquiry, &self.expectation).await,
            (header, _) => header?,
        };
        self.cache.verify_with_keys(&header, |keys| self.expectation.verify(token, header.alg, keys)).await
    }
}
