//! What a program sees of the head of an answer, and what a request says that it accepts.

use std::fmt::Write as _;

use ptc_catalog::{Answers, BodyKind};
use ptc_lisp::host::HttpHead;
use ptc_secrets::heuristics::names_a_credential;
use reqwest::header::{ETAG, HeaderMap, HeaderName, HeaderValue, LINK, LOCATION, RETRY_AFTER};

use crate::http::client::HttpClient;

/// Headers that every result has, declared or not.
const SHOWN: [HeaderName; 5] = [LOCATION, ETAG, LINK, RETRY_AFTER, HeaderName::from_static("x-total-count")];
/// Headers that no result has, even if the document declares them.
const SECRET: [&str; 8] = [
    "set-cookie",
    "set-cookie2",
    "www-authenticate",
    "proxy-authenticate",
    "authorization",
    "proxy-authorization",
    "authentication-info",
    "proxy-authentication-info",
];
/// Bytes of all values together; later ones are left out.
const MAX_HEADER_BYTES: usize = 32 * 1024;

/// Returns the status and the headers that a program sees, without secrets.
pub(super) fn read(status: u16, headers: &HeaderMap, answers: Answers, client: &HttpClient) -> HttpHead {
    let mut seen = Vec::new();
    let mut bytes = 0;
    for name in headers.keys() {
        let text = name.as_str();
        let is_secret = SECRET.contains(&text) || names_a_credential(text);
        if is_secret || !(SHOWN.contains(name) || answers.has_header(text)) {
            continue;
        }
        let values: Vec<&str> = headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
        let value = client.redact_text(&values.join(", "));
        bytes += value.len();
        if !values.is_empty() && bytes <= MAX_HEADER_BYTES {
            seen.push((text.to_owned(), value));
        }
    }
    HttpHead { status, headers: seen, failed_body: None }
}

/// Returns the `Accept` header of a request without `:accept`: every declared type, with weights that fall from the first to the
/// last, so that JSON is preferred. Types that a header cannot carry are left out.
pub(super) fn accept(answers: Answers) -> HeaderValue {
    let mut text = String::new();
    for (at, media_type) in answers.types().enumerate() {
        let separator = if text.is_empty() { "" } else { ", " };
        let weight = 10_usize.saturating_sub(at).max(1);
        let weight = if at == 0 { String::new() } else { format!(";q=0.{}", weight.min(9)) };
        let _ = write!(text, "{separator}{media_type}{weight}");
    }
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("application/json, */*;q=0.5"))
}

/// Whether `:accept` asks for a declared media type. Any type is accepted where the document declares none.
pub(super) fn is_declared(answers: Answers, wanted: &str) -> bool {
    let wanted = ptc_catalog::body_kind::essence(wanted);
    answers.types().any(|declared| {
        let declared = ptc_catalog::body_kind::essence(declared);
        declared == wanted
            || BodyKind::from_media_type(&declared) == BodyKind::Unknown
                && declared.strip_suffix('*').is_some_and(|range| range == "*/" || wanted.starts_with(range))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept_lists_declared_types_in_their_order() {
        for (answers, expected) in [
            ("", "application/json"),
            ("header x-a", ""),
            ("type text/csv", "text/csv"),
            ("type application/json\ntype text/csv\ntype */*", "application/json, text/csv;q=0.9, */*;q=0.8"),
        ] {
            assert_eq!(accept(Answers(answers)), expected, "{answers}");
        }
    }

    #[test]
    fn accept_of_a_call_is_a_declared_type() {
        let answers = Answers("type application/json\ntype image/*");
        for (wanted, expected) in [("application/JSON; v=1", true), ("image/png", true), ("text/csv", false), ("", false)] {
            assert_eq!(is_declared(answers, wanted), expected, "{wanted}");
        }
        assert!(is_declared(Answers("type */*"), "text/csv"));
        assert!(!is_declared(Answers::JSON, "text/csv"));
    }
}
