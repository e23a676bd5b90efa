//! Renders the shape of a result in a notation that resembles the program that will destructure it:
//! `{:items [{:id integer :name string?}] :total integer}`.

use ptc_catalog::Types;

use super::text::{key, one_line};
use crate::json::Json;
use crate::json_schema::Schema;

/// Target size of a shape in bytes. The nesting depth is reduced until the shape fits.
const BUDGET: usize = 1_200;

/// Maximum nesting depth of a result's shape.
const MAX_DEPTH: usize = 6;

/// Maximum nesting depth of an argument's shape.
const MAX_INNER_DEPTH: usize = 3;

/// Maximum number of members shown of one object.
const MAX_MEMBERS: usize = 40;

/// Maximum number of nested alternatives and lists that are followed without an object between them.
const NESTED: usize = 16;

/// Maximum number of alternatives shown at one position.
const ALTERNATIVES: usize = 4;

/// Maximum length of a media type in characters.
const MAX_MEDIA_TYPE: usize = 80;

/// Returns the shape of a schema; `any` if the schema does not restrict values.
pub fn shape(root: &Json) -> String {
    let mut depth = MAX_DEPTH;
    loop {
        let schema = Schema::new(root);
        let mut out = String::new();
        write(&schema, root, depth, 0, &mut out);
        if depth == 1 || out.len() <= BUDGET && !schema.is_exhausted() {
            return out;
        }
        depth -= 1;
    }
}

/// Returns the shape of a schema inside a document, as deep as `max_bytes` allows. The result has at least the type.
pub fn shape_of<'s>(schema: &Schema<'s>, node: &'s Json, max_bytes: usize) -> String {
    let mut out = String::new();
    for depth in (0..=MAX_INNER_DEPTH).rev() {
        out.clear();
        write(schema, node, depth, 0, &mut out);
        if out.len() <= max_bytes {
            break;
        }
    }
    out
}

/// Returns the different shapes of schemas of which one applies. `None` if one of them is anything.
fn alternatives<'s>(schema: &Schema<'s>, nodes: impl Iterator<Item = &'s Json>, depth: usize, inside: usize) -> Option<String> {
    let mut texts: Vec<String> = Vec::new();
    for node in nodes {
        let mut text = String::new();
        write(schema, node, depth, inside, &mut text);
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    if texts.iter().any(|text| text == "any") {
        return None;
    }
    let more = if texts.len() > ALTERNATIVES { " | …" } else { "" };
    texts.truncate(ALTERNATIVES);
    Some(texts.join(" | ") + more)
}

/// Appends the shape of a schema to `out`, up to `depth` levels. `inside` is the number of enclosing alternatives.
fn write<'s>(schema: &Schema<'s>, node: &'s Json, depth: usize, inside: usize, out: &mut String) {
    // Alternatives may be recursive.
    if inside > NESTED || schema.is_exhausted() {
        out.push_str("any");
        return;
    }
    // The text is far beyond the target size already. The caller discards it and retries with less depth.
    if out.len() > BUDGET * 4 {
        return;
    }
    if let (Some(Json::String(media_type)), Some(content)) =
        (schema.keyword(node, "contentMediaType"), schema.keyword(node, "contentSchema"))
        && depth > 0
    {
        out.push_str("string<");
        out.push_str(&one_line(media_type, MAX_MEDIA_TYPE));
        out.push(' ');
        write(schema, content, depth, inside + 1, out);
        out.push('>');
        nullable(schema.types(node), out);
        return;
    }
    if schema.keyword(node, "const").is_some() || schema.keyword(node, "enum").is_some() {
        out.push_str(&schema.label(node));
        return;
    }
    for key in ["anyOf", "oneOf"] {
        let branches = schema.keyword(node, key).map(Json::elements).unwrap_or_default();
        // At depth 0 the label names the types. A branch is at least one level deep, and may refer back here.
        if depth > 0 && !branches.is_empty() && schema.keyword(node, "properties").is_none() {
            let depth = depth.saturating_sub(usize::from(branches.len() > 2)).max(1);
            let Some(text) = alternatives(schema, branches.iter(), depth, inside + 1) else { break };
            out.push_str(&text);
            return;
        }
    }
    let types = schema.types(node);
    let members = schema.members(node);
    if depth > 0 && !members.properties.is_empty() {
        let last = members.properties.len().min(MAX_MEMBERS);
        out.push('{');
        for (at, (name, _)) in members.properties.iter().take(last).enumerate() {
            if at > 0 {
                out.push(' ');
            }
            out.push_str(&key(name));
            out.push(' ');
            let text = alternatives(schema, members.schemas(name).iter().copied(), depth - 1, 0);
            out.push_str(text.as_deref().unwrap_or("any"));
            if !members.requires(name) {
                out.push('?');
            }
        }
        if members.properties.len() > last {
            out.push_str(" …");
        }
        out.push('}');
        nullable(types, out);
        return;
    }
    if let (Some(items), true) = (schema.keyword(node, "items"), depth > 0) {
        out.push('[');
        write(schema, items, depth, inside + 1, out);
        out.push(']');
        nullable(types, out);
        return;
    }
    if let (Some(values @ Json::Object(inner)), true) = (schema.keyword(node, "additionalProperties"), depth > 0)
        && !inner.is_empty()
    {
        out.push_str("{string ");
        write(schema, values, depth - 1, 0, out);
        out.push('}');
        return;
    }
    if types != Types::ANY || !members.properties.is_empty() {
        let label = schema.label(node);
        out.push_str(if label == "any" { "object" } else { &label });
    } else {
        out.push_str("any");
    }
}

fn nullable(types: Types, out: &mut String) {
    if types != Types::ANY && types.admits(ptc_catalog::Type::Null) {
        out.push_str("|null");
    }
}
