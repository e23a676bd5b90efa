//! Routes requests to their endpoints and logs them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ACCEPT_ENCODING, CONNECTION, HeaderName, RETRY_AFTER};
use hyper::http::uri::Authority;
use hyper::{Method, Request, Response, StatusCode};

use super::auth::Peer;
use super::body::{self, BodyError};
use super::guard::{self, text};
use super::post::{self, SESSION_ID};
use super::reply::Reply;
use super::{HttpState, cors};
use crate::diagnostics::counters::Gauge;
use crate::log::{self, Field, Level};
use crate::server::caller::Answer;
use crate::server::identity::{Identity, Owner};
use ptc_engine::protocol::reply::{ErrorBody, SERVER_ERROR};
use ptc_engine::protocol::trace_context::TraceParent;

static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
static TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Time for which a failed upstream makes `/ready` fail, if the operator asks for that. Not every upstream can be tried without a
/// call, so that calls must be admitted again after this time.
const DOWN_AGE: Duration = Duration::from_secs(30);

/// Fields of the log line of a request, in addition to its answer.
#[derive(Debug, Clone, Default)]
pub(super) struct AccessLogFields {
    pub(super) request_id: String,
    /// The number of the connection.
    pub(super) connection: u64,
    pub(super) owner: Option<Arc<str>>,
    pub(super) session: Option<Arc<str>>,
    /// The trace context in the format of the client.
    pub(super) traceparent: Option<String>,
}

/// The origin of a request.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) peer: Peer,
    /// The number of the connection.
    pub(super) connection: u64,
    pub(super) surface: Surface,
}

/// A listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    /// The listener of clients, which has all endpoints.
    Clients,
    /// The listener of operators. A policy does not restrict what it shows of upstreams.
    Admin,
}

/// An endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    /// `/health`.
    Health,
    /// `/ready`.
    Ready,
    /// The metrics.
    Metrics,
    /// Pages for people.
    Pages,
    /// The endpoint of the protocol.
    Mcp,
    /// The metadata of the protected resource.
    ResourceMetadata,
}

impl Endpoint {
    /// All endpoints. A request goes to the first one that has its path.
    pub const ALL: [Endpoint; 6] =
        [Endpoint::Health, Endpoint::Ready, Endpoint::Metrics, Endpoint::Pages, Endpoint::Mcp, Endpoint::ResourceMetadata];

    /// Whether a listener has the endpoint.
    pub fn is_on(self, surface: Surface) -> bool {
        surface == Surface::Clients || matches!(self, Endpoint::Health | Endpoint::Ready | Endpoint::Metrics)
    }

    /// Whether a path is one of this endpoint.
    fn has(self, state: &HttpState, path: &str) -> bool {
        match self {
            Endpoint::Health => path == "/health",
            Endpoint::Ready => path == "/ready",
            Endpoint::Metrics => path == state.settings.metrics_path,
            Endpoint::Pages => state.pages.as_ref().is_some_and(|pages| pages.handles(path)),
            Endpoint::Mcp => path == state.settings.path,
            Endpoint::ResourceMetadata => state.authenticator.metadata(path).is_some(),
        }
    }
}

