//! Overlapping calls of one program.

use std::sync::Arc;

use ptc_catalog::{Era, McpStdio, Transport};
use ptc_lisp::Value;
use ptc_lisp::host::{Discovery, Host, Reply, WaitOutcome};
use ptc_lisp::limits::Limits;
use ptc_runtime::upstream::WaitLimits;

use crate::peer;
use crate::world::{World, tool, upstream};

fn run(world: &World, source: &str, limits: Limits) -> Value {
    world.evaluate(source, limits).unwrap()
}

fn a_peer(tools: Vec<ptc_catalog::Tool>) -> World {
    let spec = McpStdio { era: Some(Era::Handshake), ..peer::spec("plain") };
    World::with(vec![upstream("peer", Transport::McpStdio(spec), tools)], Vec::new(), |settings| {
        settings.call_timeout = std::time::Duration::from_secs(30);
    })
}

/// All threads of a program share its budgets, which must allow exactly the permitted number.
#[test]
fn budgets_are_exact_across_threads() {
    let world = a_peer(vec![tool("echo")]);
    let limits = || Limits::default().wall_clock(std::time::Duration::from_mins(1));
    let programs = [
        (
            r#"(frequencies (map #(get % :reason :ok) (pmap (fn [_] (tool/call {:server "peer" :tool "echo"})) (range 75))))"#,
            "{:cap_exhausted 25 :ok 50}",
        ),
        (r#"(frequencies (pmap (fn [_] (nil? (dir "peer"))) (range 75)))"#, "{false 25 true 50}"),
        // Calls and discovery forms have separate budgets.
        (
            r#"(do (doall (pmap (fn [_] (dir "peer")) (range 30)))
                   (doall (pmap (fn [_] (tool/call {:server "peer" :tool "echo"})) (range 10)))
                   (budget/remaining))"#,
            r"{:catalog-ops 0 :tool-calls 40}",
        ),
    ];
    for (source, expected) in programs {
        assert_eq!(ptc_lisp::print::preview(&run(&world, source, limits()), 1000).text, expected, "{source}");
    }
}

/// Integers beyond the precision of a double are preserved in both directions, and so are the digits of decimals.
#[test]
fn numbers_round_trip_exactly() {
    let world = a_peer(vec![tool("args"), tool("structured")]);
    let program = r#"(let [there {:b 9007199254740993 :a -9223372036854775808 :c [18446744073709551615 0.1 1e300]}
                           back (:value (tool/call {:server "peer" :tool "args" :args there}))
                           big (get (:value (tool/call {:server "peer" :tool "structured"})) "n")]
                       [(= (:b there) (get back "b")) (= (:a there) (get back "a")) (= (:c there) (get back "c"))
                        (inc (get back "b")) (+ big 1)])"#;
    let found = ptc_lisp::print::preview(&run(&world, program, Limits::default()), 1000).text;
    assert_eq!(found, "[true true true 9007199254740994 12345678901234567890124]");
}

