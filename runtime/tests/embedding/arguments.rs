//! Arguments of own tools count as memory of the program before a tool receives its copy of them.

use std::time::Duration;

use ptc_lisp::limits::Limits;
use ptc_lisp::print;
use ptc_runtime::embed::{Args, Builder, Engine, Request, Tool, ToolFailure};
use ptc_runtime::schedule::ScheduleLimits;

fn engine() -> Engine {
    let echo = |args: Args| -> Result<serde_json::Value, ToolFailure> { args.parse() };
    let limits = Limits::with_upstreams().wall_clock(Duration::from_secs(20));
    Engine::builder().limits(limits).tool(Tool::new("echo", "(note :any) -> :any", echo).unwrap()).build().unwrap()
}

fn run(engine: &Engine, program: &str) -> String {
    engine.run(Request::new(program)).value().map_or_else(ToString::to_string, print::readable)
}

#[test]
fn shared_arguments_above_the_limits_are_refused() {
    let engine = engine();
    for (note, expected) in [
        // A vector that is shared 30 times has 2^30 elements when it is encoded for a tool.
        ("(reduce (fn [v _] [v v]) 1 (range 30))", "rejected args: they are longer than 104857600 bytes as JSON"),
        ("(reduce (fn [v _] {:a v :b v}) 1 (range 30))", "rejected args: they are longer than 104857600 bytes as JSON"),
        // The encoded text is within the limit, the decoded copy exceeds it.
        ("(reduce (fn [v _] [v v]) 1 (range 22))", "need more than 104857600 bytes"),
    ] {
        let said = run(&engine, &format!("(tool/echo {{:note {note}}})"));
        assert!(said.contains(expected), "{note}: {said}");
    }
}

#[test]
fn more_than_a_thousand_arguments_are_refused() {
    let said = run(&engine(), "(tool/echo (into {} (map (fn [i] [(str \"k\" i) i]) (range 2000))))");
    assert!(said.contains("2000 arguments are given, and one call takes at most 1000"), "{said}");
}

#[test]
fn memory_of_arguments_is_released_after_each_call() {
    // Each call has 10 MB of arguments. All 12 together would exceed 100 MB.
    let program = "(count (map (fn [_] (count (:note (tool/echo {:note [s]})))) (range 12)))";
    let program = format!("(let [s (reduce (fn [s _] (str s s)) \"abcdefghij\" (range 20))] {program})");
    assert_eq!(run(&engine(), &program), "12");
}

#[test]
fn result_of_a_tool_counts_before_it_is_decoded() {
    let long = |_: Args| Ok::<_, ToolFailure>("x".repeat(2 << 20));
    let tool = Tool::new("long", "() -> :string", long).unwrap();
    let limits = Limits::default().memory_bytes(1 << 20).wall_clock(Duration::from_secs(20));
    let engine = Engine::builder().limits(limits).tool(tool).build().unwrap();
    let failure = engine.run(Request::new("(count (tool/long))")).evaluation.outcome.unwrap_err();
    assert!(failure.message.contains("the answers on their way need more than 1048576 bytes"), "{failure}");
}

#[test]
fn limits_of_zero_are_refused() {
    let refused = |builder: Builder| builder.build().err().map(|why| why.to_string()).unwrap_or_default();
    for (name, set) in [
        ("in_flight", (|limits| limits.in_flight.value = 0) as fn(&mut ScheduleLimits)),
        ("processors", |limits| limits.processors.value = 0),
        ("queue_timeout_ms", |limits| limits.queue_timeout_ms.value = 0),
        ("memory_budget_bytes", |limits| limits.memory_budget_bytes.value = 0),
        ("threads", |limits| limits.threads.value = 0),
    ] {
        let why = refused(Engine::builder().schedule(set));
        assert!(why.contains(&format!("the limit `{name}` of the scheduler is 0")), "{name}: {why}");
    }
    assert!(refused(Engine::builder().concurrent(0)).contains("the limit `in_flight`"));
    assert!(Engine::builder().schedule(|limits| limits.branches.value = 0).build().is_ok());
}
