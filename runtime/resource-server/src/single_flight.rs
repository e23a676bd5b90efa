//! Coalesces the introspection of equal tokens (single flight): one task asks, and its answer serves the others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Digest = [u8; 32];

/// The tokens whose introspection is in flight.
#[derive(Default)]
pub(crate) struct SingleFlight(Mutex<HashMap<Digest, Flight>>);

/// The tasks with one token, of which one asks and the others wait.
#[derive(Default)]
struct Flight {
    tasks: usize,
    lock: Arc<tokio::sync::Mutex<()>>,
}

/// A task that asks about a token, or waits for the answer.
pub(crate) struct Participant<'f> {
    flights: &'f SingleFlight,
    digest: Digest,
    /// Held by the task that asks.
    pub(crate) lock: Arc<tokio::sync::Mutex<()>>,
}

impl SingleFlight {
    /// Registers a task for a token.
    pub(crate) fn join(&self, digest: Digest) -> Participant<'_> {
        let mut all = self.all();
        let flight = all.entry(digest).or_default();
        flight.tasks += 1;
        Participant { flights: self, digest, lock: Arc::clone(&flight.lock) }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Digest, Flight>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Participant<'_> {
    fn drop(&mut self) {
        let mut all = self.flights.all();
        // The count changes only under the lock of the map, so that the last of several tasks that end together removes the token.
        if let Some(flight) = all.get_mut(&self.digest) {
            flight.tasks -= 1;
            if flight.tasks == 0 {
                all.remove(&self.digest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_tokens_share_a_flight_until_the_last_task_ends() {
        let flights = SingleFlight::default();
        let (first, second, other) = (flights.join([1; 32]), flights.join([1; 32]), flights.join([2; 32]));
        assert!(Arc::ptr_eq(&first.lock, &second.lock) && !Arc::ptr_eq(&first.lock, &other.lock));
        drop(first);
        assert!(Arc::ptr_eq(&second.lock, &flights.join([1; 32]).lock), "the second task is still in flight");
        drop((second, other));
        assert_eq!(flights.all().len(), 0);
    }

    #[test]
    fn tasks_that_end_together_leave_nothing() {
        let flights = SingleFlight::default();
        let barrier = std::sync::Barrier::new(4);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for round in 0..2_000_u32 {
                        let mut digest = [0; 32];
                        digest[..4].copy_from_slice(&round.to_le_bytes());
                        let participant = flights.join(digest);
                        // All of them have joined, and then leave.
                        barrier.wait();
                        drop(participant);
                    }
                });
            }
        });
        assert_eq!(flights.all().len(), 0);
    }
}
