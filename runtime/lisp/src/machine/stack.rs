//! How much of the native stack is used, told from the address of a local.

/// About where the stack ends at this moment. Stacks grow downwards on every platform that Rust's std runs on today.
#[inline(always)]
#[expect(clippy::inline_always, reason = "a frame of its own would measure another frame")]
pub(crate) fn here() -> usize {
    let mark = 0u8;
    std::ptr::from_ref(std::hint::black_box(&mark)).addr()
}
