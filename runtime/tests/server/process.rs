//! Limits of a server process: cancellation, sizes of frames, floods, and every way to end.

use std::io::{BufRead as _, BufReader, Write};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::peer::{Peer, limited, server};
use crate::{Test, canary};

/// The tests of this module.
pub(crate) const TESTS: &[Test] = &[
    ("process::calls_share_no_definitions", calls_share_no_definitions),
    ("process::concurrent_calls_share_no_definitions", concurrent_calls_share_no_definitions),
    ("process::cancelled_call_stops_without_a_response", cancelled_call_stops_without_a_response),
    ("process::calls_beyond_the_limit_wait_in_the_queue", calls_beyond_the_limit_wait_in_the_queue),
    ("process::result_is_truncated_to_its_maximum_size", result_is_truncated_to_its_maximum_size),
    ("process::id_in_flight_is_refused", id_in_flight_is_refused),
    ("process::long_id_is_refused_in_both_eras", long_id_is_refused_in_both_eras),
    (
        "process::oversized_and_unreadable_frames_do_not_end_the_connection",
        oversized_and_unreadable_frames_do_not_end_the_connection,
    ),
    ("process::ten_thousand_pipelined_calls_are_all_answered", ten_thousand_pipelined_calls_are_all_answered),
    ("process::end_of_input_ends_calls_and_process", end_of_input_ends_calls_and_process),
    ("process::exit_and_signals_end_calls_and_process", exit_and_signals_end_calls_and_process),
    ("process::payloads_are_logged_at_debug_level_only", payloads_are_logged_at_debug_level_only),
    (
        "process::debug_log_has_program_context_and_result_of_bounded_size",
        debug_log_has_program_context_and_result_of_bounded_size,
    ),
    ("process::panic_is_logged_through_the_redactor", panic_is_logged_through_the_redactor),
    ("process::time_limit_includes_reading_and_checking", time_limit_includes_reading_and_checking),
    ("process::cancellation_stops_reading_and_checking", cancellation_stops_reading_and_checking),
    ("process::long_unknown_name_is_refused_quickly", long_unknown_name_is_refused_quickly),
    ("process::servers_form_without_upstreams_has_a_hint", servers_form_without_upstreams_has_a_hint),
    ("process::validated_refuses_keys_that_are_not_names", validated_refuses_keys_that_are_not_names),
    ("process::special_form_is_not_hidden_by_a_local", special_form_is_not_hidden_by_a_local),
    ("process::standard_output_contains_only_responses", standard_output_contains_only_responses),
    ("process::unread_responses_retain_no_values", unread_responses_retain_no_values),
    ("process::program_without_a_free_stack_is_refused_as_busy", program_without_a_free_stack_is_refused_as_busy),
];

const ENDLESS: &str = "(loop [i 0] (recur (inc i)))";
const PATIENT: &[&str] = &["--program-timeout-ms", "600000", "--max-concurrent-calls", "2"];

