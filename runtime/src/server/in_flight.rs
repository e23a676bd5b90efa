//! Calls that run: how many may, and how to stop them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ptc_lisp::limits::Cancel;

use crate::protocol::message::string;

/// The calls that run now.
pub struct InFlight {
    most: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: usize,
    by_id: BTreeMap<String, Cancel>,
    anonymous: BTreeMap<u64, Cancel>,
    next_anonymous: u64,
}

/// Why a call may not start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// As many run as may.
    Busy,
    /// A call of that id runs.
    DuplicateId,
}

/// A running call's place. Dropped, it gives the place to the next call.
pub struct Place {
    owner: Arc<InFlight>,
    key: Key,
    /// Stops the call.
    pub cancel: Cancel,
}

enum Key {
    Id(String),
    /// A null id: allowed by JSON-RPC, but nothing that a cancellation could name.
    Anonymous(u64),
}

/// An id as a key: a string by its text, so that escapes do not matter; anything else as written.
fn key(id: &str) -> String {
    string(id).map_or_else(|| id.to_owned(), |text| format!("\"{text}"))
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Place").field("cancel", &self.cancel).finish_non_exhaustive()
    }
}

impl InFlight {
    /// Room for `most` calls at a time.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(InFlight { most, state: Mutex::default() })
    }

    /// How many may run.
    pub fn most(&self) -> usize {
        self.most
    }

    /// A place for the call of that raw id.
    pub fn enter(self: &Arc<Self>, id: &str) -> Result<Place, Denied> {
        let mut state = self.lock();
        let key = match id {
            "null" => None,
            id => Some(key(id)),
        };
        if key.as_ref().is_some_and(|key| state.by_id.contains_key(key)) {
            return Err(Denied::DuplicateId);
        }
        if state.running >= self.most {
            return Err(Denied::Busy);
        }
        state.running += 1;
        let cancel = Cancel::default();
        let key = if let Some(key) = key {
            state.by_id.insert(key.clone(), cancel.clone());
            Key::Id(key)
        } else {
            let number = state.next_anonymous;
            state.next_anonymous += 1;
            state.anonymous.insert(number, cancel.clone());
            Key::Anonymous(number)
        };
        Ok(Place { owner: Arc::clone(self), key, cancel })
    }

    /// Stops the call of that raw id, if it runs.
    pub fn cancel(&self, id: &str) {
        let cancel = self.lock().by_id.get(&key(id)).cloned();
        // Outside the lock: it wakes waiting evaluations.
        if let Some(cancel) = cancel {
            cancel.cancel();
        }
    }

    /// Stops every call.
    pub fn cancel_all(&self) {
        let all: Vec<Cancel> = {
            let state = self.lock();
            state.by_id.values().chain(state.anonymous.values()).cloned().collect()
        };
        for cancel in all {
            cancel.cancel();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.owner.lock();
        state.running -= 1;
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
    fn places_are_counted_and_given_back() {
        let calls = InFlight::new(2);
        let first = calls.enter("1").expect("there is room");
        assert_eq!(calls.enter("1").err(), Some(Denied::DuplicateId));
        let second = calls.enter("\"1\"").expect("a string is another id");
        assert_eq!(calls.enter("2").err(), Some(Denied::Busy));
        calls.cancel("\"\\u0031\"");
        assert!(second.cancel.is_cancelled() && !first.cancel.is_cancelled());
        drop(second);
        let nameless = calls.enter("null").expect("there is room again");
        calls.cancel("null");
        assert!(!nameless.cancel.is_cancelled());
        calls.cancel_all();
        assert!(first.cancel.is_cancelled() && nameless.cancel.is_cancelled());
    }
}
