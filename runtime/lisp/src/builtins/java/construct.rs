//! Builtins that make dates and times: the static methods of `java.time`, `java.util.Date.` and `parse`.

use jiff::civil::{Date, DateTime, Time};
use jiff::{SignedDuration, Timestamp};

use super::super::row::rows;
use super::offset::shown_in_zone;
use crate::args::{at, expected, fault, int, take, text};
use crate::machine::{Machine, Raised};
use crate::print::excerpt;
use crate::temporal::{self, Period, Style, Temporal, Unit};
use crate::{ErrorKind, Value};

pub(in crate::builtins) mod core {
    use super::{new_date, parse, rows};
    rows! { "ptc.core":
        "parse" ["[s]"] parse, "The date of YYYY-MM-DD, or the instant of an ISO date-time; in UTC without an offset." { "(parse \"2024-02-29\")" => "\"2024-02-29\"", "(parse \"2024-01-01T02:00:00+02:00\")" => "\"2024-01-01T00:00:00Z\"" };
        "java.util.Date." ["[]", "[x]"] new_date, "The instant now, or that of seconds or milliseconds since 1970, of an ISO or e-mail date, or of a date." { "(java.util.Date. \"2024-01-01\")" => "\"2024-01-01T00:00:00Z\"", "(.getTime (java.util.Date. 1700000000))" => "1700000000000" };
        "Date." ["[]", "[x]"] new_date, "The same as java.util.Date." { "(Date. 1700000000000)" => "\"2023-11-14T22:13:20Z\"" };
    }
}

pub(in crate::builtins) mod date {
    use super::{date_now, date_of, date_of_instant, of_epoch_day, parse_date, rows};
    rows! { "java.time.LocalDate":
        "parse" ["[s]", "[s pattern]"] parse_date, "The date of YYYY-MM-DD, or of a text as a pattern says; of a text with a time, the instant." { "(LocalDate/parse \"2024-02-29\")" => "\"2024-02-29\"", "(LocalDate/parse \"9 Feb 2024\" (DateTimeFormatter/ofPattern \"d MMM yyyy\"))" => "\"2024-02-09\"" };
        "now" ["[]"] date_now, "The date of today where the host is." { "(.isAfter (LocalDate/now) (LocalDate/parse \"1969-12-31\"))" => "true" };
        "of" ["[year month day]"] date_of, "A date; the month is a number or a Month." { "(LocalDate/of 2024 2 29)" => "\"2024-02-29\"" };
        "ofInstant" ["[instant zone]"] date_of_instant, "The date on a calendar in that zone." { "(LocalDate/ofInstant (Instant/parse \"2024-01-15T23:30:00Z\") (ZoneOffset/ofHours 2))" => "\"2024-01-16\"" };
        "ofEpochDay" ["[n]"] of_epoch_day, "The date n days after 1970-01-01." { "(LocalDate/ofEpochDay 1)" => "\"1970-01-02\"" };
    }
}

pub(in crate::builtins) mod date_time {
    use super::{date_time_now, date_time_of, date_time_of_instant, parse_date_time, rows};
    rows! { "java.time.LocalDateTime":
        "parse" ["[s]", "[s pattern]"] parse_date_time, "The date and time of an ISO text without an offset, or of a text as a pattern says." { "(LocalDateTime/parse \"2024-01-15T10:30:00\")" => "\"2024-01-15T10:30\"" };
        "now" ["[]"] date_time_now, "The date and time where the host is." { "(.isAfter (LocalDateTime/now) (LocalDateTime/of 1969 12 31 0 0))" => "true" };
        "ofInstant" ["[instant zone]"] date_time_of_instant, "The date and time that a clock in that zone shows." { "(LocalDateTime/ofInstant (Instant/ofEpochSecond 0) ZoneOffset/UTC)" => "\"1970-01-01T00:00\"" };
        "of" ["[year month day hour minute]", "[year month day hour minute second]", "[year month day hour minute second nano]"] date_time_of, "A date and time." { "(LocalDateTime/of 2024 1 15 10 30)" => "\"2024-01-15T10:30\"" };
    }
}

