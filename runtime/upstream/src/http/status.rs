//! The meaning of a response's status for a program.

use std::time::Duration;

use jiff::{Timestamp, fmt::rfc2822::DateTimeParser};
use reqwest::StatusCode;
use reqwest::header::{LOCATION, RETRY_AFTER};
use url::Url;

use super::answer::Answer;
use super::client::{HttpClient, MAX_REDIRECTS, display_url};
use crate::fault::{Reason, UpstreamError, excerpt};
use crate::mcp::wire;

/// Maximum bytes of an error body that are read, which is more than is shown.
pub const ERROR_BODY_BYTES: u64 = 64 * 1024;
/// Maximum bytes of an error body that are shown.
const SHOWN_BYTES: usize = 2_000;

/// Returns the documented reason for a status.
fn reason(status: StatusCode) -> Reason {
    match status.as_u16() {
        400 | 403 | 404 | 409 | 412 | 422 | 423 | 428 => Reason::ToolError,
        401 => Reason::AuthFailed,
        429 => Reason::RateLimited,
        500..=599 => Reason::UpstreamUnavailable,
        _ => Reason::UpstreamError,
    }
}

/// What the message of an error says about the status 401.
const REFUSED_CREDENTIAL: &str = ": the upstream refuses the credential";
/// The beginning of what the message of an error says about a delay.
const RETRY_AFTER_WORDS: &str = " (retry after ";

/// Returns the beginning of the message of an error: the status and its words.
fn status_words(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(words) => format!("HTTP {} {words}", status.as_u16()),
        None => format!("HTTP {}", status.as_u16()),
    }
}

/// Returns the text of the body of an unsuccessful response from the message of its error. `None` if no response has the message.
pub fn body_text(status: u16, message: &str) -> Option<&str> {
    let status = StatusCode::from_u16(status).ok()?;
    let rest = message.strip_prefix(&status_words(status))?;
    let rest = rest.strip_prefix(REFUSED_CREDENTIAL).unwrap_or(rest);
    let rest = rest.strip_prefix(RETRY_AFTER_WORDS).and_then(|rest| Some(rest.split_once(')')?.1)).unwrap_or(rest);
    // What follows about a redirect is not from the body.
    if rest.is_empty() || status.is_redirection() { Some("") } else { rest.strip_prefix(": ") }
}

/// The parts of a head that an error contains. They are extracted before the body is read.
pub struct Head {
    status: StatusCode,
    /// Redacted, since it may be truncated when it is shown.
    retry_after: Option<String>,
    /// The delay of `retry_after`.
    delay: Option<Duration>,
    location: Option<String>,
    /// The URL that responded, after redirects.
    from: Url,
    posts: bool,
}

impl Head {
    /// Reads the head of a response.
    pub fn new(client: &HttpClient, response: &Answer) -> Head {
        let header =
            |name| response.headers().get(name).and_then(|value| value.to_str().ok()).map(|text| client.redact_text(text));
        Head {
            status: response.status(),
            retry_after: header(RETRY_AFTER),
            delay: retry_after(response),
            location: header(LOCATION),
            from: response.url().clone(),
            posts: client.posts(),
        }
    }

    /// Creates the error for an unsuccessful response with the text of its body.
    pub fn fault(&self, body: &[u8]) -> UpstreamError {
        let mut message = status_words(self.status);
        if self.status.is_redirection() {
            message = format!("{message}: it redirects to {}", self.stopped());
        }
        if self.status == StatusCode::UNAUTHORIZED {
            message.push_str(REFUSED_CREDENTIAL);
        }
        if let Some(after) = &self.retry_after {
            message = format!("{message}{RETRY_AFTER_WORDS}{}{})", excerpt(after, 40), if is_number(after) { " s" } else { "" });
        }
        let said = if self.status == StatusCode::TOO_MANY_REQUESTS { text_of_json(body) } else { None };
        let text = said.unwrap_or_else(|| problem_text(body));
        if !text.is_empty() {
            message.push_str(": ");
            message.push_str(&text);
        }
        let fault = UpstreamError::new(reason(self.status), message).with_status(self.status.as_u16());
        let retry_after = self.delay.filter(|_| fault.reason == Reason::RateLimited);
        UpstreamError { retry_after, ..fault }
    }

