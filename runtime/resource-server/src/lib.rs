//! Access tokens of an authorization server: JWT of the shape that RFC 9068 defines.
//!
//! A server accepts them if its `main` passes [`ACCESS_TOKENS`] in [`Parts::access_tokens`](ptc_runtime::Parts::access_tokens).
//!
//! - `token`: checks header, signature and claims of a token.
//! - `key_set`: the keys of a JSON Web Key Set that can verify a token.
//! - `cache`: keeps the keys of the issuer, and fetches them again within limits.
//! - `discovery`: finds and fetches the keys.
//! - `introspection`: asks the authorization server about opaque tokens.
//! - `crypto`: the signatures of `jsonwebtoken`, verified with `ring`.

mod cache;
mod crypto;
mod discovery;
mod introspection;
mod key_set;
mod token;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use ptc_runtime::diagnostics::export::Connection;
use ptc_runtime::log::{self, Level};
use ptc_runtime::secrets::Secrets;
use ptc_runtime::server::http::access_token::{TokenError, TokenVerifier, TokenVerifierSource};
use ptc_runtime::server::identity::Identity;
use ptc_runtime::settings::OauthSettings;

use crate::cache::KeyCache;
use crate::discovery::Issuer;
use crate::introspection::Introspector;
use crate::token::Expectation;

/// The verification of access tokens: the part that `main` passes to the runtime.
pub static ACCESS_TOKENS: AccessTokens = AccessTokens;

/// Makes verifiers of access tokens.
#[derive(Debug)]
pub struct AccessTokens;

impl TokenVerifierSource for AccessTokens {
    fn start(
        &self,
        settings: &OauthSettings,
        secrets: &Secrets,
        connection: Connection,
    ) -> Result<Arc<dyn TokenVerifier>, String> {
        let (Some(issuer), Some(audience)) = (&settings.issuer, &settings.audience) else {
            return Err("--http-oauth-issuer and --http-oauth-audience go together".into());
        };
        crypto::install();
        let introspector = Introspector::new(settings, secrets, connection.clone())?;
        let cache = KeyCache::new(Issuer::new(issuer, secrets, connection)?, settings.refetch);
        log::line(Level::Info, "access tokens are accepted", &[("issuer", issuer), ("audience", audience)]);
        Ok(Arc::new(Verifier { expectation: Expectation::new(issuer, audience), cache, introspector }))
    }
}

/// Verifies the tokens of one issuer.
struct Verifier {
    expectation: Expectation,
    cache: Arc<KeyCache>,
    introspector: Option<Introspector>,
}

impl TokenVerifier for Verifier {
    fn verify<'a>(&'a self, token: &'a str) -> Pin<Box<dyn Future<Output = Result<Identity, TokenError>> + Send + 'a>> {
        Box::pin(async move {
            let header = match (token::read_header(token), &self.introspector) {
                (Err(token::NOT_A_JWT), Some(introspector)) => return introspector.identity(token, &self.expectation).await,
                (header, _) => header?,
            };
            let keys = self.cache.keys_for(&header).await?;
            self.expectation.verify(token, header.alg, &keys)
        })
    }
}
