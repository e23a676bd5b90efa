//! Builtins that parse texts: numbers, booleans, JSON.

use num_bigint::BigInt;

use super::row::rows;
use crate::args::{at, steps};
use crate::machine::{Machine, Raised};
use crate::{Value, json};

rows! { "clojure.core":
    "parse-long" ["[s]"] parse_long, "The integer that the whole text is, or nil." { "(parse-long \"42\")" => "42", "(parse-long \"4x\")" => "nil" };
    "parse-double" ["[s]"] parse_double, "The double that the whole text is, or nil." { "(parse-double \"3.14\")" => "3.14", "(parse-double \"x\")" => "nil" };
    "parse-boolean" ["[s]"] parse_boolean, "true for \"true\", false for \"false\", else nil." { "(parse-boolean \"true\")" => "true", "(parse-boolean \"yes\")" => "nil" };
}

pub(super) mod extensions {
    use super::{parse_long, rows};
    rows! { "ptc.core":
        "parse-int" ["[s]"] parse_long, "The same as parse-long." { "(parse-int \"42\")" => "42" };
    }
}

pub(super) mod json_rows {
    use super::{generate_json, parse_json, rows};
    rows! { "json":
        "parse-string" ["[s]"] parse_json, "The value of a JSON text, with string keys; nil if the text is not JSON." { "(json/parse-string \"{\\\"a\\\": [1, 2.5]}\")" => "{\"a\" [1 2.5]}", "(json/parse-string \"{\")" => "nil" };
        "generate-string" ["[x]"] generate_json, "A value as compact JSON: keywords and symbols as their names, sets as arrays, dates as ISO texts. A function, NaN or an infinite number, and a map with two keys of one name, end the program." { "(json/generate-string {:a [1 nil] \"b\" #{:x}})" => "\"{\\\"a\\\":[1,null],\\\"b\\\":[\\\"x\\\"]}\"", "(json/generate-string nil)" => "\"null\"" };
    }
}

/// Maximum digits of a text that is parsed as an integer.
const MAX_DIGITS: usize = 10_000;

/// Parses a whole text as an integer.
pub(super) fn integer(text: &str) -> Option<Value> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || digits.len() > MAX_DIGITS || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    match text.parse::<i64>() {
        Ok(i) => Some(Value::Int(i)),
        Err(_) => text.strip_prefix('+').unwrap_or(text).parse::<BigInt>().ok().map(Value::big),
    }
}

/// Parses a whole text as a double in decimal digits, or as one of Java's names for non-finite values.
pub(super) fn double(text: &str) -> Option<f64> {
    // White space around a number is ignored, as in Java.
    let text = text.trim_matches(|c: char| c <= ' ');
    match text.strip_prefix(['-', '+']).unwrap_or(text) {
        "Infinity" => return Some(if text.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY }),
        "NaN" => return Some(f64::NAN),
        _ => {}
    }
    let decimal = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'));
    if decimal { text.parse().ok() } else { None }
}

pub(super) fn parse_long(_: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(at(args, 0).as_str().and_then(integer).unwrap_or_default())
}

pub(super) fn parse_double(_: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(at(args, 0).as_str().and_then(double).map(Value::double).unwrap_or_default())
}

fn parse_boolean(_: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(match at(args, 0).as_str() {
        Some("true") => Value::True,
        Some("false") => Value::False,
        _ => Value::Nil,
    })
}

fn parse_json(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let Some(text) = at(args, 0).as_str() else { return Ok(Value::Nil) };
    Ok(json::decode_metered(m, text.as_bytes())?.unwrap_or_default())
}

/// Maximum bytes of JSON text that a program can produce.
const MAX_JSON: usize = 64 << 20;

/// The hint for a value without a JSON form.
fn json_hint(error: &json::EncodeError) -> &'static str {
    match error {
        json::EncodeError::OneKey { .. } => "an object has one entry for a name: remove one of the keys with dissoc",
        json::EncodeError::Unsupported { found, .. } if found.ends_with("as a key") || found.starts_with("the key") => {
            "names of an object are texts: make them with (update-keys m str)"
        }
        _ => "take it out, or put a text, a number or nil in its place",
    }
}

fn generate_json(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    m.charge(at(args, 0).depth() as usize * super::output::OPEN)?;
    let room = (m.room() / 2).min(MAX_JSON);
    match json::encode_metered(m, at(args, 0), room)? {
        Ok(text) => {
            m.tick(steps(text.len() / 32))?;
            Ok(Value::from(text))
        }
        Err(too_large @ json::EncodeError::TooLarge { .. }) => {
            Err(m.raise(crate::ErrorKind::MemoryExceeded, too_large.to_string()))
        }
        Err(error) => {
            let message = format!("(json/generate-string x): {error}");
            Err(m.raise_with_hint(crate::ErrorKind::TypeError, message, json_hint(&error)))
        }
    }
}
