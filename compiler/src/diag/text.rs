//! Safe display of text from outside, which may contain control sequences of a terminal.

use std::borrow::Cow;

use icu_properties::CodePointSetData;
use icu_properties::props::DefaultIgnorableCodePoint;
use ptc_text::join_limited;

/// Replaces a secret of any length in messages and excerpts.
pub const MASK: &str = "********";

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
            // `escape_debug` leaves fillers, which have the category of letters.
            c if is_hidden(c) => shown.extend(c.escape_unicode()),
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
    escaped(text, |c| c.is_control() || is_hidden(c))
}

/// Returns a text for lines of a terminal. Line breaks and tabs stay, and the other characters of [`on_one_line`] are escaped.
pub fn on_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c == '\r' || is_hidden(c))
}

fn escaped(text: &str, must_go: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&must_go) {
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
    // The last two variation selectors choose between text and emoji, and are common, so they are not hidden.
    let is_ignorable =
        || CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c) && !matches!(c, '\u{fe0e}' | '\u{fe0f}');
    // Separators of lines, marks of annotations and the empty Braille pattern do not have the property.
    let is_other = || matches!(c, '\u{2028}' | '\u{2029}' | '\u{2800}' | '\u{fff9}'..='\u{fffb}');
    let is_control = c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    is_control || !c.is_ascii() && (is_ignorable() || is_other())
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

    #[test]
    fn names_with_ignorable_characters_are_quoted_with_escapes() {
        for c in ["\u{3164}", "\u{ffa0}", "\u{115f}", "\u{17b4}", "\u{180b}", "\u{1d173}", "\u{2800}", "\u{e0041}", "\u{2065}"] {
            let code = u32::from(c.chars().next().unwrap_or_default());
            assert_eq!(quoted(&format!("read{c}")), format!("`read\\u{{{code:x}}}`"));
            assert_eq!(on_one_line(c), format!("\\u{{{code:x}}}"));
        }
        assert_eq!(quoted("größe 한국어"), "`größe 한국어`");
    }
}
