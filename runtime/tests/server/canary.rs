//! Secrets of every source and authentication scheme, upstreams that echo them in every part of their answers, and a server with
//! all output enabled. No output may contain a secret.

use std::path::PathBuf;
use std::process::ExitCode;

use ptc_catalog::{
    Auth, Binding, Catalog, ClientAuth, Deployment, EnvPart, GrantType, KeyPlace, McpHttp, McpStdio, OAuth2, OpenApi, Operation,
    Proxy, Source, Tool, Tools, Transport, Upstream,
};
use serde_json::json;

use crate::Test;
use crate::echoing::{OPERATIONS, TOOLS, assert_clean, known, programs, web};
use crate::peer::{Peer, server};
use crate::web::{Answer, Asked, Web};

/// The tests of this module.
pub(crate) const TESTS: &[Test] = &[
    ("canary::output_of_the_process_contains_no_secret", output_of_the_process_contains_no_secret),
    ("canary::core_dumps_of_the_process_are_disabled", core_dumps_of_the_process_are_disabled),
];

// Each contains characters that need escaping in JSON or in a URL.
pub(crate) const BEARER: &str = "b3arer/c4nary+\"one\"";
const HEADER: &str = "h3ader c4nary&two";
const BASIC: &str = "ann:b4sic/c4nary?three";
const PASSWORD: &str = "b4sic/c4nary?three";
const CHILD: &str = "ch1ld\\c4nary=four";
const ARGUMENT: &str = "arg-c4nary-five";
const QUERY: &str = "qu3ry/c4nary &six+";
const COOKIE: &str = "c00kie/c4nary;seven=";
const PROXY: &str = "bob:pr0xy/c4nary+eight%41";
const PROXY_PASSWORD: &str = "pr0xy/c4nary+eight%41";
const CLIENT: &str = "cl1ent/c4nary+nine";
/// The access token that the authorization server issues.
const ISSUED: &str = "1ssued/c4nary+ten.~";
const CANARIES: [&str; 10] = [BEARER, HEADER, PASSWORD, CHILD, ARGUMENT, QUERY, COOKIE, PROXY_PASSWORD, CLIENT, ISSUED];

fn tool(name: &'static str, operation: Option<&'static Operation>) -> Tool {
    // The texts simulate a server that returned the secrets when the catalog was frozen.
    let description: &'static str = format!("Frozen with {BEARER} and {CHILD}").leak();
    let definition: &'static str =
        json!({"name": name, "description": description, "inputSchema": {"type": "object"}}).to_string().leak();
    Tool { name, description, doc: description, definition, operation, ..Tool::EMPTY }
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

/// Returns a deployment with two MCP servers and an API. The address of the last two comes from the environment.
pub(crate) fn deployment() -> &'static Deployment {
    let variable = |name: &str| -> &'static str { std::env::var(name).unwrap_or_default().leak() };
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
    let api = OpenApi {
        auth: &[
            Auth::Basic { binding: "basic" },
            Auth::ApiKey { place: KeyPlace::Query, name: "key", binding: "query" },
            Auth::ApiKey { place: KeyPlace::Cookie, name: "sid", binding: "cookie" },
        ],
        proxy: Some(Proxy { auth: Some("proxy"), ..Proxy::new(base) }),
        ..OpenApi::new(base)
    };
    let oauth: OAuth2 = OAuth2 {
        token_url: format!("{base}/token").leak(),
        client_id: "canary",
        client_auth: ClientAuth::SecretPost,
        binding: "client",
        ..OAuth2::new(GrantType::ClientCredentials)
    };
    let issued = McpHttp { auth: [Auth::OAuth2(oauth)].to_vec_leaked(), ..McpHttp::new(format!("{base}/mcp").leak()) };
    let operations = OPERATIONS.map(|name| {
        let path: &'static str = format!("/{name}").leak();
        tool(name, Some(Box::leak(Box::new(Operation::new(name, path)))))
    });
    let upstream = |name, transport, tools| Upstream { name, description: BEARER, transport, tools: Tools::table(tools) };
    let upstreams = [
        upstream("api", Transport::OpenApi(api), operations.to_vec_leaked()),
        upstream("child", Transport::McpStdio(child), tools()),
        upstream("issued", Transport::McpHttp(issued), tools()),
        upstream("web", Transport::McpHttp(web), tools()),
    ];
    let credentials = [
        Binding { name: "basic", source: Source::Literal { value: BASIC } },
        Binding { name: "bearer", source: Source::Env { var: "CANARY_BEARER" } },
        Binding { name: "client", source: Source::Literal { value: CLIENT } },
        Binding { name: "cookie", source: Source::Literal { value: COOKIE } },
        Binding { name: "header", source: Source::File { path: variable("CANARY_FILE") } },
        Binding { name: "proxy", source: Source::Literal { value: PROXY } },
        Binding { name: "query", source: Source::Literal { value: QUERY } },
    ];
    let catalog = Box::leak(Box::new(Catalog { digest: "", search_index: &[], upstreams: upstreams.to_vec_leaked() }));
    let credentials = credentials.to_vec_leaked();
    Box::leak(Box::new(Deployment { name: "canary", compiler: "none", credentials, catalog, ..Deployment::EMPTY }))
}

/// Runs the child, which echoes its arguments and environment.
pub(crate) fn serve() -> ExitCode {
    let secrets: Vec<String> = std::env::args().skip(2).chain(std::env::var("CHILD_TOKEN")).collect();
    crate::echoing::serve(&secrets)
}

