//! The time limit of what happens to a program before it runs: reading, analysis, checks.
//!
//! A run has its own clock in the [`Machine`](crate::machine::Machine). The passes before it have no machine, so they count their steps
//! here. All of them take time in proportion to the program's size, and a program may be as large as the host allows.

use std::cell::Cell;
use std::time::Instant;

use crate::error::{Error, ErrorKind};
use crate::limits::Cancel;

/// Steps between two looks at the clock. A step is a form or an expression, some 100 ns.
const STEPS_PER_LOOK: u64 = 512;

/// A point in time, and a flag that ends the work earlier. Belongs to one thread.
///
/// ```
/// use std::time::Instant;
/// use ptc_lisp::{Bindings, Cancel, Deadline, ErrorKind, Program};
///
/// let cancel = Cancel::default();
/// cancel.cancel();
/// let deadline = Deadline::new(None, &cancel);
/// let error = Program::compile_until("(+ 1 2)", &Bindings::default(), &[], &deadline).unwrap_err();
/// assert_eq!(error.kind, ErrorKind::Cancelled);
/// ```
#[derive(Debug, Default)]
pub struct Deadline {
    at: Option<Instant>,
    cancel: Option<Cancel>,
    steps: Cell<u64>,
    /// `Timeout` or `Cancelled`, once one of them was seen. It stays.
    passed: Cell<Option<ErrorKind>>,
}

impl Deadline {
    /// No limit: for programs of the operator, and for tests.
    pub fn none() -> Deadline {
        Deadline::default()
    }

    /// Ends the work at `at`, or when `cancel` is cancelled.
    pub fn new(at: Option<Instant>, cancel: &Cancel) -> Deadline {
        Deadline { at, cancel: Some(cancel.clone()), ..Deadline::default() }
    }

    /// Counts a step of work; true once the deadline has passed. Looks at the clock now and then only, so that it is cheap.
    #[inline]
    pub fn step(&self) -> bool {
        let steps = self.steps.get() + 1;
        self.steps.set(steps);
        if steps.is_multiple_of(STEPS_PER_LOOK) {
            return self.is_passed();
        }
        self.passed.get().is_some()
    }

    /// Looks at the clock; true once the deadline has passed.
    pub fn is_passed(&self) -> bool {
        if self.passed.get().is_none() {
            if self.cancel.as_ref().is_some_and(Cancel::is_cancelled) {
                self.passed.set(Some(ErrorKind::Cancelled));
            } else if self.at.is_some_and(|at| Instant::now() >= at) {
                self.passed.set(Some(ErrorKind::Timeout));
            }
        }
        self.passed.get().is_some()
    }

    /// Looks at the clock.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Timeout`] or [`ErrorKind::Cancelled`], without a place in the program: any of its forms may have been the last one.
    pub fn check(&self) -> Result<(), Error> {
        self.is_passed();
        let Some(kind) = self.passed.get() else { return Ok(()) };
        let (message, hint) = match kind {
            ErrorKind::Cancelled => ("the run was cancelled", None),
            _ => (
                "the wall clock ran out before the program could start",
                Some("send a smaller program; pass data as context instead of writing it into the program"),
            ),
        };
        let (message, hint) = (message.to_owned(), hint.map(str::to_owned));
        Err(Error { kind, message, hint, span: None, position: None, value: None, trace: Box::default() })
    }

    /// Steps so far.
    pub fn steps(&self) -> u64 {
        self.steps.get()
    }
}
