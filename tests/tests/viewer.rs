//! Tests the page of traces: its endpoints over a socket, and its use in a real browser.
#![expect(clippy::indexing_slicing, reason = "a test stops where the page lacks what it looks at")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use ptc_tests::deployment::{plain, ptc_compile};
use ptc_tests::mcp::Client;
use ptc_tests::peers::node_script;
use ptc_tests::process::{Background, free_port, run};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::web::{Answer, Web};

/// Starts `ptc-compile viewer` on a folder. Returns the process and the printed link.
fn viewer(folder: &Path) -> (Background, String) {
    let (process, output) = Background::with_output(Command::new(ptc_compile()).arg("viewer").arg(folder).args(["--port", "0"]));
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line).expect("it says where it is");
    (process, line.trim_end().to_owned())
}

/// Sends a request. Returns the head and the body of the response.
fn asked(address: &str, request: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers in UTF-8");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    (head.to_owned(), body.to_owned())
}

/// Returns the address and the token of a link.
fn parts(url: &str) -> (&str, &str) {
    let rest = url.strip_prefix("http://").expect("plain HTTP");
    rest.split_once("/viewer/#token=").expect("the page and its token")
}

fn get(url: &str, path: &str, headers: &str) -> (String, String) {
    let (address, token) = parts(url);
    let authorization = format!("Authorization: Bearer {token}\r\n");
    asked(address, &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{authorization}{headers}Connection: close\r\n\r\n"))
}

fn data(url: &str, path: &str) -> Value {
    let (head, body) = get(url, path, "");
    assert!(head.starts_with("HTTP/1.1 200"), "{path}: {head}");
    serde_json::from_str(&body).expect("JSON")
}

fn write(folder: &Path, id: &str, lines: &[Value]) -> PathBuf {
    let path = folder.join(format!("ptc-{id}.jsonl"));
    let mut text = lines.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
    text.push('\n');
    std::fs::write(&path, text).expect("a trace");
    path
}

fn start(program: &str) -> Value {
    json!({ "event": "call.start", "ts": "2026-01-01T10:00:00Z", "tool": "lisp_eval", "request_id": "1", "program": { "text": program } })
}

#[test]
fn viewer_lists_calls_as_json() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = "1700000000000001-1-0-lisp_eval";
    let ok = json!({ "event": "call.success", "duration_us": 1500, "result_bytes": 3 });
    write(folder.path(), first, &[start("(+ 1 2)"), ok]);
    std::fs::write(folder.path().join("ptc-1700000000000002-1-1-x.jsonl"), "no JSON\n[1]\n").expect("a file");
    std::fs::write(folder.path().join("other.jsonl"), "{}\n").expect("a file");
    std::fs::create_dir(folder.path().join("ptc-1700000000000002-1-2-x.jsonl")).expect("a folder does not count as a call");
    let (_process, url) = viewer(folder.path());
    let list = data(&url, "/viewer/api/calls");
    assert_eq!((&list["total"], &list["calls"][1]["id"], &list["calls"][1]["status"]), (&json!(2), &json!(first), &json!("ok")));
    assert_eq!((&list["calls"][1]["duration_us"], &list["calls"][1]["preview"]), (&json!(1500), &json!("(+ 1 2)")));
    assert_eq!(data(&url, "/viewer/api/calls?limit=1")["calls"].as_array().map(Vec::len), Some(1));
    let one = data(&url, &format!("/viewer/api/calls/{first}"));
    assert_eq!((&one["lines"][0]["event"], &one["unreadable"], &one["cut"]), (&json!("call.start"), &json!(0), &json!(false)));
    assert_eq!(data(&url, "/viewer/api/calls/1700000000000002-1-1-x")["unreadable"], 2);

    // An unchanged list is not sent again until there is something new.
    let tag = |head: &str| head.lines().find_map(|line| line.strip_prefix("etag: ").map(str::to_owned)).expect("a tag");
    let seen = format!("If-None-Match: {}\r\n", tag(&get(&url, "/viewer/api/calls", "").0));
    let (head, body) = get(&url, "/viewer/api/calls", &seen);
    assert!(head.starts_with("HTTP/1.1 304") && body.is_empty(), "{head}");
    write(folder.path(), "1700000000000003-1-2-lisp_eval", &[start("1")]);
    let (head, body) = get(&url, "/viewer/api/calls", &seen);
    assert!(head.starts_with("HTTP/1.1 200") && body.contains("\"open\""), "{head}");
}

