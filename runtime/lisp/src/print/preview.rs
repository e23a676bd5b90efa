//! A printed form cut to a budget, at the borders of its structure.

use std::borrow::Cow;
use std::fmt::Write;

use num_bigint::{BigInt, Sign};
use num_traits::ToPrimitive;

use super::readable::{Strings, write_atom, write_while};
use crate::Value;
use crate::collection::Children;
use crate::error::head;

/// A value's printed form, cut where it would be too long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// The text. Where it is cut, `…` stands for what is left out and a last line says how much that is.
    pub text: String,
    /// Whether anything was left out.
    pub truncated: bool,
}

/// Containers inside more than this many cut ones are shown as `…`.
const DEEPEST: usize = 32;
/// Numbers of more bits are not turned into digits.
const DIGITS_BITS: u64 = 16 * 1024;
/// Bytes kept for the closing line.
const NOTE: usize = 160;
/// Bytes kept in a cut container for its brackets and the mark of the cut, such as ` … 9950 more`.
const MARK: usize = 28;
/// Bytes of attempts after which no part is tried any more: parts that are large and show little are written once for each level
/// that they are nested. No value that a person could read takes so many.
const MOST_TRIED: usize = 8 << 20;
/// Bytes that are written in the time of a step of turning a number into digits.
const STEP: usize = 8;
/// A part that does not fit is cut only where it gets at least this much; else it is left out.
const WORTHWHILE: usize = 64;

/// Prints `value` in at most `budget` bytes (though never in fewer than 256).
pub fn preview(value: &Value, budget: usize) -> Preview {
    let mut writer = Writer::default();
    if writer.fits(value, budget) {
        return Preview { text: writer.out, truncated: false };
    }
    writer.cut(value, budget.saturating_sub(NOTE).max(256 - NOTE), DEEPEST);
    writer.note(value);
    Preview { text: writer.out, truncated: true }
}

/// A preview on one line, for messages: what is left out shows as `…` only.
pub(crate) fn preview_line(value: &Value, budget: usize) -> String {
    let mut writer = Writer::default();
    if !writer.fits(value, budget) {
        writer.cut(value, budget.max(2 * MARK), DEEPEST);
    }
    writer.out
}

/// What a message quotes of a name or a text: all of a short one, the beginning of a long one.
pub fn excerpt(text: &str) -> Cow<'_, str> {
    cut(text, 80)
}

/// A text, cut after at most `most` bytes.
pub(crate) fn cut(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most { Cow::Borrowed(text) } else { Cow::Owned(format!("{}…", head(text, most))) }
}

#[derive(Default)]
struct Writer {
    out: String,
    /// Bytes of attempts that did not fit.
    tried: usize,
    /// Items, members and entries left out.
    items: usize,
    /// Bytes of strings left out.
    bytes: usize,
}

impl Writer {
    /// Writes a value if it fits into `room` as a whole.
    fn fits(&mut self, value: &Value, room: usize) -> bool {
        let tried = &mut self.tried;
        let fits = write_while(value, room, Strings::Quoted, &mut self.out, |work| {
            *tried += work as usize * STEP;
            *tried < MOST_TRIED
        });
        if !fits {
            self.tried += room;
        }
        fits
    }

    /// Writes what fits into `room` of a value that does not fit as a whole.
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
        while done < total && levels > 0 && self.tried < MOST_TRIED {
            let (Some(first), second) = (children.next(), if map { children.next() } else { None }) else { break };
            let left = end.saturating_sub(self.out.len() + usize::from(done > 0));
            let start = self.out.len();
            if done > 0 {
                self.out.push(' ');
            }
            if !self.whole(first, second, left) {
                // A part of what is left for one that is too long, all of it for the last.
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

    /// Writes an item, or an entry of a map, if it fits as a whole.
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

    /// Writes an item, or an entry of a map, that does not fit as a whole.
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

    /// Long numbers, names and patterns.
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

    /// The first digits of a number that has too many to be worked out for a look at it.
    fn long_number(&mut self, big: &BigInt) {
        let shift = big.bits().saturating_sub(64);
        let top = (big.magnitude() >> shift).to_f64().unwrap_or(0.0);
        let digits = top.log10() + shift as f64 * std::f64::consts::LOG10_2;
        let sign = if big.sign() == Sign::Minus { "-" } else { "" };
        let _ = write!(self.out, "{sign}{}…", (10f64.powf(digits.fract()) * 1e5) as u64);
        self.bytes += digits as usize - 5;
    }

    /// The closing line: how much is missing and how to get at it.
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
