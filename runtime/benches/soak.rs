//! Runs a server for minutes with upstreams that continuously crash, hang, reset connections and refuse calls. Memory,
//! descriptors, threads and child processes must not grow after the first quarter of the time. `.ci/soak [SECONDS]`
#![expect(clippy::print_stdout, reason = "the benchmark prints figures")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a soak panics on any error")]

#[expect(dead_code, reason = "a soak prints no quantiles")]
mod figures;
#[path = "../tests/upstreams/web.rs"]
#[expect(dead_code, reason = "a soak uses only part of the module")]
mod web;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use ptc_catalog::{Catalog, Deployment, EnvPart, McpHttp, McpStdio, OpenApi, Operation, Tool, Tools, Transport, Upstream};
use serde_json::{Value, json};

use figures::resident_kib;
use web::{Answer, End, Web};

/// Environment variables that give a child process its role and the address of the HTTP service.
const ROLE: &str = "PTC_SOAK_ROLE";
const SERVICE: &str = "PTC_SOAK_SERVICE";

/// Tools of the child process.
const CHILD: [&str; 4] = ["crash", "echo", "hang", "large"];

fn main() -> ExitCode {
    match std::env::var(ROLE).as_deref() {
        Ok("server") => return ptc_runtime::main(deployment()),
        Ok(_) => return upstream(),
        Err(_) => {}
    }
    let seconds = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(600);
    soak(Duration::from_secs(seconds))
}

fn tool(name: &'static str, operation: Option<&'static Operation>) -> Tool {
    Tool { name, operation, ..Tool::EMPTY }
}

fn deployment() -> &'static Deployment {
    let exe: &'static str = std::env::current_exe().unwrap().to_string_lossy().into_owned().leak();
    let env: &[(&str, &[EnvPart])] = &[(ROLE, &[EnvPart::Text("upstream")])];
    let child = CHILD.map(|name| tool(name, None));
    let api = ["close", "fail", "hang", "ok", "reset"].map(|id| {
        let path: &'static str = format!("/{id}").leak();
        tool(id, Some(Box::leak(Box::new(Operation::new(id, path)))))
    });
    let base = std::env::var(SERVICE).unwrap().leak();
    let upstreams = vec![
        Upstream {
            name: "api",
            description: "",
            transport: Transport::OpenApi(OpenApi::new(base)),
            tools: Tools::table(Vec::from(api).leak()),
        },
        Upstream {
            name: "child",
            description: "",
            transport: Transport::McpStdio(McpStdio { env, ..McpStdio::new(exe) }),
            tools: Tools::table(Vec::from(child).leak()),
        },
        Upstream {
            name: "web",
            description: "",
            transport: Transport::McpHttp(McpHttp::new(format!("{base}/mcp").leak())),
            tools: Tools::table(Vec::from(["echo", "events", "hang", "reset"].map(|name| tool(name, None))).leak()),
        },
    ];
    let catalog = Box::leak(Box::new(Catalog { digest: "", search_index: &[], upstreams: upstreams.leak() }));
    Box::leak(Box::new(Deployment { name: "soak", catalog, ..Deployment::EMPTY }))
}

/// Runs an MCP server on standard input and output.
fn upstream() -> ExitCode {
    for line in std::io::stdin().lock().lines() {
        let Ok(Ok(frame)) = line.map(|line| serde_json::from_str::<Value>(&line)) else { break };
        let text = |text: String| json!({ "content": [{ "type": "text", "text": text }] });
        let result = match (frame["method"].as_str(), frame["params"]["name"].as_str()) {
            (Some("initialize"), _) => {
                json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": { "name": "u", "version": "1" } })
            }
            (Some("tools/list"), _) => json!({ "tools": CHILD.map(|name| json!({ "name": name })) }),
            (_, Some("echo")) => text(frame["params"]["arguments"].to_string()),
            (_, Some("large")) => text("x".repeat(50_000)),
            (_, Some("crash")) => return ExitCode::from(7),
            _ => continue,
        };
        let answer = json!({ "jsonrpc": "2.0", "id": frame["id"], "result": result });
        let mut output = std::io::stdout().lock();
        let _ = writeln!(output, "{answer}").and_then(|()| output.flush());
    }
    ExitCode::SUCCESS
}

