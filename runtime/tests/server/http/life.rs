//! A listening server over time: sessions, limits, cancellation, shutdown.

use std::io::{ErrorKind, Write as _};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use super::access::until;
use super::site::{Client, Site, TOKEN, call, stateless};
use crate::Test;
use crate::peer::server;

pub(super) const TESTS: &[Test] = &[
    ("http::many_calls_use_one_connection", many_calls_use_one_connection),
    ("http::request_ids_of_sessions_are_independent", request_ids_of_sessions_are_independent),
    ("http::notification_delete_and_disconnect_cancel_calls", notification_delete_and_disconnect_cancel_calls),
    ("http::sessions_and_calls_above_their_limits_are_refused", sessions_and_calls_above_their_limits_are_refused),
    ("http::shutdown_ends_only_its_session", shutdown_ends_only_its_session),
    ("http::large_and_slow_requests_are_aborted", large_and_slow_requests_are_aborted),
    ("http::client_that_does_not_read_is_disconnected", client_that_does_not_read_is_disconnected),
    ("http::total_size_of_bodies_is_bounded", total_size_of_bodies_is_bounded),
    ("http::sigterm_lets_calls_finish_and_refuses_new_ones", sigterm_lets_calls_finish_and_refuses_new_ones),
    ("http::request_read_during_shutdown_is_refused", request_read_during_shutdown_is_refused),
    ("http::secrets_in_arguments_are_redacted", secrets_in_arguments_are_redacted),
    ("http::slow_disk_does_not_delay_other_calls", slow_disk_does_not_delay_other_calls),
    (
        "http::trace_of_a_dequeued_call_is_not_written_on_the_connection_thread",
        trace_of_a_dequeued_call_is_not_written_on_the_connection_thread,
    ),
    ("http::log_lines_contain_only_hashes_of_tokens_and_sessions", log_lines_contain_only_hashes_of_tokens_and_sessions),
    ("http::contradicting_settings_are_refused_at_start", contradicting_settings_are_refused_at_start),
    ("http::pipelined_requests_wait_for_earlier_ones", pipelined_requests_wait_for_earlier_ones),
    ("http::metrics_count_upstream_calls_and_bytes", metrics_count_upstream_calls_and_bytes),
    ("http::metrics_count_outcomes_of_calls", metrics_count_outcomes_of_calls),
    ("http::program_sessions_belong_to_the_token", program_sessions_belong_to_the_token),
];

const ENDLESS: &str = "(loop [i 0] (recur (inc i)))";
const PATIENT: &[&str] = &["--program-timeout-ms", "600000", "--max-concurrent-calls", "8"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [PATIENT, more].concat()
}

fn stateless_call(client: &mut Client, id: u64, program: &str) {
    let (headers, body) = stateless(id, "tools/call", json!({ "name": "lisp_eval", "arguments": { "program": program } }));
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    client.send("POST", "/mcp", &headers, &body);
}

/// Repeats a call until it is accepted, which shows that the stopped call has released its place.
fn place(client: &mut Client) {
    while client.eval("(+ 1 2)") != "user=> 3" {
        std::thread::yield_now();
    }
}

/// Starts a call that does not end. Sends it again while it is refused as busy.
fn hold(client: &mut Client, send: impl Fn(&mut Client)) {
    send(client);
    while client.is_answered_within(Duration::from_millis(200)) {
        let answer = client.receive();
        assert!(answer.text().starts_with("busy"), "{answer:?}");
        send(client);
    }
}

fn many_calls_use_one_connection() {
    let site = Site::start(&[]);
    let mut client = site.connected();
    for n in 0..200 {
        assert_eq!(client.eval(&format!("(+ {n} 1)")), format!("user=> {}", n + 1));
    }
    // Another connection has another session and does not see the first one's definitions.
    client.eval("(def secret 41)");
    assert!(site.connected().eval("secret").starts_with("runtime_error"));
}

