//! What an owner finds of another one: a run over every tool and every endpoint.

use std::time::Duration;

use ptc_catalog::{Condition, Deployment, Grant, Policy, Rule, StoredProgram};
use ptc_runtime::server::http::route::{Endpoint, Surface};
use ptc_viewer::routes::Route;
use serde_json::{Value, json};

use super::access::{scratch, until};
use super::owners::{ALICE, BOB, tokens_file, tool};
use super::site::{Answer, Client, Site, stateless};
use crate::Test;

pub(super) const TESTS: &[Test] = &[
    ("http::owner_finds_nothing_of_another_in_any_tool_or_endpoint", || tokens_of_a_file_are_separated("separate")),
    ("http::owner_finds_nothing_of_another_with_a_policy", || tokens_of_a_file_are_separated("separate with a policy")),
];

/// A tool that is a stored program.
static PROGRAMS: [StoredProgram; 1] = [StoredProgram {
    name: "keep",
    description: "",
    source: "(str \"kept \" data/text)",
    digest: "",
    args: r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#,
    output_schema: "",
}];

const fn rule(name: &'static str, when: &'static [Condition], allow: &'static [Grant]) -> Rule {
    Rule { name, when, allow, calls_per_program: None, calls_per_minute: None }
}

static POLICY: Policy = Policy {
    rules: &[
        rule("alice", &[Condition::Owner("alice")], &[Grant { upstream: "child", tools: &["echo"], arguments: &[] }]),
        rule("bob", &[Condition::Owner("bob")], &[Grant { upstream: "child", tools: &["pid"], arguments: &[] }]),
    ],
};

/// Returns a deployment with a tool of each kind.
pub(crate) fn deployment(has_policy: bool) -> &'static Deployment {
    let (name, policy) = if has_policy { ("separate with a policy", Some(&POLICY)) } else { ("separate", None) };
    Box::leak(Box::new(Deployment { name, policy, programs: &PROGRAMS, ..*crate::agentic::deployment() }))
}

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
    assert!(tool(client, REQUEST, "keep", &json!({ "text": MARK })).text().contains(MARK));
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

fn tokens_of_a_file_are_separated(role: &str) {
    let path = scratch(&format!("{role}-tokens"));
    tokens_file(&path, &[("alice", ALICE), ("bob", BOB)]);
    let options = ["--http-tokens-file", path.to_str().expect("plain text")];
    check_separation(role, "name:alice", &options, &with_tokens([ALICE, BOB]));
    std::fs::remove_file(&path).expect("it is there");
}

