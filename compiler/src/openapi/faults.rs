//! All that is wrong with one operation: a fault in one part of it does not hide those of the others.

use crate::diag::Diagnostic;

/// Faults in the order found.
#[derive(Debug, Default)]
pub(super) struct Faults(Vec<Diagnostic>);

impl Faults {
    /// Takes one in.
    pub(super) fn push(&mut self, fault: Diagnostic) {
        if !self.0.contains(&fault) {
            self.0.push(fault);
        }
    }

    /// What was found; a fault in its place is taken in.
    pub(super) fn keep<T>(&mut self, found: Result<T, Diagnostic>) -> Option<T> {
        found.map_err(|fault| self.push(fault)).ok()
    }

    /// How many there are: what was read since an earlier count is sound where this has not grown.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// All of them.
    pub(super) fn into_list(self) -> Vec<Diagnostic> {
        self.0
    }
}
