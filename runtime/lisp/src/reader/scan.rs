//! Scans tokens: names, keywords and the white space between them.

use crate::error::{Error, ErrorKind, Span};
use crate::form::FormKind;

/// A cursor over the bytes of a text.
pub(super) struct Scanner<'s> {
    pub(super) source: &'s str,
    bytes: &'s [u8],
    pub(super) at: usize,
}

/// Classes of bytes. Characters beyond ASCII are classified as characters.
pub(super) const NAME: u8 = 1;
const KEYWORD: u8 = 2;
const BLANK: u8 = 4;

static CLASS: [u8; 256] = classes();

#[expect(clippy::indexing_slicing, reason = "evaluated while compiling")]
const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        let mut class = 0;
        if b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'*' | b'<' | b'>' | b'=' | b'?' | b'!' | b'_') {
            class |= NAME | KEYWORD;
        }
        if matches!(b, b'/' | b'%' | b'.' | b'&' | b'\'' | b'$' | b'|') {
            class |= NAME;
        }
        if matches!(b, b' ' | b'\t' | b'\n' | b'\r' | b',' | 0x0c | 0x0b) {
            class |= BLANK;
        }
        table[byte] = class;
        byte += 1;
    }
    table
}

fn class(byte: u8) -> u8 {
    CLASS.get(byte as usize).copied().unwrap_or(0)
}

/// Whether `:name` is a keyword.
pub(crate) fn is_keyword_name(name: &str) -> bool {
    !name.is_empty() && Scanner::new(name).run(0, KEYWORD) == name.len()
}

impl<'s> Scanner<'s> {
    pub(super) fn new(source: &'s str) -> Self {
        Scanner { source, bytes: source.as_bytes(), at: 0 }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    pub(super) fn slice(&self, start: usize, end: usize) -> &'s str {
        self.source.get(start..end).unwrap_or("")
    }

    pub(super) fn error(&self, message: impl Into<String>, start: usize, end: usize) -> Error {
        Error::at(ErrorKind::ParseError, message, self.source, Span::new(start as u32, end as u32))
    }

    /// The first character boundary at or after `at`.
    pub(super) fn next_boundary(&self, at: usize) -> usize {
        self.source.ceil_char_boundary((at + 1).min(self.bytes.len()))
    }

    pub(super) fn skip_blank(&mut self) {
        loop {
            self.skip_white();
            if self.peek() != Some(b';') {
                break;
            }
            while self.peek().is_some_and(|b| b != b'\n') {
                self.at += 1;
            }
        }
    }

    /// Skips white space, commas and byte order marks.
    pub(super) fn skip_white(&mut self) {
        while let Some(byte) = self.peek() {
            if class(byte) & BLANK != 0 {
                self.at += 1;
            } else if byte == 0xef && self.bytes.get(self.at..self.at + 3) == Some("\u{feff}".as_bytes()) {
                self.at += 3;
            } else {
                break;
            }
        }
    }

    /// The end of the run of bytes of `class` that starts at `from`. It includes letters beyond ASCII.
    pub(super) fn run(&self, from: usize, wanted: u8) -> usize {
        let mut end = from;
        while let Some(&byte) = self.bytes.get(end) {
            if class(byte) & wanted != 0 {
                end += 1;
            } else if byte >= 0x80 {
                match self.source.get(end..).and_then(|rest| rest.chars().next()) {
                    Some(c) if c.is_alphanumeric() => end += c.len_utf8(),
                    _ => break,
                }
            } else {
                break;
            }
        }
        end
    }

    /// The end of the text at `from` that looks like one token, for marking it in a message.
    pub(super) fn token_end(&self, from: usize) -> usize {
        self.run(from, NAME).max(self.next_boundary(from))
    }

    /// Parses `:name`.
    pub(super) fn keyword(&mut self) -> Result<&'s str, Error> {
        let start = self.at;
        let end = self.run(start + 1, KEYWORD);
        let past = self.run(end, NAME);
        let name = self.slice(start + 1, end);
        if self.bytes.get(end) == Some(&b'/') && !name.is_empty() {
            let rest = self.slice(end + 1, past);
            let error = self.error("keywords with a namespace are not supported", start, past);
            return Err(error.with_hint(format!("write :{name}-{rest}, or the string \"{name}/{rest}\"")));
        }
        if past > end {
            let bad = self.slice(end, past).chars().next().unwrap_or(' ');
            let text = self.slice(start + 1, past);
            let error = self.error(format!("a keyword cannot contain '{bad}'"), start, past);
            return Err(error.with_hint(format!("use the string \"{text}\" as the key")));
        }
        if name.is_empty() {
            let end = self.token_end(start);
            if let Some(other @ (b':' | b'"')) = self.bytes.get(start + 1) {
                let error = self.error("':' must be followed by a name", start, end);
                let hint = if *other == b':' {
                    "there are no namespaces of a program's own: write :name"
                } else {
                    "use the string itself as the key"
                };
                return Err(error.with_hint(hint));
            }
            let error = self.error("':' must be followed by a name", start, end);
            return Err(error.with_hint("a keyword looks like :name; a map has no colon between key and value: {\"a\" 1}"));
        }
        self.at = end;
        Ok(name)
    }

    /// Parses `#'name`.
    pub(super) fn var(&mut self) -> Result<&'s str, Error> {
        let start = self.at;
        let end = self.run(start + 2, NAME);
        if end == start + 2 {
            return Err(self.error("#' must be followed by a name", start, end));
        }
        self.at = end;
        Ok(self.slice(start + 2, end))
    }

    /// Parses a number, a name, `nil`, `true` or `false`.
    pub(super) fn atom(&mut self) -> Result<FormKind<'s>, Error> {
        let start = self.at;
        let end = self.run(start, NAME);
        let text = self.slice(start, end);
        let mut bytes = text.bytes();
        let (first, second) = (bytes.next(), bytes.next());
        let Some(first) = first else {
            let end = self.next_boundary(start);
            let found = self.slice(start, end);
            return Err(self.error(format!("'{found}' is not expected here"), start, end));
        };
        let signed = matches!(first, b'-' | b'+') && second.is_some_and(|b| b.is_ascii_digit());
        if first.is_ascii_digit() || signed {
            return self.number(end);
        }
        self.at = end;
        Ok(match text {
            "nil" => FormKind::Nil,
            "true" => FormKind::Bool(true),
            "false" => FormKind::Bool(false),
            _ => FormKind::Symbol(text),
        })
    }
}
