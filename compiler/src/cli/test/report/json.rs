//! The results as JSON lines.

use std::time::Duration;

use serde_json::{Value, json};

use super::Counts;
use crate::test::diff::Difference;
use crate::test::outcome::{FailedAssertion, TestOutcome};

/// Renders one object for each test, and one with the numbers.
pub(in super::super) fn render(outcomes: &[TestOutcome], took: Duration) -> String {
    let Counts { tests, assertions, failed, errors } = Counts::new(outcomes);
    let summary = json!({
        "tests": tests, "assertions": assertions, "failed": failed, "errors": errors, "duration_ms": milliseconds(took),
    });
    let lines = outcomes.iter().map(test).chain([json!({ "summary": summary })]);
    let lines: Vec<String> = lines.map(|line| line.to_string()).collect();
    lines.join("\n") + "\n"
}

fn test(outcome: &TestOutcome) -> Value {
    json!({
        "test": outcome.shown_name(),
        "file": outcome.file,
        "line": outcome.line,
        "verdict": outcome.verdict().name(),
        "assertions": outcome.assertions,
        "failures": outcome.failures.iter().map(failure).collect::<Vec<_>>(),
        "error": outcome.error,
        "calls": outcome.calls,
        "duration_ms": milliseconds(outcome.duration),
    })
}

fn failure(failure: &FailedAssertion) -> Value {
    let difference = |found: &Difference| json!({ "path": found.path, "expected": found.expected, "actual": found.actual });
    json!({
        "line": failure.line,
        "form": failure.form,
        "context": failure.context,
        "message": failure.message,
        "expected": failure.expected,
        "actual": failure.actual,
        "differences": failure.differences.iter().map(difference).collect::<Vec<_>>(),
    })
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
