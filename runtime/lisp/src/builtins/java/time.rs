//! Methods of dates, times and amounts of time.

use super::super::row::rows;
use super::construct::beyond;
use super::offset::zone_argument;
use crate::args::{at, expected, fault, int, take, text};
use crate::machine::{Machine, Raised};
use crate::temporal::{self, OffsetDateTime, Period, Style, Temporal, Unit};
use crate::{ErrorKind, Value};

rows! { "java.time":
    ".plusDays" ["[date n]"] plus_days, "The date n days later; a date-time, duration or period longer by n days." { "(.plusDays (LocalDate/of 2024 2 28) 2)" => "\"2024-03-01\"" };
    ".plusWeeks" ["[date n]"] plus_weeks, "The date n weeks later." { "(.plusWeeks (LocalDate/of 2024 1 1) 1)" => "\"2024-01-08\"" };
    ".plusMonths" ["[date n]"] plus_months, "The date n months later, at the end of the month where it has no such day." { "(.plusMonths (LocalDate/of 2024 1 31) 1)" => "\"2024-02-29\"" };
    ".plusYears" ["[date n]"] plus_years, "The date n years later." { "(.plusYears (LocalDate/of 2024 2 29) 1)" => "\"2025-02-28\"" };
    ".plusHours" ["[x n]"] plus_hours, "The date-time or duration n hours later." { "(.plusHours (LocalDateTime/of 2024 1 1 23 0) 2)" => "\"2024-01-02T01:00\"" };
    ".plusMinutes" ["[x n]"] plus_minutes, "The date-time or duration n minutes later." { "(.plusMinutes (Duration/ofHours 1) 30)" => "\"PT1H30M\"" };
    ".plusSeconds" ["[x n]"] plus_seconds, "The instant, date-time or duration n seconds later." { "(.plusSeconds (Instant/ofEpochSecond 0) 90)" => "\"1970-01-01T00:01:30Z\"" };
    ".plusMillis" ["[x n]"] plus_millis, "The instant or duration n milliseconds later." { "(.toEpochMilli (.plusMillis (Instant/ofEpochMilli 5) 10))" => "15" };
    ".plusNanos" ["[x n]"] plus_nanos, "The instant, date-time or duration n nanoseconds later." { "(.plusNanos Duration/ZERO 1000000)" => "\"PT0.001S\"" };
    ".minusDays" ["[date n]"] minus_days, "The date n days earlier." { "(.minusDays (LocalDate/of 2024 3 1) 1)" => "\"2024-02-29\"" };
    ".minusWeeks" ["[date n]"] minus_weeks, "The date n weeks earlier." { "(.minusWeeks (LocalDate/of 2024 1 8) 1)" => "\"2024-01-01\"" };
    ".minusMonths" ["[date n]"] minus_months, "The date n months earlier." { "(.minusMonths (LocalDate/of 2024 3 31) 1)" => "\"2024-02-29\"" };
    ".minusYears" ["[date n]"] minus_years, "The date n years earlier." { "(.minusYears (LocalDate/of 2024 2 29) 4)" => "\"2020-02-29\"" };
    ".minusHours" ["[x n]"] minus_hours, "The date-time or duration n hours earlier." { "(.minusHours (Duration/ofHours 3) 1)" => "\"PT2H\"" };
    ".minusMinutes" ["[x n]"] minus_minutes, "The date-time or duration n minutes earlier." { "(.minusMinutes (Duration/ofHours 1) 30)" => "\"PT30M\"" };
    ".minusSeconds" ["[x n]"] minus_seconds, "The instant, date-time or duration n seconds earlier." { "(.minusSeconds (Instant/ofEpochSecond 60) 30)" => "\"1970-01-01T00:00:30Z\"" };
    ".minusMillis" ["[x n]"] minus_millis, "The instant or duration n milliseconds earlier." { "(.toMillis (.minusMillis (Duration/ofSeconds 1) 1))" => "999" };
    ".plus" ["[x amount]", "[x n unit]"] plus, "A date or time later by a duration or period, or by n units." { "(.plus (parse \"2024-01-01T00:00:00Z\") (Duration/ofHours 36))" => "\"2024-01-02T12:00:00Z\"", "(.plus (LocalDate/of 2024 1 1) 2 ChronoUnit/WEEKS)" => "\"2024-01-15\"" };
    ".minus" ["[x amount]", "[x n unit]"] minus, "A date or time earlier by a duration or period, or by n units." { "(.minus (LocalDate/of 2024 3 31) (Period/ofMonths 1))" => "\"2024-02-29\"" };
    ".isBefore" ["[a b]"] is_before, "Whether a comes before b, which is of the same kind." { "(.isBefore (LocalDate/of 2023 1 1) (LocalDate/of 2023 12 31))" => "true" };
    ".isAfter" ["[a b]"] is_after, "Whether a comes after b, which is of the same kind." { "(.isAfter (Date. 10) (Date. 5))" => "true" };
    ".isEqual" ["[a b]"] is_equal, "Whether a and b, of the same kind, are the same date or time." { "(.isEqual (LocalDate/of 2024 1 1) (LocalDate/parse \"2024-01-01\"))" => "true" };
    ".before" ["[a b]"] is_before, "The same as .isBefore." { "(.before (Date. 5) (Date. 10))" => "true" };
    ".after" ["[a b]"] is_after, "The same as .isAfter." { "(.after (Date. 5) (Date. 10))" => "false" };
    ".getYear" ["[date]"] get_year, "The year of a date or date-time." { "(.getYear (LocalDate/of 2024 2 29))" => "2024" };
    ".getMonth" ["[date]"] get_month, "The month of a date or date-time." { "(.getMonth (LocalDate/of 2024 2 29))" => "\"FEBRUARY\"" };
    ".getMonthValue" ["[date]"] get_month_value, "The month of a date or date-time as a number from 1 to 12." { "(.getMonthValue (LocalDate/of 2024 2 29))" => "2" };
    ".getDayOfMonth" ["[date]"] get_day, "The day of the month." { "(.getDayOfMonth (LocalDate/of 2024 2 29))" => "29" };
    ".getDayOfYear" ["[date]"] get_day_of_year, "The day of the year, from 1." { "(.getDayOfYear (LocalDate/of 2024 2 29))" => "60" };
    ".getDayOfWeek" ["[date]"] get_weekday, "The day of the week." { "(.getDayOfWeek (LocalDate/of 2024 2 29))" => "\"THURSDAY\"", "(= (.getDayOfWeek (LocalDate/of 2024 2 29)) DayOfWeek/THURSDAY)" => "true" };
    ".getHour" ["[date-time]"] get_hour, "The hour of a date-time." { "(.getHour (LocalDateTime/of 2024 1 1 9 30))" => "9" };
    ".getMinute" ["[date-time]"] get_minute, "The minute of a date-time." { "(.getMinute (LocalDateTime/of 2024 1 1 9 30))" => "30" };
    ".getSecond" ["[date-time]"] get_second, "The second of a date-time." { "(.getSecond (LocalDateTime/of 2024 1 1 9 30 15))" => "15" };
    ".getNano" ["[x]"] get_nano, "The nanoseconds within the second of a date-time, instant or duration." { "(.getNano (Duration/ofMillis 5))" => "5000000" };
    ".getValue" ["[x]"] get_value, "The number of a day of the week, from Monday, or of a month." { "(.getValue (.getDayOfWeek (LocalDate/of 2024 2 29)))" => "4" };
    ".lengthOfMonth" ["[date]"] length_of_month, "The number of days of a date's month." { "(.lengthOfMonth (LocalDate/of 2024 2 1))" => "29" };
    ".lengthOfYear" ["[date]"] length_of_year, "The number of days of a date's year." { "(.lengthOfYear (LocalDate/of 2024 2 1))" => "366" };
    ".isLeapYear" ["[date]"] is_leap_year, "Whether a date's year has 366 days." { "(.isLeapYear (LocalDate/of 2024 2 1))" => "true" };
    ".withYear" ["[date n]"] with_year, "The date in another year." { "(.withYear (LocalDate/of 2024 2 29) 2023)" => "\"2023-02-28\"" };
    ".withMonth" ["[date n]"] with_month, "The date in another month." { "(.withMonth (LocalDate/of 2024 1 31) 2)" => "\"2024-02-29\"" };
    ".withDayOfMonth" ["[date n]"] with_day, "The date on another day of its month." { "(.withDayOfMonth (LocalDate/of 2024 1 31) 1)" => "\"2024-01-01\"" };
    ".toEpochDay" ["[date]"] to_epoch_day, "Days since 1970-01-01." { "(.toEpochDay (LocalDate/of 1970 1 11))" => "10", "(- (.toEpochDay (LocalDate/of 2024 3 1)) (.toEpochDay (LocalDate/of 2024 2 1)))" => "29" };
    ".toEpochMilli" ["[instant]"] to_epoch_milli, "Milliseconds since 1970." { "(.toEpochMilli (parse \"1970-01-01T00:00:01Z\"))" => "1000" };
    ".getTime" ["[instant]"] get_time, "Milliseconds since 1970." { "(.getTime (java.util.Date. \"1970-01-02\"))" => "86400000" };
    ".getEpochSecond" ["[instant]"] to_epoch_second, "Seconds since 1970, rounded down." { "(.getEpochSecond (parse \"1970-01-01T00:01:00Z\"))" => "60" };
    ".toInstant" ["[x]", "[x offset]"] to_instant, "The instant itself, that of a date-time with an offset, or that of a local date-time at an offset." { "(.toInstant (Date. 0))" => "\"1970-01-01T00:00:00Z\"" };
    ".toLocalDate" ["[x]"] to_local_date, "The date of a date-time, or of an instant in UTC." { "(.toLocalDate (parse \"2024-01-15T23:00:00Z\"))" => "\"2024-01-15\"" };
    ".atStartOfDay" ["[date]", "[date zone]"] at_start_of_day, "The date-time of a date's midnight, with the offset of a zone where one is given." { "(.atStartOfDay (LocalDate/of 2024 1 15))" => "\"2024-01-15T00:00\"" };
    ".until" ["[a b]", "[a b unit]"] until, "The period from date a to date b, or whole units from a to b." { "(.until (LocalDate/of 2024 1 1) (LocalDate/of 2024 3 1) ChronoUnit/DAYS)" => "60", "(.until (LocalDate/of 2024 1 1) (LocalDate/of 2024 3 1))" => "\"P2M\"" };
    ".format" ["[date pattern]"] format, "A date or time as a pattern says." { "(.format (LocalDate/of 2024 2 9) \"dd/MM/yyyy\")" => "\"09/02/2024\"" };
    ".truncatedTo" ["[x unit]"] truncated_to, "An instant or date-time without what is smaller than a unit up to days." { "(.truncatedTo (parse \"2024-01-15T10:45:30Z\") ChronoUnit/HOURS)" => "\"2024-01-15T10:00:00Z\"" };
    ".toDays" ["[duration]"] to_days, "Whole days of a duration, towards 0." { "(.toDays (Duration/ofHours 50))" => "2" };
    ".toHours" ["[duration]"] to_hours, "Whole hours of a duration." { "(.toHours (Duration/ofMinutes 150))" => "2" };
    ".toMinutes" ["[duration]"] to_minutes, "Whole minutes of a duration." { "(.toMinutes (Duration/ofSeconds 150))" => "2" };
    ".toSeconds" ["[duration]"] to_seconds, "Whole seconds of a duration." { "(.toSeconds (Duration/ofMillis 2500))" => "2" };
    ".getSeconds" ["[duration]"] to_seconds, "Whole seconds of a duration." { "(.getSeconds (Duration/ofMinutes 2))" => "120" };
    ".toMillis" ["[duration]"] to_millis, "Milliseconds of a duration." { "(.toMillis (Duration/ofSeconds 2))" => "2000" };
    ".toNanos" ["[duration]"] to_nanos, "Nanoseconds of a duration." { "(.toNanos (Duration/ofMillis 1))" => "1000000" };
    ".getDays" ["[period]"] get_days, "The days of a period, without its months and years." { "(.getDays (Period/of 1 2 3))" => "3" };
    ".getMonths" ["[period]"] get_months, "The months of a period, without its years." { "(.getMonths (Period/of 1 2 3))" => "2" };
    ".getYears" ["[period]"] get_years, "The years of a period." { "(.getYears (Period/of 1 2 3))" => "1" };
    ".toTotalMonths" ["[period]"] total_months, "The years and months of a period as months." { "(.toTotalMonths (Period/of 1 2 3))" => "14" };
    ".isNegative" ["[x]"] is_negative, "Whether a duration is below 0, or any part of a period is." { "(.isNegative (Duration/ofHours -1))" => "true" };
    ".isZero" ["[x]"] is_zero, "Whether a duration or period is 0." { "(.isZero Duration/ZERO)" => "true" };
    ".negated" ["[x]"] negated, "A duration or period with the opposite sign." { "(.negated (Duration/ofHours 2))" => "\"PT-2H\"" };
}

