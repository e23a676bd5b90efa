//! The formats of the results.

pub(super) mod coverage;
pub(super) mod github;
pub(crate) mod json;
pub(super) mod junit;
pub(super) mod lcov;
pub(super) mod text;

use std::fmt::Write as _;
use std::time::Duration;

use super::checks::CheckKind;
use super::coverage::ProgramCoverage;
use super::outcome::{CheckOutcome, TestOutcome, UntriedFaults, Verdict};
use crate::numbers::count;

/// What is reported.
pub(super) struct Results<'a> {
    pub(super) tests: &'a [TestOutcome],
    /// The runs of programs with other answers.
    pub(super) checks: &'a [CheckOutcome],
    /// The coverage of the programs, with `--coverage`.
    pub(super) coverage: Option<&'a [ProgramCoverage]>,
    /// The time that all took.
    pub(super) took: Duration,
}

/// The numbers of tests and assertions.
struct Counts {
    tests: usize,
    assertions: usize,
    failed: usize,
    errors: usize,
    /// The tests that a signal left out.
    not_run: usize,
}

/// Why a test or a check was not run after a signal.
pub(super) const INTERRUPTED: &str = "the run was interrupted";

impl Counts {
    fn new(outcomes: &[TestOutcome]) -> Counts {
        let with = |verdict| outcomes.iter().filter(|outcome| outcome.verdict() == verdict).count();
        Counts {
            tests: outcomes.iter().filter(|outcome| !outcome.name.is_empty()).count(),
            assertions: outcomes.iter().map(|outcome| outcome.assertions).sum(),
            failed: with(Verdict::Failed),
            errors: with(Verdict::Error),
            not_run: with(Verdict::NotRun),
        }
    }
}

/// Returns the failures of a test with their lines: the failed assertions, and the error that ended it.
fn problems(outcome: &TestOutcome) -> Vec<(usize, String)> {
    let failures = outcome.failures.iter().map(|failure| {
        let mut lines = vec![failure.form.clone()];
        lines.extend(failure.lines());
        (failure.line, lines)
    });
    let error = outcome.error.iter().map(|error| (outcome.line, error.lines().map(str::to_owned).collect()));
    let mut problems: Vec<(usize, Vec<String>)> = failures.chain(error).collect();
    if let (Some((_, lines)), false) = (problems.last_mut(), outcome.calls.is_empty()) {
        lines.push("calls:".to_owned());
        lines.extend(outcome.calls.iter().map(|call| format!("  {call}")));
    }
    problems.into_iter().map(|(line, lines)| (line, lines.join("\n"))).collect()
}

/// Returns the findings of a check with the line and the column, and with their text.
fn findings(check: &CheckOutcome) -> impl Iterator<Item = (Option<(usize, usize)>, String)> {
    check.findings.iter().map(|finding| (finding.position, finding.lines().join("\n")))
}

/// Returns the runs of a check as a sentence.
fn extent(check: &CheckOutcome) -> String {
    if let Some(reason) = &check.skipped {
        return format!("{}: not checked: {reason}", check.shown_name());
    }
    let mut text = format!("{}: {}, {}", check.shown_name(), count(check.runs, "run"), count(check.findings.len(), "finding"));
    if check.unanswered > 0 {
        text.push_str("; no answer to a call in ");
        text.push_str(&count(check.unanswered, "run"));
    }
    if check.left_out > 0 {
        text.push_str("; left out: ");
        text.push_str(&count(check.left_out, "answer"));
    }
    if check.kind == CheckKind::Faults.name() && check.runs == 0 && check.untried.is_empty() {
        text.push_str("; no call has a recorded answer that can have these faults");
    }
    for UntriedFaults { upstream, tool, faults } in &check.untried {
        let _ = write!(text, "; not tried with the recorded answers of {upstream}/{tool}: {}", faults.join(", "));
    }
    text
}
