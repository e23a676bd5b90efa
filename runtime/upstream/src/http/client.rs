//! The HTTP client of one upstream: headers, credentials, redirects, retries and limits, over `reqwest`.
//!
//! Redirects are followed here and not by `reqwest`, because it repeats only bodies that are one buffer. The large arguments of a
//! call are not copied into one.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ptc_catalog::Auth;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use reqwest::{Client, ClientBuilder, Method, Request, StatusCode};
use url::Url;

use super::access_token::{AccessToken, TokenSource};
use super::answer::Answer;
use super::body::RequestBody;
use super::connecting::ConnectingLayer;
use super::credentials::Credentials;
use super::proxy::ResolvedProxy;
use super::tls;
use crate::OutgoingFrame;
use crate::caller_token;
use crate::fault::{Delivery, UpstreamError};
use crate::mcp::wire::{CLIENT_NAME, CLIENT_VERSION};
use crate::offload::offload;
use crate::response_budget;
use crate::settings::ResponseCap;
use crate::stage::{self, Stage};
use ptc_secrets::{Redactor, Secrets};

/// Maximum number of followed redirects, all within one origin.
pub(super) const MAX_REDIRECTS: usize = 5;
/// Maximum number of idle connections, and how long they are kept. Programs make bursts of up to 50 calls.
const MAX_IDLE_CONNECTIONS: usize = 16;
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);
/// A silent connection is probed after this time, and given up after this number of probes.
const KEEPALIVE: Duration = Duration::from_secs(15);
const MAX_PROBES: u32 = 3;

/// The HTTP client of one upstream, with the headers and credentials that every request carries.
#[derive(Clone)]
pub struct HttpClient {
    inner: Client,
    /// The headers of every request: those of the client itself, static headers, and credentials in headers.
    headers: HeaderMap,
    credentials: Arc<Credentials>,
    tokens: Option<Arc<dyn TokenSource>>,
    proxy: Option<Arc<ResolvedProxy>>,
    upstream: Option<&'static str>,
    connect_timeout: Duration,
    redactor: Redactor,
    posts: bool,
}

/// The configuration of a client. Only its proxy contains secrets.
pub struct Endpoint {
    /// The name of the upstream, for messages.
    pub upstream: Option<&'static str>,
    /// The URL of the upstream. Requests of an OpenAPI upstream may also go to the other origins of its servers.
    pub url: &'static str,
    /// The credentials of each request.
    pub auth: &'static [Auth],
    /// Headers of each request that are not secret.
    pub static_headers: &'static [(&'static str, &'static str)],
    /// Time limit for making a connection.
    pub connect_timeout: Duration,
    /// The proxy through which connections are made.
    pub proxy: Option<ResolvedProxy>,
    /// PEM certificates that are trusted in addition to the system's.
    pub extra_roots: Option<Arc<[u8]>>,
    /// Whether the client sends `POST` requests, for which only redirects that preserve method and body are followed.
    pub posts: bool,
}

impl Endpoint {
    /// Returns the configuration of a client for a service of the server itself, such as a collector of spans: it sends `POST` requests,
    /// without credentials and without a proxy. The URL is leaked, since there is one such client for the life of the process.
    pub fn of_own_service(url: &str, connect_timeout: Duration) -> Endpoint {
        Endpoint {
            upstream: None,
            url: url.to_owned().leak(),
            auth: &[],
            static_headers: &[],
            connect_timeout,
            proxy: None,
            extra_roots: None,
            posts: true,
        }
    }
}

/// A request of a client.
#[derive(Clone)]
pub struct OutgoingRequest<'u> {
    /// The method.
    pub method: Method,
    /// The whole URL.
    pub url: &'u Url,
    /// Headers in addition to those of the client.
    pub headers: HeaderMap,
    /// The body.
    pub body: OutgoingFrame,
    /// Whether the request may be sent again if the connection fails before the head of the response is complete, as `call_rules`
    /// decides.
    pub repeatable: bool,
    /// Whether redirects within the origin are followed.
    pub follows: bool,
    /// The access token that the request carries.
    pub token: Option<AccessToken>,
}

