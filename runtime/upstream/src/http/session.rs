//! A session with an MCP server, and requests over Streamable HTTP.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ptc_catalog::Era;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, StatusCode};
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;
use url::Url;

use super::answer::Answer;
use super::client::{HttpClient, OutgoingRequest};
use super::shared_stream::SharedStream;
use super::status::{ERROR_BODY_BYTES, Head};
use crate::caller_token;
use crate::fault::{Reason, UpstreamError, excerpt};
use crate::mcp::wire::{self, Frame, ServerMessage};
use crate::mcp::{Ask, Channel, HANDSHAKE_REVISIONS, Negotiated, Response};
use crate::offload::offload;
use crate::settings::ResponseCap;

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Timeout for requests whose result is not awaited: answers to the server's requests, cancellations, and the end of a session.
pub(super) const BACKGROUND_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum number of concurrent answers to requests of the server, so that a server with endless requests gets no more
/// connections.
const ANSWERING: usize = 8;

/// A negotiated connection to a server, with its session.
pub(crate) struct Session {
    pub(super) wire: Arc<Wire>,
    pub(crate) negotiated: Negotiated,
    /// The reader of the event stream of HTTP+SSE.
    pub(super) reader: Option<Reader>,
}

/// A task that is aborted when this is dropped.
pub(super) struct Reader(pub(super) AbortHandle);

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Posts frames to one endpoint.
pub(super) struct Wire {
    pub(super) client: HttpClient,
    pub(super) url: Url,
    pub(super) cap: ResponseCap,
    next_id: AtomicU64,
    session: Mutex<Option<HeaderValue>>,
    /// The negotiated revision, which notifications name.
    revision: Mutex<Option<&'static str>>,
    /// Permits of answers to the server that are being sent.
    answering: Arc<Semaphore>,
    /// The event stream that has all responses, over HTTP+SSE.
    pub(super) stream: Option<SharedStream>,
}

impl Session {
    /// Returns the channel for requests of the negotiated era.
    pub(crate) fn channel(&self) -> &impl Channel {
        &*self.wire
    }

    /// Ends the session on the server.
    pub(crate) async fn end(&self) {
        if let (Some(stream), Some(reader)) = (&self.wire.stream, &self.reader) {
            stream.lose(UpstreamError::unavailable("the connection was closed"));
            reader.0.abort();
        }
        if self.wire.session().is_none() {
            return;
        }
        let headers = self.wire.headers(None, None, Some((self.negotiated.era, self.negotiated.revision)));
        let asking = OutgoingRequest::new(Method::DELETE, &self.wire.url, headers);
        // A server that does not support ending sessions answers 405, which is ignored.
        let _ = self.wire.client.send(asking, Instant::now() + BACKGROUND_TIMEOUT).await;
    }
}

impl crate::lifecycle::Live for Session {
    fn failure(&self) -> Option<UpstreamError> {
        // Without a shared stream there is no connection to lose between requests. The end of the session is noticed at the next
        // call.
        self.wire.stream.as_ref()?.failure()
    }
}

impl Wire {
    pub(super) fn new(client: HttpClient, url: Url, cap: ResponseCap, stream: Option<SharedStream>) -> Wire {
        Wire {
            client,
            url,
            cap,
            next_id: AtomicU64::new(1),
            session: Mutex::default(),
            revision: Mutex::default(),
            answering: Arc::new(Semaphore::new(ANSWERING)),
            stream,
        }
    }

    fn session(&self) -> Option<HeaderValue> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn headers(
        &self,
        method: Option<&'static str>,
        name: Option<&str>,
        negotiated: Option<(Era, &'static str)>,
    ) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        if let Some((era, revision)) = negotiated {
            headers.insert(REVISION, HeaderValue::from_static(revision));
            if era == Era::Stateless {
                if let Some(method) = method {
                    headers.insert(METHOD, HeaderValue::from_static(method));
                }
                if let Some(value) = name.and_then(|name| HeaderValue::from_str(&header_text(name)).ok()) {
                    headers.insert(NAME, value);
                }
                return headers;
            }
        }
        if let Some(session) = self.session() {
            headers.insert(SESSION_ID, session);
        }
        headers
    }

