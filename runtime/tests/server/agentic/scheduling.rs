//! Tests the processors, the memory and the queue of `lisp_task`.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit, setrlimit};
use serde_json::{Value, json};

use super::{answer, replay, tempfile, with_planner};
#[cfg(feature = "http-server")]
use crate::http::site::Site;
use crate::peer::Peer;
use crate::web::Web;

/// While the planner writes the second program, the definitions of the first one count.
#[cfg(feature = "http-server")]
pub(super) fn state_between_programs_counts_in_the_memory_budget() {
    let first = json!({ "say": "```clojure\n(def numbers (vec (range 100000)))\n```" });
    let planner = replay(vec![first, json!({ "hang": true })]);
    let flags = ["--agentic-allow-writes", "--agentic-max-turns", "2", "--agentic-planner-timeout-ms", "600000"];
    let mut command = with_planner("tasks", &planner, &flags);
    command.args(["--http", "--http-disable-auth", "--http-port", "0", "--http-metrics", "--agentic-task-timeout-ms", "600000"]);
    let site = Site::of(command.args(["--max-session-binding-bytes", "10000000", "--max-session-memory-bytes", "10000000"]));
    let used = || {
        let text = site.client().ask("GET", "/metrics", &[], "").body;
        let line = text.lines().find_map(|line| line.strip_prefix("ptc_memory_used_bytes ").map(str::to_owned));
        line.and_then(|bytes| bytes.parse::<u64>().ok()).unwrap_or_else(|| panic!("{text}"))
    };
    let mut client = site.connected();
    let task = json!({ "name": "lisp_task", "arguments": { "task": "x" } });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": task });
    client.send("POST", "/mcp", &[], &request.to_string());
    let began = Instant::now();
    while planner.requests().len() < 2 {
        assert!(began.elapsed() < Duration::from_secs(30), "the second program is not asked for");
        std::thread::sleep(Duration::from_millis(2));
    }
    let bytes = used();
    assert!((1_600_000..4_000_000).contains(&bytes), "{bytes}");
    assert_eq!(site.beside(&client).ask("DELETE", "/mcp", &[], "").status, 204);
    while used() != 0 {
        assert!(began.elapsed() < Duration::from_secs(30), "{} bytes are not released", used());
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub(super) fn waiting_tasks_use_no_threads() {
    const TASKS: usize = 1_000;
    // Each task has a connection to the planner, and both ends of it are descriptors of this process or of its child.
    let mut descriptors = getrlimit(Resource::Nofile);
    descriptors.current = descriptors.maximum;
    setrlimit(Resource::Nofile, descriptors).expect("the hard limit is allowed");
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let opened = Arc::clone(&gate);
    let planner = Web::start(move |_| {
        let is_open = opened.0.lock().expect("the test holds it briefly");
        drop(opened.1.wait_while(is_open, |is_open| !*is_open));
        answer(&json!({ "say": "(return (reduce + (pmap inc (range 10))))" }))
    });
    let most = (TASKS + 1).to_string();
    let flags = ["--agentic-allow-writes", "--max-concurrent-calls", &most, "--agentic-planner-timeout-ms", "600000"];
    let mut server = Peer::of(with_planner("tasks", &planner, &flags).args([
        "--agentic-task-timeout-ms",
        "600000",
        "--queue-timeout-ms",
        "60000",
    ]));
    for id in 0..TASKS {
        let params = json!({ "name": "lisp_task", "arguments": { "task": "x" } });
        server.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string());
    }
    let began = Instant::now();
    while planner.requests().len() < TASKS {
        assert!(began.elapsed() < Duration::from_mins(1), "{} tasks have asked", planner.requests().len());
        std::thread::sleep(Duration::from_millis(20));
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).expect("it lives");
    let field = |name: &str| -> usize {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a field of Linux");
        line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().expect("a number")
    };
    let processors = std::thread::available_parallelism().map_or(2, usize::from);
    assert!(field("Threads") <= 16 * processors + 16, "{} threads", field("Threads"));
    assert!(field("VmRSS") < 250_000, "{} KB", field("VmRSS"));
    // They use no processor: another program runs at once.
    assert!(server.ask("1000", "(+ 1 2)").contains("user=> 3"));
    *gate.0.lock().expect("the lock is not poisoned") = true;
    gate.1.notify_all();
    for _ in 0..TASKS {
        let answer = server.receive();
        assert!(answer.contains(r#""structured_result":55"#), "{answer}");
    }
}

/// Returns the members of a task's last line in its trace and of its record in `lisp_debug`.
fn diagnosed(server: &mut Peer, traces: &Path, id: u64) -> [Value; 2] {
    let arguments = json!({ "op": "recent" });
    let params = json!({ "name": "lisp_debug", "arguments": arguments });
    server.send(&json!({ "jsonrpc": "2.0", "id": 900, "method": "tools/call", "params": params }).to_string());
    let recent: Value = serde_json::from_str(&server.receive()).expect("a line of JSON");
    let entries = recent["result"]["structuredContent"]["calls"].as_array().cloned().unwrap_or_default();
    let is_it = |entry: &&Value| entry["request_id"] == id.to_string().as_str();
    let shown = entries.iter().find(is_it).unwrap_or_else(|| panic!("{id} is not in {recent}")).clone();
    let last = |entry: std::fs::DirEntry| -> Value {
        let text = std::fs::read_to_string(entry.path()).expect("a trace");
        serde_json::from_str(text.lines().last().expect("a line")).expect("a line of JSON")
    };
    let files: Vec<Value> = std::fs::read_dir(traces).expect("a folder").flatten().map(last).collect();
    [files.iter().find(is_it).unwrap_or_else(|| panic!("{id} is not in {files:?}")).clone(), shown]
}

pub(super) fn wait_times_of_a_task_are_in_its_response_and_diagnostics() {
    let folder = tempfile();
    let trace = folder.display().to_string();
    let long = "(return (loop [i 0] (if (< i 300000) (recur (inc i)) i)))";
    let planner = replay(vec![json!({ "hang": true }), json!({ "say": long })]);
    let patient = ["--agentic-task-timeout-ms", "60000", "--program-timeout-ms", "60000", "--queue-timeout-ms", "400"];
    let flags = [&["--agentic-allow-writes", "--debug-tool", "--trace-dir", &trace, "--max-concurrent-calls", "1"], &patient[..]];
    let mut server = Peer::of(&mut with_planner("tasks", &planner, &flags.concat()));
    let send = |server: &mut Peer, id: u64| {
        let params = json!({ "name": "lisp_task", "arguments": { "task": "x" } });
        server.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string());
    };
    let receive = |server: &mut Peer| -> Value { serde_json::from_str(&server.receive()).expect("a line of JSON") };
    send(&mut server, 1);
    // This task is refused after its time in the queue.
    send(&mut server, 2);
    let refused = receive(&mut server);
    assert_eq!((&refused["id"], &refused["result"]["structuredContent"]["reason"]), (&json!(2), &json!("busy")), "{refused}");
    let waited = |found: &Value, name: &str| found[name].as_u64().unwrap_or(0);
    let metrics = |answer: &Value| answer["result"]["structuredContent"]["ptc_metrics"].clone();
    assert!(waited(&metrics(&refused), "queued_ms") >= 400, "{refused}");
    for found in diagnosed(&mut server, &folder, 2) {
        assert!(waited(&found, "queued_ms") >= 400, "{found}");
    }
    // This one begins when the first ends.
    send(&mut server, 3);
    server.ping();
    // It is in the queue now, at least for this time.
    std::thread::sleep(Duration::from_millis(60));
    server.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    let answer = receive(&mut server);
    assert_eq!((&answer["id"], &answer["result"]["structuredContent"]["status"]), (&json!(3), &json!("ok")), "{answer}");
    assert!(waited(&metrics(&answer), "queued_ms") >= 50, "{answer}");
    for found in diagnosed(&mut server, &folder, 3) {
        assert!(waited(&found, "queued_ms") >= 50 && waited(&found["ptc_metrics"], "queued_ms") >= 50, "{found}");
        assert_eq!(found["processor_wait_ms"], Value::Null, "{found}");
    }
    drop(server);
    // The program of a task waits for a processor while others compute.
    let planner = replay(vec![json!({ "say": long })]);
    let flags = [&["--agentic-allow-writes", "--debug-tool", "--trace-dir", &trace], &patient[..]];
    let mut server = Peer::of(&mut with_planner("tasks", &planner, &flags.concat()));
    for id in 100..100 + 3 * std::thread::available_parallelism().map_or(2, usize::from) {
        server.call(&id.to_string(), "(loop [] (recur))");
    }
    send(&mut server, 4);
    let answer = receive(&mut server);
    assert!(answer["id"] == 4 && waited(&metrics(&answer), "processor_wait_ms") > 0, "{answer}");
    for found in diagnosed(&mut server, &folder, 4) {
        assert!(waited(&found, "processor_wait_ms") > 0 && waited(&found["ptc_metrics"], "processor_wait_ms") > 0, "{found}");
    }
    let _ = std::fs::remove_dir_all(folder);
}