impl<'u> OutgoingRequest<'u> {
    /// Creates a request without a body that is sent at most once.
    pub fn new(method: Method, url: &'u Url, headers: HeaderMap) -> OutgoingRequest<'u> {
        OutgoingRequest { method, url, headers, body: OutgoingFrame::default(), repeatable: false, follows: true, token: None }
    }
}

impl HttpClient {
    /// Builds the client. The system's roots are loaded only if TLS is used.
    ///
    /// # Errors
    ///
    /// A header, the proxy or a certificate is invalid, or a credential has no value.
    pub fn new(endpoint: &Endpoint, secrets: &Secrets) -> Result<HttpClient, UpstreamError> {
        HttpClient::configured(endpoint, secrets, |builder| builder)
    }

    /// Builds a client with further settings, such as a resolver that limits the addresses to which connections are made.
    ///
    /// # Errors
    ///
    /// The same as [`HttpClient::new`].
    pub fn configured(
        endpoint: &Endpoint,
        secrets: &Secrets,
        configure: impl FnOnce(ClientBuilder) -> ClientBuilder,
    ) -> Result<HttpClient, UpstreamError> {
        refuse_user(endpoint.url)?;
        let is_plain = |url: &str| url.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http://"));
        let uses_tls = !is_plain(endpoint.url) || !endpoint.proxy.as_ref().is_none_or(|proxy| is_plain(proxy.url()));
        let builder = tls::configure(Client::builder(), uses_tls, endpoint.extra_roots.as_deref())?;
        let mut credentials = Credentials::read(endpoint.auth, secrets)?;
        let mut builder = builder
            // Only the proxy of the config is used, since the server's environment must not redirect credentials.
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            // Whether a request may be sent again depends on the call, which `reqwest` does not know.
            .retry(reqwest::retry::never())
            .connect_timeout(endpoint.connect_timeout)
            .connector_layer(ConnectingLayer)
            .pool_max_idle_per_host(MAX_IDLE_CONNECTIONS)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .tcp_keepalive(KEEPALIVE)
            .tcp_keepalive_interval(KEEPALIVE)
            .tcp_keepalive_retries(MAX_PROBES);
        // Otherwise the calls on a dead connection would all run out of time, for minutes.
        #[cfg(target_os = "linux")]
        {
            builder = builder.tcp_user_timeout(KEEPALIVE * 2);
        }
        if let Some(proxy) = &endpoint.proxy {
            builder = builder.proxy(proxy.to_reqwest()?);
        }
        if let Some(identity) = credentials.identity.take() {
            // A proxy with TLS must not get it either.
            if is_plain(endpoint.url) {
                return Err(UpstreamError::unavailable("a client certificate needs a URL with https://"));
            }
            builder = builder.identity(identity);
        }
        let inner = configure(builder).build().map_err(|why| unavailable("the HTTP client cannot be set up", &why))?;
        let mut headers = headers(endpoint)?;
        headers.extend(std::mem::take(&mut credentials.headers));
        let Endpoint { upstream, connect_timeout, posts, .. } = *endpoint;
        let credentials = Arc::new(credentials);
        let proxy = endpoint.proxy.clone().map(Arc::new);
        let redactor = secrets.redactor();
        Ok(HttpClient { inner, headers, credentials, tokens: None, proxy, upstream, connect_timeout, redactor, posts })
    }

    /// Makes each request carry an access token.
    #[must_use]
    pub(crate) fn with_tokens(self, tokens: Option<Arc<dyn TokenSource>>) -> HttpClient {
        HttpClient { tokens, ..self }
    }

    /// Makes the client show secrets in what it reads, such as the answer in which an access token is issued: a token may contain a part of a
    /// secret.
    #[must_use]
    pub fn reading_issued(self) -> HttpClient {
        HttpClient { redactor: Redactor::none(), ..self }
    }

