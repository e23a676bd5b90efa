//! The scheduler: admission of programs, processors for those that compute, and a memory budget for all of them.
//!
//! A call asks for an [`AdmissionPermit`]; where there is none, or no memory, it waits in a queue for a bounded time. On its
//! thread a program asks for a processor through its [`ProcessorLease`], and gives it back while it waits for an upstream. A
//! program that waits is a suspended [fiber](crate::fibers), not a thread.
//!
//! - `admission`: the slots of programs in flight, and the queue for them.
//! - `answers`: the answers that clients have not read yet.
//! - `processors`: the processors, and the programs that wait for one.
//! - `budget`: the memory that programs, sessions and requests share, and the choice of the program to end when it is exhausted.
//! - `memory_waiters`: the threads and fibers that wait for memory.
//! - `run`: one program's share of these.
//! - `fair`: the order in which owners and their sessions are served.
//! - `state_memory`: the part of the budget for the states of sessions and tasks.
//! - [`fibers`], [`pool`], [`alloc`]: stacks, threads and memory of programs. [`descriptors`]: the limit of open files.
//! - [`container`]: limits of the machine or its container.
//! - [`limits`]: the limits with their sources.

mod admission;
pub mod alloc;
mod answers;
mod budget;
pub mod container;
pub mod descriptors;
pub mod fair;
pub mod fibers;
pub mod limits;
mod memory_waiters;
pub mod pool;
mod processors;
mod run;
mod state_memory;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ptc_lisp::limits::Cancel;

pub use admission::Rejection;
use admission::{Admission, InFlightSlot};
pub use answers::{AnswerReservation, UnreadLimitExceeded};
use budget::{Budget, Claim};
pub use fair::ClientKey;
pub use limits::{Limit, ScheduleLimits, Source};
use processors::Processors;
pub use processors::park_holding;
pub use run::{ProcessorGuard, ProcessorLease, WaitTimes};
pub use state_memory::{StateMemoryFull, StateReservation};

use crate::pool::JobError;

/// Divides processors, slots and memory among the programs of a process.
pub struct Scheduler {
    limits: ScheduleLimits,
    processors: Processors,
    admission: Arc<Admission>,
    budget: Arc<Budget>,
    /// The part of the budget that states of sessions and tasks may take.
    state_budget: Arc<Budget>,
    branches: Branches,
    /// Programs that hold a processor.
    running: AtomicUsize,
    refusals: [AtomicU64; Refusal::ALL.len()],
}

/// Why a program was rejected or ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The queue was full.
    QueueFull,
    /// The queue timeout has passed.
    QueueTimeout,
    /// No processor was free in time.
    NoProcessor,
    /// The operating system had no stack or thread.
    NoStack,
    /// A program was ended to free memory for others.
    MemoryBudget,
    /// An answer was discarded, since its client does not read answers.
    AnswerDiscarded,
}

impl Refusal {
    /// All variants with their labels in metrics, in order.
    const ALL: [(Refusal, &str); 6] = [
        (Refusal::QueueFull, "queue_full"),
        (Refusal::QueueTimeout, "queue_timeout"),
        (Refusal::NoProcessor, "no_processor"),
        (Refusal::NoStack, "no_stack"),
        (Refusal::MemoryBudget, "memory_budget"),
        (Refusal::AnswerDiscarded, "answer_discarded"),
    ];
}

/// The permit of an admitted program. Dropping it releases its slot.
pub struct AdmissionPermit {
    scheduler: Arc<Scheduler>,
    admitted: InFlightSlot,
    /// Deadline for the program to begin.
    begin_by: Instant,
}

/// Issues the processor leases of programs that share a permit.
#[derive(Debug, Clone)]
pub struct LeaseIssuer {
    scheduler: Arc<Scheduler>,
    client_key: ClientKey,
    queued: Duration,
}

/// Bytes of the memory budget that a session or another holder uses, until this is dropped.
pub struct BudgetReservation(Claim);

/// The current load.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Programs that hold a processor.
    pub running: usize,
    /// Programs in flight that do not hold one.
    pub waiting: usize,
    /// Calls that wait for admission.
    pub queued: usize,
    /// Bytes of the budget in use.
    pub used_bytes: u64,
}

/// Parallel branches of all programs.
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