    /// Describes the target of a redirect, and why it was not followed.
    fn stopped(&self) -> String {
        let Some(target) = self.location.as_deref().and_then(|location| self.from.join(location).ok()) else {
            return "nowhere".to_owned();
        };
        let because = if target.origin() != self.from.origin() {
            format!("because it leaves {}", self.from.origin().ascii_serialization())
        } else if self.posts && !matches!(self.status.as_u16(), 307 | 308) {
            "because a POST would become a GET".to_owned()
        } else {
            format!("after {MAX_REDIRECTS} others")
        };
        format!("{}, which is not followed {because}", display_url(&target))
    }
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Members of a JSON body that hold the text of an error, most specific first.
const TEXTS: [&str; 7] = ["message", "detail", "error_description", "error", "title", "reason", "errors"];

/// Returns the text in a JSON body, such as that of `{"error": {"message": "slow down"}}`. `None` for JSON-RPC errors, other
/// texts and other JSON.
fn text_of_json(body: &[u8]) -> Option<String> {
    let value: serde_json::Value = serde_json::from_slice(body).ok()?;
    if value.get("jsonrpc").is_some() {
        return None;
    }
    let text = text_in(&value, 3)?;
    Some(excerpt(text, SHOWN_BYTES).into_owned())
}

fn text_in(value: &serde_json::Value, depth: usize) -> Option<&str> {
    match value {
        serde_json::Value::String(text) => Some(text.trim()).filter(|text| !text.is_empty()),
        serde_json::Value::Array(items) if depth > 0 => text_in(items.first()?, depth - 1),
        serde_json::Value::Object(members) if depth > 0 => TEXTS.iter().find_map(|name| text_in(members.get(*name)?, depth - 1)),
        _ => None,
    }
}

/// Returns the text of an error body: the members of a problem document in reading order, the message of a JSON-RPC error, or the
/// body itself, HTML on one line.
fn problem_text(body: &[u8]) -> String {
    #[derive(serde::Deserialize)]
    struct Problem {
        title: Option<String>,
        detail: Option<String>,
    }
    let text = String::from_utf8_lossy(body);
    let text = text.trim().trim_start_matches('\u{feff}');
    if let Ok(Problem { title: Some(title), detail: Some(detail) }) = serde_json::from_str(text) {
        // The other members (`errors`, `invalid-params`, …) tell what to change, so that the whole body follows.
        return excerpt(&format!("{title}: {detail} {text}"), SHOWN_BYTES).into_owned();
    }
    if let Some(error) = wire::error_in(text) {
        return error.describe();
    }
    if text.starts_with('<') {
        return excerpt(text, 200).split_whitespace().collect::<Vec<_>>().join(" ");
    }
    excerpt(text, SHOWN_BYTES).into_owned()
}

/// Returns the delay of a `Retry-After` header, in seconds or as a date (RFC 9110, 10.2.3).
pub fn retry_after(response: &Answer) -> Option<Duration> {
    pause(response.headers().get(RETRY_AFTER)?.to_str().ok()?, Timestamp::now())
}

fn pause(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<u32>() {
        return Some(Duration::from_secs(seconds.into()));
    }
    let then = DateTimeParser::new().parse_timestamp(text).ok()?;
    Some(Duration::try_from(then.duration_since(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_json_body_is_found() {
        for (body, text) in [
            (r#"{"error": {"code": 429, "message": "slow down"}}"#, Some("slow down")),
            (r#"{"detail": "why"}"#, Some("why")),
            (r#"{"error": "rate_limit", "error_description": "two calls a second"}"#, Some("two calls a second")),
            (r#"{"errors": [{"title": "Too fast"}]}"#, Some("Too fast")),
            (r#""plain""#, Some("plain")),
            (r#"{"limit": 5}"#, None),
            ("slow down", None),
            (r#"{"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "slow down"}}"#, None),
        ] {
            assert_eq!(text_of_json(body.as_bytes()).as_deref(), text, "{body}");
        }
    }

    #[test]
    fn statuses_have_their_documented_reasons() {
        let asked = Url::parse("https://api.example/items?key=secret").unwrap();
        let cases: [(u16, Reason, &str, &str); 13] = [
            (400, Reason::ToolError, r#"{"error":"bad id"}"#, r#"HTTP 400 Bad Request: {"error":"bad id"}"#),
            (401, Reason::AuthFailed, "", "HTTP 401 Unauthorized: the upstream refuses the credential"),
            (403, Reason::ToolError, "", "HTTP 403 Forbidden"),
            (404, Reason::ToolError, r#"{"title":"Gone","detail":"No item 7"}"#, "HTTP 404 Not Found: Gone: No item 7 {"),
            (409, Reason::ToolError, "", "HTTP 409 Conflict"),
            (410, Reason::UpstreamError, "", "HTTP 410 Gone"),
            (412, Reason::ToolError, "", "HTTP 412 Precondition Failed"),
            (422, Reason::ToolError, "x", "HTTP 422 Unprocessable Entity: x"),
            (429, Reason::RateLimited, "", "HTTP 429 Too Many Requests (retry after 30 s)"),
            (
                429,
                Reason::RateLimited,
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"slow down","data":"quota of one minute"}}"#,
                "HTTP 429 Too Many Requests (retry after 30 s): slow down (JSON-RPC error -32000): \"quota of one minute\"",
            ),
            (
                503,
                Reason::UpstreamUnavailable,
                r#"[{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"down"}}]"#,
                "HTTP 503 Service Unavailable: down (JSON-RPC error -1)",
            ),
            (302, Reason::UpstreamError, "", "HTTP 302 Found: it redirects to https://other.example/x, which is not followed"),
            (503, Reason::UpstreamUnavailable, "<html>\n <b>down</b>", "HTTP 503 Service Unavailable: <html> <b>down</b>"),
        ];
        for (status, reason, body, message) in cases {
            let head = Head {
                status: StatusCode::from_u16(status).unwrap(),
                retry_after: (status == 429).then(|| "30".to_owned()),
                delay: Some(Duration::from_secs(30)),
                location: (status == 302).then(|| "https://u:p@other.example/x?token=1".to_owned()),
                from: asked.clone(),
                posts: false,
            };
            let fault = head.fault(body.as_bytes());
            assert_eq!((fault.reason, fault.http_status), (reason, Some(status)));
            assert!(fault.message.starts_with(message), "{}", fault.message);
            assert_eq!(fault.retry_after, (status == 429).then_some(Duration::from_secs(30)));
        }
    }

    #[test]
    fn retry_after_is_read_as_seconds_or_date() {
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        assert_eq!(pause("7", now), Some(Duration::from_secs(7)));
        assert_eq!(pause("Thu, 01 Jan 2026 00:01:00 GMT", now), Some(Duration::from_mins(1)));
        assert_eq!(pause("Wed, 31 Dec 2025 00:00:00 GMT", now), Some(Duration::ZERO));
        assert_eq!(pause("soon", now), None);
    }
}
