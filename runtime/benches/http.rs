//! Compares a listening server of this crate with a bare echo on the same HTTP library, over loopback, in one run: start, round
//! trips on a kept connection, throughput of several connections, a client that does not read, and resident memory with 2,000
//! sessions. The server runs programs on threads and, as `isolated`, in worker processes.
//! Absolute figures depend on the machine, the ratios do not. `cargo bench -p ptc-runtime --bench http`
#![expect(clippy::print_stdout, reason = "the benchmark prints figures")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a benchmark panics on any error")]

mod figures;
mod flood;

use std::convert::Infallible;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Full};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use ptc_catalog::Deployment;

use figures::{median, quantiles, ratio, resident_kib};
use flood::flood;

static DEPLOYMENT: Deployment = Deployment { name: "bench", compiler: "none", ..Deployment::EMPTY };

/// Environment variable that gives a child process its role.
const ROLE: &str = "PTC_BENCH_ROLE";
const CONNECTIONS: usize = 8;
const SESSIONS: usize = 2000;
/// Number of starts of each server.
const STARTS: usize = 20;
/// Maximum resident memory of a server with 2,000 sessions: 30 MB. It does not depend on the load of the machine.
const RESIDENT_KIB: u64 = 30_000_000 / 1024;
/// Minimum calls per second relative to the echo: 15,000 where the echo answers 64,250.
const RATE: f64 = 15_000.0 / 64_250.0;

fn main() -> ExitCode {
    // A worker process has no environment.
    if std::env::args().nth(1).is_some_and(|argument| argument == "--isolated-worker") {
        return ptc_runtime::main(&DEPLOYMENT);
    }
    match std::env::var(ROLE).as_deref() {
        Ok("serve" | "isolated") => ptc_runtime::main(&DEPLOYMENT),
        Ok("echo") => echo(),
        _ => measure(),
    }
}

/// Runs a server that answers every body with itself.
fn echo() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("{{\"event\":\"serving\",\"url\":\"http://{}/mcp\"}}", socket.local_addr().unwrap());
        loop {
            let (stream, _) = socket.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            tokio::spawn(http1::Builder::new().serve_connection(
                TokioIo::new(stream),
                service_fn(|request: hyper::Request<hyper::body::Incoming>| async {
                    let body = request.into_body().collect().await.unwrap().to_bytes();
                    Ok::<_, Infallible>(hyper::Response::new(Full::new(body)))
                }),
            ));
        }
    })
}

struct Site {
    child: Child,
    address: SocketAddr,
}

struct Client {
    stream: BufReader<TcpStream>,
    session: String,
}

impl Site {
    fn start(role: &str) -> Site {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--http",
                "--http-disable-auth",
                "--http-port",
                "0",
                "--max-concurrent-calls",
                "8",
                "--http-max-in-flight-per-session",
                "8",
            ])
            .args(["--http-max-sessions", "10000", "--http-max-sessions-per-owner", "10000"])
            .args(["--isolate", if role == "isolated" { "process" } else { "thread" }])
            .env(ROLE, role)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The echo prints its address on standard output. The server logs it on standard error, which is drained afterwards.
        let lines: Box<dyn BufRead + Send> = match role {
            "echo" => Box::new(BufReader::new(child.stdout.take().unwrap())),
            _ => Box::new(BufReader::new(child.stderr.take().unwrap())),
        };
        let mut lines = lines.lines();
        let address = loop {
            let line: serde_json::Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
            if line["event"] == "serving" {
                break line["url"].as_str().unwrap().split('/').nth(2).unwrap().parse().unwrap();
            }
        };
        std::thread::spawn(move || lines.for_each(drop));
        Site { child, address }
    }

    fn client(&self) -> Client {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut client = Client { stream: BufReader::new(stream), session: String::new() };
        client.session = client.ask(&format!("{INITIALIZE}\n")).0;
        client
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Client {
    /// Sends a body. Returns the session id from the answer's header, and the answer.
    fn ask(&mut self, body: &str) -> (String, String) {
        let request = self.request(body);
        self.stream.get_mut().write_all(request.as_bytes()).unwrap();
        self.receive()
    }

    fn request(&self, body: &str) -> String {
        let session = if self.session.is_empty() { String::new() } else { format!("Mcp-Session-Id: {}\r\n", self.session) };
        let length = body.len();
        let head = format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n{session}\r\n");
        head + body
    }

    fn receive(&mut self) -> (String, String) {
        let (mut length, mut session) = (0, String::new());
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).unwrap();
            match line.trim_end().split_once(": ") {
                Some(("content-length", value)) => length = value.parse().unwrap(),
                Some(("mcp-session-id", value)) => value.clone_into(&mut session),
                None if line.trim_end().is_empty() => break,
                _ => {}
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).unwrap();
        (session, String::from_utf8(body).unwrap())
    }
}

