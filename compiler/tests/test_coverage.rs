//! Tests `ptc-compile test --coverage`.

use lcov::report::section;
use lcov::{Reader, Record, Report};
use serde_json::{Value, json};

use crate::cassette::Folder;

/// A program with a branch, a form and a function that the tests do not evaluate.
const GRADE: &str = r#"(defn grade [n]
  (cond
    (< n 10) :low
    (< n 20) :middle
    :else    :high))

(defn unused [x]
  (inc x))

(let [n (or data/n 0)]
  (if (neg? n)
    (fail "negative")
    (grade n)))
"#;

/// Two tests, which run in parallel, and a case.
const TESTS: &str = r#"(ns grade-test {:cassette "c.json"})

(defn helper [x] (if x 1 2))

(deftest low
  (is (= :low (run-program "grade.clj" {:n 5})))
  (is (= :low (run-program "./grade.clj" {:n 6}))))

(deftest high
  (is (= :high (run-program "grade.clj" {:n 25}))))
"#;

const TABLE: &str = "
coverage   forms         branches    uncovered lines  partial branches
grade.clj  11/15 73.3 %  3/5 60.0 %  4, 8, 10, 12     3, 11
spare.clj  0/3 0.0 %     0/2 0.0 %   1                1
all        11/18 61.1 %  3/7 42.8 %
";

