//! Tests the example calls that `doc` shows.

#![expect(clippy::unwrap_used, reason = "a test stops where anything is wrong")]

use std::path::Path;

use serde_json::{Value, json};

use crate::cassette::Folder;

/// Writes a config whose tool `echo` has an example.
fn with_example(example: &Value) -> Folder {
    let folder = Folder::new();
    let mut config: Value = serde_json::from_str(&folder.read("upstreams.json")).unwrap();
    let entry = config.pointer_mut("/upstreams/s").unwrap().as_object_mut().unwrap();
    entry.insert("tool_overrides".to_owned(), json!({ "echo": { "example": example } }));
    folder.write("upstreams.json", &config.to_string());
    folder
}

fn docs(folder: &Folder) -> String {
    folder.run(&["upstreams.json", "--emit", "docs", "--locked", "--offline"], true).success()
}

#[test]
fn example_of_the_config_is_the_call_in_doc() {
    let folder = with_example(&json!({ "a": "ann" }));
    let call = r#"call: (tool/call {:server "s" :tool "echo" :args {:a "ann"}})"#;
    assert!(docs(&folder).contains(call), "{}", docs(&folder));
    let doc = folder.run(&["repl", "upstreams.json", "-e", "(println (doc \"s/echo\"))"], true).success();
    assert!(doc.contains(call), "{doc}");
}

#[test]
fn example_that_the_schema_refuses_is_reported_and_not_shown() {
    for (example, expected) in [
        (json!({ "a": 7 }), "the argument `a` is string, its example is an integer"),
        (json!({ "a": "x".repeat(400) }), "the example has more than 400 bytes"),
        (json!({ "aa": "ann" }), "the example gives `aa`, which is not an argument of the tool"),
    ] {
        let folder = with_example(&example);
        let checked = folder.run(&["upstreams.json", "--check"], true);
        assert_eq!(checked.code, Some(0), "{checked:?}");
        assert!(checked.stderr.contains("warning[PTC0636]") && checked.stderr.contains(expected), "{expected}: {checked:?}");
        assert!(docs(&folder).contains(r#":tool "echo" :args {}})"#), "{}", docs(&folder));
    }
}

#[test]
fn examples_of_a_document_are_shown_unless_their_schemas_refuse_them() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/check/openapi_examples");
    for name in ["upstreams.json", "shop.openapi.json"] {
        std::fs::copy(fixture.join(name), folder.path().join(name)).unwrap();
    }
    let folder = Folder(folder);
    let emitted = folder.run(&["upstreams.json", "--emit", "docs"], false);
    assert!(emitted.stderr.contains("PTC0636") && !emitted.stderr.contains("closed"), "{emitted:?}");
    for call in [
        // The document's example `closed` is not a state, and `[]` has too few items.
        r#"call: (tool/call {:server "shop" :tool "list-orders" :args {:state "open"}})"#,
        r#"call: (tool/call {:server "shop" :tool "add-order" :args {:customer "Ann" :items [1]}})"#,
    ] {
        assert!(emitted.stdout.contains(call), "{call}\n{}", emitted.stdout);
    }
    // A document that was accepted once is not reported again.
    let again = folder.run(&["upstreams.json", "--check"], false);
    assert!(!again.stderr.contains("PTC0636"), "{again:?}");
}
