//! Tests the validator of results with JSON Schema's official test suite. Every schema is either refused by keyword, or the
//! validator decides about every value as the suite requires.

#![expect(clippy::unwrap_used, reason = "a test stops where anything is wrong")]

use std::collections::BTreeMap;
use std::fs;

use ptc_lisp::{Value, json};
use ptc_runtime::schema::Schema;
use ptc_tests::peers;

/// Keywords of the required part of the suite that the validator refuses. The test fails if it refuses any other schema.
const REFUSED: [&str; 5] = ["$dynamicRef", "$dynamicAnchor", "$schema", "$id", "$ref"];

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap()
}

fn list<'v>(value: &'v Value, key: &str) -> Vec<&'v Value> {
    value.get(key).unwrap().items().unwrap().collect()
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn validator_agrees_with_the_official_suite() {
    let mut files: Vec<_> = fs::read_dir(peers::json_schema_suite()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.is_file());
    files.sort();
    assert!(files.len() > 40, "the suite has a file for each keyword");
    let (mut decided, mut refused) = (0, BTreeMap::<&str, usize>::new());
    let mut wrong = Vec::new();
    for file in files {
        let suite = json::decode(&fs::read(&file).unwrap()).unwrap();
        for group in suite.items().unwrap() {
            let place = format!("{}: {}", file.file_name().unwrap().display(), text(group, "description"));
            let schema = match Schema::compile(group.get("schema").unwrap()) {
                Ok(schema) => schema,
                Err(why) => {
                    let why = why.to_string();
                    match REFUSED.iter().find(|reason| why.contains(**reason)) {
                        Some(reason) => *refused.entry(reason).or_default() += list(group, "tests").len(),
                        None => wrong.push(format!("{place}: refused: {why}")),
                    }
                    continue;
                }
            };
            for case in list(group, "tests") {
                let wanted = case.get("valid").unwrap().as_bool().unwrap();
                let report = schema.validate(case.get("data").unwrap(), &|| false).unwrap();
                decided += 1;
                if report.is_valid() != wanted {
                    let found = report.mismatches.first().map_or("valid".to_owned(), ToString::to_string);
                    wrong.push(format!("{place}: {}: {found}", text(case, "description")));
                }
            }
        }
    }
    println!("{decided} cases decided; refused, by reason: {refused:?}");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(decided > 1_000, "{decided}");
}
