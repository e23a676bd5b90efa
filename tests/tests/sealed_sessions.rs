//! Tests that sessions in a real Redis server are sealed, and that a stored session that was changed is lost alone.

use std::process::Stdio;

use crate::redis::Redis;
use crate::redis::replica::{Client, PASSWORD, Replica, SESSION_KEY, message, reason, replica};
use ptc_tests::process::{free_port, run};
use serde_json::json;

const OTHER_KEY: &str = "not-a-secret-other-key-of-anybody-else";

/// Runs a Lua script in the store. `KEYS` are the keys of the sessions.
fn change(redis: &Redis, script: &str, sessions: &[&str]) {
    let keys: Vec<String> = sessions.iter().map(|id| format!("ptc:plain:session:{id}")).collect();
    let count = keys.len().to_string();
    let keys = keys.iter().map(String::as_str);
    let answer = redis.cli(&["eval", script, &count].into_iter().chain(keys).collect::<Vec<_>>());
    assert_eq!(answer.trim(), "changed", "{script}");
}

/// Checks that every tool that reads the state of a session says that it is lost, and that the session can be listed and closed.
fn assert_lost(client: &mut Client, session: &str, why: &str) {
    for (tool, arguments) in [
        ("lisp_session_eval", json!({ "session_id": session, "program": "1" })),
        ("lisp_session_inspect", json!({ "session_id": session })),
        ("lisp_session_forget", json!({ "session_id": session, "clear": ["prints"] })),
    ] {
        let answer = client.data(tool, &arguments);
        assert_eq!(reason(&answer), "session_lost", "{tool}: {answer}");
        assert!(
            message(&answer).contains(why) && message(&answer).contains("lisp_session_start opens another"),
            "{tool}: {answer}"
        );
    }
    assert_eq!(client.status(session), "idle", "it is listed");
    assert_eq!(client.data("lisp_session_close", &json!({ "session_id": session })).get("closed"), Some(&json!(true)));
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn session_store_contains_no_plain_text_of_a_session() {
    let redis = Redis::start(PASSWORD);
    let replica = Replica::start(&redis, &[]);
    let mut client = replica.client();
    let opened = client.data("lisp_session_start", &json!({ "title": "marker-title" }));
    let id = opened.get("session_id").and_then(serde_json::Value::as_str).expect("an id").to_owned();
    client.result(
        &id,
        "(def word \"marker-value\") (defn f [x] [x \"marker-function\"]) (println \"marker-print\") (f \"marker-result\")",
    );
    let everything = redis.cli(&["--no-raw", "hgetall", &format!("ptc:plain:session:{id}")]);
    assert!(everything.contains("ptc-sealed") && !everything.contains("marker"), "{everything}");
    let seen = client.data("lisp_session_inspect", &json!({ "session_id": id, "view": "prints" }));
    assert_eq!(seen.get("prints"), Some(&json!(["marker-print"])));
    assert_eq!(seen.pointer("/session/title"), Some(&json!("marker-title")));
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn altered_session_in_the_store_is_lost_without_affecting_others() {
    let redis = Redis::start(PASSWORD);
    let replica = Replica::start(&redis, &["--program-memory-limit-bytes", "10000000", "--max-sessions-per-owner", "20"]);
    let mut client = replica.client();
    let mut open = || {
        let id = client.open();
        client.result(&id, &format!("(def id \"{id}\")"));
        id
    };
    let (other, flipped, swapped, unsealed, oversized, cut) = (open(), open(), open(), open(), open(), open());
    let flip = "local s = redis.call('HGET', KEYS[1], 'image'); \
                redis.call('HSET', KEYS[1], 'image', s:sub(1, -2) .. string.char(bit.bxor(s:byte(-1), 1))); return 'changed'";
    change(&redis, flip, &[&flipped]);
    let swap = "redis.call('HSET', KEYS[2], 'image', redis.call('HGET', KEYS[1], 'image')); return 'changed'";
    change(&redis, swap, &[&other, &swapped]);
    let old = "redis.call('HSET', KEYS[1], 'image', 'ptc-image\\1\\0\\0\\0\\0', 'prints', '[]', 'calls', '[]'); return 'changed'";
    change(&redis, old, &[&unsealed]);
    let large = "redis.call('HSET', KEYS[1], 'image', redis.call('HGET', KEYS[1], 'image') .. string.rep('x', 20000000)); return 'changed'";
    change(&redis, large, &[&oversized]);
    change(&redis, "redis.call('HSET', KEYS[1], 'image', 'ptc-sealed\\1'); return 'changed'", &[&cut]);
    let resident = |replica: &Replica| {
        let status = std::fs::read_to_string(format!("/proc/{}/status", replica.child.id())).expect("it lives");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a field of Linux").trim();
        line.trim_end_matches(" kB").parse::<u64>().expect("a number")
    };
    let before = resident(&replica);
    assert_lost(&mut client, &oversized, "it may take 10000000 (--program-memory-limit-bytes)");
    assert!(resident(&replica) < before + 10_000, "the reply was not allocated");
    for (session, why) in [
        (&flipped, "it was changed in the store or belongs to another session"),
        (&swapped, "it was changed in the store or belongs to another session"),
        (&unsealed, "it is not sealed in a format of this version"),
        (&cut, "it was changed in the store"),
    ] {
        assert_lost(&mut client, session, why);
    }
    assert_eq!(client.result(&other, "id"), format!("user=> \"{other}\""));
    assert!(replica.ready().starts_with("HTTP/1.1 200"));
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn session_that_was_given_to_another_owner_is_lost() {
    let redis = Redis::start(PASSWORD);
    let replica = Replica::start(&redis, &[]);
    let mut client = replica.client();
    let id = client.open();
    client.result(&id, "(def x 1)");
    // The store now has this session for the owner of a token. The key is the same.
    let token = "not-a-secret-token-of-another-owner-0001";
    let port = free_port();
    let mut command = replica_with_token(&redis, port, token);
    let child = command.env("PTC_RUNNER_MCP_SESSION_KEY", SESSION_KEY).stderr(Stdio::null()).spawn().expect("it starts");
    let other = Replica { child, port };
    ptc_tests::process::wait_for(|| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok(), "the server");
    // This fails if a provider is already installed, which is sufficient.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let call = |tool: &str, arguments: serde_json::Value| {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": tool, "arguments": arguments,
            "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": { "name": "ptc-tests", "version": "0" } } } });
        let client = reqwest::blocking::Client::new();
        let request = client.post(format!("http://127.0.0.1:{port}/mcp")).bearer_auth(token).json(&body);
        let headers = [
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", tool),
        ];
        let request = headers.into_iter().fold(request, |request, (name, value)| request.header(name, value));
        request.send().expect("it answers").text().expect("a text")
    };
    let own = call("lisp_session_start", json!({}));
    let owner = redis.cli(&[
        "eval",
        "for _, key in ipairs(redis.call('KEYS', 'ptc:plain:session:*')) do \
        if key ~= KEYS[1] then return redis.call('HGET', key, 'owner') end end",
        "1",
        &format!("ptc:plain:session:{id}"),
    ]);
    assert!(owner.trim().len() == 64, "{own} {owner}");
    redis.cli(&["hset", &format!("ptc:plain:session:{id}"), "owner", owner.trim()]);
    let stolen = call("lisp_session_eval", json!({ "session_id": id, "program": "x" }));
    assert!(stolen.contains("session_lost") && !stolen.contains("user=>"), "{stolen}");
    drop(other);
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn previous_key_decrypts_sessions_and_unknown_key_loses_them() {
    let redis = Redis::start(PASSWORD);
    let before = Replica::start(&redis, &[]);
    let mut client = before.client();
    let (first, second) = (client.open(), client.open());
    for session in [&first, &second] {
        client.result(session, "(def x 1)");
    }
    let both = Replica::with_key(&redis, &format!("{OTHER_KEY} {SESSION_KEY}"), &[]);
    assert_eq!(both.client().result(&first, "(def x (inc x)) x"), "user=> 2");
    let after = Replica::with_key(&redis, OTHER_KEY, &[]);
    assert_eq!(after.client().result(&first, "x"), "user=> 2");
    assert_lost(&mut after.client(), &second, "it was sealed with another key");
    assert_eq!(reason(&client.eval(&first, "x")), "session_lost");
}

