//! What every part of the reading shares: the file, the report, and the tally of errors.

use std::ops::Range;

use super::model::Spanned;
use crate::diag::{Code, Diagnostic, Diagnostics, Severity};
use crate::source::{FileId, Span};
use crate::tree::{Member, Node};

/// A config being read.
pub(super) struct ConfigReader<'a> {
    pub(super) file: FileId,
    diagnostics: &'a mut Diagnostics,
    errors: usize,
}

impl<'a> ConfigReader<'a> {
    pub(super) fn new(file: FileId, diagnostics: &'a mut Diagnostics) -> Self {
        ConfigReader { file, diagnostics, errors: 0 }
    }

    /// Takes a finding in.
    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        if diagnostic.severity == Severity::Error {
            self.errors += 1;
        }
        self.diagnostics.push(diagnostic);
    }

    /// Takes in a finding about a value.
    pub(super) fn fault(&mut self, code: Code, node: &Node, message: impl Into<String>, label: &str, hint: &str) {
        let mut diagnostic = Diagnostic::new(code, message).at(node.place(self.file), label);
        if !hint.is_empty() {
            diagnostic = diagnostic.hint(hint);
        }
        // What is not JSON has no type: whatever is read in its place is no fault of its own.
        if code == Code::WrongType && self.diagnostics.has_at(Code::JsonSyntax, &node.place(self.file)) {
            self.errors += 1;
            return;
        }
        self.report(diagnostic);
    }

    /// Errors so far: what was read since an earlier count is sound if this has not grown.
    pub(super) fn errors(&self) -> usize {
        self.errors
    }

    /// No rendering shows the text of `node`.
    pub(super) fn mask(&mut self, node: &Node) {
        let range = match node.as_str() {
            // The quotes stay, so that it is still seen to be a string.
            Some(_) if node.range.len() >= 2 => node.range.start + 1..node.range.end - 1,
            _ => node.range.clone(),
        };
        self.diagnostics.mask(Span { file: self.file, range });
    }

    /// No rendering shows that part of the text of a string.
    pub(super) fn mask_part(&mut self, node: &Node, part: &Range<usize>) {
        let place = self.part(node, part);
        if place.range == node.range { self.mask(node) } else { self.diagnostics.mask(place) }
    }

    /// The place of a part of a string's text; of all of it where escapes stand between the text and the file.
    pub(super) fn part(&self, node: &Node, part: &Range<usize>) -> Span {
        let first = node.range.start + 1;
        let range = match node.as_str() {
            Some(text) if node.range.len() == text.len() + 2 => first + part.start as u32..first + part.end as u32,
            _ => node.range.clone(),
        };
        Span { file: self.file, range }
    }

    pub(super) fn key_place(&self, member: &Member) -> Span {
        Span { file: self.file, range: member.key_range.clone() }
    }

    pub(super) fn spanned(&self, node: &Node) -> Option<Spanned<String>> {
        node.as_str().map(|text| Spanned { value: text.to_owned(), place: node.place(self.file) })
    }
}
