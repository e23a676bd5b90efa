//! Waiting of runs: on a thread, or on a fiber of a thread that runs many programs.
//!
//! A run blocks while it waits for a reply, for other branches, or for a processor. With a thread per run, each waiting run costs
//! a thread and the allocator's memory for it. A host with many waiting programs runs each on a fiber, which is a native stack
//! that can be suspended, and announces the current fiber of a thread with [`enter`]. Every wait of this crate uses [`park`] and
//! [`waker`].

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use crate::comparison_budget;

/// Longest single wait of a wait without a deadline.
const MAX_PARK: Duration = Duration::from_hours(1);

/// A fiber, implemented by the host. A fiber never moves to another thread.
pub trait Fiber {
    /// Suspends the calling fiber until it is woken or `until` is reached. Returns at once if it was woken since it last parked.
    /// Spurious returns are allowed.
    fn park(&self, until: Instant);

    /// Returns a waker of the fiber, which can be used on any thread.
    fn waker(&self) -> Waker;

    /// Whether other fibers of the thread are ready to run.
    fn others_are_ready(&self) -> bool;

    /// Runs `work` on a new fiber, on any thread of the host. Returns `false` and drops `work` if that is impossible.
    fn spawn(&self, work: Box<dyn FnOnce() + Send>) -> bool;

    /// Runs `work`, which does not wait, on the stack of the thread that resumed the fiber. Deep but short computations thus do
    /// not enlarge the stack of a fiber that waits later.
    fn on_thread_stack(&self, work: &mut (dyn FnMut() + Send));

    /// Notifies the host that the fiber has used much of its stack, which the host should then free instead of keeping it.
    fn uses_much_stack(&self);
}

thread_local! {
    static CURRENT: RefCell<Option<Rc<dyn Fiber>>> = const { RefCell::new(None) };
    static THREAD: Waker = Waker::from(Arc::new(ThreadWaker(std::thread::current())));
}

struct ThreadWaker(Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Thread-local state of this crate that belongs to a fiber and is swapped in while the fiber runs.
#[derive(Default)]
pub struct State(comparison_budget::State);

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").finish_non_exhaustive()
    }
}

/// Resumes `fiber` on the calling thread by calling `resume`. `state` holds the fiber's state between two calls.
pub fn enter<T>(fiber: Rc<dyn Fiber>, state: &mut State, resume: impl FnOnce() -> T) -> T {
    let before = CURRENT.replace(Some(fiber));
    state.0.exchange();
    let resumed = resume();
    state.0.exchange();
    CURRENT.replace(before);
    resumed
}

fn current() -> Option<Rc<dyn Fiber>> {
    CURRENT.with_borrow(Clone::clone)
}

/// Blocks until [`waker`] of the same thread or fiber is used, or until the deadline. Spurious returns are possible.
pub fn park(until: Option<Instant>) {
    match (current(), until) {
        (Some(fiber), until) => fiber.park(until.unwrap_or_else(|| Instant::now() + MAX_PARK)),
        (None, None) => std::thread::park(),
        (None, Some(until)) => {
            let left = until.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                std::thread::park_timeout(left);
            }
        }
    }
}

/// Whether other fibers of the calling thread are ready to run.
pub fn others_are_ready() -> bool {
    current().is_some_and(|fiber| fiber.others_are_ready())
}

/// Yields to other fibers of the calling thread that are ready.
pub(crate) fn let_others_run() {
    if let Some(fiber) = current().filter(|fiber| fiber.others_are_ready()) {
        fiber.park(Instant::now());
    }
}

/// Returns a waker that ends the current or the next [`park`] of the calling thread or fiber.
pub fn waker() -> Waker {
    current().map_or_else(|| THREAD.with(Waker::clone), |fiber| fiber.waker())
}

/// Runs `work`, which does not wait, on the stack of the thread.
pub fn on_thread_stack<T>(work: impl FnOnce() -> T + Send) -> T
where
    T: Send,
{
    let Some(fiber) = current() else { return work() };
    let (mut work, mut result) = (Some(work), None);
    fiber.on_thread_stack(&mut || result = work.take().map(|work| work()));
    match (result, work) {
        (Some(result), _) => result,
        // The host did not run `work`.
        (None, Some(work)) => work(),
        (None, None) => unreachable!("work that was taken has a result, or has panicked through here"),
    }
}

/// Runs `work` concurrently, with as much native stack as a run needs. Returns `false` if the system cannot start a thread.
pub(crate) fn spawn(stack: usize, work: impl FnOnce() + Send + 'static) -> bool {
    match current() {
        Some(fiber) => fiber.spawn(Box::new(work)),
        None => std::thread::Builder::new().name("ptc-pmap".into()).stack_size(stack).spawn(work).is_ok(),
    }
}

/// Notifies the host that the calling fiber has used much of its stack.
pub(crate) fn uses_much_stack() {
    if let Some(fiber) = current() {
        fiber.uses_much_stack();
    }
}
