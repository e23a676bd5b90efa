//! Replies of upstreams to a program, without secrets.

use ptc_lisp::host::{HttpHead, Reply};
use ptc_secrets::Redactor;

use crate::fault::UpstreamError;
use crate::mcp::outcome::{Payload, compact_len, string_len};

/// Returns the reply of a failed call.
pub(super) fn failed(fault: UpstreamError) -> Reply {
    with_head(Reply::Failed { reason: fault.reason.name(), message: fault.message.into_owned() }, fault.head)
}

/// Adds status and headers of an answer over HTTP to a reply.
pub(super) fn with_head(reply: Reply, head: Option<Box<HttpHead>>) -> Reply {
    match head {
        Some(head) => Reply::Http(head, Box::new(reply)),
        None => reply,
    }
}

/// Returns the redacted payload and its size. JSON was redacted when it was received. Text may itself be JSON, whose escapes can
/// hide a secret.
pub(super) fn clean(redactor: &Redactor, payload: Payload) -> (Reply, u64) {
    match payload {
        Payload::None => (Reply::None, 0),
        Payload::Json(json) => {
            let bytes = compact_len(&json);
            (Reply::Json(json), bytes)
        }
        Payload::Text(text) => {
            let text = redactor.redact_text(text);
            let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
            let bytes = if is_json { compact_len(text.as_bytes()) } else { string_len(&text) };
            (Reply::Text(text), bytes)
        }
        #[cfg(feature = "http")]
        Payload::Plain(text) => {
            let text = redactor.redact_text(text);
            let bytes = string_len(&text);
            (Reply::Plain(text), bytes)
        }
    }
}
