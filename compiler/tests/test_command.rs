//! Tests `ptc-compile test`.

use crate::cassette::Folder;

/// Tests that pass, with every form, over the cassette of [`Folder::recorded`].
const PASSING: &str = r#"(ns pass-test
  "Tests that pass."
  {:cassette "c.json" :config "upstreams.json"}
  (:require [clojure.test :as t :refer [deftest is testing are]]
            [clojure.string :as str]))

(def result (run-program "program.clj"))

(defn of [n] (nth result n))

(deftest values-of-a-program
  (is (= "said [REDACTED]\nto ann" (of 0)))
  (testing "a failure of an upstream"
    (is (= :tool_error (of 1)) "a keyword stays a keyword")
    (t/is (str/starts-with? (of 2) "no ")))
  (doseq [n (range 3)]
    (is (= (inc n) (nth (of 3) n))))
  (is (#(= % 1) 1))
  (run! #(is (< % 3)) [1 2]))

(def text 5)

(deftest rows
  (are [text length] (= length (count text))
    "" 0
    "abc" 3)
  (are [text other] (not= text other) 1 text))

(deftest kinds-of-values
  (is (= {:a [1 -2.5 nil true "x"] "b" #{:k 2} 3 '(4 5) :big 123456789012345678901234567890}
         (run-program "kinds.clj" {:n 2})))
  (is (thrown? (run-program "failing.clj")))
  (is (thrown-with-msg? Exception #"n is 7" (run-program "failing.clj" {:n 7}))))

(deftest calls-of-the-test-itself
  (is (= {:n 1} (update-keys (tool/value {:server "s" :tool "count"}) keyword))))
"#;

const FAILING: &str = r#"(ns fail-test {:cassette "c.json"})

(deftest differences
  (testing "the whole"
    (testing (str "value " 1)
      (is (= {"a" [1 2] "b" 0 "d" 3} {"a" [1 4] "b" 0 "c" 2}) "because"))))

(deftest kinds-of-assertions
  (is (< 3 2))
  (is (nil? (first [7])))
  (is false)
  (is (and true nil))
  (are [a b] (= a b)
    1 1
    2
    3)
  (is (thrown? (run-program "program.clj"))))

(deftest ends-early
  (is (= 1 1))

  (+ 1 "x")
  (is (= 1 2)))

(deftest unknown-request
  (tool/value {:server "s" :tool "echo" :args {:a "bob"}}))

(deftest failing-program
  (run-program "failing.clj" {:n 1}))
"#;

fn folder() -> Folder {
    let folder = Folder::recorded();
    folder.write("kinds.clj", r#"{:a [1 -2.5 nil true "x"] "b" #{:k data/n} 3 '(4 5) :big 123456789012345678901234567890}"#);
    folder.write("failing.clj", r#"(fail (str "n is " data/n))"#);
    folder
}

#[test]
fn tests_pass_without_upstreams_and_secrets() {
    let folder = folder();
    folder.write("pass_test.clj", PASSING);
    let passed = folder.run(&["test"], false).success();
    assert!(passed.starts_with("4 tests, 16 assertions: 0 failed, 0 errors ("), "{passed}");
}

#[test]
fn failures_show_their_lines_differences_and_calls() {
    let folder = folder();
    folder.write("fail_test.clj", FAILING);
    let failed = folder.run(&["test", "fail_test.clj"], false);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    let (reports, summary) = failed.stdout.rsplit_once("\n\n").expect("a summary");
    assert!(summary.starts_with("5 tests, 9 assertions: 2 failed, 3 errors ("), "{summary}");
    let expected = r#"FAIL fail-test/differences (fail_test.clj:6)
  (= {"a" [1 2] "b" 0 "d" 3} {"a" [1 4] "b" 0 "c" 2})
  the whole › value 1
  because
  expected: {"a" [1 2] "b" 0 "d" 3}
    actual: {"a" [1 4] "b" 0 "c" 2}
  at ["a" 1]: expected 2, got 4
  at ["d"]: 3 is missing
  at ["c"]: 2 is not expected

FAIL fail-test/kinds-of-assertions (fail_test.clj:9)
  (< 3 2)
  expected: (< 3 2)
    actual: (not (< 3 2))

FAIL fail-test/kinds-of-assertions (fail_test.clj:10)
  (nil? (first [7]))
  expected: (nil? (first [7]))
    actual: (not (nil? 7))

FAIL fail-test/kinds-of-assertions (fail_test.clj:11)
  false
  expected: false
    actual: false

FAIL fail-test/kinds-of-assertions (fail_test.clj:12)
  (and true nil)
  expected: (and true nil)
    actual: nil

FAIL fail-test/kinds-of-assertions (fail_test.clj:15)
  (= a b)
  expected: 2
    actual: 3

FAIL fail-test/kinds-of-assertions (fail_test.clj:17)
  (thrown? (run-program "program.clj"))
  expected: (thrown? (run-program "program.clj"))
    actual: ["said [REDACTED]\nto ann" :tool_error "no [REDACTED]" [1 2 3]]
  calls:
    s/echo {"a":"ann"}: ok
    s/fail {}: tool_error
    s/fail {}: tool_error
    s/count {}: ok
    s/count {}: ok
    s/count {}: ok

ERROR fail-test/ends-early (fail_test.clj:19)
  runtime_error: type_error: (+ & xs): expected a number as argument 2, found a string "x"
   at line 22
  hint: read the number out of the text with (parse-long s) or (parse-double s)

ERROR fail-test/unknown-request (fail_test.clj:25)
  runtime_error: tool_error: the cassette c.json has no answer to s/echo with {"a":"bob"}; the nearest recorded request is {"a":"ann"}, which differs in args.a
   at line 26
  hint: correct the call, or record the program again with ptc-compile record
  calls:
    s/echo {"a":"bob"}: not recorded

ERROR fail-test/failing-program (fail_test.clj:28)"#;
    let found: Vec<&str> = reports.lines().take(expected.lines().count()).collect();
    assert_eq!(found, expected.lines().collect::<Vec<_>>());
    assert!(reports.contains("the program failing.clj: fail: ") && reports.contains("n is 1"), "{reports}");
}

#[test]
fn results_have_formats_for_tools() {
    let folder = folder();
    folder.write("sub/fail_test.clj", "(ns fail-test {:cassette \"../c.json\"})\n\n(deftest t (is (= \"<a>\" \"b\\n,:\")))");
    folder.write("pass_test.clj", "(ns pass-test)\n(deftest t (is true))");
    let run = |format: &str| folder.run(&["test", "--format", format], false);
    let json = run("json");
    assert_eq!(json.code, Some(1), "{json:?}");
    let lines: Vec<serde_json::Value> = json.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let part = |line: usize, path: &str| lines.get(line).and_then(|line| line.pointer(path)).cloned().unwrap_or_default();
    assert_eq!(lines.len(), 3);
    assert_eq!((part(0, "/test"), part(0, "/verdict")), ("pass-test/t".into(), "passed".into()));
    assert_eq!((part(1, "/file"), part(1, "/line")), ("sub/fail_test.clj".into(), 3.into()));
    assert_eq!((part(1, "/failures/0/expected"), part(1, "/failures/0/actual")), ("\"<a>\"".into(), "\"b\\n,:\"".into()));
    assert_eq!((part(2, "/summary/tests"), part(2, "/summary/failed")), (2.into(), 1.into()));
    let github = run("github").stdout;
    let expected = "::error file=sub/fail_test.clj,line=3,title=fail-test/t::(= \"<a>\" \"b\\n,:\")%0Aexpected: \"<a>\"%0A  actual: \"b\\n,:\"\n";
    assert_eq!(github, expected);
    let junit = run("junit").stdout;
    for part in [
        "<testsuites tests=\"2\" failures=\"1\" errors=\"0\" time=\"",
        "<testsuite name=\"sub/fail_test.clj\" tests=\"1\" failures=\"1\" errors=\"0\" time=\"",
        "<testcase classname=\"fail-test\" name=\"t\" file=\"sub/fail_test.clj\" line=\"3\" time=\"",
        "<failure type=\"assertion\" message=\"(= &quot;&lt;a&gt;&quot; &quot;b\\n,:&quot;)\">sub/fail_test.clj:3\n",
    ] {
        assert!(junit.contains(part), "{part}\n{junit}");
    }
    // Every element that is opened is closed.
    let (opened, closed) = (junit.matches("<test").count() + junit.matches("<failure").count(), junit.matches("</").count());
    assert_eq!(opened, closed + junit.matches("/>").count(), "{junit}");
}

/// Returns the sums of an attribute of elements, or their number if `attribute` is empty.
fn sum(xml: &str, element: &str, attribute: &str) -> usize {
    let opening = format!("<{element} ");
    let elements = xml.split(&*opening).skip(1).map(|rest| rest.split('>').next().unwrap_or_default());
    let value = |text: &str| text.split_once(&format!("{attribute}=\""))?.1.split('"').next()?.parse().ok();
    elements.map(|text| if attribute.is_empty() { 1 } else { value(text).unwrap_or_else(|| panic!("{attribute}: {xml}")) }).sum()
}

#[test]
fn numbers_of_junit_agree_with_its_cases() {
    let folder = folder();
    folder.write("sub/bad_test.clj", "(deftest t");
    folder.write("sub/worse_cases.json", "[1]");
    folder.write("good_test.clj", "(ns a.b)\n(deftest c (is true))\n(deftest d (is false))\n(deftest e (is))");
    // A program that fails with the recorded answers is not checked.
    folder.write("crash.clj", "(+ 1 \"x\")");
    folder.write("skipped_test.clj", "(ns s {:cassette \"c.json\"})\n(deftest f (is (thrown? (run-program \"crash.clj\"))))");
    let junit = folder.run(&["test", "--faults=null", "--format", "junit"], false).stdout;
    for (attribute, element, expected) in
        [("tests", "testcase", 7), ("failures", "failure", 1), ("errors", "error", 3), ("skipped", "skipped", 1)]
    {
        assert_eq!(sum(&junit, "testsuite", attribute), expected, "{attribute} {junit}");
        assert_eq!(sum(&junit, element, ""), expected, "{element} {junit}");
        // The root has no number of skipped cases in the schema.
        if attribute != "skipped" {
            assert_eq!(sum(&junit, "testsuites", attribute), expected, "{attribute} {junit}");
        }
    }
    for part in [
        "<testcase classname=\"bad_test\" name=\"sub/bad_test.clj\" file=\"sub/bad_test.clj\" line=\"1\" ",
        "<error type=\"unusable_file\" message=\"",
        "<testcase classname=\"worse_cases\" name=\"sub/worse_cases.json\" ",
        "<testcase classname=\"a.b\" name=\"c\" ",
        "<error type=\"error\" message=\"is takes a form",
    ] {
        assert!(junit.contains(part), "{part}\n{junit}");
    }
    assert!(!junit.contains("classname=\"\""), "{junit}");
}

#[test]
fn one_run_writes_several_reports() {
    let folder = folder();
    folder.write("pass_test.clj", "(ns pass-test)\n(deftest t (is true))");
    let reports = ["--report", "junit=out/results.xml", "--report", "json=results.json", "--report", "text=results.txt"];
    let passed = folder.run(&[&["test"], &reports[..]].concat(), false);
    let text = passed.stdout.clone();
    passed.success();
    assert_eq!(folder.read("results.txt"), text);
    assert!(folder.read("out/results.xml").contains("<testsuites tests=\"1\" failures=\"0\" errors=\"0\" time=\""));
    assert!(folder.read("results.json").ends_with("}\n") && folder.read("results.json").contains(r#""test":"pass-test/t""#));
    // Annotations exist only for failures, so that the numbers are a message.
    let github = folder.run(&["test", "--format", "github", "--report", "junit=out/results.xml"], false);
    assert!(github.stdout.is_empty() && github.stderr.starts_with("1 test, 1 assertion: 0 failed, 0 errors ("), "{github:?}");
    // A failed run writes its reports too.
    folder.write("pass_test.clj", "(ns pass-test)\n(deftest t (is false))");
    let failed = folder.run(&["test", "--report", "github=annotations.txt"], false);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(folder.read("annotations.txt").starts_with("::error file=pass_test.clj,line=2,"));
    let expected = "the format of a file is text, junit, github or json";
    for (wrong, expected) in [
        (["--report", "sarif=a"].as_slice(), expected),
        (&["--report", "junit"], "expected FORMAT=FILE"),
        (&["--report", "junit="], "expected FORMAT=FILE"),
        (&["--report", "junit=a", "--watch"], "--watch"),
    ] {
        let refused = folder.run(&[&["test"], wrong].concat(), false);
        assert!(refused.code == Some(2) && refused.stderr.contains(expected), "{wrong:?}: {refused:?}");
    }
}

#[test]
fn files_and_filters_that_cannot_be_used_are_reported() {
    let folder = folder();
    let refused = |text: &str, code: i32, expected: &str| {
        folder.write("bad_test.clj", text);
        let refused = folder.run(&["test", "bad_test.clj"], false);
        assert_eq!(refused.code, Some(code), "{text}: {refused:?}");
        assert!(format!("{}{}", refused.stdout, refused.stderr).contains(expected), "{text}: {refused:?}");
    };
    refused("(deftest t\n  (is (= 1 1))", 1, "ERROR bad_test.clj (bad_test.clj:");
    refused("(deftest t)\n(deftest t)", 1, "there are two tests named t");
    refused("\n(deftest t (is))", 1, "ERROR bad_test/t (bad_test.clj:2)\n  is takes a form");
    refused("(deftest t (are [a b] (= a b) 1))", 1, "are has 2 names, and 1 values");
    refused("(deftest t (is (thrown? (/ 1 0))))", 1, "PTC-Lisp has no exceptions");
    refused("(ns t {:tape \"c.json\"})\n(deftest t (is true))", 1, "has the keys :config and :cassette");
    refused("(ns t {:cassette \"d.json\"})\n(deftest t (is true))", 1, "cannot read `d.json`");
    refused("(ns t {:cassette \"upstreams.json\"})\n(deftest t (is true))", 1, "cannot be used: cassette: expected");
    refused("(def x 1)", 2, "there are no tests to run");
    // A test without a cassette cannot call an upstream.
    let call = "(tool/call {:server \"s\" :tool \"count\"})";
    refused(&format!("(deftest t {call})"), 1, "the cassette of bad_test.clj, which names none, has no answer to s/count");
    // A program that lacks recorded answers does not count as one that fails.
    folder.write("stale.clj", "(tool/call {:server \"s\" :tool \"echo\" :args {:a \"bob\"}})");
    let stale = "(ns t {:cassette \"c.json\"})\n(deftest t (is (thrown? (run-program \"stale.clj\"))))";
    refused(stale, 1, "the program stale.clj: the cassette c.json has no answer to s/echo");
    refused("(deftest t (is (= 1 (run-program \"gone.clj\"))))", 1, "cannot read `gone.clj`");
    folder.write("bad_test.clj", "(ns b)\n(deftest one (is true))\n(deftest two (is false))");
    let one = folder.run(&["test", "--filter", "b/one"], false).success();
    assert!(one.starts_with("1 test, 1 assertion: 0 failed"), "{one}");
    let none = folder.run(&["test", "--filter", "three"], false);
    assert_eq!(none.code, Some(2));
    assert!(none.stderr.contains("no name of a test contains `three`"), "{none:?}");
}

#[test]
fn files_and_tests_that_cannot_be_used_leave_the_others_running() {
    let folder = folder();
    std::fs::write(folder.0.path().join("a_test.clj"), b"(ns a)\n(deftest t (is (= \"\xff\" 1)))").expect("a file");
    std::fs::write(folder.0.path().join("a_cases.json"), b"[\xff]").expect("a file");
    let rows = "(ns b)\n(deftest wrong\n  (testing \"rows\"\n    (are [x y] (= x y)\n      1 1\n      2)))\n";
    folder.write("b_test.clj", &format!("{rows}(deftest right (testing \"text\" (is (= 1 2))))\n(deftest last (is true))"));
    let failed = folder.run(&["test", "--report", "json=results.json"], false);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    for part in [
        "ERROR a_cases.json (a_cases.json:1)\n  cannot read `a_cases.json`: ",
        "ERROR a_test.clj (a_test.clj:1)\n  cannot read `a_test.clj`: ",
        "ERROR b/wrong (b_test.clj:2)\n  are has 2 names, and 3 values, which must be a multiple of that\n   at line 4\n",
        "FAIL b/right (b_test.clj:7)\n  (= 1 2)\n  text\n",
        "3 tests, 2 assertions: 1 failed, 3 errors (",
    ] {
        assert!(failed.stdout.contains(part), "{part}\n{}", failed.stdout);
    }
    assert!(folder.read("results.json").contains(r#"{"test":"b/last","file":"b_test.clj","line":8,"verdict":"passed""#));
    let selected = folder.run(&["test", "b_test.clj", "--filter", "b/last"], false).success();
    assert!(selected.starts_with("1 test, 1 assertion: 0 failed, 0 errors ("), "{selected}");
    // A file that the command line names must exist.
    let missing = folder.run(&["test", "b_test.clj", "c_test.clj"], false);
    assert!(missing.code == Some(2) && missing.stderr.contains("cannot read `c_test.clj`"), "{missing:?}");
}

#[test]
fn control_characters_of_upstreams_do_not_reach_the_terminal() {
    let folder = folder();
    let cassette = folder.read("c.json");
    folder.write("c.json", &cassette.replace("no [REDACTED]", "no\\u001b]0;title\\u0007 \\u202e \\u009b2J"));
    let test = "(ns t {:cassette \"c.json\"})\n(deftest t (is (= 1 (:message (tool/call {:server \"s\" :tool \"fail\"})))))";
    folder.write("t_test.clj", &format!("{test}\n(deftest u (tool/value {{:server \"s\" :tool \"fail\"}}))"));
    let failed = folder.run(&["test", "t_test.clj"], false);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    let shown = format!("{}{}", failed.stdout, failed.stderr);
    assert!(shown.contains("no\\u{1b}]0;title\\u{7} \\u{202e} \\u{9b}2J"), "{shown}");
    assert!(!shown.contains(|c: char| c.is_control() && c != '\n' || c == '\u{202e}'), "{shown:?}");
    let missing = folder.run(&["test", "\u{1b}[2J_test.clj"], false);
    assert!(missing.stderr.contains("\\u{1b}[2J_test.clj") && !missing.stderr.contains('\u{1b}'), "{missing:?}");
}

#[test]
fn stored_programs_are_run_with_their_schemas() {
    let folder = folder();
    let mut config: serde_json::Value = serde_json::from_str(&folder.read("upstreams.json")).expect("a config");
    let program = serde_json::json!({
        "file": "echo.clj", "description": "Echoes.",
        "args": { "type": "object", "properties": { "who": { "type": "string" } }, "required": ["who"] },
    });
    folder.write("echo.clj", "(:value (tool/call {:server \"s\" :tool \"echo\" :args {:a data/who}}))");
    config.as_object_mut().expect("an object").insert("programs".to_owned(), serde_json::json!({ "echo": program }));
    folder.write("upstreams.json", &config.to_string());
    folder.write(
        "echo_test.clj",
        "(ns echo-test {:cassette \"c.json\"})
(deftest echo
  (is (= \"said [REDACTED]\\nto ann\" (run-program \"echo\" {:who \"ann\"})))
  (is (thrown-with-msg? #\"args_error\" (run-program \"echo\" {:who 1})))
  (is (thrown-with-msg? #\"args_error\" (run-program \"echo\"))))",
    );
    folder.run(&["test"], false).success();
}

#[test]
fn thousand_tests_run_in_parallel() {
    let folder = folder();
    let tests =
        |n: usize| format!("(deftest t{n}\n  (is (= [1 2 3] (nth (run-program \"program.clj\") 3)))\n  (is (< {n} 1000)))\n");
    let text: String = (0..1000).map(tests).collect();
    folder.write("many_test.clj", &format!("(ns many {{:cassette \"c.json\"}})\n{text}"));
    let passed = folder.run(&["test"], false).success();
    assert!(passed.starts_with("1,000 tests, 2,000 assertions: 0 failed, 0 errors ("), "{passed}");
    println!("{passed}");
}

#[test]
fn tests_with_many_cassettes_share_their_engines() {
    let folder = folder();
    let cassette = folder.read("c.json");
    for n in 0..100 {
        folder.write(&format!("c{n}.json"), &cassette);
        let text =
            format!("(ns of-{n} {{:cassette \"c{n}.json\"}})\n(deftest t (is (= 4 (count (run-program \"program.clj\")))))");
        folder.write(&format!("of_{n}_test.clj"), &text);
    }
    // Each engine has descriptors of its own, so that engines for each cassette would need more than these.
    let limited = ["sh", "-c", "ulimit -n 64; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_ptc-compile")];
    let passed = folder.run_under(&limited, &["test"], false).success();
    assert!(passed.starts_with("100 tests, 100 assertions: 0 failed, 0 errors ("), "{passed}");
}
