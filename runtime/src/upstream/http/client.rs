//! A client for one upstream.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ptc_catalog::Auth;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use reqwest::redirect::{Action, Attempt, Policy};
use reqwest::{Certificate, Method, Proxy, Response, Url};
use rustls::{ClientConfig, RootCertStore};

use super::connecting::ReportConnecting;
use crate::secrets::{Redactor, Secrets, basic_pair};
use crate::upstream::fault::{Reason, WorldFault};
use crate::upstream::incoming;
use crate::upstream::mcp::wire::{CLIENT_NAME, CLIENT_VERSION};
use crate::upstream::stage::{self, Stage};

/// Redirects that are followed, all within one origin.
pub(super) const MAX_REDIRECTS: usize = 5;
/// Connections that are kept without use, and how long. Programs call in bursts of up to 50.
const IDLE_CONNECTIONS: usize = 16;
const IDLE_TIME: Duration = Duration::from_secs(60);

/// A client whose headers and origin are fixed.
#[derive(Clone)]
pub(crate) struct HttpClient {
    inner: reqwest::Client,
    headers: HeaderMap,
    connect_timeout: Duration,
    redactor: Redactor,
    posts: bool,
}

/// What a client is made of, apart from its secrets.
pub(crate) struct Endpoint {
    pub(crate) url: &'static str,
    pub(crate) auth: &'static [Auth],
    pub(crate) static_headers: &'static [(&'static str, &'static str)],
    pub(crate) connect_timeout: Duration,
    pub(crate) proxy: Option<&'static str>,
    /// Certificates that are trusted beside the system's, as PEM.
    pub(crate) extra_roots: Option<Arc<[u8]>>,
    /// Whether the client posts: then only redirects that keep method and body are followed.
    pub(crate) posts: bool,
}

/// A request.
#[derive(Clone)]
pub(crate) struct Asking<'u> {
    pub(crate) method: Method,
    pub(crate) url: &'u str,
    /// Headers besides those of the client.
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<Vec<u8>>,
    /// Whether it only reads, so that it may be sent once more where the connection was reset before an answer began.
    pub(crate) repeatable: bool,
}

impl<'u> Asking<'u> {
    /// A request without a body that is sent once.
    pub(crate) fn new(method: Method, url: &'u str, headers: HeaderMap) -> Asking<'u> {
        Asking { method, url, headers, body: None, repeatable: false }
    }
}

impl HttpClient {
    /// Builds the client; system roots are read only where TLS is used.
    pub(crate) fn new(endpoint: &Endpoint, secrets: &Secrets) -> Result<HttpClient, WorldFault> {
        let posts = endpoint.posts;
        let mut builder = reqwest::Client::builder()
            .connect_timeout(endpoint.connect_timeout)
            .tcp_nodelay(true)
            .referer(false)
            .redirect(Policy::custom(move |attempt| same_origin(attempt, posts)))
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .pool_idle_timeout(IDLE_TIME)
            .connector_layer(ReportConnecting)
            // Only what the config says: an environment of the server must not redirect credentials.
            .no_proxy();
        if let Some(proxy) = endpoint.proxy {
            let proxy = Proxy::all(proxy).map_err(|why| unavailable("the proxy cannot be used", &why))?;
            builder = builder.proxy(proxy);
        }
        let plain = |url: &str| url.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http://"));
        if plain(endpoint.url) && endpoint.proxy.is_none_or(plain) {
            builder = builder.tls_backend_preconfigured(without_roots()?);
        } else {
            // Fails where a provider is installed already, which is as good.
            let _ = rustls::crypto::ring::default_provider().install_default();
            if let Some(pem) = &endpoint.extra_roots {
                builder = builder.tls_certs_merge(roots(pem).map_err(WorldFault::unavailable)?);
            }
        }
        let inner = builder.build().map_err(|why| unavailable("the HTTP client cannot be built", &why))?;
        let headers = headers(endpoint, secrets)?;
        Ok(HttpClient { inner, headers, connect_timeout: endpoint.connect_timeout, redactor: secrets.redactor(), posts })
    }

