//! Reads arbitrary text. Each text is accepted or rejected with a position.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ptc_lisp::{Program, reader};

fuzz_target!(|text: &str| {
    if let Err(error) = reader::read(text) {
        assert!(error.position.is_some() && error.hint.is_some(), "{error}");
        let _ = error.render(text);
    }
    if let Err(error) = Program::compile(text) {
        assert!(error.position.is_some() && error.kind != ptc_lisp::ErrorKind::InternalError, "{error}");
        let _ = error.render(text);
    }
});
