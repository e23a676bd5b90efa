//! Compares keys that a program looked up in answers and did not find with the output schemas of the called tools.
//!
//! A run records objects by their keys ([`MissingKey`]). An object may be an instance of an object schema if it has the required
//! keys and no key that a closed schema excludes. A look-up is a mistake if none of the possible schemas declares the key.

use ptc_text::join_limited;
use std::fmt::Write as _;

use ptc_catalog::Catalog;
use ptc_lisp::missing_keys::{LookupTarget, MissingKey};
use ptc_lisp::{Kind, Value, json};

use crate::flow::RESULT;
use ptc_text::closest_match;

/// Maximum number of keys listed in a note.
const MAX_LISTED: usize = 12;
/// Maximum number of visited nodes in the schemas of one tool.
const MAX_NODES: usize = 20_000;
/// If a key is looked up in at least this many kinds of values without keys, the program traverses the whole answer, and the
/// look-ups are not reported.
const KINDS_OF_A_WALK: usize = 3;

/// An object schema within an output schema.
struct ObjectSchema {
    tool: String,
    names: Vec<String>,
    required: Vec<String>,
    is_closed: bool,
    /// Whether the object may have undeclared keys, by a pattern or by a schema for all of them.
    is_map: bool,
}

impl ObjectSchema {
    /// Whether an object with these sorted keys may be an instance of this schema.
    fn admits(&self, keys: &[String]) -> bool {
        let has = |names: &[String], name: &String| names.iter().any(|other| other == name);
        let has_only_declared = keys.iter().all(|key| has(&self.names, key));
        let tells_enough = self.is_closed || keys.len() > 1 || !self.required.is_empty();
        self.required.iter().all(|name| has(keys, name))
            && if has_only_declared { tells_enough } else { !self.is_closed && !self.required.is_empty() }
    }
}

/// Returns a sentence for each mistaken look-up in answers of the tools `called`.
pub fn keys_not_found(catalog: &Catalog, called: &[(&str, &str)], missing: &[MissingKey]) -> Vec<String> {
    if missing.is_empty() {
        return Vec::new();
    }
    let (schemas, has_undescribed) = object_schemas(catalog, called);
    missing.iter().filter_map(|one| sentence(one, missing, &schemas, has_undescribed)).collect()
}

fn sentence(one: &MissingKey, all: &[MissingKey], schemas: &[ObjectSchema], has_undescribed: bool) -> Option<String> {
    let MissingKey { key, target, count, is_elsewhere, is_expected } = one;
    let shown = if key.bytes().all(|byte| byte.is_ascii_digit()) { key.clone() } else { format!(":{key}") };
    let times = if *count == 1 { "1 look-up gives nil".to_owned() } else { format!("{count} look-ups give nil") };
    match target {
        LookupTarget::Result => {
            if key == "body" && !is_expected {
                return Some(format!(
                    "the result of a successful tool/call has no :body ({times}): what the tool gives is under :value"
                ));
            }
            // Each of these keys occurs in some results.
            (!RESULT.contains(&key.as_str())).then(|| {
                format!("the result of tool/call has no {shown} ({times}): it has :ok and :value, or :ok, :reason and :message")
            })
        }
        LookupTarget::Object { keys, is_answered } => {
            let admitting: Vec<&ObjectSchema> = schemas.iter().filter(|schema| schema.admits(keys)).collect();
            if admitting.iter().any(|schema| schema.is_map || schema.names.contains(key)) {
                return None;
            }
            // All admitting schemas have the keys of the object, so that the first one is as good as any.
            let Some(schema) = admitting.first() else {
                return (has_undescribed && *is_answered && !is_elsewhere && !is_expected && keys.len() > 1)
                    .then(|| with_keys(&format!("no object of an answer with these keys has {shown} ({times})"), key, keys));
            };
            let is_closed = admitting.iter().all(|schema| schema.is_closed);
            (is_closed || !is_elsewhere).then(|| {
                with_keys(&format!("what {} gives has no :{key} at this place ({times})", schema.tool), key, &schema.names)
            })
        }
        LookupTarget::Other(_) if *is_expected => None,
        LookupTarget::Other(kind) => {
            let kinds = all.iter().filter(|other| other.key == *key && matches!(other.target, LookupTarget::Other(_))).count();
            if kinds >= KINDS_OF_A_WALK {
                return None;
            }
            let hint = match kind {
                Kind::Vector => "take an item first, or map over it; the items of a map are pairs of a key and a value",
                Kind::String => "the value is text: take it apart with clojure.string or a regex",
                _ => "the key before it leads to the value already",
            };
            Some(format!("{} has no key {shown} ({times}): {hint}", kind.described()))
        }
    }
}

/// Adds the existing keys and the most similar of them to a sentence.
fn with_keys(sentence: &str, key: &str, keys: &[String]) -> String {
    let mut text = format!("{sentence}: the keys are {}", join_limited(keys, ", ", MAX_LISTED));
    if let Some(near) = closest_match(key, keys.iter().map(String::as_str)) {
        let _ = write!(text, "; did you mean :{near}?");
    }
    text
}

/// Returns the object schemas in the output schemas of the tools `called`, and whether one of these tools has no output schema.
fn object_schemas(catalog: &Catalog, called: &[(&str, &str)]) -> (Vec<ObjectSchema>, bool) {
    let mut schemas = Vec::new();
    let mut has_undescribed = false;
    for (at, (server, name)) in called.iter().enumerate() {
        if called.iter().take(at).any(|earlier| earlier == &(*server, *name)) {
            continue;
        }
        let Some(tool) = catalog.upstream(server).and_then(|upstream| upstream.tool(name)) else { continue };
        let definition = json::decode(tool.definition.as_bytes()).unwrap_or_default();
        match definition.get("outputSchema") {
            // Combined schemas (`allOf`) are not supported.
            Some(_) if tool.definition.contains("\"allOf\"") => {}
            Some(schema) => collect(schema, &format!("{server}/{name}"), &mut schemas),
            None => has_undescribed = true,
        }
    }
    (schemas, has_undescribed)
}

fn collect(schema: &Value, tool: &str, schemas: &mut Vec<ObjectSchema>) {
    let mut waiting = vec![schema];
    let mut visited = 0;
    while let Some(node) = waiting.pop() {
        visited += 1;
        if visited > MAX_NODES {
            return;
        }
        waiting.extend(node.items().into_iter().flatten());
        let Some(entries) = node.entries() else { continue };
        waiting.extend(entries.map(|(_, value)| value));
        let Some(properties) = node.get("properties").and_then(Value::entries) else { continue };
        let names: Vec<String> = properties.filter_map(|(name, _)| name.as_name().map(str::to_owned)).collect();
        let required = node.get("required").and_then(Value::items).into_iter().flatten();
        let others = node.get("additionalProperties").or_else(|| node.get("unevaluatedProperties"));
        schemas.push(ObjectSchema {
            tool: tool.to_owned(),
            names,
            required: required.filter_map(|name| name.as_str().map(str::to_owned)).collect(),
            is_closed: others.and_then(Value::as_bool) == Some(false),
            is_map: node.get("patternProperties").is_some()
                || others.is_some_and(|others| others.len().is_some_and(|len| len > 0)),
        });
    }
}
