//! A small MCP server over standard input and output that misbehaves on demand.
//!
//! It runs as the test `peer::serve` of this binary. The banner of the test harness therefore precedes the handshake, which
//! clients must tolerate.

use std::io::{BufRead, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ptc_catalog::{EnvPart, McpStdio};
use serde_json::{Value, json};

/// Returns the config of a peer in one of its modes.
pub(crate) fn spec(mode: &'static str) -> McpStdio {
    let exe = std::env::current_exe().unwrap().into_os_string().into_string().unwrap();
    let env: &'static [(&str, &[EnvPart])] =
        vec![("PTC_PEER", &*vec![EnvPart::Text(mode)].leak()), ("FOO", &[EnvPart::Text("a b")])].leak();
    McpStdio { args: &["peer::serve", "--exact", "--nocapture"], env, ..McpStdio::new(exe.leak()) }
}

#[test]
fn serve() {
    if let Ok(mode) = std::env::var("PTC_PEER") {
        run(&mode);
        std::process::exit(0);
    }
}

#[derive(Default)]
struct Seen {
    /// Ids of calls of `gate` that wait for other calls.
    gate: Vec<Value>,
    cancelled: Vec<Value>,
    answers: Vec<Value>,
    grandchild: u32,
    /// Parameters of the received handshake.
    greeting: Value,
}

fn put(frame: &Value) {
    put_line(frame.to_string().as_bytes());
}

fn put_line(line: &[u8]) {
    let mut out = std::io::stdout().lock();
    // Each line is one write. Errors are ignored, since the client may be gone.
    let _ = out.write_all(&[line, b"\n"].concat());
    let _ = out.flush();
}

fn run(mode: &str) {
    if mode == "mute" {
        for _ in std::io::stdin().lock().lines() {}
        return;
    }
    if mode == "deaf" {
        std::thread::sleep(Duration::from_mins(10));
    }
    if mode == "chatty" {
        for line in ["starting up ...", "{not a frame", "{\"level\":\"info\"}", "\u{1b}[32mready\u{1b}[0m", ""] {
            put_line(line.as_bytes());
        }
    }
    let seen = Arc::new(Mutex::new(Seen::default()));
    if mode == "family" {
        // The grandchild is in the same process group and holds none of the pipes.
        let null = std::process::Stdio::null;
        #[expect(clippy::zombie_processes, reason = "the test checks that the client ends it")]
        let child = std::process::Command::new("sleep").arg("600").stdin(null()).stdout(null()).stderr(null()).spawn().unwrap();
        seen.lock().unwrap().grandchild = child.id();
    }
    for (number, line) in std::io::stdin().lock().lines().enumerate() {
        let Ok(line) = line else { return };
        let frame: Value = serde_json::from_str(&line).unwrap();
        if number == 0 && mode == "dies_on_probe" && frame["method"] != "initialize" {
            eprintln!("expected initialize");
            std::process::exit(3);
        }
        if number == 0 {
            seen.lock().unwrap().greeting = frame["method"].clone();
        }
        handle(mode, &frame, &seen);
    }
}

fn handle(mode: &str, frame: &Value, seen: &Arc<Mutex<Seen>>) {
    let id = frame["id"].clone();
    let result = |result: Value| put(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    let error = |code: i64, message: &str| put(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}));
    let modern = mode == "modern";
    match frame["method"].as_str() {
        Some("server/discover") if modern => {
            assert_eq!(frame["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
            result(json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "modern peer", "version": "2"}}}));
        }
        Some("server/discover") if mode == "silent_probe" => {}
        Some("initialize") if modern => error(-32601, "only 2026-07-28 is spoken"),
        Some("initialize") => {
            let version = match mode {
                "old" => "2024-11-05",
                "future" => "2099-01-01",
                _ => "2025-11-25",
            };
            result(json!({"protocolVersion": version, "capabilities": {"tools": {}},
                "serverInfo": {"name": "peer", "version": "1"}, "instructions": "Be kind."}));
        }
        Some("notifications/cancelled") => seen.lock().unwrap().cancelled.push(frame["params"]["requestId"].clone()),
        Some("tools/list") => list(mode, frame, &result),
        Some("tools/call") => call(frame, seen),
        Some(method) if method.starts_with("notifications/") => {}
        Some(_) => error(-32601, "no such method"),
        None => seen.lock().unwrap().answers.push(frame.clone()),
    }
}

fn list(mode: &str, frame: &Value, result: &impl Fn(Value)) {
    // A second process of this mode lists fewer tools than the first.
    if let Some(file) = mode.strip_prefix("changes:") {
        let names: &[&str] = if std::path::Path::new(file).exists() { &["t0"] } else { &["crash", "echo", "t0"] };
        std::fs::write(file, "").unwrap();
        let tools = names.iter().map(|name| json!({"name": name, "inputSchema": {"type": "object"}})).collect::<Vec<_>>();
        return result(json!({"tools": tools}));
    }
    let page = frame["params"]["cursor"].as_str().map_or(0, |cursor| cursor.parse::<usize>().unwrap());
    let tool = json!({"name": format!("t{page}"), "inputSchema": {"type": "object"}, "x-vendor": 1.50, "_meta": {"big": 12_345_678_901_234_567_890_u64}});
    match (mode, page) {
        ("lists_nothing", _) => {
            put(&json!({"jsonrpc": "2.0", "id": frame["id"], "error": {"code": -32601, "message": "no lists"}}));
        }
        ("endless", _) => result(json!({"tools": [tool], "nextCursor": "1"})),
        ("pages", 0 | 1) => result(json!({"tools": [tool], "nextCursor": (page + 1).to_string()})),
        _ => result(json!({"tools": [tool]})),
    }
}