fn ping(server: &mut Peer, id: u32) {
    server.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#));
    assert_eq!(server.receive(), format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
}

fn calls_share_no_definitions() {
    let mut server = Peer::start(&[]);
    assert!(server.ask("1", "(def secret 41) (+ secret 1)").contains("user=> 42"));
    let other = server.ask("2", "secret");
    assert!(other.contains("\"isError\":true") && other.contains("secret") && !other.contains("41"), "{other}");
}

fn concurrent_calls_share_no_definitions() {
    // One call has defined a name and keeps running while another one looks it up.
    let mut server = Peer::start(PATIENT);
    server.call("1", &format!("(def secret 41) {ENDLESS}"));
    let other = server.ask("2", "secret");
    assert!(other.contains("\"isError\":true") && !other.contains("41"), "{other}");
    drop(server);
    // Many concurrent calls define the same name with different values, and read it repeatedly.
    let mut server = Peer::start(&["--max-concurrent-calls", "8"]);
    for round in 0..20 {
        for call in 0..8 {
            let own = round * 8 + call;
            let look = "(loop [i 0] (cond (not= own n) [:foreign n] (< i 2000) (recur (inc i)) :else n))";
            server.call(&own.to_string(), &format!("(def n {own}) (let [own {own}] {look})"));
        }
        for _ in 0..8 {
            let answer: Value = serde_json::from_str(&server.receive()).expect("every line is JSON");
            assert_eq!(answer["result"]["content"][0]["text"], format!("user=> {}", answer["id"]), "{answer}");
        }
    }
}

fn cancelled_call_stops_without_a_response() {
    let mut server = Peer::start(PATIENT);
    for id in ["7", "\"seven\""] {
        server.call(id, ENDLESS);
    }
    // Both places are occupied.
    assert!(server.ask("8", "1").contains("busy"));
    for id in ["7", "\"seven\""] {
        server.send(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"user"}}}}"#
        ));
    }
    // The places are released once the evaluations notice the cancellation.
    let answer = server.ask_until_free("9", "(+ 1 2)");
    assert!(answer.contains(r#""id":9"#) && answer.contains("user=> 3"), "{answer}");
}

fn calls_beyond_the_limit_wait_in_the_queue() {
    let args = ["--program-timeout-ms", "600000", "--max-concurrent-calls", "1", "--response-profile", "structured"];
    let cancel = |id: u64| format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#);
    let mut server = Peer::start(&[&args[..], &["--queue-timeout-ms", "600000"]].concat());
    server.call("1", ENDLESS);
    for id in ["2", "3", "4"] {
        server.call(id, id);
    }
    // A request without a program is answered while calls wait.
    server.send(r#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#);
    assert!(server.receive().contains(r#""id":5"#));
    server.send(&cancel(3));
    server.send(&cancel(1));
    // The call that was cancelled in the queue is not answered. A place is free before its answer is written, so that the answers
    // of two short calls may change places.
    let mut ids: Vec<String> = (0..2)
        .map(|_| {
            let answer: Value = serde_json::from_str(&server.receive()).expect("a line of JSON");
            let id = answer["id"].to_string();
            assert_eq!(answer["result"]["structuredContent"]["result"], format!("user=> {id}"));
            id
        })
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, ["2", "4"]);
    let mut server = Peer::start(&[&args[..], &["--queue-timeout-ms", "200"]].concat());
    server.call("1", ENDLESS);
    let refused: Value = serde_json::from_str(&server.ask("2", "1")).expect("a line of JSON");
    let told = &refused["result"]["structuredContent"];
    assert_eq!((&told["reason"], &told["retry_after_ms"]), (&json!("busy"), &json!(200)), "{refused}");
}

fn result_is_truncated_to_its_maximum_size() {
    // One byte of text can take six bytes of JSON. The encoded bytes count for printed lines.
    let odd = r#"(apply str (repeat 1000 "\u0001"))"#;
    for (profile, most) in [("slim", 32), ("structured", 96), ("debug", 512)] {
        let mut server = Peer::start(&["--response-profile", profile]);
        let mut ask = |program: &str| {
            let answer = server.ask("1", program);
            assert!(answer.len() < most * 1024 + 100, "{profile}: {}", answer.len());
            let answer: Value = serde_json::from_str(&answer).expect("a whole line of JSON");
            let text = answer["result"]["content"][0]["text"].as_str().expect("text").to_owned();
            (text, answer["result"]["structuredContent"].clone())
        };
        let (text, content) = ask(&format!("(dotimes [i 7] (println {odd})) 1"));
        let shown = content["prints"].as_array().map_or(text.matches(" characters cut;").count(), Vec::len);
        assert_eq!((shown, text.contains("user=> 1")), (7, true), "{profile}");
        let (text, content) = ask(&format!("(vec (repeat 7 {odd}))"));
        assert_eq!(text.ends_with("[truncated]"), profile == "slim", "{profile}");
        assert!(profile == "slim" || content["status"] == "ok", "{content}");
    }
    let mut server = Peer::start(&["--response-profile", "structured"]);
    let mut validated = |program: &str| {
        let arguments = json!({ "program": program, "output_schema": { "type": "array" } });
        let params = json!({ "name": "lisp_eval", "arguments": arguments });
        server.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params }).to_string());
        let answer: Value = serde_json::from_str(&server.receive()).expect("a whole line of JSON");
        answer["result"]["structuredContent"].clone()
    };
    // Printed lines are dropped first, if the rest then fits.
    let content =
        validated(r#"(dotimes [i 50] (println (apply str (repeat 300 "p")))) (vec (repeat 8 (apply str (repeat 1990 "\""))))"#);
    assert_eq!((&content["prints"], &content["prints_truncated"]), (&Value::Null, &true.into()), "{content}");
    assert_eq!(content["validated"].as_array().map(Vec::len), Some(8), "{content}");
    // The validated value is reported even if everything else is dropped.
    let content = validated(r#"(vec (repeat 3000 "\u0001\u0001"))"#);
    assert_eq!((&content["output_truncated"], &content["validated_bytes"]), (&true.into(), &45_001.into()), "{content}");
    assert!(content["validated_preview"].as_str().is_some_and(|text| text.starts_with('[')), "{content}");
    let mut server = Peer::start(&["--sessions", "--response-profile", "structured"]);
    let mut ask = |tool: &str, arguments: Value| {
        let params = json!({ "name": tool, "arguments": arguments });
        server.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params }).to_string());
        let answer: Value = serde_json::from_str(&server.receive()).expect("a whole line of JSON");
        answer["result"]["structuredContent"].clone()
    };
    // The session is reported even if the value is truncated.
    let id = ask("lisp_session_start", json!({}))["session_id"].clone();
    let program = r#"(def k 1) (println "hello") (apply str (repeat 100000 "\u0001"))"#;
    let content = ask("lisp_session_eval", json!({ "session_id": id, "program": program }));
    assert_eq!((&content["memory"]["changed_keys"], &content["session"]["turn"]), (&json!(["k"]), &json!(1)), "{content}");
    assert!(content["result"].as_str().is_some_and(|text| text.starts_with("user=> \"")), "{content}");
    // An exact value within its budget has priority over its preview.
    let mut server = Peer::start(&["--response-profile", "debug", "--program-memory-limit-bytes", "50000000"]);
    let mut ask = |program: &str| {
        let arguments = json!({ "program": program, "output_schema": { "type": "array" } });
        let params = json!({ "name": "lisp_eval", "arguments": arguments });
        server.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params }).to_string());
        let line = server.receive();
        assert!(line.len() <= 512 * 1024 + 100, "{}", line.len());
        serde_json::from_str::<Value>(&line).expect("a whole line of JSON")["result"]["structuredContent"].clone()
    };
    let content = ask(r#"(vec (repeat 24000 "ab"))"#);
    assert_eq!((content["validated"].as_array().map(Vec::len), &content["truncated"]), (Some(24_000), &json!(true)), "whole");
    // Depth is limited too, since a client's parser would reject the whole message.
    for (levels, is_there) in [(100, true), (101, false), (3_000, false)] {
        let content = validated(&format!("(nth (iterate vector 1) {levels})"));
        assert_eq!(content.get("validated").is_some(), is_there, "{levels}");
        assert_eq!(content["validated_bytes"].as_u64(), (!is_there).then_some(2 * levels + 1), "{levels}");
    }
}

