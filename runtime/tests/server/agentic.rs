//! `lisp_task`, tested against an OpenAI-compatible server that replays conversations.

mod conversations;
mod scheduling;

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use ptc_catalog::{
    Annotations, Arg, Binding, Catalog, Deployment, EnvPart, McpStdio, Source, Tool, Tools, Transport, Type, Types, Upstream,
};
use ptc_runtime::settings::Settings;
use ptc_runtime::tools_list::tools_list_json;
use serde_json::{Value, json};

use crate::Test;
use crate::forward_proxy::ForwardProxy;
use crate::peer::{Peer, server};
use crate::web::{Answer, End, Web};

/// The tests of this module.
pub(crate) const TESTS: &[Test] = &[
    ("agentic::recorded_agentic_conversations_are_reproduced", conversations::recorded_agentic_conversations_are_reproduced),
    (
        "agentic::task_tool_is_refused_without_upstreams_or_permission_for_writes",
        task_tool_is_refused_without_upstreams_or_permission_for_writes,
    ),
    ("agentic::every_fault_at_start_is_reported", every_fault_at_start_is_reported),
    ("agentic::task_tool_is_described_to_clients", task_tool_is_described_to_clients),
    ("agentic::model_request_has_documented_headers_and_body", model_request_has_documented_headers_and_body),
    ("agentic::key_echoed_by_the_model_is_redacted", key_echoed_by_the_model_is_redacted),
    ("agentic::prompts_are_in_traces_only_on_request", prompts_are_in_traces_only_on_request),
    ("agentic::trace_has_the_outcome_of_each_turn", trace_has_the_outcome_of_each_turn),
    ("agentic::flags_take_precedence_over_the_config_file", flags_take_precedence_over_the_config_file),
    ("agentic::cancelled_task_sends_no_further_requests", cancelled_task_sends_no_further_requests),
    ("agentic::server_ends_during_a_model_request", server_ends_during_a_model_request),
    ("agentic::model_is_asked_through_the_proxy", model_is_asked_through_the_proxy),
    ("agentic::waiting_tasks_use_no_threads", scheduling::waiting_tasks_use_no_threads),
    (
        "agentic::wait_times_of_a_task_are_in_its_response_and_diagnostics",
        scheduling::wait_times_of_a_task_are_in_its_response_and_diagnostics,
    ),
    #[cfg(feature = "http-server")]
    (
        "agentic::state_between_programs_counts_in_the_memory_budget",
        scheduling::state_between_programs_counts_in_the_memory_budget,
    ),
];

const KEY: &str = "sk-not-a-real-key-0123456789";
const VARIABLE: &str = "PTC_TEST_PLANNER_KEY";

const fn tool(name: &'static str, args: &'static [Arg], read_only: Option<bool>, definition: &'static str) -> Tool {
    let annotations = Annotations { read_only, ..Annotations::NONE };
    Tool {
        name,
        description: "",
        args,
        closed: true,
        doc: "",
        definition,
        digest: "",
        effects: annotations,
        annotations,
        operation: None,
        paging: "",
        call_timeout_ms: None,
    }
}

const TEXT: Arg = Arg { name: "text", required: true, types: Types::from_types(&[Type::String]), label: "string", allowed: "" };
const SAID: &str = r#"{"outputSchema":{"type":"object","properties":{"said":{"type":"string"}},"required":["said"]}}"#;

static TOOLS: [Tool; 2] = [tool("echo", &[TEXT], Some(true), SAID), tool("pid", &[], None, "{}")];

/// Returns a deployment with a read-only tool and a tool without declared effects. Its upstream is this binary in another role.
pub(crate) fn deployment() -> &'static Deployment {
    let command = std::env::current_exe().expect("a test has a file").to_string_lossy().into_owned().leak();
    let transport =
        Transport::McpStdio(McpStdio { env: &[(crate::ROLE, &[EnvPart::Text("upstream")])], ..McpStdio::new(command) });
    let upstream = Upstream { name: "child", description: "A child process.", transport, tools: Tools::table(&TOOLS) };
    let catalog = Box::leak(Box::new(Catalog { digest: "", search_index: &[], upstreams: Box::leak(Box::new([upstream])) }));
    let credentials = &[Binding { name: "planner-key", source: Source::Env { var: VARIABLE } }];
    Box::leak(Box::new(Deployment { name: "tasks", compiler: "none", credentials, catalog, ..Deployment::EMPTY }))
}