/// Returns how clients with these tokens connect.
pub(super) fn with_tokens(tokens: [&'static str; 2]) -> impl Fn(&Site, Surface, usize) -> Client {
    move |site, surface, who| Client { token: Some(tokens[who]), ..Client::connect(address_of(site, surface)) }
}

/// Returns the address of a listener.
pub(super) fn address_of(site: &Site, surface: Surface) -> std::net::SocketAddr {
    match surface {
        Surface::Clients => site.address,
        Surface::Admin => site.admin.expect("an admin listener"),
    }
}

/// Runs a server with this role, whose options let two owners in. Checks that the second one finds nothing of the first one, whose id is
/// `owner`, in any tool or endpoint. `connect` returns a client of the first or second owner, before its handshake.
pub(super) fn check_separation(role: &str, owner: &str, options: &[&str], connect: &dyn Fn(&Site, Surface, usize) -> Client) {
    let traces = scratch(&format!("{role}-{}", owner.split(':').next().unwrap_or_default()));
    let planner = crate::agentic::planner(&format!("```clojure\n(return \"{MARK}\")\n```"));
    let mut command = crate::agentic::with_planner(role, &planner, &["--agentic-allow-writes", "--agentic-include-program"]);
    command.args(["--http", "--http-port", "0", "--sessions", "--debug-tool", "--trace-payloads", "full", "--http-viewer"]);
    command.args(["--http-metrics", "--http-admin-port", "0", "--trace-dir"]).arg(&traces).args(options);
    // Her endless program must not end before the test does.
    command.args(["--program-timeout-ms", "60000"]);
    let site = Site::of(&mut command);
    let connected = |who| {
        let mut client = connect(&site, Surface::Clients, who);
        assert_eq!(client.initialize().status, 200);
        client
    };
    let mut alice = connected(0);
    let ids = use_everything(&mut alice);
    // A call of hers is in flight.
    let mut waiting = Client { session: alice.session.clone(), ..connect(&site, Surface::Clients, 0) };
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

    let mut bob = connected(1);
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
        ("keep", json!({ "text": "of bob" }), None),
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
    for method in ["ping", "tools/list", "server/discover", "resources/list"] {
        let (headers, body) = stateless(1, method, json!({}));
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        check(&format!("stateless {method}"), &bob.ask("POST", "/mcp", &headers, &body));
        check(method, &bob.post(&json!({ "jsonrpc": "2.0", "id": 1, "method": method })));
    }
    check("initialize", &connect(&site, Surface::Clients, 1).initialize());
    check("shutdown", &connected(1).post(&json!({ "jsonrpc": "2.0", "id": 1, "method": "shutdown" })));
    let one = format!("/viewer/api/calls/{}", ids.trace);
    let stolen = [("Mcp-Session-Id", ids.protocol_session.as_str())];
    let known = [("If-None-Match", "*")];
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": REQUEST } }).to_string();
    let metadata = if options.contains(&"--http-oauth-issuer") { 200 } else { 404 };
    let of_clients = [
        (Endpoint::Health, "GET", "/health", &[][..], "", 200),
        (Endpoint::Ready, "GET", "/ready", &[], "", 200),
        (Endpoint::Metrics, "GET", "/metrics", &[], "", 200),
        (Endpoint::Pages, "GET", "/viewer/", &[], "", 200),
        (Endpoint::Pages, "GET", "/viewer/api/calls", &[], "", 200),
        (Endpoint::Pages, "GET", "/viewer/api/calls?limit=5000", &[], "", 200),
        (Endpoint::Pages, "GET", one.as_str(), &[], "", 404),
        (Endpoint::Pages, "GET", one.as_str(), &known, "", 404),
        (Endpoint::Pages, "OPTIONS", one.as_str(), &[], "", 405),
        (Endpoint::Mcp, "GET", "/mcp", &[], "", 405),
        (Endpoint::Mcp, "OPTIONS", "/mcp", &[], "", 405),
        (Endpoint::Mcp, "POST", "/mcp", &[], &cancel, 202),
        (Endpoint::Mcp, "POST", "/mcp", &stolen, &cancel, 404),
        (Endpoint::Mcp, "DELETE", "/mcp", &stolen, "", 404),
        (Endpoint::ResourceMetadata, "GET", "/.well-known/oauth-protected-resource", &[], "", metadata),
        (Endpoint::ResourceMetadata, "GET", "/.well-known/oauth-protected-resource/mcp", &[], "", metadata),
    ];
    for endpoint in Endpoint::ALL {
        assert!(of_clients.iter().any(|(of, ..)| *of == endpoint), "{endpoint:?} is not in the table of this test");
    }
    for route in Route::ALL {
        let is_route = |target: &str| Route::from_path(target.split('?').next().unwrap_or_default()) == Some(route);
        assert!(of_clients.iter().any(|(_, _, target, ..)| is_route(target)), "{route:?} is not in the table of this test");
    }
    // The admin listener has some of these endpoints, and nothing else.
    let of_admin = of_clients.iter().map(|(endpoint, method, target, headers, body, status)| {
        let status = if endpoint.is_on(Surface::Admin) { *status } else { 404 };
        (Surface::Admin, *method, *target, *headers, *body, status)
    });
    let of_clients = of_clients
        .iter()
        .map(|(_, method, target, headers, body, status)| (Surface::Clients, *method, *target, *headers, *body, *status));
    for (surface, method, target, headers, body, status) in of_clients.chain(of_admin) {
        let mut client = connect(&site, surface, 1);
        client.session.clone_from(&bob.session);
        let answer = client.ask(method, target, headers, body);
        assert_eq!(answer.status, status, "{surface:?} {method} {target}: {answer:?}");
        check(&format!("{surface:?} {method} {target}"), &answer);
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
