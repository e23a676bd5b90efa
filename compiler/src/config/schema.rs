//! Derives the JSON Schema of `upstreams.json` from the rows that the reader uses. Editors complete and check configs by it.
//!
//! The schema covers single values and objects. Rules that involve two places (a binding without a credential, a header that is
//! set twice) are checked only by `--check`.

use serde_json::{Map, Value, json};

use super::keys;
use super::kinds;
use super::table::{Kind, Presence, Table, Variants};
use crate::diag::{Code, Severity};

/// The schema of an object's members or of a list's elements, by the key that holds the object or list.
enum Inner {
    Table(&'static Table),
    Variants(&'static Variants),
}

const INNER: [(&str, Inner); 8] = [
    ("upstreams", Inner::Variants(&keys::UPSTREAM)),
    ("credentials", Inner::Variants(&keys::CREDENTIAL)),
    ("auth", Inner::Variants(&keys::AUTH)),
    ("operation_overrides", Inner::Table(&keys::OVERRIDE)),
    ("tool_overrides", Inner::Table(&keys::TOOL_OVERRIDE)),
    ("programs", Inner::Table(&keys::PROGRAM)),
    ("rules", Inner::Table(&keys::RULE)),
    ("allow", Inner::Table(&keys::GRANT)),
];

/// Pairs of keys of which an object must have exactly one, by the tag of the object.
const EXACTLY_ONE: [(&str, [&str; 2]); 2] = [("openapi", ["schema_file", "schema_url"]), ("api_key", ["name", "header"])];

/// Returns the schema, in draft 2020-12.
pub fn schema() -> Value {
    let mut root = table(&keys::CONFIG, None);
    let head = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "upstreams.json",
        "description": "Upstream tool servers of a pinned MCP server, compiled by ptc-compile.",
    });
    if let (Value::Object(root), Value::Object(head)) = (&mut root, head) {
        root.extend(head);
    }
    root
}

/// Returns the schema of an object that is read by a table. `tag` is the key that chooses the table.
fn table(table: &'static Table, tag: Option<&str>) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for key in table.keys() {
        let mut value = if tag == Some(key.name) { json!({ "const": table.tag }) } else { kind(key.name, key.kind) };
        if let Value::Object(value) = &mut value {
            value.insert("description".to_owned(), key.doc.into());
            if let Presence::Default(default) = key.presence {
                value.insert("default".to_owned(), default.into());
            }
        }
        if key.presence == Presence::Required {
            required.push(key.name);
        }
        properties.insert(key.name.to_owned(), value);
    }
    let mut out = json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false });
    let exactly_one = EXACTLY_ONE.iter().find(|(tag, _)| *tag == table.tag);
    if let (Some((_, keys)), Value::Object(out)) = (exactly_one, &mut out) {
        out.insert("oneOf".to_owned(), keys.iter().map(|key| json!({ "required": [key] })).collect());
    }
    out
}

fn kind(name: &str, kind: Kind) -> Value {
    let inner = || INNER.iter().find(|(key, _)| *key == name).map(|(_, inner)| inner);
    // Like `--check`, the schema treats a text of only white space as empty.
    let text = || json!({ "type": "string", "pattern": "\\S" });
    match kind {
        Kind::Text => text(),
        Kind::AnyText => json!({ "type": "string" }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Number { min, max, .. } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Texts => json!({ "type": "array", "items": { "type": "string" } }),
        Kind::Names => json!({ "type": "array", "items": text(), "minItems": 1 }),
        Kind::Notes => {
            let notes = Code::ALL.iter().filter(|code| code.severity() == Severity::Note).map(|code| code.name());
            json!({ "type": "array", "items": { "enum": notes.collect::<Vec<_>>() } })
        }
        Kind::FlagOrNames => json!({ "anyOf": [{ "type": "boolean" }, { "type": "array", "items": text(), "minItems": 1 }] }),
        Kind::TextMap => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        Kind::Secret => {
            let pair = json!({
                "type": "object",
                "properties": { "user": { "type": "string" }, "pass": { "type": "string" } },
                "required": ["user", "pass"],
                "additionalProperties": false,
            });
            json!({ "anyOf": [text(), pair] })
        }
        Kind::Choice(choices) => json!({ "enum": choices }),
        Kind::Paging => {
            let mut properties = Map::new();
            for (name, description) in kinds::PAGING_TEXTS {
                let line =
                    json!({ "type": "string", "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]*$", "description": description });
                properties.insert(name.to_owned(), line);
            }
            for (name, description) in kinds::PAGING_NUMBERS {
                properties.insert(name.to_owned(), json!({ "type": "integer", "minimum": 0, "description": description }));
            }
            let object = |required: &[&str], by: &[&str]| {
                let mut properties = properties.clone();
                let description = "how the next page is asked for; by token where left out";
                properties.insert("by".to_owned(), json!({ "enum": by, "description": description }));
                json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
            };
            json!({ "anyOf": [
                { "const": false },
                object(&["items", "argument", "next"], &["page", "offset", "cursor", "last_id"]),
                object(&["by", "items", "argument"], &["page", "offset", "cursor", "last_id"]),
                object(&["by", "items", "next"], &["link"]),
                object(&["by", "items"], &["header"]),
            ] })
        }
        Kind::Object => match inner() {
            Some(inner) => json!({ "type": "object", "additionalProperties": self::inner(inner) }),
            None => json!({ "type": "object" }),
        },
        Kind::Record(inner) => table(inner, None),
        Kind::TextOrRecord(inner) => json!({ "anyOf": [text(), table(inner, None)] }),
        Kind::List => match inner() {
            Some(inner) => json!({ "type": "array", "items": self::inner(inner) }),
            None => json!({ "type": "array" }),
        },
    }
}

fn inner(inner: &Inner) -> Value {
    match inner {
        Inner::Table(inner) => table(inner, None),
        Inner::Variants(variants) => {
            // Distinguish the cases by the tag first, so that an editor reports faults of the case that is meant.
            let tags: Vec<&str> = variants.tags().collect();
            let cases: Vec<Value> = variants
                .cases
                .iter()
                .map(|case| {
                    json!({
                        "if": { "properties": { variants.tag.name: { "const": case.tag } }, "required": [variants.tag.name] },
                        "then": table(case, Some(variants.tag.name)),
                    })
                })
                .collect();
            json!({
                "type": "object",
                "properties": { variants.tag.name: { "enum": tags, "description": variants.tag.doc } },
                "required": [variants.tag.name],
                "allOf": cases,
            })
        }
    }
}
