//! Tests the script that tries tasks on real models: it must judge, report and skip as documented. The model's answers are
//! recorded.

use std::process::Command;

use ptc_tests::deployment::ptc_compile;
use ptc_tests::peers::python_script;
use ptc_tests::process::run;
use serde_json::{Value, json};

use crate::web::{Answer, Web};

/// Returns a command that runs the script without keys and writes into a folder.
fn planner(output: &std::path::Path, options: &[&str]) -> Command {
    let mut script = python_script("planner.py");
    script.arg(ptc_compile()).arg(output).args(options);
    for key in ["PLANNER_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY"] {
        script.env_remove(key);
    }
    script
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn planner_results_are_evaluated_and_reported() {
    // The model counts correctly and invents names.
    let model = Web::start(|asked| {
        let counts = asked.body.contains("How many notes");
        let program = if counts {
            "(return (count (:value (tool/call {:server \"notes\" :tool \"list_notes\"}))))"
        } else {
            "(return [\"a note\"])"
        };
        let said = json!({ "role": "assistant", "content": program });
        let usage = json!({ "prompt_tokens": 7, "completion_tokens": 5 });
        Answer::json(200, json!({ "choices": [{ "message": said, "finish_reason": "stop" }], "usage": usage }))
    });
    let folder = tempfile::tempdir().expect("a folder");
    let endpoint = format!("http://{}/v1", model.address);
    let options = ["--models", "replayed", "--catalog-modes", "inline", "--case", "count", "--case", "names", "--turns", "1"];
    let finished = run(planner(folder.path(), &options).args(["--retries", "0", "--base-url", &endpoint]));
    assert_eq!(finished.code, Some(1), "one of two is wrong: {}", finished.stderr);
    let report = std::fs::read_to_string(folder.path().join("report.json")).expect("a report");
    let cells: Vec<Value> = serde_json::from_str(&report).expect("cells");
    let judged: Vec<_> =
        cells.iter().map(|cell| (cell["case"].as_str(), cell["passed"].as_bool(), cell["calls"].as_u64())).collect();
    assert_eq!(judged, [(Some("count"), Some(true), Some(1)), (Some("names"), Some(false), Some(0))]);
    assert_eq!(cells[0]["planner"]["tokens"]["input"], 7);
    let table = std::fs::read_to_string(folder.path().join("report.md")).expect("a report");
    assert!(table.contains("- replayed: 1 of 2 passed") && table.contains("(return [\"a note\"])"), "{table}");
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn model_without_a_key_is_reported_as_skipped() {
    let folder = tempfile::tempdir().expect("a folder");
    for (more, code) in [(&[][..], 0), (&["--fail-on-skip"], 1)] {
        let finished = run(planner(folder.path(), &["--models", "openai:some-model"]).args(more));
        assert_eq!(finished.code, Some(code), "{more:?}: {}", finished.stderr);
        assert!(finished.stderr.contains("skipped: openai:some-model needs OPENAI_API_KEY"), "{}", finished.stderr);
    }
}