pub(in crate::builtins) mod unit {
    use super::{between, rows};
    rows! { "java.time":
        ".between" ["[unit a b]"] between, "Whole units from a to b, as in (.between ChronoUnit/DAYS a b)." { "(.between ChronoUnit/DAYS (LocalDate/of 2024 1 1) (LocalDate/of 2024 12 31))" => "365" };
    }
}

pub(in crate::builtins) mod core {
    use super::{inst_ms, is_inst, rows};
    rows! { "clojure.core":
        "inst?" ["[x]"] is_inst, "Whether it is an instant." { "(inst? (java.util.Date. 0))" => "true" };
        "inst-ms" ["[inst]"] inst_ms, "Milliseconds of an instant since 1970." { "(inst-ms (parse \"1970-01-01T00:00:01Z\"))" => "1000" };
    }
}

/// Whether values of this kind can be moved by a unit.
fn moves_by(value: &Temporal, unit: Unit) -> bool {
    match value {
        Temporal::Date(_) => unit >= Unit::Days,
        Temporal::DateTime(_) | Temporal::OffsetDateTime(_) => true,
        Temporal::Instant(_) => unit <= Unit::Seconds,
        Temporal::Duration(_) => unit <= Unit::Days,
        _ => false,
    }
}

/// Moves a value by a number of units, for the methods with a unit in their name.
fn moved(m: &mut Machine, name: &str, args: &[Value], unit: Unit, sign: i64) -> Result<Value, Raised> {
    let n = match at(args, 1) {
        Value::Int(n) => *n,
        other => return Err(expected(m, name, "an integer", 1, other)),
    };
    let n = n.checked_mul(sign).ok_or(()).map_err(|()| beyond(m, name))?;
    let held = at(args, 0).as_temporal();
    if let Some(Temporal::Period(period)) = held
        && let Some(period) = longer(period, n, unit)
    {
        return Ok(Temporal::Period(period).into());
    }
    if let Some(held) = held.filter(|held| moves_by(held, unit)) {
        return held.plus(n, unit).map(Value::from).ok_or(()).map_err(|()| beyond(m, name));
    }
    let wanted = match unit {
        Unit::Days | Unit::Weeks | Unit::Months | Unit::Years => "a date or date-time",
        Unit::Hours | Unit::Minutes => "a date-time or duration",
        _ => "an instant, date-time or duration",
    };
    let raised = expected(m, name, wanted, 0, at(args, 0));
    if let (Some(Temporal::Instant(_)), Some(fault)) = (held, &mut m.fault) {
        fault.hint = Some("move an instant by a duration: (.plus x (Duration/ofDays n))".to_owned());
    }
    Err(raised)
}

