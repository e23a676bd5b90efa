//! Admission control: limits the number of programs in flight.
//!
//! A program holds its slot from its admission to its answer, whether it computes or waits. Without a free slot, or without memory,
//! a call waits in a queue for a limited time.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use ptc_lisp::interrupt::{Interrupt, Watch};
use ptc_lisp::limits::Cancel;

use super::budget::{Budget, Claim};
use super::fair::{Basis, ClientKey, Displaced, FairQueue};
use crate::log::{self, Level};
use crate::pool::panic_message;

/// Memory that must be free for a program to begin, in bytes.
const MIN_FREE_MEMORY: u64 = 1024 * 1024;

/// Requests in the queue may use this fraction (1/N) of the memory budget. Programs use the rest.
const QUEUE_BUDGET_DIVISOR: u64 = 16;

/// Minimum size of the queue in bytes, whatever the budget: the default maximum size of a request.
const MIN_QUEUE_BYTES: u64 = 4 * 1024 * 1024;

/// Interval at which a queue that waits for memory is checked.
const MEMORY_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The slots and the queue for them.
pub(super) struct Admission {
    most: usize,
    most_queued: usize,
    most_per_session: Option<usize>,
    timeout: Duration,
    budget: Arc<Budget>,
    /// The part of the budget that requests in the queue may take.
    queue_budget: Arc<Budget>,
    state: Mutex<State>,
    /// The queue is no longer empty.
    changed: Condvar,
}

struct State {
    in_flight: usize,
    queue: FairQueue<Queued>,
    /// The deadlines of the entries in order of arrival. Entries that have left the queue are skipped.
    deadlines: VecDeque<(Instant, u64, ClientKey)>,
    next: u64,
    /// Whether the thread that ends waits is running.
    is_watched: bool,
}

struct Queued {
    number: u64,
    since: Instant,
    claim: Claim,
    _in_queue: Claim,
    /// Removes the entry when its call is cancelled. Set once the entry is in the queue.
    watch: Option<Watch>,
    then: Then,
}

/// Receives the outcome. With `Ok` it runs on the thread that released a slot.
type Then = Box<dyn FnOnce(Result<InFlightSlot, Rejection>) + Send>;

/// A slot of a program in flight. Dropping it releases the slot.
pub(super) struct InFlightSlot {
    admission: Arc<Admission>,
    client_key: ClientKey,
    queued: Duration,
    /// The bytes of the request, held until the answer.
    claim: Claim,
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
        f.debug_struct("Admitted").field("party", &self.client_key).finish_non_exhaustive()
    }
}

impl InFlightSlot {
    /// The client of the program.
    pub(super) fn client_key(&self) -> &ClientKey {
        &self.client_key
    }

    /// Bytes of the request.
    pub(super) fn bytes(&self) -> usize {
        self.claim.bytes()
    }

    /// How long it waited in the queue.
    pub(super) fn queued(&self) -> Duration {
        self.queued
    }
}

impl Drop for InFlightSlot {
    fn drop(&mut self) {
        let mut state = self.admission.lock();
        state.in_flight -= 1;
        state.queue.subtract(&self.client_key, 1);
        let admitted = self.admission.next(&mut state);
        drop(state);
        run(admitted);
    }
}

fn run(admitted: Vec<(Then, InFlightSlot)>) {
    for (then, place) in admitted {
        tell(then, Ok(place));
    }
}

