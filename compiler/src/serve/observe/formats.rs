//! The formats of strings, as `format` of JSON Schema names them.

use std::sync::LazyLock;

use jiff::Timestamp;
use jiff::civil::Date;
use regex::Regex;
use url::Url;

/// Maximum length of a string with a format in bytes.
const MAX_BYTES: usize = 2_048;

/// The names, in the order of the bits of [`Formats`].
const NAMES: [&str; 5] = ["date", "date-time", "email", "uri", "uuid"];

/// A set of formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Formats(u8);

impl Formats {
    /// Returns the formats of a string.
    pub(super) fn of(text: &str) -> Formats {
        let checks: [fn(&str) -> bool; NAMES.len()] = [is_date, is_date_time, is_email, is_uri, is_uuid];
        let is_short = text.len() <= MAX_BYTES;
        let bits = checks.iter().enumerate().map(|(at, check)| u8::from(is_short && check(text)) << at);
        Formats(bits.sum())
    }

    /// Returns the set of the format with a name; it is empty if the name is not known.
    pub(super) fn named(name: Option<&str>) -> Formats {
        let at = NAMES.iter().position(|known| Some(*known) == name);
        Formats(at.map_or(0, |at| 1 << at))
    }

    /// Returns the formats in both sets.
    pub(super) fn common(self, other: Formats) -> Formats {
        Formats(self.0 & other.0)
    }

    /// Returns the name of a format in the set.
    pub(super) fn name(self) -> Option<&'static str> {
        NAMES.iter().enumerate().find(|(at, _)| self.0 & (1 << at) != 0).map(|(_, name)| *name)
    }
}

/// `full-date` of RFC 3339.
fn is_date(text: &str) -> bool {
    text.len() == 10 && text.starts_with(|c: char| c.is_ascii_digit()) && text.parse::<Date>().is_ok()
}

/// `date-time` of RFC 3339. `jiff` also reads other forms.
fn is_date_time(text: &str) -> bool {
    static FORM: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-9]{2})$").ok()
    });
    FORM.as_ref().is_some_and(|form| form.is_match(text)) && text.parse::<Timestamp>().is_ok()
}

/// The usual part of RFC 5321: a dot-string and a domain.
fn is_email(text: &str) -> bool {
    static FORM: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"^[A-Za-z0-9_+-]+(\.[A-Za-z0-9_+-]+)*@[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?)+$").ok()
    });
    FORM.as_ref().is_some_and(|form| form.is_match(text))
}

/// A URI of RFC 3986 with an authority or a path of a file.
fn is_uri(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(&byte);
    text.contains("://")
        && text.bytes().all(is_part)
        && Url::parse(text).is_ok_and(|url| url.has_host() || url.scheme() == "file")
}

/// A UUID of RFC 9562.
fn is_uuid(text: &str) -> bool {
    static FORM: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new("^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$").ok());
    FORM.as_ref().is_some_and(|form| form.is_match(text))
}

#[cfg(test)]
mod tests {
    use super::Formats;

    #[test]
    fn formats_are_recognised() {
        for (text, format) in [
            ("2026-01-31", Some("date")),
            ("2026-02-31", None),
            ("2026-01-31T09:30:00Z", Some("date-time")),
            ("2026-01-31T09:30:00.5+01:00", Some("date-time")),
            ("2026-01-31T09:30:00", None),
            ("2026-01-31 09:30:00Z", None),
            ("https://example.com/a?b=%20#c", Some("uri")),
            ("http://example.com/a b", None),
            ("file:///tmp/a", Some("uri")),
            ("a:b", None),
            ("123e4567-e89b-12d3-a456-426614174000", Some("uuid")),
            ("ann.b+c@mail.example.com", Some("email")),
            ("ann@localhost", None),
            ("ann", None),
            ("", None),
        ] {
            assert_eq!(Formats::of(text).name(), format, "{text}");
            assert_eq!(Formats::named(format).name(), format);
        }
    }
}
