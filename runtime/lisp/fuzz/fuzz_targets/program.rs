//! Runs arbitrary text. Each text that compiles must end with a value or a fault.
#![no_main]

#[path = "run.rs"]
mod run;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| run::run(text));
