//! Authentication and limits of access: tokens, sessions, connections, sockets.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::site::{Client, Site, TOKEN};
use crate::Test;
use crate::peer::{limited, server};

pub(super) const TESTS: &[Test] = &[
    ("http::valid_token_passes_after_missing_and_wrong_ones", valid_token_passes_after_missing_and_wrong_ones),
    ("http::reply_to_repeated_wrong_token_is_delayed", reply_to_repeated_wrong_token_is_delayed),
    ("http::idle_session_is_evicted_for_a_new_client", idle_session_is_evicted_for_a_new_client),
    ("http::health_answers_on_admin_port_while_listener_is_saturated", health_answers_on_admin_port_while_listener_is_saturated),
    (
        "http::descriptor_limit_is_raised_and_children_get_the_inherited_one",
        descriptor_limit_is_raised_and_children_get_the_inherited_one,
    ),
    ("http::token_is_generated_without_one", token_is_generated_without_one),
    ("http::unix_socket_serves_its_owner", unix_socket_serves_its_owner),
    ("http::token_is_read_from_a_file", token_is_read_from_a_file),
];

const WRONG: &str = "a-wrong-token-0123456789-0123456789-0123456789";

fn client_with(site: &Site, token: Option<&'static str>) -> Client {
    Client { token, ..site.client() }
}

