//! Finds values for an argument that its schema certainly refuses: defaults and examples.

use ptc_catalog::Type;

use super::Schema;
use crate::diag::{quoted, suggest};
use crate::json::Json;

/// Maximum depth to which a value is checked.
const MAX_DEPTH: usize = 16;

/// Why every call with a value would be refused. The value may be a secret, so the message never contains it.
pub(crate) struct Mismatch {
    /// A sentence.
    pub(crate) message: String,
    /// The likely meant value.
    pub(crate) hint: Option<String>,
}

/// Returns the first certain mismatch of a value: its type, listed values, bounds, and those of its elements and members. `noun` says
/// what the value is for its argument, such as `default`, and `what` is the argument in a sentence.
pub(crate) fn mismatch(schema: &Schema<'_>, node: &Json, value: &Json, noun: &str, what: &str) -> Option<Mismatch> {
    within(schema, node, value, noun, what, 0)
}

fn within(schema: &Schema<'_>, node: &Json, value: &Json, noun: &str, what: &str, depth: usize) -> Option<Mismatch> {
    let plain = |message: String| Some(Mismatch { message, hint: None });
    let kind = value.kind();
    // JSON Schema treats `1.0` as an integer.
    let number = if let Json::Number(text) = value { text.parse::<f64>().ok() } else { None };
    let whole = number.is_some_and(|number| number.fract() == 0.0);
    let types = schema.types(node);
    let admitted = types.admits(kind) || whole && types.admits(Type::Integer);
    if !admitted {
        return plain(format!("the argument {what} is {}, its {noun} is {}", schema.label(node), a_value_of(kind)));
    }
    let allowed = schema.allowed(node);
    let same = |text: &String| *text == value.canonical() || number.is_some() && text.parse::<f64>().ok() == number;
    if !allowed.is_empty() && !allowed.iter().any(same) {
        let bare: Vec<&str> = allowed.iter().map(|text| text.trim_matches('"')).collect();
        let hint = value.as_str().and_then(|text| suggest::hint(text, "value", bare));
        return Some(Mismatch { message: format!("the {noun} of the argument {what} is none of its values"), hint });
    }
    let bound = |key: &str| match schema.keyword(node, key) {
        Some(Json::Number(text)) => text.parse::<f64>().ok().map(|bound| (bound, text.as_str())),
        _ => None,
    };
    let size = match value {
        Json::String(text) => Some((text.chars().count() as f64, "minLength", "maxLength", ("has", " characters"))),
        Json::Array(items) => Some((items.len() as f64, "minItems", "maxItems", ("has", " items"))),
        _ => number.map(|number| (number, "minimum", "maximum", ("is", ""))),
    };
    if let Some((size, least, most, (verb, unit))) = size {
        if let Some((_, text)) = bound(least).filter(|(bound, _)| size < *bound) {
            return plain(format!("the argument {what} {verb} at least {text}{unit}, its {noun} {verb} less"));
        }
        if let Some((_, text)) = bound(most).filter(|(bound, _)| size > *bound) {
            return plain(format!("the argument {what} {verb} at most {text}{unit}, its {noun} {verb} more"));
        }
    }
    if let Some(number) = number {
        if let Some((_, text)) = bound("exclusiveMinimum").filter(|(bound, _)| number <= *bound) {
            return plain(format!("the argument {what} is more than {text}, its {noun} is not"));
        }
        if let Some((_, text)) = bound("exclusiveMaximum").filter(|(bound, _)| number >= *bound) {
            return plain(format!("the argument {what} is less than {text}, its {noun} is not"));
        }
    }
    if depth == MAX_DEPTH {
        return None;
    }
    if let (Json::Array(values), Some(items)) = (value, schema.keyword(node, "items")) {
        let inner = |(at, value)| within(schema, items, value, noun, &format!("{what}[{at}]"), depth + 1);
        return values.iter().enumerate().find_map(inner);
    }
    let members = schema.members(node);
    value.members().iter().find_map(|(name, value)| {
        let inner = members.get(name)?;
        within(schema, inner, value, noun, &format!("{what}.{}", quoted(name)), depth + 1)
    })
}

/// Names a value of a type in a sentence.
fn a_value_of(kind: Type) -> &'static str {
    match kind {
        Type::Null => "null",
        Type::Boolean => "a boolean",
        Type::Integer => "an integer",
        Type::Number => "a number",
        Type::String => "a string",
        Type::Array => "an array",
        Type::Object => "an object",
    }
}
