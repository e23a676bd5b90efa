//! Tracks the stage of a call, so that a timeout reports which stage took the time.
//!
//! The stage belongs to the task that makes the call. Code inside [`followed`] reports it with `enter` at any depth. A timeout
//! reads it with `reached`, or from the `Progress` that was passed to `watched`.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The stages of a call, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Stage {
    /// The call has not begun.
    Starting,
    /// The upstream waits to be started, until a child process has ended or may be ended.
    ChildPermit,
    /// The upstream waits to be started, because others are starting.
    StartQueue,
    /// A process is being started, or era and revision are being negotiated.
    Handshake,
    /// A network connection is being made.
    Connecting,
    /// The call waits for an access token of an authorization server.
    AccessToken,
    /// The call waits for a permit, since the maximum number of calls is in flight.
    Permit,
    /// The request waits to be written.
    Queueing,
    /// The request was written, and no byte of the answer was received.
    Waiting,
    /// The answer has begun.
    Reading,
}

impl Stage {
    const ALL: [Stage; 10] = [
        Stage::Starting,
        Stage::ChildPermit,
        Stage::StartQueue,
        Stage::Handshake,
        Stage::Connecting,
        Stage::AccessToken,
        Stage::Permit,
        Stage::Queueing,
        Stage::Waiting,
        Stage::Reading,
    ];

    /// Describes the stage as the continuation of `the time ran out while`.
    pub(crate) fn described(self) -> &'static str {
        match self {
            Stage::Starting => "the call was prepared",
            Stage::ChildPermit => {
                "the upstream waited to be started, until another process had ended (--max-children, idle_timeout_ms)"
            }
            Stage::StartQueue => "the upstream waited to be started, because others were starting (--connect-concurrency)",
            Stage::Handshake => "waiting for the server's handshake",
            Stage::Connecting => "connecting",
            Stage::AccessToken => "waiting for an access token of the authorization server",
            Stage::Permit => {
                "the call waited for its turn, because as many are in flight as the upstream takes (max_concurrent_calls)"
            }
            Stage::Queueing => "the request was queued, because the server does not read its input",
            Stage::Waiting => "waiting for an answer",
            Stage::Reading => "reading the answer",
        }
    }
}

/// The stage of one call. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress(Arc<Reached>);

#[derive(Debug, Default)]
struct Reached {
    stage: AtomicU8,
    /// Whether the request was sent once and is being sent again.
    is_repeated: AtomicBool,
    /// The progress of the attempt to connect that the call waits for, possibly together with other calls.
    attempt: Mutex<Option<Progress>>,
}

impl Progress {
    pub(crate) fn enter(&self, stage: Stage) {
        self.0.stage.store(stage as u8, Ordering::Relaxed);
    }

    fn attempt(&self) -> MutexGuard<'_, Option<Progress>> {
        self.0.attempt.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the request may have been received: it was written, now or before it was sent again.
    pub(crate) fn may_be_received(&self) -> bool {
        self.0.is_repeated.load(Ordering::Relaxed) || matches!(self.reached(), Stage::Waiting | Stage::Reading)
    }

    pub(crate) fn reached(&self) -> Stage {
        let stage = self.0.stage.load(Ordering::Relaxed);
        let stage = Stage::ALL.into_iter().find(|known| *known as u8 == stage).unwrap_or(Stage::Starting);
        if stage != Stage::Handshake {
            return stage;
        }
        // An attempt that neither waits nor connects is in its handshake.
        match self.attempt().as_ref().map(Progress::reached) {
            Some(attempt @ (Stage::ChildPermit | Stage::StartQueue | Stage::Connecting | Stage::AccessToken)) => attempt,
            _ => stage,
        }
    }
}

tokio::task_local! {
    static PROGRESS: Progress;
}

/// Runs `work` with a new stage.
pub fn followed<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    watched(Progress::default(), work)
}

/// Runs `work` with a stage that other code can read too.
pub(crate) fn watched<T>(progress: Progress, work: impl Future<Output = T>) -> impl Future<Output = T> {
    PROGRESS.scope(progress, work)
}

/// Returns the progress of the call that this task makes, or `None` outside [`followed`].
pub(crate) fn current() -> Option<Progress> {
    PROGRESS.try_with(Clone::clone).ok()
}

/// Reports a stage.
pub(crate) fn enter(stage: Stage) {
    let _ = PROGRESS.try_with(|progress| progress.enter(stage));
}

/// Reports that the request was sent and is sent again.
#[cfg(feature = "http")]
pub(crate) fn repeat() {
    let _ = PROGRESS.try_with(|progress| progress.0.is_repeated.store(true, Ordering::Relaxed));
}

/// Reports that the call waits for an attempt to connect.
pub(crate) fn wait_for(attempt: &Progress) {
    let _ = PROGRESS.try_with(|progress| {
        *progress.attempt() = Some(attempt.clone());
        progress.enter(Stage::Handshake);
    });
}

/// Runs `work` until the deadline, after which the result is `None`. The stage at the deadline is preserved while `work` is
/// dropped.
pub(crate) async fn until<T>(deadline: std::time::Instant, work: impl Future<Output = T>) -> Option<T> {
    let mut work = Box::pin(work);
    let done = tokio::time::timeout_at(deadline.into(), &mut work).await.ok();
    let stage = reached();
    drop(work);
    if done.is_none() {
        enter(stage);
    }
    done
}

/// Returns the stage that was reported last.
pub(crate) fn reached() -> Stage {
    PROGRESS.try_with(Progress::reached).unwrap_or(Stage::Starting)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stage_is_recorded_per_task() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            enter(Stage::Reading);
            assert_eq!(reached(), Stage::Starting, "no program follows");
            let inner = followed(async {
                for stage in Stage::ALL {
                    enter(stage);
                    assert_eq!(reached(), stage);
                    assert!(!stage.described().is_empty());
                }
                tokio::spawn(async { reached() }).await.unwrap()
            });
            assert_eq!(inner.await, Stage::Starting);
        });
    }
}
