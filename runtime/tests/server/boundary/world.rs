//! What surrounds the servers under test: a deployment with upstreams of every transport, the upstreams themselves, the planner of
//! `lisp_task`, and a process that embeds an engine with a tool of its own.

use std::io::{BufRead, Write};
use std::process::{Command, ExitCode};
use std::sync::{Arc, Mutex, PoisonError};

use ptc_catalog::{
    Annotations, Body, Catalog, Deployment, EnvPart, Era, McpHttp, McpStdio, OpenApi, Operation, Params, StoredProgram, Tool,
    Tools, Transport, Upstream,
};
use ptc_lisp::limits::{Cancel, Limits};
use ptc_runtime::embed::{Args, Engine, Request, Tool as HostTool, ToolFailure};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::peer::{Peer, server};
use crate::web::{Answer, Asked, Web};

/// The operations of the API: id, path, parameters and the media type of the body. Each style is in each place, with the
/// argument `v`.
pub(crate) const OPERATIONS: &[(&str, &str, &str, &str)] = &[
    ("path_simple", "/x/{v}/y", "path simple - - v", ""),
    ("path_simple_explode", "/x/{v}/y", "path simple explode - v", ""),
    ("path_label", "/x/{v}/y", "path label - - v", ""),
    ("path_label_explode", "/x/{v}/y", "path label explode - v", ""),
    ("path_matrix", "/x/{v}/y", "path matrix - - v", ""),
    ("path_matrix_explode", "/x/{v}/y", "path matrix explode - v", ""),
    ("path_json", "/x/{v}/y", "path json - - v", ""),
    ("query_form", "/x", "query form - - v", ""),
    ("query_form_explode", "/x", "query form explode - v", ""),
    ("query_form_reserved", "/x", "query form - reserved v", ""),
    ("query_space", "/x", "query spaceDelimited - - v", ""),
    ("query_pipe", "/x", "query pipeDelimited - - v", ""),
    ("query_deep", "/x", "query deepObject explode - v", ""),
    ("query_json", "/x", "query json - - v", ""),
    ("query_whole", "/x", "query form - - \tv", ""),
    ("header_simple", "/x", "header simple - - X-V\tv", ""),
    ("header_simple_explode", "/x", "header simple explode - X-V\tv", ""),
    ("header_json", "/x", "header json - - X-V\tv", ""),
    ("cookie_form", "/x", "cookie form - - v", ""),
    ("cookie_form_explode", "/x", "cookie form explode - v", ""),
    ("cookie_cookie", "/x", "cookie cookie explode - v", ""),
    ("cookie_json", "/x", "cookie json - - v", ""),
    ("body_json", "/x", "body json - - v", "application/json"),
    ("body_json_whole", "/x", "body json - - \tv", "application/json"),
    ("body_form", "/x", "body form - - v", "application/x-www-form-urlencoded"),
    ("body_form_explode", "/x", "body form explode - v", "application/x-www-form-urlencoded"),
    ("body_form_deep", "/x", "body deepObject explode - v", "application/x-www-form-urlencoded"),
    ("body_form_json", "/x", "body json - - v", "application/x-www-form-urlencoded"),
    ("body_form_whole", "/x", "body form - - \tv", "application/x-www-form-urlencoded"),
    ("body_multipart", "/x", "body form - - v", "multipart/form-data"),
    ("body_multipart_explode", "/x", "body form explode - v", "multipart/form-data"),
    ("body_multipart_file", "/x", "body base64 explode - v", "multipart/form-data"),
    ("body_multipart_whole", "/x", "body form - - \tv", "multipart/form-data"),
    ("body_text", "/x", "body form - - \tv", "text/plain"),
    ("body_text_latin1", "/x", "body form - - \tv", "text/plain; charset=iso-8859-1"),
    ("body_bytes", "/x", "body base64 - - \tv", "application/octet-stream"),
    // The parameter is only part of a path segment.
    ("two", "/files/{a}{b}", "path simple - - a\npath simple - - b", ""),
    ("hidden", "/dot/.{name}", "path simple - - name", ""),
    ("acl", "/files/{name}?acl", "path simple - - name", ""),
    ("format", "/pets/{id}.{format}", "path simple - - id\npath simple - - format", ""),
    ("bare_format", "/pets/.{format}", "path simple - - format", ""),
];

fn tool(name: &'static str, operation: Option<Operation>) -> Tool {
    Tool {
        name,
        effects: Annotations { read_only: Some(true), ..Annotations::NONE },
        operation: operation.map(|operation| &*Box::leak(Box::new(operation))),
        ..Tool::EMPTY
    }
}

