//! The memory budget of the process, shared by programs, sessions and requests.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use ptc_lisp::fiber;

use super::answers::UnreadAnswers;
use super::memory_waiters::MemoryWaiters;
use super::run::RunShare;

/// Interval at which the first waiter checks again whether another run has to end. This check visits all runs.
const VICTIM_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The budget and its users.
pub(super) struct Budget {
    limit: u64,
    used: AtomicI64,
    runs: Mutex<Runs>,
    answers: UnreadAnswers,
    waiters: MemoryWaiters,
}

#[derive(Default)]
struct Runs {
    all: Vec<Option<Weak<RunShare>>>,
    /// Indices that can be reused.
    free: Vec<usize>,
}

/// Bytes that are counted until this is dropped.
pub(super) struct Claim {
    budget: Arc<Budget>,
    bytes: i64,
}

impl Claim {
    pub(super) fn bytes(&self) -> usize {
        usize::try_from(self.bytes).unwrap_or(0)
    }

    pub(super) fn grow(&mut self, bytes: usize) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.bytes = self.bytes.saturating_add(bytes);
        self.budget.report(bytes);
    }

    /// Counts `bytes` instead of the previous number.
    pub(super) fn resize(&mut self, bytes: usize) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.budget.report(bytes - std::mem::replace(&mut self.bytes, bytes));
    }

    /// Like [`Claim::resize`], but returns the bytes that are needed and the limit if a growth does not fit.
    pub(super) fn try_resize(&mut self, bytes: usize) -> Result<(), (u64, u64)> {
        let grown = i64::try_from(bytes).unwrap_or(i64::MAX) - self.bytes;
        if grown <= 0 {
            self.resize(bytes);
        } else if self.budget.try_reserve(grown) {
            self.bytes += grown;
        } else {
            return Err((self.budget.used().saturating_add(grown.unsigned_abs()), self.budget.limit()));
        }
        Ok(())
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.budget.report(-self.bytes);
    }
}

impl Budget {
    pub(super) fn new(limit: u64) -> Arc<Self> {
        let used = AtomicI64::new(0);
        let (answers, waiters) = (UnreadAnswers::default(), MemoryWaiters::default());
        Arc::new(Budget { limit, used, runs: Mutex::default(), answers, waiters })
    }

    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// The limit as a signed number.
    fn most(&self) -> i64 {
        i64::try_from(self.limit).unwrap_or(i64::MAX)
    }

    pub(super) fn used(&self) -> u64 {
        u64::try_from(self.used.load(Ordering::Relaxed)).unwrap_or(0)
    }

    pub(super) fn free(&self) -> u64 {
        self.limit.saturating_sub(self.used())
    }

    /// Returns the answers that are not written yet.
    pub(super) fn answers(&self) -> &UnreadAnswers {
        &self.answers
    }

    pub(super) fn claim(self: &Arc<Self>, bytes: usize) -> Claim {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.report(bytes);
        Claim { budget: Arc::clone(self), bytes }
    }

    /// Records a change of the used memory.
    pub(super) fn report(&self, change: i64) {
        // The order of this and the count of waiters is that of `reserve`, which registers and then reads `used`.
        let used = self.used.fetch_add(change, Ordering::SeqCst) + change;
        if change < 0 {
            self.waiters.wake(|| self.most().saturating_sub(used));
        }
    }

    /// Wakes the threads of a run that wait for memory, since the run has ended.
    pub(super) fn wake_run(&self, number: usize) {
        self.waiters.wake_run(number);
    }

    /// Registers a run that may be ended to free memory. Returns its index.
    pub(super) fn register(&self, run: Weak<RunShare>) -> usize {
        let mut runs = self.lock();
        if let Some(number) = runs.free.pop()
            && let Some(slot) = runs.all.get_mut(number)
        {
            *slot = Some(run);
            return number;
        }
        runs.all.push(Some(run));
        runs.all.len() - 1
    }

