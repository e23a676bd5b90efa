//! The results for people: the failed tests, and a line with the numbers.

use std::fmt::Write;
use std::time::Duration;

use super::{Counts, problems};
use crate::test::outcome::{TestOutcome, Verdict};

/// Renders the results.
pub(in super::super) fn render(outcomes: &[TestOutcome], took: Duration) -> String {
    let mut out = String::new();
    for outcome in outcomes {
        let word = match outcome.verdict() {
            Verdict::Passed => continue,
            Verdict::Failed => "FAIL",
            Verdict::Error => "ERROR",
        };
        for (line, text) in problems(outcome) {
            // Writing to a string cannot fail, here and below.
            let _ = writeln!(out, "{word} {} ({}:{line})", outcome.shown_name(), outcome.file);
            for line in text.lines() {
                let _ = writeln!(out, "  {line}");
            }
            out.push('\n');
        }
    }
    let Counts { tests, assertions, failed, errors } = Counts::new(outcomes);
    let plural = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let (tests, assertions) = (plural(tests, "test"), plural(assertions, "assertion"));
    let _ = writeln!(out, "{tests}, {assertions}: {failed} failed, {} ({:.2} s)", plural(errors, "error"), took.as_secs_f64());
    out
}
