//! MCP over the pipes of a child process.

use std::time::Duration;

use ptc_catalog::{Auth, Binding, EnvPart, Era, InheritEnv, McpHttp, McpStdio, Source, Transport};
use ptc_lisp::host::{Reply, WaitOutcome};
use ptc_runtime::secrets::Secrets;
use ptc_runtime::upstream::{UpstreamSettings, list_tools};

use crate::peer;
use crate::world::{World, deployment, eventually, tool, upstream};

const TOOLS: [&str; 14] = [
    "args",
    "ask",
    "big",
    "crash",
    "echo",
    "env",
    "fail",
    "garbage",
    "noise",
    "rpc_error",
    "seen",
    "slow",
    "structured",
    "unknown",
];

fn world(spec: McpStdio) -> World {
    World::new(vec![upstream("peer", Transport::McpStdio(spec), TOOLS.map(tool).into())])
}

fn world_of(mode: &'static str) -> World {
    world(McpStdio { era: Some(Era::Handshake), ..peer::spec(mode) })
}

fn json_of(answer: &str) -> serde_json::Value {
    serde_json::from_str(answer.strip_prefix("json ").unwrap_or_else(|| panic!("{answer}"))).unwrap()
}

#[test]
fn tool_calls_give_payloads_and_faults() {
    let world = world_of("plain");
    let program = world.program();
    let cases = [
        ("echo", r#"{"message":"hi"}"#, "text hi"),
        ("structured", "{}", r#"json {"n": 12345678901234567890123, "z":1, "a":2}"#),
        ("fail", "{}", "tool_error: no such file"),
        ("rpc_error", "{}", "upstream_error: bad arguments (JSON-RPC error -32602)"),
        ("noise", "{}", "text still here"),
        ("garbage", "{}", "upstream_error: the server wrote a line that is not JSON"),
        ("echo", r#"{"message":"in step"}"#, "text in step"),
    ];
    for (tool, args, expected) in cases {
        let answer = program.call("peer", tool, args);
        assert!(answer.starts_with(expected), "{tool}: {answer}");
    }
    let records = program.0.calls();
    let rows: Vec<_> = records.iter().map(|r| (&*r.tool, r.status, r.reason, r.result_bytes)).collect();
    assert_eq!(rows[0], ("echo", "ok", None, 4));
    assert_eq!(rows[1], ("structured", "ok", None, 41));
    assert_eq!(rows[2], ("fail", "error", Some("tool_error"), 14));
    assert_eq!(records[3].error.as_deref(), Some("bad arguments (JSON-RPC error -32602)"));
}

#[test]
fn requests_of_the_server_are_answered() {
    let world = world_of("plain");
    let program = world.program();
    assert_eq!(program.call("peer", "ask", "{}"), "text asked");
    let mut answers = Vec::new();
    eventually("three answers", || {
        let seen = json_of(&program.call("peer", "seen", "{}"));
        answers = seen["answers"].as_array().unwrap().clone();
        answers.len() == 3
    });
    assert_eq!(answers[0], serde_json::json!({"jsonrpc": "2.0", "id": "q\"1", "result": {}}));
    assert_eq!(answers[1]["result"], serde_json::json!({"roots": []}));
    assert_eq!(answers[2]["error"]["code"], -32601);
}

#[test]
fn calls_overlap_on_one_pipe() {
    let world = world_of("plain");
    let program = world.program();
    let tickets: Vec<_> = (0..40).map(|_| program.start("peer", "slow", r#"{"ms":300}"#)).collect();
    // In sequence the calls would take 12 s, which exceeds the timeout of a call.
    for ticket in tickets {
        assert!(matches!(ticket.wait(None), WaitOutcome::Reply(Reply::Text(text)) if text == "done"));
    }
}

#[test]
fn timeout_cancels_the_call_and_a_late_response_is_ignored() {
    let spec = McpStdio { era: Some(Era::Handshake), ..peer::spec("plain") };
    let upstreams = vec![upstream("peer", Transport::McpStdio(spec), TOOLS.map(tool).into())];
    let world = World::with(upstreams, Vec::new(), |settings| settings.call_timeout = Duration::from_millis(250));
    let program = world.program();
    let answer = program.call("peer", "slow", r#"{"ms":500}"#);
    assert_eq!(
        answer,
        "timeout: 'peer' did not answer the call within 250 ms (--upstream-call-timeout-ms): the time ran out while waiting for an answer"
    );
    // The program itself stops waiting.
    drop(program.start("peer", "slow", r#"{"ms":500}"#));
    eventually("a second cancellation", || {
        // A call that is abandoned before it was sent needs no cancellation. On a busy machine any call may time out before that.
        let given_up = world.program().start("peer", "slow", r#"{"ms":500}"#);
        std::thread::sleep(Duration::from_millis(50));
        drop(given_up);
        let answer = world.program().call("peer", "seen", "{}");
        answer.starts_with("json") && json_of(&answer)["cancelled"].as_array().unwrap().len() >= 2
    });
    std::thread::sleep(Duration::from_millis(600));
    eventually("an answer in time", || world.program().call("peer", "echo", r#"{"message":"x"}"#) == "text x");
    let abandoned = &program.0.calls()[1];
    assert_eq!(abandoned.reason, Some("timeout"));
    assert!(abandoned.error.as_deref().unwrap().starts_with("the program stopped while "), "{abandoned:?}");
}

#[test]
fn oversized_response_does_not_end_the_connection() {
    let world = world(McpStdio { max_response_bytes: 100_000, era: Some(Era::Handshake), ..peer::spec("plain") });
    let program = world.program();
    let other = program.start("peer", "slow", r#"{"ms":200}"#);
    let before = json_of(&program.call("peer", "seen", "{}"))["pid"].clone();
    let answer = program.call("peer", "big", r#"{"bytes":5000000}"#);
    assert!(answer.starts_with("response_too_large: the answer is larger than 100000 bytes"), "{answer}");
    assert!(program.last().oversize);
    assert_eq!(json_of(&program.call("peer", "seen", "{}"))["pid"], before);
    assert!(matches!(other.wait(None), WaitOutcome::Reply(Reply::Text(_))));
    assert!(program.call("peer", "big", r#"{"bytes":50000}"#).starts_with("text xxx"));
}

#[test]
fn crash_fails_calls_in_flight_and_the_next_call_restarts() {
    let world = world_of("plain");
    let program = world.program();
    let other = program.start("peer", "slow", r#"{"ms":60000}"#);
    assert_eq!(program.call("peer", "echo", r#"{"message":"x"}"#), "text x");
    let answer = program.call("peer", "crash", "{}");
    assert!(answer.starts_with("upstream_unavailable: the process of 'peer' ended (exit status: 7)"), "{answer}");
    assert!(answer.ends_with("its standard error: out of cheese"), "{answer}");
    match other.wait(None) {
        WaitOutcome::Reply(Reply::Failed { reason, .. }) => assert_eq!(reason, "upstream_unavailable"),
        other => panic!("{other:?}"),
    }
    assert_eq!(program.call("peer", "echo", r#"{"message":"back"}"#), "text back");
    // After repeated crashes without a good answer in between, the error names the pause.
    assert!(program.call("peer", "crash", "{}").contains("exit status: 7"));
    assert!(program.call("peer", "crash", "{}").contains("exit status: 7"));
    let answer = program.call("peer", "crash", "{}");
    assert!(answer.contains("the next attempt is made in"), "{answer}");
    eventually("a new start", || program.call("peer", "echo", r#"{"message":"y"}"#) == "text y" || program.0.calls().len() > 49);
}

#[test]
fn restarted_child_gets_the_handshake_that_it_accepted() {
    let world = world(peer::spec("silent_probe"));
    for greeting in ["server/discover", "initialize"] {
        let seen = world.program().call("peer", "seen", "{}");
        assert!(seen.contains(&format!(r#""greeting":"{greeting}""#)), "{seen}");
        assert!(world.program().call("peer", "crash", "{}").contains("exit status: 7"));
    }
}

#[test]
fn child_that_cannot_start_is_unavailable() {
    let missing = world(McpStdio::new("/no/such/program"));
    let answer = missing.program().call("peer", "echo", "{}");
    assert!(answer.starts_with("upstream_unavailable: cannot start '/no/such/program': No such file"), "{answer}");

    let ends = world(McpStdio { args: &["-c", "echo broken >&2; exit 4"], ..McpStdio::new("sh") });
    let answer = ends.program().call("peer", "echo", "{}");
    assert_eq!(answer, "upstream_unavailable: the process of 'peer' ended (exit status: 4); its standard error: broken");

    let mute = world(McpStdio { handshake_timeout_ms: 300, ..peer::spec("mute") });
    let answer = mute.program().call("peer", "echo", "{}");
    assert_eq!(
        answer,
        "timeout: 'peer' did not finish starting and its handshake within 300 ms (handshake_timeout_ms): the time ran out while waiting for an answer"
    );
}

#[test]
fn both_eras_and_all_revisions_are_negotiated() {
    let cases = [
        ("plain", None),
        ("plain", Some(Era::Stateless)),
        ("old", None),
        ("modern", None),
        ("modern", Some(Era::Stateless)),
        ("modern", Some(Era::Handshake)),
        ("dies_on_probe", None),
        ("silent_probe", None),
    ];
    for (mode, era) in cases {
        let world = world(McpStdio { era, ..peer::spec(mode) });
        assert_eq!(world.program().call("peer", "echo", r#"{"message":"x"}"#), "text x", "{mode} {era:?}");
    }
    let future = world(peer::spec("future"));
    let answer = future.program().call("peer", "echo", "{}");
    assert!(answer.starts_with("upstream_unavailable: no common protocol revision: the server speaks 2099-01-01"), "{answer}");
}

#[test]
fn list_is_read_page_by_page_and_stored_verbatim() {
    let list = |mode: &'static str| {
        let deployment = deployment(vec![upstream("peer", Transport::McpStdio(peer::spec(mode)), Vec::new())], Vec::new());
        let world = world_of("plain");
        let settings = UpstreamSettings::new("/", world.handle.clone());
        let secrets = Secrets::resolve(deployment, "/".as_ref()).unwrap_or_else(|missing| panic!("{missing:?}"));
        world.run(async move { list_tools(&deployment.catalog.upstreams[0], &secrets, &settings).await })
    };
    let found = list("pages").unwrap();
    assert_eq!((found.era, found.revision), (Era::Handshake, "2025-11-25"));
    assert_eq!((&*found.server_name, &*found.server_version, found.instructions.as_deref()), ("peer", "1", Some("Be kind.")));
    assert_eq!(found.tools.len(), 3);
    assert!(found.tools[2].get().contains(r#""x-vendor":1.5"#) && found.tools[2].get().contains("12345678901234567890"));
    assert_eq!(list("modern").unwrap().server_name, "modern peer");
    assert!(list("endless").unwrap_err().message.contains("same nextCursor twice"));
}

#[test]
fn child_environment_has_what_its_entry_grants() {
    let env = |inherit_env| {
        let world = world(McpStdio { inherit_env, cd: Some("tmp"), era: Some(Era::Handshake), ..peer::spec("plain") });
        json_of(&world.program().call("peer", "env", "{}"))
    };
    let base = env(InheritEnv::Base);
    assert_eq!(base["env"]["FOO"], "a b");
    assert_eq!(base["cwd"], "/tmp");
    assert!(base["env"]["PATH"].is_string());
    for name in base["env"].as_object().unwrap().keys() {
        let granted = ["PATH", "HOME", "USER", "LANG", "TMPDIR", "TERM", "SHELL", "FOO", "PTC_PEER"];
        assert!(granted.contains(&name.as_str()) || name.starts_with("LC_"), "{name}");
    }
    // Cargo sets this variable for tests.
    assert!(env(InheritEnv::Names(&["CARGO_PKG_NAME"]))["env"]["CARGO_PKG_NAME"].is_string());
    assert!(env(InheritEnv::All)["env"].as_object().unwrap().len() > base["env"].as_object().unwrap().len());
}

#[test]
fn secrets_are_redacted_in_results() {
    let env: &'static [(&str, &[EnvPart])] =
        vec![("PTC_PEER", &[EnvPart::Text("plain")] as &[_]), ("API_TOKEN", &[EnvPart::Var("CARGO_PKG_DESCRIPTION")])].leak();
    let secret = std::env::var("CARGO_PKG_DESCRIPTION").unwrap();
    let spec = McpStdio { env, era: Some(Era::Handshake), ..peer::spec("plain") };
    let bindings = vec![Binding { name: "b", source: Source::Literal { value: "l1teral-s3cret" } }];
    // The secret of one upstream is also redacted in the answers of another.
    let web = McpHttp { auth: &[Auth::Bearer { binding: "b" }], ..McpHttp::new("http://127.0.0.1:9") };
    let upstreams = vec![
        upstream("peer", Transport::McpStdio(spec), TOOLS.map(tool).into()),
        upstream("web", Transport::McpHttp(web), Vec::new()),
    ];
    let world = World::with(upstreams, bindings, |_| {});
    let program = world.program();
    assert_eq!(program.call("peer", "echo", r#"{"message":"<l1teral-s3cret>"}"#), "text <[REDACTED]>");
    let answer = program.call("peer", "env", "{}");
    assert!(!answer.contains(&secret) && json_of(&answer)["env"]["API_TOKEN"] == "[REDACTED]", "{answer}");
}

#[test]
fn call_budget_applies_across_threads() {
    let world = world_of("plain");
    let program = world.program();
    let outcomes: Vec<String> = std::thread::scope(|scope| {
        let call = || (0..10).map(|_| program.call("peer", "echo", r#"{"message":"x"}"#)).collect::<Vec<_>>();
        let threads: Vec<_> = (0..6).map(|_| scope.spawn(call)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(outcomes.iter().filter(|o| *o == "text x").count(), 50);
    assert_eq!(
        outcomes.iter().filter(|o| o.starts_with("cap_exhausted: this program has made its 50 upstream calls")).count(),
        10
    );
    let records = program.0.calls();
    assert_eq!(records.len(), 60);
    assert_eq!(records.iter().filter(|r| r.reason == Some("cap_exhausted")).count(), 10);
    assert_eq!(world.program().call("peer", "echo", r#"{"message":"fresh"}"#), "text fresh");
}

fn is_running(pid: u64) -> bool {
    // A zombie has ended. Which process reaps an orphan does not matter.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z') && !rest.starts_with('X'))
}

#[test]
#[cfg(target_os = "linux")]
fn shutdown_leaves_no_process_behind() {
    let world = world_of("family");
    let program = world.program();
    let seen = json_of(&program.call("peer", "seen", "{}"));
    let pids = [seen["pid"].as_u64().unwrap(), seen["grandchild"].as_u64().unwrap()];
    assert!(pids.iter().all(|pid| is_running(*pid)));
    world.shutdown();
    assert!(!pids.iter().any(|pid| is_running(*pid)));
    let answer = world.program().call("peer", "echo", "{}");
    assert_eq!(answer, "upstream_unavailable: the server is shutting down");

    // The processes also end if the runtime is dropped without a shutdown.
    let world = world_of("family");
    let seen = json_of(&world.program().call("peer", "seen", "{}"));
    let pids = [seen["pid"].as_u64().unwrap(), seen["grandchild"].as_u64().unwrap()];
    drop(world);
    eventually("the end of both", || !pids.iter().any(|pid| is_running(*pid)));

    // They also end after the leader of the process group crashed.
    let world = world_of("family");
    let program = world.program();
    let grandchild = json_of(&program.call("peer", "seen", "{}"))["grandchild"].as_u64().unwrap();
    program.call("peer", "crash", "{}");
    eventually("the end of the grandchild", || !is_running(grandchild));
}

#[test]
fn child_that_ignores_signals_is_killed() {
    let script = r#"trap "" TERM; while read -r line; do case "$line" in *initialize\"*) printf '%s\n' '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}';; *tools/call*) printf '{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"%s"}]}}\n' $$;; esac; done; while :; do sleep 1; done"#;
    let spec = McpStdio { args: vec!["-c", script].leak(), era: Some(Era::Handshake), ..McpStdio::new("sh") };
    let world = world(spec);
    let answer = world.program().call("peer", "echo", "{}");
    let pid = answer.strip_prefix("text ").unwrap_or_else(|| panic!("{answer}")).parse().unwrap();
    world.shutdown();
    assert!(!is_running(pid));
}

#[test]
fn invalid_requests_are_faults_of_the_program() {
    use crate::world::arg;
    use ptc_catalog::{Arg, Type};
    const MODES: &str = "\"fast\"\n\"slow\"";
    let args: &'static [Arg] = vec![
        arg("path", true, &[Type::String], "string"),
        arg("page_size", false, &[Type::Integer], "integer"),
        Arg { allowed: MODES, ..arg("mode", false, &[Type::String], "enum<string>") },
    ]
    .leak();
    let strict = ptc_catalog::Tool { args, closed: true, ..tool("args") };
    let world = World::new(vec![upstream(
        "peer",
        Transport::McpStdio(McpStdio { era: Some(Era::Handshake), ..peer::spec("plain") }),
        vec![strict, tool("echo"), ptc_catalog::Tool { args, ..tool("open") }],
    )]);
    let program = world.program();
    let fault = |request: &ptc_lisp::Value| program.submit(request).err().map(|f| f.message).unwrap_or_default();
    let decode = |text: &str| ptc_lisp::json::decode(text.as_bytes()).unwrap();
    let cases = [
        (r#"{"tool":"x"}"#, "tool/call requires :server (string), got nil. Configured upstreams: peer"),
        (r#"{"server":""}"#, r#"tool/call requires :server (string), got "". Configured upstreams: peer"#),
        (r#"{"server":"pear","tool":"x"}"#, "no upstream 'pear' configured. Did you mean 'peer'? Configured upstreams: peer"),
        (r#"{"server":"peer","tool":5}"#, "tool/call on upstream 'peer' requires :tool (string), got 5"),
        (
            r#"{"server":"peer","tool":"ecko"}"#,
            "no tool 'ecko' in upstream 'peer'. Did you mean 'echo'? Known tools: args, echo, open",
        ),
        (r#"{"server":"peer","tool":"args","foo":1}"#, r#"tool/call got unknown key "foo""#),
        (r#"{"server":"peer","tool":"args","args":[1]}"#, "tool 'peer.args' rejected args: :args must be a map, got [1]"),
        (r#"{"server":"peer","tool":"args","args":null}"#, "tool 'peer.args' rejected args: :args must be a map, got nil"),
        (r#"{"server":"peer","tool":"args"}"#, "tool 'peer.args' rejected args: missing required args path"),
        (r#"{"server":"peer","tool":"args","args":{"path":null}}"#, "tool 'peer.args' rejected args: missing required args path"),
        (
            r#"{"server":"peer","tool":"open","args":{"other":1,"pth":"x"}}"#,
            "tool 'peer.open' rejected args: missing required args path",
        ),
        (
            r#"{"server":"peer","tool":"args","args":{"path":5}}"#,
            "tool 'peer.args' rejected args: 'path' must be string, got integer 5",
        ),
        (
            r#"{"server":"peer","tool":"args","args":{"path":"x","mode":"fats"}}"#,
            r#"tool 'peer.args' rejected args: 'mode' must be one of "fast", "slow", got "fats". Did you mean "fast"?"#,
        ),
        (
            r#"{"server":"peer","tool":"args","args":{"path":"x","pagesize":1}}"#,
            "tool 'peer.args' rejected args: unknown arg 'pagesize'",
        ),
    ];
    for (request, expected) in cases {
        assert_eq!(fault(&decode(request)), expected, "{request}");
    }
    assert!(fault(&decode("5")).starts_with("tool/call requires a map, got 5"));
    let hint = |request: &str| program.submit(&decode(request)).err().and_then(|fault| fault.hint).unwrap_or_default();
    for (request, expected) in [
        (r#"{"server":"peer","tool":"open","args":{"other":1,"pth":"x"}}"#, "did you mean 'path' instead of 'pth'?"),
        (r#"{"server":"peer","tool":"args","args":{"path":"x","pagesize":1}}"#, "did you mean 'page_size'?"),
        (r#"{"server":"peer","tool":"args","args":{"path":"x","zebra":1}}"#, "its args: path, page_size, mode"),
        (r#"{"tool":"peer/args"}"#, r#"did you mean {:server "peer" :tool "args"}?"#),
    ] {
        assert_eq!(hint(request), expected, "{request}");
    }
    let echo = |x| {
        let (server, tool) = (ptc_lisp::Value::keyword("peer"), ptc_lisp::Value::keyword("echo"));
        let args = ptc_lisp::Value::map([(ptc_lisp::Value::keyword("x"), x)]);
        let members = [("server", server), ("tool", tool), ("args", args)];
        ptc_lisp::Value::map(members.map(|(name, value)| (ptc_lisp::Value::keyword(name), value)))
    };
    let unsendable = "tool 'peer.echo' rejected args: not JSON-encodable (argument 'x': ";
    assert_eq!(fault(&echo(ptc_lisp::Value::double(f64::NAN))), format!("{unsendable}NaN has no JSON form)"));
    let doubled = [ptc_lisp::Value::keyword("a"), ptc_lisp::Value::string("a")].map(|key| (key, ptc_lisp::Value::int(1)));
    assert_eq!(fault(&echo(ptc_lisp::Value::map(doubled))), format!("{unsendable}the keys :a and \"a\" are one in JSON)"));
    assert!(program.0.calls().is_empty(), "faults of the program do not count as calls");

    // Optional nil arguments are omitted, keywords with hyphens match the schema's names, and keyword values are sent as strings.
    let request = ptc_lisp::Value::map([
        (ptc_lisp::Value::string("server"), ptc_lisp::Value::string("peer")),
        (ptc_lisp::Value::string("tool"), ptc_lisp::Value::string("args")),
        (
            ptc_lisp::Value::string("args"),
            ptc_lisp::Value::map([
                (ptc_lisp::Value::keyword("path"), ptc_lisp::Value::string("x")),
                (ptc_lisp::Value::keyword("page-size"), ptc_lisp::Value::double(5.0)),
                (ptc_lisp::Value::keyword("mode"), ptc_lisp::Value::nil()),
            ]),
        ),
    ]);
    match program.submit(&request) {
        Ok(Reply::Text(text)) => assert_eq!(text, r#"{"page_size":5,"path":"x"}"#),
        other => panic!("{other:?}"),
    }
}
