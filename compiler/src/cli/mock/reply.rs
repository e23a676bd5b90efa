//! The reply to a request of an operation.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ptc_catalog::{BodyKind, Operation};
use ptc_compiler::json::Json;
use ptc_runtime::upstream::http::status::body_text;
use ptc_runtime::upstream::intercept::{CallAnswer, CallPayload};
use ptc_runtime::upstream::{Reason, UpstreamError};
use serde_json::json;

use crate::answers::Outcome;
use crate::http_server::HttpReply;

/// Headers that belong to the transfer of a body, and not to a recorded answer.
const OF_TRANSFER: [&str; 5] = ["connection", "content-encoding", "content-length", "content-type", "transfer-encoding"];

/// Returns the HTTP status of a failure: that of a recorded answer, or else one from which a client concludes the reason.
pub(super) fn status(error: &UpstreamError) -> u16 {
    error.http_status.filter(|status| *status >= 300).unwrap_or(match error.reason {
        Reason::ToolError => 422,
        Reason::AuthFailed => 401,
        Reason::RateLimited => 429,
        Reason::UpstreamUnavailable | Reason::Timeout => 503,
        _ => 405,
    })
}

/// Returns the reply with the answer of an operation. `None` if the request remains without an answer.
pub(super) fn reply(operation: &Operation, outcome: Outcome) -> Option<HttpReply> {
    match outcome {
        Ok(answer) => Some(success(operation, answer)),
        Err(error) if error.reason == Reason::Timeout && error.http_status.is_none() => None,
        Err(error) => {
            let status = status(&error);
            let body = error.head.as_ref().and_then(|head| head.failed_body.clone());
            // A recorded body that is not JSON is in the message.
            let text = || body_text(error.http_status?, &error.message);
            let reply = match (body, text()) {
                (Some(body), _) => HttpReply::json(status, body),
                (None, Some(text)) => HttpReply::new(status, "text/plain; charset=utf-8", text),
                (None, None) => problem(status, error.reason.name(), &error.message),
            };
            Some(with_headers(reply, error.head.as_ref().map(|head| head.headers.as_slice()).unwrap_or_default()))
        }
    }
}

/// Returns a failure as a problem document (RFC 9457).
pub(super) fn problem(status: u16, title: &str, detail: &str) -> HttpReply {
    let body = json!({ "status": status, "title": title, "detail": detail }).to_string();
    HttpReply::new(status, "application/problem+json", body)
}

fn with_headers(reply: HttpReply, headers: &[(String, String)]) -> HttpReply {
    let own = headers.iter().filter(|(name, _)| !OF_TRANSFER.contains(&&**name));
    own.fold(reply, |reply, (name, value)| reply.with(name, value))
}

fn success(operation: &Operation, answer: CallAnswer) -> HttpReply {
    let headers = answer.head.map(|head| head.headers).unwrap_or_default();
    let recorded = headers.iter().find(|(name, _)| name == "content-type").map(|(_, value)| value.as_str());
    let is_concrete = |media_type: &&str| !media_type.contains('*');
    let media_type = recorded.or_else(|| operation.answers.types().find(is_concrete));
    let status = answer.http_status.unwrap_or(200);
    let reply = match answer.payload {
        CallPayload::None => HttpReply::empty(if status == 200 { 204 } else { status }),
        CallPayload::Json(json) => value(status, media_type.unwrap_or("application/json"), json),
        CallPayload::Text(text) | CallPayload::Plain(text) => {
            let is_text = |media_type: &&str| BodyKind::from_media_type(media_type) == BodyKind::Text;
            HttpReply::new(status, media_type.filter(is_text).unwrap_or("text/plain; charset=utf-8"), text)
        }
    };
    with_headers(reply, &headers)
}

/// Returns a value as a body of a media type, from which a program gets the value again.
fn value(status: u16, media_type: &str, json: Vec<u8>) -> HttpReply {
    let parsed = || std::str::from_utf8(&json).ok().and_then(Json::parse);
    match (BodyKind::from_media_type(media_type), parsed()) {
        (BodyKind::Text, Some(Json::String(text))) => HttpReply::new(status, media_type, text),
        (BodyKind::List, Some(Json::Array(items))) => {
            let (before, after) = if media_type.starts_with("text/event-stream") { ("data: ", "\n\n") } else { ("", "\n") };
            let records = items.iter().flat_map(|item| [before.to_owned(), item.canonical(), after.to_owned()]);
            HttpReply::new(status, media_type, records.collect::<String>())
        }
        (BodyKind::Bytes, Some(map)) if map.get("content_type").is_some() => {
            let text = |name: &str| map.get(name).and_then(Json::as_str).unwrap_or_default();
            let bytes = STANDARD.decode(text("base64")).unwrap_or_default();
            // A generated media type may be any text.
            let own = Some(text("content_type")).filter(|own| BodyKind::from_media_type(own) == BodyKind::Bytes);
            HttpReply::new(status, own.unwrap_or(media_type), bytes)
        }
        (BodyKind::Json, _) => HttpReply::new(status, media_type, json),
        _ => HttpReply::json(status, json),
    }
}
