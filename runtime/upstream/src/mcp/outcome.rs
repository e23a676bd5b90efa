//! Extracts the payload of a `tools/call` result.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::Response;
use crate::fault::{Reason, UpstreamError};

/// The payload of a successful call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Payload {
    /// JSON text.
    Json(Vec<u8>),
    /// Text, which may be JSON.
    Text(String),
    /// Text that is not read as JSON.
    #[cfg(feature = "http")]
    Plain(String),
    /// The result is empty.
    None,
}

impl Payload {
    /// Returns its bytes.
    pub(crate) fn len(&self) -> usize {
        match self {
            Payload::Json(json) => json.len(),
            Payload::Text(text) => text.len(),
            #[cfg(feature = "http")]
            Payload::Plain(text) => text.len(),
            Payload::None => 0,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallResult<'a> {
    #[serde(borrow, default)]
    content: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    structured_content: Option<&'a RawValue>,
    #[serde(default)]
    is_error: Option<bool>,
    #[serde(default)]
    result_type: Option<String>,
}

#[derive(Deserialize)]
struct Block {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    text: Option<String>,
}

/// Returns structured content if there is any, otherwise the first text, otherwise nothing.
pub(crate) fn unwrap(response: Response) -> Result<Payload, UpstreamError> {
    let raw = match response {
        Response::Result(raw) => raw,
        Response::Error(error) => return Err(UpstreamError::upstream(error.describe())),
    };
    let result: CallResult<'_> = serde_json::from_str(raw.get())
        .map_err(|why| UpstreamError::upstream(format!("the answer is not the result of a tool call: {why}")))?;
    if let Some(kind) = result.result_type.as_deref().filter(|kind| *kind != "complete") {
        return Err(UpstreamError::upstream(format!(
            "the tool answers '{kind}': it asks for input, which a program cannot give"
        )));
    }
    // A block that cannot be parsed, such as one of a new type, is skipped.
    let mut texts = result.content.iter().flatten().filter_map(|block| {
        let block: Block = serde_json::from_str(block.get()).ok()?;
        if block.kind == "text" { block.text } else { None }
    });
    if result.is_error == Some(true) {
        let mut message = texts.collect::<Vec<_>>().join("\n");
        if message.is_empty() {
            message = result
                .structured_content
                .map_or_else(|| "the tool reports an error without a text".to_owned(), |structured| structured.get().to_owned());
        }
        return Err(UpstreamError::new(Reason::ToolError, message));
    }
    if let Some(structured) = result.structured_content {
        return Ok(Payload::Json(structured.get().as_bytes().to_vec()));
    }
    Ok(texts.next().map_or(Payload::None, Payload::Text))
}

/// Returns the bytes of a JSON text after removing white space between tokens and unnecessary escapes, which is the size of the
/// value as compact JSON in UTF-8.
pub(crate) fn compact_len(json: &[u8]) -> u64 {
    let mut len = 0u64;
    let mut bytes = json.iter().copied();
    let mut in_string = false;
    while let Some(byte) = bytes.next() {
        match (in_string, byte) {
            (false, b' ' | b'\t' | b'\r' | b'\n') => {}
            (_, b'"') => {
                in_string = !in_string;
                len += 1;
            }
            (true, b'\\') => len += escape_len(&mut bytes),
            _ => len += 1,
        }
    }
    len
}

/// Returns the bytes that an escaped character takes in compact JSON.
fn escape_len(bytes: &mut impl Iterator<Item = u8>) -> u64 {
    match bytes.next() {
        Some(b'/') | None => 1,
        Some(b'u') => {
            let unit = bytes.take(4).fold(0u32, |unit, digit| unit * 16 + (digit as char).to_digit(16).unwrap_or(0));
            match unit {
                0..0x20 if !matches!(unit, 0x08 | 0x09 | 0x0a | 0x0c | 0x0d) => 6,
                0x20 | 0x21 | 0x23..=0x5b | 0x5d..=0x7f => 1,
                0x800..0xd800 | 0xe000.. => 3,
                // This covers short escapes, characters with two bytes in UTF-8, and each half of a surrogate pair, which takes
                // four.
                _ => 2,
            }
        }
        Some(_) => 2,
    }
}

/// Returns the bytes of `text` as a JSON string.
pub(crate) fn string_len(text: &str) -> u64 {
    let escapes = text.bytes().map(|byte| match byte {
        b'"' | b'\\' | 0x08 | 0x09 | 0x0a | 0x0c | 0x0d => 1,
        0..0x20 => 5,
        _ => 0,
    });
    text.len() as u64 + 2 + escapes.sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(result: &str) -> Result<Payload, UpstreamError> {
        unwrap(Response::Result(RawValue::from_string(result.to_owned()).unwrap()))
    }

    #[test]
    fn payload_is_chosen_in_documented_order() {
        let json = |text: &str| Ok(Payload::Json(text.as_bytes().to_vec()));
        let cases = [
            (r#"{"content":[{"type":"text","text":"a"}],"structuredContent":{"n": 1.50}}"#, json(r#"{"n": 1.50}"#)),
            (r#"{"content":[{"type":"image","data":""},{"type":"text","text":"a"}]}"#, Ok(Payload::Text("a".into()))),
            (r#"{"content":[{"type":"text"},7,{"type":"text","text":"b"}]}"#, Ok(Payload::Text("b".into()))),
            (r#"{"content":[],"structuredContent":null}"#, Ok(Payload::None)),
            (r"{}", Ok(Payload::None)),
            (
                r#"{"isError":true,"content":[{"type":"text","text":"bad"},{"type":"text","text":"path"}]}"#,
                Err(UpstreamError::new(Reason::ToolError, "bad\npath")),
            ),
            (r#"{"isError":true,"structuredContent":{"code":7}}"#, Err(UpstreamError::new(Reason::ToolError, r#"{"code":7}"#))),
        ];
        for (text, expected) in cases {
            assert_eq!(of(text), expected, "{text}");
        }
        assert_eq!(of(r#"{"resultType":"input_required"}"#).unwrap_err().reason, Reason::UpstreamError);
        assert_eq!(of("[1]").unwrap_err().reason, Reason::UpstreamError);
    }

    #[test]
    fn sizes_are_those_of_compact_json() {
        let cases = [r#" { "a" : [ 1 , 2.0 ] , "b c" : "x  y" } "#, r#""\u00e9\u20ac\ud83d\ude00\/\"\\\n\u0001\u000a""#, "[]"];
        for text in cases {
            let value: serde_json::Value = serde_json::from_str(text).unwrap();
            assert_eq!(compact_len(text.as_bytes()), value.to_string().len() as u64, "{text}");
        }
        for text in ["", "plain", "q\"\\\n\u{1}é€"] {
            assert_eq!(string_len(text), serde_json::to_string(text).unwrap().len() as u64, "{text}");
        }
    }
}
