//! Threads that each run many programs as fibers.
//!
//! A program that waits for an upstream occupies only its values and the used part of a native stack: it is a fiber, which its
//! thread suspends to run others. With one parked thread for each program, 2,000 waiting programs took 550 MB, most of it in
//! per-thread blocks of the allocator and in stack that parsing had touched. The [scheduler](crate) decides which program
//! computes. There are more threads than processors because a fiber stays on its thread.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use ptc_lisp::fiber::{self, Fiber};
use ptc_lisp::{STACK_BYTES, STACK_SLACK_BYTES};

use crate::alloc;
use crate::pool::{Job, JobError, abandon, job};

/// Native stack in bytes of a fiber, and of the threads, which parse programs on their own stacks.
const STACK: usize = STACK_BYTES + STACK_SLACK_BYTES;

/// Maximum number of unused stacks that a thread keeps for its next fibers.
const MAX_SPARE_STACKS: usize = 2;

/// A pool of threads that run jobs on fibers. After it is dropped, threads end when their jobs have ended.
pub struct Fibers {
    threads: Arc<Threads>,
}

struct Threads {
    most: usize,
    all: Mutex<Vec<Arc<FiberThread>>>,
}

/// A thread that hosts fibers.
#[derive(Default)]
struct FiberThread {
    inbox: Mutex<Inbox>,
    changed: Condvar,
    /// Number of assigned jobs that have not ended.
    hosted: AtomicUsize,
    /// Whether one of its fibers is running.
    is_busy: AtomicBool,
    /// Whether the inbox is not empty, readable without its lock.
    has_messages: AtomicBool,
}

#[derive(Default)]
struct Inbox {
    jobs: Vec<Job>,
    woken: Vec<u64>,
    /// Whether the thread sleeps until a message arrives.
    sleeps: bool,
    closed: bool,
}

/// A fiber on its thread.
struct HostedFiber {
    coroutine: Coroutine<(), Instant, (), DefaultStack>,
    own: Rc<FiberContext>,
    state: fiber::State,
    /// The fiber's part of the thread's gauge, in bytes.
    live: i64,
    /// Deadline of its park, if it is parked.
    parked: Option<Instant>,
}

/// The context of a running fiber.
struct FiberContext {
    number: u64,
    host: Arc<FiberThread>,
    threads: Weak<Threads>,
    others: Rc<Siblings>,
    /// Suspends the fiber; set when it begins.
    yielder: Cell<*const Yielder<(), Instant>>,
    /// Whether its stack is too deep to be reused.
    is_deep: Cell<bool>,
}

/// The state of the other fibers of the thread.
#[derive(Default)]
struct Siblings {
    /// Whether one of them is ready to run.
    is_ready: Cell<bool>,
    /// When the next one becomes ready.
    next: Cell<Option<Instant>>,
}

/// Wakes a fiber.
struct FiberWaker {
    number: u64,
    host: Arc<FiberThread>,
}

/// Waits for a future on the calling fiber or thread. The thread of a fiber runs others meanwhile.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let waker = fiber::waker();
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        fiber::park(None);
    }
}

impl std::fmt::Debug for Fibers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fibers").field("threads", &self.threads.most).finish_non_exhaustive()
    }
}

impl Fibers {
    /// Makes a pool of at most `threads` threads. They are started on demand.
    pub fn new(threads: usize) -> Self {
        Fibers { threads: Arc::new(Threads { most: threads.max(1), all: Mutex::default() }) }
    }

    /// Makes a pool of one thread, which runs when this returns. The pool starts no thread afterwards.
    ///
    /// # Errors
    ///
    /// Returns an error if the system has no thread, or no stack for a fiber.
    pub fn started() -> std::io::Result<Self> {
        let fibers = Fibers::new(1);
        let (report, reported) = std::sync::mpsc::channel();
        fibers.spawn(|| (), move |ran| drop(report.send(ran)));
        let ran = reported.recv().unwrap_or(Err(JobError::NotStarted));
        ran.map_err(|why| std::io::Error::other(why.to_string()))?;
        Ok(fibers)
    }

    /// Runs `work` on a fiber, and then `done` with its result. `done` is always called: it receives [`JobError::Panicked`] after
    /// a panic of `work`, and [`JobError::NotStarted`] if the system has no stack or thread for the fiber.
    pub fn spawn<T: 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
        done: impl FnOnce(Result<T, JobError>) + Send + 'static,
    ) {
        self.threads.push(job(work, done));
    }
}

impl Drop for Fibers {
    fn drop(&mut self) {
        for host in &*self.threads.lock() {
            host.post(|inbox| inbox.closed = true);
        }
    }
}

