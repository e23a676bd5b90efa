//! Reads arbitrary output of an MCP server: its lines, its frames, its part of the handshake, its list of tools and its results.
#![no_main]

use std::cell::LazyCell;
use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use ptc_catalog::{Era, ListingLimits};
use ptc_runtime::fuzzing::upstream::{self, Message};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

/// Maximum bytes of a line.
const MAX_LINE: usize = 200;
/// Maximum bytes and tools of a list.
const LIMITS: ListingLimits = ListingLimits { max_bytes: 1_000, max_tools: 5 };

thread_local! {
    static RUNTIME: LazyCell<Runtime> = LazyCell::new(|| Builder::new_current_thread().enable_time().build().expect("a runtime"));
}

fuzz_target!(|output: &[u8]| {
    check_lines(output);
    for line in output.split(|byte| *byte == b'\n') {
        check_frames(line);
        if let Ok(text) = str::from_utf8(line) {
            check_text(text);
        }
    }
    check_listing(output);
});

fn check_lines(output: &[u8]) {
    let lines = upstream::lines(output, output.len(), MAX_LINE);
    for chunk in [1, 7, 64] {
        assert_eq!(upstream::lines(output, chunk, MAX_LINE), lines);
    }
    let written: Vec<&[u8]> = output.split(|byte| *byte == b'\n').collect();
    assert_eq!(lines.len(), written.len() - 1, "the last line has no end");
    for (read, written) in lines.iter().zip(written) {
        match read {
            Ok(line) => assert!(line == written && line.len() <= MAX_LINE),
            Err((id, bytes)) => {
                assert!(*bytes == written.len() as u64 && written.len() > MAX_LINE);
                assert_eq!(*id, upstream::scanned_id(written.chunks(3)));
            }
        }
    }
}

/// Whether the scanner reads the id of this object like a parser: neither the name nor the id is written with escapes, and no
/// name is repeated, which is an error for the parser.
fn is_scannable(line: &[u8]) -> bool {
    !line.contains(&b'\\')
}

fn check_frames(line: &[u8]) {
    let Some(messages) = upstream::messages(line) else { return };
    let scanned = upstream::scanned_id([line]);
    assert_eq!(upstream::scanned_id(line.chunks(1)), scanned);
    let is_batch = line.trim_ascii_start().starts_with(b"[");
    if let ([message], false, true) = (messages.as_slice(), is_batch, is_scannable(line)) {
        match message {
            Message::Response(id, _) => assert_eq!(scanned, Some(*id)),
            Message::Unaddressed(_) => assert_eq!(scanned, None),
            Message::Request(..) | Message::Other => {}
        }
    }
    for message in messages {
        match message {
            Message::Response(_, Ok(result)) => {
                if let Ok(len) = upstream::payload_len(result.clone()) {
                    assert!(len <= result.len());
                }
            }
            Message::Response(_, Err(error)) | Message::Unaddressed(error) => assert!(!error.is_empty() && error.len() <= 3_000),
            Message::Request(id, answer) => {
                assert!(!answer.contains(&b'\n'), "an answer is one line");
                let answer: Value = serde_json::from_slice(&answer).expect("an answer is JSON");
                assert_eq!(answer["id"], serde_json::from_str::<Value>(&id).expect("an id is JSON"));
                assert!(answer.get("result").is_some() != answer.get("error").is_some());
            }
            Message::Other => {}
        }
    }
}

fn check_text(text: &str) {
    assert_ne!(upstream::error_code(text), Some(0));
    assert_eq!(upstream::string_len(text), serde_json::to_string(text).expect("a string").len() as u64);
    // The digits of numbers are sent unchanged, so that the sizes of other values differ from those of a parser.
    if let Ok(Value::String(string)) = serde_json::from_str(text) {
        assert_eq!(upstream::compact_len(text), Value::String(string).to_string().len() as u64);
    } else if serde_json::from_str::<Value>(text).is_ok() {
        assert!(upstream::compact_len(text) <= text.len() as u64);
    }
}

fn check_listing(output: &[u8]) {
    let frames = || output.split(|byte| *byte == b'\n').map(<[u8]>::to_vec);
    let granted = BTreeSet::from(["a".to_owned()]);
    RUNTIME.with(|runtime| {
        for era in [None, Some(Era::Handshake), Some(Era::Stateless)] {
            let all = runtime.block_on(upstream::list_tools(frames(), era, LIMITS, None));
            let some = runtime.block_on(upstream::list_tools(frames(), era, LIMITS, Some(granted.clone())));
            let (Ok(all), Ok(some)) = (&all, &some) else {
                assert_eq!(all, some);
                return;
            };
            assert!(all.len() as u64 <= LIMITS.max_tools && all.len() == some.len());
            assert!(all.iter().map(|tool| tool.len() as u64).sum::<u64>() <= LIMITS.max_bytes);
            for (whole, kept) in all.iter().zip(some) {
                let name = |text: &str| Some(serde_json::from_str::<Value>(text).ok()?.get("name")?.as_str()?.to_owned());
                assert_eq!(name(whole), name(kept));
                assert!(
                    whole == kept || name(kept).is_some_and(|name| !granted.contains(&name) && kept.len() < name.len() * 6 + 20)
                );
            }
        }
    });
}
