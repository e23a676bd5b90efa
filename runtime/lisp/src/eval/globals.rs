//! The values of a program's globals, on one thread of a run.

use std::cell::{OnceCell, RefCell};
use std::sync::Arc;

use crate::Value;

/// A value for each global of a program. Threads of `pmap` work on a copy.
pub(crate) struct Globals {
    cells: Box<[Global]>,
    names: Arc<[Arc<str>]>,
}

/// The value of one global. A function that is defined once is stored in `function`, from where it can be called without
/// reference counting: calls of global functions are the most frequent calls. All other values are stored in `value`.
#[derive(Default)]
struct Global {
    function: OnceCell<Value>,
    value: RefCell<Option<Value>>,
    /// Whether `value` takes precedence over `function`.
    replaced: std::cell::Cell<bool>,
}

impl Globals {
    pub(crate) fn new(names: Arc<[Arc<str>]>) -> Self {
        Globals { cells: names.iter().map(|_| Global::default()).collect(), names }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Returns the function at `index`, if it was never redefined.
    #[inline]
    pub(crate) fn function(&self, index: u32) -> Option<&Value> {
        let cell = self.cells.get(index as usize)?;
        if cell.replaced.get() { None } else { cell.function.get() }
    }

    pub(crate) fn get(&self, index: u32) -> Option<Value> {
        let cell = self.cells.get(index as usize)?;
        if cell.replaced.get() { cell.value.borrow().clone() } else { cell.function.get().cloned() }
    }

    pub(crate) fn is_bound(&self, index: u32) -> bool {
        self.cells.get(index as usize).is_some_and(|cell| cell.replaced.get() || cell.function.get().is_some())
    }

    pub(crate) fn set(&self, index: u32, value: Value) {
        let Some(cell) = self.cells.get(index as usize) else { return };
        let value = match value {
            function @ Value::Closure(_) if !cell.replaced.get() => match cell.function.set(function) {
                Ok(()) => return,
                Err(function) => function,
            },
            other => other,
        };
        cell.replaced.set(true);
        // Dropped after the borrow has ended, since a drop may take long.
        let before = cell.value.replace(Some(value));
        drop(before);
    }

    pub(crate) fn name(&self, index: u32) -> &str {
        self.names.get(index as usize).map_or("", |name| name)
    }

    pub(crate) fn by_name(&self, name: &str) -> Option<Value> {
        let index = self.names.iter().position(|held| **held == *name)?;
        self.get(index as u32)
    }

    /// Copies every value, for another thread.
    pub(crate) fn snapshot(&self) -> Vec<Option<Value>> {
        (0..self.cells.len() as u32).map(|index| self.get(index)).collect()
    }

    pub(crate) fn restore(names: Arc<[Arc<str>]>, values: &[Option<Value>]) -> Self {
        let globals = Globals::new(names);
        for (index, value) in (0..).zip(values) {
            if let Some(value) = value {
                globals.set(index, value.clone());
            }
        }
        globals
    }

    pub(crate) fn names(&self) -> Arc<[Arc<str>]> {
        Arc::clone(&self.names)
    }
}