/// Returns an MCP server over HTTP whose sessions expire after a few calls.
fn sessions() -> impl Fn(&web::Asked) -> Answer {
    let (begun, used) = (AtomicU32::new(0), AtomicU32::new(0));
    move |asked| {
        let frame = asked.json();
        let answer = |result: Value| json!({ "jsonrpc": "2.0", "id": frame["id"], "result": result });
        let text = |text: &str| answer(json!({ "content": [{ "type": "text", "text": text }] }));
        let session = || format!("s{}", begun.load(Ordering::Relaxed));
        match frame["method"].as_str() {
            Some("initialize") => {
                begun.fetch_add(1, Ordering::Relaxed);
                used.store(0, Ordering::Relaxed);
                let server = json!({ "name": "web", "version": "1" });
                let result = json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} }, "serverInfo": server });
                let headers = vec!["Content-Type: application/json".to_owned(), format!("Mcp-Session-Id: {}", session())];
                Answer::Full(200, headers, answer(result).to_string().into_bytes())
            }
            Some("server/discover") => {
                Answer::json(400, json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32600, "message": "no" } }))
            }
            _ if asked.method != "POST" || frame["id"].is_null() => Answer::Full(202, Vec::new(), Vec::new()),
            _ if asked.header("mcp-session-id") != Some(&session()) => Answer::json(404, "{}"),
            Some("tools/list") => {
                let tools = ["echo", "events", "hang", "reset"].map(|name| json!({ "name": name }));
                Answer::json(200, answer(json!({ "tools": tools })))
            }
            Some("tools/call") if used.fetch_add(1, Ordering::Relaxed) > 60 => {
                begun.fetch_add(1, Ordering::Relaxed);
                Answer::json(404, "{}")
            }
            _ => match frame["params"]["name"].as_str() {
                Some("events") => Answer::Stream(vec![
                    (
                        0,
                        ": soon\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n"
                            .to_owned(),
                    ),
                    (5, format!("id: 1\ndata: {}\n\n", text("streamed"))),
                ]),
                Some("hang") => Answer::Hang,
                Some("reset") => Answer::Raw(vec![(0, b"HTTP/1.1 200 X\r\nContent-Length: 99\r\n\r\nhalf".to_vec())], End::Reset),
                _ => Answer::json(200, text("said")),
            },
        }
    }
}

fn service(asked: &web::Asked) -> Answer {
    match asked.target.as_str() {
        "/ok" => Answer::json(200, json!({ "rows": [1, 2, 3] })),
        "/fail" => Answer::json(500, "{}"),
        "/reset" => Answer::Raw(vec![(0, b"HTTP/1.1 200 X\r\nContent-Length: 99\r\n\r\nhalf".to_vec())], End::Reset),
        "/hang" => Answer::Hang,
        _ => Answer::Close,
    }
}

