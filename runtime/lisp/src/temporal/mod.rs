//! Dates and times: the values behind `java.time` and `java.util.Date`.
//!
//! There is no time zone database. A zone is a fixed offset, and an instant is shown in UTC. Only "now" as a local date needs the
//! host's offset. A value is printed, and encoded in JSON, as its ISO 8601 text.

mod amount;
mod offset;
mod pattern;
mod reading;

use std::fmt;

use jiff::civil::{self, Weekday};
use jiff::{SignedDuration, Span, Timestamp};

pub use amount::Period;
pub(crate) use amount::{parse_duration, parse_period};
pub use offset::OffsetDateTime;
pub(crate) use offset::{offset_text, parse_zone};
pub(crate) use pattern::{Style, format};
pub(crate) use reading::{read_date, read_date_time, read_offset_date_time};

/// A date, a time, or an amount of time. Values of one variant are ordered by time or length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Temporal {
    /// `java.time.LocalDate`
    Date(civil::Date),
    /// `java.time.LocalDateTime`
    DateTime(civil::DateTime),
    /// `java.time.Instant`, and `java.util.Date`
    Instant(Timestamp),
    /// `java.time.Duration`
    Duration(SignedDuration),
    /// `java.time.Period`
    Period(Period),
    /// `java.time.DayOfWeek`: 1 is Monday.
    Weekday(i8),
    /// `java.time.Month`: 1 is January.
    Month(i8),
    /// `java.time.temporal.ChronoUnit`
    Unit(Unit),
    /// `java.time.OffsetDateTime`, and `java.time.ZonedDateTime` with a fixed offset
    OffsetDateTime(OffsetDateTime),
}

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unit {
    /// `NANOS`: nanoseconds.
    Nanos,
    /// `MICROS`: microseconds.
    Micros,
    /// `MILLIS`: milliseconds.
    Millis,
    /// `SECONDS`: seconds.
    Seconds,
    /// `MINUTES`: minutes.
    Minutes,
    /// `HOURS`: hours.
    Hours,
    /// `DAYS`: days of 24 hours.
    Days,
    /// `WEEKS`: weeks of seven days.
    Weeks,
    /// `MONTHS`: months of the calendar.
    Months,
    /// `YEARS`: years of the calendar.
    Years,
}

impl Unit {
    /// Every unit, shortest first, with its Java name.
    pub const ALL: &'static [(Unit, &'static str)] = &[
        (Unit::Nanos, "NANOS"),
        (Unit::Micros, "MICROS"),
        (Unit::Millis, "MILLIS"),
        (Unit::Seconds, "SECONDS"),
        (Unit::Minutes, "MINUTES"),
        (Unit::Hours, "HOURS"),
        (Unit::Days, "DAYS"),
        (Unit::Weeks, "WEEKS"),
        (Unit::Months, "MONTHS"),
        (Unit::Years, "YEARS"),
    ];

    /// The name of the unit in Java, such as `DAYS`.
    pub fn name(self) -> &'static str {
        Unit::ALL.iter().find(|(unit, _)| *unit == self).map_or("", |(_, name)| name)
    }

    /// The length in nanoseconds. `None` for months and years, whose length varies.
    pub fn nanos(self) -> Option<i128> {
        Some(match self {
            Unit::Nanos => 1,
            Unit::Micros => 1_000,
            Unit::Millis => 1_000_000,
            Unit::Seconds => 1_000_000_000,
            Unit::Minutes => 60_000_000_000,
            Unit::Hours => 3_600_000_000_000,
            Unit::Days => 86_400_000_000_000,
            Unit::Weeks => 604_800_000_000_000,
            Unit::Months | Unit::Years => return None,
        })
    }
}

/// Java's names of the days of the week, Monday first.
pub(crate) const WEEKDAYS: [&str; 7] = ["MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY"];

/// Java's names of the months.
pub(crate) const MONTHS: [&str; 12] =
    ["JANUARY", "FEBRUARY", "MARCH", "APRIL", "MAY", "JUNE", "JULY", "AUGUST", "SEPTEMBER", "OCTOBER", "NOVEMBER", "DECEMBER"];

