//! MCP over HTTP+SSE, the transport of protocol revision 2024-11-05: requests are posted to an endpoint that the server names, and
//! all responses arrive on one event stream, matched by id.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use litemap::LiteMap;
#[cfg(feature = "access-token")]
use ptc_secrets::Redactor;
use reqwest::Method;
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};
#[cfg(feature = "access-token")]
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use url::Url;

use super::answer::Answer;
use super::client::{HttpClient, OutgoingRequest, display_url, unavailable};
use super::session::{Wire, is_event_stream};
use super::sse::{Events, Skipped, TooLarge};
use super::status::{ERROR_BODY_BYTES, Head};
use super::stream::finish_in_background;
#[cfg(feature = "access-token")]
use crate::caller_token;
use crate::fault::{Reason, UpstreamError};
use crate::mcp::wire::{self, Frame, ServerMessage};
use crate::mcp::{Ask, Response};
use crate::offload::offload;
use crate::response_budget;
use crate::settings::ResponseCap;
use crate::stage::{self, Stage};

/// Time that a request whose response has arrived gets to end, so that its connection can be reused.
const POST_GRACE: Duration = Duration::from_millis(100);

type Outcome = Result<Response, UpstreamError>;

/// The requests that wait for their response on the event stream.
#[derive(Default)]
pub(super) struct SharedStream {
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    by_id: LiteMap<u64, oneshot::Sender<Outcome>>,
    failure: Option<UpstreamError>,
}

/// An open event stream after its `endpoint` event.
pub(super) struct Source {
    answer: Answer,
    events: Events,
}

/// Opens the event stream at `url`. Returns the endpoint for requests, and the rest of the stream.
///
/// # Errors
///
/// There is no event stream, it names no endpoint, or the endpoint has another origin, to which neither credentials nor arguments
/// are sent.
pub(super) async fn open(
    client: &HttpClient,
    url: &Url,
    cap: ResponseCap,
    deadline: Instant,
) -> Result<(Url, Source), UpstreamError> {
    let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("text/event-stream"))]);
    let mut answer = client.send(OutgoingRequest::new(Method::GET, url, headers), deadline).await?;
    if !answer.status().is_success() {
        return Err(refusal(client, &mut answer, cap, deadline).await);
    }
    if !is_event_stream(&answer) {
        return Err(UpstreamError::unavailable("the answer to GET is not an event stream"));
    }
    let mut events = Events::skipping();
    while events.endpoint().is_none() {
        // Messages before the endpoint answer nothing.
        next(&mut answer, &mut events, cap, Some(deadline)).await?;
    }
    let named = String::from_utf8_lossy(events.endpoint().unwrap_or_default()).into_owned();
    let endpoint = answer.url().join(named.trim());
    let endpoint = endpoint.map_err(|why| UpstreamError::unavailable(format!("the `endpoint` event is not a URL: {why}")))?;
    if endpoint.origin() != url.origin() || !endpoint.username().is_empty() || endpoint.password().is_some() {
        return Err(UpstreamError::unavailable(format!(
            "the server names the endpoint {}, which is not of the origin {}: no request is sent there",
            display_url(&endpoint),
            url.origin().ascii_serialization()
        )));
    }
    Ok((endpoint, Source { answer, events }))
}

/// Reads the next bytes of a stream. Returns the messages that they complete.
async fn next(
    answer: &mut Answer,
    events: &mut Events,
    cap: ResponseCap,
    deadline: Option<Instant>,
) -> Result<Vec<Vec<u8>>, UpstreamError> {
    let chunk = match deadline {
        Some(deadline) => {
            tokio::time::timeout_at(deadline.into(), answer.chunk()).await.map_err(|_| UpstreamError::timed_out())?
        }
        None => answer.chunk().await,
    };
    let chunk = chunk.map_err(|why| unavailable("the event stream was cut off", &why))?;
    let chunk = chunk.ok_or_else(|| UpstreamError::unavailable("the server ended the event stream"))?;
    let max = usize::try_from(cap.bytes).unwrap_or(usize::MAX);
    events.feed(&chunk, max).map_err(|TooLarge(seen)| UpstreamError::too_large(cap, seen))
}

/// Reads the body of an unsuccessful response, and creates its error.
async fn refusal(client: &HttpClient, answer: &mut Answer, cap: ResponseCap, deadline: Instant) -> UpstreamError {
    let head = Head::new(client, answer);
    let body = client.read_body(answer, cap.bytes.min(ERROR_BODY_BYTES).into(), deadline).await;
    head.fault(&body.unwrap_or_default())
}

impl SharedStream {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the error after which the stream has no more responses.
    pub(super) fn failure(&self) -> Option<UpstreamError> {
        self.lock().failure.clone()
    }

    /// Fails all requests, and later ones.
    pub(super) fn lose(&self, fault: UpstreamError) {
        let mut waiting = self.lock();
        for (_, waiter) in std::mem::take(&mut waiting.by_id) {
            let _ = waiter.send(Err(fault.clone()));
        }
        waiting.failure.get_or_insert(fault);
    }

    /// Registers a request.
    fn register(&self, id: u64) -> Result<oneshot::Receiver<Outcome>, UpstreamError> {
        let (waiter, response) = oneshot::channel();
        let mut waiting = self.lock();
        if let Some(fault) = &waiting.failure {
            return Err(fault.clone());
        }
        waiting.by_id.insert(id, waiter);
        Ok(response)
    }

    /// Removes a request that does not wait any more. Its response is ignored.
    pub(super) fn forget(&self, id: u64) {
        self.lock().by_id.remove(&id);
    }

