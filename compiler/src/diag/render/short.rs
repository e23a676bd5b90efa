//! The rendering for editors and logs: one line for each diagnostic.

use std::fmt::Write;

use super::Style;
use crate::diag::Diagnostics;
use crate::diag::text::on_one_line;
use crate::source::Sources;

/// Renders each diagnostic on one line: `path:line:column: error[PTC0201]: message (first hint)`.
pub fn short(sources: &Sources, diagnostics: &Diagnostics, style: Style) -> String {
    let mut out = String::new();
    for diagnostic in diagnostics.sorted() {
        if let Some(label) = &diagnostic.primary {
            let (line, column) = sources.position(label.place.file, label.place.range.start);
            // Writing to a string cannot fail, here and below.
            let _ = write!(out, "{}:{line}:{column}: ", on_one_line(&sources.get(label.place.file).path));
        }
        let head = format!("{}[{}]:", diagnostic.severity.name(), diagnostic.code.name());
        out.push_str(&style.paint(diagnostic.severity, &head));
        out.push(' ');
        out.push_str(&on_one_line(&diagnostic.message));
        if let Some(hint) = diagnostic.hints.first() {
            let _ = write!(out, " ({})", on_one_line(hint));
        }
        out.push('\n');
    }
    out
}
