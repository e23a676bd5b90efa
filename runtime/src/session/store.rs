//! The sessions of a server.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use litemap::LiteMap;
use serde::Serialize;
use serde_json::json;

use crate::evaluation::{Evaluation, Failure, InSession, Reason};
use crate::random;

use super::{Fault, Kept, SessionLimits};

/// Ids of closed sessions that are remembered, so that their owner is told what became of them.
const REMEMBERED: usize = 1_000;

/// Every session of a server, in memory.
#[derive(Debug)]
pub struct Sessions {
    limits: SessionLimits,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    live: LiteMap<String, Session>,
    /// Owner and id, oldest first.
    closed: VecDeque<(String, String)>,
}

#[derive(Debug)]
struct Session {
    owner: String,
    title: Option<String>,
    created: Timestamp,
    updated: Timestamp,
    expires: Timestamp,
    /// The same as `expires`, on a clock that nobody sets.
    dies: Instant,
    used: Instant,
    turn: u64,
    running: bool,
    kept: Kept,
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

/// The right to evaluate in a session. Dropped, it is given back and the session is as it was.
#[derive(Debug)]
pub struct Lease {
    sessions: Arc<Sessions>,
    id: String,
    /// Whether the session has it back.
    ended: bool,
    /// What the session kept when the evaluation began.
    pub kept: Kept,
}

impl Sessions {
    /// No sessions yet.
    pub fn new(limits: SessionLimits) -> Arc<Sessions> {
        Arc::new(Sessions { limits, state: Mutex::default() })
    }

    /// What an operator set.
    pub fn limits(&self) -> &SessionLimits {
        &self.limits
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.lock().live.len()
    }

    /// Opens a session.
    pub fn start(&self, owner: &str, title: Option<String>, ttl: Duration) -> Result<Metadata, Fault> {
        let mut state = self.lock();
        let full = |count: usize, whose: &str| {
            Err(Fault::Limit(format!("{whose} {count} sessions, which is the most; lisp_session_close ends one")))
        };
        if state.live.values().filter(|session| session.owner == owner).count() >= self.limits.sessions_per_owner {
            return full(self.limits.sessions_per_owner, "you have");
        }
        if state.live.len() >= self.limits.sessions {
            return full(self.limits.sessions, "the server has");
        }
        let id = random::text::<18>().map_err(|why| Fault::Limit(format!("no random id for a session: {why}")))?;
        let id = format!("ptcs_{id}");
        let (now, instant) = (now(), Instant::now());
        let session = Session {
            owner: owner.to_owned(),
            title,
            created: now,
            updated: now,
            expires: now + SignedDuration::try_from(ttl).unwrap_or_default(),
            dies: instant + ttl,
            used: instant,
            turn: 0,
            running: false,
            kept: Kept::default(),
        };
        let metadata = session.metadata(&id);
        state.live.insert(id, session);
        Ok(metadata)
    }

    /// The owner's sessions by age, oldest first. Using none of them.
    pub fn list(&self, owner: &str) -> Vec<Metadata> {
        let state = self.lock();
        let mut own: Vec<(&String, &Session)> = state.live.iter().filter(|(_, session)| session.owner == owner).collect();
        own.sort_by_key(|(id, session)| (session.created, *id));
        own.into_iter().map(|(id, session)| session.metadata(id)).collect()
    }

    /// What a session keeps.
    pub fn look(&self, owner: &str, id: &str) -> Result<(Metadata, Kept), Fault> {
        let mut state = self.lock();
        let session = state.find(owner, id)?;
        session.used = Instant::now();
        Ok((session.metadata(id), session.kept.clone()))
    }

    /// Changes what a session keeps, unless an evaluation runs.
    pub fn change<T>(&self, owner: &str, id: &str, change: impl FnOnce(&mut Kept) -> T) -> Result<(T, Kept), Fault> {
        let mut state = self.lock();
        let session = state.find(owner, id)?;
        if session.running {
            return Err(Fault::Busy);
        }
        session.used = Instant::now();
        session.updated = now();
        let done = change(&mut session.kept);
        Ok((done, session.kept.clone()))
    }

