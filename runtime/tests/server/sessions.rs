//! Sessions over a pipe: state that outlives a call, the effect of faults, and every limit.

use serde_json::{Value, json};

use crate::Test;
use crate::peer::Peer;

/// The tests of this module.
pub(crate) const TESTS: &[Test] = &[
    ("sessions::definitions_and_results_persist_across_calls", definitions_and_results_persist_across_calls),
    ("sessions::failed_evaluation_does_not_change_the_session", failed_evaluation_does_not_change_the_session),
    ("sessions::session_limits_are_enforced_with_a_message", session_limits_are_enforced_with_a_message),
    ("sessions::histories_retain_the_newest_entries_within_limits", histories_retain_the_newest_entries_within_limits),
    ("sessions::all_sessions_use_at_most_half_of_the_budget", all_sessions_use_at_most_half_of_the_budget),
    ("sessions::session_runs_one_evaluation_at_a_time", session_runs_one_evaluation_at_a_time),
    ("sessions::closing_a_session_ends_its_evaluation", closing_a_session_ends_its_evaluation),
    ("sessions::state_of_a_closed_session_is_not_stored", state_of_a_closed_session_is_not_stored),
    ("sessions::sessions_of_a_server_end_at_maximum_age_and_when_idle", sessions_of_a_server_end_at_maximum_age_and_when_idle),
    ("sessions::session_bindings_can_be_inspected_and_forgotten", session_bindings_can_be_inspected_and_forgotten),
    ("sessions::forgotten_names_release_memory", forgotten_names_release_memory),
    ("sessions::wrong_arguments_of_session_tools_are_named", wrong_arguments_of_session_tools_are_named),
    ("sessions::sessions_are_off_by_default", sessions_are_off_by_default),
];

const STRUCTURED: &[&str] = &["--sessions", "--response-profile", "structured"];

struct Client {
    server: Peer,
    next: u64,
}

impl Client {
    fn start(args: &[&str]) -> Client {
        Client { server: Peer::start(args), next: 0 }
    }

    fn send(&mut self, tool: &str, arguments: &Value) -> u64 {
        self.next += 1;
        let params = json!({ "name": tool, "arguments": arguments });
        self.server.send(&json!({ "jsonrpc": "2.0", "id": self.next, "method": "tools/call", "params": params }).to_string());
        self.next
    }

    fn receive(&self) -> (u64, Value) {
        let answer: Value = serde_json::from_str(&self.server.receive()).expect("a line of JSON");
        (answer["id"].as_u64().expect("an id"), answer["result"].clone())
    }

    /// Calls a tool and returns the result. No other call is running.
    fn result(&mut self, tool: &str, arguments: &Value) -> Value {
        let id = self.send(tool, arguments);
        let (answered, result) = self.receive();
        assert_eq!(answered, id);
        result
    }

    fn data(&mut self, tool: &str, arguments: &Value) -> Value {
        self.result(tool, arguments)["structuredContent"].clone()
    }

    fn open(&mut self) -> String {
        let opened = self.data("lisp_session_start", &json!({}));
        opened["session_id"].as_str().unwrap_or_else(|| panic!("{opened}")).to_owned()
    }

    fn eval(&mut self, session: &str, program: &str) -> Value {
        self.data("lisp_session_eval", &json!({ "session_id": session, "program": program }))
    }
}

