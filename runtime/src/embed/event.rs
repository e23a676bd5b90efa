//! What happens while a program runs, for those who do not wait for its answer.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::host::ToolCall;
use crate::secrets::Redactor;
use crate::upstream::CallRecord;

/// Something that happened in a run. Its texts are redacted.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The program printed a line, as the answer has it. What is printed inside `pmap` and `pcalls` is told nowhere.
    Printed(&'a str),
    /// A call of an own tool began; of its record only the name and the warnings mean something yet.
    ToolStarted(&'a ToolCall),
    /// It was answered, or failed.
    ToolEnded(&'a ToolCall),
    /// A call of an upstream began; of its record only server, tool and credential mean something yet.
    UpstreamStarted(&'a CallRecord),
    /// It was answered, or failed. A call that the program does not wait for has no such event.
    UpstreamEnded(&'a CallRecord),
}

/// Who is told.
#[derive(Clone)]
pub(super) struct Listener(Arc<dyn Fn(Event<'_>) + Send + Sync>);

impl Listener {
    pub(super) fn new(tell: impl Fn(Event<'_>) + Send + Sync + 'static) -> Listener {
        Listener(Arc::new(tell))
    }

    /// Tells of it. A listener that panics misses the event; the program goes on.
    pub(super) fn tell(&self, event: Event<'_>) {
        let _ = catch_unwind(AssertUnwindSafe(|| (self.0)(event)));
    }

    /// Tells of a line.
    pub(super) fn printed(&self, line: &str, redactor: &Redactor) {
        self.tell(Event::Printed(&redactor.redact_str(line)));
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}
