//! Access tokens that the requests of an upstream carry.
//!
//! An optional crate above this one obtains them, so that a binary whose upstreams have static credentials contains no OAuth client.

use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ptc_catalog::{Auth, OAuth2, Transport, Upstream};
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderValue};
use url::Url;

use super::client::Endpoint;
use super::proxy::ResolvedProxy;
use crate::fault::{Reason, UpstreamError};
#[cfg(feature = "access-token")]
use ptc_secrets::Redactor;
use ptc_secrets::Secrets;

/// The token store that is the keyring of the system. A folder of this name is `./keyring`.
pub const KEYRING: &str = "keyring";

/// Makes the sources of access tokens: `ptc_oauth_client::OAUTH_CLIENT`.
pub trait TokenSourceFactory: fmt::Debug + Send + Sync {
    /// Creates the source of one upstream. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// The credential of the client has no value or an unusable one, or the HTTP client cannot be set up.
    fn source(&self, config: TokenSourceConfig<'_>) -> Result<Arc<dyn TokenSource>, UpstreamError>;

    /// Whether the tokens of logins can be in [`KEYRING`].
    fn has_keyring(&self) -> bool;
}

/// The configuration of a source.
#[derive(Clone)]
pub struct TokenSourceConfig<'s> {
    /// The name of the upstream. Empty while a document is fetched, whose caller knows the upstream.
    pub upstream: &'static str,
    /// The URL of the upstream. A login is valid for its origin only.
    pub url: &'static str,
    /// How tokens are requested.
    pub oauth: &'static OAuth2,
    /// Time limit for a connection to the authorization server.
    pub connect_timeout: Duration,
    /// The proxy of the upstream, through which the authorization server is reached too.
    pub proxy: Option<ResolvedProxy>,
    /// PEM certificates that are trusted in addition to the system's.
    pub extra_roots: Option<Arc<[u8]>>,
    /// The folder with the tokens of logins, or [`KEYRING`]. `None` means the default of the OAuth client.
    pub token_store: Option<PathBuf>,
    /// The secrets of the deployment. The redactor must know a token before it is sent: see [`ptc_secrets::Redactor::add_issued`].
    pub secrets: &'s Secrets,
}

impl<'s> TokenSourceConfig<'s> {
    /// Returns the configuration of the source of an upstream. `None` if its requests carry no access tokens.
    ///
    /// # Errors
    ///
    /// The credential of its proxy cannot be used.
    pub fn of_upstream(
        upstream: &'static Upstream,
        token_store: Option<PathBuf>,
        secrets: &'s Secrets,
    ) -> Result<Option<TokenSourceConfig<'s>>, UpstreamError> {
        let (url, timeout_ms) = match &upstream.transport {
            Transport::McpHttp(http) => (http.url, http.connect_timeout_ms),
            Transport::OpenApi(api) => (api.base_url, api.connect_timeout_ms),
            Transport::McpStdio(_) => return Ok(None),
        };
        let Some(oauth) = upstream.transport.auth().iter().find_map(Auth::oauth) else { return Ok(None) };
        Ok(Some(TokenSourceConfig {
            upstream: upstream.name,
            url,
            oauth,
            connect_timeout: Duration::from_millis(timeout_ms),
            proxy: ResolvedProxy::resolve(upstream.transport.proxy(), secrets)?,
            extra_roots: None,
            token_store,
            secrets,
        }))
    }
}

/// A future of a token.
pub type TokenFuture<'s> = Pin<Box<dyn Future<Output = Result<AccessToken, UpstreamError>> + Send + 's>>;

/// The access tokens of one upstream.
pub trait TokenSource: Send + Sync {
    /// Returns a valid token. One is requested if there is none, or if the upstream has refused the current one, which is `refused`.
    /// Returns `refused` itself if no other token may be requested yet. Must be called inside a Tokio runtime.
    ///
    /// # Errors
    ///
    /// Fails with the reason `auth_failed` if the authorization server refuses the client, with `auth_expired` if a person must log in, with `upstream_unavailable` if it gives no
    /// usable answer, and with `timeout` after the deadline.
    fn token<'s>(&'s self, refused: Option<&'s AccessToken>, deadline: Instant) -> TokenFuture<'s>;

    /// Returns the error of a call that the upstream has answered with 403 and these headers, if its challenge says that the token lacks
    /// scopes (RFC 6750, section 3.1). The call is not sent again.
    fn forbidden(&self, headers: &HeaderMap) -> Option<UpstreamError>;
}

/// Proves with each request that the sender has the key to which an access token is bound (DPoP, RFC 9449).
pub trait Proof: Send + Sync {
    /// Returns a new value of the header `DPoP` for a request with `token` (RFC 9449, section 4.2). `None` if it cannot be signed: the
    /// upstream then refuses the request.
    fn header(&self, method: &Method, url: &Url, token: &str) -> Option<HeaderValue>;

    /// Reads the nonce in the headers of an answer of `url`, which later proofs contain (RFC 9449, section 8.2).
    fn learn(&self, url: &Url, headers: &HeaderMap);

    /// Whether an answer with these headers refuses the request only because its proof lacks the nonce (RFC 9449, section 9).
    fn lacks_nonce(&self, headers: &HeaderMap) -> bool;
}

