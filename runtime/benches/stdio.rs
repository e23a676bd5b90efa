//! Compares a server of this crate with a bare echo loop of the same framing, over pipes, in one run: start, resident memory,
//! round trips, pipelined throughput, and a client that does not read. Absolute figures depend on the machine, the ratios do not.
//! `cargo bench -p ptc-runtime --bench stdio`
#![expect(clippy::print_stdout, reason = "the benchmark prints figures")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a benchmark panics on any error")]

mod figures;
mod flood;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use ptc_catalog::Deployment;

use figures::{median, quantiles, ratio, resident_kib};
use flood::flood;

static DEPLOYMENT: Deployment = Deployment { name: "bench", compiler: "none", ..Deployment::EMPTY };

/// Environment variable that gives a child process its role.
const ROLE: &str = "PTC_BENCH_ROLE";

fn main() -> ExitCode {
    match std::env::var(ROLE).as_deref() {
        Ok("serve") => ptc_runtime::main(&DEPLOYMENT),
        Ok("echo") => echo(),
        _ => measure(),
    }
}

fn echo() -> ExitCode {
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout());
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line).unwrap() > 0 {
        output.write_all(&line).unwrap();
        output.flush().unwrap();
        line.clear();
    }
    ExitCode::SUCCESS
}

struct Peer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    line: String,
}

impl Peer {
    fn start(role: &str) -> Peer {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--max-concurrent-calls", "8", "--log-level", "error"])
            .env(ROLE, role)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Peer { child, input, output, line: String::new() }
    }

    fn send(&mut self, line: &str) {
        self.input.write_all(line.as_bytes()).unwrap();
    }

    fn receive(&mut self) -> &str {
        self.line.clear();
        self.output.read_line(&mut self.line).unwrap();
        &self.line
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn call(id: usize) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"lisp_eval","arguments":{{"program":"(+ 1 2)"}}}}}}"#
    ) + "\n"
}

const INITIALIZE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"#,
    r#""clientInfo":{"name":"bench","version":"1"}}}"#,
    "\n"
);

fn measure() -> ExitCode {
    let (mut firsts, mut middles, mut rates) = ([0.0; 2], [0.0; 2], [0.0; 2]);
    for (at, role) in ["echo", "serve"].into_iter().enumerate() {
        let mut starts: Vec<Duration> = (0..40).map(|_| start(role)).collect();
        println!("{role:>6}  start to first answer   {}", quantiles(&mut starts));
        firsts[at] = median(&starts);
    }
    for (at, role) in ["echo", "serve"].into_iter().enumerate() {
        let mut peer = Peer::start(role);
        peer.send(INITIALIZE);
        peer.receive();
        std::thread::sleep(Duration::from_millis(50));
        let idle = resident_kib(&peer.child);
        let mut trips: Vec<Duration> = (0..20_000).map(|id| trip(&mut peer, id, role)).collect();
        println!("{role:>6}  round trip (+ 1 2)      {}", quantiles(&mut trips));
        middles[at] = median(&trips);
        let started = Instant::now();
        let calls = 80_000;
        pipelined(&mut peer, calls, 8);
        rates[at] = calls as f64 / started.elapsed().as_secs_f64();
        println!("{role:>6}  8 outstanding           {:>9.0} /s", rates[at]);
        println!("{role:>6}  resident                {idle} KiB idle, {} KiB after {} calls", resident_kib(&peer.child), 100_000);
    }
    for (what, figures) in [("start to first answer", firsts), ("round trip", middles), ("8 outstanding", rates)] {
        println!("{}", ratio(what, figures));
    }
    let mut peer = Peer::start("serve");
    peer.send(INITIALIZE);
    peer.receive();
    let Peer { child, input, output, line } = &mut peer;
    let unread = flood(child, input, call(1).as_bytes(), || {
        line.clear();
        assert!(output.read_line(line).unwrap() > 0, "the server ended");
    });
    println!(" serve  does not read            {unread}");
    let context = context();
    let mut decodes: Vec<Duration> = (0..10).map(|_| decode(&context)).collect();
    println!("  alone  decoding {:.1} MB        {}", context.len() as f64 / 1e6, quantiles(&mut decodes));
    let line = with_context(&context);
    let mut readings: Vec<Duration> = (0..10).map(|_| read(&line)).collect();
    println!("  alone  reading its line       {}", quantiles(&mut readings));
    let mut larges = [0.0; 2];
    for (at, role) in ["echo", "serve"].into_iter().enumerate() {
        let mut peer = Peer::start(role);
        let mut trips: Vec<Duration> = (0..10).map(|_| large(&mut peer, &context)).collect();
        println!("{role:>6}  {:.1} MB context          {}", context.len() as f64 / 1e6, quantiles(&mut trips));
        larges[at] = median(&trips);
    }
    println!("{}", ratio("a large context", larges));
    ExitCode::SUCCESS
}

/// Returns JSON of records, slightly below the maximum size.
fn context() -> String {
    let records = (0..60_000).map(|n| format!(r#"{{"id":{n},"name":"item {n}","price":{n}.5,"tags":["a","b"]}}"#));
    format!(r#"{{"items":[{}]}}"#, records.collect::<Vec<_>>().join(","))
}

fn decode(context: &str) -> Duration {
    let started = Instant::now();
    let value = ptc_lisp::json::decode(context.as_bytes());
    let took = started.elapsed();
    assert!(value.is_ok());
    took
}

/// Measures how long it takes to classify a line without parsing its payload.
fn read(line: &str) -> Duration {
    let started = Instant::now();
    let message = ptc_runtime::protocol::message::parse(line.trim_end().as_bytes());
    let took = started.elapsed();
    assert!(message.is_ok());
    took
}

fn with_context(context: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"lisp_eval","arguments":{{"program":"1","context":{context}}}}}}}"#
    ) + "\n"
}

fn large(peer: &mut Peer, context: &str) -> Duration {
    let line = with_context(context);
    let started = Instant::now();
    peer.send(&line);
    assert!(!peer.receive().is_empty());
    started.elapsed()
}

fn start(role: &str) -> Duration {
    let started = Instant::now();
    let mut peer = Peer::start(role);
    peer.send(INITIALIZE);
    assert!(peer.receive().contains("\"id\":0"));
    started.elapsed()
}

fn trip(peer: &mut Peer, id: usize, role: &str) -> Duration {
    let line = call(id);
    let started = Instant::now();
    peer.send(&line);
    let answer = peer.receive();
    let took = started.elapsed();
    assert!(role == "echo" || answer.contains("user=> 3"), "{answer}");
    took
}

fn pipelined(peer: &mut Peer, calls: usize, outstanding: usize) {
    (0..outstanding).for_each(|id| peer.send(&call(id)));
    for id in 0..calls {
        peer.receive();
        // Like a client, read all answers that have arrived before sending more.
        if id + outstanding < calls {
            peer.send(&call(id + outstanding));
        }
    }
}
