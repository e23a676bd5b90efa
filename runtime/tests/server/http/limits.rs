//! Limits: their sources and ranges, and refusals for lack of a resource.

use std::io::Write as _;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::{Value, json};

use super::site::{Client, ENDLESS, Site, TOKEN};
use crate::Test;
use crate::peer::{limited, server};

pub(super) const TESTS: &[Test] = &[
    ("http::limit_is_shown_with_its_source", limit_is_shown_with_its_source),
    ("http::limit_out_of_range_is_refused_at_start", limit_out_of_range_is_refused_at_start),
    ("http::program_without_a_stack_is_counted_as_refused", program_without_a_stack_is_counted_as_refused),
    ("http::program_without_a_processor_is_counted_as_refused", program_without_a_processor_is_counted_as_refused),
    ("http::one_address_gets_at_most_half_of_all_connections", one_address_gets_at_most_half_of_all_connections),
];

/// Runs `start` on a thread that may use one processor. It gives this affinity to the processes that it starts.
fn with_one_processor<T: Send + 'static>(start: impl FnOnce() -> T + Send + 'static) -> T {
    let limited = std::thread::spawn(|| {
        let allowed = sched_getaffinity(None).expect("its set");
        let mut one = CpuSet::new();
        one.set((0..CpuSet::MAX_CPU).find(|cpu| allowed.is_set(*cpu)).expect("at least one"));
        sched_setaffinity(None, &one).expect("it is allowed");
        start()
    });
    limited.join().expect("no panic")
}

fn limit_is_shown_with_its_source() {
    let mut command = server("plain");
    let told = move |command: &mut Command| -> Value {
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
    let allowed = sched_getaffinity(None).expect("its set").count();
    let limits = with_one_processor(move || told(&mut server("plain")));
    assert_eq!(limits["processors"]["value"], 1, "{limits}");
    assert!(allowed == 1 || limits["processors"]["source"] == "processor affinity", "{limits}");
    let args = ["--http-auth-token", TOKEN, "--memory-budget-bytes", "100000000", "--queue-timeout-ms", "50"];
    let site = Site::start(&[&args[..], &["--http-max-in-flight-per-session", "4", "--isolate", "thread"]].concat());
    let line = site.seen().iter().find(|line| line.contains(r#""event":"limits""#)).cloned().unwrap_or_default();
    for limit in
        ["100000000 (--memory-budget-bytes)", "50 (--queue-timeout-ms)", "4 (--http-max-in-flight-per-session)", "1000 (default)"]
    {
        assert!(line.contains(limit), "{limit} is not in {line}");
    }
}

fn limit_out_of_range_is_refused_at_start() {
    for (flag, variable, value, range) in [
        ("--max-concurrent-calls", "PTC_RUNNER_MCP_MAX_CONCURRENT_CALLS", "0", "from 1 to 10000"),
        ("--max-concurrent-calls", "PTC_RUNNER_MCP_MAX_CONCURRENT_CALLS", "10001", "from 1 to 10000"),
        ("--queue-timeout-ms", "PTC_RUNNER_MCP_QUEUE_TIMEOUT_MS", "0", "from 1 to"),
        ("--memory-budget-bytes", "PTC_RUNNER_MCP_MEMORY_BUDGET_BYTES", "0", "an integer from"),
        ("--http-max-in-flight-per-session", "PTC_RUNNER_MCP_HTTP_MAX_IN_FLIGHT_PER_SESSION", "0", "from 1 to"),
    ] {
        let refused = |name: &str, command: &mut Command| {
            let ended = command.output().expect("it runs");
            let said = String::from_utf8_lossy(&ended.stderr).into_owned();
            assert!(!ended.status.success() && said.contains(name) && said.contains(range), "{name} {value}: {said}");
        };
        refused(flag, server("plain").args([flag, value]));
        refused(variable, server("plain").env(variable, value));
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
    assert_eq!(site.client().count(r#"ptc_refusals_total{reason="no_stack"}"#), busy);
}

fn program_without_a_processor_is_counted_as_refused() {
    let args =
        ["--queue-timeout-ms", "1", "--program-timeout-ms", "600000", "--http-metrics", "--response-profile", "structured"];
    let site = with_one_processor(move || Site::start(&args));
    // The branches of the first program use the only processor in turns of 10 ms.
    let (mut busy, mut other) = (site.connected(), site.connected());
    busy.send_eval(1, "(pmap (fn [_] (loop [] (recur))) (range 50))");
    site.until("ptc_programs_running", 1);
    let mut refused = 0;
    for _ in 0..10_000 {
        other.send_eval(1, "(+ 1 2)");
        let answer = other.receive().json();
        let data = &answer["result"]["structuredContent"];
        if data["reason"] == "busy" {
            assert!(data["message"].as_str().is_some_and(|message| message.contains("got no processor")), "{answer}");
            assert!(data["retry_after_ms"].is_u64(), "{answer}");
            refused += 1;
        }
        if refused == 3 {
            break;
        }
    }
    assert_eq!((refused, other.count(r#"ptc_refusals_total{reason="no_processor"}"#)), (3, 3));
}

fn one_address_gets_at_most_half_of_all_connections() {
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
