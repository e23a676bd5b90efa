//! Tests a listening server with the official conformance packages and the official clients.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use ptc_tests::deployment::plain;
use ptc_tests::peers::{newer_node_program, node_script, python_script};
use ptc_tests::process::{Background, free_port, run};
use serde_json::{Value, json};

const NOT_APPLICABLE: &str = include_str!("../peers/conformance.tsv");

/// A check that does not apply.
struct Row {
    package: &'static str,
    scenario: &'static str,
    check: &'static str,
}

impl Row {
    fn covers(&self, package: &str, scenario: &str, check: &str) -> bool {
        let same = |pattern: &str, name: &str| pattern.strip_suffix('*').map_or(pattern == name, |start| name.starts_with(start));
        same(self.package, package) && same(self.scenario, scenario) && same(self.check, check)
    }
}

fn rows() -> Vec<Row> {
    let lines = NOT_APPLICABLE.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let row = |line: &'static str| {
        let parts: Vec<&str> = line.split('\t').collect();
        let [package, scenario, check, why] = parts[..] else { panic!("not four columns: {line}") };
        assert!(!why.is_empty(), "{line}");
        Row { package, scenario, check }
    };
    lines.map(row).collect()
}

fn listening(options: &[&str]) -> (Background, String) {
    let port = free_port();
    let mut server = Command::new(plain());
    server.args(["--http", "--http-port", &port.to_string()]).args(options);
    if !options.contains(&"--http-auth-token") {
        server.arg("--http-disable-auth");
    }
    (Background::start(&mut server).ready_on(port), format!("http://127.0.0.1:{port}/mcp"))
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn official_conformance_suites_give_expected_results() {
    let rows = rows();
    let mut wrong = String::new();
    let mut failed = BTreeSet::new();
    let (handshake, stateless) = ("conformance-handshake", "conformance-stateless");
    // Run the whole suite of a package, then its checks for each revision by name.
    for (package, chosen) in [
        (handshake, ["--suite", "all"]),
        (handshake, ["--spec-version", "2025-06-18"]),
        (handshake, ["--spec-version", "2025-11-25"]),
        (stateless, ["--suite", "all"]),
        (stateless, ["--spec-version", "2025-06-18"]),
        (stateless, ["--spec-version", "2025-11-25"]),
        (stateless, ["--requirements", "2026-07-28"]),
    ] {
        let (_server, url) = listening(&[]);
        let output = tempfile::tempdir().expect("a folder");
        let mut suite = newer_node_program(&format!("{package}/dist/index.js"));
        suite.args(["server", "--url", &url]).args(chosen).arg("-o").arg(output.path());
        // The suite's exit code also reports checks that do not apply, so the results are read from the folder.
        let finished = run(&mut suite);
        let mut passed = 0;
        for (scenario, checks) in results(output.path()) {
            for check in checks {
                let id = check["id"].as_str().unwrap_or_default().to_owned();
                match check["status"].as_str() {
                    Some("FAILURE" | "WARNING") => {
                        if !rows.iter().any(|row| row.covers(package, &scenario, &id)) {
                            let _ = writeln!(wrong, "{package}\t{scenario}\t{id}\t{}", check["errorMessage"]);
                        }
                        failed.insert((package, scenario.clone(), id));
                    }
                    Some("SUCCESS") => passed += 1,
                    _ => {}
                }
            }
        }
        assert!(passed >= 5, "{package} {chosen:?}: {passed} checks passed\n{}{}", finished.stdout, finished.stderr);
    }
    for row in &rows {
        if !failed.iter().any(|(package, scenario, check)| row.covers(package, scenario, check)) {
            let _ = writeln!(wrong, "{} {} {} does not fail: take it off the list", row.package, row.scenario, row.check);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Returns the scenarios with their checks from folders named `server-SCENARIO-TIME`.
fn results(folder: &Path) -> Vec<(String, Vec<Value>)> {
    let mut all: Vec<_> = std::fs::read_dir(folder).expect("results").map(|entry| entry.expect("readable").path()).collect();
    all.sort();
    let scenario = |path: &std::path::PathBuf| {
        let name = path.file_name()?.to_str()?.strip_prefix("server-")?.to_owned();
        let time = name.find("-2")?;
        let end = name.match_indices("-2").map(|(at, _)| at).find(|at| name.get(at + 1..at + 5).is_some_and(is_year));
        let text = std::fs::read_to_string(path.join("checks.json")).ok()?;
        Some((name.get(..end.unwrap_or(time))?.to_owned(), serde_json::from_str(&text).ok()?))
    };
    all.iter().filter_map(scenario).collect()
}

/// Whether a text is the current year, with which times begin. The name of a scenario may end in a past year, but never in the
/// current one.
fn is_year(text: &str) -> bool {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    text == (1970 + now / 31_556_952).to_string()
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn official_sdks_evaluate_programs_over_http() {
    let (_server, url) = listening(&[]);
    for mode in ["auto", "legacy", "2026-07-28"] {
        let seen: Value = serde_json::from_str(&run(python_script("client.py").args([mode, &url, "(+ 1 2)"])).success())
            .expect("one JSON object");
        assert_eq!(seen, json!({ "tools": ["lisp_eval"], "isError": false, "text": "user=> 3" }), "mode {mode}");
    }
    let token = "a-token-of-more-than-thirty-two-bytes";
    let (_server, url) = listening(&["--http-auth-token", token]);
    let seen = run(node_script("client.mjs").args([&url, "(+ 1 2)"]).env("TOKEN", token)).success();
    let seen: Value = serde_json::from_str(&seen).expect("one JSON object");
    assert_eq!((&seen["tools"], &seen["text"]), (&json!(["lisp_eval"]), &json!("user=> 3")));
    let refused = run(node_script("client.mjs").args([&url, "(+ 1 2)"]));
    assert_ne!(refused.code, Some(0));
    assert!(refused.stderr.contains("401") || refused.stderr.contains("Unauthorized"), "{}", refused.stderr);
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn inspector_works_in_both_eras_over_both_transports() {
    let (_server, url) = listening(&["--sessions", "--response-profile", "structured"]);
    let binary = plain().to_str().expect("a path of plain text");
    for target in [&url as &str, binary] {
        for era in ["legacy", "auto", "modern"] {
            let inspector = |more: &[&str]| {
                let mut command = newer_node_program(".bin/mcp-inspector");
                command.args(["--cli", target, "--protocol-era", era]).args(more);
                serde_json::from_str::<Value>(&run(&mut command).success()).expect("one JSON object")
            };
            let listed = inspector(&["--method", "tools/list", "--strict"]);
            assert_eq!(listed.pointer("/tools/0/name"), Some(&json!("lisp_eval")), "{target} {era}: {listed}");
            let called = inspector(&["--method", "tools/call", "--tool-name", "lisp_eval", "--tool-arg", "program=(+ 1 2)"]);
            assert_eq!(called.pointer("/content/0/text"), Some(&json!("user=> 3")), "{target} {era}: {called}");
        }
    }
}
