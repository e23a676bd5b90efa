//! The store of sessions in the memory of the process. They end with the process.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use litemap::LiteMap;
use ptc_lisp::limits::Cancel;

use super::store::{EvalLease, LeaseOutcome, Metadata, Store};
use super::{Fault, SessionLimits, SessionState};
use crate::schedule::{Scheduler, StateReservation};

/// Number of remembered ids of closed sessions. Calls by their owner fail with the message that the session was closed.
const REMEMBERED: usize = 1_000;

/// All sessions of a server.
#[derive(Debug)]
pub struct Memory {
    shared: Arc<Shared>,
    watched: Once,
}

/// State shared with the thread that ends expired sessions while an evaluation runs in them.
#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Notified when the store is dropped and when an evaluation begins.
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    limits: SessionLimits,
    live: LiteMap<String, Session>,
    /// Owner and id of closed sessions, oldest first.
    closed: VecDeque<(String, String)>,
    /// Evaluations in sessions that have ended. They are to be cancelled.
    stopping: Vec<Cancel>,
    /// Whether the store was dropped.
    given_up: bool,
    /// The scheduler whose memory budget includes the sessions.
    scheduler: Option<Arc<Scheduler>>,
}

#[derive(Debug)]
struct Session {
    owner: String,
    title: Option<String>,
    created: Timestamp,
    updated: Timestamp,
    expires: Timestamp,
    /// The time of `expires` on the monotonic clock.
    dies: Instant,
    used: Instant,
    turn: u64,
    /// Cancels the current evaluation.
    running: Option<Cancel>,
    kept: SessionState,
    /// The memory of the state in the budget.
    memory: Option<StateReservation>,
}

