//! What an owner finds of another one: a run over every tool and every endpoint.

use std::time::Duration;

use serde_json::{Value, json};

use super::access::{scratch, until};
use super::owners::{ALICE, BOB, tokens_file, tool};
use super::site::{Answer, Client, Site, stateless};
use crate::Test;

pub(super) const TESTS: &[Test] =
    &[("http::owner_finds_nothing_of_another_in_any_tool_or_endpoint", owner_finds_nothing_of_another_in_any_tool_or_endpoint)];

/// The ids of what an owner has made.
struct Ids {
    session: String,
    protocol_session: String,
    trace: String,
}

/// A text that is in everything that the first owner makes.
const MARK: &str = "made-by-alice";
/// The id of her requests.
const REQUEST: &str = "request-made-by-alice";

/// Calls every tool with arguments that contain or find the mark of an owner.
fn use_everything(client: &mut Client) -> Ids {
    let define = format!("(def made \"{MARK}\")");
    assert!(tool(client, REQUEST, "lisp_eval", &json!({ "program": format!("\"{MARK}\"") })).text().contains(MARK));
    let started = tool(client, REQUEST, "lisp_session_start", &json!({ "title": MARK })).json();
    let session = started["result"]["structuredContent"]["session_id"].as_str().expect("an id").to_owned();
    tool(client, REQUEST, "lisp_session_eval", &json!({ "session_id": session, "program": define }));
    let listed = tool(client, REQUEST, "lisp_session_list", &json!({})).body;
    assert!(listed.contains(MARK) && listed.contains(&session), "{listed}");
    assert!(tool(client, REQUEST, "lisp_session_inspect", &json!({ "session_id": session })).body.contains("made"));
    let task = tool(client, REQUEST, "lisp_task", &json!({ "task": MARK })).body;
    assert!(task.contains(MARK), "{task}");
    let recent = tool(client, REQUEST, "lisp_debug", &json!({ "op": "recent" })).body;
    assert!(recent.contains(REQUEST), "{recent}");
    let trace = client_calls(client)["calls"][0]["id"].as_str().expect("a trace").to_owned();
    Ids { session, protocol_session: client.session.clone().expect("a session"), trace }
}

fn client_calls(client: &mut Client) -> Value {
    client.ask("GET", "/viewer/api/calls", &[], "").json()
}

fn owner_finds_nothing_of_another_in_any_tool_or_endpoint() {
    let path = scratch("separate");
    tokens_file(&path, &[("alice", ALICE), ("bob", BOB)]);
    let options = ["--http-tokens-file", path.to_str().expect("plain text")];
    check_separation("separate-traces", &options, [ALICE, BOB], "name:alice");
    std::fs::remove_file(&path).expect("it is there");
}

