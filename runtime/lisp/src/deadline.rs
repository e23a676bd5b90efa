//! The time limit for the passes before a run: reading, analysis, checks.
//!
//! A run has its own clock in the [`Machine`](crate::machine::Machine). The passes before it have no machine, so that they count
//! their steps here. All of them take time proportional to the program's size, which is limited only by the host.

use std::cell::Cell;
use std::time::Instant;

use crate::error::{Error, ErrorKind};
use crate::limits::Cancel;

/// Steps between two reads of the clock. A step is a form or an expression and takes about 100 ns.
const CHECK_INTERVAL: u64 = 512;

/// Number of steps before which the end of a pass does not read the clock again. The passes over a small program take less time than
/// the reads would.
const MIN_INTERVAL: u64 = 16;

/// A point in time, and a flag that stops the work earlier. For use by one thread.
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
    /// The number of steps from which on the end of a pass reads the clock.
    next_read: Cell<u64>,
    /// `Timeout` or `Cancelled` after the first of them was observed. It is never reset.
    passed: Cell<Option<ErrorKind>>,
}

impl Deadline {
    /// Makes a deadline that never passes, for programs of the operator and for tests.
    pub fn none() -> Deadline {
        Deadline::default()
    }

    /// Makes a deadline that passes at `at`, or when `cancel` is cancelled.
    pub fn new(at: Option<Instant>, cancel: &Cancel) -> Deadline {
        Deadline { at, cancel: Some(cancel.clone()), ..Deadline::default() }
    }

    /// Counts a step of work. Returns true once the deadline has passed. The clock is read only once in many steps, which makes
    /// this cheap.
    #[inline]
    pub fn step(&self) -> bool {
        let steps = self.steps.get() + 1;
        self.steps.set(steps);
        if steps.is_multiple_of(CHECK_INTERVAL) {
            return self.is_passed();
        }
        self.passed.get().is_some()
    }

    /// Reads the clock. Returns true once the deadline has passed.
    pub fn is_passed(&self) -> bool {
        self.next_read.set(self.steps.get() + MIN_INTERVAL);
        if self.passed.get().is_none() {
            if self.cancel.as_ref().is_some_and(Cancel::is_cancelled) {
                self.passed.set(Some(ErrorKind::Cancelled));
            } else if self.at.is_some_and(|at| Instant::now() >= at) {
                self.passed.set(Some(ErrorKind::Timeout));
            }
        }
        self.passed.get().is_some()
    }

    /// Reads the clock at the end of a pass, unless few steps were counted since it was read.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Timeout`] or [`ErrorKind::Cancelled`], without a span, since any form of the program may have been the last
    /// one.
    pub fn check(&self) -> Result<(), Error> {
        if self.steps.get() >= self.next_read.get() {
            self.is_passed();
        }
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

    /// Number of steps so far.
    pub fn steps(&self) -> u64 {
        self.steps.get()
    }
}