/// Adds years, months or days to a period.
fn longer(mut period: Period, n: i64, unit: Unit) -> Option<Period> {
    let n = i32::try_from(n).ok()?;
    let part = match unit {
        Unit::Years => &mut period.years,
        Unit::Months => &mut period.months,
        Unit::Days => &mut period.days,
        _ => return None,
    };
    *part = part.checked_add(n)?;
    Some(period)
}

macro_rules! moves {
    ($($name:ident $label:literal $unit:ident $sign:literal;)*) => {$(
        fn $name(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
            moved(m, $label, args, Unit::$unit, $sign)
        }
    )*};
}

moves! {
    plus_days ".plusDays" Days 1;
    plus_weeks ".plusWeeks" Weeks 1;
    plus_months ".plusMonths" Months 1;
    plus_years ".plusYears" Years 1;
    plus_hours ".plusHours" Hours 1;
    plus_minutes ".plusMinutes" Minutes 1;
    plus_seconds ".plusSeconds" Seconds 1;
    plus_millis ".plusMillis" Millis 1;
    plus_nanos ".plusNanos" Nanos 1;
    minus_days ".minusDays" Days -1;
    minus_weeks ".minusWeeks" Weeks -1;
    minus_months ".minusMonths" Months -1;
    minus_years ".minusYears" Years -1;
    minus_hours ".minusHours" Hours -1;
    minus_minutes ".minusMinutes" Minutes -1;
    minus_seconds ".minusSeconds" Seconds -1;
    minus_millis ".minusMillis" Millis -1;
}

