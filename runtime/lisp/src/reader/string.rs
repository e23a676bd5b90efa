//! Parses strings, regex literals and characters.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;

use super::scan::Scanner;
use crate::error::{Error, Position};

impl<'s> Scanner<'s> {
    /// Parses `"…"` and replaces its escapes. It may contain line breaks.
    pub(super) fn string(&mut self) -> Result<Cow<'s, str>, Error> {
        let start = self.at;
        let mut out: Option<String> = None;
        // Start of the text after the last escape.
        let mut plain = start + 1;
        self.at = plain;
        loop {
            match self.peek() {
                None => return Err(self.unclosed_text("string", start)),
                Some(b'"') => {
                    let rest = self.slice(plain, self.at);
                    self.at += 1;
                    return Ok(match out {
                        None => Cow::Borrowed(rest),
                        Some(mut out) => {
                            out.push_str(rest);
                            Cow::Owned(out)
                        }
                    });
                }
                Some(b'\\') => {
                    let before = self.slice(plain, self.at);
                    let escaped = self.escape()?;
                    let out = out.get_or_insert_with(String::new);
                    out.push_str(before);
                    out.push(escaped);
                    plain = self.at;
                }
                Some(_) => self.at += 1,
            }
        }
    }

    /// Parses an escape such as `\n`, from the backslash on.
    fn escape(&mut self) -> Result<char, Error> {
        let start = self.at;
        let escaped = match self.peek_at(1) {
            Some(b'n') => '\n',
            Some(b't') => '\t',
            Some(b'r') => '\r',
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'0') => '\0',
            Some(b'u') => return self.unicode_escape(),
            _ => {
                let end = self.next_boundary(start + 1);
                let found = self.slice(start, end).to_owned();
                let error = self.error(format!("'{found}' is not an escape"), start, end);
                return Err(error.with_hint("escapes are \\\\ \\\" \\n \\t \\r \\b \\f \\uXXXX; in a pattern write #\"\\d+\""));
            }
        };
        self.at += 2;
        Ok(escaped)
    }

    /// Parses `\uXXXX`, or a surrogate pair of them.
    fn unicode_escape(&mut self) -> Result<char, Error> {
        let start = self.at;
        let unit = |scan: &Self, at: usize| {
            let digits = scan.source.get(at..at + 2).filter(|&u| u == "\\u").and(scan.source.get(at + 2..at + 6));
            digits.filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit())).and_then(|d| u16::from_str_radix(d, 16).ok())
        };
        let Some(first) = unit(self, start) else {
            return Err(self.error("\\u must be followed by four hexadecimal digits", start, start + 2));
        };
        if let Some(c) = char::from_u32(u32::from(first)) {
            self.at += 6;
            return Ok(c);
        }
        if let Some(second) = unit(self, start + 6)
            && let Some(Ok(c)) = char::decode_utf16([first, second]).next()
        {
            self.at += 12;
            return Ok(c);
        }
        Err(self.error("half of a surrogate pair", start, start + 6))
    }

    /// Parses `#"…"`. The pattern is returned unchanged, escapes included.
    pub(super) fn regex(&mut self) -> Result<&'s str, Error> {
        let start = self.at;
        self.at += 2;
        loop {
            match self.peek() {
                None => return Err(self.unclosed_text("pattern", start)),
                Some(b'\\') => self.at += 2,
                Some(b'"') => {
                    let pattern = self.slice(start + 2, self.at);
                    self.at += 1;
                    return Ok(pattern);
                }
                Some(_) => self.at += 1,
            }
        }
    }

    /// Parses `\a`, `\newline` or `\u00e9` to a string of one character.
    pub(super) fn character(&mut self) -> Result<Cow<'s, str>, Error> {
        let start = self.at;
        let rest = self.slice(start + 1, self.source.len());
        let Some(first) = rest.graphemes(true).next().filter(|g| !g.trim().is_empty()) else {
            return Err(self.error("'\\' must be followed by a character", start, start + 1).with_hint("a blank is \\space"));
        };
        // A character name consists of letters and digits.
        let word = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
        if word <= 1 {
            self.at = start + 1 + first.len();
            return Ok(Cow::Borrowed(first));
        }
        let end = start + 1 + word;
        let name = self.slice(start + 1, end);
        let value = match name {
            "newline" => "\n",
            "space" => " ",
            "tab" => "\t",
            "return" => "\r",
            "backspace" => "\u{8}",
            "formfeed" => "\u{c}",
            _ if name.len() == 5 && name.starts_with('u') => {
                let escaped = self.unicode_escape()?;
                return Ok(Cow::Owned(escaped.to_string()));
            }
            _ => {
                let error = self.error(format!("'\\{name}' is not a character"), start, end);
                return Err(error.with_hint("named characters are newline, space, tab, return, backspace, formfeed"));
            }
        };
        self.at = end;
        Ok(Cow::Borrowed(value))
    }

    fn unclosed_text(&self, what: &str, start: usize) -> Error {
        let opened = Position::at_offset(self.source, start as u32);
        let end = self.source.get(start..).and_then(|text| text.lines().next()).map_or(start + 1, |line| start + line.len());
        let error = self.error(format!("the {what} opened at {opened} is never closed"), start, end);
        error.with_hint("close it with '\"'; a quote inside it is written \\\"")
    }
}