    fn answer(&self, id: u64, outcome: Outcome) {
        let waiter = self.lock().by_id.remove(&id);
        if let Some(waiter) = waiter {
            let _ = waiter.send(outcome);
        }
    }

    /// Fails the request whose response was skipped. A response without an id could be that of any request, so that it fails a
    /// request only if no other one waits.
    fn answer_skipped(&self, skipped: &Skipped, cap: ResponseCap) {
        let only = || {
            let waiting = self.lock();
            let mut ids = waiting.by_id.keys();
            ids.next().copied().filter(|_| ids.next().is_none())
        };
        if let Some(id) = skipped.id.or_else(only) {
            self.answer(id, Err(UpstreamError::too_large(cap, skipped.bytes)));
        }
    }
}

/// Redacts the token that the current task has sent for its caller. The reader of the stream may know an earlier one.
#[cfg(feature = "access-token")]
async fn redacted(response: Response) -> Outcome {
    let Some(redactor) = caller_token::redactor() else { return Ok(response) };
    let (Response::Result(raw) | Response::Error(wire::RpcError { data: Some(raw), .. })) = &response else {
        return Ok(without_secrets(response, &redactor));
    };
    offload(raw.get().len(), move || without_secrets(response, &redactor)).await
}

#[cfg(feature = "access-token")]
fn without_secrets(response: Response, redactor: &Redactor) -> Response {
    let redact = |raw: Box<RawValue>| {
        let text = redactor.redact_bytes(Box::<str>::from(raw).into_string().into_bytes());
        // Redacted JSON is JSON.
        serde_json::from_slice(&text).unwrap_or_else(|_| RawValue::NULL.to_owned())
    };
    match response {
        Response::Result(result) => Response::Result(redact(result)),
        Response::Error(error) => Response::Error(wire::RpcError {
            message: redactor.redact_string(error.message),
            data: error.data.map(redact),
            ..error
        }),
    }
}

/// Returns the response: without tokens of callers, its redaction is complete.
#[cfg(not(feature = "access-token"))]
async fn redacted(response: Response) -> Outcome {
    Ok(response)
}

impl Wire {
    /// Reads the event stream until it ends, and passes the responses to the requests that wait for them.
    pub(super) async fn read_shared(self: Arc<Wire>, mut source: Source) {
        let fault = loop {
            let messages = match next(&mut source.answer, &mut source.events, self.cap, None).await {
                Ok(messages) => messages,
                Err(fault) => break fault,
            };
            for skipped in source.events.take_skipped() {
                if let Some(stream) = &self.stream {
                    stream.answer_skipped(&skipped, self.cap);
                }
            }
            for data in messages {
                let this = Arc::clone(&self);
                if let Err(fault) = offload(data.len(), move || this.take_message(data)).await {
                    return self.lose_shared(fault);
                }
            }
        };
        self.lose_shared(fault);
    }

    fn lose_shared(&self, fault: UpstreamError) {
        if let Some(stream) = &self.stream {
            stream.lose(fault);
        }
    }

    fn take_message(&self, data: Vec<u8>) {
        let data = self.client.redact(data);
        for frame in Frame::parse(&data).unwrap_or_default() {
            match (frame.classify(), &self.stream) {
                (ServerMessage::Response(id, response), Some(stream)) => stream.answer(id, Ok(response)),
                (ServerMessage::Request(id, method), _) => self.respond_detached(wire::answer(id, &method), None),
                _ => {}
            }
        }
    }

    /// Posts a request, and waits for its response on the event stream.
    pub(super) async fn exchange(&self, stream: &SharedStream, id: u64, ask: Ask<'_>, deadline: Instant) -> Outcome {
        let mut response = stream.register(id)?;
        let post = self.post_message(id, ask, deadline);
        tokio::pin!(post);
        let early = tokio::select! {
            biased;
            posted = &mut post => posted.map(|()| None)?,
            outcome = &mut response => Some(outcome),
        };
        let outcome = if let Some(outcome) = early {
            let _ = tokio::time::timeout(POST_GRACE, post).await;
            outcome
        } else {
            stage::enter(Stage::Waiting);
            stage::until(deadline, response).await.ok_or_else(UpstreamError::timed_out)?
        };
        match outcome.unwrap_or_else(|_| Err(UpstreamError::unavailable("the connection was lost"))) {
            Ok(response) => {
                let response = redacted(response).await?;
                if let Response::Result(result) = &response {
                    response_budget::reserve(result.get().len() as u64)?;
                }
                Ok(response)
            }
            // The response cannot arrive on another stream. A repeatable request is sent again in a new session.
            Err(fault) if ask.repeatable && fault.reason == Reason::UpstreamUnavailable => {
                stage::repeat();
                Err(UpstreamError { session_over: true, ..fault })
            }
            Err(fault) => Err(fault),
        }
    }

    /// Posts a request, and waits until the server has accepted it.
    async fn post_message(&self, id: u64, ask: Ask<'_>, deadline: Instant) -> Result<(), UpstreamError> {
        let asking = OutgoingRequest {
            body: wire::request(id, ask.method, ask.params, ask.arguments, ask.negotiated),
            repeatable: ask.repeatable,
            ..OutgoingRequest::new(Method::POST, &self.url, self.headers(Some(ask.method), ask.name, ask.negotiated))
        };
        let mut answer = self.client.send(asking, deadline).await?;
        let status = answer.status();
        if status.is_success() {
            finish_in_background(answer);
            return Ok(());
        }
        let fault = refusal(&self.client, &mut answer, self.cap, deadline).await;
        // A message is accepted before it is executed, so that these refusals mean that the server does not know the session.
        let session_over = ask.method != "initialize" && matches!(status.as_u16(), 400 | 404);
        Err(UpstreamError { session_over, ..fault })
    }
}