fn plus(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    shifted(m, ".plus", args, 1)
}

fn minus(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    shifted(m, ".minus", args, -1)
}

fn shifted(m: &mut Machine, name: &str, args: &[Value], sign: i64) -> Result<Value, Raised> {
    if args.len() > 2 {
        let unit = unit_of(m, name, args, 2)?;
        let held = at(args, 0).as_temporal();
        if matches!(held, Some(Temporal::Instant(_))) && unit <= Unit::Days {
            let n = int(m, name, args, 1)?.checked_mul(sign);
            let made = n.and_then(|n| held?.plus(n, unit));
            return made.map(Value::from).ok_or(()).map_err(|()| beyond(m, name));
        }
        return moved(m, name, args, unit, sign);
    }
    let (Some(held), Some(amount)) = (at(args, 0).as_temporal(), at(args, 1).as_temporal()) else {
        let wrong = usize::from(at(args, 0).as_temporal().is_some());
        let wanted =
            if wrong == 0 { "a date, a time or an amount of time" } else { "a duration or period, or a number and a unit" };
        return Err(expected(m, name, wanted, wrong, at(args, wrong)));
    };
    let made = match (held, amount) {
        (Temporal::Period(a), Temporal::Period(b)) => {
            let by = |n: i32| i64::from(n) * sign;
            let years = longer(a, by(b.years), Unit::Years);
            let months = years.and_then(|made| longer(made, by(b.months), Unit::Months));
            months.and_then(|made| longer(made, by(b.days), Unit::Days)).map(Temporal::Period)
        }
        (Temporal::Date(_) | Temporal::DateTime(_), Temporal::Period(period)) => {
            let months = held.plus(period.total_months() * sign, Unit::Months);
            months.and_then(|made| made.plus(i64::from(period.days) * sign, Unit::Days))
        }
        (Temporal::DateTime(_) | Temporal::Instant(_) | Temporal::Duration(_), Temporal::Duration(by)) => {
            let seconds = held.plus(by.as_secs().saturating_mul(sign), Unit::Seconds);
            seconds.and_then(|made| made.plus(i64::from(by.subsec_nanos()) * sign, Unit::Nanos))
        }
        _ => {
            let message = format!("{} cannot be moved by {}", held.described(), amount.described());
            return Err(fault(m, ErrorKind::TypeError, name, &message));
        }
    };
    made.map(Value::from).ok_or(()).map_err(|()| beyond(m, name))
}

