//! Admission control: limits the number of programs in flight.
//!
//! A program holds its slot from its admission to its answer, whether it computes or waits. Without a free slot, or without
//! memory, a call waits in a queue for a limited time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use ptc_lisp::interrupt::{Interrupt, InterruptGuard};
use ptc_lisp::limits::Cancel;

use super::budget::{Budget, Claim};
use super::fair::{Accounting, ClientKey, FairQueue};
use ptc_log::{self as log, Level};
use ptc_text::panic_message;

/// Free memory in bytes that a program needs to begin.
const MIN_FREE_MEMORY: u64 = 1024 * 1024;

/// Memory in bytes of a program in flight beyond its request and its values: its native stack, its call and its connection.
pub(super) const PROGRAM_BYTES: usize = 64 * 1024;

/// Requests in the queue may use this fraction (1/N) of the memory budget. Programs use the rest.
const QUEUE_BUDGET_DIVISOR: u64 = 16;

/// Minimum size of the queue in bytes for any budget. It is the default maximum size of a request.
const MIN_QUEUE_BYTES: u64 = 4 * 1024 * 1024;

/// The queue is full of bytes when a request of this size does not fit.
const TYPICAL_REQUEST_BYTES: u64 = 64 * 1024;

/// Interval at which a queue that waits for memory is checked.
const MEMORY_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The slots, and the queue of calls that wait for them.
pub(super) struct Admission {
    most: usize,
    most_queued: usize,
    most_per_session: Option<usize>,
    timeout: Duration,
    budget: Arc<Budget>,
    /// The part of the budget that requests in the queue may take.
    queue_budget: Arc<Budget>,
    state: Mutex<State>,
    /// Notified when the queue becomes non-empty.
    changed: Condvar,
}

struct State {
    in_flight: usize,
    queue: FairQueue<QueueEntry>,
    next: u64,
    /// Whether the thread that enforces the queue timeout is running.
    is_watched: bool,
}

struct QueueEntry {
    number: u64,
    since: Instant,
    claim: Claim,
    _in_queue: Claim,
    /// Removes the entry when its call is cancelled. Set once the entry is in the queue.
    watch: Option<InterruptGuard>,
    then: Then,
}

/// Receives the outcome. With `Ok` it runs on the thread that released a slot.
type Then = Box<dyn FnOnce(Result<InFlightSlot, Rejection>) + Send>;

/// A slot of a program in flight. Dropping it releases the slot.
pub(super) struct InFlightSlot {
    admission: Arc<Admission>,
    client_key: ClientKey,
    queued: Duration,
    /// [`PROGRAM_BYTES`] and the bytes of the request, counted until the answer.
    claim: Option<Claim>,
}

/// Why a program was not admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejection {
    /// The queue is full of entries with a higher priority.
    QueueFull,
    /// The queue timeout has passed.
    TimedOut,
    /// The call was cancelled, or its client has gone.
    Cancelled,
}

impl std::fmt::Debug for InFlightSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InFlightSlot").field("client_key", &self.client_key).finish_non_exhaustive()
    }
}

impl InFlightSlot {
    /// Returns the client of the program.
    pub(super) fn client_key(&self) -> &ClientKey {
        &self.client_key
    }

    /// Returns the bytes that are counted for it.
    pub(super) fn bytes(&self) -> usize {
        self.claim.as_ref().map_or(0, Claim::bytes)
    }

    /// Returns how long it waited in the queue.
    pub(super) fn queued(&self) -> Duration {
        self.queued
    }
}

impl Drop for InFlightSlot {
    fn drop(&mut self) {
        // The next program may need this memory.
        drop(self.claim.take());
        let mut state = self.admission.lock();
        state.in_flight -= 1;
        state.queue.subtract(&self.client_key, 1);
        let admitted = self.admission.next(&mut state);
        drop(state);
        run(admitted);
    }
}

fn run(admitted: Vec<(Then, InFlightSlot)>) {
    for (then, slot) in admitted {
        notify(then, Ok(slot));
    }
}

/// Calls `then` and catches its panic, so that the calling thread continues: it has to serve other entries too.
fn notify(then: Then, outcome: Result<InFlightSlot, Rejection>) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| then(outcome))) {
        log::line(Level::Error, "a call could not start or be refused", &[("message", &panic_message(&*panic))]);
    }
}

impl Admission {
    pub(super) fn new(
        most: usize,
        most_queued: usize,
        most_per_session: Option<usize>,
        timeout: Duration,
        budget: Arc<Budget>,
    ) -> Arc<Self> {
        let queue = FairQueue::new(Accounting::Occupancy);
        let state = State { in_flight: 0, queue, next: 0, is_watched: false };
        let queue_budget = Budget::new((budget.limit() / QUEUE_BUDGET_DIVISOR).max(MIN_QUEUE_BYTES));
        Arc::new(Admission {
            queue_budget,
            most,
            most_queued,
            most_per_session,
            timeout,
            budget,
            state: Mutex::new(state),
            changed: Condvar::new(),
        })
    }

    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Returns the numbers of programs in flight and in the queue.
    pub(super) fn counts(&self) -> (usize, usize) {
        let state = self.lock();
        (state.in_flight, state.queue.len())
    }

    /// Whether a program that arrives now would have to wait and the queue has no room for it.
    pub(super) fn is_full(&self) -> bool {
        let state = self.lock();
        let waits = state.in_flight >= self.most || self.budget.free() < MIN_FREE_MEMORY;
        waits && (state.queue.len() >= self.most_queued || self.queue_budget.free() < TYPICAL_REQUEST_BYTES)
    }

