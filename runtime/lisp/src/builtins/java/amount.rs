//! Methods of durations that scale them and return their parts.

use super::super::row::rows;
use super::construct::beyond;
use crate::args::{at, expected, fault, int};
use crate::machine::{Machine, Raised};
use crate::temporal::Temporal;
use crate::{ErrorKind, Value};
use jiff::SignedDuration;

rows! { "java.time":
    ".multipliedBy" ["[duration n]"] multiplied_by, "A duration n times as long." { "(.multipliedBy (Duration/ofMinutes 20) 3)" => "\"PT1H\"" };
    ".dividedBy" ["[duration n]"] divided_by, "A duration divided by an integer." { "(.dividedBy (Duration/ofHours 3) 2)" => "\"PT1H30M\"" };
    ".abs" ["[duration]"] abs, "A duration without its sign." { "(.abs (Duration/ofHours -2))" => "\"PT2H\"" };
    ".toHoursPart" ["[duration]"] hours_part, "The hours of a duration beside its days." { "(.toHoursPart (Duration/ofHours 26))" => "2" };
    ".toMinutesPart" ["[duration]"] minutes_part, "The minutes of a duration beside its hours." { "(.toMinutesPart (Duration/ofMinutes 135))" => "15" };
    ".toSecondsPart" ["[duration]"] seconds_part, "The seconds of a duration beside its minutes." { "(.toSecondsPart (Duration/ofSeconds 135))" => "15" };
}

fn duration(m: &mut Machine, name: &str, args: &[Value]) -> Result<SignedDuration, Raised> {
    match at(args, 0).as_temporal() {
        Some(Temporal::Duration(held)) => Ok(held),
        _ => Err(expected(m, name, "a duration", 0, at(args, 0))),
    }
}

fn made(m: &mut Machine, name: &str, nanos: Option<i128>) -> Result<Value, Raised> {
    let made = nanos.and_then(SignedDuration::try_from_nanos_i128);
    made.map(|made| Temporal::Duration(made).into()).ok_or(()).map_err(|()| beyond(m, name))
}

fn multiplied_by(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    const NAME: &str = ".multipliedBy";
    let (held, n) = (duration(m, NAME, args)?, int(m, NAME, args, 1)?);
    made(m, NAME, held.as_nanos().checked_mul(i128::from(n)))
}

fn divided_by(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    const NAME: &str = ".dividedBy";
    let (held, n) = (duration(m, NAME, args)?, int(m, NAME, args, 1)?);
    if n == 0 {
        return Err(fault(m, ErrorKind::ArithmeticError, NAME, "division by zero"));
    }
    made(m, NAME, held.as_nanos().checked_div(i128::from(n)))
}

fn abs(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let held = duration(m, ".abs", args)?;
    made(m, ".abs", held.as_nanos().checked_abs())
}

/// Returns the number of whole units of `seconds`, modulo the `within` units that make up the next larger unit.
fn part(m: &mut Machine, name: &str, args: &[Value], seconds: i64, within: i64) -> Result<Value, Raised> {
    Ok(Value::Int(duration(m, name, args)?.as_secs() / seconds % within))
}

fn hours_part(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    part(m, ".toHoursPart", args, 3600, 24)
}

fn minutes_part(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    part(m, ".toMinutesPart", args, 60, 60)
}

fn seconds_part(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    part(m, ".toSecondsPart", args, 1, 60)
}
