//! Limits of the requests that clients can cause at the authorization server, in number and in rate.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, SemaphorePermit};

/// Maximum time that a token waits for the requests of others.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// The limits of one group of tokens. Each group has its own, so that no group takes the requests of another.
pub(crate) struct Lane {
    requests: Semaphore,
    rate: Option<Rate>,
}

/// A limit of the rate as a virtual schedule: a token bucket that starts full.
struct Rate {
    interval: Duration,
    /// The time that an unused lane may be ahead of its schedule, which permits a burst.
    burst: Duration,
    next: Mutex<Instant>,
}

impl Lane {
    /// Permits this many requests at the same time. `rate` is the number of requests in a second and in a burst.
    pub(crate) fn new(requests: usize, rate: Option<(u32, u32)>) -> Lane {
        let rate = rate.map(|(in_second, in_burst)| {
            let interval = Duration::from_secs(1) / in_second.max(1);
            let burst = interval * in_burst.saturating_sub(1);
            Rate { interval, burst, next: Mutex::new(Instant::now()) }
        });
        Lane { requests: Semaphore::new(requests), rate }
    }

    /// Waits until a request may be sent, in the order of the calls. Returns `None` if this would take too long.
    pub(crate) async fn enter(&self) -> Option<SemaphorePermit<'_>> {
        let deadline = tokio::time::Instant::now() + MAX_WAIT;
        if let Some(rate) = &self.rate {
            tokio::time::sleep(rate.reserve(Instant::now())?).await;
        }
        tokio::time::timeout_at(deadline, self.requests.acquire()).await.ok()?.ok()
    }
}

impl Rate {
    /// Reserves the next request. Returns the time until it may be sent, or `None` if that is too long.
    fn reserve(&self, now: Instant) -> Option<Duration> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let at = (*next).max(now.checked_sub(self.burst).unwrap_or(now));
        let wait = at.saturating_duration_since(now);
        (wait <= MAX_WAIT).then(|| {
            *next = at + self.interval;
            wait
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_permits_a_burst_and_then_an_even_number() {
        let lane = Lane::new(1, Some((10, 5)));
        let rate = lane.rate.as_ref().unwrap_or_else(|| panic!("it has a rate"));
        let start = Instant::now() + Duration::from_mins(1);
        let waits = |at: Instant| std::iter::from_fn(|| rate.reserve(at)).map(|wait| wait.as_millis()).collect::<Vec<_>>();
        // Five at once, and then one for each tenth of the two seconds that a token waits.
        let expected: Vec<u128> = [0; 4].into_iter().chain((0..=20).map(|tenth| tenth * 100)).collect();
        assert_eq!(waits(start), expected);
        assert_eq!(waits(start), [], "the lane is full");
        assert_eq!(waits(start + Duration::from_secs(1)).len(), 10);
        // An unused lane permits a burst again.
        assert_eq!(waits(start + Duration::from_mins(1)), expected);
    }
}
