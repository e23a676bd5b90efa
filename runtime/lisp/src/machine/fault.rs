//! The fault that ends a run, and its stack trace.

use std::sync::Arc;

use crate::error::{Call, Error, ErrorKind, Position, Span, Trace, truncated};
use crate::{Value, host};

/// Maximum number of stack frames in an error, innermost first.
const MAX_TRACED_CALLS: usize = 8;

/// Marks that a fault was raised. The [`Machine`](super::Machine) stores it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Raised;

/// A raised fault.
#[derive(Debug)]
pub struct Fault {
    /// Its kind.
    pub kind: ErrorKind,
    /// What was expected and what was found.
    pub message: String,
    /// How to fix the program, if known.
    pub hint: Option<String>,
    /// The value of `(fail v)`.
    pub value: Option<Value>,
    /// The innermost call that raised the fault.
    location: Option<Location>,
    /// The functions that the fault has left, innermost first.
    trace: Vec<StackFrame>,
    /// Number of further functions that it has left.
    omitted: u32,
    /// `(return v)`: not a fault, but it unwinds like one.
    pub(crate) returned: bool,
}

/// A position in a source text. The text is filled in when the fault leaves the enclosing function.
#[derive(Debug)]
struct Location {
    span: Span,
    source: Option<Arc<str>>,
}

/// A function that a fault has left.
#[derive(Debug)]
struct StackFrame {
    name: Option<String>,
    /// The call of the function; `None` if a builtin called it.
    from: Option<Location>,
}

impl Fault {
    /// A fault without a hint or a value.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Fault {
            kind,
            message: message.into(),
            hint: None,
            value: None,
            location: None,
            trace: Vec::new(),
            omitted: 0,
            returned: false,
        }
    }

    /// Records that the fault left the call at `span`. This sets the fault's position if it has none, and that of frames without
    /// a call.
    pub(crate) fn push_call_site(&mut self, span: Span) {
        if self.location.is_none() {
            self.location = Some(Location { span, source: None });
        }
        for frame in self.trace.iter_mut().rev().take_while(|frame| frame.from.is_none()) {
            frame.from = Some(Location { span, source: None });
        }
    }

    /// Records that the fault left a function of the program `source`. `span` is the function's call, or `None` if a builtin
    /// called it.
    pub(crate) fn push_frame(&mut self, name: Option<&str>, source: &Arc<str>, span: Option<Span>) {
        let Some(location) = &mut self.location else {
            // The call itself failed.
            self.location = span.map(|span| Location { span, source: None });
            return;
        };
        // Locations without a text are in this function.
        location.source.get_or_insert_with(|| Arc::clone(source));
        for from in self.trace.iter_mut().rev().filter_map(|frame| frame.from.as_mut()) {
            if from.source.is_some() {
                break;
            }
            from.source = Some(Arc::clone(source));
        }
        if self.trace.len() < MAX_TRACED_CALLS {
            let from = span.map(|span| Location { span, source: None });
            self.trace.push(StackFrame { name: name.map(str::to_owned), from });
        } else {
            self.omitted += 1;
        }
    }

    /// Converts the fault to the error that the caller of the run receives. `source` is the program that was run.
    pub(crate) fn into_error(self, source: &Arc<str>) -> Error {
        let earlier = |location: &Location| location.source.clone().filter(|text| !Arc::ptr_eq(text, source));
        let position = |location: &Location| Position::at_offset(location.source.as_ref().unwrap_or(source), location.span.start);
        let call = |frame: StackFrame| Call {
            name: frame.name,
            position: frame.from.as_ref().map(position),
            earlier: frame.from.as_ref().and_then(earlier).is_some(),
        };
        Error {
            kind: self.kind,
            message: truncated(self.message),
            hint: self.hint.map(truncated).or_else(|| self.kind.advice().map(str::to_owned)),
            span: self.location.as_ref().map(|location| location.span),
            position: self.location.as_ref().map(position),
            value: self.value,
            trace: Box::new(Trace {
                earlier: self.location.as_ref().and_then(earlier),
                calls: self.trace.into_iter().map(call).collect(),
                omitted: self.omitted,
            }),
        }
    }
}

impl From<host::Fault> for Fault {
    fn from(fault: host::Fault) -> Self {
        Fault { hint: fault.hint, ..Fault::new(fault.kind, fault.message) }
    }
}
