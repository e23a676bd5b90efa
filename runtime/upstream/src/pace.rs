//! Spreads bursts of calls to one upstream over turns of the event loop.
//!
//! All upstreams and all HTTP clients share one event loop, which runs tasks in the order in which they become ready. If hundreds
//! of programs start a call to the same upstream or time out at the same moment, all other tasks would wait for them.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Maximum interval between the steps of a burst.
const BURST: Duration = Duration::from_micros(500);

/// Lets one step of a burst proceed per turn of the event loop, in the order of arrival.
#[derive(Debug, Default)]
pub(super) struct Pacer {
    turn: tokio::sync::Mutex<()>,
    last: Mutex<Option<Instant>>,
}

impl Pacer {
    /// Waits until the calling task may proceed.
    pub(super) async fn turn(&self) {
        let now = Instant::now();
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).replace(now);
        if last.is_some_and(|last| now.saturating_duration_since(last) < BURST) {
            let _turn = self.turn.lock().await;
            tokio::task::yield_now().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn other_tasks_run_between_the_steps_of_a_burst() {
        let (pacer, steps) = (Arc::new(Pacer::default()), Arc::new(AtomicUsize::new(0)));
        for _ in 0..100 {
            let (pacer, steps) = (Arc::clone(&pacer), Arc::clone(&steps));
            tokio::spawn(async move {
                pacer.turn().await;
                steps.fetch_add(1, Ordering::Relaxed);
            });
        }
        // This task needs one turn, which comes long before the end of the burst.
        tokio::spawn({
            let steps = Arc::clone(&steps);
            async move { assert!(steps.load(Ordering::Relaxed) < 50) }
        })
        .await
        .expect("the other task ran early");
        while steps.load(Ordering::Relaxed) < 100 {
            tokio::task::yield_now().await;
        }
    }
}
