//! The stored form of a session's state: bindings and results as an image, and histories as JSON, sealed together.

use std::time::Instant;

use ptc_lisp::image::{self, DecodeError, DecodeLimits};
use ptc_lisp::limits::{Cancel, Limits};

use crate::seal::{DataKind, Sealer, SessionRef};
use ptc_runtime::alloc;
use ptc_runtime::evaluation::CalledTools;
use ptc_runtime::session::state::Log;
use ptc_runtime::session::{Fault, SessionState};

/// What to do about a session whose state cannot be used.
const ADVICE: &str = "its state is lost; lisp_session_start opens another";

/// Encodes, seals, opens and decodes states, each within the limits of a program.
pub(crate) struct Codec {
    sealer: Sealer,
    limits: Limits,
}

impl Codec {
    pub(crate) fn new(sealer: Sealer, limits: Limits) -> Codec {
        Codec { sealer, limits }
    }

    /// Returns the maximum size in bytes of a stored state: the memory of a program.
    pub(crate) fn max_bytes(&self) -> u64 {
        self.limits.memory_bytes
    }

    /// Encodes and seals a state. Returns an error if it contains a value that cannot be stored, or if it is too large.
    pub(crate) fn encode(&self, session: SessionRef<'_>, kept: &SessionState) -> Result<Vec<u8>, Fault> {
        let image = image::encode(&kept.bindings, &kept.results).map_err(|refused| {
            let advice = "give a function that makes it, or the items that are needed; nothing of this evaluation was kept";
            Fault::NotStorable(format!("{refused} with the other replicas' sessions: {advice}"))
        })?;
        let (prints, calls) = (entries(&kept.prints), entries(&kept.upstream_calls));
        let parts = [&image, prints.as_bytes(), calls.as_bytes()];
        let mut state = Vec::with_capacity(parts.iter().map(|part| size_of::<u64>() + part.len()).sum());
        for part in parts {
            state.extend((part.len() as u64).to_le_bytes());
            state.extend_from_slice(part);
        }
        // The session keeps its lease and its earlier state.
        let sealed = self.sealer.seal(DataKind::State, session, &state).map_err(|why| Fault::NotStorable(why.to_string()))?;
        // Values can take less room in the store than in memory, and both are bounded when they are loaded.
        let bytes = sealed.len().max(kept.bytes());
        if bytes as u64 > self.max_bytes() {
            return Err(Fault::Limit(format!(
                "the session takes {bytes} bytes, it may take {} (--program-memory-limit-bytes); nothing of this \
                 evaluation was kept. lisp_session_forget makes room",
                self.max_bytes()
            )));
        }
        Ok(sealed)
    }

    /// Opens and decodes a state. It is empty for a session that never stored one.
    pub(crate) fn decode(&self, session: SessionRef<'_>, mut sealed: Vec<u8>, cancel: &Cancel) -> Result<SessionState, Fault> {
        if sealed.is_empty() {
            return Ok(SessionState::default());
        }
        // The store checks the size before it replies, and could be replaced by one that does not.
        if sealed.len() as u64 > self.max_bytes() {
            return Err(self.too_large(sealed.len() as u64));
        }
        let state = self.sealer.open(DataKind::State, session, &mut sealed).map_err(|why| lost(&why.to_string()))?;
        let mut rest = state;
        let mut part = || {
            let (length, after) = rest.split_first_chunk()?;
            let (part, after) = after.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
            rest = after;
            Some(part)
        };
        let parts = part().zip(part()).zip(part());
        let ((image, prints), calls) = parts.ok_or_else(other_version)?;
        let until = Instant::now().checked_add(self.limits.wall_clock);
        let memory = Some((self.limits.memory_bytes, alloc::live_bytes as fn() -> i64));
        let limits = DecodeLimits { memory, until, cancel: cancel.clone(), data_only: false };
        let (bindings, results) = image::decode_within(image, &limits).map_err(|why| match why {
            DecodeError::Invalid(_) => lost(&format!("it was stored by another version of this server ({why})")),
            DecodeError::OutOfMemory(_) => lost(&format!("{why} (--program-memory-limit-bytes)")),
            // The next attempt may be faster.
            DecodeError::OutOfTime => Fault::Unavailable(format!("the session was not loaded: {why}")),
        })?;
        let (prints, upstream_calls) = (log(prints)?, log(calls)?);
        let called = CalledTools::of_records(upstream_calls.iter());
        Ok(SessionState { bindings, results, prints, upstream_calls, called })
    }

    /// Returns the error for a stored state of this size in bytes.
    pub(crate) fn too_large(&self, size: u64) -> Fault {
        lost(&format!("it takes {size} bytes in the store, it may take {} (--program-memory-limit-bytes)", self.max_bytes()))
    }

    /// Seals a title. A missing title is empty.
    pub(crate) fn encode_title(&self, session: SessionRef<'_>, title: Option<&str>) -> Result<Vec<u8>, Fault> {
        let Some(title) = title else { return Ok(Vec::new()) };
        self.sealer.seal(DataKind::Title, session, title.as_bytes()).map_err(|why| Fault::Unavailable(why.to_string()))
    }

