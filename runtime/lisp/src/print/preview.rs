//! Prints values within a byte budget, truncated at structural boundaries.

use std::borrow::Cow;
use std::fmt::Write;

use num_bigint::{BigInt, Sign};
use num_traits::ToPrimitive;

use super::readable::{Strings, write_atom, write_while};
use crate::Value;
use crate::collection::Children;
use ptc_text::truncate_utf8;

/// A value's printed form, truncated to a budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// The text. If it is truncated, `…` replaces the omitted parts and a last line counts them.
    pub text: String,
    /// Whether anything was omitted.
    pub truncated: bool,
}

/// Maximum nesting of truncated containers. Containers inside of more are printed as `…`.
const MAX_DEPTH: usize = 32;
/// Maximum bits of an integer that is converted to digits.
const DIGITS_BITS: u64 = 16 * 1024;
/// Bytes reserved for the closing line.
const NOTE: usize = 160;
/// Bytes reserved in a truncated container for its brackets and its mark, such as ` … 9950 more`.
const MARK: usize = 28;
/// Bytes of failed attempts after which no part is attempted any more. A large part that does not fit is written once per nesting
/// level. No value that is readable for a person takes so many.
const MAX_TRIED: usize = 8 << 20;
/// Bytes that are written in the time of one step of converting a number to digits.
const STEP: usize = 8;
/// Minimum room in which a part is truncated. With less room it is omitted.
const WORTHWHILE: usize = 64;

/// Prints `value` in at most `budget` bytes. The minimum budget is 256.
pub fn preview(value: &Value, budget: usize) -> Preview {
    let mut writer = Writer::default();
    if writer.fits(value, budget) {
        return Preview { text: writer.out, truncated: false };
    }
    writer.cut(value, budget.saturating_sub(NOTE).max(256 - NOTE), MAX_DEPTH);
    writer.note(value);
    Preview { text: writer.out, truncated: true }
}

/// Prints a preview on one line, for messages. Omitted parts show as `…` only.
pub(crate) fn preview_line(value: &Value, budget: usize) -> String {
    let mut writer = Writer::default();
    if !writer.fits(value, budget) {
        writer.cut(value, budget.max(2 * MARK), MAX_DEPTH);
    }
    writer.out
}

/// Quotes a name or text in a message: a short one completely, the beginning of a long one.
pub fn excerpt(text: &str) -> Cow<'_, str> {
    cut(text, 80)
}

/// Truncates a text after at most `most` bytes.
pub(crate) fn cut(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most { Cow::Borrowed(text) } else { Cow::Owned(format!("{}…", truncate_utf8(text, most).0)) }
}

#[derive(Default)]
struct Writer {
    out: String,
    /// Bytes of attempts that did not fit.
    tried: usize,
    /// Number of omitted items, members and entries.
    items: usize,
    /// Bytes of omitted parts of strings.
    bytes: usize,
}

impl Writer {
    /// Writes a value completely if it fits into `room`. Otherwise writes nothing and returns false.
    fn fits(&mut self, value: &Value, room: usize) -> bool {
        let tried = &mut self.tried;
        let fits = write_while(value, room, Strings::Quoted, &mut self.out, |work| {
            *tried += work as usize * STEP;
            *tried < MAX_TRIED
        });
        if !fits {
            self.tried += room;
        }
        fits
    }

    /// Writes a truncated form of a value that does not fit into `room`.
    fn cut(&mut self, value: &Value, room: usize, levels: usize) {
        let (opening, closing) = match value {
            Value::Vector(_) => ("[", "]"),
            Value::Set(_) => ("#{", "}"),
            Value::Map(_) => ("{", "}"),
            Value::Str(text) => return self.string(text.as_str(), room),
            other => return self.atom(other, room),
        };
        let total = value.len().unwrap_or(0);
        self.out.push_str(opening);
        let end = self.out.len() + room.saturating_sub(MARK);
        let map = matches!(value, Value::Map(_));
        let mut children = Children::shown(value).into_iter().flatten();
        let mut done = 0;
        while done < total && levels > 0 && self.tried < MAX_TRIED {
            let (Some(first), second) = (children.next(), if map { children.next() } else { None }) else { break };
            let left = end.saturating_sub(self.out.len() + usize::from(done > 0));
            let start = self.out.len();
            if done > 0 {
                self.out.push(' ');
            }
            if !self.whole(first, second, left) {
                // A part that is too long gets at least a third of the remaining room. The last part gets all of it.
                let share = left / (total - done).clamp(1, 3);
                if share < WORTHWHILE {
                    self.out.truncate(start);
                    break;
                }
                self.entry(first, second, share, levels - 1);
            }
            done += 1;
        }
        if done < total {
            self.items += total - done;
            let _ = write!(self.out, "{}… {} more", if done > 0 { " " } else { "" }, total - done);
        }
        self.out.push_str(closing);
    }

