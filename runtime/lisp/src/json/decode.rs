//! Decodes strict JSON directly into values.
//!
//! Objects become maps with string keys (the last of equal keys wins). Integers of any size stay exact. Numbers with a fraction
//! or an exponent become doubles. Repeated keys share one allocation. Nesting is bounded by memory, not by the native stack.

use std::fmt;

use num_bigint::BigInt;

use super::plain;
use super::shape::Shape;
use crate::Value;
use crate::collection::Map;
use crate::machine::{Machine, Raised};
use crate::missing_keys::NameFilter;
use crate::value::{Recent, Text};

/// Reports why bytes are not valid JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeError {
    /// Offset in bytes at which decoding stopped.
    pub offset: usize,
    /// The syntax that was expected there.
    pub expected: &'static str,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid JSON at byte {}: expected {}", self.offset, self.expected)
    }
}

impl std::error::Error for DecodeError {}

/// Decodes one JSON text. A UTF-8 byte order mark in front is skipped.
///
/// # Errors
///
/// Returns an error if the bytes are not valid UTF-8 or not one JSON text.
pub fn decode(bytes: &[u8]) -> Result<Value, DecodeError> {
    decode_with(bytes, false, None, &mut |_| true)
}

/// Like [`decode`], but rejects input that no value can represent exactly instead of replacing it: an unpaired surrogate, and a
/// number beyond the range of doubles. For data that people or their own programs write.
///
/// # Errors
///
/// Returns an error if the bytes are not one JSON text, or if a value would be changed.
pub fn decode_exact(bytes: &[u8]) -> Result<Value, DecodeError> {
    decode_with(bytes, true, None, &mut |_| true)
}

/// Like [`decode_exact`], but calls `go_on` repeatedly while it makes values, and ends with an error when that returns false. The
/// values of a text can occupy many times its bytes.
///
/// # Errors
///
/// Returns an error as [`decode_exact`] does, or if `go_on` returned false.
pub fn decode_exact_while(bytes: &[u8], go_on: &mut dyn FnMut() -> bool) -> Result<Value, DecodeError> {
    decode_with(bytes, true, None, &mut |_| go_on())
}

/// Decodes one JSON text for a program, which is charged for memory and time. The values of a text can occupy many times its
/// bytes.
pub(crate) fn decode_metered(m: &mut Machine, bytes: &[u8]) -> Result<Result<Value, DecodeError>, Raised> {
    // UTF-8 is validated first.
    m.tick(crate::args::steps(bytes.len() / 256))?;
    let mut raised = None;
    let meters = std::sync::Arc::clone(&m.meters);
    let decoded = decode_with(bytes, false, Some(meters.missing_keys.names()), &mut |made| {
        let spent = m.charge(made).and_then(|()| m.tick(crate::args::steps(made / 64)));
        raised = spent.err();
        raised.is_none()
    });
    match raised {
        Some(raised) => Err(raised),
        None => Ok(decoded),
    }
}

/// Bytes of values between two reports to the meters.
const REPORT: usize = 64 * 1024;
/// Estimated overhead of a string or a container in bytes.
const BLOCK: usize = 64;
/// Maximum length in bytes of a string value that is cached. Longer ones seldom repeat.
const MAX_VALUE_LEN: usize = 12;
/// Maximum digits of an integer. Parsing them takes quadratic time.
const MAX_DIGITS: usize = 10_000;

/// Decodes one JSON text. `spend` is called before more than [`REPORT`] bytes of values are made. Names of objects are recorded
/// in `seen`.
fn decode_with(
    bytes: &[u8],
    exact: bool,
    seen: Option<&NameFilter>,
    spend: &mut dyn FnMut(usize) -> bool,
) -> Result<Value, DecodeError> {
    let start = if bytes.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
    let text = std::str::from_utf8(bytes).map_err(|e| DecodeError { offset: e.valid_up_to(), expected: "valid UTF-8" })?;
    let mut decoder = Decoder {
        text,
        bytes,
        at: start,
        exact,
        seen,
        keys: None,
        values: None,
        shapes: Vec::new(),
        items: Vec::new(),
        names: Vec::new(),
        scratch: String::new(),
        made: 0,
        spend,
    };
    let value = decoder.value()?;
    decoder.space();
    if decoder.at < bytes.len() {
        return Err(decoder.expected("the end of the text"));
    }
    Ok(value)
}

/// A container that is being decoded.
enum Open {
    /// Index of its first item in the stack of items.
    Array(usize),
    Object(Object),
}

