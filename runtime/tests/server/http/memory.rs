//! The memory budget of all programs, requests and answers.

use std::io::Write as _;
use std::time::{Duration, Instant};

use super::shares::{crowd, tool};
use super::site::{Client, Site, call};
use crate::Test;

pub(super) const TESTS: &[Test] = &[
    ("http::programs_beyond_the_memory_budget_are_ended", programs_beyond_the_memory_budget_are_ended),
    ("http::context_counts_in_the_memory_budget", context_counts_in_the_memory_budget),
    ("http::context_counts_in_the_memory_of_its_program", context_counts_in_the_memory_of_its_program),
    ("http::bodies_being_read_count_in_the_memory_budget", bodies_being_read_count_in_the_memory_budget),
    ("http::unread_response_counts_in_the_memory_budget", unread_response_counts_in_the_memory_budget),
    ("http::waiting_branches_fit_into_little_memory", waiting_branches_fit_into_little_memory),
];

/// A call whose context takes about 36 MB as values.
fn with_large_context(program: &str) -> String {
    let mut request = call(1, program);
    let context = format!(r#"{{"x":[{}[0]]}}"#, "[0],".repeat(500_000));
    request["params"]["arguments"]["context"] = serde_json::from_str(&context).expect("it is JSON");
    request.to_string()
}

fn programs_beyond_the_memory_budget_are_ended() {
    let site = Site::start(&[
        "--memory-budget-bytes",
        "67108864",
        "--program-memory-limit-bytes",
        "1000000000",
        "--program-timeout-ms",
        "60000",
        "--http-metrics",
    ]);
    let large = "(count (mapv (fn [i] (vec (range 6250))) (range 5000)))";
    let mut clients: Vec<Client> = (0..4).map(|_| site.connected()).collect();
    for client in &mut clients {
        client.send_eval(1, large);
    }
    let mut other = site.connected();
    for _ in 0..20 {
        assert_eq!(other.eval("(count (range 1000))"), "user=> 1000");
    }
    for client in &mut clients {
        let answer = client.receive().text();
        assert!(answer.starts_with("memory_limit: ") && answer.contains("budget of 67108864 bytes"), "{answer}");
    }
    site.until("ptc_memory_used_bytes", 0);
    assert!(other.count(r#"ptc_refusals_total{reason="memory_budget"}"#) >= 4);
}

/// Each context takes about 36 MB as values, so that two exceed the budget.
fn context_counts_in_the_memory_budget() {
    let args = ["--memory-budget-bytes", "67108864", "--program-timeout-ms", "5000", "--program-memory-limit-bytes", "60000000"];
    let site = Site::start(&[&args[..], &["--http-metrics"]].concat());
    let mut clients: Vec<Client> = (0..3).map(|_| site.connected()).collect();
    for client in &mut clients {
        client.send("POST", "/mcp", &[], &with_large_context("(loop [] (recur))"));
    }
    let answers: Vec<String> = clients.iter_mut().map(|client| client.receive().text()).collect();
    assert!(answers.iter().any(|answer| answer.contains("budget of 67108864 bytes")), "{answers:?}");
    site.until("ptc_memory_used_bytes", 0);
}

fn context_counts_in_the_memory_of_its_program() {
    let site = Site::start(&["--program-memory-limit-bytes", "20000000", "--http-metrics"]);
    let mut client = site.connected();
    let large = client.ask("POST", "/mcp", &[], &with_large_context("1")).text();
    assert!(large.starts_with("memory_limit: the context alone needs more than 20000000 bytes"), "{large}");
    site.until("ptc_memory_used_bytes", 0);
    let site = Site::start(&["--program-memory-limit-bytes", "60000000", "--program-timeout-ms", "20000"]);
    let mut client = site.connected();
    let fits = client.ask("POST", "/mcp", &[], &with_large_context("(count data/x)")).text();
    assert_eq!(fits, "user=> 500001");
    // What the program adds counts together with its context.
    let grows = "(count (concat data/x (map (fn [i] [i]) (range 500000))))";
    let more = client.ask("POST", "/mcp", &[], &with_large_context(grows)).text();
    assert!(more.starts_with("memory_limit: "), "{more}");
}

fn bodies_being_read_count_in_the_memory_budget() {
    const MIB: usize = 1024 * 1024;
    let args = ["--memory-budget-bytes", "50331648", "--http-max-body-bytes", "4194304", "--http-request-timeout-ms", "60000"];
    let site = Site::start(&[&args[..], &["--http-metrics"]].concat());
    let begin = || {
        let mut client = site.client();
        client.send("POST", "/mcp", &[("Content-Length", &(4 * MIB).to_string())], "");
        let _ = client.stream.get_mut().write_all(&vec![b'x'; 4 * MIB - 1]);
        client
    };
    let reading = begin();
    site.until("ptc_memory_used_bytes", 4 * MIB as u64 - 1);
    // An eighth of the budget is 6 MiB.
    let refused = begin().receive();
    assert!(refused.status == 503 && refused.body.contains("too many requests are being read"), "{refused:?}");
    drop(reading);
    site.until("ptc_memory_used_bytes", 0);
}

fn unread_response_counts_in_the_memory_budget() {
    let site = Site::start(&["--http-metrics", "--http-request-timeout-ms", "60000", "--response-profile", "debug"]);
    let mut client = site.connected();
    let body = call(1, "(apply str (repeat 60000 \"x\"))").to_string();
    let session = client.session.clone().expect("a session");
    let headers = format!("Host: localhost\r\nContent-Length: {}\r\nMcp-Session-Id: {session}", body.len());
    let stream = client.stream.get_mut();
    rustix::net::sockopt::set_socket_recv_buffer_size(&mut *stream, 4096).expect("the socket takes it");
    stream.set_write_timeout(Some(Duration::from_millis(100))).expect("the socket takes it");
    while stream.write_all(format!("POST /mcp HTTP/1.1\r\n{headers}\r\n\r\n{body}").repeat(200).as_bytes()).is_ok() {}
    // The memory of a program is released just after its answer is ready: only an answer that waits counts for longer.
    let (mut other, began, mut steady) = (site.client(), Instant::now(), 0);
    while steady < 20 {
        let text = other.ask("GET", "/metrics", &[], "").body;
        let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
        let waits = value("ptc_programs_running") == Some(0) && value("ptc_programs_waiting") == Some(0);
        let is_counted = waits && value("ptc_memory_used_bytes").is_some_and(|bytes| bytes > 60_000);
        steady = if is_counted { steady + 1 } else { 0 };
        assert!(began.elapsed() < Duration::from_secs(30), "the answer is not counted: {text}");
        std::thread::sleep(Duration::from_millis(2));
    }
    drop(client);
    site.until("ptc_memory_used_bytes", 0);
}

fn waiting_branches_fit_into_little_memory() {
    const PROGRAMS: usize = 40;
    // One program runs at most 51 branches at a time.
    const BRANCHES: usize = 50;
    let site = crowd(&["--max-upstream-calls-per-program", "1000"]);
    assert_eq!(site.connected().eval(&tool("wide", "heard")), "user=> \"\"");
    let resident_kib = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", site.id())).expect("it lives");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a field of Linux");
        line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number")
    };
    let before = resident_kib();
    let mut waiting: Vec<Client> = (0..PROGRAMS).map(|_| site.connected()).collect();
    let hang = r#"(tool/call {:server "wide" :tool "hang" :args {}})"#;
    for client in &mut waiting {
        client.send_eval(1, &format!("(count (pmap (fn [_] {hang}) (range {BRANCHES})))"));
    }
    let (mut other, began) = (site.connected(), Instant::now());
    let heard = r#"(count (re-seq #"call" (:value (tool/call {:server "wide" :tool "heard" :args {}}))))"#;
    let all = format!("user=> {}", PROGRAMS * BRANCHES);
    while other.eval(heard) != all {
        assert!(began.elapsed() < Duration::from_secs(30), "not all branches wait: {}", other.eval(heard));
        std::thread::sleep(Duration::from_millis(20));
    }
    let (after, branches) = (resident_kib(), PROGRAMS * BRANCHES);
    assert!(after <= 200_000, "{after} KiB resident");
    assert!((after - before) / branches <= 64, "{} KiB for {branches} branches", after - before);
}
