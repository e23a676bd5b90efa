//! Access tokens for upstreams, from an OAuth 2.0 authorization server (RFC 6749).
//!
//! A server can call upstreams whose `auth` has the scheme `oauth2` if its `main` passes [`OAUTH_CLIENT`] in `Parts::oauth_client` of
//! `ptc_runtime`.
//!
//! - `source`: the tokens of one upstream: the current one, its renewal, and pauses after failures.
//! - `callers`: the sources of the callers of one upstream. `exchange`: exchanges a token of a caller or of the platform.
//! - `schedule`: decides whether a token is used, renewed or refused at a given time.
//! - `store`: the tokens of logins. `renewal`: renews them. `login`: a person logs in; `prepare`: what a login
//!   needs; `redirect`: the answer that a browser brings.
//! - `endpoint`: requests a token, and describes refusals.
//! - `answer`: reads the answer of a token endpoint.
//! - `metadata`: finds the endpoints of an issuer. `discovery`: finds the issuer of an upstream. `challenge`: reads what the upstream asks
//!   for. `registration`: registers a client.
//! - `probe`: asks an upstream whose authorization server the config has.
//! - `proof`: proves that the client has the key to which its tokens are bound.
//! - `party`: the client and the authorization server of a request, of the config or found by a login.
//! - `pin`: compares what a login has found with what the lock file has.
//! - `client_auth`: the forms in which a client proves its identity.
//! - `assertion`: signs the assertions of `private_key_jwt`.

#![forbid(unsafe_code)]

mod answer;
mod assertion;
mod callers;
mod challenge;
mod client_auth;
mod discovery;
mod endpoint;
mod exchange;
pub mod login;
mod metadata;
mod party;
mod pin;
mod prepare;
pub mod probe;
mod proof;
pub mod redirect;
mod registration;
mod renewal;
mod schedule;
mod source;
pub mod store;

use std::sync::Arc;

use ptc_catalog::GrantType;
use ptc_upstream::UpstreamError;
use ptc_upstream::http::access_token::{TokenSource, TokenSourceConfig, TokenSourceFactory};

use crate::callers::Callers;
use crate::endpoint::TokenEndpoint;
use crate::exchange::Exchange;
use crate::renewal::Renewal;
use crate::source::{Client, Grant, Source};

/// The OAuth client: the part that `main` passes to the runtime.
pub static OAUTH_CLIENT: OauthClient = OauthClient;

/// Makes the sources of access tokens.
#[derive(Debug)]
pub struct OauthClient;

impl TokenSourceFactory for OauthClient {
    fn source(&self, config: TokenSourceConfig<'_>) -> Result<Arc<dyn TokenSource>, UpstreamError> {
        let redactor = config.secrets.redactor();
        let endpoint = TokenEndpoint::new(&config)?;
        let grant = match config.oauth.grant {
            GrantType::ClientCredentials => Grant::Client,
            GrantType::RefreshToken | GrantType::AuthorizationCode | GrantType::DeviceCode => {
                Grant::Login(Renewal::new(&config)?)
            }
            GrantType::TokenExchange | GrantType::JwtBearer => Grant::Exchange(Exchange::new(&config)?),
        };
        let client = Arc::new(Client { endpoint, grant, redactor });
        Ok(if config.oauth.is_on_behalf() { Arc::new(Callers::new(client)) } else { Arc::new(Source::new(client)) })
    }

    fn has_keyring(&self) -> bool {
        cfg!(feature = "keyring")
    }
}
