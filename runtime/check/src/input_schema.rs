//! The input schemas of tools, each decoded once.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError, RwLock};

use ptc_catalog::Tool;
use ptc_json_schema::pattern_of;
use ptc_lisp::{Kind, Value, json};
use regex::Regex;

use crate::integers::whole;

/// Address and length of a tool's definition. Definitions are never freed, so that this identifies the definition.
type Key = (usize, usize);

/// The decoded schemas. The value is `None` if the definition has no input schema or if it is not an object.
static SCHEMAS: LazyLock<RwLock<HashMap<Key, Option<&'static InputSchema>>>> = LazyLock::new(RwLock::default);

/// A decoded input schema with its compiled patterns. It is leaked, like a catalog that is built at run time.
#[derive(Debug)]
pub(crate) struct InputSchema {
    root: Value,
    /// Patterns that were needed so far. The value is `None` if `regex` does not support the pattern.
    patterns: Mutex<HashMap<String, Option<Regex>>>,
}

impl InputSchema {
    /// Returns the schema of a tool.
    pub(crate) fn for_tool(tool: &Tool) -> Option<&'static InputSchema> {
        let key = (tool.definition.as_ptr().addr(), tool.definition.len());
        if let Some(known) = SCHEMAS.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return *known;
        }
        let mut schemas = SCHEMAS.write().unwrap_or_else(PoisonError::into_inner);
        *schemas.entry(key).or_insert_with(|| {
            let definition = json::decode(tool.definition.as_bytes()).ok()?;
            let root = definition.get("inputSchema").filter(|schema| schema.kind() == Kind::Map)?.clone();
            Some(Box::leak(Box::new(InputSchema { root, patterns: Mutex::default() })))
        })
    }

    /// Returns the schema of an argument.
    pub(crate) fn argument(&self, name: &str) -> Option<&Value> {
        member(self.root.get("properties")?, name)
    }

    /// Returns the target of a schema's reference, or the schema itself.
    pub(crate) fn resolved<'s>(&'s self, schema: &'s Value) -> &'s Value {
        self.target(schema).unwrap_or(schema)
    }

    /// Returns the target of a schema's reference if it is local.
    pub(crate) fn target(&self, schema: &Value) -> Option<&Value> {
        let segments = schema.get("$ref")?.as_str()?.strip_prefix('#')?.split('/').skip(1);
        segments.into_iter().try_fold(&self.root, |at, segment| member(at, &segment.replace("~1", "/").replace("~0", "~")))
    }

    /// Whether a text matches a pattern. Returns `None` for an unsupported pattern.
    pub(crate) fn matches(&self, pattern: &str, text: &str) -> Option<bool> {
        let mut patterns = self.patterns.lock().unwrap_or_else(PoisonError::into_inner);
        if !patterns.contains_key(pattern) {
            patterns.insert(pattern.to_owned(), pattern_of(pattern).ok());
        }
        // A clone shares the compiled program. The lock is released before matching.
        let compiled = patterns.get(pattern).cloned().flatten();
        drop(patterns);
        Some(compiled?.is_match(text))
    }
}

/// Returns the member with exactly this name. A schema may have names that differ only in hyphens and underscores.
pub(crate) fn member<'v>(map: &'v Value, name: &str) -> Option<&'v Value> {
    map.entries()?.find_map(|(key, value)| (key.as_str() == Some(name)).then_some(value))
}

/// Returns the schemas in a list such as `allOf`.
pub(crate) fn parts<'v>(schema: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    schema.get(key).and_then(Value::items).into_iter().flatten()
}

/// Returns the types that a schema names.
pub(crate) fn types(schema: &Value) -> impl Iterator<Item = &str> {
    let named = schema.get("type");
    let list = named.and_then(Value::items).into_iter().flatten().filter_map(Value::as_str);
    named.and_then(Value::as_str).into_iter().chain(list)
}

/// Whether one of the types that a schema names admits the value. A name that is not a type admits everything.
pub(crate) fn admits(schema: &Value, value: &Value) -> bool {
    const NAMES: [&str; 7] = ["null", "boolean", "integer", "number", "array", "object", "string"];
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
    types(schema).next().is_none() || types(schema).any(|name| kinds.contains(&name) || !NAMES.contains(&name))
}

#[cfg(test)]
mod tests {
    use ptc_catalog::Tool;

    use super::InputSchema;

    #[test]
    fn definition_is_decoded_once() {
        const TOOL: Tool =
            Tool { name: "read", definition: r#"{"inputSchema": {"properties": {"path": {"pattern": "^/"}}}}"#, ..Tool::EMPTY };
        let (first, second) = (InputSchema::for_tool(&TOOL).unwrap(), InputSchema::for_tool(&TOOL).unwrap());
        assert!(std::ptr::eq(first, second));
        assert_eq!(
            [first.matches("^/", "/x"), first.matches("^/", "x"), first.matches("(?=a)", "a")],
            [Some(true), Some(false), None]
        );
        assert!(InputSchema::for_tool(&Tool { definition: r#"{"name": "read"}"#, ..TOOL }).is_none());
    }
}
