//! The queue: callers that wait, give up, or are refused.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use super::site::{Client, ENDLESS, Site, call, stateless};
use crate::Test;
use crate::peer::server;

pub(super) const TESTS: &[Test] = &[
    ("http::call_beyond_the_limit_waits_for_the_queue_timeout", call_beyond_the_limit_waits_for_the_queue_timeout),
    ("http::caller_that_cancels_or_disconnects_leaves_the_queue", caller_that_cancels_or_disconnects_leaves_the_queue),
    ("http::shutdown_with_a_full_queue_answers_every_call", shutdown_with_a_full_queue_answers_every_call),
    ("http::time_limit_starts_with_the_first_instruction", time_limit_starts_with_the_first_instruction),
    ("http::shutdown_waits_for_a_request_that_is_being_read", shutdown_waits_for_a_request_that_is_being_read),
];

const ONE_SLOT: &[&str] =
    &["--max-concurrent-calls", "1", "--program-timeout-ms", "600000", "--http-metrics", "--response-profile", "structured"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [ONE_SLOT, more].concat()
}

/// Starts a call that occupies the only slot, and returns its client.
fn holder(site: &Site) -> Client {
    let mut client = site.connected();
    client.send_eval(1, ENDLESS);
    site.until("ptc_programs_running", 1);
    client
}

