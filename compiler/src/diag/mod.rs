//! Faults as data: found in one place, rendered in another.
//!
//! | module | what |
//! |---|---|
//! | [`codes`] | the registry of codes |
//! | [`pages`] | what `explain` says of each code |
//! | [`render`] | text and JSON out of [`Diagnostics`] |
//! | [`suggest`] | names that are near a wrong one |
//! | [`text`] | what strangers wrote, fit to be shown |

pub mod codes;
pub mod pages;
pub mod render;
pub mod suggest;
pub mod text;

use std::collections::BTreeSet;

use crate::tree::Place;
pub use codes::Code;
pub use text::{quoted, quoted_list};

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

impl Severity {
    /// The word that starts a rendered diagnostic.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// One complaint.
#[derive(Debug, Clone, PartialEq, Eq)]
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
#[derive(Debug, Clone, PartialEq, Eq)]
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
    concealed: Vec<Place>,
}

impl Diagnostics {
    /// Takes one in.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.list.push(diagnostic);
    }

    /// Takes all of another list in.
    pub fn append(&mut self, other: Diagnostics) {
        self.list.extend(other.list);
        self.concealed.extend(other.concealed);
    }

    /// Adds several.
    pub fn extend(&mut self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        for diagnostic in diagnostics {
            self.push(diagnostic);
        }
    }

    /// Whether one of that code is at that very place.
    pub fn has_at(&self, code: Code, place: &Place) -> bool {
        self.list.iter().any(|found| found.code == code && found.primary.as_ref().is_some_and(|label| label.place == *place))
    }

    /// Takes those of a code out: what they say does not hold for what is being done.
    pub fn forget(&mut self, code: Code) {
        self.list.retain(|diagnostic| diagnostic.code != code);
    }

    /// Marks a place that holds a secret: no rendering shows its text, whichever diagnostic points near it.
    pub fn conceal(&mut self, place: Place) {
        self.concealed.push(place);
    }

    /// The places that no rendering may show, ordered.
    pub fn concealed(&self) -> Vec<&Place> {
        let mut places: Vec<&Place> = self.concealed.iter().collect();
        places.sort_by_key(|place| (place.file, place.range.start, place.range.end));
        places
    }

    /// All, ordered by file, place and code, each once: two that say the same of one place are one.
    pub fn sorted(&self) -> Vec<&Diagnostic> {
        let place = |d: &Diagnostic| d.primary.as_ref().map(|l| (l.place.file, l.place.range.start, l.place.range.end));
        let mut seen = BTreeSet::new();
        let mut all: Vec<&Diagnostic> =
            self.list.iter().filter(|d| seen.insert((place(d), d.code, d.message.as_str()))).collect();
        all.sort_by_key(|d| (place(d), d.code));
        all
    }

    /// Whether any is an error.
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|d| d.severity == Severity::Error)
    }

    /// The worst severity; `None` where there is no diagnostic.
    pub fn worst(&self) -> Option<Severity> {
        self.list.iter().map(|d| d.severity).max()
    }

    /// How many there are of a severity, each counted once.
    pub fn count(&self, severity: Severity) -> usize {
        self.sorted().iter().filter(|d| d.severity == severity).count()
    }
}