/// No peer lists its tools before all of them are asked. There are more peers than workers.
#[test]
fn listings_are_awaited_concurrently() {
    const PEERS: usize = 12;
    let script = r#"
        while read -r line; do
            id=${line#*\"id\":}; id=${id%%[,\}]*}
            case $line in
            *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
            *'"tools/list"'*)
                : >"$1/$$"
                until [ "$(ls "$1" | wc -l)" -ge "$2" ]; do sleep 0.05; done
                result='{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}' ;;
            *'"tools/call"'*) result='{"content":[{"type":"text","text":"done"}]}' ;;
            *) continue ;;
            esac
            printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
        done"#;
    let form = |name: &str, call: &str| {
        let place = std::env::temp_dir().join(format!("ptc-listings-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&place).unwrap();
        let dir: &'static str = place.to_str().unwrap().to_owned().leak();
        let args: &'static [&'static str] = vec!["-c", script, "sh", dir, PEERS.to_string().leak()].leak();
        let spec = || McpStdio { args, era: Some(Era::Handshake), ..McpStdio::new("sh") };
        let named = |at: usize| upstream(format!("p{at:02}").leak(), Transport::McpStdio(spec()), Vec::new());
        let world = World::live((0..PEERS).map(named).collect(), |_| {});
        let limits = Limits::default().wall_clock(std::time::Duration::from_mins(1));
        let source = format!("(pmap (fn [i] (let [p (str \"p\" (if (< i 10) \"0\" \"\") i)] {call})) (range {PEERS}))");
        let program = ptc_lisp::Program::compile(&source).unwrap();
        let host = world.program().0;
        let outcome = ptc_lisp::Run::new(&program).host(Arc::clone(&host) as _).limits(limits).execute_on_thread();
        std::fs::remove_dir_all(&place).unwrap();
        (ptc_lisp::print::readable(&outcome.result.unwrap_or_else(|fault| panic!("{fault}"))), host.calls())
    };
    let all = |one: &str| format!("[{}]", [one; PEERS].join(" "));
    let (value, calls) = form("calls", r#"(:value (tool/call {:server p :tool "t"}))"#);
    assert_eq!(value, all("\"done\""));
    // Each call began before the last peer listed its tools.
    let ended = calls.iter().map(|call| call.started + call.took).min().unwrap();
    assert!(calls.len() == PEERS && calls.iter().all(|call| call.status == "ok" && call.started < ended));
    assert_eq!(form("forms", "(count (dir p))").0, all("1"));
}

/// Two upstreams never list their tools. One program waits for the first, which is the maximum.
#[test]
fn programs_that_wait_for_a_list_count_as_waiting_for_the_upstream() {
    let spec = || McpStdio { args: &["-c", "while read -r line; do :; done"], ..McpStdio::new("sh") };
    let named = |name| upstream(name, Transport::McpStdio(spec()), Vec::new());
    let world = World::live(vec![named("first"), named("second")], |_| {});
    let patience = |wait: u64| WaitLimits {
        deadline: std::time::Instant::now().checked_add(std::time::Duration::from_millis(wait)),
        most_in_flight: Some(1),
        ..WaitLimits::default()
    };
    let waiting = world.upstreams.program(patience(60_000));
    let call = ptc_lisp::json::decode(br#"{"server":"first","tool":"t"}"#).unwrap();
    let ticket = waiting.submit(&call).unwrap();
    let reason = |server: &str| {
        let program = world.upstreams.program(patience(1_000));
        let call = ptc_lisp::json::decode(format!(r#"{{"server":"{server}","tool":"t"}}"#).as_bytes()).unwrap();
        let ticket = program.submit(&call).unwrap();
        match ticket.wait(None) {
            WaitOutcome::Reply(Reply::Failed { reason, .. }) => reason,
            other => panic!("{other:?}"),
        }
    };
    let began = std::time::Instant::now();
    while reason("first") != "upstream_busy" {
        assert!(began.elapsed() < std::time::Duration::from_secs(30), "the first program never waits");
    }
    assert_eq!(reason("second"), "timeout");
    assert_eq!(waiting.calls().len(), 1);
    // A discovery form does not wait either.
    let asked = std::time::Instant::now();
    let form = Discovery::Dir { reference: "first", limit: 10, offset: 0 };
    assert_eq!(world.upstreams.program(patience(60_000)).discover(form), Ok(Value::nil()));
    assert!(asked.elapsed() < std::time::Duration::from_secs(30));
    drop(ticket);
}

/// One branch waits for a list that never comes, while another one exhausts the memory of the program.
#[test]
fn wait_for_a_list_ends_when_memory_is_exhausted() {
    let spec = McpStdio { args: &["-c", "while read -r line; do :; done"], ..McpStdio::new("sh") };
    let world = World::live(vec![upstream("silent", Transport::McpStdio(spec), Vec::new())], |settings| {
        settings.call_timeout = std::time::Duration::from_mins(1);
    });
    let limits = Limits::default().wall_clock(std::time::Duration::from_mins(1)).memory_bytes(20 << 20);
    let began = std::time::Instant::now();
    let fault = world.evaluate(r#"(pcalls (fn [] (dir "silent")) (fn [] (vec (range 10000000))))"#, limits).unwrap_err();
    assert_eq!(fault.kind, ptc_lisp::ErrorKind::MemoryExceeded, "{fault}");
    assert!(began.elapsed() < std::time::Duration::from_secs(30), "{:?}", began.elapsed());
}

/// The peer answers no call before all of them are open, so that either all succeed or none.
#[test]
fn fifty_calls_are_in_flight_at_once() {
    let world = a_peer(vec![tool("gate")]);
    let limits = || Limits::default().wall_clock(std::time::Duration::from_mins(1));
    let call = r#"(tool/call {:server "peer" :tool "gate" :args {:open 50}})"#;
    for source in [
        format!("(count (filter :ok (pmap (fn [_] {call}) (range 50))))"),
        format!("(count (filter :ok (apply pcalls (repeat 50 (fn [] {call})))))"),
    ] {
        assert_eq!(run(&world, &source, limits()), Value::int(50));
    }
}

#[test]
fn arguments_of_calls_waiting_for_a_list_count_as_memory() {
    let spec = McpStdio { era: Some(Era::Handshake), ..peer::spec("plain") };
    let world = World::live(vec![upstream("peer", Transport::McpStdio(spec), Vec::new())], |_| {});
    let limits = Limits::default().wall_clock(std::time::Duration::from_mins(1)).memory_bytes(40 << 20);
    let program = r#"(let [s (reduce (fn [s _] (str s s)) "abcdefg" (range 20))]
                       (count (pmap (fn [_] (tool/call {:server "peer" :tool "t0" :args {:v s}})) (range 50))))"#;
    let fault = world.evaluate(program, limits).unwrap_err();
    assert_eq!(fault.kind, ptc_lisp::ErrorKind::MemoryExceeded, "{fault}");
    // The branch that fails may not have encoded its arguments yet, so that the message mentions only the program's values.
    assert!(fault.to_string().contains("need more than 41943040 bytes"), "{fault}");
}
