//! What strangers wrote, fit to be shown: a document may hold whatever a terminal obeys.

use std::borrow::Cow;

/// A name out of a file, as a message shows it: in backticks, control characters escaped, cut when very long.
pub fn quoted(text: &str) -> String {
    const LONGEST: usize = 80;
    if text.is_empty() {
        return "`\"\"`".to_owned();
    }
    let mut shown = String::new();
    for c in text.chars().take(LONGEST) {
        // In backticks quotes and backslashes need no escape; characters that cannot be seen do.
        match c {
            '\\' | '"' | '\'' => shown.push(c),
            c => shown.extend(c.escape_debug()),
        }
    }
    if text.chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    format!("`{shown}`")
}

/// "`a`, `b` and 3 more", each as [`quoted`] shows it.
pub fn quoted_list<'a>(items: impl ExactSizeIterator<Item = &'a str>) -> String {
    const SHOWN: usize = 4;
    let more = items.len().saturating_sub(SHOWN);
    let shown = items.take(SHOWN).map(quoted).collect::<Vec<_>>().join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

/// A text on one line of a terminal: what would move its cursor, colour it or turn its direction is written out.
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

/// Characters that are not seen, or that change the direction of what follows.
pub fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e01ef}'
        // The last two variation selectors choose between text and emoji, and are common.
        | '\u{fe00}'..='\u{fe0d}')
        || (c.is_control() && !matches!(c, '\n' | '\r' | '\t'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_shown() {
        for (text, expected) in [
            ("größe `a` \"b\" \\", "größe `a` \"b\" \\"),
            ("\u{1b}[31mred\nrow\r\t", "\\u{1b}[31mred\\nrow\\r\\t"),
            ("\u{202e}evil\u{9b}\u{200b}", "\\u{202e}evil\\u{9b}\\u{200b}"),
        ] {
            assert_eq!(on_one_line(text), expected);
        }
    }
}
