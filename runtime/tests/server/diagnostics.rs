//! `lisp_debug` and trace files of real servers.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::Test;
use crate::peer::Peer;

/// The tests of this module.
pub(crate) const TESTS: &[Test] = &[
    ("diagnostics::debug_tool_is_off_by_default", debug_tool_is_off_by_default),
    ("diagnostics::stats_recent_and_get_report_recorded_calls", stats_recent_and_get_report_recorded_calls),
    ("diagnostics::wrong_arguments_of_the_debug_tool_are_named", wrong_arguments_of_the_debug_tool_are_named),
    ("diagnostics::debug_responses_stay_within_their_byte_limit", debug_responses_stay_within_their_byte_limit),
    ("diagnostics::each_call_has_a_trace_file", each_call_has_a_trace_file),
    ("diagnostics::payload_policy_decides_what_traces_contain", payload_policy_decides_what_traces_contain),
    ("diagnostics::trace_folder_is_created", trace_folder_is_created),
    ("diagnostics::only_trace_files_are_removed", only_trace_files_are_removed),
    ("diagnostics::traced_metrics_equal_those_of_the_response", traced_metrics_equal_those_of_the_response),
    ("diagnostics::upstream_calls_are_traced_with_their_outcome", upstream_calls_are_traced_with_their_outcome),
    ("diagnostics::spans_of_a_timeline_have_consistent_times", spans_of_a_timeline_have_consistent_times),
    ("diagnostics::trace_has_the_position_of_a_failure", trace_has_the_position_of_a_failure),
    ("diagnostics::trace_of_a_killed_process_has_the_start_of_its_call", trace_of_a_killed_process_has_the_start_of_its_call),
    (
        "diagnostics::wait_times_of_a_program_are_in_its_response_and_diagnostics",
        wait_times_of_a_program_are_in_its_response_and_diagnostics,
    ),
];

fn call(server: &mut Peer, id: &Value, tool: &str, arguments: &Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments });
    server.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string());
    serde_json::from_str::<Value>(&server.receive()).expect("a line of JSON")["result"].clone()
}

fn debug(server: &mut Peer, arguments: &Value) -> Value {
    let result = call(server, &json!("debug"), "lisp_debug", arguments);
    assert_eq!(result["content"][0]["text"].as_str(), Some(result["structuredContent"].to_string().as_str()));
    result["structuredContent"].clone()
}

fn eval(server: &mut Peer, id: u64, program: &str) -> Value {
    call(server, &json!(id), "lisp_eval", &json!({ "program": program }))
}

fn debug_tool_is_off_by_default() {
    let mut server = Peer::start(&[]);
    let answer = call(&mut server, &json!(1), "lisp_debug", &json!({ "op": "stats" }));
    assert!(answer["isError"] == true && answer.to_string().contains("unknown_tool"), "{answer}");
}

