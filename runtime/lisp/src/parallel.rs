//! `pmap` and `pcalls`: threads that share the run's meters process the items of a job in order.
//!
//! Every evaluating thread holds one of the run's permits, and a processor lease if a scheduler divides the processors among
//! runs. A thread that waits for an upstream releases its permit and starts another thread for the job's next item, so that many
//! calls overlap while few threads compute. Without a free permit the caller does all the work itself. The fault of the lowest
//! item wins, so that the outcome does not depend on timing; items after it are stopped.

use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use crate::Value;
use crate::args::steps;
use crate::collection::Vector;
use crate::error::ErrorKind;
use crate::eval::Globals;
use crate::fiber;
use crate::interrupt::Interrupt;
use crate::machine::{Fault, Machine, Raised};
use crate::run::STACK_BYTES;

/// Steps that an item costs in addition to those of its function.
const TASK_STEPS: u32 = 4;

/// Maximum number of threads of a run in addition to its first, including waiting ones.
const MAX_HELPERS: usize = 50;

/// Permits for the threads of a run that compute.
pub(crate) struct WorkerPermits {
    state: Mutex<PermitState>,
}

struct PermitState {
    permits: usize,
    helpers: usize,
    waiting: Vec<Waker>,
}

impl WorkerPermits {
    /// Makes `workers` permits, of which the run's first thread holds one.
    pub(crate) fn new(workers: usize) -> Self {
        WorkerPermits { state: Mutex::new(PermitState { permits: workers.saturating_sub(1), helpers: 0, waiting: Vec::new() }) }
    }

    fn lock(&self) -> MutexGuard<'_, PermitState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Acquires a permit for a new thread, if one is free.
    fn acquire_for_helper(&self) -> bool {
        let mut free = self.lock();
        let granted = free.permits > 0 && free.helpers < MAX_HELPERS;
        if granted {
            free.permits -= 1;
            free.helpers += 1;
        }
        granted
    }

    /// Releases a permit.
    pub(crate) fn release(&self) {
        let mut free = self.lock();
        free.permits += 1;
        wake(free);
    }

    fn release_helper(&self) {
        let mut free = self.lock();
        free.permits += 1;
        free.helpers -= 1;
        wake(free);
    }

    /// Waits for a permit until `deadline`. Then it returns without one, since the run is about to end.
    pub(crate) fn acquire(&self, deadline: Instant) {
        let mut free = self.lock();
        while free.permits == 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            free.waiting.push(fiber::waker());
            drop(free);
            fiber::park(Some(deadline));
            free = self.lock();
        }
        free.permits -= 1;
    }
}

/// Wakes all waiting threads, since some of them may no longer wait. Each tries to acquire a permit again.
fn wake(mut free: MutexGuard<'_, PermitState>) {
    let waiting = std::mem::take(&mut free.waiting);
    drop(free);
    waiting.into_iter().for_each(Waker::wake);
}

/// The work for each item.
pub(crate) enum Work {
    /// Calls a function with one item of each collection.
    Map(Value, Vec<Vector>),
    /// Calls functions without arguments.
    Calls(Vec<Value>),
}

impl Work {
    fn len(&self) -> usize {
        match self {
            Work::Map(_, collections) => collections.iter().map(Vector::len).min().unwrap_or(0),
            Work::Calls(functions) => functions.len(),
        }
    }

    fn run(&self, m: &mut Machine, index: usize) -> Result<Value, Raised> {
        match self {
            Work::Map(f, collections) => {
                let mut args: Vec<Value> = collections.iter().filter_map(|items| items.get(index).cloned()).collect();
                m.call(f, &mut args)
            }
            Work::Calls(functions) => match functions.get(index) {
                Some(f) => m.call(f, &mut []),
                None => Ok(Value::Nil),
            },
        }
    }
}

/// A running `pmap` or `pcalls`.
pub(crate) struct Job {
    work: Work,
    len: usize,
    next: AtomicUsize,
    /// The lowest item that failed or that is the last one to count; `usize::MAX` if there is none.
    failed: AtomicUsize,
    state: Mutex<State>,
    /// The caller's definitions, with which a helper starts.
    names: Arc<[Arc<str>]>,
    definitions: Vec<Option<Value>>,
}

#[derive(Default)]
struct State {
    results: Vec<Option<Value>>,
    fault: Option<Box<Fault>>,
    helpers: usize,
    /// The caller, which waits for the helpers.
    caller: Option<Waker>,
    waits: Vec<(usize, Interrupt)>,
}

/// The item that a machine works on.
pub(crate) struct Task {
    job: Arc<Job>,
    index: usize,
}

impl Task {
    /// Whether an earlier item failed, so that the result of this one is not needed.
    pub(crate) fn is_superseded(&self) -> bool {
        self.job.failed.load(Ordering::Relaxed) < self.index
    }

    /// Makes this item the last one: later items are stopped, and [`run`] returns the results up to this one.
    pub(crate) fn be_last(&self) {
        self.job.fail(self.index, None);
    }

    /// Ends `wait` when an earlier item fails.
    pub(crate) fn watch(&self, wait: Interrupt) {
        let mut state = self.job.lock();
        // Under the lock: an item that fails in between would not find this wait on the list.
        if self.is_superseded() {
            drop(state);
            wait.interrupt();
        } else {
            state.waits.push((self.index, wait));
        }
    }
}

