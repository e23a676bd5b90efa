//! Diagnostics as text: for people in full or one line each; for tools as JSON lines, SARIF, or GitHub's annotations.
//!
//! Order is that of [`Diagnostics::sorted`]; the same diagnostics give the same bytes.

mod excerpt;
mod full;
mod github;
mod json;
mod sarif;
mod short;

pub use full::full;
pub use github::github;
pub use json::json_lines;
pub use sarif::sarif;
pub use short::short;

use super::{Diagnostics, Severity};

/// Whether text carries terminal colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Bare text.
    Plain,
    /// ANSI escape sequences.
    Color,
}

impl Style {
    /// A word in the colour of a severity.
    pub fn paint(self, severity: Severity, word: &str) -> String {
        use annotate_snippets::renderer as defaults;
        let style = match severity {
            Severity::Error => defaults::DEFAULT_ERROR_STYLE,
            Severity::Warning => defaults::DEFAULT_WARNING_STYLE,
            Severity::Note => defaults::DEFAULT_NOTE_STYLE,
        };
        match self {
            Style::Plain => word.to_owned(),
            Style::Color => format!("{style}{word}{style:#}"),
        }
    }
}

/// `2 errors, 1 warning`, in the colour of the worst; `None` where there is nothing to count.
pub fn summary(diagnostics: &Diagnostics, style: Style) -> Option<String> {
    let worst = diagnostics.worst()?;
    let counts: Vec<String> = [Severity::Error, Severity::Warning, Severity::Note]
        .into_iter()
        .map(|severity| (diagnostics.count(severity), severity.name()))
        .filter(|(count, _)| *count > 0)
        .map(|(count, name)| format!("{count} {name}{}", if count == 1 { "" } else { "s" }))
        .collect();
    Some(format!("{} {}", style.paint(worst, "found"), counts.join(", ")))
}
