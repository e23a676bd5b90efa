//! The formats of the results.

pub(super) mod github;
pub(super) mod json;
pub(super) mod junit;
pub(super) mod text;

use super::outcome::{TestOutcome, Verdict};

/// The numbers of tests and assertions.
struct Counts {
    tests: usize,
    assertions: usize,
    failed: usize,
    errors: usize,
}

impl Counts {
    fn new(outcomes: &[TestOutcome]) -> Counts {
        let count = |verdict| outcomes.iter().filter(|outcome| outcome.verdict() == verdict).count();
        Counts {
            tests: outcomes.iter().filter(|outcome| !outcome.name.is_empty()).count(),
            assertions: outcomes.iter().map(|outcome| outcome.assertions).sum(),
            failed: count(Verdict::Failed),
            errors: count(Verdict::Error),
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
