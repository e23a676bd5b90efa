//! Checks of the clock, the memory and the cancel flag while a program runs, and the faults of its limits.

use std::sync::atomic::Ordering;
use std::time::Instant;

use super::{Machine, QUANTUM, Raised};
use crate::parallel::Task;
use crate::{ErrorKind, fiber};

/// Hint for a program that was ended to free memory for others.
const ENDED_HINT: &str = "send the same program again later, or hold less at once: filter or aggregate earlier";

/// How to treat charged but not yet allocated growth when reading the gauge.
#[derive(Clone, Copy)]
pub(super) enum PendingCharges {
    /// Keep it: a builtin may count steps, which reads the gauge, between the charge and the allocation.
    Keep,
    /// Discard it: the allocation has happened or will not happen.
    Discard,
}

impl Machine {
    /// Counts `n` steps. Checks the clock, the gauge and the cancel flag once per quantum.
    ///
    /// # Errors
    ///
    /// Raises a fault if a limit is exceeded or the run was cancelled.
    #[inline]
    pub fn tick(&mut self, n: u32) -> Result<(), Raised> {
        if self.fuel > n {
            self.fuel -= n;
            Ok(())
        } else {
            self.checkpoint(n)
        }
    }

    /// Brings the next check of the clock forward by `n` steps without counting them, for work whose cost is known only as an
    /// upper bound.
    #[inline]
    pub(crate) fn check_soon(&mut self, n: u32) -> Result<(), Raised> {
        if self.fuel > n {
            self.fuel -= n;
            self.granted -= n;
            Ok(())
        } else {
            self.checkpoint(0)
        }
    }

    /// Checks the clock, the gauge and the cancel flag now, after work that could not be counted in steps.
    pub(crate) fn checkpoint_now(&mut self) -> Result<(), Raised> {
        self.checkpoint(0)
    }

    /// Charges `bytes` before an allocation. Raises if the run's live bytes would exceed the limit with them.
    ///
    /// # Errors
    ///
    /// Raises a fault if the memory limit would be exceeded.
    #[inline]
    pub fn charge(&mut self, bytes: usize) -> Result<(), Raised> {
        // Small growths are left to the gauge.
        if bytes < 4096 { Ok(()) } else { self.charge_large(bytes) }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn charge_large(&mut self, bytes: usize) -> Result<(), Raised> {
        // Clamp the request: the sum of several huge ones would overflow.
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX).min(i64::MAX / 1024);
        if self.meters.is_exhausted() {
            return Err(self.out_of_memory());
        }
        let limit = self.memory_limit();
        let mut live = self.meters.reserve(bytes);
        if live > limit {
            // The gauge may count earlier charges by now, or their memory may have been freed.
            self.read_gauge(PendingCharges::Discard);
            live = self.meters.reserve(0);
        }
        if live > limit {
            self.meters.reserve(-bytes);
            self.meters.note_peak(live);
            return Err(self.out_of_memory());
        }
        if !self.meters.reserve_growth(bytes) {
            self.meters.reserve(-bytes);
            return Err(self.stopped());
        }
        self.pending += bytes;
        if self.meters.is_exhausted() { Err(self.out_of_memory()) } else { Ok(()) }
    }

    /// The fault of a run that waited for memory until it ended.
    #[cold]
    pub(super) fn stopped(&mut self) -> Raised {
        if self.meters.is_exhausted() {
            self.out_of_memory()
        } else if self.meters.cancel.is_cancelled() {
            self.raise(ErrorKind::Cancelled, "the run was cancelled")
        } else {
            self.out_of_time()
        }
    }

    /// Reports this thread's memory before the host reserves bytes, so that values that were dropped meanwhile do not count.
    pub(crate) fn report_memory(&mut self) {
        self.read_gauge(PendingCharges::Discard);
    }

