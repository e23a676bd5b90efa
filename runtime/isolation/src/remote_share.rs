//! The program's share of processors and memory, which the server divides.
//!
//! All fibers of a worker are on one thread, so that a program has one processor at most.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::task::Waker;
use std::time::{Duration, Instant};

use ptc_lisp::{Share, fiber};

use crate::connection::{Connection, lock};
use crate::message::{Answer, FromWorker, Question};

/// Time after which a program that computes asks again for its processor.
const SLICE: Duration = Duration::from_millis(10);

/// Bytes by which the memory may change before the server is notified.
const MAX_UNREPORTED: i64 = 256 * 1024;

pub(crate) struct RemoteShare {
    connection: Arc<Connection>,
    state: Mutex<State>,
    /// Changes of the memory that the server does not know.
    unreported: AtomicI64,
    is_over: AtomicBool,
}

struct State {
    /// Number of fibers that compute.
    computing: usize,
    /// Since when the program has its processor.
    since: Instant,
    /// The fibers that wait while another one asks for a processor. `None` if none asks.
    asking: Option<Vec<Waker>>,
}

impl RemoteShare {
    /// Creates the share of a program that has a processor.
    pub(crate) fn new(connection: Arc<Connection>) -> RemoteShare {
        let state = State { computing: 1, since: Instant::now(), asking: None };
        RemoteShare { connection, state: Mutex::new(state), unreported: AtomicI64::new(0), is_over: AtomicBool::new(false) }
    }

    fn is_granted(&self, question: Question) -> bool {
        matches!(self.connection.ask(self.connection.next_id(), question), Answer::Granted(true))
    }
}

impl Share for RemoteShare {
    fn acquire(&self, deadline: Instant) {
        loop {
            let mut state = lock(&self.state);
            if self.is_over.load(Ordering::Relaxed) || state.computing > 0 && state.since.elapsed() < SLICE {
                state.computing += 1;
                return;
            }
            if let Some(waiting) = &mut state.asking {
                waiting.push(fiber::waker());
                drop(state);
                if deadline <= Instant::now() {
                    lock(&self.state).computing += 1;
                    return;
                }
                fiber::park(Some(deadline));
                continue;
            }
            state.asking = Some(Vec::new());
            drop(state);
            // The server answers at the deadline at the latest.
            self.is_granted(Question::Processor);
            let mut state = lock(&self.state);
            state.computing += 1;
            state.since = Instant::now();
            let waiting = state.asking.take();
            drop(state);
            waiting.into_iter().flatten().for_each(Waker::wake);
            return;
        }
    }

    fn release(&self) {
        let mut state = lock(&self.state);
        state.computing = state.computing.saturating_sub(1);
        let is_idle = state.computing == 0 && state.asking.is_none();
        drop(state);
        if is_idle {
            self.connection.send(&FromWorker::Release);
        }
    }

    fn is_slice_over(&self) -> bool {
        lock(&self.state).since.elapsed() >= SLICE
    }

    /// The server limits the memory of branches, and their number is limited for each program.
    fn begin_branch(&self) -> bool {
        true
    }

    fn end_branch(&self) {}

    fn report_bytes(&self, change: i64) {
        let unreported = self.unreported.fetch_add(change, Ordering::Relaxed) + change;
        if unreported.abs() >= MAX_UNREPORTED {
            let unreported = self.unreported.swap(0, Ordering::Relaxed);
            self.connection.send(&FromWorker::Changed(unreported));
        }
    }

    fn report_reserved(&self, change: i64) {
        self.report_bytes(change);
    }

    fn reserve_growth(&self, bytes: i64, _: Instant) -> bool {
        if bytes < MAX_UNREPORTED {
            self.report_bytes(bytes);
            return !self.is_over.load(Ordering::Relaxed);
        }
        self.is_granted(Question::Memory(bytes))
    }

    fn interrupt(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}
