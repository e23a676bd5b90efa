//! Calls of a client that are not answered yet, and how to stop them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use litemap::LiteMap;
use ptc_lisp::limits::Cancel;

use crate::protocol::message::string;
use crate::schedule::{self, ClientKey};

/// The calls of one client that are not answered yet.
#[derive(Debug)]
pub struct InFlight {
    client_key: ClientKey,
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
    /// A call of that id is not answered yet.
    DuplicateId,
    /// The client said `shutdown`.
    ShutDown,
}

/// A call that is not answered yet, with its place once it has one. Dropped, it gives the place to the next call.
#[derive(Debug)]
pub struct Registration {
    owner: Arc<InFlight>,
    key: Key,
    call: Running,
    permit: Option<schedule::AdmissionPermit>,
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

impl InFlight {
    /// The calls of a client, which share what the scheduler gives this party.
    pub fn new(client_key: ClientKey) -> Arc<Self> {
        Arc::new(InFlight { client_key, state: Mutex::default() })
    }

    /// Who the client is for the scheduler.
    pub fn client_key(&self) -> &ClientKey {
        &self.client_key
    }

    /// Registers the call of that raw id, which `cancel` stops.
    pub fn enter(self: &Arc<Self>, id: &str, cancel: Cancel) -> Result<Registration, Denied> {
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
        Ok(Registration { owner: Arc::clone(self), key, call, permit: None })
    }

    /// Stops the call of that raw id, if it runs: its client waits for no answer.
    pub fn cancel(&self, id: &str) {
        let call = self.lock().by_id.get(&key(id)).cloned();
        // Outside the lock: it wakes waiting evaluations.
        if let Some(call) = call {
            call.withdraw();
        }
    }

    /// Stops every call, whose client waits for no answer.
    pub fn cancel_all(&self) {
        for call in self.all() {
            call.withdraw();
        }
    }

    /// Stops every call. Unlike with [`InFlight::cancel_all`], each is answered: it was cancelled.
    pub fn stop_all(&self) {
        for call in self.all() {
            call.cancel.cancel();
        }
    }

    fn all(&self) -> Vec<Running> {
        let state = self.lock();
        state.by_id.values().chain(state.anonymous.values()).cloned().collect()
    }

    /// Whether each of the client's is answered.
    pub fn is_idle(&self) -> bool {
        let state = self.lock();
        state.by_id.is_empty() && state.anonymous.is_empty()
    }

    /// The client was told that this revision is spoken.
    pub fn set_protocol_version(&self, protocol_version: &'static str) {
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

impl Registration {
    /// Whose it is, for the scheduler.
    pub fn client_key(&self) -> &ClientKey {
        &self.owner.client_key
    }

    /// Keeps the place of the call until it is answered.
    pub fn hold(&mut self, permit: schedule::AdmissionPermit) {
        self.permit = Some(permit);
    }

    /// What stops the call, and tells whether it was stopped.
    pub fn cancellation(&self) -> &Cancel {
        &self.call.cancel
    }

    /// Whether its client waits for no answer. A call can be stopped without that: the end of its session does.
    pub fn is_withdrawn(&self) -> bool {
        self.call.withdrawn.load(Ordering::Acquire)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // First: whoever finds the client idle finds the place free.
        drop(self.permit.take());
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
    fn calls_are_distinguished_by_id_and_stopped() {
        let calls = InFlight::new(ClientKey { owner: "one".into(), session: 1 });
        let first = calls.enter("1", Cancel::default()).expect("nothing runs");
        assert_eq!(calls.enter("1", Cancel::default()).err(), Some(Denied::DuplicateId));
        let second = calls.enter("\"1\"", Cancel::default()).expect("a string is another id");
        calls.cancel("\"\\u0031\"");
        assert!(second.is_withdrawn() && second.cancellation().is_cancelled() && !first.cancellation().is_cancelled());
        drop(second);
        let nameless = calls.enter("null", Cancel::default()).expect("the client may send more");
        calls.cancel("null");
        assert!(!nameless.cancellation().is_cancelled());
        calls.shut_down();
        assert_eq!(calls.enter("3", Cancel::default()).err(), Some(Denied::ShutDown));
        calls.stop_all();
        assert!(first.cancellation().is_cancelled() && !first.is_withdrawn());
        calls.cancel_all();
        assert!(nameless.is_withdrawn() && !calls.is_idle());
        drop((first, nameless));
        assert!(calls.is_idle());
    }
}
