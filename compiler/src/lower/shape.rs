//! The shape of a result, in a notation that reads like the program that will take it apart:
//! `{:items [{:id integer :name string?}] :total integer}`.

use ptc_catalog::Types;

use super::schema::Schema;
use super::text::key;
use crate::ir::Json;

/// Bytes that a shape should take. Nesting is cut back until it fits.
const BUDGET: usize = 1_200;

/// Deepest nesting shown.
const DEEPEST: usize = 6;

/// Deepest nesting shown of an argument.
const DEEPEST_INNER: usize = 3;

/// Members of one object shown.
const WIDEST: usize = 40;

/// Alternatives and lists inside of each other that are followed without an object between them.
const NESTED: usize = 16;

/// Alternatives of one place shown.
const ALTERNATIVES: usize = 4;

/// The shape of a schema; `any` where it says nothing.
pub fn shape(root: &Json) -> String {
    let mut depth = DEEPEST;
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

/// The shape of a schema inside of a document, as deep as `max_bytes` allow: at least its type.
pub fn shape_of<'s>(schema: &Schema<'s>, node: &'s Json, max_bytes: usize) -> String {
    let mut out = String::new();
    for depth in (0..=DEEPEST_INNER).rev() {
        out.clear();
        write(schema, node, depth, 0, &mut out);
        if out.len() <= max_bytes {
            break;
        }
    }
    out
}

/// Writes a schema so many levels deep, which is an alternative inside of so many others.
fn write(schema: &Schema<'_>, node: &Json, depth: usize, inside: usize, out: &mut String) {
    // Alternatives may go round in a circle.
    if inside > NESTED || schema.is_exhausted() {
        out.push_str("any");
        return;
    }
    // Over budget already: the caller throws this text away and tries again with less depth.
    if out.len() > BUDGET * 4 {
        return;
    }
    if schema.keyword(node, "const").is_some() || schema.keyword(node, "enum").is_some() {
        out.push_str(&schema.label(node));
        return;
    }
    for alternatives in ["anyOf", "oneOf"] {
        let branches = schema.keyword(node, alternatives).map(Json::elements).unwrap_or_default();
        // Below the deepest level the label names the types: a branch is at least one level deep, and may lead back here.
        if depth > 0 && !branches.is_empty() && schema.keyword(node, "properties").is_none() {
            let mut texts: Vec<String> = Vec::new();
            for branch in branches {
                let mut text = String::new();
                write(schema, branch, depth.saturating_sub(usize::from(branches.len() > 2)).max(1), inside + 1, &mut text);
                if !texts.contains(&text) {
                    texts.push(text);
                }
            }
            if texts.iter().any(|t| t == "any") {
                break;
            }
            let more = texts.len() > ALTERNATIVES;
            texts.truncate(ALTERNATIVES);
            out.push_str(&texts.join(" | "));
            if more {
                out.push_str(" | …");
            }
            return;
        }
    }
    let types = schema.types(node);
    let members = schema.members(node);
    if depth > 0 && !members.properties.is_empty() {
        let last = members.properties.len().min(WIDEST);
        out.push('{');
        for (at, (name, value)) in members.properties.iter().take(last).enumerate() {
            if at > 0 {
                out.push(' ');
            }
            out.push_str(&key(name));
            out.push(' ');
            write(schema, value, depth - 1, 0, out);
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
