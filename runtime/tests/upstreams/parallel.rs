//! Calls of one program that overlap.

use std::sync::Arc;

use ptc_catalog::{Era, McpStdio, Transport};
use ptc_lisp::limits::Limits;
use ptc_lisp::{Program, Run, STACK_BYTES, STACK_SLACK_BYTES, Value};

use crate::peer;
use crate::world::{World, tool, upstream};

fn run(world: &World, source: &'static str, limits: Limits) -> Value {
    let host = Arc::clone(&world.program().0);
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES + STACK_SLACK_BYTES);
    let outcome = thread.spawn(move || {
        let program = Program::compile(source).unwrap();
        Run::new(&program).host(host).limits(limits).execute().result.unwrap()
    });
    outcome.unwrap().join().unwrap()
}

/// The peer answers none of the calls before all of them are open, so that they succeed together or not at all.
#[test]
fn fifty_calls_are_open_at_once() {
    let spec = McpStdio { era: Some(Era::Handshake), ..peer::spec("plain") };
    let world = World::with(vec![upstream("peer", Transport::McpStdio(spec), vec![tool("gate")])], Vec::new(), |settings| {
        settings.call_timeout = std::time::Duration::from_secs(30);
    });
    let limits = || Limits { wall_clock: std::time::Duration::from_secs(60), ..Limits::default() };
    let call = r#"(tool/call {:server "peer" :tool "gate" :args {:open 50}})"#;
    for source in [
        format!("(count (filter :ok (pmap (fn [_] {call}) (range 50))))"),
        format!("(count (filter :ok (apply pcalls (repeat 50 (fn [] {call})))))"),
    ] {
        assert_eq!(run(&world, source.leak(), limits()), Value::int(50));
    }
}