    /// Sends a request and waits for the head of the response. Redirects are followed only within the origin, so that neither
    /// credentials nor arguments leave it. If the upstream refuses an access token, a new one is requested, and the request is sent
    /// again if `call_rules` permit it.
    ///
    /// # Errors
    ///
    /// Returns an error with the reason `timeout` if no response has begun in time, `upstream_unavailable` if no connection can
    /// be made or it is lost, and `upstream_error` if the answer is not HTTP. An answer with an error status is not an error. Fails as
    /// [`TokenSource::token`] does if there is no access token.
    pub async fn send(&self, request: OutgoingRequest<'_>, deadline: Instant) -> Result<Answer, UpstreamError> {
        #[cfg(feature = "access-token")]
        if let Some(tokens) = &self.tokens {
            // In memory of its own, so that the futures of calls without tokens stay small.
            return Box::pin(self.send_with_token(&**tokens, request, deadline)).await;
        }
        self.send_following(request, deadline).await
    }

    /// Sends a request, and follows redirects.
    pub(super) async fn send_following(
        &self,
        mut request: OutgoingRequest<'_>,
        deadline: Instant,
    ) -> Result<Answer, UpstreamError> {
        let (mut url, mut repeatable) = (request.url.clone(), request.repeatable);
        for followed in 0.. {
            let answer = match self.send_once(&request, &url, deadline).await {
                Err(SendError::NoResponse(_)) if std::mem::take(&mut repeatable) => {
                    stage::repeat();
                    let again = self.send_once(&request, &url, deadline).await;
                    // The first attempt may have been received.
                    let fault = |why: SendError| UpstreamError { delivery: Delivery::Twice, ..why.into_fault() };
                    again.map(Answer::repeated).map_err(|why| SendError::Fault(fault(why)))
                }
                other => other,
            };
            let answer = answer.map_err(SendError::into_fault)?;
            match answer.redirects_to().filter(|next| next.origin() == request.url.origin()) {
                Some(next) if request.follows && followed < MAX_REDIRECTS && self.redirect(&mut request, &answer) => url = next,
                _ => return Ok(answer),
            }
        }
        unreachable!("the last redirect is not followed")
    }

    /// Changes the method of a request as a redirect requires (WHATWG Fetch, "HTTP-redirect fetch"): 303 makes it a `GET` without
    /// a body, and so do 301 and 302 if it is a `POST`. Returns whether the redirect can be followed: a client that sends `POST`
    /// requests needs one that preserves them.
    fn redirect(&self, request: &mut OutgoingRequest<'_>, redirect: &Answer) -> bool {
        let status = redirect.status().as_u16();
        if self.posts && !matches!(status, 307 | 308) {
            return false;
        }
        let becomes_get = match status {
            301 | 302 => request.method == Method::POST,
            303 => request.method != Method::GET && request.method != Method::HEAD,
            _ => false,
        };
        if becomes_get {
            request.method = Method::GET;
            request.body = OutgoingFrame::default();
            request.headers.remove(CONTENT_TYPE);
        }
        true
    }

    fn request(&self, request: &OutgoingRequest<'_>, url: &Url) -> Request {
        let mut sent = Request::new(request.method.clone(), self.credentials.address(url));
        let headers = sent.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        headers.extend(self.headers.clone());
        headers.extend(request.headers.clone());
        #[cfg(feature = "access-token")]
        if let Some(token) = &request.token {
            token.add_to(headers, &request.method, url);
        }
        self.credentials.add_cookies(headers);
        *sent.body_mut() = RequestBody::new(&request.body).map(reqwest::Body::wrap);
        sent
    }

    async fn send_once(&self, request: &OutgoingRequest<'_>, url: &Url, deadline: Instant) -> Result<Answer, SendError> {
        #[cfg(feature = "access-token")]
        let proof = request.token.as_ref().and_then(AccessToken::proof);
        let request = self.request(request, url);
        stage::enter(Stage::Waiting);
        match stage::until(deadline, self.inner.execute(request)).await {
            None => Err(SendError::Fault(UpstreamError::timed_out())),
            Some(Ok(response)) => {
                if let Some(proxy) =
                    self.proxy.as_ref().filter(|_| response.status() == StatusCode::PROXY_AUTHENTICATION_REQUIRED)
                {
                    return Err(SendError::Fault(self.refused_by(proxy)));
                }
                #[cfg(feature = "access-token")]
                if let Some(proof) = proof {
                    proof.learn(url, response.headers());
                }
                stage::enter(Stage::Reading);
                Ok(Answer::new(response, url.clone()))
            }
            Some(Err(why)) if is_lost(&why) => Err(SendError::NoResponse(unavailable("the request failed", &why))),
            Some(Err(why)) => Err(SendError::Fault(self.failed(&why))),
        }
    }

