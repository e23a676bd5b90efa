//! Reads a response that is an event stream up to the JSON-RPC response, and resumes the stream if it breaks.

use std::time::{Duration, Instant};

use ptc_catalog::Era;
use reqwest::Method;
use reqwest::header::{ACCEPT, HeaderName, HeaderValue};

use super::answer::Answer;
use super::client::{OutgoingRequest, unavailable};
use super::session::{BACKGROUND_TIMEOUT, Wire, find_response, is_event_stream};
use super::sse::{Events, TooLarge};
use crate::fault::UpstreamError;
use crate::mcp::Response;
use crate::mcp::wire::{self, Frame, ServerMessage};
use crate::offload::offload;
use crate::response_budget;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Default and minimum delay before a stream is resumed.
const PAUSE: Duration = Duration::from_millis(500);
const MIN_PAUSE: Duration = Duration::from_millis(10);

/// The end of a stream.
enum End {
    Response(Response),
    /// The stream ended before the response, with the reason.
    Broken(UpstreamError),
}

impl Wire {
    /// Reads events up to the response to request `id`. A broken stream is resumed after its last event with an id, as often as
    /// the deadline permits.
    pub(super) async fn read_events(
        &self,
        id: u64,
        mut answer: Answer,
        negotiated: Option<(Era, &'static str)>,
        deadline: Instant,
    ) -> Result<Response, UpstreamError> {
        let mut events = Events::default();
        loop {
            match self.read_stream(&mut events, id, answer, negotiated, deadline).await? {
                End::Response(response) => return Ok(response),
                End::Broken(fault) => {
                    let Some(again) = self.resume(&mut events, negotiated, deadline).await? else { return Err(fault) };
                    answer = again;
                }
            }
        }
    }

    /// Reads one stream. Requests of the server are answered meanwhile.
    async fn read_stream(
        &self,
        events: &mut Events,
        id: u64,
        mut answer: Answer,
        negotiated: Option<(Era, &'static str)>,
        deadline: Instant,
    ) -> Result<End, UpstreamError> {
        let max = usize::try_from(self.cap.bytes).unwrap_or(usize::MAX);
        loop {
            let chunk = match tokio::time::timeout_at(deadline.into(), answer.chunk()).await {
                Err(_) => return Err(UpstreamError::timed_out()),
                Ok(Err(why)) => return Ok(End::Broken(unavailable("the stream of the answer was cut off", &why))),
                Ok(Ok(chunk)) => chunk,
            };
            let Some(chunk) = chunk else {
                let found = events.finish().and_then(|data| find_response(&self.client.redact(data), id, false));
                let without = || End::Broken(UpstreamError::upstream("the stream of the answer ended without a response"));
                return Ok(found.map_or_else(without, End::Response));
            };
            let complete = events.feed(&chunk, max).map_err(|TooLarge(seen)| UpstreamError::too_large(self.cap, seen))?;
            response_budget::reserve(events.held() + complete.iter().map(|data| data.len() as u64).sum::<u64>())?;
            for data in complete {
                let client = self.client.clone();
                let (data, response) = offload(data.len(), move || {
                    let data = client.redact(data);
                    let response = find_response(&data, id, false);
                    (data, response)
                })
                .await?;
                if let Some(response) = response {
                    finish_in_background(answer);
                    return Ok(End::Response(response));
                }
                self.answer_requests(&data, negotiated);
            }
        }
    }

    /// Requests the rest of a stream. Returns `None` if that is impossible: no event had an id, the era has no resumption, or the
    /// server does not support it.
    async fn resume(
        &self,
        events: &mut Events,
        negotiated: Option<(Era, &'static str)>,
        deadline: Instant,
    ) -> Result<Option<Answer>, UpstreamError> {
        let Some(last) = events.last_id().and_then(|id| HeaderValue::from_bytes(id).ok()) else { return Ok(None) };
        if negotiated.is_some_and(|(era, _)| era == Era::Stateless) {
            return Ok(None);
        }
        let pause = events.retry().unwrap_or(PAUSE).max(MIN_PAUSE);
        if Instant::now() + pause >= deadline {
            tokio::time::sleep_until(deadline.into()).await;
            return Err(UpstreamError::timed_out());
        }
        tokio::time::sleep(pause).await;
        let mut headers = self.headers(None, None, negotiated);
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        headers.insert(LAST_EVENT_ID, last);
        match self.client.send(OutgoingRequest::new(Method::GET, &self.url, headers), deadline).await {
            Ok(answer) if answer.status().is_success() && is_event_stream(&answer) => {
                events.restart();
                Ok(Some(answer))
            }
            Err(fault) if fault.is_timeout() => Err(fault),
            _ => Ok(None),
        }
    }

    fn answer_requests(&self, data: &[u8], negotiated: Option<(Era, &'static str)>) {
        // The stateless era has no requests of servers and forbids answers.
        if negotiated.is_some_and(|(era, _)| era == Era::Stateless) {
            return;
        }
        for frame in Frame::parse(data).unwrap_or_default() {
            if let ServerMessage::Request(id, method) = frame.classify() {
                self.respond_detached(wire::answer(id, &method), negotiated);
            }
        }
    }
}

/// Reads the rest of a response, so that the connection can be reused. A server that sends too much is disconnected.
pub(super) fn finish_in_background(mut answer: Answer) {
    tokio::spawn(async move {
        let rest = async {
            let mut left = 64 * 1024usize;
            while let Ok(Some(chunk)) = answer.chunk().await {
                left = left.saturating_sub(chunk.len());
                if left == 0 {
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(BACKGROUND_TIMEOUT, rest).await;
    });
}