    async fn post(&self, id: u64, ask: Ask<'_>, deadline: Instant) -> Result<Response, UpstreamError> {
        let Ask { method, negotiated, .. } = ask;
        let asking = OutgoingRequest {
            body: wire::request(id, method, ask.params, ask.arguments, negotiated),
            repeatable: ask.repeatable,
            ..OutgoingRequest::new(Method::POST, &self.url, self.headers(Some(method), ask.name, negotiated))
        };
        let mut answer = self.client.send(asking, deadline).await?;
        let status = answer.status();
        if method == "initialize" && status.is_success() {
            let given = answer.headers().get(SESSION_ID).cloned();
            *self.session.lock().unwrap_or_else(PoisonError::into_inner) = given;
        }
        if is_event_stream(&answer) && status.is_success() {
            return self.read_events(id, answer, negotiated, deadline).await.map_err(|fault| fault.with_status(status.as_u16()));
        }
        let head = Head::new(&self.client, &answer);
        let cap = if status.is_success() { self.cap } else { self.cap.bytes.min(ERROR_BODY_BYTES).into() };
        let body = match self.client.read_body(&mut answer, cap, deadline).await {
            Ok(body) => body,
            // The body of a refusal that is too long is ignored, since the status is the relevant reason.
            Err(fault) if !status.is_success() && fault.reason == Reason::ResponseTooLarge => Vec::new(),
            Err(fault) => return Err(fault),
        };
        let (body, session_over, response) = offload(body.len(), move || {
            let session_over = says_session_is_over(status, &body, id);
            let response = find_response(&body, id, !status.is_success());
            (body, session_over, response)
        })
        .await?;
        if method != "initialize" && self.session().is_some() && session_over {
            return Err(UpstreamError { session_over: true, ..head.fault(&body) });
        }
        if let Some(response) = response {
            // A refusal by status may contain a JSON-RPC error. For errors of access the status alone decides. 404 and 405 for
            // `initialize` mean that there is no Streamable HTTP.
            if method == "initialize" && matches!(status.as_u16(), 404 | 405) {
                return Err(head.fault(&body));
            }
            if status.is_success() || matches!(status.as_u16(), 400 | 404 | 405 | 406 | 415 | 422 | 500) {
                return Ok(response);
            }
        }
        if !status.is_success() {
            return Err(head.fault(&body));
        }
        let text = String::from_utf8_lossy(&body);
        let shown = if text.trim().is_empty() { "nothing".into() } else { excerpt(&text, 200) };
        Err(UpstreamError::upstream(format!("the answer is not a JSON-RPC response: {shown}")).with_status(status.as_u16()))
    }

