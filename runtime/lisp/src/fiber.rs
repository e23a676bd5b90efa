//! What a run waits on: its thread, or a fiber of a thread that runs many programs.
//!
//! A run blocks where it waits: for an answer, for other branches, for a processor. On a thread of its own that costs a thread and
//! what the allocator keeps for it. A host that has many programs waiting runs each on a fiber, a native stack that can be suspended, and
//! says with [`enter`] which fiber the calling thread is on. Every wait of this crate goes through [`park`] and [`waker`].

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use crate::effort;

/// How long a wait without an end is at a time.
const LONG: Duration = Duration::from_secs(3600);

/// A fiber, as the host has made it. A fiber never moves to another thread.
pub trait Fiber {
    /// Suspends the calling fiber until it is woken or the time is up; at once where it was woken since it last parked. It may also return
    /// for no reason.
    fn park(&self, until: Instant);

    /// Wakes the fiber, from any thread.
    fn waker(&self) -> Waker;

    /// Whether other fibers could run on the thread now.
    fn others_are_ready(&self) -> bool;

    /// Runs `work` on a fiber of its own, on any thread of the host. `false` where that is impossible; `work` is dropped then.
    fn spawn(&self, work: Box<dyn FnOnce() + Send>) -> bool;

    /// Runs `work`, which does not wait, on the stack of the thread that has resumed the fiber: what needs much stack for a short time
    /// does not leave it to a program that waits.
    fn on_thread_stack(&self, work: &mut (dyn FnMut() + Send));

    /// The fiber uses much of its stack, which the host had better not keep.
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

/// What this crate keeps of a fiber in the thread while the fiber runs.
#[derive(Default)]
pub struct State(effort::State);

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").finish_non_exhaustive()
    }
}

/// Has `fiber` resumed by `resume` on the calling thread. `state` is what this crate keeps of it between two of these.
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

/// Waits until [`waker`] of the same thread or fiber is used, or the time is up. It may return for no reason.
pub fn park(until: Option<Instant>) {
    match (current(), until) {
        (Some(fiber), until) => fiber.park(until.unwrap_or_else(|| Instant::now() + LONG)),
        (None, None) => std::thread::park(),
        (None, Some(until)) => {
            let left = until.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                std::thread::park_timeout(left);
            }
        }
    }
}

/// Whether other fibers could run on the calling thread now.
pub fn others_are_ready() -> bool {
    current().is_some_and(|fiber| fiber.others_are_ready())
}

/// Lets other fibers of the calling thread run that could.
pub(crate) fn let_others_run() {
    if let Some(fiber) = current().filter(|fiber| fiber.others_are_ready()) {
        fiber.park(Instant::now());
    }
}

/// Ends the [`park`] of the calling thread or fiber, or the next one.
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
        // The host did not do what it is for.
        (None, Some(work)) => work(),
        (None, None) => unreachable!("work that was taken has a result, or has panicked through here"),
    }
}

/// Runs `work` beside the calling thread or fiber, with as much native stack as a run needs. `false` where the system has no thread left.
pub(crate) fn spawn(stack: usize, work: impl FnOnce() + Send + 'static) -> bool {
    match current() {
        Some(fiber) => fiber.spawn(Box::new(work)),
        None => std::thread::Builder::new().name("ptc-pmap".into()).stack_size(stack).spawn(work).is_ok(),
    }
}

/// The calling fiber uses much of its stack.
pub(crate) fn uses_much_stack() {
    if let Some(fiber) = current() {
        fiber.uses_much_stack();
    }
}
