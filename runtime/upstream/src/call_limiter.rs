//! Limits the calls of one upstream: how many are in flight, with a fair queue, and how many programs wait for the upstream.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::oneshot;

use super::fault::{Reason, UpstreamError};
use super::stage::{self, Stage};
use ptc_schedule::fair::{Accounting, ClientKey, FairQueue};

/// Issues the permits of an upstream for calls in flight.
pub(super) struct CallLimiter {
    most: usize,
    state: Mutex<State>,
    /// Number of programs with calls to the upstream in progress.
    programs: AtomicUsize,
}

struct State {
    in_flight: usize,
    queue: FairQueue<QueueEntry>,
    next: u64,
}

struct QueueEntry {
    number: u64,
    permit: oneshot::Sender<CallPermit>,
}

/// The permit of a call in flight. Dropping it passes the permit to the next call.
pub(super) struct CallPermit {
    limiter: Arc<CallLimiter>,
    client_key: ClientKey,
}

/// A call in the queue. Dropping it removes the call.
struct QueuedCall<'l> {
    limiter: &'l CallLimiter,
    client_key: &'l ClientKey,
    number: u64,
}

/// A program with calls to the upstream in progress.
pub(super) struct CallingProgram(Arc<CallLimiter>);

impl CallLimiter {
    /// Creates a limiter for `most` calls in flight.
    pub(super) fn new(most: u64) -> Arc<CallLimiter> {
        let state = State { in_flight: 0, queue: FairQueue::new(Accounting::Occupancy), next: 0 };
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        Arc::new(CallLimiter { most, state: Mutex::new(state), programs: AtomicUsize::new(0) })
    }

    /// Waits for a permit until `deadline`. Dropping the future leaves the queue.
    pub(super) async fn acquire(
        self: &Arc<Self>,
        client_key: &ClientKey,
        deadline: Instant,
    ) -> Result<CallPermit, UpstreamError> {
        let (number, permit) = {
            let mut state = self.lock();
            if state.in_flight < self.most && state.queue.is_empty() {
                return Ok(self.grant(&mut state, client_key.clone()));
            }
            let (send, permit) = oneshot::channel();
            let number = state.next;
            state.next += 1;
            state.queue.push(client_key, QueueEntry { number, permit: send });
            (number, permit)
        };
        let _queued = QueuedCall { limiter: self, client_key, number };
        stage::enter(Stage::Permit);
        match stage::until(deadline, permit).await {
            Some(Ok(permit)) => Ok(permit),
            // The sender is dropped without a permit only at shutdown.
            Some(Err(_)) => Err(UpstreamError::unavailable("the upstream is shut down")),
            None => Err(UpstreamError::timed_out()),
        }
    }

    /// Counts a program with a call in progress. Fails if `most` others have one, since the programs that wait for one upstream
    /// must leave programs in flight to the other upstreams.
    pub(super) fn admit_program(self: &Arc<Self>, upstream: &str, most: usize) -> Result<CallingProgram, UpstreamError> {
        let next = |programs: usize| (programs < most).then_some(programs + 1);
        if self.programs.fetch_update(Ordering::AcqRel, Ordering::Relaxed, next).is_ok() {
            return Ok(CallingProgram(Arc::clone(self)));
        }
        let message = format!(
            "{most} programs wait for '{upstream}', which is all that may at a time (80 % of --max-concurrent-calls); call it again later"
        );
        Err(UpstreamError::new(Reason::UpstreamBusy, message))
    }

    fn grant(self: &Arc<Self>, state: &mut State, client_key: ClientKey) -> CallPermit {
        state.in_flight += 1;
        state.queue.add(&client_key, 1);
        CallPermit { limiter: Arc::clone(self), client_key }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        let mut state = self.limiter.lock();
        state.in_flight -= 1;
        state.queue.subtract(&self.client_key, 1);
        let next =
            state.queue.pop_where(|_| true).map(|(client_key, queued)| (queued, self.limiter.grant(&mut state, client_key)));
        // The permit is sent outside the lock: if the receiver is gone, the permit is dropped and goes to the next call.
        drop(state);
        if let Some((queued, permit)) = next {
            let _ = queued.permit.send(permit);
        }
    }
}

impl Drop for QueuedCall<'_> {
    fn drop(&mut self) {
        self.limiter.lock().queue.remove(self.client_key, |queued| queued.number == self.number);
    }
}

impl Drop for CallingProgram {
    fn drop(&mut self) {
        self.0.programs.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn client_key(owner: &str) -> ClientKey {
        ClientKey { owner: owner.into(), session: 0 }
    }

    #[tokio::test]
    async fn call_beyond_the_limit_waits_and_leaves_the_queue_at_its_deadline() {
        let limiter = CallLimiter::new(1);
        let soon = || Instant::now() + Duration::from_secs(10);
        let first = limiter.acquire(&client_key("a"), soon()).await.expect("a permit");
        let late = limiter.acquire(&client_key("b"), Instant::now() + Duration::from_millis(5)).await;
        assert!(late.is_err_and(|fault| fault.is_timeout()));
        let (a, b) = (client_key("a"), client_key("b"));
        let (again, given_up, other) = (limiter.acquire(&a, soon()), limiter.acquire(&a, soon()), limiter.acquire(&b, soon()));
        let order = Mutex::new(Vec::new());
        let note = |name| order.lock().unwrap().push(name);
        tokio::join!(
            async {
                drop(again.await.expect("a permit"));
                note("a");
            },
            async {
                assert!(tokio::time::timeout(Duration::from_millis(5), given_up).await.is_err());
                drop(first);
            },
            async {
                drop(other.await.expect("a permit"));
                note("b");
            },
        );
        assert_eq!(order.into_inner().unwrap().len(), 2);
        let state = limiter.lock();
        assert_eq!((state.in_flight, state.queue.len()), (0, 0));
    }

    #[test]
    fn program_beyond_the_share_of_an_upstream_is_refused() {
        let limiter = CallLimiter::new(10);
        let calling = limiter.admit_program("u", 1).expect("the first");
        let Err(fault) = limiter.admit_program("u", 1) else { panic!("one too many") };
        assert_eq!((fault.reason.name(), fault.message.contains("1 programs wait for 'u'")), ("upstream_busy", true));
        drop(calling);
        assert!(limiter.admit_program("u", 1).is_ok());
    }
}