/// Starts a planner that returns the recorded answers.
fn replay(planner: Vec<Value>) -> Web {
    let next = AtomicUsize::new(0);
    Web::start(move |asked| {
        let at = next.fetch_add(1, Ordering::SeqCst);
        assert_eq!((asked.method.as_str(), asked.target.as_str()), ("POST", "/v1/chat/completions"));
        planner.get(at).map_or_else(|| Answer::json(418, "\"nothing more was recorded\""), answer)
    })
}

/// Starts a planner that always says the same.
#[cfg(feature = "http-server")]
pub(crate) fn planner(says: &str) -> Web {
    let says = json!({ "say": says });
    Web::start(move |_| answer(&says))
}

/// Converts a recorded answer to an HTTP response.
fn answer(recorded: &Value) -> Answer {
    let said = recorded["say"].as_str().map(|text| {
        let finish = recorded["finish"].as_str().unwrap_or("stop");
        json!({
            "id": "x", "object": "chat.completion", "model": "replayed",
            "choices": [{ "index": 0, "message": { "role": "assistant", "content": text }, "finish_reason": finish }],
            "usage": recorded["usage"],
        })
    });
    let body = match (said, recorded["raw"].as_str()) {
        (Some(said), _) => said.to_string(),
        (None, Some(raw)) => raw.to_owned(),
        (None, None) => recorded["body"].to_string(),
    };
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
    let first = |bytes: &Value| (0, [head.as_bytes(), &body.as_bytes()[..bytes.as_u64().expect("a number") as usize]].concat());
    if recorded["hang"] == true {
        Answer::Hang
    } else if recorded["close"] == true {
        Answer::Close
    } else if let Some(chunks) = recorded["stream"].as_array() {
        Answer::Stream(chunks.iter().map(|chunk| (0, chunk.as_str().expect("a text").to_owned())).collect())
    } else if recorded["cut"].is_u64() {
        Answer::Raw(vec![first(&recorded["cut"])], End::Close)
    } else if recorded["stall"].is_u64() {
        Answer::Raw(vec![first(&recorded["stall"])], End::Hang)
    } else if let Some(pieces) = recorded["pieces"].as_u64() {
        let whole = [head.as_bytes(), body.as_bytes()].concat();
        let parts = whole.chunks(whole.len().div_ceil(pieces as usize)).map(|part| (20, part.to_vec()));
        Answer::Raw(parts.collect(), End::Close)
    } else {
        let lines = recorded["headers"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
        let lines = lines.chain(["Content-Type: application/json".to_owned()]).collect();
        Answer::Full(recorded["status"].as_u64().unwrap_or(200) as u16, lines, body.into_bytes())
    }
}

/// Returns a server command that uses the planner.
pub(crate) fn with_planner(role: &str, planner: &Web, flags: &[&str]) -> Command {
    let mut command = server(role);
    command.args(["--agentic", "--agentic-base-url", &format!("http://{}/v1/", planner.address), "--agentic-model", "replayed"]);
    command.args(flags);
    command
}

fn call(server: &mut Peer, arguments: &Value) -> Value {
    let params = json!({ "name": "lisp_task", "arguments": arguments });
    server.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string());
    serde_json::from_str::<Value>(&server.receive()).expect("a line of JSON")["result"].clone()
}

/// Returns the error output of a server that refuses to start.
fn refused(command: &mut Command) -> String {
    let done = command.output().expect("the server runs");
    assert_eq!(done.status.code(), Some(2), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stderr).expect("UTF-8")
}