fn request_ids_of_sessions_are_independent() {
    let site = Site::start(PATIENT);
    let (mut one, mut two) = (site.connected(), site.connected());
    hold(&mut one, |one| one.send_eval(1, ENDLESS));
    assert_eq!(two.eval("(+ 1 2)"), "user=> 3");
    let mut beside = site.beside(&one);
    let again = beside.post(&call(1, "1"));
    assert!(again.status == 200 && again.body.contains("already in flight"), "{again:?}");
    // A session cannot cancel the calls of another session.
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    assert_eq!(two.post(&cancel).status, 202);
    assert!(beside.post(&call(1, "1")).body.contains("already in flight"));
    // In the stateless era request ids belong to one request.
    let (mut three, mut four) = (site.client(), site.client());
    stateless_call(&mut three, 1, ENDLESS);
    stateless_call(&mut four, 1, "(+ 1 2)");
    assert_eq!(four.receive().text(), "user=> 3");
}

fn notification_delete_and_disconnect_cancel_calls() {
    let site = Site::start(&["--program-timeout-ms", "600000", "--max-concurrent-calls", "1"]);
    let mut other = site.connected();
    let mut client = site.connected();
    hold(&mut client, |client| client.send_eval(5, ENDLESS));
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 5 } });
    let before = Instant::now();
    assert_eq!(site.beside(&client).post(&cancel).status, 202);
    let answer = client.receive();
    assert!(before.elapsed() < Duration::from_secs(20));
    assert!(answer.status == 200 && answer.text().starts_with("cancelled"), "{answer:?}");
    place(&mut other);

    hold(&mut client, |client| client.send_eval(6, ENDLESS));
    assert_eq!(site.beside(&client).ask("DELETE", "/mcp", &[], "").status, 204);
    assert!(client.receive().text().starts_with("cancelled"));
    place(&mut other);
    assert_eq!(client.post(&call(7, "1")).status, 404);

    // In the stateless era a call is cancelled by closing its connection.
    let mut client = site.client();
    hold(&mut client, |client| stateless_call(client, 1, ENDLESS));
    drop(client);
    place(&mut other);

    // In the handshake era a client may reconnect, so that a closed connection does not cancel its call.
    let client = {
        let mut client = site.connected();
        hold(&mut client, |client| client.send_eval(8, ENDLESS));
        site.beside(&client)
    };
    std::thread::sleep(Duration::from_millis(50));
    assert!(other.eval("1").starts_with("busy: server busy: the call was not admitted"));
    let mut client = client;
    assert_eq!(client.ask("DELETE", "/mcp", &[], "").status, 204);
    place(&mut other);
}

fn sessions_and_calls_above_their_limits_are_refused() {
    let caps = ["--http-max-sessions", "3", "--http-max-sessions-per-owner", "3", "--http-max-in-flight-per-session", "2"];
    let site = Site::start(&with(&caps));
    let mut clients = [site.connected(), site.connected(), site.connected()];
    for client in &mut clients {
        hold(client, |client| client.send_eval(1, ENDLESS));
    }
    let mut late = site.client();
    let refused = late.initialize();
    assert!(refused.status == 429 && refused.body.contains("owner limit") && late.session.is_none(), "{refused:?}");
    let ready = late.ask("GET", "/ready", &[], "");
    assert!(ready.status == 503 && ready.body.contains("saturated"), "{ready:?}");
    let [first, second, third] = &mut clients;
    for client in [&*first, &*third] {
        assert_eq!(site.beside(client).ask("DELETE", "/mcp", &[], "").status, 204);
    }
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    assert_eq!(site.beside(second).post(&cancel).status, 202);
    assert!(second.receive().text().starts_with("cancelled"));
    assert_eq!(late.ask("GET", "/ready", &[], "").status, 200);
    assert_eq!(late.initialize().status, 200);

    let mut running = [site.beside(second), site.beside(second)];
    for (id, client) in running.iter_mut().enumerate() {
        hold(client, |client| client.send_eval(id as u64 + 10, ENDLESS));
    }
    // A third call of the session is refused after the queue timeout. Other sessions are not affected.
    assert!(second.eval("1").starts_with("busy: server busy: the call was not admitted"));
    assert_eq!(late.eval("(+ 1 2)"), "user=> 3");
    // A session expires after its idle timeout.
    let site = Site::start(&["--http-session-idle-timeout-ms", "50"]);
    let mut client = site.connected();
    std::thread::sleep(Duration::from_millis(60));
    assert_eq!(client.post(&call(1, "1")).status, 404);
}