#[test]
fn viewer_serves_only_traces_and_only_to_valid_hosts() {
    let outer = tempfile::tempdir().expect("a folder");
    let folder = outer.path().join("traces");
    std::fs::create_dir(&folder).expect("a folder");
    write(outer.path(), "1-1-1-secret", &[start("outside")]);
    std::fs::write(outer.path().join("secret.jsonl"), "{}\n").expect("a file");
    std::os::unix::fs::symlink(outer.path().join("ptc-1-1-1-secret.jsonl"), folder.join("ptc-2-2-2-link.jsonl")).expect("a link");
    std::fs::create_dir(folder.join("ptc-3-3-3-folder.jsonl")).expect("a folder");
    let (_process, url) = viewer(&folder);
    let (address, token) = parts(&url);
    assert_eq!(data(&url, "/viewer/api/calls")["calls"], json!([]), "neither links nor folders");
    for id in [
        "2-2-2-link",
        "3-3-3-folder",
        "../1-1-1-secret",
        "..%2f1-1-1-secret",
        "%2e%2e/1-1-1-secret",
        "x/../../ptc-1-1-1-secret",
        "",
        "%00",
        ".",
    ] {
        let (head, body) = get(&url, &format!("/viewer/api/calls/{id}"), "");
        assert!(head.starts_with("HTTP/1.1 404"), "{id}: {head}\n{body}");
    }
    let plain = |method: &str, path: &str, headers: &str| {
        asked(address, &format!("{method} {path} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n")).0
    };
    let host = format!("Host: {address}\r\n");
    let bearer = format!("Authorization: Bearer {token}\r\n");
    for (method, path, headers, status) in [
        ("GET", "/viewer/api/calls", host.clone(), "401"),
        ("GET", "/viewer/api/calls", format!("{host}Authorization: Bearer {}\r\n", "x".repeat(32)), "401"),
        ("GET", "/viewer/api/calls/1-1-1-x", host.clone(), "401"),
        ("GET", "/viewer/api/calls", format!("Host: evil.example\r\n{bearer}"), "403"),
        ("GET", "/viewer/", "Host: evil.example\r\n".to_owned(), "403"),
        ("GET", "/viewer/api/calls", format!("{host}{bearer}Origin: https://evil.example\r\n"), "403"),
        ("GET", "/viewer/api/calls?limit=x", format!("{host}{bearer}"), "400"),
        ("POST", "/viewer/api/calls", format!("{host}{bearer}"), "405"),
        ("GET", "/viewer", host.clone(), "308"),
        ("GET", "/viewer/nothing", host.clone(), "404"),
        ("GET", "/", host.clone(), "404"),
        ("GET", "/viewer/", host.clone(), "200"),
        ("HEAD", "/viewer/viewer.js", host.clone(), "200"),
    ] {
        let head = plain(method, path, &headers);
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{method} {path} {headers}: {head}");
        let guarded = ["script-src 'self'", "frame-ancestors 'none'", "trusted-types", "nosniff", "no-store"];
        assert!(!path.starts_with("/viewer") || guarded.iter().all(|part| head.contains(part)), "{head}");
    }
}

#[test]
fn viewer_of_a_server_needs_a_token() {
    let (folder, port) = (tempfile::tempdir().expect("a folder"), free_port());
    let server = || {
        let mut command = Command::new(plain());
        command.args(["--http", "--http-port", &port.to_string(), "--http-viewer", "--trace-dir"]).arg(folder.path());
        command
    };
    let refused = run(server().arg("--http-disable-auth"));
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("--http-viewer does not go with --http-disable-auth"), "{}", refused.stderr);
    let _server = Background::start(&mut server()).ready_on(port);
    let address = format!("127.0.0.1:{port}");
    let request = format!("GET /viewer/api/calls HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    let (head, _) = asked(&address, &request);
    assert!(head.starts_with("HTTP/1.1 401"), "{head}");
}

