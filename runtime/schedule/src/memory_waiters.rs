//! The threads and fibers that wait for memory.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// The waiters in order of arrival.
#[derive(Default)]
pub(super) struct MemoryWaiters {
    state: Mutex<State>,
    /// The number of waiters, readable without the lock: most releases of memory wake none.
    count: AtomicUsize,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<MemoryWaiter>,
    next: u64,
}

struct MemoryWaiter {
    number: u64,
    /// The number of its run.
    run: usize,
    bytes: i64,
    waker: Waker,
}

impl MemoryWaiters {
    /// Registers the waker of a waiter for `bytes`, and returns its number and whether it is the first waiter. A waiter that is
    /// registered already has its `number`.
    pub(super) fn enter(&self, number: Option<u64>, run: usize, bytes: i64, waker: Waker) -> (u64, bool) {
        let mut state = self.lock();
        let State { waiting, next } = &mut *state;
        if let Some((at, waiter)) = waiting.iter_mut().enumerate().find(|(_, waiter)| Some(waiter.number) == number) {
            waiter.waker = waker;
            return (waiter.number, at == 0);
        }
        let number = *next;
        *next += 1;
        waiting.push_back(MemoryWaiter { number, run, bytes, waker });
        self.count.store(waiting.len(), Ordering::SeqCst);
        (number, waiting.len() == 1)
    }

    /// Removes a waiter. If it was the first one, wakes the next, which is the first now.
    pub(super) fn leave(&self, number: u64) {
        let mut state = self.lock();
        let Some(at) = state.waiting.iter().position(|waiter| waiter.number == number) else { return };
        state.waiting.remove(at);
        self.count.store(state.waiting.len(), Ordering::SeqCst);
        let first = state.waiting.front().filter(|_| at == 0).map(|waiter| waiter.waker.clone());
        drop(state);
        if let Some(waker) = first {
            waker.wake();
        }
    }

    /// Wakes the waiters whose bytes fit together into `free`, which is negative if the budget is exceeded.
    pub(super) fn wake(&self, free: impl FnOnce() -> i64) {
        if self.count.load(Ordering::SeqCst) > 0 {
            let mut free = free();
            self.wake_where(|waiter| {
                let fits = waiter.bytes <= free;
                free -= if fits { waiter.bytes } else { 0 };
                fits
            });
        }
    }

    /// Wakes the waiters of a run that has ended.
    pub(super) fn wake_run(&self, run: usize) {
        if self.count.load(Ordering::SeqCst) > 0 {
            self.wake_where(|waiter| waiter.run == run);
        }
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    fn wake_where(&self, is_woken: impl FnMut(&&MemoryWaiter) -> bool) {
        let woken: Vec<Waker> = self.lock().waiting.iter().filter(is_woken).map(|waiter| waiter.waker.clone()).collect();
        woken.into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::task::Wake;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn release_wakes_only_waiters_whose_bytes_fit() {
        let waiters = MemoryWaiters::default();
        let counts: [Arc<Count>; 4] = Default::default();
        let woken = || counts.each_ref().map(|count| count.0.swap(0, Ordering::SeqCst));
        let enter = |at: usize, bytes| waiters.enter(None, at, bytes, Waker::from(Arc::clone(&counts[at])));
        let numbers = [enter(0, 60), enter(1, 100), enter(2, 40), enter(3, 1)];
        assert_eq!(numbers, [(0, true), (1, false), (2, false), (3, false)]);
        waiters.wake(|| 100);
        assert_eq!(woken(), [1, 0, 1, 0]);
        waiters.wake(|| -1);
        assert_eq!(woken(), [0, 0, 0, 0]);
        waiters.wake_run(3);
        assert_eq!(woken(), [0, 0, 0, 1]);
        // The second waiter is the first now, and is woken.
        waiters.leave(0);
        assert_eq!(woken(), [0, 1, 0, 0]);
        let waker = Waker::from(Arc::clone(&counts[1]));
        assert_eq!(waiters.enter(Some(1), 1, 100, waker), (1, true));
        waiters.leave(2);
        assert_eq!(woken(), [0, 0, 0, 0]);
    }
}
