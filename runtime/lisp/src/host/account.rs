//! The account of a run's memory, which the host charges for bytes that it keeps for the program.

use std::sync::Arc;
use std::time::Instant;

use super::Fault;
use crate::ErrorKind;
use crate::interrupt::{Interrupt, InterruptGuard};
use crate::limits::{Cancel, Limits};
use crate::machine::Meters;
use crate::share::Share;

/// A handle for the host to a run's memory account, which can also end the run. Clones refer to the same account.
#[derive(Clone)]
pub struct Account {
    meters: Arc<Meters>,
}

impl Account {
    pub(crate) fn new(meters: Arc<Meters>) -> Account {
        Account { meters }
    }

    /// Creates the account of a run in another process. It counts what this process keeps for the run, and `share` all of it.
    pub fn of_remote_run(limits: Limits, cancel: Cancel, started: Instant, share: Arc<dyn Share>) -> Account {
        Account { meters: Arc::new(Meters::new(limits, cancel, None, started, Some(share))) }
    }

    /// Returns the reason for which the run was ended, if it was.
    pub fn end_reason(&self) -> Option<&str> {
        self.meters.ended()
    }

    /// Counts `bytes` as memory of the program until the reservation is dropped, on any thread.
    ///
    /// # Errors
    ///
    /// Returns the fault that ends the program if its values and reservations together would exceed its limit.
    pub fn reserve(&self, bytes: usize) -> Result<Reservation, Fault> {
        let mut reservation = Reservation { meters: Arc::clone(&self.meters), bytes: 0 };
        reservation.resize(bytes).map(|()| reservation)
    }

    /// Ends the run with [`ErrorKind::MemoryExceeded`] and the message `why`. The run notices at its next check, or at once if it
    /// is waiting.
    pub fn end(&self, why: String) {
        self.meters.end(why);
    }

    /// Bytes that the program may occupy.
    pub fn limit(&self) -> u64 {
        self.meters.limits.memory_bytes
    }

    /// Registers `wait` to be ended when the run runs out of memory or a scheduler ends it, while the [`InterruptGuard`] exists.
    pub fn watch(&self, wait: Interrupt) -> InterruptGuard {
        self.meters.watch(wait)
    }

    /// Whether the run has exceeded its deadline or its memory, or was cancelled.
    pub fn is_over(&self) -> bool {
        self.meters.cancel.is_cancelled() || self.meters.is_exhausted() || Instant::now() >= self.meters.deadline
    }
}

/// Makes the fault of a program that runs out of memory while it makes calls.
pub(crate) fn out_of_memory(limit: u64) -> Fault {
    let message =
        format!("the program's values, the arguments of its calls and the answers on their way need more than {limit} bytes");
    let hint = "ask for less at once, such as a page or a filter, or make fewer calls at once, such as with map instead of pmap";
    Fault::new(ErrorKind::MemoryExceeded, message).with_hint(hint)
}

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Account").field("limit", &self.limit()).finish_non_exhaustive()
    }
}

/// Bytes that count as memory of a run's program until the reservation is dropped.
pub struct Reservation {
    meters: Arc<Meters>,
    bytes: i64,
}

impl std::fmt::Debug for Reservation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reservation").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Reservation {
    /// Counts `bytes` instead of the previous number, even if this fails.
    ///
    /// # Errors
    ///
    /// Returns the fault that ends the program if its values and reservations together would exceed its limit.
    pub fn resize(&mut self, bytes: usize) -> Result<(), Fault> {
        // Clamped, so that the sum of several enormous requests cannot overflow.
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX).min(i64::MAX / 1024);
        let grown = bytes - std::mem::replace(&mut self.bytes, bytes);
        let meters = &self.meters;
        meters.report_reserved(grown);
        let limit = meters.limits.memory_bytes;
        if grown <= 0 || meters.reserve(0) <= i64::try_from(limit).unwrap_or(i64::MAX) && !meters.is_exhausted() {
            return Ok(());
        }
        meters.exhaust();
        Err(meters.ended().map_or_else(|| out_of_memory(limit), |why| Fault::new(ErrorKind::MemoryExceeded, why)))
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.meters.report_reserved(-self.bytes);
    }
}
