//! The bounds that an argument's schema sets: what is refused before a call, and which doubles are sent as integers.
//!
//! The schema is the one in the tool's definition. Only what it surely rules out counts: keywords that are not listed here, references
//! that lead out of it, and patterns that Rust's `regex` cannot run bind nothing. Nested values are followed through `properties`,
//! `additionalProperties`, `items`, `allOf`, `anyOf`, `oneOf` and local references.

use std::borrow::Cow;

use ptc_catalog::Tool;
use ptc_lisp::{Kind, Value, json, temporal};
use regex::{Regex, RegexBuilder};

use crate::argument::shown;

/// Keywords that bind something here. A definition without any of them is not decoded.
const KEYWORDS: [&str; 11] = [
    "\"minimum\"",
    "\"maximum\"",
    "\"exclusiveMinimum\"",
    "\"exclusiveMaximum\"",
    "\"multipleOf\"",
    "\"minLength\"",
    "\"maxLength\"",
    "\"pattern\"",
    "\"format\":\"date",
    "\"minItems\"",
    "\"maxItems\"",
];

/// Bytes that a compiled pattern may take.
const PATTERN_BYTES: usize = 1 << 20;
/// Values and schemas of one argument that are looked at. What is beyond is taken as it is.
const MAX_STEPS: u32 = 100_000;
/// Levels of values and schemas that are looked at.
const MAX_DEPTH: u32 = 64;

/// What is wrong with a value by the bounds of its argument, as the rest of a sentence: `'limit' must be at least 1, got 0`.
pub(crate) fn violation(tool: &Tool, name: &str, value: &Value) -> Option<String> {
    let schema = tool.definition.split_once("\"inputSchema\"")?.1;
    if !KEYWORDS.iter().any(|keyword| schema.contains(keyword)) {
        return None;
    }
    let definition = json::decode(tool.definition.as_bytes()).ok()?;
    let root = definition.get("inputSchema")?;
    let schema = member(root.get("properties")?, name)?;
    Walk { root, steps: 0 }.violation(schema, value, name, 0)
}

/// The value with integers for the doubles without a fraction where the schema of its argument takes integers and no other numbers;
/// `None` where nothing changes.
pub(crate) fn with_integers(tool: &Tool, name: &str, value: &Value) -> Option<Value> {
    if !has_whole_double(value, &mut 0, 0) {
        return None;
    }
    let definition = json::decode(tool.definition.as_bytes()).ok()?;
    let root = definition.get("inputSchema")?;
    let schema = member(root.get("properties")?, name)?;
    Walk { root, steps: 0 }.with_integers(&[schema], value, 0)
}

/// The integer that a double without a fraction is.
pub(crate) fn whole(value: &Value) -> Option<i64> {
    // Beyond 2^63 a double is written with an exponent, which is an integer to JSON Schema too.
    let double = value.as_f64().filter(|d| value.kind() == Kind::Double && d.fract() == 0.0 && d.abs() < 9.2e18)?;
    Some(double as i64)
}

fn has_whole_double(value: &Value, steps: &mut u32, depth: u32) -> bool {
    *steps += 1;
    if *steps > MAX_STEPS || depth > MAX_DEPTH {
        return false;
    }
    match value.kind() {
        Kind::Double => whole(value).is_some(),
        Kind::Vector | Kind::Set => value.items().into_iter().flatten().any(|item| has_whole_double(item, steps, depth + 1)),
        Kind::Map => value.entries().into_iter().flatten().any(|(_, item)| has_whole_double(item, steps, depth + 1)),
        _ => false,
    }
}

/// A walk over a value and its schema.
struct Walk<'s> {
    /// The schema that references are relative to.
    root: &'s Value,
    steps: u32,
}

impl<'s> Walk<'s> {
    /// Whether to stop here.
    fn is_over(&mut self, depth: u32) -> bool {
        self.steps += 1;
        self.steps > MAX_STEPS || depth > MAX_DEPTH
    }

