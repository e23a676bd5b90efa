//! Generates well-formed programs from the table of builtins. Each run must end with a value or a fault.
#![no_main]

#[path = "../../tests/generate/mod.rs"]
#[allow(dead_code, reason = "the property tests use more of it")]
mod generate;
#[path = "run.rs"]
mod run;

use arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(source) = generate::program(&mut Unstructured::new(bytes)) {
        run::run(&source);
    }
});
