//! Upstreams that give hostile answers over every transport, beside callers of a well-behaved one.
//!
//! Each answer is made from its number, so that a failure can be repeated. In an optimised build there are more of them, and the
//! time of the other callers is bounded.

use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use ptc_catalog::{
    Annotations, Catalog, Deployment, EnvPart, Era, McpHttp, McpStdio, OpenApi, Operation, Params, Tool, Tools, Transport,
    Upstream,
};
use serde_json::{Value, json};

use super::site::{Client, Site};
use crate::Test;
use crate::peer::server;
use crate::web::{Answer, Asked, End, Web};

pub(super) const TESTS: &[Test] =
    &[("http::hostile_answers_do_not_harm_other_callers", hostile_answers_do_not_harm_other_callers)];

/// Number of hostile answers of each transport.
const ANSWERS: u64 = if cfg!(debug_assertions) { 40 } else { 600 };

/// Time limits of a call and of a program in milliseconds.
const CALL_MS: u64 = 400;
const PROGRAM_MS: u64 = 1_500;

const MEMORY: u64 = 32 << 20;

/// Number of programs that run at the same time: one for each transport, and the well-behaved one.
const PROGRAMS: u64 = 4;

/// A generator of pseudo-random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    /// Returns one of the powers of ten below `most`, or `most`.
    fn size(&mut self, most: usize) -> usize {
        [1, 100, 10_000, most].get(self.below(4) as usize).copied().unwrap_or(most).min(most)
    }
}

/// Returns the bytes of a value, which are not always JSON.
fn value(random: &mut Random) -> Vec<u8> {
    let text = match random.below(12) {
        0 => format!("\"{}\"", "x".repeat(random.size(4_000_000))),
        1 => format!("\"{}\"", "\\u0000".repeat(random.size(400_000))),
        2 => format!("[{}0]", "0,".repeat(random.size(900_000))),
        3 => {
            let depth = random.size(200_000);
            "[".repeat(depth) + &"]".repeat(depth)
        }
        4 => {
            let depth = random.size(100_000);
            "{\"a\":".repeat(depth) + "1" + &"}".repeat(depth)
        }
        5 => format!("{{{}\"a\":2}}", "\"a\":1,".repeat(random.size(200_000))),
        6 => {
            let entry = |at| format!("\"key-{at}\":{{\"key_{at}\":[]}},");
            format!("{{{}\"a\":2}}", (0..random.size(100_000)).map(entry).collect::<String>())
        }
        7 => format!("{}e{}", "9".repeat(random.size(100_000)), random.below(1_000)),
        8 => format!("\"{}\"", "\\ud800".repeat(random.size(100_000))),
        9 => return [&b"\""[..], &vec![0xff; random.size(1_000_000)], b"\""].concat(),
        10 => return (0..random.size(100_000)).map(|_| random.below(256) as u8).collect(),
        _ => "[\"cut".repeat(random.size(100)),
    };
    text.into_bytes()
}

/// Returns the answer to an MCP request in one line.
fn response(id: &Value, value: &[u8]) -> Vec<u8> {
    let head = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[],"structuredContent":"#);
    [head.as_bytes(), value, b"}}"].concat().into_iter().map(|byte| if byte == b'\n' { b' ' } else { byte }).collect()
}

/// Returns the answer to a request over HTTP. `body` is what an honest upstream would send.
fn framed(random: &mut Random, body: Vec<u8>) -> Answer {
    let json = "Content-Type: application/json";
    let head = |lines: &str| format!("HTTP/1.1 200 OK\r\n{json}\r\n{lines}\r\n").into_bytes();
    let stream = |end: &str| {
        let text = String::from_utf8_lossy(&body);
        Answer::Stream(
            text.as_bytes()
                .chunks(60_000)
                .map(|part| (0, String::from_utf8_lossy(part).into_owned()))
                .chain([(0, end.to_owned())])
                .collect(),
        )
    };
    match random.below(18) {
        0..4 => Answer::Full(200, vec![json.into()], body),
        4 => Answer::Full(500 + random.below(99) as u16, vec![json.into()], body),
        5 => Answer::Raw(vec![(0, head(&format!("Content-Length: {}\r\n", body.len() * 2 + 1))), (0, body)], End::Close),
        6 => Answer::Raw(vec![(0, head("Content-Length: 99999999999\r\n")), (0, body)], End::Hang),
        7 => Answer::Raw(vec![(0, head("Content-Length: 1\r\nContent-Length: 2\r\n")), (0, body)], End::Close),
        8 => Answer::Raw(
            vec![(0, head("Transfer-Encoding: chunked\r\n")), (0, b"fffffffffffffff\r\n".to_vec()), (0, body)],
            End::Reset,
        ),
        9 => Answer::Full(200, vec![json.into(), "Content-Encoding: gzip".into()], body),
        10 => Answer::Raw(head("").chunks(1).map(|byte| (20, byte.to_vec())).collect(), End::Hang),
        11 => Answer::Raw(vec![(0, b"HTTP/1.1 100 Continue\r\n\r\n".repeat(10_000)), (0, body)], End::Close),
        12 => Answer::Raw(vec![(0, head(&"X-Padding: 0123456789\r\n".repeat(random.size(100_000)))), (0, body)], End::Hang),
        13 => Answer::Full(302, vec![format!("Location: /mcp?{}", "x".repeat(random.size(100_000)))], body),
        14 => {
            // An endless stream of events, until the client closes the connection.
            let (send, events) = mpsc::sync_channel(1);
            let event =
                [": nothing\n\n", "data: {}\n\n", "id: 1\nretry: 0\n\n", "data: x"][random.below(4) as usize].repeat(1_000);
            std::thread::spawn(move || while send.send(event.clone()).is_ok() {});
            Answer::Events(events)
        }
        15 => stream("\n\n"),
        16 => Answer::Hang,
        _ => Answer::Close,
    }
}

