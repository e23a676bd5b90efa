//! A program's share of the processors and of the memory.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use ptc_lisp::Share;
use ptc_lisp::host::Account;
use ptc_lisp::interrupt::{Interrupt, InterruptGuard};
use ptc_lisp::limits::Cancel;

use super::fair::ClientKey;
use super::processors::{Processors, Waiter};
use super::{Refusal, Scheduler};

/// The resources that all threads of a run hold and wait for.
pub(crate) struct RunShare {
    scheduler: Arc<Scheduler>,
    client_key: ClientKey,
    number: usize,
    has_begun: AtomicBool,
    /// Live bytes of its threads.
    live: AtomicI64,
    /// Bytes of its pending calls, which may outlive the run.
    reserved: AtomicI64,
    /// Bytes that its permit counts.
    permit: i64,
    /// Processor time and waiting time in nanoseconds.
    used: AtomicU64,
    waited: AtomicU64,
    /// Its threads that hold a processor.
    computing: AtomicUsize,
    /// Whether it has ended or is about to, so that its memory will be released.
    is_over: AtomicBool,
    /// Whether it was ended to free memory.
    is_ended: AtomicBool,
    waits: Mutex<Vec<Arc<Waiter>>>,
    account: Mutex<Option<Account>>,
}

/// A program's lease of processors. Dropped after the program's answer was sent; until then its memory is counted.
pub struct ProcessorLease {
    run: Arc<RunShare>,
    begin_by: Instant,
    queued: Duration,
    _watch: InterruptGuard,
}

/// The times that a program has waited, also after its lease is gone.
#[derive(Clone)]
pub struct WaitTimes {
    run: Arc<RunShare>,
    queued: Duration,
}

impl WaitTimes {
    /// Returns how long the call waited for admission.
    pub fn queued(&self) -> Duration {
        self.queued
    }

    /// Returns how long the threads of the program waited for a processor.
    pub fn processor_wait(&self) -> Duration {
        Duration::from_nanos(self.run.waited.load(Ordering::Relaxed))
    }
}

/// Holds a processor for the current thread until it is dropped there, which ends the program.
pub struct ProcessorGuard<'t>(&'t ProcessorLease);

impl ProcessorLease {
    pub(super) fn new(
        scheduler: &Arc<Scheduler>,
        client_key: ClientKey,
        cancel: &Cancel,
        begin_by: Instant,
        permit_bytes: usize,
    ) -> ProcessorLease {
        let run = Arc::new_cyclic(|run| RunShare {
            scheduler: Arc::clone(scheduler),
            client_key,
            number: scheduler.budget.register(Weak::clone(run)),
            has_begun: AtomicBool::new(false),
            live: AtomicI64::new(0),
            reserved: AtomicI64::new(0),
            permit: i64::try_from(permit_bytes).unwrap_or(i64::MAX),
            used: AtomicU64::new(0),
            waited: AtomicU64::new(0),
            computing: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
            is_ended: AtomicBool::new(false),
            waits: Mutex::default(),
            account: Mutex::default(),
        });
        let interrupted = Arc::downgrade(&run);
        let watch = cancel.watch(Interrupt::by(move || {
            if let Some(run) = interrupted.upgrade() {
                run.interrupt();
            }
        }));
        ProcessorLease { run, begin_by, queued: Duration::ZERO, _watch: watch }
    }

    /// Records how long the call waited for admission.
    pub(super) fn with_queued(mut self, queued: Duration) -> ProcessorLease {
        self.queued = queued;
        self
    }

    /// Extends the deadline to begin, after a wait for something else than a processor.
    pub fn extend_deadline(&mut self, by: Duration) {
        self.begin_by += by;
    }

    /// Waits for the first processor. `None` after the deadline, or if the call was cancelled.
    pub fn begin(&self) -> Option<ProcessorGuard<'_>> {
        let has = self.run.take(false, self.begin_by);
        self.run.has_begun.store(true, Ordering::Release);
        if !has && !self.run.is_over() {
            self.run.scheduler.count(Refusal::NoProcessor);
        }
        has.then_some(ProcessorGuard(self))
    }

    /// Returns the recommended delay in milliseconds before a call is repeated whose program could not begin.
    pub fn retry_after_ms(&self) -> u64 {
        self.run.scheduler.retry_after_ms()
    }

    /// Returns the share to pass to the run.
    pub fn share(&self) -> Arc<dyn Share> {
        Arc::<RunShare>::clone(&self.run)
    }

    /// Returns the client of the program.
    pub fn client_key(&self) -> &ClientKey {
        &self.run.client_key
    }

    /// Returns the maximum number of programs in flight.
    pub fn max_in_flight(&self) -> usize {
        self.run.scheduler.limits().in_flight.value
    }

    /// Counts bytes that the calling thread has allocated for the program before it runs, such as its context. False if the
    /// process has no memory for them, or the call was cancelled.
    pub fn count_bytes(&self, bytes: i64) -> bool {
        self.run.report_bytes(bytes);
        if bytes > 0 {
            self.run.scheduler.budget.demand(&self.run, 0);
        }
        !self.run.is_over()
    }

    /// Whether the server has ended the program because its memory budget is used up.
    pub fn is_ended(&self) -> bool {
        self.run.is_ended.load(Ordering::Acquire)
    }

    /// The message of a program that the server ends because its memory budget is used up.
    pub fn budget_message(&self) -> String {
        budget_message(self.run.scheduler.budget.limit())
    }

    /// Returns the times that the program has waited and will wait.
    pub fn wait_times(&self) -> WaitTimes {
        WaitTimes { run: Arc::clone(&self.run), queued: self.queued }
    }
}

