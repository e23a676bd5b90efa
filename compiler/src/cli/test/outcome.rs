//! The results of tests.

use std::time::Duration;

use super::diff::{Difference, differences};

/// The result of one test.
#[derive(Debug, Clone, Default)]
pub(super) struct TestOutcome {
    /// The path of the file.
    pub(super) file: String,
    /// The name as `namespace/test`. Empty for a file that cannot be used.
    pub(super) name: String,
    /// The line of the test.
    pub(super) line: usize,
    /// The number of assertions.
    pub(super) assertions: usize,
    /// The assertions that failed.
    pub(super) failures: Vec<FailedAssertion>,
    /// Why the test could not be run to its end.
    pub(super) error: Option<String>,
    /// The calls that were made, such as `notes/read_note {"name":"watchlist"}: ok`.
    pub(super) calls: Vec<String>,
    /// The time that it took.
    pub(super) duration: Duration,
}

/// An assertion that failed.
#[derive(Debug, Clone)]
pub(super) struct FailedAssertion {
    /// The line of the assertion.
    pub(super) line: usize,
    /// The text of the assertion.
    pub(super) form: String,
    /// The texts of the `testing` around it.
    pub(super) context: Vec<String>,
    /// The message that the test gives.
    pub(super) message: Option<String>,
    /// The expected value, or the form that should be true.
    pub(super) expected: String,
    /// The actual value.
    pub(super) actual: String,
    /// The differences between the values.
    pub(super) differences: Vec<Difference>,
}

/// The verdict about a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Passed,
    Failed,
    Error,
}

impl Verdict {
    /// Returns the word in reports.
    pub(super) fn name(self) -> &'static str {
        match self {
            Verdict::Passed => "passed",
            Verdict::Failed => "failed",
            Verdict::Error => "error",
        }
    }
}

impl TestOutcome {
    /// Creates the result of a file that cannot be used.
    pub(super) fn of_file(file: &str, line: usize, message: String) -> TestOutcome {
        TestOutcome { file: file.to_owned(), line, error: Some(message), ..TestOutcome::default() }
    }

    /// Returns the verdict.
    pub(super) fn verdict(&self) -> Verdict {
        match (&self.error, self.failures.is_empty()) {
            (Some(_), _) => Verdict::Error,
            (None, false) => Verdict::Failed,
            (None, true) => Verdict::Passed,
        }
    }

    /// Returns the name for reports.
    pub(super) fn shown_name(&self) -> &str {
        if self.name.is_empty() { &self.file } else { &self.name }
    }
}

impl FailedAssertion {
    /// Adds the differences between the values.
    pub(super) fn compared(mut self) -> FailedAssertion {
        self.differences = differences(&self.expected, &self.actual);
        self
    }

    /// Returns the lines that describe the failure.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.context.is_empty() {
            lines.push(self.context.join(" › "));
        }
        lines.extend(self.message.clone());
        lines.push(format!("expected: {}", self.expected));
        lines.push(format!("  actual: {}", self.actual));
        for Difference { path, expected, actual } in &self.differences {
            lines.push(match (expected, actual) {
                (Some(expected), Some(actual)) => format!("at {path}: expected {expected}, got {actual}"),
                (Some(expected), None) => format!("at {path}: {expected} is missing"),
                (None, actual) => format!("at {path}: {} is not expected", actual.as_deref().unwrap_or("nil")),
            });
        }
        lines
    }
}
