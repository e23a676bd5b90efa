//! Protocol sessions, which `initialize` opens and `Mcp-Session-Id` names. The sessions of programs are independent of them and
//! live longer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use litemap::LiteMap;

use crate::digest::short;
use crate::server::identity::Owner;
use crate::server::in_flight::InFlight;
use crate::settings::HttpSettings;

/// Interval at which all sessions are checked for expiry.
const SWEEP: Duration = Duration::from_secs(1);

/// The protocol sessions of a listener.
pub struct ProtocolSessions {
    most: usize,
    most_per_owner: usize,
    ttl: Duration,
    idle: Duration,
    state: Mutex<State>,
}

struct State {
    live: LiteMap<String, Session>,
    swept: Instant,
}

struct Session {
    owner: Owner,
    hash: Arc<str>,
    calls: Arc<InFlight>,
    dies: Instant,
    used: Instant,
}

/// The session of a request.
#[derive(Debug, Clone)]
pub struct Entered {
    /// The name of the session in log lines.
    pub hash: Arc<str>,
    /// The calls in flight.
    pub calls: Arc<InFlight>,
}

/// The reason why a session cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// The owner has the maximum number of sessions.
    Owner(usize),
    /// The server has the maximum number of sessions.
    Server(usize),
    /// The system returned no random bytes.
    Random,
}

impl ProtocolSessions {
    /// Creates an empty set of sessions.
    pub fn new(settings: &HttpSettings) -> ProtocolSessions {
        ProtocolSessions {
            most: settings.max_sessions,
            most_per_owner: settings.max_sessions_per_owner.unwrap_or(settings.max_sessions),
            ttl: settings.session_ttl,
            idle: settings.session_idle,
            state: Mutex::new(State { live: LiteMap::new(), swept: Instant::now() }),
        }
    }

    /// Opens a session and returns its id. At the maximum number, the session that was idle longest is closed, since clients that
    /// disappeared must not keep new ones out. It is one of the owner with the most idle sessions. Its client is answered with 404 at its next request.
    ///
    /// # Errors
    ///
    /// Fails if every session has a call in flight, or if the system returns no random bytes.
    pub fn open(&self, owner: &Owner, calls: Arc<InFlight>, now: Instant) -> Result<(String, Entered), Full> {
        let id = format!("mcp_{}", crate::secrets::random::text::<24>().map_err(|_| Full::Random)?);
        let hash: Arc<str> = short(&id).into();
        let session =
            Session { owner: owner.clone(), hash: Arc::clone(&hash), calls: Arc::clone(&calls), dies: now + self.ttl, used: now };
        let full = |state: &State| {
            let own = state.live.values().filter(|session| session.owner.id == owner.id).count();
            match () {
                () if own >= self.most_per_owner => Some(Full::Owner(self.most_per_owner)),
                () if state.live.len() >= self.most => Some(Full::Server(self.most)),
                () => None,
            }
        };
        self.changed(|state, lost| {
            if full(state).is_some() {
                self.sweep(state, now, lost);
            }
            while let Some(full) = full(state) {
                let evicted = match full {
                    Full::Owner(_) => longest_idle(state, |other| *other == *owner.id),
                    // One owner must not end the sessions of others that have fewer.
                    Full::Server(_) | Full::Random => {
                        let counts = idle_by_owner(state);
                        let most = counts.values().max().copied();
                        longest_idle(state, |other| counts.get(other).copied() == most)
                    }
                }
                .ok_or(full)?;
                state.live.remove(&evicted);
            }
            state.live.insert(id.clone(), session);
            Ok((id, Entered { hash, calls }))
        })
    }

    /// Returns the owner's session with this id and records its use.
    pub fn enter(&self, owner: &Owner, id: &str, now: Instant) -> Option<Entered> {
        self.changed(|state, lost| {
            if now >= state.swept + SWEEP {
                self.sweep(state, now, lost);
            }
            // An owner must not learn whether another owner's session exists.
            let session = state.live.get_mut(id).filter(|session| session.owner.id == owner.id)?;
            if self.is_over(session, now) {
                return None;
            }
            session.used = now;
            Some(Entered { hash: Arc::clone(&session.hash), calls: Arc::clone(&session.calls) })
        })
    }

