//! Which parts of an upstream reach a client, and the life of its process.

use std::io::{BufRead, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use ptc_catalog::{
    Annotations, Arg, Auth, Binding, Catalog, Deployment, EnvPart, McpHttp, McpStdio, Source, Tool, Tools, Transport, Type,
    Types, Upstream,
};
use rustix::fs::{FlockOperation, flock};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::Test;
use crate::peer::{Peer, server};

/// The tests of this module.
pub(crate) const TESTS: &[Test] = &[
    ("upstream::debug_responses_list_upstream_calls", debug_responses_list_upstream_calls),
    ("upstream::cancelling_stops_the_wait_for_an_upstream", cancelling_stops_the_wait_for_an_upstream),
    ("upstream::upstream_is_notified_of_a_cancelled_call", upstream_is_notified_of_a_cancelled_call),
    ("upstream::children_end_with_the_server", children_end_with_the_server),
    ("upstream::children_end_with_an_evaluation", children_end_with_an_evaluation),
    ("upstream::processes_started_by_a_child_end_with_it", processes_started_by_a_child_end_with_it),
    ("upstream::upstreams_are_started_at_the_first_call", upstreams_are_started_at_the_first_call),
    ("upstream::drift_is_reported_once_under_each_policy", drift_is_reported_once_under_each_policy),
    ("upstream::eager_connections_fail_at_start", eager_connections_fail_at_start),
    ("upstream::certificates_are_read_at_start", certificates_are_read_at_start),
    ("upstream::program_with_an_unknown_tool_makes_no_call", program_with_an_unknown_tool_makes_no_call),
    ("upstream::tool_used_as_a_function_gets_a_hint_with_its_call", tool_used_as_a_function_gets_a_hint_with_its_call),
    ("upstream::literal_and_computed_requests_are_refused_alike", literal_and_computed_requests_are_refused_alike),
    ("upstream::many_wrong_calls_are_refused_quickly", many_wrong_calls_are_refused_quickly),
    ("upstream::unchecked_failure_is_noted", unchecked_failure_is_noted),
];

const fn tool(name: &'static str, args: &'static [Arg]) -> Tool {
    let annotations = Annotations { read_only: Some(true), destructive: None, idempotent: None, open_world: None };
    Tool { name, args, closed: true, effects: annotations, annotations, ..Tool::EMPTY }
}

const ECHO_ARGS: &[Arg] =
    &[Arg { name: "text", required: true, types: Types::from_types(&[Type::String]), label: "string", allowed: "" }];

static TOOLS: [Tool; 5] = tools(None);

/// Returns the tools of the upstream. A call of `hang` has this time limit.
const fn tools(hang_timeout_ms: Option<u64>) -> [Tool; 5] {
    [
        tool("echo", ECHO_ARGS),
        Tool { call_timeout_ms: hang_timeout_ms, ..tool("hang", &[]) },
        tool("heard", &[]),
        tool("nap", &[]),
        tool("pid", &[]),
    ]
}

/// Time until `nap` answers.
const NAP: Duration = Duration::from_millis(300);

/// Returns a deployment whose only upstream is this binary in another role.
pub(crate) fn deployment() -> &'static Deployment {
    deployed("aggregator", vec![child("child", 100)])
}

/// Returns a deployment with two upstreams. The first accepts one call at a time, the second as many as come.
pub(crate) fn crowd() -> &'static Deployment {
    deployed("crowd", vec![child("narrow", 1), child("wide", 10_000)])
}

/// Returns a deployment with a child, a closed port, and a server at `PTC_TEST_URL`. The last two need the secret `ONCALL_TOKEN`.
pub(crate) fn on_call() -> &'static Deployment {
    let web = |name, url: String| {
        let transport = Transport::McpHttp(McpHttp { auth: &[Auth::Bearer { binding: "token" }], ..McpHttp::new(url.leak()) });
        Upstream { name, description: "", transport, tools: Tools::table(&TOOLS) }
    };
    let denied = std::env::var("PTC_TEST_URL").unwrap_or_else(|_| "http://127.0.0.1:1".to_owned());
    let upstreams = vec![child("child", 100), web("closed", "http://127.0.0.1:1".to_owned()), web("denied", denied)];
    let catalog = Box::leak(Box::new(Catalog { digest: "sha256:ca", search_index: &[], upstreams: upstreams.leak() }));
    Box::leak(Box::new(Deployment {
        name: "oncall",
        compiler: "none",
        config_digest: "sha256:c0",
        credentials: &[Binding { name: "token", source: Source::Env { var: "ONCALL_TOKEN" } }],
        catalog,
        ..Deployment::EMPTY
    }))
}

