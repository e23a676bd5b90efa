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
    let expected = ["PTC0812 error sum.clj 2 1", "PTC0813 note count.clj 1 1", "PTC0812 warning notes.clj 1 7"];
    assert_eq!(of_programs(&json), expected, "{}", json.stdout);
    let text = folder.run(&["diff", "upstreams.json"], false);
    let said = format!("{}{}", text.stdout, text.stderr);
    for part in [
        "error[PTC0812]: `sum.clj` fails with the current tools: runtime_error: type_error: (+ & xs)",
        "sum.clj:2:1",
        "what is at [:items item] has no 'total'",
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
    // The programs and the cassette are relative to the tests, which are found in folders below the config.
    for name in ["sum.clj", "count.clj", "notes.clj", "c.json"] {
        folder.write(&format!("tests/{name}"), &folder.read(name));
    }
    let found = folder.run(&["diff", "upstreams.json", "--format", "json"], false);
    assert_eq!(of_programs(&found).len(), 3, "{found:?}");
    folder.write("other/o_test.clj", "(ns o-test)\n(deftest none (is true))");
    let elsewhere = folder.run(&["diff", "upstreams.json", "--tests", "other", "--format", "json"], false);
    assert_eq!(of_programs(&elsewhere), Vec::<String>::new());
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
    // A test that fails before hides nothing of a program that fails only now.
    folder.write("shop_test.clj", &TESTS.replace("(= 15 ", "(= 16 ").replace("(= 2 (run", "(= 3 (run"));
    let found = folder.run(&["diff", "upstreams.json", "--format", "json"], false);
    let expected = ["PTC0812 error sum.clj 2 1", "PTC0813 warning count.clj 1 1", "PTC0812 warning notes.clj 1 7"];
    assert_eq!(of_programs(&found), expected, "{found:?}");
    let before = "`count.clj` was broken before as well, with the pinned tools: its test fails";
    assert!(found.stdout.contains(before), "{found:?}");
}

#[test]
fn tests_that_cannot_be_run_are_named_in_every_format() {
    let folder = changed("shop_test.clj");
    folder.write("shop_test.clj", &TESTS.replace("c.json", "lost.json"));
    store(&folder, &[("number", COUNT)]);
    let reason = "the tests of `shop_test.clj` are not run: cannot read `lost.json`";
    for format in ["full", "short", "json", "sarif", "markdown", "github"] {
        let found = folder.run(&["diff", "upstreams.json", "--format", format], false);
        let said = format!("{}{}", found.stdout, found.stderr).replace("%60", "`");
        assert!(said.contains("PTC0815") && said.contains(reason), "{format}: {said}");
    }
    let found = folder.run(&["diff", "upstreams.json", "--format", "json"], false);
    // The program of the first test is known by name only, and its text is compared nevertheless.
    let expected = ["PTC0815 warning shop_test.clj 1 1", "PTC0812 error sum.clj 2 16", "PTC0813 note number.clj 1 1"];
    let mut names = of_programs(&found);
    names.sort();
    let mut expected = expected.map(str::to_owned);
    expected.sort();
    assert!(expected.iter().all(|line| names.contains(line)), "{names:?} {found:?}");
    // Tests that cannot be run count like programs that cannot be compared, and not as changes that break a program.
    folder.write("sum.clj", COUNT);
    let status = |threshold: &str| folder.run(&["diff", "upstreams.json", "--fail-on", threshold], false).code;
    assert_eq!([status("error"), status("warning")], [Some(0), Some(1)]);
    let missing = folder.run(&["diff", "upstreams.json", "--tests", "none_test.clj"], false);
    assert!(missing.code == Some(2) && missing.stderr.contains("none_test.clj"), "{missing:?}");
}

