//! An allocator that combines two allocators by the size of blocks.
//!
//! Small blocks come from mimalloc, without a lock and close together, which makes decoding a document a fifth faster. mimalloc
//! would keep large blocks for a second after they are freed, and copy them to grow. Large blocks therefore come from the system,
//! which releases them immediately and can grow them in place, so that a program's memory limit also bounds the process. With
//! glibc this requires [`fix_threshold`].

use std::alloc::{GlobalAlloc, Layout, System};

use mimalloc::MiMalloc;

use super::MAPPED;

/// Allocates small blocks with mimalloc and large ones with the system allocator.
pub(super) struct BySize;

/// Minimum size in bytes of a block that glibc maps separately. At 128 KiB a mapping takes 60 microseconds longer than the heap,
/// at 512 KiB it takes no longer.
#[cfg(target_env = "gnu")]
const OWN_PAGES: libc::c_int = 512 * 1024;

/// Sets glibc's mapping threshold to `OWN_PAGES`, once.
///
/// By default glibc raises the threshold to the largest freed block, up to 32 MB, and keeps freed blocks below it in a heap per
/// thread. After a few programs with large strings the process would hold far more memory than any program's limit.
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "the standard library has no function for this")]
fn fix_threshold() {
    use std::sync::atomic::{AtomicBool, Ordering};
    static IS_FIXED: AtomicBool = AtomicBool::new(false);
    if !IS_FIXED.load(Ordering::Relaxed) && !IS_FIXED.swap(true, Ordering::Relaxed) {
        // SAFETY: the call sets a parameter of the allocator under the allocator's own lock, and does not allocate.
        unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, OWN_PAGES) };
    }
}

/// Other C libraries have a fixed threshold.
#[cfg(not(target_env = "gnu"))]
fn fix_threshold() {}

#[expect(unsafe_code, reason = "an allocator requires unsafe code; every call is passed on")]
// SAFETY: every method selects the allocator by the size of the block in the same way. A block that grows or shrinks past the
// limit is copied into one of the other allocator. Neither allocator panics.
unsafe impl GlobalAlloc for BySize {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() < MAPPED {
            return unsafe { MiMalloc.alloc(layout) };
        }
        fix_threshold();
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.size() < MAPPED {
            return unsafe { MiMalloc.alloc_zeroed(layout) };
        }
        fix_threshold();
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        unsafe { if layout.size() < MAPPED { MiMalloc.dealloc(at, layout) } else { System.dealloc(at, layout) } }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        match (layout.size() < MAPPED, size < MAPPED) {
            (true, true) => unsafe { MiMalloc.realloc(at, layout, size) },
            (false, false) => unsafe { System.realloc(at, layout, size) },
            _ => unsafe {
                // The caller guarantees that the new size with the old alignment is a valid layout.
                let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
                if !moved.is_null() {
                    moved.copy_from_nonoverlapping(at, size.min(layout.size()));
                    self.dealloc(at, layout);
                }
                moved
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::MAPPED;

    #[test]
    fn reallocated_blocks_preserve_contents_across_the_size_limit() {
        let mut bytes: Vec<u8> = (0..=255).collect();
        for size in [MAPPED - 1, MAPPED, MAPPED + 1, 4 * MAPPED, MAPPED, MAPPED - 1, 256] {
            bytes.resize(size, 7);
            bytes.shrink_to_fit();
            assert!(bytes.iter().copied().eq((0..=255).chain(std::iter::repeat_n(7, size - 256))), "{size}");
        }
        for size in [MAPPED - 1, MAPPED] {
            assert!(vec![0_u8; size].iter().all(|byte| *byte == 0), "{size}");
        }
    }
}