pub(in crate::builtins) mod instant {
    use super::{instant_now, of_epoch_milli, of_epoch_second, parse_instant, rows};
    rows! { "java.time.Instant":
        "parse" ["[s]"] parse_instant, "The instant of an ISO date-time with any offset; in UTC without one, and a date of a text without a time." { "(Instant/parse \"2024-01-01T00:00:00Z\")" => "\"2024-01-01T00:00:00Z\"", "(Instant/parse \"2024-01-01T02:00:00+02:00\")" => "\"2024-01-01T00:00:00Z\"" };
        "now" ["[]"] instant_now, "The instant of the host's clock." { "(pos? (.toEpochMilli (Instant/now)))" => "true" };
        "ofEpochMilli" ["[ms]"] of_epoch_milli, "The instant so many milliseconds after 1970." { "(Instant/ofEpochMilli 1500)" => "\"1970-01-01T00:00:01.500Z\"" };
        "ofEpochSecond" ["[s]"] of_epoch_second, "The instant so many seconds after 1970." { "(Instant/ofEpochSecond 60)" => "\"1970-01-01T00:01:00Z\"" };
    }
}

pub(in crate::builtins) mod duration {
    use super::{duration_between, of_days, of_hours, of_millis, of_minutes, of_nanos, of_seconds, parse_duration, rows};
    rows! { "java.time.Duration":
        "between" ["[start end]"] duration_between, "The duration from one instant or date-time to another." { "(Duration/between (parse \"2024-01-01T00:00:00Z\") (parse \"2024-01-02T12:00:00Z\"))" => "\"PT36H\"" };
        "parse" ["[s]"] parse_duration, "The duration of an ISO text such as PT1H30M or P2DT3H." { "(.toMinutes (Duration/parse \"PT1H30M\"))" => "90" };
        "ofDays" ["[n]"] of_days, "A duration of n days of 24 hours." { "(Duration/ofDays 2)" => "\"PT48H\"" };
        "ofHours" ["[n]"] of_hours, "A duration of n hours." { "(Duration/ofHours 2)" => "\"PT2H\"" };
        "ofMinutes" ["[n]"] of_minutes, "A duration of n minutes." { "(Duration/ofMinutes 90)" => "\"PT1H30M\"" };
        "ofSeconds" ["[n]"] of_seconds, "A duration of n seconds." { "(Duration/ofSeconds 5)" => "\"PT5S\"" };
        "ofMillis" ["[n]"] of_millis, "A duration of n milliseconds." { "(Duration/ofMillis 1500)" => "\"PT1.5S\"" };
        "ofNanos" ["[n]"] of_nanos, "A duration of n nanoseconds." { "(Duration/ofNanos 5)" => "\"PT0.000000005S\"" };
    }
}

pub(in crate::builtins) mod period {
    use super::{parse_period, period_between, period_days, period_months, period_of, period_weeks, period_years, rows};
    rows! { "java.time.Period":
        "between" ["[start end]"] period_between, "Years, months and days from one date to another; .getDays is the part that is left, not all days." { "(Period/between (LocalDate/of 2024 1 31) (LocalDate/of 2024 3 1))" => "\"P1M1D\"" };
        "of" ["[years months days]"] period_of, "A period." { "(Period/of 1 2 3)" => "\"P1Y2M3D\"" };
        "ofDays" ["[n]"] period_days, "A period of n days." { "(.plus (LocalDate/of 2024 2 28) (Period/ofDays 2))" => "\"2024-03-01\"" };
        "ofWeeks" ["[n]"] period_weeks, "A period of n weeks." { "(Period/ofWeeks 2)" => "\"P14D\"" };
        "ofMonths" ["[n]"] period_months, "A period of n months." { "(Period/ofMonths 5)" => "\"P5M\"" };
        "ofYears" ["[n]"] period_years, "A period of n years." { "(Period/ofYears 1)" => "\"P1Y\"" };
        "parse" ["[s]"] parse_period, "The period of an ISO text such as P1Y2M3D." { "(.getDays (Period/parse \"P1M10D\"))" => "10" };
    }
}

pub(in crate::builtins) mod formatter {
    use super::{of_pattern, rows};
    rows! { "java.time.format.DateTimeFormatter":
        "ofPattern" ["[pattern]"] of_pattern, "The pattern, checked, for .format and parse." { "(.format (LocalDate/of 2024 1 5) (DateTimeFormatter/ofPattern \"dd MMM yyyy\"))" => "\"05 Jan 2024\"" };
    }
}

/// Raises a fault for a text that is not a valid date or time.
pub(super) fn unreadable(m: &mut Machine, name: &str, text: &str, wanted: &str) -> Raised {
    if let Some(days) = temporal::days_of_month(text) {
        let raised =
            fault(m, ErrorKind::TypeError, name, &format!("{:?} is not a day: its month has {days} days", excerpt(text)));
        return m.advise(
            raised,
            "check where the text comes from, or make the day with (.plusMonths d n) and its like, which stay in the month",
        );
    }
    let raised = fault(m, ErrorKind::TypeError, name, &format!("{:?} is not {wanted}", excerpt(text)));
    if wanted.starts_with("an ISO date") {
        return m.advise(raised, "another form is read with its pattern, as in (LocalDate/parse s \"MM/dd/yyyy\")");
    }
    raised
}