/// Returns the command of a server whose clients send a token. It has no key of its own for sessions.
fn replica_with_token(redis: &Redis, port: u16, token: &str) -> std::process::Command {
    let mut command = std::process::Command::new(ptc_tests::deployment::plain());
    command.args(["--http", "--http-port", &port.to_string(), "--sessions", "--response-profile", "structured"]);
    command.env("PTC_RUNNER_MCP_SESSION_STORE", redis.url(&format!(":{PASSWORD}@")));
    command.env("PTC_RUNNER_MCP_HTTP_AUTH_TOKEN", token).stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// This test needs no Redis server, since the settings are checked first.
#[test]
fn store_without_a_key_is_refused() {
    let without = |options: &[&str]| {
        let mut command = replica(free_port(), "redis://127.0.0.1:1", options);
        run(command.env_remove("PTC_RUNNER_MCP_SESSION_KEY"))
    };
    let refused = without(&[]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("sessions in a store are sealed with a key") && refused.stderr.contains("openssl rand"),
        "{}",
        refused.stderr
    );
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("key");
    std::fs::write(&file, "short\n").expect("a file");
    let short = without(&["--session-key-file", file.to_str().expect("plain text")]);
    assert_eq!(short.code, Some(2));
    assert!(short.stderr.contains("keys of at least 32 printable characters, one per line"), "{}", short.stderr);
    let mut both = replica(free_port(), "redis://127.0.0.1:1", &["--session-key-file", file.to_str().expect("plain text")]);
    let both = run(&mut both);
    assert!(both.code == Some(2) && !both.stderr.contains(SESSION_KEY), "{}", both.stderr);
}
