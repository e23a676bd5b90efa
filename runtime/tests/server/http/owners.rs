//! Several owners at one server: the file of their tokens.

use std::fmt::Write as _;
use std::path::Path;

use ptc_runtime::digest::{hex, sha256};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::access::{scratch, until};
use super::site::{Answer, Client, ENDLESS, Site, TOKEN};
use crate::Test;
use crate::peer::server;

pub(super) const TESTS: &[Test] = &[
    ("http::tokens_of_a_file_are_separate_owners", tokens_of_a_file_are_separate_owners),
    ("http::waiting_owner_is_served_before_the_owner_with_most_calls", waiting_owner_is_served_before_the_owner_with_most_calls),
    ("http::tokens_file_is_read_again_on_hangup", tokens_file_is_read_again_on_hangup),
    ("http::hangup_ends_a_server_that_reloads_nothing", hangup_ends_a_server_that_reloads_nothing),
    ("http::invalid_tokens_file_is_refused_at_the_start", invalid_tokens_file_is_refused_at_the_start),
];

pub(super) const ALICE: &str = "not-a-real-token-of-alice-0123456789abcdef";
const ALICE_NEXT: &str = "not-a-real-token-of-alice-fedcba9876543210";
pub(super) const BOB: &str = "not-a-real-token-of-bob-0123456789abcdef";
const SHORT: &str = "not-a-real-token";

/// Writes a file of tokens.
pub(super) fn tokens_file(path: &Path, tokens: &[(&str, &str)]) {
    let lines = tokens.iter().fold(String::from("# owner sha256\n"), |mut lines, (owner, token)| {
        writeln!(lines, "{owner} {}", hex(&sha256(token.as_bytes()))).expect("a string");
        lines
    });
    std::fs::write(path, lines).expect("a file");
}

fn start(path: &Path, more: &[&str]) -> Site {
    let path = path.to_str().expect("plain text");
    Site::of(server("plain").args(["--http", "--http-port", "0", "--http-tokens-file", path]).args(more))
}

fn status_with(site: &Site, token: &'static str) -> u16 {
    Client { token: Some(token), ..site.client() }.initialize().status
}

pub(super) fn tool(client: &mut Client, id: &str, name: &str, arguments: &Value) -> Answer {
    let params = json!({ "name": name, "arguments": arguments });
    client.post(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }))
}

fn tokens_of_a_file_are_separate_owners() {
    let path = scratch("tokens");
    tokens_file(&path, &[("alice", ALICE), ("bob", BOB), ("alice", ALICE_NEXT), ("carol", SHORT)]);
    let site = start(&path, &["--sessions", "--max-sessions-per-owner", "1", "--http-auth-token", TOKEN]);
    assert_eq!(site.client().initialize().status, 401);
    assert_eq!(status_with(&site, SHORT), 401, "a token that can be guessed");
    let mut alice = site.authenticated(ALICE);
    let session =
        tool(&mut alice, "1", "lisp_session_start", &json!({})).json()["result"]["structuredContent"]["session_id"].clone();
    let eval = json!({ "session_id": session, "program": "(def x 20)" });
    assert!(tool(&mut alice, "2", "lisp_session_eval", &eval).text().contains('x'));
    let eval = json!({ "session_id": session, "program": "(inc x)" });
    // Both tokens of an owner work while one of them is replaced.
    assert_eq!(tool(&mut site.authenticated(ALICE_NEXT), "3", "lisp_session_eval", &eval).text(), "user=> 21");
    for other in [BOB, TOKEN] {
        let answer = tool(&mut site.authenticated(other), "4", "lisp_session_eval", &eval);
        assert_eq!(answer.json()["result"]["structuredContent"]["reason"], "session_not_found", "{answer:?}");
        // The protocol session of another owner does not exist either.
        let mut stolen = site.beside(&alice);
        stolen.token = Some(other);
        assert_eq!(stolen.post(&super::site::call(1, "1")).status, 404);
        assert_eq!(stolen.ask("DELETE", "/mcp", &[], "").status, 404);
    }
    assert_eq!(alice.eval("(+ 1 2)"), "user=> 3");
    // The quota of an owner is not that of another.
    let open = |token| {
        tool(&mut site.authenticated(token), "5", "lisp_session_start", &json!({})).json()["result"]["structuredContent"].clone()
    };
    assert_eq!(open(ALICE_NEXT)["reason"], "session_limit_exceeded");
    for other in [BOB, TOKEN] {
        let opened = open(other);
        assert!(opened["session_id"].is_string(), "{opened}");
    }
    std::fs::remove_file(&path).expect("it is there");
}