    /// Returns a future that posts a frame for the current caller, without waiting for its result. It is spawned.
    fn send_detached(&self, body: Vec<u8>, negotiated: Option<(Era, &'static str)>) -> impl Future<Output = ()> + use<> {
        let headers = self.headers(None, None, negotiated);
        let (client, url) = (self.client.clone(), self.url.clone());
        caller_token::inherit(async move {
            let asking = OutgoingRequest { body: body.into(), ..OutgoingRequest::new(Method::POST, &url, headers) };
            let _ = client.send(asking, Instant::now() + BACKGROUND_TIMEOUT).await;
        })
    }

    /// Answers a request of the server, unless too many answers are still being sent.
    pub(super) fn respond_detached(&self, body: Vec<u8>, negotiated: Option<(Era, &'static str)>) {
        let Ok(place) = Arc::clone(&self.answering).try_acquire_owned() else { return };
        let post = self.send_detached(body, negotiated);
        tokio::spawn(async move {
            post.await;
            drop(place);
        });
    }
}

/// Whether a response means that the session has ended. By the specification this is status 404, unless the body answers this
/// request. Some servers send 400 with a JSON-RPC error that answers no request and mentions the session. A 400 with the tool's
/// own error is different: the call was executed and must not be repeated.
fn says_session_is_over(status: StatusCode, body: &[u8], id: u64) -> bool {
    match status {
        StatusCode::NOT_FOUND => find_response(body, id, false).is_none(),
        StatusCode::BAD_REQUEST => match find_response(body, id, true) {
            Some(Response::Error(error)) => {
                find_response(body, id, false).is_none() && error.message.to_ascii_lowercase().contains("session")
            }
            _ => false,
        },
        _ => false,
    }
}

/// Whether the body of a response is an event stream.
pub(super) fn is_event_stream(answer: &Answer) -> bool {
    let kind = answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.is_some_and(|kind| kind.trim_start().get(..17).is_some_and(|k| k.eq_ignore_ascii_case("text/event-stream")))
}

/// Returns the response in a body or an event. With `unaddressed`, an error without an id is accepted too, which is the body of a
/// refusal.
pub(super) fn find_response(bytes: &[u8], id: u64, unaddressed: bool) -> Option<Response> {
    Frame::parse(bytes).ok()?.into_iter().find_map(|frame| match frame.classify() {
        ServerMessage::Response(found, response) if found == id => Some(response),
        ServerMessage::Unaddressed(error) if unaddressed && error.code != 0 => Some(Response::Error(error)),
        _ => None,
    })
}

/// Encodes a name for a header: unchanged, or in base64 if it contains characters other than visible ASCII.
fn header_text(name: &str) -> String {
    let plain = name.bytes().all(|byte| matches!(byte, 0x20..=0x7e)) && name.trim() == name;
    if plain && !(name.starts_with("=?base64?") && name.ends_with("?=")) {
        name.to_owned()
    } else {
        format!("=?base64?{}?=", STANDARD.encode(name))
    }
}

/// A pending request. If it is dropped before its response, a server of the handshake era receives a cancellation. In the
/// stateless era closing the stream cancels the request.
struct Open<'w> {
    wire: &'w Wire,
    id: u64,
    negotiated: Option<(Era, &'static str)>,
    answered: bool,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if let Some(stream) = &self.wire.stream {
            stream.forget(self.id);
        }
        if !self.answered
            && self.negotiated.is_some_and(|(era, _)| era == Era::Handshake)
            && tokio::runtime::Handle::try_current().is_ok()
        {
            tokio::spawn(self.wire.send_detached(wire::cancelled(self.id), self.negotiated));
        }
    }
}

impl Channel for Wire {
    async fn request(&self, ask: Ask<'_>, deadline: Instant) -> Result<Response, UpstreamError> {
        let Ask { method, negotiated, .. } = ask;
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let mut open = Open { wire: self, id, negotiated, answered: false };
        let outcome = match &self.stream {
            Some(stream) => self.exchange(stream, id, ask, deadline).await,
            None => self.post(id, ask, deadline).await,
        };
        open.answered = !matches!(&outcome, Err(fault) if fault.reason == Reason::Timeout);
        match outcome {
            // Servers of the handshake era reject unknown methods with various statuses. Only `initialize` shows whether they are
            // usable.
            Err(fault) if method == "server/discover" && fault.http_status.is_some_and(refuses_a_probe) => {
                Ok(Response::Error(wire::RpcError { code: 0, message: fault.message.into_owned(), data: None }))
            }
            Ok(Response::Result(result)) if method == "initialize" => {
                #[derive(serde::Deserialize)]
                #[serde(rename_all = "camelCase")]
                struct Version {
                    protocol_version: String,
                }
                let theirs = serde_json::from_str::<Version>(result.get()).map(|v| v.protocol_version).unwrap_or_default();
                let known = HANDSHAKE_REVISIONS.into_iter().find(|ours| *ours == theirs);
                *self.revision.lock().unwrap_or_else(PoisonError::into_inner) = known;
                Ok(Response::Result(result))
            }
            other => other,
        }
    }

    async fn notify(&self, method: &'static str) {
        let revision = *self.revision.lock().unwrap_or_else(PoisonError::into_inner);
        let headers = self.headers(None, None, revision.map(|revision| (Era::Handshake, revision)));
        let body = wire::notification(method).into();
        let asking = OutgoingRequest { body, ..OutgoingRequest::new(Method::POST, &self.url, headers) };
        // This is awaited, since servers may reject requests that overtake `initialized`.
        let _ = self.client.send(asking, Instant::now() + BACKGROUND_TIMEOUT).await;
    }
}

/// Whether a server of the handshake era may answer the probe with this status. 401, 403 and 429 would also be the answer to
/// `initialize`.
fn refuses_a_probe(status: u16) -> bool {
    !matches!(StatusCode::from_u16(status), Ok(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_invalid_in_a_header_are_encoded() {
        assert_eq!(header_text("get weather"), "get weather");
        assert_eq!(header_text("Grüße"), "=?base64?R3LDvMOfZQ==?=");
        assert_eq!(header_text(" x"), "=?base64?IHg=?=");
        assert_eq!(header_text("=?base64?x?="), "=?base64?PT9iYXNlNjQ/eD89?=");
    }
}
