//! Tests that `diff` and `update` run the tests of programs with the pinned and the current tools.

#![expect(clippy::unwrap_used, reason = "a test stops where anything is wrong")]

use serde_json::{Value, json};

use crate::cassette::{Finished, Folder};
use crate::test_checks::shop;

const SUM: &str =
    "; The sum of all orders.\n(reduce + (map :total (:items (tool/value {:server \"shop\" :tool \"list-orders\"}))))\n";
const COUNT: &str = "(count (:items (tool/value {:server \"shop\" :tool \"list-orders\"})))";
const NOTES: &str = "(mapv :note (:items (tool/value {:server \"shop\" :tool \"list-orders\"})))";

const TESTS: &str = r#"(ns shop-test {:cassette "c.json"})
(deftest sum-of-orders (is (= 15 (run-program "sum.clj"))))
(deftest number-of-orders (is (= 2 (run-program "count.clj"))))
(deftest number-of-notes (is (= 2 (count (run-program "notes.clj")))))
"#;

/// Returns a shop with tests, whose document no longer has `total` and `note`.
fn changed(tests: &str) -> Folder {
    let folder = shop();
    for (name, text) in [("sum.clj", SUM), ("count.clj", COUNT), ("notes.clj", NOTES), (tests, TESTS)] {
        folder.write(name, text);
    }
    assert!(!folder.run(&["diff", "upstreams.json"], false).success().contains("PTC08"));
    let mut document: Value = serde_json::from_str(&folder.read("shop.json")).unwrap();
    let order = "/paths/~1orders/get/responses/200/content/application~1json/schema/properties/items/items";
    let order = document.pointer_mut(order).unwrap();
    order["properties"].as_object_mut().unwrap().retain(|name, _| name != "total" && name != "note");
    order["required"] = json!(["id", "customer"]);
    folder.write("shop.json", &document.to_string());
    folder
}

/// Returns code, severity, file, line and column of the findings about programs.
fn of_programs(finished: &Finished) -> Vec<String> {
    let lines = finished.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let text = |line: &Value, path: &str| line.pointer(path).map(|value| value.to_string().replace('"', "")).unwrap_or_default();
    let line = |line: Value| ["/code", "/severity", "/at/path", "/at/line", "/at/column"].map(|path| text(&line, path)).join(" ");
    lines.map(line).filter(|line| line.starts_with("PTC08")).collect()
}

