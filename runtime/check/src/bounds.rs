//! Checks the constraints of an argument's schema before a call.
//!
//! The schema is the one in the tool's definition. A value is rejected only if the schema certainly excludes it: unsupported
//! keywords, external references, and patterns that Rust's `regex` does not support are ignored. Nested values are checked
//! through `properties`, `additionalProperties`, `items`, `allOf`, `anyOf`, `oneOf` and local references. For nested values this
//! includes type and `enum`, which the catalog covers for whole arguments only.

use std::borrow::Cow;

use ptc_catalog::Tool;
use ptc_lisp::{Kind, Value, json, temporal};

use crate::argument::{equals, json_type, name_of, not_one_of, shown};
use crate::argument_names::is_in_body;
use crate::input_schema::{InputSchema, admits, member, parts, types};

/// Maximum bytes of an `enum` value in a message.
const MAX_VALUE_BYTES: usize = 1_000;
/// Maximum number of visited pairs of a value and a schema in one argument. The rest is accepted unchecked.
pub(crate) const MAX_STEPS: u32 = 100_000;
/// Maximum nesting depth of values and schemas.
pub(crate) const MAX_DEPTH: u32 = 64;

/// Returns the constraint that a value of an argument violates, as the rest of a sentence: `'limit' must be at least 1, got 0`.
pub(crate) fn violation(tool: &Tool, name: &str, value: &Value) -> Option<String> {
    let schema = InputSchema::for_tool(tool)?;
    Walk { schema, steps: 0, is_in_body: is_in_body(tool, name) }.violation(
        schema.argument(name)?,
        value,
        &Path { text: name, is_inner: false },
        0,
    )
}

/// The position of a value.
struct Path<'p> {
    text: &'p str,
    /// Whether the value is nested in an argument.
    is_inner: bool,
}

impl Path<'_> {
    fn inner(text: &str) -> Path<'_> {
        Path { text, is_inner: true }
    }
}

/// A traversal of a value with its schema.
struct Walk {
    schema: &'static InputSchema,
    steps: u32,
    /// Whether the argument is a request body or a member of one. Only there, required members of nested maps are checked: MCP
    /// servers may fill in their defaults.
    is_in_body: bool,
}

impl Walk {
    /// Counts a step. Returns whether a limit of the traversal is exceeded.
    fn is_over(&mut self, depth: u32) -> bool {
        self.steps += 1;
        self.steps > MAX_STEPS || depth > MAX_DEPTH
    }

    fn violation(&mut self, schema: &'static Value, value: &Value, path: &Path<'_>, depth: u32) -> Option<String> {
        if value.is_nil() || schema.kind() != Kind::Map || self.is_over(depth) {
            return None;
        }
        if let Some(target) = self.schema.target(schema)
            && let Some(why) = self.violation(target, value, path, depth + 1)
        {
            return Some(why);
        }
        for part in parts(schema, "allOf") {
            if let Some(why) = self.violation(part, value, path, depth + 1) {
                return Some(why);
            }
        }
        for key in ["anyOf", "oneOf"] {
            let mut first = None;
            let mut is_taken = schema.get(key).is_none();
            for branch in parts(schema, key) {
                if !admits(self.schema.resolved(branch), value) {
                    continue;
                }
                match self.violation(branch, value, path, depth + 1) {
                    None => is_taken = true,
                    why => first = first.or(why),
                }
            }
            if !is_taken {
                let branches = parts(schema, key).map(|branch| self.schema.resolved(branch));
                first = first.or_else(|| of_other_type(branches, value, path));
                if first.is_some() {
                    return first;
                }
            }
        }
        if !admits(schema, value) {
            return of_other_type([schema].into_iter(), value, path);
        }
        if path.is_inner
            && let Some(why) = of_other_value(schema, value, path.text)
        {
            return Some(why);
        }
        match value.kind() {
            Kind::Int | Kind::BigInt | Kind::Double => number(schema, value).map(|rule| wrong(path.text, &rule, value)),
            Kind::String | Kind::Keyword | Kind::Symbol | Kind::Temporal => {
                self.text(schema, value).map(|rule| wrong(path.text, &rule, value))
            }
            Kind::Vector | Kind::Set => {
                if let Some(rule) = count(schema, value.len()?, ["minItems", "maxItems"], "item") {
                    return Some(format!("'{}' must have {rule}, got {}", path.text, value.len()?));
                }
                if schema.get("uniqueItems").and_then(Value::as_bool) == Some(true)
                    && let Some(twice) = self.repeated(value)
                {
                    return Some(format!("'{}' must have unique items, got {} twice", path.text, shown(&twice)));
                }
                let items = schema.get("items").filter(|_| schema.get("prefixItems").is_none())?;
                let found = |(at, item)| self.violation(items, item, &Path::inner(&format!("{}[{at}]", path.text)), depth + 1);
                value.items()?.enumerate().find_map(found)
            }
            Kind::Map => {
                if let Some(name) = self.missing_member(schema, value) {
                    return Some(format!("'{}.{name}' is missing", path.text));
                }
                value.entries()?.find_map(|(key, item)| {
                    let name = key.as_name()?;
                    let named = schema.get("properties").and_then(|properties| member(properties, name));
                    let other = schema.get("additionalProperties").filter(|_| schema.get("patternProperties").is_none());
                    self.violation(named.or(other)?, item, &Path::inner(&format!("{}.{name}", path.text)), depth + 1)
                })
            }
            _ => None,
        }
    }