/// Answers a request and logs it.
pub(super) async fn respond(state: &Arc<HttpState>, source: Source, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let Source { peer, connection, surface } = source;
    let peer = &peer;
    let started = Instant::now();
    let number = state.next_id.fetch_add(1, Ordering::Relaxed);
    let request_id = format!("{}-{number}", state.id_prefix);
    let mut log_fields = AccessLogFields { request_id, connection, ..AccessLogFields::default() };
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let endpoint = Endpoint::ALL.into_iter().find(|endpoint| endpoint.is_on(surface) && endpoint.has(state, &path));
    // Frequent requests are logged at a lower level, since they would hide the others.
    let quiet = matches!(endpoint, Some(Endpoint::Health | Endpoint::Ready | Endpoint::Pages));
    let reply = match (guard::find_duplicate_header(request.headers()), endpoint) {
        (Some(duplicate), _) => {
            let sentence = format!("the header {duplicate} is repeated");
            Reply::new(StatusCode::BAD_REQUEST, "text/plain; charset=utf-8", sentence)
        }
        (None, Some(endpoint)) => answer(state, endpoint, peer, surface, request, &mut log_fields).await,
        (None, None) if surface == Surface::Admin => {
            Reply::text(StatusCode::NOT_FOUND, "not found: this listener has /health, /ready and metrics")
        }
        (None, None) => Reply::text(StatusCode::NOT_FOUND, "not found"),
    };
    write_log(state, if quiet { Level::Debug } else { Level::Info }, &method, &path, reply.status, started, &log_fields);
    reply.with(REQUEST_ID.clone(), &log_fields.request_id).into_response()
}

