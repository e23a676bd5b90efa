//! An allocator that counts for memory limits, and keeps the maximum of each thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use ptc_runtime::alloc::{Counting, live_bytes};

struct Peak;

static INNER: Counting<System> = Counting::over(System);

#[global_allocator]
static ALLOCATOR: Peak = Peak;

thread_local! {
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

/// Returns the maximum of the calling thread's live bytes since the last call.
#[allow(dead_code, reason = "a target may only need memory limits to hold")]
pub fn take_peak() -> i64 {
    PEAK.with(|peak| peak.replace(live_bytes()))
}

fn note() {
    PEAK.with(|peak| peak.set(peak.get().max(live_bytes())));
}

// SAFETY: every call goes to the system allocator unchanged, and counting neither allocates nor panics.
unsafe impl GlobalAlloc for Peak {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let block = unsafe { INNER.alloc(layout) };
        note();
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let block = unsafe { INNER.alloc_zeroed(layout) };
        note();
        block
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        unsafe { INNER.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let block = unsafe { INNER.realloc(at, layout, size) };
        note();
        block
    }
}