/// Returns a deployment with three upstreams, whose processes are ended after `PTC_TEST_IDLE_MS` without a call. A call of `hang`
/// has no time limit.
#[cfg(feature = "http-server")]
pub(crate) fn pool() -> &'static Deployment {
    static POOL_TOOLS: [Tool; 5] = tools(Some(86_400_000));
    let idle = std::env::var("PTC_TEST_IDLE_MS").ok().map(|time| time.parse().expect("milliseconds"));
    let upstream = |name| {
        let mut upstream = Upstream { tools: Tools::table(&POOL_TOOLS), ..child(name, 100) };
        if let Transport::McpStdio(spec) = &mut upstream.transport {
            (spec.idle_timeout_ms, spec.inherit_env) = (idle, ptc_catalog::InheritEnv::Names(&["PTC_TEST_LOCK"]));
        }
        upstream
    };
    deployed("pool", ["one", "three", "two"].map(upstream).into())
}

fn child(name: &'static str, max_concurrent_calls: u64) -> Upstream {
    let exe: PathBuf = std::env::current_exe().expect("a test has a file");
    let command = std::env::var("PTC_TEST_UPSTREAM").unwrap_or_else(|_| exe.to_string_lossy().into_owned()).leak();
    let env = &[(crate::ROLE, &[EnvPart::Text("upstream")] as &[_])];
    let transport = Transport::McpStdio(McpStdio { env, max_concurrent_calls, ..McpStdio::new(command) });
    Upstream { name, description: "A child process.", transport, tools: Tools::table(&TOOLS) }
}

fn deployed(name: &'static str, upstreams: Vec<Upstream>) -> &'static Deployment {
    let catalog = Box::leak(Box::new(Catalog { digest: "", search_index: &[], upstreams: upstreams.leak() }));
    Box::leak(Box::new(Deployment { name, compiler: "none", catalog, ..Deployment::EMPTY }))
}

/// Runs the upstream. It exits if another process holds the lock on the file `PTC_TEST_LOCK`. It answers all calls except `hang`, and `nap` later. The tool `heard` returns the messages that it received
/// about `hang`.
pub(crate) fn serve() -> ExitCode {
    let lock = std::env::var_os("PTC_TEST_LOCK").map(|path| std::fs::File::open(path).expect("a file"));
    if lock.as_ref().is_some_and(|lock| flock(lock, FlockOperation::NonBlockingLockExclusive).is_err()) {
        return ExitCode::FAILURE;
    }
    let (mut hanging, mut heard) = (Vec::new(), Vec::new());
    let (naps, napping) = channel::<(Instant, Value)>();
    std::thread::spawn(move || {
        for (until, id) in napping {
            std::thread::sleep(until.saturating_duration_since(Instant::now()));
            answer(&json!({ "jsonrpc": "2.0", "id": id, "result": { "content": [{ "type": "text", "text": "rested" }] } }));
        }
    });
    for line in std::io::stdin().lock().lines() {
        let Ok(Ok(message)) = line.map(|line| serde_json::from_str::<Value>(&line)) else { break };
        let text = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
        let result = match (message["method"].as_str(), message["params"]["name"].as_str()) {
            (Some("initialize"), _) => json!({
                "protocolVersion": "2025-11-25", "capabilities": { "tools": {} }, "serverInfo": { "name": "child", "version": "1" },
            }),
            (Some("tools/list"), _) => json!({ "tools": TOOLS.each_ref().map(|tool| json!({ "name": tool.name })) }),
            (Some("tools/call"), Some("echo")) => text(message["params"]["arguments"]["text"].as_str().unwrap_or_default()),
            (Some("tools/call"), Some("pid")) => text(&std::process::id().to_string()),
            (Some("tools/call"), Some("heard")) => text(&heard.join(" ")),
            (Some("tools/call"), Some("hang")) => {
                hanging.push(message["id"].clone());
                heard.push("call");
                continue;
            }
            (Some("tools/call"), Some("nap")) => {
                let _ = naps.send((Instant::now() + NAP, message["id"].clone()));
                continue;
            }
            (Some("notifications/cancelled"), _) => {
                let known = hanging.contains(&message["params"]["requestId"]);
                heard.push(if known { "cancelled" } else { "another was cancelled" });
                continue;
            }
            (Some("tools/call") | None, _) => continue,
            _ if message["id"].is_null() => continue,
            _ => {
                answer(&json!({ "jsonrpc": "2.0", "id": message["id"], "error": { "code": -32601, "message": "no" } }));
                continue;
            }
        };
        answer(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }));
    }
    ExitCode::SUCCESS
}