    /// Closes the owner's session with this id and cancels its calls. Returns its name in log lines.
    pub fn close(&self, owner: &Owner, id: &str) -> Option<Arc<str>> {
        let session = {
            let mut state = self.lock();
            state.live.get(id).filter(|session| session.owner.id == owner.id)?;
            state.live.remove(id)?
        };
        session.calls.cancel_all();
        Some(session.hash)
    }

    /// Cancels all calls of all sessions.
    pub fn cancel_all(&self) {
        let all: Vec<_> = self.lock().live.values().map(|session| Arc::clone(&session.calls)).collect();
        for calls in all {
            calls.cancel_all();
        }
    }

    /// Returns the number of sessions.
    pub fn count(&self) -> usize {
        self.lock().live.len()
    }

    /// Whether no further session can be opened, since each has a call in flight.
    pub fn is_full(&self, now: Instant) -> bool {
        self.changed(|state, lost| {
            if state.live.len() >= self.most {
                self.sweep(state, now, lost);
            }
            state.live.len() >= self.most && longest_idle(state, |_| true).is_none()
        })
    }

    /// Runs `change` with the lock, and then cancels the calls of removed sessions without it: cancelling a call may acquire
    /// other locks.
    fn changed<T>(&self, change: impl FnOnce(&mut State, &mut Vec<Arc<InFlight>>) -> T) -> T {
        let mut lost = Vec::new();
        let changed = change(&mut self.lock(), &mut lost);
        for calls in lost {
            calls.cancel_all();
        }
        changed
    }

    fn is_over(&self, session: &Session, now: Instant) -> bool {
        // A session with a call in flight is not idle, independent of the call's duration.
        now >= session.dies || now >= session.used + self.idle && session.calls.is_idle()
    }