    /// Writes an item, or an entry of a map, if it fits completely.
    fn whole(&mut self, first: &Value, second: Option<&Value>, room: usize) -> bool {
        let start = self.out.len();
        if !self.fits(first, room) {
            return false;
        }
        let Some(second) = second else { return true };
        self.out.push(' ');
        let used = self.out.len() - start;
        if used <= room && self.fits(second, room - used) {
            return true;
        }
        self.out.truncate(start);
        false
    }

    /// Writes a truncated item or entry of a map.
    fn entry(&mut self, first: &Value, second: Option<&Value>, room: usize, levels: usize) {
        let Some(second) = second else { return self.cut(first, room, levels) };
        let start = self.out.len();
        if !self.fits(first, room / 3) {
            self.cut(first, room / 3, levels);
        }
        self.out.push(' ');
        let left = room.saturating_sub(self.out.len() - start);
        if !self.fits(second, left) {
            self.cut(second, left, levels);
        }
    }

    fn string(&mut self, text: &str, room: usize) {
        let room = room.saturating_sub("\"…\"".len());
        let mut shown = 0;
        let mut used = 0;
        for c in text.chars() {
            used += if matches!(c, '"' | '\\' | '\n' | '\r' | '\t') { 2 } else { c.len_utf8() };
            if used > room {
                break;
            }
            shown += c.len_utf8();
        }
        self.bytes += text.len() - shown;
        super::write_quoted(text.get(..shown).unwrap_or_default(), &mut self.out);
        self.out.pop();
        self.out.push_str("…\"");
    }

    /// Writes long numbers, names and patterns.
    fn atom(&mut self, value: &Value, room: usize) {
        let mut text = String::new();
        if let Value::BigInt(big) = value
            && big.bits() > DIGITS_BITS
        {
            return self.long_number(big);
        }
        write_atom(value, &mut text);
        let shown = text.floor_char_boundary(room.saturating_sub("…".len()));
        self.bytes += text.len() - shown;
        self.out.push_str(text.get(..shown).unwrap_or_default());
        self.out.push('…');
    }

    /// Writes the first digits of a number that is too long to be converted completely.
    fn long_number(&mut self, big: &BigInt) {
        let shift = big.bits().saturating_sub(64);
        let top = (big.magnitude() >> shift).to_f64().unwrap_or(0.0);
        let digits = top.log10() + shift as f64 * std::f64::consts::LOG10_2;
        let sign = if big.sign() == Sign::Minus { "-" } else { "" };
        let _ = write!(self.out, "{sign}{}…", (10f64.powf(digits.fract()) * 1e5) as u64);
        self.bytes += digits as usize - 5;
    }

    /// Writes the closing line, which counts what is missing and says how to get it.
    fn note(&mut self, value: &Value) {
        self.out.push_str("\n; cut:");
        if self.items > 0 {
            let _ = write!(self.out, " {} items", self.items);
        }
        if self.items > 0 && self.bytes > 0 {
            self.out.push_str(" and");
        }
        if self.bytes > 0 {
            let _ = write!(self.out, " {} bytes of text", self.bytes);
        }
        self.out.push_str(" left out. ");
        self.out.push_str(match value {
            Value::Map(_) => "Return less: (select-keys m [...]), (get-in m [...]), (keys m)",
            Value::Str(_) => "Return less: (subs s from to)",
            Value::BigInt(_) => "Return less: (count (str n)), (mod n 1000000)",
            _ => "Return less: (take n xs), (map #(select-keys % [...]) xs), (count xs)",
        });
    }
}