    /// Returns a required member that a map in a request body does not have. A name that the same schema does not declare is
    /// skipped: its member may be `readOnly`, which is left out of arguments.
    fn missing_member(&mut self, schema: &'static Value, value: &Value) -> Option<&'static str> {
        let names = schema.get("required").filter(|_| self.is_in_body).and_then(Value::items)?.filter_map(Value::as_str);
        let is_given = |name: &str| value.entries().into_iter().flatten().any(|(key, _)| key.as_name() == Some(name));
        let is_declared = |name: &str| schema.get("properties").is_some_and(|properties| member(properties, name).is_some());
        let mut missing = names.filter(|name| !is_given(name) && is_declared(name));
        missing.find(|_| !self.is_over(0))
    }

    /// Returns an item that occurs twice in a list. Lists that need too many comparisons are accepted.
    fn repeated(&mut self, list: &Value) -> Option<Value> {
        let items: Vec<&Value> = list.items()?.collect();
        for (at, item) in items.iter().enumerate() {
            for earlier in items.iter().take(at) {
                if self.is_over(0) {
                    return None;
                }
                if earlier == item {
                    return Some((*item).clone());
                }
            }
        }
        None
    }

    /// Returns the constraint that a string violates, as the continuation of `must`. Dates and times are checked in their encoded
    /// form.
    fn text(&self, schema: &Value, value: &Value) -> Option<String> {
        let text: Cow<'_, str> = match (value.as_name(), value.as_temporal()) {
            (Some(name), _) => name.into(),
            (None, Some(temporal)) => temporal.to_string().into(),
            (None, None) => return None,
        };
        if schema.get("minLength").or_else(|| schema.get("maxLength")).is_some()
            && let Some(rule) = count(schema, text.chars().count(), ["minLength", "maxLength"], "character")
        {
            return Some(format!("have {rule}"));
        }
        if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
            && self.schema.matches(pattern, &text) == Some(false)
        {
            return Some(format!("match the pattern {}", shown(&Value::string(pattern))));
        }
        match schema.get("format").and_then(Value::as_str)? {
            "date" if !temporal::is_date(&text) => Some("be a date such as \"2026-01-31\"".to_owned()),
            "date-time" if !temporal::is_date_time(&text) => {
                Some("be a date and time with an offset such as \"2026-01-31T09:30:00Z\"".to_owned())
            }
            _ => None,
        }
    }
}

