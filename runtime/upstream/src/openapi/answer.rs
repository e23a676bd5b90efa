//! The body of a successful answer as a payload. Its `Content-Type` decides how it is read, whatever the document declares.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use encoding_rs::{Encoding, UTF_8};
use ptc_catalog::body_kind::{BodyKind, essence};
use serde_json::json;

use crate::fault::{UpstreamError, excerpt};
use crate::http::sse;
use crate::mcp::outcome::Payload;

use super::charset::{self, encoding};

/// Reads a body of the type `content_type`. Without `with_bytes`, the bytes of a binary body are left out. An empty stream is an
/// empty list; any other empty body has no value.
///
/// # Errors
///
/// Fails with `upstream_error` if the type says JSON and the body is not JSON.
pub(super) fn read(content_type: Option<&str>, body: Vec<u8>, with_bytes: bool) -> Result<Payload, UpstreamError> {
    let content_type = content_type.unwrap_or_default().trim();
    let (kind, essence) = (BodyKind::from_media_type(content_type), essence(content_type));
    let is_empty = match kind {
        BodyKind::List => false,
        BodyKind::Bytes => body.is_empty(),
        BodyKind::Json | BodyKind::Text | BodyKind::Unknown => body.trim_ascii().is_empty(),
    };
    if is_empty {
        return Ok(Payload::None);
    }
    match kind {
        BodyKind::Json => json_text(strictly_decoded(content_type, body)?),
        BodyKind::Text => Ok(Payload::Plain(decoded(content_type, body))),
        BodyKind::List if essence == "text/event-stream" => {
            let events = sse::data(&body);
            Ok(list(events.iter().map(|data| String::from_utf8_lossy(data))))
        }
        BodyKind::List => Ok(list(decoded(content_type, body).split(['\n', '\u{1e}']).map(Cow::Borrowed))),
        BodyKind::Unknown => match String::from_utf8(body) {
            Ok(text) if why_not_json(text.trim_start_matches(BOM)).is_none() => json_text(text),
            Ok(text) => Ok(Payload::Plain(text)),
            Err(not_text) => Ok(bytes(&essence, not_text.as_bytes(), with_bytes)),
        },
        BodyKind::Bytes => Ok(bytes(&essence, &body, with_bytes)),
    }
}

const BOM: char = '\u{feff}';

/// Decodes text as its `charset` parameter says. Without one, an XML declaration decides, and other text is UTF-8. A byte order
/// mark takes precedence, as in the Encoding Standard. Bytes that are invalid in the charset become U+FFFD.
fn decoded(content_type: &str, body: Vec<u8>) -> String {
    if let Some(declared) = charset::of_xml_declaration(&body).filter(|_| !charset::is_named(content_type)) {
        return declared.decode(&body).0.into_owned();
    }
    if !is_plain_utf8(content_type, &body) {
        return encoding(content_type).decode(&body).0.into_owned();
    }
    String::from_utf8(body).unwrap_or_else(|invalid| String::from_utf8_lossy(invalid.as_bytes()).into_owned())
}

/// Like `decoded`, but fails if the body is not valid in its charset: JSON with replaced bytes would be another value.
fn strictly_decoded(content_type: &str, body: Vec<u8>) -> Result<String, UpstreamError> {
    let invalid = |what: String, body: &[u8]| {
        UpstreamError::upstream(format!("the answer is not JSON ({what}): {}", excerpt(&String::from_utf8_lossy(body), 200)))
    };
    if is_plain_utf8(content_type, &body) {
        return String::from_utf8(body).map_err(|odd| {
            let at = odd.utf8_error().valid_up_to();
            invalid(format!("byte {at} is not UTF-8"), odd.as_bytes())
        });
    }
    let (text, encoding, has_errors) = encoding(content_type).decode(&body);
    if has_errors { Err(invalid(format!("it is not {}", encoding.name()), &body)) } else { Ok(text.into_owned()) }
}

/// Whether a body is UTF-8 without a byte order mark, which needs no decoding.
fn is_plain_utf8(content_type: &str, body: &[u8]) -> bool {
    encoding(content_type) == UTF_8 && Encoding::for_bom(body).is_none()
}

/// Checks that a text is JSON, since what reads it later relies on that.
fn json_text(text: String) -> Result<Payload, UpstreamError> {
    let json = text.strip_prefix(BOM).map(str::to_owned).unwrap_or(text);
    match why_not_json(&json) {
        None => Ok(Payload::Json(json.into_bytes())),
        Some(why) => Err(UpstreamError::upstream(format!("the answer is not JSON ({why}): {}", excerpt(&json, 200)))),
    }
}

