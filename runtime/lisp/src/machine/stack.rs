//! Measures the use of the native stack by the address of a local variable.

/// Returns the approximate address of the end of the stack. Stacks grow downwards on every platform that Rust's std supports.
#[inline(always)]
#[expect(clippy::inline_always, reason = "a frame of its own would measure another frame")]
pub(crate) fn here() -> usize {
    let mark = 0u8;
    std::ptr::from_ref(std::hint::black_box(&mark)).addr()
}
