//! The quickstart, as its reader meets it: built from the committed lock file, asked with and without its upstreams.

use std::process::Command;
use std::sync::{Mutex, PoisonError};

use ptc_tests::deployment::{quickstart, workspace};
use ptc_tests::mcp::Client;
use ptc_tests::process::run;
use serde_json::{Value, json};

/// Held by a test to which it matters whether somebody serves the quickstart's ports.
static PORTS: Mutex<()> = Mutex::new(());

#[test]
fn the_catalog_answers_with_no_upstream_alive() {
    let answer = run(Command::new(quickstart()).args(["eval", "(dir \"petstore\")"])).success();
    assert_eq!(
        answer.trim_end(),
        "user=> [\"petstore/get-pet - One pet by its id.\" \"petstore/list-pets - Pets in the order of their ids.\"]"
    );
}

#[test]
fn a_dead_upstream_is_a_value_and_not_a_crash() {
    let _ports = PORTS.lock().unwrap_or_else(PoisonError::into_inner);
    // Nothing serves the port: the HTTP upstreams live only while the stdio one runs.
    let program = "(:reason (tool/call {:server \"petstore\" :tool \"list-pets\"}))";
    let answer = run(Command::new(quickstart()).args(["eval", program])).success();
    assert_eq!(answer.trim_end(), "user=> :upstream_unavailable");
}

#[test]
fn one_program_joins_all_three_upstreams() {
    let _ports = PORTS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut client = Client::start(quickstart(), &[]);
    let hello = client.initialize();
    assert_eq!(hello.pointer("/serverInfo/name"), Some(&json!("ptc_lisp")));

    let program = std::fs::read_to_string(workspace().join("fixtures/quickstart/due.clj")).expect("the program is there");
    assert_eq!(client.eval(&program), "user=> {\"Ada\" 1985 \"Grace\" 1640 \"Ken\" 1660}");

    // Another call of the same server sees nothing of the first one's definitions.
    client.eval("(def secret-of-a-call 42)");
    let other = client.eval("secret-of-a-call");
    assert!(other.contains("unbound"), "{other}");
    assert_eq!(client.finish(), Some(0));
}

#[test]
fn one_tool_is_offered() {
    let mut client = Client::start(quickstart(), &[]);
    client.initialize();
    let answer = client.request("tools/list", &json!({}));
    let tools = answer.pointer("/result/tools").and_then(Value::as_array).expect("a list of tools");
    let names: Vec<_> = tools.iter().filter_map(|tool| tool.get("name")).collect();
    assert_eq!(names, [&json!("lisp_eval")]);
    assert_eq!(client.finish(), Some(0));
}