    pub(super) fn unregister(&self, number: usize) {
        let mut runs = self.lock();
        if let Some(slot) = runs.all.get_mut(number) {
            *slot = None;
            runs.free.push(number);
        }
    }

    /// Whether `bytes` more fit into the budget.
    fn fits(&self, bytes: i64) -> bool {
        self.used.load(Ordering::SeqCst).saturating_add(bytes) <= self.most()
    }

    /// Counts `bytes` more if they fit.
    pub(super) fn try_reserve(&self, bytes: i64) -> bool {
        if bytes == 0 {
            return self.fits(0);
        }
        let next = |used: i64| used.checked_add(bytes).filter(|sum| *sum <= self.most());
        self.used.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next).is_ok()
    }

    /// Ends runs until `bytes` more of `run` fit, waits until the memory is free, and counts them. False if `run` itself ends
    /// first. At `deadline` it ends for lack of memory.
    pub(super) fn reserve(&self, run: &RunShare, bytes: i64, deadline: Instant) -> bool {
        let mut number = None;
        let mut check_at = Instant::now();
        let has_memory = loop {
            if self.try_reserve(bytes) {
                break true;
            }
            if run.is_over() {
                break false;
            }
            let now = Instant::now();
            if now >= deadline {
                run.end(self.limit);
                break false;
            }
            let (own, is_first) = self.waiters.enter(number, run.number(), bytes, fiber::waker());
            if number.replace(own).is_none() || is_first && now >= check_at {
                self.demand(run, bytes);
                check_at = now + VICTIM_CHECK_INTERVAL;
            }
            // A release of memory before the waiter was registered woke no waiter.
            if !self.fits(bytes) && !run.is_over() {
                fiber::park(Some(if is_first { check_at.min(deadline) } else { deadline }));
            }
        };
        if let Some(number) = number {
            self.waiters.leave(number);
        }
        has_memory
    }

    /// Ends runs until `bytes` more of `run` fit as soon as those runs have released their memory. The largest run of the owner
    /// that holds most ends first.
    pub(super) fn demand(&self, run: &RunShare, bytes: i64) {
        while !self.fits(bytes) && !run.is_over() {
            match self.victim(bytes) {
                Victim::Run(victim) => victim.end(self.limit),
                Victim::Wait => return,
                // Sessions and requests hold the rest.
                Victim::None => run.end(self.limit),
            }
        }
    }

    /// Chooses the run to end so that `bytes` more fit. An owner holds its runs and the answers that its clients have not read.
    fn victim(&self, bytes: i64) -> Victim {
        let runs: Vec<Arc<RunShare>> = self.lock().all.iter().flatten().filter_map(Weak::upgrade).collect();
        let dying: i64 = runs.iter().filter(|run| run.is_over()).map(|run| run.bytes()).sum();
        if self.used.load(Ordering::Relaxed).saturating_sub(dying).saturating_add(bytes) <= self.most() {
            return Victim::Wait;
        }
        let living = || runs.iter().filter(|run| !run.is_over() && run.has_begun());
        let mut by_owner: HashMap<&str, i64> = HashMap::new();
        for run in living() {
            *by_owner.entry(run.owner()).or_insert_with(|| self.answers.bytes(run.owner())) += run.bytes();
        }
        let most = by_owner.iter().max_by_key(|(_, bytes)| **bytes).map(|(owner, _)| *owner);
        let largest = living().filter(|run| Some(run.owner()) == most).max_by_key(|run| run.bytes());
        largest.map_or(Victim::None, |run| Victim::Run(Arc::clone(run)))
    }

    /// Returns the number of threads and fibers that wait for memory.
    #[cfg(test)]
    pub(super) fn waiters(&self) -> usize {
        self.waiters.count()
    }

    fn lock(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Victim {
    Run(Arc<RunShare>),
    /// Runs that are ending will release enough.
    Wait,
    None,
}