/// Returns an argument that is a unit such as `ChronoUnit/DAYS`.
fn unit_of(m: &mut Machine, name: &str, args: &[Value], index: usize) -> Result<Unit, Raised> {
    match at(args, index).as_temporal() {
        Some(Temporal::Unit(unit)) => Ok(unit),
        _ => Err(expected(m, name, "a unit such as ChronoUnit/DAYS", index, at(args, index))),
    }
}

/// Returns two arguments that are dates or times of the same kind.
fn pair(m: &mut Machine, name: &str, args: &[Value], from: usize) -> Result<(Temporal, Temporal), Raised> {
    for index in from..from + 2 {
        if at(args, index).as_temporal().and_then(|held| held.civil()).is_none() {
            return Err(expected(m, name, "a date or time", index, at(args, index)));
        }
    }
    match (at(args, from).as_temporal(), at(args, from + 1).as_temporal()) {
        (Some(a), Some(b)) if std::mem::discriminant(&a) == std::mem::discriminant(&b) => Ok((a, b)),
        (Some(a), Some(b)) => {
            let message = format!("{} cannot be compared with {}", a.described(), b.described());
            let raised = fault(m, ErrorKind::TypeError, name, &message);
            if let Some(fault) = &mut m.fault {
                fault.hint = Some("make them of one kind, for instance with (.toLocalDate instant)".to_owned());
            }
            Err(raised)
        }
        _ => Err(beyond(m, name)),
    }
}

/// Like [`pair`], but converts date-times with an offset to instants: their offsets affect neither order nor equality.
fn moments(m: &mut Machine, name: &str, args: &[Value]) -> Result<(Temporal, Temporal), Raised> {
    let without_offset = |held: Temporal| match held {
        Temporal::OffsetDateTime(held) => Temporal::Instant(held.instant()),
        other => other,
    };
    pair(m, name, args, 0).map(|(a, b)| (without_offset(a), without_offset(b)))
}

fn is_before(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    moments(m, ".isBefore", args).map(|(a, b)| Value::bool(a < b))
}

fn is_after(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    moments(m, ".isAfter", args).map(|(a, b)| Value::bool(a > b))
}

fn is_equal(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    moments(m, ".isEqual", args).map(|(a, b)| Value::bool(a == b))
}

