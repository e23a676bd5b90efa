//! Receivers of log lines in an embedding program.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use ptc_secrets::Redactor;

use super::LogLine;

/// The sinks of the process. While there is one, lines are not written to standard error.
static SINKS: RwLock<Vec<Sink>> = RwLock::new(Vec::new());
static NEXT_ID: AtomicU64 = AtomicU64::new(0);

#[derive(Clone)]
pub(crate) struct Sink {
    id: u64,
    receive: Arc<dyn Fn(&LogLine<'_>) + Send + Sync>,
    /// Redacts the lines of all sinks.
    pub(crate) redactor: Redactor,
}

impl Sink {
    /// Passes a line. A panic of the receiver is ignored.
    pub(crate) fn call(&self, line: &LogLine<'_>) {
        let _ = catch_unwind(AssertUnwindSafe(|| (self.receive)(line)));
    }
}

/// Returns all sinks. They are called without the lock, so that a receiver may add or remove one.
pub(crate) fn all() -> Vec<Sink> {
    SINKS.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Removes a sink when it is dropped.
#[derive(Debug)]
#[must_use]
pub struct SinkGuard(u64);

impl Drop for SinkGuard {
    fn drop(&mut self) {
        SINKS.write().unwrap_or_else(PoisonError::into_inner).retain(|sink| sink.id != self.0);
    }
}

/// Passes all later lines of the process to `receive`, and none to standard error, until the guard is dropped. The redactor is
/// applied to these lines, and to those of other sinks. The level of [`set_level`](super::set_level) applies.
///
/// ```
/// use std::sync::{Arc, Mutex};
///
/// use ptc_log::Level;
/// use ptc_secrets::Redactor;
///
/// let lines = Arc::new(Mutex::new(Vec::new()));
/// let sink = Arc::clone(&lines);
/// let guard = ptc_log::add_sink(Redactor::new(["swordfish-1234"]), move |line| sink.lock().unwrap().push(line.to_string()));
/// ptc_log::line(Level::Warn, "refused", &[("reason", "bad key swordfish-1234")]);
/// drop(guard);
///
/// let lines = lines.lock().unwrap();
/// assert!(lines[0].ends_with(r#","level":"warn","event":"refused","reason":"bad key [REDACTED]"}"#), "{}", lines[0]);
/// ```
pub fn add_sink(redactor: Redactor, receive: impl Fn(&LogLine<'_>) + Send + Sync + 'static) -> SinkGuard {
    let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
    SINKS.write().unwrap_or_else(PoisonError::into_inner).push(Sink { id, receive: Arc::new(receive), redactor });
    SinkGuard(id)
}
