//! Validates machine-readable output of real programs against the schemas that `ptc-compile schema` prints.
#![expect(clippy::indexing_slicing, reason = "a test stops where an answer lacks what it looks at")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use jsonschema::Validator;
use ptc_tests::deployment::{ptc_compile, quickstart, workspace};
use ptc_tests::mcp::Client;
use ptc_tests::process::run;
use serde_json::{Value, json};

use crate::web::{Answer, Web};

const KINDS: [&str; 10] = ["config", "lock", "findings", "results", "version", "tests", "cases", "trace", "metrics", "debug"];

/// Locks that are not valid by their form. Others have a wrong digest or miss an upstream, which a schema cannot express.
const INVALID_LOCKS: [&str; 1] = ["lock_with_invalid_value"];

struct Schema {
    validator: Validator,
    /// The names of all properties.
    names: BTreeSet<String>,
}

impl Schema {
    fn new(kind: &str) -> Schema {
        let text = run(Command::new(ptc_compile()).args(["schema", kind])).success();
        let schema: Value = serde_json::from_str(&text).expect("JSON");
        assert!(jsonschema::meta::is_valid(&schema), "{kind}");
        let mut names = BTreeSet::new();
        collect_names(&schema, &mut names);
        Schema { validator: jsonschema::validator_for(&schema).expect("a schema"), names }
    }

    /// Checks that a value is valid and that the schema describes all of its members.
    fn check(&self, value: &Value) {
        let errors: Vec<String> =
            self.validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert_eq!(errors, [""; 0], "{value:#}");
        let members = value.as_object().into_iter().flatten().map(|(name, _)| name);
        let unknown: Vec<_> = members.filter(|name| !self.names.contains(*name)).collect();
        assert_eq!(unknown, [""; 0], "{value:#}");
    }

    /// Checks each line of a text. Returns the number of lines.
    fn check_lines(&self, text: &str) -> usize {
        text.lines().map(|line| self.check(&serde_json::from_str(line).expect("a line of JSON"))).count()
    }
}

fn collect_names(schema: &Value, names: &mut BTreeSet<String>) {
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        names.extend(properties.keys().cloned());
    }
    match schema {
        Value::Object(members) => members.values().for_each(|part| collect_names(part, names)),
        Value::Array(items) => items.iter().for_each(|part| collect_names(part, names)),
        _ => {}
    }
}

fn fixtures() -> Vec<PathBuf> {
    let entries = fs::read_dir(workspace().join("fixtures/check")).expect("fixtures can be listed");
    entries.map(|entry| entry.expect("an entry can be read").path()).collect()
}

#[test]
fn unknown_kind_is_refused_with_the_list_of_kinds() {
    let refused = run(Command::new(ptc_compile()).args(["schema", "nothing"]));
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("invalid value 'nothing' for '[KIND]'"), "{}", refused.stderr);
    assert!(refused.stderr.contains(&format!("[possible values: {}]", KINDS.join(", "))), "{}", refused.stderr);
    let config = run(Command::new(ptc_compile()).arg("schema")).success();
    assert_eq!(config, run(Command::new(ptc_compile()).args(["schema", "config"])).success());
}

#[test]
fn findings_of_all_fixtures_match_their_schema() {
    let schema = Schema::new("findings");
    let mut count = 0;
    for folder in fixtures() {
        let words = |file: &str, otherwise: &str| fs::read_to_string(folder.join(file)).unwrap_or_else(|_| otherwise.to_owned());
        let (command, options) = (words("command", "--check upstreams.json"), words("options", ""));
        let mut process = Command::new(ptc_compile());
        process.args(command.split_whitespace()).arg("--json").args(options.split_whitespace()).current_dir(&folder);
        count += schema.check_lines(&run(&mut process).stdout);
    }
    assert!(count > 200, "{count}");
}

#[test]
fn lock_files_of_all_fixtures_match_their_schema() {
    let schema = Schema::new("lock");
    let mut count = 0;
    for folder in fixtures().into_iter().chain([workspace().join("fixtures/quickstart")]) {
        let Ok(text) = fs::read_to_string(folder.join("upstreams.lock.json")) else { continue };
        let Ok(lock) = serde_json::from_str(&text) else { continue };
        count += 1;
        if folder.file_name().is_some_and(|name| INVALID_LOCKS.iter().any(|invalid| name == *invalid)) {
            assert!(!schema.validator.is_valid(&lock), "{}", folder.display());
        } else {
            schema.check(&lock);
        }
    }
    assert!(count > 15, "{count}");
}

#[test]
#[ignore = "slow: builds a binary"]
fn results_and_versions_match_their_schemas() {
    let schema = Schema::new("results");
    let output = |args: &[&str]| run(Command::new(ptc_compile()).args(args).current_dir(workspace())).success();
    let document = "fixtures/quickstart/petstore.openapi.json";
    assert!(schema.check_lines(&output(&["operations", document, "--all-methods", "--json"])) > 1);
    assert!(schema.check_lines(&output(&["explain", "--json"])) > 50);
    assert_eq!(schema.check_lines(&output(&["explain", "PTC0201", "--json"])), 1);
    let folder = tempfile::tempdir().expect("a folder");
    let binary = folder.path().join("built").display().to_string();
    let config = "fixtures/quickstart/upstreams.json";
    let built = output(&[config, "--output", &binary, "--locked", "--offline", "--json", "--eval", "(+ 1 2)"]);
    assert_eq!(schema.check_lines(&built), 2, "{built}");
    assert!(!schema.validator.is_valid(&json!({ "built": {} })));

    let schema = Schema::new("version");
    schema.check_lines(&output(&["version", "--json"]));
    schema.check_lines(&run(Command::new(quickstart()).args(["version", "--json"])).success());
    assert!(!schema.validator.is_valid(&json!({ "name": "ptc-compile" })));
}