#[test]
fn missing_trace_folder_is_an_error() {
    let finished = run(Command::new(ptc_compile()).args(["viewer", "/no/such/folder"]));
    assert_eq!(finished.code, Some(2));
    assert!(finished.stderr.starts_with("ptc-compile viewer: error: /no/such/folder: "), "{}", finished.stderr);
}

/// Opens a link in a browser and returns what it shows. Pictures are kept in `$PTC_PICTURES`, if that is set.
fn looked_at(url: &str, search: &str, more: &[&str], token: &str) -> Value {
    let scratch = tempfile::tempdir().expect("a folder");
    let kept = std::env::var_os("PTC_PICTURES").map(PathBuf::from);
    let folder = kept.as_deref().unwrap_or(scratch.path());
    let seen = run(node_script("viewer.mjs").arg(url).arg(folder).arg(search).args(more).env("TOKEN", token)).success();
    for name in ["list", "call", "list-dark", "phone-list", "phone-call"] {
        assert!(folder.join(name).with_extension("png").is_file(), "no picture of {name}");
    }
    let seen: Value = serde_json::from_str(&seen).expect("one JSON object");
    assert_eq!(
        (&seen["faults"], &seen["elsewhere"]),
        (&json!([]), &json!([])),
        "nothing is refused, nothing is fetched elsewhere"
    );
    assert_eq!(
        (&seen["wide"], &seen["narrow"]),
        (&json!(true), &json!([true, true, true, true])),
        "nothing runs out of the page"
    );
    assert_ne!(seen["light"], seen["dark"]);
    assert_eq!(
        seen["address"].as_str().map(|address| address.contains("token")),
        Some(false),
        "the token leaves the address bar"
    );
    seen
}

/// Makes traces of a server with an upstream that evaluated some programs.
fn traces(programs: &[&str]) -> TempDir {
    served(&[], |client| {
        for program in programs {
            client.eval(program);
        }
    })
}

/// Makes traces of a server with an upstream and further options while `speak` uses a client.
fn served(options: &[&str], speak: impl FnOnce(&mut Client)) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("upstreams.json");
    let notes = json!({ "transport": "mcp_stdio", "description": "Notes.", "trust_annotations": true, "command": ptc_compile(), "args": ["demo", "--stdio"] });
    std::fs::write(&config, json!({ "upstreams": { "notes": notes } }).to_string()).expect("a config");
    std::fs::create_dir(folder.path().join("traces")).expect("a folder");
    let mut server = Command::new(ptc_compile());
    server.arg("run").arg(&config).arg("--trace-dir").arg(folder.path().join("traces")).args(["--trace-payloads", "full"]);
    let mut client = Client::of(server.args(options).current_dir(folder.path()));
    client.initialize();
    speak(&mut client);
    assert_eq!(client.finish(), Some(0));
    folder
}

const PARALLEL: &str = r#"; how long each note is
(let [names (map :name (:value (tool/call {:server "notes" :tool "list_notes"})))
      texts (pmap (fn [name] (tool/call {:server "notes" :tool "read_note" :args {:name name}})) names)]
  (println "notes:" (count names))
  (zipmap names (map (fn [answer] (count (:value answer))) texts)))"#;

