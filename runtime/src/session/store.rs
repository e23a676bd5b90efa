//! The store of sessions, and leases to evaluate in one.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use ptc_lisp::limits::Cancel;
use serde::Serialize;
use serde_json::json;
use tokio::sync::oneshot;

use super::memory::Memory;
use super::{Fault, SessionLimits, SessionState};
use crate::fibers;
use crate::pool::{JobError, Pool};
use crate::schedule::{BudgetReservation, ProcessorLease, Scheduler};
use crate::secrets::random;
use crate::settings::{Settings, StoreUrl};
use ptc_engine::evaluation::{Evaluation, Failure, InSession, Reason};

/// Stores sessions. An owner has access only to its own sessions and cannot find out whether another one exists.
///
/// A session runs one evaluation at a time: between [`Store::begin`] and [`Store::end`] it is busy for all other calls.
pub trait Store: Debug + Send + Sync {
    /// Whether its methods block on the network, so that they must be called on threads that may block.
    fn is_remote(&self) -> bool {
        false
    }

    /// Returns why the store cannot be used at present, if known without a request.
    fn health_error(&self) -> Option<String> {
        None
    }

    /// Returns the number of sessions, as far as known without a request.
    fn count(&self) -> usize;

    /// Opens a session. `id` must be unused.
    ///
    /// # Errors
    ///
    /// Returns [`Fault::Limit`] if the owner or the server has the maximum number of sessions, and [`Fault::Unavailable`] if a
    /// remote store cannot be used.
    fn start(&self, owner: &str, id: &str, title: Option<&str>, ttl: Duration) -> Result<Metadata, Fault>;

    /// Returns the owner's sessions, oldest first. This does not count as use of them.
    ///
    /// # Errors
    ///
    /// Returns [`Fault::Unavailable`] if a remote store cannot be used.
    fn list(&self, owner: &str) -> Result<Vec<Metadata>, Fault>;

    /// Returns the state of a session, without a lease.
    ///
    /// # Errors
    ///
    /// Returns [`Fault::NotFound`] if the owner has no such session, [`Fault::Closed`] if it was closed or has expired,
    /// [`Fault::StateLost`] if its stored state cannot be decoded, and [`Fault::Unavailable`] if a remote store cannot be used.
    fn peek(&self, owner: &str, id: &str) -> Result<(Metadata, SessionState), Fault>;

    /// Ends a session and cancels its evaluation: at once in this process, and at the next renewal in another one.
    ///
    /// # Errors
    ///
    /// Returns [`Fault::NotFound`] if the owner has no such session, [`Fault::Closed`] if it was closed or has expired, and
    /// [`Fault::Unavailable`] if a remote store cannot be used.
    fn close(&self, owner: &str, id: &str) -> Result<(), Fault>;

    /// Acquires the lease to evaluate. `cancel` is triggered when the session ends.
    ///
    /// # Errors
    ///
    /// Returns [`Fault::Busy`] if another evaluation holds the lease, and otherwise the errors of [`Store::peek`].
    fn begin(&self, owner: &str, id: &str, cancel: &Cancel) -> Result<(EvalLease, SessionState), Fault>;

    /// Releases the lease and stores the new state. `None` if the session was closed meanwhile.
    ///
    /// # Errors
    ///
    /// Returns [`Fault::Limit`] if there is no room for the new state, and [`Fault::NotStorable`] if the store cannot represent
    /// it. The lease is still held then. Returns [`Fault::Unavailable`] if a remote store cannot be used, or if the lease was
    /// lost to another holder.
    fn end(&self, lease: &EvalLease, outcome: LeaseOutcome<'_>) -> Result<Option<Metadata>, Fault>;
}

/// Opens stores outside of the process. Crates above this one implement it.
pub trait SessionStores: Debug + Sync {
    /// Whether it can connect with TLS.
    fn has_tls(&self) -> bool;

