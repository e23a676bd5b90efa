//! JSON Schema 2020-12 for the results of programs, with exact numbers and bounded time.
//!
//! All assertions and applicators of the core, applicator, validation and unevaluated vocabularies are supported, with references
//! inside the schema (`#`, `#/…`, `#anchor`). `format` and other annotations are accepted and assert nothing. Other keywords are
//! rejected by name, since ignoring them would be mistaken for successful validation.
//!
//! - `compile`: compiles JSON into assertions, with a row per keyword.
//! - `check`: the assertions of a compiled schema.
//! - `validate`: validates a value.
//! - `report`: mismatches, with paths and messages for a model.
//! - `exact`: numbers as exact decimals.
//! - [`pattern_of`]: compiles a `pattern`.

#![forbid(unsafe_code)]

mod check;
mod compile;
mod exact;
mod pattern;
mod report;
mod validate;

use std::fmt;

pub use pattern::pattern_of;
pub use report::{Mismatch, Report};

/// A compiled schema.
#[derive(Debug)]
pub struct Schema {
    /// All reachable subschemas. The first is the root.
    nodes: Vec<check::Node>,
    /// Whether an assertion depends on what others have evaluated. Tracking that has a cost.
    tracks: bool,
}

/// The reason why a schema is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileError {
    /// The position in the schema, as a JSON pointer: `#/properties/id`.
    pub at: String,
    /// The error, and what is expected.
    pub why: String,
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.why)
    }
}

impl std::error::Error for CompileError {}

/// The reason why a validation ended without a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupted {
    /// It was interrupted.
    Stopped,
    /// Schema and value require more steps than [`MAX_STEPS`].
    TooCostly,
    /// They nest deeper than [`MAX_DEPTH`].
    TooDeep,
}

/// Maximum number of visited subschemas in one validation. Branches of `anyOf` multiply, so that the work of a small schema can
/// be exponential.
pub const MAX_STEPS: u64 = 5_000_000;

/// Maximum depth of a schema, and of the recursion of a validation.
pub const MAX_DEPTH: usize = 128;

#[cfg(test)]
mod tests {
    use ptc_lisp::json;

    use super::*;

    fn schema(text: &str) -> Result<Schema, CompileError> {
        Schema::compile(&json::decode(text.as_bytes()).unwrap())
    }

