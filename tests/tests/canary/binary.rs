//! Tests a pinned binary with all optional features built in and all flags on, as a child process and as a listener. Also tests
//! `ptc-compile run` with a catalog that is filled while it serves.

use std::cell::RefCell;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ptc_tests::deployment::ptc_compile;
use ptc_tests::process::run;
use serde_json::{Value, json};

use super::echoing::{self, OPERATIONS, TOOLS, assert_clean, known, programs};
use crate::redis::Redis;
use crate::web::{Answer, Asked, Web};

// Each secret has a character that must be escaped in JSON or in a URL.
const BEARER: &str = "b3arer/c4nary+\"one\"";
const HEADER: &str = "h3ader c4nary&two";
const PASSWORD: &str = "b4sic/c4nary?three";
const CHILD: &str = "ch1ld\\c4nary=four";
const DATABASE: &str = "d4tabase-c4nary-five";
const OBJECT: &str = "0bject/c4nary;six";
const PLANNER: &str = "pl4nner+c4nary/seven";
const CLIENTS: &str = "cl1ents-c4nary-eight-and-thirty-two-bytes-of-it";
const INHERITED: &str = "1nherited/c4nary\\eleven";
const COLLECTOR: &str = "c0llector-c4nary/ten";
const QUERY: &str = "qu3ry/c4nary &thirteen+";
const COOKIE: &str = "c00kie/c4nary;fourteen=";
/// The tokens of a login: of one whose access token is valid, and of one that cannot be renewed.
const ACCESS: &str = "4ccess/c4nary+fifteen=";
const REFRESH: &str = "r3fresh/c4nary+sixteen=";
const REFUSED: &str = "r3fused/c4nary+seventeen=";
/// The refresh token that a person enters, which the authorization server replaces. No server knows it.
const ENTERED: &str = "3ntered/c4nary+eighteen=";
/// This secret is a literal in the config, so the binary contains it.
const LITERAL: &str = "l1teral/c4nary=nine";
const CANARIES: [&str; 16] = [
    BEARER, HEADER, PASSWORD, CHILD, DATABASE, INHERITED, OBJECT, PLANNER, CLIENTS, COLLECTOR, QUERY, COOKIE, ACCESS, REFRESH,
    REFUSED, LITERAL,
];
/// The password of the session store. Only servers with a store know it, so upstreams cannot echo it.
const STORE: &str = "st0re/c4nary&twelve";

/// Environment variable that makes a child echo its secrets.
const ECHOING: &str = "PTC_TEST_ECHOING";
/// Maximum time that a test waits for a condition. It is generous, because passing tests never wait that long.
const PATIENCE: Duration = Duration::from_mins(1);

/// This is not a test of its own, but the child process of the other tests.
#[test]
fn child() {
    if std::env::var_os(ECHOING).is_some() {
        let passed = ["CHILD_TOKEN", "DATABASE_URL", "CANARY_TOKEN"];
        let [token, database, inherited] = passed.map(|name| std::env::var(name).expect("the config passes it on"));
        let password = database.split([':', '@']).nth(2).expect("a URL with a password").to_owned();
        echoing::serve(&[token, password, inherited]);
        std::process::exit(0);
    }
}

/// The upstreams, the planner and the collector, which run until it is dropped, and the folder of the config.
struct Scene {
    folder: tempfile::TempDir,
    web: Web,
    /// The URL of the session store, if sessions are not in the server's memory.
    store: RefCell<Option<String>>,
}