    /// Sends a request and waits for the head of the answer.
    pub(crate) async fn send(&self, asking: Asking<'_>, deadline: Instant) -> Result<Response, WorldFault> {
        if asking.repeatable {
            match self.send_once(asking.clone(), deadline).await {
                Err(Unsent::Reset(_)) => {}
                other => return other.map_err(Unsent::fault),
            }
        }
        self.send_once(asking, deadline).await.map_err(Unsent::fault)
    }

    async fn send_once(&self, asking: Asking<'_>, deadline: Instant) -> Result<Response, Unsent> {
        let mut headers = self.headers.clone();
        headers.extend(asking.headers);
        let mut request = self.inner.request(asking.method, asking.url).headers(headers);
        if let Some(body) = asking.body {
            request = request.body(body);
        }
        stage::enter(Stage::Waiting);
        match stage::until(deadline, request.send()).await {
            None => Err(Unsent::Fault(WorldFault::late())),
            Some(Ok(response)) => {
                stage::enter(Stage::Reading);
                Ok(response)
            }
            Some(Err(why)) if why.is_timeout() => {
                let limit = self.connect_timeout.as_millis();
                Err(Unsent::Fault(WorldFault::timeout(format!("no connection was made within {limit} ms (connect_timeout_ms)"))))
            }
            Some(Err(why)) if hyper_cause(&why).is_some_and(hyper::Error::is_parse) => {
                let cause = hyper_cause(&why).map(ToString::to_string).unwrap_or_default();
                Err(Unsent::Fault(WorldFault::upstream(format!("the answer is not HTTP: {cause}"))))
            }
            Some(Err(why)) => {
                let fault = unavailable(if why.is_connect() { "cannot connect" } else { "the request failed" }, &why);
                Err(if was_reset(&why) { Unsent::Reset(fault) } else { Unsent::Fault(fault) })
            }
        }
    }

    /// Reads a body of at most `max` bytes. Secrets that it echoes are taken out before anything is cut from it or shown.
    pub(crate) async fn read_body(&self, response: &mut Response, max: u64, deadline: Instant) -> Result<Vec<u8>, WorldFault> {
        let status = response.status().as_u16();
        let too_large = |seen| WorldFault::too_large(max, seen).with_status(status);
        if let Some(length) = response.content_length().filter(|length| *length > max) {
            return Err(too_large(length));
        }
        incoming::hold(response.content_length().unwrap_or(0)).map_err(|fault| fault.with_status(status))?;
        let mut body = Vec::with_capacity(response.content_length().unwrap_or(0) as usize);
        loop {
            match tokio::time::timeout_at(deadline.into(), response.chunk()).await {
                Err(_) => return Err(WorldFault::late().with_status(status)),
                Ok(Err(why)) => return Err(unavailable("the answer was cut off", &why).with_status(status)),
                Ok(Ok(None)) => return Ok(self.redact(body)),
                Ok(Ok(Some(chunk))) => {
                    let seen = body.len() as u64 + chunk.len() as u64;
                    if seen > max {
                        return Err(too_large(seen));
                    }
                    incoming::hold(seen.max(response.content_length().unwrap_or(0)))
                        .map_err(|fault| fault.with_status(status))?;
                    body.extend_from_slice(&chunk);
                }
            }
        }
    }

    /// Whether it posts, as its [`Endpoint`] says.
    pub(super) fn posts(&self) -> bool {
        self.posts
    }

    /// A header that came, without secrets.
    pub(super) fn redact_text(&self, text: &str) -> String {
        self.redactor.redact_str(text).into_owned()
    }

    /// What came, without secrets.
    pub(crate) fn redact(&self, bytes: Vec<u8>) -> Vec<u8> {
        self.redactor.redact_bytes(bytes)
    }
}

/// Why a request has no answer.
enum Unsent {
    /// The connection was closed before an answer began.
    Reset(WorldFault),
    Fault(WorldFault),
}

impl Unsent {
    fn fault(self) -> WorldFault {
        let (Unsent::Reset(fault) | Unsent::Fault(fault)) = self;
        fault
    }
}

/// Also where the first bytes of a head came, which the HTTP client does not tell apart: a request that only reads loses nothing by it.
fn was_reset(why: &reqwest::Error) -> bool {
    if why.is_connect() || why.is_timeout() {
        return false;
    }
    let reset = [io::ErrorKind::ConnectionReset, io::ErrorKind::ConnectionAborted, io::ErrorKind::BrokenPipe];
    hyper_cause(why).is_some_and(hyper::Error::is_incomplete_message)
        || causes(why).any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|why| reset.contains(&why.kind())))
}

