//! Many concurrent callers: the queue, fairness, memory.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::site::{Client, Site, TOKEN, call, stateless};
use crate::Test;
use crate::peer::{limited, server};

pub(super) const TESTS: &[Test] = &[
    ("http::calls_wait_for_their_time_in_the_queue", calls_wait_for_their_time_in_the_queue),
    ("http::who_gives_up_leaves_the_queue", who_gives_up_leaves_the_queue),
    ("http::a_full_queue_ends_in_an_answer_for_each", a_full_queue_ends_in_an_answer_for_each),
    ("http::programs_that_wait_hold_up_nobody", programs_that_wait_hold_up_nobody),
    ("http::endless_loops_of_one_session_hold_up_no_other", endless_loops_of_one_session_hold_up_no_other),
    ("http::the_memory_budget_is_one_for_all", the_memory_budget_is_one_for_all),
    ("http::context_counts_in_the_memory_budget", context_counts_in_the_memory_budget),
    ("http::context_counts_in_the_memory_of_its_program", context_counts_in_the_memory_of_its_program),
    ("http::an_upstream_takes_calls_one_after_the_other", an_upstream_takes_calls_one_after_the_other),
    ("http::an_upstream_that_hangs_leaves_places_to_others", an_upstream_that_hangs_leaves_places_to_others),
    ("http::bodies_being_read_count_in_the_memory_budget", bodies_being_read_count_in_the_memory_budget),
    ("http::unread_answer_counts_in_the_memory_budget", unread_answer_counts_in_the_memory_budget),
    ("http::answers_that_are_not_read_have_a_limit", answers_that_are_not_read_have_a_limit),
    ("http::limits_name_where_they_come_from", limits_name_where_they_come_from),
    ("http::one_address_has_half_of_all_connections", one_address_has_half_of_all_connections),
    ("http::limits_of_zero_are_refused_at_start", limits_of_zero_are_refused_at_start),
    ("http::program_without_a_stack_is_counted_as_refused", program_without_a_stack_is_counted_as_refused),
    ("http::shutdown_waits_for_a_request_that_is_being_read", shutdown_waits_for_a_request_that_is_being_read),
    ("http::waiting_branches_fit_into_little_memory", waiting_branches_fit_into_little_memory),
    ("http::time_limit_starts_with_the_first_instruction", time_limit_starts_with_the_first_instruction),
];

const ENDLESS: &str = "(loop [i 0] (recur (inc i)))";
const ONE_PLACE: &[&str] =
    &["--max-concurrent-calls", "1", "--program-timeout-ms", "600000", "--http-metrics", "--response-profile", "structured"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [ONE_PLACE, more].concat()
}

/// Returns the value of a metric.
fn metric(client: &mut Client, name: &str) -> f64 {
    let text = client.ask("GET", "/metrics", &[], "").body;
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    value.unwrap_or_else(|| panic!("{name} is not in\n{text}"))
}

/// Returns the value of a metric that is a count.
fn count(client: &mut Client, name: &str) -> u64 {
    metric(client, name) as u64
}

