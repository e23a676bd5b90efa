//! Assigns processors to programs: at most as many threads compute at the same time as there are processors.
//!
//! A waiting thread is in one of two queues, which are served alternately. The first has programs that have begun and used little
//! processor time: their time limit is running, and they will end soon. The second has programs that begin, and those that
//! compute for long. Both are a [`FairQueue`] by processor time, so that neither the loops nor many resumed programs of one
//! caller starve another caller's programs.

use std::cell::Cell;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use ptc_lisp::fiber;

use super::fair::{Accounting, ClientKey, FairQueue};

/// Time slice, after which a computing thread yields to others.
const SLICE: Duration = Duration::from_millis(10);

/// Maximum processor time of a started program that has priority over programs that have not started.
const SHORT: Duration = Duration::from_millis(30);

/// The processors.
#[derive(Debug)]
pub(super) struct Processors {
    state: Mutex<State>,
    /// Number of waiting threads, readable without the lock.
    waiting: AtomicUsize,
}

#[derive(Debug)]
struct State {
    free: usize,
    short: FairQueue<Arc<Waiter>>,
    long: FairQueue<Arc<Waiter>>,
    /// Start of the current period during which at least one thread was waiting.
    since: Option<Instant>,
    /// Whether the last thread came from `short`, since the queues alternate.
    was_short: bool,
}

/// A thread that waits for a processor.
#[derive(Debug)]
pub(super) struct Waiter {
    waker: Waker,
    state: AtomicU8,
}

const WAITS: u8 = 0;
const GRANTED: u8 = 1;
const GONE: u8 = 2;

thread_local! {
    /// When the thread received its processor.
    static SINCE: Cell<Option<Instant>> = const { Cell::new(None) };
}

impl Waiter {
    /// Ends the wait. Returns false if a processor was assigned before.
    pub(super) fn give_up(&self) -> bool {
        let gone = self.state.compare_exchange(WAITS, GONE, Ordering::AcqRel, Ordering::Acquire).is_ok();
        self.waker.wake_by_ref();
        gone
    }

    fn grant(&self) -> bool {
        let granted = self.state.compare_exchange(WAITS, GRANTED, Ordering::AcqRel, Ordering::Acquire).is_ok();
        self.waker.wake_by_ref();
        granted
    }
}

/// Parks the calling fiber, which keeps its processor for work in another process. Other fibers of its thread may compute
/// meanwhile.
pub fn park_holding(until: Option<Instant>) {
    let since = SINCE.take();
    fiber::park(until);
    SINCE.set(since);
}

impl Processors {
    pub(super) fn new(most: usize) -> Self {
        let queue = || FairQueue::new(Accounting::Service);
        let state = State { free: most, short: queue(), long: queue(), since: None, was_short: false };
        Processors { state: Mutex::new(state), waiting: AtomicUsize::new(0) }
    }

