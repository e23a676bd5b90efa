//! The results as workflow commands of GitHub.

use std::fmt::Write;

use ptc_compiler::diag::render::{escape_data, escape_property};

use super::problems;
use crate::test::outcome::TestOutcome;

/// Renders one annotation for each failed assertion and each error.
pub(in super::super) fn render(outcomes: &[TestOutcome]) -> String {
    let mut out = String::new();
    for outcome in outcomes {
        for (line, text) in problems(outcome) {
            let (file, title) = (escape_property(&outcome.file), escape_property(outcome.shown_name()));
            // Writing to a string cannot fail.
            let _ = writeln!(out, "::error file={file},line={line},title={title}::{}", escape_data(&text));
        }
    }
    out
}
