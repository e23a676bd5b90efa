//! Tests `ptc-compile mock` with the official SDKs and the Inspector, in both eras and over both transports.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use ptc_tests::deployment::ptc_compile;
use ptc_tests::peers::{newer_node_program, node_script, python_script};
use ptc_tests::process::{Background, free_port, run};
use serde_json::{Value, json};

const OPTIONS: [&str; 7] =
    ["--era", "both", "--cassette", "due.cassette.json", "--generate", "--fault", "notes/list_notes=tool_error"];

/// Writes a command without arguments that serves an upstream on standard input and output.
fn command(folder: &Path, upstream: &str) -> String {
    let path = folder.join(upstream);
    let (program, options) = (ptc_compile().display(), OPTIONS.map(|option| format!("'{option}'")).join(" "));
    let script =
        format!("#!/bin/sh\ncd '{}' && exec '{program}' mock upstreams.json --upstream {upstream} {options}\n", folder.display());
    std::fs::write(&path, script).expect("a script");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).expect("it can be run");
    path.display().to_string()
}

/// Calls a tool with each client, and returns the outcomes with the names of the clients.
fn outcomes(target: &str, tool: &str, arguments: &Value) -> Vec<(String, Value)> {
    let arguments = arguments.to_string();
    let output = |command: &mut Command| serde_json::from_str::<Value>(&run(command).success()).expect("one JSON object");
    let mut all = vec![("TypeScript".to_owned(), output(node_script("client.mjs").args([target, &arguments, tool])))];
    for mode in ["auto", "legacy", "2026-07-28"] {
        all.push((format!("Python {mode}"), output(python_script("client.py").args([mode, target, &arguments, tool]))));
    }
    all
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn official_clients_call_the_mock_in_both_eras_over_both_transports() {
    let folder = tempfile::tempdir().expect("a folder");
    run(Command::new(ptc_compile()).current_dir(folder.path()).args(["demo", "--write", "."])).success();
    let port = free_port();
    let mut listening = Command::new(ptc_compile());
    listening.current_dir(folder.path()).args(["mock", "upstreams.json", "--listen", &format!("127.0.0.1:{port}")]).args(OPTIONS);
    let _listening = Background::start(&mut listening).ready_on(port);
    let targets = |upstream: &str| [format!("http://127.0.0.1:{port}/{upstream}/mcp"), command(folder.path(), upstream)];
    let mut generated: Vec<(String, Value)> = Vec::new();
    for target in targets("notes") {
        for (client, seen) in outcomes(&target, "read_note", &json!({ "name": "watchlist" })) {
            let expected = (Some(&json!(["list_notes", "read_note"])), Some(&json!("Ada\nGrace\nKen\n")), Some(&json!(false)));
            assert_eq!((seen.get("tools"), seen.get("text"), seen.get("isError")), expected, "{client} {target}");
        }
        for (client, seen) in outcomes(&target, "list_notes", &json!({})) {
            assert_eq!(seen.get("isError"), Some(&json!(true)), "{client} {target}: {seen}");
        }
    }
    for target in targets("visits") {
        // The SDKs check the structured content against the output schema.
        for (client, seen) in outcomes(&target, "list_visits", &json!({ "unpaid_only": true })) {
            generated.push((format!("{client} {target}"), seen.get("structured").expect("a value").clone()));
        }
        for era in ["legacy", "auto", "modern"] {
            let inspector = |more: &[&str]| {
                let mut command = newer_node_program(".bin/mcp-inspector");
                command.args(["--cli", &target, "--protocol-era", era]).args(more);
                serde_json::from_str::<Value>(&run(&mut command).success()).expect("one JSON object")
            };
            let listed = inspector(&["--method", "tools/list", "--strict"]);
            assert_eq!(listed.pointer("/tools/0/name"), Some(&json!("list_visits")), "{target} {era}: {listed}");
            let called = inspector(&["--method", "tools/call", "--tool-name", "list_visits", "--tool-arg", "unpaid_only=true"]);
            generated.push((format!("Inspector {era} {target}"), called.get("structuredContent").expect("a value").clone()));
        }
    }
    assert_eq!(generated.len(), 14);
    let (_, first) = generated.first().expect("an answer");
    assert!(first.get("visits").is_some_and(Value::is_array), "{first}");
    for (client, value) in &generated {
        assert_eq!(value, first, "{client}");
    }
}