fn task_tool_is_refused_without_upstreams_or_permission_for_writes() {
    let planner = replay(Vec::new());
    let said = refused(&mut with_planner("plain", &planner, &[]));
    assert!(said.contains("plain: error: --agentic: there are no upstreams"), "{said}");
    let said = refused(&mut with_planner("tasks", &planner, &[]));
    assert!(said.contains("give --aggregator-read-only if they do not, or --agentic-allow-writes if tasks may"), "{said}");
    for (role, flags) in [("tasks", &["--agentic-allow-writes"][..]), ("tasks", &["--aggregator-read-only"]), ("aggregator", &[])]
    {
        let mut server = Peer::of(&mut with_planner(role, &planner, flags));
        assert_eq!(names(&mut server), ["lisp_eval", "lisp_task"], "{role} {flags:?}");
    }
    // Without the flag the tool does not exist.
    let mut server = Peer::start_as("aggregator", &[]);
    assert_eq!(names(&mut server), ["lisp_eval"]);
    let text = call(&mut server, &json!({ "task": "x" }))["content"][0]["text"].clone();
    assert_eq!(text, "unknown_tool: unknown tool: lisp_task\nIt is off: the server has to be started with --agentic.");
    assert_eq!(planner.requests().len(), 0, "starting sends no request");
}

fn tools(server: &mut Peer) -> Vec<Value> {
    server.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    let answer: Value = serde_json::from_str(&server.receive()).expect("a line of JSON");
    answer["result"]["tools"].as_array().cloned().expect("a list")
}

fn names(server: &mut Peer) -> Vec<String> {
    tools(server).iter().filter_map(|tool| tool["name"].as_str()).map(str::to_owned).collect()
}

fn every_fault_at_start_is_reported() {
    let folder = tempfile();
    let (config, summary) = (folder.join("agentic.json"), folder.join("summary.md"));
    std::fs::write(&config, r#"{"tools": [], "max_turns": 0}"#).expect("a file");
    std::fs::write(&summary, "x".repeat(900)).expect("a file");
    let mut command = server("tasks");
    command.args(["--agentic", "--agentic-model", "unknown:gpt", "--agentic-subagent-config"]).arg(&config);
    command.arg("--agentic-capability-summary").arg(&summary);
    let said = refused(&mut command);
    for part in [
        "not all tools are known to change nothing",
        "agentic.json: `tools` is reserved",
        "agentic.json: `max_turns`: expected an integer from 1 to 100, found 0",
        "summary.md: 900 bytes, 800 are allowed (--agentic-capability-summary-max-bytes)",
        "--agentic-model: 'unknown:gpt' is neither an alias",
    ] {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
    // The server rejects a key that is unavailable or would be sent over an unencrypted connection.
    let said = refused(server("aggregator").arg("--agentic"));
    assert!(
        said.contains("credential binding 'openrouter' (environment variable OPENROUTER_API_KEY): is not set or empty"),
        "{said}"
    );
    // A server that is started to be checked offers its tools without the key.
    let mut unkeyed = Peer::of(server("aggregator").args(["--agentic", "--allow-missing-secrets"]));
    assert!(tools(&mut unkeyed).iter().any(|tool| tool["name"] == "lisp_task"));
    let arguments = json!({ "task": "Say hello." });
    let params = json!({ "name": "lisp_task", "arguments": arguments });
    unkeyed.send(&json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params }).to_string());
    let answer = unkeyed.receive();
    assert!(answer.contains("environment variable OPENROUTER_API_KEY): is not set or empty"), "{answer}");
    drop(unkeyed.input.take());
    assert!(unkeyed.end().1.contains("a secret is missing"));
    let said = refused(server("tasks").args(["--agentic", "--agentic-allow-writes", "--agentic-credential", "other"]));
    assert!(said.contains("the config has no credential 'other'; it has planner-key"), "{said}");
    let open = [
        "--agentic",
        "--agentic-allow-writes",
        "--agentic-credential",
        "planner-key",
        "--agentic-base-url",
        "http://planner.example/v1",
    ];
    let said = refused(server("tasks").args(open).env(VARIABLE, KEY));
    assert!(said.contains("http://planner.example/v1 would carry the key unencrypted"), "{said}");
    // A planner without a key is allowed, with a warning.
    for (url, warned) in [("http://planner.example/v1", true), ("http://127.0.0.1:9/v1", false)] {
        let args = ["--agentic", "--agentic-allow-writes", "--agentic-model", "any", "--agentic-base-url", url];
        let mut server = Peer::of(server("tasks").args(args).env(VARIABLE, KEY));
        drop(server.input.take());
        let (status, log) = server.end();
        assert!(status.success() && log.contains("tasks can be read on their way") == warned, "{url}: {log}");
    }
    let _ = std::fs::remove_dir_all(folder);
}