    /// Opens a title. A title that does not open is omitted, so that the session can be listed and closed.
    pub(crate) fn decode_title(&self, session: SessionRef<'_>, mut sealed: Vec<u8>) -> Option<String> {
        let title = self.sealer.open(DataKind::Title, session, &mut sealed).ok()?;
        std::str::from_utf8(title).ok().map(str::to_owned)
    }
}

/// Seals contents as the state of a session, changes the sealed bytes with `alter`, and decodes the state, for the fuzz targets.
///
/// # Errors
///
/// Returns why the state cannot be used.
#[cfg(feature = "fuzzing")]
pub fn decode_sealed(contents: &[u8], alter: impl FnOnce(&mut Vec<u8>), memory_bytes: u64) -> Result<SessionState, Fault> {
    let session = SessionRef { owner: "owner", id: "ptcs_1" };
    let keys = ptc_runtime::settings::SessionKeys::parse(&"k".repeat(32)).ok_or(Fault::NotFound)?;
    let codec = Codec::new(Sealer::new("fuzzing", &keys), Limits::default().memory_bytes(memory_bytes));
    let sealed = codec.sealer.seal(DataKind::State, session, contents);
    let mut sealed = sealed.map_err(|why| Fault::NotStorable(why.to_string()))?;
    alter(&mut sealed);
    codec.decode(session, sealed, &Cancel::default())
}

/// Returns the error for a session whose state cannot be used.
fn lost(why: &str) -> Fault {
    Fault::StateLost(format!("the stored session cannot be used: {why}; {ADVICE}"))
}

fn other_version() -> Fault {
    lost("it was stored by another version of this server")
}

fn entries(log: &Log) -> String {
    serde_json::to_string(&log.iter().collect::<Vec<_>>()).unwrap_or_default()
}

fn log(text: &[u8]) -> Result<Log, Fault> {
    serde_json::from_slice(text).map(Log::from_entries).map_err(|_| other_version())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptc_lisp::{Bindings, Program, Run, Value};
    use ptc_runtime::settings::SessionKeys;

    const SESSION: SessionRef<'_> = SessionRef { owner: "stdio", id: "ptcs_1" };

    fn codec(memory_bytes: u64) -> Codec {
        let keys = SessionKeys::parse(&"k".repeat(32)).expect("a key");
        Codec::new(Sealer::new("test", &keys), Limits::default().memory_bytes(memory_bytes))
    }

    fn state(program: &str) -> SessionState {
        let program = Program::compile_with(program, &Bindings::default()).expect("it compiles");
        let outcome = Run::new(&program).execute_on_thread();
        SessionState { bindings: outcome.bindings, results: vec![outcome.result.expect("a value")], ..SessionState::default() }
    }

    #[test]
    fn state_that_expands_above_the_memory_limit_is_lost() {
        // A vector of nils takes one byte per item in an image.
        let nils = Value::vector(vec![Value::Nil; 400_000]);
        let large =
            SessionState { results: vec![nils.clone(), Value::vector(vec![nils]), Value::from(1)], ..SessionState::default() };
        let sealed = codec(1 << 30).encode(SESSION, &large).expect("it can be stored");
        assert!(sealed.len() < 500_000, "{}", sealed.len());
        let decode = |limit| codec(limit).decode(SESSION, sealed.clone(), &Cancel::default());
        assert_eq!(decode(1 << 30).expect("it fits").results, large.results);
        let before = alloc::live_bytes();
        let Err(Fault::StateLost(why)) = decode(1_000_000) else { panic!("it does not fit") };
        assert!(why.contains("its values need more than 1000000 bytes"), "{why}");
        assert!(alloc::live_bytes() - before < 100_000);
    }

    #[test]
    fn state_larger_than_the_memory_of_a_program_is_refused() {
        let text = state("(apply str (repeat 5000 \"x\"))");
        let Err(Fault::Limit(why)) = codec(4_000).encode(SESSION, &text) else { panic!("it is too large") };
        assert!(why.contains("it may take 4000 (--program-memory-limit-bytes)"), "{why}");
        let sealed = codec(1 << 20).encode(SESSION, &text).expect("it can be stored");
        assert!(matches!(codec(4_000).decode(SESSION, sealed, &Cancel::default()), Err(Fault::StateLost(_))));
    }

    #[test]
    fn invalid_state_is_lost_and_a_cancelled_load_is_not() {
        let codec = codec(1 << 20);
        let decode = |sealed: Vec<u8>| codec.decode(SESSION, sealed, &Cancel::default());
        assert!(decode(Vec::new()).is_ok_and(|state| state.results.is_empty()));
        let image = image::encode(&Bindings::default(), &[]).expect("an image");
        for contents in [&b""[..], b"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", &image] {
            let sealed = codec.sealer.seal(DataKind::State, SESSION, contents).expect("sealed");
            let Err(Fault::StateLost(why)) = decode(sealed) else { panic!("{contents:?}") };
            assert!(why.contains("another version of this server"), "{why}");
        }
        let Err(Fault::StateLost(why)) = decode(image) else { panic!("it is not sealed") };
        assert!(why.contains("it is not sealed in a format of this version"), "{why}");
        let cancel = Cancel::default();
        cancel.cancel();
        let sealed = codec.encode(SESSION, &state("(def x 1)")).expect("it can be stored");
        assert!(matches!(codec.decode(SESSION, sealed, &cancel), Err(Fault::Unavailable(_))));
    }
}