fn long_id_is_refused_in_both_eras() {
    let mut server = Peer::start(&[]);
    let stateless = r#","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}"#;
    for (method, params) in [("ping", ""), ("tools/list", stateless)] {
        for (length, is_taken) in [(254, true), (255, false)] {
            let id = "x".repeat(length);
            server.send(&format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"{method}"{params}}}"#));
            let answer: Value = serde_json::from_str(&server.receive()).expect("a line of JSON");
            let message = "Invalid Request: the id has 257 bytes, it may have 256; send a shorter id";
            let (found, error) = if is_taken { (json!(id), Value::Null) } else { (Value::Null, json!(message)) };
            assert_eq!((&answer["id"], &answer["error"]["message"]), (&found, &error), "{answer}");
            assert_eq!(answer["error"]["code"] == -32600, !is_taken, "{answer}");
        }
    }
}

fn id_in_flight_is_refused() {
    let mut server = Peer::start(PATIENT);
    server.call("60", ENDLESS);
    let answer = server.ask("60", "1");
    assert!(answer.contains("-32600") && answer.contains("already in flight"), "{answer}");
}

fn oversized_and_unreadable_frames_do_not_end_the_connection() {
    let mut server = Peer::start(&["--max-frame-bytes", "4096"]);
    server.send(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":"{}"}}"#, "x".repeat(200_000)));
    let answer = server.receive();
    assert!(answer.contains("-32700") && answer.contains("4096") && answer.contains("\"id\":null"), "{answer}");
    ping(&mut server, 2);
    server.input.as_mut().expect("open").write_all(b"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"\xff\"}\n\n   \n").expect("read");
    server
        .input
        .as_mut()
        .expect("open")
        .write_all(b"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\",\"x\":\"\xff\"}\n")
        .expect("read");
    for _ in 0..4 {
        assert!(server.receive().contains("-32700"));
    }
    ping(&mut server, 4);
    server.send("{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}\r");
    assert!(server.receive().contains("\"id\":5"));
}

fn ten_thousand_pipelined_calls_are_all_answered() {
    const CALLS: usize = 10_000;
    let mut server = Peer::start(&[]);
    let mut input = server.input.take().expect("open");
    let writer = std::thread::spawn(move || {
        for id in 0..CALLS {
            let arguments = r#"{"program":"(+ 1 2)"}"#;
            let line = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"lisp_eval","arguments":{arguments}}}}}"#
            );
            input.write_all(line.as_bytes()).and_then(|()| input.write_all(b"\n")).expect("the server reads");
        }
        input
    });
    let mut seen = vec![false; CALLS];
    let mut values = 0;
    for _ in 0..CALLS {
        let answer: Value = serde_json::from_str(&server.receive()).expect("every line is JSON");
        let id = answer["id"].as_u64().expect("ids come back") as usize;
        assert!(!std::mem::replace(&mut seen[id], true), "{id} came twice");
        let text = answer["result"]["content"][0]["text"].as_str().expect("text");
        assert!(text == "user=> 3" || text.starts_with("busy: "), "{text}");
        values += usize::from(text == "user=> 3");
    }
    assert!(values > 0);
    drop(writer.join().expect("all was sent"));
    assert!(server.end().0.success());
}

