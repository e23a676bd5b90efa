//! The entry points of the host, and hostile values for them.

/// How a program or a value reaches the server, and which request is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Via {
    /// `lisp_eval`.
    Eval,
    /// `lisp_eval` with an `output_schema`.
    Schema(&'static str),
    /// `lisp_session_eval`, in a session that all programs share.
    Session,
    /// `lisp_session_inspect` with a view, after the program ran in the session.
    Inspect(&'static str),
    /// `lisp_debug` with an operation, after the program ran in `lisp_eval`.
    Debug(&'static str),
    /// `lisp_task`, whose planner answers with the program.
    Task,
    /// An engine in a process of its own, whose tools are functions of that process.
    Embedded,
}

/// An entry point: a program in which `VALUE` stands for the hostile value.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) via: Via,
    pub(super) program: &'static str,
}

const fn entry(via: Via, program: &'static str) -> Entry {
    Entry { via, program }
}

/// The entry points, without the operations of the API, each of which is called with `{:v VALUE}`.
pub(super) const ENTRIES: &[Entry] = &[
    // The transports of MCP. The tool `hang` is not answered, `echo` returns its arguments, and `take` is not read.
    entry(Via::Eval, r#"(tool/call {:server "web" :tool "hang" :args {:v VALUE}})"#),
    entry(Via::Eval, r#"(tool/call {:server "web" :tool "echo" :args {:v VALUE}})"#),
    entry(Via::Eval, r#"(tool/call {:server "web" :tool "echo" :args VALUE})"#),
    entry(Via::Eval, r#"(tool/call {:server "stdio" :tool "hang" :args {:v VALUE}})"#),
    entry(Via::Eval, r#"(tool/call {:server "stdio" :tool "echo" :args {:v VALUE}})"#),
    entry(Via::Eval, r#"(tool/call {:server "stdio" :tool "echo" :args VALUE})"#),
    entry(Via::Eval, r#"(tool/call {:server "child" :tool "take" :args {:v VALUE}})"#),
    // Every part of a call, and the other forms of one.
    entry(Via::Eval, "(tool/call VALUE)"),
    entry(Via::Eval, r#"(tool/call {:server VALUE :tool "echo" :args {}})"#),
    entry(Via::Eval, r#"(tool/call {:server "web" :tool VALUE :args {}})"#),
    entry(Via::Eval, r#"(tool/call {:server "web" :tool "echo" :args {} :more VALUE})"#),
    entry(Via::Eval, r#"(tool/call {:server "api" :tool "query_form" :args VALUE})"#),
    entry(Via::Eval, r#"(tool/value {:server "web" :tool "echo" :args {:v VALUE}})"#),
    entry(Via::Eval, r#"(tool/value {:server "web" :tool VALUE :args {:v VALUE}})"#),
    entry(Via::Eval, r#"(tool/all {:server "web" :tool "echo" :args {:v VALUE}})"#),
    entry(Via::Eval, r#"(tool/all {:server "web" :tool "echo" :max VALUE})"#),
    entry(Via::Eval, r#"(tool/all {:server "api" :tool "query_form" :args VALUE})"#),
    // Discovery.
    entry(Via::Eval, "(doc VALUE)"),
    entry(Via::Eval, "(dir VALUE)"),
    entry(Via::Eval, "(dir 'api {:limit VALUE :offset VALUE})"),
    entry(Via::Eval, "(meta VALUE)"),
    entry(Via::Eval, "(ns-publics VALUE)"),
    entry(Via::Eval, "(apropos VALUE)"),
    entry(Via::Eval, "(apropos \"form\" {:limit VALUE})"),
    // The ways in which a program ends or hands over a value.
    entry(Via::Eval, "VALUE"),
    entry(Via::Eval, "[(println VALUE) (prn VALUE)]"),
    entry(Via::Eval, "(return VALUE)"),
    entry(Via::Eval, "(fail VALUE)"),
    entry(Via::Eval, "(step-done \"1\" VALUE)"),
    entry(Via::Eval, "(step-done VALUE \"done\")"),
    entry(Via::Eval, "(task \"1\" VALUE)"),
    entry(Via::Eval, "(task VALUE 1)"),
    entry(Via::Schema(r#"{"type":"string","pattern":"^(a|€)*$","maxLength":9}"#), "VALUE"),
    entry(Via::Schema(r#"{"type":"array","uniqueItems":true,"contains":{"const":-1}}"#), "VALUE"),
    entry(Via::Schema(r#"{"type":"object","additionalProperties":{"type":"integer"},"propertyNames":{"maxLength":3}}"#), "VALUE"),
    entry(Via::Schema(r##"{"items":{"$ref":"#"},"additionalProperties":{"$ref":"#"}}"##), "VALUE"),
    entry(Via::Schema(r#"{"enum":[1,"a",[2],{"b":3}]}"#), "VALUE"),
    entry(Via::Schema("{}"), "VALUE"),
    // Sessions.
    entry(Via::Session, "(def v VALUE)"),
    entry(Via::Session, "VALUE"),
    entry(Via::Session, "(do (println VALUE) (fn [] VALUE))"),
    entry(Via::Session, r#"(do (def v VALUE) (tool/call {:server "web" :tool "echo" :args {:v v}}))"#),
    entry(Via::Inspect("overview"), "(def v VALUE)"),
    entry(Via::Inspect("memory"), "(def v VALUE)"),
    entry(Via::Inspect("prints"), "(println VALUE)"),
    entry(Via::Inspect("history"), "VALUE"),
    // Diagnostics.
    entry(Via::Debug("get"), "[(println VALUE) VALUE]"),
    entry(Via::Debug("recent"), "(fail VALUE)"),
    entry(Via::Debug("stats"), r#"(tool/call {:server "web" :tool VALUE :args {:v VALUE}})"#),
    // Tasks.
    entry(Via::Task, "VALUE"),
    entry(Via::Task, "(return VALUE)"),
    entry(Via::Task, "(println VALUE)"),
    entry(Via::Task, "(fail VALUE)"),
    entry(Via::Task, r#"(tool/value {:server "web" :tool "echo" :args {:v VALUE}})"#),
    // Tools of an embedding process.
    entry(Via::Embedded, "(tool/any {:v VALUE})"),
    entry(Via::Embedded, "(tool/any VALUE)"),
    entry(Via::Embedded, "(tool/list {:v VALUE})"),
    entry(Via::Embedded, "(tool/hang {:v VALUE})"),
    entry(Via::Embedded, "VALUE"),
];

/// A hostile value: code before the entry point, the expression, and code around the entry point, in which `CALL` stands for it.
///
/// `DOUBLINGS` stands for the number of times that 16 bytes can be doubled until they fill a quarter of the memory limit, `MANY` for
/// the number of entries of a vector that fill half of it, but at most 500,000, and `SOME` for a hundredth of that.
#[derive(Clone, Copy)]
pub(super) struct Hostile {
    pub(super) before: &'static str,
    pub(super) value: &'static str,
    pub(super) around: &'static str,
    /// The value is `data/v` of this context instead of one that the program makes.
    pub(super) context: Option<&'static str>,
}

const fn made(before: &'static str, value: &'static str) -> Hostile {
    Hostile { before, value, around: "CALL", context: None }
}

const fn around(around: &'static str, value: &'static str) -> Hostile {
    Hostile { before: "", value, around, context: None }
}

const fn given(name: &'static str) -> Hostile {
    Hostile { before: "", value: "data/v", around: "CALL", context: Some(name) }
}

pub(super) const VALUES: &[Hostile] = &[
    // A long string.
    made(r#"(def s (reduce (fn [s _] (str s s)) "€€€€€a" (range DOUBLINGS)))"#, "s"),
    // A string of escapes.
    made(r#"(def s (reduce (fn [s _] (str s s)) "\u0001\"\\\n\u0001\"\\\n%/?&" (range DOUBLINGS)))"#, "s"),
    // One string, shared.
    made(r#"(def s (reduce (fn [s _] (str s s)) "€€€€€a" (range DOUBLINGS)))"#, "(vec (repeat 1000 s))"),
    // A long key, shared.
    made(r#"(def s (reduce (fn [s _] (str s s)) "€€€€€a" (range DOUBLINGS)))"#, "{:a {s 1} :b {s [{s 1} {s 1}]}}"),
    // A key that fits, shared.
    made(r#"(def m {(apply str (repeat 20000 " ")) nil})"#, "{:x (vec (repeat MANY m))}"),
    // A deeply shared list.
    made("(def v (reduce (fn [v _] [v v]) 1 (range 30)))", "v"),
    // A shared list whose text fits.
    made("(def v (reduce (fn [v _] [v v]) 1 (range 19)))", "v"),
    // Deeply shared maps.
    made("(def v (reduce (fn [v _] {:a v :b [v v]}) {:k 1} (range 30)))", "v"),
    // Shared lists of nil.
    made("(def a (vec (repeat SOME nil))) (def b (vec (repeat SOME a)))", "{:a (vec (repeat SOME b))}"),
    // 500,000 entries.
    made("(def v (vec (range 500000)))", "v"),
    // A list of many entries.
    made("(def v (vec (range MANY)))", "v"),
    // A map of many entries.
    made("(def v (zipmap (map str (range SOME)) (range SOME)))", "v"),
    // Deep nesting.
    made("(def v (reduce (fn [v _] [v]) 1 (range 200000)))", "v"),
    // Nesting of 9,990 levels.
    made("(def v (reduce (fn [v _] {:a v}) 1 (range 9990)))", "v"),
    // Keys that differ in case or dash.
    made(
        "",
        r#"(into {} (mapcat (fn [i] [[(str "k-" i) i] [(str "k_" i) i] [(str "K-" i) i] [(keyword (str "K_" i)) i]]) (range SOME)))"#,
    ),
    // An infinite sequence.
    made("", "(range)"),
    // An infinite sequence of nothing.
    made("", "(filter neg? (range))"),
    // An infinite sequence in a list.
    made("", "[(iterate (fn [v] [v v]) 1)]"),
    // Wide pmap.
    around("(count (pmap (fn [i] CALL) (range 2000)))", "i"),
    // Wide pmap with strings.
    around(r#"(let [s (apply str (repeat 20000 "a"))] (count (pmap (fn [i] CALL) (range 2000))))"#, "[s s s s]"),
    // Wide pmap with lists.
    around("(count (pmap (fn [i] CALL) (range 2000)))", "(vec (range (+ i SOME)))"),
    given("text"),
    given("list"),
    given("map"),
    given("nested"),
    given("keys"),
];

/// Requests in which `JSON` stands for one of the texts of [`json`].
pub(super) const REQUESTS: &[&str] = &[
    r#"{"name":"same","arguments":{"v":JSON}}"#,
    r#"{"name":"same","arguments":JSON}"#,
    r#"{"name":"checked","arguments":{"v":JSON}}"#,
    r#"{"name":JSON,"arguments":{}}"#,
    r#"{"name":"lisp_eval","arguments":{"program":JSON}}"#,
    r#"{"name":"lisp_eval","arguments":{"program":"data/v","context":JSON}}"#,
    r#"{"name":"lisp_eval","arguments":{"program":"1","output_schema":JSON}}"#,
    r#"{"name":"lisp_eval","arguments":{"program":"1","output_schema":{"properties":{"a":{"enum":[JSON]}},"enum":[JSON]}}}"#,
    r#"{"name":"lisp_eval","arguments":{"program":"1","more":JSON}}"#,
    r#"{"name":"lisp_session_start","arguments":{"title":JSON}}"#,
    r#"{"name":"lisp_session_eval","arguments":{"session_id":JSON,"program":"1"}}"#,
    r#"{"name":"lisp_session_inspect","arguments":{"session_id":SESSION,"view":JSON}}"#,
    r#"{"name":"lisp_session_forget","arguments":{"session_id":SESSION,"bindings":JSON}}"#,
    r#"{"name":"lisp_session_forget","arguments":{"session_id":SESSION,"bindings":[JSON,JSON]}}"#,
    r#"{"name":"lisp_session_close","arguments":{"session_id":"none","reason":JSON}}"#,
    r#"{"name":"lisp_debug","arguments":{"op":JSON}}"#,
    r#"{"name":"lisp_debug","arguments":{"op":"get","request_id":JSON}}"#,
    r#"{"name":"lisp_debug","arguments":{"op":"recent","limit":JSON}}"#,
    r#"{"name":"lisp_task","arguments":{"task":JSON}}"#,
    r#"{"name":"lisp_task","arguments":{"task":"x","context":{"v":JSON}}}"#,
    r#"{"name":"lisp_task","arguments":{"task":"x","context":JSON}}"#,
    r#"{"name":"lisp_task","arguments":{"task":"x","constraints":{"preferred_fields":JSON,"max_items":JSON}}}"#,
];

/// Names of the texts of [`json`].
pub(super) const TEXTS: &[&str] = &["text", "escapes", "list", "map", "nested", "keys"];

/// Returns a hostile JSON text of about `bytes` bytes.
pub(super) fn json(name: &str, bytes: usize) -> String {
    let entries = |each: usize| 0..bytes / each;
    match name {
        "text" => format!("\"{}\"", "€".repeat(bytes / 3)),
        "escapes" => format!("\"{}\"", "\\u0001".repeat(bytes / 6)),
        "list" => format!("[{}0]", "0,".repeat(bytes / 2 - 1)),
        "map" => format!("{{{}\"v\":0}}", entries(20).map(|i| format!("\"{i:x}\":{i},")).collect::<Vec<_>>().concat()),
        "keys" => {
            let entry = |i| format!("\"k-{i:x}\":0,\"k_{i:x}\":0,\"K-{i:x}\":0,");
            format!("{{{}\"v\":0}}", entries(33).map(entry).collect::<Vec<_>>().concat())
        }
        _ => "[".repeat(bytes / 2) + &"]".repeat(bytes / 2),
    }
}