/// Runs a server whose options let the two tokens in. Checks that the owner of the second one finds nothing of the first one, whose id is
/// `owner`, in any tool or endpoint. `folder` is the name of a folder for traces.
pub(super) fn check_separation(folder: &str, options: &[&str], [first, second]: [&'static str; 2], owner: &str) {
    let traces = scratch(folder);
    let planner = crate::agentic::planner(&format!("```clojure\n(return \"{MARK}\")\n```"));
    let mut command = crate::agentic::with_planner("tasks", &planner, &["--agentic-allow-writes", "--agentic-include-program"]);
    command.args(["--http", "--http-port", "0", "--sessions", "--debug-tool", "--trace-payloads", "full", "--http-viewer"]);
    command.args(["--http-metrics", "--trace-dir"]).arg(&traces).args(options);
    let site = Site::of(&mut command);
    let mut alice = site.authenticated(first);
    let ids = use_everything(&mut alice);
    // A call of hers is in flight.
    let mut waiting = site.beside(&alice);
    waiting.send(
        "POST",
        "/mcp",
        &[],
        &json!({ "jsonrpc": "2.0", "id": REQUEST, "method": "tools/call", "params":
        { "name": "lisp_eval", "arguments": { "program": super::site::ENDLESS } } })
        .to_string(),
    );
    until("the call runs", || {
        std::thread::sleep(Duration::from_millis(5));
        alice.count("ptc_programs_running") == 1
    });

    let mut bob = site.authenticated(second);
    let stats = tool(&mut bob, "b", "lisp_debug", &json!({ "op": "stats" })).json();
    let stats = &stats["result"]["structuredContent"];
    assert_eq!((&stats["ring_count"], &stats["window"]["calls"]), (&json!(0), &json!(0)), "{stats}");
    assert_eq!(client_calls(&mut bob), json!({ "total": 0, "calls": [] }));
    let listed = bob.post(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })).json();
    let tools: Vec<&str> =
        listed["result"]["tools"].as_array().expect("tools").iter().filter_map(|tool| tool["name"].as_str()).collect();
    let session = json!({ "session_id": ids.session });
    let unknown = json!({ "session_id": format!("{}0", ids.session) });
    let with = |id: &Value, name: &str, value: Value| {
        let mut arguments = id.clone();
        arguments[name] = value;
        arguments
    };
    // Each tool, with arguments that would find what she has made, and with those of something that does not exist.
    let pairs: Vec<(&str, Value, Option<Value>)> = vec![
        ("lisp_eval", json!({ "program": "made" }), None),
        ("lisp_eval", json!({ "program": "[*1 *2 *3 *e]" }), None),
        ("lisp_session_start", json!({ "title": "of bob" }), None),
        ("lisp_session_list", json!({}), None),
        ("lisp_session_eval", with(&session, "program", "made".into()), Some(with(&unknown, "program", "made".into()))),
        ("lisp_session_inspect", session.clone(), Some(unknown.clone())),
        ("lisp_session_forget", with(&session, "names", json!(["made"])), Some(with(&unknown, "names", json!(["made"])))),
        ("lisp_session_close", session.clone(), Some(unknown.clone())),
        ("lisp_debug", json!({ "op": "recent", "limit": 200 }), None),
        ("lisp_debug", json!({ "op": "stats" }), None),
        (
            "lisp_debug",
            json!({ "op": "get", "request_id": REQUEST }),
            Some(json!({ "op": "get", "request_id": "request-of-none" })),
        ),
        ("lisp_task", json!({ "task": "of bob" }), None),
    ];
    for name in &tools {
        assert!(pairs.iter().any(|(tool, ..)| tool == name), "{name} is not in the table of this test");
    }
    let hash = ptc_runtime::digest::owner_hash(owner);
    let check = |place: &str, answer: &Answer| {
        let text = format!("{:?} {}", answer.headers, answer.body);
        for part in [MARK, REQUEST, &ids.session, &ids.protocol_session, &ids.trace, &hash] {
            // An argument is repeated, and the replayed planner returns the same to both owners.
            let is_own = place.contains(part) || (part == MARK && place.contains("lisp_task"));
            assert!(is_own || !text.contains(part), "{place}: {part} in {text}");
        }
    };
    for (name, arguments, unknown) in &pairs {
        let found = tool(&mut bob, "b", name, arguments);
        check(&format!("{name} {arguments}"), &found);
        if let Some(unknown) = unknown {
            // What belongs to another owner cannot be distinguished from what does not exist.
            let text = |answer: &Answer, arguments: &Value| {
                let id = arguments["session_id"].as_str().or(arguments["request_id"].as_str()).expect("an id");
                answer.json()["result"]["structuredContent"].to_string().replace(id, "ID")
            };
            let missing = tool(&mut bob, "b", name, unknown);
            assert_eq!(text(&found, arguments), text(&missing, unknown), "{name}");
        }
        let (headers, body) = stateless(1, "tools/call", json!({ "name": name, "arguments": arguments }));
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        check(&format!("stateless {name} {arguments}"), &bob.ask("POST", "/mcp", &headers, &body));
    }
    let one = format!("/viewer/api/calls/{}", ids.trace);
    let stolen = [("Mcp-Session-Id", ids.protocol_session.as_str())];
    let known = [("If-None-Match", "*")];
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": REQUEST } }).to_string();
    for (method, target, headers, body, status) in [
        ("GET", "/health", &[][..], "", 200),
        ("GET", "/ready", &[], "", 200),
        ("GET", "/metrics", &[], "", 200),
        ("GET", "/viewer/", &[], "", 200),
        ("GET", "/viewer/api/calls", &[], "", 200),
        ("GET", "/viewer/api/calls?limit=5000", &[], "", 200),
        ("GET", one.as_str(), &[], "", 404),
        ("GET", one.as_str(), &known, "", 404),
        ("GET", "/mcp", &[], "", 405),
        ("POST", "/mcp", &[], &cancel, 202),
        ("POST", "/mcp", &stolen, &cancel, 404),
        ("DELETE", "/mcp", &stolen, "", 404),
    ] {
        let answer = bob.ask(method, target, headers, body);
        assert_eq!(answer.status, status, "{method} {target}: {answer:?}");
        check(&format!("{method} {target}"), &answer);
    }
    for (method, target) in [("GET", "/.well-known/oauth-protected-resource"), ("OPTIONS", "/mcp"), ("OPTIONS", &one)] {
        check(&format!("{method} {target}"), &bob.ask(method, target, &[], ""));
    }
    // His own calls are there, and nothing of his was hidden with hers.
    let of_bob = client_calls(&mut bob);
    assert!(of_bob["total"].as_u64().is_some_and(|total| total > 0) && of_bob.to_string().contains("of bob"), "{of_bob}");
    // Hers are untouched, and her call still runs.
    assert_eq!(alice.count("ptc_programs_running"), 1);
    assert_eq!(alice.ask("GET", &one, &[], "").status, 200);
    assert!(tool(&mut alice, "a", "lisp_session_eval", &with(&session, "program", "made".into())).text().contains(MARK));
    assert!(!client_calls(&mut alice).to_string().contains("of bob"));
    drop(site);
    std::fs::remove_dir_all(&traces).expect("it is there");
}