    /// Opens the store at a URL for the deployment with this name. `scheduler` has the memory budget of replies and commands.
    ///
    /// # Errors
    ///
    /// Returns a sentence if the store cannot be used, or if there is no key for the sessions.
    fn open(
        &self,
        url: &StoreUrl,
        deployment: &str,
        settings: &Settings,
        scheduler: &Arc<Scheduler>,
    ) -> Result<Box<dyn Store>, String>;
}

/// A lease to evaluate in a session.
#[derive(Debug, Clone)]
pub struct EvalLease {
    /// The owner of the session.
    pub owner: String,
    /// The id of the session.
    pub id: String,
    /// Fencing token: grows with every lease. The store rejects writes with an older token than the latest one.
    pub fence: u64,
}

/// The outcome of a lease.
#[derive(Debug, Clone, Copy)]
pub enum LeaseOutcome<'a> {
    /// The session stays as it was.
    Unchanged,
    /// An evaluation succeeded, which counts as a turn.
    Evaluated(&'a SessionState),
    /// The owner removed parts of the state.
    Changed(&'a SessionState),
}

/// The public description of a session.
#[derive(Debug, Clone, Serialize)]
pub struct Metadata {
    /// Its id.
    pub session_id: String,
    /// The title that its owner gave it.
    pub title: Option<String>,
    /// Number of successful evaluations.
    pub turn: u64,
    /// Number of bindings.
    pub binding_count: usize,
    /// Size of the bindings in bytes.
    pub memory_bytes: usize,
    /// `idle` or `running`.
    pub eval_status: &'static str,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339.
    pub updated_at: String,
    /// RFC 3339.
    pub expires_at: String,
}

impl Metadata {
    /// Returns the value of `eval_status`.
    pub fn status(running: bool) -> &'static str {
        if running { "running" } else { "idle" }
    }
}

/// Native stack in bytes of a thread that blocks on a store. Decoding functions compiles them.
const WAITING_STACK: usize = ptc_lisp::STACK_BYTES + ptc_lisp::STACK_SLACK_BYTES;
/// Message of an evaluation whose session was closed meanwhile.
const CLOSED_MEANWHILE: &str = "the session was closed while this ran; lisp_session_start opens another";

/// The sessions of a server.
#[derive(Debug)]
pub struct Sessions {
    limits: SessionLimits,
    store: Box<dyn Store>,
    waiting: Option<Pool>,
    scheduler: Arc<Scheduler>,
}

/// A copy of a session's state.
#[derive(Debug)]
pub struct StateCopy {
    /// The state.
    pub kept: SessionState,
    /// The memory of a copy that was decoded for this holder. A local store counts the state itself.
    memory: Option<BudgetReservation>,
}

/// A held lease to evaluate in a session. Dropping it releases the lease and leaves the session unchanged.
#[derive(Debug)]
pub struct Lease {
    sessions: Arc<Sessions>,
    token: EvalLease,
    /// Whether the lease is released.
    ended: bool,
    /// The state of the session when the evaluation began.
    pub copy: StateCopy,
}

impl Sessions {
    /// Opens the session store of the settings, for the deployment of that name; `None` if sessions are off. Sessions in the
    /// memory of the process count in the budget of `scheduler`. `stores` opens a store at a URL.
    ///
    /// # Errors
    ///
    /// Returns a sentence if the store at the configured URL cannot be used: it does not answer, its key is missing, or this
    /// binary was built without such stores.
    pub fn open(
        settings: &Settings,
        deployment: &str,
        scheduler: &Arc<Scheduler>,
        stores: Option<&dyn SessionStores>,
    ) -> Result<Option<Arc<Sessions>>, String> {
        if !settings.sessions {
            return Ok(None);
        }
        let limits = settings.session_limits.clone();
        let store: Box<dyn Store> = match &settings.session_store {
            None => Box::new(Memory::new(limits.clone()).within(Arc::clone(scheduler))),
            Some(url) => {
                // The settings have rejected the URL before.
                let stores = stores.ok_or("--session-store: this binary was built without a store beside its memory")?;
                stores.open(url, deployment, settings, scheduler)?
            }
        };
        let waiting = store.is_remote().then(|| Pool::new(WAITING_STACK, scheduler.limits().store_threads.value));
        Ok(Some(Arc::new(Sessions { limits, store, waiting, scheduler: Arc::clone(scheduler) })))
    }

    /// Returns the limits that the operator configured.
    pub fn limits(&self) -> &SessionLimits {
        &self.limits
    }

    /// Returns the store.
    pub fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// Runs work that may block on the store and returns its result: here for a local store, otherwise on a thread that may
    /// block, while the calling fiber waits.
    ///
    /// # Errors
    ///
    /// Returns [`JobError`] if work on another thread panics, or if the operating system has no thread for it. Work for a local
    /// store does not fail.
    pub fn wait_for<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, JobError> {
        let Some(pool) = &self.waiting else { return Ok(work()) };
        let (send, receive) = oneshot::channel();
        pool.spawn(work, move |result| {
            // The fiber waits until it has the result.
            let _ = send.send(result);
        });
        fibers::block_on(receive).unwrap_or(Err(JobError::NotStarted))
    }

    /// Runs work that may block on the store: here for a local store, otherwise on a thread that may block.
    pub fn run_blocking(&self, work: impl FnOnce() + Send + 'static) {
        match &self.waiting {
            None => work(),
            Some(pool) => pool.spawn(work, |_| {}),
        }
    }

    /// Opens a session.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Store::start`], and [`Fault::Limit`] if the operating system provides no random bytes.
    pub fn start(&self, owner: &str, title: Option<&str>, ttl: Duration) -> Result<Metadata, Fault> {
        let id = random::text::<18>().map_err(|why| Fault::Limit(format!("no random id for a session: {why}")))?;
        self.store.start(owner, &format!("ptcs_{id}"), title, ttl)
    }