    /// Ends a session. What runs in it goes on and is kept nowhere.
    pub fn close(&self, owner: &str, id: &str) -> Result<(), Fault> {
        let mut state = self.lock();
        state.find(owner, id)?;
        state.bury(id);
        Ok(())
    }

    /// Begins an evaluation.
    pub fn begin(self: &Arc<Self>, owner: &str, id: &str) -> Result<Lease, Fault> {
        let mut state = self.lock();
        let session = state.find(owner, id)?;
        if std::mem::replace(&mut session.running, true) {
            return Err(Fault::Busy);
        }
        session.used = Instant::now();
        Ok(Lease { sessions: Arc::clone(self), id: id.to_owned(), ended: false, kept: session.kept.clone() })
    }

    /// The state without sessions whose time is over.
    fn lock(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let over = |session: &Session| now >= session.dies || !session.running && now >= session.used + self.limits.idle;
        let dead: Vec<String> = state.live.iter().filter(|(_, session)| over(session)).map(|(id, _)| id.clone()).collect();
        for id in dead {
            state.bury(&id);
        }
        state
    }
}

impl State {
    fn find(&mut self, owner: &str, id: &str) -> Result<&mut Session, Fault> {
        // Whether a session of somebody else exists is nobody's business.
        match self.live.get_mut(id).filter(|session| session.owner == owner) {
            Some(session) => Ok(session),
            None if self.closed.iter().any(|(whose, closed)| whose == owner && closed == id) => Err(Fault::Closed),
            None => Err(Fault::NotFound),
        }
    }

    fn bury(&mut self, id: &str) {
        let Some(session) = self.live.remove(id) else { return };
        self.closed.push_back((session.owner, id.to_owned()));
        if self.closed.len() > REMEMBERED {
            self.closed.pop_front();
        }
    }
}

impl Session {
    fn metadata(&self, id: &str) -> Metadata {
        Metadata {
            session_id: id.to_owned(),
            title: self.title.clone(),
            turn: self.turn,
            binding_count: self.kept.bindings.len(),
            memory_bytes: self.kept.bindings.bytes(),
            eval_status: if self.running { "running" } else { "idle" },
            created_at: self.created.to_string(),
            updated_at: self.updated.to_string(),
            expires_at: self.expires.to_string(),
        }
    }
}

impl Lease {
    /// Ends the evaluation: what went well is kept, unless a cap forbids it, and then it did not go well. What the session has of
    /// it is noted in the evaluation.
    pub fn settle(self, evaluation: &mut Evaluation) {
        if evaluation.outcome.is_err() {
            let (stored, metadata) = (self.kept.names(), json!(self.release()));
            evaluation.session = Some(InSession { metadata, changed: Vec::new(), stored });
            return;
        }
        let kept = self.kept.after(evaluation, &self.sessions.limits.kept);
        let (metadata, changed, stored) = match kept {
            Ok((kept, changed)) => {
                let stored = kept.names();
                (self.commit(kept), changed, stored)
            }
            Err(fault) => {
                evaluation.outcome = Err(Failure::plain(Reason::SessionLimitExceeded, fault.to_string()));
                evaluation.validated = None;
                let stored = self.kept.names();
                (self.release(), Vec::new(), stored)
            }
        };
        evaluation.session = Some(InSession { metadata: json!(metadata), changed, stored });
    }

    /// Puts what is to be kept in place of what was; a turn has passed. `None` where the session was closed meanwhile.
    pub fn commit(mut self, kept: Kept) -> Option<Metadata> {
        self.end(|session| {
            session.kept = kept;
            session.turn += 1;
            session.updated = now();
        })
    }

    /// Leaves the session as it was; its metadata, where it is still open.
    pub fn release(mut self) -> Option<Metadata> {
        self.end(|_| {})
    }

    fn end(&mut self, change: impl FnOnce(&mut Session)) -> Option<Metadata> {
        // Once: by the next time, somebody else may evaluate in the session.
        if std::mem::replace(&mut self.ended, true) {
            return None;
        }
        let mut state = self.sessions.lock();
        let session = state.live.get_mut(&self.id)?;
        change(session);
        session.running = false;
        session.used = Instant::now();
        Some(session.metadata(&self.id))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.end(|_| {});
    }
}

/// The time of day, to the microsecond.
fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
}