const INITIALIZE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"#,
    r#""clientInfo":{"name":"bench","version":"1"}}}"#
);

const CALL: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"lisp_eval","arguments":{"program":"(+ 1 2)"}}}"#;

/// Returns the worker processes of a server, with the KiB that are resident and those that no other process shares.
fn workers(server: &Child) -> Vec<(u32, [u64; 2])> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.id())).unwrap();
    let children = tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("children")).unwrap()).collect::<Vec<_>>();
    let ids = children.iter().flat_map(|ids| ids.split_whitespace()).map(|id| id.parse().unwrap());
    let memory = |id: u32| {
        let pages = std::fs::read_to_string(format!("/proc/{id}/statm")).unwrap();
        let pages: Vec<u64> = pages.split_whitespace().map(|count| count.parse().unwrap()).collect();
        let kib = |pages: u64| pages * rustix::param::page_size() as u64 / 1024;
        (id, [kib(pages[1]), kib(pages[1] - pages[2])])
    };
    ids.map(memory).collect()
}

fn measure() -> ExitCode {
    let (mut starts, mut middles, mut rates) = ([0.0; 3], [0.0; 3], [0.0; 3]);
    let roles = ["echo", "serve", "isolated"];
    let mut all_starts = [const { Vec::new() }; 3];
    for _ in 0..STARTS {
        for (role, starts) in roles.into_iter().zip(&mut all_starts) {
            let started = Instant::now();
            let site = Site::start(role);
            starts.push(started.elapsed());
            drop(site);
        }
    }
    for (at, role) in roles.into_iter().enumerate() {
        println!("{role:>8}  start                  {}", quantiles(&mut all_starts[at]));
        starts[at] = median(&all_starts[at]);
        let site = Site::start(role);
        let mut client = site.client();
        let mut trips: Vec<Duration> = (0..20_000)
            .map(|_| {
                let started = Instant::now();
                let (_, answer) = client.ask(CALL);
                let took = started.elapsed();
                assert!(role == "echo" || answer.contains("user=> 3"), "{answer}");
                took
            })
            .collect();
        println!("{role:>8}  round trip (+ 1 2)     {}", quantiles(&mut trips));
        middles[at] = median(&trips);
        let each = 5_000;
        let started = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..CONNECTIONS {
                scope.spawn(|| {
                    let mut client = site.client();
                    (0..each).for_each(|_| drop(client.ask(CALL)));
                });
            }
        });
        rates[at] = (CONNECTIONS * each) as f64 / started.elapsed().as_secs_f64();
        println!("{role:>8}  {CONNECTIONS} connections          {:>8.0} /s", rates[at]);
        for (worker, [resident, private]) in workers(&site.child) {
            println!("{role:>8}  worker {worker}: {resident} KiB resident, {private} KiB private");
        }
    }
    println!(
        "server to echo\n{}\n{}",
        ratio("round trip", [middles[0], middles[1]]),
        ratio("calls a second", [rates[0], rates[1]])
    );
    println!(
        "processes to threads\n{}\n{}\n        start                  {:>+9.1} µs",
        ratio("round trip", [middles[1], middles[2]]),
        ratio("calls a second", [rates[1], rates[2]]),
        starts[2] - starts[1]
    );
    let site = Site::start("serve");
    let mut client = site.client();
    let (input, request) = (client.stream.get_ref().try_clone().unwrap(), client.request(CALL));
    let unread = flood(&site.child, input, request.as_bytes(), || assert!(client.receive().1.contains("user=> 3")));
    println!(" serve  does not read            {unread}");
    drop((client, site));
    let site = Site::start("serve");
    let idle = resident_kib(&site.child);
    for _ in 0..SESSIONS {
        site.client().ask(CALL);
    }
    let resident = resident_kib(&site.child);
    println!(" serve  resident                {idle} KiB idle, {resident} KiB with {SESSIONS} sessions");
    assert!(resident <= RESIDENT_KIB, "more than {RESIDENT_KIB} KiB");
    let rate = rates[1] / rates[0];
    assert!(cfg!(debug_assertions) || rate >= RATE, "{rate:.3} of the echo's calls a second, at least {RATE:.3} are expected");
    ExitCode::SUCCESS
}