fn stats_recent_and_get_report_recorded_calls() {
    let mut server = Peer::start(&["--debug-tool", "--response-profile", "slim", "--sessions"]);
    let nothing = debug(&mut server, &json!({ "op": "stats" }));
    assert_eq!(nothing["window"], json!({ "calls": 0, "from": null, "to": null }));
    assert_eq!(nothing["errors"], json!({ "by_reason": {} }));
    let program = "(println \"p\") (+ 1 2)";
    call(&mut server, &json!(4), "lisp_eval", &json!({ "program": program, "context": { "a": [1, 2] } }));
    eval(&mut server, 5, "(+");
    call(&mut server, &json!(6), "lisp_eval", &json!({}));
    eval(&mut server, 7, "(fail 1)");
    call(&mut server, &json!(8), "lisp_session_start", &json!({}));
    call(&mut server, &json!(9), "lisp_session_eval", &json!({ "session_id": "nope", "program": "1" }));
    call(&mut server, &json!(10), "another", &json!({}));

    let stats = debug(&mut server, &json!({ "op": "stats" }));
    let eval = &stats["by_tool"]["lisp_eval"];
    assert_eq!((&eval["calls"], &eval["ok"], &eval["error"]), (&json!(4), &json!(1), &json!(3)), "{stats}");
    assert_eq!(eval["error_rate"], 0.75);
    assert!(eval["duration_ms"]["p50"].is_u64() && eval["duration_ms"]["max"].is_u64(), "{stats}");
    let reasons = json!({ "args_error": 1, "fail": 1, "parse_error": 1, "session_not_found": 1 });
    assert_eq!(stats["errors"]["by_reason"], reasons);
    assert_eq!((&stats["ring_count"], &stats["ring_size"]), (&json!(6), &json!(500)), "neither its own calls nor unknown tools");
    assert_eq!((&stats["payload_policy"], &stats["redaction_applied"]), (&json!("summary"), &json!(true)));
    assert_eq!(stats.get("upstream_calls"), None);

    let recent = debug(&mut server, &json!({ "op": "recent", "limit": 3 }));
    let ids: Vec<_> = recent["calls"].as_array().expect("a list").iter().map(|call| call["request_id"].clone()).collect();
    assert_eq!((ids, &recent["count"]), (vec![json!("9"), json!("8"), json!("7")], &json!(3)));
    let errors = debug(&mut server, &json!({ "op": "recent", "errors_only": true, "since_seconds": 3600 }));
    assert_eq!(errors["count"], 4);

    let got = debug(&mut server, &json!({ "op": "get", "request_id": "4" }));
    let record = &got["record"];
    assert_eq!((&got["found"], &got["source"]), (&json!(true), &json!("ring_buffer")));
    assert_eq!(record["program"]["preview"], program);
    assert_eq!(record["program"]["sha256"], "9c6bb30db1f756e816b01069208fef1bf5c0ba9e6709114c1fe099411d54bb99");
    let keys = json!({ "a": { "type": "array", "count": 2 } });
    assert_eq!((&record["context"]["bytes"], &record["context"]["keys"]), (&json!(11), &keys));
    assert_eq!(record["protocol_version"], Value::Null, "it was never agreed on");
    assert_eq!((&record["result_bytes"], &record["prints_count"], &record["status"]), (&json!(8), &json!(1), &json!("ok")));
    assert_eq!(debug(&mut server, &json!({ "op": "get", "request_id": 4 }))["record"], *record);
    let missing = debug(&mut server, &json!({ "op": "get", "request_id": "nope" }));
    assert_eq!((&missing["found"], missing.get("record")), (&json!(false), None));
}

fn wrong_arguments_of_the_debug_tool_are_named() {
    let mut server = Peer::start(&["--debug-tool"]);
    for (arguments, message) in [
        (json!({}), "argument `op` is required (one of: stats, recent, get)"),
        (json!({ "op": "zap" }), "argument `op` must be one of stats, recent, get (got: \"zap\")"),
        (
            json!({ "op": "recent", "limits": 5 }),
            "unknown argument `limits`: it takes op, request_id, limit, errors_only, since_seconds",
        ),
        (json!({ "op": "recent", "limit": 0 }), "argument `limit` must be between 1 and 200 (got: 0)"),
        (json!({ "op": "recent", "limit": "x" }), "argument `limit` must be an integer (got: \"x\")"),
        (json!({ "op": "recent", "errors_only": "x" }), "argument `errors_only` must be a boolean (got: \"x\")"),
        (json!({ "op": "stats", "since_seconds": 90000 }), "argument `since_seconds` must be between 1 and 86400 (got: 90000)"),
        (json!({ "op": "get" }), "argument `request_id` is required for op=get"),
        (json!({ "op": "get", "request_id": true }), "argument `request_id` must be a string or an integer (got: boolean)"),
        (json!([1]), "`arguments` must be an object, got array"),
        (json!({ "op": "get", "request_id": "x".repeat(300) }), "argument `request_id` exceeds 256 bytes"),
    ] {
        let answer = call(&mut server, &json!(1), "lisp_debug", &arguments);
        let data = &answer["structuredContent"];
        assert_eq!((&data["reason"], &data["message"]), (&json!("args_error"), &json!(message)), "{answer}");
    }
}