/// An access token. It deliberately has no `Debug`.
#[derive(Clone)]
pub struct AccessToken {
    /// The value of the header `Authorization`.
    authorization: HeaderValue,
    /// The number of the token among all of this process.
    number: u64,
    /// Proves that the sender has the key of the token. `None` for a bearer token.
    proof: Option<Arc<dyn Proof>>,
    /// Redacts the token, if no redactor of the deployment does.
    #[cfg(feature = "access-token")]
    redactor: Option<Redactor>,
}

impl AccessToken {
    /// Creates a token with the next number: a bearer token, or one that is bound to the key of `proof`. `None` if a header cannot carry
    /// it.
    pub fn new(token: &str, proof: Option<Arc<dyn Proof>>) -> Option<AccessToken> {
        // A source that is given up and made again must not take a refused token of its predecessor for its own.
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let scheme = if proof.is_some() { "DPoP" } else { "Bearer" };
        let mut authorization = HeaderValue::from_str(&format!("{scheme} {token}")).ok()?;
        authorization.set_sensitive(true);
        Some(AccessToken {
            authorization,
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            proof,
            #[cfg(feature = "access-token")]
            redactor: None,
        })
    }

    /// Makes answers to requests with this token be redacted with `redactor`, in place of that of the deployment.
    #[cfg(feature = "access-token")]
    #[must_use]
    pub fn redacted_by(self, redactor: Option<Redactor>) -> AccessToken {
        AccessToken { redactor, ..self }
    }

    /// Returns the redactor of the answers.
    #[cfg(feature = "access-token")]
    pub fn redactor(&self) -> Option<&Redactor> {
        self.redactor.as_ref()
    }

    /// Returns the number of the token, which no other token of this process has.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the value of the header `Authorization`.
    pub fn authorization(&self) -> &HeaderValue {
        &self.authorization
    }

    /// Returns the proof of a token that is bound to a key.
    pub fn proof(&self) -> Option<&dyn Proof> {
        self.proof.as_deref()
    }
}

/// The sources of the upstreams of a deployment. They outlive connections, so that a new connection uses the current token. Clones
/// share them.
#[cfg_attr(not(feature = "access-token"), expect(dead_code, reason = "only an OAuth client makes sources"))]
#[derive(Clone, Default)]
pub struct AccessTokens {
    factory: Option<&'static dyn TokenSourceFactory>,
    token_store: Option<PathBuf>,
    sources: Arc<Mutex<Vec<Source>>>,
}

#[cfg_attr(not(feature = "access-token"), expect(dead_code, reason = "only an OAuth client makes sources"))]
struct Source {
    upstream: &'static str,
    oauth: &'static OAuth2,
    tokens: Arc<dyn TokenSource>,
}

impl fmt::Debug for AccessTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessTokens").field("factory", &self.factory).finish_non_exhaustive()
    }
}

impl AccessTokens {
    /// Creates an empty set of sources. Without a factory, upstreams that need access tokens cannot be called.
    pub fn new(factory: Option<&'static dyn TokenSourceFactory>) -> AccessTokens {
        AccessTokens { factory, ..AccessTokens::default() }
    }

    /// Makes sources read the tokens of logins from this folder, or from [`KEYRING`].
    #[must_use]
    pub fn with_store(self, token_store: Option<PathBuf>) -> AccessTokens {
        AccessTokens { token_store, ..self }
    }

    /// Whether sources can be made.
    pub(crate) fn has_factory(&self) -> bool {
        self.factory.is_some()
    }

    /// Returns the source of an endpoint, if its `auth` needs access tokens.
    pub(crate) fn source(&self, endpoint: &Endpoint, secrets: &Secrets) -> Result<Option<Arc<dyn TokenSource>>, UpstreamError> {
        let Some(oauth) = endpoint.auth.iter().find_map(Auth::oauth) else { return Ok(None) };
        self.source_of(oauth, endpoint, secrets).map(Some)
    }

    #[cfg(not(feature = "access-token"))]
    fn source_of(&self, _: &'static OAuth2, _: &Endpoint, _: &Secrets) -> Result<Arc<dyn TokenSource>, UpstreamError> {
        Err(without_client())
    }

    #[cfg(feature = "access-token")]
    fn source_of(
        &self,
        oauth: &'static OAuth2,
        endpoint: &Endpoint,
        secrets: &Secrets,
    ) -> Result<Arc<dyn TokenSource>, UpstreamError> {
        let upstream = endpoint.upstream.unwrap_or_default();
        let mut sources = self.sources.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(known) = sources.iter().find(|known| known.upstream == upstream && known.oauth == oauth) {
            return Ok(Arc::clone(&known.tokens));
        }
        let factory = self.factory.ok_or_else(without_client)?;
        let tokens = factory.source(TokenSourceConfig {
            upstream,
            url: endpoint.url,
            oauth,
            connect_timeout: endpoint.connect_timeout,
            proxy: endpoint.proxy.clone(),
            extra_roots: endpoint.extra_roots.clone(),
            token_store: self.token_store.clone(),
            secrets,
        })?;
        sources.push(Source { upstream, oauth, tokens: Arc::clone(&tokens) });
        Ok(tokens)
    }
}

fn without_client() -> UpstreamError {
    UpstreamError::new(Reason::AuthFailed, "this binary has no OAuth client (crate ptc-oauth-client): compile its config again")
}
