//! Constants with a Java name, as rows of data.

use jiff::SignedDuration;

use crate::Value;
use crate::temporal::{MONTHS, Period, Temporal, Unit, WEEKDAYS};

/// A name that stands for a value.
pub struct Constant {
    /// Its name within the namespace.
    pub name: &'static str,
    /// Its namespace, such as `Double`; `ptc.core` for names without one.
    pub namespace: &'static str,
    /// What it is, in one line.
    pub doc: &'static str,
    /// Makes the value.
    value: fn() -> Value,
}

impl Constant {
    /// The value.
    pub fn value(&self) -> Value {
        (self.value)()
    }

    /// The name to write.
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
        "TRUE" Value::True, "true";
        "FALSE" Value::False, "false";
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
        "MAX_VALUE" Value::int(i64::from(i32::MAX)), "2147483647";
        "MIN_VALUE" Value::int(i64::from(i32::MIN)), "-2147483648";
    }
    "Long" {
        "MAX_VALUE" Value::int(i64::MAX), "9223372036854775807";
        "MIN_VALUE" Value::int(i64::MIN), "-9223372036854775808";
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
        "EPOCH" Temporal::Instant(jiff::Timestamp::UNIX_EPOCH).into(), "1970-01-01T00:00:00Z";
    }
    "java.time.format.DateTimeFormatter" {
        "ISO_DATE" Value::string("yyyy-MM-dd"), "The pattern yyyy-MM-dd.";
        "ISO_LOCAL_DATE" Value::string("yyyy-MM-dd"), "The pattern yyyy-MM-dd.";
        "ISO_LOCAL_TIME" Value::string("HH:mm:ss"), "The pattern HH:mm:ss.";
        "ISO_LOCAL_DATE_TIME" Value::string("yyyy-MM-dd'T'HH:mm:ss"), "The pattern yyyy-MM-dd'T'HH:mm:ss.";
        "ISO_INSTANT" Value::string("yyyy-MM-dd'T'HH:mm:ssX"), "The pattern yyyy-MM-dd'T'HH:mm:ssX.";
        "BASIC_ISO_DATE" Value::string("yyyyMMdd"), "The pattern yyyyMMdd.";
    }
    "java.time.ZoneOffset" {
        "UTC" Value::string("Z"), "The offset 0, the only zone.";
    }
}

/// The enumerations of `java.time`: the name, its members, and what a member is.
type Enumeration = (&'static str, fn(usize) -> Temporal, &'static [&'static str]);

static ENUMERATIONS: &[Enumeration] = &[
    ("java.time.DayOfWeek", |at| Temporal::Weekday(at as i8 + 1), &WEEKDAYS),
    ("java.time.Month", |at| Temporal::Month(at as i8 + 1), &MONTHS),
];

/// Every constant that is a row; members of Java's enumerations are not.
pub fn all() -> impl Iterator<Item = &'static Constant> {
    ROWS.iter()
}

/// The value of a constant.
pub(crate) fn find(namespace: &str, name: &str) -> Option<Value> {
    if namespace == "java.time.temporal.ChronoUnit" {
        return Unit::ALL.iter().find(|(_, known)| *known == name).map(|(unit, _)| Temporal::Unit(*unit).into());
    }
    if let Some((_, make, members)) = ENUMERATIONS.iter().find(|(known, ..)| *known == namespace) {
        return members.iter().position(|member| *member == name).map(|at| make(at).into());
    }
    all().find(|row| row.namespace == namespace && row.name == name).map(Constant::value)
}
