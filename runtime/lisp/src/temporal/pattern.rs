//! Patterns of Java's `DateTimeFormatter`, such as `yyyy-MM-dd HH:mm`, and formatting with them.

use std::fmt::Write;

use jiff::civil::DateTime;

use super::offset::{offset_text, signed};
use super::{MONTHS, Temporal, WEEKDAYS, name_of};

/// A part of a pattern: a letter with its number of repetitions, or literal text.
pub(super) enum Part<'p> {
    Field(char, usize),
    Text(&'p str),
}

/// A format for dates and times: a pattern, or one of the constants of `DateTimeFormatter`.
pub(crate) struct Style<'p> {
    parts: Vec<Part<'p>>,
    iso: Option<Iso>,
}

/// The formats of the constants of `DateTimeFormatter`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Iso {
    Date,
    LocalDate,
    BasicDate,
    LocalTime,
    LocalDateTime,
    DateTime,
    OffsetDateTime,
    Instant,
    Rfc1123,
}

impl Iso {
    /// Returns the format of the constant `name`.
    fn named(name: &str) -> Option<Iso> {
        Some(match name {
            "ISO_DATE" => Iso::Date,
            "ISO_LOCAL_DATE" => Iso::LocalDate,
            "BASIC_ISO_DATE" => Iso::BasicDate,
            "ISO_LOCAL_TIME" => Iso::LocalTime,
            "ISO_LOCAL_DATE_TIME" => Iso::LocalDateTime,
            "ISO_DATE_TIME" => Iso::DateTime,
            "ISO_OFFSET_DATE_TIME" | "ISO_ZONED_DATE_TIME" => Iso::OffsetDateTime,
            "ISO_INSTANT" => Iso::Instant,
            "RFC_1123_DATE_TIME" => Iso::Rfc1123,
            _ => return None,
        })
    }

    /// Patterns that parse this format. A text matches one of them.
    pub(super) fn patterns(self) -> Vec<String> {
        let date = match self {
            Iso::Rfc1123 => {
                return ["EEE, d MMM yyyy HH:mm:ss Z", "d MMM yyyy HH:mm:ss Z"].map(str::to_owned).into();
            }
            Iso::BasicDate => return ["yyyyMMdd", "yyyyMMddX"].map(str::to_owned).into(),
            Iso::LocalDate => return vec!["yyyy-MM-dd".to_owned()],
            Iso::Date => return ["yyyy-MM-dd", "yyyy-MM-ddXXX"].map(str::to_owned).into(),
            Iso::LocalTime => "",
            _ => "yyyy-MM-dd'T'",
        };
        let offsets: &[&str] = match self {
            Iso::LocalTime | Iso::LocalDateTime => &[""],
            Iso::DateTime => &["XXX", ""],
            _ => &["XXX"],
        };
        let fractions = (1..=9).map(|digits| format!("HH:mm:ss.{}", "S".repeat(digits)));
        let times: Vec<String> = ["HH:mm:ss", "HH:mm"].map(str::to_owned).into_iter().chain(fractions).collect();
        times.iter().flat_map(|time| offsets.iter().map(move |offset| format!("{date}{time}{offset}"))).collect()
    }