/// Creates an empty folder.
fn tempfile() -> PathBuf {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let name = format!("ptc-agentic-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::SeqCst));
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn task_tool_is_described_to_clients() {
    let planner = replay(Vec::new());
    let mut server = Peer::of(&mut with_planner("tasks", &planner, &["--agentic-allow-writes"]));
    let listed = tools(&mut server);
    let tool = listed[1].clone();
    // The size that the compiler computes must equal what clients receive.
    let mut settings = Settings::defaults(true);
    settings.agentic.on = true;
    assert_eq!(tools_list_json(deployment(), &settings), json!({ "tools": listed }).to_string());
    let summary = "- child: echo->{said :string}, pid->:unknown_content";
    let description = tool["description"].as_str().expect("a text");
    assert!(description.ends_with(&format!("\n\nIt can reach:\n{summary}")), "{description}");
    assert_eq!(tool["inputSchema"]["required"], json!(["task"]));
    assert_eq!(
        tool["annotations"],
        json!({ "readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true })
    );
    drop(server.input.take());
    let (_, log) = server.end();
    let line =
        log.lines().find(|line| line.contains("\"tasks\"") && line.contains("summary_sha256")).expect("a line of the start");
    assert!(line.contains(&format!("\"summary_bytes\":{}", summary.len())) && !line.contains("echo"), "{line}");
    // The operator's texts are used, and the tool may be restricted to reading.
    let folder = tempfile();
    std::fs::write(folder.join("summary.md"), "Whatever the child says.\n").expect("a file");
    let file = folder.join("summary.md").display().to_string();
    let flags = ["--aggregator-read-only", "--agentic-capability-summary", &file];
    let mut server = Peer::of(&mut with_planner("tasks", &planner, &flags));
    let tool = tools(&mut server)[1].clone();
    assert!(tool["description"].as_str().is_some_and(|text| text.ends_with("It can reach:\nWhatever the child says.")), "{tool}");
    assert_eq!((&tool["annotations"]["readOnlyHint"], &tool["annotations"]["destructiveHint"]), (&json!(true), &json!(false)));
    let _ = std::fs::remove_dir_all(folder);
}

fn model_request_has_documented_headers_and_body() {
    let planner = replay(vec![json!({ "say": "(return 1)" })]);
    let flags = ["--agentic-allow-writes", "--agentic-credential", "planner-key", "--agentic-max-output-tokens", "77"];
    let mut server = Peer::of(with_planner("tasks", &planner, &flags).env(VARIABLE, KEY));
    assert_eq!(call(&mut server, &json!({ "task": "x" }))["structuredContent"]["status"], "ok");
    let asked = &planner.requests()[0];
    assert_eq!(asked.header("authorization"), Some(&*format!("Bearer {KEY}")));
    assert_eq!(asked.header("content-type"), Some("application/json"));
    let body = asked.json();
    assert_eq!((&body["model"], &body["stream"], &body["max_tokens"]), (&json!("replayed"), &json!(false), &json!(77)));
    let roles: Vec<_> = body["messages"].as_array().into_iter().flatten().map(|message| message["role"].clone()).collect();
    assert_eq!(roles, ["system", "user"]);
    assert!(body.get("tools").is_none(), "the planner writes programs");
}

fn model_is_asked_through_the_proxy() {
    let planner = replay(vec![json!({ "say": "(return \"not-a-secret\")" }), json!({ "say": "(return 2)" })]);
    let proxy = ForwardProxy::start(Some("Basic YW5uYTpub3QtYS1zZWNyZXQ="));
    let file = tempfile().with_extension("proxy");
    let path = file.display().to_string();
    let ask = |password: &str, flags: &[&str]| {
        std::fs::write(&file, format!("http://anna:{password}@{}\n", proxy.address())).expect("a file");
        let flags = [&["--agentic-allow-writes", "--proxy-file", &path], flags].concat();
        let mut server = Peer::of(&mut with_planner("tasks", &planner, &flags));
        let answer = call(&mut server, &json!({ "task": "x" }))["structuredContent"].clone();
        drop(server.input.take());
        let (_, log) = server.end();
        assert!(!log.contains("not-a-secret") && !answer.to_string().contains("not-a-secret"), "{answer} {log}");
        answer
    };
    assert_eq!(ask("not-a-secret", &[])["answer"], "[REDACTED]");
    assert_eq!((proxy.heads().len(), planner.requests()[0].header("proxy-authorization")), (1, None));
    let refused = ask("not-a-secret-either", &[]);
    assert_eq!(refused["message"], "the proxy refuses its credentials (407 Proxy Authentication Required)", "{refused}");
    assert_eq!((proxy.heads().len(), planner.requests().len()), (2, 1));
    assert_eq!(ask("not-a-secret", &["--no-proxy", "127.0.0.1"])["answer"], "2");
    assert_eq!((proxy.heads().len(), planner.requests().len()), (2, 2));
    std::fs::remove_file(file).expect("the file was there");
}

fn key_echoed_by_the_model_is_redacted() {
    // The model echoes the key in a program, in its text and in an error.
    let program = format!("(return \"the key is {KEY}\")");
    let planner = replay(vec![json!({ "say": program }), json!({ "status": 400, "raw": format!("bad key {KEY}") })]);
    let folder = tempfile();
    let trace = folder.display().to_string();
    let flags = [
        "--agentic-allow-writes",
        "--agentic-credential",
        "planner-key",
        "--agentic-trace-prompts",
        "--trace-payloads",
        "full",
        "--trace-dir",
        &trace,
        "--log-level",
        "debug",
    ];
    let mut server = Peer::of(with_planner("tasks", &planner, &flags).env(VARIABLE, KEY));
    // The client sends the key too. It must not reach the model.
    let first =
        call(&mut server, &json!({ "task": format!("Is {KEY} a key?"), "context": { "k": KEY }, "constraints": { KEY: 1 } }));
    assert_eq!(first["structuredContent"]["answer"], "the key is [REDACTED]", "{first}");
    let second = call(&mut server, &json!({ "task": "x" }));
    assert_eq!(second["structuredContent"]["message"], "the endpoint: HTTP 400 Bad Request: bad key [REDACTED]");
    drop(server.input.take());
    let (_, log) = server.end();
    for request in planner.requests() {
        assert!(!request.body.contains(KEY), "{}", request.body);
    }
    let traces: Vec<String> = std::fs::read_dir(&folder)
        .expect("a folder")
        .flatten()
        .map(|file| std::fs::read_to_string(file.path()).expect("a trace"))
        .collect();
    assert_eq!(traces.len(), 2);
    for text in traces.iter().chain([&log, &first.to_string(), &second.to_string()]) {
        assert!(!text.contains(KEY), "{text}");
    }
    let _ = std::fs::remove_dir_all(folder);
}

fn prompts_are_in_traces_only_on_request() {
    for asked_for in [false, true] {
        let planner = replay(vec![
            json!({ "say": "(boom)" }),
            json!({ "say": "(return 1)", "usage": { "prompt_tokens": 5, "completion_tokens": 2 } }),
        ]);
        let folder = tempfile();
        let trace = folder.display().to_string();
        let mut flags = vec!["--agentic-allow-writes", "--agentic-max-turns", "2", "--trace-dir", &trace];
        flags.extend(asked_for.then_some("--agentic-trace-prompts"));
        let mut server = Peer::of(&mut with_planner("tasks", &planner, &flags));
        assert_eq!(call(&mut server, &json!({ "task": "a very special task" }))["structuredContent"]["status"], "ok");
        let file = std::fs::read_dir(&folder).expect("a folder").flatten().next().expect("a trace").path();
        let lines: Vec<Value> = std::fs::read_to_string(file)
            .expect("a trace")
            .lines()
            .map(|line| serde_json::from_str(line).expect("a line of JSON"))
            .collect();
        let what: Vec<_> = lines.iter().map(|line| line.get("span").unwrap_or(&line["event"]).clone()).collect();
        assert_eq!(what, ["call.start", "planner", "analyze", "eval", "planner", "analyze", "eval", "call.success"]);
        let task = json!({ "bytes": 19, "sha256": "72cb1d7ce4fe2efed954c7d70a362aa3dae471abbe08f339c94d1625a7cd01e0" });
        assert_eq!((&lines[0]["tool"], &lines[0]["task"]), (&json!("lisp_task"), &task));
        assert_eq!((&lines[4]["turn"], &lines[4]["tokens"]["total"]), (&json!(2), &json!(7)));
        let program = json!({ "bytes": 10, "sha256": "8ba485777b25903b94b859b523337b7160fb89f9ddc8b5aacf2331c949bb418a" });
        assert_eq!((&lines[6]["program"], &lines[7]["program"]), (&program, &program));
        let said = |line: &Value| {
            (line["prompt"][1]["content"].to_string().contains("a very special task"), line["completion"] == "(boom)")
        };
        assert_eq!(said(&lines[1]), (asked_for, asked_for));
        assert_eq!(lines[4]["prompt"].as_array().map_or(0, Vec::len), if asked_for { 4 } else { 0 });
        let _ = std::fs::remove_dir_all(folder);
    }
}

/// Runs a task and returns the lines of its trace.
fn traced(planner: Vec<Value>, more: &[&str]) -> Vec<Value> {
    let folder = tempfile();
    let trace = folder.display().to_string();
    let planner = replay(planner);
    let flags = [&["--aggregator-read-only", "--trace-dir", &trace], more].concat();
    let mut server = Peer::of(&mut with_planner("tasks", &planner, &flags));
    call(&mut server, &json!({ "task": "x" }));
    let file = std::fs::read_dir(&folder).expect("a folder").flatten().next().expect("a trace").path();
    let text = std::fs::read_to_string(file).expect("a trace");
    let _ = std::fs::remove_dir_all(folder);
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

fn trace_has_the_outcome_of_each_turn() {
    let failing = "(def said (tool/call {:server \"child\" :tool \"echo\" :args {:text \"a\"}}))\n(+ 1 (boom))";
    let planner = || {
        vec![
            json!({ "say": "I would rather not." }),
            json!({ "say": "(tool/call {:server \"child\" :tool \"echo\" :args {:text \"a\"}})" }),
            json!({ "say": failing }),
            json!({ "say": "(return (fn [x] x))" }),
        ]
    };
    let lines = traced(planner(), &["--agentic-max-turns", "4", "--trace-payloads", "full"]);
    let spans = |name: &str| lines.iter().filter(|line| line["span"] == name).collect::<Vec<_>>();
    let asked = spans("planner");
    assert_eq!(asked[0]["reason"], "no_program");
    assert!(asked[0]["message"].as_str().is_some_and(|why| !why.is_empty()), "{}", asked[0]);
    assert!(asked[1..].iter().all(|line| line["reason"].is_null() && line["message"].is_null()), "{asked:?}");
    let ran = spans("eval");
    let became: Vec<_> =
        ran.iter().map(|line| (line["turn"].as_u64(), line["status"].as_str(), line["reason"].as_str())).collect();
    assert_eq!(
        became,
        [
            (Some(2), Some("ok"), None),
            (Some(3), Some("error"), Some("runtime_error")),
            (Some(4), Some("error"), Some("validation_error"))
        ]
    );
    assert_eq!(ran[1]["program"]["text"], failing);
    let place = |side: &str| ran[1]["error_span"][side].as_u64().expect("a place") as usize;
    assert_eq!(&failing[place("start")..place("end")], "boom");
    assert!(ran[1]["message"].as_str().is_some_and(|why| why.contains("boom")), "{}", ran[1]);
    assert!(ran[1]["feedback"].as_str().is_some_and(|text| text.contains('^')), "{}", ran[1]);
    let calls: Vec<_> = spans("upstream_call").iter().map(|line| (line["turn"].clone(), line["effect"].clone())).collect();
    assert_eq!(calls, [(json!(2), json!("read"))]);
    assert_eq!(lines.last().expect("an end")["program"]["text"], "(return (fn [x] x))");

    // Programs appear as the trace policy permits. Failures have their reason.
    let lines = traced(planner(), &["--agentic-max-turns", "4", "--trace-payloads", "none"]);
    let ran: Vec<&Value> = lines.iter().filter(|line| line["span"] == "eval").collect();
    assert_eq!((&ran[1]["program"]["bytes"], &ran[1]["reason"]), (&json!(failing.len()), &json!("runtime_error")));
    assert!(lines.iter().all(|line| !line.to_string().contains("(def said")), "{lines:?}");

    // The last line of a failed task has the span of the error in its last program.
    let lines = traced(vec![json!({ "say": "(boom)" })], &["--trace-payloads", "full"]);
    let end = lines.last().expect("an end");
    assert_eq!((&end["event"], &end["error_span"]), (&json!("call.fail"), &json!({ "start": 1, "end": 5 })));
}

fn flags_take_precedence_over_the_config_file() {
    let folder = tempfile();
    let file = folder.join("agentic.json");
    let config = json!({ "max_turns": 2, "retry_turns": 1, "system_prompt": { "prefix": "BE BRIEF.", "suffix": "THE END." } });
    std::fs::write(&file, config.to_string()).expect("a file");
    let wrong = vec![json!({ "say": "(boom)" }); 5];
    for (flags, env, turns) in [(&[][..], "", 3), (&["--agentic-max-turns", "1"], "", 2), (&[], "4", 5)] {
        let planner = replay(wrong.clone());
        let mut command = with_planner("tasks", &planner, flags);
        command
            .arg("--agentic-subagent-config")
            .arg(&file)
            .arg("--agentic-allow-writes")
            .env("PTC_RUNNER_MCP_AGENTIC_MAX_TURNS", env);
        let mut server = Peer::of(&mut command);
        let answer = call(&mut server, &json!({ "task": "x" }));
        assert_eq!(answer["structuredContent"]["execution"]["turn_count"], turns, "{flags:?} {env}: {answer}");
        let system = planner.requests()[0].json()["messages"][0]["content"].as_str().expect("a text").to_owned();
        assert!(system.starts_with("BE BRIEF.\n\n") && system.ends_with("\n\nTHE END."), "{system}");
    }
    let _ = std::fs::remove_dir_all(folder);
}

fn cancelled_task_sends_no_further_requests() {
    let planner = replay(vec![json!({ "hang": true }), json!({ "say": "(return 1)" })]);
    let flags = [
        "--agentic-allow-writes",
        "--max-concurrent-calls",
        "1",
        "--agentic-planner-timeout-ms",
        "600000",
        "--agentic-task-timeout-ms",
        "600000",
    ];
    let mut server = Peer::of(&mut with_planner("tasks", &planner, &flags));
    server.send(r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"lisp_task","arguments":{"task":"x"}}}"#);
    // A waiting task still counts as an active call.
    assert!(server.ask("8", "1").contains("busy"));
    server.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#);
    let answer = server.ask_until_free("9", "(+ 1 2)");
    assert!(answer.contains("user=> 3"), "{answer}");
}

fn server_ends_during_a_model_request() {
    let planner = replay(vec![json!({ "hang": true })]);
    let mut server =
        Peer::of(&mut with_planner("tasks", &planner, &["--agentic-allow-writes", "--agentic-planner-timeout-ms", "600000"]));
    server.send(r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"lisp_task","arguments":{"task":"x"}}}"#);
    drop(server.input.take());
    let rest = server.rest();
    assert!(rest.len() == 1 && rest.iter().all(|answer| answer.contains("the call was cancelled")), "{rest:?}");
    let (status, log) = server.end();
    assert!(status.success(), "{status} {log}");
}
