//! Checks paths in results against output schemas.
//!
//! A path is reported only if the schema excludes it. If the schema is silent or ambiguous, any value may be there.

use std::collections::BTreeSet;

use ptc_catalog::Tool;
use ptc_catalog::paging::Shape;
use ptc_lisp::{Kind, Value, json};

use ptc_text::closest_match;

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// The value at a key.
    Key(String),
    /// Any of the items.
    Item,
}

/// The problem with the last step of a path, and what to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// Whether the schema excludes undeclared keys.
    pub(crate) is_closed: bool,
}

/// Maximum number of schemas visited through a chain of `$ref` or nested alternatives.
const MOST: usize = 64;
/// Maximum depth of objects in the shape of a schema.
const MAX_SHAPE_DEPTH: usize = 4;
/// Maximum number of names listed in a hint.
const LISTED: usize = 20;

/// Returns the output schema of a tool, if it has one.
pub(crate) fn schema(tool: &Tool) -> Option<Value> {
    // This test is cheaper than decoding a definition without an output schema.
    if !has_schema(tool) {
        return None;
    }
    json::decode(tool.definition.as_bytes()).ok()?.get("outputSchema").cloned()
}

/// Whether the definition of a tool appears to have an output schema.
pub(crate) fn has_schema(tool: &Tool) -> bool {
    tool.definition.contains("\"outputSchema\"")
}

/// Returns the shape of the values that a schema describes, as far as inferring a list needs it.
pub(crate) fn shape(root: &Value) -> Shape {
    shape_of(root, root, MAX_SHAPE_DEPTH)
}

fn shape_of(root: &Value, schema: &Value, depth: usize) -> Shape {
    let Some(alternatives) = alternatives(root, vec![schema]) else { return Shape::Any };
    let [schema] = alternatives.as_slice() else { return Shape::Any };
    let is = |kind| is_only(schema, kind);
    let members = schema.get("properties").and_then(Value::entries);
    match members {
        _ if is("array") => Shape::Array(Box::new(Shape::Any)),
        _ if is("string") => Shape::Text,
        _ if is("integer") || is("number") => Shape::Number,
        _ if is("boolean") => Shape::Bool,
        Some(_) if depth == 0 => Shape::Object(Vec::new()),
        Some(members) if admits(schema, "object") => {
            let named =
                members.filter_map(|(name, member)| Some((name.as_name()?.to_owned(), shape_of(root, member, depth - 1))));
            Shape::Object(named.collect())
        }
        _ => Shape::Any,
    }
}

/// Checks a path below `:value` against an output schema. Returns `None` if the schema does not exclude it.
pub(crate) fn missing(root: &Value, path: &[Step]) -> Option<Missing> {
    let (last, before) = path.split_last()?;
    if let (Step::Key(key), Some((Step::Item, whole))) = (last, before.split_last()) {
        let mut at = alternatives(root, vec![root])?;
        for step in whole {
            at = alternatives(root, inside(&at, step).ok()?)?;
        }
        if at.iter().all(|schema| is_only(schema, "object")) {
            return Some(entries_have_no_keys(root, &at, whole, key));
        }
    }
    let mut at = alternatives(root, vec![root])?;
    for step in before {
        at = alternatives(root, inside(&at, step).ok()?)?;
    }
    match (inside(&at, last), last) {
        (Err(NoSuchPath { names, closed, kinds }), Step::Key(key)) => {
            let near = closest_match(key, names.iter().map(String::as_str));
            if names.is_empty() && kinds.is_empty() || !closed && near.is_none() && kinds.is_empty() {
                return None;
            }
            let whose = if before.is_empty() { "the value".to_owned() } else { format!("what is at {}", written(before)) };
            let message = if kinds.is_empty() {
                format!("{whose} has no '{key}'")
            } else {
                let article = if kinds.iter().any(|kind| kind.starts_with(['a', 'i'])) { "an" } else { "a" };
                format!("{whose} is {article} {}, which has no '{key}'", kinds.join(" or "))
            };
            let listed: Vec<&str> = names.iter().map(String::as_str).take(LISTED).collect();
            let hint = match near {
                Some(near) => Some(format!("did you mean '{near}'?")),
                None if kinds.iter().any(|kind| kind == "array") => Some("take an item first, or map over it".to_owned()),
                None => (!listed.is_empty()).then(|| format!("its keys: {}", listed.join(", "))),
            };
            Some(Missing { message, hint, is_closed: closed && kinds.is_empty() })
        }
        _ => None,
    }
}

/// Makes the finding for a function that iterates over an object like a list: the items are pairs of a key and a value.
fn entries_have_no_keys(root: &Value, objects: &[&Value], path: &[Step], key: &str) -> Missing {
    let whose = if path.is_empty() { "the value".to_owned() } else { format!("what is at {}", written(path)) };
    let mut lists: Vec<&str> = Vec::new();
    for (name, schema) in objects.iter().filter_map(|schema| schema.get("properties")?.entries()).flatten() {
        let is_list = alternatives(root, vec![schema]).is_some_and(|at| at.iter().all(|schema| is_only(schema, "array")));
        lists.extend(name.as_str().filter(|_| is_list));
    }
    let hint = match lists.as_slice() {
        [] => None,
        [list] => Some(format!("its list is :{list}")),
        many => {
            Some(format!("its lists: {}", many.iter().take(LISTED).map(|name| format!(":{name}")).collect::<Vec<_>>().join(", ")))
        }
    };
    Missing { message: format!("{whose} is an object, whose entries [key value] have no '{key}'"), hint, is_closed: false }
}