    /// Requests a slot for a request of `bytes`. Calls `then` with the outcome: at once if a slot is free, otherwise when one
    /// becomes free, after the queue timeout, or when `cancel` stops the call.
    pub(super) fn enter(self: &Arc<Self>, client_key: &ClientKey, bytes: usize, cancel: &Cancel, then: Then) {
        let mut state = self.lock();
        // Memory may have become free. Afterwards only sessions with all of their own slots in use wait for one that is free.
        let earlier = self.next(&mut state);
        let free = self.budget.free().saturating_sub(MIN_FREE_MEMORY * earlier.len() as u64);
        let session_is_full = self.most_per_session.is_some_and(|most| state.queue.used(client_key) >= most as u64);
        if state.in_flight < self.most && !session_is_full && free >= MIN_FREE_MEMORY {
            let claim = self.budget.claim(bytes);
            let admitted = self.admit(&mut state, client_key.clone(), Duration::ZERO, claim);
            drop(state);
            run(earlier);
            return then(Ok(admitted));
        }
        // A request that is larger than the queue's part of the budget may wait alone.
        let is_alone = state.queue.is_empty() && bytes as u64 <= self.budget.free();
        let bytes_free = if is_alone { usize::MAX } else { usize::try_from(self.queue_budget.free()).unwrap_or(usize::MAX) };
        let excess = [(state.queue.len() + 1).saturating_sub(self.most_queued), bytes.saturating_sub(bytes_free)];
        let Some(displaced) = state.queue.displace(client_key, [1, bytes], excess, |queued| [1, queued.claim.bytes()]) else {
            drop(state);
            run(earlier);
            return then(Err(Rejection::QueueFull));
        };
        let (number, since) = (state.next, Instant::now());
        state.next += 1;
        let (claim, in_queue) = (self.budget.claim(bytes), self.queue_budget.claim(bytes));
        state.queue.push(client_key, QueueEntry { number, since, claim, _in_queue: in_queue, watch: None, then });
        self.start_watching(&mut state);
        drop(state);
        self.changed.notify_one();
        run(earlier);
        for queued in displaced {
            notify(queued.then, Err(Rejection::QueueFull));
        }
        let (admission, withdrawn) = (Arc::downgrade(self), client_key.clone());
        let watch = cancel.watch(Interrupt::by(move || {
            if let Some(admission) = admission.upgrade() {
                admission.withdraw(&withdrawn, number, Rejection::Cancelled);
            }
        }));
        if let Some(queued) = self.lock().queue.find(client_key, |queued| queued.number == number) {
            queued.watch = Some(watch);
        }
    }

    fn withdraw(&self, client_key: &ClientKey, number: u64, why: Rejection) {
        let entry = self.lock().queue.remove(client_key, |queued| queued.number == number);
        if let Some(queued) = entry {
            notify(queued.then, Err(why));
        }
    }

    fn admit(self: &Arc<Self>, state: &mut State, client_key: ClientKey, queued: Duration, mut claim: Claim) -> InFlightSlot {
        claim.grow(PROGRAM_BYTES);
        state.in_flight += 1;
        state.queue.add(&client_key, 1);
        InFlightSlot { admission: Arc::clone(self), client_key, queued, claim: Some(claim) }
    }

    /// Returns the entries that can be admitted now. Their callbacks are called outside the lock.
    fn next(self: &Arc<Self>, state: &mut State) -> Vec<(Then, InFlightSlot)> {
        let mut admitted = Vec::new();
        while state.in_flight < self.most && self.budget.free() >= MIN_FREE_MEMORY + MIN_FREE_MEMORY * admitted.len() as u64 {
            let accepts = |held: u64| self.most_per_session.is_none_or(|most| held < most as u64);
            let Some((client_key, QueueEntry { since, claim, then, .. })) = state.queue.pop_where(accepts) else { break };
            let slot = self.admit(state, client_key, since.elapsed(), claim);
            admitted.push((then, slot));
        }
        admitted
    }

    /// Starts the thread that enforces the queue timeout, once. If it cannot be started, entries wait until a slot is free.
    fn start_watching(self: &Arc<Self>, state: &mut State) {
        if !state.is_watched {
            let admission = Arc::downgrade(self);
            let thread = std::thread::Builder::new().name("queue".into()).stack_size(256 * 1024);
            state.is_watched = thread.spawn(move || end_waits(&admission)).is_ok();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Rejects entries whose timeout has passed, and admits those that waited for memory, until the admission control is dropped.
fn end_waits(admission: &Weak<Admission>) {
    while let Some(admission) = admission.upgrade() {
        let mut state = admission.lock();
        let (now, mut over) = (Instant::now(), Vec::new());
        // The entries of a session are in order of arrival.
        let has_timed_out = |queued: &QueueEntry| now.duration_since(queued.since) >= admission.timeout;
        while let Some(client_key) = state.queue.find_first(has_timed_out) {
            over.extend(state.queue.remove(&client_key, has_timed_out));
        }
        let admitted = admission.next(&mut state);
        if over.is_empty() && admitted.is_empty() {
            let wait = if state.queue.is_empty() { Duration::from_secs(1) } else { MEMORY_CHECK_INTERVAL };
            drop(admission.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner));
        } else {
            drop(state);
            run(admitted);
            for queued in over {
                notify(queued.then, Err(Rejection::TimedOut));
            }
        }
    }
}
