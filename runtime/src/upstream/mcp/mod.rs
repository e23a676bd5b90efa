//! The client side of MCP, apart from how bytes travel: revisions and eras, frames, listing, results.
//!
//! Payloads stay raw JSON from the wire to the program: numbers keep their digits, objects their order, unknown fields
//! survive.

pub(crate) mod handshake;
pub(crate) mod listing;
pub(crate) mod outcome;
pub(crate) mod wire;

use std::time::Instant;

use bytes::Bytes;
use ptc_catalog::Era;
use serde_json::value::RawValue;

use super::fault::UpstreamError;

/// The revision that is offered in `initialize`.
pub(crate) const LATEST_HANDSHAKE: &str = "2025-11-25";
/// Revisions with `initialize`, newest first.
pub(crate) const HANDSHAKE_REVISIONS: [&str; 4] = [LATEST_HANDSHAKE, "2025-06-18", "2025-03-26", "2024-11-05"];
/// The stateless revision.
pub(crate) const STATELESS_REVISION: &str = "2026-07-28";

/// What was negotiated with a server.
#[derive(Debug, Clone)]
pub(crate) struct Negotiated {
    pub(crate) era: Era,
    pub(crate) revision: &'static str,
    pub(crate) server_name: String,
    pub(crate) server_version: String,
    pub(crate) instructions: Option<String>,
}

/// How a request ended that reached the server.
#[derive(Debug)]
pub(crate) enum Response {
    /// `result`, as it came.
    Result(Box<RawValue>),
    /// `error`
    Error(wire::RpcError),
}

/// A request of ours.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "http"), expect(dead_code, reason = "headers and repetition are HTTP's"))]
pub(crate) struct Ask<'a> {
    pub(crate) method: &'static str,
    /// `params.name`, where the method has one.
    pub(crate) name: Option<&'a str>,
    /// JSON text of an object, without `_meta` and `arguments`.
    pub(crate) params: &'a str,
    /// JSON text of the member `arguments` of the parameters, where the method has one.
    pub(crate) arguments: Option<&'a Bytes>,
    /// Whose era the request is of; `None` for the handshake itself.
    pub(crate) negotiated: Option<(Era, &'static str)>,
    /// Whether it only reads, so that it may be sent twice.
    pub(crate) repeatable: bool,
}

impl<'a> Ask<'a> {
    /// A request of the handshake.
    pub(crate) fn new(method: &'static str, params: &'a str) -> Ask<'a> {
        Ask { method, name: None, params, arguments: None, negotiated: None, repeatable: false }
    }
}

/// A connection over which requests can be sent: a child's pipes or an HTTP endpoint.
pub(crate) trait Channel: Send + Sync {
    /// Sends a request and waits for its response. Past the deadline it is [`UpstreamError::late`].
    fn request(&self, ask: Ask<'_>, deadline: Instant) -> impl Future<Output = Result<Response, UpstreamError>> + Send;

    /// Sends a notification; an error to do so shows with the next request.
    fn notify(&self, method: &'static str) -> impl Future<Output = ()> + Send;
}
