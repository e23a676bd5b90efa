//! The child processes of upstreams: the end of idle ones, and the limit of how many run at a time.

use std::process::Command;

use serde_json::json;

use super::site::{Client, Site, TOKEN};
use crate::Test;
use crate::peer::server;
use crate::upstream::{assert_gone, script};

/// The tests of this module.
pub(crate) const TESTS: &[Test] = &[
    ("http::children::idle_child_is_ended_and_started_by_the_next_call", idle_child_is_ended_and_started_by_the_next_call),
    ("http::children::child_with_a_call_in_flight_is_not_idle", child_with_a_call_in_flight_is_not_idle),
    ("http::children::call_while_its_child_is_ended_starts_a_new_one", call_while_its_child_is_ended_starts_a_new_one),
    ("http::children::idle_child_that_does_not_exit_gets_signals_in_order", idle_child_that_does_not_exit_gets_signals_in_order),
    ("http::children::shutdown_ends_a_child_that_is_being_ended", shutdown_ends_a_child_that_is_being_ended),
    ("http::children::idle_child_leaves_its_permit_to_another_upstream", idle_child_leaves_its_permit_to_another_upstream),
    ("http::children::two_upstreams_share_one_child", two_upstreams_share_one_child),
    ("http::children::child_idle_longest_is_ended_for_another", child_idle_longest_is_ended_for_another),
    (
        "http::children::call_is_refused_when_all_children_are_busy_until_its_deadline",
        call_is_refused_when_all_children_are_busy_until_its_deadline,
    ),
    ("http::children::cancelled_call_leaves_the_queue_for_a_child", cancelled_call_leaves_the_queue_for_a_child),
    ("http::children::start_does_not_count_towards_the_limit_of_the_call", start_does_not_count_towards_the_limit_of_the_call),
    ("http::children::eager_connections_are_made_one_after_the_other", eager_connections_are_made_one_after_the_other),
];

/// Returns a server with the upstreams `one`, `two` and `three`, whose processes are ended after this time without a call.
fn pool(idle_ms: Option<u64>, args: &[&str]) -> Command {
    let mut command = server("pool");
    command.args(["--http", "--http-port", "0", "--http-auth-token", TOKEN, "--http-metrics"]);
    command.args(["--program-timeout-ms", "600000", "--on-drift", "off"]).args(args);
    if let Some(time) = idle_ms {
        command.env("PTC_TEST_IDLE_MS", time.to_string());
    }
    command
}

