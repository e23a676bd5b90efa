//! `format`: format strings in the notation of `java.util.Formatter`.

use std::fmt::Write;

use num_bigint::BigInt;

use super::row::rows;
use crate::args::{as_integer, at, describe, fault, text};
use crate::machine::{Machine, Raised};
use crate::{ErrorKind, Value};

rows! { "clojure.core":
    "format" ["[fmt & xs]"] format, "A text with values in its places: %s %d %f %.2f %e %x %o %c %b %n %%, with width and the flags - 0 + , and space." { "(format \"%s has %d items\" \"cart\" 3)" => "\"cart has 3 items\"", "(format \"%.2f|%5d|%-4s|\" 3.14159 42 \"ab\")" => "\"3.14|   42|ab  |\"" };
}

/// Maximum width of a specifier, so that a short format string cannot produce a text of any size.
const MAX_WIDTH: usize = 10_000;

#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the notation")]
/// One format specifier: `%[index$][flags][width][.precision]conversion`.
#[derive(Default)]
struct FormatSpecifier {
    index: Option<usize>,
    /// `%<s`: reuses the previous argument.
    again: bool,
    left: bool,
    zero: bool,
    plus: bool,
    space: bool,
    comma: bool,
    parens: bool,
    sharp: bool,
    width: usize,
    precision: Option<usize>,
    conversion: char,
}

fn number(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<usize> {
    let mut value: Option<usize> = None;
    while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
        value = Some(value.unwrap_or(0).saturating_mul(10).saturating_add(digit as usize));
        chars.next();
    }
    value
}

fn specifier(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<FormatSpecifier> {
    let mut specifier = FormatSpecifier::default();
    // A number before `$` is an index, otherwise it is the width.
    let mut ahead = chars.clone();
    if let Some(index) = number(&mut ahead)
        && ahead.next() == Some('$')
    {
        specifier.index = Some(index);
        *chars = ahead;
    }
    while let Some(flag) = chars.peek() {
        match flag {
            '-' => specifier.left = true,
            '0' => specifier.zero = true,
            '+' => specifier.plus = true,
            ' ' => specifier.space = true,
            ',' => specifier.comma = true,
            '(' => specifier.parens = true,
            '#' => specifier.sharp = true,
            '<' => specifier.again = true,
            _ => break,
        }
        chars.next();
    }
    specifier.width = number(chars).unwrap_or(0);
    if chars.peek() == Some(&'.') {
        chars.next();
        specifier.precision = Some(number(chars)?);
    }
    specifier.conversion = chars.next()?;
    Some(specifier)
}

/// Describes an error in a specifier that does not depend on the argument.
fn contradiction(specifier: &FormatSpecifier) -> Option<&'static str> {
    if (specifier.left || specifier.zero) && specifier.width == 0 {
        return Some("the flags - and 0 need a width, as in %-5s");
    }
    let numeric = is_numeric(specifier.conversion);
    if !numeric && (specifier.zero || specifier.plus || specifier.space || specifier.comma || specifier.parens) {
        return Some("the flags 0 + , ( and space are for numbers");
    }
    if specifier.comma && !matches!(specifier.conversion, 'd' | 'f' | 'g' | 'G') {
        return Some("the flag , is for %d and %f");
    }
    if specifier.sharp && !matches!(specifier.conversion, 'x' | 'X' | 'o' | 'e' | 'E' | 'f') {
        return Some("the flag # is for %x %o %e and %f");
    }
    if matches!(specifier.conversion, 'd' | 'x' | 'X' | 'o' | 'c') && specifier.precision.is_some() {
        return Some("a precision, as in %.2f, is for %f %e %g and %s");
    }
    None
}

fn is_numeric(conversion: char) -> bool {
    matches!(conversion, 'd' | 'f' | 'e' | 'E' | 'x' | 'X' | 'o' | 'g' | 'G')
}

