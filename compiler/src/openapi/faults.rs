//! Collects all faults of one operation, so that a fault in one part does not hide faults in other parts.

use std::collections::BTreeSet;

use crate::diag::{Code, Diagnostic};
use crate::source::Span;

/// Faults and notes in the order found.
#[derive(Debug, Default)]
pub(super) struct Faults {
    list: Vec<Diagnostic>,
    notes: Vec<Diagnostic>,
    noted: BTreeSet<u32>,
}

impl Faults {
    /// Adds a fault, unless it is already there.
    pub(super) fn push(&mut self, fault: Diagnostic) {
        if !self.list.contains(&fault) {
            self.list.push(fault);
        }
    }

    /// Adds a note about a slip that does not make the operation unusable. Only the first note of each place is kept.
    pub(super) fn note(&mut self, place: Span, message: impl FnOnce() -> String) {
        if self.noted.insert(place.range.start) {
            self.notes.push(Diagnostic::new(Code::DocumentSlip, message()).at(place, ""));
        }
    }

    /// Takes the notes out; they are empty afterwards.
    pub(super) fn take_notes(&mut self) -> Vec<Diagnostic> {
        std::mem::take(&mut self.notes)
    }

    /// Returns the value, or adds the error as a fault.
    pub(super) fn keep<T>(&mut self, found: Result<T, Diagnostic>) -> Option<T> {
        found.map_err(|fault| self.push(fault)).ok()
    }

    /// Returns the number of faults. A part that was read without an increase of this number has no faults.
    pub(super) fn count(&self) -> usize {
        self.list.len()
    }

    /// Returns all faults.
    pub(super) fn into_list(self) -> Vec<Diagnostic> {
        self.list
    }
}
