//! `Integer`, `Long`, `Double`, `Float`, `Boolean`, `Character`, `System`.

use num_bigint::BigInt;

use super::super::parse::{double, integer as read_integer, parse_double};
use super::super::row::rows;
use crate::args::{at, expected, fault, int, number, take, text};
use crate::machine::{Machine, Raised};
use crate::print::excerpt;
use crate::{ErrorKind, Value};

/// Defines the rows of the integer classes, which differ only in their names.
macro_rules! integers {
    ($($module:ident $class:literal $parse:literal $parse_example:literal $value_of:literal $to_string:literal $hex:literal $binary:literal $to_hex:ident $to_binary:ident;)*) => {$(
        pub(in crate::builtins) mod $module {
            use super::{$to_binary, $to_hex, parse_integer, rows, to_string, value_of};
            rows! { $class:
                $parse ["[s]", "[s radix]"] parse_integer, "The integer that the whole text is, in base 10 or radix; nil if it is none." { $parse_example => "42" };
                "valueOf" ["[x]"] value_of, "The integer that a text is, or an integer as it is; anything else fails." { $value_of => "42" };
                "toString" ["[x]", "[x radix]"] to_string, "An integer as text, in base 10 or radix." { $to_string => "\"42\"" };
                "toHexString" ["[x]"] $to_hex, "An integer in base 16; a negative one as the bits that it has in Java." { $hex => "\"ff\"" };
                "toBinaryString" ["[x]"] $to_binary, "An integer in base 2; a negative one as the bits that it has in Java." { $binary => "\"101\"" };
            }
        }
    )*};
}

integers! {
    integer "Integer" "parseInt" "(Integer/parseInt \"42\")" "(Integer/valueOf \"42\")" "(Integer/toString 42)" "(Integer/toHexString 255)" "(Integer/toBinaryString 5)" to_hex_32 to_binary_32;
    long "Long" "parseLong" "(Long/parseLong \"42\")" "(Long/valueOf \"42\")" "(Long/toString 42)" "(Long/toHexString 255)" "(Long/toBinaryString 5)" to_hex to_binary;
}

/// Defines the rows of the double classes.
macro_rules! doubles {
    ($($module:ident $class:literal $parse:literal $parse_example:literal $value_of:literal $to_string:literal $nan:literal $infinite:literal;)*) => {$(
        pub(in crate::builtins) mod $module {
            use super::{double_of, double_text, is_infinite, is_nan, parse_double, rows};
            rows! { $class:
                $parse ["[s]"] parse_double, "The double that the whole text is, or nil." { $parse_example => "1.5" };
                "valueOf" ["[x]"] double_of, "The double that a text is, or a number as a double; anything else fails." { $value_of => "1.5" };
                "toString" ["[x]"] double_text, "A number as the text of a double." { $to_string => "\"1.0\"" };
                "isNaN" ["[x]"] is_nan, "Whether a number is NaN." { $nan => "true" };
                "isInfinite" ["[x]"] is_infinite, "Whether a number is infinite." { $infinite => "true" };
            }
        }
    )*};
}

doubles! {
    doubles "Double" "parseDouble" "(Double/parseDouble \"1.5\")" "(Double/valueOf \"1.5\")" "(Double/toString 1)" "(Double/isNaN ##NaN)" "(Double/isInfinite ##Inf)";
    floats "Float" "parseFloat" "(Float/parseFloat \"1.5\")" "(Float/valueOf \"1.5\")" "(Float/toString 1)" "(Float/isNaN ##NaN)" "(Float/isInfinite ##-Inf)";
}

pub(in crate::builtins) mod boolean {
    use super::{parse_boolean, rows};
    rows! { "Boolean":
        "parseBoolean" ["[s]"] parse_boolean, "Whether the text is true, in any case; false for nil." { "(Boolean/parseBoolean \"TRUE\")" => "true" };
        "valueOf" ["[x]"] parse_boolean, "A boolean as it is, or whether a text is true, in any case." { "(Boolean/valueOf \"no\")" => "false" };
    }
}