#[test]
fn diff_names_the_programs_that_a_change_breaks() {
    let folder = changed("shop_test.clj");
    let json = folder.run(&["diff", "upstreams.json", "--format", "json"], false);
    assert_eq!(json.code, Some(1), "{json:?}");
    let expected = ["PTC0812 error sum.clj 2 1", "PTC0813 note count.clj 1 1", "PTC0812 warning notes.clj 1 1"];
    assert_eq!(of_programs(&json), expected, "{}", json.stdout);
    let text = folder.run(&["diff", "upstreams.json"], false);
    let said = format!("{}{}", text.stdout, text.stderr);
    for part in [
        "error[PTC0812]: `sum.clj` fails with the current tools: runtime_error: type_error: (+ & xs)",
        "sum.clj:2:1",
        "`list-orders` of `shop` ",
        "`notes.clj` gives another value with the current tools: at [0] nil, which was \"by hand\"",
        "`count.clj` gives the same with the current tools",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    let markdown = folder.run(&["diff", "upstreams.json", "--format", "markdown"], false).stdout;
    assert!(markdown.contains("- **error** PTC0812: `sum.clj` fails with the current tools"), "{markdown}");
    let sarif: Value = serde_json::from_str(&folder.run(&["diff", "upstreams.json", "--format", "sarif"], false).stdout).unwrap();
    let results = sarif.pointer("/runs/0/results").and_then(Value::as_array).unwrap();
    assert_eq!(results.iter().filter(|result| result["ruleId"] == "PTC0812").count(), 2, "{sarif:#}");
}

#[test]
fn tests_elsewhere_are_named_and_update_reports_too() {
    let folder = changed("tests/shop_test.clj");
    let without = folder.run(&["diff", "upstreams.json", "--format", "json"], false);
    assert_eq!(of_programs(&without), Vec::<String>::new());
    // The programs and the cassette are relative to the tests.
    for name in ["sum.clj", "count.clj", "notes.clj", "c.json"] {
        folder.write(&format!("tests/{name}"), &folder.read(name));
    }
    let named = folder.run(&["diff", "upstreams.json", "--tests", "tests", "--format", "json"], false);
    assert_eq!(of_programs(&named).len(), 3, "{named:?}");
    let updated = folder.run(&["update", "upstreams.json", "--tests", "tests", "--format", "json"], false);
    assert_eq!((updated.code, of_programs(&updated).len()), (Some(0), 3), "{updated:?}");
    // The cassette is older than the lock file now.
    let stale = folder.run(&["test", "tests"], false);
    assert!(stale.stdout.contains("it was recorded with another lock file"), "{stale:?}");
}

#[test]
fn programs_that_cannot_be_compared_are_named() {
    let folder = changed("shop_test.clj");
    folder.write("shop_test.clj", &TESTS.replace("(= 15 ", "(= 16 "));
    let found = folder.run(&["diff", "upstreams.json", "--format", "json"], false);
    assert!(of_programs(&found).contains(&"PTC0813 warning sum.clj 1 1".to_owned()), "{found:?}");
    assert!(found.stdout.contains("its test fails with the pinned tools"), "{found:?}");
}

#[test]
fn change_that_breaks_a_program_is_an_error() {
    let folder = changed("shop_test.clj");
    let severity = |folder: &Folder| {
        let found = folder.run(&["diff", "upstreams.json", "--details", "--format", "json"], false);
        let lines = found.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let of_output: Vec<Value> = lines.filter(|line| line["code"] == "PTC0615").map(|line| line["severity"].clone()).collect();
        let text = folder.run(&["diff", "upstreams.json"], false);
        let markdown = folder.run(&["diff", "upstreams.json", "--format", "markdown"], false).stdout;
        (of_output, text.stderr + &markdown)
    };
    let (of_output, said) = severity(&folder);
    assert_eq!(of_output, ["error"]);
    for part in
        ["1 output changed (1 breaking)", "error[PTC0615]: `list-orders`", "**error** PTC0615: `list-orders`", "1 with an error"]
    {
        assert!(said.contains(part), "{part}\n{said}");
    }
    folder.write("shop_test.clj", "");
    let (of_output, said) = severity(&folder);
    assert_eq!(of_output, ["warning"]);
    assert!(said.contains("warning[PTC0615]: `list-orders`") && !said.contains("breaking"), "{said}");
}

#[test]
fn stored_programs_without_tests_are_named() {
    let folder = changed("shop_test.clj");
    let mut config: Value = serde_json::from_str(&folder.read("upstreams.json")).unwrap();
    for (name, text) in [("listed", COUNT), ("pure", "(+ 1 2)"), ("sum", SUM)] {
        folder.write(&format!("{name}.clj"), text);
        config["programs"][name] = json!({ "file": format!("{name}.clj"), "description": "A program." });
    }
    folder.write("upstreams.json", &config.to_string());
    let found = folder.run(&["diff", "upstreams.json", "--format", "json"], false);
    let of_stored: Vec<String> =
        of_programs(&found).into_iter().filter(|line| !line.contains("count") && !line.contains("notes")).collect();
    let has = |line: &str| of_stored.iter().any(|found| found == line);
    assert!(has("PTC0813 note listed.clj 1 1") && has("PTC0813 note pure.clj 1 1"), "{of_stored:?}");
    assert!(!of_stored.iter().any(|line| line.starts_with("PTC0813 note sum.clj")), "{of_stored:?}");
    assert!(found.stdout.contains("`listed` is not compared: it may call tools that changed, and no test runs it"), "{found:?}");
    assert!(found.stdout.contains("`pure` calls no tool that changed"), "{found:?}");
}