/// Returns the wall clock time of a date or date-time. With `time` set, a date is rejected.
fn civil(m: &mut Machine, name: &str, args: &[Value], time: bool) -> Result<jiff::civil::DateTime, Raised> {
    let held = at(args, 0).as_temporal();
    let shown = match held {
        Some(Temporal::Date(_)) if !time => held.and_then(|held| held.civil()),
        Some(Temporal::DateTime(at)) => Some(at),
        Some(Temporal::OffsetDateTime(held)) => Some(held.local()),
        _ => None,
    };
    shown.ok_or(()).map_err(|()| {
        let raised = expected(m, name, if time { "a date-time" } else { "a date or date-time" }, 0, at(args, 0));
        if let (Some(Temporal::Instant(_)), Some(fault)) = (held, &mut m.fault) {
            fault.hint = Some("an instant has a date in UTC: (.toLocalDate x); (.format x \"HH:mm\") shows its time".to_owned());
        }
        raised
    })
}

macro_rules! parts {
    ($($name:ident $label:literal $time:literal $part:expr;)*) => {$(
        fn $name(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
            let part: fn(jiff::civil::DateTime) -> Value = $part;
            civil(m, $label, args, $time).map(part)
        }
    )*};
}

fn number(n: impl Into<i64>) -> Value {
    Value::Int(n.into())
}

parts! {
    get_year ".getYear" false |at| number(at.year());
    get_month ".getMonth" false |at| Temporal::Month(at.month()).into();
    get_month_value ".getMonthValue" false |at| number(at.month());
    get_day ".getDayOfMonth" false |at| number(at.day());
    get_day_of_year ".getDayOfYear" false |at| number(at.day_of_year());
    get_weekday ".getDayOfWeek" false |at| Temporal::weekday(at.date()).into();
    get_hour ".getHour" true |at| number(at.hour());
    get_minute ".getMinute" true |at| number(at.minute());
    get_second ".getSecond" true |at| number(at.second());
    length_of_month ".lengthOfMonth" false |at| number(at.days_in_month());
    length_of_year ".lengthOfYear" false |at| number(at.days_in_year());
    is_leap_year ".isLeapYear" false |at| Value::bool(at.in_leap_year());
}

fn get_nano(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    match at(args, 0).as_temporal() {
        Some(Temporal::DateTime(at)) => Ok(number(at.subsec_nanosecond())),
        Some(Temporal::OffsetDateTime(held)) => Ok(number(held.local().subsec_nanosecond())),
        Some(Temporal::Instant(at)) => Ok(number(temporal::in_utc(at).subsec_nanosecond())),
        Some(Temporal::Duration(held)) => Ok(number(held.subsec_nanos().rem_euclid(1_000_000_000))),
        _ => Err(expected(m, ".getNano", "a date-time, instant or duration", 0, at(args, 0))),
    }
}

fn get_value(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    match at(args, 0).as_temporal() {
        Some(Temporal::Weekday(n) | Temporal::Month(n)) => Ok(number(n)),
        _ => Err(expected(m, ".getValue", "a day of the week or a month", 0, at(args, 0))),
    }
}

/// Replaces the year, month or day of a date or date-time.
fn with(
    m: &mut Machine,
    name: &str,
    args: &[Value],
    change: impl FnOnce(jiff::civil::Date, i64) -> Option<jiff::civil::Date>,
) -> Result<Value, Raised> {
    let (shown, n) = (civil(m, name, args, false)?, int(m, name, args, 1)?);
    let Some(date) = change(shown.date(), n) else {
        return Err(fault(m, ErrorKind::TypeError, name, &format!("{} has no such date: {n}", shown.date())));
    };
    Ok(match at(args, 0).as_temporal() {
        Some(Temporal::DateTime(at)) => Temporal::DateTime(date.to_datetime(at.time())).into(),
        Some(Temporal::OffsetDateTime(held)) => {
            let made = OffsetDateTime::from_local(date.to_datetime(shown.time()), held.offset_s());
            Temporal::OffsetDateTime(made.ok_or(()).map_err(|()| beyond(m, name))?).into()
        }
        _ => Temporal::Date(date).into(),
    })
}

fn with_year(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    with(m, ".withYear", args, |date, n| fitted(i16::try_from(n).ok()?, date.month(), date.day()))
}

fn with_month(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    with(m, ".withMonth", args, |date, n| fitted(date.year(), i8::try_from(n).ok()?, date.day()))
}

fn with_day(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    with(m, ".withDayOfMonth", args, |date, n| jiff::civil::Date::new(date.year(), date.month(), i8::try_from(n).ok()?).ok())
}

/// Returns a date. A day that the month lacks is replaced by the last day of the month.
fn fitted(year: i16, month: i8, day: i8) -> Option<jiff::civil::Date> {
    let first = jiff::civil::Date::new(year, month, 1).ok()?;
    jiff::civil::Date::new(year, month, day.min(first.days_in_month())).ok()
}

