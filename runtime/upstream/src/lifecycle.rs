//! The lifecycle of an upstream's connection.
//!
//! The first call that needs the connection makes it, in a separate task, so that a call that stops waiting does not abort it.
//! After a loss the first new attempt is immediate. Further attempts are delayed increasingly, so that an upstream that dies at
//! every call is not restarted in a tight loop.
//!
//! A connection that no call uses can be retired, so that the next call makes a new one. A call holds a [`Lease`] of the
//! connection, which it gets under the lock under which idle connections are retired. So no connection is retired under a call.

use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::fault::UpstreamError;
use super::stage::{self, Progress};

const INITIAL_BACKOFF: Duration = Duration::from_millis(500);
const MAX_BACKOFF: Duration = Duration::from_secs(15);

/// A connection that can be lost.
pub(crate) trait Live: Send + Sync + 'static {
    /// Returns the error after which the connection is unusable. `None` while it works.
    fn failure(&self) -> Option<UpstreamError>;
}

type Attempt<C> = Option<Result<Arc<C>, UpstreamError>>;

/// The connection of an upstream.
pub(crate) struct Lifecycle<C> {
    state: Mutex<State<C>>,
}

struct State<C> {
    phase: Phase<C>,
    /// Number of losses and failed attempts since the last answered call.
    failures: u32,
    /// Time before which no attempt is made, and the error of the last attempt.
    backoff_until: Option<(Instant, UpstreamError)>,
    /// When the last lease of the connection ended, or when it was made.
    idle_since: Instant,
    /// The last connection that was retired. The next one is made when it has ended.
    retired: Option<Arc<C>>,
}

enum Phase<C> {
    Idle,
    Connecting(watch::Receiver<Attempt<C>>, Progress, AbortHandle),
    Ready(Arc<C>),
    Closed,
}

/// A connection, or the attempt to make one.
pub(crate) enum Joined<C> {
    Ready(Arc<C>),
    Attempt(watch::Receiver<Attempt<C>>, Progress),
}

impl<C> Joined<C> {
    /// Waits for the connection.
    pub(crate) async fn connection(self) -> Result<Arc<C>, UpstreamError> {
        let (mut attempt, progress) = match self {
            Joined::Ready(connection) => return Ok(connection),
            Joined::Attempt(attempt, progress) => (attempt, progress),
        };
        stage::wait_for(&progress);
        let outcome = attempt.wait_for(Option::is_some).await.ok().and_then(|found| found.clone());
        outcome.unwrap_or_else(|| Err(UpstreamError::unavailable("the attempt to connect was given up")))
    }
}

/// The use of a connection by a call. While there is one, the connection is not retired.
pub(crate) struct Lease<C, N> {
    connection: Arc<C>,
    lifecycle: Arc<Lifecycle<C>>,
    /// Dropped after the connection.
    _after: N,
}

impl<C, N> Deref for Lease<C, N> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.connection
    }
}

impl<C, N> Drop for Lease<C, N> {
    fn drop(&mut self) {
        // This precedes the drop of the connection, so that the time is set when the connection is unused.
        self.lifecycle.lock().idle_since = Instant::now();
    }
}

impl<C> Lifecycle<C> {
    fn lock(&self) -> MutexGuard<'_, State<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the use of a connection of this lifecycle. `after` is dropped when the use has ended.
    pub(crate) fn lease<N>(self: &Arc<Self>, connection: Arc<C>, after: N) -> Lease<C, N> {
        Lease { connection, lifecycle: Arc::clone(self), _after: after }
    }

    /// Returns since when no call uses the connection. `None` if a call uses it, or if there is none.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let state = self.lock();
        state.idle_connection().map(|_| state.idle_since)
    }

    /// Discards the connection if no call uses it, and none has used it since `unused_since`. The next call makes a new one. The
    /// caller ends the connection.
    pub(crate) fn retire(&self, unused_since: Instant) -> Option<Arc<C>> {
        let mut state = self.lock();
        let connection = Arc::clone(state.idle_connection().filter(|_| state.idle_since <= unused_since)?);
        state.phase = Phase::Idle;
        state.retired = Some(Arc::clone(&connection));
        Some(connection)
    }

    /// Takes the last retired connection.
    pub(crate) fn take_retired(&self) -> Option<Arc<C>> {
        self.lock().retired.take()
    }
}

impl<C> State<C> {
    /// Returns the connection if no call uses it. Only calls have further references: a lease, or an attempt for which they wait.
    fn idle_connection(&self) -> Option<&Arc<C>> {
        match &self.phase {
            Phase::Ready(connection) if Arc::strong_count(connection) == 1 => Some(connection),
            _ => None,
        }
    }
}

impl<C: Live> Lifecycle<C> {
    pub(crate) fn new() -> Arc<Self> {
        let state = State { phase: Phase::Idle, failures: 0, backoff_until: None, idle_since: Instant::now(), retired: None };
        Arc::new(Lifecycle { state: Mutex::new(state) })
    }

