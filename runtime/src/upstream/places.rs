//! Limits the calls of one upstream: how many are in flight, with a fair queue, and how many programs wait for the upstream.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::oneshot;

use super::fault::{Reason, UpstreamError};
use super::stage::{self, Stage};
use crate::schedule::fair::{Basis, ClientKey, FairQueue};

/// The places of an upstream.
pub(super) struct Places {
    most: usize,
    state: Mutex<State>,
    /// Number of programs with calls to the upstream in progress.
    programs: AtomicUsize,
}

struct State {
    in_flight: usize,
    queue: FairQueue<Queued>,
    next: u64,
}

struct Queued {
    number: u64,
    turn: oneshot::Sender<Place>,
}

/// The place of a call. Dropping it releases the place.
pub(super) struct Place {
    places: Arc<Places>,
    client_key: ClientKey,
}

/// A call in the queue. Dropping it removes the call.
struct Waiting<'p> {
    places: &'p Places,
    client_key: &'p ClientKey,
    number: u64,
}

/// A program with calls to the upstream in progress.
pub(super) struct Present(Arc<Places>);

impl Places {
    /// Creates `most` places.
    pub(super) fn new(most: u64) -> Arc<Places> {
        let state = State { in_flight: 0, queue: FairQueue::new(Basis::Held), next: 0 };
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        Arc::new(Places { most, state: Mutex::new(state), programs: AtomicUsize::new(0) })
    }

    /// Waits for a place until `deadline`. Dropping the future leaves the queue.
    pub(super) async fn enter(self: &Arc<Self>, client_key: &ClientKey, deadline: Instant) -> Result<Place, UpstreamError> {
        let (number, turn) = {
            let mut state = self.lock();
            if state.in_flight < self.most && state.queue.len() == 0 {
                return Ok(self.grant(&mut state, client_key.clone()));
            }
            let (send, turn) = oneshot::channel();
            let number = state.next;
            state.next += 1;
            state.queue.push(client_key, Queued { number, turn: send });
            (number, turn)
        };
        let _waiting = Waiting { places: self, client_key, number };
        stage::enter(Stage::Turn);
        match stage::until(deadline, turn).await {
            Some(Ok(place)) => Ok(place),
            // The sender is dropped without a place only at shutdown.
            Some(Err(_)) => Err(UpstreamError::unavailable("the upstream is shut down")),
            None => Err(UpstreamError::timed_out()),
        }
    }

    /// Counts a program with a call in progress. Fails if `most` others have one, since the programs that wait for one upstream
    /// must leave places of the server to the rest.
    pub(super) fn join(self: &Arc<Self>, upstream: &str, most: usize) -> Result<Present, UpstreamError> {
        let next = |programs: usize| (programs < most).then_some(programs + 1);
        if self.programs.fetch_update(Ordering::AcqRel, Ordering::Relaxed, next).is_ok() {
            return Ok(Present(Arc::clone(self)));
        }
        let message = format!(
            "{most} programs wait for '{upstream}', which is all that may at a time (80 % of --max-concurrent-calls); call it again later"
        );
        Err(UpstreamError::new(Reason::UpstreamBusy, message))
    }

    fn grant(self: &Arc<Self>, state: &mut State, client_key: ClientKey) -> Place {
        state.in_flight += 1;
        state.queue.add(&client_key, 1);
        Place { places: Arc::clone(self), client_key }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.places.lock();
        state.in_flight -= 1;
        state.queue.subtract(&self.client_key, 1);
        let next =
            state.queue.pop_where(|_| true).map(|(client_key, queued)| (queued, self.places.grant(&mut state, client_key)));
        // The place is sent outside the lock: if the receiver is gone, the place is dropped and goes to the next call.
        drop(state);
        if let Some((queued, place)) = next {
            let _ = queued.turn.send(place);
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.places.lock().queue.remove(self.client_key, |queued| queued.number == self.number);
    }
}

impl Drop for Present {
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
    async fn calls_wait_for_a_place_and_leave_the_queue() {
        let places = Places::new(1);
        let soon = || Instant::now() + Duration::from_secs(10);
        let first = places.enter(&client_key("a"), soon()).await.expect("a place");
        let late = places.enter(&client_key("b"), Instant::now() + Duration::from_millis(5)).await;
        assert!(late.is_err_and(|fault| fault.is_timeout()));
        let (a, b) = (client_key("a"), client_key("b"));
        let (again, given_up, other) = (places.enter(&a, soon()), places.enter(&a, soon()), places.enter(&b, soon()));
        let order = Mutex::new(Vec::new());
        let note = |name| order.lock().unwrap().push(name);
        tokio::join!(
            async {
                drop(again.await.expect("a place"));
                note("a");
            },
            async {
                assert!(tokio::time::timeout(Duration::from_millis(5), given_up).await.is_err());
                drop(first);
            },
            async {
                drop(other.await.expect("a place"));
                note("b");
            },
        );
        assert_eq!(order.into_inner().unwrap().len(), 2);
        let state = places.lock();
        assert_eq!((state.in_flight, state.queue.len()), (0, 0));
    }

    #[test]
    fn programs_that_wait_leave_places_to_others() {
        let places = Places::new(10);
        let present = places.join("u", 1).expect("the first");
        let Err(fault) = places.join("u", 1) else { panic!("one too many") };
        assert_eq!((fault.reason.name(), fault.message.contains("1 programs wait for 'u'")), ("upstream_busy", true));
        drop(present);
        assert!(places.join("u", 1).is_ok());
    }
}