    /// Formats a date or time as Java's constant does. The error names the field that the value lacks.
    fn format(self, value: &Temporal) -> Result<String, String> {
        let lacks = |what: &str| format!("{} has no {what}", value.described());
        let at = value.civil().ok_or_else(|| lacks("date to format"))?;
        let held_offset_s = match value {
            Temporal::OffsetDateTime(held) => Some(held.offset_s()),
            _ => None,
        };
        let offset_s = if matches!(value, Temporal::Instant(_)) { Some(0) } else { held_offset_s };
        let needs_time = !matches!(self, Iso::Date | Iso::LocalDate | Iso::BasicDate);
        if needs_time && matches!(value, Temporal::Date(_)) {
            return Err(lacks("time, which the formatter writes"));
        }
        let text = |pattern: &str| Style::parse(pattern).and_then(|style| format(value, &style));
        let time = || {
            let fraction = format!("{:09}", at.subsec_nanosecond());
            match fraction.trim_end_matches('0') {
                "" => text("HH:mm:ss"),
                digits => Ok(format!("{}.{digits}", text("HH:mm:ss")?)),
            }
        };
        let date_time = |offset_s: Option<i32>| {
            Ok(format!("{}T{}{}", text("yyyy-MM-dd")?, time()?, offset_s.map(offset_text).unwrap_or_default()))
        };
        match self {
            Iso::LocalDate => text("yyyy-MM-dd"),
            Iso::Date => Ok(text("yyyy-MM-dd")? + &held_offset_s.map(offset_text).unwrap_or_default()),
            Iso::BasicDate => text(if held_offset_s.is_some() { "yyyyMMddXX" } else { "yyyyMMdd" }),
            Iso::LocalTime => time(),
            Iso::LocalDateTime => date_time(None),
            Iso::DateTime => date_time(offset_s),
            Iso::OffsetDateTime => date_time(Some(offset_s.ok_or_else(|| lacks("offset, which the formatter writes"))?)),
            Iso::Rfc1123 => match offset_s {
                None => Err(lacks("offset, which the formatter writes")),
                Some(0) => text("EEE, d MMM yyyy HH:mm:ss 'GMT'"),
                Some(_) => text("EEE, d MMM yyyy HH:mm:ss Z"),
            },
            Iso::Instant => match value {
                Temporal::Instant(_) => Ok(value.to_string()),
                Temporal::OffsetDateTime(held) => Ok(Temporal::Instant(held.instant()).to_string()),
                _ => Err(lacks("offset, which the formatter needs")),
            },
        }
    }
}

/// Maximum repetitions of a letter, as in Java.
const MAX_COUNT: usize = 19;

/// Maximum length of a pattern in bytes.
const MAX_LEN: usize = 1024;

/// The supported letters with their meanings, for messages.
const LETTERS: &str = "y u (year), M L (month), Q (quarter), d (day), D (day of the year), E (weekday), H h K k (hour), a (AM or PM), m (minute), \
     s (second), S (fraction), n (nanosecond), X x Z (offset), and text in 'quotes'";

impl<'p> Style<'p> {
    /// Parses a pattern. The error is a sentence for the program's author.
    pub(crate) fn parse(pattern: &'p str) -> Result<Style<'p>, String> {
        if pattern.len() > MAX_LEN {
            return Err(format!("a date pattern has at most {MAX_LEN} bytes, this one has {}", pattern.len()));
        }
        if let Some(iso) = Iso::named(pattern) {
            return Ok(Style { parts: Vec::new(), iso: Some(iso) });
        }
        let mut parts = Vec::new();
        let mut rest = pattern;
        while let Some(c) = rest.chars().next() {
            if c.is_ascii_alphabetic() {
                if !"yuMLQdDEHhKkamsSnXxZ".contains(c) {
                    return Err(format!("the pattern letter {c} is not supported; known are {LETTERS}"));
                }
                let count = rest.chars().take_while(|other| *other == c).count();
                if count > MAX_COUNT {
                    return Err(format!("a pattern letter can be repeated {MAX_COUNT} times at most, {c} comes {count} times"));
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
        Ok(Style { parts, iso: None })
    }

    pub(super) fn iso(&self) -> Option<Iso> {
        self.iso
    }

    pub(super) fn parts(&self) -> &[Part<'p>] {
        &self.parts
    }
}

/// Formats a date or time. The error names the field that the value lacks.
pub(crate) fn format(value: &Temporal, style: &Style<'_>) -> Result<String, String> {
    if let Some(iso) = style.iso {
        return iso.format(value);
    }
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

/// Formats an offset for the letters `X`, `x` and `Z`. Only `X` and `ZZZZZ` write `Z` for UTC.
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

/// Appends `Jan` or `January` for `JANUARY`. Four or more repetitions select the full name.
fn name(upper: &str, count: usize, out: &mut String) {
    let text = upper.chars().enumerate().map(|(at, c)| if at == 0 { c } else { c.to_ascii_lowercase() });
    out.extend(text.take(if count >= 4 { usize::MAX } else { 3 }));
}