pub(super) fn format(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let template = text(m, "format", args, 0)?.clone();
    super::text::work(m, template.as_str().len())?;
    let mut out = String::new();
    let mut chars = template.as_str().chars().peekable();
    let (mut next, mut last) = (1, 0);
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let Some(specifier) = specifier(&mut chars) else {
            return Err(fault(
                m,
                ErrorKind::TypeError,
                "format",
                "a % is followed by no conversion; write %% for a percent sign",
            ));
        };
        if let Some(what) = contradiction(&specifier) {
            return Err(fault(m, ErrorKind::TypeError, "format", what));
        }
        if specifier.width.max(specifier.precision.unwrap_or(0)) > MAX_WIDTH {
            let text = format!("a width or precision is at most {MAX_WIDTH}");
            return Err(fault(m, ErrorKind::TypeError, "format", &text));
        }
        match specifier.conversion {
            'n' => {
                out.push('\n');
                continue;
            }
            '%' => {
                pad(&specifier, "%", &mut out);
                continue;
            }
            _ => {}
        }
        let index = match specifier.index {
            Some(index) => index,
            None if specifier.again => last,
            None => {
                next += 1;
                next - 1
            }
        };
        last = index;
        if index == 0 || index >= args.len() {
            let what = format!("no value for the place %{}", specifier.conversion);
            let raised = fault(m, ErrorKind::ArityError, "format", &what);
            return Err(
                m.advise(raised, "every place of the format takes one value more: (format \"%s %s\" a b); %% is a percent sign")
            );
        }
        let value = at(args, index);
        let mut whole_text = String::new();
        if matches!(specifier.conversion, 's' | 'S') {
            super::output::write_str(m, value, &mut whole_text)?;
        }
        let Some(text) = shown(&specifier, value, &whole_text) else {
            let what = format!("%{} does not fit {}", specifier.conversion, describe(value));
            let raised = fault(m, ErrorKind::TypeError, "format", &what);
            return Err(m.advise(raised, "%s takes anything, %d integers, %.2f numbers with digits after the point"));
        };
        m.charge(text.len().max(specifier.width))?;
        pad(&specifier, &text, &mut out);
        m.tick(crate::print::work_of(value))?;
    }
    Ok(Value::from(out))
}

fn pad(specifier: &FormatSpecifier, text: &str, out: &mut String) {
    let missing = specifier.width.saturating_sub(text.chars().count());
    let numeric = is_numeric(specifier.conversion);
    if specifier.left {
        out.push_str(text);
        out.extend(std::iter::repeat_n(' ', missing));
    } else if specifier.zero && numeric && !text.ends_with(['y', 'N']) {
        let (sign, digits) = match text.strip_prefix(['-', '+', ' ', '(']) {
            Some(digits) => (text.get(..1).unwrap_or_default(), digits),
            None => ("", text),
        };
        out.push_str(sign);
        out.extend(std::iter::repeat_n('0', missing));
        out.push_str(digits);
    } else {
        out.extend(std::iter::repeat_n(' ', missing));
        out.push_str(text);
    }
}

/// Formats a value without padding. `None` if the value does not fit the conversion. `whole_text` is the text for `%s`.
fn shown(specifier: &FormatSpecifier, value: &Value, whole_text: &str) -> Option<String> {
    let mut text = String::new();
    match specifier.conversion {
        's' | 'S' => {
            text.push_str(cut(whole_text, specifier.precision));
            if specifier.conversion == 'S' {
                text = text.to_uppercase();
            }
        }
        'b' => text.push_str(cut(if value.is_truthy() { "true" } else { "false" }, specifier.precision)),
        'B' => text.push_str(cut(if value.is_truthy() { "TRUE" } else { "FALSE" }, specifier.precision)),
        'c' => match value {
            Value::Str(c) if c.count() == 1 => text.push_str(c.as_str()),
            Value::Int(code) => text.push(u32::try_from(*code).ok().and_then(char::from_u32)?),
            Value::Nil => text.push_str("null"),
            _ => return None,
        },
        'd' | 'x' | 'X' | 'o' => return integer(specifier, value),
        'f' | 'e' | 'E' | 'g' | 'G' => return decimal(specifier, value.as_f64()?),
        _ => return None,
    }
    Some(text)
}

/// Returns at most `most` characters of a text.
fn cut(text: &str, most: Option<usize>) -> &str {
    let end = most.and_then(|most| text.char_indices().nth(most)).map_or(text.len(), |(end, _)| end);
    text.get(..end).unwrap_or(text)
}

