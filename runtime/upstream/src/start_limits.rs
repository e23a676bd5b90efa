//! Bounds how many upstreams start at the same time.
//!
//! Processes that start together compete for processors and the disk, and all of them become slow enough to miss the limit of
//! their handshakes. An upstream that waits here has not begun, so the limit of its handshake does not count yet.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;

use super::fault::{Reason, UpstreamError};
use super::stage::{self, Stage};

/// The default number of processes for each processor.
const PROCESSES: usize = 2;
/// The default number of connections over HTTP.
#[cfg(feature = "http")]
const CONNECTIONS: usize = 32;
/// The pause before second attempts. It is longer than the time for which a failed upstream is not tried again.
const PAUSE: Duration = Duration::from_millis(600);

/// Waits for a start. It is boxed, so that the code is not repeated in each future that waits.
type Entering = Pin<Box<dyn Future<Output = Option<OwnedSemaphorePermit>> + Send>>;

/// The limits. Clones share them.
#[derive(Debug, Clone)]
pub struct StartLimits {
    processes: Arc<Semaphore>,
    #[cfg(feature = "http")]
    connections: Arc<Semaphore>,
}

impl StartLimits {
    /// Makes limits of `--connect-concurrency`. By default two processes for each processor start at a time, and 32 connections.
    pub fn new(concurrency: Option<usize>) -> StartLimits {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let limit = |default: usize| Arc::new(Semaphore::new(concurrency.unwrap_or(default).max(1)));
        StartLimits {
            processes: limit(PROCESSES * processors),
            #[cfg(feature = "http")]
            connections: limit(CONNECTIONS),
        }
    }

    /// Waits until a process may start. It counts as starting until the result is dropped.
    pub(crate) fn process(&self) -> Entering {
        enter(&self.processes)
    }

    /// Waits until a connection over HTTP may be made. It counts as starting until the result is dropped.
    #[cfg(feature = "http")]
    pub(crate) fn connection(&self) -> Entering {
        enter(&self.connections)
    }
}

fn enter(limit: &Arc<Semaphore>) -> Entering {
    let limit = Arc::clone(limit);
    Box::pin(async move {
        stage::enter(Stage::StartQueue);
        // The semaphore is never closed.
        let permit = limit.acquire_owned().await.ok();
        stage::enter(Stage::Starting);
        permit
    })
}

/// Makes an attempt for each item, all at the same time. When all have ended, those that ran out of time are made once more. `time`
/// limits the whole. Returns the outcomes in the order of the items.
pub async fn attempt_all<T, R, F>(items: &[T], time: Duration, mut attempt: impl FnMut(&T) -> F) -> Vec<Result<R, UpstreamError>>
where
    R: Send + 'static,
    F: Future<Output = Result<R, UpstreamError>> + Send + 'static,
{
    let end = Instant::now() + time;
    let tasks: Vec<_> = items.iter().map(|item| tokio::spawn(attempt(item))).collect();
    let mut outcomes = Vec::with_capacity(items.len());
    for task in tasks {
        outcomes.push(outcome(task, end, time).await);
    }
    let is_late = |outcome: &Result<R, UpstreamError>| matches!(outcome, Err(fault) if fault.reason == Reason::Timeout);
    if outcomes.iter().any(is_late) && Instant::now() + PAUSE < end {
        tokio::time::sleep(PAUSE).await;
        let late = items.iter().zip(&mut outcomes).filter(|(_, outcome)| is_late(outcome));
        let again: Vec<_> = late.map(|(item, outcome)| (tokio::spawn(attempt(item)), outcome)).collect();
        for (task, slot) in again {
            *slot = outcome(task, end, time).await;
        }
    }
    outcomes
}

/// Waits for an attempt, and ends it at `end`.
async fn outcome<R>(mut task: JoinHandle<Result<R, UpstreamError>>, end: Instant, time: Duration) -> Result<R, UpstreamError> {
    match tokio::time::timeout_at(end.into(), &mut task).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_)) => Err(UpstreamError::unavailable("the attempt to connect was given up")),
        Err(_) => {
            task.abort();
            let message = format!("the upstreams did not start within {} ms (--connect-timeout-ms)", time.as_millis());
            Err(UpstreamError::timeout(message))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn run(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
    }

    #[test]
    fn number_of_concurrent_starts_is_limited() {
        run(async {
            let limits = StartLimits::new(Some(3));
            let starting = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
            let items: Vec<usize> = (0..10).collect();
            let outcomes = attempt_all(&items, Duration::from_mins(1), |_| {
                let (limits, starting) = (limits.clone(), Arc::clone(&starting));
                async move {
                    let _starting = limits.process().await;
                    let now = starting.0.fetch_add(1, Ordering::Relaxed) + 1;
                    starting.1.fetch_max(now, Ordering::Relaxed);
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    starting.0.fetch_sub(1, Ordering::Relaxed);
                    Ok(())
                }
            });
            assert!(outcomes.await.iter().all(Result::is_ok));
            assert_eq!(starting.1.load(Ordering::Relaxed), 3);
        });
    }

    #[test]
    fn timed_out_attempt_is_retried_once() {
        run(async {
            let attempts = std::cell::RefCell::new([0; 3]);
            let outcomes = attempt_all(&[0, 1, 2], Duration::from_mins(1), |&at: &usize| {
                attempts.borrow_mut()[at] += 1;
                let made = attempts.borrow()[at];
                async move {
                    match (at, made) {
                        (1, 1) => Err(UpstreamError::timeout("late")),
                        (0 | 1, _) => Ok(made),
                        _ => Err(UpstreamError::unavailable("refused")),
                    }
                }
            })
            .await;
            assert_eq!(attempts.into_inner(), [1, 2, 1]);
            assert_eq!(
                outcomes.iter().map(|outcome| outcome.as_ref().ok().copied()).collect::<Vec<_>>(),
                [Some(1), Some(2), None]
            );
        });
    }

    #[test]
    fn total_time_of_all_attempts_is_limited() {
        run(async {
            let outcomes: Vec<Result<(), _>> =
                attempt_all(&[0, 1], Duration::from_millis(50), |_| std::future::pending::<Result<(), UpstreamError>>()).await;
            let fault = outcomes[0].as_ref().unwrap_err();
            assert!(fault.message.contains("within 50 ms (--connect-timeout-ms)"), "{fault}");
        });
    }
}