    fn failed(&self, why: &reqwest::Error) -> UpstreamError {
        let target = self.upstream.map(|name| format!(" to '{name}'")).unwrap_or_default();
        if why.is_connect() && why.is_timeout() {
            let limit = self.connect_timeout.as_millis();
            let message = format!("no connection{target} was made within {limit} ms (connect_timeout_ms)");
            return UpstreamError { delivery: Delivery::Never, ..UpstreamError::timeout(message) };
        }
        if let Some(cause) = parse_error(why) {
            return UpstreamError::upstream(format!("the answer is not HTTP: {cause}"));
        }
        if let Some(proxy) = self.proxy.as_ref().filter(|_| is_refused_by_proxy(why)) {
            return self.refused_by(proxy);
        }
        if why.is_connect() {
            UpstreamError { delivery: Delivery::Never, ..unavailable(&format!("cannot connect{target}"), why) }
        } else {
            unavailable("the request failed", why)
        }
    }

    /// Creates the error for a proxy that refuses the request.
    fn refused_by(&self, proxy: &ResolvedProxy) -> UpstreamError {
        UpstreamError { delivery: Delivery::Never, ..proxy.refusal(self.upstream) }
    }

    /// Reads a body up to a size limit. Echoed secrets are redacted before the body is truncated or shown.
    ///
    /// # Errors
    ///
    /// Returns an error with the reason `response_too_large` if the body exceeds `cap` or the memory of the program, `timeout`
    /// after the deadline, and `upstream_unavailable` if the connection ends early or the server shuts down.
    pub async fn read_body(&self, response: &mut Answer, cap: ResponseCap, deadline: Instant) -> Result<Vec<u8>, UpstreamError> {
        let status = response.status().as_u16();
        let too_large = |seen| UpstreamError::too_large(cap, seen).with_status(status);
        if let Some(length) = response.content_length().filter(|length| *length > cap.bytes) {
            return Err(too_large(length));
        }
        response_budget::reserve(response.content_length().unwrap_or(0)).map_err(|fault| fault.with_status(status))?;
        let mut body = Vec::with_capacity(response.content_length().unwrap_or(0) as usize);
        loop {
            match tokio::time::timeout_at(deadline.into(), response.chunk()).await {
                Err(_) => return Err(UpstreamError::timed_out().with_status(status)),
                Ok(Err(why)) => return Err(unavailable("the answer was cut off", &why).with_status(status)),
                Ok(Ok(None)) => {
                    let redactor = self.redactor();
                    return offload(body.len(), move || redactor.redact_bytes(body)).await;
                }
                Ok(Ok(Some(chunk))) => {
                    let seen = body.len() as u64 + chunk.len() as u64;
                    if seen > cap.bytes {
                        return Err(too_large(seen));
                    }
                    response_budget::reserve(seen.max(response.content_length().unwrap_or(0)))
                        .map_err(|fault| fault.with_status(status))?;
                    body.extend_from_slice(&chunk);
                }
            }
        }
    }

    /// Whether every request has this header: the client's own, a credential or a static header.
    pub(crate) fn sets(&self, name: &HeaderName) -> bool {
        self.headers.contains_key(name) || self.tokens.is_some() && *name == AUTHORIZATION
    }

    /// Whether the client sends `POST` requests.
    pub(super) fn posts(&self) -> bool {
        self.posts
    }

    /// Redacts the text of a received header.
    pub(crate) fn redact_text(&self, text: &str) -> String {
        self.redactor().redact_str(text).into_owned()
    }

