//! The unanswered calls of a client, and their cancellation.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use litemap::LiteMap;
use ptc_lisp::limits::Cancel;

use crate::schedule::{self, ClientKey};
use ptc_engine::protocol::message::string;

/// The unanswered calls of one client.
#[derive(Debug)]
pub struct InFlight {
    client_key: ClientKey,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    shut_down: bool,
    protocol_version: Option<&'static str>,
    by_id: LiteMap<String, CallHandle>,
    anonymous: LiteMap<u64, CallHandle>,
    next_anonymous: u64,
}

/// A handle of an unanswered call, which waits in the queue or runs.
#[derive(Debug, Clone)]
pub struct CallHandle {
    cancel: Cancel,
    withdrawn: Arc<AtomicBool>,
    /// Whether it has no permit yet.
    is_queued: Arc<AtomicBool>,
}

/// The reason why a call cannot start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// A call with this id is not answered yet.
    DuplicateId,
    /// The client sent `shutdown`.
    ShutDown,
}

/// An unanswered call, which holds its admission permit once it has one. Dropping it releases the permit to the next call.
#[derive(Debug)]
pub struct Registration {
    owner: Arc<InFlight>,
    key: Key,
    call: CallHandle,
    permit: Option<schedule::AdmissionPermit>,
    /// Whether a program has begun.
    has_begun: bool,
}

#[derive(Debug)]
enum Key {
    Id(String),
    /// The call has a null id, which JSON-RPC permits but a cancellation cannot name.
    Anonymous(u64),
}

/// Returns an id as a key: a string by its decoded text, so that escapes do not matter, other ids as raw JSON.
fn key(id: &str) -> String {
    string(id).map_or_else(|| id.to_owned(), |text| format!("\"{text}"))
}

impl InFlight {
    /// Creates the calls of a client, which is `client_key` to the scheduler.
    pub fn new(client_key: ClientKey) -> Arc<Self> {
        Arc::new(InFlight { client_key, state: Mutex::default() })
    }

    /// Returns the client's key in the scheduler.
    pub fn client_key(&self) -> &ClientKey {
        &self.client_key
    }

    /// Registers the call with this raw id. `cancel` stops it.
    ///
    /// # Errors
    ///
    /// Returns [`Denied::ShutDown`] after the client sent `shutdown`, and [`Denied::DuplicateId`] if a call with this id is not
    /// answered yet. Null ids are never duplicates.
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
        let call = CallHandle { cancel, withdrawn: Arc::default(), is_queued: Arc::new(AtomicBool::new(true)) };
        let key = if let Some(key) = key {
            state.by_id.insert(key.clone(), call.clone());
            Key::Id(key)
        } else {
            let number = state.next_anonymous;
            state.next_anonymous += 1;
            state.anonymous.insert(number, call.clone());
            Key::Anonymous(number)
        };
        Ok(Registration { owner: Arc::clone(self), key, call, permit: None, has_begun: false })
    }

    /// Cancels the call with this raw id, if it is in flight. Its client does not wait for an answer.
    pub fn cancel(&self, id: &str) {
        let call = self.lock().by_id.get(&key(id)).cloned();
        // This happens outside the lock, since cancelling wakes waiting evaluations.
        if let Some(call) = call {
            call.withdraw();
        }
    }

    /// Cancels every call. The client does not wait for answers.
    pub fn cancel_all(&self) {
        for call in self.all() {
            call.withdraw();
        }
    }

    /// Cancels every call. Unlike with [`InFlight::cancel_all`], each call is answered as cancelled.
    pub fn stop_all(&self) {
        for call in self.all() {
            call.cancel.cancel();
        }
    }

    fn all(&self) -> Vec<CallHandle> {
        let state = self.lock();
        state.by_id.values().chain(state.anonymous.values()).cloned().collect()
    }

    /// Whether the client has no unanswered calls.
    pub fn is_idle(&self) -> bool {
        let state = self.lock();
        state.by_id.is_empty() && state.anonymous.is_empty()
    }

    /// Sets the negotiated protocol revision.
    pub fn set_protocol_version(&self, protocol_version: &'static str) {
        self.lock().protocol_version = Some(protocol_version);
    }

    /// Returns the negotiated protocol revision.
    pub fn protocol_version(&self) -> Option<&'static str> {
        self.lock().protocol_version
    }

    /// Refuses further calls.
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

impl CallHandle {
    /// Takes the call out of the queue, if it waits for a permit. A call that has one goes on.
    pub fn leave_queue(&self) {
        if self.is_queued.swap(false, Ordering::AcqRel) {
            self.withdraw();
        }
    }

    fn withdraw(&self) {
        self.withdrawn.store(true, Ordering::Release);
        self.cancel.cancel();
    }
}

impl Registration {
    /// Returns the client's key in the scheduler.
    pub fn client_key(&self) -> &ClientKey {
        &self.owner.client_key
    }

    /// Returns a handle of the call, which does not keep it in flight.
    pub fn call(&self) -> &CallHandle {
        &self.call
    }

    /// Holds the permit of the call until it is answered.
    pub fn hold(&mut self, permit: schedule::AdmissionPermit) {
        self.call.is_queued.store(false, Ordering::Release);
        self.permit = Some(permit);
    }

    /// Records whether a program of the call has begun. It has not if no stack, processor or memory was free for it, for example.
    pub fn set_begun(&mut self, has_begun: bool) {
        self.has_begun = has_begun;
    }

    /// Whether a program of the call has begun, so that it may have written.
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Returns the cancellation of the call, which stops it and shows whether it was stopped.
    pub fn cancellation(&self) -> &Cancel {
        &self.call.cancel
    }

    /// Whether the client does not wait for an answer. A call can also be stopped without that, for example by the end of its
    /// session.
    pub fn is_withdrawn(&self) -> bool {
        self.call.withdrawn.load(Ordering::Acquire)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // The permit is released first, so that it is free as soon as the client is idle.
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
    fn calls_are_distinguished_by_id_and_cancelled() {
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