    /// Changes the state of a session, unless an evaluation runs.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Store::begin`] and [`Store::end`], and [`Fault::Closed`] if the session was closed meanwhile.
    pub fn change<T>(
        self: &Arc<Self>,
        owner: &str,
        id: &str,
        change: impl FnOnce(&mut SessionState) -> T,
    ) -> Result<(T, SessionState), Fault> {
        let mut lease = self.begin(owner, id, &Cancel::default())?;
        let mut kept = std::mem::take(&mut lease.copy.kept);
        let done = change(&mut kept);
        lease.end(LeaseOutcome::Changed(&kept))?.ok_or(Fault::Closed)?;
        Ok((done, kept))
    }

    /// Acquires the lease for an evaluation, which `cancel` stops.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Store::begin`].
    pub fn begin(self: &Arc<Self>, owner: &str, id: &str, cancel: &Cancel) -> Result<Lease, Fault> {
        let (lease, kept) = self.store.begin(owner, id, cancel)?;
        Ok(Lease { sessions: Arc::clone(self), token: lease, ended: false, copy: self.copy(kept) })
    }

    /// Returns the state of a session, without a lease.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Store::peek`].
    pub fn peek(&self, owner: &str, id: &str) -> Result<(Metadata, StateCopy), Fault> {
        let (metadata, kept) = self.store.peek(owner, id)?;
        Ok((metadata, self.copy(kept)))
    }

    fn copy(&self, kept: SessionState) -> StateCopy {
        let memory = self.store.is_remote().then(|| self.scheduler.hold(kept.bytes()));
        StateCopy { kept, memory }
    }
}

impl StateCopy {
    /// Counts the copy as memory of a program from now on, so that the program can be ended if the budget is used up.
    pub(crate) fn count_in(&mut self, processor: &ProcessorLease) {
        if let Some(bytes) = self.memory.take().map(|memory| memory.bytes()) {
            // If this ends the program, its evaluation reports the reason.
            processor.count_bytes(i64::try_from(bytes).unwrap_or(i64::MAX));
        }
    }
}

impl Lease {
    /// Commits a successful evaluation to the session and releases the lease. If a limit or the store rejects the new state, the
    /// evaluation becomes a failure. Records in the evaluation what the session stored.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Sessions::wait_for`]. A rejected state is a failure of the returned evaluation instead.
    pub fn commit(self, mut evaluation: Box<Evaluation>) -> Result<Box<Evaluation>, JobError> {
        let sessions = Arc::clone(&self.sessions);
        sessions.wait_for(move || {
            self.commit_here(&mut evaluation);
            evaluation
        })
    }

    fn commit_here(mut self, evaluation: &mut Evaluation) {
        if evaluation.outcome.is_ok() {
            let done = self.copy.kept.updated_by(evaluation, &self.sessions.limits.kept);
            let done = done.and_then(|(kept, changed)| {
                // A remote store may be slow, and other programs may need the memory of values that are not kept.
                let is_copy = self.sessions.store.is_remote();
                let _memory = is_copy.then(|| self.sessions.scheduler.hold(self.copy.kept.bytes() + kept.bytes()));
                evaluation.drop_values();
                Ok((self.end(LeaseOutcome::Evaluated(&kept))?, changed, kept.names()))
            });
            match done {
                Ok((Some(metadata), changed, stored)) => {
                    evaluation.session = Some(InSession { metadata: json!(metadata), changed, stored });
                    return;
                }
                Ok((None, ..)) => {
                    evaluation.outcome = Err(Failure::plain(Reason::Cancelled, CLOSED_MEANWHILE));
                    evaluation.validated = None;
                }
                Err(fault) => {
                    evaluation.outcome = Err(Failure::plain(fault.of_evaluation(), fault.to_string()));
                    evaluation.validated = None;
                }
            }
        }
        let ended = self.end(LeaseOutcome::Unchanged);
        if let Err(failure) = &mut evaluation.outcome
            && failure.reason == Reason::Cancelled
        {
            match &ended {
                Ok(None) => *failure = Failure::plain(Reason::Cancelled, CLOSED_MEANWHILE),
                // The lease was lost to another evaluation, which cancelled this one.
                Err(fault) => *failure = Failure::plain(fault.of_evaluation(), fault.to_string()),
                Ok(Some(_)) => {}
            }
        }
        // Without a reachable store, the answer has no metadata of the session.
        let metadata = ended.ok().flatten();
        evaluation.session = Some(InSession { metadata: json!(metadata), changed: Vec::new(), stored: self.copy.kept.names() });
    }

    fn end(&mut self, outcome: LeaseOutcome<'_>) -> Result<Option<Metadata>, Fault> {
        // Only once: afterwards another evaluation may hold the session.
        if self.ended {
            return Ok(None);
        }
        let ended = self.sessions.store.end(&self.token, outcome);
        // If the state is not storable we still hold the lease. For any other error the store owns the outcome.
        self.ended = !matches!(ended, Err(Fault::NotStorable(_) | Fault::Limit(_)));
        ended
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // An unreachable store frees the session when the lease expires.
        let _ = self.end(LeaseOutcome::Unchanged);
    }
}