impl Threads {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<FiberThread>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Assigns a job to the thread with the fewest jobs, or to a new one.
    fn push(self: &Arc<Self>, job: Job) {
        let mut all = self.lock();
        let load = |host: &&Arc<FiberThread>| (host.is_busy.load(Ordering::Relaxed), host.hosted.load(Ordering::Relaxed));
        let idlest = all.iter().min_by_key(load).cloned();
        let host = match idlest {
            Some(host) if host.hosted.load(Ordering::Relaxed) == 0 || all.len() >= self.most => host,
            idlest => match (FiberThread::start(Arc::downgrade(self)), idlest) {
                (Ok(started), _) => {
                    all.push(Arc::clone(&started));
                    started
                }
                // No thread can be started, so that an existing one takes the job.
                (Err(_), Some(idlest)) => idlest,
                (Err(fault), None) => {
                    drop(all);
                    ptc_log::line(ptc_log::Level::Error, "no thread for a program", &[("reason", &fault.to_string())]);
                    return abandon(job);
                }
            },
        };
        host.hosted.fetch_add(1, Ordering::Relaxed);
        drop(all);
        host.post(|inbox| inbox.jobs.push(job));
    }
}

impl FiberThread {
    fn start(threads: Weak<Threads>) -> std::io::Result<Arc<FiberThread>> {
        let host = Arc::new(FiberThread::default());
        let thread = std::thread::Builder::new().name("programs".into()).stack_size(STACK);
        let this = Arc::clone(&host);
        thread.spawn(move || FiberExecutor { host: this, threads, ..FiberExecutor::default() }.run())?;
        Ok(host)
    }

