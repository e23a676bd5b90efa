//! Messages to the client, as lines.

use std::borrow::Cow;

use serde::Serialize;

/// Invalid JSON was received, or a frame beyond the cap.
pub const PARSE_ERROR: i32 = -32700;
/// Not a request.
pub const INVALID_REQUEST: i32 = -32600;
/// No such method.
pub const METHOD_NOT_FOUND: i32 = -32601;
/// The parameters are wrong.
pub const INVALID_PARAMS: i32 = -32602;
/// A bug of the server.
pub const INTERNAL_ERROR: i32 = -32603;
/// A refusal that has no code of its own.
pub const SERVER_ERROR: i32 = -32000;
/// Headers that say something else than the body.
pub const HEADER_MISMATCH: i32 = -32020;
/// The stateless era in a revision that is not spoken.
pub const UNSUPPORTED_PROTOCOL_VERSION: i32 = -32022;

/// The `error` member of an answer.
#[derive(Debug, Serialize)]
pub struct ErrorBody {
    /// One of the codes of this module.
    pub code: i32,
    /// What is wrong.
    pub message: Cow<'static, str>,
    /// More for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<serde_json::Value>,
}

impl ErrorBody {
    /// A body without data.
    pub fn new(code: i32, message: impl Into<Cow<'static, str>>) -> Self {
        ErrorBody { code, message: message.into(), data: None }
    }

    /// `-32602` and what is wrong.
    pub fn invalid_params(detail: &str) -> Self {
        ErrorBody::new(INVALID_PARAMS, format!("Invalid params: {detail}"))
    }
}

/// The line of a result: `id` and `result` are raw JSON, the newline is included.
pub fn result(id: &str, result: &str) -> Vec<u8> {
    line(id, "result", result)
}

/// The line of an error: `id` is raw JSON, `null` where the request's is not known.
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
