//! What a run may still use, shared by all of its threads.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::failed_calls::FailedCalls;
use crate::interrupt::{Interrupt, Interrupts, Watch};
use crate::limits::{Cancel, Limits};
use crate::missing_keys::MissingKeys;
use crate::mixed_comparisons::MixedComparisons;
use crate::parallel::WorkerPermits;
use crate::share::Share;

/// Reads the calling thread's net allocated bytes. The host installs the allocator that counts them.
pub type Gauge = fn() -> i64;

/// Limits, clocks and counters of one run. Every thread of the run holds the same meters.
pub(crate) struct Meters {
    pub(crate) limits: Limits,
    pub(crate) cancel: Cancel,
    pub(crate) gauge: Option<Gauge>,
    pub(crate) started: Instant,
    pub(crate) deadline: Instant,
    /// Steps that threads have reported.
    pub(crate) steps: AtomicU64,
    /// Calls of tools, refused ones included.
    tool_calls: AtomicU64,
    pub(crate) failed_calls: FailedCalls,
    /// Live bytes over all threads, as far as they have reported.
    live: AtomicI64,
    peak: AtomicI64,
    /// Growths that threads have asked for and not reported as live yet.
    reserved: AtomicI64,
    /// Whether some thread was refused memory, which ends the run: what is given back then is for none of the others.
    exhausted: AtomicBool,
    /// Waits for answers, which end when memory is exhausted.
    waits: Interrupts,
    /// Whether a sequence without an end was made, which must not leave the program.
    pub(crate) made_infinite_seq: AtomicBool,
    /// Keys that are not in the answers of tools.
    pub(crate) missing_keys: MissingKeys,
    pub(crate) mixed_comparisons: MixedComparisons,
    /// For threads that compute.
    pub(crate) permits: WorkerPermits,
    /// What the run has of the process, where somebody schedules its runs.
    pub(crate) share: Option<Arc<dyn Share>>,
    /// Why a scheduler has ended the run.
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

    /// Adds a thread's change to the run's live bytes and answers the sum.
    pub(crate) fn report_bytes(&self, delta: i64) -> i64 {
        self.report_growth(delta, 0)
    }

    /// [`Meters::report_bytes`], with `released` bytes of granted growths that the change includes or that did not happen.
    pub(crate) fn report_growth(&self, delta: i64, released: i64) -> i64 {
        self.reserve(-released);
        let live = self.live.fetch_add(delta, Ordering::Relaxed) + delta;
        self.peak.fetch_max(live, Ordering::Relaxed);
        // One change: between two of them, another run could use the memory that this one has allocated.
        let change = delta - released;
        if let Some(share) = self.share.as_ref().filter(|_| change != 0) {
            share.report_bytes(change);
        }
        live
    }

    /// Counts bytes of the inputs, which the share counts already.
    pub(crate) fn count_inputs(&self, bytes: i64) {
        self.live.fetch_add(bytes, Ordering::Relaxed);
        self.note_peak(bytes);
    }

    /// Adds a change of bytes that are reserved outside of the run's threads.
    pub(crate) fn report_reserved(&self, delta: i64) {
        let live = self.live.fetch_add(delta, Ordering::Relaxed) + delta;
        self.peak.fetch_max(live, Ordering::Relaxed);
        if let Some(share) = self.share.as_ref().filter(|_| delta != 0) {
            share.report_reserved(delta);
        }
    }

    /// Counts a call of a tool; false where it is one too many.
    pub(crate) fn call_tool(&self) -> bool {
        let made = self.tool_calls.fetch_add(1, Ordering::Relaxed);
        self.limits.tool_calls.is_none_or(|limit| made < limit)
    }

    /// Counts a growth that is about to happen on some thread and answers the bytes that are live after all such growths.
    pub(crate) fn reserve(&self, bytes: i64) -> i64 {
        let reserved = self.reserved.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        self.live.load(Ordering::Relaxed).saturating_add(reserved)
    }

    /// Ends the run for want of memory, on threads that wait for an answer too.
    pub(crate) fn exhaust(&self) {
        self.exhausted.store(true, Ordering::Release);
        self.waits.interrupt();
        if let Some(share) = &self.share {
            share.interrupt();
        }
    }

    /// Ends the run as if its memory were exhausted; `why` is what it reports.
    pub(crate) fn end(&self, why: String) {
        let _ = self.ended.set(why);
        self.exhaust();
    }

    /// Why a scheduler has ended the run, if one has.
    pub(crate) fn ended(&self) -> Option<&str> {
        self.ended.get().map(String::as_str)
    }

    /// Waits for room in the memory that the runs of the process share. False if the run ends first.
    pub(crate) fn make_room(&self, bytes: i64) -> bool {
        self.share.as_ref().is_none_or(|share| share.make_room(bytes, self.deadline))
    }

    /// Waits for a processor.
    pub(crate) fn acquire(&self) {
        self.permits.acquire(self.deadline);
        if let Some(share) = &self.share {
            share.acquire(self.deadline);
        }
    }

    /// Lets another thread compute.
    pub(crate) fn release(&self) {
        if let Some(share) = &self.share {
            share.release();
        }
        self.permits.release();
    }

    /// Has `wait` ended when memory is exhausted, or at once where it is, for as long as the [`Watch`] lives.
    pub(crate) fn watch(&self, wait: Interrupt) -> Watch {
        let watch = self.waits.add(wait);
        if self.is_exhausted() {
            self.waits.interrupt();
        }
        watch
    }

    pub(crate) fn is_exhausted(&self) -> bool {
        self.exhausted.load(Ordering::Acquire)
    }

    /// Records a growth that is about to happen, so that a refused one shows in the peak.
    pub(crate) fn note_peak(&self, bytes: i64) {
        self.peak.fetch_max(bytes, Ordering::Relaxed);
    }

    pub(crate) fn peak(&self) -> u64 {
        u64::try_from(self.peak.load(Ordering::Relaxed)).unwrap_or(0)
    }
}
