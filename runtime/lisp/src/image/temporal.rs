//! Encodes dates and times as lists of numbers.

use jiff::civil::{Date, DateTime, Time};
use jiff::{SignedDuration, Timestamp};

use super::DecodeError;
use super::wire::{Reader, Writer};
use crate::temporal::{OffsetDateTime, Period, Temporal, Unit};

pub(super) fn write(out: &mut Writer, temporal: &Temporal) {
    let date = |date: Date| [i64::from(date.year()), date.month().into(), date.day().into()];
    let (tag, numbers) = match *temporal {
        Temporal::Date(held) => (0, date(held).to_vec()),
        Temporal::DateTime(at) => {
            let time = [i64::from(at.hour()), at.minute().into(), at.second().into(), at.subsec_nanosecond().into()];
            (1, [date(at.date()).as_slice(), &time].concat())
        }
        Temporal::Instant(at) => (2, vec![at.as_second(), at.subsec_nanosecond().into()]),
        Temporal::Duration(held) => (3, vec![held.as_secs(), held.subsec_nanos().into()]),
        Temporal::Period(Period { years, months, days }) => (4, vec![years.into(), months.into(), days.into()]),
        Temporal::Weekday(day) => (5, vec![day.into()]),
        Temporal::Month(month) => (6, vec![month.into()]),
        Temporal::Unit(unit) => {
            let at = Unit::ALL.iter().position(|(known, _)| *known == unit).unwrap_or_default();
            (7, vec![at as i64])
        }
        Temporal::OffsetDateTime(held) => {
            let at = held.instant();
            (8, vec![at.as_second(), at.subsec_nanosecond().into(), held.offset_s().into()])
        }
    };
    out.byte(tag);
    out.count(numbers.len());
    for number in numbers {
        out.signed(number);
    }
}

pub(super) fn read(from: &mut Reader<'_>) -> Result<Temporal, DecodeError> {
    let tag = from.byte()?;
    let numbers = from.list(Reader::signed)?;
    made(tag, &numbers).ok_or(DecodeError::Invalid("a date or time is invalid"))
}

fn made(tag: u8, numbers: &[i64]) -> Option<Temporal> {
    let date = |[year, month, day]: [i64; 3]| Date::new(year.try_into().ok()?, month.try_into().ok()?, day.try_into().ok()?).ok();
    let (&[first], second) = (numbers.first_chunk::<1>()?, numbers.get(1).copied());
    Some(match (tag, numbers) {
        (0, &[year, month, day]) => Temporal::Date(date([year, month, day])?),
        (1, &[year, month, day, hour, minute, second, nanosecond]) => {
            let small = |number: i64| i8::try_from(number).ok();
            let time = Time::new(small(hour)?, small(minute)?, small(second)?, nanosecond.try_into().ok()?).ok()?;
            Temporal::DateTime(DateTime::from_parts(date([year, month, day])?, time))
        }
        (2, [_, _]) => Temporal::Instant(Timestamp::new(first, second?.try_into().ok()?).ok()?),
        (3, [_, _]) => {
            let nanos = i32::try_from(second?).ok().filter(|nanos| nanos.unsigned_abs() < 1_000_000_000)?;
            Temporal::Duration(SignedDuration::from_secs(first).checked_add(SignedDuration::from_nanos(nanos.into()))?)
        }
        (4, &[_, months, days]) => {
            let small = |number: i64| i32::try_from(number).ok();
            Temporal::Period(Period { years: small(first)?, months: small(months)?, days: small(days)? })
        }
        (5, [_]) => Temporal::Weekday(i8::try_from(first).ok().filter(|day| (1..=7).contains(day))?),
        (6, [_]) => Temporal::Month(i8::try_from(first).ok().filter(|month| (1..=12).contains(month))?),
        (7, [_]) => Temporal::Unit(Unit::ALL.get(usize::try_from(first).ok()?)?.0),
        (8, &[_, _, offset_s]) => {
            let at = Timestamp::new(first, second?.try_into().ok()?).ok()?;
            Temporal::OffsetDateTime(OffsetDateTime::new(at, offset_s.try_into().ok()?)?)
        }
        _ => return None,
    })
}
