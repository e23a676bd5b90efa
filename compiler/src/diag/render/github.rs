//! The rendering for GitHub workflows: annotations of the changed files.

use std::fmt::Write;

use crate::diag::text::on_one_line;
use crate::diag::{Diagnostics, Severity};
use crate::source::Sources;

/// Renders one workflow command for each diagnostic: `::error file=…,line=…::message`.
pub fn github(sources: &Sources, diagnostics: &Diagnostics) -> String {
    let mut out = String::new();
    for diagnostic in diagnostics.sorted() {
        let command = match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "notice",
        };
        // Writing to a string cannot fail, here and below.
        let _ = write!(out, "::{command} ");
        if let Some(label) = &diagnostic.primary {
            let (line, column) = sources.position(label.place.file, label.place.range.start);
            let (end_line, end_column) = sources.position(label.place.file, label.place.range.end);
            let path = escape_property(&on_one_line(&sources.get(label.place.file).path));
            let _ = write!(out, "file={path},line={line},endLine={end_line},");
            // GitHub interprets columns only within one line.
            if line == end_line {
                let _ = write!(out, "col={column},endColumn={end_column},");
            }
        }
        let mut text = on_one_line(&diagnostic.message).into_owned();
        for hint in &diagnostic.hints {
            text.push_str("\nhelp: ");
            text.push_str(&on_one_line(hint));
        }
        let _ = writeln!(out, "title={}::{}", diagnostic.code.name(), escape_data(&text));
    }
    out
}

/// Escapes the text of a workflow command.
pub fn escape_data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes the value of a property of a workflow command.
pub fn escape_property(text: &str) -> String {
    escape_data(text).replace(':', "%3A").replace(',', "%2C")
}
