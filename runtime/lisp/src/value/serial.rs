//! Serial numbers for values that are equal only to themselves. The numbers grow in the order of creation.

use std::sync::atomic::{AtomicU64, Ordering};

/// All kinds of such values share one counter, so that a value has a higher number than every value that it contains.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Returns the next serial number.
#[inline]
pub(crate) fn serial() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}
