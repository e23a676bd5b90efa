//! Values that a program passes to `tool/call` stay within its limits of memory and time, over every transport.
//!
//! Each server is a separate process, so that its peak resident memory is that of one program.

use std::time::{Duration, Instant};

use crate::Test;
use crate::boundary::world::{command, service, start};
use crate::peer::{Peer, peak_kb};
use crate::web::Web;

/// The tests of this module.
pub(crate) const TESTS: &[Test] = &[
    ("outgoing::arguments_of_openapi_calls_stay_within_limits", arguments_of_openapi_calls_stay_within_limits),
    ("outgoing::arguments_over_http_stay_within_limits", arguments_over_http_stay_within_limits),
    (
        "outgoing::arguments_for_a_child_that_does_not_read_stay_within_limits",
        arguments_for_a_child_that_does_not_read_stay_within_limits,
    ),
    ("outgoing::frames_of_ended_programs_are_released", frames_of_ended_programs_are_released),
    ("outgoing::memory_of_completed_calls_is_released", memory_of_completed_calls_is_released),
    ("outgoing::arguments_are_checked_in_linear_time", arguments_are_checked_in_linear_time),
    ("outgoing::path_arguments_cannot_change_the_operation", path_arguments_cannot_change_the_operation),
    ("outgoing::response_flag_lowers_the_cap_of_an_entry", response_flag_lowers_the_cap_of_an_entry),
];

/// The program's limits are 100 MB and 1.5 s. It must end within 1.6 s, and the process must stay below the limit, a fifth of it, and
/// 16 MB for the server itself. The states of calls at once are large in unoptimised code, which also needs more time to make the
/// arguments.
const LIMITS: [&str; 4] =
    ["--program-memory-limit-bytes", "104857600", "--program-timeout-ms", if cfg!(debug_assertions) { "4500" } else { "1500" }];
/// Of unoptimised code more pages are resident.
const MAX_RESIDENT_KB: u64 = (100 + 100 / 5 + if cfg!(debug_assertions) { 24 } else { 16 }) * 1024;
/// Unoptimised code is slower between two checks of the deadline, and shares the processors with other tests.
const MAX_TIME: Duration = Duration::from_millis(if cfg!(debug_assertions) { 18_000 } else { 1_600 });

/// A value that a program passes: its name, the code before the call, the argument, and the expected errors of encoding it in an
/// address and as JSON.
struct Shape {
    name: &'static str,
    before: &'static str,
    value: &'static str,
    in_address: &'static str,
    as_json: &'static str,
}

const IN_ADDRESS: &str = "'v' makes the address of the request longer than 65534 bytes";
const AS_JSON: &str = "they are longer than 8388608 bytes as JSON";
const TIMEOUT: &str = "the program ran longer than";
const TOO_DEEP: &str = "it nests more than 10000 levels deep";

const SHAPES: &[Shape] = &[
    Shape {
        name: "a long string, shared",
        before: r#"(def s (reduce (fn [s _] (str s s)) "€€€€€" (range 21)))"#,
        value: "[s s s s s s s s s s s s s s s s]",
        in_address: IN_ADDRESS,
        as_json: AS_JSON,
    },
    Shape {
        name: "a deeply shared list",
        before: "(def v (reduce (fn [v _] [v v]) 1 (range 30)))",
        value: "v",
        in_address: IN_ADDRESS,
        as_json: AS_JSON,
    },
    Shape {
        name: "deeply shared maps",
        before: "(def v (reduce (fn [v _] {:a v :b [v v]}) {:k 1} (range 30)))",
        value: "v",
        in_address: IN_ADDRESS,
        as_json: AS_JSON,
    },
    Shape {
        name: "shared lists of nil",
        before: "(def a (vec (repeat 100000 nil))) (def b (vec (repeat 100000 a))) (def c (vec (repeat 100000 b)))",
        value: "{:a c}",
        in_address: IN_ADDRESS,
        as_json: AS_JSON,
    },
    Shape {
        name: "shared empty maps",
        before: "(def a (vec (repeat 100000 {}))) (def b (vec (repeat 100000 a)))",
        value: "{:a b :b b}",
        in_address: IN_ADDRESS,
        as_json: AS_JSON,
    },
    Shape {
        name: "500,000 entries",
        before: "(def v (vec (range 500000)))",
        value: "v",
        in_address: IN_ADDRESS,
        // The value fits and is sent, but never answered.
        as_json: TIMEOUT,
    },
    Shape {
        name: "deep nesting",
        before: "(def v (reduce (fn [v _] [v]) 1 (range 200000)))",
        value: "v",
        in_address: TOO_DEEP,
        as_json: TOO_DEEP,
    },
    Shape {
        name: "a map with a long key, shared",
        before: r#"(def s (reduce (fn [s _] (str s s)) "€€€€€" (range 20)))"#,
        value: "{:a {s 1} :b {s 1} :c {s [{s 1} {s 1}]}}",
        in_address: IN_ADDRESS,
        as_json: AS_JSON,
    },
    Shape {
        name: "a key that fits, shared by many empty entries",
        before: r#"(def k (apply str (repeat 20000 " "))) (def m {k nil})"#,
        value: "{:x (vec (repeat 60000 m))}",
        in_address: IN_ADDRESS,
        as_json: AS_JSON,
    },
];

