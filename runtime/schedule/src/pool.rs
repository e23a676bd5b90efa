//! A pool of threads that evaluate programs.
//!
//! Evaluation recurses on the native stack. It therefore runs on threads with a known stack size, never on a caller's thread.
//! Threads are started on demand up to a limit on existing threads, and park when idle. A parked thread takes a job within
//! microseconds.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use ptc_text::panic_message;

/// A pool of evaluation threads. When it is dropped, idle threads end, and busy ones finish their job first.
pub struct Pool {
    shared: Arc<Shared>,
    stack_bytes: usize,
    max_threads: usize,
}

/// The reason why a job has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobError {
    /// The job panicked, with this message.
    Panicked(String),
    /// The job was dropped before it began, since the system has no thread or stack for it.
    NotStarted,
}

impl std::fmt::Display for JobError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            JobError::Panicked(message) => message,
            JobError::NotStarted => "the operating system has no thread or stack for it",
        })
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("max_threads", &self.max_threads).finish_non_exhaustive()
    }
}

/// A job that reports its result, even if it is dropped before it begins.
pub(crate) type Job = Box<dyn Run + Send>;

/// Runs once. Unlike `FnOnce`, it does not move the job out of its box, which holds all that a call captures.
pub(crate) trait Run {
    fn run(&mut self);
}

impl<F: FnOnce()> Run for Option<F> {
    fn run(&mut self) {
        if let Some(work) = self.take() {
            work();
        }
    }
}

/// Creates a job that runs `work`, and then `done` with its result. `done` is always called: it receives [`JobError::Panicked`]
/// after a panic of `work`, and [`JobError::NotStarted`] if the job is dropped before it begins.
pub(crate) fn job<T: 'static>(
    work: impl FnOnce() -> T + Send + 'static,
    done: impl FnOnce(Result<T, JobError>) + Send + 'static,
) -> Job {
    Box::new(JobParts { work: Some(work), done: Some(done), result: PhantomData })
}

/// Drops a job that cannot begin, so that it reports [`JobError::NotStarted`]. A panic of its `done` does not reach the caller.
pub(crate) fn abandon(job: Job) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(job)));
}

/// The functions of a job. If it is dropped before it runs, the result is [`JobError::NotStarted`].
struct JobParts<T, W: FnOnce() -> T, D: FnOnce(Result<T, JobError>)> {
    work: Option<W>,
    done: Option<D>,
    result: PhantomData<fn(T)>,
}

impl<T, W: FnOnce() -> T, D: FnOnce(Result<T, JobError>)> Run for JobParts<T, W, D> {
    fn run(&mut self) {
        if let (Some(work), Some(done)) = (self.work.take(), self.done.take()) {
            // Unwind safety: `work` is consumed, and its shared state is behind locks that recover from poisoning.
            done(catch_unwind(AssertUnwindSafe(work)).map_err(|panic| JobError::Panicked(panic_message(&*panic))));
        }
    }
}

impl<T, W: FnOnce() -> T, D: FnOnce(Result<T, JobError>)> Drop for JobParts<T, W, D> {
    fn drop(&mut self) {
        // `work` may hold a lease of a session or of a processor, which must be free when `done` answers.
        drop(self.work.take());
        if let Some(done) = self.done.take() {
            done(Err(JobError::NotStarted));
        }
    }
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
    closed: bool,
}

impl Pool {
    /// Creates a pool without threads. `max_threads` is at least one.
    pub fn new(stack_bytes: usize, max_threads: usize) -> Self {
        Pool { shared: Arc::default(), stack_bytes, max_threads: max_threads.max(1) }
    }

    /// Runs `work` on a thread of the pool, and then `done` with its result on the same thread. `done` is always called: a panic
    /// of `work` or a job that never begins is a [`JobError`]. If all threads are busy, the job waits.
    pub fn spawn<T: 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
        done: impl FnOnce(Result<T, JobError>) + Send + 'static,
    ) {
        let job = job(work, done);
        let mut state = self.shared.lock();
        state.jobs.push_back(job);
        let start = state.idle < state.jobs.len() && state.threads < self.max_threads;
        if start {
            state.threads += 1;
        }
        drop(state);
        if start {
            self.start_thread();
        } else {
            self.shared.work.notify_one();
        }
    }

    fn start_thread(&self) {
        let shared = Arc::clone(&self.shared);
        let started =
            std::thread::Builder::new().name("evaluation".into()).stack_size(self.stack_bytes).spawn(move || shared.run());
        if started.is_err() {
            let mut state = self.shared.lock();
            state.threads -= 1;
            // No thread can be started. Existing threads take the job; without any, it is dropped.
            let jobs = if state.threads == 0 { std::mem::take(&mut state.jobs) } else { VecDeque::new() };
            drop(state);
            self.shared.work.notify_one();
            jobs.into_iter().for_each(abandon);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.work.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut state = self.lock();
        loop {
            if let Some(mut job) = state.jobs.pop_front() {
                drop(state);
                // `done` runs outside the job's own `catch_unwind`. A panic in it must not end the thread, which would remain in
                // the count.
                let _ = catch_unwind(AssertUnwindSafe(|| job.run()));
                state = self.lock();
            } else if state.closed {
                state.threads -= 1;
                return;
            } else {
                state.idle += 1;
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.idle -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn job_that_does_not_start_releases_its_work_before_it_reports() {
        let (held, (send, receive)) = (Arc::new(()), mpsc::channel());
        let (in_work, in_done) = (Arc::clone(&held), Arc::clone(&held));
        let work = move || drop(in_work);
        abandon(job(work, move |result| send.send((result, Arc::strong_count(&in_done))).expect("the test waits")));
        assert_eq!(receive.recv().expect("a report"), (Err(JobError::NotStarted), 2));
        abandon(job(|| (), |_| panic!("a bug of a completion")));
    }

    #[test]
    fn pool_runs_jobs_and_survives_panics() {
        let pool = Pool::new(256 * 1024, 2);
        let (send, receive) = mpsc::channel();
        for n in 0..100_u32 {
            let send = send.clone();
            pool.spawn(
                move || {
                    assert!(n % 10 != 3, "job {n}");
                    n
                },
                move |result| send.send(result.map_err(|why| format!("{why:?}"))).expect("the test waits"),
            );
        }
        drop(send);
        let mut answers: Vec<_> = receive.into_iter().collect();
        answers.sort();
        assert_eq!(answers.len(), 100);
        assert_eq!(answers.iter().filter(|a| a.is_err()).count(), 10);
        assert!(answers.contains(&Err("Panicked(\"job 13\")".into())));
        assert!(pool.shared.lock().threads <= 2);
    }
}
