//! State that all parts of the config reader share: the file, the findings, and the number of errors.

use std::ops::Range;

use super::model::Spanned;
use crate::diag::{Code, Diagnostic, Diagnostics, MASK, Severity, quoted};
use crate::source::{FileId, Span};
use crate::tree::{Member, Node};

/// The reader of one config.
pub(super) struct ConfigReader<'a> {
    pub(super) file: FileId,
    diagnostics: &'a mut Diagnostics,
    errors: usize,
}

impl<'a> ConfigReader<'a> {
    pub(super) fn new(file: FileId, diagnostics: &'a mut Diagnostics) -> Self {
        ConfigReader { file, diagnostics, errors: 0 }
    }

    /// Adds a finding.
    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        if diagnostic.severity == Severity::Error {
            self.errors += 1;
        }
        self.diagnostics.push(diagnostic);
    }

    /// Adds a finding about a value.
    pub(super) fn fault(&mut self, code: Code, node: &Node, message: impl Into<String>, label: &str, hint: &str) {
        let mut diagnostic = Diagnostic::new(code, message).at(node.place(self.file), label);
        if !hint.is_empty() {
            diagnostic = diagnostic.hint(hint);
        }
        // A value with a syntax error has no type, so a wrong type is not a fault of its own.
        if code == Code::WrongType && self.diagnostics.has_at(Code::JsonSyntax, &node.place(self.file)) {
            self.errors += 1;
            return;
        }
        self.report(diagnostic);
    }

    /// Marks the entry of an upstream.
    pub(super) fn belongs(&mut self, member: &Member) {
        let range = member.key_range.start..member.value.range.end;
        self.diagnostics.belongs(&member.key, Span { file: self.file, range });
    }

    /// Drops the notes with a code that point into a place.
    pub(super) fn silence(&mut self, code: Code, place: Span) {
        self.diagnostics.silence(code, place);
    }

    /// Returns the number of errors so far. If the number has not grown since an earlier call, everything read in between is
    /// valid.
    pub(super) fn errors(&self) -> usize {
        self.errors
    }

    /// Hides the text of `node` in all renderings.
    pub(super) fn mask(&mut self, node: &Node) {
        let range = match node.as_str() {
            // The quotes stay visible, so that the value can be recognized as a string.
            Some(_) if node.range.len() >= 2 => node.range.start + 1..node.range.end - 1,
            _ => node.range.clone(),
        };
        self.diagnostics.mask(Span { file: self.file, range });
    }

    /// Hides a part of a string's text in all renderings.
    pub(super) fn mask_part(&mut self, node: &Node, part: &Range<usize>) {
        let place = self.part(node, part);
        if place.range == node.range { self.mask(node) } else { self.diagnostics.mask(place) }
    }

    /// Quotes a value for a message. A value that is masked at its position is not named either.
    pub(super) fn quoted(&self, text: &str, place: &Span) -> String {
        if self.diagnostics.is_masked(place) { format!("`{MASK}`") } else { quoted(text) }
    }

    /// Returns the position of a part of a string's text, or of the whole string if escapes make the text differ from the file.
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