/// Returns a deployment with an API, an MCP server over HTTP at the same address, a child that echoes arguments, a child that does
/// not read, and stored programs.
pub(crate) fn deployment() -> &'static Deployment {
    let base: &'static str = std::env::var("BOUNDARY_WEB").unwrap_or_else(|_| "http://127.0.0.1:9".into()).leak();
    let cap = std::env::var("BOUNDARY_CAP").ok().and_then(|cap| cap.parse().ok()).unwrap_or(2 * 1024 * 1024);
    let mut operations: Vec<Tool> = OPERATIONS
        .iter()
        .map(|&(id, path, params, media_type)| {
            let body = Body { media_type, ..Body::NONE };
            let method = if media_type.is_empty() { "GET" } else { "POST" };
            tool(id, Some(Operation { method, params: Params(params), body, ..Operation::new(id, path) }))
        })
        .collect();
    operations.sort_by_key(|tool| tool.name);
    let exe: &'static str = std::env::current_exe().expect("a test has a file").to_string_lossy().into_owned().leak();
    let child = |role: &'static str| McpStdio {
        env: vec![(crate::ROLE, &*vec![EnvPart::Text(role)].leak())].leak(),
        era: Some(Era::Handshake),
        ..McpStdio::new(exe)
    };
    let web = McpHttp { era: Some(Era::Handshake), ..McpHttp::new(format!("{base}/mcp").leak()) };
    let api = OpenApi { max_response_bytes: cap, ..OpenApi::new(format!("{base}/api/v1/tenant7").leak()) };
    let upstream =
        |name, transport, tools: Vec<Tool>| Upstream { name, description: "", transport, tools: Tools::table(tools.leak()) };
    let upstreams = vec![
        upstream("api", Transport::OpenApi(api), operations),
        upstream("child", Transport::McpStdio(child("deaf")), vec![tool("take", None)]),
        upstream("stdio", Transport::McpStdio(child("echo of arguments")), vec![tool("echo", None), tool("hang", None)]),
        upstream("web", Transport::McpHttp(web), vec![tool("answer", None), tool("echo", None), tool("hang", None)]),
    ];
    let catalog = Box::leak(Box::new(Catalog { digest: "", search_index: &[], upstreams: upstreams.leak() }));
    let stored = |name, output_schema| StoredProgram {
        name,
        description: "",
        source: "data/v",
        digest: "sha256:0",
        args: r#"{"type":"object"}"#,
        output_schema,
    };
    let programs = vec![
        stored("checked", r#"{"type":"array","uniqueItems":true,"items":{"type":["string","integer"]}}"#),
        stored("same", ""),
    ];
    Box::leak(Box::new(Deployment {
        name: "boundary",
        compiler: "none",
        catalog,
        programs: programs.leak(),
        ..Deployment::EMPTY
    }))
}

/// A message of MCP. Arguments are not parsed, since they may be large or deep.
#[derive(Deserialize)]
struct Message<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

/// The parameters of a call.
#[derive(Deserialize)]
struct ToolCall<'a> {
    name: &'a str,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// Returns the answer of the tools `answer` and `echo`, and of a handshake. `None` for a notification and for other tools.
fn answer(text: &str) -> Option<String> {
    let message: Message<'_> = serde_json::from_str(text).ok()?;
    let id = message.id?;
    let call = message.params.and_then(|params| serde_json::from_str::<ToolCall<'_>>(params.get()).ok());
    let result = match call {
        Some(ToolCall { name: "answer", .. }) => {
            json!({ "content": [{ "type": "text", "text": text.len().to_string() }] }).to_string()
        }
        Some(ToolCall { name: "echo", arguments }) => {
            format!(r#"{{"content":[],"structuredContent":{}}}"#, arguments.map_or("null", RawValue::get))
        }
        Some(_) => return None,
        None => r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"w","version":"1"}}"#.into(),
    };
    Some(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
}

/// Runs a child that completes the handshake and then stops reading.
pub(crate) fn serve_deaf() -> ExitCode {
    if let Some(Ok(line)) = std::io::stdin().lock().lines().next() {
        let _ = writeln!(std::io::stdout(), "{}", answer(&line).unwrap_or_default());
    }
    // The parent kills this process.
    loop {
        std::thread::sleep(std::time::Duration::from_mins(10));
    }
}

/// Runs a child whose tool `echo` returns its arguments, and whose tool `hang` never answers.
pub(crate) fn serve_echo() -> ExitCode {
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        if let Some(answer) = answer(&line)
            && writeln!(std::io::stdout(), "{answer}").is_err()
        {
            break;
        }
    }
    ExitCode::SUCCESS
}

