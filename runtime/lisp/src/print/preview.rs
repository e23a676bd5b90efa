//! A printed form cut to a budget, at the borders of its structure.

use std::fmt::Write;

use super::readable::write_atom;
use crate::Value;
use crate::collection::Children;

/// A value's printed form, cut where it would be too long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// The text. Where it is cut, `…` stands for what is left out and a last line says how much that is.
    pub text: String,
    /// Whether anything was left out.
    pub truncated: bool,
}

/// Containers inside more than this many others are shown as `…`.
const DEEPEST: usize = 32;
/// Bytes kept for the closing line.
const NOTE: usize = 160;

/// Prints `value` in at most `budget` bytes (never fewer than a few words, however small the budget).
pub fn preview(value: &Value, budget: usize) -> Preview {
    let mut whole = Writer { out: String::new(), items: 0, bytes: 0 };
    // A first try with the whole budget: most values fit.
    whole.write(value, budget, DEEPEST);
    if whole.items == 0 && whole.bytes == 0 && whole.out.len() <= budget {
        return Preview { text: whole.out, truncated: false };
    }
    let mut cut = Writer { out: String::new(), items: 0, bytes: 0 };
    cut.write(value, budget.saturating_sub(NOTE).max(16), DEEPEST);
    cut.note(value);
    Preview { text: cut.out, truncated: true }
}

/// A preview on one line, for messages: what is left out shows as `…` only.
pub(crate) fn preview_line(value: &Value, budget: usize) -> String {
    let mut writer = Writer { out: String::new(), items: 0, bytes: 0 };
    writer.write(value, budget, DEEPEST);
    writer.out
}

struct Writer {
    out: String,
    /// Items, members and entries left out.
    items: usize,
    /// Bytes of strings left out.
    bytes: usize,
}

impl Writer {
    /// Writes `value` in about `room` bytes.
    fn write(&mut self, value: &Value, room: usize, levels: usize) {
        let (opening, closing) = match value {
            Value::Vector(_) => ("[", "]"),
            Value::Set(_) => ("#{", "}"),
            Value::Map(_) => ("{", "}"),
            Value::Str(text) => return self.string(text.as_str(), room),
            _ => return write_atom(value, &mut self.out),
        };
        let total = value.len().unwrap_or(0);
        self.out.push_str(opening);
        if levels == 0 && total > 0 {
            self.items += total;
            self.out.push('…');
            self.out.push_str(closing);
            return;
        }
        // Room for the closing bracket and the mark of a cut.
        let limit = self.out.len() + room.saturating_sub(opening.len() + closing.len() + MARK);
        let map = matches!(value, Value::Map(_));
        let mut children = Children::of(value).into_iter().flatten();
        let mut done = 0;
        while let Some(child) = children.next() {
            if self.out.len() >= limit && done > 0 || room < 8 {
                self.items += total - done;
                if done > 0 {
                    self.out.push(' ');
                }
                let _ = write!(self.out, "… {} more", total - done);
                break;
            }
            let start = (self.out.len(), self.items, self.bytes);
            if done > 0 {
                self.out.push(' ');
            }
            // One large child may take a part of what is left, the last one all of it.
            let left = limit.saturating_sub(self.out.len());
            let share = left / (total - done).clamp(1, 3);
            if map {
                self.write(child, share / 2, levels - 1);
                self.out.push(' ');
                let left = limit.saturating_sub(self.out.len());
                if let Some(value) = children.next() {
                    self.write(value, (left / (total - done).clamp(1, 3)).max(share / 2), levels - 1);
                }
            } else {
                self.write(child, share, levels - 1);
            }
            if self.out.len() > limit + MARK && done > 0 {
                // It did not fit after all: take it back.
                self.out.truncate(start.0);
                (self.items, self.bytes) = (start.1, start.2);
                self.items += total - done;
                let _ = write!(self.out, " … {} more", total - done);
                break;
            }
            done += 1;
        }
        self.out.push_str(closing);
    }

    fn string(&mut self, text: &str, room: usize) {
        if text.len() + 2 <= room {
            let before = self.out.len();
            super::write_quoted(text, &mut self.out);
            if self.out.len() - before <= room + MARK {
                return;
            }
            self.out.truncate(before);
        }
        let mut end = room.saturating_sub(MARK).max(8).min(text.len());
        // Escapes lengthen the text; what is shown shrinks by as much.
        let escapes = text.bytes().take(end).filter(|b| matches!(b, b'"' | b'\\' | b'\n' | b'\r' | b'\t')).count();
        end = end.saturating_sub(escapes / 2).max(1);
        while end < text.len() && !text.is_char_boundary(end) {
            end += 1;
        }
        if end >= text.len() {
            return super::write_quoted(text, &mut self.out);
        }
        self.bytes += text.len() - end;
        super::write_quoted(text.get(..end).unwrap_or_default(), &mut self.out);
        if self.out.ends_with('"') {
            self.out.pop();
        }
        self.out.push_str("…\"");
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
            _ => "Return less: (take n xs), (map #(select-keys % [...]) xs), (count xs)",
        });
    }
}

/// Bytes of the mark of a cut, such as ` … 9950 more`.
const MARK: usize = 16;
