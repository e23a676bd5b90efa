//! Where sessions live, and the right to evaluate in one.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use ptc_lisp::limits::Cancel;
use serde::Serialize;
use serde_json::json;

use super::memory::Memory;
use super::{Fault, Kept, SessionLimits};
use crate::evaluation::{Evaluation, Failure, InSession, Reason};
use crate::pool::Pool;
use crate::random;
use crate::schedule::Scheduler;
use crate::settings::Settings;

/// A place for sessions. An owner sees its own alone: whether a session of somebody else exists is nobody's business.
///
/// One evaluation at a time: between [`Store::begin`] and [`Store::end`] the session is busy for everybody else.
pub trait Store: Debug + Send + Sync {
    /// Whether its methods wait for a network, so that they are called on threads that may wait.
    fn is_remote(&self) -> bool {
        false
    }

    /// Why it cannot be used at present, where that is known without asking.
    fn trouble(&self) -> Option<String> {
        None
    }

    /// How many sessions there are, as far as it is known without asking.
    fn count(&self) -> usize;

    /// Opens a session under an id that is new.
    fn start(&self, owner: &str, id: &str, title: Option<&str>, ttl: Duration) -> Result<Metadata, Fault>;

    /// The owner's sessions by age, oldest first. Using none of them.
    fn list(&self, owner: &str) -> Result<Vec<Metadata>, Fault>;

    /// What a session keeps.
    fn look(&self, owner: &str, id: &str) -> Result<(Metadata, Kept), Fault>;

    /// Ends a session. What runs in it is cancelled: at once where this process runs it, else when its process hears of the end.
    fn close(&self, owner: &str, id: &str) -> Result<(), Fault>;

    /// Takes the right to evaluate. The end of the session, by its owner or by age, cancels.
    fn begin(&self, owner: &str, id: &str, cancel: &Cancel) -> Result<(Turn, Kept), Fault>;

    /// Gives it back, with what is to be kept from now on. `None` where the session was closed meanwhile.
    fn end(&self, turn: &Turn, ending: Ending<'_>) -> Result<Option<Metadata>, Fault>;
}

/// A right to evaluate that was given.
#[derive(Debug, Clone)]
pub struct Turn {
    /// Whose session it is.
    pub owner: String,
    /// The session.
    pub id: String,
    /// Grows with every right that is given: a store that gave a later one takes nothing for an earlier one.
    pub fence: u64,
}

/// How a right ends.
#[derive(Debug, Clone, Copy)]
pub enum Ending<'a> {
    /// The session stays as it was.
    Unchanged,
    /// An evaluation went well: a turn has passed.
    Evaluated(&'a Kept),
    /// The owner took something out.
    Changed(&'a Kept),
}

/// What everybody may know of a session, its owner included.
#[derive(Debug, Clone, Serialize)]
pub struct Metadata {
    /// Its id.
    pub session_id: String,
    /// What its owner called it.
    pub title: Option<String>,
    /// Evaluations that went well.
    pub turn: u64,
    /// Bindings that it keeps.
    pub binding_count: usize,
    /// Bytes that they take.
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
    /// The word for whether an evaluation runs.
    pub fn status(running: bool) -> &'static str {
        if running { "running" } else { "idle" }
    }
}

/// Native stack of a thread that waits for a store: bringing functions back compiles.
const WAITING_STACK: usize = 8 * 1024 * 1024;
/// What an evaluation is told whose session ended before it did.
const CLOSED_MEANWHILE: &str = "the session was closed while this ran; lisp_session_start opens another";
/// Threads that wait for a store on behalf of tools that evaluate nothing.
const WAITING_THREADS: usize = 4;

/// The sessions of a server.
#[derive(Debug)]
pub struct Sessions {
    limits: SessionLimits,
    store: Box<dyn Store>,
    waiting: Option<Pool>,
}

/// The right to evaluate in a session. Dropped, it is given back and the session is as it was.
#[derive(Debug)]
pub struct Lease {
    sessions: Arc<Sessions>,
    turn: Turn,
    /// Whether the session has it back.
    ended: bool,
    /// What the session kept when the evaluation began.
    pub kept: Kept,
}

impl Sessions {
    /// The sessions that the settings ask for, if they do, of the deployment of that name. Those in the memory of the process count in the
    /// budget of `scheduler`. The error is a sentence.
    pub fn open(settings: &Settings, deployment: &str, scheduler: &Arc<Scheduler>) -> Result<Option<Arc<Sessions>>, String> {
        if !settings.sessions {
            return Ok(None);
        }
        let limits = settings.session_limits.clone();
        let store: Box<dyn Store> = match &settings.session_store {
            None => Box::new(Memory::new(limits.clone()).within(Arc::clone(scheduler))),
            Some(url) => super::remote(url, deployment, &limits, settings.ca_file.as_deref())?,
        };
        let waiting = store.is_remote().then(|| Pool::new(WAITING_STACK, WAITING_THREADS));
        Ok(Some(Arc::new(Sessions { limits, store, waiting })))
    }