    /// Removes expired sessions. Their calls are appended to `lost`.
    fn sweep(&self, state: &mut State, now: Instant, lost: &mut Vec<Arc<InFlight>>) {
        state.swept = now;
        state.live.retain(|_, session| {
            let over = self.is_over(session, now);
            lost.extend(over.then(|| Arc::clone(&session.calls)));
            !over
        });
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the number of sessions without a call in flight of each owner.
fn idle_by_owner(state: &State) -> LiteMap<Arc<str>, usize> {
    let mut counts: LiteMap<Arc<str>, usize> = LiteMap::new();
    for session in state.live.values().filter(|session| session.calls.is_idle()) {
        *counts.entry(Arc::clone(&session.owner.id)).or_default() += 1;
    }
    counts
}

/// Returns the id of the least recently used session without a call in flight, of the owners whose id satisfies a condition.
fn longest_idle(state: &State, is_of: impl Fn(&str) -> bool) -> Option<String> {
    let idle = state.live.iter().filter(|(_, session)| is_of(&session.owner.id) && session.calls.is_idle());
    idle.min_by_key(|(_, session)| session.used).map(|(id, _)| id.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptc_lisp::limits::Cancel;

    use crate::schedule::ClientKey;

    fn owner(name: &str) -> Owner {
        Owner::new(name)
    }

    /// Creates sessions with these maximum numbers, a lifetime of 100 seconds and an idle timeout of 10 seconds.
    fn sessions(most: usize, most_per_owner: usize) -> ProtocolSessions {
        ProtocolSessions::new(&HttpSettings {
            max_sessions: most,
            max_sessions_per_owner: Some(most_per_owner),
            session_ttl: Duration::from_secs(100),
            session_idle: Duration::from_secs(10),
            ..HttpSettings::default()
        })
    }

    fn calls() -> Arc<InFlight> {
        InFlight::new(ClientKey { owner: "one".into(), session: 1 })
    }

    #[test]
    fn session_idle_longest_is_evicted_for_a_new_client() {
        let sessions = sessions(3, 3);
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let one = owner("one");
        let open = |seconds| sessions.open(&one, calls(), at(seconds)).map(|(id, _)| id).expect("evicted");
        let ids: Vec<_> = (0..3).map(open).collect();
        let entered = sessions.enter(&one, &ids[0], at(4)).expect("it lives");
        let call = sessions.enter(&one, &ids[1], at(1)).expect("it lives").calls.enter("1", Cancel::default()).expect("room");
        open(5);
        assert_eq!(sessions.count(), 3);
        assert!(sessions.enter(&one, &ids[2], at(5)).is_none(), "idle since 2");
        assert!(sessions.enter(&one, &ids[1], at(5)).is_some(), "it has a call in flight");
        assert!(entered.calls.is_idle() && !call.cancellation().is_cancelled());
    }

    #[test]
    fn owner_with_many_sessions_ends_none_of_another() {
        let sessions = sessions(4, 4);
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let (one, two) = (owner("one"), owner("two"));
        let kept = sessions.open(&two, calls(), at(0)).map(|(id, _)| id).expect("there is room");
        for _ in 0..20 {
            assert!(sessions.open(&one, calls(), at(1)).is_ok());
        }
        assert_eq!(sessions.count(), 4);
        assert!(sessions.enter(&two, &kept, at(2)).is_some());
        // An owner without sessions gets one of those.
        assert!(sessions.open(&owner("three"), calls(), at(3)).is_ok());
        assert!(sessions.enter(&two, &kept, at(3)).is_some());
    }

    #[test]
    fn sessions_have_limits_an_owner_and_a_maximum_age() {
        let sessions = sessions(3, 2);
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let (one, two) = (owner("one"), owner("two"));
        let open = |owner: &Owner, seconds| sessions.open(owner, calls(), at(seconds)).map(|(id, _)| id);
        let first = open(&one, 0).expect("there is room");
        let second = open(&one, 5).expect("there is room");
        let enter = |owner: &Owner, id: &str, seconds| sessions.enter(owner, id, at(seconds)).expect("it lives").calls;
        let busy =
            |owner: &Owner, id: &str, seconds| enter(owner, id, seconds).enter("1", Cancel::default()).expect("there is room");
        {
            let _calls = (busy(&one, &first, 5), busy(&one, &second, 5));
            assert_eq!(open(&one, 5), Err(Full::Owner(2)));
            let third = open(&two, 5).expect("there is room");
            let _call = busy(&two, &third, 5);
            assert_eq!(open(&two, 5), Err(Full::Server(3)));
            assert!(sessions.is_full(at(5)));
        }
        assert!(!sessions.is_full(at(5)));
        assert!(sessions.enter(&two, &first, at(5)).is_none(), "it is another's");
        assert!(sessions.close(&two, &first).is_none());
        // The first session has been idle for too long. A call in flight keeps the second one alive.
        let call =
            sessions.enter(&one, &second, at(9)).expect("it lives").calls.enter("1", Cancel::default()).expect("there is room");
        assert!(sessions.enter(&one, &first, at(15)).is_none());
        assert!(sessions.enter(&one, &second, at(60)).is_some());
        assert!(!call.cancellation().is_cancelled());
        assert!(sessions.enter(&one, &second, at(105)).is_none(), "nothing lives longer than that");
        assert!(call.cancellation().is_cancelled());
        let third = open(&one, 106).expect("expired sessions do not count");
        assert!(sessions.close(&one, &third).is_some());
        assert_eq!(sessions.count(), 0);
    }

    type Notice = fn(&ProtocolSessions, &Owner, Arc<InFlight>, Instant);

    #[test]
    fn calls_of_an_expired_session_are_cancelled() {
        let sessions = sessions(1, 1);
        let start = Instant::now();
        let (one, two) = (owner("one"), owner("two"));
        // Expiry is noticed by any operation.
        let notices: [Notice; 3] = [
            |sessions, owner, calls, now| drop(sessions.open(owner, calls, now).expect("expired sessions do not count")),
            |sessions, owner, _, now| assert!(sessions.enter(owner, "mcp_x", now).is_none()),
            |sessions, _, _, now| assert!(!sessions.is_full(now)),
        ];
        for (round, notice) in (0u32..).zip(notices) {
            let opened = start + Duration::from_secs(1_000) * round;
            let (_, entered) = sessions.open(&one, calls(), opened).expect("there is room");
            let call = entered.calls.enter("1", Cancel::default()).expect("there is room");
            assert!(sessions.is_full(opened + Duration::from_secs(99)), "a call keeps it");
            assert!(!call.cancellation().is_cancelled());
            notice(&sessions, &two, calls(), opened + Duration::from_secs(100));
            assert!(call.cancellation().is_cancelled(), "{round}");
        }
    }
}
