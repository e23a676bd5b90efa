//! Reads arbitrary configs. Each one is read, or refused with an error, and every finding has a position in the text.
#![no_main]

mod findings;

use libfuzzer_sys::fuzz_target;
use ptc_compiler::config;
use ptc_compiler::diag::Diagnostics;
use ptc_compiler::source::{self, Sources};
use ptc_compiler::tree::Syntax;

fuzz_target!(|bytes: &[u8]| {
    let text = match source::decode(bytes.to_vec()) {
        Ok(text) => text,
        Err(why) => return assert!(!why.what.is_empty()),
    };
    let read = |syntax| {
        let (mut sources, mut diagnostics) = (Sources::default(), Diagnostics::default());
        let file = sources.add("upstreams.json", text.as_str());
        let config = config::read_as(&sources, file, syntax, &mut diagnostics);
        assert!(config.is_some() || diagnostics.has_errors(), "nothing is read and no error is reported");
        findings::check(&sources, file, &diagnostics);
        config.filter(|_| !diagnostics.has_errors())
    };
    let config = read(Syntax::CONFIG);
    if let Some(strict) = read(Syntax::STRICT) {
        let config = config.as_ref().expect("what is strict JSON can be read");
        assert_eq!(strict.digest, config.digest);
    }
    if let Some(config) = config {
        assert!(config.faulty.is_empty());
    }
});
