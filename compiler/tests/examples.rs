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
fn example_of_an_operation_is_checked_with_its_members() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/check/openapi_examples");
    let order = json!({
        "type": "object", "required": ["id", "kind"], "additionalProperties": false,
        "properties": { "id": { "type": "integer" }, "kind": { "const": "retail" }, "code": { "pattern": "^[A-Z]+$" } },
    });
    for (example, expected) in [
        (json!({ "order": { "id": 7, "kind": "retail" } }), None),
        (
            json!({ "order": { "id": 1, "kind": "other" } }),
            Some("the example of the argument `order`.`kind` is none of its values"),
        ),
        (json!({ "order": { "id": 1 } }), Some("the example of the argument `order` lacks `kind`")),
        (
            json!({ "order": { "id": 1, "kind": "retail", "idd": 2 } }),
            Some("the example of the argument `order` has `idd`, which its schema does not name"),
        ),
    ] {
        let folder = Folder(tempfile::tempdir().unwrap());
        let mut config: Value = serde_json::from_str(&std::fs::read_to_string(fixture.join("upstreams.json")).unwrap()).unwrap();
        config["upstreams"]["shop"]["operation_overrides"] = json!({ "addOrder": { "example": example } });
        folder.write("upstreams.json", &config.to_string());
        let mut document: Value =
            serde_json::from_str(&std::fs::read_to_string(fixture.join("shop.openapi.json")).unwrap()).unwrap();
        let body = json!({ "type": "object", "required": ["order"], "properties": { "order": order } });
        document["paths"]["/orders"]["post"]["requestBody"]["content"]["application/json"]["schema"] = body;
        folder.write("shop.openapi.json", &document.to_string());
        let checked = folder.run(&["upstreams.json", "--check"], false);
        let docs = folder.run(&["upstreams.json", "--emit", "docs"], false).success();
        // The library has no patterns: the example is shown, and reported.
        let with_code = folder.read("upstreams.json").replace("\"retail\"", "\"retail\",\"code\":\"a\"");
        if expected.is_none() {
            folder.write("coded.json", &with_code);
            let coded = folder.run(&["coded.json", "--check"], false).stderr;
            let said =
                "the example of the argument `order` is not what its schema asks for at `order.code`: expected a string that";
            assert!(coded.contains("warning[PTC0636]") && coded.contains(said), "{coded}");
        }
        let is_shown = docs.contains(r#":args {:order {:id 7 :kind "retail"}}})"#);
        let is_reported = expected.is_some_and(|expected| checked.stderr.contains(expected));
        assert_eq!((is_shown, is_reported), (expected.is_none(), expected.is_some()), "{checked:?}\n{docs}");
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