pub(in crate::builtins) mod character {
    use super::{
        digit, is_digit, is_letter, is_letter_or_digit, is_lower, is_space, is_upper, numeric_value, rows, to_lower, to_upper,
    };
    rows! { "Character":
        "isDigit" ["[c]"] is_digit, "Whether a character is a digit." { "(Character/isDigit \\7)" => "true" };
        "isLetter" ["[c]"] is_letter, "Whether a character is a letter." { "(Character/isLetter \\a)" => "true" };
        "isLetterOrDigit" ["[c]"] is_letter_or_digit, "Whether a character is a letter or digit." { "(Character/isLetterOrDigit \\-)" => "false" };
        "isWhitespace" ["[c]"] is_space, "Whether a character is white space." { "(Character/isWhitespace \\space)" => "true" };
        "isUpperCase" ["[c]"] is_upper, "Whether a character is an upper-case letter." { "(Character/isUpperCase \\A)" => "true" };
        "isLowerCase" ["[c]"] is_lower, "Whether a character is a lower-case letter." { "(Character/isLowerCase \\A)" => "false" };
        "toUpperCase" ["[c]"] to_upper, "A character in upper case." { "(Character/toUpperCase \\a)" => "\"A\"" };
        "toLowerCase" ["[c]"] to_lower, "A character in lower case." { "(Character/toLowerCase \\A)" => "\"a\"" };
        "digit" ["[c radix]"] digit, "The value of a digit in a base from 2 to 36, -1 of other characters." { "(Character/digit \\7 10)" => "7" };
        "getNumericValue" ["[c]"] numeric_value, "The value of a digit, -1 of other characters." { "(Character/getNumericValue \\7)" => "7" };
    }
}

pub(in crate::builtins) mod system {
    use super::{nanos, now, rows};
    rows! { "System":
        "currentTimeMillis" ["[]"] now, "Milliseconds since 1970, from the host's clock." { "(pos? (System/currentTimeMillis))" => "true" };
        "nanoTime" ["[]"] nanos, "Nanoseconds of a clock that only goes forward, for measuring how long something takes." { "(let [t (System/nanoTime)] (<= t (System/nanoTime)))" => "true" };
    }
}

pub(in crate::builtins) mod core {
    use super::{now, rows};
    rows! { "ptc.core":
        "currentTimeMillis" ["[]"] now, "The same as System/currentTimeMillis." { "(pos? (currentTimeMillis))" => "true" };
    }
}

/// Returns a radix for writing or parsing integers.
fn radix(m: &mut Machine, name: &str, args: &[Value]) -> Result<u32, Raised> {
    if args.len() < 2 {
        return Ok(10);
    }
    match u32::try_from(int(m, name, args, 1)?) {
        Ok(radix @ 2..=36) => Ok(radix),
        _ => Err(expected(m, name, "a base from 2 to 36", 1, at(args, 1))),
    }
}

fn parse_integer(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let radix = radix(m, "Integer/parseInt", args)?;
    let Some(text) = at(args, 0).as_str() else { return Ok(Value::Nil) };
    if radix == 10 {
        return Ok(read_integer(text).unwrap_or_default());
    }
    let known = text.len() <= 10_000 && text.strip_prefix(['-', '+']).unwrap_or(text).chars().all(|c| c.is_digit(radix));
    let read = known.then(|| BigInt::parse_bytes(text.as_bytes(), radix)).flatten();
    Ok(read.map(Value::big).unwrap_or_default())
}

fn value_of(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    match at(args, 0) {
        Value::Int(_) | Value::BigInt(_) => Ok(take(args, 0)),
        Value::Str(text) => match read_integer(text.as_str()) {
            Some(value) => Ok(value),
            None => Err(fault(
                m,
                ErrorKind::RuntimeError,
                "Integer/valueOf",
                &format!("{:?} is not an integer", excerpt(text.as_str())),
            )),
        },
        other => Err(expected(m, "Integer/valueOf", "an integer or its text", 0, other)),
    }
}

fn in_base(m: &mut Machine, name: &str, args: &[Value], radix: u32) -> Result<Value, Raised> {
    match at(args, 0) {
        Value::Int(i) => Ok(Value::from(BigInt::from(*i).to_str_radix(radix))),
        Value::BigInt(big) => {
            m.tick(u32::try_from(big.bits() / 8).unwrap_or(u32::MAX))?;
            Ok(Value::from(big.to_str_radix(radix)))
        }
        other => Err(expected(m, name, "an integer", 0, other)),
    }
}

fn to_string(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let radix = radix(m, "Integer/toString", args)?;
    in_base(m, "Integer/toString", args, radix)
}

/// Writes a 64-bit integer. A negative one is written as its two's complement.
fn bits(m: &mut Machine, name: &str, args: &[Value], radix: u32) -> Result<Value, Raised> {
    match at(args, 0) {
        Value::Int(i) if *i < 0 => Ok(Value::from(BigInt::from(*i as u64).to_str_radix(radix))),
        _ => in_base(m, name, args, radix),
    }
}