fn answer(message: &Value) {
    let mut output = std::io::stdout().lock();
    let _ = writeln!(output, "{message}");
    let _ = output.flush();
}

fn call(tool: &str, args: &str) -> String {
    format!(r#"(tool/call {{:server "child" :tool "{tool}" :args {args}}})"#)
}

fn debug_responses_list_upstream_calls() {
    let mut server = Peer::start_as("aggregator", &["--response-profile", "debug"]);
    let text = "x".repeat(1000);
    let program = format!("(count (:value {}))", call("echo", &format!("{{:text \"{text}\"}}")));
    let answer: Value = serde_json::from_str(&server.ask("1", &program)).expect("JSON");
    let data = &answer["result"]["structuredContent"];
    assert_eq!(data["result"], "user=> 1000", "{answer}");
    let entry = &data["upstream_calls"][0];
    assert_eq!((&entry["server"], &entry["tool"], &entry["status"]), (&json!("child"), &json!("echo"), &json!("ok")));
    assert_eq!((&entry["result_bytes"], &entry["oversize"]), (&json!(1002), &json!(false)));
    let metrics = &data["ptc_metrics"];
    assert_eq!((&metrics["upstream_result_bytes"], &metrics["final_result_bytes"]), (&json!(1002), &json!(11)));
    assert_eq!(metrics["payload_reduction_ratio"], json!(91.09));
}

fn cancelling_stops_the_wait_for_an_upstream() {
    let args = ["--program-timeout-ms", "600000", "--upstream-call-timeout-ms", "600000", "--max-concurrent-calls", "1"];
    let mut server = Peer::start_as("aggregator", &args);
    server.call("1", &call("hang", "{}"));
    assert!(server.ask("2", "1").contains("busy"));
    server.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    let answer = server.ask_until_free("3", "(+ 1 2)");
    assert!(answer.contains("user=> 3"), "{answer}");
}

fn upstream_is_notified_of_a_cancelled_call() {
    let args = ["--program-timeout-ms", "600000", "--upstream-call-timeout-ms", "600000", "--max-concurrent-calls", "2"];
    let mut server = Peer::start_as("aggregator", &args);
    let heard = format!("(:value {})", call("heard", "{}"));
    let until = |server: &mut Peer, wanted: &str| {
        let told = (0..10_000).map(|_| server.ask("2", &heard)).find(|told| told.contains(wanted));
        told.unwrap_or_else(|| panic!("the upstream never heard of {wanted}"))
    };
    server.call("1", &call("hang", "{}"));
    until(&mut server, "call");
    server.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    let told = until(&mut server, "cancelled");
    assert!(told.contains("call cancelled") && !told.contains("another"), "{told}");
}

fn children_end_with_the_server() {
    for signal in [None, Some(Signal::TERM), Some(Signal::INT), Some(Signal::KILL)] {
        let mut server = Peer::start_as("aggregator", &["--program-timeout-ms", "600000"]);
        let answer: Value = serde_json::from_str(&server.ask("1", &format!("(:value {})", call("pid", "{}")))).expect("JSON");
        let text = answer["result"]["content"][0]["text"].as_str().expect("text");
        let pid: u32 = text.trim_start_matches("user=> ").parse().unwrap_or_else(|_| panic!("a process id: {text}"));
        let process = PathBuf::from(format!("/proc/{pid}"));
        assert!(process.exists());
        server.call("2", &call("hang", "{}"));
        match signal {
            None => drop(server.input.take()),
            Some(signal) => server.signal(signal),
        }
        let (status, log) = server.end();
        // A killed server cannot end its children. The kernel does so.
        assert!(status.success() || signal == Some(Signal::KILL), "{log}");
        assert_gone(pid);
    }
}

/// Waits until a process has ended and was reaped, by the server or by the process that adopts orphans.
pub(crate) fn assert_gone(pid: u32) {
    let stat = PathBuf::from(format!("/proc/{pid}/stat"));
    let gone = (0..500).any(|_| {
        let text = std::fs::read_to_string(&stat).unwrap_or_default();
        let gone = text.is_empty() || text.contains(") Z ");
        if !gone {
            std::thread::sleep(Duration::from_millis(10));
        }
        gone
    });
    assert!(gone, "{pid} lives on");
}

fn children_end_with_an_evaluation() {
    for (program, status) in [(call("pid", "{}"), 0), (format!("(fail {})", call("pid", "{}")), 1)] {
        let done = server("aggregator").args(["eval", &program]).output().expect("the server runs");
        assert_eq!(done.status.code(), Some(status));
        let said = String::from_utf8([done.stdout, done.stderr].concat()).expect("UTF-8");
        let digits: String = said.split(":value ").nth(1).unwrap_or_default().chars().take_while(char::is_ascii_digit).collect();
        assert_gone(digits.parse().unwrap_or_else(|_| panic!("a process id: {said}")));
    }
}

/// A child with a child of its own, whose process ids every call returns. It lists only one of the catalog's tools.
const FAMILY: &str = r#"#!/bin/sh
: > "$0.started"
sleep 600 <&- >&- 2>&- &
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"f","version":"1"}}' ;;
    *'"tools/list"'*) result='{"tools":[{"name":"echo"}]}' ;;
    *'"tools/call"'*) result='{"content":[{"type":"text","text":"pids '$$' '$!'"}]}' ;;
    *'"id"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id"; continue ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

