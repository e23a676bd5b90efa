//! Tests that calls of the official Rust, TypeScript and Python SDKs wait in the queue, leave it, and are answered at the end of
//! the server.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use ptc_tests::deployment::plain;
use ptc_tests::peers::{node_script, python_script};
use ptc_tests::process::{Background, free_port, run};
use rmcp::ServiceExt as _;
use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, ServerResult};
use rmcp::service::{PeerRequestOptions, RequestHandle, RoleClient, RunningService};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use serde_json::{Value, json};

type Client = RunningService<RoleClient, ()>;
type Call = RequestHandle<RoleClient>;

/// Maximum number of queued calls.
const QUEUE: usize = 1_024;
const ENDLESS: &str = "(loop [i 0] (recur (inc i)))";
const ONE_PLACE: &[&str] = &["--max-concurrent-calls", "1", "--program-timeout-ms", "600000", "--response-profile", "structured"];
const PATIENT_QUEUE: &[&str] = &["--queue-timeout-ms", "600000"];

fn block_on(work: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(work);
}

async fn over_stdio(command: &mut Command) -> (Client, u32) {
    let command = tokio::process::Command::from(std::mem::replace(command, Command::new("")));
    let transport = TokioChildProcess::new(command).expect("it starts");
    let id = transport.id().expect("it runs");
    (().serve(transport).await.expect("it connects"), id)
}

async fn over_http(port: u16) -> Client {
    let config = StreamableHttpClientTransportConfig::with_uri(format!("http://127.0.0.1:{port}/mcp"));
    let transport = StreamableHttpClientTransport::from_config(config.max_concurrent_requests(QUEUE));
    ().serve(transport).await.expect("it connects")
}

async fn begin(client: &Client, program: &str) -> Call {
    let arguments = [("program".to_owned(), program.into())].into_iter().collect();
    let call = CallToolRequestParams::new("lisp_eval").with_arguments(arguments);
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(call));
    client.send_cancellable_request(request, PeerRequestOptions::no_options()).await.expect("it is sent")
}

