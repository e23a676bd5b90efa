//! The results as workflow commands of GitHub.

use std::fmt::Write;

use ptc_compiler::diag::render::{escape_data, escape_property};

use super::{Results, findings, problems};

/// Renders one annotation for each failed assertion, each error and each finding.
pub(in super::super) fn render(results: &Results<'_>) -> String {
    let mut out = String::new();
    for outcome in results.tests {
        for (line, text) in problems(outcome) {
            let (file, title) = (escape_property(&outcome.file), escape_property(outcome.shown_name()));
            // Writing to a string cannot fail.
            let _ = writeln!(out, "::error file={file},line={line},title={title}::{}", escape_data(&text));
        }
    }
    for check in results.checks {
        for (position, text) in findings(check) {
            let (file, title, (line, column)) = (escape_property(&check.file), check.shown_name(), position.unwrap_or((1, 1)));
            let (title, text) = (escape_property(&title), escape_data(&text));
            let _ = writeln!(out, "::error file={file},line={line},col={column},title={title}::{text}");
        }
    }
    out
}
