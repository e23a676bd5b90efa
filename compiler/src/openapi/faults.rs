//! All that is wrong with one operation: a fault in one part of it does not hide those of the others.

use std::collections::BTreeSet;

use crate::diag::{Code, Diagnostic};
use crate::tree::Place;

/// Faults and notes in the order found.
#[derive(Debug, Default)]
pub(super) struct Faults {
    list: Vec<Diagnostic>,
    notes: Vec<Diagnostic>,
    noted: BTreeSet<u32>,
}

impl Faults {
    /// Takes one in.
    pub(super) fn push(&mut self, fault: Diagnostic) {
        if !self.list.contains(&fault) {
            self.list.push(fault);
        }
    }

    /// Takes in what rules nothing out, the first of each place.
    pub(super) fn note(&mut self, place: Place, message: impl FnOnce() -> String) {
        if self.noted.insert(place.range.start) {
            self.notes.push(Diagnostic::new(Code::DocumentSlip, message()).at(place, ""));
        }
    }

    /// What was noted, once.
    pub(super) fn take_notes(&mut self) -> Vec<Diagnostic> {
        std::mem::take(&mut self.notes)
    }

    /// What was found; a fault in its place is taken in.
    pub(super) fn keep<T>(&mut self, found: Result<T, Diagnostic>) -> Option<T> {
        found.map_err(|fault| self.push(fault)).ok()
    }

    /// How many there are: what was read since an earlier count is sound where this has not grown.
    pub(super) fn count(&self) -> usize {
        self.list.len()
    }

    /// All of them.
    pub(super) fn into_list(self) -> Vec<Diagnostic> {
        self.list
    }
}