fn to_hex(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    bits(m, "Long/toHexString", args, 16)
}

fn to_binary(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    bits(m, "Long/toBinaryString", args, 2)
}

/// Writes a 32-bit integer. An integer that does not fit is written as 64 bits.
fn bits_32(m: &mut Machine, name: &str, args: &[Value], radix: u32) -> Result<Value, Raised> {
    match at(args, 0) {
        Value::Int(i) if *i < 0 && i32::try_from(*i).is_ok() => Ok(Value::from(BigInt::from(*i as u32).to_str_radix(radix))),
        _ => bits(m, name, args, radix),
    }
}

fn to_hex_32(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    bits_32(m, "Integer/toHexString", args, 16)
}

fn to_binary_32(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    bits_32(m, "Integer/toBinaryString", args, 2)
}

fn double_of(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    match at(args, 0) {
        Value::Str(text) => match double(text.as_str()) {
            Some(value) => Ok(Value::double(value)),
            None => {
                Err(fault(m, ErrorKind::RuntimeError, "Double/valueOf", &format!("{:?} is not a number", excerpt(text.as_str()))))
            }
        },
        _ => crate::args::double(m, "Double/valueOf", args, 0).map(Value::double),
    }
}

fn double_text(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let value = Value::double(crate::args::double(m, "Double/toString", args, 0)?);
    let mut out = String::new();
    super::super::output::write_str(m, &value, &mut out)?;
    Ok(Value::from(out))
}

fn is_nan(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(Value::bool(super::super::arithmetic::is_nan(number(m, "Double/isNaN", args, 0)?)))
}

fn is_infinite(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(Value::bool(crate::args::double(m, "Double/isInfinite", args, 0)?.is_infinite()))
}

fn parse_boolean(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    match at(args, 0) {
        Value::Nil => Ok(Value::False),
        Value::False | Value::True => Ok(take(args, 0)),
        Value::Str(text) => Ok(Value::bool(text.as_str().eq_ignore_ascii_case("true"))),
        other => Err(expected(m, "Boolean/parseBoolean", "a string", 0, other)),
    }
}

/// Returns the only character of a string, or the character of a code.
fn character(m: &mut Machine, name: &str, args: &[Value]) -> Result<char, Raised> {
    if let Value::Int(code) = at(args, 0) {
        let c = u32::try_from(*code).ok().and_then(char::from_u32);
        return c.ok_or(()).map_err(|()| expected(m, name, "a character or its code", 0, at(args, 0)));
    }
    let text = text(m, name, args, 0)?;
    let mut chars = text.as_str().chars();
    match (chars.next(), chars.next()) {
        (Some(c), None) => Ok(c),
        _ => Err(expected(m, name, "a character", 0, at(args, 0))),
    }
}

macro_rules! of_character {
    ($($name:ident $label:literal $f:expr;)*) => {$(
        fn $name(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
            let f: fn(char) -> bool = $f;
            Ok(Value::bool(f(character(m, $label, args)?)))
        }
    )*};
}

of_character! {
    is_digit "Character/isDigit" char::is_numeric;
    is_letter "Character/isLetter" char::is_alphabetic;
    is_letter_or_digit "Character/isLetterOrDigit" char::is_alphanumeric;
    is_space "Character/isWhitespace" char::is_whitespace;
    is_upper "Character/isUpperCase" char::is_uppercase;
    is_lower "Character/isLowerCase" char::is_lowercase;
}

fn to_upper(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(Value::from(character(m, "Character/toUpperCase", args)?.to_uppercase().collect::<String>()))
}

fn to_lower(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(Value::from(character(m, "Character/toLowerCase", args)?.to_lowercase().collect::<String>()))
}

fn digit(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let radix = radix(m, "Character/digit", args)?;
    let digit = character(m, "Character/digit", args)?.to_digit(radix);
    Ok(Value::Int(digit.map_or(-1, i64::from)))
}

fn numeric_value(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let digit = character(m, "Character/getNumericValue", args)?.to_digit(36);
    Ok(Value::Int(digit.map_or(-1, i64::from)))
}

fn now(m: &mut Machine, _: &mut [Value]) -> Result<Value, Raised> {
    Ok(Value::Int(m.host().now_ms()))
}

fn nanos(m: &mut Machine, _: &mut [Value]) -> Result<Value, Raised> {
    Ok(Value::Int(m.host().monotonic_ns()))
}
