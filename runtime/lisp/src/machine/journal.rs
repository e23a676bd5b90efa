//! The results of completed tasks, so that a later run does not repeat them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::Value;
use crate::collection::Map;

/// The results of tasks by id, shared by all threads of a run.
pub(crate) struct Journal(Mutex<Map>);

impl Journal {
    /// Makes a journal with the entries of `tasks`. A value that is not a map counts as an empty map.
    pub(crate) fn new(tasks: Value) -> Journal {
        Journal(Mutex::new(match tasks {
            Value::Map(map) => map,
            _ => Map::default(),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Map> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the result of a task, if the task is completed.
    pub(crate) fn get(&self, id: &Value) -> Option<Value> {
        self.lock().get(id).cloned()
    }

    pub(crate) fn put(&self, id: Value, result: Value) {
        self.lock().insert(id, result);
    }

    pub(crate) fn reset(&self, id: &Value) {
        self.lock().remove(id);
    }

    /// Returns all results as a map from ids to values.
    pub(crate) fn tasks(&self) -> Value {
        Value::Map(self.lock().clone())
    }
}
