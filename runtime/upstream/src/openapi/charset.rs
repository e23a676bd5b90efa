//! Texts in the charset that their media type names.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// Returns the encoding that the `charset` parameter names, UTF-8 if it names none or an unknown one.
pub(super) fn encoding(content_type: &str) -> &'static Encoding {
    label(content_type).and_then(|label| Encoding::for_label(label.as_bytes())).unwrap_or(UTF_8)
}

/// Encodes a text as the `charset` parameter says, as UTF-8 without one. `None` if the charset is unknown, if it lacks a character
/// of the text, or if the Encoding Standard has no encoder for it (UTF-16).
pub(super) fn encoded(content_type: &str, text: &str) -> Option<Vec<u8>> {
    let Some(label) = label(content_type) else { return Some(text.as_bytes().to_vec()) };
    let encoding = Encoding::for_label(label.as_bytes())?;
    // The Encoding Standard reads ASCII and Latin-1 as windows-1252, which has more characters than they have.
    let last = match label.to_ascii_lowercase() {
        label if encoding != WINDOWS_1252 || label.contains("1252") => char::MAX,
        label if label.contains("ascii") => '\u{7f}',
        _ => '\u{ff}',
    };
    let (bytes, used, lacks_a_character) = encoding.encode(text);
    let is_exact = used == encoding && !lacks_a_character && text.chars().all(|c| c <= last);
    is_exact.then(|| bytes.into_owned())
}

/// Returns the encoding of an XML declaration at the beginning of a body (RFC 7303, section 3.2).
pub(super) fn of_xml_declaration(body: &[u8]) -> Option<&'static Encoding> {
    const MAX_DECLARATION: usize = 200;
    let declaration = body.get(..MAX_DECLARATION).unwrap_or(body).strip_prefix(b"<?xml")?;
    let end = declaration.iter().position(|byte| *byte == b'>')?;
    let declaration = str::from_utf8(declaration.get(..end)?).ok()?;
    let value = declaration.split_once("encoding")?.1.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    // A body that begins with these bytes is not UTF-16, although some writers declare it. Its output encoding is UTF-8.
    Encoding::for_label(value.get(1..)?.split(quote).next()?.as_bytes()).map(Encoding::output_encoding)
}

/// Whether the media type names a charset.
pub(super) fn is_named(content_type: &str) -> bool {
    label(content_type).is_some()
}

fn label(content_type: &str) -> Option<&str> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"'))
    })
}

#[cfg(test)]
mod tests {
    use super::{encoded, of_xml_declaration};

    #[test]
    fn encoding_of_an_xml_declaration_is_found() {
        for (body, expected) in [
            ("<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><a/>", Some("windows-1252")),
            ("<?xml version='1.0' encoding = 'shift_jis' standalone='yes'?><a/>", Some("Shift_JIS")),
            ("<?xml version=\"1.0\" encoding=\"utf-16\"?><a/>", Some("UTF-8")),
            ("<?xml version=\"1.0\"?><a encoding=\"shift_jis\"/>", None),
            ("<a encoding=\"shift_jis\"/>", None),
            ("<?xml encoding=", None),
        ] {
            assert_eq!(of_xml_declaration(body.as_bytes()).map(encoding_rs::Encoding::name), expected, "{body}");
        }
    }

    #[test]
    fn text_that_its_charset_cannot_encode_is_refused() {
        for (content_type, text, expected) in [
            ("text/csv", "café", Some("café".as_bytes())),
            ("text/csv; charset=utf-8", "café", Some("café".as_bytes())),
            ("text/csv; header=present; charset=\"ISO-8859-1\"", "café", Some(b"caf\xe9")),
            ("text/plain;charset=iso-8859-1", "日", None),
            ("text/plain;charset=iso-8859-1", "€", None),
            ("text/plain;charset=windows-1252", "€", Some(b"\x80")),
            ("text/plain;charset=us-ascii", "é", None),
            ("text/plain;charset=utf-16", "a", None),
            ("text/plain;charset=martian", "a", None),
        ] {
            assert_eq!(encoded(content_type, text).as_deref(), expected, "{content_type} {text}");
        }
    }
}