/// Returns a unique path in the folder for temporary files.
pub(super) fn scratch(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("ptc-access-{}-{name}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

fn valid_token_passes_after_missing_and_wrong_ones() {
    let mut site = Site::start(&["--http-auth-token", TOKEN, "--http-auth-rate-limit-max-failures", "3"]);
    let mut client = site.client();
    for _ in 0..10 {
        let refused = client.ask("GET", "/mcp", &[], "");
        assert_eq!((refused.status, refused.header("www-authenticate")), (401, Some("Bearer")), "a missing token is not counted");
    }
    client.token = Some(WRONG);
    for _ in 0..3 {
        let refused = client.initialize();
        assert_eq!((refused.status, refused.header("www-authenticate")), (401, Some("Bearer error=\"invalid_token\"")));
    }
    let throttled = client.initialize();
    let seconds: u64 = throttled.header("retry-after").and_then(|value| value.parse().ok()).expect("when to come back");
    assert!(throttled.status == 429 && (1..=60).contains(&seconds), "{throttled:?}");
    client.token = Some(TOKEN);
    assert_eq!(client.initialize().status, 200);
    assert_eq!(client.eval("(+ 1 2)"), "user=> 3");
    // Neither token appears in the log.
    assert_eq!(site.logged("http_auth_rate_limited")["source"], "127.0.0.1");
    site.signal(Signal::TERM);
    let (status, log) = site.end();
    assert!(status.success() && log.len() > 4);
    assert!(log.iter().all(|line| !line.contains(TOKEN) && !line.contains(WRONG)), "{log:?}");
}

fn reply_to_repeated_wrong_token_is_delayed() {
    let site = Site::start(&["--http-auth-token", TOKEN, "--http-auth-rate-limit-max-failures", "1"]);
    let mut wrong = client_with(&site, Some(WRONG));
    assert_eq!(wrong.initialize().status, 401);
    let before = Instant::now();
    wrong.send("GET", "/mcp", &[], "");
    // Other clients are served in the meantime.
    assert_eq!(client_with(&site, Some(TOKEN)).initialize().status, 200);
    assert_eq!(wrong.receive().status, 429);
    assert!(before.elapsed() >= Duration::from_secs(1), "{:?}", before.elapsed());
}

fn idle_session_is_evicted_for_a_new_client() {
    let site = Site::start(&["--http-max-sessions", "40"]);
    let mut first = site.connected();
    let mut second = site.connected();
    // These clients disappeared without closing their sessions.
    for n in 0..38 {
        assert_eq!(site.client().initialize().status, 200, "{n}");
    }
    assert_eq!(first.eval("1"), "user=> 1");
    assert_eq!(site.client().initialize().status, 200, "one more than there may be");
    assert_eq!(second.post(&super::site::call(1, "1")).status, 404, "it was idle longest");
    assert_eq!(first.eval("2"), "user=> 2", "it was used since");
}

/// Polls a condition for up to 30 seconds.
pub(super) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let before = Instant::now();
    while !is_so() {
        assert!(before.elapsed() < Duration::from_secs(30), "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn health_answers_on_admin_port_while_listener_is_saturated() {
    let args = ["--http", "--http-disable-auth", "--http-port", "0", "--http-admin-port", "0"];
    let site = Site::of(&mut limited("ulimit -n 128", &server("plain"), &args));
    let silent: Vec<_> = (0..200).map(|_| TcpStream::connect(site.address)).collect();
    let admin = site.admin.expect("the log names the admin listener");
    for _ in 0..5 {
        let health = Client::connect(admin).ask("GET", "/health", &[], "");
        assert_eq!((health.status, &*health.body), (200, r#"{"status":"ok"}"#));
        assert_eq!(Client::connect(admin).ask("GET", "/ready", &[], "").status, 200);
    }
    assert_eq!(Client::connect(admin).ask("POST", "/mcp", &[], "{}").status, 404, "it has no endpoint of the protocol");
    let open = std::fs::read_dir(format!("/proc/{}/fd", site.id())).expect("it lives").count();
    assert!(open < 128, "{open} descriptors leave none for upstreams");
    drop(silent);
    // Until the server notices that the connections are closed, it rejects further ones from this address.
    let answers = || {
        let mut stream = TcpStream::connect(site.address)?;
        stream.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map(|_| answer.starts_with("HTTP/1.1 200"))
    };
    until("the listener answers again", || answers().is_ok_and(|answered| answered));
    assert_eq!(site.connected().eval("(+ 1 2)"), "user=> 3");
}

fn soft_limit(process: u32) -> String {
    let limits = std::fs::read_to_string(format!("/proc/{process}/limits")).expect("it lives");
    let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("it is there");
    line.split_whitespace().nth(3).expect("a soft limit").to_owned()
}

fn descriptor_limit_is_raised_and_children_get_the_inherited_one() {
    let args = ["--http", "--http-disable-auth", "--http-port", "0"];
    let site = Site::of(&mut limited("ulimit -Sn 300 && ulimit -Hn 1500", &server("aggregator"), &args));
    assert_eq!(soft_limit(site.id()), "1500");
    site.connected().eval(r#"(tool/call {:server "child" :tool "echo" :args {:text "x"}})"#);
    let tasks = std::fs::read_dir(format!("/proc/{}/task", site.id())).expect("it lives");
    let children: Vec<u32> = tasks
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok())
        .flat_map(|ids| ids.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>())
        // A worker process has a lower limit.
        .filter(|id: &u32| std::fs::read_to_string(format!("/proc/{id}/cmdline")).is_ok_and(|line| !line.contains("--isolated")))
        .collect();
    assert!(!children.is_empty());
    assert!(children.iter().all(|child| soft_limit(*child) == "300"), "{children:?}");
}

fn token_is_generated_without_one() {
    let start = || Site::of(server("plain").args(["--http", "--http-port", "0", "--log-level", "info"]));
    let token = |site: &Site| {
        let line = site.seen().iter().find(|line| line.contains("token generated")).expect("it says so").clone();
        let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        let header = line["header"].as_str().expect("a header").to_owned();
        assert!(line["hint"].as_str().is_some_and(|hint| hint.contains("--http-disable-auth")), "{line}");
        header.strip_prefix("Authorization: Bearer ").expect("what clients send").to_owned()
    };
    let (one, other) = (start(), start());
    let (token, of_other) = (token(&one), token(&other));
    assert!(token.len() >= 32 && token != of_other);
    assert_eq!(one.client().initialize().status, 401);
    let mut client = Client { token: Some(token.leak()), ..one.client() };
    assert_eq!(client.initialize().status, 200);
    assert_eq!(client.eval("(+ 1 2)"), "user=> 3");
    assert_eq!(Site::start(&["--http-disable-auth=true"]).client().initialize().status, 200);
}

fn unix_socket_serves_its_owner() {
    let path = scratch("socket");
    let text = path.to_str().expect("plain text").to_owned();
    let start = || Site::of(server("plain").args(["--http", "--http-unix-socket", &text]));
    let health = || {
        let mut stream = UnixStream::connect(&path).expect("it listens");
        stream.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").expect("it reads");
        let mut answer = String::new();
        BufReader::new(stream).read_to_string(&mut answer).expect("it answers");
        answer
    };
    for (more, part) in [
        (&["--http-disable-auth"][..], "does not go with --http-disable-auth"),
        (&["--http-admin-port", "0", "--http-metrics"], "such as --http-auth-token"),
    ] {
        let refused = server("plain").args(["--http", "--http-unix-socket", &text]).args(more).output().expect("it runs");
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(2) && said.contains(part), "{said}");
    }
    let site = Site::of(server("plain").args(["--http", "--http-unix-socket", &text, "--http-admin-port", "0"]));
    let ready = Client::connect(site.admin.expect("an admin listener")).ask("GET", "/ready", &[], "");
    assert_eq!((ready.status, &*ready.body), (200, r#"{"status":"ready"}"#), "other users reach that port");
    site.signal(Signal::TERM);
    assert!(site.end().0.success());
    let site = start();
    let mode = std::fs::metadata(&path).expect("a socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(health().starts_with("HTTP/1.1 200"));
    let twice = server("plain").args(["--http", "--http-unix-socket", &text]).output().expect("it runs");
    let said = String::from_utf8_lossy(&twice.stderr);
    assert!(twice.status.code() == Some(2) && said.contains("another process listens on it"), "{said}");
    site.signal(Signal::TERM);
    assert!(site.end().0.success());
    assert!(!path.exists(), "its file is gone with it");
    // A killed server leaves its socket file behind.
    let site = start();
    site.signal(Signal::KILL);
    drop(site);
    assert!(path.exists());
    let site = start();
    assert!(health().starts_with("HTTP/1.1 200"));
    drop(site);
    std::fs::remove_file(&path).expect("it was killed");
    std::fs::write(&path, "notes of a user").expect("a file");
    let refused = server("plain").args(["--http", "--http-unix-socket", &text]).output().expect("it runs");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(2) && said.contains("is not a socket"), "{said}");
    assert_eq!(std::fs::read_to_string(&path).expect("a file"), "notes of a user");
    std::fs::remove_file(&path).expect("it is there");
}

fn token_is_read_from_a_file() {
    let file = scratch("token");
    std::fs::write(&file, format!("{TOKEN}\n")).expect("a file");
    let path = file.to_str().expect("plain text");
    let site = Site::start(&["--http-auth-token-file", path]);
    assert_eq!(site.client().initialize().status, 401);
    assert_eq!(client_with(&site, Some(TOKEN)).initialize().status, 200);
    assert!(site.seen().iter().all(|line| !line.contains("can read the arguments")));
    // Other users can read a token on the command line, so that the server warns.
    let site = Site::start(&["--http-auth-token", TOKEN]);
    assert!(site.seen().iter().any(|line| line.contains("can read the arguments of a process")), "{:?}", site.seen());
    for (args, part) in [
        (&["--http-auth-token-file", path, "--http-auth-token", TOKEN][..], "give one of them"),
        (&["--http-auth-token-file", "/dev/zero"], "expected a readable file that holds a token"),
    ] {
        let refused = server("plain").arg("--http").args(args).output().expect("it runs");
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(2) && said.contains(part) && !said.contains(TOKEN), "{said}");
    }
    std::fs::remove_file(&file).expect("it is there");
}