    /// Redacts received bytes.
    pub(crate) fn redact(&self, bytes: Vec<u8>) -> Vec<u8> {
        self.redactor().redact_bytes(bytes)
    }

    /// Returns the redactor of the answer that the current task reads.
    fn redactor(&self) -> Redactor {
        caller_token::redactor().unwrap_or_else(|| self.redactor.clone())
    }
}

/// Why a request has no response.
enum SendError {
    /// The connection failed before the head of a response was complete. A repeatable request is sent again (RFC
    /// 9110, section 9.2.2).
    NoResponse(UpstreamError),
    Fault(UpstreamError),
}

impl SendError {
    fn into_fault(self) -> UpstreamError {
        let (SendError::NoResponse(fault) | SendError::Fault(fault)) = self;
        fault
    }
}

/// Whether a connection failed after it was made and before the head of a response was complete.
fn is_lost(why: &reqwest::Error) -> bool {
    why.is_request() && !why.is_connect() && !why.is_timeout() && parse_error(why).is_none()
}

/// The error of a response that is not HTTP.
fn parse_error(why: &reqwest::Error) -> Option<&hyper::Error> {
    causes(why).find_map(|cause| cause.downcast_ref::<hyper::Error>()).filter(|cause| cause.is_parse())
}

/// Whether a proxy answered `CONNECT` with 407. The type of this error is private to `hyper-util`.
fn is_refused_by_proxy(why: &reqwest::Error) -> bool {
    why.is_connect() && causes(why).any(|cause| cause.to_string() == "tunnel error: proxy authorization required")
}

/// Iterates over an error's causes, outermost first.
fn causes<'e>(why: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(why.source(), |cause| (*cause).source())
}

/// The innermost cause, which is the one that an operator can fix. The outer ones show the whole address.
pub(super) fn innermost(why: &reqwest::Error) -> String {
    causes(why).last().map_or_else(|| "no cause is known".to_owned(), ToString::to_string)
}

/// Creates an error with the innermost cause.
pub(super) fn unavailable(what: &str, why: &reqwest::Error) -> UpstreamError {
    UpstreamError::unavailable(format!("{what}: {}", innermost(why)))
}

fn headers(endpoint: &Endpoint) -> Result<HeaderMap, UpstreamError> {
    let mut headers = HeaderMap::new();
    headers.insert(USER_AGENT, header_value(&format!("{CLIENT_NAME}/{CLIENT_VERSION}"), "User-Agent")?);
    for (name, value) in endpoint.static_headers {
        headers.insert(header_name(name)?, header_value(value, name)?);
    }
    Ok(headers)
}

/// Rejects a URL with user and password, which would not be sent. The compiler rejects such configs, but a handwritten deployment
/// may contain one.
pub(super) fn refuse_user(url: &str) -> Result<(), UpstreamError> {
    match Url::parse(url) {
        Ok(url) if !url.username().is_empty() || url.password().is_some() => Err(UpstreamError::unavailable(format!(
            "the URL {} holds a user or password: credentials are bindings, which `auth` sends",
            display_url(&url)
        ))),
        _ => Ok(()),
    }
}

pub(super) fn header_name(name: &str) -> Result<HeaderName, UpstreamError> {
    HeaderName::from_bytes(name.as_bytes()).map_err(|_| UpstreamError::unavailable(format!("invalid header name '{name}'")))
}

/// Converts a header's value. The error does not contain it.
pub(super) fn header_value(value: &str, name: &str) -> Result<HeaderValue, UpstreamError> {
    HeaderValue::from_bytes(value.as_bytes()).map_err(|_| {
        UpstreamError::unavailable(format!("the value of header '{name}' has characters that a header cannot carry"))
    })
}

/// Formats `url` for messages, without user, query and fragment.
pub(crate) fn display_url(url: &Url) -> String {
    let mut shown = url.clone();
    shown.set_query(None);
    shown.set_fragment(None);
    let _ = shown.set_username("");
    let _ = shown.set_password(None);
    shown.to_string()
}