fn definitions_and_results_persist_across_calls() {
    let mut client = Client::start(STRUCTURED);
    let (one, two) = (client.open(), client.open());
    assert!(one.starts_with("ptcs_") && one.len() == 29 && one != two, "{one} {two}");
    let defined =
        client.result("lisp_session_eval", &json!({ "session_id": one, "program": "(def x 10) (defn twice [n] (* 2 n))" }));
    assert_eq!(defined["content"][0]["text"], "[stored: twice, x]");
    let data = &defined["structuredContent"];
    assert_eq!(data["memory"], json!({ "changed_keys": ["twice", "x"], "stored_keys": ["twice", "x"] }));
    assert_eq!((&data["session"]["turn"], &data["session"]["binding_count"]), (&json!(1), &json!(2)));
    assert_eq!(client.eval(&one, "(twice x)")["result"], "user=> 20");
    assert_eq!(client.eval(&one, "(inc *1)")["result"], "user=> 21");
    assert_eq!(client.eval(&one, "[*1 *2]")["result"], "user=> [21 20]");
    let changed = client.result("lisp_session_eval", &json!({ "session_id": one, "program": "(def x 11) (twice x)" }));
    assert_eq!(changed["content"][0]["text"], "user=> 22\n[stored: x]");
    // Neither another session nor a call without a session sees the definition.
    for answer in [client.eval(&two, "x"), client.data("lisp_eval", &json!({ "program": "x" }))] {
        assert_eq!(answer["status"], "error", "{answer}");
    }
    let with_context =
        json!({ "session_id": one, "program": "(+ x data/n)", "context": { "n": 1 }, "output_schema": { "type": "integer" } });
    assert_eq!(client.data("lisp_session_eval", &with_context)["validated"], 12);
    assert_eq!(client.eval(&one, "(nil? data/n)")["result"], "user=> true", "a context is of one call");
}

fn failed_evaluation_does_not_change_the_session() {
    let mut client = Client::start(STRUCTURED);
    let id = client.open();
    client.eval(&id, "(def x 1)");
    for (program, reason) in [
        ("(def x 2) (def y 2) (/ 1 0)", "runtime_error"),
        ("(def x 2) (fail \"no\")", "fail"),
        ("(def x", "parse_error"),
        ("(def x 2) (loop [] (recur))", "timeout"),
    ] {
        let failed = client.eval(&id, program);
        assert_eq!((&failed["status"], &failed["reason"]), (&json!("error"), &json!(reason)), "{failed}");
        assert_eq!((&failed["session"]["turn"], &failed["session"]["eval_status"]), (&json!(1), &json!("idle")), "{failed}");
    }
    let mismatched = json!({ "session_id": id, "program": "(def x 2) \"x\"", "output_schema": { "type": "integer" } });
    let failed = client.result("lisp_session_eval", &mismatched);
    assert_eq!(failed["structuredContent"]["reason"], "validation_error");
    assert!(failed["content"][0]["text"].as_str().is_some_and(|text| text.ends_with("\n[rolled back]")), "{failed}");
    assert_eq!(client.eval(&id, "[x *1]")["result"], "user=> [1 #'x]");
    assert_eq!(client.eval(&id, "y")["reason"], "runtime_error");
}

fn session_limits_are_enforced_with_a_message() {
    let caps = ["--max-sessions-per-owner", "2", "--max-session-bindings", "3", "--max-session-binding-bytes", "20000"];
    let more =
        ["--max-session-memory-bytes", "40000", "--max-session-history-entry-bytes", "4096", "--max-session-print-entries", "2"];
    let mut client = Client::start(&[STRUCTURED, &caps, &more].concat());
    let id = client.open();
    client.open();
    let third = client.data("lisp_session_start", &json!({}));
    assert_eq!(third["reason"], "session_limit_exceeded");
    assert!(third["message"].as_str().is_some_and(|text| text.contains("you have 2 sessions")), "{third}");
    let big = "(vec (range 1000))";
    for (program, cap) in [
        ("(def big (vec (range 2000)))".to_owned(), "one may take 20000"),
        (format!("(defn large [] [{}])", "1 ".repeat(1500)), "one may take 20000"),
        ("(def a 1) (def b 2) (def c 3) (def d 4)".to_owned(), "a session may have 3"),
        (format!("(def a {big}) (def b {big}) (def c {big})"), "a session may keep 40000"),
    ] {
        let refused = client.eval(&id, &program);
        assert_eq!(refused["reason"], "session_limit_exceeded", "{program}: {refused}");
        assert!(refused["message"].as_str().is_some_and(|text| text.contains(cap)), "{refused}");
    }
    assert_eq!(client.eval(&id, "(count (range 1000))")["result"], "user=> 1000");
    client.eval(&id, big);
    let kept = client.eval(&id, "(:lisp_session_preview *1)");
    assert_eq!(kept["result"], "user=> true", "a preview stands for a large result");
    client.eval(&id, "(println 1) (println 2) (println 3)");
    let shown = client.data("lisp_session_inspect", &json!({ "session_id": id, "view": "prints" }));
    assert_eq!(shown["prints"], json!(["2", "3"]));
}