fn debug_responses_stay_within_their_byte_limit() {
    let mut server = Peer::start(&["--debug-tool", "--max-debug-response-bytes", "1", "--debug-ring-size", "1"]);
    for id in 0..40 {
        eval(&mut server, id, &format!("\"{}\"", "x".repeat(300)));
    }
    // The minimum is ten records and 4 KiB.
    let stats = debug(&mut server, &json!({ "op": "stats" }));
    assert_eq!((&stats["ring_size"], &stats["ring_count"]), (&json!(10), &json!(10)));
    let recent = debug(&mut server, &json!({ "op": "recent" }));
    assert_eq!(recent["truncated"], true);
    assert!(recent.to_string().len() <= 4096 && recent["count"].as_u64().is_some_and(|count| count > 1), "{recent}");
}

/// Returns the files of a folder, oldest first, each as its lines.
pub(crate) fn traces(folder: &std::path::Path) -> Vec<Vec<Value>> {
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("the folder is there").map(|entry| entry.expect("readable").path()).collect();
    files.sort();
    let lines = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).expect("text");
        text.lines().map(|line| serde_json::from_str(line).expect("whole lines of JSON")).collect()
    };
    files.iter().map(lines).collect()
}

pub(crate) fn folder(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("ptc-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn each_call_has_a_trace_file() {
    let folder = folder("traces");
    let path = folder.to_str().expect("plain text");
    let mut server = Peer::start(&["--trace-dir", path, "--trace-max-files", "3", "--debug-tool"]);
    for id in 1..=5 {
        eval(&mut server, id, "(+ 1 2)");
    }
    let files = traces(&folder);
    assert_eq!(files.len(), 3, "the oldest are gone");
    let events: Vec<&str> = files[0].iter().map(|line| line["event"].as_str().expect("its name")).collect();
    assert_eq!(events, ["call.start", "span", "span", "call.success"]);
    assert_eq!(files[0][0]["request_id"], "3");
    for entry in std::fs::read_dir(&folder).expect("the folder is there") {
        let mode = entry.and_then(|entry| entry.metadata()).expect("readable").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "others may read it");
    }
    assert_eq!((&files[0][1]["span"], &files[0][2]["span"]), (&json!("analyze"), &json!("eval")));
    let got = debug(&mut server, &json!({ "op": "get", "request_id": "5" }));
    assert_eq!((&got["source"], &got["record"][0]["event"]), (&json!("trace_file"), &json!("call.start")));
    // A later process includes the files of earlier ones in its count.
    drop(server);
    let mut server = Peer::start(&["--trace-dir", path, "--trace-max-files", "2"]);
    call(&mut server, &json!("x"), "lisp_eval", &json!({}));
    let files = traces(&folder);
    assert_eq!((files.len(), &files[1][1]["event"], &files[1][1]["reason"]), (2, &json!("call.fail"), &json!("args_error")));
    drop(server);
    let _ = std::fs::remove_dir_all(&folder);
}