/// Writes an executable shell script and returns its path.
pub(crate) fn script(name: &str, text: &str) -> PathBuf {
    let script = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    std::fs::write(&script, text).expect("a file");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    script
}

/// Returns `server("aggregator")` with that child as upstream, and the path of the file that shows that it was started.
fn with_family(test: &str) -> (Command, PathBuf) {
    let script = script(&format!("family-{test}"), FAMILY);
    let started = script.with_extension("started");
    let _ = std::fs::remove_file(&started);
    let mut command = server("aggregator");
    command.env("PTC_TEST_UPSTREAM", script).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    (command, started)
}

fn pids(said: &str) -> Vec<u32> {
    let words = said.split("pids ").nth(1).unwrap_or_else(|| panic!("{said}")).split(|c: char| !c.is_ascii_digit());
    words.take(2).map(|word| word.parse().unwrap_or_else(|_| panic!("{said}"))).collect()
}

fn processes_started_by_a_child_end_with_it() {
    for signal in [None, Some(Signal::TERM), Some(Signal::INT), Some(Signal::HUP), Some(Signal::QUIT)] {
        let mut server = Peer::of(with_family("signals").0.args(["--on-drift", "off"]));
        let pids = pids(&server.ask("1", &call("pid", "{}")));
        match signal {
            None => drop(server.input.take()),
            Some(signal) => server.signal(signal),
        }
        let (status, log) = server.end();
        assert!(status.success(), "{log}");
        pids.into_iter().for_each(assert_gone);
    }
    for (program, status) in [(call("pid", "{}"), 0), (format!("(fail {})", call("pid", "{}")), 1)] {
        let done = with_family("eval").0.args(["--on-drift", "off", "eval", &program]).output().expect("the server runs");
        assert_eq!(done.status.code(), Some(status));
        pids(&String::from_utf8_lossy(&[done.stdout, done.stderr].concat())).into_iter().for_each(assert_gone);
    }
}