fn shutdown_ends_only_its_session() {
    let site = Site::start(&[]);
    let (mut one, mut two) = (site.connected(), site.connected());
    assert_eq!(one.post(&json!({ "jsonrpc": "2.0", "id": 1, "method": "shutdown" })).json()["result"], json!(null));
    assert!(one.eval("1").starts_with("shutting_down"));
    assert_eq!(two.eval("1"), "user=> 1");
}

fn large_and_slow_requests_are_aborted() {
    let site = Site::start(&["--http-max-body-bytes", "2000", "--http-request-timeout-ms", "300"]);
    let large = "x".repeat(3000);
    let answer = site.client().ask("POST", "/mcp", &[], &large);
    assert!(answer.status == 413 && answer.body == "payload too large", "{answer:?}");
    // The limit also applies to a chunked body, whose length is not announced.
    let mut client = site.client();
    client.send("POST", "/mcp", &[("Content-Length", ""), ("Transfer-Encoding", "chunked")], "");
    client.write(format!("5dc\r\n{}\r\n5dc\r\n{}\r\n0\r\n\r\n", "x".repeat(1500), "x".repeat(1500)).as_bytes());
    assert_eq!(client.receive().status, 413);
    // Timeouts apply to an incomplete body, an incomplete head, and a connection without a request.
    let mut client = site.client();
    client.send("POST", "/mcp", &[("Content-Length", "100")], "{");
    assert_eq!(client.receive().status, 408);
    let mut client = site.client();
    client.write(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n");
    assert!(client.try_receive().is_none_or(|answer| answer.status == 408));
    assert!(site.client().try_receive().is_none_or(|answer| answer.status == 408));
    // The length of a head is limited too.
    let mut client = site.client();
    let header = format!("x-long: {}\r\n", "x".repeat(1000));
    client.write(format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\n{}", header.repeat(60)).as_bytes());
    assert!(client.try_receive().is_none_or(|answer| answer.status == 431));
}

/// Writes until the server has closed the connection.
fn until_closed(client: &mut Client) {
    let before = Instant::now();
    let stream = client.stream.get_mut();
    stream.set_write_timeout(Some(Duration::from_millis(100))).expect("a socket takes it");
    loop {
        match stream.write_all(b"x") {
            Err(why) if matches!(why.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => return,
            Err(why) if !matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => panic!("{why}"),
            _ => assert!(before.elapsed() < Duration::from_secs(30), "the connection is kept"),
        }
    }
}

fn client_that_does_not_read_is_disconnected() {
    let site = Site::start(&["--http-request-timeout-ms", "300"]);
    let mut client = site.connected();
    let session = client.session.clone().expect("a session");
    let body = call(1, "(apply str (repeat 8000 \"x\"))").to_string();
    let one = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\nMcp-Session-Id: {session}\r\n\r\n{body}",
        body.len()
    );
    let stream = client.stream.get_mut();
    stream.set_write_timeout(Some(Duration::from_millis(100))).expect("a socket takes it");
    while stream.write_all(one.repeat(200).as_bytes()).is_ok() {}
    until_closed(&mut client);
    assert_eq!(site.connected().eval("1"), "user=> 1");
}

fn total_size_of_bodies_is_bounded() {
    const MIB: usize = 1024 * 1024;
    let site = Site::start(&["--http-max-body-bytes", "16777216", "--http-request-timeout-ms", "60000"]);
    let (length, part) = ((16 * MIB).to_string(), "x".repeat(16 * MIB));
    let begin = |bytes: usize| {
        let mut client = site.client();
        client.send("POST", "/mcp", &[("Content-Length", &length)], "");
        // The server does not read a rejected request to the end, so that the write may fail.
        let _ = client.stream.get_mut().write_all(&part.as_bytes()[..bytes]);
        client
    };
    // Which of the five is rejected depends on the order in which the server reads them. The answer may be lost together with
    // unread data. In that case the request is repeated.
    let mut reading: Vec<Client> = (0..5).map(|_| begin(15 * MIB)).collect();
    let refused = (0..5).cycle().take(200).find_map(|turn| {
        let client = &mut reading[turn];
        client.is_answered_within(Duration::from_millis(50)).then(|| std::mem::replace(client, begin(15 * MIB)).try_receive())?
    });
    let refused = refused.filter(|answer| answer.status == 503).expect("one of five is refused");
    assert_eq!((refused.header("retry-after"), refused.header("connection")), (Some("1"), Some("close")));
    assert!(refused.body.contains("too many requests are being read"), "{refused:?}");
    // Small bodies are still accepted, and closed connections release their memory.
    assert_eq!(site.connected().eval("1"), "user=> 1");
    drop(reading);
    let mut answers = std::iter::repeat_with(|| begin(16 * MIB).try_receive()).take(200).flatten();
    let taken = answers.find(|answer| answer.status != 503).expect("there is room again");
    assert!(taken.status == 400 && taken.body.contains("-32700"), "it is not JSON: {taken:?}");
}

fn sigterm_lets_calls_finish_and_refuses_new_ones() {
    // Running calls continue, new ones are refused, and `/ready` reports the draining to load balancers.
    let mut site = Site::start(PATIENT);
    let (mut client, mut late) = (site.connected(), site.client());
    hold(&mut client, |client| client.send_eval(1, ENDLESS));
    site.signal(Signal::TERM);
    site.logged("draining");
    let ready = late.ask("GET", "/ready", &[], "");
    assert!(ready.status == 503 && ready.body.contains("draining"), "{ready:?}");
    let refused = late.initialize();
    assert!(refused.status == 503 && refused.body.contains("server draining"), "{refused:?}");
    assert!(!client.is_answered_within(Duration::from_millis(50)));
    assert_eq!(site.beside(&client).ask("DELETE", "/mcp", &[], "").status, 204);
    assert!(client.receive().text().starts_with("cancelled"));
    assert!(site.end().0.success());

    let mut site = Site::start(PATIENT);
    let mut client = site.connected();
    client.send_eval(1, "(loop [i 0] (when (< i 3000000) (recur (inc i))))");
    while site.connected().ask("GET", "/ready", &[], "").status != 200 {}
    site.signal(Signal::TERM);
    site.logged("draining");
    assert_eq!(client.receive().text(), "user=> nil");
    assert!(site.end().0.success());

    let mut site = Site::start(&with(&["--http-shutdown-grace-ms", "50"]));
    let mut client = site.connected();
    client.send_eval(1, ENDLESS);
    let mut other = site.client();
    stateless_call(&mut other, 1, ENDLESS);
    std::thread::sleep(Duration::from_millis(100));
    site.signal(Signal::TERM);
    site.logged("draining");
    assert!(client.receive().text().starts_with("cancelled"));
    assert!(other.receive().text().starts_with("cancelled"));
    assert!(site.end().0.success());
}

fn request_read_during_shutdown_is_refused() {
    let mut site = Site::start(PATIENT);
    let (mut running, mut client) = (site.connected(), site.connected());
    hold(&mut running, |running| running.send_eval(1, ENDLESS));
    let body = call(2, "1").to_string();
    let (half, rest) = body.split_at(20);
    client.send("POST", "/mcp", &[("Content-Length", &body.len().to_string())], half);
    // The request's head has been read once a later request on the same thread is answered.
    assert_eq!(site.connected().eval("1"), "user=> 1");
    site.signal(Signal::TERM);
    site.logged("draining");
    client.write(rest.as_bytes());
    let refused = client.receive();
    assert!(refused.status == 503 && refused.body.contains("server draining"), "{refused:?}");
}

fn secrets_in_arguments_are_redacted() {
    let args = ["--http", "--http-port", "0", "--http-auth-token", TOKEN, "--debug-tool", "--response-profile", "structured"];
    let site = Site::of(crate::peer::server("stored").args(args));
    let mut client = site.client();
    client.token = Some(TOKEN);
    client.initialize();
    let mut ask = |id: serde_json::Value, name: &str, arguments: serde_json::Value| {
        let params = json!({ "name": name, "arguments": arguments });
        client.post(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })).body
    };
    for (id, name, arguments) in [
        (1, "sum", json!({ "a": TOKEN })),
        (2, "sum", json!({ "a": 1, TOKEN: 1 })),
        (3, "lisp_eval", json!({ "program": "1", "context": { format!("{TOKEN}/x"): 1 } })),
        (4, "lisp_eval", json!({ "program": "1", "output_schema": { TOKEN: 1 } })),
        (5, TOKEN, json!({})),
        (6, "lisp_debug", json!({ "op": TOKEN })),
        (7, "lisp_debug", json!({ "op": "get", "request_id": TOKEN })),
        (8, "lisp_eval", json!({ "program": format!("(fail \"{TOKEN}\")") })),
    ] {
        let answer = ask(json!(id), name, arguments);
        assert!(!answer.contains(TOKEN) && answer.contains("[REDACTED]"), "{answer}");
    }
    ask(json!(TOKEN), "lisp_eval", json!({ "program": "1" }));
    ask(json!("9".repeat(254)), "lisp_eval", json!({ "program": "1" }));
    let recent = ask(json!(10), "lisp_debug", json!({ "op": "recent" }));
    assert!(!recent.contains(TOKEN), "{recent}");
    let recent: serde_json::Value = serde_json::from_str(&recent).expect("JSON");
    let calls = &recent["result"]["structuredContent"]["calls"];
    assert_eq!((&calls[0]["request_id"], &calls[1]["request_id"]), (&json!("9".repeat(254)), &json!("[REDACTED]")));
    assert_eq!(calls[0]["protocol_version"], "2025-11-25");
    for id in 1..5 {
        let record = ask(json!(11), "lisp_debug", json!({ "op": "get", "request_id": id.to_string() }));
        assert!(!record.contains(TOKEN) && record.contains("[REDACTED]"), "{record}");
    }
}

