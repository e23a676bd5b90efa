//! Compares the servers of two builds, such as two commits, in one run: round trips over stdio, pipelined throughput, and round
//! trips over one HTTP connection. Both servers run all the time and take turns in short batches, because the speed of a shared
//! machine changes within seconds. A ratio above 1 means that the first build is slower.
//!
//! ```sh
//! cargo bench -p ptc-runtime --bench stdio --no-run     # in both checkouts; prints the path of the binary
//! cargo bench -p ptc-runtime --bench against -- target/release/deps/stdio-… ../before/target/release/deps/stdio-…
//! ```
#![expect(clippy::print_stdout, reason = "the benchmark prints figures")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a benchmark panics on any error")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Pairs of batches that are compared.
const BATCHES: usize = 200;
/// Calls of one batch.
const CALLS: usize = 200;
/// Requests that are sent before the first answer is read, in the pipelined comparison.
const OUTSTANDING: usize = 8;
/// Earlier builds admit as many programs as there are processors and answer `busy` beyond that.
const IN_FLIGHT: (&str, &str) = ("PTC_RUNNER_MCP_MAX_CONCURRENT_CALLS", "8");

const INITIALIZE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"#,
    r#""clientInfo":{"name":"bench","version":"1"}}}"#
);
/// What follows the identifier of a call.
const CALL: &str = r#","method":"tools/call","params":{"name":"lisp_eval","arguments":{"program":"(+ 1 2)"}}}"#;

fn main() -> ExitCode {
    let binaries: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let [first, second] = binaries.as_slice() else {
        println!("usage: cargo bench --bench against -- BINARY OTHER_BINARY (builds of the benchmark `stdio`)");
        return ExitCode::from(2);
    };
    let mut pipes = [Server::over_stdio(first), Server::over_stdio(second)];
    compare("stdio round trip", &mut pipes, |server| (0..CALLS).for_each(|_| server.call()));
    compare("stdio 8 outstanding", &mut pipes, |server| server.pipelined(CALLS));
    let mut sockets = [Server::over_http(first), Server::over_http(second)];
    compare("HTTP round trip", &mut sockets, |server| (0..CALLS).for_each(|_| server.call()));
    ExitCode::SUCCESS
}

/// Prints the quartiles of the time per call of each build, and of the ratio of neighbouring batches.
fn compare(what: &str, servers: &mut [Server; 2], batch: impl Fn(&mut Server)) {
    servers.iter_mut().for_each(&batch);
    let (mut times, mut ratios) = ([Vec::new(), Vec::new()], Vec::new());
    for pair in 0..BATCHES {
        // Each build is the first of every second pair, so that neither profits from its position.
        let order = if pair % 2 == 0 { [0, 1] } else { [1, 0] };
        let mut took = [Duration::ZERO; 2];
        for at in order {
            let started = Instant::now();
            batch(&mut servers[at]);
            took[at] = started.elapsed();
            times[at].push(took[at].as_secs_f64() * 1e6 / CALLS as f64);
        }
        ratios.push(took[0].as_secs_f64() / took[1].as_secs_f64());
    }
    let [first, second] = times.map(quartiles);
    println!("{what:<20} {first} µs, other {second} µs, ratio {}", quartiles(ratios));
}

/// Formats the quartiles.
fn quartiles(mut all: Vec<f64>) -> String {
    all.sort_unstable_by(f64::total_cmp);
    let at = |share: usize| all[(all.len() - 1) * share / 4];
    format!("{:.2} / {:.2} / {:.2}", at(1), at(2), at(3))
}

/// A server under test, and the only connection to it.
struct Server {
    child: Child,
    input: Box<dyn Write>,
    output: BufReader<Box<dyn Read>>,
    /// The header of the HTTP session, `None` over stdio.
    session: Option<String>,
    /// Calls that were sent. Each has an identifier of its own, as JSON-RPC requires.
    calls: usize,
}

impl Server {
    fn over_stdio(binary: &str) -> Server {
        let mut child = Server::command(binary).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = Box::new(child.stdin.take().unwrap());
        let output: Box<dyn Read> = Box::new(child.stdout.take().unwrap());
        let mut server = Server { child, input, output: BufReader::new(output), session: None, calls: 0 };
        server.exchange(INITIALIZE);
        server
    }

    fn over_http(binary: &str) -> Server {
        let mut child = Server::command(binary)
            .args(["--http", "--http-disable-auth", "--http-port", "0", "--log-level", "info"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = loop {
            let line: serde_json::Value = serde_json::from_str(&log.next().unwrap().unwrap()).unwrap();
            if line["event"] == "serving" {
                break line["url"].as_str().unwrap().split('/').nth(2).unwrap().to_owned();
            }
        };
        std::thread::spawn(move || log.for_each(drop));
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        let output: Box<dyn Read> = Box::new(stream.try_clone().unwrap());
        let (input, output) = (Box::new(stream), BufReader::new(output));
        let mut server = Server { child, input, output, session: Some(String::new()), calls: 0 };
        server.exchange(INITIALIZE);
        server
    }

    /// The role that the benchmark `stdio` gives itself for a server without upstreams.
    fn command(binary: &str) -> Command {
        let mut command = Command::new(binary);
        command.env("PTC_BENCH_ROLE", "serve").env(IN_FLIGHT.0, IN_FLIGHT.1);
        command
    }

    /// Sends one call and reads its answer.
    fn call(&mut self) {
        self.send_call();
        let answer = self.receive();
        assert!(answer.contains("user=> 3"), "{answer}");
    }

    fn send_call(&mut self) {
        self.calls += 1;
        self.send(&format!(r#"{{"jsonrpc":"2.0","id":{}{CALL}"#, self.calls));
    }

    fn exchange(&mut self, body: &str) -> String {
        self.send(body);
        self.receive()
    }

    fn send(&mut self, body: &str) {
        let request = match &self.session {
            None => format!("{body}\n"),
            Some(session) => {
                format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n{session}\r\n{body}", body.len())
            }
        };
        self.input.write_all(request.as_bytes()).unwrap();
    }

    fn receive(&mut self) -> String {
        let Some(session) = &mut self.session else {
            let mut line = String::new();
            self.output.read_line(&mut line).unwrap();
            return line;
        };
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.output.read_line(&mut line).unwrap();
            match line.trim_end().split_once(": ") {
                Some(("content-length", value)) => length = value.parse().unwrap(),
                Some(("mcp-session-id", value)) => *session = format!("Mcp-Session-Id: {value}\r\n"),
                None if line.trim_end().is_empty() => break,
                _ => {}
            }
        }
        let mut body = vec![0; length];
        self.output.read_exact(&mut body).unwrap();
        String::from_utf8(body).unwrap()
    }

    /// Keeps several calls outstanding.
    fn pipelined(&mut self, calls: usize) {
        (0..OUTSTANDING).for_each(|_| self.send_call());
        for call in 0..calls {
            assert!(self.receive().contains("user=> 3"));
            if call + OUTSTANDING < calls {
                self.send_call();
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
