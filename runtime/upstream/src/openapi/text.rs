//! Text with a length limit, and the encoding of parameter values in it.

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};
use ptc_catalog::{Param, Place, Style};
use ptc_lisp::Value;

use super::address::Shape;
use crate::arguments::{self, Bounds, Unsendable};

/// The characters that RFC 3986 does not escape.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The characters that are not escaped with `allowReserved`: also the reserved ones, except for those that would end the value.
const RESERVED: &AsciiSet = &UNRESERVED
    .remove(b':')
    .remove(b'/')
    .remove(b'?')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b'[')
    .remove(b']');

/// The characters that the style `cookie` of OpenAPI 3.2 does not escape: those that the value of a cookie can have (RFC 6265,
/// section
/// 4.1.1). The others would end the value.
const COOKIE: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b',').add(b';').add(b'\\');

/// The error that a text does not fit.
pub(super) struct Full;

/// Why a value cannot be written.
pub(super) enum Unwritable {
    Full,
    Value(Unsendable),
}

impl From<Full> for Unwritable {
    fn from(_: Full) -> Unwritable {
        Unwritable::Full
    }
}

/// A text that rejects additions over its limit before they are encoded.
pub(super) struct Text<'b> {
    written: String,
    /// Maximum bytes. Values that write nothing reduce it.
    limit: usize,
    bounds: &'b Bounds,
}

impl<'b> Text<'b> {
    pub(super) fn new(limit: usize, bounds: &'b Bounds) -> Text<'b> {
        Text { written: String::new(), limit, bounds }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.written
    }

    pub(super) fn len(&self) -> usize {
        self.written.len()
    }

    /// Returns the number of bytes that can still be written.
    pub(super) fn room(&self) -> usize {
        self.limit.saturating_sub(self.written.len())
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.written.truncate(len);
    }

    /// Counts a value that writes nothing as one byte, so that the time for many such values is limited too.
    pub(super) fn skip(&mut self) -> Result<(), Full> {
        if self.room() == 0 {
            return Err(Full);
        }
        self.limit -= 1;
        Ok(())
    }

    /// Appends text unchanged.
    pub(super) fn push(&mut self, text: &str) -> Result<(), Full> {
        if text.len() > self.room() {
            return Err(Full);
        }
        self.written.push_str(text);
        Ok(())
    }

    fn percent_encoded(&mut self, text: &str, set: &'static AsciiSet) -> Result<(), Full> {
        // Encoding never shortens a text. One that is too long already is not encoded.
        if text.len() > self.room() {
            return Err(Full);
        }
        utf8_percent_encode(text, set).try_for_each(|part| self.push(part))
    }

    /// Appends text, escaped according to the parameter's place and `allowReserved`. Headers are not percent-encoded.
    pub(super) fn encoded(&mut self, text: &str, param: &Param<'_>) -> Result<(), Full> {
        if param.place == Place::Header {
            return self.push(text);
        }
        if param.style == Style::Cookie {
            return self.percent_encoded(text, COOKIE);
        }
        // In a cookie a reserved character would end the value.
        if !param.allow_reserved || matches!(param.place, Place::Path | Place::Cookie) {
            return self.percent_encoded(text, UNRESERVED);
        }
        if text.len() > self.room() {
            return Err(Full);
        }
        // Existing percent-encoded triplets are kept.
        for (at, part) in text.split('%').enumerate() {
            if at > 0 {
                let triplet = part.as_bytes().get(..2).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit));
                self.push(if triplet { "%" } else { "%25" })?;
            }
            self.percent_encoded(part, RESERVED)?;
        }
        Ok(())
    }

    /// Appends a value: strings, keywords, dates and times without quotes, numbers and booleans as in JSON, nested values as
    /// JSON.
    pub(super) fn value(&mut self, value: &Value, param: &Param<'_>) -> Result<(), Unwritable> {
        if param.style != Style::Json {
            if let Some(name) = value.as_name() {
                return Ok(self.encoded(name, param)?);
            }
            if let Some(temporal) = value.as_temporal() {
                return Ok(self.encoded(&temporal.to_string(), param)?);
            }
        }
        let json = self.json(value)?;
        Ok(self.encoded(&json, param)?)
    }

    /// Appends the key of a `deepObject`.
    pub(super) fn key(&mut self, key: &Value) -> Result<(), Unwritable> {
        if let Some(name) = key.as_name() {
            return Ok(self.percent_encoded(name, UNRESERVED)?);
        }
        let json = self.json(key)?;
        Ok(self.percent_encoded(&json, UNRESERVED)?)
    }

    fn json(&self, value: &Value) -> Result<String, Unwritable> {
        let unwritable = |why: Unsendable| match why {
            Unsendable::TooLarge => Unwritable::Full,
            Unsendable::Invalid(why) => Unwritable::Value(Unsendable::Invalid(format!("not JSON-encodable ({why})"))),
            fault @ Unsendable::Fault(_) => Unwritable::Value(fault),
        };
        let bytes = arguments::measure(value, self.room(), self.bounds).map_err(unwritable)?;
        let mut text = String::with_capacity(bytes);
        arguments::encode(&mut text, value, bytes, self.bounds).map_err(unwritable)?;
        Ok(text)
    }

    /// Appends a scalar, the items of a list, or the alternating keys and values of a map. Returns whether anything was appended.
    pub(super) fn joined(&mut self, shape: Shape, value: &Value, param: &Param<'_>, separator: &str) -> Result<bool, Unwritable> {
        match shape {
            Shape::Scalar => self.value(value, param).map(|()| true),
            Shape::Object => self.pairs(value, param, separator, separator),
            Shape::List => {
                let mut any = false;
                for item in value.items().into_iter().flatten() {
                    if item.is_nil() {
                        self.skip()?;
                        continue;
                    }
                    if std::mem::replace(&mut any, true) {
                        self.push(separator)?;
                    }
                    self.value(item, param)?;
                }
                Ok(any)
            }
        }
    }

    /// Appends the entries of a map, with `between` between a key and its value, and `separator` between two entries. Returns
    /// whether there were any.
    pub(super) fn pairs(&mut self, value: &Value, param: &Param<'_>, between: &str, separator: &str) -> Result<bool, Unwritable> {
        let mut any = false;
        for (key, value) in value.entries().into_iter().flatten() {
            if value.is_nil() {
                self.skip()?;
                continue;
            }
            if std::mem::replace(&mut any, true) {
                self.push(separator)?;
            }
            self.value(key, param)?;
            self.push(between)?;
            self.value(value, param)?;
        }
        Ok(any)
    }
}