/// Returns a message if none of the schemas admits the type of a nested value. Types of whole arguments are checked by their
/// rows.
fn of_other_type<'s>(schemas: impl Iterator<Item = &'s Value>, value: &Value, path: &Path<'_>) -> Option<String> {
    if !path.is_inner {
        return None;
    }
    let mut wanted: Vec<&str> = Vec::new();
    for schema in schemas {
        if admits(schema, value) {
            return None;
        }
        let new: Vec<&str> = types(schema).filter(|name| !wanted.contains(name)).collect();
        wanted.extend(new);
    }
    let found = json_type(value).map(name_of)?;
    (!wanted.is_empty()).then(|| format!("'{}' must be {}, got {found} {}", path.text, wanted.join("|"), shown(value)))
}

/// Returns a message if a nested value is not one of those that its schema lists.
fn of_other_value(schema: &Value, value: &Value, path: &str) -> Option<String> {
    let listed: Vec<&Value> = match schema.get("const") {
        Some(only) => vec![only],
        None => schema.get("enum")?.items()?.collect(),
    };
    if listed.iter().any(|wanted| equals(wanted, value)) {
        return None;
    }
    let texts: Vec<String> = listed.iter().filter_map(|wanted| json::encode(wanted, MAX_VALUE_BYTES).ok()).collect();
    Some(not_one_of(path, &texts.iter().map(String::as_str).collect::<Vec<_>>(), value))
}

fn wrong(path: &str, rule: &str, value: &Value) -> String {
    format!("'{path}' must {rule}, got {}", shown(value))
}

/// Returns the constraint that a number violates, as the continuation of `must`.
fn number(schema: &Value, value: &Value) -> Option<String> {
    let bound = |key: &str| schema.get(key).filter(|bound| bound.as_f64().is_some());
    // In draft 4, which OpenAPI 3.0 uses, `exclusiveMinimum` and `exclusiveMaximum` are flags that exclude the bound itself.
    let is_left_out = |key: &str| schema.get(key).and_then(Value::as_bool) == Some(true);
    let above = |bound: &Value| format!("be greater than {}", shown(bound));
    let below = |bound: &Value| format!("be less than {}", shown(bound));
    match bound("minimum") {
        Some(least) if is_left_out("exclusiveMinimum") && value <= least => return Some(above(least)),
        Some(least) if value < least => return Some(format!("be at least {}", shown(least))),
        _ => {}
    }
    match bound("maximum") {
        Some(most) if is_left_out("exclusiveMaximum") && value >= most => return Some(below(most)),
        Some(most) if value > most => return Some(format!("be at most {}", shown(most))),
        _ => {}
    }
    if let Some(least) = bound("exclusiveMinimum").filter(|least| value <= *least) {
        return Some(above(least));
    }
    if let Some(most) = bound("exclusiveMaximum").filter(|most| value >= *most) {
        return Some(below(most));
    }
    let step = bound("multipleOf").filter(|step| !is_multiple(value, step))?;
    Some(format!("be a multiple of {}", shown(step)))
}

fn is_multiple(value: &Value, step: &Value) -> bool {
    if let (Some(value), Some(step)) = (value.as_int(), step.as_int()) {
        return step <= 0 || value % step == 0;
    }
    let (Some(value), Some(step)) = (value.as_f64(), step.as_f64().filter(|step| *step > 0.0)) else { return true };
    // A decimal such as 0.1 has no exact double. Only values that are clearly between two multiples are rejected.
    let times = value / step;
    (times - times.round()).abs() <= 1e-9 * times.abs().max(1.0)
}

/// Returns the bound that a count violates, such as `at least 2 items`.
fn count(schema: &Value, count: usize, [least, most]: [&str; 2], unit: &str) -> Option<String> {
    let bound = |key: &str| schema.get(key).and_then(Value::as_int).and_then(|bound| usize::try_from(bound).ok());
    let written = |how: &str, bound: usize| Some(format!("{how} {bound} {unit}{}", if bound == 1 { "" } else { "s" }));
    match (bound(least), bound(most)) {
        (Some(bound), _) if count < bound => written("at least", bound),
        (_, Some(bound)) if count > bound => written("at most", bound),
        _ => None,
    }
}
