//! Runs a program, processes its value like a host, and checks its processor time and memory.

#[path = "../../tests/counting/mod.rs"]
mod counting;
#[path = "../../tests/watched/mod.rs"]
#[allow(dead_code, reason = "the sanitizer's own memory is resident too")]
mod watched;

use std::time::Duration;

use ptc_lisp::{ErrorKind, Limits, Program, Run, json, print};

/// Processor time that a run may use in addition to the allowance of each step (`STEP`). Both are long because of the sanitizer.
const FREE: Duration = Duration::from_millis(300);
const STEP: Duration = Duration::from_micros(50);

pub fn run(source: &str) {
    let Ok(program) = Program::compile(source) else { return };
    let limits = Limits::default().wall_clock(Duration::from_millis(500)).memory_bytes(16 << 20).steps(Some(200_000)).call_depth(200).parallel_workers(2);
    let most = Duration::from_secs(1) + limits.wall_clock * limits.parallel_workers as u32;
    let memory = limits.memory_bytes as i64;
    counting::take_peak();
    let (before, idle) = (counting::gauge(), watched::cpu_time(std::process::id()));
    // Runs on this thread, so that the fuzzer sees a panic. The sanitizer makes stack frames large.
    let outcome = Run::new(&program).limits(limits).gauge(counting::gauge).stack_bytes(6 << 20).execute();
    let computed = watched::cpu_time(std::process::id()).saturating_sub(idle);
    let grew = counting::take_peak() - before;
    let steps = u32::try_from(outcome.steps).unwrap_or(u32::MAX);
    assert!(grew <= memory / 5 * 6 + (8 << 20), "it allocated {grew} bytes");
    assert!(computed <= most, "it computed for {computed:?}");
    assert!(computed <= FREE + STEP.saturating_mul(steps), "it computed for {computed:?} in {steps} steps");
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
