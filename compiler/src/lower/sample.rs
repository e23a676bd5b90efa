//! Chooses example values for the call in `doc`.

use ptc_catalog::Type;

use super::notes::keyword;
use super::text::literal;
use crate::json::Json;
use crate::json_schema::Schema;
use crate::json_schema::mismatch::mismatch;

/// Maximum size in bytes of a value that the schema offers.
pub const MAX_OFFERED: usize = 80;

/// Maximum length in characters of a generated string, and maximum depth of required members.
const MAX_FILLED: usize = 64;
const MAX_DEPTH: usize = 3;

/// Returns a value that the schema offers and accepts, else a simple value of the right type within the bounds. Objects get their required
/// members.
pub fn sample(schema: &Schema<'_>, node: &Json) -> String {
    sample_within(schema, node, 0, &mut Origin::default())
}

/// Whether the schemas of some values state an example of them: none of the values has to be made up, and one is an example.
pub fn is_stated<'s>(schema: &Schema<'s>, nodes: impl Iterator<Item = &'s Json>) -> bool {
    let mut origin = Origin::default();
    for node in nodes {
        sample_within(schema, node, 0, &mut origin);
    }
    origin.has_example && !origin.is_made_up
}

/// Where the parts of values come from.
#[derive(Debug, Default)]
struct Origin {
    /// Whether a schema has an example.
    has_example: bool,
    /// Whether a part is not in a schema.
    is_made_up: bool,
}

/// Iterates over the examples that a schema has.
pub fn examples<'s>(schema: &Schema<'s>, node: &'s Json) -> impl Iterator<Item = &'s Json> {
    let listed = keyword(schema, node, "examples", 0).map(Json::elements).unwrap_or_default();
    keyword(schema, node, "example", 0).into_iter().chain(listed)
}

fn sample_within<'s>(schema: &Schema<'s>, node: &'s Json, depth: usize, origin: &mut Origin) -> String {
    let find = |key: &str| keyword(schema, node, key, 0);
    let is_usable =
        |example: &&Json| literal(example).len() <= MAX_OFFERED && mismatch(schema, node, example, "example", "").is_none();
    let example = examples(schema, node).find(is_usable);
    origin.has_example |= example.is_some();
    let offered = ["const", "default"].into_iter().find_map(find).or(example).or_else(|| find("enum")?.elements().first());
    if let Some(text) = offered.map(literal)
        && text.len() <= MAX_OFFERED
    {
        return text;
    }
    let types = schema.types(schema.body(node));
    let first = [Type::String, Type::Integer, Type::Number, Type::Boolean, Type::Array, Type::Object];
    let kind = first.into_iter().find(|kind| types.admits(*kind));
    let has_parts = match kind {
        Some(Type::Array) => count(find("minItems")) > 0,
        Some(Type::Object) => !schema.members(node).required.is_empty(),
        _ => false,
    };
    origin.is_made_up |= !has_parts || depth >= MAX_DEPTH;
    match kind {
        Some(Type::String) => text(find),
        Some(Type::Integer | Type::Number) => number(find),
        Some(Type::Boolean) => "true".to_owned(),
        Some(Type::Array) => {
            let least = count(find("minItems")).min(MAX_DEPTH);
            let item = find("items").filter(|_| least > 0 && depth < MAX_DEPTH);
            origin.is_made_up |= item.is_none();
            let item = item.map(|items| sample_within(schema, items, depth + 1, origin));
            format!("[{}]", vec![item.unwrap_or_default(); least].join(" ").trim())
        }
        Some(Type::Object) => {
            let members = schema.members(node);
            let required = members.required.iter().filter(|_| depth < MAX_DEPTH);
            let member = |name: &&str| {
                let value = if let Some(node) = members.get(name) {
                    sample_within(schema, node, depth + 1, origin)
                } else {
                    origin.is_made_up = true;
                    "\"...\"".to_owned()
                };
                format!("{} {value}", super::text::key(name))
            };
            format!("{{{}}}", required.map(member).collect::<Vec<_>>().join(" "))
        }
        _ => "nil".to_owned(),
    }
}

fn text<'s>(find: impl Fn(&str) -> Option<&'s Json>) -> String {
    match find("format").and_then(Json::as_str) {
        Some("date") => return "\"2026-01-31\"".to_owned(),
        Some("date-time") => return "\"2026-01-31T09:30:00Z\"".to_owned(),
        _ => {}
    }
    let most = find("maxLength").map_or(MAX_FILLED, |bound| count(Some(bound)));
    let length = count(find("minLength")).max(3).min(most).min(MAX_FILLED);
    format!("\"{}\"", ".".repeat(length))
}

/// Returns 1 if the bounds allow it, else the bound that excludes it.
fn number<'s>(find: impl Fn(&str) -> Option<&'s Json>) -> String {
    let bound = |key: &str| match find(key) {
        Some(Json::Number(text)) => text.parse::<f64>().ok().map(|value| (value, text.clone())),
        _ => None,
    };
    let step = bound("multipleOf").filter(|(step, _)| *step > 1.0);
    let least = bound("minimum").filter(|(least, _)| *least > 1.0);
    let most = bound("maximum").filter(|(most, _)| *most < 1.0);
    let above = bound("exclusiveMinimum").filter(|(least, _)| *least >= 1.0);
    let next = above.map(|(least, _)| format!("{}", least.floor() + 1.0));
    step.or(least).or(most).map(|(_, text)| text).or(next).unwrap_or_else(|| "1".to_owned())
}

fn count(bound: Option<&Json>) -> usize {
    match bound {
        Some(Json::Number(text)) => text.parse().unwrap_or(0),
        _ => 0,
    }
}
