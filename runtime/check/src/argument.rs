//! Checks one argument of a call against its row in the catalog. The runtime applies the same rules before a call; for a literal
//! they apply before the program runs.

use ptc_catalog::{Arg, Tool, Type};
use ptc_lisp::{Kind, Value, json, print};
use ptc_text::join_limited;

use crate::{bounds, integers};
use ptc_text::closest_match;

/// Maximum number of values listed in a message. The rest is counted.
const LISTED: usize = 30;
/// Maximum bytes of a value in a message.
const SHOWN_BYTES: usize = 240;

/// Returns the reason why a value is rejected for an argument, as the rest of a sentence: `'limit' must be integer, got string
/// "ten"`, `'limit' must be at least 1, got 0`. The rule is the same for calls in the text of a program and for calls at run
/// time.
pub fn fault(tool: &Tool, arg: &Arg, value: &Value) -> Option<String> {
    mismatch(arg, value).or_else(|| bounds::violation(tool, arg.name, value))
}

/// Converts whole doubles to integers where the argument's schema admits integers and no other numbers. Returns `None` if nothing
/// changes.
pub fn with_integers(tool: &Tool, arg: &Arg, value: &Value) -> Option<Value> {
    if arg.types.admits(Type::Integer)
        && !arg.types.admits(Type::Number)
        && let Some(integer) = integers::whole(value)
    {
        return Some(Value::int(integer));
    }
    integers::with_integers(tool, arg.name, value)
}

/// Returns the mismatch between a value and the types and values that the row admits.
fn mismatch(arg: &Arg, value: &Value) -> Option<String> {
    let Some(found) = json_type(value) else {
        return Some(format!("not JSON-encodable ('{}' is {})", arg.name, value.kind().described()));
    };
    // JSON Schema counts a double without a fraction as an integer.
    let whole = matches!(value.kind(), Kind::Double) && value.as_f64().is_some_and(|d| d.fract() == 0.0);
    let admitted = arg.types.admits(found) || whole && arg.types.admits(Type::Integer);
    if !admitted {
        return Some(format!("'{}' must be {}, got {} {}", arg.name, arg.label, name_of(found), shown(value)));
    }
    if arg.allowed.is_empty()
        || arg.allowed().any(|text| json::decode(text.as_bytes()).is_ok_and(|wanted| equals(&wanted, value)))
    {
        return None;
    }
    Some(not_one_of(arg.name, &arg.allowed().collect::<Vec<_>>(), value))
}

/// Formats the mismatch of a value that is not one of the `allowed` values, as the rest of a sentence.
pub(crate) fn not_one_of(path: &str, allowed: &[&str], value: &Value) -> String {
    let near = value.as_name().and_then(|name| closest_match(name, allowed.iter().map(|text| text.trim_matches('"'))));
    let near = near.map_or_else(String::new, |near| format!(". Did you mean \"{near}\"?"));
    format!("'{path}' must be one of {}, got {}{near}", join_limited(allowed, ", ", LISTED), shown(value))
}

/// Returns the JSON type that a value is encoded as, or `None` if it cannot be encoded.
pub(crate) fn json_type(value: &Value) -> Option<Type> {
    Some(match value.kind() {
        Kind::Nil => Type::Null,
        Kind::Bool => Type::Boolean,
        Kind::Int | Kind::BigInt => Type::Integer,
        Kind::Double => Type::Number,
        Kind::String | Kind::Keyword | Kind::Symbol | Kind::Temporal => Type::String,
        Kind::Vector | Kind::Set => Type::Array,
        Kind::Map => Type::Object,
        Kind::Regex | Kind::Var | Kind::Function | Kind::InfiniteSeq => return None,
    })
}

/// Whether `value` is encoded as `wanted`. Keywords are encoded as strings.
pub(crate) fn equals(wanted: &Value, value: &Value) -> bool {
    match (wanted.as_str(), value.as_name()) {
        (Some(wanted), Some(name)) => wanted == name,
        _ => match (wanted.as_f64(), value.as_f64()) {
            (Some(a), Some(b)) => a.total_cmp(&b).is_eq(),
            _ => wanted == value,
        },
    }
}

pub(crate) fn name_of(kind: Type) -> &'static str {
    Type::ALL.iter().find(|(k, _)| *k == kind).map_or("value", |(_, name)| name)
}

/// Formats a value for a message, on one line.
pub fn shown(value: &Value) -> String {
    let text = print::preview(value, SHOWN_BYTES).text;
    text.lines().next().unwrap_or_default().to_owned()
}