/// Raises a fault for a number that leads out of the calendar's range.
pub(super) fn beyond(m: &mut Machine, name: &str) -> Raised {
    let message = format!("({name} …): the result is outside of the years -9999 to 9999");
    m.raise_with_hint(ErrorKind::ArithmeticError, message, "check the number: is it in the unit that the name says?")
}

fn parse(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    parse_named(m, "parse", args)
}

fn parse_instant(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    parse_named(m, "Instant/parse", args)
}

fn parse_named(m: &mut Machine, name: &str, args: &[Value]) -> Result<Value, Raised> {
    let Value::Str(text) = at(args, 0) else { return Err(expected(m, name, "the text of a date or time", 0, at(args, 0))) };
    match Temporal::parse(text.as_str()) {
        Some(value) => Ok(value.into()),
        None => Err(unreadable(m, name, text.as_str(), "an ISO date such as 2024-01-31 or 2024-01-31T12:00:00Z")),
    }
}

/// Parses a text with the pattern in the second argument.
pub(super) fn by_pattern(
    m: &mut Machine,
    name: &str,
    args: &[Value],
    read: impl Fn(&str, &Style<'_>) -> Option<Temporal>,
) -> Result<Value, Raised> {
    let subject = text(m, name, args, 0)?.as_str();
    let pattern = text(m, name, args, 1)?.as_str();
    let style = Style::parse(pattern).map_err(|why| fault(m, ErrorKind::TypeError, name, &why))?;
    if let Some(value) = read(subject, &style) {
        return Ok(value.into());
    }
    let raised = unreadable(m, name, subject, &format!("a date or time that is written as {}", excerpt(pattern)));
    let hint =
        "yyyy, MM, dd, HH, mm and ss take as many digits as they are long, d, M and H one or two; MMM takes Jan, MMMM January";
    Err(m.advise(raised, hint))
}

fn parse_date(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if args.len() < 2 {
        return parse_named(m, "LocalDate/parse", args);
    }
    by_pattern(m, "LocalDate/parse", args, |text, style| temporal::read_date(text, style).map(Temporal::Date))
}

fn parse_date_time(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if args.len() > 1 {
        return by_pattern(m, "LocalDateTime/parse", args, |text, style| {
            temporal::read_date_time(text, style).map(Temporal::DateTime)
        });
    }
    let text = text(m, "LocalDateTime/parse", args, 0)?.as_str();
    match temporal::parse_date_time(text) {
        Some(value) => Ok(Temporal::DateTime(value).into()),
        None => {
            Err(unreadable(m, "LocalDateTime/parse", text, "an ISO date-time without an offset, such as 2024-01-31T12:00:00"))
        }
    }
}

/// A timestamp below this number is in seconds, otherwise in milliseconds. As seconds it would be after the year 33000.
const SECONDS_BELOW: u64 = 1_000_000_000_000;

fn new_date(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    const NAME: &str = "java.util.Date.";
    let found = match at(args, 0) {
        _ if args.is_empty() => return instant_now(m, args),
        Value::Int(i) if i.unsigned_abs() < SECONDS_BELOW => Timestamp::from_second(*i).ok(),
        Value::Int(i) => Timestamp::from_millisecond(*i).ok(),
        Value::Str(text) => {
            let read = match Temporal::parse(text.as_str()) {
                Some(Temporal::Date(date)) => temporal::utc(date.at(0, 0, 0, 0)),
                Some(Temporal::Instant(at)) => Some(at),
                _ => temporal::parse_mail(text.as_str()),
            };
            let Some(read) = read else { return Err(unreadable(m, NAME, text.as_str(), "an ISO or e-mail date")) };
            Some(read)
        }
        Value::Temporal(held) => match **held {
            Temporal::Instant(_) => return Ok(take(args, 0)),
            Temporal::OffsetDateTime(held) => Some(held.instant()),
            Temporal::Date(_) | Temporal::DateTime(_) => held.civil().and_then(temporal::utc),
            _ => return Err(expected(m, NAME, "a timestamp, a date or its text", 0, at(args, 0))),
        },
        other => return Err(expected(m, NAME, "a timestamp, a date or its text", 0, other)),
    };
    found.map(|at| Temporal::Instant(at).into()).ok_or(()).map_err(|()| beyond(m, NAME))
}

/// Returns the current instant of the host's clock.
pub(super) fn clock(m: &mut Machine, name: &str) -> Result<Timestamp, Raised> {
    let now = m.host().now_ms();
    Timestamp::from_millisecond(now).map_err(|_| beyond(m, name))
}

/// Returns the current local time of the host.
fn wall(m: &mut Machine, name: &str) -> Result<DateTime, Raised> {
    let now = clock(m, name)?;
    let offset = m.host().utc_offset_s(now.as_millisecond());
    let there = now.checked_add(SignedDuration::from_secs(i64::from(offset)));
    there.map(temporal::in_utc).map_err(|_| beyond(m, name))
}

fn instant_now(m: &mut Machine, _: &mut [Value]) -> Result<Value, Raised> {
    clock(m, "Instant/now").map(|now| Temporal::Instant(now).into())
}

fn date_now(m: &mut Machine, _: &mut [Value]) -> Result<Value, Raised> {
    wall(m, "LocalDate/now").map(|now| Temporal::Date(now.date()).into())
}

fn date_time_now(m: &mut Machine, _: &mut [Value]) -> Result<Value, Raised> {
    wall(m, "LocalDateTime/now").map(|now| Temporal::DateTime(now).into())
}

/// Returns the date given by the first three arguments.
pub(super) fn date(m: &mut Machine, name: &str, args: &[Value]) -> Result<Date, Raised> {
    let year = int(m, name, args, 0)?;
    let month = match at(args, 1).as_temporal() {
        Some(Temporal::Month(month)) => i64::from(month),
        _ => int(m, name, args, 1)?,
    };
    let day = int(m, name, args, 2)?;
    let made = match (i16::try_from(year), i8::try_from(month), i8::try_from(day)) {
        (Ok(year), Ok(month), Ok(day)) => Date::new(year, month, day).ok(),
        _ => None,
    };
    made.ok_or(()).map_err(|()| fault(m, ErrorKind::TypeError, name, &format!("there is no date {year}-{month:02}-{day:02}")))
}

fn date_of(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    date(m, "LocalDate/of", args).map(|date| Temporal::Date(date).into())
}

fn date_time_of(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    const NAME: &str = "LocalDateTime/of";
    let date = date(m, NAME, args)?;
    let time = time_of_day(m, NAME, args, 3)?;
    Ok(Temporal::DateTime(DateTime::from_parts(date, time)).into())
}

/// Returns the time given by the arguments from `from` on: hour and minute, optionally second and nanosecond.
pub(super) fn time_of_day(m: &mut Machine, name: &str, args: &[Value], from: usize) -> Result<Time, Raised> {
    let (hour, minute) = (int(m, name, args, from)?, int(m, name, args, from + 1)?);
    let second = if args.len() > from + 2 { int(m, name, args, from + 2)? } else { 0 };
    let nano = if args.len() > from + 3 { int(m, name, args, from + 3)? } else { 0 };
    let time = match (i8::try_from(hour), i8::try_from(minute), i8::try_from(second), i32::try_from(nano)) {
        (Ok(hour), Ok(minute), Ok(second), Ok(nano)) => Time::new(hour, minute, second, nano).ok(),
        _ => None,
    };
    time.ok_or(()).map_err(|()| {
        let fraction = if nano == 0 { String::new() } else { format!(".{nano:09}") };
        fault(m, ErrorKind::TypeError, name, &format!("there is no time {hour:02}:{minute:02}:{second:02}{fraction}"))
    })
}

fn date_of_instant(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    shown_in_zone(m, "LocalDate/ofInstant", args).map(|held| Temporal::Date(held.local().date()).into())
}

fn date_time_of_instant(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    shown_in_zone(m, "LocalDateTime/ofInstant", args).map(|held| Temporal::DateTime(held.local()).into())
}

fn of_epoch_day(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let days = int(m, "LocalDate/ofEpochDay", args, 0)?;
    let epoch = Temporal::Date(Date::constant(1970, 1, 1));
    epoch.plus(days, Unit::Days).map(Value::from).ok_or(()).map_err(|()| beyond(m, "LocalDate/ofEpochDay"))
}

fn of_epoch_milli(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let ms = int(m, "Instant/ofEpochMilli", args, 0)?;
    let made = Timestamp::from_millisecond(ms).map_err(|_| beyond(m, "Instant/ofEpochMilli"));
    made.map(|at| Temporal::Instant(at).into())
}

fn of_epoch_second(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let seconds = int(m, "Instant/ofEpochSecond", args, 0)?;
    let made = Timestamp::from_second(seconds).map_err(|_| beyond(m, "Instant/ofEpochSecond"));
    made.map(|at| Temporal::Instant(at).into())
}

macro_rules! amounts {
    ($($name:ident $label:literal $unit:ident;)*) => {$(
        fn $name(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
            let n = int(m, $label, args, 0)?;
            let made = Temporal::Duration(SignedDuration::ZERO).plus(n, Unit::$unit);
            made.map(Value::from).ok_or(()).map_err(|()| beyond(m, $label))
        }
    )*};
}

amounts! {
    of_days "Duration/ofDays" Days;
    of_hours "Duration/ofHours" Hours;
    of_minutes "Duration/ofMinutes" Minutes;
    of_seconds "Duration/ofSeconds" Seconds;
    of_millis "Duration/ofMillis" Millis;
    of_nanos "Duration/ofNanos" Nanos;
}

fn duration_between(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    const NAME: &str = "Duration/between";
    let made = match (at(args, 0).as_temporal(), at(args, 1).as_temporal()) {
        (Some(Temporal::DateTime(start)), Some(Temporal::DateTime(end))) => Some(start.duration_until(end)),
        (Some(start), Some(end)) => start.instant().zip(end.instant()).map(|(start, end)| start.duration_until(end)),
        _ => None,
    };
    let Some(made) = made else {
        let timed = |value: &Value| {
            value.as_temporal().is_some_and(|held| held.instant().is_some() || matches!(held, Temporal::DateTime(_)))
        };
        let wrong = usize::from(timed(at(args, 0)));
        let wanted = if timed(at(args, 1 - wrong)) { "an instant, as the other one" } else { "an instant" };
        let raised = expected(m, NAME, wanted, wrong, at(args, wrong));
        // A text keeps the general hint for instants, which is to parse it.
        if let (Value::Temporal(_), Some(fault)) = (at(args, wrong), &mut m.fault) {
            fault.hint = Some("for dates use (.until a b ChronoUnit/DAYS), or subtract their .toEpochDay".to_owned());
        }
        return Err(raised);
    };
    Ok(Temporal::Duration(made).into())
}

fn parse_duration(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let text = text(m, "Duration/parse", args, 0)?.as_str();
    match temporal::parse_duration(text) {
        Some(value) => Ok(Temporal::Duration(value).into()),
        None => Err(unreadable(m, "Duration/parse", text, "an ISO duration such as PT1H30M")),
    }
}

fn parse_period(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let text = text(m, "Period/parse", args, 0)?.as_str();
    match temporal::parse_period(text) {
        Some(value) => Ok(Temporal::Period(value).into()),
        None => Err(unreadable(m, "Period/parse", text, "an ISO period such as P1Y2M3D")),
    }
}

/// Returns an argument that is a number of years, months or days.
fn small(m: &mut Machine, name: &str, args: &[Value], index: usize) -> Result<i32, Raised> {
    let n = int(m, name, args, index)?;
    i32::try_from(n).map_err(|_| beyond(m, name))
}

fn period_of(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    const NAME: &str = "Period/of";
    let (years, months, days) = (small(m, NAME, args, 0)?, small(m, NAME, args, 1)?, small(m, NAME, args, 2)?);
    Ok(Temporal::Period(Period { years, months, days }).into())
}

fn period_days(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let days = small(m, "Period/ofDays", args, 0)?;
    Ok(Temporal::Period(Period { days, ..Period::default() }).into())
}

fn period_weeks(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let days = small(m, "Period/ofWeeks", args, 0)?.checked_mul(7).ok_or(()).map_err(|()| beyond(m, "Period/ofWeeks"))?;
    Ok(Temporal::Period(Period { days, ..Period::default() }).into())
}

fn period_months(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let months = small(m, "Period/ofMonths", args, 0)?;
    Ok(Temporal::Period(Period { months, ..Period::default() }).into())
}

fn period_years(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let years = small(m, "Period/ofYears", args, 0)?;
    Ok(Temporal::Period(Period { years, ..Period::default() }).into())
}

fn period_between(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let mut dates = [Date::ZERO; 2];
    for (index, date) in dates.iter_mut().enumerate() {
        match at(args, index).as_temporal() {
            Some(Temporal::Date(held)) => *date = held,
            _ => return Err(expected(m, "Period/between", "a date", index, at(args, index))),
        }
    }
    let [start, end] = dates;
    Ok(Temporal::Period(Period::between(start, end)).into())
}

fn of_pattern(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let pattern = text(m, "DateTimeFormatter/ofPattern", args, 0)?.as_str();
    match Style::parse(pattern) {
        Ok(_) => Ok(take(args, 0)),
        Err(why) => Err(fault(m, ErrorKind::TypeError, "DateTimeFormatter/ofPattern", &why)),
    }
}