/// Issues a token, or echoes the secrets of a request.
fn web_with_tokens(asked: &Asked) -> Answer {
    if asked.target == "/token" {
        return Answer::json(
            200,
            json!({ "access_token": ISSUED, "token_type": "bearer", "expires_in": 3_600, "echo": asked.body }),
        );
    }
    web(asked)
}

pub(crate) fn start(command: &str) -> (std::process::Command, PathBuf) {
    let web = Web::start(web_with_tokens);
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("canary-{command}"));
    std::fs::write(&file, format!("{HEADER}\n")).expect("a file");
    let mut server = server("canary");
    // Nothing listens at this address. If the server used a proxy from the environment, every call would fail.
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"] {
        server.env(name, "http://127.0.0.1:9");
    }
    server.env("CANARY_WEB", web.url("")).env("CANARY_FILE", &file).env("CANARY_BEARER", BEARER).env("CANARY_CHILD", CHILD);
    (server, file)
}

fn output_of_the_process_contains_no_secret() {
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
    let recordings = tempfile::tempdir().expect("a folder");
    command.arg("--record-dir").arg(recordings.path());
    let mut server = Peer::of(&mut command);
    let mut said = String::new();
    server.send(r#"{"jsonrpc":"2.0","id":"t","method":"tools/list"}"#);
    said.push_str(&server.receive());
    for (id, program) in
        programs(&[("child", &TOOLS), ("web", &TOOLS), ("issued", &TOOLS), ("api", &OPERATIONS)]).iter().enumerate()
    {
        said.push_str(&server.ask(&id.to_string(), program));
        said.push('\n');
    }
    // Arguments of calls are recorded too.
    for server_name in ["child", "web", "issued", "api"] {
        let args = json!({ "k": known(&CANARIES.map(str::to_owned)), "deep": [{ HEADER: CLIENT }] });
        let program = format!("(tool/call {{:server \"{server_name}\" :tool \"json\" :args data/args}})");
        let params = json!({"name": "lisp_eval", "arguments": {"program": program, "context": {"args": args}}});
        server.send(&json!({"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": params}).to_string());
        said.push_str(&server.receive());
        said.push('\n');
    }
    // Secrets in a client's own requests must not be returned or logged either.
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
    // Secrets in a session's title and state must not be returned either.
    let mut ask = |tool: &str, arguments: serde_json::Value| {
        let params = json!({"name": tool, "arguments": arguments});
        server.send(&json!({"jsonrpc": "2.0", "id": "s", "method": "tools/call", "params": params}).to_string());
        let line = server.receive();
        said.push_str(&line);
        said.push('\n');
        serde_json::from_str::<serde_json::Value>(&line).expect("a line of JSON")["result"]["structuredContent"].clone()
    };
    let id = ask("lisp_session_start", json!({"title": BEARER}))["session_id"].clone();
    let program = format!("(def k {}) (def x-{ARGUMENT} 1) (println k) k", json!(known));
    assert_eq!(ask("lisp_session_eval", json!({"session_id": id, "program": program}))["status"], "ok");
    for view in ["overview", "memory", "prints", "tool_calls", "history", "limits"] {
        assert_eq!(ask("lisp_session_inspect", json!({"session_id": id, "view": view}))["view"], view);
    }
    assert_eq!(ask("lisp_session_list", json!({}))["count"], 1);
    let forgot = ask("lisp_session_forget", json!({"session_id": id, "bindings": [format!("x-{ARGUMENT}")]}));
    assert_eq!(forgot["removed_bindings"], json!(["x-[REDACTED]"]));
    ask("lisp_session_close", json!({"session_id": id, "reason": HEADER}));
    let shown = std::fs::read_to_string(format!("/proc/{}/cmdline", server.id())).unwrap_or_default();
    drop(server.input.take());
    said.extend(server.rest());
    let mut traces = String::new();
    for entry in std::fs::read_dir(&folder).expect("the folder is there") {
        traces.push_str(&std::fs::read_to_string(entry.expect("readable").path()).expect("text"));
    }
    let (status, log) = server.end();
    assert!(status.success(), "{log}");
    let recorded = crate::recording::texts(recordings.path());
    std::fs::remove_file(file).expect("the file was there");
    for server in ["web", "issued"] {
        assert!(said.contains(&format!("\"server\":\"{server}\",\"tool\":\"text\",\"status\":\"ok\"")), "{said}");
    }
    // The absence of secrets is meaningful only if they would have been printed.
    assert!(said.matches("[REDACTED]").count() > 100 && log.matches("[REDACTED]").count() > 10, "{said}\n{log}");
    assert!(traces.matches("[REDACTED]").count() > 100, "{traces}");
    for server in ["api", "child", "issued", "web"] {
        let tool = format!("\"{server}/json\"");
        let with_arguments = recorded.iter().filter(|text| text.contains(&tool) && text.contains("\"k\": \"[REDACTED]"));
        assert!(recorded.iter().any(|text| text.contains(&tool)) && with_arguments.count() > 0, "{server}: {recorded:#?}");
    }
    let recorded = recorded.concat();
    assert!(recorded.matches("[REDACTED]").count() > 100, "{recorded}");
    for (what, text) in [
        ("standard output", &said),
        ("the log", &log),
        ("the command line", &shown),
        ("traces", &traces),
        ("recordings", &recorded),
    ] {
        assert_clean(&CANARIES, what, text);
    }
}

fn core_dumps_of_the_process_are_disabled() {
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
