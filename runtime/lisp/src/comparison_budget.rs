//! The cost of comparing and hashing values, and the end of comparisons when a run is over.
//!
//! Comparisons have no access to a [`Machine`](crate::machine::Machine): their work is charged to the thread, and the machine
//! drains the charges at its next step. A single comparison of values that share their parts, or the many comparisons of one
//! insertion among equal hashes, can exceed the time limit. Charging therefore checks the clock and the cancel flag regularly.
//! Once the run is over, comparisons of containers end at once with an arbitrary outcome. None of these outcomes leaves the run:
//! [`Machine::fail_if_comparison_gave_up`](crate::machine::Machine::fail_if_comparison_gave_up) guards the exits.

use std::cell::{Cell, RefCell};
use std::time::Instant;

use crate::limits::Cancel;

/// Parts compared between two checks of the clock. They take some 10 ms if each part is far from the last one in memory.
const CHECK_INTERVAL: u32 = 1 << 20;

/// Maximum number of parts that may be compared by code that relies on a consistent order, such as the sorts of the standard
/// library.
pub(crate) const MAX_CONSISTENT_PARTS: u32 = CHECK_INTERVAL;

/// Bytes of text that are compared in the time of one part.
const BYTES_PER_PART: usize = 64;

/// Maximum length in bytes of a text that counts as one part.
const MAX_SHORT_BYTES: usize = 1024;

struct Budget {
    /// Parts since the machine drained them.
    parts: Cell<u32>,
    /// Parts at which the clock is checked next.
    next_check: Cell<u32>,
    exhausted: Cell<bool>,
}

thread_local! {
    static BUDGET: Budget =
        const { Budget { parts: Cell::new(0), next_check: Cell::new(CHECK_INTERVAL), exhausted: Cell::new(false) } };
    static GUARDED: RefCell<Option<(Instant, Cancel)>> = const { RefCell::new(None) };
}

/// The charges of a run, stored here while another fiber of the thread runs.
#[derive(Default)]
pub(crate) struct State {
    parts: u32,
    next_check: Option<u32>,
    exhausted: bool,
    guarded: Option<(Instant, Cancel)>,
}

impl State {
    /// Exchanges this state with that of the thread.
    pub(crate) fn exchange(&mut self) {
        BUDGET.with(|budget| {
            self.parts = budget.parts.replace(self.parts);
            self.next_check = Some(budget.next_check.replace(self.next_check.unwrap_or(CHECK_INTERVAL)));
            self.exhausted = budget.exhausted.replace(self.exhausted);
        });
        self.guarded = GUARDED.replace(self.guarded.take());
    }
}

/// While it exists, comparisons of this thread end early once the run is over.
pub(crate) struct Guard {
    before: Option<(Instant, Cancel)>,
}

impl Guard {
    pub(crate) fn new(deadline: Instant, cancel: Cancel) -> Guard {
        let before = GUARDED.replace(Some((deadline, cancel)));
        if before.is_none() {
            // Comparisons of the host between two runs are not charged to a run.
            drain();
        }
        Guard { before }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let before = self.before.take();
        if before.is_none() {
            drain();
            BUDGET.with(|budget| budget.exhausted.set(false));
        }
        GUARDED.set(before);
    }
}

/// Charges the work of a comparison.
#[inline]
pub(crate) fn charge(parts: u32) {
    BUDGET.with(|budget| {
        budget.parts.set(budget.parts.get().saturating_add(parts));
        if budget.parts.get() >= budget.next_check.get() {
            check_clock(budget);
        }
    });
}

#[cold]
#[inline(never)]
fn check_clock(budget: &Budget) {
    budget.next_check.set(budget.parts.get().saturating_add(CHECK_INTERVAL));
    let is_over = |(deadline, cancel): &(Instant, Cancel)| *deadline <= Instant::now() || cancel.is_cancelled();
    if GUARDED.with_borrow(|guarded| guarded.as_ref().is_some_and(is_over)) {
        budget.exhausted.set(true);
    }
}

/// Whether comparisons end early.
#[inline]
pub(crate) fn is_exhausted() -> bool {
    BUDGET.with(|budget| budget.exhausted.get())
}

/// Whether there are charges since [`drain`].
#[inline]
pub(crate) fn has_charges() -> bool {
    BUDGET.with(|budget| budget.parts.get()) != 0
}

/// Returns the parts since the last call, and resets them.
#[cold]
pub(crate) fn drain() -> u32 {
    BUDGET.with(|budget| {
        budget.next_check.set(CHECK_INTERVAL);
        budget.parts.take()
    })
}

/// Charges the work of reading so many bytes.
#[inline]
pub(crate) fn charge_bytes(bytes: usize) {
    if bytes > MAX_SHORT_BYTES {
        charge_long(bytes);
    }
}

/// Out of line, so that hashing a short text stays short.
#[cold]
#[inline(never)]
fn charge_long(bytes: usize) {
    charge(parts_of(bytes));
}

/// The number of parts, beyond the first, that so many bytes count for.
pub(crate) fn parts_of(bytes: usize) -> u32 {
    if bytes > MAX_SHORT_BYTES { u32::try_from(bytes / BYTES_PER_PART).unwrap_or(u32::MAX) } else { 0 }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Value;

    #[test]
    fn comparisons_end_early_only_after_the_run_has_ended() {
        let large = || Value::vector((0..1000).map(|_| Value::vector((0..3000).map(Value::from).collect())).collect());
        let (a, b) = (large(), large());
        let other = Value::vector(vec![Value::from(1); 1000]);
        let now = Instant::now();
        {
            let cancel = Cancel::default();
            let _outer = Guard::new(now + Duration::from_mins(10), cancel.clone());
            assert!(a == b && !is_exhausted());
            cancel.cancel();
            assert!(a == b && is_exhausted() && has_charges());
            assert_eq!(a, other);
        }
        assert!(!has_charges() && a != other);
        {
            let _outer = Guard::new(now, Cancel::default());
            {
                let _inner = Guard::new(now, Cancel::default());
                assert!(a == b && is_exhausted());
            }
            assert!(is_exhausted() && has_charges());
        }
        assert!(a != other && a == b && !is_exhausted());
        assert!(has_charges());
        let _next = Guard::new(now + Duration::from_mins(10), Cancel::default());
        assert!(!has_charges());
    }
}
