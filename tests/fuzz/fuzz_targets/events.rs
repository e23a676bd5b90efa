//! Parses arbitrary event streams. A stream has the same events however it is cut, and an event above the limit is not kept.
//!
//! The first byte is the limit, the second one the number of bytes that follow and say where the rest is cut.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ptc_runtime::fuzzing::upstream::{StreamContents, events};

fn chunks<'s>(mut stream: &'s [u8], cuts: &[u8]) -> Vec<&'s [u8]> {
    let mut chunks = Vec::new();
    for cut in cuts {
        let (chunk, rest) = stream.split_at(usize::from(*cut).min(stream.len()));
        chunks.push(chunk);
        stream = rest;
    }
    chunks.push(stream);
    chunks
}

fuzz_target!(|bytes: &[u8]| {
    let [limit, cuts, rest @ ..] = bytes else { return };
    let (cuts, stream) = rest.split_at(usize::from(*cuts).min(rest.len()));
    let cut = chunks(stream, cuts);
    let each: Vec<&[u8]> = stream.chunks(1).collect();

    let read = |chunks: &[&[u8]], max, skips| {
        let found = events(chunks.iter().copied(), max, skips);
        // How much is kept depends on the chunks.
        found.map(|found| (found.held, StreamContents { held: 0, ..found }))
    };
    let whole = read(&[stream], usize::MAX, false).expect("there is no limit").1;
    assert!(whole.skipped.is_empty());
    for chunks in [&cut, &each] {
        assert_eq!(read(chunks, usize::MAX, false).expect("there is no limit").1, whole);
    }

    let max = usize::from(*limit);
    let refused = read(&[stream], max, false).is_none();
    let (_, skipped) = read(&[stream], max, true).expect("large events are skipped");
    assert!(skipped.events.iter().all(|event| event.len() <= max) || skipped.skipped.is_empty());
    for chunks in [&cut, &each] {
        assert_eq!(read(chunks, max, false).is_none(), refused);
        let (held, found) = read(chunks, max, true).expect("large events are skipped");
        // The data, and an incomplete line with the name of its field.
        assert!(held <= 2 * (max as u64 + 6), "{held} bytes");
        assert_eq!(found, skipped);
    }
    if !refused {
        assert_eq!(skipped, whole);
    }
});
