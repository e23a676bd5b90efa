//! The client side of MCP, independent of the transport: revisions and eras, frames, lists of tools, results.
//!
//! Payloads stay raw JSON between the wire and the program, which preserves the digits of numbers, the order of objects and
//! unknown members.

pub(crate) mod handshake;
pub(crate) mod id_scanner;
pub(crate) mod listing;
pub(crate) mod outcome;
pub(crate) mod wire;

use std::time::Instant;

use bytes::Bytes;
use ptc_catalog::{Era, HttpTransport};
use serde_json::value::RawValue;

use super::fault::UpstreamError;

/// The revision offered in `initialize`.
pub(crate) const LATEST_HANDSHAKE: &str = "2025-11-25";
/// Supported revisions with `initialize`, newest first.
pub(crate) const HANDSHAKE_REVISIONS: [&str; 4] = [LATEST_HANDSHAKE, "2025-06-18", "2025-03-26", "2024-11-05"];
/// The supported stateless revision.
pub(crate) const STATELESS_REVISION: &str = "2026-07-28";

/// The result of the negotiation with a server.
#[derive(Debug, Clone)]
pub(crate) struct Negotiated {
    pub(crate) era: Era,
    pub(crate) revision: &'static str,
    pub(crate) server_name: String,
    pub(crate) server_version: String,
    pub(crate) instructions: Option<String>,
    /// The transport, if it is one of the two over HTTP.
    pub(crate) http_transport: Option<HttpTransport>,
}

/// The response to a request.
#[derive(Debug)]
pub(crate) enum Response {
    /// The member `result`, unchanged.
    Result(Box<RawValue>),
    /// The member `error`.
    Error(wire::RpcError),
}

/// A request of this client.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only HTTP uses headers and retries"))]
pub(crate) struct Ask<'a> {
    pub(crate) method: &'static str,
    /// `params.name`, if the method has one.
    pub(crate) name: Option<&'a str>,
    /// JSON text of `params`, an object, without `_meta` and `arguments`.
    pub(crate) params: &'a str,
    /// JSON text of `params.arguments`, if the method has one.
    pub(crate) arguments: Option<&'a Bytes>,
    /// The negotiated era and revision. `None` for requests of the handshake.
    pub(crate) negotiated: Option<(Era, &'static str)>,
    /// Whether the request is read-only, so that it may be sent twice.
    pub(crate) repeatable: bool,
}

impl<'a> Ask<'a> {
    /// Creates a request of the handshake.
    pub(crate) fn new(method: &'static str, params: &'a str) -> Ask<'a> {
        Ask { method, name: None, params, arguments: None, negotiated: None, repeatable: false }
    }
}

/// A connection for requests: the pipes of a child or an HTTP endpoint.
pub(crate) trait Channel: Send + Sync {
    /// Sends a request and waits for its response. After the deadline the error is [`UpstreamError::timed_out`].
    fn request(&self, ask: Ask<'_>, deadline: Instant) -> impl Future<Output = Result<Response, UpstreamError>> + Send;

    /// Sends a notification. A failure is reported by the next request.
    fn notify(&self, method: &'static str) -> impl Future<Output = ()> + Send;
}
