//! Tests the OAuth client with the `auth/*` client scenarios of the official conformance packages: `ptc-compile login`, then a call.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Mutex;

use ptc_tests::deployment::ptc_compile;
use ptc_tests::peers::{newer_node_program, newer_node_script};
use ptc_tests::process::run;

/// The scenarios that do not pass.
const NOT_PASSED: &str = include_str!("../peers/auth_conformance.tsv");
/// The revisions at which a scenario of the newer package runs, with the number of scenarios that a revision scores.
const REVISIONS: [(&str, usize); 2] = [("2025-11-25", 14), ("2026-07-28", 25)];
/// How many scenarios run at a time.
const WORKERS: usize = 4;

/// A scenario of a package, at one of its revisions or at `-`, which is that of its own choice.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Case {
    package: String,
    revision: String,
    scenario: String,
}

/// Returns the scenarios of a package.
fn cases(package: &str) -> Vec<Case> {
    let listed = run(newer_node_program(&format!("{package}/dist/index.js")).arg("list")).success();
    let mut cases = Vec::new();
    for line in listed.lines().filter_map(|line| line.trim().strip_prefix("- auth/")) {
        let (name, revisions) = line.split_once(" [").expect("a name and its revisions");
        let revisions: Vec<&str> = revisions.trim_end_matches(']').split(',').collect();
        let known = REVISIONS.iter().map(|(revision, _)| *revision).filter(|revision| revisions.contains(revision));
        // The older package has one form of messages only.
        let mut known: Vec<&str> = if package == "conformance-stateless" { known.collect() } else { Vec::new() };
        if known.is_empty() {
            known.push("-");
        }
        let case = |revision: &str| Case { package: package.into(), revision: revision.into(), scenario: format!("auth/{name}") };
        cases.extend(known.into_iter().map(case));
    }
    cases
}

/// Returns the scenarios that are known not to pass. None of them is scored at a revision.
fn not_passed() -> BTreeSet<Case> {
    let lines = NOT_PASSED.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let case = |line: &str| {
        let parts: Vec<&str> = line.split('\t').collect();
        let [package, revision, scenario, why] = parts[..] else { panic!("not four columns: {line}") };
        assert!(revision == "-" && !why.is_empty(), "{line}");
        Case { package: package.into(), revision: revision.into(), scenario: scenario.into() }
    };
    lines.map(case).collect()
}

/// Returns the command line of the client.
fn client() -> String {
    let mut client = newer_node_script("auth_client.mjs");
    client.arg(ptc_compile());
    let words = std::iter::once(client.get_program()).chain(client.get_args());
    words.map(|word| word.to_str().expect("a path of plain text")).collect::<Vec<_>>().join(" ")
}

/// Runs a scenario with a client. Returns its output, and whether all of its checks have passed without a warning.
fn outcome(case: &Case, client: &str) -> (bool, String) {
    let output = tempfile::tempdir().expect("a folder");
    let mut suite = newer_node_program(&format!("{}/dist/index.js", case.package));
    suite.args(["client", "--command", client, "--scenario", &case.scenario, "--timeout", "60000", "-o"]);
    suite.arg(output.path());
    if case.revision != "-" {
        suite.args(["--spec-version", &case.revision]);
    }
    let finished = run(&mut suite);
    let text = format!("{}{}", finished.stdout, finished.stderr);
    // A scenario that is skipped has the exit code 0 too.
    (finished.code == Some(0) && text.contains(" 0 failed, 0 warnings") && text.contains("OVERALL: PASSED"), text)
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn official_conformance_suites_of_authorization_give_expected_results() {
    let cases: Vec<Case> = ["conformance-handshake", "conformance-stateless"].into_iter().flat_map(cases).collect();
    for (revision, scored) in REVISIONS {
        assert_eq!(cases.iter().filter(|case| case.revision == revision).count(), scored, "{revision}");
    }
    let known = not_passed();
    for case in &known {
        assert!(cases.contains(case), "{case:?} does not exist");
    }
    let (queue, wrong) = (Mutex::new(cases), Mutex::new(String::new()));
    let client = client();
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(case) = { queue.lock().unwrap().pop() } {
                    let (passed, text) = outcome(&case, &client);
                    let what = match (passed, known.contains(&case)) {
                        (false, false) => format!("{case:?} does not pass:\n{text}"),
                        (true, true) => format!("{case:?} passes: take it off the list"),
                        _ => continue,
                    };
                    let _ = writeln!(wrong.lock().unwrap(), "{what}");
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{wrong}");
}
