//! A lexer that accepts any text. Editors use it for highlighting and navigation while a program is being written.

use std::ops::Range;

use super::scan::{NAME, Scanner};

/// A contiguous run of bytes that form one token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The kind of the token.
    pub kind: TokenKind,
    /// The range of the token in bytes.
    pub range: Range<usize>,
}

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// White space and commas.
    Blank,
    /// From `;` to the end of its line.
    Comment,
    /// `(`, `[`, `{`, `#{`, `#(`
    Open,
    /// `)`, `]`, `}`
    Close,
    /// A string, or a regex literal if it begins with `#`.
    String {
        /// Whether the closing quote is present.
        closed: bool,
    },
    /// `\a`
    Character,
    /// `:name`
    Keyword,
    /// A number.
    Number,
    /// `nil`, `true`, `false`
    Literal,
    /// Any other name.
    Symbol,
    /// `'`, `#_`, `#'`, `##`
    Prefix,
    /// Characters that are not part of any valid program.
    Other,
}

/// Splits a text into tokens. Every byte belongs to exactly one token, in order.
///
/// ```
/// use ptc_lisp::reader::{TokenKind, tokens};
///
/// let kinds: Vec<TokenKind> = tokens("(f \"a").map(|token| token.kind).collect();
/// assert_eq!(kinds, [TokenKind::Open, TokenKind::Symbol, TokenKind::Blank, TokenKind::String { closed: false }]);
/// ```
pub fn tokens(source: &str) -> impl Iterator<Item = Token> {
    let mut scan = Scanner::new(source);
    std::iter::from_fn(move || {
        let start = scan.at;
        let (kind, end) = next(&mut scan)?;
        scan.at = end;
        Some(Token { kind, range: start..end })
    })
}

/// Returns the kind of the next token and its end. A token is never empty.
fn next(scan: &mut Scanner<'_>) -> Option<(TokenKind, usize)> {
    let start = scan.at;
    Some(match (scan.peek()?, scan.peek_at(1)) {
        (b'(' | b'[' | b'{', _) => (TokenKind::Open, start + 1),
        (b')' | b']' | b'}', _) => (TokenKind::Close, start + 1),
        (b'#', Some(b'(' | b'{')) => (TokenKind::Open, start + 2),
        (b'#', Some(b'_' | b'\'' | b'#')) => (TokenKind::Prefix, start + 2),
        (b'\'', _) => (TokenKind::Prefix, start + 1),
        (b'"', _) => string(scan, start + 1),
        (b'#', Some(b'"')) => string(scan, start + 2),
        (b';', _) => {
            let rest = scan.slice(start, scan.source.len());
            (TokenKind::Comment, start + rest.find('\n').unwrap_or(rest.len()))
        }
        (b'\\', _) => (TokenKind::Character, scan.run(scan.next_boundary(start + 1).min(scan.source.len()), NAME)),
        (b':', _) => match scan.run(start + 1, NAME) {
            end if end > start + 1 => (TokenKind::Keyword, end),
            end => (TokenKind::Other, end),
        },
        _ => {
            scan.skip_white();
            match scan.run(start, NAME) {
                _ if scan.at > start => (TokenKind::Blank, scan.at),
                end if end > start => (name_kind(scan.slice(start, end)), end),
                _ => (TokenKind::Other, scan.next_boundary(start)),
            }
        }
    })
}

fn name_kind(text: &str) -> TokenKind {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.starts_with(|c: char| c.is_ascii_digit()) {
        return TokenKind::Number;
    }
    match text {
        "nil" | "true" | "false" => TokenKind::Literal,
        _ => TokenKind::Symbol,
    }
}

/// Scans a string that began before `from`, up to its closing quote or the end of the text.
fn string(scan: &Scanner<'_>, from: usize) -> (TokenKind, usize) {
    let mut escaped = false;
    for (at, byte) in scan.source.bytes().enumerate().skip(from) {
        match byte {
            b'"' if !escaped => return (TokenKind::String { closed: true }, at + 1),
            b'\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    (TokenKind::String { closed: false }, scan.source.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_cover_the_complete_text() {
        let texts = [
            "(defn f [x] ; twice\n  (* 2 x)) #{1 -2.5} #(inc %) #\"a+\" \\a \\newline :key 'x #'f #_1 nil ##Inf",
            "\"open \\\" still",
            "#\"[",
            "é → \u{feff} @^`~ : :é \\",
            "#",
            "\\é(",
            "",
        ];
        for text in texts {
            let mut at = 0;
            for token in tokens(text) {
                assert_eq!(token.range.start, at, "{text:?}");
                assert!(token.range.end > at && text.get(token.range.clone()).is_some(), "{text:?}: {token:?}");
                at = token.range.end;
            }
            assert_eq!(at, text.len(), "{text:?}");
        }
    }

    #[test]
    fn token_kinds_match_the_reader() {
        use TokenKind::{Character, Close, Comment, Keyword, Literal, Number, Open, Other, Prefix, String, Symbol};
        let text = "(f :a-b -1.5 \"x\" nil) ; c\n'y \\space #{a'} + @";
        let kinds: Vec<TokenKind> = tokens(text).map(|token| token.kind).filter(|kind| *kind != TokenKind::Blank).collect();
        let string = String { closed: true };
        let wanted = [Open, Symbol, Keyword, Number, string, Literal, Close, Comment, Prefix, Symbol, Character];
        assert_eq!(kinds.get(..wanted.len()), Some(wanted.as_slice()));
        assert_eq!(kinds.get(wanted.len()..), Some([Open, Symbol, Close, Symbol, Other].as_slice()));
    }
}
