//! Calls that run: how many may, and how to stop them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use litemap::LiteMap;
use ptc_lisp::limits::Cancel;

use crate::protocol::message::string;

/// How many calls may run in the whole process.
#[derive(Debug)]
pub struct Permits {
    most: usize,
    running: AtomicUsize,
}

/// One of them, given back when it is dropped.
#[derive(Debug)]
struct Permit(Arc<Permits>);

/// The calls of one client that run now.
#[derive(Debug)]
pub struct InFlight {
    permits: Arc<Permits>,
    /// What these calls and others of the owner may run together.
    shared: Option<Arc<Permits>>,
    most: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    shut_down: bool,
    protocol_version: Option<&'static str>,
    by_id: LiteMap<String, Running>,
    anonymous: LiteMap<u64, Running>,
    next_anonymous: u64,
}

/// A call that runs.
#[derive(Debug, Clone)]
struct Running {
    cancel: Cancel,
    withdrawn: Arc<AtomicBool>,
}

/// Why a call may not start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// As many run in the process as may.
    Busy,
    /// As many run for this client as may.
    ClientBusy,
    /// A call of that id runs.
    DuplicateId,
    /// The client said `shutdown`.
    ShutDown,
}

/// A running call's place. Dropped, it gives the place to the next call.
#[derive(Debug)]
pub struct Place {
    owner: Arc<InFlight>,
    key: Key,
    _permit: Permit,
    _shared: Option<Permit>,
    call: Running,
}

#[derive(Debug)]
enum Key {
    Id(String),
    /// A null id: allowed by JSON-RPC, but nothing that a cancellation could name.
    Anonymous(u64),
}

/// An id as a key: a string by its text, so that escapes do not matter; anything else as written.
fn key(id: &str) -> String {
    string(id).map_or_else(|| id.to_owned(), |text| format!("\"{text}"))
}

impl Permits {
    /// Room for `most` calls at a time.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Permits { most, running: AtomicUsize::new(0) })
    }

    /// How many may run.
    pub fn most(&self) -> usize {
        self.most
    }

    /// How many run.
    pub fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    fn take(self: &Arc<Self>) -> Option<Permit> {
        let next = |running: usize| (running < self.most).then_some(running + 1);
        self.running.fetch_update(Ordering::AcqRel, Ordering::Relaxed, next).ok()?;
        Some(Permit(Arc::clone(self)))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::AcqRel);
    }
}

impl InFlight {
    /// The calls of a client, of which `most` may run at a time and none without one of the process's permits.
    pub fn new(permits: &Arc<Permits>, most: usize) -> Arc<Self> {
        Arc::new(InFlight { permits: Arc::clone(permits), shared: None, most, state: Mutex::default() })
    }

    /// The calls of one request of an owner: each also takes one of the permits that all requests of the owner share.
    pub fn sharing(permits: &Arc<Permits>, shared: &Arc<Permits>) -> Arc<Self> {
        let (shared, most) = (Arc::clone(shared), shared.most());
        Arc::new(InFlight { permits: Arc::clone(permits), shared: Some(shared), most, state: Mutex::default() })
    }

    /// How many of the client's may run.
    pub fn most(&self) -> usize {
        self.most
    }

    /// A place for the call of that raw id, which `cancel` stops.
    pub fn enter(self: &Arc<Self>, id: &str, cancel: Cancel) -> Result<Place, Denied> {
        let mut state = self.lock();
        let key = match id {
            "null" => None,
            id => Some(key(id)),
        };
        if state.shut_down {
            return Err(Denied::ShutDown);
        }
        if key.as_ref().is_some_and(|key| state.by_id.contains_key(key)) {
            return Err(Denied::DuplicateId);
        }
        if state.by_id.len() + state.anonymous.len() >= self.most {
            return Err(Denied::ClientBusy);
        }
        let shared = match &self.shared {
            Some(shared) => Some(shared.take().ok_or(Denied::ClientBusy)?),
            None => None,
        };
        let permit = self.permits.take().ok_or(Denied::Busy)?;
        let call = Running { cancel, withdrawn: Arc::default() };
        let key = if let Some(key) = key {
            state.by_id.insert(key.clone(), call.clone());
            Key::Id(key)
        } else {
            let number = state.next_anonymous;
            state.next_anonymous += 1;
            state.anonymous.insert(number, call.clone());
            Key::Anonymous(number)
        };
        Ok(Place { owner: Arc::clone(self), key, _permit: permit, _shared: shared, call })
    }

