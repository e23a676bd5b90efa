//! Formats messages to the client as lines.

use std::borrow::Cow;

use serde::Serialize;

/// The message is not JSON, or the frame is too large.
pub const PARSE_ERROR: i32 = -32700;
/// The message is not a request.
pub const INVALID_REQUEST: i32 = -32600;
/// The method does not exist.
pub const METHOD_NOT_FOUND: i32 = -32601;
/// The parameters are invalid.
pub const INVALID_PARAMS: i32 = -32602;
/// An internal error of the server.
pub const INTERNAL_ERROR: i32 = -32603;
/// A refusal without a more specific code.
pub const SERVER_ERROR: i32 = -32000;
/// The headers contradict the body.
pub const HEADER_MISMATCH: i32 = -32020;
/// The stateless era with an unsupported revision.
pub const UNSUPPORTED_PROTOCOL_VERSION: i32 = -32022;

/// The `error` member of an answer.
#[derive(Debug, Serialize)]
pub struct ErrorBody {
    /// One of the codes of this module.
    pub code: i32,
    /// The message.
    pub message: Cow<'static, str>,
    /// Additional data for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<serde_json::Value>,
}

impl ErrorBody {
    /// Makes an error without data.
    pub fn new(code: i32, message: impl Into<Cow<'static, str>>) -> Self {
        ErrorBody { code, message: message.into(), data: None }
    }

    /// Makes an error for invalid parameters, code -32602.
    pub fn invalid_params(detail: &str) -> Self {
        ErrorBody::new(INVALID_PARAMS, format!("Invalid params: {detail}"))
    }
}

/// Formats a result, including the newline. `id` and `result` are raw JSON.
pub fn result(id: &str, result: &str) -> Vec<u8> {
    line(id, "result", result)
}

/// Formats an error. `id` is raw JSON, `null` if the request's id is unknown.
pub fn error(id: &str, body: &ErrorBody) -> Vec<u8> {
    line(id, "error", &serde_json::to_string(body).unwrap_or_default())
}

fn line(id: &str, member: &str, raw: &str) -> Vec<u8> {
    let mut line = Vec::with_capacity(id.len() + raw.len() + 40);
    for part in [r#"{"jsonrpc":"2.0","id":"#, id, ",\"", member, "\":", raw, "}\n"] {
        line.extend_from_slice(part.as_bytes());
    }
    line
}
