//! What comparing and hashing cost, and when to give them up.
//!
//! Whoever compares has no [`Machine`](crate::machine::Machine) at hand: the work is noted in the thread, and the machine counts it
//! at its next step. A single comparison of values that share their parts, or the many that one insertion takes among equal hashes,
//! can outlast the time limit all the same. So the notes look at the clock and the cancel flag now and then, and once the run is
//! over, comparisons of containers end at once with any outcome. None of those outcomes leaves the run: what leaves it goes
//! through [`Machine::settle`](crate::machine::Machine::settle).

use std::cell::{Cell, RefCell};
use std::time::Instant;

use crate::limits::Cancel;

/// Parts compared between two looks at the clock: some 10 ms, where each is far from the last one.
const EVERY: u32 = 1 << 20;

/// Most parts that may be compared by code that relies on a consistent order, such as the sorts of the standard library.
pub(crate) const CONSISTENT: u32 = EVERY;

/// Bytes of text that are compared in the time of a part.
const BYTES_A_PART: usize = 64;

/// Bytes up to which a text is as one part.
const SHORT: usize = 1024;

struct Effort {
    /// Parts since the machine counted them.
    parts: Cell<u32>,
    /// Parts at which the clock is looked at.
    look_at: Cell<u32>,
    given_up: Cell<bool>,
}

thread_local! {
    static EFFORT: Effort =
        const { Effort { parts: Cell::new(0), look_at: Cell::new(EVERY), given_up: Cell::new(false) } };
    static WATCHED: RefCell<Option<(Instant, Cancel)>> = const { RefCell::new(None) };
}

/// What a thread notes for a run, kept here while another fiber of the thread runs.
#[derive(Default)]
pub(crate) struct State {
    parts: u32,
    look_at: Option<u32>,
    given_up: bool,
    watched: Option<(Instant, Cancel)>,
}

impl State {
    /// Puts this in the place of what the thread has, and keeps that.
    pub(crate) fn exchange(&mut self) {
        EFFORT.with(|effort| {
            self.parts = effort.parts.replace(self.parts);
            self.look_at = Some(effort.look_at.replace(self.look_at.unwrap_or(EVERY)));
            self.given_up = effort.given_up.replace(self.given_up);
        });
        self.watched = WATCHED.replace(self.watched.take());
    }
}

/// Comparisons of this thread are given up once a run is over, until this is dropped.
pub(crate) struct Watch {
    before: Option<(Instant, Cancel)>,
}

impl Watch {
    pub(crate) fn new(deadline: Instant, cancel: Cancel) -> Watch {
        let before = WATCHED.replace(Some((deadline, cancel)));
        if before.is_none() {
            // What a host compares between two runs is nobody's.
            take();
        }
        Watch { before }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let before = self.before.take();
        if before.is_none() {
            take();
            EFFORT.with(|effort| effort.given_up.set(false));
        }
        WATCHED.set(before);
    }
}

/// Notes the work of a comparison.
#[inline]
pub(crate) fn note(parts: u32) {
    EFFORT.with(|effort| {
        effort.parts.set(effort.parts.get().saturating_add(parts));
        if effort.parts.get() >= effort.look_at.get() {
            look(effort);
        }
    });
}

#[cold]
#[inline(never)]
fn look(effort: &Effort) {
    effort.look_at.set(effort.parts.get().saturating_add(EVERY));
    let is_over = |(deadline, cancel): &(Instant, Cancel)| *deadline <= Instant::now() || cancel.is_cancelled();
    if WATCHED.with_borrow(|watched| watched.as_ref().is_some_and(is_over)) {
        effort.given_up.set(true);
    }
}

/// Whether comparisons are given up.
#[inline]
pub(crate) fn is_given_up() -> bool {
    EFFORT.with(|effort| effort.given_up.get())
}

/// Whether there was work since [`take`].
#[inline]
pub(crate) fn is_noted() -> bool {
    EFFORT.with(|effort| effort.parts.get()) != 0
}

/// The parts since the last time.
#[cold]
pub(crate) fn take() -> u32 {
    EFFORT.with(|effort| {
        effort.look_at.set(EVERY);
        effort.parts.take()
    })
}

/// Notes the work of going over so many bytes.
#[inline]
pub(crate) fn note_bytes(bytes: usize) {
    if bytes > SHORT {
        note_long(bytes);
    }
}

/// Out of line, so that hashing a short text stays short.
#[cold]
#[inline(never)]
fn note_long(bytes: usize) {
    note(parts_of(bytes));
}

/// The parts that so many bytes are beyond one.
pub(crate) fn parts_of(bytes: usize) -> u32 {
    if bytes > SHORT { u32::try_from(bytes / BYTES_A_PART).unwrap_or(u32::MAX) } else { 0 }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Value;

    #[test]
    fn comparisons_are_given_up_for_a_run_that_is_over_and_for_no_other() {
        let large = || Value::vector((0..1000).map(|_| Value::vector((0..3000).map(Value::from).collect())).collect());
        let (a, b) = (large(), large());
        let other = Value::vector(vec![Value::from(1); 1000]);
        let now = Instant::now();
        {
            let cancel = Cancel::default();
            let _outer = Watch::new(now + Duration::from_secs(600), cancel.clone());
            assert!(a == b && !is_given_up());
            cancel.cancel();
            assert!(a == b && is_given_up() && is_noted());
            assert_eq!(a, other);
        }
        assert!(!is_noted() && a != other);
        {
            let _outer = Watch::new(now, Cancel::default());
            {
                let _inner = Watch::new(now, Cancel::default());
                assert!(a == b && is_given_up());
            }
            assert!(is_given_up() && is_noted());
        }
        assert!(a != other && a == b && !is_given_up());
        assert!(is_noted());
        let _next = Watch::new(now + Duration::from_secs(600), Cancel::default());
        assert!(!is_noted());
    }
}
