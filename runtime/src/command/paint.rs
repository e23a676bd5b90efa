//! Syntax highlighting.

use std::ops::Range;

use ptc_lisp::reader::{Token, TokenKind, tokens};

const RESET: &str = "\u{1b}[0m";

/// The colour of a hint.
pub(super) const HINT: &str = "\u{1b}[90m";
/// The colour of the prompt.
pub(super) const PROMPT: &str = "\u{1b}[1;34m";

/// Returns `text` in one colour.
pub(super) fn colored(color: &str, text: &str) -> String {
    format!("{color}{text}{RESET}")
}

/// Highlights the kind of a fault and the marker under its position.
pub(super) fn fault(text: &str) -> String {
    const FAULT: &str = "\u{1b}[1;31m";
    let (head, rest) = text.split_once(": ").map_or((text, ""), |(head, _)| text.split_at(head.len() + 1));
    let mut out = colored(FAULT, head);
    for line in rest.split_inclusive('\n') {
        match line.find('^').filter(|at| line.get(*at..).is_some_and(|end| end.trim_end().chars().all(|c| c == '^'))) {
            Some(at) => {
                let (before, carets) = line.split_at(at);
                let bare = carets.trim_end();
                out.extend([before, &colored(FAULT, bare), carets.get(bare.len()..).unwrap_or("")]);
            }
            None => out.push_str(line),
        }
    }
    out
}

/// Highlights a program. Without the escape sequences the result equals `text`. The bracket at `cursor` is highlighted together
/// with its partner.
pub(super) fn painted(text: &str, cursor: Option<usize>) -> String {
    let all: Vec<Token> = tokens(text).collect();
    let pair = cursor.and_then(|cursor| pair_at(&all, cursor)).unwrap_or([usize::MAX; 2]);
    let mut out = String::with_capacity(text.len() * 2);
    let mut called = false;
    for (at, token) in all.iter().enumerate() {
        let part = text.get(token.range.clone()).unwrap_or("");
        match color(token.kind, called, pair.contains(&at)) {
            "" => out.push_str(part),
            color => out.extend([color, part, RESET]),
        }
        called = token.kind == TokenKind::Open && part.ends_with('(');
    }
    out
}

fn color(kind: TokenKind, called: bool, paired: bool) -> &'static str {
    match kind {
        TokenKind::Open | TokenKind::Close if paired => "\u{1b}[1;4m",
        TokenKind::String { .. } | TokenKind::Character => "\u{1b}[32m",
        TokenKind::Keyword => "\u{1b}[36m",
        TokenKind::Number | TokenKind::Literal => "\u{1b}[35m",
        TokenKind::Comment => HINT,
        TokenKind::Symbol if called => "\u{1b}[34m",
        TokenKind::Other => "\u{1b}[31m",
        _ => "",
    }
}

/// Returns the indices of the bracket before or at the cursor and of its partner.
fn pair_at(all: &[Token], cursor: usize) -> Option<[usize; 2]> {
    let touches = |range: &Range<usize>| range.end == cursor || range.start == cursor;
    let mut open = Vec::new();
    let mut found = None;
    for (at, token) in all.iter().enumerate() {
        match token.kind {
            TokenKind::Open => open.push(at),
            TokenKind::Close => {
                let start = open.pop()?;
                let opened = all.get(start)?;
                if touches(&token.range) || touches(&opened.range) {
                    // A bracket before the cursor has priority over one at the cursor, since it was just typed.
                    let best = found.is_none() || token.range.end == cursor;
                    found = if best { Some([start, at]) } else { found };
                }
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Removes the escape sequences.
    fn bare(text: &str) -> String {
        let mut parts = text.split("\u{1b}[");
        let mut out = parts.next().unwrap_or_default().to_owned();
        out.extend(parts.map(|part| part.split_once('m').map_or("", |(_, rest)| rest)));
        out
    }

    #[test]
    fn highlighting_preserves_the_text() {
        for text in ["(defn f [x] ; twice\n (* 2 x))", "{:a \"b", "@ #{1 nil} 'x", "", "é ( ] )"] {
            for cursor in [None, Some(0), Some(text.len())] {
                assert_eq!(bare(&painted(text, cursor)), text);
            }
        }
        for text in ["error: parse_error: x\n 1 | (\n   | ^\nhint: y", "^^", "a", "", "1 ^ 2 |\n"] {
            assert_eq!(bare(&fault(text)), text);
        }
        assert!(fault("error: a\n | ^^\n").ends_with("\n | \u{1b}[1;31m^^\u{1b}[0m\n"));
        assert_eq!(painted("(f :a 1)", None), "(\u{1b}[34mf\u{1b}[0m \u{1b}[36m:a\u{1b}[0m \u{1b}[35m1\u{1b}[0m)");
    }

    #[test]
    fn matching_brackets_are_highlighted() {
        let at = |text: &str, cursor| pair_at(&tokens(text).collect::<Vec<_>>(), cursor);
        assert_eq!(at("(f [1])", 7), Some([0, 6]));
        assert_eq!(at("(f [1])", 6), Some([3, 5]));
        assert_eq!(at("(f [1])", 0), Some([0, 6]));
        assert_eq!(at("(f [1", 5), None);
        assert_eq!(at(")", 1), None);
    }
}