struct Object {
    /// Index of its first value in the stack of items.
    start: usize,
    /// Index of its first name in the stack of names.
    names: usize,
    /// Whether every name so far equals that of the previous object at this depth. Then none has been pushed to the stack of
    /// names.
    follows: bool,
}

/// Maximum depth at which objects are compared with the previous one.
const SHAPES: usize = 16;
/// Number of keys and short values that are cached.
const KEYS: usize = 256;
const VALUES: usize = 512;

struct Decoder<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// Whether input that no value can represent exactly is rejected.
    exact: bool,
    /// Records the names of objects.
    seen: Option<&'a NameFilter>,
    /// Cache of keys, created on first use, since many texts have none.
    keys: Option<Recent>,
    values: Option<Recent>,
    /// Shapes of objects by depth.
    shapes: Vec<Shape>,
    /// Stack of the items of all arrays and the values of all objects that are being decoded.
    items: Vec<Value>,
    /// Stack of the names of all objects that are being decoded and deviate from the previous one.
    names: Vec<Value>,
    scratch: String,
    /// Bytes made since the last report.
    made: usize,
    spend: &'a mut dyn FnMut(usize) -> bool,
}

impl<'a> Decoder<'a> {
    fn expected(&self, expected: &'static str) -> DecodeError {
        DecodeError { offset: self.at, expected }
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[inline]
    fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// Counts bytes that were made. Containers that are open count too, since a text may only open them.
    #[inline]
    fn report(&mut self, bytes: usize) -> Result<(), DecodeError> {
        self.made += bytes;
        if self.made > REPORT {
            let made = std::mem::take(&mut self.made);
            if !(self.spend)(made) {
                return Err(self.expected("no more than the program may use"));
            }
        }
        Ok(())
    }

    fn value(&mut self) -> Result<Value, DecodeError> {
        let mut open: Vec<Open> = Vec::new();
        loop {
            self.space();
            let mut done = match self.peek() {
                Some(b'{') => {
                    self.at += 1;
                    self.space();
                    if self.peek() == Some(b'}') {
                        self.at += 1;
                        Value::Map(Map::default())
                    } else {
                        let level = open.len();
                        if level < SHAPES && self.shapes.len() <= level {
                            self.shapes.resize_with(level + 1, Shape::default);
                        }
                        let follows = self.shapes.get(level).is_some_and(Shape::is_literal);
                        let mut object = Object { start: self.items.len(), names: self.names.len(), follows };
                        self.name(&mut object, level)?;
                        open.push(Open::Object(object));
                        self.report(BLOCK)?;
                        continue;
                    }
                }
                Some(b'[') => {
                    self.at += 1;
                    self.space();
                    if self.peek() == Some(b']') {
                        self.at += 1;
                        Value::vector(Vec::new())
                    } else {
                        open.push(Open::Array(self.items.len()));
                        self.report(BLOCK)?;
                        continue;
                    }
                }
                Some(b'"') => {
                    self.at += 1;
                    Value::Str(self.string()?)
                }
                Some(b'-' | b'0'..=b'9') => self.number()?,
                Some(b't') => self.word("true", Value::True)?,
                Some(b'f') => self.word("false", Value::False)?,
                Some(b'n') => self.word("null", Value::Nil)?,
                _ => return Err(self.expected("a value")),
            };
            self.report(2 * BLOCK)?;
            // Append the finished value to its container, and close the containers that it completes.
            loop {
                let depth = open.len();
                match open.last_mut() {
                    None => return Ok(done),
                    Some(Open::Array(_)) => {
                        self.items.push(done);
                        self.space();
                        match self.peek() {
                            Some(b',') => {
                                self.at += 1;
                                break;
                            }
                            Some(b']') => self.at += 1,
                            _ => return Err(self.expected("',' or ']'")),
                        }
                    }
                    Some(Open::Object(object)) => {
                        self.items.push(done);
                        self.space();
                        match self.peek() {
                            Some(b',') => {
                                self.at += 1;
                                self.space();
                                self.name(object, depth - 1)?;
                                break;
                            }
                            Some(b'}') => self.at += 1,
                            _ => return Err(self.expected("',' or '}'")),
                        }
                    }
                }
                self.report(BLOCK)?;
                done = match open.pop() {
                    Some(Open::Array(start)) => Value::Vector(self.items.drain(start..).collect()),
                    Some(Open::Object(object)) => Value::Map(self.map(&object, depth - 1)),
                    None => return Err(self.expected("a value")),
                };
            }
        }
    }

    /// Makes the map of a completed object.
    fn map(&mut self, object: &Object, level: usize) -> Map {
        let is_new =
            !object.follows || self.shapes.get(level).is_none_or(|shape| !shape.is_whole(self.items.len() - object.start));
        if let (Some(seen), true) = (self.seen, is_new) {
            match self.shapes.get(level).filter(|_| object.follows) {
                Some(shape) => seen.add(shape.names(self.items.len() - object.start)),
                None => seen.add(self.names.get(object.names..).unwrap_or_default()),
            }
        }
        let values = self.items.get_mut(object.start..).unwrap_or_default();
        let mut map = match self.shapes.get_mut(level) {
            Some(shape) if object.follows && shape.is_whole(values.len()) => shape.row(values),
            Some(shape) => {
                if object.follows {
                    self.names.extend_from_slice(shape.names(values.len()));
                }
                shape.map(self.names.get(object.names..).unwrap_or_default(), values)
            }
            None => self.names.drain(object.names..).zip(values.iter_mut().map(std::mem::take)).collect(),
        };
        self.items.truncate(object.start);
        self.names.truncate(object.names);
        if self.seen.is_some() {
            map.mark_answered();
        }
        map
    }

    /// Reads `"name":`. The name is pushed to the stack unless the previous object has the same one at this position.
    fn name(&mut self, object: &mut Object, level: usize) -> Result<(), DecodeError> {
        if self.peek() != Some(b'"') {
            return Err(self.expected("a key in double quotes"));
        }
        self.at += 1;
        if object.follows
            && let Some(shape) = self.shapes.get(level)
        {
            let index = self.items.len() - object.start;
            if let Some(Value::Str(name)) = shape.name(index)
                && let Some(rest) = self.bytes.get(self.at..).and_then(|rest| rest.strip_prefix(name.as_str().as_bytes()))
                && rest.starts_with(b"\":")
            {
                self.at += name.as_str().len() + 2;
                return Ok(());
            }
            object.follows = false;
            self.names.extend_from_slice(shape.names(index));
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        let key = if let Some((text, plain)) = self.plain_string()? {
            self.keys.get_or_insert_with(|| Recent::with_room(KEYS)).get(text, plain)
        } else {
            self.escaped_string(&mut scratch)?;
            Text::new(&scratch)
        };
        self.scratch = scratch;
        self.space();
        if self.peek() != Some(b':') {
            return Err(self.expected("':'"));
        }
        self.at += 1;
        self.names.push(Value::Str(key));
        Ok(())
    }

    fn string(&mut self) -> Result<Text, DecodeError> {
        if let Some((text, plain)) = self.plain_string()? {
            self.made += text.len();
            if text.len() > MAX_VALUE_LEN {
                return Ok(Text::known(text, plain));
            }
            return Ok(self.values.get_or_insert_with(|| Recent::with_room(VALUES)).get(text, plain));
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        self.escaped_string(&mut scratch)?;
        let text = Text::new(&scratch);
        self.made += scratch.len();
        self.scratch = scratch;
        Ok(text)
    }

    /// Returns the string that starts here, and whether it is ASCII. If it has an escape, returns `None` and consumes nothing.
    #[inline]
    fn plain_string(&mut self) -> Result<Option<(&'a str, bool)>, DecodeError> {
        let start = self.at;
        let (len, plain) = plain::run(self.bytes.get(start..).unwrap_or_default());
        match self.bytes.get(start + len) {
            Some(b'"') => {
                self.at = start + len + 1;
                Ok(self.text.get(start..start + len).map(|text| (text, plain)))
            }
            Some(b'\\') => Ok(None),
            Some(_) => {
                self.at = start + len;
                Err(self.expected("no control character in a string"))
            }
            None => {
                self.at = self.bytes.len();
                Err(self.expected("'\"' at the end of the string"))
            }
        }
    }

    fn escaped_string(&mut self, out: &mut String) -> Result<(), DecodeError> {
        out.clear();
        loop {
            let start = self.at;
            while let Some(b) = self.peek() {
                if matches!(b, b'"' | b'\\' | 0..=0x1F) {
                    break;
                }
                self.at += 1;
            }
            out.push_str(self.text.get(start..self.at).unwrap_or_default());
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    self.escape(out)?;
                }
                Some(_) => return Err(self.expected("no control character in a string")),
                None => return Err(self.expected("'\"' at the end of the string")),
            }
        }
    }

    fn escape(&mut self, out: &mut String) -> Result<(), DecodeError> {
        let c = match self.peek() {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{C}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                let unit = self.hex4()?;
                let c = self.unpair(unit)?;
                out.push(c);
                return Ok(());
            }
            _ => return Err(self.expected("an escape: \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u")),
        };
        self.at += 1;
        out.push(c);
        Ok(())
    }

