//! Events while a program runs.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::host::ToolCall;
use crate::secrets::Redactor;
use crate::upstream::CallRecord;

/// An event in a run. Its texts are redacted.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The program printed a line, in the form of the answer. Lines printed inside `pmap` and `pcalls` are discarded.
    Printed(&'a str),
    /// A call of an own tool began. Only the name and the warnings of its record are set.
    ToolStarted(&'a ToolCall),
    /// A call of an own tool was answered or failed.
    ToolEnded(&'a ToolCall),
    /// A call of an upstream began. Only server, tool and credential of its record are set.
    UpstreamStarted(&'a CallRecord),
    /// A call of an upstream was answered or failed. A call whose answer the program does not wait for has no such event.
    UpstreamEnded(&'a CallRecord),
}

/// The receiver of events.
#[derive(Clone)]
pub(super) struct Listener(Arc<dyn Fn(Event<'_>) + Send + Sync>);

impl Listener {
    pub(super) fn new(tell: impl Fn(Event<'_>) + Send + Sync + 'static) -> Listener {
        Listener(Arc::new(tell))
    }

    /// Sends an event. A panic of the listener is ignored, and the program continues.
    pub(super) fn tell(&self, event: Event<'_>) {
        let _ = catch_unwind(AssertUnwindSafe(|| (self.0)(event)));
    }

    /// Sends the event of a printed line.
    pub(super) fn printed(&self, line: &str, redactor: &Redactor) {
        self.tell(Event::Printed(&redactor.redact_str(line)));
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}