fn service() -> Web {
    Web::start(|asked: &Asked| {
        let request = asked.json();
        if request["method"] == "initialize" {
            return Answer::json(200, handshake(&request["id"]));
        }
        let number = match asked.target.rsplit_once('/').map(|(_, last)| last.parse()) {
            Some(Ok(number)) => number,
            _ => request["params"]["arguments"]["n"].as_u64().unwrap_or_default(),
        };
        let mut random = Random(number);
        let value = value(&mut random);
        match request.get("id") {
            Some(id) => framed(&mut random, response(id, &value)),
            None if asked.target.starts_with("/api") => framed(&mut random, value),
            None => Answer::Full(202, vec![], vec![]),
        }
    })
}

fn handshake(id: &Value) -> Value {
    let result = json!({
        "protocolVersion": "2025-11-25", "capabilities": { "tools": {} }, "serverInfo": { "name": "hostile", "version": "1" },
    });
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// Runs the child, which completes the handshake honestly.
pub(crate) fn serve() -> ExitCode {
    let mut out = std::io::stdout();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let Ok(request) = serde_json::from_str::<Value>(&line) else { continue };
        if request["method"] == "initialize" {
            let _ = writeln!(out, "{}", handshake(&request["id"]));
        }
        let Some(number) = request["params"]["arguments"]["n"].as_u64() else { continue };
        let mut random = Random(number);
        let answer = response(&request["id"], &value(&mut random));
        let sent = match random.below(12) {
            0..4 => out.write_all(&answer),
            4 => out.write_all(&response(&json!(number + 1_000_000), b"1")),
            5 => out.write_all(&response(&json!("1"), b"1")),
            6 => out.write_all(&[&answer[..], b"\n", &answer].concat()),
            7 => out.write_all(
                &br#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}
"#
                .repeat(random.size(100_000)),
            ),
            8 => out.write_all(
                &br#"{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{"messages":[]}}
"#
                .repeat(random.size(10_000)),
            ),
            // A line that does not end.
            9 => (0..200).try_for_each(|_| out.write_all(&b"x".repeat(100_000))),
            10 => answer.chunks(7).take(100).try_for_each(|part| {
                std::thread::sleep(Duration::from_millis(10));
                out.write_all(part).and_then(|()| out.flush())
            }),
            _ => return ExitCode::SUCCESS,
        };
        if sent.and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()).is_err() {
            break;
        }
    }
    ExitCode::SUCCESS
}

/// Returns a deployment with the hostile upstreams and the well-behaved one.
pub(crate) fn deployment() -> &'static Deployment {
    let url = |name: &str, path: &str| -> &'static str { (std::env::var(name).unwrap_or_default() + path).leak() };
    let effects = Annotations { read_only: Some(true), ..Annotations::NONE };
    let tool = || Tool { name: "answer", effects, call_timeout_ms: Some(CALL_MS), ..Tool::EMPTY };
    let operation = |path, params| Box::leak(Box::new(Operation { params: Params(params), ..Operation::new("answer", path) }));
    let upstream = |name, transport, tool| Upstream { name, description: "", transport, tools: Tools::table(vec![tool].leak()) };
    let exe: &'static str = std::env::current_exe().expect("a test has a file").to_string_lossy().into_owned().leak();
    let child =
        McpStdio { env: &[(crate::ROLE, &[EnvPart::Text("hostile child")])], era: Some(Era::Handshake), ..McpStdio::new(exe) };
    let web = McpHttp { era: Some(Era::Handshake), ..McpHttp::new(url("HOSTILE_WEB", "/mcp")) };
    let upstreams = vec![
        upstream(
            "api",
            Transport::OpenApi(OpenApi::new(url("HOSTILE_WEB", "/api"))),
            Tool { operation: Some(operation("/{n}", "path simple - - n")), ..tool() },
        ),
        upstream("child", Transport::McpStdio(child), tool()),
        upstream(
            "good",
            Transport::OpenApi(OpenApi::new(url("HOSTILE_GOOD", "/"))),
            Tool { operation: Some(operation("/", "")), call_timeout_ms: None, ..tool() },
        ),
        upstream("web", Transport::McpHttp(web), tool()),
    ];
    let catalog = Box::leak(Box::new(Catalog { digest: "", search_index: &[], upstreams: upstreams.leak() }));
    Box::leak(Box::new(Deployment { name: "hostile", compiler: "none", catalog, ..Deployment::EMPTY }))
}

