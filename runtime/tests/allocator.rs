//! A program with its own global allocator: an engine requires a counting allocator, and its memory limits hold with one.

#![expect(unsafe_code, reason = "an allocator requires unsafe code; every call is passed on unchanged")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, Ordering};

use ptc_lisp::limits::Limits;
use ptc_runtime::alloc::{Counting, NOT_COUNTING};
use ptc_runtime::embed::{Engine, Request};

/// An allocator that counts once the flag is set. Both modes delegate to the system allocator, so that a block may be allocated
/// in one mode and freed in the other.
struct Own {
    counting: Counting<System>,
    wrapped: AtomicBool,
}

#[global_allocator]
static ALLOCATOR: Own = Own { counting: Counting::over(System), wrapped: AtomicBool::new(false) };

// SAFETY: both modes pass every call to the system allocator unchanged.
unsafe impl GlobalAlloc for Own {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let wrapped = self.wrapped.load(Ordering::Relaxed);
        unsafe { if wrapped { self.counting.alloc(layout) } else { System.alloc(layout) } }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        let wrapped = self.wrapped.load(Ordering::Relaxed);
        unsafe { if wrapped { self.counting.dealloc(at, layout) } else { System.dealloc(at, layout) } }
    }
}

#[test]
fn engine_needs_a_counting_allocator() {
    let why = Engine::builder().build().map_err(|why| why.to_string());
    assert_eq!(why.err().as_deref(), Some(NOT_COUNTING), "nothing counts yet");
    ALLOCATOR.wrapped.store(true, Ordering::Relaxed);
    let limits = Limits::default().memory_bytes(16 << 20);
    let engine = Engine::builder().limits(limits).build().expect("the allocator counts");
    let answer = engine.run(Request::new("(reduce conj [] (range 10000000))"));
    assert_eq!(answer.preview(), Err("memory_limit"), "{answer:?}");
    assert_eq!(engine.run(Request::new("(+ 1 2)")).preview(), Ok("3"));
}
