//! Bounds how many child processes of upstreams run at the same time, and ends those that no call uses.
//!
//! A child holds a [`ChildPermit`] until its process group is gone. If all permits are taken, the child that has been idle longest is
//! ended, and the child that is about to start takes over its permit. A call waits for this without an attempt to connect, so that
//! a call that is cancelled leaves nothing behind. Only the first waiting call looks for a permit, so that they are served in order.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex as Queue, Notify};

use super::drift::Checked;
use super::lifecycle::{Lease, Lifecycle};
use super::stage::{self, Stage};
use super::stdio::{Connected, Grace};

/// The lifecycle of a child's connection.
pub(crate) type ChildLifecycle = Lifecycle<Checked<Connected>>;
/// The use of a child by a call.
pub(crate) type ChildLease = Lease<Checked<Connected>, Released>;

/// The children of a server. Clones share them.
#[derive(Debug, Clone)]
pub struct Children(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    max: usize,
    state: Mutex<State>,
    queue: Queue<()>,
    /// Notified when a permit may have become free.
    changed: Notify,
}

#[derive(Default)]
struct State {
    taken: usize,
    /// The upstreams that have started a child.
    lifecycles: Vec<Weak<ChildLifecycle>>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("taken", &self.taken).finish_non_exhaustive()
    }
}

/// The right of one child to run.
#[derive(Debug)]
pub(crate) struct ChildPermit(Children);

/// Reports the end of a use, after which a child may be idle.
#[derive(Debug)]
pub(crate) struct Released(Children);

/// A permit, and the child that must end before it can be used.
pub(crate) struct Admission {
    pub(crate) permit: Arc<ChildPermit>,
    previous: Option<Arc<Checked<Connected>>>,
}

impl Admission {
    /// Waits until the previous children have ended: the one whose permit this is, and the last one of the same upstream.
    pub(crate) async fn ready(self, lifecycle: Option<&ChildLifecycle>) -> Arc<ChildPermit> {
        let retired = lifecycle.and_then(Lifecycle::take_retired);
        for previous in [self.previous, retired].into_iter().flatten() {
            stage::enter(Stage::ChildPermit);
            previous.child().gone().await;
        }
        self.permit
    }
}

impl Children {
    /// Creates the limit of `--max-children`. `None` permits any number.
    pub fn new(max: Option<usize>) -> Children {
        let max = max.unwrap_or(usize::MAX);
        Children(Arc::new(Shared { max, state: Mutex::default(), queue: Queue::default(), changed: Notify::new() }))
    }

    /// Returns the maximum number of children.
    pub(crate) fn max(&self) -> usize {
        self.0.max
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a permit. Dropping the future leaves the queue.
    pub(crate) async fn admit(&self) -> Admission {
        let _first = self.0.queue.lock().await;
        loop {
            if let Some(admission) = self.try_admit() {
                return admission;
            }
            self.0.changed.notified().await;
        }
    }

    fn try_admit(&self) -> Option<Admission> {
        let mut state = self.lock();
        if state.taken < self.0.max {
            state.taken += 1;
            return Some(Admission { permit: Arc::new(ChildPermit(self.clone())), previous: None });
        }
        let known: Vec<_> = state.lifecycles.iter().filter_map(Weak::upgrade).collect();
        drop(state);
        let mut idle: Vec<_> = known.iter().filter_map(|lifecycle| Some((lifecycle.idle_since()?, lifecycle))).collect();
        idle.sort_by_key(|(since, _)| *since);
        // A call may have begun to use it since.
        let previous = idle.into_iter().find_map(|(since, lifecycle)| lifecycle.retire(since))?;
        previous.child().end(Grace::IDLE);
        match previous.child().permit.upgrade() {
            Some(permit) => Some(Admission { permit, previous: Some(previous) }),
            // It has just ended by itself, so that its permit is free.
            None => self.try_admit(),
        }
    }

    /// Adds an upstream that starts a child.
    pub(crate) fn add(&self, lifecycle: &Arc<ChildLifecycle>) {
        let added = Arc::downgrade(lifecycle);
        let mut state = self.lock();
        state.lifecycles.retain(|known| known.strong_count() > 0 && !known.ptr_eq(&added));
        state.lifecycles.push(added);
    }

    /// Returns a value that reports, when it is dropped, that a child may be idle.
    pub(crate) fn released(&self) -> Released {
        Released(self.clone())
    }
}

impl Drop for ChildPermit {
    fn drop(&mut self) {
        self.0.lock().taken -= 1;
        self.0.0.changed.notify_one();
    }
}

impl Drop for Released {
    fn drop(&mut self) {
        self.0.0.changed.notify_one();
    }
}

/// Ends the child of an upstream when no call has used it for `timeout`. Returns when it has ended, or was lost.
pub(crate) async fn end_when_idle(
    lifecycle: Weak<ChildLifecycle>,
    mut gone: impl Future<Output = ()> + Unpin,
    timeout: Duration,
) {
    let mut wait = timeout;
    while tokio::time::timeout(wait, &mut gone).await.is_err() {
        let Some(lifecycle) = lifecycle.upgrade() else { return };
        let Some(unused_since) = Instant::now().checked_sub(timeout) else { continue };
        if let Some(connection) = lifecycle.retire(unused_since) {
            connection.child().end(Grace::IDLE);
            return;
        }
        // If a call uses it now, its end is not before this, so that the child is not checked too late.
        let idle = lifecycle.idle_since().map_or(Duration::ZERO, |since| since.elapsed());
        wait = timeout.saturating_sub(idle).max(Duration::from_millis(1));
    }
}
