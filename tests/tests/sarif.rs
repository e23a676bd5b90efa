//! Tests the output of `ptc-compile --format sarif` for every fixture with the schema of SARIF 2.1.0.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ptc_tests::deployment::{ptc_compile, workspace};
use ptc_tests::peers::{npm_file, python_script};
use ptc_tests::process::{Finished, run};

/// Returns the log for a folder of `fixtures/check`.
fn log(folder: &Path) -> String {
    let words = |file: &str, otherwise: &str| fs::read_to_string(folder.join(file)).unwrap_or_else(|_| otherwise.to_owned());
    let (command, options) = (words("command", "--check upstreams.json"), words("options", ""));
    let mut process = Command::new(ptc_compile());
    process.args(command.split_whitespace()).args(["--format", "sarif"]).args(options.split_whitespace()).current_dir(folder);
    run(&mut process).stdout
}

fn judged(logs: &[PathBuf]) -> Finished {
    let schema = npm_file("@microsoft/jest-sarif/lib/schemas/sarif-2.1.0-rtm.5.json");
    run(python_script("json_schema.py").arg(schema).args(logs))
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn sarif_logs_match_the_official_schema() {
    let scratch = tempfile::tempdir().expect("a folder");
    let folders = fs::read_dir(workspace().join("fixtures/check")).expect("fixtures/check can be listed");
    let mut logs = Vec::new();
    for folder in folders {
        let folder = folder.expect("an entry can be read").path();
        let path = scratch.path().join(folder.file_name().expect("a name")).with_extension("sarif");
        fs::write(&path, log(&folder)).expect("a log can be written");
        logs.push(path);
    }
    assert!(logs.len() > 50, "the fixtures are where they are expected");
    assert_eq!(judged(&logs).success(), "");

    // The schema refuses faulty logs.
    let path = scratch.path().join("wrong.sarif");
    let right = log(&workspace().join("fixtures/check/credentials_unresolved"));
    for (from, to) in [("\"ruleId\":", "\"rule\":"), ("\"startLine\": 10", "\"startLine\": 0"), ("\"2.1.0\"", "\"2.0.0\"")] {
        assert!(right.contains(from), "{from} is in {right}");
        fs::write(&path, right.replacen(from, to, 1)).expect("a log can be written");
        assert_eq!(judged(std::slice::from_ref(&path)).code, Some(1), "{to}");
    }
}
