//! The remaining resources of a run, shared by all of its threads.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::failed_calls::FailedCalls;
use crate::interrupt::{Interrupt, InterruptGuard, Interrupts};
use crate::limits::{Cancel, Limits};
use crate::missing_keys::MissingKeys;
use crate::mixed_comparisons::MixedComparisons;
use crate::parallel::WorkerPermits;
use crate::share::Share;

/// Reads the calling thread's net allocated bytes. The host installs the allocator that counts them.
pub type Gauge = fn() -> i64;

/// Limits, clocks and counters of one run. All threads of the run share them.
pub(crate) struct Meters {
    pub(crate) limits: Limits,
    pub(crate) cancel: Cancel,
    pub(crate) gauge: Option<Gauge>,
    pub(crate) started: Instant,
    pub(crate) deadline: Instant,
    /// Steps that threads have reported.
    pub(crate) steps: AtomicU64,
    /// Number of calls of tools, including rejected ones.
    tool_calls: AtomicU64,
    pub(crate) failed_calls: FailedCalls,
    /// Live bytes of all threads, as of their last reports.
    live: AtomicI64,
    peak: AtomicI64,
    /// Bytes of growths that threads have requested and not yet reported as live.
    reserved: AtomicI64,
    /// Whether a request for memory was rejected. This ends the run, even if other threads free memory afterwards.
    exhausted: AtomicBool,
    /// The waits for answers, which are interrupted when memory is exhausted.
    waits: Interrupts,
    /// Whether an infinite sequence was made. It cannot be the result of the program.
    pub(crate) made_infinite_seq: AtomicBool,
    /// Keys that were looked up in answers of tools and are missing there.
    pub(crate) missing_keys: MissingKeys,
    pub(crate) mixed_comparisons: MixedComparisons,
    /// Permits of the threads that compute.
    pub(crate) permits: WorkerPermits,
    /// The run's share of the process, if a scheduler divides it among runs.
    pub(crate) share: Option<Arc<dyn Share>>,
    /// The reason for which a scheduler ended the run.
    ended: OnceLock<String>,
}

impl Meters {
    pub(crate) fn new(
        limits: Limits,
        cancel: Cancel,
        gauge: Option<Gauge>,
        started: Instant,
        share: Option<Arc<dyn Share>>,
    ) -> Self {
        let deadline = started.checked_add(limits.wall_clock).unwrap_or_else(|| started + Duration::from_hours(24));
        let permits = WorkerPermits::new(limits.parallel_workers);
        Meters {
            limits,
            cancel,
            gauge,
            started,
            deadline,
            steps: AtomicU64::new(0),
            tool_calls: AtomicU64::new(0),
            failed_calls: FailedCalls::default(),
            live: AtomicI64::new(0),
            peak: AtomicI64::new(0),
            reserved: AtomicI64::new(0),
            exhausted: AtomicBool::new(false),
            waits: Interrupts::default(),
            made_infinite_seq: AtomicBool::new(false),
            missing_keys: MissingKeys::new(),
            mixed_comparisons: MixedComparisons::default(),
            permits,
            share,
            ended: OnceLock::new(),
        }
    }

    /// Adds a thread's change to the run's live bytes and returns the sum.
    pub(crate) fn report_bytes(&self, delta: i64) -> i64 {
        self.report_growth(delta, 0)
    }

    /// Like [`Meters::report_bytes`]. Also releases `released` bytes of granted growths that the change includes or that did not
    /// happen.
    pub(crate) fn report_growth(&self, delta: i64, released: i64) -> i64 {
        self.reserve(-released);
        let live = self.live.fetch_add(delta, Ordering::Relaxed) + delta;
        self.peak.fetch_max(live, Ordering::Relaxed);
        // Both are reported as one change, since between two reports another run could use the memory that this one has
        // allocated.
        let change = delta - released;
        if let Some(share) = self.share.as_ref().filter(|_| change != 0) {
            share.report_bytes(change);
        }
        live
    }

    /// Counts bytes of the inputs, which the share has counted already.
    pub(crate) fn count_inputs(&self, bytes: i64) {
        self.live.fetch_add(bytes, Ordering::Relaxed);
        self.note_peak(bytes);
    }

    /// Adds a change of the bytes that are reserved outside of the run's threads.
    pub(crate) fn report_reserved(&self, delta: i64) {
        let live = self.live.fetch_add(delta, Ordering::Relaxed) + delta;
        self.peak.fetch_max(live, Ordering::Relaxed);
        if let Some(share) = self.share.as_ref().filter(|_| delta != 0) {
            share.report_reserved(delta);
        }
    }

    /// Counts a call of a tool. Returns false if it exceeds the limit.
    pub(crate) fn call_tool(&self) -> bool {
        let made = self.tool_calls.fetch_add(1, Ordering::Relaxed);
        self.limits.tool_calls.is_none_or(|limit| made < limit)
    }

    /// Counts a growth that a thread is about to make. Returns the live bytes including all such growths.
    pub(crate) fn reserve(&self, bytes: i64) -> i64 {
        let reserved = self.reserved.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        self.live.load(Ordering::Relaxed).saturating_add(reserved)
    }

    /// Ends the run because memory is exhausted, including the waits of its threads.
    pub(crate) fn exhaust(&self) {
        self.exhausted.store(true, Ordering::Release);
        self.waits.interrupt();
        if let Some(share) = &self.share {
            share.interrupt();
        }
    }

    /// Ends the run as if its memory were exhausted. `why` is the message of its error.
    pub(crate) fn end(&self, why: String) {
        let _ = self.ended.set(why);
        self.exhaust();
    }

    /// Returns the reason for which a scheduler ended the run, if any.
    pub(crate) fn ended(&self) -> Option<&str> {
        self.ended.get().map(String::as_str)
    }

    /// Waits for `bytes` of the memory that the runs of the process share. Returns false if the run ends first.
    pub(crate) fn reserve_growth(&self, bytes: i64) -> bool {
        self.share.as_ref().is_none_or(|share| share.reserve_growth(bytes, self.deadline))
    }

    /// Waits for a permit and for a processor.
    pub(crate) fn acquire(&self) {
        self.permits.acquire(self.deadline);
        if let Some(share) = &self.share {
            share.acquire(self.deadline);
        }
    }

    /// Releases the processor and the permit, so that another thread can compute.
    pub(crate) fn release(&self) {
        if let Some(share) = &self.share {
            share.release();
        }
        self.permits.release();
    }

    /// Registers `wait` to be ended when memory is exhausted, while the [`InterruptGuard`] exists. If memory is already
    /// exhausted, ends it at once.
    pub(crate) fn watch(&self, wait: Interrupt) -> InterruptGuard {
        let watch = self.waits.add(wait);
        if self.is_exhausted() {
            self.waits.interrupt();
        }
        watch
    }

    pub(crate) fn is_exhausted(&self) -> bool {
        self.exhausted.load(Ordering::Acquire)
    }

    /// Records a requested growth in the peak, even if it is rejected.
    pub(crate) fn note_peak(&self, bytes: i64) {
        self.peak.fetch_max(bytes, Ordering::Relaxed);
    }

    pub(crate) fn peak(&self) -> u64 {
        u64::try_from(self.peak.load(Ordering::Relaxed)).unwrap_or(0)
    }
}