/// A folder with tests of a program, and with a stored program that they do not run.
fn folder() -> Folder {
    let folder = Folder::recorded();
    let mut config: Value = serde_json::from_str(&folder.read("upstreams.json")).expect("a config");
    let spare = json!({ "file": "spare.clj", "description": "Nothing tests it." });
    config.as_object_mut().expect("an object").insert("programs".to_owned(), json!({ "spare": spare }));
    folder.write("upstreams.json", &config.to_string());
    folder.write("spare.clj", "(if data/a 1 2)");
    folder.write("grade.clj", GRADE);
    folder.write("grade_test.clj", TESTS);
    folder.write("grade_cases.json", r#"[{"name": "c", "program": "grade.clj", "arguments": {"n": 1}, "expected": "low"}]"#);
    folder
}

#[test]
fn table_has_forms_branches_and_lines_of_the_programs() {
    let folder = folder();
    let passed = folder.run(&["test", "--coverage"], false).success();
    let (summary, table) = passed.split_once('\n').unwrap();
    assert!(summary.starts_with("3 tests, 4 assertions: 0 failed, 0 errors ("), "{summary}");
    assert_eq!(table, TABLE);
    // The runs with other answers are not those of the tests.
    let checked = folder.run(&["test", "--coverage", "--faults", "--properties", "--runs", "3"], false).success();
    assert!(checked.ends_with(TABLE), "{checked}");
    let plain = folder.run(&["test"], false).success();
    assert!(!plain.contains("coverage"), "{plain}");
}

#[test]
fn failing_test_fails_alike_with_coverage() {
    let folder = folder();
    folder.write(
        "fail_test.clj",
        "(ns fail-test {:cassette \"c.json\"})\n(deftest text\n  (is (= 1 (run-program \"grade.clj\" {:n \"x\"}))))\n
(deftest broken\n  (is (= 1 (run-program \"broken.clj\"))))",
    );
    folder.write("broken.clj", "(inc");
    let without = |text: &str| text.split(" error").next().unwrap_or_default().to_owned();
    let plain = folder.run(&["test", "fail_test.clj"], false);
    let measured = folder.run(&["test", "fail_test.clj", "--coverage"], false);
    assert_eq!((plain.code, measured.code), (Some(1), Some(1)));
    assert_eq!(without(&plain.stdout), without(&measured.stdout));
    assert!(measured.stdout.contains("grade.clj  ") && !measured.stdout.contains("broken.clj  "), "{measured:?}");
}

#[test]
fn formats_for_machines_stay_whole() {
    let folder = folder();
    for format in ["junit", "github"] {
        let passed = folder.run(&["test", "--coverage", "--format", format], false);
        assert_eq!(passed.code, Some(0), "{passed:?}");
        assert!(!passed.stdout.contains("partial branches") && passed.stderr.ends_with(&TABLE[1..]), "{passed:?}");
    }
    let passed = folder.run(&["test", "--coverage", "--format", "json"], false).success();
    let lines: Vec<Value> = passed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let schema = folder.run(&["schema", "tests"], false).success();
    let schema = jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap();
    for line in &lines {
        assert!(schema.is_valid(line), "{line}");
    }
    let coverage: Vec<&Value> = lines.iter().filter(|line| line.get("coverage").is_some()).collect();
    let expected = json!({
        "coverage": "grade.clj",
        "forms": { "covered": 11, "total": 15 },
        "branches": { "covered": 3, "total": 5 },
        "uncovered_lines": [4, 8, 10, 12],
        "partial_branches": [3, 11],
    });
    assert_eq!((coverage.len(), coverage.first().copied()), (2, Some(&expected)));
}

#[test]
fn lcov_file_has_the_counts() {
    let folder = folder();
    folder.run(&["test", "--coverage-lcov", "out/coverage.info"], false).success();
    let text = folder.read("out/coverage.info");
    let records: Vec<Record> = Reader::new(text.as_bytes()).collect::<Result<_, _>>().unwrap();
    let report = Report::from_reader(Reader::new(text.as_bytes())).unwrap();
    // The report computes the numbers of lines, functions and branches anew.
    let sorted = |records: Vec<Record>| {
        let mut lines: Vec<String> = records.iter().map(ToString::to_string).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(report.clone().into_records().collect()), sorted(records));
    let key = section::Key { test_name: String::new(), source_file: "grade.clj".into() };
    let grade = report.sections.get(&key).unwrap();
    let lines: Vec<(u32, u64)> = grade.lines.iter().map(|(key, value)| (key.line, value.count)).collect();
    assert_eq!(lines, [(1, 4), (3, 4), (4, 1), (5, 1), (7, 4), (8, 0), (10, 4), (11, 4), (12, 0), (13, 4)]);
    let functions: Vec<(&str, Option<u32>, u64)> =
        grade.functions.iter().map(|(key, value)| (&*key.name, value.start_line, value.count)).collect();
    assert_eq!(functions, [("grade", Some(1), 4), ("unused", Some(7), 0)]);
    let branches: Vec<(u32, u32, u32, Option<u64>)> =
        grade.branches.iter().map(|(key, value)| (key.line, key.block, key.branch, value.taken)).collect();
    assert_eq!(branches, [(3, 0, 0, Some(3)), (3, 0, 1, Some(0)), (3, 0, 2, Some(1)), (11, 1, 0, Some(0)), (11, 1, 1, Some(4))]);
    let spare = report.sections.get(&section::Key { source_file: "spare.clj".into(), ..key }).unwrap();
    assert_eq!(spare.branches.values().map(|value| value.taken).collect::<Vec<_>>(), [None, None]);
}

#[test]
fn files_with_equal_texts_are_counted_separately() {
    let folder = Folder::recorded();
    for name in ["one.clj", "two.clj", "three.clj"] {
        folder.write(name, "(if data/a 1 2)");
    }
    folder.write(
        "equal_test.clj",
        "(ns equal-test {:cassette \"c.json\"})
(deftest one (is (= 1 (run-program \"one.clj\" {:a true}))))
(deftest two (is (= 2 (run-program \"two.clj\" {:a nil}))))
(deftest three (is (= 1 (run-program \"three.clj\" {:a 1}))) (is (= 2 (run-program \"three.clj\" {:a nil}))))",
    );
    let passed = folder.run(&["test", "--coverage"], false).success();
    for part in
        ["one.clj    2/3 66.6 %   1/2 50.0 %", "two.clj    2/3 66.6 %   1/2 50.0 %", "three.clj  3/3 100.0 %  2/2 100.0 %"]
    {
        assert!(passed.contains(part), "{part}\n{passed}");
    }
}

#[test]
fn tests_without_programs_have_no_coverage() {
    let folder = Folder::recorded();
    folder.write("own_test.clj", "(deftest own (is (= 1 1)))");
    let passed = folder.run(&["test", "--coverage"], false).success();
    assert!(passed.ends_with("\ncoverage: the tests run no program\n"), "{passed}");
}
