//! A read-only call that is answered with 429 and a short delay is repeated once after that delay.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use ptc_catalog::{Annotations, Era, McpHttp, OpenApi, Operation, Tool, Transport};
use ptc_lisp::limits::{Cancel, Limits};
use ptc_runtime::schedule::{ClientKey, ScheduleLimits, Scheduler};
use ptc_runtime::upstream::WaitLimits;
use serde_json::json;

use crate::http::handshaking;
use crate::web::{Answer, Web};
use crate::world::{Program, World, operation, tool, upstream};

/// Time limit for an awaited request, after which a test fails.
const PATIENCE: Duration = Duration::from_secs(30);

const REFUSAL: &str =
    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32029,"message":"slow down","data":{"limit":"2 calls in a second"}}}"#;

/// Returns an MCP and an OpenAPI upstream that answer the first `refusals` calls with 429 and `retry_after`, and a counter of
/// received calls.
fn world(refusals: usize, retry_after: &'static str) -> (World, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&calls);
    let web = Web::start(move |asked| {
        let mut headers = vec!["Content-Type: application/json".to_owned()];
        if !retry_after.is_empty() {
            headers.push(format!("Retry-After: {retry_after}"));
        }
        let answer = |body: String| {
            let number = seen.fetch_add(1, Ordering::SeqCst);
            if number < refusals { Answer::Full(429, headers, REFUSAL.into()) } else { Answer::json(200, body) }
        };
        if asked.method == "GET" {
            return answer("{\"a\":1}".to_owned());
        }
        handshaking(asked, |frame| {
            let result = json!({"content": [{"type": "text", "text": "done"}]});
            answer(json!({"jsonrpc": "2.0", "id": frame["id"], "result": result}).to_string())
        })
    });
    let reads = Tool { effects: Annotations { read_only: Some(true), ..Annotations::default() }, ..tool("read") };
    let get = operation("get", Operation::new("get", "/a"));
    let mcp = Transport::McpHttp(McpHttp { era: Some(Era::Handshake), ..McpHttp::new(web.url("/mcp")) });
    let world = World::new(vec![
        upstream("mcp", mcp, vec![reads, tool("write")]),
        upstream("api", Transport::OpenApi(OpenApi::new(web.url("/api"))), vec![get]),
    ]);
    (world, calls)
}

#[test]
fn read_is_retried_after_the_delay() {
    for (server, name, expected) in [("mcp", "read", "text done"), ("api", "get", "json {\"a\":1}")] {
        let (world, calls) = world(1, "1");
        let begun = Instant::now();
        let program = world.program();
        assert_eq!(program.call(server, name, "{}"), expected);
        assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());
        assert_eq!(calls.load(Ordering::SeqCst), 2);
        assert_eq!(program.0.calls().len(), 1, "both are one call of the program");
        assert_eq!(program.last().http_status, Some(200));
    }
}

/// The only processor is held by another program from before the first answer until the second request, which comes after the
/// delay.
#[test]
fn delay_before_a_retry_needs_no_processor() {
    let mut limits = ScheduleLimits::detect();
    limits.processors.value = 1;
    let scheduler = Scheduler::new(limits);
    let admitted = || {
        let (send, receive) = mpsc::channel();
        scheduler.enter(&ClientKey::default(), 0, &Cancel::default(), move |permit| drop(send.send(permit)));
        receive.recv().unwrap().expect("a slot is free")
    };
    let ((ask, asked), (take, taken)) = (mpsc::channel(), mpsc::channel());
    let gates = Mutex::new((ask, taken));
    let web = Web::start(move |request| {
        handshaking(request, |frame| {
            let (ask, taken) = &*gates.lock().unwrap();
            let _ = ask.send(());
            if taken.recv().is_ok() {
                return Answer::Full(429, vec!["Retry-After: 1".to_owned()], REFUSAL.into());
            }
            let result = json!({"content": [{"type": "text", "text": "done"}]});
            Answer::json(200, json!({"jsonrpc": "2.0", "id": frame["id"], "result": result}))
        })
    });
    let reads = Tool { effects: Annotations { read_only: Some(true), ..Annotations::default() }, ..tool("read") };
    let mcp = Transport::McpHttp(McpHttp { era: Some(Era::Handshake), ..McpHttp::new(web.url("/mcp")) });
    let world = World::with(vec![upstream("mcp", mcp, vec![reads])], Vec::new(), |settings| {
        settings.call_timeout = Duration::from_mins(1);
    });
    let (permit, other) = (admitted(), admitted());
    let lease = permit.lease(&Cancel::default());
    let program = ptc_lisp::Program::compile(r#"(:value (tool/call {:server "mcp" :tool "read"}))"#).unwrap();
    let host = world.upstreams.program(WaitLimits::default());
    let waiting = std::thread::Builder::new().stack_size(ptc_lisp::STACK_BYTES + ptc_lisp::STACK_SLACK_BYTES);
    let waiting = waiting.spawn(move || {
        let _computing = lease.begin().expect("the processor");
        let limits = Limits::default().wall_clock(Duration::from_mins(1));
        ptc_lisp::Run::new(&program).host(host).limits(limits).share(lease.share()).execute().result
    });
    asked.recv_timeout(PATIENCE).expect("the first request");
    let other = other.lease(&Cancel::default());
    let holding = other.begin().expect("the program that waits has released the processor");
    take.send(()).unwrap();
    drop(take);
    asked.recv_timeout(PATIENCE).expect("the second request");
    assert_eq!((scheduler.load().running, scheduler.load().waiting), (1, 1));
    drop(holding);
    assert_eq!(waiting.unwrap().join().unwrap().unwrap().as_str(), Some("done"));
}

#[test]
fn call_is_retried_only_once() {
    for (server, name) in [("api", "get"), ("mcp", "read")] {
        let (world, calls) = world(9, "0");
        assert_eq!(
            world.program().call(server, name, "{}"),
            "rate_limited: HTTP 429 Too Many Requests (retry after 0 s): slow down (JSON-RPC error -32029): {\"limit\":\"2 calls in \
             a second\"} (retried once after 0 ms, as the first answer requested)"
        );
        assert_eq!(calls.load(Ordering::SeqCst), 2, "{server}");
    }
}

#[test]
fn writes_and_reads_without_a_short_delay_are_not_retried() {
    for (tool, retry_after, shown) in [
        ("write", "0", " (retry after 0 s)"),
        ("read", "3", " (retry after 3 s)"),
        ("read", "soon", " (retry after soon)"),
        ("read", "", ""),
    ] {
        let (world, calls) = world(1, retry_after);
        let answer = world.program().call("mcp", tool, "{}");
        let expected = format!("rate_limited: HTTP 429 Too Many Requests{shown}: slow down (JSON-RPC error -32029)");
        assert!(answer.starts_with(&expected), "{tool} {retry_after}: {answer}");
        assert_eq!(calls.load(Ordering::SeqCst), 1, "{tool} {retry_after}");
    }
}

#[test]
fn call_is_not_retried_after_the_program_has_ended() {
    let (world, calls) = world(1, "2");
    let patience = WaitLimits { deadline: Some(Instant::now() + Duration::from_millis(1_500)), ..WaitLimits::default() };
    let begun = Instant::now();
    let answer = Program(world.upstreams.program(patience)).call("mcp", "read", "{}");
    assert!(answer.starts_with("rate_limited: HTTP 429 Too Many Requests (retry after 2 s)"), "{answer}");
    assert!(begun.elapsed() < Duration::from_millis(1_500), "{:?}", begun.elapsed());
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}