    /// Stops counting `bytes` that this thread has allocated: a reservation counts them, and another thread frees them.
    pub(crate) fn hand_over(&mut self, bytes: usize) {
        self.gauged = self.gauged.saturating_add(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    pub(super) fn memory_limit(&self) -> i64 {
        i64::try_from(self.meters.limits.memory_bytes).unwrap_or(i64::MAX)
    }

    /// Bytes that the program may still allocate.
    pub(crate) fn room(&mut self) -> usize {
        self.read_gauge(PendingCharges::Discard);
        usize::try_from(self.memory_limit().saturating_sub(self.meters.reserve(0))).unwrap_or(0)
    }

    #[cold]
    #[inline(never)]
    pub(super) fn checkpoint(&mut self, n: u32) -> Result<(), Raised> {
        let used = u64::from(self.granted - self.fuel) + u64::from(n);
        let steps = self.meters.steps.fetch_add(used, Ordering::Relaxed) + used;
        self.fuel = QUANTUM;
        self.granted = QUANTUM;
        if self.meters.cancel.is_cancelled() || self.task.as_ref().is_some_and(Task::is_superseded) {
            return Err(self.raise(ErrorKind::Cancelled, "the run was cancelled"));
        }
        if let Some(limit) = self.meters.limits.steps.filter(|&limit| steps > limit) {
            return Err(self.raise(ErrorKind::LoopLimitExceeded, format!("the program took more than {limit} steps")));
        }
        if Instant::now() >= self.meters.deadline {
            return Err(self.out_of_time());
        }
        let live = self.read_gauge(PendingCharges::Keep);
        if !self.meters.reserve_growth(0) {
            return Err(self.stopped());
        }
        if let Some(share) = self.meters.share.as_ref().filter(|share| share.is_slice_over()) {
            share.release();
            fiber::let_others_run();
            share.acquire(self.meters.deadline);
        }
        if live > self.memory_limit() || self.meters.is_exhausted() {
            return Err(self.out_of_memory());
        }
        Ok(())
    }

    /// Reports this thread's change since the last check and returns the run's live bytes.
    pub(super) fn read_gauge(&mut self, pending_charges: PendingCharges) -> i64 {
        let now = self.meters.gauge.map_or(0, |read| read());
        let delta = now - self.gauged;
        self.gauged = now;
        // Growth is matched with charges first.
        let mut released = 0;
        for reserved in [&mut self.aged, &mut self.pending] {
            let part = (delta - released).clamp(0, *reserved);
            *reserved -= part;
            released += part;
        }
        released += std::mem::take(&mut self.aged);
        match pending_charges {
            PendingCharges::Keep => self.aged = std::mem::take(&mut self.pending),
            PendingCharges::Discard => released += std::mem::take(&mut self.pending),
        }
        let live = self.meters.report_growth(delta, released);
        if self.meters.gauge.is_none() { 0 } else { live }
    }

    #[cold]
    pub(crate) fn out_of_memory(&mut self) -> Raised {
        // Before anything is dropped on the way out.
        self.meters.exhaust();
        let limit = self.meters.limits.memory_bytes;
        if let Some(why) = self.meters.ended() {
            let why = why.to_owned();
            return self.raise_with_hint(ErrorKind::MemoryExceeded, why, ENDED_HINT);
        }
        self.raise_with_hint(
            ErrorKind::MemoryExceeded,
            format!("the program's values need more than {limit} bytes"),
            "filter or aggregate earlier, so that less is held at once",
        )
    }

    #[cold]
    #[inline(never)]
    pub(super) fn too_deep(&mut self) -> Raised {
        let depth = self.depth - 1;
        self.raise_with_hint(
            ErrorKind::DepthExceeded,
            format!("calls are nested deeper than {depth} levels"),
            "use loop and recur, or reduce, instead of calling deeper and deeper",
        )
    }

    #[cold]
    pub(crate) fn out_of_time(&mut self) -> Raised {
        let ms = self.meters.limits.wall_clock.as_millis();
        self.raise(ErrorKind::Timeout, format!("the program ran longer than {ms} ms"))
    }
}
