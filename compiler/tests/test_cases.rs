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
fn cases_check_the_number_and_the_order_of_calls() {
    let list = json!({ "server": "shop", "tool": "list-orders" });
    let twice = json!({ "server": "shop", "tool": "list-orders", "times": 2 });
    let first = json!({ "server": "shop", "tool": "list-orders", "args": {} });
    let second = json!({ "server": "shop", "tool": "list-orders", "args": { "cursor": "two" } });
    let case = |name: &str, calls: Value, in_order: bool| json!({ "name": name, "program": "pages.clj", "cassette": "pages.json", "expected": 2, "calls": calls, "calls_in_order": in_order });
    let folder = shop();
    let cassette = folder.read("c.json");
    let mut pages: Value = serde_json::from_str(&cassette).unwrap();
    let page = |next: Value| json!([{ "status": 200, "headers": {}, "value": { "items": [], "next_cursor": next } }]);
    *pages.pointer_mut("/tools/shop~1list-orders/requests").unwrap() = json!([
        { "args": {}, "replies": page(json!("two")) }, { "args": { "cursor": "two" }, "replies": page(Value::Null) },
    ]);
    folder.write("pages.json", &pages.to_string());
    let program = r#"(loop [cursor nil n 0]
  (let [page (tool/value {:server "shop" :tool "list-orders" :args (if cursor {:cursor cursor} {})})]
    (if-let [next (:next_cursor page)] (recur next (inc n)) (inc n))))"#;
    folder.write("pages.clj", program);
    let run = |cases: &Value| {
        folder.write("p_cases.json", &format!("{cases:#}"));
        folder.run(&["test"], false)
    };
    let passing = json!([
        case("times", json!([twice]), false),
        case("any order", json!([second, first]), false),
        case("in order", json!([first, second]), true),
        case("times in order", json!([twice]), true),
    ]);
    assert!(run(&passing).success().starts_with("4 tests, 8 assertions: 0 failed"));
    let failing = run(&json!([
        case("once", json!([list]), false),
        case("thrice", json!([{ "server": "shop", "tool": "list-orders", "times": 3 }]), false),
        case("reversed", json!([second, first]), true),
        case("too few", json!([first]), true),
        case("too many", json!([first, second, second]), true),
    ]));
    assert_eq!(failing.code, Some(1));
    for part in [
        "FAIL p_cases/once",
        "  expected: no further call\n    actual: shop/list-orders {\"cursor\":\"two\"}\n",
        "FAIL p_cases/thrice",
        "  expected: shop/list-orders with any arguments\n    actual: no further call\n",
        "  expected: call 1: shop/list-orders {\"cursor\":\"two\"}\n    actual: call 1: shop/list-orders {}\n",
        "  expected: no call 2\n    actual: call 2: shop/list-orders {\"cursor\":\"two\"}\n",
        "  expected: call 3: shop/list-orders {\"cursor\":\"two\"}\n    actual: no call 3\n",
        "5 tests, 10 assertions: 5 failed, 0 errors",
    ] {
        assert!(failing.stdout.contains(part), "{part}\n{}", failing.stdout);
    }
    let none = run(&json!([{ "name": "a", "program": "pages.clj", "calls": [{ "server": "s", "tool": "t", "times": 0 }] }]));
    assert!(none.stdout.contains("not a case: "), "{none:?}");
    let no_calls = run(&json!([{ "name": "a", "program": "pages.clj", "calls_in_order": true }]));
    assert!(no_calls.stdout.contains("`calls_in_order` needs `calls`"), "{no_calls:?}");
}

#[test]
fn arguments_of_expected_calls_match_calls_with_other_options() {
    let folder = shop();
    let mut cassette: Value = serde_json::from_str(&folder.read("c.json")).unwrap();
    let requests = cassette.pointer_mut("/tools/shop~1list-orders/requests").unwrap();
    *requests = json!([{ "args": {}, "body": false, "replies": [{ "status": 200, "headers": {} }] }]);
    folder.write("head.json", &cassette.to_string());
    folder.write("head.clj", r#"(:status (tool/call {:server "shop" :tool "list-orders" :body false}))"#);
    let case = |args: Value| {
        let call = json!({ "server": "shop", "tool": "list-orders", "args": args });
        json!([{ "name": "head", "program": "head.clj", "cassette": "head.json", "calls": [call] }])
    };
    folder.write("head_cases.json", &case(json!({})).to_string());
    let passed = folder.run(&["test"], false).success();
    assert!(passed.starts_with("1 test, 2 assertions: 0 failed"), "{passed}");
    folder.write("head_cases.json", &case(json!({ "cursor": "a" })).to_string());
    let failed = folder.run(&["test"], false);
    assert!(failed.stdout.contains("actual: shop/list-orders {}, without its body"), "{failed:?}");
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
            "ERROR p_cases/a (p_cases.json:2)\n  not a case: unknown field `wanted`",
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

#[test]
fn wrong_cases_do_not_hide_the_others() {
    let good = |name: &str| json!({ "name": name, "program": "p.clj", "arguments": { "least": 60 }, "cassette": "c.json" });
    let mut wrong = good("wrong");
    wrong["wanted"] = json!(1);
    let cases = json!([good("first"), wrong, { "program": "p.clj" }, good("first"), good("last")]);
    let (folder, finished) = run(&cases, &[]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    for part in [
        "ERROR p_cases/wrong (p_cases.json:",
        "  not a case: unknown field `wanted`",
        "ERROR p_cases.json (p_cases.json:",
        "  not a case: missing field `name`",
        "ERROR p_cases/first (p_cases.json:",
        "  there are two cases named first",
        "4 tests, 2 assertions: 0 failed, 3 errors (",
    ] {
        assert!(finished.stdout.contains(part), "{part}\n{}", finished.stdout);
    }
    // A filter leaves out wrong cases too, except those without a name.
    let last = folder.run(&["test", "--filter", "last"], false);
    assert!(last.stdout.contains("1 test, 1 assertion: 0 failed, 1 error ("), "{last:?}");
}