/// Returns the folder of a config with one upstream.
fn notes() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let notes = json!({ "transport": "mcp_stdio", "command": ptc_compile(), "args": ["demo", "--stdio"] });
    let config = json!({ "upstreams": { "notes": notes } });
    fs::write(folder.path().join("upstreams.json"), config.to_string()).expect("a config");
    folder
}

/// Starts a planner that writes a program that fails, none, and one that ends.
fn planner() -> Web {
    const ANSWERS: [&str; 3] =
        ["(count 5)", "I have no idea.", "(return (count (tool/value {:server \"notes\" :tool \"list_notes\"})))"];
    let next = std::sync::atomic::AtomicUsize::new(0);
    Web::start(move |_| {
        let text = ANSWERS[next.fetch_add(1, std::sync::atomic::Ordering::SeqCst) % ANSWERS.len()];
        let usage = json!({ "prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5 });
        Answer::json(200, json!({ "choices": [{ "message": { "content": text }, "finish_reason": "stop" }], "usage": usage }))
    })
}

/// Returns the lines of all trace files.
fn trace_lines(folder: &Path) -> Vec<Value> {
    let files = fs::read_dir(folder).expect("the folder is there").map(|entry| entry.expect("an entry").path());
    let texts = files.map(|path| fs::read_to_string(path).expect("text"));
    texts.flat_map(|text| text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect::<Vec<_>>()).collect()
}

#[test]
fn traces_metrics_and_debug_records_match_their_schemas() {
    let [trace, metrics, debug] = ["trace", "metrics", "debug"].map(Schema::new);
    let planner = planner();
    let address = format!("http://{}/v1/", planner.address);
    let (mut events, mut spans) = (BTreeSet::new(), BTreeSet::new());
    for policy in ["none", "summary", "full"] {
        let folder = notes();
        let mut command = Command::new(ptc_compile());
        command.current_dir(folder.path()).args(["run", "upstreams.json", "--debug-tool", "--trace-dir", "traces"]);
        command.args(["--trace-payloads", policy, "--agentic", "--agentic-base-url", &address, "--agentic-model", "replayed"]);
        command.args([
            "--aggregator-read-only",
            "--agentic-max-turns",
            "4",
            "--agentic-retry-turns",
            "2",
            "--agentic-trace-prompts",
        ]);
        let mut client = Client::of(&mut command);
        client.initialize();
        for program in [
            "(println 1) (+ 1 2)",
            "(count (tool/value {:server \"notes\" :tool \"list_notes\"}))",
            "(tool/call {:server \"notes\" :tool \"read_note\" :args {:id 99}})",
            "(fail {:why \"no\"})",
            "(count 5)",
            "(count",
        ] {
            client.eval(program);
        }
        let mut call = |name: &str, arguments: Value| {
            let answer = client.request("tools/call", &json!({ "name": name, "arguments": arguments }));
            answer["result"]["structuredContent"].clone()
        };
        let answer =
            call("lisp_eval", json!({ "program": "data/a", "context": { "a": [1] }, "output_schema": { "type": "array" } }));
        metrics.check(&answer["ptc_metrics"]);
        call("lisp_eval", json!({}));
        let ended = call("lisp_task", json!({ "task": "How many notes?" }));
        assert_eq!(ended["status"], "ok", "{ended}");

        let recent = call("lisp_debug", json!({ "op": "recent" }));
        let calls = recent["calls"].as_array().expect("a list");
        assert_eq!(calls.len(), 9, "{recent}");
        for call in calls {
            debug.check(call);
        }
        let id = calls[0]["request_id"].clone();
        let got = call("lisp_debug", json!({ "op": "get", "request_id": id }));
        assert_eq!(got["source"], "trace_file");
        debug.check(&got["record"]);
        let lines = trace_lines(&folder.path().join("traces"));
        fs::remove_dir_all(folder.path().join("traces")).expect("the traces can be removed");
        let got = call("lisp_debug", json!({ "op": "get", "request_id": id }));
        assert_eq!(got["source"], "ring_buffer");
        debug.check(&got["record"]);

        for line in lines {
            trace.check(&line);
            events.extend(line["event"].as_str().map(str::to_owned));
            spans.extend(line["span"].as_str().map(str::to_owned));
        }
    }
    assert_eq!(events.iter().map(String::as_str).collect::<Vec<_>>(), ["call.fail", "call.start", "call.success", "span"]);
    assert_eq!(spans.iter().map(String::as_str).collect::<Vec<_>>(), ["analyze", "eval", "planner", "upstream_call"]);
    assert!(!trace.validator.is_valid(&json!({ "event": "call.end" })));
}