fn call(frame: &Value, seen: &Arc<Mutex<Seen>>) {
    let (id, args) = (frame["id"].clone(), frame["params"]["arguments"].clone());
    let reply = move |result: Value| put(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    let text = |text: String| json!({"content": [{"type": "text", "text": text}]});
    let id = frame["id"].clone();
    let tool = frame["params"]["name"].as_str().unwrap().to_owned();
    match tool.as_str() {
        "echo" => reply(text(args["message"].as_str().unwrap_or_default().to_owned())),
        "args" => reply(text(args.to_string())),
        "structured" => put_line(
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[],"structuredContent":{{"n": 12345678901234567890123, "z":1, "a":2}}}}}}"#)
                .as_bytes(),
        ),
        "fail" => reply(json!({"isError": true, "content": [{"type": "text", "text": "no such file"}]})),
        "rpc_error" => put(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": "bad arguments"}})),
        "slow" => {
            let pause = Duration::from_millis(args["ms"].as_u64().unwrap());
            std::thread::spawn(move || {
                std::thread::sleep(pause);
                reply(json!({"content": [{"type": "text", "text": "done"}]}));
            });
        }
        "big" => {
            let filler = "x".repeat(args["bytes"].as_u64().unwrap() as usize);
            put_line(format!(r#"{{"result":{{"content":[{{"type":"text","text":"{filler}"}}]}},"jsonrpc":"2.0","id":{id}}}"#).as_bytes());
        }
        "crash" => {
            eprintln!("out of cheese");
            std::process::exit(7);
        }
        "garbage" => put_line(b"{not json}"),
        "wrong_id" => put(&json!({"jsonrpc": "2.0", "id": 4_242_424, "result": text("not yours".to_owned())})),
        "twice" => {
            reply(text("first".to_owned()));
            put(&json!({"jsonrpc": "2.0", "id": id, "result": text("second".to_owned())}));
        }
        "hologram" => reply(json!({"content": [{"type": "hologram", "data": [1]}, {"type": "text", "text": "beside it"}]})),
        "half" => {
            let _ = std::io::stdout().write_all(br#"{"jsonrpc":"2.0","id":"#);
            let _ = std::io::stdout().flush();
            std::process::exit(0);
        }
        "flood" => {
            let line = [b'e'; 1023].iter().copied().chain([b'\n']).collect::<Vec<u8>>();
            for _ in 0..4096 {
                let _ = std::io::stderr().write_all(&line);
            }
            reply(text("wet".to_owned()));
        }
        "drip" => {
            for byte in br#"{"jsonrpc":"2.0","#.iter().cycle().take(600) {
                let _ = std::io::stdout().write_all(&[*byte]);
                let _ = std::io::stdout().flush();
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        // No call is answered before the given number of calls waits.
        "gate" => {
            let mut seen = seen.lock().unwrap();
            seen.gate.push(id);
            if seen.gate.len() as u64 == args["open"].as_u64().unwrap() {
                for id in std::mem::take(&mut seen.gate) {
                    put(&json!({"jsonrpc": "2.0", "id": id, "result": text("open".to_owned())}));
                }
            }
        }
        "noise" => {
            put_line(b"a line for people");
            put_line(br#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#);
            put_line(br#"{"jsonrpc":"2.0","id":999999,"result":{}}"#);
            reply(text("still here".to_owned()));
        }
        "ask" => {
            for (id, method) in [(json!("q\"1"), "ping"), (json!(2), "roots/list"), (json!(3), "sampling/createMessage")] {
                put(&json!({"jsonrpc": "2.0", "id": id, "method": method}));
            }
            reply(text("asked".to_owned()));
        }
        "seen" => {
            let seen = seen.lock().unwrap();
            reply(json!({"structuredContent": {"cancelled": seen.cancelled, "answers": seen.answers,
                "pid": std::process::id(), "grandchild": seen.grandchild, "greeting": seen.greeting}, "content": []}));
        }
        #[cfg(target_os = "linux")]
        "attempt" => reply(text(crate::sandbox::attempt(&args))),
        "env" => {
            let env: serde_json::Map<String, Value> = std::env::vars().map(|(name, value)| (name, json!(value))).collect();
            let cwd = std::env::current_dir().unwrap();
            reply(json!({"structuredContent": {"env": env, "cwd": cwd}, "content": []}));
        }
        _ => put(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": "unknown tool"}})),
    }
}
