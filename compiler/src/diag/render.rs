//! Renders diagnostics as text: for people in full or one line each; for tools as JSON lines, SARIF, or annotations of GitHub.
//!
//! The order is that of [`Diagnostics::sorted`]. The same diagnostics always produce the same bytes.

mod excerpt;
mod full;
mod github;
mod json;
mod sarif;
mod short;

pub use full::full;
pub use github::{escape_data, escape_property, github};
pub use json::{Finding, json_lines};
pub use sarif::sarif;
pub use short::short;

use super::{Diagnostics, Severity};

/// Whether text contains terminal colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Text without escape sequences.
    Plain,
    /// Text with ANSI escape sequences.
    Color,
}

impl Style {
    /// Renders a word in the colour of a severity.
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

/// Returns a summary such as `2 errors, 1 warning` in the colour of the worst severity, or `None` if there is nothing to count.
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
