//! Ends waits from another thread.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A handle that ends a wait from another thread.
#[derive(Clone)]
pub struct Interrupt {
    wait: Arc<dyn Fn() + Send + Sync>,
}

impl Interrupt {
    /// Makes a handle that ends a wait by calling `end`.
    pub fn by(end: impl Fn() + Send + Sync + 'static) -> Interrupt {
        Interrupt { wait: Arc::new(end) }
    }

    /// Ends the wait.
    pub fn interrupt(&self) {
        (self.wait)();
    }
}

/// A list of waits that one event ends, such as a cancellation. A wait is on the list while its [`InterruptGuard`] exists.
#[derive(Clone, Default)]
pub(crate) struct Interrupts {
    list: Arc<Mutex<Registered>>,
}

#[derive(Default)]
struct Registered {
    next: u64,
    waits: BTreeMap<u64, Interrupt>,
}

/// Keeps a wait on the list of waits that one event ends, until this is dropped.
#[must_use = "the wait is taken off the list when this is dropped"]
pub struct InterruptGuard {
    interrupts: Interrupts,
    number: u64,
}

impl Interrupts {
    pub(crate) fn add(&self, wait: Interrupt) -> InterruptGuard {
        let mut list = self.lock();
        let number = list.next;
        list.next += 1;
        list.waits.insert(number, wait);
        drop(list);
        InterruptGuard { interrupts: self.clone(), number }
    }

    /// Ends every wait on the list.
    pub(crate) fn interrupt(&self) {
        let waits = std::mem::take(&mut self.lock().waits);
        for wait in waits.into_values() {
            wait.interrupt();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Registered> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for InterruptGuard {
    fn drop(&mut self) {
        let wait = self.interrupts.lock().waits.remove(&self.number);
        // Dropped outside of the lock, since the closure may own any value.
        drop(wait);
    }
}

impl std::fmt::Debug for InterruptGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InterruptGuard").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::Cancel;

    #[test]
    fn wait_is_interrupted_only_while_its_guard_lives() {
        let (cancel, ended) = (Cancel::default(), Arc::new(AtomicUsize::new(0)));
        let wait = || {
            let ended = Arc::clone(&ended);
            Interrupt::by(move || {
                ended.fetch_add(1, Ordering::Relaxed);
            })
        };
        let over = cancel.watch(wait());
        let watched = cancel.watch(wait());
        drop(over);
        cancel.cancel();
        assert_eq!(ended.load(Ordering::Relaxed), 1, "the other is over");
        drop(watched);
        let _late = cancel.watch(wait());
        assert_eq!(ended.load(Ordering::Relaxed), 2, "at once");
    }
}
