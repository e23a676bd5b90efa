//! Numbers for what is equal only to itself, in the order of its making.

use std::sync::atomic::{AtomicU64, Ordering};

/// One row of numbers for every kind of such values, so that what holds another has the higher one, whatever the two are.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The next number.
#[inline]
pub(crate) fn serial() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}
