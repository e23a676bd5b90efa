//! An allocator that counts each thread's live bytes, like the one of a host.
#![expect(unsafe_code, reason = "an allocator requires unsafe code; every call is passed on unchanged")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static LIVE: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

/// Returns the calling thread's net allocated bytes.
pub(crate) fn gauge() -> i64 {
    LIVE.with(Cell::get)
}

/// Returns the maximum of these bytes since the last call.
#[allow(dead_code, reason = "only fuzzing checks every allocation")]
pub(crate) fn take_peak() -> i64 {
    PEAK.with(|peak| peak.replace(gauge()))
}

fn count(change: i64) {
    let now = LIVE.with(|live| {
        live.set(live.get().wrapping_add(change));
        live.get()
    });
    PEAK.with(|peak| peak.set(peak.get().max(now)));
}

/// Returns the memory of a block including its header, rounded up, and one eighth more for fragmentation of small blocks.
fn held(size: usize) -> i64 {
    let block = ((size + 23) & !15) as i64;
    if size < 128 * 1024 { block + block / 8 } else { block }
}

// SAFETY: every call goes to the system allocator unchanged, and counting neither allocates nor panics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(held(layout.size()));
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(held(layout.size()));
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-held(layout.size()));
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(held(size) - held(layout.size()));
        unsafe { System.realloc(at, layout, size) }
    }
}