    /// Stops the call of that raw id, if it runs: its client waits for no answer.
    pub fn cancel(&self, id: &str) {
        let call = self.lock().by_id.get(&key(id)).cloned();
        // Outside the lock: it wakes waiting evaluations.
        if let Some(call) = call {
            call.withdraw();
        }
    }

    /// Stops every call.
    pub fn cancel_all(&self) {
        let all: Vec<Running> = {
            let state = self.lock();
            state.by_id.values().chain(state.anonymous.values()).cloned().collect()
        };
        for call in all {
            call.withdraw();
        }
    }

    /// Whether none of the client's runs.
    pub fn is_idle(&self) -> bool {
        let state = self.lock();
        state.by_id.is_empty() && state.anonymous.is_empty()
    }

    /// The client was told that this revision is spoken.
    pub fn agree(&self, protocol_version: &'static str) {
        self.lock().protocol_version = Some(protocol_version);
    }

    /// The revision that the client was told.
    pub fn protocol_version(&self) -> Option<&'static str> {
        self.lock().protocol_version
    }

    /// Lets no further call start.
    pub fn shut_down(&self) {
        self.lock().shut_down = true;
    }

    /// Whether [`InFlight::shut_down`] was called.
    pub fn is_shut_down(&self) -> bool {
        self.lock().shut_down
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running {
    fn withdraw(&self) {
        self.withdrawn.store(true, Ordering::Release);
        self.cancel.cancel();
    }
}

impl Place {
    /// What stops the call, and tells whether it was stopped.
    pub fn cancellation(&self) -> &Cancel {
        &self.call.cancel
    }

    /// Whether its client waits for no answer. A call can be stopped without that: the end of its session does.
    pub fn is_withdrawn(&self) -> bool {
        self.call.withdrawn.load(Ordering::Acquire)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.owner.lock();
        match &self.key {
            Key::Id(id) => state.by_id.remove(id),
            Key::Anonymous(number) => state.anonymous.remove(number),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_one_owner_share_their_permits() {
        let permits = Permits::new(10);
        let shared = Permits::new(1);
        let (one, other) = (InFlight::sharing(&permits, &shared), InFlight::sharing(&permits, &shared));
        let first = one.enter("1", Cancel::default()).expect("there is room");
        assert_eq!(other.enter("1", Cancel::default()).err(), Some(Denied::ClientBusy));
        drop(first);
        assert!(other.enter("1", Cancel::default()).is_ok());
    }

    #[test]
    fn places_are_counted_and_given_back() {
        let permits = Permits::new(2);
        let calls = InFlight::new(&permits, 2);
        let other = InFlight::new(&permits, 1);
        let first = calls.enter("1", Cancel::default()).expect("there is room");
        assert_eq!(calls.enter("1", Cancel::default()).err(), Some(Denied::DuplicateId));
        let second = calls.enter("\"1\"", Cancel::default()).expect("a string is another id");
        assert_eq!(calls.enter("2", Cancel::default()).err(), Some(Denied::ClientBusy));
        assert_eq!(other.enter("1", Cancel::default()).err(), Some(Denied::Busy));
        calls.cancel("\"\\u0031\"");
        assert!(second.is_withdrawn() && second.cancellation().is_cancelled() && !first.cancellation().is_cancelled());
        drop(second);
        let nameless = calls.enter("null", Cancel::default()).expect("there is room again");
        calls.cancel("null");
        assert!(!nameless.cancellation().is_cancelled());
        calls.shut_down();
        assert_eq!(calls.enter("3", Cancel::default()).err(), Some(Denied::ShutDown));
        calls.cancel_all();
        assert!(first.cancellation().is_cancelled() && nameless.is_withdrawn());
        assert_eq!(permits.running(), 2);
        drop((first, nameless));
        assert!(other.enter("1", Cancel::default()).is_ok());
        assert_eq!(permits.running(), 0);
    }
}
