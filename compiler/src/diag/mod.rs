//! Diagnostics as data, separate from their rendering.
//!
//! | module | what |
//! |---|---|
//! | [`codes`] | the registry of codes |
//! | [`pages`] | the text of `explain` for each code |
//! | [`render`] | text and JSON out of [`Diagnostics`] |
//! | [`subject`] | the upstream, tool or operation that a diagnostic is about |
//! | [`suggest`] | suggestions of similar names |
//! | [`text`] | safe display of text from outside |

pub mod codes;
pub mod pages;
pub mod render;
pub mod subject;
pub mod suggest;
pub mod text;

use std::collections::BTreeSet;

use crate::source::Span;
pub use codes::Code;
pub use subject::Subject;
pub use text::{MASK, quoted, quoted_list};

/// How severe a diagnostic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Information that may be useful.
    Note,
    /// A construct that works but is likely wrong.
    Warning,
    /// A fault that prevents a build.
    Error,
}

impl Severity {
    /// Returns the word that starts a rendered diagnostic.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// One finding about a source text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The stable code from the registry.
    pub code: Code,
    /// The severity of this finding: that of its code, or another one that the reporting module sets.
    pub severity: Severity,
    /// One sentence that describes the fault.
    pub message: String,
    /// The place of the fault; `None` for a fault without a place, such as a file that cannot be read.
    pub primary: Option<Label>,
    /// Other related places.
    pub secondary: Vec<Label>,
    /// What the user can do.
    pub hints: Vec<String>,
    /// The upstream, tool or operation that it is about.
    pub subject: Box<Subject>,
}

/// A place with a short text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// The place.
    pub place: Span,
    /// A few words shown at the caret; may be empty.
    pub text: Box<str>,
}

impl Diagnostic {
    /// Creates a diagnostic with the severity of its code.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Diagnostic {
            code,
            severity: code.severity(),
            message: message.into(),
            primary: None,
            secondary: Vec::new(),
            hints: Vec::new(),
            subject: Box::default(),
        }
    }

    /// Sets the primary place.
    #[must_use]
    pub fn at(mut self, place: Span, text: impl Into<String>) -> Self {
        self.primary = Some(Label { place, text: text.into().into_boxed_str() });
        self
    }

    /// Adds a secondary place.
    #[must_use]
    pub fn also(mut self, place: Span, text: impl Into<String>) -> Self {
        self.secondary.push(Label { place, text: text.into().into_boxed_str() });
        self
    }

    /// Sets what the diagnostic is about.
    #[must_use]
    pub fn about(mut self, subject: Subject) -> Self {
        self.subject = Box::new(subject);
        self
    }

    /// Whether this is a note of a code at a place inside `within`.
    fn is_note_of(&self, code: Code, within: &Span) -> bool {
        let lies_within = |label: &Label| {
            let Span { file, range } = &label.place;
            *file == within.file && range.start >= within.range.start && range.end <= within.range.end
        };
        self.code == code && self.severity == Severity::Note && self.primary.as_ref().is_some_and(lies_within)
    }

    /// Applies `translate` to each place.
    pub(crate) fn translate(&mut self, translate: impl Fn(&mut Span)) {
        self.primary.iter_mut().chain(&mut self.secondary).for_each(|label| translate(&mut label.place));
    }

    /// Adds a sentence that says what to do. `--format short` prints only the first.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

/// All diagnostics of a run, in the order found.
#[derive(Debug, Clone, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    masked: Vec<Span>,
    silenced: Vec<(Code, Span)>,
    areas: Vec<(String, Span)>,
}

impl Diagnostics {
    /// Adds a diagnostic.
    pub fn push(&mut self, mut diagnostic: Diagnostic) {
        self.assign(&mut diagnostic);
        if !self.silenced.iter().any(|(code, place)| diagnostic.is_note_of(*code, place)) {
            self.list.push(diagnostic);
        }
    }

    /// Marks a place that belongs to an upstream: its entry in the config, or its document. Diagnostics that point there are about
    /// this upstream, those found so far and those found later.
    pub fn belongs(&mut self, upstream: &str, place: Span) {
        self.areas.push((upstream.to_owned(), place));
        let mut list = std::mem::take(&mut self.list);
        for diagnostic in &mut list {
            self.assign(diagnostic);
        }
        self.list = list;
    }

