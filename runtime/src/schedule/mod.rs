//! Who runs: places for programs in flight, processors for those that compute, memory for all of them.
//!
//! A call asks for a [`Place`]; where there is none, or no memory, it waits in a queue for a bounded time. On its thread a program asks
//! for a processor through its [`Turn`], and gives it back while it waits for an upstream. A program that waits is a suspended
//! [fiber](crate::fibers), not a thread.
//!
//! - `admission`: places in flight and the queue for them.
//! - `processors`: who computes.
//! - `budget`: the memory that programs, sessions and requests share, and which program ends where it is used up.
//! - `run`: one program's part of these.
//! - `fair`: the order in which owners and their sessions are served.
//! - [`container`]: what the machine or its container allows.
//! - [`limits`]: the numbers, and where each comes from.

mod admission;
mod budget;
pub mod container;
pub(crate) mod fair;
pub mod limits;
mod processors;
mod run;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ptc_lisp::limits::Cancel;

pub use admission::Turned;
use admission::{Admission, Admitted};
use budget::{Budget, Claim};
pub use fair::Party;
pub use limits::{Limit, ScheduleLimits, Source};
use processors::Processors;
pub use run::{Computing, Turn};

/// Divides processors, places and memory among the programs of a process.
pub struct Scheduler {
    limits: ScheduleLimits,
    processors: Processors,
    admission: Arc<Admission>,
    budget: Arc<Budget>,
    branches: Branches,
    refusals: [AtomicU64; Refusal::ALL.len()],
}

/// Why there was no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The queue was full.
    QueueFull,
    /// The time in the queue was over.
    QueueTimeout,
    /// No processor was free in time.
    NoProcessor,
    /// A program was ended so that others have memory.
    MemoryBudget,
}

impl Refusal {
    /// Each with its label in metrics, in the order of the list.
    const ALL: [(Refusal, &str); 4] = [
        (Refusal::QueueFull, "queue_full"),
        (Refusal::QueueTimeout, "queue_timeout"),
        (Refusal::NoProcessor, "no_processor"),
        (Refusal::MemoryBudget, "memory_budget"),
    ];
}

/// The place of a program in flight, given back when it is dropped.
pub struct Place {
    scheduler: Arc<Scheduler>,
    admitted: Admitted,
    /// Until when the program has to have begun.
    begin_by: Instant,
}

/// The turns of programs that share a place.
#[derive(Debug, Clone)]
pub struct Turns {
    scheduler: Arc<Scheduler>,
    party: Party,
}

/// Bytes of a session or another holder in the budget, until this is dropped.
pub struct Held(#[expect(dead_code, reason = "dropping it is what counts")] Claim);

/// What is read off when somebody asks.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Programs that compute.
    pub running: usize,
    /// Programs in flight that do not.
    pub waiting: usize,
    /// Calls that wait for a place.
    pub queued: usize,
    /// Bytes of the budget in use.
    pub used_bytes: u64,
}

/// Branches that run beside the one that started them, over all programs.
#[derive(Debug)]
struct Branches {
    most: usize,
    running: AtomicUsize,
}

impl Branches {
    fn begin(&self) -> bool {
        let next = |running: usize| (running < self.most).then_some(running + 1);
        self.running.fetch_update(Ordering::AcqRel, Ordering::Relaxed, next).is_ok()
    }

    fn end(&self) {
        self.running.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A number that no other session or connection of the process has.
pub fn session_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Scheduler {
    /// A scheduler under these limits.
    pub fn new(limits: ScheduleLimits) -> Arc<Scheduler> {
        let budget = Budget::new(limits.memory_budget_bytes.value);
        let admission = Admission::new(
            limits.in_flight.value,
            limits.queued,
            limits.in_flight_per_session,
            Duration::from_millis(limits.queue_timeout_ms.value),
            Arc::clone(&budget),
        );
        let branches = Branches { most: limits.branches.value, running: AtomicUsize::new(0) };
        let processors = Processors::new(limits.processors.value);
        Arc::new(Scheduler { limits, processors, admission, budget, branches, refusals: Default::default() })
    }

    /// The limits in force.
    pub fn limits(&self) -> &ScheduleLimits {
        &self.limits
    }

    /// Asks for a place for a request of `bytes`. `then` is told the outcome: at once where there is a place, else when there is one, when
    /// the time in the queue is over, or when `cancel` stops the call.
    pub fn enter(
        self: &Arc<Self>,
        party: &Party,
        bytes: usize,
        cancel: &Cancel,
        then: impl FnOnce(Result<Place, Turned>) + Send + 'static,
    ) {
        let scheduler = Arc::clone(self);
        let begin_by = Instant::now() + self.admission.timeout();
        let told = move |admitted: Result<Admitted, Turned>| {
            match admitted {
                Err(Turned::QueueFull) => scheduler.count(Refusal::QueueFull),
                Err(Turned::TimedOut) => scheduler.count(Refusal::QueueTimeout),
                Ok(_) | Err(Turned::Cancelled) => {}
            }
            then(admitted.map(|admitted| Place { scheduler, admitted, begin_by }));
        };
        self.admission.enter(party, bytes, cancel, Box::new(told));
    }

    /// Whether calls in flight or in the queue are left.
    pub fn is_idle(&self) -> bool {
        self.admission.counts() == (0, 0)
    }

    /// Whether the next call that has to wait is turned away.
    pub fn is_full(&self) -> bool {
        self.admission.is_full()
    }

    /// Counts bytes of the budget that no program holds.
    pub fn hold(&self, bytes: usize) -> Held {
        Held(self.budget.claim(bytes))
    }

    /// How much it has to do.
    pub fn load(&self) -> Load {
        let ((running, _), (in_flight, queued)) = (self.processors.counts(), self.admission.counts());
        Load { running, waiting: in_flight.saturating_sub(running), queued, used_bytes: self.budget.used() }
    }

    /// How often there was no room, by reason.
    pub fn refusals(&self) -> [(&'static str, u64); Refusal::ALL.len()] {
        let count = |at: usize| self.refusals.get(at).map_or(0, |count| count.load(Ordering::Relaxed));
        std::array::from_fn(|at| (Refusal::ALL.get(at).map_or("", |(_, label)| label), count(at)))
    }

    fn count(&self, why: Refusal) {
        if let Some(count) = self.refusals.get(why as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Milliseconds that a caller that was turned away had better wait.
    pub fn retry_after_ms(&self) -> u64 {
        u64::try_from(self.admission.timeout().as_millis()).unwrap_or(u64::MAX).clamp(100, 5_000)
    }
}

impl Turns {
    /// The next turn; the program has to begin by then.
    pub fn next(&self, cancel: &Cancel, begin_by: Instant) -> Turn {
        Turn::new(&self.scheduler, self.party.clone(), cancel, begin_by, 0)
    }
}

impl Place {
    /// The turn of the one program that runs on this place.
    pub fn turn(&self, cancel: &Cancel) -> Turn {
        let admitted = &self.admitted;
        Turn::new(&self.scheduler, admitted.party().clone(), cancel, self.begin_by, admitted.bytes()).after(admitted.queued())
    }

    /// For several programs that run on this place one after the other.
    pub fn turns(&self) -> Turns {
        Turns { scheduler: Arc::clone(&self.scheduler), party: self.admitted.party().clone() }
    }
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Held").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Place").field("admitted", &self.admitted).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scheduler").field("limits", &self.limits).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