fn upstreams_are_started_at_the_first_call() {
    let (mut command, started) = with_family("first");
    let mut server = Peer::of(command.args(["--on-drift", "off", "--catalog-mode", "inline"]));
    server.send(r#"{"jsonrpc":"2.0","id":"t","method":"tools/list"}"#);
    assert!(server.receive().contains("echo"));
    let found = server.ask("1", r#"[(count (dir "child")) (doc "child/pid") (meta "child/pid") (apropos "pid") (tool/servers)]"#);
    assert!(found.contains("user=> [5 "), "{found}");
    assert!(!started.exists(), "discovery is answered from the catalog");
    server.ask("2", &call("pid", "{}"));
    assert!(started.exists());
}

fn drift_is_reported_once_under_each_policy() {
    let twice = format!("[(:reason {0}) (:reason {0})]", call("pid", "{}"));
    for (policy, answered, told) in
        [("deny", "[:upstream_error :upstream_error]", 1), ("warn", "[nil nil]", 1), ("off", "[nil nil]", 0)]
    {
        let done = with_family("drift").0.args(["--on-drift", policy, "eval", &twice]).output().expect("the server runs");
        let (said, log) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(said.contains(answered), "{policy}: {said}{log}");
        let lines: Vec<&str> = log.lines().filter(|line| line.contains("tools have changed")).collect();
        assert_eq!(lines.len(), told, "{policy}: {log}");
        assert!(
            lines
                .iter()
                .all(|line| line.contains("tool 'hang' is gone; tool 'heard' is gone; tool 'nap' is gone; tool 'pid' is gone")),
            "{log}"
        );
    }
    let wrong = server("aggregator").args(["--on-drift", "maybe"]).output().expect("the server runs");
    assert_eq!(wrong.status.code(), Some(2), "{}", String::from_utf8_lossy(&wrong.stderr));
}

fn eager_connections_fail_at_start() {
    let done = server("aggregator").args(["--connect", "eager", "eval", "1"]).output().expect("the server runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let mut broken = server("aggregator");
    let done =
        broken.env("PTC_TEST_UPSTREAM", "/no/such/program").args(["--connect", "eager"]).output().expect("the server runs");
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(2));
    assert!(
        said.contains("aggregator: error: upstream 'child': upstream_unavailable: cannot start '/no/such/program'"),
        "{said}"
    );
    // Without the flag the server starts, and only the call fails.
    let mut lazy = server("aggregator");
    let lazy = lazy.env("PTC_TEST_UPSTREAM", "/no/such/program").args(["eval", &call("pid", "{}")]);
    let said = lazy.output().expect("the server runs").stdout;
    assert!(String::from_utf8_lossy(&said).contains(":reason :upstream_unavailable"), "{}", String::from_utf8_lossy(&said));
}

fn certificates_are_read_at_start() {
    let file = std::env::current_exe().expect("a test has a file");
    let done = server("aggregator").arg("--ca-file").arg(&file).args(["eval", "1"]).output().expect("the server runs");
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(2));
    assert!(said.contains(&format!("--ca-file {}: it holds no certificate", file.display())), "{said}");
}

fn program_with_an_unknown_tool_makes_no_call() {
    let mut server = Peer::start_as("aggregator", &["--response-profile", "debug"]);
    let program = format!("{} {}", call("echo", "{:text \"a\"}"), call("ecko", "{}"));
    let answer: Value = serde_json::from_str(&server.ask("1", &program)).expect("JSON");
    let data = &answer["result"]["structuredContent"];
    assert_eq!(data["message"], "unknown_tool: no tool 'ecko' in upstream 'child'");
    assert!(data["feedback"].as_str().is_some_and(|text| text.contains("did you mean 'echo'?")), "{data}");
    assert_eq!(data["upstream_calls"], Value::Null, "no call was made");
}

fn tool_used_as_a_function_gets_a_hint_with_its_call() {
    let mut server = Peer::start_as("aggregator", &[]);
    let answer = server.ask("1", "(child/echo {:text 1})");
    assert!(
        answer.contains(r#"hint: call the tool with (tool/call {:server \"child\" :tool \"echo\" :args {:text …}})"#),
        "{answer}"
    );
}

fn literal_and_computed_requests_are_refused_alike() {
    let mut server = Peer::start_as("aggregator", &[]);
    for (request, expected) in [
        (r#"{:server "" :tool "echo"}"#, r#"tool/call requires :server (string), got \"\". Configured upstreams: child"#),
        (r#"{:tool "echo"}"#, "tool/call requires :server (string), got nil. Configured upstreams: child"),
        (r#"{:server 5 :tool "echo"}"#, "tool/call requires :server (string), got 5. Configured upstreams: child"),
        (r#"{:server "child"}"#, "tool/call on upstream 'child' requires :tool (string), got nil"),
        (r#"{:server "child" :tool ""}"#, r#"tool/call on upstream 'child' requires :tool (string), got \"\""#),
        (r#"{:server "child" :tool [1]}"#, "tool/call on upstream 'child' requires :tool (string), got [1]"),
    ] {
        // The first program is rejected before it runs, the second at run time.
        for program in [format!("(tool/call {request})"), format!("(tool/call (merge {{}} {request}))")] {
            let answer = server.ask("1", &program);
            assert!(answer.contains(&format!("tool_error: {expected}\\n")), "{program}: {answer}");
        }
    }
}

fn many_wrong_calls_are_refused_quickly() {
    let mut server = Peer::start_as("aggregator", &["--max-program-bytes", "2000000"]);
    // Without a limit on findings, the text of each call would be read again for each report, which takes minutes for the second
    // program.
    let numbered = |part: &str, count: usize| (0..count).map(|at| part.replace('$', &at.to_string())).collect::<String>();
    let calls = numbered(r#"(tool/call {:server "child" :tool "ecko$"})"#, 10_000);
    let arguments = numbered(":txt$ 1 ", 20_000);
    let call = format!(r#"(tool/call {{:server "child" :tool "echo" :args {{:text "a" {arguments}}}}})"#);
    for program in [format!("(do {calls})"), call] {
        let answer = server.ask("1", &program);
        assert!(
            answer.contains("no tool 'ecko0'") || answer.contains("unknown arg 'txt"),
            "{}",
            answer.get(..300).unwrap_or(&answer)
        );
    }
}

fn unchecked_failure_is_noted() {
    let call = call("pid", "{}");
    let unasked = format!("(map inc (:value {call}))");
    let said = "1 of 1 upstream calls failed and was not checked: 1 × child/pid upstream_unavailable ";
    for (program, profile, noted) in [
        (unasked.clone(), "slim", true),
        (unasked.clone(), "structured", true),
        (unasked, "debug", true),
        // The answer is kept for a later program, which gets no note.
        (format!("(def answer {call})"), "structured", true),
        (format!("(let [answer {call}] (if (:ok answer) 1 []))"), "slim", false),
    ] {
        let mut broken = server("aggregator");
        broken.env("PTC_TEST_UPSTREAM", "/no/such/program").args(["--response-profile", profile]);
        let answer: Value = serde_json::from_str(&Peer::of(&mut broken).ask("1", &program)).expect("JSON");
        let answer = &answer["result"];
        let text = answer["content"][0]["text"].as_str().unwrap_or_default();
        assert_eq!(text.contains(said), noted, "{profile}: {answer}");
        let feedback = answer["structuredContent"]["feedback"].as_str();
        assert_eq!(feedback.is_some_and(|feedback| feedback.starts_with(said)), noted && profile != "slim", "{answer}");
        assert_eq!(answer["isError"], json!(false), "{answer}");
        if profile == "slim" {
            assert_eq!(text.lines().next(), Some("user=> []"), "the value comes first: {text}");
        }
    }
}