/// The result of a step that no alternative admits.
struct NoSuchPath {
    /// The keys that the alternatives declare.
    names: BTreeSet<String>,
    /// Whether all alternatives exclude undeclared keys.
    closed: bool,
    /// The types of the alternatives, if none of them is an object.
    kinds: Vec<String>,
}

/// Returns the schemas after one more step. The result is empty if any value may be there.
fn inside<'s>(schemas: &[&'s Value], step: &Step) -> Result<Vec<&'s Value>, NoSuchPath> {
    let mut found = Vec::new();
    let mut nothing = NoSuchPath { names: BTreeSet::new(), closed: true, kinds: Vec::new() };
    let mut has_object = false;
    for schema in schemas {
        match step {
            Step::Item => match schema.get("items") {
                Some(items) if is_only(schema, "array") => found.push(items),
                _ => return Ok(Vec::new()),
            },
            Step::Key(key) => {
                let properties = schema.get("properties");
                if let Some(inner) = properties.and_then(|properties| properties.get(key)) {
                    found.push(inner);
                } else if !admits(schema, "object") {
                    // The value of a key of nil is nil, so that a null alternative does not exclude the path.
                    nothing.kinds.extend(types(schema).into_iter().filter(|kind| kind != "null"));
                } else {
                    has_object = true;
                    let names = properties.and_then(Value::entries).into_iter().flatten().filter_map(|(name, _)| name.as_name());
                    let names: Vec<&str> = names.collect();
                    let others = schema.get("additionalProperties").or_else(|| schema.get("unevaluatedProperties"));
                    let is_closed = others.and_then(Value::as_bool) == Some(false);
                    match others {
                        // Any name may match a pattern.
                        _ if schema.get("patternProperties").is_some() => return Ok(Vec::new()),
                        Some(inner) if inner.kind() == Kind::Map && inner.len() != Some(0) => found.push(inner),
                        _ if names.is_empty() && !is_closed => return Ok(Vec::new()),
                        _ => nothing.closed &= is_closed,
                    }
                    nothing.names.extend(names.into_iter().map(str::to_owned));
                }
            }
        }
    }
    if has_object {
        nothing.kinds.clear();
    }
    if found.is_empty() && !schemas.is_empty() { Err(nothing) } else { Ok(found) }
}

/// Resolves references and alternatives of the schemas. Returns `None` if a schema uses an unsupported combination.
fn alternatives<'s>(root: &'s Value, schemas: Vec<&'s Value>) -> Option<Vec<&'s Value>> {
    let mut out = Vec::new();
    let mut waiting = schemas;
    let mut seen = 0;
    while let Some(schema) = waiting.pop() {
        seen += 1;
        if seen > MOST || schema.kind() != Kind::Map {
            return None;
        }
        if let Some(reference) = schema.get("$ref") {
            waiting.push(target(root, reference.as_str()?)?);
            continue;
        }
        let branches = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(key));
        match branches {
            // Combined schemas, and properties beside alternatives, are not supported.
            _ if schema.get("allOf").is_some() => return None,
            Some(_) if schema.get("properties").is_some() => return None,
            Some(branches) => waiting.extend(branches.items()?.filter(|branch| !is_only(branch, "null"))),
            None => out.push(schema),
        }
    }
    (!out.is_empty()).then_some(out)
}

/// Returns the target of a local reference.
fn target<'s>(root: &'s Value, reference: &str) -> Option<&'s Value> {
    let mut at = root;
    for segment in reference.strip_prefix('#')?.split('/').skip(1) {
        at = at.get(&segment.replace("~1", "/").replace("~0", "~"))?;
    }
    Some(at)
}

fn types(schema: &Value) -> Vec<String> {
    match schema.get("type") {
        Some(one) if one.as_str().is_some() => one.as_str().map(str::to_owned).into_iter().collect(),
        Some(many) => many.items().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect(),
        None => Vec::new(),
    }
}

fn admits(schema: &Value, kind: &str) -> bool {
    let types = types(schema);
    types.is_empty() || types.iter().any(|name| name == kind)
}

fn is_only(schema: &Value, kind: &str) -> bool {
    let types = types(schema);
    types.iter().any(|name| name == kind) && types.iter().all(|name| name == kind || name == "null")
}

/// Formats a path in the syntax of a program.
fn written(path: &[Step]) -> String {
    let steps: Vec<String> = path
        .iter()
        .map(|step| match step {
            Step::Key(key) => format!(":{key}"),
            Step::Item => "item".to_owned(),
        })
        .collect();
    format!("[{}]", steps.join(" "))
}