fn to_epoch_day(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    match at(args, 0).as_temporal() {
        Some(Temporal::Date(date)) => Ok(number(jiff::civil::Date::constant(1970, 1, 1).duration_until(date).as_hours() / 24)),
        _ => Err(expected(m, ".toEpochDay", "a date", 0, at(args, 0))),
    }
}

fn instant(m: &mut Machine, name: &str, args: &[Value]) -> Result<jiff::Timestamp, Raised> {
    match at(args, 0).as_temporal() {
        Some(Temporal::Instant(at)) => Ok(at),
        _ => Err(expected(m, name, "an instant", 0, at(args, 0))),
    }
}

fn to_epoch_milli(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    // Rounds down, also before 1970.
    instant(m, ".toEpochMilli", args).map(|at| Value::Int(at.as_nanosecond().div_euclid(1_000_000) as i64))
}

fn get_time(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    instant(m, ".getTime", args).map(|at| Value::Int(at.as_nanosecond().div_euclid(1_000_000) as i64))
}

fn to_epoch_second(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    instant(m, ".getEpochSecond", args).map(|at| Value::Int(at.as_nanosecond().div_euclid(1_000_000_000) as i64))
}

fn inst_ms(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    instant(m, "inst-ms", args).map(|at| Value::Int(at.as_nanosecond().div_euclid(1_000_000) as i64))
}

fn is_inst(_: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(Value::bool(matches!(at(args, 0).as_temporal(), Some(Temporal::Instant(_)))))
}

fn to_instant(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    match at(args, 0).as_temporal() {
        Some(Temporal::Instant(_)) => Ok(take(args, 0)),
        Some(Temporal::OffsetDateTime(held)) => Ok(Temporal::Instant(held.instant()).into()),
        Some(Temporal::DateTime(local)) if args.len() > 1 => {
            let offset = zone_argument(m, ".toInstant", args, 1)?;
            let made = OffsetDateTime::from_local(local, offset).ok_or(()).map_err(|()| beyond(m, ".toInstant"))?;
            Ok(Temporal::Instant(made.instant()).into())
        }
        _ => Err(expected(m, ".toInstant", "an instant, or a date-time with its offset such as ZoneOffset/UTC,", 0, at(args, 0))),
    }
}

fn to_local_date(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    match at(args, 0).as_temporal().and_then(|held| held.civil()) {
        Some(at) => Ok(Temporal::Date(at.date()).into()),
        None => Err(expected(m, ".toLocalDate", "a date-time or instant", 0, at(args, 0))),
    }
}

fn at_start_of_day(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    match at(args, 0).as_temporal() {
        Some(Temporal::Date(date)) if args.len() > 1 => {
            let offset = zone_argument(m, ".atStartOfDay", args, 1)?;
            let made =
                OffsetDateTime::from_local(date.at(0, 0, 0, 0), offset).ok_or(()).map_err(|()| beyond(m, ".atStartOfDay"))?;
            Ok(Temporal::OffsetDateTime(made).into())
        }
        Some(Temporal::Date(date)) => Ok(Temporal::DateTime(date.at(0, 0, 0, 0)).into()),
        _ => Err(expected(m, ".atStartOfDay", "a date", 0, at(args, 0))),
    }
}

fn until(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let (a, b) = pair(m, ".until", args, 0)?;
    if args.len() > 2 {
        let unit = unit_of(m, ".until", args, 2)?;
        return a.until(&b, unit).map(Value::Int).ok_or(()).map_err(|()| beyond(m, ".until"));
    }
    match (a, b) {
        (Temporal::Date(a), Temporal::Date(b)) => Ok(Temporal::Period(Period::between(a, b)).into()),
        _ => Err(expected(m, ".until", "a date where no unit is given", 0, at(args, 0))),
    }
}

fn between(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let unit = unit_of(m, ".between", args, 0)?;
    let (a, b) = pair(m, ".between", args, 1)?;
    a.until(&b, unit).map(Value::Int).ok_or(()).map_err(|()| beyond(m, ".between"))
}

fn format(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let Some(held) = at(args, 0).as_temporal() else {
        // Java also has the order (.format formatter date).
        if let (Value::Str(_), Value::Temporal(_)) = (at(args, 0), at(args, 1)) {
            args.swap(0, 1);
            return format(m, args);
        }
        return Err(expected(m, ".format", "a date or time", 0, at(args, 0)));
    };
    let pattern = text(m, ".format", args, 1)?.as_str();
    let made = Style::parse(pattern).and_then(|style| temporal::format(&held, &style));
    made.map(Value::from).map_err(|why| fault(m, ErrorKind::TypeError, ".format", &why))
}