impl Drop for ProcessorGuard<'_> {
    fn drop(&mut self) {
        self.0.run.release();
        // From here on it only holds its memory until the answer is sent.
        self.0.run.is_over.store(true, Ordering::SeqCst);
        self.0.run.scheduler.budget.wake_run(self.0.run.number);
    }
}

impl Drop for ProcessorLease {
    fn drop(&mut self) {
        let run = &self.run;
        run.scheduler.budget.unregister(run.number);
        // The account holds the run's meters, and these the share.
        *run.account() = None;
        // The holders of reservations release them.
        run.give_back();
    }
}

impl Drop for RunShare {
    fn drop(&mut self) {
        // Threads that ended after the answer may have reported bytes since.
        self.give_back();
    }
}

impl std::fmt::Debug for ProcessorLease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProcessorLease").field("client_key", &self.run.client_key).finish_non_exhaustive()
    }
}

impl RunShare {
    /// Returns its index in the budget.
    pub(super) fn number(&self) -> usize {
        self.number
    }

    pub(super) fn owner(&self) -> &str {
        &self.client_key.owner
    }

    /// Bytes that become free when the run ends.
    pub(super) fn bytes(&self) -> i64 {
        self.live.load(Ordering::Relaxed) + self.reserved.load(Ordering::Relaxed) + self.permit
    }

    fn give_back(&self) {
        self.scheduler.budget.report(-self.live.swap(0, Ordering::Relaxed));
    }

    pub(super) fn has_begun(&self) -> bool {
        self.account().is_some()
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// Ends the run to free memory for others.
    pub(super) fn end(&self, budget: u64) {
        if !self.is_over() && !self.is_ended.swap(true, Ordering::AcqRel) {
            self.scheduler.count(Refusal::MemoryBudget);
        }
        // A run that gets its account later finds that it was ended.
        let account = self.account().clone();
        // The reason comes before `is_over`: a thread of the run that finds itself over without a reason reports a timeout.
        if let Some(account) = account {
            account.end(budget_message(budget));
        }
        self.interrupt();
    }

    fn take(&self, begun: bool, deadline: Instant) -> bool {
        let processors = &self.scheduler.processors;
        let used = Duration::from_nanos(self.used.load(Ordering::Relaxed));
        let Some(waiter) = processors.take(&self.client_key, begun, used) else {
            self.count_computing();
            return true;
        };
        let began = Instant::now();
        self.waits().push(Arc::clone(&waiter));
        if self.is_over() {
            waiter.give_up();
        }
        let has = Processors::wait(&waiter, deadline);
        self.waits().retain(|other| !Arc::ptr_eq(other, &waiter));
        self.waited.fetch_add(nanoseconds(began.elapsed()), Ordering::Relaxed);
        if has {
            self.count_computing();
        }
        has
    }

    /// Counts the calling thread, which has got a processor. A run counts once, however many branches of it compute.
    fn count_computing(&self) {
        if self.computing.fetch_add(1, Ordering::Relaxed) == 0 {
            self.scheduler.running.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn waits(&self) -> MutexGuard<'_, Vec<Arc<Waiter>>> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn account(&self) -> MutexGuard<'_, Option<Account>> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share for RunShare {
    fn begin_run(&self, account: &Account) {
        *self.account() = Some(account.clone());
        if self.is_ended.load(Ordering::Acquire) {
            account.end(budget_message(self.scheduler.budget.limit()));
        }
    }

    fn acquire(&self, deadline: Instant) {
        self.take(self.has_begun.load(Ordering::Acquire), deadline);
    }

    fn release(&self) {
        let Some(held) = self.scheduler.processors.release(&self.client_key) else { return };
        self.used.fetch_add(nanoseconds(held), Ordering::Relaxed);
        if self.computing.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.scheduler.running.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn is_slice_over(&self) -> bool {
        self.scheduler.processors.is_slice_over()
    }

    fn begin_branch(&self) -> bool {
        self.scheduler.branches.begin()
    }

    fn end_branch(&self) {
        self.scheduler.branches.end();
    }

    fn report_bytes(&self, change: i64) {
        self.live.fetch_add(change, Ordering::Relaxed);
        self.scheduler.budget.report(change);
    }

    fn report_reserved(&self, change: i64) {
        self.reserved.fetch_add(change, Ordering::Relaxed);
        let budget = &self.scheduler.budget;
        budget.report(change);
        if change > 0 {
            budget.demand(self, 0);
        }
    }

    fn reserve_growth(&self, bytes: i64, deadline: Instant) -> bool {
        let budget = &self.scheduler.budget;
        let mut has_memory = budget.try_reserve(bytes);
        if !has_memory {
            // The program that is to release memory may need the processor.
            self.release();
            has_memory = budget.reserve(self, bytes, deadline);
            self.acquire(deadline);
        }
        if has_memory {
            self.live.fetch_add(bytes, Ordering::Relaxed);
        }
        has_memory
    }

    fn interrupt(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        for waiter in &*self.waits() {
            waiter.give_up();
        }
        self.scheduler.budget.wake_run(self.number);
    }
}

fn budget_message(budget: u64) -> String {
    format!(
        "the server ended this program because all programs together need more than its memory budget of {budget} bytes \
         (--memory-budget-bytes)"
    )
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
