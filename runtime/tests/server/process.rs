//! What a server process does at its edges: cancellation, limits of frames, floods, and every way to end.

use std::io::Write;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::Test;
use crate::peer::Peer;

/// The tests of this module.
pub(crate) const TESTS: &[Test] = &[
    ("process::calls_do_not_see_each_other", calls_do_not_see_each_other),
    ("process::concurrent_calls_do_not_see_each_other", concurrent_calls_do_not_see_each_other),
    ("process::a_cancelled_call_stops_and_is_not_answered", a_cancelled_call_stops_and_is_not_answered),
    ("process::no_result_is_longer_than_its_envelope", no_result_is_longer_than_its_envelope),
    ("process::an_id_in_flight_is_refused", an_id_in_flight_is_refused),
    (
        "process::oversized_and_unreadable_frames_do_not_end_the_connection",
        oversized_and_unreadable_frames_do_not_end_the_connection,
    ),
    ("process::ten_thousand_pipelined_calls_are_all_answered", ten_thousand_pipelined_calls_are_all_answered),
    ("process::the_end_of_input_ends_calls_and_process", the_end_of_input_ends_calls_and_process),
    ("process::exit_and_signals_end_calls_and_process", exit_and_signals_end_calls_and_process),
    ("process::payloads_are_in_no_log_above_debug", payloads_are_in_no_log_above_debug),
    ("process::nothing_but_answers_on_standard_output", nothing_but_answers_on_standard_output),
];

const ENDLESS: &str = "(loop [i 0] (recur (inc i)))";
const PATIENT: &[&str] = &["--program-timeout-ms", "600000", "--max-concurrent-calls", "2"];

fn ping(server: &mut Peer, id: u32) {
    server.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#));
    assert_eq!(server.receive(), format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
}

fn calls_do_not_see_each_other() {
    let mut server = Peer::start(&[]);
    assert!(server.ask("1", "(def secret 41) (+ secret 1)").contains("user=> 42"));
    let other = server.ask("2", "secret");
    assert!(other.contains("\"isError\":true") && other.contains("secret") && !other.contains("41"), "{other}");
}

fn concurrent_calls_do_not_see_each_other() {
    // One call has defined its name and runs on while another asks for it.
    let mut server = Peer::start(PATIENT);
    server.call("1", &format!("(def secret 41) {ENDLESS}"));
    let other = server.ask("2", "secret");
    assert!(other.contains("\"isError\":true") && !other.contains("41"), "{other}");
    drop(server);
    // Many calls define the same name, each to its own value, and look at it all the while.
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

fn a_cancelled_call_stops_and_is_not_answered() {
    let mut server = Peer::start(PATIENT);
    for id in ["7", "\"seven\""] {
        server.call(id, ENDLESS);
    }
    // Both places are taken now, and stay taken.
    assert!(server.ask("8", "1").contains("busy"));
    for id in ["7", "\"seven\""] {
        server.send(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"user"}}}}"#
        ));
    }
    // The places are given back: soon, but not before the evaluations have noticed.
    let answer = server.ask_until_free("9", "(+ 1 2)");
    assert!(answer.contains(r#""id":9"#) && answer.contains("user=> 3"), "{answer}");
}

fn no_result_is_longer_than_its_envelope() {
    // A byte of text takes six of JSON, and of printed lines it is those that count.
    let odd = r#"(apply str (repeat 1000 "\u0001"))"#;
    for (profile, most, lines) in [("slim", 32, 1), ("structured", 96, 2), ("debug", 512, 7)] {
        let mut server = Peer::start(&["--response-profile", profile]);
        let mut ask = |program: &str| {
            let answer = server.ask("1", program);
            assert!(answer.len() < most * 1024 + 100, "{profile}: {}", answer.len());
            let answer: Value = serde_json::from_str(&answer).expect("a whole line of JSON");
            let text = answer["result"]["content"][0]["text"].as_str().expect("text").to_owned();
            (text, answer["result"]["structuredContent"].clone())
        };
        let (text, content) = ask(&format!("(dotimes [i 7] (println {odd})) 1"));
        let shown = content["prints"].as_array().map_or(text.matches("\u{1}\n").count(), Vec::len);
        assert_eq!((shown, text.contains("user=> 1")), (lines, true), "{profile}");
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
    // What was printed goes first, where that leaves the rest whole.
    let content =
        validated(r#"(dotimes [i 50] (println (apply str (repeat 300 "p")))) (vec (repeat 8 (apply str (repeat 1990 "\""))))"#);
    assert_eq!((&content["prints"], &content["prints_truncated"]), (&Value::Null, &true.into()), "{content}");
    assert_eq!(content["validated"].as_array().map(Vec::len), Some(8), "{content}");
    // What was validated is told even where nothing else is.
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
    // A session is told of also where a value is cut short for the envelope.
    let id = ask("lisp_session_start", json!({}))["session_id"].clone();
    let program = r#"(def k 1) (println "hello") (apply str (repeat 100000 "\u0001"))"#;
    let content = ask("lisp_session_eval", json!({ "session_id": id, "program": program }));
    assert_eq!((&content["memory"]["changed_keys"], &content["session"]["turn"]), (&json!(["k"]), &json!(1)), "{content}");
    assert!(content["result"].as_str().is_some_and(|text| text.starts_with("user=> \"")), "{content}");
    // An exact value within its budget is told before its preview.
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
    // Depth is a length too: a client's parser gives up on the whole message.
    for (levels, is_there) in [(100, true), (101, false), (3_000, false)] {
        let content = validated(&format!("(nth (iterate vector 1) {levels})"));
        assert_eq!(content.get("validated").is_some(), is_there, "{levels}");
        assert_eq!(content["validated_bytes"].as_u64(), (!is_there).then_some(2 * levels + 1), "{levels}");
    }
}

fn an_id_in_flight_is_refused() {
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

fn the_end_of_input_ends_calls_and_process() {
    for call in [None, Some(ENDLESS)] {
        let mut server = Peer::start(PATIENT);
        if let Some(program) = call {
            server.call("1", program);
        }
        ping(&mut server, 2);
        drop(server.input.take());
        assert_eq!(server.rest(), [] as [&str; 0]);
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
        assert!(server.end().0.success(), "{end:?}");
    }
}

fn payloads_are_in_no_log_above_debug() {
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
        assert!(is_told || !log.contains("of-the-context"), "{level}: {log}");
    }
}

fn nothing_but_answers_on_standard_output() {
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
