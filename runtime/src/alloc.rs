//! The process's allocator, with a count of live bytes for each thread.
//!
//! An evaluation runs on one thread, so the difference of two readings of [`live_bytes`] is what its values occupy: the gauge by
//! which `ptc-lisp` holds its memory limit. The allocator stands here, so that every binary that links the runtime has it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    // Without a destructor, so that it can be read and written while a thread ends, and the allocator never allocates for it.
    static LIVE: Cell<i64> = const { Cell::new(0) };
}

/// Bytes of memory that the calling thread has allocated and not freed. Memory that one thread allocates and another frees counts up on the
/// first and down on the second, so a reading may be negative; only differences mean something.
pub fn live_bytes() -> i64 {
    LIVE.with(Cell::get)
}

struct Counting;

fn count(change: i64) {
    LIVE.with(|live| live.set(live.get().wrapping_add(change)));
}

/// The memory that a block of `size` bytes takes, with its header and rounded up: small blocks, of which most values are made,
/// take up to twice what they ask for.
fn held(size: usize) -> i64 {
    ((size + 23) & !15) as i64
}

#[expect(unsafe_code, reason = "an allocator cannot be written otherwise; every call is passed on unchanged")]
// SAFETY: every method has the contract of the system allocator's method of the same name, passes its arguments on as they came
// and returns what that gave. Counting touches a thread-local integer and neither allocates nor panics.
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

#[cfg(test)]
mod tests {
    use super::live_bytes;

    #[test]
    fn counts_what_is_alive_on_this_thread() {
        let before = live_bytes();
        let block = vec![1_u8; 1 << 20];
        let grown = live_bytes() - before;
        assert!((1 << 20..(1 << 20) + 32).contains(&grown), "{grown}");
        drop(block);
        assert_eq!(live_bytes(), before);
    }

    #[test]
    fn does_not_count_other_threads() {
        let block = std::thread::spawn(|| vec![1_u8; 1 << 20]).join().expect("the other thread ends");
        assert!(live_bytes() < 1 << 20);
        drop(block);
    }
}