fn end_of_input_ends_calls_and_process() {
    for call in [None, Some(ENDLESS)] {
        let mut server = Peer::start(PATIENT);
        if let Some(program) = call {
            server.call("1", program);
        }
        ping(&mut server, 2);
        drop(server.input.take());
        // Calls without an answer by then are answered as cancelled.
        let rest = server.rest();
        assert_eq!(rest.len(), call.iter().count(), "{rest:?}");
        assert!(rest.iter().all(|answer| answer.contains("cancelled: the run was cancelled")), "{rest:?}");
        let (status, log) = server.end();
        assert!(status.success(), "{status}");
        assert!(log.contains("end of input"), "{log}");
    }
}

fn exit_and_signals_end_calls_and_process() {
    for end in [None, Some(Signal::TERM), Some(Signal::INT)] {
        let mut server = Peer::start(PATIENT);
        server.call("1", ENDLESS);
        ping(&mut server, 2);
        match end {
            None => server.send(r#"{"jsonrpc":"2.0","method":"exit"}"#),
            Some(signal) => server.signal(signal),
        }
        let (status, log) = server.end();
        assert!(status.success(), "{end:?}");
        assert_eq!(end.is_none(), log.contains(r#""ended","reason":"notification exit""#), "{log}");
    }
}

fn payloads_are_logged_at_debug_level_only() {
    for (level, is_told) in [("info", false), ("warn", false), ("debug", true)] {
        let mut server = Peer::start(&["--log-level", level]);
        for program in ["(str \"of-the-program\" data/k)", "(fail \"of-the-program\")", "(of-the-program"] {
            let arguments = json!({ "program": program, "context": { "k": "of-the-context" } });
            let params = json!({ "name": "lisp_eval", "arguments": arguments });
            server.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string());
            server.receive();
        }
        drop(server.input.take());
        let (_, log) = server.end();
        assert_eq!(log.contains("of-the-program"), is_told, "{level}: {log}");
        assert_eq!(log.contains("of-the-context"), is_told, "{level}: {log}");
    }
}

fn debug_log_has_program_context_and_result_of_bounded_size() {
    let mut server = Peer::start(&["--log-level", "debug"]);
    let long = "y".repeat(50_000);
    let program = format!("(str (count \"{long}\") data/k)");
    let params = json!({ "name": "lisp_eval", "arguments": { "program": program, "context": { "k": "of-the-context" } } });
    server.send(&json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params }).to_string());
    server.receive();
    drop(server.input.take());
    let (_, log) = server.end();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    let of = |event: &str| lines.iter().find(|line| line["event"] == event).unwrap_or_else(|| panic!("no {event}: {log}"));
    let text = |line: &Value, field: &str| line[field].as_str().unwrap_or_else(|| panic!("no {field}: {line}")).to_owned();
    let call = of("call");
    assert_eq!(call["id"], "7");
    let logged = text(call, "program");
    assert!(logged.starts_with("(str (count \"yyy") && logged.ends_with(" more bytes"), "{} bytes", logged.len());
    assert!(logged.len() < 20_000, "{} bytes", logged.len());
    assert_eq!(text(call, "context"), r#"{"k":"of-the-context"}"#);
    assert!(text(of("result"), "result").contains("50000of-the-context"), "{log}");
}

fn panic_is_logged_through_the_redactor() {
    let (mut command, _) = canary::start("panicking");
    let trigger = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("panic-{}", std::process::id()));
    let _ = std::fs::remove_file(&trigger);
    command.env(crate::ROLE, "panicking").env(PANIC_TRIGGER, &trigger);
    let mut server = Peer::of(&mut command);
    assert!(server.ask("1", "(+ 1 2)").contains('3'));
    std::fs::write(&trigger, "").expect("a file");
    while trigger.exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(server.ask("2", "(+ 1 3)").contains('4'));
    drop(server.input.take());
    let (status, log) = server.end();
    let _ = std::fs::remove_file(&trigger);
    assert!(status.success(), "{status}");
    assert!(!log.contains("b3arer"), "{log}");
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    let panics: Vec<&Value> = lines.iter().filter(|line| line["event"] == "panic").collect();
    let [panic] = *panics else { panic!("{log}") };
    assert_eq!((&panic["level"], &panic["message"]), (&json!("error"), &json!("found [REDACTED] where nothing was expected")));
    assert!(panic["place"].as_str().is_some_and(|place| place.contains("process.rs")), "{panic}");
}

