//! Sends arbitrary bytes to a server: HTTP requests over a stream in memory, or JSON-RPC frames if the first byte is `{` or `[`.
//! Every answer is a complete HTTP response or a JSON-RPC message, and no input is an internal error.
#![no_main]

mod allocator;

use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use ptc_catalog::Deployment;
use ptc_runtime::evaluation::Evaluator;
use ptc_runtime::fuzzing;
use ptc_runtime::log::{self, Level};
use ptc_runtime::schedule::Scheduler;
use ptc_runtime::secrets::Secrets;
use ptc_runtime::server::caller::{Answer, ResponseSink};
use ptc_runtime::server::http::HttpState;
use ptc_runtime::server::in_flight::Registration;
use ptc_runtime::server::{Server, stdio};
use ptc_runtime::session::Sessions;
use ptc_runtime::settings::Settings;
use ptc_runtime::upstream::{UpstreamSettings, Upstreams};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::{Builder, Runtime};

static DEPLOYMENT: Deployment = Deployment { name: "fuzzed", ..Deployment::EMPTY };

struct World {
    runtime: Runtime,
    server: Arc<Server>,
    http: Arc<HttpState>,
}

static WORLD: LazyLock<World> = LazyLock::new(|| {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut settings = Settings::defaults(false);
    settings.log_level = Level::Error;
    settings.max_frame_bytes = 1_000;
    settings.program_timeout = Duration::from_millis(100);
    settings.program_memory_limit_bytes = 4 << 20;
    settings.sessions = true;
    settings.http.on = true;
    settings.http.disable_auth = true;
    settings.http.request_timeout = Duration::from_secs(2);
    log::set_level(Level::Error);
    let secrets = Secrets::resolve_available(&DEPLOYMENT, None, std::path::Path::new("."));
    let redactor = secrets.redactor();
    let upstreams = Upstreams::new(&DEPLOYMENT, secrets, UpstreamSettings::new(".", runtime.handle().clone()));
    let evaluator = Evaluator::new(settings.limits(), 500, upstreams, &[], redactor.clone());
    let scheduler = Scheduler::new(settings.schedule.clone());
    let sessions = Sessions::open(&settings, DEPLOYMENT.name, &scheduler).expect("sessions in memory");
    let server = Arc::new(Server::new(&DEPLOYMENT, settings, evaluator, sessions, redactor, scheduler, None));
    let http = HttpState::new(Arc::clone(&server), None, None).expect("a listener's state");
    World { runtime, server, http }
});

fuzz_target!(|input: &[u8]| {
    match input.first() {
        Some(b'{' | b'[') => check_frames(&WORLD, input),
        _ => check_http(&WORLD, input),
    }
});

/// Collects answers.
#[derive(Default)]
struct Collector(Mutex<Vec<Vec<u8>>>);

impl ResponseSink for Collector {
    fn send(&self, answer: Answer, call: Option<Registration>) {
        self.0.lock().expect("no answer panics").push(answer.line);
        drop(call);
    }
}

fn check_frames(world: &World, input: &[u8]) {
    let collector = Arc::new(Collector::default());
    let answers: Arc<dyn ResponseSink> = Arc::clone(&collector) as _;
    let caller = stdio::caller();
    stdio::serve(&world.server, input, &caller, &answers).expect("the input has no fault");
    let started = Instant::now();
    while !caller.calls.is_idle() {
        assert!(started.elapsed() < Duration::from_secs(10), "a call does not end");
        std::thread::sleep(Duration::from_micros(100));
    }
    let answers = collector.0.lock().expect("no answer panics");
    assert!(answers.len() <= input.split(|byte| *byte == b'\n').count(), "more answers than lines");
    for answer in answers.iter() {
        let line = answer.strip_suffix(b"\n").expect("an answer ends with a line break");
        assert!(!line.contains(&b'\n'), "an answer is one line");
        check_answer(line);
    }
}

fn check_answer(line: &[u8]) {
    let answer: Value = serde_json::from_slice(line).expect("an answer is JSON");
    assert_eq!(answer["jsonrpc"], "2.0");
    assert!(answer.get("id").is_some() && answer.get("result").is_some() != answer.get("error").is_some());
    assert_ne!(answer["error"]["code"], -32603, "an internal error");
}

fn check_http(world: &World, input: &[u8]) {
    let output = world.runtime.block_on(async {
        let (client, server) = tokio::io::duplex(512);
        let (mut reader, mut writer) = tokio::io::split(client);
        let write = async {
            // The server may end the connection before it has read everything.
            let _ = writer.write_all(input).await;
            let _ = writer.shutdown().await;
        };
        let mut output = Vec::new();
        let exchange = async {
            let _ = tokio::join!(fuzzing::serve_http(Arc::clone(&world.http), server), write, reader.read_to_end(&mut output));
        };
        tokio::time::timeout(Duration::from_secs(15), exchange).await.expect("a connection ends");
        output
    });
    // An answer to HEAD has the length of a body that it does not have.
    if !input.windows(4).any(|bytes| bytes == b"HEAD") {
        check_responses(&output);
    }
}

fn check_responses(mut output: &[u8]) {
    while !output.is_empty() {
        let end = output.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("a head ends");
        let head = str::from_utf8(&output[..end]).expect("a head is ASCII");
        output = &output[end + 4..];
        let (status, fields) = head.split_once("\r\n").unwrap_or((head, ""));
        let code: u16 = status
            .strip_prefix("HTTP/1.1 ")
            .or(status.strip_prefix("HTTP/1.0 "))
            .and_then(|rest| rest.get(..3)?.parse().ok())
            .expect("a status");
        assert!((100..500).contains(&code) || code == 503, "{status}");
        let field = |name: &str| {
            let mut values = fields.split("\r\n").filter_map(|line| line.split_once(':'));
            values.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
        };
        if code == 100 {
            continue;
        }
        let length = field("content-length").map_or(0, |length| length.parse().expect("a length"));
        assert!(length <= output.len(), "a body is complete: {head}");
        let (body, rest) = output.split_at(length);
        output = rest;
        if field("content-type").is_some_and(|kind| kind.starts_with("application/json")) {
            let value: Value = serde_json::from_slice(body).expect("the body is JSON");
            if value.get("jsonrpc").is_some() {
                check_answer(body);
            }
        }
    }
}