    fn hex4(&mut self) -> Result<u32, DecodeError> {
        let digits = self.bytes.get(self.at..self.at + 4).and_then(|d| std::str::from_utf8(d).ok());
        let digits = digits.filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        let unit = digits.and_then(|d| u32::from_str_radix(d, 16).ok()).ok_or(self.expected("four hexadecimal digits"))?;
        self.at += 4;
        Ok(unit)
    }

    /// Returns the character of a UTF-16 code unit, and reads the second unit of a surrogate pair. An unpaired surrogate becomes
    /// U+FFFD.
    fn unpair(&mut self, unit: u32) -> Result<char, DecodeError> {
        if (0xD800..0xDC00).contains(&unit) && self.bytes.get(self.at..self.at + 2) == Some(b"\\u") {
            let back = self.at;
            self.at += 2;
            let low = self.hex4()?;
            if (0xDC00..0xE000).contains(&low) {
                let code = 0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.at = back;
        }
        if self.exact && (0xD800..0xE000).contains(&unit) {
            self.at -= "\\ud83d".len();
            return Err(self.expected("both halves of a surrogate pair, as \\ud83d\\ude00"));
        }
        Ok(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn word(&mut self, word: &'static str, value: Value) -> Result<Value, DecodeError> {
        if self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(word.as_bytes())) {
            self.at += word.len();
            Ok(value)
        } else {
            Err(self.expected("a value"))
        }
    }

    #[inline]
    fn digits(&mut self) -> Result<(), DecodeError> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start { Err(self.expected("a digit")) } else { Ok(()) }
    }

    /// The magnitude of the number from `start` to the current position, with its fraction from `point` on. `None` if it is long
    /// or has an exponent. For short numbers digits and power are exact doubles, so that their quotient is correctly rounded.
    fn short_decimal(&self, whole: i64, start: usize, point: usize) -> Option<f64> {
        const POWERS: [f64; 10] = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];
        if self.at - start > 15 || matches!(self.peek(), Some(b'e' | b'E')) {
            return None;
        }
        let fraction = self.bytes.get(point..self.at)?;
        let power = POWERS.get(fraction.len())?;
        let digits = fraction.iter().fold(whole, |digits, digit| digits * 10 + i64::from(digit - b'0'));
        Some(digits as f64 / power)
    }

