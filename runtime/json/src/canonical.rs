//! What canonical text of JSON consists of: the JSON Canonicalization Scheme (RFC 8785), in which keys are sorted by their UTF-16 code
//! units. Numbers stay as written, because a conversion to `f64` would change `1.0` and large integers.

use std::cmp::Ordering;
use std::fmt::{self, Write};

/// Compares two keys by their UTF-16 code units. This is the order of their UTF-8 bytes, except that surrogates, which encode the
/// characters above U+FFFF, come before U+E000 to U+FFFF. In UTF-8, the former begin with 0xF0 to 0xF4 and the latter with 0xEE
/// or 0xEF.
pub fn order(a: &str, b: &str) -> Ordering {
    if a.is_ascii() && b.is_ascii() {
        return a.cmp(b);
    }
    let rank = |byte: u8| if matches!(byte, 0xee | 0xef) { byte | 0x10 } else { byte };
    match a.bytes().zip(b.bytes()).find(|(a, b)| a != b) {
        Some((a, b)) => rank(a).cmp(&rank(b)),
        None => a.len().cmp(&b.len()),
    }
}

/// Writes a JSON string literal. As RFC 8785 requires, only those characters are escaped that must be.
///
/// # Errors
///
/// Those of `out`.
pub fn quote(text: &str, out: &mut impl Write) -> fmt::Result {
    out.write_char('"')?;
    let is_escaped = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\';
    let mut rest = text;
    // Few texts need escapes. The compiler turns this fold into vector instructions, unlike the search for the first byte.
    if !text.bytes().fold(false, |any, byte| any | is_escaped(byte)) {
        out.write_str(text)?;
        return out.write_char('"');
    }
    while let Some(at) = rest.bytes().position(is_escaped) {
        let (plain, escaped) = rest.split_at(at);
        out.write_str(plain)?;
        match escaped.as_bytes().first() {
            Some(b'\n') => out.write_str("\\n")?,
            Some(b'\r') => out.write_str("\\r")?,
            Some(b'\t') => out.write_str("\\t")?,
            Some(0x08) => out.write_str("\\b")?,
            Some(0x0c) => out.write_str("\\f")?,
            Some(byte @ (b'"' | b'\\')) => out.write_str(if *byte == b'"' { "\\\"" } else { "\\\\" })?,
            Some(byte) => write!(out, "\\u{byte:04x}")?,
            None => {}
        }
        rest = escaped.get(1..).unwrap_or_default();
    }
    out.write_str(rest)?;
    out.write_char('"')
}

#[cfg(test)]
mod tests {
    use super::order;

    #[test]
    fn keys_are_ordered_like_their_utf16_code_units() {
        let keys = [
            "",
            "a",
            "ab",
            "b",
            "é",
            "\u{7ff}",
            "\u{800}",
            "\u{d7ff}",
            "\u{e000}",
            "\u{fb01}",
            "\u{ffff}",
            "\u{10000}",
            "\u{1f600}",
        ];
        for a in keys {
            for b in keys {
                assert_eq!(order(a, b), a.encode_utf16().cmp(b.encode_utf16()), "{a:?} {b:?}");
            }
        }
    }
}