fn slow_disk_does_not_delay_other_calls() {
    let folder = std::env::temp_dir().join(format!("ptc-slow-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    let site = Site::start(&["--debug-tool", "--response-profile", "slim", "--trace-dir", folder.to_str().expect("plain text")]);
    let debug = |op: serde_json::Value| {
        let params = json!({ "name": "lisp_debug", "arguments": op });
        json!({ "jsonrpc": "2.0", "id": "d", "method": "tools/call", "params": params })
    };
    let mut client = site.connected();
    client.eval("1");
    // Reading a named pipe without a writer blocks forever.
    let file = std::fs::read_dir(&folder).expect("a folder").next().expect("a trace").expect("readable").path();
    std::fs::remove_file(&file).expect("it is there");
    rustix::fs::mkfifoat(rustix::fs::CWD, &file, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).expect("a pipe");
    client.send("POST", "/mcp", &[], &debug(json!({ "op": "get", "request_id": "1" })).to_string());
    assert!(!client.is_answered_within(Duration::from_millis(100)));
    let mut other = site.connected();
    assert_eq!(other.eval("(+ 1 2)"), "user=> 3");
    assert!(other.post(&debug(json!({ "op": "stats" }))).body.contains("ring_count"));
    std::fs::write(&file, "{\"event\":\"late\"}\n").expect("the file is writable");
    assert!(client.receive().body.contains("late"));
    let _ = std::fs::remove_dir_all(&folder);
}

fn trace_of_a_dequeued_call_is_not_written_on_the_connection_thread() {
    let folder = std::env::temp_dir().join(format!("ptc-queued-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let path = folder.to_str().expect("plain text");
    let site = Site::start(&["--max-concurrent-calls", "1", "--queue-timeout-ms", "600000", "--trace-dir", path]);
    let mut client = site.connected();
    client.send_eval(1, ENDLESS);
    let traces = |count| until("that many traces", || std::fs::read_dir(&folder).is_ok_and(|files| files.count() == count));
    traces(1);
    let mut queued = site.client();
    stateless_call(&mut queued, 1, "1");
    assert!(!queued.is_answered_within(Duration::from_millis(200)));
    // Bytes that the main thread has written to files and sockets.
    let written = || -> u64 {
        let counters = std::fs::read_to_string(format!("/proc/{0}/task/{0}/io", site.id())).expect("counters of Linux");
        counters.lines().find_map(|line| line.strip_prefix("wchar: ")?.parse().ok()).expect("a number")
    };
    let before = written();
    drop(queued);
    traces(2);
    until("the end of the trace", || {
        let files = std::fs::read_dir(&folder).expect("a folder").map(|file| file.expect("readable").path());
        files.filter_map(|file| std::fs::read_to_string(file).ok()).any(|text| text.contains("cancelled"))
    });
    // A wake of another thread takes eight.
    assert!(written() - before < 200, "{} bytes", written() - before);
    let _ = std::fs::remove_dir_all(&folder);
}

fn log_lines_contain_only_hashes_of_tokens_and_sessions() {
    let mut site = Site::start(&["--http-auth-token", TOKEN, "--http-instance-label", "node-7"]);
    let mut client = site.client();
    client.token = Some(TOKEN);
    client.initialize();
    let session = client.session.clone().expect("a session");
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let answer = client.ask("POST", "/mcp", &[("traceparent", trace)], &call(1, &format!("\"{TOKEN}\"")).to_string());
    assert_eq!(answer.text(), "user=> \"[REDACTED]\"");
    site.logged("http_request");
    let line = site.logged("http_request");
    assert_eq!((&line["instance"], &line["status"], &line["method"]), (&json!("node-7"), &json!(200), &json!("POST")));
    assert_eq!(line["traceparent"], trace);
    assert_eq!(line["request_id"].as_str(), answer.header("x-request-id"));
    for (hash, length) in [("owner_hash", 32), ("mcp_session_hash", 12)] {
        assert!(line[hash].as_str().is_some_and(|hash| hash.len() == length), "{line}");
    }
    site.signal(Signal::TERM);
    let (status, log) = site.end();
    assert!(status.success());
    assert!(log.iter().all(|line| !line.contains(TOKEN) && !line.contains(&session)), "{log:?}");
}

fn contradicting_settings_are_refused_at_start() {
    for (args, part) in [
        (&["--http", "--http-host", "0.0.0.0"][..], "needs --http-auth-token"),
        (&["--http", "--http-host", "example.org"], "expected an IP address or localhost"),
        (&["--http", "--http-auth-token", "short"], "at least 32 printable characters without spaces, found '5 bytes'"),
        (&["--http", "--http-disable-auth", "--http-allow-unsafe-network"], "does not go with"),
        (&["--http", "--http-path", "/health"], "are taken"),
        (&["--http", "--http-allowed-origin", "null"], "expected origins such as"),
    ] {
        let done = crate::peer::server("plain").args(args).output().expect("it runs");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code() == Some(2) && said.contains(part), "{args:?}: {said}");
    }
    // A port that is in use is a startup error with its reason.
    let site = Site::start(&[]);
    let port = site.address.port().to_string();
    let done = crate::peer::server("plain").args(["--http", "--http-port", &port]).output().expect("it runs");
    assert!(done.status.code() == Some(2) && String::from_utf8_lossy(&done.stderr).contains("--http-port"));
}

fn pipelined_requests_wait_for_earlier_ones() {
    let site = Site::start(&[]);
    let resident = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", site.id())).expect("it lives");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("its size");
        line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).expect("a number")
    };
    let mut client = site.connected();
    let before = resident();
    let session = client.session.clone().expect("a session");
    let body = call(1, "(apply str (repeat 8000 \"x\"))").to_string();
    let one = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\nMcp-Session-Id: {session}\r\n\r\n{body}",
        body.len()
    );
    let many = one.repeat(200);
    // The client does not read. Eventually the server stops accepting requests, without using more memory.
    let stream = client.stream.get_mut();
    stream.set_write_timeout(Some(Duration::from_millis(500))).expect("a socket takes it");
    let mut sent = 0;
    while sent < 1_000_000 && std::io::Write::write_all(stream, many.as_bytes()).is_ok() {
        sent += 200;
    }
    assert!(sent < 1_000_000, "all was taken");
    let grown = resident().saturating_sub(before);
    assert!(grown < 8 * 1024, "{grown} KiB more after {sent} requests");
    assert_eq!(site.connected().eval("1"), "user=> 1");
}