/// Returns why a text is not JSON.
fn why_not_json(text: &str) -> Option<serde_json::Error> {
    serde_json::from_str::<serde::de::IgnoredAny>(text).err()
}

/// Returns a list of the values of a stream. A record that is not JSON is a string.
fn list<'t>(records: impl Iterator<Item = Cow<'t, str>>) -> Payload {
    let mut list = String::from("[");
    for record in records {
        let record = record.trim();
        if record.is_empty() {
            continue;
        }
        if list.len() > 1 {
            list.push(',');
        }
        match why_not_json(record) {
            None => list.push_str(record),
            Some(_) => list.push_str(&json!(record).to_string()),
        }
    }
    list.push(']');
    Payload::Json(list.into_bytes())
}

fn bytes(essence: &str, body: &[u8], with_bytes: bool) -> Payload {
    let essence = if essence.is_empty() { "application/octet-stream" } else { essence };
    let mut value = json!({ "content_type": essence, "bytes": body.len() });
    if with_bytes && let Some(members) = value.as_object_mut() {
        members.insert("base64".to_owned(), STANDARD.encode(body).into());
    }
    Payload::Json(value.to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A content type, a body, and what is read.
    type Case<'a> = (Option<&'a str>, &'a [u8], Result<Payload, ()>);

    #[test]
    fn content_type_decides_the_format_of_a_body() {
        let json = |text: &str| Ok(Payload::Json(text.as_bytes().to_vec()));
        let text = |text: &str| Ok(Payload::Plain(text.to_owned()));
        let cases: [Case<'_>; 26] = [
            (Some("application/json"), br#"{"a":1}"#, json(r#"{"a":1}"#)),
            (Some("application/hal+json; charset=utf-8"), b"\xef\xbb\xbf[1]", json("[1]")),
            (Some("application/json"), b"<html>", Err(())),
            (Some("application/json"), b"{\"a\":\"\xff\"}", Err(())),
            (Some("application/json"), b" ", Ok(Payload::None)),
            (Some("application/json; charset=utf-16le"), b"[\x001\x00]\x00", json("[1]")),
            (None, b"[1]", json("[1]")),
            (None, b"plain", text("plain")),
            (None, b"\xff\xfe\xfd", json(r#"{"base64":"//79","bytes":3,"content_type":"application/octet-stream"}"#)),
            (Some("*/*"), b"true", json("true")),
            (Some("text/plain"), b"[1]", text("[1]")),
            (Some("text/csv; charset=\"windows-1252\""), b"caf\xe9", text("café")),
            (Some("text/html; charset=Shift_JIS"), b"\x83\x65\x83\x58\x83\x67", text("テスト")),
            (Some("text/plain; charset=unknown-8bit"), "é".as_bytes(), text("é")),
            (Some("application/atom+xml"), b"<a/>", text("<a/>")),
            (Some("application/yaml"), b"a: 1", text("a: 1")),
            (Some("application/x-ndjson"), b"{\"a\":1}\n\n[2]\r\nx\n", json(r#"[{"a":1},[2],"x"]"#)),
            (Some("application/x-ndjson"), b"", json("[]")),
            (Some("application/json-seq"), b"\x1e\n", json("[]")),
            (Some("text/event-stream"), b"", json("[]")),
            (Some("application/json-seq"), b"\x1e{\"a\":1}\n\x1e2\n", json(r#"[{"a":1},2]"#)),
            (Some("text/event-stream"), b"event: n\ndata: {\"a\":1}\n\ndata: done", json(r#"[{"a":1},"done"]"#)),
            (Some("image/PNG"), b"\x89PNG", json(r#"{"base64":"iVBORw==","bytes":4,"content_type":"image/png"}"#)),
            (
                Some("application/octet-stream"),
                b" ",
                json(r#"{"base64":"IA==","bytes":1,"content_type":"application/octet-stream"}"#),
            ),
            (Some("application/pdf"), b"", Ok(Payload::None)),
            (Some("application/problem+json"), b"{}", json("{}")),
        ];
        for (content_type, body, expected) in cases {
            let read = read(content_type, body.to_vec(), true).map_err(|fault| assert!(fault.message.contains("is not JSON")));
            assert_eq!(read, expected, "{content_type:?} {body:?}");
        }
    }

    #[test]
    fn binary_body_can_be_omitted_from_the_result() {
        let read = read(Some("image/png"), vec![1, 2], false);
        assert_eq!(read, Ok(Payload::Json(br#"{"bytes":2,"content_type":"image/png"}"#.to_vec())));
    }
}
