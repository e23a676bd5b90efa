//! The results for people: the failed tests, and a line with the numbers.

use std::fmt::Write;

use ptc_compiler::diag::text::on_lines;

use super::{Counts, Results, coverage, extent, findings, problems};
use crate::numbers::count;
use crate::test::outcome::Verdict;

/// Renders the results.
pub(in super::super) fn render(results: &Results<'_>) -> String {
    let Results { tests: outcomes, checks, .. } = *results;
    let mut out = String::new();
    for outcome in outcomes {
        let word = match outcome.verdict() {
            Verdict::Passed | Verdict::NotRun => continue,
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
    for check in checks {
        for (position, text) in findings(check) {
            let place = position.map_or_else(String::new, |(line, column)| format!(":{line}:{column}"));
            let _ = writeln!(out, "FINDING {} ({}{place})", check.shown_name(), check.file);
            for line in text.lines() {
                let _ = writeln!(out, "  {line}");
            }
            out.push('\n');
        }
    }
    // Values and failures have texts of upstreams.
    on_lines(&out).into_owned() + &numbers(results)
}

/// Renders the numbers: a line for each check, a line for all tests, and the table of the coverage.
pub(in super::super) fn numbers(results: &Results<'_>) -> String {
    let Results { tests: outcomes, checks, coverage, took } = *results;
    let mut out = String::new();
    for check in checks {
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(out, "{}", extent(check));
    }
    let Counts { tests, assertions, failed, errors, not_run } = Counts::new(outcomes);
    let (tests, assertions) = (count(tests, "test"), count(assertions, "assertion"));
    let _ = write!(out, "{tests}, {assertions}: {failed} failed, {}", count(errors, "error"));
    if not_run > 0 {
        let _ = write!(out, ", {not_run} not run");
    }
    if !checks.is_empty() {
        let findings = checks.iter().map(|check| check.findings.len()).sum();
        let _ = write!(out, ", {}", count(findings, "finding"));
    }
    let _ = writeln!(out, " ({:.2} s)", took.as_secs_f64());
    if let Some(coverage) = coverage {
        let _ = write!(out, "\n{}", coverage::table(coverage));
    }
    on_lines(&out).into_owned()
}
