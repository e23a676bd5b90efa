//! Tests `tool/value` and `tool/all` in a server with sessions and stored programs, and in the REPL.

use std::process::Command;

use ptc_tests::deployment::{ptc_compile, workspace};
use ptc_tests::mcp::Client;
use ptc_tests::process::run;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Makes a folder with a config of the mock CRM, which has 46 customers in pages of 20, and of a stored program.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let crm = workspace().join("tests/programs/upstreams/crm.json");
    let upstream = json!({ "transport": "mcp_stdio", "command": env!("CARGO_BIN_EXE_mock-upstream"), "args": [crm] });
    let program = json!({
        "file": "names.clj",
        "description": "Names of the customers of a tier.",
        "args": { "type": "object", "properties": { "tier": { "type": "string" } }, "required": ["tier"] },
        "output_schema": { "type": "array", "items": { "type": "string" } },
    });
    let config = json!({ "upstreams": { "crm": upstream }, "programs": { "names": program } });
    std::fs::write(folder.path().join("upstreams.json"), config.to_string()).expect("a config");
    let names = r#"(map :name (tool/all {:server "crm" :tool "list_customers" :args {:tier data/tier}}))"#;
    std::fs::write(folder.path().join("names.clj"), names).expect("a program");
    folder
}

fn command(folder: &TempDir, args: &[&str]) -> Command {
    let mut command = Command::new(ptc_compile());
    command.args(args).current_dir(folder.path()).env("XDG_CONFIG_HOME", folder.path().join("nothing here"));
    command
}

fn data(client: &mut Client, tool: &str, arguments: &Value) -> Value {
    let answer = client.request("tools/call", &json!({ "name": tool, "arguments": arguments }));
    answer.pointer("/result/structuredContent").unwrap_or_else(|| panic!("{answer}")).clone()
}

#[test]
fn server_reads_pages_in_sessions_and_stored_programs() {
    let folder = folder();
    let mut client = Client::of(&mut command(&folder, &["run", "upstreams.json", "--sessions", "--response-profile", "debug"]));
    client.initialize();
    let opened = data(&mut client, "lisp_session_start", &json!({}));
    let mut session = |program: &str| {
        data(&mut client, "lisp_session_eval", &json!({ "session_id": opened.get("session_id"), "program": program }))
    };
    let kept = session(r#"(def customers (tool/all {:server "crm" :tool "list_customers"})) (count customers)"#);
    assert_eq!(kept.get("result"), Some(&json!("user=> 46")), "{kept}");
    // The pages have 50 items, which is the declared maximum, so one call is sufficient.
    assert_eq!(kept.get("upstream_calls").and_then(Value::as_array).map(Vec::len), Some(1), "{kept}");
    let later = session(
        r#"[(count customers) (:name (tool/value {:server "crm" :tool "get_customer" :args {:customer_id (:id (first customers))}}))]"#,
    );
    assert!(later.get("result").and_then(Value::as_str).is_some_and(|text| text.starts_with("user=> [46 \"")), "{later}");
    let pages = session(r#"(count (tool/all {:server "crm" :tool "list_customers" :args {:per_page 10}}))"#);
    assert_eq!(pages.get("upstream_calls").and_then(Value::as_array).map(Vec::len), Some(5), "each page is a call: {pages}");
    let first = session(r#"(count (:customers (tool/value {:server "crm" :tool "list_customers"})))"#);
    let note = "crm/list_customers: this was page 1 of 3, with 20 of 46 items";
    assert!(first.to_string().contains(note), "{first}");
    let listed = r#"(mapv :name (filter #(= "premium" (:tier %)) (tool/all {:server "crm" :tool "list_customers"})))"#;
    let listed = data(&mut client, "lisp_eval", &json!({ "program": format!("(json/generate-string {listed})") }));
    let names = client.request("tools/call", &json!({ "name": "names", "arguments": { "tier": "premium" } }));
    let names = names.pointer("/result/content/0/text").and_then(Value::as_str).unwrap_or_else(|| panic!("{names}"));
    assert!(names.len() > 50, "{names}");
    assert_eq!(listed.get("result"), Some(&json!(format!("user=> {names:?}"))));
    assert_eq!(client.finish(), Some(0));
}

#[test]
fn repl_reads_pages_of_a_list_whose_tools_it_has_not_seen() {
    let folder = folder();
    let programs = [
        r#"(def customers (tool/all {:server "crm" :tool "list_customers" :args {:per_page 10}}))"#,
        "(count customers)",
        r#"(count (pmap #(tool/value {:server "crm" :tool "get_customer" :args {:customer_id (:id %)}}) (take 3 customers)))"#,
    ];
    let script: Vec<&str> = programs.iter().flat_map(|program| ["-e", program]).collect();
    let printed = run(&mut command(&folder, &[&["repl", "upstreams.json"], script.as_slice()].concat())).success();
    assert_eq!(printed, "#'customers\n46\n3\n");
}
