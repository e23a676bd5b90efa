//! The command line: `eval`, `version`, `--help`, and invalid arguments.

use crate::peer::server;
use crate::{PARTS, Test};

/// The tests of this module.
pub(crate) const TESTS: &[Test] = &[
    ("command::eval_prints_the_value", eval_prints_the_value),
    ("command::eval_prints_json_on_request", eval_prints_json_on_request),
    ("command::wrong_usage_reports_all_faults", wrong_usage_reports_all_faults),
    ("command::misspelt_variable_causes_one_warning", misspelt_variable_causes_one_warning),
    ("command::help_and_version_are_printed", help_and_version_are_printed),
];

fn run(args: &[&str]) -> (i32, String, String) {
    let done = server("plain").args(args).output().expect("the server runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (done.status.code().unwrap_or(-1), text(done.stdout), text(done.stderr))
}

fn eval_prints_the_value() {
    assert_eq!(run(&["eval", "(println \"hi\") (+ 1 2)"]), (0, "hi\n3\n".into(), String::new()));
    assert_eq!(run(&["eval", "--display=json", "{:a [1 \"x\" :k]}"]), (0, "{\"a\":[1,\"x\",\"k\"]}\n".into(), String::new()));
    let (code, out, err) = run(&["eval", "(def x 1)\n(+ x yy)"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.starts_with("error: ") && err.contains("yy") && err.contains("line 2") && err.contains('^'), "{err}");
}

fn eval_prints_json_on_request() {
    let (code, out, _) = run(&["eval", "--json", "(+ 1 2)"]);
    let object: serde_json::Value = serde_json::from_str(&out).expect("one object");
    assert_eq!((code, &object["status"], &object["result"]), (0, &"ok".into(), &"user=> 3".into()));
    assert_eq!(object["ptc_metrics"]["final_result_bytes"], 8);
    assert_eq!(object["ptc_metrics"]["upstream_result_bytes"], 0);
    assert_eq!(object["upstream_calls"], serde_json::json!([]));
    let (code, out, _) = run(&["eval", "--json", "(fail {:a 1})"]);
    let object: serde_json::Value = serde_json::from_str(&out).expect("one object");
    assert_eq!((code, &object["status"], &object["reason"]), (1, &"error".into(), &"fail".into()));
}

fn wrong_usage_reports_all_faults() {
    let (code, out, err) = run(&["--max-frame-bytes", "1", "--max-fram-bytes=5", "--upstreams-config", "u.json"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert_eq!(err.lines().count(), 3, "{err}");
    assert!(err.lines().all(|line| line.starts_with("plain: error: ")), "{err}");
}

fn misspelt_variable_causes_one_warning() {
    let done = server("plain").args(["eval", "1"]).env("PTC_RUNNER_MCP_LOG_LEVELS", "debug").output().expect("the server runs");
    let log = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && done.stdout == b"1\n", "{log}");
    assert!(log.lines().count() == 1 && log.contains("did you mean PTC_RUNNER_MCP_LOG_LEVEL?"), "{log}");
}

fn help_and_version_are_printed() {
    let (code, help, _) = run(&["--help"]);
    assert_eq!(code, 0);
    for flag in ptc_runtime::settings::flags().filter(|flag| !flag.is_of_config() && flag.is_built(PARTS.linked())) {
        assert!(help.contains(&format!("--{}", flag.name)) && help.contains(flag.env), "{}", flag.name);
    }
    assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
    for own in ["--help", "--version", "--display", "--json", "-e, --eval PROGRAM", "-l FILE"] {
        assert!(help.contains(own), "{own}");
    }
    assert!(run(&["version"]).1.starts_with("plain "));
    let (_, json, _) = run(&["version", "--json"]);
    let object: serde_json::Value = serde_json::from_str(&json).expect("one object");
    assert_eq!((&object["tools"], &object["compiler"]), (&0.into(), &"0.1.0".into()));
    let built =
        ptc_runtime::settings::FEATURES.iter().filter(|feature| feature.is_built(PARTS.linked())).map(|feature| feature.name);
    assert_eq!(object["abilities"], serde_json::json!(built.collect::<Vec<_>>()));
    assert_eq!(object["compiler_digest"], "sha256:00ff");
    assert_eq!(object["runtime_digest"], ptc_runtime::DIGEST);
    assert_eq!(ptc_runtime::DIGEST.len(), "sha256:".len() + 64);
    assert_eq!(object.get("config_digest"), None, "nothing was read for it");
}
