//! Tests the cases of `ptc-compile test`, in `*_cases.json`.

use serde_json::{Value, json};

use crate::cassette::{Finished, Folder};
use crate::test_checks::shop;

/// A program with an argument.
const PROGRAM: &str = r#"(let [page (tool/call {:server "shop" :tool "list-orders"})]
  (if (:ok page)
    {:orders (filterv (fn [order] (pos? (- (:total order) data/least))) (:items (:value page))) :kinds #{:paid}}
    (fail "no orders")))
"#;

fn run(cases: &Value, options: &[&str]) -> (Folder, Finished) {
    let folder = shop();
    folder.write("p.clj", PROGRAM);
    folder.write("p_cases.json", &format!("{cases:#}"));
    let finished = folder.run(&[&["test"], options].concat(), false);
    (folder, finished)
}

fn order(id: u32, customer: &str, total: u32, note: &str) -> Value {
    json!({ "id": id, "customer": customer, "total": total, "note": note })
}

#[test]
fn cases_check_values_schemas_failures_and_calls() {
    let call = json!({ "server": "shop", "tool": "list-orders", "args": {} });
    let cases = json!([
        { "name": "large", "program": "p.clj", "arguments": { "least": 6 }, "cassette": "c.json",
          "expected": { "orders": [order(1, "Ann", 10, "by hand")], "kinds": ["paid"] }, "calls": [call] },
        { "name": "shape", "program": "p.clj", "arguments": { "least": 0 }, "cassette": "c.json", "config": "upstreams.json",
          "expected_schema": { "type": "object", "properties": { "orders": { "type": "array", "minItems": 2 } } },
          "calls": [{ "server": "shop", "tool": "list-orders" }] },
        { "name": "no argument", "program": "p.clj", "cassette": "c.json", "expected_failure": "type_error" },
    ]);
    let (folder, finished) = run(&cases, &[]);
    let passed = finished.success();
    assert!(passed.starts_with("3 tests, 5 assertions: 0 failed, 0 errors ("), "{passed}");
    let schema: Value = serde_json::from_str(&folder.run(&["schema", "cases"], false).success()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    assert!(validator.is_valid(&cases));
    assert!(!validator.is_valid(&json!([{ "name": "x" }])));
    let one = folder.run(&["test", "--filter", "p_cases/large"], false).success();
    assert!(one.starts_with("1 test, 2 assertions"), "{one}");
    // The programs of cases are checked like those of tests.
    let checked = folder.run(&["test", "--faults=empty_list", "--filter", "large"], false).success();
    assert!(checked.contains("p.clj {\"least\":6} with faults: 1 run, 0 findings"), "{checked}");
}

#[test]
fn failed_cases_show_differences_and_calls() {
    let cases = json!([
        { "name": "value", "program": "p.clj", "arguments": { "least": 6 }, "cassette": "c.json",
          "expected": { "orders": [order(1, "Ann", 11, "by hand")], "kinds": ["paid"] } },
        { "name": "shape", "program": "p.clj", "arguments": { "least": 6 }, "cassette": "c.json",
          "expected_schema": { "properties": { "orders": { "minItems": 2 } } } },
        { "name": "calls", "program": "p.clj", "arguments": { "least": 6 }, "cassette": "c.json",
          "calls": [{ "server": "shop", "tool": "list-orders", "args": { "cursor": "a" } }] },
        { "name": "no failure", "program": "p.clj", "arguments": { "least": 60 }, "cassette": "c.json", "expected_failure": "x" },
        { "name": "failure", "program": "p.clj", "cassette": "c.json", "expected": 1 },
        { "name": "no cassette", "program": "p.clj", "arguments": { "least": 6 } },
    ]);
    let (_, finished) = run(&cases, &[]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    for part in [
        "FAIL p_cases/value (p_cases.json:2)\n  expected\n",
        "  at [\"orders\" 0 \"total\"]: expected 11, got 10\n  calls:\n    shop/list-orders {}: ok\n",
        "FAIL p_cases/shape (p_cases.json:",
        "actual: return.orders: ",
        "  expected: shop/list-orders {\"cursor\":\"a\"}\n    actual: shop/list-orders {}\n",
        "FAIL p_cases/no failure (",
        "ERROR p_cases/failure (",
        "ERROR p_cases/no cassette (",
        "the cassette has no answer to shop/list-orders {}",
        "6 tests, 6 assertions: 4 failed, 2 errors (",
    ] {
        assert!(finished.stdout.contains(part), "{part}\n{}", finished.stdout);
    }
}

#[test]
fn files_that_are_not_cases_are_reported_with_their_lines() {
    for (text, expected) in [
        ("{}", "expected a list of cases, found an object"),
        (
            "[\n  {\"name\": \"a\", \"program\": \"p.clj\", \"wanted\": 1}\n]",
            "ERROR p_cases.json (p_cases.json:2)\n  not a case: unknown field `wanted`",
        ),
        ("[{\"name\": \"a\"}]", "missing field `program`"),
        ("[{\"name\": \"a\", \"program\": \"p\"},\n{\"name\": \"a\", \"program\": \"p\"}]", "there are two cases named a"),
        ("[{\"name\": \"a\", \"program\": \"p\", \"expected\": null, \"expected_failure\": \"\"}]", "a case has one of"),
        ("[", "PTC"),
    ] {
        let folder = shop();
        folder.write("p_cases.json", text);
        let refused = folder.run(&["test", "p_cases.json"], false);
        assert_eq!(refused.code, Some(1), "{text}: {refused:?}");
        assert!(refused.stdout.contains(expected), "{text}: {refused:?}");
    }
}
