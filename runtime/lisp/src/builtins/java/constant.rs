//! Constants with Java names, as rows of a table.

use jiff::SignedDuration;

use crate::Value;
use crate::temporal::{Period, Temporal, Unit};

/// A name with a constant value.
pub struct Constant {
    /// The name within the namespace.
    pub name: &'static str,
    /// The namespace, such as `Double`. `ptc.core` for names without one.
    pub namespace: &'static str,
    /// The description, in one line.
    pub doc: &'static str,
    /// Makes the value.
    value: fn() -> Value,
}

impl Constant {
    /// Returns the value.
    pub fn value(&self) -> Value {
        (self.value)()
    }

    /// The name as programs write it.
    pub fn full_name(&self) -> String {
        if super::super::is_core(self.namespace) { self.name.to_owned() } else { format!("{}/{}", self.namespace, self.name) }
    }
}

macro_rules! constants {
    ($($namespace:literal { $($name:literal $value:expr, $doc:literal;)* })*) => {
        static ROWS: &[Constant] = &[$($(Constant { name: $name, namespace: $namespace, doc: $doc, value: || $value }),*),*];
    };
}

constants! {
    "ptc.core" {
        "POSITIVE_INFINITY" Value::double(f64::INFINITY), "Positive infinity.";
        "NEGATIVE_INFINITY" Value::double(f64::NEG_INFINITY), "Negative infinity.";
        "NaN" Value::double(f64::NAN), "Not a number.";
    }
    "Boolean" {
        "TRUE" Value::True, "True.";
        "FALSE" Value::False, "False.";
    }
    "Double" {
        "POSITIVE_INFINITY" Value::double(f64::INFINITY), "Positive infinity.";
        "NEGATIVE_INFINITY" Value::double(f64::NEG_INFINITY), "Negative infinity.";
        "NaN" Value::double(f64::NAN), "Not a number.";
        "MAX_VALUE" Value::double(f64::MAX), "The greatest finite double.";
        "MIN_VALUE" Value::double(5e-324), "The least double above 0.";
    }
    "Float" {
        "POSITIVE_INFINITY" Value::double(f64::INFINITY), "Positive infinity.";
        "NEGATIVE_INFINITY" Value::double(f64::NEG_INFINITY), "Negative infinity.";
        "NaN" Value::double(f64::NAN), "Not a number.";
    }
    "Integer" {
        "MAX_VALUE" Value::int(i64::from(i32::MAX)), "The greatest integer of 32 bits.";
        "MIN_VALUE" Value::int(i64::from(i32::MIN)), "The least integer of 32 bits.";
    }
    "Long" {
        "MAX_VALUE" Value::int(i64::MAX), "The greatest integer of 64 bits; integers go on.";
        "MIN_VALUE" Value::int(i64::MIN), "The least integer of 64 bits; integers go on.";
    }
    "Math" {
        "PI" Value::double(std::f64::consts::PI), "The ratio of a circle's circumference to its diameter.";
        "E" Value::double(std::f64::consts::E), "The base of the natural logarithm.";
    }
    "java.time.Duration" {
        "ZERO" Temporal::Duration(SignedDuration::ZERO).into(), "The duration of length 0.";
    }
    "java.time.Period" {
        "ZERO" Temporal::Period(Period::default()).into(), "The period of length 0.";
    }
    "java.time.Instant" {
        "EPOCH" Temporal::Instant(jiff::Timestamp::UNIX_EPOCH).into(), "The start of 1970 in UTC, from which timestamps count.";
    }
    "java.time.format.DateTimeFormatter" {
        "ISO_DATE" Value::string("ISO_DATE"), "The formatter of 2024-01-31, and the offset where there is one.";
        "ISO_LOCAL_DATE" Value::string("ISO_LOCAL_DATE"), "The formatter of 2024-01-31.";
        "ISO_LOCAL_TIME" Value::string("ISO_LOCAL_TIME"), "The formatter of 10:15:30.";
        "ISO_LOCAL_DATE_TIME" Value::string("ISO_LOCAL_DATE_TIME"), "The formatter of 2024-01-31T10:15:30.";
        "ISO_INSTANT" Value::string("ISO_INSTANT"), "The formatter of 2024-01-31T10:15:30Z, in UTC.";
        "ISO_OFFSET_DATE_TIME" Value::string("ISO_OFFSET_DATE_TIME"), "The formatter of 2024-01-31T10:15:30+02:00.";
        "ISO_ZONED_DATE_TIME" Value::string("ISO_ZONED_DATE_TIME"), "The formatter of 2024-01-31T10:15:30+02:00.";
        "ISO_DATE_TIME" Value::string("ISO_DATE_TIME"), "The formatter of 2024-01-31T10:15:30, and the offset where there is one.";
        "RFC_1123_DATE_TIME" Value::string("RFC_1123_DATE_TIME"), "The formatter of Wed, 31 Jan 2024 10:15:30 GMT.";
        "BASIC_ISO_DATE" Value::string("BASIC_ISO_DATE"), "The formatter of 20240131, and the offset where there is one.";
    }
    "java.time.DayOfWeek" {
        "MONDAY" Temporal::Weekday(1).into(), "The first day of the week.";
        "TUESDAY" Temporal::Weekday(2).into(), "The second day of the week.";
        "WEDNESDAY" Temporal::Weekday(3).into(), "The third day of the week.";
        "THURSDAY" Temporal::Weekday(4).into(), "The fourth day of the week.";
        "FRIDAY" Temporal::Weekday(5).into(), "The fifth day of the week.";
        "SATURDAY" Temporal::Weekday(6).into(), "The sixth day of the week.";
        "SUNDAY" Temporal::Weekday(7).into(), "The seventh day of the week.";
    }
    "java.time.Month" {
        "JANUARY" Temporal::Month(1).into(), "The first month.";
        "FEBRUARY" Temporal::Month(2).into(), "The second month.";
        "MARCH" Temporal::Month(3).into(), "The third month.";
        "APRIL" Temporal::Month(4).into(), "The fourth month.";
        "MAY" Temporal::Month(5).into(), "The fifth month.";
        "JUNE" Temporal::Month(6).into(), "The sixth month.";
        "JULY" Temporal::Month(7).into(), "The seventh month.";
        "AUGUST" Temporal::Month(8).into(), "The eighth month.";
        "SEPTEMBER" Temporal::Month(9).into(), "The ninth month.";
        "OCTOBER" Temporal::Month(10).into(), "The tenth month.";
        "NOVEMBER" Temporal::Month(11).into(), "The eleventh month.";
        "DECEMBER" Temporal::Month(12).into(), "The twelfth month.";
    }
    "java.time.temporal.ChronoUnit" {
        "NANOS" Temporal::Unit(Unit::Nanos).into(), "Nanoseconds.";
        "MICROS" Temporal::Unit(Unit::Micros).into(), "Microseconds.";
        "MILLIS" Temporal::Unit(Unit::Millis).into(), "Milliseconds.";
        "SECONDS" Temporal::Unit(Unit::Seconds).into(), "Seconds.";
        "MINUTES" Temporal::Unit(Unit::Minutes).into(), "Minutes.";
        "HOURS" Temporal::Unit(Unit::Hours).into(), "Hours.";
        "DAYS" Temporal::Unit(Unit::Days).into(), "Days of 24 hours.";
        "WEEKS" Temporal::Unit(Unit::Weeks).into(), "Weeks of seven days.";
        "MONTHS" Temporal::Unit(Unit::Months).into(), "Months of the calendar.";
        "YEARS" Temporal::Unit(Unit::Years).into(), "Years of the calendar.";
    }
    "java.time.ZoneOffset" {
        "UTC" Value::string("Z"), "The offset 0.";
    }
}

/// All constants.
pub fn all() -> impl Iterator<Item = &'static Constant> {
    ROWS.iter()
}

/// The names of the constants of a namespace.
pub(crate) fn members(namespace: &str) -> impl Iterator<Item = &'static str> {
    all().filter(move |row| row.namespace == namespace).map(|row| row.name)
}

/// Returns the value of a constant.
pub(crate) fn find(namespace: &str, name: &str) -> Option<Value> {
    all().find(|row| row.namespace == namespace && row.name == name).map(Constant::value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporal::{MONTHS, WEEKDAYS};

    #[test]
    fn every_enumeration_member_has_a_row_and_prints_its_name() {
        for (namespace, wanted) in [
            ("java.time.DayOfWeek", WEEKDAYS.to_vec()),
            ("java.time.Month", MONTHS.to_vec()),
            ("java.time.temporal.ChronoUnit", Unit::ALL.iter().map(|(_, name)| *name).collect()),
        ] {
            assert_eq!(members(namespace).collect::<Vec<_>>(), wanted);
            for name in wanted {
                assert_eq!(crate::print::readable(&find(namespace, name).unwrap()), format!("\"{name}\""));
            }
        }
    }
}