    /// Returns the connection. If there is none, `connect` makes it. Must be called inside a Tokio runtime.
    #[cfg(any(test, feature = "http"))]
    pub(crate) async fn get<F>(self: &Arc<Self>, connect: impl FnOnce() -> F) -> Result<Arc<C>, UpstreamError>
    where
        F: Future<Output = Result<C, UpstreamError>> + Send + 'static,
    {
        self.join(connect, ())?.connection().await
    }

    /// Returns the connection or the attempt to make it. If there is neither, `connect` begins. `after` is dropped when the attempt
    /// has ended. Must be called inside a Tokio runtime.
    pub(crate) fn join<F, N>(self: &Arc<Self>, connect: impl FnOnce() -> F, after: N) -> Result<Joined<C>, UpstreamError>
    where
        F: Future<Output = Result<C, UpstreamError>> + Send + 'static,
        N: Send + 'static,
    {
        let mut state = self.lock();
        Ok(match state.present()? {
            Some(present) => present,
            None => self.start(&mut state, connect(), after),
        })
    }

    /// Returns the connection or the attempt to make it, if there is either. Fails if none may be made now.
    pub(crate) fn present(&self) -> Result<Option<Joined<C>>, UpstreamError> {
        self.lock().present()
    }

    fn start<F, N>(self: &Arc<Self>, state: &mut State<C>, connect: F, after: N) -> Joined<C>
    where
        F: Future<Output = Result<C, UpstreamError>> + Send + 'static,
        N: Send + 'static,
    {
        let (publish, attempt) = watch::channel(None);
        let (this, progress) = (Arc::clone(self), Progress::default());
        let watched = stage::watched(progress.clone(), connect);
        let task = tokio::spawn(async move {
            let outcome = watched.await.map(Arc::new);
            let mut state = this.lock();
            match &outcome {
                Ok(connection) => {
                    state.phase = Phase::Ready(Arc::clone(connection));
                    state.idle_since = Instant::now();
                }
                Err(fault) => {
                    state.phase = Phase::Idle;
                    state.failures += 1;
                    let pause = back_off(state.failures);
                    state.backoff_until = Some((Instant::now() + pause, fault.clone()));
                }
            }
            drop(state);
            publish.send_replace(Some(outcome));
            // If no call waits any more, this drops the last reference to the connection beside that of the lifecycle.
            drop(publish);
            drop(after);
        });
        state.phase = Phase::Connecting(attempt.clone(), progress.clone(), task.abort_handle());
        Joined::Attempt(attempt, progress)
    }

    /// Records an answered call, which resets the number of failures.
    pub(crate) fn answered(&self) {
        let mut state = self.lock();
        state.failures = 0;
        state.backoff_until = None;
    }

    /// Discards `connection`, so that the next call makes a new one immediately.
    #[cfg(feature = "http")]
    pub(crate) fn renew(&self, connection: &Arc<C>) {
        let mut state = self.lock();
        if matches!(&state.phase, Phase::Ready(current) if Arc::ptr_eq(current, connection)) {
            state.phase = Phase::Idle;
        }
    }

    /// Closes permanently. Returns the connection, if there was one.
    pub(crate) fn close(&self) -> Option<Arc<C>> {
        match std::mem::replace(&mut self.lock().phase, Phase::Closed) {
            Phase::Ready(connection) => Some(connection),
            Phase::Connecting(_, _, task) => {
                task.abort();
                None
            }
            Phase::Idle | Phase::Closed => None,
        }
    }
}

impl<C: Live> State<C> {
    fn present(&mut self) -> Result<Option<Joined<C>>, UpstreamError> {
        self.notice_loss();
        match &self.phase {
            Phase::Ready(connection) => Ok(Some(Joined::Ready(Arc::clone(connection)))),
            Phase::Connecting(attempt, progress, _) => Ok(Some(Joined::Attempt(attempt.clone(), progress.clone()))),
            Phase::Closed => Err(UpstreamError::unavailable("the server is shutting down")),
            Phase::Idle => self.may_retry().map(|()| None),
        }
    }

    fn notice_loss(&mut self) {
        if let Phase::Ready(connection) = &self.phase
            && let Some(fault) = connection.failure()
        {
            self.failures += 1;
            // The first new attempt after a loss is immediate.
            self.backoff_until = (self.failures > 1).then(|| (Instant::now() + back_off(self.failures - 1), fault));
            self.phase = Phase::Idle;
        }
    }

    fn may_retry(&self) -> Result<(), UpstreamError> {
        let Some((not_before, fault)) = &self.backoff_until else { return Ok(()) };
        let left = not_before.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        let message = format!("{}; the next attempt is made in {} ms", fault.message, left.as_millis().max(1));
        Err(UpstreamError { message: message.into(), ..fault.clone() })
    }
}