/// Runs `program` in a new server and checks its limits.
fn assert_within_limits(web: &Web, what: &str, program: &str, expected: &str) {
    let mut server = start(web, &LIMITS);
    // The first answer shows that the server has started.
    assert!(server.ask("1", "(+ 1 2)").contains("user=> 3"), "{what}");
    let began = Instant::now();
    let answer = server.ask("2", program);
    let (took, peak) = (began.elapsed(), peak_kb(server.id()));
    assert!(peak <= MAX_RESIDENT_KB, "{what}: {peak} kB");
    assert!(took <= MAX_TIME, "{what}: {took:?}");
    assert!(answer.contains(expected), "{what}: {}", answer.get(..2_000).unwrap_or(&answer));
    assert!(server.ask_until_free("3", "(+ 1 2)").contains("user=> 3"), "{what}: the server goes on");
}

fn call(upstream: &str, tool: &str, args: &str) -> String {
    format!("(tool/call {{:server \"{upstream}\" :tool \"{tool}\" :args {args}}})")
}

/// Calls at once whose arguments need more than the limit together. Unoptimised code would not send 50 to a worker process and back
/// in time.
const CALLS: usize = if cfg!(debug_assertions) { 20 } else { 50 };

/// Returns a program that makes calls at once with 7 MB each.
fn calls_at_once(count: usize, upstream: &str, tool: &str) -> String {
    let call = call(upstream, tool, "{:v s}");
    format!(r#"(let [s (reduce (fn [s _] (str s s)) "abcdefg" (range 20))] (count (pmap (fn [_] {call}) (range {count}))))"#)
}

fn arguments_of_openapi_calls_stay_within_limits() {
    let web = service();
    for shape in SHAPES {
        let program = format!("{} {}", shape.before, call("api", "query_form", &format!("{{:v {}}}", shape.value)));
        assert_within_limits(&web, shape.name, &program, shape.in_address);
    }
    assert_within_limits(&web, "openapi, calls at once", &calls_at_once(CALLS, "api", "query_form"), IN_ADDRESS);
    assert_eq!(web.requests().len(), 0, "nothing is sent");
}

fn mcp_arguments_stay_within_limits(upstream: &str, tool: &str) {
    let web = service();
    let together = "the arguments of its calls and the answers on their way need more than 104857600 bytes";
    assert_within_limits(&web, &format!("{upstream}, calls at once"), &calls_at_once(CALLS, upstream, tool), together);
    for shape in SHAPES {
        let program = format!("{} {}", shape.before, call(upstream, tool, &format!("{{:v {}}}", shape.value)));
        assert_within_limits(&web, &format!("{upstream}, {}", shape.name), &program, shape.as_json);
    }
}

fn arguments_over_http_stay_within_limits() {
    mcp_arguments_stay_within_limits("web", "hang");
}

fn arguments_for_a_child_that_does_not_read_stay_within_limits() {
    mcp_arguments_stay_within_limits("child", "take");
}

fn frames_of_ended_programs_are_released() {
    let web = service();
    let mut server = start(&web, &["--program-memory-limit-bytes", "104857600", "--program-timeout-ms", "400"]);
    let ten = calls_at_once(10, "child", "take");
    for _ in 0..8 {
        let answer = server.ask_until_free("1", &ten);
        assert!(answer.contains("the program ran longer than 400 ms"), "{answer}");
    }
    // The first frame fills the child's pipe. The frames of ended programs must not be kept.
    let peak = peak_kb(server.id());
    assert!(peak <= MAX_RESIDENT_KB, "{peak} kB");
}

fn memory_of_completed_calls_is_released() {
    let web = service();
    let mut server = start(&web, &["--program-memory-limit-bytes", "104857600", "--program-timeout-ms", "60000"]);
    let call = call("web", "answer", "{:v s}");
    // The calls send 220 MB in sequence. The sending thread frees each request.
    let program = format!(
        r#"(let [s (reduce (fn [s _] (str s s)) "abcdefg" (range 20))] (reduce + (map (fn [_] (if (< 7000000 (:value {call})) 1 0)) (range 30))))"#
    );
    let answer = server.ask("1", &program);
    assert!(answer.contains("user=> 30"), "{answer}");
    let peak = peak_kb(server.id());
    assert!(peak <= MAX_RESIDENT_KB, "{peak} kB");
}

fn arguments_are_checked_in_linear_time() {
    let web = service();
    // The names come from the context, since a program would take longer to make them than the server to check them.
    let entries = (0..500_000).map(|index| format!("\"a-b_{index}\":1")).collect::<Vec<_>>().join(",");
    let limits =
        ["--max-frame-bytes", "67108864", "--max-context-bytes", "33554432", "--program-memory-limit-bytes", "104857600"];
    for (upstream, tool) in [("api", "query_form"), ("web", "hang"), ("child", "take")] {
        let mut server = start(&web, &limits);
        assert!(server.ask("1", "(+ 1 2)").contains("user=> 3"));
        let program = serde_json::to_string(&call(upstream, tool, "data/m")).expect("text is JSON");
        let began = Instant::now();
        server.send(&format!(
            r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"lisp_eval","arguments":{{"program":{program},"context":{{"m":{{{entries}}}}}}}}}}}"#
        ));
        let answer = server.receive();
        assert!(answer.contains("500000 arguments are given, and one call takes at most 1000"), "{upstream}: {answer}");
        assert!(began.elapsed() <= MAX_TIME, "{upstream}: {:?}", began.elapsed());
    }
    // Without a schema, names that differ only in hyphens and underscores are distinct.
    let mut server = start(&web, &LIMITS);
    let spelled = r#"(into {} (mapcat (fn [i] [[(keyword (str "a-" i)) i] [(keyword (str "a_" i)) i]]) (range 500)))"#;
    let answer = server.ask("1", &format!("(:ok {})", call("web", "answer", spelled)));
    assert!(answer.contains("user=> true"), "{answer}");
    let twice = server.ask("2", &call("web", "answer", r#"{:a 1 "a" 2}"#));
    assert!(twice.contains("rejected args: 'a' is given twice"), "{twice}");
}

fn path_arguments_cannot_change_the_operation() {
    let web = service();
    let mut server = start(&web, &[]);
    for (tool, args, expected) in [
        ("two", r#"{:a "." :b "."}"#, "'a' and 'b' would make the segment '..' of the path"),
        ("two", r#"{:a "." :b ""}"#, "'b' is part of the path and cannot be"),
        ("hidden", r#"{:name "."}"#, "'name' would make the segment '..' of the path"),
        ("acl", r#"{:name ".."}"#, "'name' is part of the path and cannot be"),
        ("acl", r#"{:name "."}"#, "'name' is part of the path and cannot be"),
        ("bare_format", r#"{:format "."}"#, "'format' would make the segment '..' of the path"),
        ("path_label", r#"{:v "."}"#, "'v' is part of the path and cannot be"),
        ("path_simple", r#"{:v ".."}"#, "'v' is part of the path and cannot be"),
        // Some servers decode a path before they split it, and would read `..` in these.
        ("two", r#"{:a "../" :b "."}"#, "'a' and 'b' would make the segment '..%2F.' of the path"),
        ("hidden", r#"{:name "/../x"}"#, "'name' would make the segment '.%2F..%2Fx' of the path"),
        ("path_simple", r#"{:v "../x"}"#, "'v' is part of the path and cannot be"),
        ("acl", r#"{:name "a\\..\\b"}"#, "'name' is part of the path and cannot be"),
    ] {
        let answer = server.ask("1", &call("api", tool, args));
        assert!(answer.contains(expected), "{tool} {args}: {answer}");
    }
    assert_eq!(web.requests().len(), 0, "nothing is sent");
    for (tool, args, target) in [
        ("two", r#"{:a "." :b "x"}"#, "/files/.x"),
        ("two", r#"{:a "x/" :b "..y"}"#, "/files/x%2F..y"),
        ("hidden", r#"{:name "profile"}"#, "/dot/.profile"),
        ("acl", r#"{:name "%2e%2e"}"#, "/files/%252e%252e?acl"),
        ("format", r#"{:id "." :format "json"}"#, "/pets/..json"),
        ("bare_format", r#"{:format "json"}"#, "/pets/.json"),
    ] {
        let answer = server.ask("1", &format!("(:target (:value {}))", call("api", tool, args)));
        assert!(answer.contains(&format!("/api/v1/tenant7{target}")), "{tool} {args}: {answer}");
    }
}

fn response_flag_lowers_the_cap_of_an_entry() {
    let web = service();
    let program = format!("(let [r {}] (or (:message r) (:ok r)))", call("api", "query_form", "{:v 1}"));
    for (entry, flag, expected) in [
        // Each answer has 5,000 bytes.
        ("2097152", None, "user=> true"),
        ("4194304", Some("2097152"), "user=> true"),
        ("2097152", Some("1000"), "the answer is larger than 1000 bytes (--max-upstream-response-bytes)"),
        ("1048576", Some("1000"), "the answer is larger than 1000 bytes (--max-upstream-response-bytes)"),
        ("1000", None, "the answer is larger than 1000 bytes (max_response_bytes)"),
        ("1000", Some("8000000"), "the answer is larger than 1000 bytes (max_response_bytes)"),
        ("1000", Some("2097152"), "the answer is larger than 1000 bytes (max_response_bytes)"),
        ("1000", Some("1000"), "the answer is larger than 1000 bytes (max_response_bytes)"),
    ] {
        let mut command = command(&web, &[]);
        command.env("BOUNDARY_CAP", entry);
        if let Some(flag) = flag {
            command.args(["--max-upstream-response-bytes", flag]);
        }
        let answer = Peer::of(&mut command).ask("1", &program);
        assert!(answer.contains(expected), "entry {entry}, flag {flag:?}: {answer}");
    }
}
