//! A budget of a program, such as the number of its calls.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A number of uses, shared by several threads.
pub(super) struct Budget {
    pub(super) total: u32,
    used: AtomicU32,
    pub(super) refused: AtomicU64,
}

impl Budget {
    pub(super) fn new(total: u32) -> Budget {
        Budget { total, used: AtomicU32::new(0), refused: AtomicU64::new(0) }
    }

    pub(super) fn take(&self) -> bool {
        let next = |used: u32| if used < self.total { Some(used + 1) } else { None };
        let is_taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok();
        if !is_taken {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        is_taken
    }

    /// Returns the number of refused uses.
    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    pub(super) fn left(&self) -> u32 {
        self.total.saturating_sub(self.used.load(Ordering::Relaxed))
    }
}
