//! Tests `ptc-compile test --faults` and `--properties`.

#![expect(clippy::unwrap_used, reason = "a test stops where anything is wrong")]

use serde_json::{Value, json};

use crate::cassette::{Finished, Folder};

/// A program that is correct whatever its upstream answers.
const ROBUST: &str = r#"
(loop [cursor nil total 0]
  (let [page (tool/call {:server "shop" :tool "list-orders" :args (if cursor {:cursor cursor} {})})]
    (if (:ok page)
      (let [orders (:items (:value page))
            total  (+ total (reduce + (map :total orders)))
            next   (:next_cursor (:value page))]
        (if next (recur next total) total))
      (fail (:reason page)))))
"#;

/// A program that fails for an order without a note, and reads one page.
const FRAGILE: &str = r#"(let [orders (:items (tool/value {:server "shop" :tool "list-orders"}))]
  (mapv (fn [order] (clojure.string/upper-case (:note order))) orders))
"#;

/// Returns a folder with an OpenAPI document, its lock file, and a cassette with two orders.
pub(crate) fn shop() -> Folder {
    let folder = Folder(tempfile::tempdir().unwrap());
    let order = json!({
        "type": "object", "required": ["id", "customer", "total"],
        "properties": {
            "id": { "type": "integer" }, "customer": { "type": "string" }, "total": { "type": "integer" },
            "note": { "type": ["string", "null"] },
        },
    });
    let page = json!({
        "type": "object", "required": ["items"],
        "properties": { "items": { "type": "array", "items": order }, "next_cursor": { "type": ["string", "null"] } },
    });
    let list = json!({
        "operationId": "listOrders",
        "parameters": [{ "name": "cursor", "in": "query", "schema": { "type": "string" } }],
        "responses": { "200": { "description": "A page.", "content": { "application/json": { "schema": page } } } },
    });
    let document = json!({
        "openapi": "3.1.0", "info": { "title": "Shop", "version": "1" }, "paths": { "/orders": { "get": list } },
    });
    folder.write("shop.json", &document.to_string());
    let entry = json!({
        "transport": "openapi", "base_url": "http://127.0.0.1:9", "schema_file": "shop.json", "include_operations": ["listOrders"],
        "allow_insecure_http": true,
    });
    folder.write("upstreams.json", &json!({ "upstreams": { "shop": entry } }).to_string());
    folder.run(&["update", "upstreams.json"], false).success();
    let lock: Value = serde_json::from_str(&folder.read("upstreams.lock.json")).unwrap();
    let digest = lock.pointer("/upstreams/shop/tools/list-orders/digest").unwrap();
    let orders = json!([
        { "id": 1, "customer": "Ann", "total": 10, "note": "by hand" },
        { "id": 2, "customer": "Ben", "total": 5, "note": "twice" },
    ]);
    let reply = json!({ "status": 200, "headers": {}, "value": { "items": orders, "next_cursor": null } });
    let tool = json!({ "definition": digest, "requests": [{ "args": {}, "replies": [reply] }] });
    folder.write("c.json", &json!({ "cassette": 1, "tools": { "shop/list-orders": tool } }).to_string());
    folder
}

/// Returns a shop with a program and a test of its value.
fn with_program(program: &str, expected: &str) -> Folder {
    let folder = shop();
    folder.write("p.clj", program);
    let test = format!("(ns p-test {{:cassette \"c.json\"}})\n(deftest value\n  (is (= {expected} (run-program \"p.clj\"))))");
    folder.write("p_test.clj", &test);
    folder
}

/// Returns the findings of the only check.
fn findings(finished: &Finished) -> Vec<Value> {
    let lines: Vec<Value> = finished.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let checks: Vec<&Value> = lines.iter().filter(|line| line.get("check").is_some()).collect();
    let [check] = checks.as_slice() else { panic!("{finished:?}") };
    assert_eq!(check.get("skipped"), Some(&Value::Null), "{check}");
    check.get("findings").and_then(Value::as_array).unwrap().clone()
}