/// Returns a program of about 12 MB that takes seconds to read and check.
fn large_program() -> String {
    format!("(do {} 1)", "(let [a 1 b (+ a 1)] (if a b {:k [a b]}))\n".repeat(300_000))
}

/// In a worker process the memory in which a program is read and checked counts towards the limit of its values.
const LARGE: [&str; 6] =
    ["--max-program-bytes", "20000000", "--max-frame-bytes", "40000000", "--program-memory-limit-bytes", "1073741824"];

/// Returns the processor time of a process in seconds.
fn cpu_seconds(server: &Peer) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.id())).expect("the server lives");
    let fields = stat.rsplit(')').next().expect("it has a name").split_whitespace();
    let ticks: Vec<f64> = fields.skip(11).take(2).map(|field| field.parse().expect("a number")).collect();
    ticks.iter().sum::<f64>() / 100.0
}

fn time_limit_includes_reading_and_checking() {
    let mut server = Peer::start(&[&LARGE[..], &["--program-timeout-ms", "300"]].concat());
    let answer = server.ask("1", &large_program());
    assert!(answer.contains("timeout"), "{answer}");
    assert!(answer.contains("the wall clock ran out while the program was read and checked"), "{answer}");
    assert!(server.ask("2", "(+ 1 2)").contains("user=> 3"));
}

fn cancellation_stops_reading_and_checking() {
    let mut server = Peer::start(&[&LARGE[..], PATIENT].concat());
    // This measures the time to receive and decode a message of this size without analysing a program.
    server.ask("0", &format!("; {}\n1", "x".repeat(12_000_000)));
    let before = cpu_seconds(&server);
    server.call("1", &large_program());
    server.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    // The thread of the cancelled call must become idle.
    assert!(server.ask("2", "(+ 1 2)").contains("user=> 3"));
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let first = cpu_seconds(&server);
    std::thread::sleep(std::time::Duration::from_millis(500));
    let rest = cpu_seconds(&server) - first;
    assert!(rest < 0.1, "still at work: {rest} s of 0.5 s, {} s before", first - before);
}

fn long_unknown_name_is_refused_quickly() {
    let mut server = Peer::start(&[]);
    server.ask("0", "(+ 1 2)");
    let before = cpu_seconds(&server);
    let answer = server.ask("1", &format!("({} 1)", "abcdefghij".repeat(6_000)));
    assert!(answer.contains("nothing is bound to"), "{answer}");
    let used = cpu_seconds(&server) - before;
    // A comparison with every builtin would take at least ten times as long.
    assert!(used < 0.5, "{used} s");
}

fn servers_form_without_upstreams_has_a_hint() {
    let mut server = Peer::start(&[]);
    let answer = server.ask("1", "(tool/servers)");
    assert!(answer.contains("no upstreams are configured"), "{answer}");
    assert!(answer.contains("compute with the language's functions") && !answer.contains("println"), "{answer}");
}

fn validated_refuses_keys_that_are_not_names() {
    let mut server = Peer::start(&["--response-profile", "structured"]);
    for (program, expected) in [
        ("{1 2}", "return: an integer as a key has no JSON form; make the keys strings or keywords"),
        ("{:a {true 2}}", "return.a: a boolean as a key has no JSON form"),
        ("{:a 1 \"b\" 2}", r#""validated":{"a":1,"b":2}"#),
    ] {
        let params = json!({ "name": "lisp_eval", "arguments": { "program": program, "output_schema": {} } });
        server.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string());
        let answer = server.receive();
        assert!(answer.contains(expected), "{program}: {answer}");
    }
}

