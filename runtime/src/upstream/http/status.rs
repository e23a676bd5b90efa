//! What the status of an answer means to a program.

use reqwest::Response;
use reqwest::header::{LOCATION, RETRY_AFTER};
use reqwest::{StatusCode, Url};

use super::client::for_people;
use crate::upstream::fault::{Reason, WorldFault, excerpt};

/// Bytes of an error body that are read; more than is shown of it.
pub(crate) const ERROR_BODY_BYTES: u64 = 64 * 1024;
/// Bytes of an error body that are shown.
const SHOWN_BYTES: usize = 2_000;

/// The documented reasons by status.
fn reason(status: StatusCode) -> Reason {
    match status.as_u16() {
        400 | 403 | 404 | 422 => Reason::ToolError,
        401 => Reason::AuthFailed,
        429 => Reason::RateLimited,
        500..=599 => Reason::UpstreamUnavailable,
        _ => Reason::UpstreamError,
    }
}

/// The parts of a head that a fault needs; taken before the body is read.
pub(crate) struct Head {
    status: StatusCode,
    retry_after: Option<String>,
    location: Option<String>,
}

impl Head {
    pub(crate) fn of(response: &Response) -> Head {
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        Head { status: response.status(), retry_after: header(RETRY_AFTER), location: header(LOCATION) }
    }

    /// The fault of an answer that is no success, with the text of its body.
    pub(crate) fn fault(&self, asked: &Url, body: &[u8]) -> WorldFault {
        let mut message = format!("HTTP {}", self.status.as_u16());
        if let Some(words) = self.status.canonical_reason() {
            message.push(' ');
            message.push_str(words);
        }
        if self.status.is_redirection() {
            let target = self.location.as_deref().and_then(|l| asked.join(l).ok());
            let target = target.map_or_else(|| "nowhere".to_owned(), |url| for_people(&url));
            message = format!("{message}: it redirects to {target}, which is not followed because it leaves {}", origin(asked));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            message.push_str(": the upstream refuses the credential");
        }
        if let Some(after) = &self.retry_after {
            message = format!("{message} (retry after {}{})", excerpt(after, 40), if is_number(after) { " s" } else { "" });
        }
        let text = problem_text(body);
        if !text.is_empty() {
            message.push_str(": ");
            message.push_str(&text);
        }
        WorldFault::new(reason(self.status), message).with_status(self.status.as_u16())
    }
}

fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The text of an error body: problem JSON in its reading order, other bodies as they are, on one line where they are HTML.
fn problem_text(body: &[u8]) -> String {
    #[derive(serde::Deserialize)]
    struct Problem {
        title: Option<String>,
        detail: Option<String>,
    }
    let text = String::from_utf8_lossy(body);
    let text = text.trim().trim_start_matches('\u{feff}');
    if let Ok(Problem { title: Some(title), detail: Some(detail) }) = serde_json::from_str(text) {
        // The rest (`errors`, `invalid-params`, …) says what to change, so that the whole follows.
        return excerpt(&format!("{title}: {detail} {text}"), SHOWN_BYTES).into_owned();
    }
    if text.starts_with('<') {
        return excerpt(text, 200).split_whitespace().collect::<Vec<_>>().join(" ");
    }
    excerpt(text, SHOWN_BYTES).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_have_their_documented_reasons() {
        let asked = Url::parse("https://api.example/items?key=secret").unwrap();
        let cases: [(u16, Reason, &str, &str); 9] = [
            (400, Reason::ToolError, r#"{"error":"bad id"}"#, r#"HTTP 400 Bad Request: {"error":"bad id"}"#),
            (401, Reason::AuthFailed, "", "HTTP 401 Unauthorized: the upstream refuses the credential"),
            (403, Reason::ToolError, "", "HTTP 403 Forbidden"),
            (404, Reason::ToolError, r#"{"title":"Gone","detail":"No item 7"}"#, "HTTP 404 Not Found: Gone: No item 7 {"),
            (409, Reason::UpstreamError, "", "HTTP 409 Conflict"),
            (422, Reason::ToolError, "x", "HTTP 422 Unprocessable Entity: x"),
            (429, Reason::RateLimited, "", "HTTP 429 Too Many Requests (retry after 30 s)"),
            (302, Reason::UpstreamError, "", "HTTP 302 Found: it redirects to https://other.example/x, which is not followed"),
            (503, Reason::UpstreamUnavailable, "<html>\n <b>down</b>", "HTTP 503 Service Unavailable: <html> <b>down</b>"),
        ];
        for (status, reason, body, message) in cases {
            let head = Head {
                status: StatusCode::from_u16(status).unwrap(),
                retry_after: (status == 429).then(|| "30".to_owned()),
                location: (status == 302).then(|| "https://u:p@other.example/x?token=1".to_owned()),
            };
            let fault = head.fault(&asked, body.as_bytes());
            assert_eq!((fault.reason, fault.http_status), (reason, Some(status)));
            assert!(fault.message.starts_with(message), "{}", fault.message);
        }
    }
}