fn name_of(names: &[&'static str], number: i8) -> &'static str {
    usize::try_from(number).ok().and_then(|at| names.get(at.wrapping_sub(1))).copied().unwrap_or_default()
}

impl Temporal {
    /// The kind of the value with its article, for messages.
    pub fn described(&self) -> &'static str {
        match self {
            Temporal::Date(_) => "a date",
            Temporal::DateTime(_) => "a local date-time",
            Temporal::Instant(_) => "an instant",
            Temporal::Duration(_) => "a duration",
            Temporal::Period(_) => "a period",
            Temporal::Weekday(_) => "a day of the week",
            Temporal::Month(_) => "a month",
            Temporal::Unit(_) => "a unit of time",
            Temporal::OffsetDateTime(_) => "a date-time with an offset",
        }
    }

    /// The day of the week of a date.
    pub(crate) fn weekday(date: civil::Date) -> Temporal {
        Temporal::Weekday(Weekday::to_monday_one_offset(date.weekday()))
    }

    /// Parses `YYYY-MM-DD` as a date and an ISO date-time as an instant. A date-time without an offset is in UTC.
    pub(crate) fn parse(text: &str) -> Option<Temporal> {
        if !text.contains(['T', 't']) {
            return parse_date(text).map(Temporal::Date);
        }
        parse_instant(text).or_else(|| parse_date_time(text).and_then(utc)).map(Temporal::Instant)
    }

    /// The wall clock time that the value shows: in UTC for an instant, at its offset for an `OffsetDateTime`, at midnight for a
    /// date.
    pub(crate) fn civil(&self) -> Option<civil::DateTime> {
        match self {
            Temporal::Date(date) => Some(date.at(0, 0, 0, 0)),
            Temporal::DateTime(at) => Some(*at),
            Temporal::Instant(at) => Some(in_utc(*at)),
            Temporal::OffsetDateTime(held) => Some(held.local()),
            _ => None,
        }
    }

    /// The instant of an instant or of a date-time with an offset.
    pub(crate) fn instant(&self) -> Option<Timestamp> {
        match self {
            Temporal::Instant(at) => Some(*at),
            Temporal::OffsetDateTime(held) => Some(held.instant()),
            _ => None,
        }
    }

    /// Adds `amount` units. `None` if the result is outside of the calendar.
    pub(crate) fn plus(&self, amount: i64, unit: Unit) -> Option<Temporal> {
        if let Some(nanos) = unit.nanos() {
            let nanos = nanos.checked_mul(i128::from(amount))?;
            let by = SignedDuration::try_from_nanos_i128(nanos)?;
            return Some(match self {
                Temporal::Date(date) => Temporal::Date(date.checked_add(by).ok()?),
                Temporal::DateTime(at) => Temporal::DateTime(at.checked_add(by).ok()?),
                Temporal::Instant(at) => Temporal::Instant(at.checked_add(by).ok()?),
                Temporal::Duration(held) => Temporal::Duration(held.checked_add(by)?),
                Temporal::OffsetDateTime(held) => {
                    Temporal::OffsetDateTime(OffsetDateTime::new(held.instant().checked_add(by).ok()?, held.offset_s())?)
                }
                _ => return None,
            });
        }
        let months = if unit == Unit::Years { amount.checked_mul(12)? } else { amount };
        let by = Span::new().try_months(months).ok()?;
        Some(match self {
            Temporal::Date(date) => Temporal::Date(date.checked_add(by).ok()?),
            Temporal::DateTime(at) => Temporal::DateTime(at.checked_add(by).ok()?),
            Temporal::Instant(at) => Temporal::Instant(utc(in_utc(*at).checked_add(by).ok()?)?),
            Temporal::OffsetDateTime(held) => {
                let local = held.local().checked_add(by).ok()?;
                Temporal::OffsetDateTime(OffsetDateTime::from_local(local, held.offset_s())?)
            }
            _ => return None,
        })
    }

    /// Whole units from this value to `end`, which must be of the same kind.
    pub(crate) fn until(&self, end: &Temporal, unit: Unit) -> Option<i64> {
        let (start, end) = match (self, end) {
            // Both are shown at the offset of the first one, as in Java.
            (Temporal::OffsetDateTime(start), Temporal::OffsetDateTime(end)) => {
                (start.local(), OffsetDateTime::new(end.instant(), start.offset_s())?.local())
            }
            _ => (self.civil()?, end.civil()?),
        };
        let whole = if let Some(nanos) = unit.nanos() {
            start.duration_until(end).as_nanos() / nanos
        } else {
            let months = i128::from(amount::months_between(start, end));
            if unit == Unit::Years { months / 12 } else { months }
        };
        i64::try_from(whole).ok()
    }
}

/// Returns the wall clock time in UTC.
pub(crate) fn in_utc(at: Timestamp) -> civil::DateTime {
    jiff::tz::Offset::UTC.to_datetime(at)
}

/// Returns the instant at which a UTC clock shows `at`.
pub(crate) fn utc(at: civil::DateTime) -> Option<Timestamp> {
    jiff::tz::Offset::UTC.to_timestamp(at).ok()
}

/// Parses `YYYY-MM-DD` and no other form.
pub(crate) fn parse_date(text: &str) -> Option<civil::Date> {
    let shape = text.bytes().enumerate().all(|(at, b)| if at == 4 || at == 7 { b == b'-' } else { b.is_ascii_digit() });
    if text.len() == 10 && shape { text.parse().ok() } else { None }
}

/// Whether a text is a date as RFC 3339 defines it: `YYYY-MM-DD`.
pub fn is_date(text: &str) -> bool {
    parse_date(text).is_some()
}

/// Whether a text is a date and time with an offset as RFC 3339 defines it. Seconds may be missing.
pub fn is_date_time(text: &str) -> bool {
    parse_instant(text).is_some()
}

/// For a text `YYYY-MM-DD…` whose day does not exist in its month: the number of days that the month has.
pub(crate) fn days_of_month(text: &str) -> Option<i8> {
    let first = parse_date(&format!("{}-01", text.get(..7)?))?;
    let day: i8 = text.get(7..10)?.strip_prefix('-')?.parse().ok()?;
    (day == 0 || day > first.days_in_month()).then(|| first.days_in_month())
}

/// Parses an ISO date-time with an offset or `Z`.
pub(crate) fn parse_instant(text: &str) -> Option<Timestamp> {
    // An offset without a colon or minutes is valid ISO too. A zone in brackets is not.
    if text.contains('[') { None } else { text.parse().ok() }
}

/// Parses an ISO date-time without an offset.
pub(crate) fn parse_date_time(text: &str) -> Option<civil::DateTime> {
    let time = text.split_once(['T', 't'])?.1;
    if time.contains(['Z', 'z', '+', '-', '[']) { None } else { text.parse().ok() }
}

/// Parses the date-time of an e-mail (RFC 2822), such as `Wed, 8 Jan 2026 14:30:00 +0000`.
pub(crate) fn parse_mail(text: &str) -> Option<Timestamp> {
    let parser = jiff::fmt::rfc2822::DateTimeParser::new().relaxed_weekday(true);
    parser.parse_timestamp(text).ok()
}

/// Formats as ISO 8601, like `toString` in Java.
impl fmt::Display for Temporal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Temporal::Date(date) => write!(f, "{date}"),
            Temporal::DateTime(at) => amount::write_date_time(*at, false, f),
            Temporal::Instant(at) => {
                amount::write_date_time(in_utc(*at), true, f)?;
                f.write_str("Z")
            }
            Temporal::Duration(held) => amount::write_duration(*held, f),
            Temporal::Period(held) => write!(f, "{held}"),
            Temporal::Weekday(day) => f.write_str(name_of(&WEEKDAYS, *day)),
            Temporal::Month(month) => f.write_str(name_of(&MONTHS, *month)),
            Temporal::Unit(unit) => f.write_str(unit.name()),
            Temporal::OffsetDateTime(held) => write!(f, "{held}"),
        }
    }
}
