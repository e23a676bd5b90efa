//! Tests that a replay does nothing but read its cassette: it starts no process, and makes no connection.

#![expect(clippy::unwrap_used, reason = "a test stops where anything is wrong")]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::cassette::{Folder, PROGRAM, REPLAY, VALUE, definition};

#[test]
#[ignore = "needs strace, which .ci/peers installs"]
fn replay_opens_no_socket_and_starts_no_process() {
    let stdio = Folder::recorded();
    replays_alone(&stdio, "c.json", PROGRAM, VALUE);
    // The upstreams of the quickstart have all transports: a program, an MCP server over HTTP, and an HTTP service. They do not run.
    let all = Folder(tempfile::tempdir().unwrap());
    all.run(&["demo", "--write", "."], false).success();
    let config: Value = serde_json::from_str(&all.read("upstreams.json")).unwrap();
    let upstreams = config["upstreams"].as_object().unwrap().values();
    let transports: BTreeSet<&str> = upstreams.map(|entry| entry["transport"].as_str().unwrap()).collect();
    assert_eq!(transports, BTreeSet::from(["mcp_http", "mcp_stdio", "openapi"]));
    let value = "{\"Ada\" 1985 \"Grace\" 1640 \"Ken\" 1660}\n";
    replays_alone(&all, "due.cassette.json", &all.read("due.clj"), value);
    all.run_under(&STRACE, &["test", "due_test.clj"], false).success();
    assert_alone(&all);
}

/// Traces the system calls with which a process is started, and a socket is made. Tokio's pair of sockets for signals is not connected to
/// anything else.
const STRACE: [&str; 7] =
    ["strace", "-f", "-o", "calls", "-e", "trace=execve,execveat,socket,connect,bind", env!("CARGO_BIN_EXE_ptc-compile")];

/// Checks that the traced program started no process and made no socket.
fn assert_alone(folder: &Folder) {
    let calls = folder.read("calls");
    let calls: Vec<&str> = calls.lines().filter(|line| line.contains('(')).collect();
    // The only call starts ptc-compile itself.
    assert!(calls.len() == 1 && calls.iter().all(|call| call.contains("execve(")), "{calls:#?}");
}

/// Replays a program in `repl` and in a server, and checks that both do nothing else.
fn replays_alone(folder: &Folder, cassette: &str, program: &str, value: &str) {
    let upstreams = format!("cassette:{cassette}");
    let replay = ["repl", "--upstreams", &upstreams, "upstreams.json", "--connect", "eager", "-e", program];
    assert_eq!(folder.run_under(&STRACE, &replay, false).success(), value);
    assert_alone(folder);
    let answer: Value = serde_json::from_str(&serve(folder, &STRACE, &upstreams, program)).unwrap();
    let text = answer.pointer("/result/content/0/text").and_then(Value::as_str).unwrap_or_default();
    assert!(text.contains(value.trim_end()), "{answer}");
    assert_alone(folder);
}

#[test]
fn server_replays_without_secrets() {
    let folder = Folder::recorded();
    let answer = serve(&folder, &[env!("CARGO_BIN_EXE_ptc-compile")], "cassette:c.json", PROGRAM);
    assert!(answer.contains("said [REDACTED]") && answer.contains("[1 2 3]"), "{answer}");
}

/// Runs `run` with recorded answers, and returns its answer to a call of `lisp_eval` with a program. `command` is `ptc-compile`, or a
/// program that runs it.
fn serve(folder: &Folder, command: &[&str], upstreams: &str, program: &str) -> String {
    let request =
        |id: u32, method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    let client = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
    let call = json!({ "name": "lisp_eval", "arguments": { "program": program } });
    let input = format!(
        "{}\n{}\n{}\n",
        request(1, "initialize", client),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        request(2, "tools/call", call)
    );
    let mut server = Command::new(command.first().unwrap())
        .args(command.iter().skip(1))
        .args(["run", "--upstreams", upstreams, "upstreams.json", "--connect", "eager"])
        .current_dir(folder.0.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // The end of its input would cancel the call.
    let mut stdin = server.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    let answers: Vec<String> = BufReader::new(server.stdout.take().unwrap()).lines().take(2).map(Result::unwrap).collect();
    drop(stdin);
    assert!(server.wait().unwrap().success());
    answers.last().unwrap().clone()
}

#[test]
fn connection_to_a_service_is_not_made() {
    let folder = Folder(tempfile::tempdir().unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let document = json!({
        "openapi": "3.0.3", "info": { "title": "Pets", "version": "1" },
        "paths": { "/pets": { "get": { "operationId": "pets", "responses": { "200": { "description": "all",
            "headers": { "X-Total": { "schema": { "type": "integer" } } },
            "content": { "application/json": { "schema": { "type": "array", "items": { "type": "object" } } } } } } } } },
    });
    let entry = json!({
        "transport": "openapi", "base_url": format!("http://{}", listener.local_addr().unwrap()), "schema_file": "api.json",
        "include_operations": ["pets"], "allow_insecure_http": true,
    });
    folder.write("api.json", &document.to_string());
    folder.write("upstreams.json", &json!({ "upstreams": { "pets": entry } }).to_string());
    folder.run(&["update", "upstreams.json"], false).success();
    let reply = json!({ "status": 200, "headers": { "x-total": "1" }, "value": [{ "name": "Rex", "weight": 1.50 }] });
    let tool = json!({ "definition": definition(&folder, "pets", "pets"), "requests": [{ "args": {}, "replies": [reply] }] });
    folder.write("c.json", &json!({ "cassette": 1, "tools": { "pets/pets": tool } }).to_string());
    let program = r#"(select-keys (tool/call {:server "pets" :tool "pets"}) [:ok :value :status :headers])"#;
    let replayed = folder.run(&[&REPLAY[..], &["--connect", "eager", "-e", program]].concat(), false).success();
    assert_eq!(replayed, "{:headers {\"x-total\" \"1\"} :ok true :status 200 :value [{\"name\" \"Rex\" \"weight\" 1.5}]}\n");
    assert!(listener.accept().is_err(), "nothing connects");
}