#[test]
#[ignore = "needs what .ci/peers installs"]
fn calls_are_shown_in_a_browser() {
    let failing = "(println \"so far\")\n(map inc\n  (count 5)) ; größer";
    let folder = traces(&["(+ 1 2)", PARALLEL, failing, "(fail {:why \"no\"})", "(reduce + (range 100000))"]);
    let (_process, url) = viewer(&folder.path().join("traces"));
    let seen = looked_at(&url, "pmap notes", &[], "");
    assert_eq!(seen["all"], json!(["ok", "error", "error", "ok", "ok"]), "newest first");
    assert_eq!((&seen["said"], &seen["tiles"]["calls"]), (&json!("5 calls"), &json!("5")));
    assert_eq!(seen["filtered"]["error"], json!(["error", "error"]));
    assert_eq!((&seen["none"]["rows"], &seen["none"]["said"]), (&json!([]), &json!("No call fits the filters.")));
    assert_eq!(
        seen["plots"],
        json!(["Calls over time", "Durations", "Upstream calls", "Bytes fetched and answered", "Reasons of errors"])
    );
    assert_eq!(
        (&seen["focused"], &seen["back"], &seen["help"]),
        (&json!("detail"), &json!(true), &json!(true)),
        "by the keyboard"
    );

    let call = &seen["call"];
    assert_eq!((&call["program"], &call["prints"]), (&json!(PARALLEL), &json!("notes: 2")), "{call}");
    assert_eq!(call["colours"], json!(["comment", "head", "keyword", "string"]));
    assert_eq!(call["calls"].as_array().map(Vec::len), Some(3));
    // Each call has its own lane. The two parallel calls began after the first one ended.
    let bar = |part: &str, nth: usize| {
        let bars =
            call["bars"].as_array().expect("bars").iter().filter(|bar| bar["label"].as_str().is_some_and(|l| l.contains(part)));
        bars.clone().nth(nth).unwrap_or_else(|| panic!("no bar {part} {nth} in {call}")).clone()
    };
    let place = |bar: &Value, side: &str| bar[side].as_f64().expect("a place");
    let (list, one, two) = (bar("list_notes", 0), bar("read_note", 0), bar("read_note", 1));
    assert!(place(&bar("eval", 0), "top") < place(&list, "top"));
    assert!(place(&list, "top") < place(&one, "top") && place(&one, "top") < place(&two, "top"), "{list} {one} {two}");
    for late in [&one, &two] {
        assert!(
            place(&list, "left") < place(late, "left") && place(late, "right") <= place(&bar("eval", 0), "right") + 4.0,
            "{call}"
        );
    }

    let seen = looked_at(&url, "größer", &[], "");
    assert_eq!((&seen["call"]["failing"], &seen["call"]["program"]), (&json!(["(count 5)"]), &json!(failing)));
    assert!(seen["call"]["helps"].as_str().is_some_and(|text| text.contains('^')), "{}", seen["call"]);
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn task_is_shown_in_a_browser() {
    let failing = "(def notes (:value (tool/call {:server \"notes\" :tool \"list_notes\"}))) ; größer\n(+ 1\n   (:none notes))";
    let last = "(return (count notes))";
    let first = "(def notes (:value (tool/call {:server \"notes\" :tool \"list_notes\"})))\n(count notes)";
    let planner = says(&[first, failing, last]);
    let address = format!("http://{}/v1/", planner.address);
    let options = ["--agentic", "--aggregator-read-only", "--agentic-base-url", &address, "--agentic-model", "replayed"];
    let options = [&options[..], &["--agentic-max-turns", "3", "--agentic-trace-prompts"]].concat();
    let folder = served(&options, |client| {
        let call = json!({ "name": "lisp_task", "arguments": { "task": "How many <b>notes</b> are there?" } });
        let answer = client.request("tools/call", &call);
        assert_eq!(answer["result"]["structuredContent"]["status"], "ok", "{answer}");
    });
    let (_process, url) = viewer(&folder.path().join("traces"));
    let seen = looked_at(&url, "How many", &[], "");
    let call = &seen["call"];
    assert_eq!((&seen["all"], &seen["markup"], &call["title"]), (&json!(["ok"]), &json!(0), &json!("lisp_task")));
    let bars: Vec<&str> = call["bars"].as_array().into_iter().flatten().filter_map(|bar| bar["label"].as_str()).collect();
    for what in ["planner 1 ", "planner 2 ", "planner 3 ", "eval 1 ", "eval 2 ", "eval 3 ", "notes list_notes "] {
        assert!(bars.iter().any(|bar| bar.starts_with(what)), "no bar {what:?} among {bars:?}");
    }
    // Each turn shows its program. The failed turn shows where and why it failed.
    let blocks = &call["blocks"];
    assert_eq!([&blocks["Program 1"], &blocks["Program 2"], &blocks["Program 3"]], [first, failing, last], "{call}");
    assert_eq!(call["failing"].as_array().map(Vec::len), Some(1), "{call}");
    assert!(call["sections"].as_array().is_some_and(|all| all.contains(&json!("Turn 2 runtime_error"))), "{}", call["sections"]);
    assert!(blocks["What helps in turn 2"].as_str().is_some_and(|text| text.contains('^')), "{blocks}");
    assert!(call["text"].as_str().is_some_and(|text| text.contains("expected a number")), "{}", call["text"]);
    // Messages are available in folded sections.
    assert!(blocks["Prompt 1"].as_str().is_some_and(|text| text.contains("How many <b>notes</b> are there?")), "{blocks}");
    assert_eq!(blocks["Answer of the planner 3"], last);
    assert!(
        call["folded"].as_array().is_some_and(|all| all.len() == 7 && all.iter().all(|open| open == &json!(false))),
        "{call}"
    );
    let row: Vec<&str> = call["calls"][0].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    assert_eq!(row[..4], ["notes", "list_notes", "1", "read"], "{row:?}");
}

/// Starts a planner that gives these answers, one after another.
fn says(answers: &[&str]) -> Web {
    let answers: Vec<String> = answers.iter().map(|&text| text.to_owned()).collect();
    let next = AtomicUsize::new(0);
    Web::start(move |_| {
        let text = answers.get(next.fetch_add(1, Ordering::SeqCst)).map_or("(fail :nothing-more)", String::as_str);
        Answer::json(
            200,
            json!({ "choices": [{ "message": { "role": "assistant", "content": text }, "finish_reason": "stop" }] }),
        )
    })
}

#[test]
fn viewer_accepts_at_most_64_connections() {
    let folder = tempfile::tempdir().expect("a folder");
    let (process, url) = viewer(folder.path());
    let (address, token) = parts(&url);
    let silent: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(address).expect("the system's queue takes it")).collect();
    let open = || std::fs::read_dir(format!("/proc/{}/fd", process.id())).expect("it lives").count();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while open() < 64 && std::time::Instant::now() < until {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert!((64..100).contains(&open()), "{} descriptors", open());
    drop(silent);
    let request = format!(
        "GET /viewer/api/calls HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    );
    assert!(asked(address, &request).0.starts_with("HTTP/1.1 200"));
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn server_shows_calls_as_they_are_made() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "1700000000000001-1-0-lisp_eval", &[start("(earlier)")]);
    let (port, token) = (free_port(), "a-token-of-more-than-thirty-two-bytes");
    let mut server = Command::new(plain());
    server.args([
        "--http",
        "--http-port",
        &port.to_string(),
        "--http-auth-token",
        token,
        "--http-viewer",
        "--trace-payloads",
        "full",
    ]);
    let _server = Background::start(server.arg("--trace-dir").arg(folder.path())).ready_on(port);
    let url = format!("http://127.0.0.1:{port}/viewer/#token={token}");
    let seen = looked_at(&url, "earlier", &[&format!("http://127.0.0.1:{port}/mcp")], token);
    assert_eq!((&seen["all"], &seen["followed"]), (&json!(["no end"]), &json!("2 calls")));
    assert!(seen["call"]["text"].as_str().is_some_and(|text| text.contains("or the process ended in it")), "{}", seen["call"]);
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn contents_of_traces_are_escaped_on_the_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)><b>bold</b>\" onclick=alert(3) \u{202e}turned\u{0}";
    let start = json!({ "event": "call.start", "ts": evil, "tool": evil, "request_id": evil, "program": { "text": evil, "bytes": evil },
                        "context": { evil: evil }, "owner_hash": evil, "traceparent": { "a": evil } });
    let call = json!({ "event": "span", "span": "upstream_call", "server": evil, "tool": evil, "status": evil, "reason": evil, "error": evil, "rule": evil,
                       "start_us": 1e300, "duration_us": -5, "result_bytes": "x", "http_status": [evil], "auth": { "binding": evil } });
    let odd = json!({ "event": "span", "span": evil, "start_us": evil, "duration_us": null });
    let end = json!({ "event": "call.fail", "message": evil, "reason": evil, "result": evil, "feedback": evil, "prints": [evil, 7, [evil]],
                      "error_span": { "start": 3, "end": 1_000_000 }, "ptc_metrics": { "upstream_result_bytes": 10, "final_result_bytes": evil } });
    write(folder.path(), "1700000000000001-1-0-lisp_eval", &[start.clone(), call, odd, end]);
    let odd = json!({ "event": "call.success", "tool": ["x"], "prints": "x", "error_span": "x", "ptc_metrics": null, "duration_us": "x" });
    write(folder.path(), "1700000000000002-1-1-lisp_eval", &[odd]);
    let deep = format!("{}\n{}{}\n", json!({ "event": "call.start", "tool": "deep" }), "[".repeat(100_000), "]".repeat(100_000));
    std::fs::write(folder.path().join("ptc-1700000000000003-1-2-lisp_eval.jsonl"), deep).expect("a file");
    std::fs::write(folder.path().join("ptc-1700000000000004-1-4-lisp_eval.jsonl"), "no record\n{\n").expect("a file");
    let task = json!({ "event": "call.start", "tool": "lisp_task", "task": { "text": format!("{evil} turnip") } });
    let asked = json!({ "event": "span", "span": "planner", "turn": 1, "start_us": 0, "duration_us": 9, "reason": evil, "message": evil, "completion": evil,
                        "prompt": [{ "role": evil, "content": evil }, evil, 7], "tokens": { "total": evil }, "prompt_bytes": evil });
    let ran = json!({ "event": "span", "span": "eval", "turn": 1, "start_us": 9, "duration_us": 9, "status": "error", "reason": evil, "message": evil,
                      "program": { "text": evil, "bytes": evil }, "error_span": { "start": 2, "end": 9 }, "feedback": evil });
    let odd =
        json!({ "event": "span", "span": "planner", "turn": evil, "prompt": evil, "completion": [evil], "message": [evil] });
    let none =
        json!({ "event": "span", "span": "eval", "turn": evil, "status": evil, "program": evil, "feedback": { evil: evil } });
    let call = json!({ "event": "span", "span": "upstream_call", "server": evil, "tool": evil, "turn": evil, "effect": evil });
    let end = json!({ "event": "call.fail", "reason": "agent_failed", "program": { "text": evil } });
    write(folder.path(), "1700000000000000-1-3-lisp_task", &[task, asked, ran, odd, none, call, end]);
    let (_process, url) = viewer(folder.path());
    let seen = looked_at(&url, "turnip", &[], "");
    assert_eq!((&seen["found"], &seen["markup"]), (&json!(["error"]), &json!(0)), "no script runs, no markup is rendered");
    for block in ["Program 1", "What helps in turn 1", "Answer of the planner 1", "Prompt 1", "Task"] {
        let text = seen["call"]["blocks"][block].as_str().unwrap_or_default();
        assert!(text.contains("<img src=x onerror=alert(2)>") && text.contains("⟨U+202E⟩turned⟨U+0000⟩"), "{block}: {text}");
    }
    let seen = looked_at(&url, "bold", &[], "");
    assert_eq!(
        (&seen["all"], &seen["markup"]),
        (&json!(["unreadable", "no end", "ok", "error", "error"]), &json!(0)),
        "no script runs, no markup is rendered"
    );
    let text = seen["call"]["text"].as_str().unwrap_or_default();
    assert!(text.contains("<img src=x onerror=alert(2)>") && text.contains("⟨U+202E⟩turned⟨U+0000⟩"), "{text}");
}