    /// What an operator set.
    pub fn limits(&self) -> &SessionLimits {
        &self.limits
    }

    /// Where they live.
    pub fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// Does what may wait for the store: here where it does not, else on a thread that may.
    pub fn attend(&self, work: impl FnOnce() + Send + 'static) {
        match &self.waiting {
            None => work(),
            Some(pool) => pool.spawn(work, |_| {}),
        }
    }

    /// Opens a session.
    pub fn start(&self, owner: &str, title: Option<&str>, ttl: Duration) -> Result<Metadata, Fault> {
        let id = random::text::<18>().map_err(|why| Fault::Limit(format!("no random id for a session: {why}")))?;
        self.store.start(owner, &format!("ptcs_{id}"), title, ttl)
    }

    /// Changes what a session keeps, unless an evaluation runs.
    pub fn change<T>(self: &Arc<Self>, owner: &str, id: &str, change: impl FnOnce(&mut Kept) -> T) -> Result<(T, Kept), Fault> {
        let mut lease = self.begin(owner, id, &Cancel::default())?;
        let mut kept = std::mem::take(&mut lease.kept);
        let done = change(&mut kept);
        lease.end(Ending::Changed(&kept))?.ok_or(Fault::Closed)?;
        Ok((done, kept))
    }

    /// Begins an evaluation, which `cancel` stops.
    pub fn begin(self: &Arc<Self>, owner: &str, id: &str, cancel: &Cancel) -> Result<Lease, Fault> {
        let (turn, kept) = self.store.begin(owner, id, cancel)?;
        Ok(Lease { sessions: Arc::clone(self), turn, ended: false, kept })
    }
}

impl Lease {
    /// Ends the evaluation: what went well is kept, unless a cap or the store forbids it, and then it did not go well. What the
    /// session has of it is noted in the evaluation.
    pub fn settle(mut self, evaluation: &mut Evaluation) {
        if evaluation.outcome.is_ok() {
            let done = self.kept.after(evaluation, &self.sessions.limits.kept);
            let done = done.and_then(|(kept, changed)| Ok((self.end(Ending::Evaluated(&kept))?, changed, kept.names())));
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
        let ended = self.end(Ending::Unchanged);
        if let Err(failure) = &mut evaluation.outcome
            && failure.reason == Reason::Cancelled
        {
            match &ended {
                Ok(None) => *failure = Failure::plain(Reason::Cancelled, CLOSED_MEANWHILE),
                // Where the right went to somebody else, that is what stopped it: the same as where it is found out at the end.
                Err(fault) => *failure = Failure::plain(fault.of_evaluation(), fault.to_string()),
                Ok(Some(_)) => {}
            }
        }
        // Where the store is away, the answer does without what it would say of the session.
        let metadata = ended.ok().flatten();
        evaluation.session = Some(InSession { metadata: json!(metadata), changed: Vec::new(), stored: self.kept.names() });
    }

    fn end(&mut self, ending: Ending<'_>) -> Result<Option<Metadata>, Fault> {
        // Once: by the next time, somebody else may evaluate in the session.
        if self.ended {
            return Ok(None);
        }
        let ended = self.sessions.store.end(&self.turn, ending);
        // What cannot be kept leaves the session in our hands; what the store did not take is its matter from now on.
        self.ended = !matches!(ended, Err(Fault::NotStorable(_) | Fault::Limit(_)));
        ended
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // A store that is away gives the session free when the right expires.
        let _ = self.end(Ending::Unchanged);
    }
}
