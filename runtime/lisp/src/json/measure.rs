//! Computes the length of a value's JSON text without writing it.
//!
//! Values share their parts, so that a small value can have an extremely long text. A caller that measures first knows how many
//! bytes to reserve, and rejects a value before it allocates anything for it.

use std::fmt::{self, Write};

use super::plain;
use crate::Value;
use crate::collection::Children;
use crate::print::work_of;

/// Values between two calls of `is_over`.
const CHECK_INTERVAL: u32 = 1024;

/// The result of [`measure`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Bytes of the JSON text. Exact, except that each integer beyond 64 bits may count up to two bytes too many.
    pub bytes: usize,
    /// Values in the text, including containers and keys. A shared value counts as often as it is written.
    pub values: usize,
    /// Containers among the values.
    pub containers: usize,
}

/// Reports why a measurement was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unmeasured {
    /// The text would have more bytes than allowed.
    TooLarge,
    /// `is_over` returned true.
    Stopped,
}

/// Measures the JSON text of `value`, up to `max_bytes`.
///
/// The work is linear in the bytes of the text and stops at `max_bytes`. `is_over` is called regularly, so that a deadline or a
/// cancellation stops the measurement. A value without a JSON form is measured like `null`. The encoder reports it.
///
/// # Errors
///
/// Returns an error if the text has more than `max_bytes` bytes, or if `is_over` returned true.
pub fn measure(value: &Value, max_bytes: usize, is_over: &dyn Fn() -> bool) -> Result<Size, Unmeasured> {
    let mut counter = Counter { bytes: 0, max_bytes };
    let (mut values, mut containers, mut work) = (0_usize, 0_usize, 0_u32);
    let mut open: Vec<Frame<'_>> = Vec::new();
    let (mut next, mut is_key) = (Some(value), false);
    while let Some(value) = next {
        values += 1;
        work = work.saturating_add(work_of(value));
        if work >= CHECK_INTERVAL {
            work = 0;
            if is_over() {
                return Err(Unmeasured::Stopped);
            }
        }
        if let Some(children) = Children::new(value) {
            containers += 1;
            let count = value.len().unwrap_or(0);
            let is_map = matches!(value, Value::Map(_));
            // Brackets, commas, and the colons of a map.
            counter.add(2 + count.saturating_sub(1) + if is_map { count } else { 0 })?;
            open.push(Frame { children, is_map, is_key: is_map });
        } else {
            counter.leaf(value)?;
            if is_key && matches!(value, Value::Int(_) | Value::BigInt(_) | Value::Double(_) | Value::True | Value::False) {
                counter.add(2)?;
            }
        }
        (next, is_key) = (None, false);
        while let Some(frame) = open.last_mut() {
            if let Some(child) = frame.children.next() {
                (next, is_key) = (Some(child), frame.is_key);
                frame.is_key = frame.is_map && !frame.is_key;
                break;
            }
            open.pop();
        }
    }
    Ok(Size { bytes: counter.bytes, values, containers })
}

/// An open container.
struct Frame<'a> {
    children: Children<'a>,
    is_map: bool,
    /// Whether its next child is a key.
    is_key: bool,
}

struct Counter {
    bytes: usize,
    max_bytes: usize,
}

impl Counter {
    fn add(&mut self, bytes: usize) -> Result<(), Unmeasured> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes <= self.max_bytes { Ok(()) } else { Err(Unmeasured::TooLarge) }
    }

    fn leaf(&mut self, value: &Value) -> Result<(), Unmeasured> {
        match value {
            Value::Str(text) | Value::Keyword(text) | Value::Symbol(text) => self.string(text.as_str()),
            Value::False => self.add(5),
            Value::Int(i) => self.written(format_args!("{i}")),
            // A bit is 0.30103 decimal digits. Counting the digits exactly would cost as much as writing them.
            Value::BigInt(big) => {
                self.add(usize::try_from(big.bits().saturating_mul(30_103) / 100_000 + 2).unwrap_or(usize::MAX))
            }
            Value::Double(d) if d.get().is_finite() => self.add(zmij::Buffer::new().format_finite(d.get()).len()),
            Value::Temporal(temporal) => self.written(format_args!("\"{temporal}\"")),
            // `nil`, `true`, and values without a JSON form.
            _ => self.add(4),
        }
    }

    fn string(&mut self, text: &str) -> Result<(), Unmeasured> {
        // Escapes only lengthen a text, so that one that is already too long need not be scanned.
        self.add(text.len() + 2)?;
        let mut rest = text.as_bytes();
        loop {
            rest = rest.get(plain::run(rest).0..).unwrap_or_default();
            let Some((byte, behind)) = rest.split_first() else { return Ok(()) };
            self.add(match byte {
                b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0C => 1,
                // One byte is written as, for example, `\u001b`.
                _ => 5,
            })?;
            rest = behind;
        }
    }

    fn written(&mut self, text: fmt::Arguments<'_>) -> Result<(), Unmeasured> {
        self.write_fmt(text).map_err(|_| Unmeasured::TooLarge)
    }
}

impl Write for Counter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.add(text.len()).map_err(|_| fmt::Error)
    }
}