/// Answers a request to an endpoint.
async fn answer(
    state: &Arc<HttpState>,
    endpoint: Endpoint,
    peer: &Peer,
    surface: Surface,
    request: Request<Incoming>,
    log_fields: &mut AccessLogFields,
) -> Reply {
    let not_found = || Reply::text(StatusCode::NOT_FOUND, "not found");
    let origin = || guard::allowed_origin(&state.settings, request.headers()).map(str::to_owned);
    let share = |reply, origin: Option<String>| origin.iter().fold(reply, |reply, origin| cors::share(reply, origin));
    match endpoint {
        Endpoint::Health => only_get(request.method()).unwrap_or_else(|| Reply::json(StatusCode::OK, r#"{"status":"ok"}"#)),
        Endpoint::Ready => match only_get(request.method()) {
            Some(refusal) => refusal,
            None => ready(state, peer, surface, &request).await,
        },
        Endpoint::Metrics => metrics(state, peer, surface, &request, log_fields).await,
        Endpoint::Pages => {
            let Some(pages) = &state.pages else { return not_found() };
            let request = request.into_parts().0;
            let (reply, owner) = pages.respond(&state.settings, &state.authenticator, peer, &request).await;
            log_fields.owner = owner.map(|owner| owner.hash);
            reply
        }
        Endpoint::Mcp => {
            let origin = origin();
            share(mcp(state, peer, request, log_fields).await, origin)
        }
        Endpoint::ResourceMetadata => {
            let Some(metadata) = state.authenticator.metadata(request.uri().path()) else { return not_found() };
            share(resource_metadata(state, metadata, &request), origin())
        }
    }
}

/// Handles the endpoint of the protocol.
async fn mcp(state: &Arc<HttpState>, peer: &Peer, request: Request<Incoming>, log_fields: &mut AccessLogFields) -> Reply {
    let (head, body) = request.into_parts();
    let headers = &head.headers;
    log_fields.traceparent = text(headers, &TRACEPARENT).filter(|text| TraceParent::parse(text).is_some()).map(str::to_owned);
    if let Err(refused) = guard::check_host_and_origin(&state.settings, head.uri.authority().map(Authority::as_str), headers) {
        return Reply::text(StatusCode::FORBIDDEN, refused.sentence());
    }
    if let Some(reply) = cors::preflight(&head.method, headers) {
        return reply;
    }
    let identity = match state.authenticator.authenticate(peer, headers).await {
        Ok(identity) => identity,
        Err(refusal) => return refusal,
    };
    log_fields.owner = Some(Arc::clone(&identity.owner.hash));
    match head.method {
        Method::POST => {}
        Method::DELETE => return delete(state, &identity.owner, headers, log_fields),
        _ => return Reply::not_allowed("POST, DELETE"),
    }
    if state.is_draining() {
        return unavailable("server draining");
    }
    if !guard::is_json(headers) {
        return Reply::text(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported media type: send application/json");
    }
    if !guard::is_plain(headers) {
        let reply = Reply::text(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported content encoding: send the body as it is");
        return reply.with(ACCEPT_ENCODING, "identity");
    }
    if !guard::takes_json(headers) {
        return Reply::text(StatusCode::NOT_ACCEPTABLE, "answers are application/json");
    }
    match body::read(body, state.max_body_bytes, state.settings.request_timeout, &state.body_memory, state.server.scheduler())
        .await
    {
        // The shutdown may have begun while the body was read.
        Ok(_) if state.is_draining() => unavailable("server draining"),
        Ok(body) if body.is_empty() => Reply::text(StatusCode::BAD_REQUEST, "empty body"),
        Ok(body) => post::answer(state, identity, headers, body, log_fields).await,
        Err(BodyError::Overloaded) => unavailable("server busy: too many requests are being read"),
        Err(BodyError::TooLarge) => Reply::text(StatusCode::PAYLOAD_TOO_LARGE, "payload too large").with(CONNECTION, "close"),
        Err(BodyError::TooSlow) => Reply::text(StatusCode::REQUEST_TIMEOUT, "request timeout").with(CONNECTION, "close"),
        Err(BodyError::Broken) => Reply::text(StatusCode::BAD_REQUEST, "broken body"),
    }
}

/// Handles the metadata of the protected resource, which clients read before they have a token.
fn resource_metadata(state: &HttpState, metadata: &str, request: &Request<Incoming>) -> Reply {
    let (authority, headers) = (request.uri().authority().map(Authority::as_str), request.headers());
    if let Err(refused) = guard::check_host_and_origin(&state.settings, authority, headers) {
        return Reply::text(StatusCode::FORBIDDEN, refused.sentence());
    }
    let preflight = cors::preflight(request.method(), headers).or_else(|| only_get(request.method()));
    preflight.unwrap_or_else(|| Reply::json(StatusCode::OK, metadata.to_owned()))
}

/// Handles the metrics endpoint, which exists only if metrics are on.
async fn metrics(
    state: &HttpState,
    peer: &Peer,
    surface: Surface,
    request: &Request<Incoming>,
    log_fields: &mut AccessLogFields,
) -> Reply {
    if !state.server.settings().diagnostics.counted {
        return Reply::text(StatusCode::NOT_FOUND, "not found");
    }
    if let Err(refused) =
        guard::check_host_and_origin(&state.settings, request.uri().authority().map(Authority::as_str), request.headers())
    {
        return Reply::text(StatusCode::FORBIDDEN, refused.sentence());
    }
    let identity = match state.authenticator.authenticate(peer, request.headers()).await {
        Ok(identity) => identity,
        Err(refusal) => return refusal,
    };
    log_fields.owner = Some(Arc::clone(&identity.owner.hash));
    if let Some(refusal) = only_get(request.method()) {
        return refusal;
    }
    let gauge = Gauge { name: "ptc_http_sessions", help: "Protocol sessions.", value: state.sessions.count() };
    let text = state.server.metrics(&[gauge], restricted(surface, &identity)).unwrap_or_default();
    Reply::new(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", text)
}

/// Returns the reader that a policy restricts. Operators need the state of all upstreams, and have a listener of their own.
fn restricted(surface: Surface, identity: &Identity) -> Option<&Identity> {
    (surface == Surface::Clients).then_some(identity)
}

fn delete(state: &HttpState, owner: &Owner, headers: &hyper::HeaderMap, log_fields: &mut AccessLogFields) -> Reply {
    let Some(id) = text(headers, &SESSION_ID) else {
        return Reply::text(StatusCode::BAD_REQUEST, "missing Mcp-Session-Id");
    };
    log_fields.session = state.sessions.close(owner, id);
    Reply::empty(if log_fields.session.is_some() { StatusCode::NO_CONTENT } else { StatusCode::NOT_FOUND })
}

/// Handles `/ready`, which reports whether calls are accepted. Only authenticated clients receive the name of the process and the
/// upstreams that are down, of which a policy may hide some.
async fn ready(state: &HttpState, peer: &Peer, surface: Surface, request: &Request<Incoming>) -> Reply {
    if let Err(refused) =
        guard::check_host_and_origin(&state.settings, request.uri().authority().map(Authority::as_str), request.headers())
    {
        return Reply::text(StatusCode::FORBIDDEN, refused.sentence());
    }
    let (status, word) = match () {
        () if state.is_draining() => (StatusCode::SERVICE_UNAVAILABLE, "draining"),
        () if state.server.store_trouble().is_some() => (StatusCode::SERVICE_UNAVAILABLE, "session_store_unavailable"),
        () if state.server.scheduler().is_full() => (StatusCode::SERVICE_UNAVAILABLE, "queue_full"),
        () if state.sessions.is_full(Instant::now()) => (StatusCode::SERVICE_UNAVAILABLE, "saturated"),
        () if state.settings.ready_needs_upstreams && reconnect_upstreams(state) => {
            (StatusCode::SERVICE_UNAVAILABLE, "upstream_down")
        }
        () => (StatusCode::OK, "ready"),
    };
    let mut body = serde_json::json!({ "status": word });
    // Without a token, the permissions of a Unix socket protect the clients' listener, but not the admin listener.
    let protected = surface == Surface::Clients || state.settings.unix_socket.is_none() || !state.authenticator.is_open();
    if protected
        && let Some(identity) = state.authenticator.known(peer, request.headers()).await
        && let Some(members) = body.as_object_mut()
    {
        if status == StatusCode::OK {
            members.insert("instance".into(), state.instance.as_str().into());
        }
        let down = state
            .server
            .upstreams_down(Duration::MAX, restricted(surface, &identity))
            .into_iter()
            .map(|(name, reason)| (name.to_owned(), reason.into()));
        let down: serde_json::Map<String, serde_json::Value> = down.collect();
        if !down.is_empty() {
            members.insert("upstreams_down".into(), down.into());
        }
    }
    Reply::json(status, body.to_string())
}

/// Connects again to upstreams that have failed within [`DOWN_AGE`], since a server that is not ready may get no calls that would
/// do this. Returns whether there are any.
fn reconnect_upstreams(state: &HttpState) -> bool {
    let is_down = !state.server.upstreams_down(DOWN_AGE, None).is_empty();
    if is_down {
        state.server.reconnect_upstreams();
    }
    is_down
}

/// Creates the reply to a request that may be repeated soon on another connection.
pub(super) fn unavailable(sentence: &'static str) -> Reply {
    let body = ErrorBody::new(SERVER_ERROR, sentence);
    let reply = Reply::json(StatusCode::SERVICE_UNAVAILABLE, Answer::error("null", &body).line);
    reply.with(RETRY_AFTER, "1").with(CONNECTION, "close")
}

fn only_get(method: &Method) -> Option<Reply> {
    (!matches!(*method, Method::GET | Method::HEAD)).then(|| Reply::not_allowed("GET, HEAD"))
}

fn write_log(
    state: &HttpState,
    level: Level,
    method: &Method,
    path: &str,
    status: StatusCode,
    started: Instant,
    log_fields: &AccessLogFields,
) {
    if !log::enabled(level) {
        return;
    }
    let mut fields = vec![
        ("instance", Field::Text(&state.instance)),
        ("request_id", Field::Text(&log_fields.request_id)),
        ("method", Field::Text(method.as_str())),
        ("path", Field::Text(path)),
        ("status", Field::Number(status.as_u16().into())),
        ("duration_us", Field::Number(started.elapsed().as_micros() as u64)),
    ];
    let optional = [
        ("owner_hash", log_fields.owner.as_deref()),
        ("mcp_session_hash", log_fields.session.as_deref()),
        ("traceparent", log_fields.traceparent.as_deref()),
    ];
    fields.extend(optional.into_iter().filter_map(|(name, text)| Some((name, Field::Text(text?)))));
    log::record(level, "http_request", &fields);
}