fn payload_policy_decides_what_traces_contain() {
    // These digests were computed with `sha256sum`.
    const PROGRAM: &str = "6a69ec7664d719176fb18545267a0dcffcb0292b99d812fe957928d120d6ab03";
    const CONTEXT: &str = "1d0681e4b12aeb3db2f80c5a5fd6fef31611779b311d6c7caa91afa250068b98";
    const RESULT: &str = "c97aa6980b97b39d7844a8d0773de3f980907b8361040b4f81e496a120fcc9a1";
    let folder = folder("policies");
    let path = folder.to_str().expect("plain text");
    for (policy, program, context, result) in [
        ("none", json!(null), json!({ "bytes": 16 }), json!(null)),
        ("summary", json!(null), json!({ "bytes": 16, "sha256": CONTEXT }), json!(null)),
        ("full", json!("[:seen data/word]"), json!({ "word": "plain" }), json!("user=> [:seen \"plain\"]")),
    ] {
        let mut server = Peer::start(&["--trace-dir", path, "--trace-payloads", policy, "--trace-max-files", "1"]);
        let arguments = json!({ "program": "[:seen data/word]", "context": { "word": "plain" } });
        call(&mut server, &json!(1), "lisp_eval", &arguments);
        let lines = traces(&folder).remove(0);
        assert_eq!((&lines[0]["program"]["bytes"], &lines[0]["program"]["text"]), (&json!(17), &program), "{policy}");
        assert_eq!(lines[0]["program"]["sha256"], PROGRAM, "{policy}");
        assert_eq!(lines[0]["program"].get("preview"), None, "{policy}");
        assert_eq!(lines[0]["context"], context, "{policy}");
        let end = lines.last().expect("lines");
        let digest = if policy == "none" { json!(null) } else { json!(RESULT) };
        assert_eq!((&end["result"], &end["result_sha256"]), (&result, &digest), "{policy}");
        let text = lines.iter().map(Value::to_string).collect::<String>();
        assert!(policy == "full" || !["plain", "seen", "word"].iter().any(|word| text.contains(word)), "{policy}: {text}");
    }
    let _ = std::fs::remove_dir_all(&folder);
}

fn only_trace_files_are_removed() {
    let folder = folder("foreign");
    let foreign = ["ptc-notes.jsonl", "ptc-report-2020.jsonl", "ptc-0.jsonl", "ptc-.jsonl", "ptc-00001-1-2-x.jsonl", "notes.txt"];
    for name in foreign {
        std::fs::write(folder.join(name), "{}\n").expect("a file");
    }
    let path = folder.to_str().expect("plain text");
    let mut server = Peer::start(&["--trace-dir", path, "--trace-max-files", "2", "--debug-tool"]);
    for id in 1..=5 {
        eval(&mut server, id, "(fail [\"some\" \"rows\"])");
    }
    assert!(foreign.iter().all(|name| folder.join(name).exists()));
    assert_eq!(std::fs::read_dir(&folder).expect("the folder is there").count(), foreign.len() + 2);
    // The value of `fail` is a result, so that files contain only its size.
    let got = debug(&mut server, &json!({ "op": "get", "request_id": "5" }));
    let end = got["record"].as_array().and_then(|lines| lines.last()).expect("an end");
    assert_eq!((&end["reason"], end.get("message"), &end["message_bytes"]), (&json!("fail"), None, &json!(15)), "{end}");
    // The ring buffer still has what is missing in a file.
    for entry in std::fs::read_dir(&folder).expect("the folder is there") {
        std::fs::write(entry.expect("readable").path(), "").expect("emptied");
    }
    let got = debug(&mut server, &json!({ "op": "get", "request_id": "5" }));
    assert_eq!((&got["source"], &got["record"]["message"]), (&json!("ring_buffer"), &json!("[\"some\" \"rows\"]")));
    drop(server);
    let _ = std::fs::remove_dir_all(&folder);
}

fn traced_metrics_equal_those_of_the_response() {
    let mut server = Peer::start_as("aggregator", &["--debug-tool"]);
    let programs =
        ["nil", "(doseq [i (range 300)] (println i))", "(println (apply str (repeat 5000 \"x\"))) 1", "(vec (range 20))"];
    for (id, program) in (1..).zip(programs) {
        let answer = eval(&mut server, id, program)["structuredContent"].clone();
        let record = debug(&mut server, &json!({ "op": "get", "request_id": id }))["record"].clone();
        assert_eq!((&record["ptc_metrics"], &record["truncated"]), (&answer["ptc_metrics"], &answer["truncated"]), "{program}");
        assert!(answer["ptc_metrics"].is_object(), "{answer}");
    }
}

