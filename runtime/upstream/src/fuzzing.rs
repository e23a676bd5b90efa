//! Entry points of the fuzz targets in `tests/fuzz` to code that is private otherwise. They are not part of the API.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ptc_catalog::{Era, ListingLimits, OpenApi, Operation};
use ptc_lisp::Value;
use serde_json::value::RawValue;

use crate::arguments::{Bounds, Unsendable};
use crate::call_rules::CallRules;
use crate::fault::UpstreamError;
use crate::mcp::id_scanner::IdScanner;
use crate::mcp::listing::{Keep, Query};
use crate::mcp::wire::{self, Frame, ServerMessage};
use crate::mcp::{Ask, Channel, Response, handshake, outcome};
use crate::{http, openapi, stdio};

pub use crate::http::sse::StreamContents;

/// The address and the headers of a call of an operation.
///
/// # Errors
///
/// Returns why the arguments cannot be sent.
pub fn openapi_request<'v>(
    spec: &OpenApi,
    operation: &Operation,
    args: impl IntoIterator<Item = (&'v str, &'v Value)>,
) -> Result<(String, Vec<(String, Vec<u8>)>), Unsendable> {
    let rules = CallRules { is_read: true, is_write: false, is_repeatable: true, timeout_ms: None };
    let args = args.into_iter().collect();
    let request = openapi::encode(spec, operation, rules, args, openapi::CallOptions::default(), &Bounds::default())?;
    let (url, headers) = request.head();
    Ok((url.to_string(), headers.iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect()))
}

/// Parses an event stream that arrives in these chunks. `None` if an event has more than `max` bytes, unless such events are
/// skipped.
pub fn events<'c>(chunks: impl IntoIterator<Item = &'c [u8]>, max: usize, skips: bool) -> Option<StreamContents> {
    http::sse::contents(chunks, max, skips)
}

/// Returns the lines of a child's output that arrives in chunks of this size. The error of a line longer than `max` bytes is its
/// id and its length.
pub fn lines(output: &[u8], chunk: usize, max: usize) -> Vec<Result<Vec<u8>, (Option<u64>, u64)>> {
    stdio::split_lines(output, chunk, max)
}

/// Returns the id of a response that is too large to keep.
pub fn scanned_id<'c>(chunks: impl IntoIterator<Item = &'c [u8]>) -> Option<u64> {
    let mut scanner = IdScanner::default();
    chunks.into_iter().for_each(|chunk| scanner.feed(chunk));
    scanner.id()
}

/// A message of a server.
#[derive(Debug)]
pub enum Message {
    /// A response with its id: its result, or the description of its error.
    Response(u64, Result<String, String>),
    /// The description of an error without an id.
    Unaddressed(String),
    /// The raw id of a request, and the frame that answers it.
    Request(String, Vec<u8>),
    /// Anything else.
    Other,
}

/// Parses frames. `None` if they are not JSON.
pub fn messages(frames: &[u8]) -> Option<Vec<Message>> {
    let message = |frame: Frame<'_>| match frame.classify() {
        ServerMessage::Response(id, response) => Message::Response(id, described(response)),
        ServerMessage::Unaddressed(error) => Message::Unaddressed(error.describe()),
        ServerMessage::Request(id, method) => Message::Request(id.get().to_owned(), wire::answer(id, &method)),
        ServerMessage::Other => Message::Other,
    };
    Some(Frame::parse(frames).ok()?.into_iter().map(message).collect())
}

fn described(response: Response) -> Result<String, String> {
    match response {
        Response::Result(raw) => Ok(raw.get().to_owned()),
        Response::Error(error) => Err(error.describe()),
    }
}

/// Returns the code of the error that a body consists of.
pub fn error_code(body: &str) -> Option<i64> {
    wire::error_in(body).map(|error| error.code)
}

/// A server that answers each request with its next frame, whatever the request is.
struct Script(Mutex<VecDeque<Vec<u8>>>);

impl Channel for Script {
    async fn request(&self, _: Ask<'_>, _: Instant) -> Result<Response, UpstreamError> {
        while let Some(frames) = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front() {
            let frames = Frame::parse(&frames).map_err(|why| UpstreamError::upstream(why.to_string()))?;
            for frame in frames {
                match frame.classify() {
                    ServerMessage::Response(_, response) => return Ok(response),
                    ServerMessage::Unaddressed(error) => return Ok(Response::Error(error)),
                    ServerMessage::Request(..) | ServerMessage::Other => {}
                }
            }
        }
        Err(UpstreamError::unavailable("the script has ended"))
    }

    async fn notify(&self, _: &'static str) {}
}

/// Negotiates with a server that answers with these frames, and lists its tools, of which those in `granted` are kept whole.
/// Returns the definitions. Must be called inside a Tokio runtime.
///
/// # Errors
///
/// Returns why the server cannot be used.
pub async fn list_tools(
    frames: impl IntoIterator<Item = Vec<u8>>,
    era: Option<Era>,
    limits: ListingLimits,
    granted: Option<BTreeSet<String>>,
) -> Result<Vec<String>, String> {
    let server = Script(Mutex::new(frames.into_iter().collect()));
    let deadline = Instant::now() + Duration::from_secs(5);
    let negotiated = handshake::negotiate(&server, era, deadline).await.map_err(|refused| refused.fault.to_string())?;
    let keep = granted.map_or(Keep::All, |granted| Keep::Granted(Arc::new(granted)));
    let tools = Query { upstream: "fuzzed", limits, keep }.run(&server, &negotiated, deadline).await;
    tools.map(|tools| tools.iter().map(|tool| tool.get().to_owned()).collect()).map_err(|fault| fault.to_string())
}

/// Returns the size of the payload of a `tools/call` result.
///
/// # Errors
///
/// Returns why the result cannot be used.
pub fn payload_len(result: String) -> Result<usize, String> {
    let raw = RawValue::from_string(result).map_err(|why| why.to_string())?;
    outcome::unwrap(Response::Result(raw)).map(|payload| payload.len()).map_err(|fault| fault.to_string())
}

/// Returns the size of a JSON text as compact JSON.
pub fn compact_len(json: &str) -> u64 {
    outcome::compact_len(json.as_bytes())
}

/// Returns the size of a text as a JSON string.
pub fn string_len(text: &str) -> u64 {
    outcome::string_len(text)
}