    /// Returns the numbers of free processors and of threads that wait for one.
    #[cfg(test)]
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.lock().free, self.waiting.load(Ordering::Relaxed))
    }

    /// Assigns a processor to the calling thread if one is free and no thread waits. Otherwise the thread is queued, and the
    /// caller must [wait](Processors::wait).
    pub(super) fn take(&self, client_key: &ClientKey, begun: bool, used: Duration) -> Option<Arc<Waiter>> {
        let mut state = self.lock();
        if state.free > 0 && self.waiting.load(Ordering::Relaxed) == 0 {
            state.free -= 1;
            drop(state);
            SINCE.set(Some(Instant::now()));
            return None;
        }
        let waiter = Arc::new(Waiter { waker: fiber::waker(), state: AtomicU8::new(WAITS) });
        if begun && used < SHORT {
            state.short.push(client_key, Arc::clone(&waiter));
        } else {
            state.long.push(client_key, Arc::clone(&waiter));
        }
        if self.waiting.fetch_add(1, Ordering::Relaxed) == 0 {
            state.since = Some(Instant::now());
        }
        self.next(&mut state);
        Some(waiter)
    }

    /// Waits for a processor, `deadline`, or [`Waiter::give_up`]. Returns whether the thread has a processor.
    pub(super) fn wait(waiter: &Waiter, deadline: Instant) -> bool {
        loop {
            match waiter.state.load(Ordering::Acquire) {
                WAITS => {}
                granted => {
                    let has = granted == GRANTED;
                    if has {
                        SINCE.set(Some(Instant::now()));
                    }
                    return has;
                }
            }
            if deadline <= Instant::now() {
                waiter.give_up();
            } else {
                fiber::park(Some(deadline));
            }
        }
    }

    /// Releases the processor of the calling thread, if it has one, to the next thread that waits. Returns how long the thread
    /// had it.
    pub(super) fn release(&self, client_key: &ClientKey) -> Option<Duration> {
        let since = SINCE.take()?;
        let held = since.elapsed();
        let mut state = self.lock();
        state.free += 1;
        if self.waiting.load(Ordering::Relaxed) > 0 {
            // Time during which no other thread waited is not charged.
            let counted = state.since.map_or(held, |since| held.min(since.elapsed()));
            let counted = u64::try_from(counted.as_nanos()).unwrap_or(u64::MAX);
            state.short.add(client_key, counted);
            state.long.add(client_key, counted);
            self.next(&mut state);
        }
        Some(held)
    }

    /// Whether the calling thread has used a time slice while others wait for a processor or for the thread.
    pub(super) fn is_slice_over(&self) -> bool {
        (self.waiting.load(Ordering::Relaxed) > 0 || fiber::others_are_ready())
            && SINCE.get().is_some_and(|since| since.elapsed() >= SLICE)
    }

    /// Assigns free processors to waiting threads.
    fn next(&self, state: &mut State) {
        while state.free > 0 {
            let of_short = if state.was_short { None } else { state.short.pop() };
            state.was_short = of_short.is_some();
            let Some(waiter) = of_short.or_else(|| state.long.pop()).or_else(|| state.short.pop()) else { return };
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            if waiter.grant() {
                state.free -= 1;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn client_key(owner: &str) -> ClientKey {
        ClientKey { owner: owner.into(), session: 1 }
    }

    fn acquire(processors: &Processors, owner: &str, begun: bool) -> bool {
        let waiter = processors.take(&client_key(owner), begun, Duration::ZERO);
        waiter.is_none_or(|waiter| Processors::wait(&waiter, Instant::now() + Duration::from_secs(10)))
    }

    #[test]
    fn started_programs_come_first_and_owners_alternate() {
        let processors = Arc::new(Processors::new(1));
        assert!(acquire(&processors, "a", false));
        let (send, order) = mpsc::channel();
        for (at, (owner, begun)) in [("a", false), ("a", false), ("b", false), ("c", true)].into_iter().enumerate() {
            let (of, send) = (Arc::clone(&processors), send.clone());
            std::thread::spawn(move || {
                assert!(acquire(&of, owner, begun));
                send.send(at).unwrap();
                of.release(&client_key(owner));
            });
            while processors.counts().1 <= at {
                std::thread::yield_now();
            }
        }
        processors.release(&client_key("a"));
        // Each thread drops its sender after it has released the processor.
        drop(send);
        // `a` had the processor before.
        assert_eq!(order.iter().collect::<Vec<_>>(), [3, 2, 0, 1]);
        assert_eq!(processors.counts(), (1, 0));
    }

    #[test]
    fn wait_that_ended_at_its_deadline_releases_its_processor() {
        let processors = Processors::new(1);
        assert!(acquire(&processors, "a", false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let waiter = processors.take(&client_key("b"), true, Duration::ZERO).expect("none is free");
                assert!(!Processors::wait(&waiter, Instant::now() + Duration::from_millis(5)));
            });
        });
        processors.release(&client_key("a"));
        assert_eq!(processors.counts(), (1, 0));
        assert!(acquire(&processors, "b", false));
    }
}
