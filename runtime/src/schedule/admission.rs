//! Programs in flight: how many there may be, and who waits for a place.
//!
//! A program holds its place from its admission to its answer, whether it computes or waits. Who finds no place, or no memory, waits in a
//! queue for a bounded time.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use ptc_lisp::interrupt::{Interrupt, Watch};
use ptc_lisp::limits::Cancel;

use super::budget::{Budget, Claim};
use super::fair::{Basis, Displaced, FairQueue, Party};
use crate::log::{self, Level};
use crate::pool::panic_message;

/// Memory that has to be free for a program to begin.
const ROOM: u64 = 1024 * 1024;

/// Requests in the queue take at most one in so many bytes of the budget: the rest is for programs, which would be ended for them.
const QUEUE_PART: u64 = 16;

/// A queue has room for so much whatever the budget: a request of the usual largest size.
const MIN_QUEUE_BYTES: u64 = 4 * 1024 * 1024;

/// How often a queue is looked at that waits for memory.
const LOOK: Duration = Duration::from_millis(20);

/// Places and the queue for them.
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
    /// When each entry gives up, in the order of their coming. Entries that have left the queue are passed over.
    deadlines: VecDeque<(Instant, u64, Party)>,
    next: u64,
    /// Whether the thread runs that ends waits.
    is_watched: bool,
}

struct Queued {
    number: u64,
    since: Instant,
    claim: Claim,
    _in_queue: Claim,
    /// Withdraws it when its call is cancelled. Set once it is in the queue.
    watch: Option<Watch>,
    then: Then,
}

/// What is told the outcome: with `Ok` on whichever thread has made room.
type Then = Box<dyn FnOnce(Result<Admitted, Turned>) + Send>;

/// A place in flight, given back when it is dropped.
pub(super) struct Admitted {
    admission: Arc<Admission>,
    party: Party,
    queued: Duration,
    /// The bytes of the request, held until the answer.
    claim: Claim,
}

/// Why a program gets no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turned {
    /// The queue is full of entries with a better claim.
    QueueFull,
    /// The time in the queue is over.
    TimedOut,
    /// The call was cancelled, or its client has gone.
    Cancelled,
}

impl std::fmt::Debug for Admitted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Admitted").field("party", &self.party).finish_non_exhaustive()
    }
}

impl Admitted {
    /// Whose program it is.
    pub(super) fn party(&self) -> &Party {
        &self.party
    }

    /// Bytes of the request.
    pub(super) fn bytes(&self) -> usize {
        self.claim.bytes()
    }

    /// How long it waited for the place.
    pub(super) fn queued(&self) -> Duration {
        self.queued
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut state = self.admission.lock();
        state.in_flight -= 1;
        state.queue.subtract(&self.party, 1);
        let admitted = self.admission.next(&mut state);
        drop(state);
        run(admitted);
    }
}

fn run(admitted: Vec<(Then, Admitted)>) {
    for (then, place) in admitted {
        tell(then, Ok(place));
    }
}

/// Calls `then` on a thread that is not its caller's: whoever makes room, or looks at the queue, goes on after a panic.
fn tell(then: Then, outcome: Result<Admitted, Turned>) {
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
        let queue_budget = Budget::new((budget.limit() / QUEUE_PART).max(MIN_QUEUE_BYTES));
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

    /// Asks for a place for a request of `bytes`. `then` is told the outcome: at once where there is one, else when there is, when the time
    /// in the queue is over, or when `cancel` stops the call.
    pub(super) fn enter(self: &Arc<Self>, party: &Party, bytes: usize, cancel: &Cancel, then: Then) {
        let claim = self.budget.claim(bytes);
        let mut state = self.lock();
        let session_is_full = self.most_per_session.is_some_and(|most| state.queue.used(party) >= most as u64);
        if state.queue.len() == 0 && state.in_flight < self.most && !session_is_full && self.budget.free() >= ROOM {
            let admitted = self.admit(&mut state, party.clone(), Duration::ZERO, claim);
            drop(state);
            return then(Ok(admitted));
        }
        let mut displaced = Vec::new();
        loop {
            let newest = if state.queue.len() >= self.most_queued {
                state.queue.displaced_by(party, 1, |_| 1)
            } else if self.queue_budget.free() < claim.bytes() as u64 {
                state.queue.displaced_by(party, claim.bytes(), |queued| queued.claim.bytes())
            } else {
                break;
            };
            match newest {
                Displaced::Entry(newest) => displaced.push(newest.then),
                Displaced::Newcomer => {
                    drop(state);
                    for then in displaced {
                        tell(then, Err(Turned::QueueFull));
                    }
                    return then(Err(Turned::QueueFull));
                }
            }
        }
        let (number, since) = (state.next, Instant::now());
        state.next += 1;
        let in_queue = self.queue_budget.claim(claim.bytes());
        state.queue.push(party, Queued { number, since, claim, _in_queue: in_queue, watch: None, then });
        state.deadlines.push_back((since + self.timeout, number, party.clone()));
        self.start_watching(&mut state);
        // One of its session's own places may be all that is taken.
        let admitted = self.next(&mut state);
        drop(state);
        self.changed.notify_one();
        for then in displaced {
            tell(then, Err(Turned::QueueFull));
        }
        run(admitted);
        let (admission, withdrawn) = (Arc::downgrade(self), party.clone());
        let watch = cancel.watch(Interrupt::by(move || {
            if let Some(admission) = admission.upgrade() {
                admission.withdraw(&withdrawn, number, Turned::Cancelled);
            }
        }));
        if let Some(queued) = self.lock().queue.find(party, |queued| queued.number == number) {
            queued.watch = Some(watch);
        }
    }

    fn withdraw(&self, party: &Party, number: u64, why: Turned) {
        let entry = self.lock().queue.remove(party, |queued| queued.number == number);
        if let Some(queued) = entry {
            tell(queued.then, Err(why));
        }
    }

    fn admit(self: &Arc<Self>, state: &mut State, party: Party, queued: Duration, claim: Claim) -> Admitted {
        state.in_flight += 1;
        state.queue.add(&party, 1);
        Admitted { admission: Arc::clone(self), party, queued, claim }
    }

    /// Those that can be admitted now. They are told outside of the lock.
    fn next(self: &Arc<Self>, state: &mut State) -> Vec<(Then, Admitted)> {
        let mut admitted = Vec::new();
        while state.in_flight < self.most && self.budget.free() >= ROOM + ROOM * admitted.len() as u64 {
            let accepts = |held: u64| self.most_per_session.is_none_or(|most| held < most as u64);
            let Some((party, Queued { since, claim, then, .. })) = state.queue.pop_where(accepts) else { break };
            let place = self.admit(state, party, since.elapsed(), claim);
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
            let Some((_, number, party)) = state.deadlines.pop_front() else { break };
            over.extend(state.queue.remove(&party, |queued| queued.number == number));
        }
        let admitted = admission.next(&mut state);
        let wait = if state.queue.len() > 0 { LOOK } else { Duration::from_secs(1) };
        if over.is_empty() && admitted.is_empty() {
            let wait = state.deadlines.front().map_or(wait, |(deadline, ..)| wait.min(deadline.saturating_duration_since(now)));
            drop(admission.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner));
        } else {
            drop(state);
            run(admitted);
            for queued in over {
                tell(queued.then, Err(Turned::TimedOut));
            }
        }
    }
}