/// Calls `then` on a thread that is not its caller's: whoever makes room, or looks at the queue, goes on after a panic.
fn tell(then: Then, outcome: Result<InFlightSlot, Rejection>) {
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
        let queue = FairQueue::new(Basis::Held);
        let state = State { in_flight: 0, queue, deadlines: VecDeque::new(), next: 0, is_watched: false };
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

    /// Programs in flight, and those in the queue.
    pub(super) fn counts(&self) -> (usize, usize) {
        let state = self.lock();
        (state.in_flight, state.queue.len())
    }

    /// Whether the next program that has to wait is turned away.
    pub(super) fn is_full(&self) -> bool {
        self.lock().queue.len() >= self.most_queued
    }

    /// Asks for a place for a request of `bytes`. `then` is told the outcome: at once where there is one, else when there is, when
    /// the time in the queue is over, or when `cancel` stops the call.
    pub(super) fn enter(self: &Arc<Self>, client_key: &ClientKey, bytes: usize, cancel: &Cancel, then: Then) {
        let claim = self.budget.claim(bytes);
        let mut state = self.lock();
        let session_is_full = self.most_per_session.is_some_and(|most| state.queue.used(client_key) >= most as u64);
        if state.queue.len() == 0 && state.in_flight < self.most && !session_is_full && self.budget.free() >= MIN_FREE_MEMORY {
            let admitted = self.admit(&mut state, client_key.clone(), Duration::ZERO, claim);
            drop(state);
            return then(Ok(admitted));
        }
        let mut displaced = Vec::new();
        loop {
            let newest = if state.queue.len() >= self.most_queued {
                state.queue.displaced_by(client_key, 1, |_| 1)
            } else if self.queue_budget.free() < claim.bytes() as u64 {
                state.queue.displaced_by(client_key, claim.bytes(), |queued| queued.claim.bytes())
            } else {
                break;
            };
            match newest {
                Displaced::Entry(newest) => displaced.push(newest.then),
                Displaced::Newcomer => {
                    drop(state);
                    for then in displaced {
                        tell(then, Err(Rejection::QueueFull));
                    }
                    return then(Err(Rejection::QueueFull));
                }
            }
        }
        let (number, since) = (state.next, Instant::now());
        state.next += 1;
        let in_queue = self.queue_budget.claim(claim.bytes());
        state.queue.push(client_key, Queued { number, since, claim, _in_queue: in_queue, watch: None, then });
        state.deadlines.push_back((since + self.timeout, number, client_key.clone()));
        self.start_watching(&mut state);
        // One of its session's own places may be all that is taken.
        let admitted = self.next(&mut state);
        drop(state);
        self.changed.notify_one();
        for then in displaced {
            tell(then, Err(Rejection::QueueFull));
        }
        run(admitted);
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
            tell(queued.then, Err(why));
        }
    }

    fn admit(self: &Arc<Self>, state: &mut State, client_key: ClientKey, queued: Duration, claim: Claim) -> InFlightSlot {
        state.in_flight += 1;
        state.queue.add(&client_key, 1);
        InFlightSlot { admission: Arc::clone(self), client_key, queued, claim }
    }

    /// Those that can be admitted now. They are told outside of the lock.
    fn next(self: &Arc<Self>, state: &mut State) -> Vec<(Then, InFlightSlot)> {
        let mut admitted = Vec::new();
        while state.in_flight < self.most && self.budget.free() >= MIN_FREE_MEMORY + MIN_FREE_MEMORY * admitted.len() as u64 {
            let accepts = |held: u64| self.most_per_session.is_none_or(|most| held < most as u64);
            let Some((client_key, Queued { since, claim, then, .. })) = state.queue.pop_where(accepts) else { break };
            let place = self.admit(state, client_key, since.elapsed(), claim);
            admitted.push((then, place));
        }
        admitted
    }

    /// Starts the thread that ends waits, once. Without one, waits end when places are free.
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

/// Turns entries away whose time is over, and admits those that waited for memory, until nobody uses the queue.
fn end_waits(admission: &Weak<Admission>) {
    while let Some(admission) = admission.upgrade() {
        let mut state = admission.lock();
        let (now, mut over) = (Instant::now(), Vec::new());
        while state.deadlines.front().is_some_and(|(deadline, ..)| *deadline <= now) {
            let Some((_, number, client_key)) = state.deadlines.pop_front() else { break };
            over.extend(state.queue.remove(&client_key, |queued| queued.number == number));
        }
        let admitted = admission.next(&mut state);
        let wait = if state.queue.len() > 0 { MEMORY_CHECK_INTERVAL } else { Duration::from_secs(1) };
        if over.is_empty() && admitted.is_empty() {
            let wait = state.deadlines.front().map_or(wait, |(deadline, ..)| wait.min(deadline.saturating_duration_since(now)));
            drop(admission.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner));
        } else {
            drop(state);
            run(admitted);
            for queued in over {
                tell(queued.then, Err(Rejection::TimedOut));
            }
        }
    }
}
