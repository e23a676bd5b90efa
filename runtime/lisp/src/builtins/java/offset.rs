//! Builtins for date-times with an offset, and for zones. A zone is the text of its offset, since there is no time zone database.

use jiff::Timestamp;

use super::super::row::rows;
use super::construct::{beyond, by_pattern, clock, date, time_of_day, unreadable};
use crate::args::{at, expected, fault, int, text};
use crate::machine::{Machine, Raised};
use crate::print::excerpt;
use crate::temporal::{self, OffsetDateTime, Temporal};
use crate::{ErrorKind, Value};

pub(in crate::builtins) mod offset_date_time {
    use super::{now, of_instant, of_zone, parse, rows};
    rows! { "java.time.OffsetDateTime":
        "parse" ["[s]", "[s pattern]"] parse, "The date-time of an ISO text with an offset, or of a text as a pattern says." { "(OffsetDateTime/parse \"2024-01-15T10:30:00+02:00\")" => "\"2024-01-15T10:30+02:00\"" };
        "of" ["[date-time offset]", "[year month day hour minute second nano offset]"] of_zone, "A date-time with an offset." { "(OffsetDateTime/of 2024 1 15 10 30 0 0 (ZoneOffset/ofHours 2))" => "\"2024-01-15T10:30+02:00\"" };
        "ofInstant" ["[instant zone]"] of_instant, "An instant as a clock with that offset shows it." { "(OffsetDateTime/ofInstant (Instant/parse \"2024-01-15T08:30:00Z\") \"+02:00\")" => "\"2024-01-15T10:30+02:00\"" };
        "now" ["[]", "[zone]"] now, "The date-time of the host's clock, in UTC or with an offset." { "(.isAfter (OffsetDateTime/now) (OffsetDateTime/parse \"1970-01-01T00:00:00Z\"))" => "true" };
    }
}

pub(in crate::builtins) mod zoned_date_time {
    use super::{now, of_instant, of_zone, parse, rows};
    rows! { "java.time.ZonedDateTime":
        "parse" ["[s]", "[s pattern]"] parse, "The date-time of an ISO text with an offset, or of a text as a pattern says. A zone in brackets must be an offset or UTC." { "(ZonedDateTime/parse \"2024-01-15T10:30:00Z[UTC]\")" => "\"2024-01-15T10:30Z\"" };
        "of" ["[date-time zone]", "[year month day hour minute second nano zone]"] of_zone, "A date-time with the offset of a zone." { "(ZonedDateTime/of (LocalDateTime/of 2024 1 15 10 30) (ZoneId/of \"UTC\"))" => "\"2024-01-15T10:30Z\"" };
        "ofInstant" ["[instant zone]"] of_instant, "An instant as a clock of that zone shows it." { "(ZonedDateTime/ofInstant (Instant/ofEpochSecond 0) ZoneOffset/UTC)" => "\"1970-01-01T00:00Z\"" };
        "now" ["[]", "[zone]"] now, "The date-time of the host's clock, in UTC or with an offset." { "(.getOffset (ZonedDateTime/now (ZoneId/of \"UTC\")))" => "\"Z\"" };
    }
}

pub(in crate::builtins) mod zone {
    use super::{rows, zone_of};
    rows! { "java.time.ZoneId":
        "of" ["[s]"] zone_of, "The offset of a fixed zone such as UTC or UTC+02:00. A zone that changes its offset, such as Europe/Paris, is an error." { "(ZoneId/of \"UTC\")" => "\"Z\"", "(ZoneId/of \"UTC+2\")" => "\"+02:00\"" };
    }
}

pub(in crate::builtins) mod zone_offset {
    use super::{offset_hours, offset_hours_minutes, offset_of, offset_seconds, rows};
    rows! { "java.time.ZoneOffset":
        "of" ["[s]"] offset_of, "An offset such as +02:00." { "(ZoneOffset/of \"+2\")" => "\"+02:00\"" };
        "ofHours" ["[n]"] offset_hours, "An offset of n hours." { "(ZoneOffset/ofHours -5)" => "\"-05:00\"" };
        "ofHoursMinutes" ["[hours minutes]"] offset_hours_minutes, "An offset of hours and minutes, both of one sign." { "(ZoneOffset/ofHoursMinutes 5 30)" => "\"+05:30\"" };
        "ofTotalSeconds" ["[n]"] offset_seconds, "An offset of n seconds." { "(ZoneOffset/ofTotalSeconds 3600)" => "\"+01:00\"" };
    }
}

