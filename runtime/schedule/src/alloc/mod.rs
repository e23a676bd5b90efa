//! An allocator that counts live bytes per thread. It is the global allocator unless the feature `own-allocator` is on.
//!
//! An evaluation runs on one thread, so that the difference of two readings of [`live_bytes`] is the memory of its values.
//! `ptc-lisp` uses it as the gauge for its memory limit. The global allocator is declared here, so that every binary with the
//! runtime has it.
//!
//! A program with its own allocator enables the feature `own-allocator`, which removes this declaration, and wraps its own
//! allocator:
//!
//! ```text
//! #[global_allocator]
//! static ALLOCATOR: ptc_runtime::alloc::Counting<MiMalloc> = ptc_runtime::alloc::Counting::over(MiMalloc);
//! ```
//!
//! Without it neither an engine nor a server can be created, since memory limits would have no effect.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::hint::black_box;

#[cfg(not(feature = "own-allocator"))]
mod by_size;

#[cfg(not(feature = "own-allocator"))]
#[global_allocator]
static ALLOCATOR: Counting<by_size::BySize> = Counting::over(by_size::BySize);

/// The unit tests of this crate are such a program.
#[cfg(all(test, feature = "own-allocator"))]
#[global_allocator]
static ALLOCATOR: Counting<std::alloc::System> = Counting::over(std::alloc::System);

thread_local! {
    // The variable has no destructor, so that it is accessible while a thread ends and its first use does not allocate.
    static LIVE: Cell<i64> = const { Cell::new(0) };
}

/// Returns the bytes that the calling thread has allocated and not freed. Memory that one thread allocates and another frees adds
/// to the first and subtracts from the second, so that a reading may be negative. Only differences are meaningful.
pub fn live_bytes() -> i64 {
    LIVE.with(Cell::get)
}

/// Replaces the calling thread's count and returns the old one. While a thread runs a fiber, it counts for the fiber.
pub(crate) fn exchange_live_bytes(bytes: i64) -> i64 {
    LIVE.with(|live| live.replace(bytes))
}

/// Whether the process's allocator counts. If not, the error message is [`NOT_COUNTING`].
pub fn counts() -> bool {
    let before = live_bytes();
    let block = black_box(Box::new(0_u64));
    let grown = live_bytes() - before;
    drop(block);
    grown > 0
}

/// The error message if [`counts`] returns false.
pub const NOT_COUNTING: &str = "the allocator of this process does not count, so no memory limit would hold: declare a \
    `#[global_allocator]` of type `ptc_runtime::alloc::Counting`, or leave out the feature own-allocator of ptc-runtime";

/// An allocator that counts the memory of another one per thread.
#[derive(Debug, Clone, Copy)]
pub struct Counting<A> {
    inner: A,
}

impl<A> Counting<A> {
    /// Wraps an allocator.
    pub const fn over(inner: A) -> Self {
        Counting { inner }
    }
}

fn count(change: i64) {
    LIVE.with(|live| live.set(live.get().wrapping_add(change)));
}

/// Minimum size in bytes of a block that is mapped separately.
const MAPPED: usize = 128 * 1024;

/// Returns an upper estimate of the memory of a block with `size` bytes. Small blocks, of which most values consist, are rounded
/// up to size classes that are an eighth apart on average, and some of their pages are never full.
fn held(size: usize) -> i64 {
    let block = ((size + 23) & !15) as i64;
    if size < MAPPED { block + block / 8 } else { block }
}

#[expect(unsafe_code, reason = "an allocator requires unsafe code; every call is passed on unchanged")]
// SAFETY: every method has the contract of the inner allocator's method of the same name, passes its arguments on unchanged, and
// returns its result. Counting touches a thread-local integer and neither allocates nor panics.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(held(layout.size()));
        unsafe { self.inner.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(held(layout.size()));
        unsafe { self.inner.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-held(layout.size()));
        unsafe { self.inner.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(held(size) - held(layout.size()));
        unsafe { self.inner.realloc(at, layout, size) }
    }
}

#[cfg(all(test, not(feature = "own-allocator")))]
mod tests {
    use super::{counts, live_bytes};

    #[test]
    fn live_bytes_of_this_thread_are_counted() {
        assert!(counts());
        let before = live_bytes();
        let block = vec![1_u8; 1 << 20];
        let grown = live_bytes() - before;
        assert!((1 << 20..(1 << 20) + 32).contains(&grown), "{grown}");
        drop(block);
        assert_eq!(live_bytes(), before);
    }

    #[test]
    fn live_bytes_of_other_threads_are_not_counted() {
        let block = std::thread::spawn(|| vec![1_u8; 1 << 20]).join().expect("the other thread ends");
        assert!(live_bytes() < 1 << 20);
        drop(block);
    }
}