/// Returns a number that is unique among the sessions and connections of the process.
pub fn session_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Scheduler {
    /// Creates a scheduler with these limits.
    pub fn new(limits: ScheduleLimits) -> Arc<Scheduler> {
        let budget = Budget::new(limits.memory_budget_bytes.value);
        let admission = Admission::new(
            limits.in_flight.value,
            limits.queued,
            limits.in_flight_per_session.as_ref().map(|limit| limit.value),
            Duration::from_millis(limits.queue_timeout_ms.value),
            Arc::clone(&budget),
        );
        let branches = Branches { most: limits.branches.value, running: AtomicUsize::new(0) };
        let processors = Processors::new(limits.processors.value);
        let running = AtomicUsize::new(0);
        let state_budget = state_memory::part_of(&budget);
        let refusals = Default::default();
        Arc::new(Scheduler { limits, processors, admission, budget, state_budget, branches, running, refusals })
    }

    /// Returns the limits in force.
    pub fn limits(&self) -> &ScheduleLimits {
        &self.limits
    }

    /// Requests admission for a request of `bytes`. Calls `then` with the outcome: at once if a slot is free, otherwise when one
    /// becomes free, after the queue timeout, or when `cancel` is triggered.
    pub fn enter(
        self: &Arc<Self>,
        client_key: &ClientKey,
        bytes: usize,
        cancel: &Cancel,
        then: impl FnOnce(Result<AdmissionPermit, Rejection>) + Send + 'static,
    ) {
        let scheduler = Arc::clone(self);
        let begin_by = Instant::now() + self.admission.timeout();
        let told = move |admitted: Result<InFlightSlot, Rejection>| {
            match admitted {
                Err(Rejection::QueueFull) => scheduler.count(Refusal::QueueFull),
                Err(Rejection::TimedOut) => scheduler.count(Refusal::QueueTimeout),
                Ok(_) | Err(Rejection::Cancelled) => {}
            }
            then(admitted.map(|admitted| AdmissionPermit { scheduler, admitted, begin_by }));
        };
        self.admission.enter(client_key, bytes, cancel, Box::new(told));
    }

    /// Whether calls in flight or in the queue are left.
    pub fn is_idle(&self) -> bool {
        self.admission.counts() == (0, 0)
    }

    /// Whether the next call that would have to wait is rejected.
    pub fn is_full(&self) -> bool {
        self.admission.is_full()
    }

    /// Reserves bytes of the budget for a holder other than a program.
    pub fn hold(&self, bytes: usize) -> BudgetReservation {
        BudgetReservation(self.budget.claim(bytes))
    }

    /// Returns the current load.
    pub fn load(&self) -> Load {
        let (running, (in_flight, queued)) = (self.running.load(Ordering::Relaxed), self.admission.counts());
        Load { running, waiting: in_flight.saturating_sub(running), queued, used_bytes: self.budget.used() }
    }

    /// Numbers of rejections by reason.
    pub fn refusals(&self) -> [(&'static str, u64); Refusal::ALL.len()] {
        let count = |at: usize| self.refusals.get(at).map_or(0, |count| count.load(Ordering::Relaxed));
        std::array::from_fn(|at| (Refusal::ALL.get(at).map_or("", |(_, label)| label), count(at)))
    }

    /// Counts a call whose program could not begin, since the operating system had no stack or thread for it.
    pub fn count_ended(&self, error: &JobError) {
        if *error == JobError::NotStarted {
            self.count(Refusal::NoStack);
        }
    }

    fn count(&self, why: Refusal) {
        if let Some(count) = self.refusals.get(why as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the recommended delay in milliseconds before a rejected call is repeated.
    pub fn retry_after_ms(&self) -> u64 {
        u64::try_from(self.admission.timeout().as_millis()).unwrap_or(u64::MAX).clamp(100, 5_000)
    }
}

impl LeaseIssuer {
    /// Returns how long the call waited for admission.
    pub fn queued(&self) -> Duration {
        self.queued
    }

    /// Issues a lease for the next program, which must begin before `begin_by`.
    pub fn next(&self, cancel: &Cancel, begin_by: Instant) -> ProcessorLease {
        ProcessorLease::new(&self.scheduler, self.client_key.clone(), cancel, begin_by, 0)
    }

    /// Returns a reservation for the state between these programs, which is empty at first.
    pub fn state_memory(&self) -> StateReservation {
        self.scheduler.state_memory()
    }
}

impl AdmissionPermit {
    /// Issues the processor lease of the only program under this permit.
    pub fn lease(&self, cancel: &Cancel) -> ProcessorLease {
        let admitted = &self.admitted;
        ProcessorLease::new(&self.scheduler, admitted.client_key().clone(), cancel, self.begin_by, admitted.bytes())
            .with_queued(admitted.queued())
    }

    /// Issues leases for several programs that run under this permit, one after the other.
    pub fn leases(&self) -> LeaseIssuer {
        let admitted = &self.admitted;
        LeaseIssuer {
            scheduler: Arc::clone(&self.scheduler),
            client_key: admitted.client_key().clone(),
            queued: admitted.queued(),
        }
    }
}

impl BudgetReservation {
    /// Returns the reserved bytes.
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// Reserves more bytes.
    pub fn grow(&mut self, bytes: usize) {
        self.0.grow(bytes);
    }
}

impl std::fmt::Debug for BudgetReservation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BudgetReservation").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for AdmissionPermit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AdmissionPermit").field("admitted", &self.admitted).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scheduler").field("limits", &self.limits).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