    fn mismatches(schema_text: &str, value: &str) -> Vec<String> {
        let value = json::decode(value.as_bytes()).unwrap();
        let report = schema(schema_text).unwrap().validate(&value, &|| false).unwrap();
        report.mismatches.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn mismatches_contain_the_path_of_the_value() {
        let items = r#"{"type":"object","required":["items"],"properties":{"items":{"type":"array","items":
            {"type":"object","required":["id"],"properties":{"id":{"type":"integer"}},"additionalProperties":false}}}}"#;
        assert_eq!(
            mismatches(items, r#"{"items":[{"id":1},{"id":"x"},{},{"id":2,"my key":3}]}"#),
            [
                "return.items[1].id: expected integer, got string \"x\"",
                "return.items[2].id: missing, but required",
                "return.items[3][\"my key\"]: not allowed: the schema names id and no more",
            ]
        );
        assert_eq!(mismatches(items, "{}"), ["return.items: missing, but required"]);
        assert_eq!(mismatches(r#"{"type":["integer","null"]}"#, "[]"), ["return: expected integer or null, got array []"]);
        assert_eq!(mismatches(r#"{"enum":["a","b"]}"#, "\"c\""), ["return: expected one of \"a\", \"b\", got string \"c\""]);
        assert_eq!(mismatches("false", "1"), ["return: nothing is allowed here, got integer 1"]);
    }

    #[test]
    fn message_without_value_contains_no_value() {
        for (text, value, expected) in [
            ("{\"pattern\":\"^[a-z]$\"}", "\"hunter2\"", "expected a string that matches /^[a-z]$/"),
            ("{\"const\":1}", "\", got hunter2\"", "expected 1"),
            ("false", "\"hunter2\"", "nothing is allowed here"),
            (
                "{\"anyOf\":[{\"type\":\"integer\"}]}",
                "\"hunter2\"",
                "matches none of the 1 schemas of anyOf; nearest: return: expected integer",
            ),
            (
                "{\"anyOf\":[{\"type\":\"integer\"}]}",
                "\"x; nearest: hunter2\"",
                "matches none of the 1 schemas of anyOf; nearest: return: expected integer",
            ),
            ("{\"uniqueItems\":true}", "[\"hunter2\",\"hunter2\"]", "items must be unique, some come twice"),
            (
                "{\"contains\":{\"type\":\"integer\"}}",
                "[\"hunter2\"]",
                "must contain at least 1 items that match `contains`, has 0",
            ),
            ("{\"not\":{}}", "\"hunter2\"", "must not match the schema of `not`"),
            ("{\"propertyNames\":{\"maxLength\":3}}", "{\"hunter2\":1}", "expected at most 3 characters"),
        ] {
            let value = json::decode(value.as_bytes()).unwrap();
            let report = schema(text).unwrap().validate(&value, &|| false).unwrap();
            assert_eq!(report.mismatches[0].without_value(), expected, "{text}");
        }
    }

    #[test]
    fn mismatch_of_alternatives_reports_the_closest_branch() {
        let either = r#"{"anyOf":[{"type":"integer"},{"type":"object","required":["a"]}]}"#;
        assert_eq!(
            mismatches(either, "{}"),
            ["return: matches none of the 2 schemas of anyOf; nearest: return.a: missing, but required"]
        );
        let one = r#"{"oneOf":[{"type":"integer"},{"minimum":0}]}"#;
        assert_eq!(mismatches(one, "1"), ["return: matches 2 schemas of oneOf (1, 2), must match exactly one"]);
    }

    #[test]
    fn unsupported_keyword_is_refused_by_name() {
        for (text, at, why) in [
            ("3", "#", "a schema is an object or a boolean, got integer"),
            (r#"{"properties":{"a":{"tpye":"string"}}}"#, "#/properties/a/tpye", "unknown keyword; did you mean `type`?"),
            (r#"{"type":"int"}"#, "#/type", "unknown type \"int\"; did you mean \"integer\"?"),
            (r##"{"$dynamicRef":"#a"}"##, "#/$dynamicRef", "`$dynamicRef` is not supported"),
            (
                r#"{"$ref":"https://example.com/x"}"#,
                "#/$ref",
                "only references inside this schema are supported (`#/$defs/name`), got \"https://example.com/x\"",
            ),
            (r##"{"$ref":"#/$defs/a"}"##, "#/$ref", "nothing is at \"#/$defs/a\""),
            (
                r##"{"allOf":[{"$ref":"#"}]}"##,
                "#",
                "the schema refers to itself without going into the value: it would never end",
            ),
            (
                r#"{"pattern":"(?=a)"}"#,
                "#/pattern",
                "not a pattern that is supported: look-around, including look-ahead and look-behind, is not supported",
            ),
            (r#"{"enum":[]}"#, "#/enum", "must have at least one item: nothing matches an empty one"),
            (r#"{"type":[]}"#, "#/type", "must have at least one item: nothing matches an empty one"),
            (r#"{"required":["a","b","a"]}"#, "#/required", "names \"a\" twice"),
            (r#"{"dependentRequired":{"x":["a","a"]}}"#, "#/dependentRequired", "names \"a\" twice"),
            (r#"{"items":{"description":5}}"#, "#/items/description", "must be a string, got integer 5"),
            (r#"{"readOnly":"no"}"#, "#/readOnly", "must be true or false, got string \"no\""),
            (r#"{"examples":{}}"#, "#/examples", "must be an array, got object {}"),
            (r#"{"minimum":"3"}"#, "#/minimum", "must be a number, got string \"3\""),
            (
                r#"{"items":[{}]}"#,
                "#/items",
                "a schema is an object or a boolean, got array; for a list of schemas use `prefixItems`",
            ),
        ] {
            let refused = schema(text).unwrap_err();
            assert_eq!((refused.at.as_str(), refused.why.as_str()), (at, why), "{text}");
        }
    }

    #[test]
    fn validation_ends_at_step_limit_and_when_stopped() {
        // Each of 25 levels doubles the work.
        let defs: Vec<String> = (0..26)
            .map(|n| format!(r##""d{n}":{{"anyOf":[{{"$ref":"#/$defs/d{0}"}},{{"$ref":"#/$defs/d{0}"}}]}}"##, n + 1))
            .collect();
        let text = format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{},"d26":{{"type":"string"}}}}}}"##, defs.join(","));
        let schema = schema(&text).unwrap();
        let value = json::decode(b"1").unwrap();
        assert_eq!(schema.validate(&value, &|| true).unwrap_err(), Interrupted::Stopped);
        assert_eq!(schema.validate(&value, &|| false).unwrap_err(), Interrupted::TooCostly);
    }

    #[test]
    fn deep_schemas_and_values_do_not_overflow_the_stack() {
        let deep = format!("{}true{}", r#"{"not":"#.repeat(1_000), "}".repeat(1_000));
        assert!(schema(&deep).unwrap_err().why.contains("nests"));
        let list = schema(r##"{"items":{"$ref":"#"}}"##).unwrap();
        for (depth, fits) in [(100, true), (300, false)] {
            let value = json::decode(format!("{}{}", "[".repeat(depth), "]".repeat(depth)).as_bytes()).unwrap();
            assert_eq!(list.validate(&value, &|| false).err(), (!fits).then_some(Interrupted::TooDeep));
        }
    }
}