fn histories_retain_the_newest_entries_within_limits() {
    let args = ["--max-sessions", "1", "--max-session-print-bytes", "10", "--max-session-upstream-call-entries", "2"];
    let mut client = Client { server: Peer::start_as("aggregator", &[STRUCTURED, &args].concat()), next: 0 };
    let id = client.open();
    let second = client.data("lisp_session_start", &json!({}));
    assert!(second["message"].as_str().is_some_and(|text| text.contains("1 sessions")), "{second}");
    client.eval(&id, r#"(println "aaaa") (println "bbbb") (println "cccc") (println "longer than all")"#);
    let mut look = |view: &str| client.data("lisp_session_inspect", &json!({ "session_id": id, "view": view }));
    assert_eq!(look("prints")["prints"], json!(["bbbb", "cccc"]));
    assert_eq!(look("limits")["usage"]["print_bytes"], 8);
    let calls = r#"(mapv (fn [_] (tool/call {:server "child" :tool "pid" :args {}})) (range 3))"#;
    assert_eq!(client.eval(&id, calls)["status"], "ok");
    let mut look = |view: &str| client.data("lisp_session_inspect", &json!({ "session_id": id, "view": view }));
    assert_eq!(look("tool_calls")["upstream_calls"].as_array().map(Vec::len), Some(2));

    let args = ["--max-session-upstream-call-bytes", "200"];
    let mut client = Client { server: Peer::start_as("aggregator", &[STRUCTURED, &args].concat()), next: 0 };
    let id = client.open();
    assert_eq!(client.eval(&id, calls)["status"], "ok");
    let shown = client.data("lisp_session_inspect", &json!({ "session_id": id, "view": "limits" }));
    let used = |what: &str| shown["usage"][what].as_u64().expect("a number");
    assert!((1..3).contains(&used("upstream_call_entries")) && used("upstream_call_bytes") <= 200, "{shown}");
    let debug = ["--sessions", "--response-profile", "debug"];
    let mut client = Client { server: Peer::start_as("aggregator", &debug), next: 0 };
    let id = client.open();
    let metrics = client.eval(&id, calls)["ptc_metrics"].clone();
    assert_eq!(metrics["upstream_call_count"], 3, "an evaluation in a session is measured too: {metrics}");
}

fn all_sessions_use_at_most_half_of_the_budget() {
    let mut args = STRUCTURED.to_vec();
    args.extend(["--memory-budget-bytes", "134217728", "--program-memory-limit-bytes", "100000000"]);
    args.extend(["--max-session-memory-bytes", "50000000", "--max-session-binding-bytes", "50000000"]);
    let mut client = Client::start(&args);
    let keep = r#"(def text (apply str (repeat 24 (apply str (repeat 1000000 "a"))))) (count text)"#;
    let sessions = [client.open(), client.open(), client.open()];
    for id in &sessions[..2] {
        assert_eq!(client.eval(id, keep)["result"], "user=> 24000000");
    }
    let refused = client.eval(&sessions[2], keep);
    assert_eq!(refused["reason"], "session_limit_exceeded", "{refused}");
    assert!(refused["message"].as_str().is_some_and(|text| text.contains("--memory-budget-bytes")), "{refused}");
    // The refused session is unchanged and usable. Memory that another session releases becomes available.
    assert!(client.eval(&sessions[2], "text")["message"].as_str().is_some_and(|text| text.contains("text")));
    client.data("lisp_session_close", &json!({ "session_id": sessions[0] }));
    assert_eq!(client.eval(&sessions[2], keep)["result"], "user=> 24000000");
}

fn session_runs_one_evaluation_at_a_time() {
    let mut client = Client::start(&[STRUCTURED, &["--program-timeout-ms", "600000", "--max-concurrent-calls", "4"]].concat());
    let id = client.open();
    let endless = client.send("lisp_session_eval", &json!({ "session_id": id, "program": "(loop [] (recur))" }));
    let busy = client.eval(&id, "1");
    assert_eq!(busy["reason"], "session_busy", "{busy}");
    let shown = client.data("lisp_session_inspect", &json!({ "session_id": id }));
    assert_eq!(shown["session"]["eval_status"], "running");
    assert_eq!(client.data("lisp_session_forget", &json!({ "session_id": id, "clear": ["memory"] }))["reason"], "session_busy");
    client
        .server
        .send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": endless } }).to_string());
    let after = loop {
        let after = client.eval(&id, "2");
        if after["reason"] != "session_busy" {
            break after;
        }
    };
    assert_eq!(after["result"], "user=> 2");
}

fn state_of_a_closed_session_is_not_stored() {
    let mut client = Client::start(STRUCTURED);
    let mut late = 0;
    for round in 0..300 {
        let id = client.open();
        // The last step of the program does not check for cancellation.
        let program = format!("(def x 1) (let [v (vec (range {}))] (compare v (vec v)))", (round % 30) * 200);
        let running = client.send("lisp_session_eval", &json!({ "session_id": id, "program": program }));
        client.send("lisp_session_close", &json!({ "session_id": id }));
        let (first, second) = (client.receive(), client.receive());
        if first.0 == running {
            continue;
        }
        late += 1;
        assert_eq!(first.1["structuredContent"]["closed"], true);
        let told = &second.1["structuredContent"];
        // An evaluation that completed before the session was closed is kept. Only its answer was late.
        let was_kept = told["status"] == "ok" && told["session"]["turn"] == 1;
        assert!(was_kept || (told["reason"] == "cancelled" && told.get("memory").is_none()), "{told}");
    }
    assert!(late > 0, "no session was closed while something ran in it");
}

fn closing_a_session_ends_its_evaluation() {
    let patient = ["--program-timeout-ms", "600000", "--upstream-call-timeout-ms", "600000", "--max-concurrent-calls", "2"];
    let heard = json!({ "program": r#"(:value (tool/call {:server "child" :tool "heard" :args {}}))"# });
    let hear = |client: &mut Client, wanted: &str| {
        let told = (0..10_000).map(|_| client.data("lisp_eval", &heard)["result"].to_string());
        told.into_iter().find(|told| told.contains(wanted)).unwrap_or_else(|| panic!("the upstream never heard of {wanted}"))
    };
    for (program, waits) in
        [(r#"(def x 1) (tool/call {:server "child" :tool "hang" :args {}})"#, true), ("(def x 1) (loop [] (recur))", false)]
    {
        // Each round has a new upstream without earlier calls.
        let mut client = Client { server: Peer::start_as("aggregator", &[STRUCTURED, &patient].concat()), next: 0 };
        let id = client.open();
        let running = client.send("lisp_session_eval", &json!({ "session_id": id, "program": program }));
        while client.data("lisp_session_inspect", &json!({ "session_id": id }))["session"]["eval_status"] != "running" {}
        if waits {
            hear(&mut client, "call");
        }
        let closing = client.send("lisp_session_close", &json!({ "session_id": id }));
        let (mut one, mut other) = (client.receive(), client.receive());
        if one.0 == running {
            std::mem::swap(&mut one, &mut other);
        }
        assert_eq!((one.0, &one.1["structuredContent"]["closed"]), (closing, &json!(true)));
        let (answered, ended) = (other.0, &other.1["structuredContent"]);
        assert_eq!((answered, &ended["reason"], &ended["session"]), (running, &json!("cancelled"), &json!(null)), "{ended}");
        assert_eq!(ended["message"], "the session was closed while this ran; lisp_session_start opens another");
        if waits {
            let told = hear(&mut client, "cancelled");
            assert!(told.contains("call cancelled") && !told.contains("another"), "{told}");
        }
        assert_eq!(client.eval(&id, "x")["reason"], "session_closed");
    }
}

/// Exact times are tested with the store, which takes the time as a parameter.
fn sessions_of_a_server_end_at_maximum_age_and_when_idle() {
    for short in ["--session-ttl-ms", "--session-idle-timeout-ms"] {
        let mut client = Client::start(&[STRUCTURED, &[short, "200"]].concat());
        let id = client.open();
        // Listing does not count as use, so that a session that is only listed expires too.
        while client.data("lisp_session_list", &json!({}))["count"] != 0 {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert_eq!(client.eval(&id, "1")["reason"], "session_closed", "{short}");
        assert_eq!(client.eval("ptcs_unknown", "1")["reason"], "session_not_found");
    }
}

fn session_bindings_can_be_inspected_and_forgotten() {
    let mut client = Client::start(STRUCTURED);
    let id = client.open();
    client.eval(&id, "(def x 10) (def cfg {:a 1}) (defn f [n] n) (println \"hi\") (range 1000)");
    let mut look = |view: &str| client.data("lisp_session_inspect", &json!({ "session_id": id, "view": view }));
    assert_eq!(look("memory")["stored_keys"], json!(["cfg", "f", "x"]));
    assert_eq!(look("overview")["text"].as_str().map(|text| text.contains("cfg: {:a 1}\nf: function\nx: 10")), Some(true));
    assert_eq!(look("history")["history"][0]["truncated"], true);
    assert_eq!(look("limits")["limits"]["max_bindings"], 200);
    assert_eq!(look("limits")["limits"]["max_idle_ms"], 900_000);
    let largest = look("limits")["top_bindings"].clone();
    assert_eq!((largest.as_array().map(Vec::len), &largest[2]), (Some(3), &json!({ "name": "x", "bytes": 16 })), "{largest}");
    assert_eq!(look("tool_calls")["upstream_calls"], json!([]));
    let forgot = client
        .data("lisp_session_forget", &json!({ "session_id": id, "bindings": ["x", "nope"], "clear": ["prints", "history"] }));
    assert_eq!((&forgot["removed_bindings"], &forgot["stored_keys"]), (&json!(["x"]), &json!(["cfg", "f"])));
    assert_eq!((&forgot["usage"]["print_entries"], &forgot["usage"]["history_count"]), (&json!(0), &json!(0)));
    // A number of another type is a different value.
    let changed = client.eval(&id, "(def n 2)")["memory"]["changed_keys"].clone();
    assert_eq!((changed, &client.eval(&id, "(def n 2.0)")["memory"]["changed_keys"]), (json!(["n"]), &json!(["n"])));
    client.data("lisp_session_forget", &json!({ "session_id": id, "bindings": ["n"] }));
    assert_eq!(client.eval(&id, "x")["status"], "error");
    assert_eq!(client.eval(&id, "(f cfg)")["result"], "user=> {:a 1}");
    let forgot = client.data("lisp_session_forget", &json!({ "session_id": id, "bindings": ["f", "f"], "clear": ["memory"] }));
    assert_eq!((&forgot["removed_bindings"], &forgot["stored_keys"]), (&json!(["cfg", "f"]), &json!([])));
    let closed = client.data("lisp_session_close", &json!({ "session_id": id, "reason": "done" }));
    assert_eq!(closed, json!({ "status": "ok", "closed": true, "reason": "done", "session_id": id }));
    assert_eq!(client.data("lisp_session_close", &json!({ "session_id": id }))["reason"], "session_closed");
}

fn forgotten_names_release_memory() {
    let mut client = Client::start(&[STRUCTURED, &["--max-session-memory-bytes", "120000"]].concat());
    let id = client.open();
    let none = json!({ "session_id": id, "bindings": [], "clear": ["history"] });
    let empty = client.data("lisp_session_forget", &none)["usage"]["memory_bytes"].clone();
    for round in 0..8 {
        let name = format!("{}{round}", "n".repeat(5_000));
        let defined = client.eval(&id, &format!("(def {name} 1) (defn f [] {name})"));
        assert_eq!(defined["status"], "ok", "round {round}: {defined}");
        let forgot =
            client.data("lisp_session_forget", &json!({ "session_id": id, "bindings": ["f", name], "clear": ["history"] }));
        assert_eq!(forgot["usage"]["memory_bytes"], empty, "round {round}: nothing is left of a name");
    }
}

fn wrong_arguments_of_session_tools_are_named() {
    let mut client = Client::start(STRUCTURED);
    let id = client.open();
    for (tool, arguments, message) in [
        ("lisp_session_start", json!({ "foo": 1 }), "unknown argument `foo`: it takes title, ttl_ms"),
        ("lisp_session_start", json!({ "ttl_ms": -1 }), "`ttl_ms` must be an integer from 1 to 1800000, got -1"),
        ("lisp_session_start", json!({ "title": 5 }), "`title` must be a string, got integer"),
        ("lisp_session_list", json!({ "x": 1 }), "unknown argument `x`: it takes none"),
        ("lisp_session_list", json!([]), "`arguments` must be an object, got array"),
        ("lisp_session_start", json!("x"), "`arguments` must be an object, got string"),
        ("lisp_session_close", json!({ "session_id": "" }), "`session_id` must be a non-empty string, got an empty one"),
        ("lisp_session_close", json!({ "session_id": 7 }), "`session_id` must be a string, got integer"),
        ("lisp_session_inspect", json!({}), "`session_id` is required: the id that lisp_session_start gave"),
        (
            "lisp_session_inspect",
            json!({ "session_id": id, "view": "bogus" }),
            "`view` is one of overview, memory, prints, tool_calls, history, limits, got \"bogus\"",
        ),
        (
            "lisp_session_forget",
            json!({ "session_id": id, "clear": ["bogus"] }),
            "`clear` knows memory, history, prints, tool_calls, upstream_calls, got \"bogus\"",
        ),
        ("lisp_session_forget", json!({ "session_id": id, "bindings": "x" }), "`bindings` must be an array of strings"),
        ("lisp_session_eval", json!({ "program": "1" }), "`session_id` is required: the id that lisp_session_start gave"),
        (
            "lisp_session_eval",
            json!({ "session_id": id, "program": "1", "outputSchema": { "type": "string" } }),
            "unknown argument `outputSchema`: it takes session_id, program, context, output_schema",
        ),
    ] {
        let refused = client.data(tool, &arguments);
        assert_eq!((&refused["reason"], &refused["message"]), (&json!("session_args_error"), &json!(message)), "{tool}");
    }
    let without = client.data("lisp_session_eval", &json!({ "session_id": id }));
    assert_eq!(without["reason"], "args_error");
    assert_eq!(client.eval(&id, "1")["result"], "user=> 1", "the session is not left busy");
}

fn sessions_are_off_by_default() {
    let mut client = Client::start(&["--response-profile", "structured"]);
    let refused = client.data("lisp_session_start", &json!({}));
    assert_eq!(refused["reason"], "unknown_tool");
    assert!(refused["feedback"].as_str().is_some_and(|text| text.contains("--sessions")), "{refused}");
    client.server.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    assert!(!client.server.receive().contains("lisp_session"));
}