fn trace_folder_is_created() {
    let around = folder("made");
    let folder = around.join("a/b");
    let mut server = Peer::start(&["--trace-dir", folder.to_str().expect("plain text")]);
    eval(&mut server, 1, "1");
    let mode = |path: &std::path::Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!((mode(&around.join("a")), mode(&folder)), (0o700, 0o700));
    std::fs::remove_dir_all(&around).expect("it goes");
    eval(&mut server, 2, "2");
    assert_eq!((traces(&folder).len(), &traces(&folder)[0][0]["request_id"]), (1, &json!("2")));

    // The folder cannot be created again. Each failed write is reported once.
    std::fs::remove_dir_all(&around).expect("it goes");
    std::fs::write(&around, "").expect("a file");
    let answer = eval(&mut server, 3, "3");
    assert_eq!(answer["content"][0]["text"], "user=> 3");
    server.signal(rustix::process::Signal::TERM);
    let (code, log) = server.end();
    assert_eq!((code.code(), log.matches("trace not written").count()), (Some(0), 1), "{log}");

    for (path, said) in [
        (around.clone(), "expected a folder, or a path where one can be made, found"),
        (around.join("below"), "cannot make the folder"),
    ] {
        let (code, log) = Peer::start(&["--trace-dir", path.to_str().expect("plain text")]).end();
        assert!(code.code() == Some(2) && log.contains("--trace-dir: ") && log.contains(said), "{code:?} {log}");
    }
    let _ = std::fs::remove_file(&around);
}

