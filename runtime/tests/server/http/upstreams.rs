//! What an operator sees of upstreams in trouble: log lines, metrics and `/ready`.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::site::{Client, Site, TOKEN};
use crate::Test;
use crate::peer::server;
use crate::upstream::script;

/// The tests of this module.
pub(crate) const TESTS: &[Test] = &[
    ("http::upstreams::killed_child_is_logged_counted_and_listed", killed_child_is_logged_counted_and_listed),
    ("http::upstreams::hanging_upstream_is_logged_once_and_back_again", hanging_upstream_is_logged_once_and_back_again),
    (
        "http::upstreams::refused_connection_and_credential_are_logged_by_name",
        refused_connection_and_credential_are_logged_by_name,
    ),
    ("http::upstreams::dead_child_shows_the_line_that_names_the_error", dead_child_shows_the_line_that_names_the_error),
    ("http::upstreams::ready_fails_while_an_upstream_is_down_if_configured", ready_fails_while_an_upstream_is_down_if_configured),
    (
        "http::upstreams::catalog_is_listed_without_secrets_and_start_needs_them",
        catalog_is_listed_without_secrets_and_start_needs_them,
    ),
];

fn call(server: &str, tool: &str) -> String {
    format!(r#"(:reason (tool/call {{:server "{server}" :tool "{tool}" :args {{}}}}))"#)
}

fn command(args: &[&str]) -> Command {
    let mut command = server("oncall");
    command.env("ONCALL_TOKEN", "not-a-token-0123456789").args(["--http", "--http-port", "0", "--http-auth-token", TOKEN]);
    command.args(args);
    command
}

/// Kills the process of the upstream `child` and waits for the log line about its end.
fn kill_child(site: &mut Site, client: &mut Client) {
    let text = client.eval(r#"(:value (tool/call {:server "child" :tool "pid" :args {}}))"#);
    let pid = text.trim_start_matches("user=> ").parse().ok().and_then(Pid::from_raw).unwrap_or_else(|| panic!("{text}"));
    kill_process(pid, Signal::KILL).expect("it lives");
    let line = site.logged("upstream ended");
    assert_eq!((&line["upstream"], &line["level"]), (&json!("child"), &json!("warn")), "{line}");
    assert_eq!(line["status"], "signal: 9 (SIGKILL)", "{line}");
}

fn metrics(client: &mut Client) -> String {
    client.ask("GET", "/metrics", &[], "").body
}

fn killed_child_is_logged_counted_and_listed() {
    let mut site = Site::of(&mut command(&["--http-metrics"]));
    let mut client = site.authenticated(TOKEN);
    let before = metrics(&mut client);
    for line in [
        r#"ptc_build_info{deployment="oncall",version="0.1.0",catalog_digest="sha256:ca",config_digest="sha256:c0"} 1"#,
        r#"ptc_upstream_up{server="child"} 1"#,
        r#"ptc_upstream_restarts_total{server="child"} 0"#,
    ] {
        assert!(before.lines().any(|known| known == line), "{line} in {before}");
    }
    assert_eq!(client.ask("GET", "/ready", &[], "").json()["upstreams_down"], json!(null));
    kill_child(&mut site, &mut client);
    let started = site.seen().iter().find(|line| line.contains("upstream started")).expect("it was logged");
    assert!(started.contains(r#""level":"info","event":"upstream started","upstream":"child""#), "{started}");
    let down = metrics(&mut client);
    assert!(down.contains("ptc_upstream_up{server=\"child\"} 0\n"), "{down}");
    let ready = client.ask("GET", "/ready", &[], "");
    assert_eq!(ready.status, 200, "{ready:?}");
    assert_eq!(ready.json()["upstreams_down"], json!({ "child": "upstream_unavailable" }), "{ready:?}");
    let anonymous = site.client().ask("GET", "/ready", &[], "");
    assert_eq!((anonymous.status, &*anonymous.body), (200, r#"{"status":"ready"}"#), "only for those with the token");
    assert_eq!(client.eval(&call("child", "pid")), "user=> nil");
    let again = site.logged("upstream restarted");
    assert_eq!((&again["upstream"], &again["restarts"]), (&json!("child"), &json!(1)), "{again}");
    assert_eq!(site.logged("upstream is back")["upstream"], "child");
    let after = metrics(&mut client);
    assert!(after.contains("ptc_upstream_up{server=\"child\"} 1\n"), "{after}");
    assert!(after.contains("ptc_upstream_restarts_total{server=\"child\"} 1\n"), "{after}");
}

fn hanging_upstream_is_logged_once_and_back_again() {
    let mut site = Site::of(&mut command(&["--upstream-call-timeout-ms", "100"]));
    let mut client = site.authenticated(TOKEN);
    for _ in 0..4 {
        assert_eq!(client.eval(&call("child", "hang")), "user=> :timeout");
    }
    assert_eq!(client.ask("GET", "/ready", &[], "").json()["upstreams_down"], json!({ "child": "timeout" }));
    assert_eq!(client.eval(&call("child", "pid")), "user=> nil");
    let back = site.logged("upstream is back");
    assert_eq!((&back["upstream"], &back["failures"]), (&json!("child"), &json!(4)), "{back}");
    let lines: Vec<_> = site.seen().iter().filter(|line| line.contains("upstream timed out")).collect();
    assert_eq!(lines.len(), 1, "repeats are counted: {lines:?}");
    assert!(lines[0].contains(r#""upstream":"child","reason":"'child' did not answer the call within 100 ms"#), "{lines:?}");
}

fn refused_connection_and_credential_are_logged_by_name() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _ = stream.read(&mut [0; 8192]);
            let _ = stream.write_all(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    let mut site = Site::of(command(&[]).env("PTC_TEST_URL", url));
    let mut client = site.authenticated(TOKEN);
    assert_eq!(client.eval(&call("denied", "pid")), "user=> :auth_failed");
    let line = site.logged("upstream refused the credential");
    assert_eq!((&line["upstream"], &line["level"]), (&json!("denied"), &json!("warn")), "{line}");
    assert!(!line.to_string().contains("not-a-token"), "{line}");
    let text = client.eval(r#"(:message (tool/call {:server "closed" :tool "pid" :args {}}))"#);
    assert!(text.contains("cannot connect to 'closed': Connection refused"), "{text}");
    let line = site.logged("upstream unavailable");
    assert_eq!(line["upstream"], "closed", "{line}");
    assert!(line["reason"].as_str().is_some_and(|reason| reason.contains("Connection refused")), "{line}");
}

fn dead_child_shows_the_line_that_names_the_error() {
    let broken = script(
        "broken-node",
        "#!/bin/sh\nprintf '%s\\n' 'node:internal/modules/cjs/loader:1228' '  throw err;' '' \"Error: Cannot find module '/x.js' \
         not-a-token-0123456789\" '    at a.js:1' '{' \"  code: 'MODULE_NOT_FOUND'\" '}' >&2\nexit 1",
    );
    let mut site = Site::of(command(&[]).env("PTC_TEST_UPSTREAM", broken));
    let mut client = site.authenticated(TOKEN);
    let text = client.eval(r#"(:message (tool/call {:server "child" :tool "pid" :args {}}))"#);
    let told = "node:internal/modules/cjs/loader:1228 | … | Error: Cannot find module '/x.js' [REDACTED] | … | { | code: 'MODULE_NOT_FOUND' | }";
    assert!(text.contains("the process of 'child' ended (exit status: 1)") && text.contains(told), "{text}");
    let line = site.logged("upstream ended");
    assert_eq!((&line["status"], &line["stderr"]), (&json!("exit status: 1"), &json!(told)), "{line}");
    // Once it has ended several times, calls do not start it at once. Their error shows the same lines.
    let paused = (0..3).map(|_| client.eval(r#"(:message (tool/call {:server "child" :tool "pid" :args {}}))"#)).last();
    let paused = paused.expect("three answers");
    assert!(paused.contains(told) && paused.contains("; the next attempt is made in "), "{paused}");
}

fn ready_fails_while_an_upstream_is_down_if_configured() {
    let mut site = Site::of(&mut command(&["--http-ready-needs-upstreams"]));
    let mut client = site.authenticated(TOKEN);
    kill_child(&mut site, &mut client);
    let ready = site.client().ask("GET", "/ready", &[], "");
    assert_eq!((ready.status, &*ready.body), (503, r#"{"status":"upstream_down"}"#));
    // The request for `/ready` itself starts the child again, since a server that is not ready may get no calls.
    site.logged("upstream restarted");
    let ready = (0..200).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        Some(site.client().ask("GET", "/ready", &[], "")).filter(|ready| ready.status == 200)
    });
    assert!(ready.is_some(), "it is ready again");
}

fn catalog_is_listed_without_secrets_and_start_needs_them() {
    let run = |args: &[&str]| server("oncall").env_remove("ONCALL_TOKEN").args(args).output().expect("it runs");
    for args in [&["eval", r#"(dir "child")"#][..], &["--on-drift", "off", "eval", &call("child", "pid")], &["version", "--json"]]
    {
        let done = run(args);
        assert!(done.status.success() && done.stderr.is_empty(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    }
    // A failed call that the program does not check is on standard error. A switch makes it an exit code.
    let unchecked = r#"(:name (:value (tool/call {:server "closed" :tool "pid" :args {}})))"#;
    let checked = r#"(:ok (tool/call {:server "closed" :tool "pid" :args {}}))"#;
    for (args, code, noted) in [
        (&["eval", unchecked][..], 0, true),
        (&["eval", "--fail-on-call-errors", unchecked], 1, true),
        (&["eval", "--fail-on-call-errors", "--json", unchecked], 1, false),
        (&["eval", "--fail-on-call-errors", checked], 0, false),
        (&["repl", "-e", unchecked, "-e", "1"], 0, true),
        (&["repl", "--fail-on-call-errors", "-e", unchecked, "-e", "1"], 1, true),
    ] {
        let done = run(args);
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(code), "{args:?}: {said}");
        assert_eq!(said.contains("1 of 1 upstream calls failed and was not checked: 1 × closed/pid"), noted, "{args:?}: {said}");
    }
    let done = run(&["eval", r#"(:message (tool/call {:server "closed" :tool "pid" :args {}}))"#]);
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(
        text.contains("credential binding 'token' (environment variable ONCALL_TOKEN)") && text.contains("is not set"),
        "{text}"
    );
    let done = run(&["start"]);
    assert_eq!(done.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&done.stderr).contains("ONCALL_TOKEN"), "{}", String::from_utf8_lossy(&done.stderr));
    // A server that is started to be checked lists its tools without the secret, and says what is missing.
    let done = run(&["start", "--allow-missing-secrets"]);
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.contains("a secret is missing") && said.contains("ONCALL_TOKEN"), "{said}");
}
