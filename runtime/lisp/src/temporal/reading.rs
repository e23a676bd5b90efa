//! Parses dates and times with a pattern of `DateTimeFormatter`, following the rules of `ofPattern`.

use jiff::civil::{Date, DateTime, Time};

use super::offset::{OffsetDateTime, parse_offset};
use super::pattern::{Part, Style};
use super::{MONTHS, WEEKDAYS};

/// The parsed numbers by pattern letter. If a letter occurs twice, the last one counts.
type Fields = Vec<(char, i64)>;

fn get(fields: &[(char, i64)], letter: char) -> Option<i64> {
    fields.iter().rev().find(|(known, _)| *known == letter).map(|(_, value)| *value)
}

/// Parses all of `text` as a date. `None` if it does not match the pattern or lacks a part of a date.
pub(crate) fn read_date(text: &str, style: &Style<'_>) -> Option<Date> {
    date(&fields(text, style)?)
}

/// Like [`read_date`], but also requires a time.
pub(crate) fn read_date_time(text: &str, style: &Style<'_>) -> Option<DateTime> {
    let fields = fields(text, style)?;
    Some(DateTime::from_parts(date(&fields)?, time(&fields)?))
}

/// Like [`read_date_time`], but also requires an offset.
pub(crate) fn read_offset_date_time(text: &str, style: &Style<'_>) -> Option<OffsetDateTime> {
    let fields = fields(text, style)?;
    let offset_s = ['X', 'x', 'Z'].iter().find_map(|letter| get(&fields, *letter))?;
    OffsetDateTime::from_local(DateTime::from_parts(date(&fields)?, time(&fields)?), i32::try_from(offset_s).ok()?)
}

fn fields(text: &str, style: &Style<'_>) -> Option<Fields> {
    match style.iso() {
        None => fields_of(text, style.parts()),
        Some(iso) => iso.patterns().iter().find_map(|pattern| fields_of(text, Style::parse(pattern).ok()?.parts())),
    }
}

fn fields_of(text: &str, parts: &[Part<'_>]) -> Option<Fields> {
    let mut fields = Fields::new();
    let mut rest = text;
    for (at, part) in parts.iter().enumerate() {
        match part {
            Part::Text(wanted) => rest = rest.strip_prefix(*wanted)?,
            Part::Field(letter, count) => {
                let value;
                (value, rest) = match (letter, *count) {
                    ('M' | 'L', 3..) => named(rest, &MONTHS, *count)?,
                    ('E', _) => named(rest, &WEEKDAYS, (*count).max(3))?,
                    ('a', _) => named(rest, &["AM", "PM"], 4)?,
                    ('X' | 'x' | 'Z', _) => offset(rest)?,
                    (letter, count) => {
                        // In a run of adjacent numbers the later ones have a fixed width, which is reserved for them.
                        let taken: usize = parts.iter().skip(at + 1).map_while(fixed).sum();
                        let (least, most) = width(*letter, count);
                        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
                        let digits = digits.saturating_sub(if least == most { 0 } else { taken }).min(most);
                        if digits < least {
                            return None;
                        }
                        let number: i64 = rest.get(..digits)?.parse().ok()?;
                        (number, rest.get(digits..)?)
                    }
                };
                let value = match (letter, *count) {
                    ('y' | 'u', 2) => 2000 + value,
                    ('S', count) => value.checked_mul(10_i64.checked_pow(9_u32.checked_sub(count as u32)?)?)?,
                    _ => value,
                };
                let letter = match letter {
                    'u' => 'y',
                    'L' => 'M',
                    'n' => 'S',
                    other => *other,
                };
                fields.push((letter, value));
            }
        }
    }
    rest.is_empty().then_some(fields)
}

/// Minimum and maximum digits of a number.
fn width(letter: char, count: usize) -> (usize, usize) {
    match (letter, count) {
        ('n', count) => (count, 9),
        ('S', count) => (count, count),
        (_, 1) => (1, 9),
        ('D', 2) => (2, 3),
        (_, count) => (count, count),
    }
}

/// The width in digits of a number that always has the same one. `None` for other parts.
fn fixed(part: &Part<'_>) -> Option<usize> {
    match part {
        Part::Field('M' | 'L', 3..) | Part::Field('E' | 'a' | 'X' | 'x' | 'Z', _) | Part::Text(_) => None,
        Part::Field(letter, count) => {
            let (least, most) = width(*letter, *count);
            (least == most).then_some(least)
        }
    }
}

/// Parses the name at the beginning of `text` and returns its number, counted from 1. Four or more pattern letters select full
/// names, fewer their first three letters.
fn named<'t>(text: &'t str, names: &[&str], count: usize) -> Option<(i64, &'t str)> {
    let cased = |name: &str| -> String {
        let short = if name.len() <= 2 { name.len() } else { 1 };
        let length = if count >= 4 { name.len() } else { 3 };
        name.chars().take(length).enumerate().map(|(at, c)| if at < short { c } else { c.to_ascii_lowercase() }).collect()
    };
    (1..).zip(names).find_map(|(number, name)| Some((number, text.strip_prefix(&*cased(name))?)))
}

/// Parses an offset in seconds. Local dates and times ignore it.
fn offset(text: &str) -> Option<(i64, &str)> {
    let text = match text.strip_prefix("GMT") {
        Some(rest) if !rest.starts_with(['+', '-', 'Z']) => return Some((0, rest)),
        Some(rest) => rest,
        None => text,
    };
    if let Some(rest) = text.strip_prefix('Z') {
        return Some((0, rest));
    }
    let digits = text.strip_prefix(['+', '-'])?;
    let end = 1 + digits.find(|c: char| !c.is_ascii_digit() && c != ':').unwrap_or(digits.len());
    Some((parse_offset(text.get(..end)?)?.into(), text.get(end..)?))
}

fn date(fields: &[(char, i64)]) -> Option<Date> {
    let year = i16::try_from(get(fields, 'y')?).ok()?;
    let date = match (get(fields, 'M'), get(fields, 'd'), get(fields, 'D')) {
        (Some(month), Some(day @ 1..=31), _) => {
            let first = Date::new(year, i8::try_from(month).ok()?, 1).ok()?;
            // The 31st of a shorter month is its last day, as with Java's `SMART` resolver.
            Date::new(year, first.month(), i8::try_from(day).ok()?.min(first.days_in_month())).ok()?
        }
        (None, None, Some(day)) => {
            let first = Date::new(year, 1, 1).ok()?;
            let date = first.checked_add(jiff::Span::new().try_days(day - 1).ok()?).ok()?;
            (day >= 1 && date.year() == year).then_some(date)?
        }
        _ => return None,
    };
    let weekday = i64::from(date.weekday().to_monday_one_offset());
    get(fields, 'E').is_none_or(|wanted| wanted == weekday).then_some(date)
}

fn time(fields: &[(char, i64)]) -> Option<Time> {
    let get = |letter| get(fields, letter);
    let afternoon = || Some(if get('a')? == 2 { 12 } else { 0 });
    let hour = match (get('H'), get('k'), get('h'), get('K')) {
        (Some(hour), ..) => hour,
        (_, Some(hour @ 1..=24), ..) => hour % 24,
        (_, _, Some(hour @ 1..=12), _) => hour % 12 + afternoon()?,
        (_, _, _, Some(hour @ 0..=11)) => hour + afternoon()?,
        _ => return None,
    };
    let part = |value: Option<i64>| i8::try_from(value.unwrap_or(0)).ok();
    Time::new(part(Some(hour))?, part(get('m'))?, part(get('s'))?, i32::try_from(get('S').unwrap_or(0)).ok()?).ok()
}