/// Returns the cause, the rule, the place and the answer of each finding.
fn described(finished: &Finished) -> Vec<String> {
    let text = |finding: &Value, key: &str| finding.pointer(key).map(|value| value.to_string().replace('"', "")).unwrap();
    let line = |finding: &Value| {
        let [cause, rule, line, column] = ["/cause", "/rule", "/line", "/column"].map(|key| text(finding, key));
        let answer = finding.pointer("/answers/0/answer").and_then(Value::as_str).unwrap();
        format!("{cause} {rule} {line}:{column} {answer}")
    };
    findings(finished).iter().map(line).collect()
}

#[test]
fn program_that_expects_every_fault_has_no_findings() {
    let folder = with_program(ROBUST, "15");
    let passed = folder.run(&["test", "--faults", "--properties", "--runs", "200"], false).success();
    assert!(passed.contains("p.clj with faults: ") && passed.contains("p.clj with properties: 200 runs, 0 findings"), "{passed}");
    assert!(passed.contains("1 test, 1 assertion: 0 failed, 0 errors, 0 findings ("), "{passed}");
    let runs: usize = passed.split("p.clj with faults: ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(runs > 10, "{passed}");
}

#[test]
fn each_fault_is_found_with_the_smallest_answer() {
    let folder = with_program(FRAGILE, r#"["BY HAND" "TWICE"]"#);
    let json = ["test", "--faults", "--format", "json"];
    let found = folder.run(&json, false);
    assert_eq!(found.code, Some(1), "{found:?}");
    assert_eq!(
        described(&found),
        [
            "timeout failed_call 1:22 timeout: no answer in time",
            "tool_error failed_call 1:22 tool_error: the tool failed",
            r#"missing_field error 2:21 {"items":[{"customer":"","id":0,"total":0}]}"#,
            r#"null error 2:21 {"items":[{"customer":"","id":0,"note":null,"total":0}]}"#,
            r#"next_page unread_page null:null {"items":[],"next_cursor":"ptc-next-page"}"#,
        ]
    );
    let first = &findings(&found)[2];
    assert_eq!(first.pointer("/change"), Some(&json!("`items[].note` is missing")));
    assert_eq!(first.pointer("/answers/0/tool"), Some(&json!("list-orders")));
    assert_eq!(first.pointer("/similar"), Some(&json!(1)), "one order without a note fails too");
    // The failure of a call is what the program asks for with `tool/value`.
    let allowed = folder.run(&[&json[..], &["--allow-failed-calls"]].concat(), false);
    assert_eq!(described(&allowed).len(), 3, "{allowed:?}");
    let chosen = folder.run(&["test", "--faults=null,empty_list", "--format", "json"], false);
    assert_eq!(described(&chosen).len(), 1, "{chosen:?}");
    let unknown = folder.run(&["test", "--faults=slow"], false);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.stderr.contains("missing_field"), "{unknown:?}");
}

#[test]
fn page_that_a_recorded_answer_announces_must_be_read() {
    let folder = with_program(FRAGILE, r#"["BY HAND" "TWICE"]"#);
    folder.write("c.json", &folder.read("c.json").replace(r#""next_cursor":null"#, r#""next_cursor":"two""#));
    let found = folder.run(&["test", "--faults=next_page", "--format", "json"], false);
    let all = findings(&found);
    let [finding] = all.as_slice() else { panic!("{found:?}") };
    assert_eq!(finding["rule"], "unread_page");
    assert_eq!(finding["change"], "the recorded answer announces another page");
}

#[test]
fn findings_are_the_same_in_every_run() {
    let folder = with_program(FRAGILE, r#"["BY HAND" "TWICE"]"#);
    let run = || {
        let found = folder.run(&["test", "--faults", "--properties", "--seed", "7"], false);
        let without_time = found.stdout.rsplit_once(" (").map(|(text, _)| text.to_owned());
        without_time.unwrap()
    };
    let first = run();
    assert!(first.ends_with("\n1 test, 1 assertion: 0 failed, 0 errors, 6 findings"), "{first}");
    assert!(first.contains("FINDING p.clj with faults (p.clj:2:21)") && first.contains("seed 7, run "), "{first}");
    assert_eq!(run(), first);
}

#[test]
fn generated_answers_find_what_no_fault_shows() {
    let program = r#"(let [page (tool/call {:server "shop" :tool "list-orders"})]
  (if (:ok page)
    (mapv (fn [order] (if (neg? (:total order)) (+ 1 "x") (:id order))) (:items (:value page)))
    (fail :none)))
"#;
    let folder = with_program(program, "[1 2]");
    let found = folder.run(&["test", "--properties", "--format", "json"], false);
    let all = findings(&found);
    let [finding] = all.as_slice() else { panic!("{found:?}") };
    assert_eq!(finding.pointer("/line"), Some(&json!(3)));
    let answer = finding.pointer("/answers/0/answer").and_then(Value::as_str).unwrap();
    assert_eq!(answer, r#"{"items":[{"customer":"","id":0,"total":-1}]}"#);
    let other = folder.run(&["test", "--properties", "--seed", "3", "--runs", "50", "--format", "json"], false);
    assert_eq!(findings(&other)[0].pointer("/answers/0/answer"), Some(&json!(answer)), "{other:?}");
}

#[test]
fn counterexample_of_a_threshold_is_the_least_one() {
    let program = r#"(let [page (tool/call {:server "shop" :tool "list-orders"})]
  (if (:ok page)
    (mapv (fn [order] (if (> (:total order) 37) (+ 1 "x") (:id order))) (:items (:value page)))
    (fail :none)))
"#;
    let folder = with_program(program, "[1 2]");
    for seed in ["0", "1", "2"] {
        let found = folder.run(&["test", "--properties", "--seed", seed, "--format", "json"], false);
        let answer = findings(&found)[0].pointer("/answers/0/answer").cloned();
        assert_eq!(answer, Some(json!(r#"{"items":[{"customer":"","id":0,"total":38}]}"#)), "{found:?}");
    }
}

/// A program with a mistake that only one fault shows.
const SIZES: [(&str, &str, &str); 3] = [
    // It takes the difference of two orders, and expects none or two.
    ("one_item", "(if (empty? orders) 0 (- (:total (first orders)) (:total (second orders))))", "5"),
    // It has names for the first three orders only.
    (
        "many_items",
        r#"(mapv (fn [at] (clojure.string/upper-case (nth ["first" "second" "third"] at))) (range (count orders)))"#,
        r#"["FIRST" "SECOND"]"#,
    ),
    // The pattern has only the letters of English.
    (
        "non_ascii",
        r#"(mapv (fn [order] (clojure.string/upper-case (re-find #"^[A-Za-z ]*$" (:customer order)))) orders)"#,
        r#"["ANN" "BEN"]"#,
    ),
];

#[test]
fn each_fault_of_size_and_of_characters_is_found_in_a_program_with_that_mistake() {
    for (fault, body, expected) in SIZES {
        let program = format!(
            "(let [page (tool/call {{:server \"shop\" :tool \"list-orders\"}}) orders (:items (:value page))]\n  (if (:ok page) {body} (fail :none)))"
        );
        let folder = with_program(&program, expected);
        let found = folder.run(&["test", "--faults=empty_list,one_item,many_items,non_ascii", "--format", "json"], false);
        let causes: Vec<(Value, Value)> =
            findings(&found).iter().map(|finding| (finding["cause"].clone(), finding["rule"].clone())).collect();
        assert_eq!(causes, [(json!(fault), json!("error"))], "{found:?}");
        if fault == "many_items" {
            let answer = findings(&found)[0].pointer("/answers/0/answer").and_then(Value::as_str).unwrap().to_owned();
            assert_eq!(answer.matches("\"id\"").count(), 4, "{answer}");
        }
    }
}

#[test]
fn ignored_failures_and_values_of_another_shape_are_found() {
    let folder = with_program(r#"(count (:items (:value (tool/call {:server "shop" :tool "list-orders"}))))"#, "2");
    let found = folder.run(&["test", "--faults=timeout,tool_error", "--format", "json"], false);
    let rules: Vec<Value> = findings(&found).iter().map(|finding| finding["rule"].clone()).collect();
    assert_eq!(rules, ["unchecked_call", "unchecked_call"]);
    let mut config: Value = serde_json::from_str(&folder.read("upstreams.json")).unwrap();
    config["programs"] = json!({ "first": {
        "file": "first.clj", "description": "The first note.", "output_schema": { "type": "string" },
    } });
    folder.write("upstreams.json", &config.to_string());
    folder.write(
        "first.clj",
        r#"(let [page (tool/call {:server "shop" :tool "list-orders"})]
  (if (:ok page) (:note (first (:items (:value page)))) (fail :none)))"#,
    );
    folder.write("p_test.clj", "(ns p-test {:cassette \"c.json\"})\n(deftest a (is (= \"by hand\" (run-program \"first\"))))");
    let found = folder.run(&["test", "--faults=empty_list,null", "--format", "json"], false);
    let lines = described(&found);
    assert!(lines.iter().all(|line| line.contains(" output_schema null:null ")), "{lines:?}");
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(found.stdout.contains(r#""file":"first.clj""#), "{found:?}");
}

#[test]
fn unchecked_call_is_found_beside_a_recorded_failure_that_is_ignored() {
    let found = |other: &str| {
        let program = format!(
            r#"(let [old (tool/call {{:server "shop" :tool "list-orders" :args {{:cursor "old"}}}})
      now (tool/call {{:server "shop" :tool "list-orders"}})]
  [(count (:items (:value old))) {other}])"#
        );
        let folder = with_program(&program, "[0 2]");
        let mut cassette: Value = serde_json::from_str(&folder.read("c.json")).unwrap();
        let requests = cassette.pointer_mut("/tools/shop~1list-orders/requests").unwrap().as_array_mut().unwrap();
        let failed = json!({ "fault": "tool_error", "message": "it has expired" });
        requests.push(json!({ "args": { "cursor": "old" }, "replies": [failed] }));
        folder.write("c.json", &cassette.to_string());
        let found = folder.run(&["test", "--faults=timeout,tool_error", "--format", "json"], false);
        let finding = |finding: &Value| format!("{} {}", finding["rule"], finding.pointer("/answers/0/arguments").unwrap());
        findings(&found).iter().map(finding).collect::<Vec<String>>()
    };
    // Only the call whose failure was recorded is ignored on purpose.
    assert_eq!(found("(count (:items (:value now)))"), [r#""unchecked_call" "{}""#; 2]);
    assert!(found("(if (:ok now) (count (:items (:value now))) (fail (:reason now)))").is_empty());
}

#[test]
fn failure_that_says_nothing_is_found() {
    let program = |message: &str| {
        format!(r#"(let [page (tool/call {{:server "shop" :tool "list-orders"}})] (if (:ok page) 2 (fail {message})))"#)
    };
    for (message, expected) in [("(:mesage page)", 1), ("(str (:mesage page))", 1), ("(:message page)", 0), ("{}", 0)] {
        let folder = with_program(&program(message), "2");
        let found = folder.run(&["test", "--faults=timeout", "--format", "json"], false);
        let rules: Vec<Value> = findings(&found).iter().map(|finding| finding["rule"].clone()).collect();
        assert_eq!(rules, vec![json!("empty_failure"); expected], "{message}");
    }
}

#[test]
fn findings_have_formats_for_tools() {
    let folder = with_program(FRAGILE, r#"["BY HAND" "TWICE"]"#);
    let run = |format: &str| folder.run(&["test", "--faults=null", "--properties", "--runs", "20", "--format", format], false);
    let schema: Value = serde_json::from_str(&folder.run(&["schema", "tests"], false).success()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let lines = run("json").stdout;
    assert_eq!(lines.lines().count(), 4, "{lines}");
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert!(validator.is_valid(&line), "{line:#}");
    }
    assert!(!validator.is_valid(&json!({ "check": "faults" })));
    let github = run("github").stdout;
    assert!(github.starts_with("::error file=p.clj,line=2,col=21,title=p.clj with faults::error: it ends with"), "{github}");
    let junit = run("junit").stdout;
    for part in [
        "<testsuites tests=\"3\" failures=\"2\" errors=\"0\" time=\"",
        "<testsuite name=\"faults\" tests=\"1\" failures=\"1\" errors=\"0\" time=\"",
        "<failure type=\"error\" message=\"it ends with ",
        "<testcase classname=\"faults\" name=\"p.clj\" file=\"p_test.clj\" line=\"2\" time=\"",
    ] {
        assert!(junit.contains(part), "{part}\n{junit}");
    }
}

#[test]
fn program_that_fails_with_recorded_answers_is_not_checked() {
    let folder = with_program("(+ 1 \"x\")", "2");
    folder.write("p_test.clj", "(ns p-test {:cassette \"c.json\"})\n(deftest a (is (thrown? (run-program \"p.clj\"))))");
    let skipped = folder.run(&["test", "--faults"], false).success();
    assert!(
        skipped.contains("p.clj with faults: not checked: with the recorded answers, it ends with runtime_error"),
        "{skipped}"
    );
}

#[test]
fn value_of_another_shape_than_a_case_declares_is_found() {
    let folder = shop();
    folder.write(
        "total.clj",
        r#"(let [page (tool/call {:server "shop" :tool "list-orders"})]
  (if (:ok page) (:total (first (:items (:value page)))) (fail :none)))"#,
    );
    let case = json!({ "name": "first", "program": "total.clj", "cassette": "c.json", "expected": 10 });
    let run = |more: Value, options: &[&str]| {
        let mut case = case.clone();
        case.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        folder.write("total_cases.json", &json!([case]).to_string());
        folder.run(&[&["test"], options].concat(), false)
    };
    // Nil for an empty list is a value, unless a shape is declared.
    let undeclared = run(json!({}), &["--faults=empty_list"]).success();
    assert!(undeclared.contains("total.clj with faults: 1 run, 0 findings"), "{undeclared}");
    let shape = json!({ "output_schema": { "type": "number" } });
    let found = run(shape.clone(), &["--faults=empty_list", "--format", "json"]);
    assert_eq!(found.code, Some(1), "{found:?}");
    assert_eq!(described(&found), [r#"empty_list output_schema null:null {"items":[]}"#]);
    let generated = run(shape.clone(), &["--properties", "--format", "json"]);
    assert!(described(&generated)[0].contains(" output_schema null:null "), "{generated:?}");
    // A test that runs the same program does not hide the shape, and the program is checked once.
    folder.write("a_test.clj", "(ns a-test {:cassette \"c.json\"})\n(deftest a (is (= 10 (run-program \"total.clj\"))))");
    let found = run(shape.clone(), &["--faults=empty_list", "--format", "json"]);
    assert_eq!(described(&found).len(), 1, "{found:?}");
    // The shape is checked with the recorded answers too, beside the expected value or its bounds.
    std::fs::remove_file(folder.0.path().join("a_test.clj")).unwrap();
    assert!(run(shape, &[]).success().starts_with("1 test, 2 assertions: 0 failed"));
    let wrong = run(json!({ "output_schema": { "type": "string" } }), &[]);
    assert!(wrong.stdout.contains("\n  output_schema\n  expected: {\"type\":\"string\"}\n    actual: return: "), "{wrong:?}");
    let bounded = json!({ "output_schema": { "type": "number" }, "expected_schema": { "maximum": 9 } });
    folder.write(
        "total_cases.json",
        &json!([{ "name": "first", "program": "total.clj", "cassette": "c.json", "output_schema": bounded["output_schema"],
            "expected_schema": bounded["expected_schema"] }])
        .to_string(),
    );
    let wrong = folder.run(&["test"], false);
    assert!(wrong.stdout.contains("\n  expected_schema\n  expected: {\"maximum\":9}\n    actual: return: "), "{wrong:?}");
    assert!(wrong.stdout.contains("1 test, 2 assertions: 1 failed, 0 errors"), "{wrong:?}");
}

/// Returns a shop whose recorded list is empty.
fn with_empty_list(program: &str) -> Folder {
    let folder = with_program(program, "[]");
    let mut cassette: Value = serde_json::from_str(&folder.read("c.json")).unwrap();
    *cassette.pointer_mut("/tools/shop~1list-orders/requests/0/replies/0/value/items").unwrap() = json!([]);
    folder.write("c.json", &cassette.to_string());
    folder
}

#[test]
fn recorded_empty_list_gets_the_faults_of_items_that_the_schema_describes() {
    let folder = with_empty_list(
        r#"(let [page (tool/call {:server "shop" :tool "list-orders"})]
  (if (:ok page) (mapv (fn [order] (clojure.string/upper-case (:note order))) (:items (:value page))) (fail :none)))"#,
    );
    let found = folder.run(&["test", "--faults=missing_field,null,one_item,many_items", "--format", "json"], false);
    let found = findings(&found);
    let causes: Vec<&str> = found.iter().filter_map(|finding| finding["cause"].as_str()).collect();
    assert_eq!(causes, ["missing_field", "null"], "{found:?}");
    let change = "`items[].note` is missing; the items of the recorded empty list are generated";
    assert_eq!(found[0]["change"], change, "{found:?}");
    // A program that no item suits has one finding for the number of items, and none for members.
    let folder = with_empty_list(
        r#"(let [page (tool/call {:server "shop" :tool "list-orders"})]
  (if (:ok page) (mapv (fn [order] (+ 1 (:customer order))) (:items (:value page))) (fail :none)))"#,
    );
    let options = ["test", "--faults=missing_field,null,one_item,non_ascii", "--format", "json"];
    let found = findings(&folder.run(&options, false));
    let causes: Vec<&str> = found.iter().filter_map(|finding| finding["cause"].as_str()).collect();
    assert_eq!(causes, ["one_item"], "{found:?}");
    // Without the faults of size, the fault of a member is the only one that shows it.
    let found = findings(&folder.run(&["test", "--faults=null", "--format", "json"], false));
    assert!(found.first().is_some_and(|finding| finding["cause"] == "null"), "{found:?}");
}

#[test]
fn optional_member_that_is_absent_in_the_recording_is_made_null() {
    let program = r#"(let [page (tool/call {:server "shop" :tool "list-orders"})]
  (if (:ok page)
    (mapv (fn [order] (clojure.string/upper-case (get order :note "none"))) (:items (:value page)))
    (fail :none)))"#;
    let folder = with_program(program, r#"["NONE" "NONE"]"#);
    let mut cassette: Value = serde_json::from_str(&folder.read("c.json")).unwrap();
    let orders = cassette.pointer_mut("/tools/shop~1list-orders/requests/0/replies/0/value/items").unwrap();
    for order in orders.as_array_mut().unwrap() {
        order.as_object_mut().unwrap().remove("note");
    }
    folder.write("c.json", &cassette.to_string());
    let found = findings(&folder.run(&["test", "--faults=null", "--format", "json"], false));
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(finding["change"], "`items[].note` is null");
}

#[test]
fn faults_that_the_recorded_answers_hide_are_named_for_each_tool() {
    let program = r#"(let [page (tool/call {:server "shop" :tool "list-orders"})] (if (:ok page) [] (fail (:reason page))))"#;
    let folder = with_program(program, "[]");
    let mut cassette: Value = serde_json::from_str(&folder.read("c.json")).unwrap();
    // An answer that the output schema refutes may have items of any shape.
    *cassette.pointer_mut("/tools/shop~1list-orders/requests/0/replies/0/value").unwrap() = json!([]);
    folder.write("c.json", &cassette.to_string());
    let said = "; not tried with the recorded answers of shop/list-orders: missing_field, one_item, many_items, non_ascii\n";
    let text = folder.run(&["test", "--faults"], false).success();
    assert!(text.contains(said), "{text}");
    let json = folder.run(&["test", "--faults=timeout,one_item", "--format", "json"], false).success();
    assert!(json.contains(r#""untried":[{"upstream":"shop","tool":"list-orders","faults":["one_item"]}]"#), "{json}");
    // Nothing is hidden where items are known.
    let known = with_program(ROBUST, "15").run(&["test", "--faults"], false).success();
    assert!(!known.contains("not tried"), "{known}");
}

#[test]
fn list_of_many_items_has_a_thousand() {
    let list = r#"(count (:items (tool/value {:server "shop" :tool "list-orders"})))"#;
    let folder = with_program(&format!("(let [number {list}]\n  (if (>= number 1000) (+ 1 \"x\") number))"), "2");
    let found = folder.run(&["test", "--faults=many_items", "--allow-failed-calls", "--format", "json"], false);
    let [finding] = findings(&found).try_into().unwrap();
    assert_eq!(finding["rule"], "error", "{finding}");
    let fewer = folder.read("p.clj").replace("1000", "1001");
    folder.write("p.clj", &fewer);
    folder.run(&["test", "--faults=many_items", "--allow-failed-calls"], false).success();
}

#[test]
fn mistake_in_the_calls_of_each_item_is_one_finding() {
    let program = r#"(count (mapv (fn [cursor] (:value (tool/call {:server "shop" :tool "list-orders" :args {:cursor cursor}}))) ["1" "2"]))"#;
    let folder = with_program(program, "2");
    let mut cassette: Value = serde_json::from_str(&folder.read("c.json")).unwrap();
    let requests = cassette.pointer_mut("/tools/shop~1list-orders/requests").unwrap().as_array_mut().unwrap();
    for cursor in ["1", "2"] {
        let mut request = requests[0].clone();
        request["args"] = json!({ "cursor": cursor });
        requests.push(request);
    }
    folder.write("c.json", &cassette.to_string());
    let found = folder.run(&["test", "--faults=timeout", "--allow-failed-calls", "--format", "json"], false);
    let [finding] = findings(&found).try_into().unwrap();
    assert_eq!((&finding["rule"], &finding["similar"]), (&json!("unchecked_call"), &json!(1)), "{finding}");
    // Two forms are two mistakes.
    let one = |id: u32| format!(r#"(:value (tool/call {{:server "shop" :tool "list-orders" :args {{:cursor "{id}"}}}}))"#);
    folder.write("p.clj", &format!("(count [{} {}])", one(1), one(2)));
    let found = folder.run(&["test", "--faults=timeout", "--allow-failed-calls", "--format", "json"], false);
    assert_eq!(findings(&found).len(), 2, "{found:?}");
}

#[test]
fn faults_that_no_answer_can_have_are_said_to_be_so() {
    let folder = Folder::recorded();
    folder.write("n.clj", r#"(:n (tool/value {:server "s" :tool "count"}))"#);
    folder.write("n_test.clj", "(ns n-test {:cassette \"c.json\"})\n(deftest n (is (= 1 (run-program \"n.clj\"))))");
    let passed = folder.run(&["test", "--faults=non_ascii,empty_list"], false).success();
    assert!(
        passed.contains("n.clj with faults: 0 runs, 0 findings; no call has a recorded answer that can have these faults\n"),
        "{passed}"
    );
}
