//! Safe display of text from outside, which may contain control sequences of a terminal.

use ptc_text::join_limited;
use std::borrow::Cow;

/// Quotes a name from a file for a message: in backticks, with control characters escaped, and cut if it is very long.
pub fn quoted(text: &str) -> String {
    const MAX_LEN: usize = 80;
    if text.is_empty() {
        return "`\"\"`".to_owned();
    }
    let mut shown = String::new();
    for c in text.chars().take(MAX_LEN) {
        // Between backticks, quotes and backslashes need no escape, but invisible characters do.
        match c {
            '\\' | '"' | '\'' => shown.push(c),
            c => shown.extend(c.escape_debug()),
        }
    }
    if text.chars().nth(MAX_LEN).is_some() {
        shown.push('…');
    }
    format!("`{shown}`")
}

/// Returns a list such as "`a`, `b`, and 3 more", with each item as in [`quoted`].
pub fn quoted_list<'a>(items: impl Iterator<Item = &'a str>) -> String {
    const SHOWN: usize = 4;
    join_limited(items.map(quoted), ", ", SHOWN)
}

/// Returns a text for one line of a terminal. Characters that would move the cursor, change colours or change the writing
/// direction are escaped.
pub fn on_one_line(text: &str) -> Cow<'_, str> {
    let must_go = |c: char| c.is_control() || is_hidden(c);
    if !text.contains(must_go) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if must_go(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

/// Whether a character is invisible or changes the writing direction of the following text.
pub fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e01ef}'
        // The last two variation selectors choose between text and emoji, and are common, so they are not hidden.
        | '\u{fe00}'..='\u{fe0d}')
        || (c.is_control() && !matches!(c, '\n' | '\r' | '\t'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_not_shown() {
        for (text, expected) in [
            ("größe `a` \"b\" \\", "größe `a` \"b\" \\"),
            ("\u{1b}[31mred\nrow\r\t", "\\u{1b}[31mred\\nrow\\r\\t"),
            ("\u{202e}evil\u{9b}\u{200b}", "\\u{202e}evil\\u{9b}\\u{200b}"),
        ] {
            assert_eq!(on_one_line(text), expected);
        }
    }
}
