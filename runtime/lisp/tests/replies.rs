//! Replies that were allocated by other threads count as memory of the program while it holds them.

use std::sync::Arc;
use std::time::Duration;

use ptc_lisp::host::{Discovery, Fault, Host, PendingReply, Reply};
use ptc_lisp::{ErrorKind, Limits, Program, Run, Value};

/// Bytes of each answer.
const ANSWER: usize = 1 << 20;

/// A host that answers with a large text, from another thread.
struct Large;

impl Host for Large {
    fn submit(&self, _: &Value) -> Result<PendingReply, Fault> {
        let (answer, ticket) = PendingReply::pair();
        std::thread::spawn(move || answer.send(Reply::Text("x".repeat(ANSWER))));
        Ok(ticket)
    }

    fn discover(&self, _: Discovery<'_>) -> Result<Value, Fault> {
        Ok(Value::nil())
    }

    fn random(&self) -> u64 {
        4
    }
}

fn run(source: &str) -> (Result<Value, ErrorKind>, u64) {
    let program = Program::compile(source).unwrap_or_else(|fault| panic!("{fault}"));
    let limits = Limits::default().wall_clock(Duration::from_mins(1)).memory_bytes(10 << 20);
    let outcome = Run::new(&program).limits(limits).host(Arc::new(Large)).gauge(crate::counting::gauge).execute_on_thread();
    (outcome.result.map_err(|error| error.kind), outcome.peak_bytes)
}

#[test]
fn retained_replies_count_toward_memory_limit() {
    for source in [
        "(count (mapv (fn [_] (tool/call {})) (range 30)))",
        "(count (pmap (fn [_] (tool/call {})) (range 30)))",
        "(count (map :value (pmap (fn [_] (tool/call {})) (range 30))))",
    ] {
        assert_eq!(run(source).0, Err(ErrorKind::MemoryExceeded), "{source}");
    }
    let (value, peak) = run("(count (mapv (fn [_] (tool/call {})) (range 5)))");
    assert_eq!(value, Ok(Value::int(5)));
    assert!(peak > 5 * ANSWER as u64, "{peak}");
}

#[test]
fn dropped_replies_do_not_change_available_memory() {
    let many = "(reduce (fn [n _] (+ n (count (:value (tool/call {}))))) 0 (range 100))";
    assert_eq!(run(many).0, Ok(Value::from(100 * ANSWER as i64)));
    // Dropped replies neither reduce nor extend the available memory.
    let then = |kb: usize| run(&format!("(do {many} (count (mapv (fn [i] (apply str (repeat 1024 \"x\"))) (range {kb}))))")).0;
    assert_eq!(then(6_000), Ok(Value::int(6_000)));
    assert_eq!(then(12_000), Err(ErrorKind::MemoryExceeded));
}
