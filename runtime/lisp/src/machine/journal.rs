//! What tasks gave, so that a program that runs again need not do them again.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::Value;
use crate::collection::Map;

/// The results of tasks by id. Every thread of a run holds the same.
pub(crate) struct Journal(Mutex<Map>);

impl Journal {
    /// A journal that begins with `tasks`; anything but a map is an empty one.
    pub(crate) fn new(tasks: Value) -> Journal {
        Journal(Mutex::new(match tasks {
            Value::Map(map) => map,
            _ => Map::default(),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Map> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the task gave, if it was done.
    pub(crate) fn get(&self, id: &Value) -> Option<Value> {
        self.lock().get(id).cloned()
    }

    pub(crate) fn put(&self, id: Value, result: Value) {
        self.lock().insert(id, result);
    }

    pub(crate) fn reset(&self, id: &Value) {
        self.lock().remove(id);
    }

    /// All of it, as a map.
    pub(crate) fn tasks(&self) -> Value {
        Value::Map(self.lock().clone())
    }
}
