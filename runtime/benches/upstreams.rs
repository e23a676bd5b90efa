//! Measures the path between a program and its upstreams: overlapping calls, pages of a list, redaction of secrets, search in a
//! large catalog. `cargo bench -p ptc-runtime --bench upstreams`, with `-- redaction` for one part only.
#![expect(clippy::print_stdout, reason = "the benchmark prints figures")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a benchmark panics on any error")]

use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use ptc_catalog::{Arg, Catalog, Deployment, EnvPart, Era, McpStdio, Tool, Tools, Transport, Type, Types, Upstream};
use ptc_lisp::host::Discovery;
use ptc_lisp::{Host, Limits, Program, Run, STACK_BYTES, STACK_SLACK_BYTES, Value};
use ptc_runtime::secrets::{Redactor, Secrets};
use ptc_runtime::upstream::{OnDrift, UpstreamSettings, Upstreams, WaitLimits};

/// Environment variable that makes the child process an upstream.
const ROLE: &str = "PTC_BENCH_ROLE";
/// Number of pages of the list, and the delay of each.
const PAGES: i64 = 20;
const PAGE_DELAY: Duration = Duration::from_millis(50);

fn main() -> ExitCode {
    if std::env::var(ROLE).is_ok() {
        return serve();
    }
    // Cargo's own flags, such as `--bench`, are ignored.
    let parts: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let wanted = |part: &str| parts.is_empty() || parts.iter().any(|named| named == part);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let handle = runtime.handle().clone();
    std::thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
    if wanted("overlap") {
        overlap(&handle);
    }
    if wanted("pages") {
        pages(&handle);
    }
    if wanted("redaction") {
        redaction();
    }
    if wanted("search") {
        search(&handle);
    }
    ExitCode::SUCCESS
}

