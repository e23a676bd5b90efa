//! Faults as data: found in one place, rendered in another.

pub mod codes;

use crate::tree::Place;
pub use codes::Code;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Something worth knowing.
    Note,
    /// Something that works and is likely wrong.
    Warning,
    /// Something that cannot be built.
    Error,
}

/// One complaint.
#[derive(Debug, Clone)]
pub struct Diagnostic {
    /// Stable code from the registry.
    pub code: Code,
    /// The code's severity, unless raised by an option.
    pub severity: Severity,
    /// One sentence: what is wrong.
    pub message: String,
    /// Where; `None` for a fault without a place, such as a file that cannot be read.
    pub primary: Option<Label>,
    /// Other places that matter.
    pub secondary: Vec<Label>,
    /// What to do.
    pub hints: Vec<String>,
}

/// A place and what to say there.
#[derive(Debug, Clone)]
pub struct Label {
    /// Where.
    pub place: Place,
    /// A few words shown at the caret; may be empty.
    pub text: String,
}

impl Diagnostic {
    /// A diagnostic with the severity of its code.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Diagnostic {
            code,
            severity: code.severity(),
            message: message.into(),
            primary: None,
            secondary: Vec::new(),
            hints: Vec::new(),
        }
    }

    /// With its primary place.
    #[must_use]
    pub fn at(mut self, place: Place, text: impl Into<String>) -> Self {
        self.primary = Some(Label { place, text: text.into() });
        self
    }

    /// With another place.
    #[must_use]
    pub fn also(mut self, place: Place, text: impl Into<String>) -> Self {
        self.secondary.push(Label { place, text: text.into() });
        self
    }

    /// With what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

/// All diagnostics of a run, in the order found.
#[derive(Debug, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Takes one in.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.list.push(diagnostic);
    }

    /// All, ordered by file, place and code.
    pub fn sorted(&self) -> Vec<&Diagnostic> {
        let mut all: Vec<&Diagnostic> = self.list.iter().collect();
        all.sort_by_key(|d| (d.primary.as_ref().map(|l| (l.place.file, l.place.range.start)), d.code));
        all
    }

    /// Whether any is an error.
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|d| d.severity == Severity::Error)
    }

    /// How many there are of a severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.list.iter().filter(|d| d.severity == severity).count()
    }
}