fn causes(why: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(why.source(), |cause| (*cause).source())
}

fn hyper_cause(why: &reqwest::Error) -> Option<&hyper::Error> {
    causes(why).find_map(|cause| cause.downcast_ref::<hyper::Error>())
}

/// The certificates in a PEM text; `Err` says what it lacks.
pub(crate) fn roots(pem: &[u8]) -> Result<Vec<Certificate>, String> {
    match Certificate::from_pem_bundle(pem) {
        Ok(found) if found.is_empty() => Err("it holds no certificate (expected PEM, -----BEGIN CERTIFICATE-----)".to_owned()),
        Ok(found) => Ok(found),
        Err(why) => Err(format!("its certificates cannot be read: {why}")),
    }
}

/// The innermost cause, which names what the operator can change. Never the whole of it: an error of the HTTP client may
/// hold a URL with its query.
pub(crate) fn unavailable(what: &str, why: &reqwest::Error) -> WorldFault {
    let mut cause: &dyn Error = why;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    let cause = if std::ptr::addr_eq(cause, why) { String::new() } else { format!(": {cause}") };
    WorldFault::unavailable(format!("{what}{cause}"))
}

/// A redirect is followed within the origin that was asked, so that neither credentials nor arguments leave it. 301, 302 and
/// 303 would turn a `POST` into a `GET`.
fn same_origin(attempt: Attempt<'_>, posts: bool) -> Action {
    let within = attempt.previous().first().is_some_and(|asked| asked.origin() == attempt.url().origin());
    let keeps = !posts || matches!(attempt.status().as_u16(), 307 | 308);
    if within && keeps && attempt.previous().len() <= MAX_REDIRECTS { attempt.follow() } else { attempt.stop() }
}

fn without_roots() -> Result<ClientConfig, WorldFault> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|why| WorldFault::unavailable(format!("TLS cannot be set up: {why}")))?;
    Ok(config.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

fn headers(endpoint: &Endpoint, secrets: &Secrets) -> Result<HeaderMap, WorldFault> {
    let mut headers = HeaderMap::new();
    headers.insert(USER_AGENT, text(&format!("{CLIENT_NAME}/{CLIENT_VERSION}"), "User-Agent")?);
    for (name, value) in endpoint.static_headers {
        headers.insert(header_name(name)?, text(value, name)?);
    }
    for auth in endpoint.auth {
        let missing = || auth_fault(format!("credential binding '{}' has no value", auth.binding()));
        let secret = secrets.binding(auth.binding()).ok_or_else(missing)?;
        let (name, value) = match auth {
            Auth::Bearer { .. } => ("authorization", format!("Bearer {secret}")),
            Auth::Basic { .. } => {
                let wrong = || auth_fault(format!("credential binding '{}' is not user:pass", auth.binding()));
                let (user, pass) = basic_pair(secret).ok_or_else(wrong)?;
                ("authorization", format!("Basic {}", STANDARD.encode(format!("{user}:{pass}"))))
            }
            Auth::CustomHeader { header, .. } => (*header, secret.to_owned()),
        };
        let mut value = text(&value, name)?;
        value.set_sensitive(true);
        headers.insert(header_name(name)?, value);
    }
    Ok(headers)
}

fn auth_fault(message: String) -> WorldFault {
    WorldFault::new(Reason::AuthFailed, message)
}

fn header_name(name: &str) -> Result<HeaderName, WorldFault> {
    HeaderName::from_bytes(name.as_bytes()).map_err(|_| WorldFault::unavailable(format!("'{name}' is no name of a header")))
}

/// A header's value; the message never shows it.
fn text(value: &str, name: &str) -> Result<HeaderValue, WorldFault> {
    HeaderValue::from_bytes(value.as_bytes())
        .map_err(|_| WorldFault::unavailable(format!("the value of header '{name}' has characters that a header cannot carry")))
}

/// `url` without user, query and fragment, for messages.
pub(crate) fn for_people(url: &Url) -> String {
    let mut shown = url.clone();
    shown.set_query(None);
    shown.set_fragment(None);
    let _ = shown.set_username("");
    let _ = shown.set_password(None);
    shown.to_string()
}
