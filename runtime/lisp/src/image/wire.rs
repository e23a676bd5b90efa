//! Numbers and texts in an image: variable-length integers, the least significant seven bits first.

use super::DecodeError;
use super::limits::Meter;

/// Writes the bytes of an image.
#[derive(Default)]
pub(super) struct Writer {
    pub(super) bytes: Vec<u8>,
}

/// Reads the bytes of an image. Every length is checked against the remaining bytes.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    pub(super) meter: Meter,
}

impl Writer {
    pub(super) fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    pub(super) fn count(&mut self, count: usize) {
        self.unsigned(count as u64);
    }

    pub(super) fn unsigned(&mut self, mut number: u64) {
        while number > 0x7F {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// Writes a signed number in zigzag encoding, so that small numbers of either sign are short.
    pub(super) fn signed(&mut self, number: i64) {
        self.unsigned((number << 1 ^ number >> 63) as u64);
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }
}

impl<'a> Reader<'a> {
    pub(super) fn new(rest: &'a [u8], meter: Meter) -> Self {
        Reader { rest, meter }
    }

    pub(super) fn is_done(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(DecodeError::Invalid("it ends too early"))?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8, DecodeError> {
        Ok(self.take(1)?.first().copied().unwrap_or_default())
    }

    pub(super) fn unsigned(&mut self) -> Result<u64, DecodeError> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(DecodeError::Invalid("a number is too long"))
    }

    pub(super) fn signed(&mut self) -> Result<i64, DecodeError> {
        let number = self.unsigned()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// Reads an index of 32 bits.
    pub(super) fn place(&mut self) -> Result<u32, DecodeError> {
        u32::try_from(self.unsigned()?).map_err(|_| DecodeError::Invalid("an index is too large"))
    }

    /// Reads the number of items that follow. Each item takes at least one byte, which bounds the number.
    pub(super) fn count(&mut self) -> Result<usize, DecodeError> {
        let count = usize::try_from(self.unsigned()?).ok().filter(|count| *count <= self.rest.len());
        count.ok_or(DecodeError::Invalid("a length exceeds the remaining bytes"))
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let count = self.count()?;
        self.take(count)
    }

    pub(super) fn text(&mut self) -> Result<&'a str, DecodeError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| DecodeError::Invalid("a text is not UTF-8"))
    }

    /// Reads a list with its length.
    pub(super) fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T, DecodeError>) -> Result<Vec<T>, DecodeError> {
        let count = self.count()?;
        let one = |_| {
            self.meter.step()?;
            item(self)
        };
        (0..count).map(one).collect()
    }
}