pub(in crate::builtins) mod methods {
    use super::{at_zone, get_offset, rows, same, same_instant, same_local, to_epoch_second, to_local_date_time};
    rows! { "java.time":
        ".atZone" ["[x zone]"] at_zone, "An instant as a clock of a zone shows it, or a local date-time with the offset of a zone." { "(.atZone (Instant/parse \"2024-01-15T23:30:00Z\") (ZoneId/of \"+02:00\"))" => "\"2024-01-16T01:30+02:00\"" };
        ".atOffset" ["[x offset]"] at_zone, "The same as .atZone, for an offset." { "(.atOffset (LocalDateTime/of 2024 1 15 10 30) (ZoneOffset/ofHours 2))" => "\"2024-01-15T10:30+02:00\"" };
        ".withOffsetSameInstant" ["[x offset]"] same_instant, "The same instant with another offset." { "(.withOffsetSameInstant (OffsetDateTime/parse \"2024-01-15T10:30+02:00\") ZoneOffset/UTC)" => "\"2024-01-15T08:30Z\"" };
        ".withZoneSameInstant" ["[x zone]"] same_instant, "The same instant in another zone." { "(.withZoneSameInstant (ZonedDateTime/parse \"2024-01-15T10:30+02:00\") (ZoneId/of \"UTC\"))" => "\"2024-01-15T08:30Z\"" };
        ".atZoneSameInstant" ["[x zone]"] same_instant, "The same as .withZoneSameInstant." { "(.atZoneSameInstant (OffsetDateTime/parse \"2024-01-15T10:30+02:00\") (ZoneId/of \"UTC\"))" => "\"2024-01-15T08:30Z\"" };
        ".withOffsetSameLocal" ["[x offset]"] same_local, "The same date and time with another offset, which is another instant." { "(.withOffsetSameLocal (OffsetDateTime/parse \"2024-01-15T10:30+02:00\") ZoneOffset/UTC)" => "\"2024-01-15T10:30Z\"" };
        ".withZoneSameLocal" ["[x zone]"] same_local, "The same as .withOffsetSameLocal, for a zone." { "(.withZoneSameLocal (ZonedDateTime/parse \"2024-01-15T10:30+02:00\") (ZoneId/of \"UTC\"))" => "\"2024-01-15T10:30Z\"" };
        ".getOffset" ["[x]"] get_offset, "The offset of a date-time that has one." { "(.getOffset (OffsetDateTime/parse \"2024-01-15T10:30+02:00\"))" => "\"+02:00\"" };
        ".getZone" ["[x]"] get_offset, "The zone of a date-time with an offset, which is that offset." { "(.getZone (ZonedDateTime/parse \"2024-01-15T10:30Z\"))" => "\"Z\"" };
        ".toLocalDateTime" ["[x]"] to_local_date_time, "The date and time that a date-time with an offset shows." { "(.toLocalDateTime (OffsetDateTime/parse \"2024-01-15T10:30+02:00\"))" => "\"2024-01-15T10:30\"" };
        ".toOffsetDateTime" ["[x]"] same, "The date-time with an offset, as it is." { "(.toOffsetDateTime (ZonedDateTime/parse \"2024-01-15T10:30Z\"))" => "\"2024-01-15T10:30Z\"" };
        ".toZonedDateTime" ["[x]"] same, "The date-time with an offset, as it is." { "(.toZonedDateTime (OffsetDateTime/parse \"2024-01-15T10:30Z\"))" => "\"2024-01-15T10:30Z\"" };
        ".toEpochSecond" ["[x]"] to_epoch_second, "Seconds since 1970 of a date-time with an offset, rounded down." { "(.toEpochSecond (OffsetDateTime/parse \"1970-01-01T01:00+01:00\"))" => "0" };
    }
}