impl Scene {
    fn new() -> Scene {
        let folder = tempfile::tempdir().expect("a folder");
        let web = Web::start(|asked| match asked.target.as_str() {
            "/v1/chat/completions" => planner(asked),
            "/otlp/v1/traces" => collector(asked),
            "/person/token" | "/expired/token" => token(asked),
            "/person/mcp" => {
                // The upstream knows the refresh token too.
                let mut asked = Asked { target: "/mcp".to_owned(), ..asked.clone() };
                asked.headers.push(("x-key".to_owned(), REFRESH.to_owned()));
                echoing::web(&asked)
            }
            _ => echoing::web(asked),
        });
        let scene = Scene { folder, web, store: RefCell::default() };
        scene.write("header", &format!("{HEADER}\n"));
        scene.write("object", &json!({ "user": "bob", "pass": OBJECT }).to_string());
        let paths: serde_json::Map<String, Value> = OPERATIONS
            .iter()
            .map(|name| {
                let success =
                    json!({ "description": "Says it.", "headers": { "X-Echo": {} }, "content": { "application/json": {} } });
                (format!("/{name}"), json!({ "get": { "operationId": name, "responses": { "200": success } } }))
            })
            .collect();
        scene.write(
            "api.json",
            &json!({ "openapi": "3.0.3", "info": { "title": "a", "version": "1" }, "paths": paths }).to_string(),
        );
        let api = |auth: Value| {
            json!({
                "transport": "openapi", "base_url": scene.web.url(""), "schema_file": "api.json", "include_operations": OPERATIONS,
                "auth": auth, "allow_insecure_http": true, "allow_insecure_auth": true,
            })
        };
        let login = |name: &str| {
            json!([{ "scheme": "oauth2", "grant": "refresh_token", "token_url": scene.web.url(&format!("/{name}/token")),
                "client_id": "canary", "client_auth": "none" }])
        };
        let test = std::env::current_exe().expect("a test has a file");
        let config = json!({
            "credentials": {
                "basic": { "source": "env", "var": "CANARY_BASIC" },
                "cookie": { "source": "env", "var": "CANARY_COOKIE" },
                "query": { "source": "env", "var": "CANARY_QUERY" },
                "bearer": { "source": "env", "var": "CANARY_BEARER" },
                "header": { "source": "file", "path": "header" },
                "literal": { "source": "literal", "value": LITERAL },
                "object": { "source": "file", "path": "object" },
                "planner": { "source": "env", "var": "CANARY_PLANNER" },
            },
            "upstreams": {
                "api": api(json!([
                    { "scheme": "basic", "binding": "basic" },
                    { "scheme": "custom_header", "header": "X-Key", "binding": "literal" },
                ])),
                "child": {
                    "transport": "mcp_stdio", "command": test, "args": ["canary::binary::child", "--exact", "--nocapture"],
                    "inherit_env": ["CANARY_TOKEN"],
                    "env": { (ECHOING): "1", "CHILD_TOKEN": "${CANARY_CHILD}", "DATABASE_URL": "postgres://app:${CANARY_DB}@db/x" },
                },
                "expired": api(login("expired")),
                "keys": api(json!([
                    { "scheme": "api_key", "in": "query", "name": "key", "binding": "query" },
                    { "scheme": "api_key", "in": "cookie", "name": "sid", "binding": "cookie" },
                    { "scheme": "api_key", "in": "header", "name": "Authorization", "binding": "bearer" },
                ])),
                "object": api(json!([{ "scheme": "basic", "binding": "object" }])),
                "person": {
                    "transport": "mcp_http", "url": scene.web.url("/person/mcp"), "allow_insecure_http": true,
                    "allow_insecure_auth": true, "auth": login("person"),
                },
                "web": {
                    "transport": "mcp_http", "url": scene.web.url("/mcp"), "allow_insecure_http": true, "allow_insecure_auth": true,
                    "auth": [
                        { "scheme": "bearer", "binding": "bearer" },
                        { "scheme": "api_key", "header": "X-Key", "binding": "header" },
                    ],
                },
            },
        });
        scene.write("upstreams.json", &config.to_string());
        scene.write("entered", ENTERED);
        for name in ["expired", "person"] {
            let mut login = scene.command("sh");
            login.args(["-c", r#"exec "$0" login upstreams.json "$1" < entered"#]).arg(ptc_compile()).arg(name);
            let done = run(&mut login);
            assert_eq!((done.code, done.stderr.as_str()), (Some(0), &*format!("{name}: logged in\n")), "{}", done.stdout);
        }
        scene
    }

    /// Serves with all flags, and checks everything that the server writes.
    fn serve(&self, name: &str, program: &Path, first: &[&str], more: &[&str], talk: fn(&mut Server) -> String) {
        let traces = self.path(name);
        let mut command = self.command(program);
        command.args(first).args(self.flags(&traces)).args(more).env("PTC_RUNNER_MCP_HTTP_AUTH_TOKEN", CLIENTS);
        let mut server = Server::start(&mut command, self.path(&format!("{name}.log")));
        let said = talk(&mut server);
        assert_clean(&CANARIES, &format!("the command line of {name}"), &server.shown);
        assert_redacted(&format!("what {name} answers"), &said, 200);
        assert_redacted(&format!("the log of {name}"), &server.said(), 20);
        assert_redacted(&format!("traces of {name}"), &files(&traces), 200);
        assert!(said.contains("temporarily_unavailable"), "the refused renewal is shown: {said}");
        let sent = format!("Bearer {ACCESS}");
        let is_person = |asked: &Asked| asked.target == "/person/mcp" && asked.header("authorization") == Some(&sent);
        assert!(self.web.requests().iter().any(is_person), "the login is used");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("it can be written");
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.folder.path()).env("CANARY_BASIC", format!("ann:{PASSWORD}")).env("CANARY_BEARER", BEARER);
        command
            .env("CANARY_CHILD", CHILD)
            .env("CANARY_COOKIE", COOKIE)
            .env("CANARY_QUERY", QUERY)
            .env("CANARY_DB", DATABASE)
            .env("CANARY_TOKEN", INHERITED)
            .env("CANARY_PLANNER", PLANNER)
            .env("PTC_RUNNER_MCP_TOKEN_STORE", self.path("tokens"));
        command.envs(self.store.borrow().iter().map(|url| ("PTC_RUNNER_MCP_SESSION_STORE", url)));
        command.env("OTEL_EXPORTER_OTLP_HEADERS", format!("authorization=Bearer%20{COLLECTOR}"));
        command
    }

    /// Returns all flags that make a server produce more output.
    fn flags(&self, traces: &Path) -> Vec<String> {
        std::fs::create_dir(traces).expect("a folder");
        let (traces, planner, collector) = (traces.display().to_string(), self.web.url("/v1"), self.web.url("/otlp"));
        let flags = [
            "--config-dir .",
            "--response-profile debug",
            "--log-level debug",
            "--catalog-mode inline",
            "--sessions",
            "--debug-tool",
            "--max-debug-response-bytes 10000000",
            "--trace-payloads full",
            "--connect eager",
            "--on-drift warn",
            "--agentic",
            "--agentic-model replayed",
            "--agentic-credential planner",
            "--agentic-allow-writes",
            "--agentic-trace-prompts",
            "--agentic-max-turns 3",
            "--agentic-retry-turns 2",
            "--agentic-max-result-bytes 100000",
        ];
        let own = ["--trace-dir", &traces, "--agentic-base-url", planner, "--otlp-endpoint", collector].map(str::to_owned);
        flags.iter().flat_map(|flag| flag.split(' ')).map(str::to_owned).chain(own).collect()
    }

    /// Returns the bodies sent to `target`. Headers, which contain the key, are left out.
    fn told(&self, target: &str) -> String {
        self.web.requests().iter().filter(|asked| asked.target == target).map(|asked| asked.body.as_str()).collect()
    }
}

/// Answers as a model that echoes its key and whose programs read everything.
fn planner(asked: &Asked) -> Answer {
    let key = asked.header("authorization").and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default().to_owned();
    let known = known(&[key]);
    let turn = asked.json().get("messages").and_then(Value::as_array).map_or(0, Vec::len);
    let content = match turn {
        2 => format!("(println {}) [(tool/call {{:server \"child\" :tool \"structured\"}})]", json!(known)),
        4 => format!("(wrong {})", json!(known)),
        _ => format!("(return [{} (tool/call {{:server \"web\" :tool \"json\"}})])", json!(known)),
    };
    let choice = json!({ "message": { "role": "assistant", "content": content, "refusal": known }, "finish_reason": "stop" });
    let line = known.replace('\n', " ");
    let body = json!({ "id": known, "model": known, "choices": [choice], (known.as_str()): known });
    Answer::Full(200, vec!["Content-Type: application/json".into(), format!("X-Echo: {line}")], body.to_string().into_bytes())
}

/// Answers as a collector that accepts only some spans and echoes its key.
fn collector(asked: &Asked) -> Answer {
    let known =
        known(&[asked.header("authorization").and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default().to_owned()]);
    let partly = json!({ "partialSuccess": { "rejectedSpans": "1", "errorMessage": known } });
    let status = if asked.body.len().is_multiple_of(2) { 200 } else { 400 };
    Answer::Full(status, vec![format!("Retry-After: {}", known.replace('\n', " "))], partly.to_string().into_bytes())
}

/// Answers as an authorization server that replaces the refresh token which a person has entered. It refuses the other one of `expired`,
/// and repeats it.
fn token(asked: &Asked) -> Answer {
    let is_entered = asked.body.contains("3ntered");
    let issued = |access: &str, refresh: &str, lifetime: u64| {
        let tokens = json!({ "access_token": access, "token_type": "Bearer", "refresh_token": refresh, "expires_in": lifetime });
        Answer::json(200, tokens)
    };
    match &*asked.target {
        "/person/token" => issued(ACCESS, REFRESH, 3_600),
        _ if is_entered => issued("4nother-access-token", REFUSED, 1),
        _ => {
            let told = format!("{} {}", asked.body, known(&[REFUSED.to_owned()])).replace('\n', " ");
            Answer::json(400, json!({ "error": "temporarily_unavailable", "error_description": told }))
        }
    }
}

/// Returns requests of every kind, some of them faulty.
fn questions() -> Vec<Value> {
    let call =
        |tool: &str, arguments: Value| json!({ "method": "tools/call", "params": { "name": tool, "arguments": arguments } });
    let initialize = json!({
        "method": "initialize",
        "params": { "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "canary", "version": "1" } },
    });
    let mut questions = vec![initialize, json!({ "method": "tools/list" })];
    let servers: [(&str, &[&str]); 7] = [
        ("api", &OPERATIONS),
        ("child", &TOOLS),
        ("expired", &OPERATIONS),
        ("keys", &OPERATIONS),
        ("object", &OPERATIONS),
        ("person", &TOOLS),
        ("web", &TOOLS),
    ];
    questions.extend(programs(&servers).into_iter().map(|program| call("lisp_eval", json!({ "program": program }))));
    let said = known(&CANARIES.map(str::to_owned));
    questions.extend([
        call("lisp_task", json!({ "task": "Look at everything." })),
        call("lisp_task", json!({ "task": said })),
        call("lisp_eval", json!({ "program": format!("(println {0}) (fail {0})", json!(said)), "context": { "k": said } })),
        call("lisp_eval", json!({ "program": "data/k", "context": { "k": said }, "output_schema": { "enum": [PASSWORD] } })),
        call("lisp_session_start", json!({ "title": said })),
        call("lisp_session_eval", json!({ "session_id": LITERAL, "program": said })),
        call("lisp_session_list", json!({})),
        call(CHILD, json!({})),
        json!({ "method": DATABASE, "params": { "k": said } }),
        call("lisp_debug", json!({ "op": "recent", "limit": 200 })),
        call("lisp_debug", json!({ "op": "get", "request_id": "3" })),
        call("lisp_debug", json!({ "op": "stats" })),
    ]);
    for (id, question) in questions.iter_mut().enumerate() {
        question["jsonrpc"] = json!("2.0");
        question["id"] = json!(id);
    }
    questions
}

/// A server whose log is written to a file. It is killed when it is dropped.
pub(super) struct Server {
    child: Child,
    log: PathBuf,
    /// Its command line, which every user of the machine may see.
    shown: String,
}

impl Server {
    pub(super) fn start(command: &mut Command, log: PathBuf) -> Server {
        let file = File::create(&log).expect("a file");
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(file).spawn().expect("the server starts");
        Server { child, log, shown: String::new() }
    }

    pub(super) fn said(&self) -> String {
        std::fs::read_to_string(&self.log).expect("UTF-8")
    }

    /// Checks the running process: it must not dump core. Also reads its command line.
    fn look(&mut self) {
        let read = |what: &str| std::fs::read_to_string(format!("/proc/{}/{what}", self.child.id())).expect("it runs");
        let limits = read("limits");
        let core = limits.lines().find(|line| line.starts_with("Max core file size")).expect("it is a limit");
        assert_eq!(core.split_whitespace().skip(4).take(2).collect::<Vec<_>>(), ["0", "0"], "{core}");
        self.shown = read("cmdline");
    }

    /// Sends the requests over standard input. Returns every response, byte for byte.
    fn converse(&mut self) -> String {
        let mut input = self.child.stdin.take().expect("it is a pipe");
        let mut output = BufReader::new(self.child.stdout.take().expect("it is a pipe"));
        let mut said = String::new();
        for question in questions() {
            writeln!(input, "{question}").expect("the server reads");
            output.read_line(&mut said).expect("the server answers");
        }
        self.look();
        drop(input);
        output.read_to_string(&mut said).expect("UTF-8");
        assert!(self.child.wait().expect("it ends").success(), "{}", self.said());
        said
    }

    /// Waits until the server listens. Returns its address.
    pub(super) fn address(&mut self) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let log = self.said();
            let serving = log.lines().find(|line| line.contains("\"event\":\"serving\""));
            if let Some(rest) = serving.and_then(|line| line.split_once("\"url\":\"http://")).map(|(_, rest)| rest) {
                return rest.split(['/', '"']).next().expect("an address").to_owned();
            }
            assert!(Instant::now() < until && self.child.try_wait().expect("a child").is_none(), "{log}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sends the requests over HTTP, and reads the other endpoints. Returns every response.
    fn browse(&mut self) -> String {
        let address = self.address();
        self.look();
        let ask = |method: &str, path: &str, more: &str, body: &str| {
            let mut stream = TcpStream::connect(&address).expect("it listens");
            stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
            let length = body.len();
            let request = format!(
                "{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
                 Accept: application/json, text/event-stream\r\nConnection: close\r\n{more}\r\n{body}"
            );
            stream.write_all(request.as_bytes()).expect("it reads");
            let mut answer = String::new();
            let read = stream.read_to_string(&mut answer);
            read.unwrap_or_else(|why| panic!("no answer to {request}: {why}"));
            answer + "\n"
        };
        let mut headers = format!("Authorization: Bearer {CLIENTS}\r\n");
        let mut said = String::new();
        for question in questions() {
            let answer = ask("POST", "/mcp", &headers, &question.to_string());
            let session = answer.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
            if let Some(id) = session.filter(|_| !headers.contains("Session")) {
                headers.extend(["Mcp-Session-Id: ", id, "\r\nMCP-Protocol-Version: 2025-11-25\r\n"]);
            }
            said.push_str(&answer);
        }
        let calls = ask("GET", "/viewer/api/calls?limit=500", &headers, "");
        let ids: Vec<&str> = calls.split("\"id\":\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert!(ids.len() > 50, "{calls}");
        for id in ids {
            said.push_str(&ask("GET", &format!("/viewer/api/calls/{id}"), &headers, ""));
        }
        let odd =
            format!("Authorization: Bearer {BEARER}\r\nOrigin: http://{DATABASE}.example\r\nMcp-Session-Id: {DATABASE}\r\n");
        for (method, path, headers) in [
            ("GET", "/metrics".to_owned(), headers.as_str()),
            ("GET", "/health".to_owned(), ""),
            ("GET", "/ready".to_owned(), ""),
            ("GET", format!("/{DATABASE}?token={DATABASE}"), &headers),
            ("POST", "/mcp".to_owned(), &odd),
            ("DELETE", "/mcp".to_owned(), &headers),
        ] {
            said.push_str(&ask(method, &path, headers, "{}"));
        }
        said.push_str(&calls);
        run(Command::new("kill").args(["-TERM", &self.child.id().to_string()])).success();
        self.child.stdout.take().expect("it is a pipe").read_to_string(&mut said).expect("UTF-8");
        assert!(self.child.wait().expect("it ends").success(), "{}", self.said());
        said
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(super) fn files(folder: &Path) -> String {
    let files = std::fs::read_dir(folder).expect("the folder is there");
    files.map(|entry| std::fs::read_to_string(entry.expect("readable").path()).expect("text")).collect()
}

/// Checks that a text contains no secret, and at least `least` redactions. Without the second check, a server without any output
/// would pass.
fn assert_redacted(what: &str, text: &str, least: usize) {
    let found = text.matches("[REDACTED]").count();
    assert!(found >= least, "{what} was redacted {found} times only: {text}");
    assert_clean(&CANARIES, what, text);
    assert_clean(&[STORE], what, text);
}

/// The same server without a build: the catalog is listed when it starts.
#[test]
fn no_output_of_run_contains_a_secret() {
    let scene = Scene::new();
    scene.serve("unbuilt", ptc_compile(), &["run", "upstreams.json"], &[], Server::converse);
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn no_output_of_a_server_contains_a_secret() {
    let scene = Scene::new();
    let (config, gate) = (scene.path("upstreams.json"), scene.path("gate"));
    let built = {
        let mut command = scene.command(ptc_compile());
        command.args(["upstreams.json", "--agentic", "--otlp", "--viewer", "--session-store", "redis"]);
        command.args(["--output", "gate", "--check-env"]);
        run(&mut command)
    };
    assert_eq!(built.code, Some(0), "{}", built.stderr);
    assert_clean(&CANARIES, "what the build says", &(built.stdout + &built.stderr));
    assert_redacted("the lock file", &std::fs::read_to_string(scene.path("upstreams.lock.json")).expect("a lock file"), 20);
    // A literal is in the binary because the config contains it; the compiler has warned of it.
    let bytes = std::fs::read(&gate).expect("a binary");
    assert_clean(&CANARIES[..15], "the binary", &String::from_utf8_lossy(&bytes));

    let serve = |name: &str, program: &Path, first: &[&str], more: &[&str], talk: fn(&mut Server) -> String| {
        scene.serve(name, program, first, more, talk);
    };
    serve("pinned", &gate, &["start"], &[], Server::converse);
    let listening = ["--http", "--http-port", "0", "--http-metrics", "--http-viewer"];
    serve("listening", &gate, &["start"], &listening, Server::browse);
    let mut redis = Redis::start(STORE);
    let store = redis.url(":st0re%2Fc4nary%26twelve@");
    scene.store.replace(Some(store));
    serve("sharing", &gate, &["start"], &listening, Server::browse);
    // The server also reports a store that is not available.
    redis.kill();
    serve("alone", &gate, &["start"], &listening, Server::browse);
    scene.store.take();
    let live = ["--catalog-snapshot-mode", "live"];
    serve("live", ptc_compile(), &["run", config.to_str().expect("plain text")], &live, Server::converse);
    assert_redacted("what the planner is asked", &scene.told("/v1/chat/completions"), 20);
    assert_redacted("requests to the collector", &scene.told("/otlp/v1/traces"), 20);
}