fn truncated_to(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    const NAME: &str = ".truncatedTo";
    let unit = unit_of(m, NAME, args, 1)?;
    let Some(nanos) = unit.nanos().filter(|_| unit <= Unit::Days) else {
        return Err(expected(m, NAME, "a unit up to ChronoUnit/DAYS", 1, at(args, 1)));
    };
    let made = match at(args, 0).as_temporal() {
        Some(Temporal::Instant(at)) => {
            let kept = at.as_nanosecond().div_euclid(nanos) * nanos;
            jiff::Timestamp::from_nanosecond(kept).ok().map(Temporal::Instant)
        }
        Some(held @ (Temporal::DateTime(_) | Temporal::OffsetDateTime(_))) => {
            let back = held.civil().and_then(|at| {
                let past = at.date().at(0, 0, 0, 0).duration_until(at).as_nanos() % nanos;
                i64::try_from(past).unwrap_or(0).checked_neg()
            });
            back.and_then(|back| held.plus(back, Unit::Nanos))
        }
        _ => return Err(expected(m, NAME, "an instant or date-time", 0, at(args, 0))),
    };
    made.map(Value::from).ok_or(()).map_err(|()| beyond(m, NAME))
}

/// Returns a duration in whole units.
fn whole(m: &mut Machine, name: &str, args: &[Value], unit: Unit) -> Result<Value, Raised> {
    match at(args, 0).as_temporal() {
        Some(Temporal::Duration(held)) => {
            let whole = held.as_nanos() / unit.nanos().unwrap_or(1);
            i64::try_from(whole).map(Value::Int).map_err(|_| beyond(m, name))
        }
        _ => Err(expected(m, name, "a duration", 0, at(args, 0))),
    }
}

macro_rules! wholes {
    ($($name:ident $label:literal $unit:ident;)*) => {$(
        fn $name(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
            whole(m, $label, args, Unit::$unit)
        }
    )*};
}

wholes! {
    to_days ".toDays" Days;
    to_hours ".toHours" Hours;
    to_minutes ".toMinutes" Minutes;
    to_seconds ".toSeconds" Seconds;
    to_millis ".toMillis" Millis;
    to_nanos ".toNanos" Nanos;
}

macro_rules! of_period {
    ($($name:ident $label:literal $part:expr;)*) => {$(
        fn $name(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
            let part: fn(Period) -> i64 = $part;
            match at(args, 0).as_temporal() {
                Some(Temporal::Period(period)) => Ok(Value::Int(part(period))),
                _ => Err(expected(m, $label, "a period", 0, at(args, 0))),
            }
        }
    )*};
}

of_period! {
    get_days ".getDays" |period| i64::from(period.days);
    get_months ".getMonths" |period| i64::from(period.months);
    get_years ".getYears" |period| i64::from(period.years);
    total_months ".toTotalMonths" Period::total_months;
}

fn amount(m: &mut Machine, name: &str, args: &[Value]) -> Result<Temporal, Raised> {
    match at(args, 0).as_temporal() {
        Some(held @ (Temporal::Duration(_) | Temporal::Period(_))) => Ok(held),
        _ => Err(expected(m, name, "a duration or period", 0, at(args, 0))),
    }
}

fn is_negative(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(Value::bool(match amount(m, ".isNegative", args)? {
        Temporal::Period(period) => period.years < 0 || period.months < 0 || period.days < 0,
        Temporal::Duration(held) => held.is_negative(),
        _ => false,
    }))
}

fn is_zero(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(Value::bool(match amount(m, ".isZero", args)? {
        Temporal::Period(period) => period == Period::default(),
        Temporal::Duration(held) => held.is_zero(),
        _ => false,
    }))
}

fn negated(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let made = match amount(m, ".negated", args)? {
        Temporal::Duration(held) => held.checked_neg().map(Temporal::Duration),
        Temporal::Period(Period { years, months, days }) => {
            let negative = |n: i32| n.checked_neg();
            match (negative(years), negative(months), negative(days)) {
                (Some(years), Some(months), Some(days)) => Some(Temporal::Period(Period { years, months, days })),
                _ => None,
            }
        }
        _ => None,
    };
    made.map(Value::from).ok_or(()).map_err(|()| beyond(m, ".negated"))
}
