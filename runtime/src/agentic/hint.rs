//! A short description of a tool's result: `{entries [:string], truncated :bool?}`.
//!
//! It is a hint for writing a program, not a guarantee: answers of upstreams are not checked against it. A signature of
//! `ptc_lisp::signature` would have to be exact, and the schemas of upstreams can seldom be expressed exactly.

use ptc_catalog::Tool;
use serde_json::{Map, Value};

/// The hint for a tool without an output schema.
pub const UNKNOWN: &str = ":unknown_content";

/// Maximum depth. Deeper types are shown as `:map` or `[:any]`.
const DEPTH: u32 = 3;

/// Returns the hint for a tool, with at most `fields` members per object.
pub fn result_hint(tool: &Tool, fields: usize) -> String {
    let definition: Option<Value> = serde_json::from_str(tool.definition).ok();
    match definition.as_ref().and_then(|definition| definition.get("outputSchema")) {
        Some(schema) if schema.is_object() => typed(schema, fields, DEPTH),
        _ => UNKNOWN.to_owned(),
    }
}

fn typed(schema: &Value, fields: usize, depth: u32) -> String {
    let plain = match schema.get("type").and_then(Value::as_str) {
        Some("string") => ":string",
        Some("integer") => ":int",
        Some("number") => ":float",
        Some("boolean") => ":bool",
        Some("array") => {
            let items = schema.get("items").filter(|_| depth > 0).map(|items| typed(items, fields, depth - 1));
            return format!("[{}]", items.as_deref().unwrap_or(":any"));
        }
        Some("object") => {
            let members = schema.get("properties").and_then(Value::as_object).filter(|members| depth > 0 && !members.is_empty());
            return members.map_or_else(|| ":map".to_owned(), |members| object(schema, members, fields, depth - 1));
        }
        _ => ":any",
    };
    plain.to_owned()
}

fn object(schema: &Value, members: &Map<String, Value>, fields: usize, depth: u32) -> String {
    let required = schema.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let member = |(name, schema): (&String, &Value)| {
        let optional = if required.iter().any(|known| known == name) { "" } else { "?" };
        format!("{name} {}{optional}", typed(schema, fields, depth))
    };
    let mut told: Vec<String> = members.iter().take(fields).map(member).collect();
    if members.len() > fields {
        told.push("…".to_owned());
    }
    format!("{{{}}}", told.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_are_abbreviated_as_types() {
        let shown = |schema: &str| typed(&serde_json::from_str(schema).unwrap(), 3, DEPTH);
        for (schema, hint) in [
            (
                r#"{"type":"object","properties":{"entries":{"type":"array","items":{"type":"string"}},"truncated":{"type":"boolean"}},
                    "required":["entries"]}"#,
                "{entries [:string], truncated :bool?}",
            ),
            (r#"{"type":"array"}"#, "[:any]"),
            (r#"{"type":"object"}"#, ":map"),
            (r#"{"anyOf":[]}"#, ":any"),
            (
                r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{},"c":{"type":"number"},"d":{}}}"#,
                "{a :int?, b :any?, c :float?, …}",
            ),
            (
                r#"{"type":"array","items":{"type":"array","items":{"type":"array","items":{"type":"array","items":{}}}}}"#,
                "[[[[:any]]]]",
            ),
        ] {
            assert_eq!(shown(schema), hint, "{schema}");
        }
    }
}
