//! Decodes arbitrary images of sessions. Each one is refused, or decodes within the limits to a state whose image decodes to the
//! same. The sealed state of a session opens only if it is unchanged.
#![no_main]

mod allocator;

use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use ptc_lisp::image::{self, DecodeError, DecodeLimits};
use ptc_lisp::limits::Cancel;
use ptc_lisp::{Bindings, Value, print};
use ptc_runtime::alloc::live_bytes;
use ptc_session_redis::decode_sealed;

const MEMORY: u64 = 1 << 20;
/// Memory above the limit: the last block between two checks, and what a program takes to compile.
const SLACK: i64 = 4 << 20;
const WALL_CLOCK: Duration = Duration::from_millis(500);
/// Time after the limit. It is long because of the sanitizer.
const LATE: Duration = Duration::from_secs(2);

fuzz_target!(|bytes: &[u8]| {
    check_image(bytes);
    check_sealed(bytes);
});

fn decode(bytes: &[u8]) -> Result<(Bindings, Vec<Value>), DecodeError> {
    let started = Instant::now();
    let limits = DecodeLimits {
        memory: Some((MEMORY, live_bytes)),
        until: Some(started + WALL_CLOCK),
        cancel: Cancel::default(),
        data_only: false,
    };
    allocator::take_peak();
    let before = live_bytes();
    let decoded = image::decode_within(bytes, &limits);
    let grew = allocator::take_peak() - before;
    assert!(grew <= MEMORY as i64 + SLACK, "it allocated {grew} bytes");
    assert!(started.elapsed() <= WALL_CLOCK + LATE, "it took {:?}", started.elapsed());
    decoded
}

fn check_image(bytes: &[u8]) {
    let Ok((bindings, results)) = decode(bytes) else { return };
    for value in &results {
        assert!(print::preview(value, 500).text.len() <= 500);
    }
    let encoded = image::encode(&bindings, &results).expect("what was decoded can be stored");
    match decode(&encoded) {
        Ok((again, later)) => {
            assert_eq!(again.bytes(), bindings.bytes());
            let sizes = |values: &[Value]| values.iter().map(Value::heap_bytes).collect::<Vec<_>>();
            assert_eq!(sizes(&later), sizes(&results));
            assert_eq!(image::encode(&again, &later).as_deref(), Ok(&*encoded), "an image of an image is the same");
        }
        // The machine may be busy.
        Err(DecodeError::OutOfTime) => {}
        Err(other) => panic!("{other}"),
    }
}

fn check_sealed(bytes: &[u8]) {
    // The lengths of the parts are arbitrary, or fit: an image and two empty histories.
    let _ = decode_sealed(bytes, |_| (), MEMORY);
    let mut state = (bytes.len() as u64).to_le_bytes().to_vec();
    state.extend_from_slice(bytes);
    for part in [&b"[]"[..], b"[]"] {
        state.extend((part.len() as u64).to_le_bytes());
        state.extend_from_slice(part);
    }
    if decode_sealed(&state, |_| (), MEMORY).is_ok() {
        let (at, flip) = (bytes.len(), bytes.last().copied().unwrap_or_default() | 1);
        let altered = decode_sealed(&state, |sealed| sealed.get_mut(at).into_iter().for_each(|byte| *byte ^= flip), MEMORY);
        assert!(altered.is_err(), "a changed state opens");
    }
    let replaced = decode_sealed(b"", |sealed| *sealed = bytes.to_vec(), MEMORY);
    assert!(replaced.is_err() || bytes.is_empty(), "a state opens that was not sealed");
}
