//! A zero-copy scanner over JSON text. It finds the parts of a text as they are written, in one pass and without making values,
//! for texts that are only forwarded.

use std::borrow::Cow;

use super::decode::{DecodeError, decode_exact};
use super::plain;

/// The syntax that was expected where a walk stopped. This is smaller than an error, which has an offset too.
type Expected = &'static str;

/// A forward cursor in a JSON text. Everything before it is valid JSON.
#[derive(Debug)]
pub struct Walk<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Walk<'a> {
    /// Starts at the beginning of a text.
    pub fn new(text: &'a str) -> Walk<'a> {
        Walk { text, at: 0 }
    }

    /// Returns the next byte that is not white space, without consuming it.
    pub fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.byte() {
            self.at += 1;
        }
        self.byte()
    }

    /// Skips one value and returns its text. Nesting depth is not limited.
    ///
    /// # Errors
    ///
    /// Returns an error if the text at the current position is not a JSON value.
    pub fn pass(&mut self) -> Result<&'a str, DecodeError> {
        self.peek();
        let start = self.at;
        match self.value() {
            Ok(()) => Ok(self.text.get(start..self.at).unwrap_or_default()),
            Err(expected) => Err(self.expected(expected)),
        }
    }

    fn value(&mut self) -> Result<(), Expected> {
        // The closing bracket of each open container.
        let mut open: Vec<u8> = Vec::new();
        loop {
            match self.peek() {
                Some(begin @ (b'{' | b'[')) => {
                    self.at += 1;
                    // In ASCII the code of either closing bracket is two above that of its opening bracket.
                    let end = begin + 2;
                    if self.peek() == Some(end) {
                        self.at += 1;
                    } else {
                        open.push(end);
                        if end == b'}' {
                            self.key()?;
                        }
                        continue;
                    }
                }
                Some(b'"') => self.string()?,
                Some(b'-' | b'0'..=b'9') => self.number()?,
                Some(b't') => self.word("true")?,
                Some(b'f') => self.word("false")?,
                Some(b'n') => self.word("null")?,
                _ => return Err("a value"),
            }
            // Read the separator after the value, and close the containers that it completes.
            loop {
                let Some(end) = open.last().copied() else { return Ok(()) };
                match self.peek() {
                    Some(b',') => {
                        self.at += 1;
                        if end == b'}' {
                            self.key()?;
                        }
                        break;
                    }
                    Some(found) if found == end => {
                        self.at += 1;
                        open.pop();
                    }
                    _ => return Err(if end == b'}' { "',' or '}'" } else { "',' or ']'" }),
                }
            }
        }
    }

    /// Iterates over the members of the next object. `member` is called with each name and has to consume its value.
    ///
    /// # Errors
    ///
    /// Returns an error if the next value is not an object, or the error of `member`.
    pub fn object(
        &mut self,
        mut member: impl FnMut(&mut Walk<'a>, Cow<'a, str>) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        if self.peek() != Some(b'{') {
            return Err(self.expected("an object"));
        }
        self.at += 1;
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.peek();
            let start = self.at;
            let end = self.key().map_err(|expected| self.expected(expected))?;
            let name = unescaped(self.text.get(start..end).unwrap_or_default())?;
            member(self, name)?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(self.expected("',' or '}'")),
            }
        }
    }

    /// Checks that only white space follows.
    ///
    /// # Errors
    ///
    /// Returns an error if anything else follows.
    pub fn end(&mut self) -> Result<(), DecodeError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.expected("the end of the text")),
        }
    }

    fn expected(&self, expected: &'static str) -> DecodeError {
        DecodeError { offset: self.at, expected }
    }

    #[inline]
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    #[inline]
    fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    /// Skips `"key":` and returns the end of the key, including its quotes.
    fn key(&mut self) -> Result<usize, Expected> {
        if self.peek() != Some(b'"') {
            return Err("a key in double quotes");
        }
        self.string()?;
        let end = self.at;
        if self.peek() != Some(b':') {
            return Err("':'");
        }
        self.at += 1;
        Ok(end)
    }

    /// Skips a string. Unpaired surrogates are not reported here, but where the string is decoded.
    #[inline]
    fn string(&mut self) -> Result<(), Expected> {
        self.at += 1;
        self.at += plain::run(self.rest()).0;
        if self.byte() == Some(b'"') {
            self.at += 1;
            return Ok(());
        }
        self.escaped()
    }

    /// Skips the rest of a string, from the first byte that is not a plain character.
    #[cold]
    fn escaped(&mut self) -> Result<(), Expected> {
        loop {
            match self.byte() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.escape()?,
                Some(_) => return Err("no control character in a string"),
                None => return Err("'\"' at the end of the string"),
            }
            self.at += plain::run(self.rest()).0;
        }
    }

    fn escape(&mut self) -> Result<(), Expected> {
        self.at += 1;
        let digits = match self.byte() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 0,
            Some(b'u') => 4,
            _ => return Err("an escape: \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u"),
        };
        self.at += 1;
        let found = self.text.as_bytes().get(self.at..self.at + digits);
        if !found.is_some_and(|found| found.iter().all(u8::is_ascii_hexdigit)) {
            return Err("four hexadecimal digits");
        }
        self.at += digits;
        Ok(())
    }

    fn word(&mut self, word: &str) -> Result<(), Expected> {
        if self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            self.at += word.len();
            Ok(())
        } else {
            Err("a value")
        }
    }

    fn number(&mut self) -> Result<(), Expected> {
        self.at += usize::from(self.byte() == Some(b'-'));
        if self.byte() == Some(b'0') {
            self.at += 1;
            if let Some(b'0'..=b'9') = self.byte() {
                return Err("no digit after a leading zero");
            }
        } else {
            self.digits()?;
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.byte() {
            self.at += 1;
            self.at += usize::from(matches!(self.byte(), Some(b'+' | b'-')));
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Expected> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.byte() {
            self.at += 1;
        }
        if self.at == start { Err("a digit") } else { Ok(()) }
    }
}

/// Decodes the contents of a string that has been skipped.
fn unescaped(quoted: &str) -> Result<Cow<'_, str>, DecodeError> {
    let inner = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
    if !inner.contains('\\') {
        return Ok(Cow::Borrowed(inner));
    }
    let text = decode_exact(quoted.as_bytes())?;
    Ok(Cow::Owned(text.as_str().unwrap_or_default().to_owned()))
}
