//! What a program may use. Every limit ends the program with its own error kind and cannot be caught by it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::host::Interrupt;

/// Limits of one run. The default is that of a library: 1 s and 10 MB.
#[derive(Debug, Clone)]
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

/// Stops a run from another thread. Clones stop the same run.
#[derive(Clone, Default)]
pub struct Cancel {
    inner: Arc<CancelInner>,
}

#[derive(Default)]
struct CancelInner {
    cancelled: AtomicBool,
    waits: Mutex<Vec<Interrupt>>,
}

impl Cancel {
    /// Stops the run: at its next tick, or at once where it waits for an upstream.
    pub fn cancel(&self) {
        self.inner.cancelled.store(true, Ordering::Release);
        let waits = std::mem::take(&mut *self.inner.waits.lock().unwrap_or_else(PoisonError::into_inner));
        for wait in waits {
            wait.interrupt();
        }
    }

    /// Whether [`Cancel::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.inner.cancelled.load(Ordering::Acquire)
    }

    /// Has `wait` ended by a later [`Cancel::cancel`]; at once if that has happened.
    pub(crate) fn watch(&self, wait: &Interrupt) {
        self.inner.waits.lock().unwrap_or_else(PoisonError::into_inner).push(wait.clone());
        if self.is_cancelled() {
            wait.interrupt();
        }
    }
}

impl std::fmt::Debug for Cancel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cancel").field("cancelled", &self.is_cancelled()).finish()
    }
}
