//! The fault that is under way.

use std::sync::Arc;

use crate::error::{Call, Error, ErrorKind, Position, Span, Trace, told};
use crate::{Value, host};

/// Functions that an error names of those that were under way, innermost first.
const TRACED: usize = 8;

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
    place: Option<Place>,
    /// Functions that were left, innermost first.
    trace: Vec<Left>,
    /// How many more were left.
    omitted: u32,
    /// `(return v)`: not a fault, but it unwinds like one.
    pub(crate) returned: bool,
}

/// A place in a text that is known only once the function around it is left.
#[derive(Debug)]
struct Place {
    span: Span,
    source: Option<Arc<str>>,
}

/// A function that a fault has left.
#[derive(Debug)]
struct Left {
    name: Option<String>,
    /// Where it was called; none yet where a builtin called it.
    from: Option<Place>,
}

impl Fault {
    /// A fault without a hint or a value.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Fault {
            kind,
            message: message.into(),
            hint: None,
            value: None,
            place: None,
            trace: Vec::new(),
            omitted: 0,
            returned: false,
        }
    }

    /// It came out of the call at `span`: its own place, if it has none, and that of functions which this call had called.
    pub(crate) fn passed(&mut self, span: Span) {
        if self.place.is_none() {
            self.place = Some(Place { span, source: None });
        }
        for left in self.trace.iter_mut().rev().take_while(|left| left.from.is_none()) {
            left.from = Some(Place { span, source: None });
        }
    }

    /// It left a function of the program `source`, which was called at `span`, or by a builtin.
    pub(crate) fn left(&mut self, name: Option<&str>, source: &Arc<str>, span: Option<Span>) {
        let Some(place) = &mut self.place else {
            // The call itself failed.
            self.place = span.map(|span| Place { span, source: None });
            return;
        };
        // What has no text yet lies in this function's.
        place.source.get_or_insert_with(|| Arc::clone(source));
        for from in self.trace.iter_mut().rev().filter_map(|left| left.from.as_mut()) {
            if from.source.is_some() {
                break;
            }
            from.source = Some(Arc::clone(source));
        }
        if self.trace.len() < TRACED {
            let from = span.map(|span| Place { span, source: None });
            self.trace.push(Left { name: name.map(str::to_owned), from });
        } else {
            self.omitted += 1;
        }
    }

    /// What the caller of the run sees. `source` is the program that was run.
    pub(crate) fn into_error(self, source: &Arc<str>) -> Error {
        let earlier = |place: &Place| place.source.clone().filter(|text| !Arc::ptr_eq(text, source));
        let position = |place: &Place| Position::of(place.source.as_ref().unwrap_or(source), place.span.start);
        let call = |left: Left| Call {
            name: left.name,
            position: left.from.as_ref().map(position),
            earlier: left.from.as_ref().and_then(earlier).is_some(),
        };
        Error {
            kind: self.kind,
            message: told(self.message),
            hint: self.hint.map(told).or_else(|| self.kind.advice().map(str::to_owned)),
            span: self.place.as_ref().map(|place| place.span),
            position: self.place.as_ref().map(position),
            value: self.value,
            trace: Box::new(Trace {
                earlier: self.place.as_ref().and_then(earlier),
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