/// Repeats a probe until `done`. Returns the 99th percentile of its times and the longest.
fn probed(done: &AtomicBool, mut probe: impl FnMut()) -> (Duration, Duration) {
    let mut times = Vec::new();
    while !done.load(Ordering::Relaxed) {
        let began = Instant::now();
        probe();
        times.push(began.elapsed());
        std::thread::sleep(Duration::from_millis(10));
    }
    times.sort_unstable();
    (times[times.len() * 99 / 100], times[times.len() - 1])
}

#[expect(clippy::print_stdout, reason = "the figures of an optimised build")]
fn hostile_answers_do_not_harm_other_callers() {
    let web = service();
    let good = Web::start(|_| Answer::json(200, 42));
    let mut command = server("hostile");
    command.env("HOSTILE_WEB", web.url("")).env("HOSTILE_GOOD", good.url(""));
    command.args(["--http", "--http-port", "0", "--http-disable-auth", "--on-drift", "off"]);
    command.args(["--program-memory-limit-bytes", &MEMORY.to_string(), "--program-timeout-ms", &PROGRAM_MS.to_string()]);
    let site = Site::of(&mut command);
    let (address, done) = (site.address, AtomicBool::new(false));
    let connected = || {
        let mut client = Client::connect(address);
        client.initialize();
        client
    };
    let (calls, health) = std::thread::scope(|scope| {
        let calls = scope.spawn(|| {
            let mut client = connected();
            probed(&done, || {
                assert_eq!(client.eval("(:value (tool/call {:server \"good\" :tool \"answer\" :args {}}))"), "user=> 42");
            })
        });
        let health = scope.spawn(|| {
            let mut client = Client::connect(address);
            probed(&done, || assert_eq!(client.ask("GET", "/health", &[], "").status, 200))
        });
        let attacks = ["api", "child", "web"].map(|upstream| {
            let connected = &connected;
            scope.spawn(move || {
                let mut client = connected();
                let mut values = 0;
                for number in 0..ANSWERS {
                    let call = format!(r#"(tool/call {{:server "{upstream}" :tool "answer" :args {{:n {number}}}}})"#);
                    let began = Instant::now();
                    let text = client.eval(&format!("(let [r {call}] [(:ok r) (:reason r)])"));
                    let took = began.elapsed();
                    let is_value = text == "user=> [true nil]";
                    let is_fault = text.starts_with("user=> [false :")
                        || text.starts_with("memory_limit: ")
                        || text.starts_with("timeout: ");
                    assert!(is_value || is_fault, "{upstream} {number}: {text}");
                    let most = PROGRAM_MS + if cfg!(debug_assertions) { 8_000 } else { 100 };
                    assert!(took <= Duration::from_millis(most), "{upstream} {number}: {took:?}");
                    values += u64::from(is_value);
                }
                assert!((1..ANSWERS).contains(&values), "{upstream}: {values} values");
            })
        });
        let attacked = attacks.map(std::thread::ScopedJoinHandle::join);
        done.store(true, Ordering::Relaxed);
        let probes = (calls.join(), health.join());
        for attack in attacked {
            attack.expect("no attack succeeds");
        }
        (probes.0.expect("the calls succeed"), probes.1.expect("the server is healthy"))
    });
    let peak = crate::peer::peak_kb(site.id());
    println!("99th percentile and longest: calls {calls:.1?}, /health {health:.1?}; at most {peak} kB resident");
    assert!(peak * 1024 <= PROGRAMS * (MEMORY + MEMORY / 5) + (16 << 20), "{peak} kB");
    if !cfg!(debug_assertions) {
        let most = Duration::from_millis(20);
        assert!(calls.0 <= most && health.0 <= most, "calls {calls:?}, /health {health:?}");
    }
}