fn special_form_is_not_hidden_by_a_local() {
    let mut server = Peer::start(&[]);
    assert!(server.ask("1", "(let [if inc] (if true 1 2))").contains("user=> 1"));
    assert!(server.ask("2", "(let [when vector] (when 1 2))").contains("user=> [1 2]"));
}

/// Environment variable with the path of a file. The process panics when the file appears.
const PANIC_TRIGGER: &str = "PTC_TEST_PANIC";

/// Starts a thread that panics with a secret in its message when the file appears, and then removes the file.
pub(crate) fn panic_when_triggered() {
    let Some(trigger) = std::env::var_os(PANIC_TRIGGER) else { return };
    std::thread::spawn(move || {
        while !std::path::Path::new(&trigger).exists() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let panicking = std::thread::spawn(|| panic!("found {} where nothing was expected", canary::BEARER));
        let _ = panicking.join();
        let _ = std::fs::remove_file(&trigger);
    });
}

fn standard_output_contains_only_responses() {
    let mut server = Peer::start(&["--log-level", "debug"]);
    server.ask("1", "(println \"hello\") 1");
    drop(server.input.take());
    assert_eq!(server.rest(), [] as [&str; 0]);
    let (_, log) = server.end();
    assert!(log.lines().count() >= 3);
    for line in log.lines() {
        assert!(serde_json::from_str::<Value>(line).is_ok_and(|line| line.is_object()), "{line}");
    }
}

/// The first answers fill the pipe and the queue behind it. Each later program has values of 8 MB.
fn unread_responses_retain_no_values() {
    const SMALL: usize = 60;
    const ALL: usize = 70;
    let args = ["--memory-budget-bytes", "50331648", "--program-memory-limit-bytes", "40000000", "--response-profile", "debug"];
    let mut command = server("plain");
    command.args(args).args(["--program-timeout-ms", "3000", "--queue-timeout-ms", "600000"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    let (mut input, output) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
    let mut call = |id: usize, program: &str| {
        let params = json!({ "name": "lisp_eval", "arguments": { "program": program } });
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        writeln!(input, "{call}").expect("the server reads");
    };
    (0..SMALL).for_each(|id| call(id, r#"(apply str (repeat 60000 "x"))"#));
    for id in SMALL..ALL {
        std::thread::sleep(Duration::from_millis(500));
        call(id, "(def large (vec (range 500000))) 1");
    }
    // After this time, a program that waits for memory has ended without it.
    std::thread::sleep(Duration::from_secs(4));
    let answers: Vec<String> = BufReader::new(output).lines().take(ALL).map(|line| line.expect("UTF-8")).collect();
    let failed: Vec<&String> = answers.iter().filter(|answer| answer.contains(r#""isError":true"#)).collect();
    assert!(failed.is_empty() && answers.len() == ALL, "{} of {}: {:?}", failed.len(), answers.len(), failed.first());
    drop(input);
    assert!(child.wait().expect("it ends").success());
}

fn program_without_a_free_stack_is_refused_as_busy() {
    const CALLS: usize = 100;
    // Each program has a stack of 18 MiB, of which it uses some pages.
    let flags = ["--program-timeout-ms", "2000", "--queue-timeout-ms", "60000", "--response-profile", "structured"];
    let mut server = Peer::of(&mut limited("ulimit -v 1200000", &server("plain"), &flags));
    for id in 0..CALLS {
        server.call(&id.to_string(), ENDLESS);
    }
    let mut busy = 0;
    for _ in 0..CALLS {
        let answer: Value = serde_json::from_str(&server.receive()).expect("a line of JSON");
        let told = &answer["result"]["structuredContent"];
        if told["reason"] == "busy" {
            assert_eq!(told["retry_after_ms"], 5_000, "{answer}");
            assert!(told["message"].as_str().is_some_and(|text| text.contains("no stack or thread")), "{answer}");
            busy += 1;
        } else {
            assert_eq!(told["reason"], "timeout", "{answer}");
        }
    }
    assert!(busy > 0, "every program had a stack");
    // The server lives on, with whatever address space is left.
    server.send(r#"{"jsonrpc":"2.0","id":1000,"method":"ping"}"#);
    assert!(server.receive().contains(r#""id":1000"#));
}
