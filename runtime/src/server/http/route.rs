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
use crate::server::identity::Owner;
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

/// The endpoints of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Surface {
    /// All endpoints.
    Clients,
    /// Only `/health`, `/ready` and metrics.
    Admin,
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
    // Frequent requests are logged at a lower level, since they would hide the others.
    let pages = |path: &str| state.pages.as_ref().filter(|pages| pages.handles(path));
    let quiet = matches!(path.as_str(), "/health" | "/ready") || pages(&path).is_some();
    let duplicate = guard::find_duplicate_header(request.headers());
    let reply = match path.as_str() {
        _ if duplicate.is_some() => {
            let sentence = format!("the header {} is repeated", duplicate.unwrap_or_default());
            Reply::new(StatusCode::BAD_REQUEST, "text/plain; charset=utf-8", sentence)
        }
        "/health" => only_get(&method).unwrap_or_else(|| Reply::json(StatusCode::OK, r#"{"status":"ok"}"#)),
        "/ready" => match only_get(&method) {
            Some(refusal) => refusal,
            None => ready(state, peer, surface, &request).await,
        },
        path if path == state.settings.metrics_path => metrics(state, peer, &request, &mut log_fields).await,
        _ if surface == Surface::Admin => {
            Reply::text(StatusCode::NOT_FOUND, "not found: this listener has /health, /ready and metrics")
        }
        path => match pages(path) {
            Some(pages) => {
                let request = request.into_parts().0;
                let (reply, owner) = pages.respond(&state.settings, &state.authenticator, peer, &request).await;
                log_fields.owner = owner.map(|owner| owner.hash);
                reply
            }
            None if path == state.settings.path => {
                let origin = guard::allowed_origin(&state.settings, request.headers()).map(str::to_owned);
                let reply = endpoint(state, peer, request, &mut log_fields).await;
                origin.into_iter().fold(reply, |reply, origin| cors::share(reply, &origin))
            }
            None => match state.authenticator.metadata(path) {
                Some(metadata) => {
                    let origin = guard::allowed_origin(&state.settings, request.headers()).map(str::to_owned);
                    let reply = resource_metadata(state, metadata, &request);
                    origin.into_iter().fold(reply, |reply, origin| cors::share(reply, &origin))
                }
                None => Reply::text(StatusCode::NOT_FOUND, "not found"),
            },
        },
    };
    write_log(state, if quiet { Level::Debug } else { Level::Info }, &method, &path, reply.status, started, &log_fields);
    reply.with(REQUEST_ID.clone(), &log_fields.request_id).into_response()
}

/// Handles the endpoint of the protocol.
async fn endpoint(state: &Arc<HttpState>, peer: &Peer, request: Request<Incoming>, log_fields: &mut AccessLogFields) -> Reply {
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
async fn metrics(state: &HttpState, peer: &Peer, request: &Request<Incoming>, log_fields: &mut AccessLogFields) -> Reply {
    let gauge = Gauge { name: "ptc_http_sessions", help: "Protocol sessions.", value: state.sessions.count() };
    let Some(text) = state.server.metrics(&[gauge]) else { return Reply::text(StatusCode::NOT_FOUND, "not found") };
    if let Err(refused) =
        guard::check_host_and_origin(&state.settings, request.uri().authority().map(Authority::as_str), request.headers())
    {
        return Reply::text(StatusCode::FORBIDDEN, refused.sentence());
    }
    match state.authenticator.authenticate(peer, request.headers()).await {
        Ok(identity) => log_fields.owner = Some(Arc::clone(&identity.owner.hash)),
        Err(refusal) => return refusal,
    }
    let text = || Reply::new(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", text);
    only_get(request.method()).unwrap_or_else(text)
}

fn delete(state: &HttpState, owner: &Owner, headers: &hyper::HeaderMap, log_fields: &mut AccessLogFields) -> Reply {
    let Some(id) = text(headers, &SESSION_ID) else {
        return Reply::text(StatusCode::BAD_REQUEST, "missing Mcp-Session-Id");
    };
    log_fields.session = state.sessions.close(owner, id);
    Reply::empty(if log_fields.session.is_some() { StatusCode::NO_CONTENT } else { StatusCode::NOT_FOUND })
}

/// Handles `/ready`, which reports whether calls are accepted. Only authenticated clients receive the name of the process and the
/// upstreams that are down.
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
        && state.authenticator.knows(peer, request.headers()).await
        && let Some(members) = body.as_object_mut()
    {
        if status == StatusCode::OK {
            members.insert("instance".into(), state.instance.as_str().into());
        }
        let down = state.server.upstreams_down(Duration::MAX).into_iter().map(|(name, reason)| (name.to_owned(), reason.into()));
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
    let is_down = !state.server.upstreams_down(DOWN_AGE).is_empty();
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
