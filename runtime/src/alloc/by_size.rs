//! Two allocators, each for what it is good at.
//!
//! mimalloc makes the small blocks that values consist of without a lock, and close together: a decoded document is there a fifth
//! sooner. Large blocks it would keep for a second after they are freed, and copy when they grow; the system gives them back at once,
//! so that a memory limit bounds the process too, and lets them grow where they are. glibc does so only where it is told to: see
//! [`fix_threshold`].

use std::alloc::{GlobalAlloc, Layout, System};

use mimalloc::MiMalloc;

use super::MAPPED;

/// Gives small blocks from mimalloc and large ones from the system.
pub(super) struct BySize;

/// From this size on glibc has to give a block pages of its own. For smaller ones that costs more time than it saves memory: at 128 KiB a
/// block takes 60 microseconds more, at 512 KiB none.
#[cfg(target_env = "gnu")]
const OWN_PAGES: libc::c_int = 512 * 1024;

/// Fixes that size, once.
///
/// By default glibc raises it to the largest block that was freed, up to 32 MB, and from then on keeps freed blocks in a heap for each
/// thread. After a few programs with large strings the process then holds far more than the limit of any of them.
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "the standard library has no call for it")]
fn fix_threshold() {
    use std::sync::atomic::{AtomicBool, Ordering};
    static IS_FIXED: AtomicBool = AtomicBool::new(false);
    if !IS_FIXED.load(Ordering::Relaxed) && !IS_FIXED.swap(true, Ordering::Relaxed) {
        // SAFETY: it sets a parameter of the allocator under the allocator's own lock. It allocates nothing itself.
        unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, OWN_PAGES) };
    }
}

/// Other systems have a fixed size.
#[cfg(not(target_env = "gnu"))]
fn fix_threshold() {}

#[expect(unsafe_code, reason = "an allocator cannot be written otherwise; every call is passed on")]
// SAFETY: the size of a block tells whose it is, in every method alike; a block that grows or shrinks past the border is copied into
// one of the other allocator. Neither allocator panics.
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
                // The caller warrants that the new size makes a layout with the alignment of the old one.
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
    fn blocks_keep_what_is_in_them_on_both_sides_of_the_border() {
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