    fn violation(&mut self, schema: &'s Value, value: &Value, path: &str, depth: u32) -> Option<String> {
        if value.is_nil() || schema.kind() != Kind::Map || self.is_over(depth) {
            return None;
        }
        if let Some(target) = schema.get("$ref").and_then(|reference| self.target(reference.as_str()?))
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
                if !admits(self.resolved(branch), value) {
                    continue;
                }
                match self.violation(branch, value, path, depth + 1) {
                    None => is_taken = true,
                    why => first = first.or(why),
                }
            }
            if !is_taken && first.is_some() {
                return first;
            }
        }
        if !admits(schema, value) {
            return None;
        }
        match value.kind() {
            Kind::Int | Kind::BigInt | Kind::Double => number(schema, value).map(|rule| wrong(path, &rule, value)),
            Kind::String | Kind::Keyword | Kind::Symbol | Kind::Temporal => {
                text(schema, value).map(|rule| wrong(path, &rule, value))
            }
            Kind::Vector | Kind::Set => {
                if let Some(rule) = count(schema, value.len()?, ["minItems", "maxItems"], "item") {
                    return Some(format!("'{path}' must have {rule}, got {}", value.len()?));
                }
                let items = schema.get("items").filter(|_| schema.get("prefixItems").is_none())?;
                let found = |(at, item)| self.violation(items, item, &format!("{path}[{at}]"), depth + 1);
                value.items()?.enumerate().find_map(found)
            }
            Kind::Map => value.entries()?.find_map(|(key, item)| {
                let name = key.as_name()?;
                let named = schema.get("properties").and_then(|properties| member(properties, name));
                let other = schema.get("additionalProperties").filter(|_| schema.get("patternProperties").is_none());
                self.violation(named.or(other)?, item, &format!("{path}.{name}"), depth + 1)
            }),
            _ => None,
        }
    }

    /// `schemas` are all that may describe the value.
    fn with_integers(&mut self, schemas: &[&'s Value], value: &Value, depth: u32) -> Option<Value> {
        if self.is_over(depth) {
            return None;
        }
        let schemas = self.alternatives(schemas);
        match value.kind() {
            Kind::Double => {
                let integer = whole(value)?;
                let says = |kind: &str| schemas.iter().any(|schema| types(schema).any(|name| name == kind));
                (says("integer") && !says("number")).then(|| Value::int(integer))
            }
            Kind::Vector => {
                let items: Vec<&Value> = schemas.iter().filter_map(|schema| schema.get("items")).collect();
                let mut changed = false;
                let replaced = value.items()?.map(|item| {
                    let new = self.with_integers(&items, item, depth + 1);
                    changed |= new.is_some();
                    new.unwrap_or_else(|| item.clone())
                });
                let replaced = replaced.collect();
                changed.then(|| Value::vector(replaced))
            }
            Kind::Map => {
                let mut changed = false;
                let mut replaced = Vec::with_capacity(value.len().unwrap_or(0));
                for (key, item) in value.entries()? {
                    let name = key.as_name().unwrap_or_default();
                    let named = |schema: &&'s Value| {
                        let property = schema.get("properties").and_then(|properties| member(properties, name));
                        property.or_else(|| schema.get("additionalProperties"))
                    };
                    let inner: Vec<&Value> = schemas.iter().filter_map(named).collect();
                    let new = self.with_integers(&inner, item, depth + 1);
                    changed |= new.is_some();
                    replaced.push((key.clone(), new.unwrap_or_else(|| item.clone())));
                }
                changed.then(|| Value::map(replaced))
            }
            _ => None,
        }
    }

    /// The schemas with those that their references and combinations lead to.
    fn alternatives(&mut self, schemas: &[&'s Value]) -> Vec<&'s Value> {
        let (mut found, mut waiting, mut depth) = (Vec::new(), schemas.to_vec(), 0);
        while let Some(schema) = waiting.pop() {
            depth += 1;
            if depth > MAX_DEPTH {
                break;
            }
            waiting.extend(schema.get("$ref").and_then(|reference| self.target(reference.as_str()?)));
            for key in ["allOf", "anyOf", "oneOf"] {
                waiting.extend(parts(schema, key));
            }
            found.push(schema);
        }
        found
    }

    /// What a schema's reference leads to, or the schema.
    fn resolved(&self, schema: &'s Value) -> &'s Value {
        schema.get("$ref").and_then(|reference| self.target(reference.as_str()?)).unwrap_or(schema)
    }

    /// What a reference inside the schema leads to.
    fn target(&self, reference: &str) -> Option<&'s Value> {
        let segments = reference.strip_prefix('#')?.split('/').skip(1);
        segments.into_iter().try_fold(self.root, |at, segment| member(at, &segment.replace("~1", "/").replace("~0", "~")))
    }
}

/// The member of exactly that name: schemas have names with hyphens and with underscores.
fn member<'v>(map: &'v Value, name: &str) -> Option<&'v Value> {
    map.entries()?.find_map(|(key, value)| (key.as_str() == Some(name)).then_some(value))
}

