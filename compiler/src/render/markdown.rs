//! Escapes texts of upstreams for Markdown. Nothing in them may become markup, because rustdoc runs code blocks as tests and
//! follows links.

use super::literal::shown;
use crate::lower::text::one_line;

/// Characters that begin markup anywhere in a line.
const ANYWHERE: &[char] = &['\\', '`', '*', '_', '[', ']', '<', '>', '&', '~', '|'];

/// Returns prose on one line, escaped so that it reads as written.
pub(super) fn text(prose: &str) -> String {
    let line = shown(&one_line(prose, usize::MAX / 4));
    let mut out = String::with_capacity(line.len());
    // `- a`, `+ a`, `# a`, `1. a`, `1) a` and `===` begin blocks, but only at the start of a line.
    let bullet = line.find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
    for (at, c) in line.char_indices() {
        let begins_block = at == bullet && (matches!(c, '.' | ')') && at > 0 || matches!(c, '-' | '+' | '=' | '#') && at == 0);
        if begins_block || ANYWHERE.contains(&c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Returns a name or a value as inline code.
pub(super) fn code(name: &str) -> String {
    let line = shown(&one_line(name, usize::MAX / 4));
    let longest = line.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    match line.as_str() {
        "" => "nothing".to_owned(),
        // Without the spaces, a backtick at either end would be part of the fence.
        line if line.starts_with('`') || line.ends_with('`') => format!("{fence} {line} {fence}"),
        line => format!("{fence}{line}{fence}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{code, text};

    #[test]
    fn prose_is_no_markup() {
        for (prose, expected) in [
            ("Lists pets, and says how many.", "Lists pets, and says how many."),
            ("See [all](https://evil.example) `x` <b>", r"See \[all\](https://evil.example) \`x\` \<b\>"),
            ("```\npanic!()\n```", r"\`\`\` panic!() \`\`\`"),
            ("    indented\n\n    code", "indented code"),
            ("- a", r"\- a"),
            ("# a", r"\# a"),
            ("12. a", r"12\. a"),
            ("a - b = 1. c", "a - b = 1. c"),
            ("\u{202e}turned", "⟨U+202E⟩turned"),
        ] {
            assert_eq!(text(prose), expected);
        }
    }

    #[test]
    fn code_ends_where_its_text_does() {
        for (name, expected) in
            [("get-pet", "`get-pet`"), ("a`b", "``a`b``"), ("`a", "`` `a ``"), ("a\n```\nb", "````a ``` b````"), ("", "nothing")]
        {
            assert_eq!(code(name), expected);
        }
    }
}