    fn number(&mut self) -> Result<Value, DecodeError> {
        let start = self.at;
        let negative = self.peek() == Some(b'-');
        self.at += usize::from(negative);
        let mut small: i64 = 0;
        if self.peek() == Some(b'0') {
            self.at += 1;
            if let Some(b'0'..=b'9') = self.peek() {
                return Err(self.expected("no digit after a leading zero"));
            }
        } else {
            let from = self.at;
            while let Some(digit @ b'0'..=b'9') = self.peek() {
                small = small.wrapping_mul(10).wrapping_add(i64::from(digit - b'0'));
                self.at += 1;
            }
            if self.at == from {
                return Err(self.expected("a digit"));
            }
        }
        let mut whole = true;
        let short = self.at - start <= 18;
        if self.peek() == Some(b'.') {
            whole = false;
            self.at += 1;
            let point = self.at;
            self.digits()?;
            if let Some(double) = self.short_decimal(small, start, point) {
                return Ok(Value::double(if negative { -double } else { double }));
            }
        }
        if let Some(b'e' | b'E') = self.peek() {
            whole = false;
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        if whole && short && !(negative && small == 0) {
            return Ok(Value::Int(if negative { -small } else { small }));
        }
        let text = self.text.get(start..self.at).unwrap_or_default();
        if whole && text.len() > MAX_DIGITS {
            return Err(self.expected("an integer of at most 10000 digits"));
        }
        if whole {
            return match text.parse::<i64>() {
                Ok(i) => Ok(Value::Int(i)),
                Err(_) => text.parse::<BigInt>().map(Value::big).map_err(|_| self.expected("a number")),
            };
        }
        let double = text.parse::<f64>().map_err(|_| self.expected("a number"))?;
        if self.exact && double.is_infinite() {
            self.at = start;
            return Err(self.expected("a number between -1.8e308 and 1.8e308"));
        }
        Ok(Value::double(double))
    }
}