    /// Sets the upstream of a diagnostic by its primary place.
    fn assign(&self, diagnostic: &mut Diagnostic) {
        let Some(Label { place, .. }) = diagnostic.primary.as_ref().filter(|_| diagnostic.subject.upstream.is_none()) else {
            return;
        };
        let area = self.areas.iter().find(|(_, area)| area.file == place.file && area.range.contains(&place.range.start));
        diagnostic.subject.upstream = area.map(|(upstream, _)| upstream.clone());
    }

    /// Drops the notes with a code that point into a place, those found so far and those found later.
    pub fn silence(&mut self, code: Code, place: Span) {
        self.list.retain(|diagnostic| !diagnostic.is_note_of(code, &place));
        self.silenced.push((code, place));
    }

    /// Whether findings with this code at this place are silenced.
    pub fn is_silenced(&self, code: Code, place: &Span) -> bool {
        let note = Diagnostic::new(code, "").at(place.clone(), "");
        self.silenced.iter().any(|(code, area)| note.is_note_of(*code, area))
    }

    /// Adds all diagnostics and concealed places of another list.
    pub fn append(&mut self, other: Diagnostics) {
        for (code, place) in other.silenced {
            self.silence(code, place);
        }
        for (upstream, place) in other.areas {
            self.belongs(&upstream, place);
        }
        self.extend(other.list);
        self.masked.extend(other.masked);
    }

    /// Adds several diagnostics.
    pub fn extend(&mut self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        for diagnostic in diagnostics {
            self.push(diagnostic);
        }
    }

    /// Returns the diagnostics in the order found, to change them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Diagnostic> {
        self.list.iter_mut()
    }

    /// Returns the diagnostics with `translate` applied to each place.
    pub(crate) fn translated(mut self, translate: impl Fn(&mut Span)) -> Vec<Diagnostic> {
        self.list.iter_mut().for_each(|diagnostic| diagnostic.translate(&translate));
        self.list
    }

    /// Whether there is a diagnostic with this code at exactly this place.
    pub fn has_at(&self, code: Code, place: &Span) -> bool {
        self.list.iter().any(|found| found.code == code && found.primary.as_ref().is_some_and(|label| label.place == *place))
    }

    /// Removes all diagnostics with a code, for callers to which they do not apply.
    pub fn forget(&mut self, code: Code) {
        self.list.retain(|diagnostic| diagnostic.code != code);
    }

    /// Marks a place that holds a secret. No rendering shows its text, whichever diagnostic points near it.
    pub fn mask(&mut self, place: Span) {
        self.masked.push(place);
    }

    /// Whether a part of a place may not be shown.
    pub fn is_masked(&self, place: &Span) -> bool {
        let overlaps = |masked: &Span| masked.range.start < place.range.end && place.range.start < masked.range.end;
        self.masked.iter().any(|masked| masked.file == place.file && overlaps(masked))
    }

    /// Returns the places that no rendering may show, in order.
    pub fn masked(&self) -> Vec<&Span> {
        let mut places: Vec<&Span> = self.masked.iter().collect();
        places.sort_by_key(|place| (place.file, place.range.start, place.range.end));
        places
    }

    /// Returns all diagnostics ordered by file, place, tool and code. Diagnostics with the same place, code and message appear once.
    pub fn sorted(&self) -> Vec<&Diagnostic> {
        let place = |d: &Diagnostic| d.primary.as_ref().map(|l| (l.place.file, l.place.range.start, l.place.range.end));
        let mut seen = BTreeSet::new();
        let mut all: Vec<&Diagnostic> =
            self.list.iter().filter(|d| seen.insert((place(d), d.code, d.message.as_str()))).collect();
        all.sort_by_key(|d| (place(d), d.subject.tool.as_deref(), d.code));
        all
    }

    /// Whether any is an error.
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|d| d.severity == Severity::Error)
    }

    /// Returns the highest severity, or `None` if there are no diagnostics.
    pub fn worst(&self) -> Option<Severity> {
        self.list.iter().map(|d| d.severity).max()
    }

    /// Returns the number of distinct diagnostics with a severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.sorted().iter().filter(|d| d.severity == severity).count()
    }
}