impl Job {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes items until none is left.
    fn work(self: &Arc<Job>, m: &mut Machine) {
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            if index >= self.len || self.failed.load(Ordering::Relaxed) < index {
                return;
            }
            m.task = Some(Task { job: Arc::clone(self), index });
            let result = m.tick(TASK_STEPS).and_then(|()| self.work.run(m, index));
            if let Ok(value) = m.checked_result(result) {
                if let Some(slot) = self.lock().results.get_mut(index) {
                    *slot = Some(value);
                }
            } else {
                self.fail(index, m.fault.take());
                return;
            }
        }
    }

    fn fail(&self, index: usize, fault: Option<Box<Fault>>) {
        let mut state = self.lock();
        if index >= self.failed.load(Ordering::Relaxed) {
            return;
        }
        self.failed.store(index, Ordering::Relaxed);
        state.fault = fault;
        for (_, wait) in state.waits.iter().filter(|(item, _)| *item > index) {
            wait.interrupt();
        }
    }

    fn has_more(&self) -> bool {
        self.next.load(Ordering::Relaxed) < self.len && self.failed.load(Ordering::Relaxed) == usize::MAX
    }

    /// Starts a thread for the job, if an item and a permit are available.
    fn help(self: &Arc<Job>, m: &Machine) -> bool {
        if !self.has_more() || !m.meters.permits.acquire_for_helper() {
            return false;
        }
        if m.meters.share.as_ref().is_some_and(|share| !share.begin_branch()) {
            m.meters.permits.release_helper();
            return false;
        }
        self.lock().helpers += 1;
        let mut guard = HelperGuard { job: Arc::clone(self), meters: Arc::clone(&m.meters), has_begun: false };
        let (meters, host, run_context) = (Arc::clone(&m.meters), m.shared_host(), Arc::clone(&m.run_context));
        // Where the system has no thread left, the closure and its guard are dropped, and the caller does the work.
        fiber::spawn(STACK_BYTES + SLACK, move || {
            guard.has_begun = true;
            if let Some(share) = &meters.share {
                share.acquire(meters.deadline);
            }
            let globals = Globals::restore(Arc::clone(&guard.job.names), &guard.job.definitions);
            let mut machine = Machine::new(meters, host, run_context, Rc::new(globals), STACK_BYTES);
            machine.mute();
            machine.count_thread();
            guard.job.work(&mut machine);
            machine.task = None;
            machine.finish();
            drop(machine);
            drop(guard);
        })
    }
}

/// Native stack for the code between two checks of the depth, in bytes.
pub(crate) const SLACK: usize = 2 * 1024 * 1024;

/// Releases the resources of a helper thread, even if it panics.
struct HelperGuard {
    job: Arc<Job>,
    meters: Arc<crate::machine::Meters>,
    /// Whether it runs on its own thread. Dropped before, on the caller's thread, it must not release the caller's processor.
    has_begun: bool,
}

impl Drop for HelperGuard {
    fn drop(&mut self) {
        if let Some(share) = &self.meters.share {
            if self.has_begun {
                share.release();
            }
            share.end_branch();
        }
        self.meters.permits.release_helper();
        let caller = {
            let mut state = self.job.lock();
            state.helpers -= 1;
            state.caller.take()
        };
        caller.into_iter().for_each(Waker::wake);
    }
}

/// Runs `work`, in parallel if permits are available, and returns the results in order.
pub(crate) fn run(m: &mut Machine, work: Work) -> Result<Value, Raised> {
    let len = work.len();
    if len == 0 {
        return Ok(Value::vector(Vec::new()));
    }
    // A job costs far more than a step, and helpers of it may have to be started.
    m.checkpoint_now()?;
    m.charge(len * 32)?;
    let globals = m.globals();
    let state = State { results: vec![None; len], ..State::default() };
    let job = Arc::new(Job {
        work,
        len,
        next: AtomicUsize::new(0),
        failed: AtomicUsize::new(usize::MAX),
        state: Mutex::new(state),
        names: globals.names(),
        definitions: globals.snapshot(),
    });
    for _ in 1..len {
        if !job.help(m) {
            break;
        }
    }
    // The caller works as well, with definitions of its own.
    m.sub_machine(|worker| job.work(worker));
    wait_for_helpers(m, &job);
    let mut state = job.lock();
    if let Some(fault) = state.fault.take() {
        drop(state);
        // If an enclosing task is superseded by now, any fault will do.
        return Err(m.raise_fault(*fault));
    }
    let mut results = std::mem::take(&mut state.results);
    drop(state);
    results.truncate(job.failed.load(Ordering::Relaxed).saturating_add(1));
    let mut out = Vec::with_capacity(len);
    for result in results {
        match result {
            Some(value) => out.push(value),
            None => return Err(m.raise(ErrorKind::InternalError, "a parallel worker was lost")),
        }
    }
    m.tick(steps(len))?;
    Ok(Value::vector(out))
}

fn wait_for_helpers(m: &Machine, job: &Arc<Job>) {
    let mut state = job.lock();
    if state.helpers == 0 {
        return;
    }
    // This wait ends, since helpers stop at the run's limits.
    m.meters.release();
    while state.helpers > 0 {
        state.caller = Some(fiber::waker());
        drop(state);
        fiber::park(Some(Instant::now() + Duration::from_millis(100)));
        state = job.lock();
    }
    drop(state);
    m.meters.acquire();
}

/// Runs `wait` without a permit, so that another thread can compute meanwhile.
pub(crate) fn waiting<T>(m: &mut Machine, wait: impl FnOnce() -> T) -> T {
    m.meters.release();
    if let Some(task) = &m.task {
        let job = Arc::clone(&task.job);
        job.help(m);
    }
    let result = wait();
    m.meters.acquire();
    result
}