/// Waits until a metric has this value.
fn until(site: &Site, name: &str, value: u64) {
    let (mut client, began) = (site.client(), Instant::now());
    while count(&mut client, name) != value {
        assert!(began.elapsed() < Duration::from_secs(30), "{name} is never {value}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Starts a call that occupies the only place, and returns its client.
fn holder(site: &Site) -> Client {
    let mut client = site.connected();
    client.send_eval(1, ENDLESS);
    until(site, "ptc_programs_running", 1);
    client
}

/// Ends the session of a client and its calls.
fn delete(site: &Site, client: &Client) {
    assert_eq!(site.beside(client).ask("DELETE", "/mcp", &[], "").status, 204);
}

fn calls_wait_for_their_time_in_the_queue() {
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
    assert!(metric(&mut other, "ptc_queue_seconds_sum") >= 0.3);
    let recent = json!({ "name": "lisp_debug", "arguments": { "op": "recent", "errors_only": true } });
    let recent = other.post(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": recent })).body;
    assert!(recent.contains(r#""queued_ms":3"#), "{recent}");
    assert_eq!(count(&mut waiting, r#"ptc_refusals_total{reason="queue_timeout"}"#), 1);
    // A waiting call runs as soon as a place is free.
    waiting.send_eval(2, "(+ 1 2)");
    until(&site, "ptc_programs_queued", 1);
    delete(&site, &holding);
    assert_eq!(waiting.receive().json()["result"]["structuredContent"]["result"], "user=> 3");
    assert!(metric(&mut waiting, "ptc_queue_seconds_sum") > 0.0);
}

fn who_gives_up_leaves_the_queue() {
    let site = Site::start(&with(&["--queue-timeout-ms", "600000"]));
    let holding = holder(&site);
    let mut waiting = site.connected();
    waiting.send_eval(5, "1");
    until(&site, "ptc_programs_queued", 1);
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 5 } });
    assert_eq!(site.beside(&waiting).post(&cancel).status, 202);
    assert!(waiting.receive().text().starts_with("cancelled"));
    until(&site, "ptc_programs_queued", 0);
    // A client that is gone would not get its answer.
    let mut gone = site.beside(&waiting);
    gone.send_eval(6, "1");
    until(&site, "ptc_programs_queued", 1);
    drop(gone);
    until(&site, "ptc_programs_queued", 0);
    // A duplicate of an id is refused, and leaves the call that has this id in the queue.
    waiting.send_eval(7, "(+ 3 4)");
    until(&site, "ptc_programs_queued", 1);
    assert!(site.beside(&waiting).post(&call(7, "1")).body.contains("already in flight"));
    // In the stateless era a call is cancelled by closing its connection.
    let mut client = site.client();
    let (headers, body) = stateless(1, "tools/call", json!({ "name": "lisp_eval", "arguments": { "program": "1" } }));
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    client.send("POST", "/mcp", &headers, &body);
    until(&site, "ptc_programs_queued", 2);
    drop(client);
    until(&site, "ptc_programs_queued", 1);
    delete(&site, &holding);
    assert!(waiting.receive().text().contains("user=> 7"));
}

fn a_full_queue_ends_in_an_answer_for_each() {
    const QUEUE: usize = 1_024;
    let args = with(&["--queue-timeout-ms", "600000", "--http-max-sessions", "2000", "--http-shutdown-grace-ms", "200"]);
    let site = Site::start(&[&args[..], &["--debug-tool"]].concat());
    let holding = holder(&site);
    let session = site.connected();
    let mut waiting: Vec<Client> = (0..QUEUE).map(|_| site.beside(&session)).collect();
    for (id, client) in waiting.iter_mut().enumerate() {
        if id + 1 == QUEUE {
            // The server reads connections in any order. Waiting here makes the last request the newest entry of the queue.
            until(&site, "ptc_programs_queued", id as u64);
        }
        client.send_eval(id as u64, "1");
    }
    until(&site, "ptc_programs_queued", QUEUE as u64);
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
    site.signal(Signal::TERM);
    for client in &mut waiting {
        // The end of the first call gives its place to a waiting one, which may complete before it is stopped.
        let answer = client.receive();
        assert!(["the call was cancelled", "user=> 1"].iter().any(|end| answer.body.contains(end)), "{answer:?}");
    }
    drop(holding);
    let (status, log) = site.end();
    assert!(status.success(), "{log:?}");
}

fn programs_that_wait_hold_up_nobody() {
    let args = ["--http", "--http-disable-auth", "--http-port", "0", "--http-metrics", "--upstream-call-timeout-ms", "60000"];
    let site = Site::of(server("aggregator").args(args).args(["--program-timeout-ms", "60000"]));
    let hang = r#"(tool/call {:server "child" :tool "hang" :args {}})"#;
    let mut waiting: Vec<Client> = (0..40).map(|_| site.connected()).collect();
    for client in &mut waiting {
        client.send_eval(1, hang);
    }
    until(&site, "ptc_programs_waiting", 40);
    let mut other = site.connected();
    let began = Instant::now();
    for _ in 0..100 {
        assert_eq!(other.eval("(+ 1 2)"), "user=> 3");
    }
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!(count(&mut other, "ptc_programs_running"), 0);
}

fn endless_loops_of_one_session_hold_up_no_other() {
    let site = Site::start(&["--program-timeout-ms", "600000", "--http-metrics"]);
    let session = site.connected();
    let mut looping: Vec<Client> = (0..50).map(|_| site.beside(&session)).collect();
    for (id, client) in looping.iter_mut().enumerate() {
        client.send_eval(id as u64, ENDLESS);
    }
    let mut other = site.connected();
    for _ in 0..50 {
        let began = Instant::now();
        assert_eq!(other.eval("(+ 1 2)"), "user=> 3");
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    }
    assert!(metric(&mut other, "ptc_processor_wait_seconds_sum") > 0.0);
}

fn the_memory_budget_is_one_for_all() {
    let site = Site::start(&[
        "--memory-budget-bytes",
        "67108864",
        "--program-memory-limit-bytes",
        "1000000000",
        "--program-timeout-ms",
        "60000",
        "--http-metrics",
    ]);
    let large = "(count (mapv (fn [i] (vec (range 6250))) (range 5000)))";
    let mut clients: Vec<Client> = (0..4).map(|_| site.connected()).collect();
    for client in &mut clients {
        client.send_eval(1, large);
    }
    let mut other = site.connected();
    for _ in 0..20 {
        assert_eq!(other.eval("(count (range 1000))"), "user=> 1000");
    }
    for client in &mut clients {
        let answer = client.receive().text();
        assert!(answer.starts_with("memory_limit: ") && answer.contains("budget of 67108864 bytes"), "{answer}");
    }
    until(&site, "ptc_memory_used_bytes", 0);
    assert!(count(&mut other, r#"ptc_refusals_total{reason="memory_budget"}"#) >= 4);
}

/// A call whose context takes about 36 MB as values.
fn with_large_context(program: &str) -> String {
    let mut request = call(1, program);
    let context = format!(r#"{{"x":[{}[0]]}}"#, "[0],".repeat(500_000));
    request["params"]["arguments"]["context"] = serde_json::from_str(&context).expect("it is JSON");
    request.to_string()
}

fn context_counts_in_the_memory_of_its_program() {
    let site = Site::start(&["--program-memory-limit-bytes", "20000000", "--http-metrics"]);
    let mut client = site.connected();
    let large = client.ask("POST", "/mcp", &[], &with_large_context("1")).text();
    assert!(large.starts_with("memory_limit: the context alone needs more than 20000000 bytes"), "{large}");
    until(&site, "ptc_memory_used_bytes", 0);
    let site = Site::start(&["--program-memory-limit-bytes", "60000000", "--program-timeout-ms", "20000"]);
    let mut client = site.connected();
    let fits = client.ask("POST", "/mcp", &[], &with_large_context("(count data/x)")).text();
    assert_eq!(fits, "user=> 500001");
    // What the program adds counts together with its context.
    let grows = "(count (concat data/x (map (fn [i] [i]) (range 500000))))";
    let more = client.ask("POST", "/mcp", &[], &with_large_context(grows)).text();
    assert!(more.starts_with("memory_limit: "), "{more}");
}

/// Each context takes about 36 MB as values, so that two exceed the budget.
fn context_counts_in_the_memory_budget() {
    let args = ["--memory-budget-bytes", "67108864", "--program-timeout-ms", "5000", "--program-memory-limit-bytes", "60000000"];
    let site = Site::start(&[&args[..], &["--http-metrics"]].concat());
    let mut clients: Vec<Client> = (0..3).map(|_| site.connected()).collect();
    for client in &mut clients {
        client.send("POST", "/mcp", &[], &with_large_context("(loop [] (recur))"));
    }
    let answers: Vec<String> = clients.iter_mut().map(|client| client.receive().text()).collect();
    assert!(answers.iter().any(|answer| answer.contains("budget of 67108864 bytes")), "{answers:?}");
    until(&site, "ptc_memory_used_bytes", 0);
}

/// Starts a server with two upstreams. `narrow` accepts one call at a time.
fn crowd(args: &[&str]) -> Site {
    let always = ["--http", "--http-disable-auth", "--http-port", "0", "--http-metrics", "--upstream-call-timeout-ms", "60000"];
    Site::of(server("crowd").args(always).args(["--program-timeout-ms", "60000"]).args(args))
}

fn tool(upstream: &str, tool: &str) -> String {
    let args = if tool == "echo" { r#"{:text "hi"}"# } else { "{}" };
    format!(r#"(let [r (tool/call {{:server "{upstream}" :tool "{tool}" :args {args}}})] (or (:reason r) (:value r)))"#)
}

fn an_upstream_takes_calls_one_after_the_other() {
    let site = crowd(&[]);
    // The child must have started. Otherwise either of two calls that wait for it may be first.
    assert!(site.connected().eval(&tool("narrow", "echo")).ends_with("\"hi\""));
    let mut holding = site.connected();
    holding.send_eval(1, &tool("narrow", "hang"));
    until(&site, "ptc_programs_waiting", 1);
    // The event loop handles calls in order. After this call, the first one has its place.
    assert!(site.connected().eval(&tool("wide", "echo")).ends_with("\"hi\""));
    let mut waiting = site.connected();
    waiting.send_eval(1, &tool("narrow", "echo"));
    assert!(!waiting.is_answered_within(Duration::from_millis(300)));
    delete(&site, &holding);
    let answer = waiting.receive().text();
    assert!(answer.ends_with("\"hi\""), "{answer}");
}

fn an_upstream_that_hangs_leaves_places_to_others() {
    let site = crowd(&["--max-concurrent-calls", "10"]);
    // Eight of the ten places are for one upstream. Which of the nine calls is refused is not determined.
    let mut hanging: Vec<Client> = (0..9).map(|_| site.connected()).collect();
    for client in &mut hanging {
        client.send_eval(1, &tool("wide", "hang"));
    }
    let began = Instant::now();
    let refused = loop {
        if let Some(at) = hanging.iter().position(|client| client.is_answered_within(Duration::from_millis(10))) {
            break at;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "none is refused");
    };
    let mut other = hanging.remove(refused);
    assert_eq!(other.receive().text(), "user=> :upstream_busy");
    until(&site, "ptc_programs_waiting", 8);
    assert_eq!(other.eval(&tool("narrow", "echo")), "user=> \"hi\"");
    delete(&site, &hanging[0]);
    until(&site, "ptc_programs_waiting", 7);
    other.send_eval(1, &tool("wide", "hang"));
    until(&site, "ptc_programs_waiting", 8);
}

fn bodies_being_read_count_in_the_memory_budget() {
    const MIB: usize = 1024 * 1024;
    let args = ["--memory-budget-bytes", "50331648", "--http-max-body-bytes", "4194304", "--http-request-timeout-ms", "60000"];
    let site = Site::start(&[&args[..], &["--http-metrics"]].concat());
    let begin = || {
        let mut client = site.client();
        client.send("POST", "/mcp", &[("Content-Length", &(4 * MIB).to_string())], "");
        let _ = client.stream.get_mut().write_all(&vec![b'x'; 4 * MIB - 1]);
        client
    };
    let reading = begin();
    until(&site, "ptc_memory_used_bytes", 4 * MIB as u64 - 1);
    // An eighth of the budget is 6 MiB.
    let refused = begin().receive();
    assert!(refused.status == 503 && refused.body.contains("too many requests are being read"), "{refused:?}");
    drop(reading);
    until(&site, "ptc_memory_used_bytes", 0);
}

fn unread_answer_counts_in_the_memory_budget() {
    let site = Site::start(&["--http-metrics", "--http-request-timeout-ms", "60000", "--response-profile", "debug"]);
    let mut client = site.connected();
    let body = call(1, "(apply str (repeat 60000 \"x\"))").to_string();
    let session = client.session.clone().expect("a session");
    let headers = format!("Host: localhost\r\nContent-Length: {}\r\nMcp-Session-Id: {session}", body.len());
    let stream = client.stream.get_mut();
    rustix::net::sockopt::set_socket_recv_buffer_size(&mut *stream, 4096).expect("the socket takes it");
    stream.set_write_timeout(Some(Duration::from_millis(100))).expect("the socket takes it");
    while stream.write_all(format!("POST /mcp HTTP/1.1\r\n{headers}\r\n\r\n{body}").repeat(200).as_bytes()).is_ok() {}
    // The memory of a program is released just after its answer is ready: only an answer that waits counts for longer.
    let (mut other, began, mut steady) = (site.client(), Instant::now(), 0);
    while steady < 20 {
        let text = other.ask("GET", "/metrics", &[], "").body;
        let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
        let waits = value("ptc_programs_running") == Some(0) && value("ptc_programs_waiting") == Some(0);
        let is_counted = waits && value("ptc_memory_used_bytes").is_some_and(|bytes| bytes > 60_000);
        steady = if is_counted { steady + 1 } else { 0 };
        assert!(began.elapsed() < Duration::from_secs(30), "the answer is not counted: {text}");
        std::thread::sleep(Duration::from_millis(2));
    }
    drop(client);
    until(&site, "ptc_memory_used_bytes", 0);
}

/// Unread answers may take a quarter of the budget, which is 4 MiB. Each connection asks for more than its socket takes, so that one
/// of its answers, with 130 KB, waits.
fn answers_that_are_not_read_have_a_limit() {
    const CONNECTIONS: usize = 38;
    let path = std::env::temp_dir().join(format!("ptc-unread-{}", std::process::id()));
    let text = path.to_string_lossy();
    let mut command = server("plain");
    command.args(["--http", "--http-auth-token", TOKEN, "--http-metrics", "--http-unix-socket", &text, "--http-admin-port", "0"]);
    // A connection whose client does not read is closed after the request timeout.
    command.args(["--http-request-timeout-ms", "120000"]);
    let site = Site::of(command.args(["--memory-budget-bytes", "16777216", "--response-profile", "debug"]));
    let used = || {
        let mut admin = Client { token: Some(TOKEN), ..Client::connect(site.admin.expect("an address")) };
        count(&mut admin, "ptc_memory_used_bytes")
    };
    let arguments =
        json!({ "program": format!("(vec (repeat 240 \"{}\"))", "a".repeat(500)), "output_schema": { "type": "array" } });
    let (headers, body) = stateless(1, "tools/call", json!({ "name": "lisp_eval", "arguments": arguments }));
    let headers: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let headers = headers.concat();
    let types = "Content-Type: application/json\r\nAccept: application/json, text/event-stream";
    let head = format!("Host: localhost\r\nAuthorization: Bearer {TOKEN}\r\n{types}\r\nContent-Length: {}", body.len());
    let ask = |count: usize| {
        let mut stream = UnixStream::connect(&path).expect("it listens");
        let request = |end: &str| format!("POST /mcp HTTP/1.1\r\n{head}\r\n{headers}{end}\r\n{body}");
        let requests = request("").repeat(count - 1) + &request("Connection: close\r\n");
        stream.write_all(requests.as_bytes()).expect("it reads");
        stream
    };
    let read = |mut stream: UnixStream| {
        let mut answers = String::new();
        stream.read_to_string(&mut answers).expect("UTF-8");
        answers
    };
    let mut unread: Vec<UnixStream> = (0..CONNECTIONS).map(|_| ask(4)).collect();
    let began = Instant::now();
    while used() < 4_600_000 {
        assert!(began.elapsed() < Duration::from_secs(25), "{} bytes", used());
        std::thread::sleep(Duration::from_millis(2));
    }
    std::thread::sleep(Duration::from_millis(1_500));
    let refused = read(ask(1));
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("they may take 4194304 (a quarter of"), "{refused}");
    // Once they are read, there is room again.
    for answers in unread.drain(..).map(read) {
        assert_eq!(answers.matches("HTTP/1.1 ").count(), 4, "{answers}");
    }
    assert!(read(ask(1)).starts_with("HTTP/1.1 200"));
    let began = Instant::now();
    while used() != 0 {
        assert!(began.elapsed() < Duration::from_secs(30), "{} bytes", used());
    }
}

fn limits_name_where_they_come_from() {
    let mut command = server("plain");
    let told = |command: &mut Command| -> Value {
        let said = command.args(["version", "--json"]).output().expect("it runs").stdout;
        serde_json::from_slice::<Value>(&said).expect("an object")["limits"].clone()
    };
    let limits = told(&mut command);
    assert_eq!(limits["in_flight"], json!({ "value": 1_000, "source": "default" }));
    assert_eq!(limits["queue_timeout_ms"], json!({ "value": 2_000, "source": "default" }));
    let source = limits["memory_budget_bytes"]["source"].as_str().unwrap_or_default();
    assert!(source == "machine" || source.starts_with("cgroup "), "{limits}");
    let limits = told(server("plain").env("PTC_RUNNER_MCP_MAX_CONCURRENT_CALLS", "7"));
    assert_eq!(limits["in_flight"], json!({ "value": 7, "source": "PTC_RUNNER_MCP_MAX_CONCURRENT_CALLS" }));
    let limits = told(server("plain").env("PTC_RUNNER_MCP_HTTP_MAX_IN_FLIGHT_PER_SESSION", "3"));
    let source = "PTC_RUNNER_MCP_HTTP_MAX_IN_FLIGHT_PER_SESSION";
    assert_eq!(limits["in_flight_per_session"], json!({ "value": 3, "source": source }));
    let args = ["--http-auth-token", TOKEN, "--memory-budget-bytes", "100000000", "--queue-timeout-ms", "50"];
    let site = Site::start(&[&args[..], &["--http-max-in-flight-per-session", "4"]].concat());
    let line = site.seen().iter().find(|line| line.contains(r#""event":"limits""#)).cloned().unwrap_or_default();
    for limit in [
        "100000000 (--memory-budget-bytes)",
        "50 (--queue-timeout-ms)",
        "4 (--http-max-in-flight-per-session)",
        "1000 (default)",
        "(machine)",
    ] {
        assert!(line.contains(limit), "{limit} is not in {line}");
    }
}

fn waiting_branches_fit_into_little_memory() {
    const PROGRAMS: usize = 40;
    // One program runs at most 51 branches at a time.
    const BRANCHES: usize = 50;
    let site = crowd(&["--max-upstream-calls-per-program", "1000"]);
    assert_eq!(site.connected().eval(&tool("wide", "heard")), "user=> \"\"");
    let resident_kib = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", site.id())).expect("it lives");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a field of Linux");
        line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number")
    };
    let before = resident_kib();
    let mut waiting: Vec<Client> = (0..PROGRAMS).map(|_| site.connected()).collect();
    let hang = r#"(tool/call {:server "wide" :tool "hang" :args {}})"#;
    for client in &mut waiting {
        client.send_eval(1, &format!("(count (pmap (fn [_] {hang}) (range {BRANCHES})))"));
    }
    let (mut other, began) = (site.connected(), Instant::now());
    let heard = r#"(count (re-seq #"call" (:value (tool/call {:server "wide" :tool "heard" :args {}}))))"#;
    let all = format!("user=> {}", PROGRAMS * BRANCHES);
    while other.eval(heard) != all {
        assert!(began.elapsed() < Duration::from_secs(30), "not all branches wait: {}", other.eval(heard));
        std::thread::sleep(Duration::from_millis(20));
    }
    let (after, branches) = (resident_kib(), PROGRAMS * BRANCHES);
    assert!(after <= 200_000, "{after} KiB resident");
    assert!((after - before) / branches <= 64, "{} KiB for {branches} branches", after - before);
}

fn time_limit_starts_with_the_first_instruction() {
    let times = ["--max-concurrent-calls", "1", "--program-timeout-ms", "1000", "--queue-timeout-ms", "60000"];
    let site = Site::start(&[&times[..], &["--http-metrics"]].concat());
    let (mut first, mut second, mut last) = (site.connected(), site.connected(), site.connected());
    first.send_eval(1, ENDLESS);
    until(&site, "ptc_programs_running", 1);
    second.send_eval(1, ENDLESS);
    until(&site, "ptc_programs_queued", 1);
    let began = Instant::now();
    last.send_eval(1, "(loop [i 0] (if (< i 10000) (recur (inc i)) i))");
    assert_eq!(last.receive().text(), "user=> 10000");
    assert!(began.elapsed() >= Duration::from_millis(1_500), "it waited only {:?}", began.elapsed());
    for client in [&mut first, &mut second] {
        assert!(client.receive().text().starts_with("timeout: "));
    }
}

fn limits_of_zero_are_refused_at_start() {
    for (flag, variable) in [
        ("--max-concurrent-calls", "PTC_RUNNER_MCP_MAX_CONCURRENT_CALLS"),
        ("--queue-timeout-ms", "PTC_RUNNER_MCP_QUEUE_TIMEOUT_MS"),
        ("--memory-budget-bytes", "PTC_RUNNER_MCP_MEMORY_BUDGET_BYTES"),
        ("--http-max-in-flight-per-session", "PTC_RUNNER_MCP_HTTP_MAX_IN_FLIGHT_PER_SESSION"),
    ] {
        let refused = |name: &str, command: &mut Command| {
            let ended = command.output().expect("it runs");
            let said = String::from_utf8_lossy(&ended.stderr).into_owned();
            assert!(!ended.status.success() && said.contains(name), "{name}: {said}");
        };
        refused(flag, server("plain").args([flag, "0"]));
        refused(variable, server("plain").env(variable, "0"));
    }
}

fn program_without_a_stack_is_counted_as_refused() {
    const CALLS: u64 = 100;
    let args = ["--http", "--http-port", "0", "--http-disable-auth", "--http-metrics", "--queue-timeout-ms", "60000"];
    let more = ["--program-timeout-ms", "2000", "--response-profile", "structured"];
    // Each program has a stack of 18 MiB of address space.
    let site = Site::of(&mut limited("ulimit -v 1200000", &server("plain"), &[&args[..], &more].concat()));
    let session = site.connected();
    let mut calls: Vec<Client> = (0..CALLS).map(|_| site.beside(&session)).collect();
    for (id, client) in (0..).zip(&mut calls) {
        client.send_eval(id, ENDLESS);
    }
    let busy = calls
        .iter_mut()
        .filter_map(|client| (client.receive().json()["result"]["structuredContent"]["reason"] == "busy").then_some(()));
    let busy = busy.count() as u64;
    assert!(busy > 0, "every program had a stack");
    assert_eq!(count(&mut site.client(), r#"ptc_refusals_total{reason="no_stack"}"#), busy);
}

fn shutdown_waits_for_a_request_that_is_being_read() {
    // With the tool for diagnostics, a call is read on a thread that may block.
    let args =
        ["--debug-tool", "--program-timeout-ms", "3000", "--http-shutdown-grace-ms", "20000", "--program-memory-limit-bytes"];
    let site = Site::start(&[&args[..], &["1000000000"]].concat());
    let mut client = site.connected();
    let mut request = call(1, ENDLESS);
    request["params"]["arguments"]["context"] = json!({ "x": vec![json!({ "a": "b" }); 300_000] });
    client.send("POST", "/mcp", &[], &request.to_string());
    // In the test profile it takes longer to read this request than to accept the connection and the signal.
    std::thread::sleep(Duration::from_millis(20));
    site.signal(Signal::TERM);
    let answer = client.receive();
    assert!(answer.body.contains("timeout") || answer.body.contains("server draining"), "{answer:?}");
    assert!(site.end().0.success());
}

fn one_address_has_half_of_all_connections() {
    // The number of connections follows from the descriptors that the process may open.
    let args = ["--http", "--http-port", "0", "--http-disable-auth"];
    let site = Site::of(&mut limited("ulimit -n 300", &server("plain"), &args));
    let is_served = |client: &mut Client| {
        let bytes = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
        let sent = client.stream.get_mut().write_all(bytes).is_ok();
        sent && client.try_receive().is_some_and(|answer| answer.status == 200)
    };
    let mut open = Vec::new();
    let refused = loop {
        let mut client = site.client();
        if !is_served(&mut client) {
            break client;
        }
        open.push(client);
        assert!(open.len() < 300, "one address takes all connections");
    };
    drop(refused);
    // 128 descriptors are reserved for other purposes, and half of the other 172 are for one address.
    assert_eq!(open.len(), 86);
    // Its share becomes free again.
    open.pop();
    let began = Instant::now();
    while !is_served(&mut site.client()) {
        assert!(began.elapsed() < Duration::from_secs(30), "the share of a closed connection is lost");
    }
}