    /// Changes the inbox. Wakes the thread only if it sleeps, since waking is a system call.
    fn post(&self, change: impl FnOnce(&mut Inbox)) {
        let mut inbox = self.lock();
        change(&mut inbox);
        self.has_messages.store(true, Ordering::Release);
        let sleeps = std::mem::take(&mut inbox.sleeps);
        drop(inbox);
        if sleeps {
            self.changed.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The fibers of one thread.
#[derive(Default)]
struct FiberExecutor {
    host: Arc<FiberThread>,
    threads: Weak<Threads>,
    fibers: HashMap<u64, HostedFiber>,
    ready: VecDeque<u64>,
    /// When parked fibers resume. Outdated entries are skipped.
    times: BinaryHeap<Reverse<(Instant, u64)>>,
    next: u64,
    spare: Vec<DefaultStack>,
    others: Rc<Siblings>,
}

impl FiberExecutor {
    /// Runs jobs and resumes fibers until the pool is closed.
    fn run(mut self) {
        loop {
            let Some((jobs, woken)) = self.wait() else { return };
            for number in woken {
                self.unpark(number);
            }
            // The clock is read only if a fiber waits for a time.
            let now = self.times.peek().map(|_| Instant::now());
            while let Some(Reverse((time, number))) = self.times.peek().copied()
                && now.is_some_and(|now| time <= now)
            {
                self.times.pop();
                if self.fibers.get(&number).is_some_and(|hosted| hosted.parked == Some(time)) {
                    self.unpark(number);
                }
            }
            for job in jobs {
                self.begin(job);
            }
            if let Some(number) = self.ready.pop_front() {
                self.resume(number);
            }
        }
    }

    /// Waits for messages or the next timeout. Returns new jobs and woken fibers, or `None` at the end.
    fn wait(&mut self) -> Option<(Vec<Job>, Vec<u64>)> {
        let mut inbox = self.host.lock();
        while inbox.jobs.is_empty() && inbox.woken.is_empty() && self.ready.is_empty() {
            if inbox.closed && self.fibers.is_empty() {
                return None;
            }
            let changed = &self.host.changed;
            inbox.sleeps = true;
            inbox = match self.times.peek() {
                None => changed.wait(inbox).unwrap_or_else(PoisonError::into_inner),
                Some(Reverse((time, _))) => {
                    let left = time.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        break;
                    }
                    changed.wait_timeout(inbox, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        inbox.sleeps = false;
        self.host.has_messages.store(false, Ordering::Release);
        Some((std::mem::take(&mut inbox.jobs), std::mem::take(&mut inbox.woken)))
    }

    /// Makes a fiber ready if it is parked. A fiber that is not parked yet checks its condition again.
    fn unpark(&mut self, number: u64) {
        if self.fibers.get_mut(&number).is_some_and(|hosted| hosted.parked.take().is_some()) {
            self.ready.push_back(number);
        }
    }

    fn begin(&mut self, mut job: Job) {
        let stack = match self.spare.pop().map_or_else(|| DefaultStack::new(STACK), Ok) {
            Ok(stack) => stack,
            Err(fault) => {
                ptc_log::line(ptc_log::Level::Error, "no stack for a program", &[("reason", &fault.to_string())]);
                self.host.hosted.fetch_sub(1, Ordering::Relaxed);
                return abandon(job);
            }
        };
        let number = self.next;
        self.next += 1;
        let own = Rc::new(FiberContext {
            number,
            host: Arc::clone(&self.host),
            threads: Weak::clone(&self.threads),
            others: Rc::clone(&self.others),
            yielder: Cell::new(std::ptr::null()),
            is_deep: Cell::new(false),
        });
        let of_fiber = Rc::clone(&own);
        let coroutine = Coroutine::with_stack(stack, move |yielder: &Yielder<(), Instant>, ()| {
            of_fiber.yielder.set(yielder);
            // A job handles its own panics. Others end here.
            let _ = catch_unwind(AssertUnwindSafe(|| job.run()));
        });
        self.fibers.insert(number, HostedFiber { coroutine, own, state: fiber::State::default(), live: 0, parked: None });
        self.ready.push_back(number);
    }

    fn resume(&mut self, number: u64) {
        let Some(hosted) = self.fibers.get_mut(&number) else { return };
        self.host.is_busy.store(true, Ordering::Relaxed);
        self.others.is_ready.set(!self.ready.is_empty());
        self.others.next.set(self.times.peek().map(|Reverse((time, _))| *time));
        let of_thread = alloc::exchange_live_bytes(hosted.live);
        let coroutine = &mut hosted.coroutine;
        let resumed = fiber::enter(Rc::<FiberContext>::clone(&hosted.own), &mut hosted.state, || coroutine.resume(()));
        hosted.live = alloc::exchange_live_bytes(of_thread);
        self.host.is_busy.store(false, Ordering::Relaxed);
        match resumed {
            CoroutineResult::Yield(until) => {
                hosted.parked = Some(until);
                self.times.push(Reverse((until, number)));
            }
            CoroutineResult::Return(()) => {
                self.host.hosted.fetch_sub(1, Ordering::Relaxed);
                if let Some(HostedFiber { coroutine, own, .. }) = self.fibers.remove(&number)
                    && self.spare.len() < MAX_SPARE_STACKS
                    && !own.is_deep.get()
                {
                    self.spare.push(coroutine.into_stack());
                }
            }
        }
        // Removes entries of fibers that have resumed, of which each may leave many.
        if self.times.len() > 2 * self.fibers.len() + 64 {
            let fibers = &self.fibers;
            self.times.retain(|Reverse((time, number))| fibers.get(number).is_some_and(|hosted| hosted.parked == Some(*time)));
        }
    }
}

impl FiberContext {
    #[expect(unsafe_code, reason = "a fiber finds its yielder through its thread")]
    fn yielder(&self) -> &Yielder<(), Instant> {
        // SAFETY: the pointer is set when the fiber begins, to a value at the bottom of the fiber's stack, which lives as long as
        // anything runs on that stack. Only code on the fiber reaches this function: `fiber::enter` sets the current fiber while
        // it is resumed, and no longer.
        unsafe { &*self.yielder.get() }
    }
}

impl Fiber for FiberContext {
    fn park(&self, until: Instant) {
        self.yielder().suspend(until);
    }

    fn waker(&self) -> Waker {
        Waker::from(Arc::new(FiberWaker { number: self.number, host: Arc::clone(&self.host) }))
    }

    fn others_are_ready(&self) -> bool {
        self.others.is_ready.get()
            || self.host.has_messages.load(Ordering::Acquire)
            || self.others.next.get().is_some_and(|next| next <= Instant::now())
    }

    fn spawn(&self, work: Box<dyn FnOnce() + Send>) -> bool {
        self.threads.upgrade().is_some_and(|threads| {
            threads.push(Box::new(Some(work)));
            true
        })
    }

    fn on_thread_stack(&self, work: &mut (dyn FnMut() + Send)) {
        self.yielder().on_parent_stack(work);
    }

    fn uses_much_stack(&self) {
        self.is_deep.set(true);
    }
}

impl Wake for FiberWaker {
    fn wake(self: Arc<Self>) {
        self.host.post(|inbox| inbox.woken.push(self.number));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn started_pool_runs_every_job_on_the_thread_that_it_has_started() {
        let fibers = Fibers::started().unwrap();
        assert_eq!(fibers.threads.lock().len(), 1, "the thread exists before the first job");
        let (send, threads) = std::sync::mpsc::channel();
        for _ in 0..3 {
            let send = send.clone();
            fibers.spawn(|| std::thread::current().id(), move |id| send.send(id.unwrap()).unwrap());
        }
        drop(send);
        let threads: Vec<_> = threads.iter().collect();
        assert!(threads.len() == 3 && threads.iter().all(|id| *id == threads[0]), "{threads:?}");
        assert_eq!(fibers.threads.lock().len(), 1);
    }

    #[test]
    fn waiting_jobs_release_their_thread_and_survive_panics() {
        let fibers = Fibers { threads: Arc::new(Threads { most: 2, all: Mutex::default() }) };
        let (send, receive) = mpsc::channel();
        let (wake, wakers) = mpsc::channel();
        for n in 0..100_u32 {
            let (send, wake) = (send.clone(), wake.clone());
            let work = move || {
                let held = vec![n; 1000];
                wake.send((n, fiber::waker())).expect("the test waits");
                let live = alloc::live_bytes();
                // Half of the fibers are woken, the others time out.
                fiber::park(Some(Instant::now() + Duration::from_millis(if n % 2 == 0 { 20_000 } else { 20 })));
                assert_eq!(alloc::live_bytes(), live, "others were counted as well");
                assert!(n % 10 != 3, "job {n}");
                held.iter().sum::<u32>()
            };
            fibers.spawn(work, move |result| send.send(result.map_err(|why| format!("{why:?}"))).expect("the test waits"));
        }
        drop((send, wake));
        let mut all: Vec<(u32, Waker)> = wakers.iter().take(100).collect();
        assert!(fibers.threads.lock().len() <= 2);
        all.drain(..).filter(|(n, _)| n % 2 == 0).for_each(|(_, waker)| waker.wake());
        let answers: Vec<_> = receive.into_iter().collect();
        assert_eq!(answers.len(), 100);
        assert_eq!(answers.iter().filter(|a| a.is_err()).count(), 10);
        assert!(answers.contains(&Err("Panicked(\"job 13\")".into())) && answers.contains(&Ok(42_000)));
    }

    #[test]
    fn fiber_sees_that_others_of_its_thread_are_ready() {
        let fibers = Fibers::new(1);
        let (send, receive) = mpsc::channel();
        let (began, begun) = mpsc::channel();
        let spin = move || {
            began.send(()).expect("the test waits");
            let until = Instant::now() + Duration::from_secs(20);
            while !fiber::others_are_ready() && Instant::now() < until {
                std::hint::spin_loop();
            }
            fiber::others_are_ready()
        };
        let seen = send.clone();
        fibers.spawn(spin, move |result| seen.send(("new", result)).expect("the test waits"));
        begun.recv().expect("it runs");
        fibers.spawn(|| true, |_| ());
        assert_eq!(receive.recv().expect("a result"), ("new", Ok(true)));
        // A fiber whose time has come is ready as well.
        let (parked, parks) = mpsc::channel();
        let sleep = move || {
            parked.send(()).expect("the test waits");
            fiber::park(Some(Instant::now() + Duration::from_millis(30)));
        };
        fibers.spawn(sleep, |_| ());
        parks.recv().expect("it runs");
        let spin = || {
            let until = Instant::now() + Duration::from_secs(20);
            while !fiber::others_are_ready() && Instant::now() < until {
                std::hint::spin_loop();
            }
            fiber::others_are_ready()
        };
        fibers.spawn(spin, move |result| send.send(("in time", result)).expect("the test waits"));
        assert_eq!(receive.recv().expect("a result"), ("in time", Ok(true)));
    }

    #[test]
    fn dropped_job_reports_that_it_has_not_started() {
        let fibers = Fibers { threads: Arc::new(Threads { most: 1, all: Mutex::default() }) };
        // This thread has ended and never takes a job from its inbox.
        fibers.threads.lock().push(Arc::default());
        let (send, receive) = mpsc::channel();
        fibers.spawn(|| 1, move |result| send.send(result).expect("the test waits"));
        assert!(receive.try_recv().is_err());
        fibers.threads.lock().clear();
        assert_eq!(receive.recv().expect("a result"), Err(JobError::NotStarted));
    }

    #[test]
    fn long_work_runs_on_the_stack_of_the_thread() {
        let fibers = Fibers::new(1);
        let (send, receive) = mpsc::channel();
        let here = || {
            let local = 0_u8;
            std::hint::black_box(&raw const local) as usize
        };
        let work = move || {
            let (mine, on_thread) = (here(), fiber::on_thread_stack(here));
            mine.abs_diff(on_thread) > 64 * 1024
        };
        fibers.spawn(work, move |result| send.send(result.is_ok_and(|apart| apart)).expect("the test waits"));
        assert!(receive.recv().expect("an answer"));
    }
}
