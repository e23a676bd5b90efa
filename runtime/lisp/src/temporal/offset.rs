//! Date-times with a fixed offset from UTC: `java.time.OffsetDateTime`, and `ZonedDateTime` with such a zone.

use std::fmt::{self, Write};

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;

/// Maximum offset in either direction, in seconds. Java has the same limit of 18 hours.
const MAX_OFFSET_S: i32 = 18 * 3600;

/// An instant and the offset at which it is shown. As in Java, values are ordered by instant, then by offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OffsetDateTime {
    instant: Timestamp,
    offset_s: i32,
}

impl OffsetDateTime {
    /// Makes a date-time that shows `instant` at `offset_s` seconds ahead of UTC. `None` for offsets beyond 18 hours.
    pub fn new(instant: Timestamp, offset_s: i32) -> Option<Self> {
        (-MAX_OFFSET_S..=MAX_OFFSET_S).contains(&offset_s).then_some(OffsetDateTime { instant, offset_s })
    }

    /// Makes the date-time at which a clock that is `offset_s` seconds ahead of UTC shows `local`. `None` outside of the
    /// calendar.
    pub fn from_local(local: DateTime, offset_s: i32) -> Option<Self> {
        let offset = Offset::from_seconds(offset_s).ok()?;
        OffsetDateTime::new(offset.to_timestamp(local).ok()?, offset_s)
    }

    /// Returns the instant.
    pub fn instant(self) -> Timestamp {
        self.instant
    }

    /// Returns the offset in seconds ahead of UTC.
    pub fn offset_s(self) -> i32 {
        self.offset_s
    }

    /// Returns the wall clock time at this offset.
    pub fn local(self) -> DateTime {
        Offset::from_seconds(self.offset_s).unwrap_or(Offset::UTC).to_datetime(self.instant)
    }

    /// Parses an ISO date-time with an offset. A fixed zone in brackets may follow: `2024-01-01T10:00+02:00[+02:00]`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (time, zone) = match text.strip_suffix(']') {
            Some(text) => {
                let (time, zone) = text.split_once('[')?;
                (time, Some(parse_zone(zone)?))
            }
            None => (text, None),
        };
        let instant: Timestamp = time.parse().ok()?;
        let after = time.find(['T', 't', ' '])? + 1;
        let sign = after + time.get(after..)?.find(['Z', 'z', '+', '-'])?;
        OffsetDateTime::new(instant, zone.or_else(|| parse_offset(time.get(sign..)?))?)
    }
}

/// Parses `Z`, `+2`, `+02`, `+0230`, `+02:30` or `+02:30:15` to seconds ahead of UTC.
pub(crate) fn parse_offset(text: &str) -> Option<i32> {
    if text.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits = text.get(1..)?;
    let parts: Vec<&str> = match digits.len() {
        _ if digits.contains(':') => digits.split(':').collect(),
        1 | 2 => vec![digits],
        4 => vec![digits.get(..2)?, digits.get(2..)?],
        6 => vec![digits.get(..2)?, digits.get(2..4)?, digits.get(4..)?],
        _ => return None,
    };
    let well_formed = |part: &&str| matches!(part.len(), 1 | 2) && part.bytes().all(|byte| byte.is_ascii_digit());
    if parts.len() > 3 || !parts.iter().all(well_formed) || parts.iter().skip(1).any(|part| part.len() != 2) {
        return None;
    }
    let number = |at: usize| parts.get(at).map_or(Some(0), |part| part.parse::<i32>().ok());
    let (hours, minutes, seconds) = (number(0)?, number(1)?, number(2)?);
    let total = hours * 3600 + minutes * 60 + seconds;
    (minutes < 60 && seconds < 60 && total <= MAX_OFFSET_S).then_some(sign * total)
}

/// Parses a fixed zone to seconds ahead of UTC: an offset, `UTC`, `GMT` or `UT`, or one of these names with an offset.
pub(crate) fn parse_zone(text: &str) -> Option<i32> {
    let name = text.strip_prefix("Etc/").unwrap_or(text);
    for prefix in ["UTC", "GMT", "UT"] {
        match name.strip_prefix(prefix) {
            Some("") => return Some(0),
            // `Etc/GMT+2` has the opposite sign.
            Some(offset) if name.len() == text.len() => return parse_offset(offset),
            _ => {}
        }
    }
    parse_offset(text)
}

/// Formats an offset as Java does: `Z`, `+02:00`, `+02:00:15`.
pub(crate) fn offset_text(offset_s: i32) -> String {
    if offset_s == 0 { "Z".to_owned() } else { signed(offset_s, ":", true) }
}

/// Formats an offset with its sign. With `minutes` false, minutes that are zero are left out.
pub(super) fn signed(offset_s: i32, colon: &str, minutes: bool) -> String {
    let (sign, total) = (if offset_s < 0 { '-' } else { '+' }, offset_s.unsigned_abs());
    let mut out = format!("{sign}{:02}", total / 3600);
    if minutes || total % 3600 != 0 {
        let _ = write!(out, "{colon}{:02}", total / 60 % 60);
    }
    if total % 60 != 0 {
        let _ = write!(out, "{colon}{:02}", total % 60);
    }
    out
}

/// Formats as ISO 8601, like `toString` in Java.
impl fmt::Display for OffsetDateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        super::amount::write_date_time(self.local(), false, f)?;
        f.write_str(&offset_text(self.offset_s))
    }
}