/// The hint for a zone without a fixed offset.
const FIXED_ZONES: &str = "use UTC or a fixed offset, as in (ZoneOffset/of \"+02:00\")";

/// Returns the zone argument at `index` in seconds ahead of UTC.
pub(super) fn zone_argument(m: &mut Machine, name: &str, args: &[Value], index: usize) -> Result<i32, Raised> {
    let Some(zone) = at(args, index).as_str() else {
        return Err(expected(m, name, "a zone such as (ZoneId/of \"UTC\") or (ZoneOffset/ofHours 2)", index, at(args, index)));
    };
    temporal::parse_zone(zone).ok_or(()).map_err(|()| unknown_zone(m, name, zone, FIXED_ZONES))
}

fn unknown_zone(m: &mut Machine, name: &str, zone: &str, hint: &'static str) -> Raised {
    let shown = excerpt(zone);
    let what = if zone.bytes().any(|byte| byte.is_ascii_alphabetic()) {
        format!("the zone {shown:?} has no fixed offset, and there is no database of time zones")
    } else {
        format!("{shown:?} is not an offset between -18:00 and +18:00")
    };
    let raised = fault(m, ErrorKind::TypeError, name, &what);
    m.advise(raised, hint)
}

/// Returns an argument that is a date-time with an offset.
fn with_offset(m: &mut Machine, name: &str, args: &[Value]) -> Result<OffsetDateTime, Raised> {
    match at(args, 0).as_temporal() {
        Some(Temporal::OffsetDateTime(held)) => Ok(held),
        _ => Err(expected(m, name, "a date-time with an offset", 0, at(args, 0))),
    }
}

fn made(m: &mut Machine, name: &str, made: Option<OffsetDateTime>) -> Result<Value, Raised> {
    made.map(|held| Temporal::OffsetDateTime(held).into()).ok_or(()).map_err(|()| beyond(m, name))
}

fn parse(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    const NAME: &str = "OffsetDateTime/parse";
    if args.len() > 1 {
        return by_pattern(m, NAME, args, |text, style| {
            temporal::read_offset_date_time(text, style).map(Temporal::OffsetDateTime)
        });
    }
    let text = text(m, NAME, args, 0)?.as_str();
    if let Some(held) = OffsetDateTime::parse(text) {
        return Ok(Temporal::OffsetDateTime(held).into());
    }
    if let Some(zone) = text.strip_suffix(']').and_then(|text| Some(text.split_once('[')?.1))
        && temporal::parse_zone(zone).is_none()
    {
        let written = text.split_once('[').map_or(text, |(written, _)| written);
        let has_offset = OffsetDateTime::parse(written).is_some();
        let hint = if has_offset { "the text has an offset too: read the part in front of the [" } else { FIXED_ZONES };
        return Err(unknown_zone(m, NAME, zone, hint));
    }
    Err(unreadable(m, NAME, text, "an ISO date-time with an offset, such as 2024-01-31T12:00:00+02:00"))
}

fn from_parts(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    const NAME: &str = "OffsetDateTime/of";
    let local = date(m, NAME, args)?.to_datetime(time_of_day(m, NAME, args, 3)?);
    let offset = zone_argument(m, NAME, args, 7)?;
    made(m, NAME, OffsetDateTime::from_local(local, offset))
}

fn of_zone(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if args.len() > 2 {
        return from_parts(m, args);
    }
    at_zone(m, args)
}

/// Returns the instant of an instant or of a date-time with an offset.
fn instant(m: &mut Machine, name: &str, args: &[Value]) -> Result<Timestamp, Raised> {
    match at(args, 0).as_temporal() {
        Some(Temporal::Instant(at)) => Ok(at),
        Some(Temporal::OffsetDateTime(held)) => Ok(held.instant()),
        _ => Err(expected(m, name, "an instant", 0, at(args, 0))),
    }
}

/// Returns an instant as a date-time in the zone of the second argument.
pub(super) fn shown_in_zone(m: &mut Machine, name: &str, args: &[Value]) -> Result<OffsetDateTime, Raised> {
    let (instant, offset) = (instant(m, name, args)?, zone_argument(m, name, args, 1)?);
    OffsetDateTime::new(instant, offset).ok_or(()).map_err(|()| beyond(m, name))
}