/// Starts the API, which echoes the body or else the request target, and the MCP server, whose tool `hang` never answers.
pub(crate) fn service() -> Web {
    Web::start(|asked: &Asked| {
        if asked.target == "/mcp" {
            return match answer(&asked.body) {
                Some(answer) => Answer::json(200, answer),
                None if asked.body.contains(r#""method":"tools/call""#) => Answer::Hang,
                None => Answer::Full(202, vec![], vec![]),
            };
        }
        match asked.header("content-type") {
            Some(kind) => Answer::Full(200, vec![format!("Content-Type: {kind}")], asked.bytes.clone()),
            None => Answer::json(200, json!({ "target": asked.target, "padding": "x".repeat(5_000) })),
        }
    })
}

/// The program that the planner answers next.
pub(crate) type Planned = Arc<Mutex<String>>;

/// Starts an OpenAI-compatible planner that answers every task with the same program, until another one is set.
pub(crate) fn planner() -> (Web, Planned) {
    let planned = Planned::default();
    let next = Arc::clone(&planned);
    let web = Web::start(move |_| {
        let program = next.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let message = json!({ "role": "assistant", "content": format!("```clojure\n{program}\n```") });
        let choices = json!([{ "index": 0, "message": message, "finish_reason": "stop" }]);
        Answer::json(200, json!({ "id": "x", "object": "chat.completion", "model": "replayed", "choices": choices }))
    });
    (web, planned)
}

/// Returns the command of a server with the deployment.
pub(crate) fn command(web: &Web, args: &[&str]) -> Command {
    let mut command = server("boundary");
    command.env("BOUNDARY_WEB", web.url("")).args(["--on-drift", "off"]).args(args);
    command
}

pub(crate) fn start(web: &Web, args: &[&str]) -> Peer {
    Peer::of(&mut command(web, args))
}

/// Runs an engine with tools of its own. It reads the calls and cancellations that a server reads, and runs one program at a time.
pub(crate) fn serve_embedded() -> ExitCode {
    let number = |name: &str| std::env::var(name).ok().and_then(|number| number.parse::<u64>().ok()).unwrap_or(0);
    let limits = Limits::default()
        .wall_clock(std::time::Duration::from_millis(number("BOUNDARY_TIMEOUT_MS")))
        .memory_bytes(number("BOUNDARY_MEMORY_BYTES"));
    let tool = |name: &str, signature: &str| {
        HostTool::new(name, signature, |args: Args| Ok(args.value().items().map_or(0, Iterator::count)))
    };
    let hang = HostTool::new_async("hang", "(v :any) -> :int", |_: Args| std::future::pending::<Result<i64, ToolFailure>>());
    let (Ok(any), Ok(list), Ok(hang)) = (tool("any", "(v :any) -> :int"), tool("list", "(v [:string]) -> :int"), hang) else {
        return ExitCode::FAILURE;
    };
    let builder = Engine::builder().tool(any).tool(list).tool(hang).limits(limits).concurrent(1);
    let Ok(engine) = builder.build() else { return ExitCode::FAILURE };
    let engine = Arc::new(engine);
    let mut running: Vec<(Value, Cancel)> = Vec::new();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        if message["method"] == "notifications/cancelled" {
            let cancelled = running.iter().filter(|(id, _)| *id == message["params"]["requestId"]);
            cancelled.for_each(|(_, cancel)| cancel.cancel());
            continue;
        }
        let program = message["params"]["arguments"]["program"].as_str().unwrap_or_default().to_owned();
        let (engine, cancel, id) = (Arc::clone(&engine), Cancel::default(), message["id"].clone());
        running = vec![(id.clone(), cancel.clone())];
        std::thread::spawn(move || {
            let ended = engine.run(Request::new(program).cancel(cancel));
            let text = match ended.value() {
                Ok(_) => format!("user=> {}", ended.preview().unwrap_or_default()),
                Err(failure) => format!("{}: {}", failure.reason.name(), failure.message),
            };
            let result = json!({ "content": [{ "type": "text", "text": text }] });
            let _ = writeln!(std::io::stdout(), "{}", json!({ "jsonrpc": "2.0", "id": id, "result": result }));
        });
    }
    ExitCode::SUCCESS
}
