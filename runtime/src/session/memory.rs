//! Sessions in the memory of the process, which end with it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use litemap::LiteMap;
use ptc_lisp::limits::Cancel;
use ptc_lisp::sorting;

use super::store::{Ending, Metadata, Store, Turn};
use super::{Fault, Kept, SessionLimits};

/// Ids of closed sessions that are remembered, so that their owner is told what became of them.
const REMEMBERED: usize = 1_000;

/// Every session of a server.
#[derive(Debug)]
pub struct Memory {
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
    /// Stops the evaluation that runs.
    running: Option<Cancel>,
    kept: Kept,
}

impl Memory {
    /// No sessions yet.
    pub fn new(limits: SessionLimits) -> Memory {
        Memory { limits, state: Mutex::default() }
    }

    /// The state without sessions whose time is over.
    fn lock(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let over = |session: &Session| now >= session.dies || session.running.is_none() && now >= session.used + self.limits.idle;
        let dead: Vec<String> = state.live.iter().filter(|(_, session)| over(session)).map(|(id, _)| id.clone()).collect();
        for id in dead {
            state.bury(&id);
        }
        state
    }
}

impl Store for Memory {
    fn count(&self) -> usize {
        self.lock().live.len()
    }

    fn start(&self, owner: &str, id: &str, title: Option<&str>, ttl: Duration) -> Result<Metadata, Fault> {
        let mut state = self.lock();
        if state.live.values().filter(|session| session.owner == owner).count() >= self.limits.sessions_per_owner {
            return Err(Fault::full("you have", self.limits.sessions_per_owner));
        }
        if state.live.len() >= self.limits.sessions {
            return Err(Fault::full("the server has", self.limits.sessions));
        }
        let (now, instant) = (now(), Instant::now());
        let session = Session {
            owner: owner.to_owned(),
            title: title.map(str::to_owned),
            created: now,
            updated: now,
            expires: now + SignedDuration::try_from(ttl).unwrap_or_default(),
            dies: instant + ttl,
            used: instant,
            turn: 0,
            running: None,
            kept: Kept::default(),
        };
        let metadata = session.metadata(id);
        state.live.insert(id.to_owned(), session);
        Ok(metadata)
    }

    fn list(&self, owner: &str) -> Result<Vec<Metadata>, Fault> {
        let state = self.lock();
        let mut own: Vec<(&String, &Session)> = state.live.iter().filter(|(_, session)| session.owner == owner).collect();
        sorting::by(&mut own, |a, b| (a.1.created, a.0).cmp(&(b.1.created, b.0)));
        Ok(own.into_iter().map(|(id, session)| session.metadata(id)).collect())
    }

    fn look(&self, owner: &str, id: &str) -> Result<(Metadata, Kept), Fault> {
        let mut state = self.lock();
        let session = state.find(owner, id)?;
        session.used = Instant::now();
        Ok((session.metadata(id), session.kept.clone()))
    }

    fn close(&self, owner: &str, id: &str) -> Result<(), Fault> {
        let mut state = self.lock();
        state.find(owner, id)?;
        state.bury(id);
        Ok(())
    }

    fn begin(&self, owner: &str, id: &str, cancel: &Cancel) -> Result<(Turn, Kept), Fault> {
        let mut state = self.lock();
        let session = state.find(owner, id)?;
        if session.running.is_some() {
            return Err(Fault::Busy);
        }
        session.running = Some(cancel.clone());
        session.used = Instant::now();
        // Nobody else can have the right while it is out: there is nothing to fence off.
        Ok((Turn { owner: owner.to_owned(), id: id.to_owned(), fence: 0 }, session.kept.clone()))
    }

    fn end(&self, turn: &Turn, ending: Ending<'_>) -> Result<Option<Metadata>, Fault> {
        let mut state = self.lock();
        let Some(session) = state.live.get_mut(&turn.id) else { return Ok(None) };
        if let Ending::Evaluated(kept) | Ending::Changed(kept) = ending {
            session.kept = kept.clone();
            session.updated = now();
            session.turn += u64::from(matches!(ending, Ending::Evaluated(_)));
        }
        session.running = None;
        session.used = Instant::now();
        Ok(Some(session.metadata(&turn.id)))
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
        if let Some(cancel) = session.running {
            cancel.cancel();
        }
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
            eval_status: Metadata::status(self.running.is_some()),
            created_at: self.created.to_string(),
            updated_at: self.updated.to_string(),
            expires_at: self.expires.to_string(),
        }
    }
}

/// The time of day, to the microsecond.
fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
}
