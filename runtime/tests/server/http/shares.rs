//! Shares of sessions, connections and upstreams.

use std::time::{Duration, Instant};

use serde_json::json;

use super::site::{Client, ENDLESS, Site, stateless};
use crate::Test;
use crate::peer::server;

pub(super) const TESTS: &[Test] = &[
    ("http::waiting_programs_do_not_delay_others", waiting_programs_do_not_delay_others),
    ("http::endless_loops_of_one_session_do_not_delay_another", endless_loops_of_one_session_do_not_delay_another),
    ("http::connections_without_a_session_have_separate_shares", connections_without_a_session_have_separate_shares),
    ("http::call_beyond_the_limit_of_an_upstream_waits", call_beyond_the_limit_of_an_upstream_waits),
    ("http::hanging_upstream_occupies_at_most_its_share_of_programs", hanging_upstream_occupies_at_most_its_share_of_programs),
];

/// Starts a server with two upstreams. `narrow` accepts one call at a time.
pub(super) fn crowd(args: &[&str]) -> Site {
    let always = ["--http", "--http-disable-auth", "--http-port", "0", "--http-metrics", "--upstream-call-timeout-ms", "60000"];
    Site::of(server("crowd").args(always).args(["--program-timeout-ms", "60000"]).args(args))
}

pub(super) fn tool(upstream: &str, tool: &str) -> String {
    let args = if tool == "echo" { r#"{:text "hi"}"# } else { "{}" };
    format!(r#"(let [r (tool/call {{:server "{upstream}" :tool "{tool}" :args {args}}})] (or (:reason r) (:value r)))"#)
}

fn waiting_programs_do_not_delay_others() {
    let args = ["--http", "--http-disable-auth", "--http-port", "0", "--http-metrics", "--upstream-call-timeout-ms", "60000"];
    let site = Site::of(server("aggregator").args(args).args(["--program-timeout-ms", "60000"]));
    let hang = r#"(tool/call {:server "child" :tool "hang" :args {}})"#;
    let mut waiting: Vec<Client> = (0..40).map(|_| site.connected()).collect();
    for client in &mut waiting {
        client.send_eval(1, hang);
    }
    site.until("ptc_programs_waiting", 40);
    let mut other = site.connected();
    let began = Instant::now();
    for _ in 0..100 {
        assert_eq!(other.eval("(+ 1 2)"), "user=> 3");
    }
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!(other.count("ptc_programs_running"), 0);
}

fn endless_loops_of_one_session_do_not_delay_another() {
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
    assert!(other.metric("ptc_processor_wait_seconds_sum") > 0.0);
}

/// In the era without sessions a connection has the share of a session: it waits for its own calls, and not for those of another.
fn connections_without_a_session_have_separate_shares() {
    let args = ["--http-max-in-flight-per-session", "1", "--queue-timeout-ms", "600000", "--program-timeout-ms", "600000"];
    let site = Site::start(&[&args[..], &["--http-metrics"]].concat());
    let send = |client: &mut Client, program: &str| {
        let (headers, body) = stateless(1, "tools/call", json!({ "name": "lisp_eval", "arguments": { "program": program } }));
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        client.send("POST", "/mcp", &headers, &body);
    };
    let (mut first, mut second) = (site.client(), site.client());
    send(&mut first, ENDLESS);
    site.until("ptc_programs_running", 1);
    send(&mut second, "(+ 1 2)");
    assert_eq!(second.receive().text(), "user=> 3");
    // Of a session, the second call waits.
    let mut holding = site.connected();
    holding.send_eval(1, ENDLESS);
    let mut waiting = site.beside(&holding);
    waiting.send_eval(2, "1");
    site.until("ptc_programs_queued", 1);
}

fn call_beyond_the_limit_of_an_upstream_waits() {
    let site = crowd(&[]);
    // The child must have started. Otherwise either of two calls that wait for it may be first.
    assert!(site.connected().eval(&tool("narrow", "echo")).ends_with("\"hi\""));
    let mut holding = site.connected();
    holding.send_eval(1, &tool("narrow", "hang"));
    site.until("ptc_programs_waiting", 1);
    // The event loop handles calls in order. After this call, the first one has its place.
    assert!(site.connected().eval(&tool("wide", "echo")).ends_with("\"hi\""));
    let mut waiting = site.connected();
    waiting.send_eval(1, &tool("narrow", "echo"));
    assert!(!waiting.is_answered_within(Duration::from_millis(300)));
    site.close_session(&holding);
    let answer = waiting.receive().text();
    assert!(answer.ends_with("\"hi\""), "{answer}");
}

fn hanging_upstream_occupies_at_most_its_share_of_programs() {
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
    site.until("ptc_programs_waiting", 8);
    assert_eq!(other.eval(&tool("narrow", "echo")), "user=> \"hi\"");
    site.close_session(&hanging[0]);
    site.until("ptc_programs_waiting", 7);
    other.send_eval(1, &tool("wide", "hang"));
    site.until("ptc_programs_waiting", 8);
}