fn parts<'v>(schema: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    schema.get(key).and_then(Value::items).into_iter().flatten()
}

fn wrong(path: &str, rule: &str, value: &Value) -> String {
    format!("'{path}' must {rule}, got {}", shown(value))
}

/// The types that a schema names.
fn types(schema: &Value) -> impl Iterator<Item = &str> {
    let named = schema.get("type");
    let list = named.and_then(Value::items).into_iter().flatten().filter_map(Value::as_str);
    named.and_then(Value::as_str).into_iter().chain(list)
}

/// Whether the types that a schema names have one for the value.
fn admits(schema: &Value, value: &Value) -> bool {
    let kinds: &[&str] = match value.kind() {
        Kind::Nil => &["null"],
        Kind::Bool => &["boolean"],
        Kind::Int | Kind::BigInt => &["integer", "number"],
        Kind::Double if whole(value).is_some() => &["integer", "number"],
        Kind::Double => &["number"],
        Kind::Vector | Kind::Set => &["array"],
        Kind::Map => &["object"],
        _ => &["string"],
    };
    types(schema).next().is_none() || types(schema).any(|name| kinds.contains(&name))
}

/// The rule that a number breaks, as it goes on after `must`.
fn number(schema: &Value, value: &Value) -> Option<String> {
    let bound = |key: &str| schema.get(key).filter(|bound| bound.as_f64().is_some());
    // In draft 4, which OpenAPI 3.0 has, a flag says that the bound itself is left out.
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
    // A decimal such as 0.1 is not exact as a double: only what is clearly between two multiples is refused.
    let times = value / step;
    (times - times.round()).abs() <= 1e-9 * times.abs().max(1.0)
}

/// The rule that a text breaks, as it goes on after `must`. Dates and times are the texts that they are sent as.
fn text(schema: &Value, value: &Value) -> Option<String> {
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
        && let Ok(compiled) = pattern_of(pattern)
        && !compiled.is_match(&text)
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

/// The bound of a count that is broken, such as `at least 2 items`.
fn count(schema: &Value, count: usize, [least, most]: [&str; 2], unit: &str) -> Option<String> {
    let bound = |key: &str| schema.get(key).and_then(Value::as_int).and_then(|bound| usize::try_from(bound).ok());
    let written = |how: &str, bound: usize| Some(format!("{how} {bound} {unit}{}", if bound == 1 { "" } else { "s" }));
    match (bound(least), bound(most)) {
        (Some(bound), _) if count < bound => written("at least", bound),
        (_, Some(bound)) if count > bound => written("at most", bound),
        _ => None,
    }
}

/// A pattern of ECMA-262 as JSON Schema has it, which finds its match anywhere.
///
/// # Errors
///
/// What `regex` does not support, such as look-around, or a pattern that compiles to more than 1 MiB.
pub fn pattern_of(text: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(&translated(text)).size_limit(PATTERN_BYTES).build()
}

/// In ECMA-262 digits and word characters are ASCII.
fn translated(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('d') => out.push_str("[0-9]"),
            Some('D') => out.push_str("[^0-9]"),
            Some('w') => out.push_str("[0-9A-Za-z_]"),
            Some('W') => out.push_str("[^0-9A-Za-z_]"),
            // An escaped letter that means itself to the one, and something to the other.
            Some('/') => out.push('/'),
            Some(other) => out.extend(['\\', other]),
            None => out.push('\\'),
        }
    }
    out
}
