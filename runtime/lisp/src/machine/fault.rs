//! The fault that is under way.

use crate::error::{ErrorKind, Span};
use crate::{Value, host};

/// A fault was raised; it waits in the [`Machine`](super::Machine).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Raised;

/// What was raised.
#[derive(Debug)]
pub struct Fault {
    /// Its kind.
    pub kind: ErrorKind,
    /// What was expected and what was found.
    pub message: String,
    /// What to do, where that is known.
    pub hint: Option<String>,
    /// The value of `(fail v)`.
    pub value: Option<Value>,
    /// The innermost call that raised it.
    pub(crate) span: Option<Span>,
    /// Functions that were left, innermost first, and where they were called.
    pub(crate) trace: Vec<(String, Span)>,
    /// `(return v)`: not a fault, but it unwinds like one.
    pub(crate) returned: bool,
}

impl Fault {
    /// A fault without a hint or a value.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Fault { kind, message: message.into(), hint: None, value: None, span: None, trace: Vec::new(), returned: false }
    }
}

impl From<host::Fault> for Fault {
    fn from(fault: host::Fault) -> Self {
        Fault { hint: fault.hint, ..Fault::new(fault.kind, fault.message) }
    }
}
