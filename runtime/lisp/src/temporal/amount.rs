//! Amounts of time and their ISO 8601 texts, with the rules of `java.time`.

use std::fmt;

use jiff::SignedDuration;
use jiff::civil::{Date, DateTime};

/// An amount of years, months and days, which are not normalized into each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Period {
    /// Number of years.
    pub years: i32,
    /// Number of months.
    pub months: i32,
    /// Number of days.
    pub days: i32,
}

impl Period {
    /// Returns the period from one date to another: as many whole months as fit, then days.
    pub fn between(start: Date, end: Date) -> Period {
        let mut months = proleptic_month(end) - proleptic_month(start);
        let mut days = i32::from(end.day()) - i32::from(start.day());
        if months > 0 && days < 0 {
            months -= 1;
            let reached = start.checked_add(jiff::Span::new().months(months)).unwrap_or(end);
            days = reached.duration_until(end).as_hours() as i32 / 24;
        } else if months < 0 && days > 0 {
            months += 1;
            days -= i32::from(end.days_in_month());
        }
        Period { years: months / 12, months: months % 12, days }
    }

    /// Returns years and months together as months.
    pub fn total_months(self) -> i64 {
        i64::from(self.years) * 12 + i64::from(self.months)
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Period::default() {
            return f.write_str("P0D");
        }
        f.write_str("P")?;
        for (amount, unit) in [(self.years, 'Y'), (self.months, 'M'), (self.days, 'D')] {
            if amount != 0 {
                write!(f, "{amount}{unit}")?;
            }
        }
        Ok(())
    }
}

fn proleptic_month(date: Date) -> i32 {
    i32::from(date.year()) * 12 + i32::from(date.month()) - 1
}

/// Whole months from one wall clock time to another, counted as `LocalDateTime.until` does: an incomplete last day is dropped
/// first, then the whole months between the dates are counted.
pub(super) fn months_between(start: DateTime, end: DateTime) -> i32 {
    let (from, mut to) = (start.date(), end.date());
    let adjusted = if to > from && end.time() < start.time() {
        to.yesterday()
    } else if to < from && end.time() > start.time() {
        to.tomorrow()
    } else {
        Ok(to)
    };
    to = adjusted.unwrap_or(to);
    let packed = |date: Date| proleptic_month(date) * 32 + i32::from(date.day());
    (packed(to) - packed(from)) / 32
}

/// Writes `2024-01-15T10:00`. Seconds are written if they are not zero or if `seconds` is set. Fractions are written in groups of
/// three digits.
pub(super) fn write_date_time(at: DateTime, seconds: bool, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{}T{:02}:{:02}", at.date(), at.hour(), at.minute())?;
    let nanos = at.subsec_nanosecond();
    if seconds || at.second() != 0 || nanos != 0 {
        write!(f, ":{:02}", at.second())?;
    }
    match nanos {
        0 => Ok(()),
        _ if nanos % 1_000_000 == 0 => write!(f, ".{:03}", nanos / 1_000_000),
        _ if nanos % 1_000 == 0 => write!(f, ".{:06}", nanos / 1_000),
        _ => write!(f, ".{nanos:09}"),
    }
}

/// Writes `PT8H6M12.345S`.
pub(super) fn write_duration(held: SignedDuration, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if held.is_zero() {
        return f.write_str("PT0S");
    }
    let (seconds, nanos) = (held.as_secs(), held.subsec_nanos());
    f.write_str("PT")?;
    for (amount, unit) in [(seconds / 3600, 'H'), (seconds % 3600 / 60, 'M')] {
        if amount != 0 {
            write!(f, "{amount}{unit}")?;
        }
    }
    let seconds = seconds % 60;
    if seconds == 0 && nanos == 0 {
        return Ok(());
    }
    let sign = if seconds < 0 || nanos < 0 { "-" } else { "" };
    write!(f, "{sign}{}", seconds.abs())?;
    if nanos != 0 {
        let digits = format!("{:09}", nanos.abs());
        write!(f, ".{}", digits.trim_end_matches('0'))?;
    }
    f.write_str("S")
}

/// A part of an ISO amount: whether it follows the `T`, its digits, its unit.
type Part<'a> = (bool, &'a str, char);

/// Parses the sign and the parts of an ISO amount.
fn parts(text: &str) -> Option<(i64, Vec<Part<'_>>)> {
    let (sign, rest) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (if text.starts_with('-') { -1 } else { 1 }, rest),
        None => (1, text),
    };
    let mut rest = rest.strip_prefix(['P', 'p'])?;
    let (mut out, mut time) = (Vec::new(), false);
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix(['T', 't']) {
            if time || after.is_empty() {
                return None;
            }
            (time, rest) = (true, after);
            continue;
        }
        let end = rest.find(|c: char| c.is_ascii_alphabetic())?;
        let unit = rest.get(end..)?.chars().next()?.to_ascii_uppercase();
        out.push((time, rest.get(..end)?, unit));
        rest = rest.get(end + 1..)?;
    }
    if out.is_empty() { None } else { Some((sign, out)) }
}

/// Whether each unit occurs at most once and in the given order.
fn ordered(parts: &[Part<'_>], order: &[(bool, char)]) -> bool {
    let places: Option<Vec<usize>> =
        parts.iter().map(|(time, _, unit)| order.iter().position(|known| known == &(*time, *unit))).collect();
    places.is_some_and(|places| places.is_sorted_by(|a, b| a < b))
}

/// Parses `PnDTnHnMn.nS`.
pub(crate) fn parse_duration(text: &str) -> Option<SignedDuration> {
    let (sign, parts) = parts(text)?;
    if !ordered(&parts, &[(false, 'D'), (true, 'H'), (true, 'M'), (true, 'S')]) {
        return None;
    }
    let mut total: i128 = 0;
    for (_, digits, unit) in parts {
        let seconds = match unit {
            'D' => 86_400,
            'H' => 3_600,
            'M' => 60,
            _ => 1,
        };
        let nanos = match digits.split_once(['.', ',']) {
            Some((whole, fraction)) if unit == 'S' && fraction.len() <= 9 && fraction.bytes().all(|b| b.is_ascii_digit()) => {
                let fraction: i128 = format!("{fraction:0<9}").parse().ok()?;
                let nanos = whole.parse::<i64>().ok().map(i128::from)? * 1_000_000_000;
                if whole.starts_with('-') { nanos - fraction } else { nanos + fraction }
            }
            Some(_) => return None,
            None => digits.parse::<i64>().ok().map(i128::from)? * seconds * 1_000_000_000,
        };
        total = total.checked_add(nanos)?;
    }
    SignedDuration::try_from_nanos_i128(total * i128::from(sign))
}

/// Parses `PnYnMnWnD`.
pub(crate) fn parse_period(text: &str) -> Option<Period> {
    let (sign, parts) = parts(text)?;
    if !ordered(&parts, &[(false, 'Y'), (false, 'M'), (false, 'W'), (false, 'D')]) {
        return None;
    }
    let mut period = Period::default();
    for (_, digits, unit) in parts {
        let amount = digits.parse::<i32>().ok()?.checked_mul(sign as i32)?;
        match unit {
            'Y' => period.years = amount,
            'M' => period.months = amount,
            'W' => period.days = amount.checked_mul(7)?,
            _ => period.days = period.days.checked_add(amount)?,
        }
    }
    Some(period)
}