/// Runs an upstream that answers each call after 100 ms, and each call for a page after 50 ms.
fn serve() -> ExitCode {
    for line in std::io::stdin().lock().lines() {
        let Ok(Ok(frame)) = line.map(|line| serde_json::from_str::<serde_json::Value>(&line)) else { break };
        let id = frame["id"].clone();
        let result = match frame["method"].as_str() {
            Some("initialize") => r#"{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"b","version":"1"}}"#,
            Some("tools/call") if frame["params"]["name"] == "list" => {
                &page(frame["params"]["arguments"]["page"].as_i64().unwrap_or(1))
            }
            Some("tools/call") => r#"{"content":[{"type":"text","text":"done"}]}"#,
            _ => continue,
        };
        let delay = if frame["params"]["name"] == "list" { PAGE_DELAY } else { Duration::from_millis(100) };
        let (called, result) = (frame["method"] == "tools/call", result.to_owned());
        std::thread::spawn(move || {
            if called {
                std::thread::sleep(delay);
            }
            let mut output = std::io::stdout().lock();
            let _ = writeln!(output, r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#).and_then(|()| output.flush());
        });
    }
    ExitCode::SUCCESS
}

/// Returns one of 20 pages, with three items.
fn page(number: i64) -> String {
    let rows: Vec<i64> = (0..3).map(|row| (number - 1) * 3 + row).collect();
    format!(r#"{{"content":[],"structuredContent":{{"rows":{rows:?},"page":{number},"pages":{PAGES},"total":{}}}}}"#, PAGES * 3)
}

fn tool(name: &'static str, description: &'static str) -> Tool {
    Tool { name, description, ..Tool::EMPTY }
}

fn upstreams(transport: Transport, mut tools: Vec<Tool>, handle: &tokio::runtime::Handle) -> Arc<Upstreams> {
    tools.sort_by_key(|tool| tool.name);
    let upstream = Upstream { name: "peer", description: "", transport, tools: Tools::table(tools.leak()) };
    let catalog = Box::leak(Box::new(Catalog { digest: "", search_index: &[], upstreams: vec![upstream].leak() }));
    let deployment = Box::leak(Box::new(Deployment { name: "bench", catalog, ..Deployment::EMPTY }));
    let secrets = Secrets::resolve(deployment, "/".as_ref()).unwrap_or_else(|missing| panic!("{missing:?}"));
    let mut settings = UpstreamSettings::new("/", handle.clone());
    settings.on_drift = OnDrift::Off;
    Upstreams::new(deployment, secrets, settings)
}

/// Returns the minimum and the median of nine runs.
fn runs(mut run: impl FnMut()) -> (Duration, Duration) {
    let mut times: Vec<Duration> = (0..9)
        .map(|_| {
            let started = Instant::now();
            run();
            started.elapsed()
        })
        .collect();
    times.sort_unstable();
    (times[0], times[times.len() / 2])
}

/// Reads all pages of a list with `tool/all` and with a loop, in one run.
fn pages(handle: &tokio::runtime::Handle) {
    let exe: &'static str = std::env::current_exe().unwrap().to_string_lossy().into_owned().leak();
    let env: &[(&str, &[EnvPart])] = &[(ROLE, &[EnvPart::Text("upstream")])];
    let spec = McpStdio { env, era: Some(Era::Handshake), ..McpStdio::new(exe) };
    let args =
        vec![Arg { name: "page", required: false, types: Types::from_types(&[Type::Integer]), label: "", allowed: "" }].leak();
    let paging = "by page\nitems rows\nargument page\ntotal total\npages pages\npage page\nfirst 1";
    let upstreams = upstreams(Transport::McpStdio(spec), vec![Tool { args, paging, ..tool("list", "") }], handle);
    let run = |source: &str| {
        let host = upstreams.program(WaitLimits::default());
        let program = Program::compile(source).unwrap();
        let outcome =
            Run::new(&program).host(host).limits(Limits::default().wall_clock(Duration::from_mins(1))).execute_on_thread();
        assert_eq!(outcome.result.unwrap().as_int(), Some(PAGES * 3));
    };
    let looped = format!(
        r#"(count (loop [page 1 rows []]
             (if (> page {PAGES}) rows
               (recur (inc page) (into rows (:rows (tool/value {{:server "peer" :tool "list" :args {{:page page}}}})))))))"#
    );
    // The first call starts the upstream.
    run(r#"(count (tool/all {:server "peer" :tool "list"}))"#);
    let all = runs(|| run(r#"(count (tool/all {:server "peer" :tool "list"}))"#));
    let looped = runs(|| run(&looped));
    for (what, (lowest, middle)) in [("tool/all", all), ("a loop", looped)] {
        println!("{PAGES} pages of {PAGE_DELAY:?} by {what}: {lowest:.1?} lowest, {middle:.1?} median");
    }
    let share = all.1.as_secs_f64() / looped.1.as_secs_f64();
    println!("tool/all takes {:.0} % of the time of a loop", share * 100.0);
    assert!(share <= 0.25, "tool/all takes more than a quarter of the time of a loop");
}

fn overlap(handle: &tokio::runtime::Handle) {
    let exe: &'static str = std::env::current_exe().unwrap().to_string_lossy().into_owned().leak();
    let env: &[(&str, &[EnvPart])] = &[(ROLE, &[EnvPart::Text("upstream")])];
    let spec = McpStdio { env, era: Some(Era::Handshake), ..McpStdio::new(exe) };
    let upstreams = upstreams(Transport::McpStdio(spec), vec![tool("slow", "")], handle);
    let run = |calls: u32| {
        let host = upstreams.program(WaitLimits::default());
        let source =
            format!(r#"(count (filter :ok (pmap (fn [_] (tool/call {{:server "peer" :tool "slow"}})) (range {calls}))))"#);
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES + STACK_SLACK_BYTES);
        let work = thread.spawn(move || {
            let program = Program::compile(&source).unwrap();
            let limits = Limits::default().wall_clock(Duration::from_secs(10));
            Run::new(&program).host(host).limits(limits).execute().result.unwrap()
        });
        assert_eq!(work.unwrap().join().unwrap(), Value::int(i64::from(calls)));
    };
    // The first call connects.
    run(1);
    for calls in [1, 8, 50] {
        let (lowest, middle) = runs(|| run(calls));
        println!("pmap over {calls} calls of 100 ms: {lowest:.1?} lowest, {middle:.1?} median");
    }
}

fn redaction() {
    let secrets: Vec<String> =
        (0..20).map(|n| format!("{:x}/value+number={n}-{}", (n as u64 + 1).pow(5) * 0x9e37_79b9, "x".repeat(n))).collect();
    let words = "the quick brown fox, 1234 jumps over https://example.com/a?b=c and comes back ";
    let rows = |title: &str| {
        let rows: Vec<_> = (0..100_000).map(|n| serde_json::json!({"id": n, "title": title})).collect();
        serde_json::json!({ "rows": rows }).to_string()
    };
    // The texts are wrapped as in the results of tools.
    let within = |text: &str| serde_json::json!({"content": [{"type": "text", "text": text}]}).to_string();
    let (plain, lines) = (rows(words), rows("one \"line\"\nand the next"));
    let digests = (1..200_000u64).fold(String::new(), |all, n| {
        let (high, low) = (n.wrapping_mul(0xd6e8_feb8_6659_fd93), n.wrapping_mul(0xbf58_476d_1ce4_e5b9));
        all + &format!("{high:016x}{low:016x}  file-{n}\n")
    });
    let bits: Vec<u8> = (0..1_000_000u64).map(|n| (n.wrapping_mul(0xd6e8_feb8_6659_fd93) >> 40) as u8).collect();
    let bits = base64::engine::general_purpose::STANDARD.encode(bits);
    let bits_in_lines: String = bits.as_bytes().chunks(76).flat_map(|line| [std::str::from_utf8(line).unwrap(), "\n"]).collect();
    let texts = [
        ("text", words.repeat(16 * 1024 * 1024 / words.len())),
        ("digests", digests),
        ("JSON with base64", within(&bits)),
        ("JSON with base64 in lines", within(&bits_in_lines)),
        ("text with percent escapes", words.replace(' ', "%20").repeat(100_000)),
        ("JSON with escapes", lines.clone()),
        ("JSON in JSON", within(&plain)),
        ("JSON with escapes in JSON", within(&lines)),
        ("JSON with escapes in JSON in JSON", within(&within(&lines))),
        ("JSON", plain),
    ];
    for count in [1, 5, 20] {
        let made = Instant::now();
        let redactor = Redactor::new(secrets[..count].iter().map(String::as_str));
        println!("{count} secrets, made in {:.1?}", made.elapsed());
        for (what, text) in &texts {
            let mut bytes = text.clone().into_bytes();
            let (lowest, middle) = runs(|| bytes = redactor.redact_bytes(std::mem::take(&mut bytes)));
            let rate = |time: Duration| text.len() as f64 / time.as_secs_f64() / 1e6;
            println!("{count} secrets, {what} without one: {:.0} MB/s highest, {:.0} median", rate(lowest), rate(middle));
        }
    }
}

fn search(handle: &tokio::runtime::Handle) {
    for count in [50usize, 5_000] {
        let tools = (0..count).map(|n| {
            let name: &'static str = format!("get_{}_by_{n}", ["issue", "pull", "repo", "user", "file"][n % 5]).leak();
            let words = ["list", "the", "items", "of", "a", "repository", "with", "filters", "and", "pages"];
            let description: &'static str = (0..25).map(|k| words[(n * 7 + k * 3) % 10]).collect::<Vec<_>>().join(" ").leak();
            tool(name, description)
        });
        let upstreams = upstreams(Transport::McpStdio(McpStdio::new("x")), tools.collect(), handle);
        for query in ["repository file pages", "user", "nothing of that kind"] {
            let (lowest, middle) = runs(|| {
                let found =
                    upstreams.program(WaitLimits::default()).discover(Discovery::Apropos { query, limit: 8, load: false });
                assert!(found.unwrap().len().is_some());
            });
            println!("apropos '{query}' over {count} tools: {lowest:.2?} lowest, {middle:.2?} median");
        }
    }
}