async fn outcome(call: Call) -> Value {
    match call.await_response().await.expect("an answer") {
        ServerResult::CallToolResult(result) => result.structured_content.expect("every answer has it"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn full_queue_refuses_and_each_call_is_answered_at_the_end() {
    block_on(async {
        let (client, id) = over_stdio(Command::new(plain()).args(ONE_PLACE).args(PATIENT_QUEUE)).await;
        let mut calls = vec![begin(&client, ENDLESS).await];
        for _ in 0..QUEUE {
            calls.push(begin(&client, "1").await);
        }
        let refused = outcome(begin(&client, "1").await).await;
        assert_eq!(refused["reason"], "busy", "{refused}");
        assert!(refused["retry_after_ms"].is_u64(), "{refused}");
        // A cancelled call leaves its position to another one.
        calls.pop().expect("the newest").cancel(None).await.expect("it is sent");
        calls.push(begin(&client, "1").await);
        let refused = outcome(begin(&client, "1").await).await;
        assert_eq!(refused["reason"], "busy", "{refused}");
        run(Command::new("kill").args(["-TERM", &id.to_string()])).success();
        assert_eq!(calls.len(), QUEUE + 1);
        for call in calls {
            // The place of the first becomes free for another, which may end before it is stopped.
            let answer = outcome(call).await;
            assert!(answer["reason"] == "cancelled" || answer["result"] == "user=> 1", "{answer}");
        }
    });
}

/// Over HTTP the calls wait on several connections of several sessions, and each is answered on its own.
#[test]
fn full_queue_over_http_is_answered_at_the_end() {
    const SESSIONS: usize = 4;
    let port = free_port();
    let mut server = Command::new(plain());
    server.args(["--http", "--http-disable-auth", "--http-metrics", "--http-port", &port.to_string()]);
    server.args(ONE_PLACE).args(PATIENT_QUEUE).args(["--http-shutdown-grace-ms", "500"]);
    let server = Background::start(&mut server).ready_on(port);
    let _ = rustls::crypto::ring::default_provider().install_default();
    block_on(async {
        let mut clients = Vec::new();
        for _ in 0..SESSIONS {
            clients.push(over_http(port).await);
        }
        let holder = over_http(port).await;
        let mut calls = vec![begin(&holder, ENDLESS).await];
        load(port, "ptc_programs_running", 1).await;
        for client in clients.iter().cycle().take(QUEUE) {
            calls.push(begin(client, "1").await);
        }
        load(port, "ptc_programs_queued", QUEUE as u64).await;
        // This session already has its share of the queue.
        let refused = outcome(begin(&clients[0], "1").await).await;
        assert_eq!(refused["reason"], "busy", "{refused}");
        run(Command::new("kill").args(["-TERM", &server.id().to_string()])).success();
        for call in calls {
            // The place of the first becomes free for another, which may end before it is stopped.
            let answer = outcome(call).await;
            assert!(answer["reason"] == "cancelled" || answer["result"] == "user=> 1", "{answer}");
        }
    });
}

#[test]
fn call_times_out_in_the_queue() {
    block_on(async {
        let mut command = Command::new(plain());
        command.args(["--program-timeout-ms", "600000", "--response-profile", "structured"]);
        command.env("PTC_RUNNER_MCP_MAX_CONCURRENT_CALLS", "1").env("PTC_RUNNER_MCP_QUEUE_TIMEOUT_MS", "200");
        let (client, _) = over_stdio(&mut command).await;
        let running = begin(&client, ENDLESS).await;
        let began = Instant::now();
        let refused = outcome(begin(&client, "(+ 1 2)").await).await;
        assert!(began.elapsed() >= Duration::from_millis(200));
        assert_eq!((&refused["reason"], &refused["retry_after_ms"]), (&json!("busy"), &json!(200)), "{refused}");
        running.cancel(None).await.expect("it is sent");
        // The cancelled program ends at its next check.
        let mut answer = Value::Null;
        while answer["result"] != "user=> 3" {
            assert!(began.elapsed() < Duration::from_mins(1), "{answer}");
            answer = outcome(begin(&client, "(+ 1 2)").await).await;
        }
    });
}

#[test]
fn cancelled_and_disconnected_callers_leave_the_queue() {
    let port = free_port();
    let mut server = Command::new(plain());
    server.args(["--http", "--http-disable-auth", "--http-metrics", "--http-port", &port.to_string()]);
    let _server = Background::start(server.args(ONE_PLACE).args(PATIENT_QUEUE)).ready_on(port);
    let _ = rustls::crypto::ring::default_provider().install_default();
    block_on(async {
        let holder = over_http(port).await;
        let running = begin(&holder, ENDLESS).await;
        load(port, "ptc_programs_running", 1).await;
        let cancels = over_http(port).await;
        let cancelled = begin(&cancels, "1").await;
        load(port, "ptc_programs_queued", 1).await;
        cancelled.cancel(None).await.expect("it is sent");
        load(port, "ptc_programs_queued", 0).await;
        let disconnects = over_http(port).await;
        let lost = begin(&disconnects, "1").await;
        load(port, "ptc_programs_queued", 1).await;
        drop((lost, disconnects));
        load(port, "ptc_programs_queued", 0).await;
        // The program of another client goes on.
        load(port, "ptc_programs_running", 1).await;
        running.cancel(None).await.expect("it is sent");
        let answer = outcome(begin(&cancels, "(+ 1 2)").await).await;
        assert_eq!(answer["result"], "user=> 3", "{answer}");
    });
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn typescript_sdk_fills_the_queue_and_every_call_is_answered_at_the_end() {
    let mut client = node_script("queue.mjs");
    client.arg("stdio").arg(plain()).envs([
        ("PTC_RUNNER_MCP_MAX_CONCURRENT_CALLS", "1"),
        ("PTC_RUNNER_MCP_QUEUE_TIMEOUT_MS", "600000"),
        ("PTC_RUNNER_MCP_PROGRAM_TIMEOUT_MS", "600000"),
        ("PTC_RUNNER_MCP_RESPONSE_PROFILE", "structured"),
        ("PTC_RUNNER_MCP_DEBUG_TOOL", "true"),
    ]);
    let seen: Value = serde_json::from_str(&run(&mut client).success()).expect("one JSON object");
    assert_eq!((&seen["refused"], &seen["retry"], &seen["debug"]), (&json!("busy"), &json!(5_000), &json!(false)), "{seen}");
    assert_eq!(seen["tools"], 2, "{seen}");
    // The place of the first becomes free for others, which may end before they are stopped.
    let ends = |name: &str| seen["ends"][name].as_u64().unwrap_or(0);
    assert_eq!(ends("cancelled") + ends("user=> 1"), QUEUE as u64 + 1, "{seen}");
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn typescript_sdk_leaves_the_queue_by_cancelling_and_disconnecting() {
    let port = free_port();
    let mut server = Command::new(plain());
    server.args(["--http", "--http-disable-auth", "--http-metrics", "--http-port", &port.to_string()]);
    let _server = Background::start(server.args(ONE_PLACE).args(PATIENT_QUEUE)).ready_on(port);
    let mut client = node_script("queue.mjs");
    let seen = run(client.args(["http", &format!("http://127.0.0.1:{port}/mcp")])).success();
    let seen: Value = serde_json::from_str(&seen).expect("one JSON object");
    assert_eq!(seen, json!({ "cancelled": "aborted", "lost": "closed", "running": "aborted", "after": "user=> 3" }));
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn python_sdk_is_refused_after_its_time_in_the_queue_and_admitted_later() {
    let mut client = python_script("queued.py");
    client.arg(plain()).envs([
        ("PTC_RUNNER_MCP_MAX_CONCURRENT_CALLS", "1"),
        ("PTC_RUNNER_MCP_QUEUE_TIMEOUT_MS", "1500"),
        ("PTC_RUNNER_MCP_PROGRAM_TIMEOUT_MS", "2500"),
        ("PTC_RUNNER_MCP_RESPONSE_PROFILE", "structured"),
    ]);
    let seen: Value = serde_json::from_str(&run(&mut client).success()).expect("one JSON object");
    assert_eq!(seen, json!({ "refused": "busy", "retry": 1_500, "ended": "timeout", "after": "user=> 7" }));
}

/// Waits until a metric has that value.
async fn load(port: u16, name: &'static str, value: u64) {
    let began = Instant::now();
    let ask = move || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map(|_| answer)
    };
    loop {
        // The runtime goes on meanwhile, since it sends what the clients have to say.
        let text = tokio::task::spawn_blocking(ask).await.expect("no panic").expect("it answers");
        let found = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
        if found == Some(value) {
            return;
        }
        assert!(began.elapsed() < Duration::from_mins(1), "{name} is {found:?} and never {value}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
