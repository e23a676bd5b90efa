//! Tests that the JSON Schema of configs agrees with `--check` on every fixture, as far as a schema can express the rules.

use std::fs;
use std::path::Path;

use ptc_compiler::config;
use ptc_compiler::diag::{Code, Diagnostics, Severity};
use ptc_compiler::json::Json;
use ptc_compiler::source::Sources;
use ptc_compiler::tree;

/// Codes of faults in single values and objects, which a schema detects too.
const SHAPE: [Code; 11] = [
    Code::UnknownKey,
    Code::MissingKey,
    Code::WrongType,
    Code::BadPaging,
    Code::UnknownTransport,
    Code::OldTransport,
    Code::EmptyValue,
    Code::OutOfRange,
    Code::UnknownSource,
    Code::ReservedSource,
    Code::UnknownScheme,
];

#[test]
fn printed_schema_and_check_agree() {
    let schema = config::schema::schema();
    assert!(jsonschema::meta::is_valid(&schema), "the schema is one");
    let validator = jsonschema::validator_for(&schema).expect("the schema can be used");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures");
    let mut paths: Vec<_> = fs::read_dir(folder.join("check"))
        .expect("fixtures can be listed")
        .map(|entry| entry.expect("an entry can be read").path().join("upstreams.json"))
        .collect();
    paths.push(folder.join("quickstart/upstreams.json"));
    let (mut accepted, mut refused, mut unread) = (0, 0, 0);
    for path in paths {
        let mut sources = Sources::default();
        let mut diagnostics = Diagnostics::default();
        let file = sources.add("upstreams.json", fs::read_to_string(&path).expect("fixtures are UTF-8"));
        let Some(tree) = tree::parse(&sources, file, &mut diagnostics) else { continue };
        // One fixture has a number that does not fit a double, and this parser refuses it.
        let Ok(value) = serde_json::from_str::<serde_json::Value>(&Json::from(&tree).canonical()) else {
            unread += 1;
            continue;
        };
        config::read(&sources, file, &mut diagnostics);
        let found = diagnostics.sorted();
        // A schema validator sees only the last of two equal keys.
        if found.iter().any(|d| d.code == Code::DuplicateKey) {
            continue;
        }
        let shape: Vec<&str> = found
            .iter()
            .filter(|d| SHAPE.contains(&d.code) || (d.code == Code::SchemaSource && d.severity == Severity::Error))
            .map(|d| d.message.as_str())
            .collect();
        let said: Vec<String> =
            validator.iter_errors(&value).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert_eq!(said.is_empty(), shape.is_empty(), "{}: the schema says {said:?}, the check {shape:?}", path.display());
        if said.is_empty() { accepted += 1 } else { refused += 1 }
    }
    assert!(accepted > 20 && refused > 10 && unread <= 1, "{accepted} accepted, {refused} refused, {unread} not read");
}

#[test]
fn every_key_is_described() {
    fn walk(node: &serde_json::Value, path: &str) {
        if let Some(properties) = node.get("properties").and_then(serde_json::Value::as_object) {
            for (name, schema) in properties {
                let is_plain =
                    node.get("additionalProperties") == Some(&false.into()) && !matches!(name.as_str(), "user" | "pass");
                let described =
                    schema.get("description").and_then(serde_json::Value::as_str).is_some_and(|text| !text.is_empty());
                assert!(described || !is_plain, "{path}/{name} has no description");
            }
        }
        match node {
            serde_json::Value::Object(members) => {
                for (name, inner) in members {
                    walk(inner, &format!("{path}/{name}"));
                }
            }
            serde_json::Value::Array(items) => items.iter().for_each(|item| walk(item, path)),
            _ => {}
        }
    }
    walk(&config::schema::schema(), "");
}