fn same_local(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    const NAME: &str = ".withOffsetSameLocal";
    let (held, offset) = (with_offset(m, NAME, args)?, zone_argument(m, NAME, args, 1)?);
    made(m, NAME, OffsetDateTime::from_local(held.local(), offset))
}

fn of_instant(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    shown_in_zone(m, "OffsetDateTime/ofInstant", args).map(|held| Temporal::OffsetDateTime(held).into())
}

fn now(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    const NAME: &str = "OffsetDateTime/now";
    let offset = if args.is_empty() { 0 } else { zone_argument(m, NAME, args, 0)? };
    let now = clock(m, NAME)?;
    made(m, NAME, OffsetDateTime::new(now, offset))
}

fn zone_of(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    text(m, "ZoneId/of", args, 0)?;
    zone_argument(m, "ZoneId/of", args, 0).map(|offset| Value::from(temporal::offset_text(offset)))
}

fn offset_of(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    text(m, "ZoneOffset/of", args, 0)?;
    zone_argument(m, "ZoneOffset/of", args, 0).map(|offset| Value::from(temporal::offset_text(offset)))
}

/// Returns the text of an offset. Java limits offsets to 18 hours.
fn offset(m: &mut Machine, name: &str, seconds: Option<i64>) -> Result<Value, Raised> {
    let seconds = seconds.and_then(|seconds| i32::try_from(seconds).ok()).filter(|seconds| seconds.unsigned_abs() <= 18 * 3600);
    match seconds {
        Some(seconds) => Ok(Value::from(temporal::offset_text(seconds))),
        None => Err(fault(m, ErrorKind::TypeError, name, "an offset is between -18:00 and +18:00")),
    }
}

fn offset_hours(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let hours = int(m, "ZoneOffset/ofHours", args, 0)?;
    offset(m, "ZoneOffset/ofHours", hours.checked_mul(3600))
}

fn offset_hours_minutes(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    const NAME: &str = "ZoneOffset/ofHoursMinutes";
    let (hours, minutes) = (int(m, NAME, args, 0)?, int(m, NAME, args, 1)?);
    if minutes.unsigned_abs() > 59 || hours.signum() * minutes.signum() < 0 {
        return Err(fault(m, ErrorKind::TypeError, NAME, "hours and minutes have one sign, and there are at most 59 minutes"));
    }
    offset(m, NAME, hours.checked_mul(3600).and_then(|seconds| seconds.checked_add(minutes * 60)))
}

fn offset_seconds(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let seconds = int(m, "ZoneOffset/ofTotalSeconds", args, 0)?;
    offset(m, "ZoneOffset/ofTotalSeconds", Some(seconds))
}

fn at_zone(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    const NAME: &str = ".atZone";
    match at(args, 0).as_temporal() {
        Some(Temporal::DateTime(local)) => {
            let offset = zone_argument(m, NAME, args, 1)?;
            made(m, NAME, OffsetDateTime::from_local(local, offset))
        }
        Some(Temporal::Instant(_)) => shown_in_zone(m, NAME, args).map(|held| Temporal::OffsetDateTime(held).into()),
        _ => Err(expected(m, NAME, "an instant or a local date-time", 0, at(args, 0))),
    }
}

fn same_instant(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    const NAME: &str = ".withOffsetSameInstant";
    let (held, offset) = (with_offset(m, NAME, args)?, zone_argument(m, NAME, args, 1)?);
    made(m, NAME, OffsetDateTime::new(held.instant(), offset))
}

fn get_offset(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    with_offset(m, ".getOffset", args).map(|held| Value::from(temporal::offset_text(held.offset_s())))
}

fn to_local_date_time(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    with_offset(m, ".toLocalDateTime", args).map(|held| Temporal::DateTime(held.local()).into())
}

fn same(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    with_offset(m, ".toOffsetDateTime", args).map(|held| Temporal::OffsetDateTime(held).into())
}

fn to_epoch_second(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    with_offset(m, ".toEpochSecond", args).map(|held| Value::Int(held.instant().as_nanosecond().div_euclid(1_000_000_000) as i64))
}
