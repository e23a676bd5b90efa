//! Resource limits of a program. Exceeding a limit ends the program with an error kind of its own, which the program cannot
//! catch.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::interrupt::{Interrupt, InterruptGuard, Interrupts};

/// Limits of one run. The default, 1 s and 10 MB, is meant for use as a library.
///
/// New limits may be added in later versions, so that they are set by methods instead of struct literals:
///
/// ```
/// use std::time::Duration;
/// use ptc_lisp::Limits;
///
/// let limits = Limits::default().wall_clock(Duration::from_secs(5)).memory_bytes(64 << 20);
/// assert_eq!(limits.call_depth, Limits::default().call_depth);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Limits {
    /// Wall-clock time of the whole run, including parsing.
    pub wall_clock: Duration,
    /// Bytes that the program's values may occupy.
    pub memory_bytes: u64,
    /// Maximum depth of nested calls.
    pub call_depth: u32,
    /// Maximum steps of evaluation. With `None` only the wall clock limits them.
    pub steps: Option<u64>,
    /// Maximum iterations of one `loop`. With `None` only the wall clock limits them.
    pub loop_iterations: Option<u64>,
    /// Maximum CPU-bound workers of `pmap` and `pcalls` in the whole program.
    pub parallel_workers: usize,
    /// Maximum calls of `tool/call` in the whole program. With `None` only the host limits them.
    pub tool_calls: Option<u64>,
    /// Maximum bytes of output by `println` and similar functions.
    pub print_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            wall_clock: Duration::from_secs(1),
            memory_bytes: 10 * 1024 * 1024,
            call_depth: 4_000,
            steps: None,
            loop_iterations: None,
            parallel_workers: 8,
            tool_calls: None,
            print_bytes: 64 * 1024,
        }
    }
}

impl Limits {
    /// The defaults for a program that calls upstreams: 10 s and 100 MB.
    pub fn with_upstreams() -> Self {
        Limits { wall_clock: Duration::from_secs(10), memory_bytes: 100 * 1024 * 1024, ..Limits::default() }
    }
}

/// Defines a setter for each limit.
macro_rules! setters {
    ($($(#[doc = $doc:literal])+ $name:ident: $kind:ty;)*) => {
        impl Limits {
            $($(#[doc = $doc])+
            #[must_use]
            pub fn $name(mut self, $name: $kind) -> Self {
                self.$name = $name;
                self
            })*
        }
    };
}

setters! {
    /// Sets the wall-clock time of the whole run, including parsing.
    wall_clock: Duration;
    /// Sets the bytes that the program's values may occupy.
    memory_bytes: u64;
    /// Sets the maximum depth of nested calls.
    call_depth: u32;
    /// Sets the maximum steps of evaluation. With `None` only the wall clock limits them.
    steps: Option<u64>;
    /// Sets the maximum iterations of one `loop`. With `None` only the wall clock limits them.
    loop_iterations: Option<u64>;
    /// Sets the maximum CPU-bound workers of `pmap` and `pcalls` in the whole program.
    parallel_workers: usize;
    /// Sets the maximum calls of `tool/call` in the whole program. With `None` only the host limits them.
    tool_calls: Option<u64>;
    /// Sets the maximum bytes of output by `println` and similar functions.
    print_bytes: usize;
}

/// Stops a run from another thread. Clones stop the same run.
#[derive(Clone, Default)]
pub struct Cancel {
    inner: Arc<CancelInner>,
}

#[derive(Default)]
struct CancelInner {
    cancelled: AtomicBool,
    waits: Interrupts,
}

impl Cancel {
    /// Stops the run at its next check, or at once if it is waiting for an upstream.
    pub fn cancel(&self) {
        self.inner.cancelled.store(true, Ordering::Release);
        self.inner.waits.interrupt();
    }

    /// Whether [`Cancel::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.inner.cancelled.load(Ordering::Acquire)
    }

    /// Registers `wait` to be ended by a later [`Cancel::cancel`] while the [`InterruptGuard`] exists. If the run is already
    /// cancelled, ends it at once.
    pub fn watch(&self, wait: Interrupt) -> InterruptGuard {
        let watch = self.inner.waits.add(wait);
        if self.is_cancelled() {
            self.inner.waits.interrupt();
        }
        watch
    }
}

impl std::fmt::Debug for Cancel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cancel").field("cancelled", &self.is_cancelled()).finish()
    }
}
