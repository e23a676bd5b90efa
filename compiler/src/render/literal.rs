//! Formats Rust literals, and makes invisible characters of texts visible.

use std::fmt::Write as _;

use crate::diag::text::is_hidden;

/// Returns a string literal for `text`: a raw literal if that is easier to read, an escaped one if `text` has invisible
/// characters.
pub(super) fn string(text: &str) -> String {
    let visible = |c: char| c == '\n' || !(c.is_control() || is_hidden(c));
    if text.contains(['"', '\\', '\n']) && text.chars().all(visible) {
        let hashes = "#".repeat(longest_close(text) + 1);
        return format!("r{hashes}\"{text}\"{hashes}");
    }
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if visible(c) => out.push(c),
            c => out.extend(c.escape_unicode()),
        }
    }
    out.push('"');
    out
}

/// Returns string literals separated by commas.
pub(super) fn strings<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    texts.into_iter().map(string).collect::<Vec<_>>().join(", ")
}

/// Returns a byte string literal.
pub(super) fn bytes(bytes: &[u8]) -> String {
    format!("b\"{}\"", bytes.escape_ascii())
}

/// Returns `true` or `false`.
pub(super) fn boolean(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}

/// Returns `Some(…)` or `None`.
pub(super) fn option(value: Option<impl std::fmt::Display>) -> String {
    value.map_or_else(|| "None".to_owned(), |v| format!("Some({v})"))
}

/// Replaces invisible characters, and those that change the direction of text, by a visible form such as `⟨U+200B⟩`.
pub(super) fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) || c.is_control() && !matches!(c, '\n' | '\t') {
            // Writing to a string cannot fail.
            let _ = write!(out, "⟨U+{:04X}⟩", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

/// Returns the largest number of `#` that follow a quote in `text`.
fn longest_close(text: &str) -> usize {
    let after = |rest: &str| rest.bytes().take_while(|b| *b == b'#').count();
    text.split('"').skip(1).map(after).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::string;

    #[test]
    fn rust_literals_evaluate_to_their_text() {
        for text in ["plain", "a \"b\"", "end\"", "q\"##", "two\nlines", "cr\r\n", "\u{202e}x", "nul\0", "back\\slash", "é", ""]
        {
            let literal: syn::LitStr = syn::parse_str(&string(text)).unwrap();
            assert_eq!(literal.value(), text);
        }
        assert_eq!(string("{\"a\":1}"), "r#\"{\"a\":1}\"#");
        assert_eq!(string("\u{202e}"), "\"\\u{202e}\"");
    }
}
