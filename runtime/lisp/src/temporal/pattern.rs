//! Patterns of `DateTimeFormatter`, such as `yyyy-MM-dd HH:mm`.

use std::fmt::Write;

use jiff::civil::DateTime;

use super::offset::signed;
use super::{MONTHS, Temporal, WEEKDAYS, name_of};

/// A part of a pattern: a letter and how often it is repeated, or text.
pub(super) enum Part<'p> {
    Field(char, usize),
    Text(&'p str),
}

/// How a date or time is written.
pub(crate) struct Style<'p> {
    parts: Vec<Part<'p>>,
}

/// Most repetitions of a letter, as in Java.
const MOST: usize = 19;

/// Longest pattern, in bytes.
const LONGEST: usize = 1024;

/// Letters that mean something, with what they mean.
const LETTERS: &str = "y u (year), M L (month), Q (quarter), d (day), D (day of the year), E (weekday), H h K k (hour), a (AM or PM), m (minute), \
     s (second), S (fraction), n (nanosecond), X x Z (offset), and text in 'quotes'";

impl<'p> Style<'p> {
    /// Reads a pattern; the error says what is wrong with it.
    pub(crate) fn parse(pattern: &'p str) -> Result<Style<'p>, String> {
        if pattern.len() > LONGEST {
            return Err(format!("a date pattern has at most {LONGEST} bytes, this one has {}", pattern.len()));
        }
        let mut parts = Vec::new();
        let mut rest = pattern;
        while let Some(c) = rest.chars().next() {
            if c.is_ascii_alphabetic() {
                if !"yuMLQdDEHhKkamsSnXxZ".contains(c) {
                    return Err(format!("the pattern letter {c} is not supported; known are {LETTERS}"));
                }
                let count = rest.chars().take_while(|other| *other == c).count();
                if count > MOST {
                    return Err(format!("a pattern letter can be repeated {MOST} times at most, {c} comes {count} times"));
                }
                parts.push(Part::Field(c, count));
                rest = rest.get(count..).unwrap_or_default();
            } else if let Some(after) = rest.strip_prefix('\'') {
                let Some(end) = after.find('\'') else { return Err("a quote in the pattern is not closed".to_owned()) };
                parts.push(Part::Text(if end == 0 { "'" } else { after.get(..end).unwrap_or_default() }));
                rest = after.get(end + 1..).unwrap_or_default();
            } else {
                let end = rest.find(|c: char| c.is_ascii_alphabetic() || c == '\'').unwrap_or(rest.len());
                parts.push(Part::Text(rest.get(..end).unwrap_or_default()));
                rest = rest.get(end..).unwrap_or_default();
            }
        }
        Ok(Style { parts })
    }

    pub(super) fn parts(&self) -> &[Part<'p>] {
        &self.parts
    }
}

/// Writes a date or time; the error names what it has not.
pub(crate) fn format(value: &Temporal, style: &Style<'_>) -> Result<String, String> {
    let Some(at) = value.civil() else { return Err(format!("{} has no date to format", value.described())) };
    let offset_s = match value {
        Temporal::OffsetDateTime(held) => Some(held.offset_s()),
        Temporal::Instant(_) => Some(0),
        _ => None,
    };
    let mut out = String::new();
    for part in &style.parts {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Field(letter, count) => {
                let lacking = match letter {
                    'H' | 'h' | 'K' | 'k' | 'a' | 'm' | 's' | 'S' | 'n' => matches!(value, Temporal::Date(_)),
                    'X' | 'x' | 'Z' => offset_s.is_none(),
                    _ => false,
                };
                if lacking {
                    return Err(format!("{} has nothing for the pattern letter {letter}", value.described()));
                }
                match letter {
                    'X' | 'x' | 'Z' => out.push_str(&offset_field(offset_s.unwrap_or(0), *letter, *count)),
                    _ => field(at, *letter, *count, &mut out),
                }
            }
        }
    }
    Ok(out)
}

/// An offset as `X`, `x` or `Z` writes it: only `X` and `ZZZZZ` have `Z` for UTC.
fn offset_field(offset_s: i32, letter: char, count: usize) -> String {
    match (letter, count) {
        ('X', _) | ('Z', 5) if offset_s == 0 => "Z".to_owned(),
        ('Z', 4) if offset_s == 0 => "GMT".to_owned(),
        ('Z', 4) => format!("GMT{}", signed(offset_s, ":", true)),
        ('Z', ..=3) | (_, 2 | 4) => signed(offset_s, "", true),
        ('X' | 'x', 1) => signed(offset_s, "", false),
        _ => signed(offset_s, ":", true),
    }
}

fn field(at: DateTime, letter: char, count: usize, out: &mut String) {
    let number = match letter {
        'y' | 'u' if count == 2 => i32::from(at.year()).rem_euclid(100),
        'y' | 'u' => i32::from(at.year()),
        'M' | 'L' if count >= 3 => return name(name_of(&MONTHS, at.month()), count, out),
        'M' | 'L' => i32::from(at.month()),
        'Q' if count >= 3 => {
            let ordinal = ["1st", "2nd", "3rd", "4th"].get((at.month() as usize - 1) / 3).copied().unwrap_or_default();
            let short = ordinal.get(..1).unwrap_or_default();
            let _ = if count == 3 { write!(out, "Q{short}") } else { write!(out, "{ordinal} quarter") };
            return;
        }
        'Q' => i32::from((at.month() - 1) / 3 + 1),
        'd' => i32::from(at.day()),
        'D' => i32::from(at.day_of_year()),
        'E' => return name(name_of(&WEEKDAYS, at.weekday().to_monday_one_offset()), count.max(3), out),
        'H' => i32::from(at.hour()),
        'k' => (i32::from(at.hour()) + 23) % 24 + 1,
        'h' => (i32::from(at.hour()) + 11) % 12 + 1,
        'K' => i32::from(at.hour()) % 12,
        'a' => return out.push_str(if at.hour() < 12 { "AM" } else { "PM" }),
        'm' => i32::from(at.minute()),
        's' => i32::from(at.second()),
        'n' => at.subsec_nanosecond(),
        'S' => {
            let digits = format!("{:09}", at.subsec_nanosecond());
            let _ = write!(out, "{:0<count$}", digits.get(..count.min(9)).unwrap_or_default());
            return;
        }
        _ => return,
    };
    let _ = write!(out, "{number:0count$}");
}

/// `Jan` or `January` from `JANUARY`.
fn name(upper: &str, count: usize, out: &mut String) {
    let text = upper.chars().enumerate().map(|(at, c)| if at == 0 { c } else { c.to_ascii_lowercase() });
    out.extend(text.take(if count >= 4 { usize::MAX } else { 3 }));
}