impl Memory {
    /// Creates an empty store.
    pub fn new(limits: SessionLimits) -> Memory {
        let state = State {
            limits,
            live: LiteMap::new(),
            closed: VecDeque::new(),
            stopping: Vec::new(),
            given_up: false,
            scheduler: None,
        };
        Memory { shared: Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() }), watched: Once::new() }
    }

    /// Counts sessions in the memory budget of `scheduler`, of which they may use half.
    #[must_use]
    pub fn within(self, scheduler: Arc<Scheduler>) -> Memory {
        self.shared.lock().scheduler = Some(scheduler);
        self
    }

    /// Starts the thread that cancels evaluations in expired sessions even if the store is not used.
    fn watch(&self) {
        self.watched.call_once(|| {
            let shared = Arc::clone(&self.shared);
            // Without the thread, the next use of the store ends expired sessions.
            let _ = thread::Builder::new().name("session-ages".into()).spawn(move || shared.watch());
        });
        self.shared.changed.notify_one();
    }

    /// Runs `step` after removing the sessions that have expired at `now`.
    fn at<T>(&self, now: Instant, step: impl FnOnce(&mut State) -> T) -> T {
        let (done, stopping) = {
            let mut state = self.shared.lock();
            state.sweep(now);
            (step(&mut state), std::mem::take(&mut state.stopping))
        };
        // This happens outside the lock, since cancelling wakes waiting evaluations.
        for cancel in stopping {
            cancel.cancel();
        }
        done
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.shared.lock().given_up = true;
        self.shared.changed.notify_one();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels evaluations in expired sessions until the store is dropped.
    fn watch(&self) {
        let mut state = self.lock();
        while !state.given_up {
            let now = Instant::now();
            state.sweep(now);
            let stopping = std::mem::take(&mut state.stopping);
            if !stopping.is_empty() {
                drop(state);
                stopping.iter().for_each(Cancel::cancel);
                state = self.lock();
                continue;
            }
            let running = state.live.values().filter(|session| session.running.is_some());
            state = match running.map(|session| session.dies).min() {
                Some(dies) => {
                    let left = dies.saturating_duration_since(now);
                    self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

impl Store for Memory {
    fn count(&self) -> usize {
        self.at(Instant::now(), |state| state.live.len())
    }

    fn start(&self, owner: &str, id: &str, title: Option<&str>, ttl: Duration) -> Result<Metadata, Fault> {
        let now = Instant::now();
        self.at(now, |state| state.start(owner, id, title, ttl, now))
    }

    fn list(&self, owner: &str) -> Result<Vec<Metadata>, Fault> {
        Ok(self.at(Instant::now(), |state| state.list(owner)))
    }

    fn peek(&self, owner: &str, id: &str) -> Result<(Metadata, SessionState), Fault> {
        let now = Instant::now();
        self.at(now, |state| state.peek(owner, id, now))
    }

    fn close(&self, owner: &str, id: &str) -> Result<(), Fault> {
        self.at(Instant::now(), |state| state.close(owner, id))
    }

    fn begin(&self, owner: &str, id: &str, cancel: &Cancel) -> Result<(EvalLease, SessionState), Fault> {
        let now = Instant::now();
        let begun = self.at(now, |state| state.begin(owner, id, cancel, now))?;
        self.watch();
        Ok(begun)
    }

    fn end(&self, lease: &EvalLease, outcome: LeaseOutcome<'_>) -> Result<Option<Metadata>, Fault> {
        let now = Instant::now();
        self.at(now, |state| state.end(lease, outcome, now))
    }
}

impl State {
    /// Removes expired sessions.
    fn sweep(&mut self, now: Instant) {
        let over = |session: &Session| now >= session.dies || session.running.is_none() && now >= session.used + self.limits.idle;
        let dead: Vec<String> = self.live.iter().filter(|(_, session)| over(session)).map(|(id, _)| id.clone()).collect();
        for id in dead {
            self.tombstone(&id);
        }
    }

    fn start(&mut self, owner: &str, id: &str, title: Option<&str>, ttl: Duration, now: Instant) -> Result<Metadata, Fault> {
        if self.live.values().filter(|session| session.owner == owner).count() >= self.limits.sessions_per_owner {
            return Err(Fault::full("you have", self.limits.sessions_per_owner));
        }
        if self.live.len() >= self.limits.sessions {
            return Err(Fault::full("the server has", self.limits.sessions));
        }
        let created = time_of_day();
        let session = Session {
            owner: owner.to_owned(),
            title: title.map(str::to_owned),
            created,
            updated: created,
            expires: created + SignedDuration::try_from(ttl).unwrap_or_default(),
            dies: now + ttl,
            used: now,
            turn: 0,
            running: None,
            kept: SessionState::default(),
            memory: self.scheduler.as_ref().map(|scheduler| scheduler.state_memory()),
        };
        let metadata = session.metadata(id);
        self.live.insert(id.to_owned(), session);
        Ok(metadata)
    }

    fn list(&self, owner: &str) -> Vec<Metadata> {
        let mut own: Vec<(&String, &Session)> = self.live.iter().filter(|(_, session)| session.owner == owner).collect();
        own.sort_by(|a, b| (a.1.created, a.0).cmp(&(b.1.created, b.0)));
        own.into_iter().map(|(id, session)| session.metadata(id)).collect()
    }

    fn peek(&mut self, owner: &str, id: &str, now: Instant) -> Result<(Metadata, SessionState), Fault> {
        let session = self.find(owner, id)?;
        session.used = now;
        Ok((session.metadata(id), session.kept.clone()))
    }

    fn close(&mut self, owner: &str, id: &str) -> Result<(), Fault> {
        self.find(owner, id)?;
        self.tombstone(id);
        Ok(())
    }

    fn begin(&mut self, owner: &str, id: &str, cancel: &Cancel, now: Instant) -> Result<(EvalLease, SessionState), Fault> {
        let session = self.find(owner, id)?;
        if session.running.is_some() {
            return Err(Fault::Busy);
        }
        session.running = Some(cancel.clone());
        session.used = now;
        // No other lease can exist while this one is held, so that the fencing token is constant.
        Ok((EvalLease { owner: owner.to_owned(), id: id.to_owned(), fence: 0 }, session.kept.clone()))
    }

    fn end(&mut self, lease: &EvalLease, outcome: LeaseOutcome<'_>, now: Instant) -> Result<Option<Metadata>, Fault> {
        let Some(session) = self.live.get_mut(&lease.id) else { return Ok(None) };
        if let LeaseOutcome::Evaluated(kept) | LeaseOutcome::Changed(kept) = outcome {
            if let Some(memory) = &mut session.memory {
                memory.resize(kept.bytes()).map_err(|full| {
                    let advice = "nothing of this evaluation was kept. lisp_session_forget and lisp_session_close make room";
                    Fault::Limit(format!("{full}; {advice}"))
                })?;
            }
            session.kept = kept.clone();
            session.updated = time_of_day();
            session.turn += u64::from(matches!(outcome, LeaseOutcome::Evaluated(_)));
        }
        session.running = None;
        session.used = now;
        Ok(Some(session.metadata(&lease.id)))
    }

    fn find(&mut self, owner: &str, id: &str) -> Result<&mut Session, Fault> {
        // An owner must not learn whether another owner's session exists.
        match self.live.get_mut(id).filter(|session| session.owner == owner) {
            Some(session) => Ok(session),
            None if self.closed.iter().any(|(whose, closed)| whose == owner && closed == id) => Err(Fault::Closed),
            None => Err(Fault::NotFound),
        }
    }

    fn tombstone(&mut self, id: &str) {
        let Some(session) = self.live.remove(id) else { return };
        self.stopping.extend(session.running);
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

/// Returns the wall-clock time in microseconds.
fn time_of_day() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: &str = "one";

    #[test]
    fn sessions_end_at_maximum_age_and_when_idle() {
        let limits =
            SessionLimits { sessions: 2, sessions_per_owner: 2, idle: Duration::from_secs(10), ..SessionLimits::default() };
        let memory = Memory::new(limits);
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let open = |id: &str, seconds| {
            let ttl = Duration::from_secs(100);
            memory.at(at(seconds), |state| state.start(OWNER, id, None, ttl, at(seconds))).expect("there is room");
        };
        let look = |id: &str, seconds| memory.at(at(seconds), |state| state.peek(OWNER, id, at(seconds))).map(drop);
        let listed = |seconds| memory.at(at(seconds), |state| state.list(OWNER)).len();
        open("idle", 0);
        open("used", 0);
        assert!(look("used", 9).is_ok());
        assert_eq!((listed(9), listed(10)), (2, 1), "listing uses nothing");
        assert!(matches!(look("idle", 10), Err(Fault::Closed)));
        assert!(look("used", 18).is_ok());
        // A running evaluation prevents the idle timeout, but not the end of the lifetime.
        let cancel = Cancel::default();
        let (lease, _) = memory.at(at(27), |state| state.begin(OWNER, "used", &cancel, at(27))).expect("it lives");
        assert_eq!(listed(99), 1);
        assert!(!cancel.is_cancelled());
        assert_eq!(listed(100), 0);
        assert!(cancel.is_cancelled());
        assert!(
            memory.at(at(100), |state| state.end(&lease, LeaseOutcome::Unchanged, at(100))).expect("nothing grows").is_none()
        );
        assert!(matches!(look("used", 100), Err(Fault::Closed)));
        // The end of an evaluation counts as use.
        open("turned", 200);
        let (lease, _) = memory.at(at(201), |state| state.begin(OWNER, "turned", &cancel, at(201))).expect("it lives");
        assert!(
            memory.at(at(220), |state| state.end(&lease, LeaseOutcome::Unchanged, at(220))).expect("nothing grows").is_some()
        );
        assert_eq!((listed(229), listed(230)), (1, 0));
        assert!(matches!(look("unknown", 230), Err(Fault::NotFound)));
    }

    #[test]
    fn evaluation_is_stopped_at_maximum_age_without_a_request() {
        let memory = Memory::new(SessionLimits {
            sessions: 1,
            sessions_per_owner: 1,
            idle: Duration::from_secs(10),
            ..SessionLimits::default()
        });
        let start = Instant::now();
        let cancel = Cancel::default();
        // Both steps use the same time, so that a delay between them cannot expire the session.
        memory.at(start, |state| state.start(OWNER, "id", None, Duration::from_millis(20), start)).expect("there is room");
        memory.at(start, |state| state.begin(OWNER, "id", &cancel, start)).expect("it lives");
        memory.watch();
        let stopped = (0..60_000).any(|_| {
            thread::sleep(Duration::from_millis(1));
            cancel.is_cancelled()
        });
        assert!(stopped, "it runs on");
    }
}
