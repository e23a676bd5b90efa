//! Threads that evaluate programs.
//!
//! Evaluation recurses on the native stack, so it runs on threads whose stack size is known, never on a borrowed one. Threads are
//! started when needed, up to a cap on *existing* threads, and park when idle: a parked thread takes a job in microseconds.

use std::any::Any;
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A pool of evaluation threads. Dropping it lets idle threads end; busy ones finish their job first.
pub struct Pool {
    shared: Arc<Shared>,
    stack_bytes: usize,
    max_threads: usize,
}

/// Why a job has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobError {
    /// It panicked, with this message.
    Panicked(String),
    /// It was dropped before it began: the system has no thread or no stack left for it.
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

/// Work that reports its result, also if it is dropped before it began.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// Runs `work`, then `done` with its result. `done` is always called: a panic of `work` reaches it as [`JobError::Panicked`], and
/// where the job is dropped before it began it gets [`JobError::NotStarted`].
pub(crate) fn job<T: 'static>(
    work: impl FnOnce() -> T + Send + 'static,
    done: impl FnOnce(Result<T, JobError>) + Send + 'static,
) -> Job {
    let mut completion = Completion(Some(done), PhantomData);
    // Unwind safety: `work` is consumed, and what it shares with others sits behind locks that recover from poisoning.
    Box::new(move || {
        completion.complete(catch_unwind(AssertUnwindSafe(work)).map_err(|panic| JobError::Panicked(panic_message(&*panic))));
    })
}

/// Calls a function with the result of a job, or with [`JobError::NotStarted`] when it is dropped before.
struct Completion<T, D: FnOnce(Result<T, JobError>)>(Option<D>, PhantomData<fn(T)>);

impl<T, D: FnOnce(Result<T, JobError>)> Completion<T, D> {
    fn complete(&mut self, result: Result<T, JobError>) {
        if let Some(done) = self.0.take() {
            done(result);
        }
    }
}

impl<T, D: FnOnce(Result<T, JobError>)> Drop for Completion<T, D> {
    fn drop(&mut self) {
        self.complete(Err(JobError::NotStarted));
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
    /// A pool without threads yet. At least one thread is allowed.
    pub fn new(stack_bytes: usize, max_threads: usize) -> Self {
        Pool { shared: Arc::default(), stack_bytes, max_threads: max_threads.max(1) }
    }

    /// Runs `work` on a thread of the pool, then `done` with its result on the same thread, and
    /// always: a panic of `work`, and a job that never begins, are a [`JobError`]. With all threads busy the job waits for one.
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
            // No thread to be had: an existing one takes the job. With none at all, nobody would.
            let jobs = if state.threads == 0 { std::mem::take(&mut state.jobs) } else { VecDeque::new() };
            drop(state);
            self.shared.work.notify_one();
            drop(jobs);
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
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                // `done` runs outside the job's own catch; a panic there must not take the thread's place in the count with it.
                let _ = catch_unwind(AssertUnwindSafe(job));
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

/// What a panic says; empty where its payload is not a text.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn runs_jobs_and_survives_panics() {
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