fn metrics_count_outcomes_of_calls() {
    let site = Site::start(&["--http-metrics", "--http-auth-token", TOKEN, "--http-metrics-path", "/numbers"]);
    let mut client = site.client();
    assert_eq!(client.ask("GET", "/numbers", &[], "").status, 401);
    client.token = Some(TOKEN);
    client.initialize();
    client.eval("(+ 1 2)");
    client.eval("(+ 1 2)");
    client.eval("(fail 1)");
    let text = client.ask("GET", "/numbers", &[], "").body;
    for line in [
        "ptc_calls_total{tool=\"lisp_eval\",status=\"ok\"} 2",
        "ptc_call_errors_total{tool=\"lisp_eval\",reason=\"fail\"} 1",
        "ptc_call_duration_seconds_bucket{tool=\"lisp_eval\",le=\"+Inf\"} 3",
        "ptc_call_duration_seconds_count{tool=\"lisp_eval\"} 3",
        "ptc_http_sessions 1",
        "ptc_programs_running 0",
        "ptc_programs_waiting 0",
        "ptc_programs_queued 0",
        "ptc_queue_seconds_count 3",
        "ptc_processor_wait_seconds_bucket{le=\"+Inf\"} 3",
        "ptc_refusals_total{reason=\"queue_timeout\"} 0",
        "# TYPE ptc_call_duration_seconds histogram",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    // Every line is a comment, or a name with labels and a number.
    let sample =
        |line: &str| line.rsplit_once(' ').is_some_and(|(name, value)| name.starts_with("ptc_") && value.parse::<f64>().is_ok());
    assert!(text.lines().all(|line| line.starts_with("# ") || sample(line)), "{text}");
    assert_eq!(Site::start(&[]).client().ask("GET", "/metrics", &[], "").status, 404);
}

fn metrics_count_upstream_calls_and_bytes() {
    let args =
        ["--http", "--http-disable-auth", "--http-port", "0", "--http-metrics", "--sessions", "--max-concurrent-calls", "3"];
    let site = Site::of(server("aggregator").args(args).args(["--upstream-call-timeout-ms", "200"]));
    let mut client = site.connected();
    client.eval(r#"(count (:value (tool/call {:server "child" :tool "echo" :args {:text "abcdefgh"}})))"#);
    client.eval(r#"(:reason (tool/call {:server "child" :tool "hang" :args {}}))"#);
    let params = json!({ "name": "lisp_session_start", "arguments": {} });
    client.post(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }));
    let text = client.ask("GET", "/metrics", &[], "").body;
    for line in [
        r#"ptc_upstream_calls_total{server="child",outcome="ok"} 1"#,
        r#"ptc_upstream_calls_total{server="child",outcome="timeout"} 1"#,
        "ptc_upstream_result_bytes_total 10",
        "ptc_sessions 1",
        "ptc_programs_in_flight_limit 3",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    let shown = text.lines().find_map(|line| line.strip_prefix("ptc_final_result_bytes_total ")).expect("it is there");
    assert!(shown.parse::<u64>().is_ok_and(|bytes| bytes > 0), "{shown}");
}

fn program_sessions_belong_to_the_token() {
    let site = Site::start(&["--sessions", "--http-auth-token", TOKEN]);
    let tool = |client: &mut Client, name: &str, arguments: serde_json::Value| {
        let params = json!({ "name": name, "arguments": arguments });
        let answer = client.post(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }));
        answer.json()["result"].clone()
    };
    let connect = || {
        let mut client = site.client();
        client.token = Some(TOKEN);
        client.initialize();
        client
    };
    let (mut one, mut two) = (connect(), connect());
    let opened = tool(&mut one, "lisp_session_start", json!({}))["structuredContent"]["session_id"].clone();
    tool(&mut one, "lisp_session_eval", json!({ "session_id": opened, "program": "(def x 20)" }));
    // A session of the tool outlives the protocol session in which it was opened.
    assert_eq!(one.ask("DELETE", "/mcp", &[], "").status, 204);
    let seen = tool(&mut two, "lisp_session_eval", json!({ "session_id": opened, "program": "(inc x)" }));
    assert_eq!(seen["content"][0]["text"], "user=> 21", "{seen}");
    // In the stateless era the session is also named by the argument.
    let mut three = site.client();
    three.token = Some(TOKEN);
    let arguments = json!({ "session_id": opened, "program": "(* 2 x)" });
    let (headers, body) = stateless(1, "tools/call", json!({ "name": "lisp_session_eval", "arguments": arguments }));
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(three.ask("POST", "/mcp", &headers, &body).text(), "user=> 40");
}