#[test]
fn call_of_an_upstream_that_the_config_no_longer_has_breaks() {
    let folder = shop();
    store(&folder, &[("number", COUNT)]);
    folder.write("upstreams.json", &folder.read("upstreams.json").replace(r#""shop":"#, r#""store":"#));
    let found = folder.run(&["diff", "upstreams.json", "--format", "json"], false);
    let broken = finding(&found, "PTC0802", "number.clj");
    let hints = broken["hints"].as_array().unwrap();
    assert!(hints.contains(&json!("the config has no upstream `shop` any more, which the lock file has")), "{broken:#}");
}

#[test]
fn failure_that_a_test_expects_is_no_break() {
    let folder = shop();
    folder.write(
        "f.clj",
        "(fail (str \"total \" (:total (first (:items (tool/value {:server \"shop\" :tool \"list-orders\"}))))))",
    );
    let case = json!([{ "name": "f", "program": "f.clj", "cassette": "c.json", "expected_failure": "total" }]);
    folder.write("f_cases.json", &case.to_string());
    folder.write("shop.json", &folder.read("shop.json").replace("\"total\"", "\"sum\""));
    let found = folder.run(&["diff", "upstreams.json", "--format", "json"], false);
    let finding = finding(&found, "PTC0812", "f.clj");
    assert_eq!(finding["severity"], "error", "the text reads a required member: {finding:#}");
    let message = finding["message"].as_str().unwrap();
    assert!(message.starts_with("`f.clj` gives another value with the current tools: the failure "), "{message}");
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

/// Returns the finding of a code about a file.
fn finding(finished: &Finished, code: &str, file: &str) -> Value {
    let mut lines = finished.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let is_it = |line: &Value| line["code"] == code && line.pointer("/at/path").is_some_and(|path| path == file);
    lines.find(is_it).unwrap_or_else(|| panic!("{code} {file}: {finished:?}"))
}

/// Adds stored programs to the config of a folder.
fn store(folder: &Folder, programs: &[(&str, &str)]) {
    let mut config: Value = serde_json::from_str(&folder.read("upstreams.json")).unwrap();
    let mut stored = serde_json::Map::new();
    for (name, text) in programs {
        folder.write(&format!("{name}.clj"), text);
        stored.insert((*name).to_owned(), json!({ "file": format!("{name}.clj"), "description": "A program." }));
    }
    config.as_object_mut().unwrap().insert("programs".to_owned(), stored.into());
    folder.write("upstreams.json", &config.to_string());
}

#[test]
fn stored_programs_without_tests_that_read_removed_members_are_named() {
    let folder = changed("shop_test.clj");
    folder.write("shop_test.clj", "");
    let never = "(map :colour (:items (tool/value {:server \"shop\" :tool \"list-orders\"})))";
    let helper = "(defn total [order]\n  (:total order))\n(map (fn [order] (total order)) (:items (tool/value {:server \"shop\" :tool \"list-orders\"})))";
    let repeated = "(loop [orders (:items (tool/value {:server \"shop\" :tool \"list-orders\"}))\n       sum 0]\n  (if (seq orders)\n    (recur (rest orders) (+ sum (:total (first orders))))\n    sum))";
    let programs =
        [("total", SUM), ("note", NOTES), ("never", never), ("helper", helper), ("number", COUNT), ("repeated", repeated)];
    store(&folder, &programs);
    let found = folder.run(&["diff", "upstreams.json", "--format", "json"], false);
    let expected = [
        "PTC0812 error helper.clj 2 3",
        "PTC0813 note never.clj 1 1",
        "PTC0812 warning note.clj 1 7",
        "PTC0813 note number.clj 1 1",
        "PTC0812 error repeated.clj 4 33",
        "PTC0812 error total.clj 2 16",
    ];
    let mut names = of_programs(&found);
    names.sort_by_key(|line| line.split(' ').nth(2).map(str::to_owned));
    assert_eq!(names, expected, "{}", found.stdout);
    let total = finding(&found, "PTC0812", "total.clj");
    let message = "`total` reads what the current tools no longer have: shop/list-orders: what is at [:items item] has no 'total', which was required";
    assert_eq!(total["message"], message);
    let change = total.pointer("/hints/0").and_then(Value::as_str).unwrap();
    assert!(change.starts_with("`list-orders` of `shop` answers {:items [{:customer string :id integer}]"), "{total:#}");
    let note = finding(&found, "PTC0812", "note.clj");
    assert!(note["message"].as_str().unwrap().ends_with("has no 'note', which was optional"), "{note:#}");
    // The removal of a required member that a program reads is an error also without tests.
    let details = folder.run(&["diff", "upstreams.json", "--details", "--format", "json"], false);
    assert!(details.stdout.lines().any(|line| line.contains("PTC0615") && line.contains("\"error\"")), "{details:?}");
    let checked = folder.run(&["--check", "upstreams.json"], false);
    assert!(!format!("{checked:?}").contains("PTC081"), "{checked:?}");
}

/// Returns a shop whose document declares other parameters, with tests.
fn with_parameters(parameters: &Value, programs: &[(&str, &str)], tests: &str) -> Folder {
    let folder = shop();
    for (name, text) in programs {
        folder.write(name, text);
    }
    folder.write("shop_test.clj", tests);
    let mut document: Value = serde_json::from_str(&folder.read("shop.json")).unwrap();
    *document.pointer_mut("/paths/~1orders/get/parameters").unwrap() = parameters.clone();
    let schema = "/paths/~1orders/get/responses/200/content/application~1json/schema/properties";
    let page = document.pointer_mut(schema).unwrap();
    page.as_object_mut().unwrap().remove("next_cursor");
    folder.write("shop.json", &document.to_string());
    folder
}

#[test]
fn only_changes_that_can_be_the_cause_are_named() {
    let next = "(:next_cursor (tool/value {:server \"shop\" :tool \"list-orders\"}) \"none\")";
    let tests = "(ns shop-test {:cassette \"c.json\"})\n(deftest next (is (nil? (run-program \"next.clj\"))))";
    // The cursor is gone, which the program does not pass, and there is a new optional argument.
    let limit = json!([{ "name": "limit", "in": "query", "schema": { "type": "integer" } }]);
    let folder = with_parameters(&limit, &[("next.clj", next)], tests);
    let found = folder.run(&["diff", "upstreams.json", "--format", "json"], false);
    let broken = finding(&found, "PTC0812", "next.clj");
    let help = broken["hints"].as_array().unwrap();
    assert!(help.len() == 1 && help[0].as_str().unwrap().contains("answers {:items"), "{broken:#}");
    assert_eq!(broken["severity"], "error");
    assert_eq!(broken.pointer("/at/column"), Some(&json!(1)), "{broken:#}");
    let related = broken["related"].as_array().unwrap();
    let is_test = |place: &Value| place["path"] == "shop_test.clj" && place["line"] == 2;
    assert!(related.iter().any(is_test), "{broken:#}");

    // A call that is refused for its arguments.
    let page = "(count (:items (tool/value {:server \"shop\" :tool \"list-orders\"})))";
    let tests = "(ns shop-test {:cassette \"c.json\"})\n(deftest page (is (= 2 (run-program \"page.clj\"))))";
    let shop = json!([
        { "name": "shop", "in": "query", "required": true, "schema": { "type": "string" } },
        { "name": "limit", "in": "query", "schema": { "type": "integer" } },
    ]);
    let folder = with_parameters(&shop, &[("page.clj", page)], tests);
    store(&folder, &[("stored", page)]);
    let found = folder.run(&["diff", "upstreams.json", "--format", "json"], false);
    let broken = finding(&found, "PTC0812", "page.clj");
    assert_eq!(broken["hints"], json!(["`list-orders` of `shop` needs the new argument `shop`"]), "{broken:#}");
    let stored = finding(&found, "PTC0802", "stored.clj");
    assert_eq!(stored.pointer("/hints/0"), Some(&json!("`list-orders` of `shop` needs the new argument `shop`")), "{stored:#}");
}

#[test]
fn programs_with_answers_of_no_declared_shape_are_said_to_be_so() {
    let folder = shop();
    let mut document: Value = serde_json::from_str(&folder.read("shop.json")).unwrap();
    let answer = "/paths/~1orders/get/responses/200/content/application~1json/schema";
    *document.pointer_mut(answer).unwrap() = json!({});
    folder.write("shop.json", &document.to_string());
    folder.run(&["update", "upstreams.json"], false).success();
    let lock: Value = serde_json::from_str(&folder.read("upstreams.lock.json")).unwrap();
    let mut cassette: Value = serde_json::from_str(&folder.read("c.json")).unwrap();
    cassette["tools"]["shop/list-orders"]["definition"] =
        lock.pointer("/upstreams/shop/tools/list-orders/digest").unwrap().clone();
    folder.write("c.json", &cassette.to_string());
    folder.write("count.clj", COUNT);
    folder.write("count_test.clj", "(ns t {:cassette \"c.json\"})\n(deftest n (is (= 2 (run-program \"count.clj\"))))");
    document["paths"]["/orders"]["get"]["parameters"][0]["name"] = json!("after");
    folder.write("shop.json", &document.to_string());
    let found = folder.run(&["diff", "upstreams.json", "--format", "json"], false);
    let same = finding(&found, "PTC0813", "count.clj");
    let message = "`count.clj` gives the same with the recorded answers of `list-orders`, whose shape is not declared";
    assert_eq!(same["message"], message);
}

#[test]
fn call_that_is_refused_is_reported_once() {
    let folder = shop();
    store(&folder, &[("number", COUNT)]);
    folder.write("n_test.clj", "(ns t {:cassette \"c.json\"})\n(deftest n (is (= 2 (run-program \"number\"))))");
    let mut document: Value = serde_json::from_str(&folder.read("shop.json")).unwrap();
    let region = json!({ "name": "region", "in": "query", "required": true, "schema": { "type": "string" } });
    document.pointer_mut("/paths/~1orders/get/parameters").unwrap().as_array_mut().unwrap().push(region);
    folder.write("shop.json", &document.to_string());
    let found = folder.run(&["diff", "upstreams.json", "--format", "json"], false);
    assert_eq!(of_programs(&found), ["PTC0812 error number.clj 1 28"], "{}", found.stdout);
    // The hints of the finding about the call are in that about the run.
    let hints = finding(&found, "PTC0812", "number.clj")["hints"].to_string();
    assert!(hints.contains("region"), "{hints}");
    // Without a test, the finding about the call stays.
    folder.write("n_test.clj", "");
    let untested = folder.run(&["diff", "upstreams.json", "--format", "json"], false);
    assert_eq!(of_programs(&untested), ["PTC0802 error number.clj 1 28"], "{}", untested.stdout);
}

#[test]
fn case_that_is_wrong_is_named_and_the_others_are_compared() {
    let folder = changed("shop_test.clj");
    folder.write("shop_test.clj", "");
    let good = json!({ "name": "sum", "program": "sum.clj", "cassette": "c.json", "expected": 15 });
    folder.write("shop_cases.json", &json!([good, { "name": "wrong", "program": "count.clj", "wanted": 1 }]).to_string());
    let found = folder.run(&["diff", "upstreams.json", "--format", "json"], false);
    assert_eq!(of_programs(&found), ["PTC0815 warning shop_cases.json 1 1", "PTC0812 error sum.clj 2 1"], "{}", found.stdout);
    let wrong = finding(&found, "PTC0815", "shop_cases.json");
    let expected = "one test of `shop_cases.json` is not run: not a case: unknown field `wanted`";
    assert!(wrong["message"].as_str().unwrap().starts_with(expected), "{wrong:#}");
}

#[test]
fn list_that_becomes_an_object_or_the_reverse_breaks_programs_without_tests() {
    let folder = shop();
    store(&folder, &[("total", SUM), ("number", COUNT)]);
    let document: Value = serde_json::from_str(&folder.read("shop.json")).unwrap();
    let schema = "/paths/~1orders/get/responses/200/content/application~1json/schema";
    let list = document.pointer(schema).unwrap()["properties"]["items"].clone();
    let map = json!({ "type": "object", "additionalProperties": list["items"] });
    for (pointer, other) in [(schema.to_owned(), &list), (format!("{schema}/properties/items"), &map)] {
        let mut changed = document.clone();
        *changed.pointer_mut(&pointer).unwrap() = other.clone();
        folder.write("shop.json", &changed.to_string());
        let found = folder.run(&["diff", "upstreams.json", "--format", "json"], false);
        let total = finding(&found, "PTC0812", "total.clj");
        assert_eq!(total["severity"], "error", "{total:#}");
        assert_eq!(folder.run(&["diff", "upstreams.json", "--fail-on", "error"], false).code, Some(1));
    }
}

#[test]
fn change_of_a_description_is_said_to_be_one() {
    let folder = shop();
    store(&folder, &[("number", COUNT), ("pure", "(+ 1 2)")]);
    let mut document: Value = serde_json::from_str(&folder.read("shop.json")).unwrap();
    let list = document.pointer_mut("/paths/~1orders/get").unwrap();
    list["description"] = json!("Lists all orders.");
    folder.write("shop.json", &document.to_string());
    let found = folder.run(&["diff", "upstreams.json", "--format", "json"], false);
    let message = |file: &str| finding(&found, "PTC0813", file)["message"].clone();
    let only = "`number` calls tools of which only descriptions or observed shapes changed";
    assert_eq!((message("number.clj"), message("pure.clj")), (json!(only), json!("`pure` calls no tool that changed")));
}
