//! Secrets of every source and scheme, upstreams that echo them in every place that they have, and a server that says as much as it
//! can: nothing of what leaves it may hold one.

use std::fmt::Write as _;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ptc_catalog::{
    Annotations, Auth, Binding, Catalog, Deployment, EnvPart, McpHttp, McpStdio, OpenApi, Operation, Source, Tool, Transport,
    Upstream,
};
use serde_json::{Value, json};

use crate::Test;
use crate::peer::{Peer, server};
use crate::web::{Answer, Asked, Web};

/// The tests of this module.
pub(crate) const TESTS: &[Test] = &[
    ("canary::no_secret_leaves_the_process", no_secret_leaves_the_process),
    ("canary::memory_stays_in_the_process", memory_stays_in_the_process),
];

// Each has what needs an escape: in JSON, in a URL.
const BEARER: &str = "b3arer/c4nary+\"one\"";
const HEADER: &str = "h3ader c4nary&two";
const BASIC: &str = "ann:b4sic/c4nary?three";
const PASSWORD: &str = "b4sic/c4nary?three";
const CHILD: &str = "ch1ld\\c4nary=four";
const ARGUMENT: &str = "arg-c4nary-five";
const CANARIES: [&str; 5] = [BEARER, HEADER, PASSWORD, CHILD, ARGUMENT];

const TOOLS: [&str; 10] = ["bits", "die", "error", "events", "fail", "header", "json", "refuse", "structured", "text"];

fn tool(name: &'static str, operation: Option<&'static Operation>) -> Tool {
    // As if a server had said them when the catalog was frozen.
    let description: &'static str = format!("Frozen with {BEARER} and {CHILD}").leak();
    let definition: &'static str =
        json!({"name": name, "description": description, "inputSchema": {"type": "object"}}).to_string().leak();
    let annotations = Annotations { read_only: None, destructive: None, idempotent: None, open_world: None };
    Tool { name, description, args: &[], closed: false, doc: description, definition, digest: "", annotations, operation }
}

fn tools() -> &'static [Tool] {
    TOOLS.map(|name| tool(name, None)).to_vec_leaked()
}

trait Leaked<T> {
    fn to_vec_leaked(self) -> &'static [T];
}

impl<T, const N: usize> Leaked<T> for [T; N] {
    fn to_vec_leaked(self) -> &'static [T] {
        Vec::from(self).leak()
    }
}

/// Two MCP servers and an API; the address of the latter two is in the environment.
pub(crate) fn deployment() -> &'static Deployment {
    let variable = |name: &str| -> &'static str { std::env::var(name).expect("the test sets it").leak() };
    let exe = std::env::current_exe().expect("a test has a file").to_string_lossy().into_owned().leak();
    let child = McpStdio {
        args: &["--token", ARGUMENT],
        env: &[(crate::ROLE, &[EnvPart::Text("echoing")]), ("CHILD_TOKEN", &[EnvPart::Var("CANARY_CHILD")])],
        ..McpStdio::new(exe)
    };
    let base = variable("CANARY_WEB");
    let web = McpHttp {
        auth: &[Auth::Bearer { binding: "bearer" }, Auth::CustomHeader { header: "X-Key", binding: "header" }],
        ..McpHttp::new(format!("{base}/mcp").leak())
    };
    let api = OpenApi { auth: &[Auth::Basic { binding: "basic" }], ..OpenApi::new(base) };
    let operations = ["bits", "fail", "header", "json"].map(|name| {
        let path: &'static str = format!("/{name}").leak();
        tool(name, Some(Box::leak(Box::new(Operation { id: name, path, params: &[], default_args: &[] }))))
    });
    let upstream = |name, transport, tools| Upstream { name, description: BEARER, transport, tools };
    let upstreams = [
        upstream("api", Transport::OpenApi(api), operations.to_vec_leaked()),
        upstream("child", Transport::McpStdio(child), tools()),
        upstream("web", Transport::McpHttp(web), tools()),
    ];
    let credentials = [
        Binding { name: "basic", source: Source::Literal { value: BASIC } },
        Binding { name: "bearer", source: Source::Env { var: "CANARY_BEARER" } },
        Binding { name: "header", source: Source::File { path: variable("CANARY_FILE") } },
    ];
    let catalog = Box::leak(Box::new(Catalog { digest: "", upstreams: upstreams.to_vec_leaked() }));
    let credentials = credentials.to_vec_leaked();
    Box::leak(Box::new(Deployment { name: "canary", compiler: "none", config_digest: "", credentials, catalog, programs: &[] }))
}