fn back_off(failures: u32) -> Duration {
    INITIAL_BACKOFF.saturating_mul(1 << failures.saturating_sub(1).min(10)).min(MAX_BACKOFF)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    use super::*;
    use crate::stage::Stage;

    struct Fake(AtomicBool);

    impl Live for Fake {
        fn failure(&self) -> Option<UpstreamError> {
            self.0.load(Ordering::Relaxed).then(|| UpstreamError::unavailable("gone"))
        }
    }

    fn run(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
    }

    #[test]
    fn first_reconnect_is_immediate_and_later_ones_are_delayed() {
        run(async {
            let lifecycle = Lifecycle::<Fake>::new();
            let made = Arc::new(AtomicU32::new(0));
            let connect = || {
                let made = Arc::clone(&made);
                async move {
                    made.fetch_add(1, Ordering::Relaxed);
                    Ok(Fake(AtomicBool::new(false)))
                }
            };
            let first = lifecycle.get(connect).await.unwrap();
            assert!(Arc::ptr_eq(&first, &lifecycle.get(connect).await.unwrap()), "it is kept while it works");
            first.0.store(true, Ordering::Relaxed);
            let second = lifecycle.get(connect).await.unwrap();
            second.0.store(true, Ordering::Relaxed);
            let fault = lifecycle.get(connect).await.err().unwrap();
            assert!(fault.message.starts_with("gone; the next attempt is made in "), "{fault}");
            lifecycle.answered();
            assert!(lifecycle.get(connect).await.is_ok());
            assert_eq!(made.load(Ordering::Relaxed), 3);
            assert!(lifecycle.close().is_some());
            assert!(lifecycle.get(connect).await.is_err());
        });
    }

    #[test]
    fn only_a_connection_that_no_call_uses_is_retired() {
        run(async {
            let lifecycle = Lifecycle::<Fake>::new();
            let connect = || async { Ok(Fake(AtomicBool::new(false))) };
            let began = Instant::now();
            let joined = lifecycle.join(connect, ()).unwrap();
            tokio::task::yield_now().await;
            assert!(lifecycle.idle_since().is_none(), "a call waits for the attempt");
            let lease = lifecycle.lease(joined.connection().await.unwrap(), ());
            let before = Instant::now();
            assert!(lifecycle.idle_since().is_none() && lifecycle.retire(Instant::now()).is_none(), "a call uses it");
            drop(lease);
            assert!(lifecycle.idle_since().is_some_and(|since| since >= before));
            assert!(lifecycle.retire(began).is_none(), "it was used since then");
            let first = lifecycle.retire(Instant::now()).unwrap();
            assert!(lifecycle.idle_since().is_none() && lifecycle.present().unwrap().is_none());
            assert!(Arc::ptr_eq(&first, &lifecycle.take_retired().unwrap()));
            assert!(!Arc::ptr_eq(&first, &lifecycle.get(connect).await.unwrap()), "the next call makes a new one");
            // An attempt for which no call waits any more leaves an idle connection.
            assert!(lifecycle.retire(Instant::now()).is_some());
            drop(lifecycle.join(connect, ()).unwrap());
            while lifecycle.idle_since().is_none() {
                tokio::task::yield_now().await;
            }
        });
    }

    #[test]
    fn waiting_call_sees_the_stage_of_the_attempt() {
        run(async {
            let lifecycle = Lifecycle::<Fake>::new();
            let (step, mut steps) = tokio::sync::mpsc::channel::<Stage>(1);
            let (told, mut tells) = tokio::sync::mpsc::channel::<()>(1);
            let connect = || async move {
                while let Some(stage) = steps.recv().await {
                    stage::enter(stage);
                    let _ = told.send(()).await;
                }
                Ok(Fake(AtomicBool::new(false)))
            };
            let (first, second) = (Progress::default(), Progress::default());
            let waits = stage::watched(first.clone(), lifecycle.get(connect));
            let never = || async { Err::<Fake, _>(UpstreamError::unavailable("a second attempt")) };
            let waits_too = stage::watched(second.clone(), lifecycle.get(never));
            let looks = async {
                for (stage, seen) in [
                    (Stage::Connecting, Stage::Connecting),
                    (Stage::Waiting, Stage::Handshake),
                    (Stage::Connecting, Stage::Connecting),
                    (Stage::Reading, Stage::Handshake),
                ] {
                    step.send(stage).await.unwrap();
                    tells.recv().await.unwrap();
                    assert_eq!((first.reached(), second.reached()), (seen, seen), "{stage:?}");
                }
                drop(step);
            };
            let (one, other, ()) = tokio::join!(waits, waits_too, looks);
            assert!(Arc::ptr_eq(&one.unwrap(), &other.unwrap()));
        });
    }

    #[test]
    fn attempt_survives_the_call_that_started_it() {
        run(async {
            let lifecycle = Lifecycle::<Fake>::new();
            let slow = || async {
                tokio::time::sleep(Duration::from_millis(30)).await;
                Ok(Fake(AtomicBool::new(false)))
            };
            assert!(tokio::time::timeout(Duration::from_millis(1), lifecycle.get(slow)).await.is_err());
            let never = || async { Err::<Fake, _>(UpstreamError::unavailable("a second attempt")) };
            assert!(lifecycle.get(never).await.is_ok());
        });
    }
}