fn call_beyond_the_limit_waits_for_the_queue_timeout() {
    let site = Site::start(&with(&["--queue-timeout-ms", "300", "--debug-tool"]));
    let holding = holder(&site);
    let mut waiting = site.connected();
    let began = Instant::now();
    waiting.send_eval(1, "(+ 1 2)");
    // Requests that run no program never wait.
    let mut other = site.connected();
    for method in ["ping", "tools/list"] {
        assert_eq!(other.post(&json!({ "jsonrpc": "2.0", "id": 1, "method": method })).status, 200);
    }
    let refused = waiting.receive().json();
    assert!(began.elapsed() >= Duration::from_millis(300), "{:?}", began.elapsed());
    let told = &refused["result"]["structuredContent"];
    assert_eq!((&told["reason"], &told["retry_after_ms"]), (&json!("busy"), &json!(300)), "{refused}");
    assert!(other.metric("ptc_queue_seconds_sum") >= 0.3);
    let recent = json!({ "name": "lisp_debug", "arguments": { "op": "recent", "errors_only": true } });
    let recent = other.post(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": recent })).body;
    assert!(recent.contains(r#""queued_ms":3"#), "{recent}");
    assert_eq!(waiting.count(r#"ptc_refusals_total{reason="queue_timeout"}"#), 1);
    // A waiting call runs as soon as a slot is free.
    waiting.send_eval(2, "(+ 1 2)");
    site.until("ptc_programs_queued", 1);
    site.close_session(&holding);
    assert_eq!(waiting.receive().json()["result"]["structuredContent"]["result"], "user=> 3");
    assert!(waiting.metric("ptc_queue_seconds_sum") > 0.0);
}

fn caller_that_cancels_or_disconnects_leaves_the_queue() {
    let site = Site::start(&with(&["--queue-timeout-ms", "600000"]));
    let holding = holder(&site);
    let mut waiting = site.connected();
    waiting.send_eval(5, "1");
    site.until("ptc_programs_queued", 1);
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 5 } });
    assert_eq!(site.beside(&waiting).post(&cancel).status, 202);
    assert!(waiting.receive().text().starts_with("cancelled"));
    site.until("ptc_programs_queued", 0);
    // A client that is gone would not get its answer.
    let mut gone = site.beside(&waiting);
    gone.send_eval(6, "1");
    site.until("ptc_programs_queued", 1);
    drop(gone);
    site.until("ptc_programs_queued", 0);
    // A duplicate of an id is refused, and leaves the call that has this id in the queue.
    waiting.send_eval(7, "(+ 3 4)");
    site.until("ptc_programs_queued", 1);
    assert!(site.beside(&waiting).post(&call(7, "1")).body.contains("already in flight"));
    // In the stateless era a call is cancelled by closing its connection.
    let mut client = site.client();
    let (headers, body) = stateless(1, "tools/call", json!({ "name": "lisp_eval", "arguments": { "program": "1" } }));
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    client.send("POST", "/mcp", &headers, &body);
    site.until("ptc_programs_queued", 2);
    drop(client);
    site.until("ptc_programs_queued", 1);
    site.close_session(&holding);
    assert!(waiting.receive().text().contains("user=> 7"));
}

fn shutdown_with_a_full_queue_answers_every_call() {
    const QUEUE: usize = 1_024;
    let args = with(&["--queue-timeout-ms", "600000", "--http-max-sessions", "2000", "--http-shutdown-grace-ms", "200"]);
    let site = Site::start(&[&args[..], &["--debug-tool"]].concat());
    let holding = holder(&site);
    let session = site.connected();
    let mut waiting: Vec<Client> = (0..QUEUE).map(|_| site.beside(&session)).collect();
    for (id, client) in waiting.iter_mut().enumerate() {
        if id + 1 == QUEUE {
            // The server reads connections in any order. Waiting here makes the last request the newest entry of the queue.
            site.until("ptc_programs_queued", id as u64);
        }
        client.send_eval(id as u64, "1");
    }
    site.until("ptc_programs_queued", QUEUE as u64);
    let mut probe = site.client();
    let ready = probe.ask("GET", "/ready", &[], "");
    assert!(ready.status == 503 && ready.body.contains("queue_full"), "{ready:?}");
    // A request without a program is answered at once, also the `initialize` of this session.
    let mut other = site.connected();
    let debug = json!({ "name": "lisp_debug", "arguments": { "op": "stats" } });
    for (method, params) in [("ping", json!({})), ("tools/list", json!({})), ("tools/call", debug)] {
        let answer = other.post(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })).json();
        assert!(answer["result"].is_object() && answer["result"]["isError"] != true, "{answer}");
    }
    // The session that fills the queue is refused. A call of another session displaces the newest entry.
    let mut more = site.beside(&session);
    assert!(
        more.post(&call(9_999, "1")).body.contains("the queue of calls that wait for admission is full"),
        "a full queue takes more of the same"
    );
    let mut newcomer = site.connected();
    newcomer.send_eval(1, "1");
    let last = waiting.pop().expect("it is there").receive();
    assert!(last.body.contains("the queue of calls that wait for admission is full"), "{last:?}");
    waiting.push(newcomer);
    assert_eq!(probe.count(r#"ptc_refusals_total{reason="queue_full"}"#), 2);
    site.signal(Signal::TERM);
    for client in &mut waiting {
        // The end of the first call gives its slot to a waiting one, which may complete before it is stopped.
        let answer = client.receive();
        assert!(["the call was cancelled", "user=> 1"].iter().any(|end| answer.body.contains(end)), "{answer:?}");
    }
    drop(holding);
    let (status, log) = site.end();
    assert!(status.success(), "{log:?}");
}

/// Two programs that run into their time limit hold the only slot, while a third one waits for longer than its own limit.
fn time_limit_starts_with_the_first_instruction() {
    const LIMIT_MS: u64 = 1_000;
    let times = ["--max-concurrent-calls", "1", "--program-timeout-ms", "1000", "--queue-timeout-ms", "60000"];
    let http = ["--http", "--http-disable-auth", "--http-port", "0", "--http-metrics", "--response-profile", "debug"];
    // A server without upstreams does not answer with metrics.
    let site = Site::of(server("aggregator").args(http).args(times));
    let (mut first, mut second, mut last) = (site.connected(), site.connected(), site.connected());
    for _ in 0..20 {
        first.send_eval(1, ENDLESS);
        site.until("ptc_programs_running", 1);
        second.send_eval(1, ENDLESS);
        site.until("ptc_programs_queued", 1);
        last.send_eval(1, "(loop [i 0] (if (< i 10000) (recur (inc i)) i))");
        let answer = last.receive().json();
        let data = &answer["result"]["structuredContent"];
        assert_eq!(data["result"], "user=> 10000", "{answer}");
        for client in [&mut first, &mut second] {
            assert_eq!(client.receive().json()["result"]["structuredContent"]["reason"], "timeout");
        }
        if data["ptc_metrics"]["queued_ms"].as_u64().is_some_and(|queued| queued > LIMIT_MS) {
            return;
        }
        // This test was too slow: its last request was sent late.
    }
    panic!("the third program never waited for longer than its time limit");
}

fn shutdown_waits_for_a_request_that_is_being_read() {
    // With the tool for diagnostics, a call is read on a thread that may block.
    let args = ["--debug-tool", "--http-metrics", "--program-timeout-ms", "3000", "--http-shutdown-grace-ms", "20000"];
    let args = [&args[..], &["--program-memory-limit-bytes", "1000000000"]].concat();
    let mut request = call(1, ENDLESS);
    request["params"]["arguments"]["context"] = json!({ "x": vec![json!({ "a": "b" }); 300_000] });
    let body = request.to_string();
    let (all_but_one, last) = body.split_at(body.len() - 1);
    for attempt in 1..=20 {
        let site = Site::start(&args);
        let (mut client, mut probe) = (site.connected(), site.client());
        client.send("POST", "/mcp", &[("Content-Length", &body.len().to_string())], all_but_one);
        site.until("ptc_memory_used_bytes", all_but_one.len() as u64);
        client.write(last.as_bytes());
        // The bytes count until the body is complete, and again when its call is admitted. In between it is being read.
        let mut is_being_read = false;
        while !is_being_read && probe.count("ptc_programs_running") == 0 {
            is_being_read = probe.count("ptc_memory_used_bytes") == 0;
        }
        // The last attempt checks the same of a request that was read too quickly.
        if is_being_read || attempt == 20 {
            site.signal(Signal::TERM);
            let answer = client.receive();
            assert!(answer.body.contains("timeout") || answer.body.contains("server draining"), "{answer:?}");
            assert!(site.end().0.success());
            return;
        }
    }
}