fn call(server: &str, tool: &str) -> String {
    format!(r#"(tool/call {{:server "{server}" :tool "{tool}" :args {{}}}})"#)
}

fn pid(client: &mut Client, server: &str) -> u32 {
    let text = client.eval(&format!("(:value {})", call(server, "pid")));
    text.trim_start_matches("user=> ").parse().unwrap_or_else(|_| panic!("a process id: {text}"))
}

fn running(client: &mut Client, server: &str) -> u64 {
    client.count(&format!("ptc_upstream_child_running{{server=\"{server}\"}}"))
}

/// Waits until the process of an upstream runs, or does not.
fn until_running(site: &Site, client: &Client, server: &str, expected: u64) {
    let mut beside = site.beside(client);
    for _ in 0..3_000 {
        if running(&mut beside, server) == expected {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("the process of {server} never becomes {expected}");
}

fn idle_child_is_ended_and_started_by_the_next_call() {
    let site = Site::of(&mut pool(Some(300), &[]));
    let mut client = site.authenticated(TOKEN);
    let metrics = |client: &mut Client| client.ask("GET", "/metrics", &[], "").body;
    assert_eq!(running(&mut client, "one"), 0, "nothing is started before the first call");
    assert!(!metrics(&mut client).contains("ptc_upstream_child_resident_bytes"), "no process runs");
    let first = pid(&mut client, "one");
    until_running(&site, &client, "one", 0);
    assert_gone(first);
    let metrics = metrics(&mut client);
    for line in [r#"ptc_upstream_up{server="one"} 1"#, r#"ptc_upstream_restarts_total{server="one"} 0"#] {
        assert!(metrics.lines().any(|known| known == line), "{line} in {metrics}");
    }
    let second = pid(&mut client, "one");
    assert_ne!(first, second);
    assert_eq!(client.count("ptc_upstream_restarts_total{server=\"one\"}"), 1);
    drop(client);
    let site = Site::of(&mut pool(None, &[]));
    let mut client = site.authenticated(TOKEN);
    let first = pid(&mut client, "one");
    std::thread::sleep(std::time::Duration::from_millis(400));
    assert_eq!((pid(&mut client, "one"), running(&mut client, "one")), (first, 1), "without a limit it lives on");
    if cfg!(target_os = "linux") {
        assert!(client.count("ptc_upstream_child_resident_bytes{server=\"one\"}") > 100_000);
    }
}

fn child_with_a_call_in_flight_is_not_idle() {
    let site = Site::of(&mut pool(Some(20), &[]));
    let mut client = site.authenticated(TOKEN);
    // `nap` takes 300 ms.
    assert_eq!(client.eval(&format!("(:value {})", call("one", "nap"))), "user=> \"rested\"");
    until_running(&site, &client, "one", 0);
}

fn call_while_its_child_is_ended_starts_a_new_one() {
    let site = Site::of(&mut pool(Some(3), &["--max-upstream-calls-per-program", "1000"]));
    let clients: Vec<_> = (0..3).map(|_| site.authenticated(TOKEN)).collect();
    let threads = clients.into_iter().enumerate().map(|(at, mut client)| {
        std::thread::spawn(move || {
            for round in 0..60_u64 {
                // The pauses are around the time limit, so that calls arrive before, while and after the child is ended.
                std::thread::sleep(std::time::Duration::from_micros((round * 389 + at as u64 * 911) % 7_000));
                pid(&mut client, "one");
            }
        })
    });
    threads.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().expect("all calls are answered"));
    let mut client = site.authenticated(TOKEN);
    assert!(client.count("ptc_upstream_restarts_total{server=\"one\"}") > 1, "it was ended between calls");
}

/// A child that goes on without an input, and writes what it was asked to a file.
const STUBBORN: &str = r#"#!/bin/sh
trap 'echo SIGTERM >> "$0.asked"' TERM
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *'"tools/call"'*) result='{"content":[{"type":"text","text":"'$$'"}]}' ;;
    *'"id"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id"; continue ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
echo end of input >> "$0.asked"
while :; do sleep 0.05; done
"#;

/// Returns the server with that child, and the file of what it was asked.
fn stubborn(test: &str) -> (Site, std::path::PathBuf) {
    let script = script(&format!("stubborn-{test}"), STUBBORN);
    let asked = script.with_extension("asked");
    let _ = std::fs::remove_file(&asked);
    let mut command = pool(Some(50), &[]);
    command.env("PTC_TEST_UPSTREAM", script).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    (Site::of(&mut command), asked)
}

fn idle_child_that_does_not_exit_gets_signals_in_order() {
    let (site, asked) = stubborn("idle");
    let mut client = site.authenticated(TOKEN);
    let first = pid(&mut client, "one");
    until_running(&site, &client, "one", 0);
    assert_eq!(std::fs::read_to_string(asked).expect("it was asked"), "end of input\nSIGTERM\n");
    assert_gone(first);
}

fn shutdown_ends_a_child_that_is_being_ended() {
    let (site, asked) = stubborn("shutdown");
    let child = pid(&mut site.authenticated(TOKEN), "one");
    while !asked.exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    site.signal(rustix::process::Signal::TERM);
    assert!(site.end().0.success());
    assert_gone(child);
}

/// The permit of an idle child that has ended is free, also for another upstream.
fn idle_child_leaves_its_permit_to_another_upstream() {
    let site = Site::of(&mut pool(Some(1), &["--max-children", "1"]));
    let mut client = site.authenticated(TOKEN);
    for server in ["one", "two", "three", "one"] {
        pid(&mut client, server);
        until_running(&site, &client, server, 0);
    }
}

fn two_upstreams_share_one_child() {
    let lock = script("lock", "");
    let program = format!("(pmap (fn [n] (:ok (if (even? n) {} {}))) (range 8))", call("one", "pid"), call("two", "pid"));
    for idle_ms in [None, Some(1)] {
        let mut command = pool(idle_ms, &["--max-children", "1", "--upstream-call-timeout-ms", "600000"]);
        // A child that runs beside another one exits.
        command.env("PTC_TEST_LOCK", &lock);
        let site = Site::of(&mut command);
        let threads = (0..12).map(|_| {
            let (mut client, program) = (site.authenticated(TOKEN), program.clone());
            std::thread::spawn(move || client.eval(&program))
        });
        for thread in threads.collect::<Vec<_>>() {
            assert_eq!(thread.join().expect("it is answered"), "user=> [true true true true true true true true]");
        }
        let mut client = site.authenticated(TOKEN);
        assert!(running(&mut client, "one") + running(&mut client, "two") <= 1);
    }
}

fn child_idle_longest_is_ended_for_another() {
    let site = Site::of(&mut pool(None, &["--max-children", "2"]));
    let mut client = site.authenticated(TOKEN);
    let (one, two) = (pid(&mut client, "one"), pid(&mut client, "two"));
    assert_eq!(pid(&mut client, "one"), one);
    pid(&mut client, "three");
    assert_gone(two);
    assert_eq!(["one", "two", "three"].map(|name| running(&mut client, name)), [1, 0, 1]);
    assert_eq!(pid(&mut client, "one"), one, "it was used later than the other");
}

fn call_is_refused_when_all_children_are_busy_until_its_deadline() {
    let site = Site::of(&mut pool(None, &["--max-children", "1", "--upstream-call-timeout-ms", "1000"]));
    let (mut busy, mut client) = (site.authenticated(TOKEN), site.authenticated(TOKEN));
    let one = pid(&mut client, "one");
    busy.send_eval(7, &call("one", "hang"));
    until_in_flight(&mut client);
    let answer = client.eval(&format!("(select-keys {} [:reason :message])", call("two", "pid")));
    assert!(answer.contains(":reason :upstream_busy"), "{answer}");
    assert!(
        answer
            .contains("'two' could not be started within 1000 ms (--upstream-call-timeout-ms), because --max-children allows 1"),
        "{answer}"
    );
    assert_eq!(pid(&mut client, "one"), one, "a child with a call in flight is not ended");
    assert_eq!(client.ask("GET", "/ready", &[], "").json()["upstreams_down"], json!(null), "a refused call is not a failure");
    site.close_session(&busy);
    pid(&mut client, "two");
    assert_gone(one);
}

/// Waits until the upstream `one` has received a call of `hang`.
fn until_in_flight(client: &mut Client) {
    let heard = format!("(:value {})", call("one", "heard"));
    assert!((0..3_000).any(|_| client.eval(&heard).contains("call")), "the call never arrives");
}

fn cancelled_call_leaves_the_queue_for_a_child() {
    let site = Site::of(&mut pool(None, &["--max-children", "1", "--upstream-call-timeout-ms", "600000"]));
    let (mut busy, mut waiting, mut client) = (site.authenticated(TOKEN), site.authenticated(TOKEN), site.authenticated(TOKEN));
    let one = pid(&mut client, "one");
    busy.send_eval(7, &call("one", "hang"));
    until_in_flight(&mut client);
    waiting.send_eval(8, &call("two", "pid"));
    let mut beside = site.beside(&client);
    while beside.count("ptc_programs_waiting") < 2 {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    // The call of a third upstream waits behind it, and takes its place.
    let mut next = site.authenticated(TOKEN);
    next.send_eval(9, &format!("(:value {})", call("three", "pid")));
    while beside.count("ptc_programs_waiting") < 3 {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    site.close_session(&waiting);
    site.close_session(&busy);
    assert!(next.receive().text().contains("user=> "), "it is answered");
    assert_gone(one);
    assert_eq!(
        ["one", "two", "three"].map(|name| running(&mut client, name)),
        [0, 0, 1],
        "nothing was started for the cancelled call"
    );
}

fn start_does_not_count_towards_the_limit_of_the_call() {
    // Its start takes longer than a call may.
    let slow =
        script("slow-start", &STUBBORN.replacen("\ntrap", "\nsleep 2\ntrap", 1).replace("while :; do sleep 0.05; done", "exit"));
    let mut command = pool(Some(30), &["--upstream-call-timeout-ms", "1500"]);
    command.env("PTC_TEST_UPSTREAM", slow).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let site = Site::of(&mut command);
    let mut client = site.authenticated(TOKEN);
    let first = pid(&mut client, "one");
    until_running(&site, &client, "one", 0);
    assert_ne!(pid(&mut client, "one"), first);
}

fn eager_connections_are_made_one_after_the_other() {
    let mut command = pool(None, &["--max-children", "1", "--connect", "eager"]);
    command.env("PTC_TEST_LOCK", script("eager-lock", ""));
    let site = Site::of(&mut command);
    let mut client = site.authenticated(TOKEN);
    assert_eq!(["one", "two", "three"].map(|name| running(&mut client, name)).iter().sum::<u64>(), 1);
    for name in ["one", "two", "three"] {
        pid(&mut client, name);
    }
}
