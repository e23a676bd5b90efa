//! Answers that clients do not read.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;

use super::site::{Client, Site, TOKEN, call, stateless};
use crate::Test;
use crate::peer::server;

pub(super) const TESTS: &[Test] = &[
    ("http::unread_responses_beyond_the_limit_are_discarded", unread_responses_beyond_the_limit_are_discarded),
    (
        "http::session_that_does_not_read_leaves_memory_to_another_session",
        session_that_does_not_read_leaves_memory_to_another_session,
    ),
];

/// A server with a Unix socket, which takes little that is not read. Unread answers may take a quarter of its budget: 4 MiB.
struct UnixSite {
    site: Site,
    path: PathBuf,
}

/// A program whose answer has 130 KB.
const LONG: &str = "(vec (repeat 240 (apply str (repeat 500 \"a\"))))";

impl UnixSite {
    fn start(name: &str) -> UnixSite {
        let path = std::env::temp_dir().join(format!("ptc-{name}-{}", std::process::id()));
        let text = path.to_string_lossy();
        let mut command = server("plain");
        command.args(["--http", "--http-auth-token", TOKEN, "--http-metrics", "--http-unix-socket", &text, "--http-admin-port"]);
        // A connection whose client does not read is closed after the request timeout.
        command.args(["0", "--http-request-timeout-ms", "120000", "--response-profile", "debug", "--queue-timeout-ms", "60000"]);
        let site = Site::of(command.args(["--memory-budget-bytes", "16777216"]));
        UnixSite { site, path }
    }

    fn count(&self, metric: &str) -> u64 {
        let mut admin = Client { token: Some(TOKEN), ..Client::connect(self.site.admin.expect("an address")) };
        admin.count(metric)
    }

    fn used(&self) -> u64 {
        self.count("ptc_memory_used_bytes")
    }

    /// Sends requests on a new connection, which ends after the last one.
    fn send(&self, headers: &[(String, String)], bodies: &[String]) -> UnixStream {
        let mut stream = UnixStream::connect(&self.path).expect("it listens");
        let headers: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let types = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
        let head = format!("Host: localhost\r\nAuthorization: Bearer {TOKEN}\r\n{types}{}", headers.concat());
        for (at, body) in bodies.iter().enumerate() {
            let end = if at + 1 == bodies.len() { "Connection: close\r\n" } else { "" };
            let request = format!("POST /mcp HTTP/1.1\r\n{head}Content-Length: {}\r\n{end}\r\n{body}", body.len());
            stream.write_all(request.as_bytes()).expect("it reads");
        }
        stream
    }

    /// Asks until an answer is discarded. That takes as long as the programs of the unread answers, and another second.
    fn until_discarded(&self, mut ask: impl FnMut() -> UnixStream) {
        let began = Instant::now();
        loop {
            let answer = read(ask());
            if is_discarded(&answer) {
                return;
            }
            assert!(began.elapsed() < Duration::from_mins(1), "{} bytes: {answer}", self.used());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Opens a session. Returns its header.
    fn open(&self) -> (String, String) {
        let params =
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        let request = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let answer = read(self.send(&[], &[request.to_string()]));
        let id = answer.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
        ("Mcp-Session-Id".to_owned(), id.unwrap_or_else(|| panic!("{answer}")).to_owned())
    }
}

fn read(mut stream: UnixStream) -> String {
    let mut answers = String::new();
    stream.read_to_string(&mut answers).expect("UTF-8");
    answers
}

/// Whether an answer reports that the program has run and that its answer was discarded. A client may repeat a request whose
/// status is 503.
fn is_discarded(answer: &str) -> bool {
    let parts = ["\"isError\":true", "answer_discarded", "the program has ended", "they may take 4194304 together"];
    answer.starts_with("HTTP/1.1 200") && parts.iter().all(|part| answer.contains(part))
}

fn unread_responses_beyond_the_limit_are_discarded() {
    const CONNECTIONS: u64 = 38;
    let site = UnixSite::start("unread");
    let (headers, body) = stateless(1, "tools/call", json!({ "name": "lisp_eval", "arguments": { "program": LONG } }));
    let ask = |count: usize| site.send(&headers, &vec![body.clone(); count]);
    let mut unread: Vec<UnixStream> = (0..CONNECTIONS).map(|_| ask(4)).collect();
    site.until_discarded(|| ask(1));
    assert!(site.count(r#"ptc_refusals_total{reason="answer_discarded"}"#) > 0);
    // A short answer does not count.
    let (short, body) = stateless(1, "tools/call", json!({ "name": "lisp_eval", "arguments": { "program": "(+ 1 2)" } }));
    assert!(read(site.send(&short, &[body])).contains("user=> 3"));
    // Once they are read, there is space again.
    for answers in unread.drain(..).map(read) {
        assert_eq!(answers.matches("HTTP/1.1 ").count(), 4, "{answers}");
    }
    let answer = read(ask(1));
    assert!(answer.starts_with("HTTP/1.1 200") && !is_discarded(&answer), "{answer}");
    let began = Instant::now();
    while site.used() != 0 {
        assert!(began.elapsed() < Duration::from_secs(30), "{} bytes", site.used());
    }
}

/// Two clients share a token. One has a session in which it does not read.
fn session_that_does_not_read_leaves_memory_to_another_session() {
    const CONNECTIONS: u64 = 20;
    let site = UnixSite::start("unread-session");
    let (silent, reading) = ([site.open()], [site.open()]);
    let calls = |connection: u64, count: u64| -> Vec<String> {
        (0..count).map(|number| call(10 * connection + number, LONG).to_string()).collect()
    };
    let unread: Vec<UnixStream> = (0..CONNECTIONS).map(|connection| site.send(&silent, &calls(connection, 4))).collect();
    let mut connection = CONNECTIONS;
    site.until_discarded(|| {
        connection += 1;
        site.send(&silent, &calls(connection, 1))
    });
    let answer = read(site.send(&reading, &calls(0, 1)));
    assert!(answer.starts_with("HTTP/1.1 200") && !is_discarded(&answer) && answer.len() > 120_000, "{answer}");
    drop(unread);
}
