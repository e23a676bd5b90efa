//! Formats prose of upstreams on one line, and names and values as PTC-Lisp text.

use crate::json::Json;
use crate::json::quote;

/// Maximum length of a description in lists (`dir`, `apropos`, the tool description), in characters.
pub const SHORT: usize = 240;

/// Maximum length of a description in `doc`, in characters.
pub const LONG: usize = 1_000;

/// Maximum length of an argument's description in `doc`, in characters.
pub const ARGUMENT: usize = 200;

/// Returns prose on one line. White space and control characters become single spaces. A text of more than `limit` characters is
/// truncated at a word boundary and ends in `…`.
pub fn one_line(prose: &str, limit: usize) -> String {
    let mut line = String::with_capacity(prose.len().min(limit * 4));
    for word in prose.split(|c: char| c.is_whitespace() || c.is_control()).filter(|w| !w.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    let Some((cut, _)) = line.char_indices().nth(limit) else { return line };
    let kept = line.get(..cut).unwrap_or(&line);
    // A single long word is cut at the limit.
    let kept = kept.rsplit_once(' ').map_or(kept, |(head, _)| head);
    format!("{}…", kept.trim_end_matches([',', ';', ':', ' ']))
}

/// Returns a time in milliseconds in words.
pub fn duration(milliseconds: u64) -> String {
    if milliseconds.is_multiple_of(1_000) { format!("{} s", milliseconds / 1_000) } else { format!("{milliseconds} ms") }
}

/// Returns a map key for a program: a keyword if the name allows it, else a string.
pub fn key(name: &str) -> String {
    let mut chars = name.chars();
    let plain = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
        && !name.ends_with('.');
    if plain { format!(":{name}") } else { literal(&Json::string(name)) }
}

/// Returns a JSON value as a PTC-Lisp literal.
pub fn literal(value: &Json) -> String {
    match value {
        Json::Null => "nil".to_owned(),
        Json::Bool(value) => value.to_string(),
        Json::Number(text) => text.clone(),
        Json::String(text) => {
            let mut out = String::new();
            quote(text, &mut out);
            out
        }
        Json::Array(items) => format!("[{}]", items.iter().map(literal).collect::<Vec<_>>().join(" ")),
        Json::Object(members) => {
            let pairs: Vec<String> = members.iter().map(|(name, value)| format!("{} {}", key(name), literal(value))).collect();
            format!("{{{}}}", pairs.join(" "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{key, one_line};

    #[test]
    fn prose_becomes_one_capped_line() {
        assert_eq!(one_line("  a\n\tb\u{7}c  ", 10), "a b c");
        assert_eq!(one_line("one two, three", 9), "one two…");
        assert_eq!(one_line("abcdefgh", 3), "abc…");
        assert_eq!(one_line("", 3), "");
    }

    #[test]
    fn keys_are_written_as_keywords_if_possible() {
        assert_eq!(key("per_page"), ":per_page");
        assert_eq!(key("filter[name]"), "\"filter[name]\"");
        assert_eq!(key("2fa"), "\"2fa\"");
        assert_eq!(key(""), "\"\"");
    }
}