fn upstream_calls_are_traced_with_their_outcome() {
    let folder = folder("upstreams");
    let path = folder.to_str().expect("plain text");
    let mut server = Peer::start_as("aggregator", &["--debug-tool", "--trace-dir", path]);
    eval(&mut server, 1, "1");
    let text = "x".repeat(1000);
    eval(&mut server, 2, &format!(r#"(count (:value (tool/call {{:server "child" :tool "echo" :args {{:text "{text}"}}}})))"#));
    let stats = debug(&mut server, &json!({ "op": "stats" }));
    assert_eq!(stats["upstream_calls"]["total"], 1, "{stats}");
    let reduction = &stats["payload_reduction"];
    assert_eq!((&reduction["calls_with_metrics"], &reduction["total_upstream_result_bytes"]), (&json!(2), &json!(1002)));
    assert_eq!((&reduction["reduction_ratio"]["max"], &reduction["top_reducers"][0]["request_id"]), (&json!(91.09), &json!("2")));
    let files = traces(&folder);
    let spans: Vec<&Value> = files[1].iter().filter(|line| line["span"] == "upstream_call").collect();
    assert_eq!((spans.len(), &spans[0]["status"]), (1, &json!("ok")), "{files:?}");
    drop(server);
    let _ = std::fs::remove_dir_all(&folder);
}

fn spans_of_a_timeline_have_consistent_times() {
    let folder = folder("times");
    let mut server = Peer::start_as("aggregator", &["--trace-dir", folder.to_str().expect("plain text")]);
    eval(&mut server, 1, r#"(pmap (fn [t] (tool/call {:server "child" :tool "echo" :args {:text t}})) ["a" "b"])"#);
    let lines = traces(&folder).remove(0);
    let time = |line: &Value, name: &str| line[name].as_u64().unwrap_or_else(|| panic!("no {name} in {line}"));
    let span = |name: &str| lines.iter().filter(|line| line["span"] == name).cloned().collect::<Vec<_>>();
    let (analyze, eval, calls) = (span("analyze").remove(0), span("eval").remove(0), span("upstream_call"));
    let end = |line: &Value| time(line, "start_us") + time(line, "duration_us");
    assert!(end(&analyze) <= time(&eval, "start_us") + 1, "{lines:?}");
    assert_eq!(calls.len(), 2);
    for call in &calls {
        // Each number is rounded down separately.
        assert!(time(&eval, "start_us") <= time(call, "start_us") && end(call) <= end(&eval) + 2, "{lines:?}");
        assert_eq!(time(call, "duration_ms"), time(call, "duration_us") / 1000);
    }
    assert!(end(&eval) <= time(lines.last().expect("an end"), "duration_us") + 2, "{lines:?}");
    drop(server);
    let _ = std::fs::remove_dir_all(&folder);
}

fn trace_has_the_position_of_a_failure() {
    let folder = folder("failed");
    let path = folder.to_str().expect("plain text");
    let program = "(println \"before\")\n(+ 1 (count 5))";
    for (policy, told) in [("none", false), ("summary", false), ("full", true)] {
        let mut server = Peer::start(&["--trace-dir", path, "--trace-payloads", policy, "--trace-max-files", "1"]);
        eval(&mut server, 1, program);
        let end = traces(&folder).remove(0).pop().expect("lines");
        let (from, to) = (end["error_span"]["start"].as_u64(), end["error_span"]["end"].as_u64());
        let form = program.get(from.expect("a start") as usize..to.expect("an end") as usize);
        assert_eq!(form, Some("(count 5)"), "{policy}: {end}");
        let feedback = end["feedback"].as_str().is_some_and(|text| text.contains("(+ 1 (count 5))"));
        assert_eq!(feedback, told, "{policy}: {end}");
    }
    let mut server = Peer::start(&["--trace-dir", path, "--trace-payloads", "full", "--trace-max-files", "1"]);
    eval(&mut server, 1, "(println \"one\") (println \"two\")");
    assert_eq!(traces(&folder).remove(0).pop().expect("lines")["prints"], json!(["one", "two"]));
    drop(server);
    let _ = std::fs::remove_dir_all(&folder);
}

fn trace_of_a_killed_process_has_the_start_of_its_call() {
    let folder = folder("killed");
    let mut server = Peer::start(&["--trace-dir", folder.to_str().expect("plain text"), "--program-timeout-ms", "600000"]);
    server.call("1", "(loop [i 0] (recur (inc i)))");
    while traces(&folder).first().is_none_or(Vec::is_empty) {
        std::thread::yield_now();
    }
    server.signal(rustix::process::Signal::KILL);
    server.end();
    let files = traces(&folder);
    assert_eq!((files.len(), files[0].len(), &files[0][0]["event"]), (1, 1, &json!("call.start")));
    let _ = std::fs::remove_dir_all(&folder);
}

fn wait_times_of_a_program_are_in_its_response_and_diagnostics() {
    let folder = folder("waits");
    let loops = 3 * std::thread::available_parallelism().map_or(2, usize::from);
    let (path, most) = (folder.to_str().expect("plain text"), loops.to_string());
    let patient = ["--program-timeout-ms", "60000", "--queue-timeout-ms", "60000", "--max-concurrent-calls", &most];
    let args = ["--debug-tool", "--trace-dir", path, "--response-profile", "debug"];
    let mut server = Peer::start_as("aggregator", &[&args[..], &patient].concat());
    for id in 0..loops {
        server.call(&id.to_string(), "(loop [] (recur))");
    }
    // This program waits in the queue until one of the loops ends. It takes many time slices, between which it waits for a processor.
    server.call("500", "(loop [i 0] (if (< i 3000000) (recur (inc i)) i))");
    server.ping();
    // It is in the queue now, at least for this time.
    std::thread::sleep(std::time::Duration::from_millis(60));
    server.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}"#);
    let answer: Value = serde_json::from_str(&server.receive()).expect("a line of JSON");
    assert_eq!(answer["id"], 500, "{answer}");
    let waited = |found: &Value| {
        let is_long = |name: &str, least: u64| found[name].as_u64().is_some_and(|waited| waited >= least);
        assert!(is_long("queued_ms", 50) && is_long("processor_wait_ms", 1), "{found}");
    };
    waited(&answer["result"]["structuredContent"]["ptc_metrics"]);
    let recent = debug(&mut server, &json!({ "op": "recent" }));
    let is_it = |call: &&Value| call["request_id"] == "500";
    waited(recent["calls"].as_array().and_then(|calls| calls.iter().find(is_it)).expect("the call"));
    waited(traces(&folder).iter().filter_map(|lines| lines.last()).find(is_it).expect("its trace"));
    drop(server);
    let _ = std::fs::remove_dir_all(&folder);
}