fn integer(specifier: &FormatSpecifier, value: &Value) -> Option<String> {
    let big = match value {
        Value::BigInt(big) => (**big).clone(),
        other => BigInt::from(as_integer(other)?),
    };
    let negative = big.sign() == num_bigint::Sign::Minus;
    let size = big.magnitude();
    let digits = match specifier.conversion {
        'x' if specifier.sharp => format!("0x{}", size.to_str_radix(16)),
        'x' => size.to_str_radix(16),
        'X' if specifier.sharp => format!("0X{}", size.to_str_radix(16).to_uppercase()),
        'X' => size.to_str_radix(16).to_uppercase(),
        'o' if specifier.sharp => format!("0{}", size.to_str_radix(8)),
        'o' => size.to_str_radix(8),
        _ if specifier.comma => grouped(&size.to_string()),
        _ => size.to_string(),
    };
    Some(signed(specifier, negative, &digits))
}

fn decimal(specifier: &FormatSpecifier, d: f64) -> Option<String> {
    let text = if d.is_nan() {
        "NaN".to_owned()
    } else if d.is_infinite() {
        signed(specifier, d < 0.0, "Infinity")
    } else {
        signed(specifier, d.is_sign_negative(), &finite(specifier, d.abs())?)
    };
    Some(if matches!(specifier.conversion, 'E' | 'G') { text.to_uppercase() } else { text })
}

/// Formats the magnitude of a finite double.
fn finite(specifier: &FormatSpecifier, size: f64) -> Option<String> {
    let mut precision = specifier.precision.unwrap_or(6);
    let mut plain = specifier.conversion == 'f';
    if matches!(specifier.conversion, 'g' | 'G') {
        // The precision counts all digits. Very small and very large magnitudes are written with an exponent.
        precision = precision.max(1);
        let (_, exponent) = scientific(size, precision - 1)?;
        plain = size == 0.0 || (-4..precision as i64).contains(&exponent);
        let below = if plain { precision as i64 - 1 - exponent } else { precision as i64 - 1 };
        precision = usize::try_from(below).unwrap_or(0);
    }
    let point = if specifier.sharp && precision == 0 { "." } else { "" };
    if plain {
        let text = half_up(&format!("{size}"), precision);
        return Some(match text.split_once('.') {
            Some((whole, part)) if specifier.comma => format!("{}.{part}", grouped(whole)),
            None if specifier.comma => format!("{}{point}", grouped(&text)),
            _ => format!("{text}{point}"),
        });
    }
    let (mantissa, exponent) = scientific(size, precision)?;
    let sign = if exponent < 0 { '-' } else { '+' };
    Some(format!("{mantissa}{point}e{sign}{:02}", exponent.abs()))
}

/// Formats a double in scientific notation: the mantissa with `precision` decimals, and the decimal exponent.
fn scientific(size: f64, precision: usize) -> Option<(String, i64)> {
    let shortest = format!("{size:e}");
    let (mantissa, exponent) = shortest.split_once('e')?;
    let exponent: i64 = exponent.parse().ok()?;
    let rounded = half_up(mantissa, precision);
    Some(if rounded.starts_with("10") { (half_up("1", precision), exponent + 1) } else { (rounded, exponent) })
}

/// Rounds a double's shortest digits half up to `precision` decimals, as Java does.
fn half_up(shortest: &str, precision: usize) -> String {
    let (whole, part) = shortest.split_once('.').unwrap_or((shortest, ""));
    if part.len() <= precision {
        let mut text = shortest.to_owned();
        if precision > 0 {
            if part.is_empty() {
                text.push('.');
            }
            text.extend(std::iter::repeat_n('0', precision - part.len()));
        }
        return text;
    }
    let up = part.as_bytes().get(precision).is_some_and(|digit| *digit >= b'5');
    let kept = part.get(..precision).unwrap_or_default();
    let mut digits: BigInt = format!("{whole}{kept}").parse().unwrap_or_default();
    if up {
        digits += 1;
    }
    let mut text = digits.to_string();
    if text.len() <= precision {
        text.insert_str(0, &"0".repeat(precision + 1 - text.len()));
    }
    if precision > 0 {
        text.insert(text.len() - precision, '.');
    }
    text
}

fn signed(specifier: &FormatSpecifier, negative: bool, digits: &str) -> String {
    match (negative, specifier.parens) {
        (true, true) => format!("({digits})"),
        (true, false) => format!("-{digits}"),
        _ if specifier.plus => format!("+{digits}"),
        _ if specifier.space => format!(" {digits}"),
        _ => digits.to_owned(),
    }
}

/// Formats `1234567` as `1,234,567`.
fn grouped(digits: &str) -> String {
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            let _ = write!(out, ",");
        }
        out.push(digit);
    }
    out
}
