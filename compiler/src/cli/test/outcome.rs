//! The results of tests.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use super::diff::{Difference, differences};
use super::file::{FileError, Test, TestFile};
use super::injection::CallKey;
use super::program_run::ProgramRun;
use super::shortened;

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
    /// The programs that it ran.
    pub(super) programs: Vec<ProgramRun>,
    /// The time that it took.
    pub(super) duration: Duration,
    /// Whether a signal ended the run before this test ended. The test then has no other results.
    pub(super) is_interrupted: bool,
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

/// The result of running one program with other answers.
#[derive(Debug, Clone, Default)]
pub(super) struct CheckOutcome {
    /// The name of the check.
    pub(super) kind: &'static str,
    /// The program with its arguments.
    pub(super) program: String,
    /// The path of the program.
    pub(super) file: String,
    /// The file of the first test that runs the program.
    pub(super) test_file: String,
    /// The line of that test.
    pub(super) test_line: usize,
    /// The number of runs, without those that make an answer smaller.
    pub(super) runs: usize,
    /// The number of runs that made a call whose answer is not known.
    pub(super) unanswered: usize,
    /// The number of changed answers that were left out, since there were too many.
    pub(super) left_out: usize,
    /// The faults that the recorded answers do not permit to try.
    pub(super) untried: Vec<UntriedFaults>,
    /// Why the program was not checked.
    pub(super) skipped: Option<String>,
    pub(super) findings: Vec<Finding>,
    /// The time that it took.
    pub(super) duration: Duration,
}

/// The faults of a tool that were not tried, because its recorded answers fail or have empty lists whose items no schema describes.
#[derive(Debug, Clone)]
pub(super) struct UntriedFaults {
    pub(super) upstream: &'static str,
    pub(super) tool: &'static str,
    /// The names of the faults.
    pub(super) faults: Vec<&'static str>,
}

/// A rule that a program breaks with other answers.
#[derive(Debug, Clone)]
pub(super) struct Finding {
    /// The name of the rule.
    pub(super) rule: &'static str,
    /// What the program did.
    pub(super) message: String,
    /// Line and column of the form that failed.
    pub(super) position: Option<(usize, usize)>,
    /// The name of the fault, or seed and run.
    pub(super) cause: String,
    /// The difference from the recorded answer.
    pub(super) change: String,
    /// The answers that are not the recorded ones.
    pub(super) answers: Vec<ReplacedAnswer>,
    /// The number of other answers with which the program breaks the same rule at the same form.
    pub(super) similar: usize,
}

/// An answer that a call got in place of the recorded one.
#[derive(Debug, Clone)]
pub(super) struct ReplacedAnswer {
    pub(super) upstream: &'static str,
    pub(super) tool: &'static str,
    /// The arguments as canonical JSON.
    pub(super) arguments: String,
    /// The number among equal requests, from 1 on.
    pub(super) index: usize,
    /// The answer as text.
    pub(super) answer: String,
    /// The call in words.
    pub(super) call: String,
}

impl ReplacedAnswer {
    pub(super) fn new(key: &CallKey, answer: &str) -> ReplacedAnswer {
        let call = shortened(&key.to_string());
        let CallKey { upstream, tool, request, index } = key;
        ReplacedAnswer { upstream, tool, arguments: request.clone(), index: *index, answer: shortened(answer), call }
    }
}

impl CheckOutcome {
    /// Merges findings that say the same of several calls of one form, such as those of each item of a list. `has_one_form`: whether the
    /// program has one form that calls a tool.
    pub(super) fn merge_findings(&mut self, has_one_form: &dyn Fn((&str, &str)) -> bool) {
        let mut merged: Vec<Finding> = Vec::new();
        for finding in std::mem::take(&mut self.findings) {
            match merged.iter_mut().find(|known| known.is_like(&finding, has_one_form)) {
                Some(known) => known.similar += 1 + finding.similar,
                None => merged.push(finding),
            }
        }
        self.findings = merged;
    }

    /// Returns the name for reports: `due.clj with faults`.
    pub(super) fn shown_name(&self) -> String {
        format!("{} with {}", self.program, self.kind)
    }
}

impl Finding {
    /// Whether both are about the same rule, fault and form, with an answer of the same tool. A finding without a position is about the form
    /// of the call.
    fn is_like(&self, other: &Finding, has_one_form: &dyn Fn((&str, &str)) -> bool) -> bool {
        let tool = |finding: &Finding| finding.answers.first().map(|answer| (answer.upstream, answer.tool));
        let is_same =
            (self.rule, &self.message, self.position, &self.cause) == (other.rule, &other.message, other.position, &other.cause);
        is_same && tool(self) == tool(other) && (self.position.is_some() || tool(self).is_some_and(has_one_form))
    }

    /// Returns the lines that describe the finding.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("{}: {}", self.rule, self.message), format!("{}: {}", self.cause, self.change)];
        for answer in &self.answers {
            lines.push(format!("call: {}", answer.call));
            lines.push(format!("answer: {}", answer.answer));
        }
        match self.similar {
            0 => {}
            1 => lines.push("1 other answer leads to the same".to_owned()),
            similar => lines.push(format!("{similar} other answers lead to the same")),
        }
        lines
    }
}

/// The verdict about a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Passed,
    Failed,
    Error,
    NotRun,
}

impl Verdict {
    /// Returns the word in reports.
    pub(super) fn name(self) -> &'static str {
        match self {
            Verdict::Passed => "passed",
            Verdict::Failed => "failed",
            Verdict::Error => "error",
            Verdict::NotRun => "not_run",
        }
    }
}

impl TestOutcome {
    /// Creates the result of a file that cannot be used.
    pub(super) fn of_file(file: &str, line: usize, message: String) -> TestOutcome {
        TestOutcome { file: file.to_owned(), line, error: Some(message), ..TestOutcome::default() }
    }

    /// Creates the result of a test that cannot be run, while other tests of its file can be.
    pub(super) fn of_test(file: &TestFile, test: &Test, error: &FileError) -> TestOutcome {
        let error = format!("{}\n at line {}", error.message, error.line);
        TestOutcome { name: file.full_name(&test.name), ..TestOutcome::of_file(&file.path, test.line, error) }
    }

    /// Returns the verdict.
    pub(super) fn verdict(&self) -> Verdict {
        match (&self.error, self.failures.is_empty()) {
            _ if self.is_interrupted => Verdict::NotRun,
            (Some(_), _) => Verdict::Error,
            (None, false) => Verdict::Failed,
            (None, true) => Verdict::Passed,
        }
    }

    /// Returns the namespace and the name in it. For a file that cannot be used, they are its name without its end, and its path.
    pub(super) fn class_and_name(&self) -> (&str, &str) {
        let stem = Path::new(&self.file).file_stem().and_then(OsStr::to_str).unwrap_or(&self.file);
        if self.name.is_empty() { (stem, &self.file) } else { self.name.split_once('/').unwrap_or((stem, &self.name)) }
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