/// What an upstream knows, in all spellings.
fn known(secrets: &[String]) -> String {
    let mut text = String::new();
    for secret in secrets {
        let bits = ["", "x", "xy"].map(|before| STANDARD.encode(format!("{before}{secret} and more"))).join(" ");
        let _ = writeln!(text, "{secret} | {} | {bits} | {}", url(secret), json!(secret));
    }
    text
}

fn url(secret: &str) -> String {
    percent_encoding::utf8_percent_encode(secret, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// The result of a tool: every place that MCP has.
fn result(name: &str, known: &str) -> Value {
    let text = json!([{"type": "text", "text": known}, {"type": known, known: known}]);
    match name {
        "fail" => json!({"isError": true, "content": text}),
        "json" => json!({"content": [{"type": "text", "text": json!({known: [known]}).to_string()}]}),
        "structured" => json!({"content": text, "structuredContent": {known: {"deep": [known]}}, "_meta": {known: known}}),
        _ => json!({"content": text}),
    }
}

fn handshake(known: &str) -> Value {
    json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": known, "version": known}, "instructions": known})
}

fn listing(known: &str) -> Value {
    json!({"tools": TOOLS.map(|name| json!({"name": name, "title": known, "description": known, "inputSchema": {"type": "object"}}))})
}

/// The child: echoes its arguments and environment.
pub(crate) fn serve() -> ExitCode {
    let secrets: Vec<String> = std::env::args().skip(2).chain(std::env::var("CHILD_TOKEN")).collect();
    let known = known(&secrets);
    let say = |text: &str| {
        let mut output = std::io::stdout().lock();
        let _ = output.write_all(text.as_bytes()).and_then(|()| output.flush());
    };
    // Across the ends of writes, and longer than what is kept of a line.
    for byte in known.bytes() {
        let _ = std::io::stderr().write_all(&[byte]);
    }
    let _ = writeln!(std::io::stderr(), "{}", known.replace('\n', " ").repeat(60));
    say(&known);
    for line in std::io::stdin().lock().lines() {
        let Ok(Ok(message)) = line.map(|line| serde_json::from_str::<Value>(&line)) else { break };
        let (id, name) = (&message["id"], message["params"]["name"].as_str().unwrap_or_default());
        let result = match message["method"].as_str() {
            Some("initialize") => handshake(&known),
            Some("tools/list") => listing(&known),
            Some("tools/call") if name == "die" => {
                let _ = write!(std::io::stderr(), "{}", known.trim_end().replace('\n', " "));
                std::process::exit(3);
            }
            Some("tools/call") if name == "refuse" => {
                say(&format!("{{\"broken {}\n", known.replace('\n', " ")));
                continue;
            }
            Some("tools/call") if matches!(name, "error" | "events" | "header") => {
                say(&format!(
                    "{}\n",
                    json!({"jsonrpc": "2.0", "id": id, "error": {"code": -1, "message": known, "data": {&known: known}}})
                ));
                continue;
            }
            Some("tools/call") => result(name, &known),
            _ if id.is_null() => continue,
            _ => {
                say(&format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": known}})));
                continue;
            }
        };
        say(&format!("{}\n", json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": known}})));
        let frame = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
        // In two writes, the first of which ends within a secret.
        let half = frame.find(ARGUMENT).map_or(frame.len() / 2, |at| at + 5);
        say(&frame[..half]);
        std::thread::sleep(Duration::from_millis(5));
        say(&frame[half..]);
        say("\n");
    }
    ExitCode::SUCCESS
}

/// The HTTP side: echoes its headers.
fn web(asked: &Asked) -> Answer {
    let authorization = asked.header("authorization").unwrap_or_default();
    let decoded = authorization.strip_prefix("Basic ").and_then(|bits| String::from_utf8(STANDARD.decode(bits).ok()?).ok());
    let secrets: Vec<String> = [
        authorization.strip_prefix("Bearer ").map(str::to_owned),
        asked.header("x-key").map(str::to_owned),
        decoded.as_deref().and_then(|pair| pair.split_once(':')).map(|(_, password)| password.to_owned()),
    ]
    .into_iter()
    .flatten()
    .collect();
    assert!(!secrets.is_empty(), "{asked:?}");
    let known = format!("{authorization} {}", known(&secrets));
    let line = known.replace('\n', " ");
    let plain = |status: u16, kind: &str, body: String| {
        let headers = vec![
            format!("Content-Type: {kind}"),
            format!("X-Echo: {line}"),
            format!("Retry-After: {line}"),
            format!("Location: http://elsewhere.invalid/{}?q={line}", secrets[0]),
        ];
        Answer::Full(status, headers, body.into_bytes())
    };
    let frame = asked.json();
    let (id, name) = (&frame["id"], frame["params"]["name"].as_str().unwrap_or_else(|| asked.target.trim_start_matches('/')));
    let rpc = |result: Value| plain(200, "application/json", json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string());
    let method = frame["method"].as_str();
    match (method, name) {
        (Some("server/discover"), _) => plain(400, "text/plain", known),
        (Some("initialize"), _) => rpc(handshake(&known)),
        (Some("tools/list"), _) => rpc(listing(&known)),
        (Some("tools/call"), "events") => {
            let data = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": known}});
            let result = json!({"jsonrpc": "2.0", "id": id, "result": result("structured", &known)});
            Answer::Stream(vec![(0, format!(": {line}\nid: {line}\nevent: {line}\ndata: {data}\n\ndata: {result}\n\n"))])
        }
        (Some("tools/call"), "error") => plain(
            200,
            "application/json",
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": -1, "message": known, "data": known}}).to_string(),
        ),
        (_, "refuse") => plain(401, "text/plain", known),
        (_, "header") => plain(307, "text/plain", known),
        (_, "die") => plain(500, "text/html", format!("<b>{known}</b>")),
        (_, "bits") => plain(200, "text/plain", known),
        (None, "fail") => {
            plain(422, "application/problem+json", json!({"title": known, "detail": known, "more": {&known: known}}).to_string())
        }
        (None, _) if asked.method == "GET" => plain(200, "application/json", json!({&known: [known]}).to_string()),
        (Some("tools/call"), _) => rpc(result(name, &known)),
        _ => Answer::Full(202, vec![], vec![]),
    }
}

fn start(command: &str) -> (std::process::Command, PathBuf) {
    let web = Web::start(web);
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("canary-{command}"));
    std::fs::write(&file, format!("{HEADER}\n")).expect("a file");
    let mut server = server("canary");
    server.env("CANARY_WEB", web.url("")).env("CANARY_FILE", &file).env("CANARY_BEARER", BEARER).env("CANARY_CHILD", CHILD);
    (server, file)
}

/// Programs that show what they get in every way that there is.
fn programs() -> Vec<String> {
    let mut programs: Vec<String> = Vec::new();
    for (server, tools) in [("child", &TOOLS[..]), ("web", &TOOLS[..]), ("api", &["bits", "fail", "header", "json"][..])] {
        for tool in tools {
            let call = format!("(tool/call {{:server \"{server}\" :tool \"{tool}\"}})");
            programs.push(format!("(let [r {call}] (println r) (println (pr-str (:value r))) r)"));
            programs.push(format!("(fail {call})"));
            programs.push(format!("(let [r {call}] (+ 1 (str r)))"));
            programs.push(format!("[(doc \"{server}/{tool}\") (meta \"{server}/{tool}\")]"));
        }
        programs.push(format!("[(dir \"{server}\") (tool/servers) (apropos \"frozen\" {{:limit 50}})]"));
    }
    programs
}

fn assert_clean(what: &str, text: &str) {
    for canary in CANARIES {
        let escaped = json!(canary).to_string();
        let mut spellings = vec![canary.to_owned(), escaped[1..escaped.len() - 1].to_owned(), url(canary)];
        // What of base64 depends on the secret alone.
        for offset in 0..3 {
            let text = STANDARD.encode(format!("{}{canary}", &"xy"[..offset]));
            let (first, past) = ((offset * 8usize).div_ceil(6), (offset + canary.len()) * 8 / 6);
            spellings.push(text[first..past].to_owned());
        }
        for spelling in spellings {
            if let Some(at) = text.find(&spelling) {
                let from = (0..=at.saturating_sub(200)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
                panic!("{what} holds {spelling}: …{}", &text[from..at + spelling.len()]);
            }
        }
    }
}

fn no_secret_leaves_the_process() {
    let (mut command, file) = start("serves");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("canary-traces");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    command.args([
        "--response-profile",
        "debug",
        "--log-level",
        "debug",
        "--catalog-mode",
        "inline",
        "--sessions",
        "--debug-tool",
    ]);
    command.args(["--trace-payloads", "full", "--max-debug-response-bytes", "10000000", "--trace-dir"]).arg(&folder);
    let mut server = Peer::of(&mut command);
    let mut said = String::new();
    server.send(r#"{"jsonrpc":"2.0","id":"t","method":"tools/list"}"#);
    said.push_str(&server.receive());
    for (id, program) in programs().iter().enumerate() {
        said.push_str(&server.ask(&id.to_string(), program));
        said.push('\n');
    }
    // What a client says itself comes back to nobody else either.
    let known = known(&CANARIES.map(str::to_owned));
    for (tool, arguments) in [
        (
            "lisp_eval",
            json!({"program": format!("(println {0}) (fail {0})", json!(BEARER)), "context": {"k": known, BEARER: [known]}}),
        ),
        ("lisp_eval", json!({"program": format!("(foo {}", json!(HEADER)), "context": {format!("{ARGUMENT}/x"): 1}})),
        ("lisp_eval", json!({"program": "data/k", "context": {"k": known}, "output_schema": {"enum": [ARGUMENT]}})),
        ("lisp_eval", json!({"program": "1", "output_schema": {ARGUMENT: known}})),
        ("lisp_session_eval", json!({"session_id": ARGUMENT, "program": known})),
        ("lisp_debug", json!({"op": ARGUMENT})),
        (ARGUMENT, json!({})),
        ("lisp_debug", json!({"op": "recent", "limit": 200})),
        ("lisp_debug", json!({"op": "get", "request_id": "3"})),
        ("lisp_debug", json!({"op": "stats"})),
    ] {
        let params = json!({"name": tool, "arguments": arguments});
        server.send(&json!({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": params}).to_string());
        said.push_str(&server.receive());
        said.push('\n');
    }
    let shown = std::fs::read_to_string(format!("/proc/{}/cmdline", server.id())).unwrap_or_default();
    drop(server.input.take());
    said.extend(server.rest());
    let mut traces = String::new();
    for entry in std::fs::read_dir(&folder).expect("the folder is there") {
        traces.push_str(&std::fs::read_to_string(entry.expect("readable").path()).expect("text"));
    }
    let (status, log) = server.end();
    assert!(status.success(), "{log}");
    std::fs::remove_file(file).expect("the file was there");
    // It is no proof of anything that a server that says nothing says no secrets.
    assert!(said.matches("[REDACTED]").count() > 100 && log.matches("[REDACTED]").count() > 10, "{said}\n{log}");
    assert!(traces.matches("[REDACTED]").count() > 100, "{traces}");
    for (what, text) in [("standard output", &said), ("the log", &log), ("the command line", &shown), ("traces", &traces)] {
        assert_clean(what, text);
    }
}

fn memory_stays_in_the_process() {
    let (mut command, file) = start("memory");
    let mut server = Peer::of(&mut command);
    server.ask("1", "(+ 1 2)");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.id())).expect("a running process has limits");
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).expect("it is a limit");
    assert_eq!(core.split_whitespace().skip(4).take(2).collect::<Vec<_>>(), ["0", "0"], "{core}");
    drop(server.input.take());
    assert!(server.end().0.success());
    std::fs::remove_file(file).expect("the file was there");
}
