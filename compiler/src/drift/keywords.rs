//! The keywords of input schemas: what each of them restricts, and what a change of one means for calls.

use crate::diag::Code;
use crate::json::Json;
use crate::json_schema::PROSE;

/// Keywords that are bounds, and whether a larger value admits more.
const BOUNDS: [(&str, bool); 10] = [
    ("maximum", true),
    ("exclusiveMaximum", true),
    ("maxLength", true),
    ("maxItems", true),
    ("maxProperties", true),
    ("minimum", false),
    ("exclusiveMinimum", false),
    ("minLength", false),
    ("minItems", false),
    ("minProperties", false),
];

/// Keywords that only restrict.
const REFUSING: [&str; 15] = [
    "allOf",
    "anyOf",
    "contains",
    "dependentRequired",
    "dependentSchemas",
    "if",
    "items",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "prefixItems",
    "propertyNames",
    "unevaluatedItems",
    "uniqueItems",
];

/// Keywords with alternatives and parts. Their types, values and members are compared separately.
pub(super) const COMBINING: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// Keywords that are compared by their meaning, or that hold the targets of references.
const KNOWN: [&str; 12] = [
    // The dialect of a schema is not a bound. A new library often declares another one for every tool.
    "$schema",
    "type",
    "enum",
    "const",
    "nullable",
    "properties",
    "required",
    "additionalProperties",
    "unevaluatedProperties",
    "$defs",
    "definitions",
    "$ref",
];

/// Keywords that hold the targets of references.
pub(super) const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

/// Whether a keyword is compared by its meaning, or does not restrict anything.
pub(super) fn is_compared_elsewhere(key: &str) -> bool {
    KNOWN.contains(&key) || PROSE.contains(&key) || COMBINING.contains(&key)
}

/// Whether a keyword that only restricts has no effect, neither before nor now.
pub(super) fn is_without_effect(key: &str, from: Option<&Json>, to: Option<&Json>) -> bool {
    REFUSING.contains(&key) && !says(from) && !says(to)
}

/// Returns the code for a keyword that changed, appeared or disappeared: whether it refuses more than before.
pub(super) fn direction(key: &str, from: Option<&Json>, to: Option<&Json>) -> Code {
    if let Some((_, larger_admits)) = BOUNDS.iter().find(|(bound, _)| *bound == key) {
        let number = |value: Option<&Json>| match value {
            Some(Json::Number(text)) => text.parse::<f64>().ok(),
            _ => None,
        };
        return match (from, to, number(from), number(to)) {
            (None, Some(_), _, Some(_)) => Code::InputBreaking,
            (Some(_), None, Some(_), _) => Code::InputWidened,
            (_, _, Some(from), Some(to)) if (to > from) == *larger_admits => Code::InputWidened,
            (_, _, Some(_), Some(_)) => Code::InputBreaking,
            _ => Code::InputChanged,
        };
    }
    match (REFUSING.contains(&key), says(from), says(to)) {
        (true, false, true) => Code::InputBreaking,
        (true, true, false) => Code::InputWidened,
        _ => Code::InputChanged,
    }
}

/// Whether a keyword that only restricts has an effect. `uniqueItems: false` has none.
fn says(value: Option<&Json>) -> bool {
    value.is_some_and(|value| *value != Json::Bool(false))
}