fn waiting_owner_is_served_before_the_owner_with_most_calls() {
    let path = scratch("served");
    tokens_file(&path, &[("alice", ALICE), ("bob", BOB)]);
    let two_places = ["--max-concurrent-calls", "2", "--queue-timeout-ms", "600000", "--program-timeout-ms", "600000"];
    let site = start(&path, &[&two_places[..], &["--http-metrics"]].concat());
    let mut reader = site.authenticated(BOB);
    let mut wait_for = |metric: &str, value| until(metric, || reader.count(metric) == value);
    let mut running: Vec<Client> = (0..2).map(|_| site.authenticated(ALICE)).collect();
    for client in &mut running {
        client.send_eval(1, ENDLESS);
    }
    wait_for("ptc_programs_running", 2);
    let mut queued: Vec<Client> = (0..5).map(|_| site.authenticated(ALICE)).collect();
    for client in &mut queued {
        client.send_eval(1, ENDLESS);
    }
    wait_for("ptc_programs_queued", 5);
    let mut bob = site.authenticated(BOB);
    bob.send_eval(1, "(+ 1 2)");
    wait_for("ptc_programs_queued", 6);
    // Each program of alice would keep a place for ten minutes.
    site.close_session(&running[0]);
    assert_eq!(bob.receive().text(), "user=> 3");
    wait_for("ptc_programs_queued", 4);
    std::fs::remove_file(&path).expect("it is there");
}

fn tokens_file_is_read_again_on_hangup() {
    let path = scratch("reloaded");
    tokens_file(&path, &[("alice", ALICE)]);
    let mut site = start(&path, &[]);
    let mut alice = site.authenticated(ALICE);
    assert_eq!((alice.eval("1"), status_with(&site, BOB)), ("user=> 1".into(), 401));
    // A file with a fault, here with a token in place of its digest, changes nothing.
    std::fs::write(&path, format!("bob {BOB}\n")).expect("a file");
    site.signal(Signal::HUP);
    let refused = site.logged("tokens not loaded");
    let reason = refused["reason"].as_str().expect("a reason");
    assert!(reason.contains("line 1: expected 64 hexadecimal digits") && !reason.contains(BOB), "{refused}");
    assert_eq!((alice.eval("2"), status_with(&site, BOB)), ("user=> 2".into(), 401));
    tokens_file(&path, &[("bob", BOB)]);
    site.signal(Signal::HUP);
    assert_eq!(site.logged("tokens loaded")["tokens"], 1);
    assert_eq!((status_with(&site, BOB), status_with(&site, ALICE)), (200, 401));
    assert_eq!(alice.post(&super::site::call(1, "1")).status, 401, "also on a connection and in a session that are open");
    std::fs::remove_file(&path).expect("it is there");
    site.signal(Signal::TERM);
    assert!(site.end().0.success());
}

fn hangup_ends_a_server_that_reloads_nothing() {
    let site = Site::start(&[]);
    site.signal(Signal::HUP);
    let (status, log) = site.end();
    assert!(status.success() && log.iter().any(|line| line.contains("SIGHUP")), "{log:?}");
}

fn invalid_tokens_file_is_refused_at_the_start() {
    let path = scratch("invalid");
    std::fs::write(&path, "alice\n").expect("a file");
    let text = path.to_str().expect("plain text");
    for (args, part) in [
        (&["--http-tokens-file", text][..], "line 1: expected the name of an owner"),
        (&["--http-tokens-file", text, "--http-disable-auth"], "--http-disable-auth does not go with --http-tokens-file"),
        (&["--http-tokens-file", "/nonexistent"], "expected an existing file"),
    ] {
        let refused = server("plain").args(["--http", "--http-port", "0"]).args(args).output().expect("it runs");
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(2) && said.contains(part), "{said}");
    }
    std::fs::remove_file(&path).expect("it is there");
}
