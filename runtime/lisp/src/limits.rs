//! What a program may use. Every limit ends the program with its own error kind and cannot be caught by it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::interrupt::{Interrupt, Interrupts, Watch};

/// Limits of one run. The default is that of a library: 1 s and 10 MB.
///
/// A later version can add a limit, so there are setters in place of literals:
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
    /// Wall clock of the whole run, parsing included.
    pub wall_clock: Duration,
    /// Bytes that the program's values may occupy.
    pub memory_bytes: u64,
    /// Nested calls.
    pub call_depth: u32,
    /// Steps of evaluation; `None` leaves it to the wall clock.
    pub steps: Option<u64>,
    /// Turns of one `loop`; `None` leaves it to the wall clock.
    pub loop_iterations: Option<u64>,
    /// CPU-bound workers of `pmap` and `pcalls`, over the whole program.
    pub parallel_workers: usize,
    /// Calls of `tool/call` over the whole program; `None` leaves it to the host.
    pub tool_calls: Option<u64>,
    /// Bytes that `println` and its family may collect.
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
    /// The defaults of a program that calls upstreams: 10 s and 100 MB.
    pub fn with_upstreams() -> Self {
        Limits { wall_clock: Duration::from_secs(10), memory_bytes: 100 * 1024 * 1024, ..Limits::default() }
    }
}

/// Writes a setter for each limit.
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
    /// Sets the wall clock of the whole run, parsing included.
    wall_clock: Duration;
    /// Sets the bytes that the program's values may occupy.
    memory_bytes: u64;
    /// Sets the number of nested calls.
    call_depth: u32;
    /// Sets the steps of evaluation; `None` leaves them to the wall clock.
    steps: Option<u64>;
    /// Sets the turns of one `loop`; `None` leaves them to the wall clock.
    loop_iterations: Option<u64>;
    /// Sets the CPU-bound workers of `pmap` and `pcalls`, over the whole program.
    parallel_workers: usize;
    /// Sets the calls of `tool/call` over the whole program; `None` leaves them to the host.
    tool_calls: Option<u64>;
    /// Sets the bytes that `println` and its family may collect.
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
    /// Stops the run: at its next tick, or at once where it waits for an upstream.
    pub fn cancel(&self) {
        self.inner.cancelled.store(true, Ordering::Release);
        self.inner.waits.interrupt();
    }

    /// Whether [`Cancel::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.inner.cancelled.load(Ordering::Acquire)
    }

    /// Has `wait` ended by a later [`Cancel::cancel`], or at once if that has happened, for as long as the [`Watch`] lives.
    pub fn watch(&self, wait: Interrupt) -> Watch {
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