/// The programs of one round, each with the expected content of its answer.
const PROGRAMS: [(&str, &str); 11] = [
    (
        r#"(frequencies (map :value (pmap (fn [t] (tool/call {:server "web" :tool t})) (take 20 (cycle ["echo" "events"])))))"#,
        "streamed",
    ),
    (r#"(map :reason (pmap (fn [t] (tool/call {:server "web" :tool t})) ["reset" "hang"]))"#, "timeout"),
    (
        r#"(frequencies (map :ok (pmap (fn [n] (tool/call {:server "child" :tool "echo" :args {:n n}})) (range 20))))"#,
        "{true 20}",
    ),
    (r#"(count (:value (tool/call {:server "child" :tool "large"})))"#, "50000"),
    (r#"(:value (tool/call {:server "api" :tool "ok"}))"#, "rows"),
    (r#"(map :reason (pmap (fn [t] (tool/call {:server "api" :tool t})) ["reset" "close" "fail"]))"#, "upstream_unavailable"),
    (r#"(map :reason (pmap (fn [s] (tool/call {:server s :tool "hang"})) ["api" "child"]))"#, "timeout"),
    ("(reduce conj [] (range 100000000))", "memory_limit"),
    ("(loop [i 0] (recur (inc i)))", "timeout"),
    (r#"(:reason (tool/call {:server "child" :tool "crash"}))"#, "upstream_unavailable"),
    // The first call after a crash starts a new child.
    (r#"(:ok (tool/call {:server "child" :tool "echo"}))"#, "user=> true"),
];

struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Server {
    fn start(service: &str) -> Server {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--program-timeout-ms", "1000", "--upstream-call-timeout-ms", "300", "--log-level", "error"])
            .args(["--program-memory-limit-bytes", "20000000"])
            .env(ROLE, "server")
            .env(SERVICE, service)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Server { child, input, output }
    }

    fn eval(&mut self, id: usize, program: &str) -> String {
        let params = json!({ "name": "lisp_eval", "arguments": { "program": program } });
        let frame = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        writeln!(self.input, "{frame}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }

    /// Returns resident KiB, and the numbers of descriptors, threads and child processes.
    fn holds(&self) -> [u64; 4] {
        let id = self.child.id();
        let entries = |what: &str| std::fs::read_dir(format!("/proc/{id}/{what}")).map_or(0, |all| all.count() as u64);
        let stats = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            stat.rsplit_once(") ")?.1.split_whitespace().nth(1)?.parse::<u32>().ok()
        });
        [resident_kib(&self.child), entries("fd"), entries("task"), stats.filter(|parent| *parent == id).count() as u64]
    }
}

fn soak(time: Duration) -> ExitCode {
    let mcp = sessions();
    let web = Web::start(move |asked| if asked.target == "/mcp" { mcp(asked) } else { service(asked) });
    let mut server = Server::start(web.url(""));
    let started = Instant::now();
    let mut samples: Vec<[u64; 4]> = Vec::new();
    let (mut rounds, mut surprises) = (0, 0);
    while started.elapsed() < time {
        for (program, holds) in PROGRAMS {
            let answer = server.eval(rounds, program);
            if !answer.contains(holds) {
                surprises += 1;
                print!("round {rounds}: no {holds} in {answer}");
            }
        }
        rounds += 1;
        // Samples are taken at the same point of every round.
        samples.push(server.holds());
        web.asked.lock().unwrap().clear();
    }
    drop(server.input);
    let ended = server.child.wait().unwrap();
    let quarter = samples.len() / 4;
    println!(
        "{rounds} rounds of {} programs in {:.0?}, {surprises} answers that were not expected",
        PROGRAMS.len(),
        started.elapsed()
    );
    let tenths = samples.chunks(samples.len().div_ceil(10).max(1));
    let tenths = tenths.map(|part| part.iter().map(|[resident, ..]| *resident).max().unwrap_or(0).to_string());
    println!("resident KiB at most, by tenths of the time: {}", tenths.collect::<Vec<_>>().join(" "));
    let mut grown = false;
    for (at, (what, slack)) in
        [("resident KiB", 2048), ("descriptors", 8), ("threads", 4), ("children", 1)].into_iter().enumerate()
    {
        let most = |part: &[[u64; 4]]| part.iter().map(|sample| sample[at]).max().unwrap_or(0);
        let (second, last) = (most(&samples[quarter..2 * quarter]), most(&samples[3 * quarter..]));
        // Memory may vary by a tenth, since an allocator returns pages at its own time.
        let too_much = last > second + slack + if at == 0 { second / 10 } else { 0 };
        grown |= too_much;
        println!(
            "{what:>12}: {second} at most in the second quarter, {last} in the last{}",
            if too_much { ": GROWN" } else { "" }
        );
    }
    println!("it ended with {ended}");
    // A busy machine may miss a deadline occasionally. The handshake with the first child takes longer than the time limit of the
    // two programs that need it.
    if grown || !ended.success() || surprises > 2 + rounds / 20 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
