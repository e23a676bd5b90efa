//! Runs a program and looks at what it gave, as hosts do.

use std::time::Duration;

use ptc_lisp::{ErrorKind, Limits, Program, Run, json, print};

pub fn run(source: &str) {
    let Ok(program) = Program::compile(source) else { return };
    let limits = Limits {
        wall_clock: Duration::from_millis(500),
        memory_bytes: 16 << 20,
        steps: Some(200_000),
        call_depth: 200,
        parallel_workers: 2,
        ..Limits::default()
    };
    // On this thread, so that a panic is the fuzzer's to see. The sanitizer makes frames large.
    let outcome = Run::new(&program).limits(limits).stack_bytes(6 << 20).execute();
    match outcome.result {
        Ok(value) => {
            let shown = print::preview(&value, 1000);
            assert!(shown.text.len() <= 1000);
            if let Ok(text) = json::encode(&value, 100_000) {
                json::decode(text.as_bytes()).expect("what was written reads back");
            }
        }
        Err(error) => {
            assert!(error.kind != ErrorKind::InternalError && error.position.is_some(), "{error}");
            let _ = error.render(source);
        }
    }
}
