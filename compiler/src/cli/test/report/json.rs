//! The results as JSON lines. The types are those of `ptc-compile schema tests`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Counts, Results};
use crate::test::coverage::{ProgramCoverage, Ratio};
use crate::test::diff::Difference;
use crate::test::outcome::{CheckOutcome, FailedAssertion, Finding, ReplacedAnswer, TestOutcome, UntriedFaults};

/// A test.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Test")]
pub(crate) struct TestLine<'a> {
    /// The name as `namespace/test`, or the path of a file that cannot be used.
    test: &'a str,
    /// The file.
    file: &'a str,
    /// The line of the test.
    line: usize,
    /// `passed`, `failed`, `error`, or `not_run` after a signal
    verdict: &'a str,
    /// The number of assertions.
    assertions: usize,
    failures: Vec<FailureLine<'a>>,
    /// Why the test could not be run to its end.
    error: Option<&'a str>,
    /// The calls that were made.
    calls: &'a [String],
    duration_ms: u64,
}

/// An assertion that failed.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Failure")]
struct FailureLine<'a> {
    line: usize,
    form: &'a str,
    context: &'a [String],
    message: Option<&'a str>,
    expected: &'a str,
    actual: &'a str,
    differences: Vec<DifferenceLine<'a>>,
}

/// A difference between two values.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Difference")]
struct DifferenceLine<'a> {
    /// The path as for `get-in`.
    path: &'a str,
    expected: Option<&'a str>,
    actual: Option<&'a str>,
}

/// A program that was run with other answers.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Check")]
pub(crate) struct CheckLine<'a> {
    /// `faults` or `properties`
    check: &'a str,
    /// The program with its arguments.
    program: &'a str,
    /// The path of the program.
    file: &'a str,
    /// The file of the first test that runs the program.
    test_file: &'a str,
    /// The line of that test.
    test_line: usize,
    /// `passed`, `failed` or `skipped`
    verdict: &'a str,
    /// The number of runs, without those that make an answer smaller.
    runs: usize,
    /// The number of runs that made a call whose answer is not known.
    unanswered: usize,
    /// The number of changed answers that were left out, since there were too many.
    left_out: usize,
    /// The faults that the recorded answers do not permit to try.
    untried: Vec<UntriedLine<'a>>,
    /// Why the program was not checked.
    skipped: Option<&'a str>,
    findings: Vec<FindingLine<'a>>,
    duration_ms: u64,
}

/// The faults of a tool that were not tried, because its recorded answers fail or have empty lists whose items no schema describes.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Untried")]
struct UntriedLine<'a> {
    upstream: &'a str,
    tool: &'a str,
    /// The names of the faults.
    faults: &'a [&'a str],
}

/// A rule that a program breaks with other answers.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Finding")]
struct FindingLine<'a> {
    /// `error`, `failed_call`, `output_schema`, `unchecked_call`, `unread_page` or `empty_failure`
    rule: &'a str,
    /// What the program did.
    message: &'a str,
    /// The line of the form that failed, from 1 on.
    line: Option<usize>,
    /// Its column, from 1 on.
    column: Option<usize>,
    /// The name of the fault, or seed and run.
    cause: &'a str,
    /// The difference from the recorded answer.
    change: &'a str,
    /// The smallest answers that were found.
    answers: Vec<AnswerLine<'a>>,
    /// The number of other answers with which the program breaks the same rule at the same form.
    similar: usize,
}

/// An answer that a call got in place of the recorded one.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Answer")]
struct AnswerLine<'a> {
    upstream: &'a str,
    tool: &'a str,
    /// The arguments as canonical JSON.
    arguments: &'a str,
    /// The number among equal requests, from 1 on.
    index: usize,
    /// The answer as text, truncated if long.
    answer: &'a str,
}

/// The coverage of a program, with `--coverage`.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Coverage")]
pub(crate) struct CoverageLine<'a> {
    /// The path of the program.
    coverage: &'a str,
    forms: RatioLine,
    branches: RatioLine,
    /// The lines that have forms which were not evaluated.
    uncovered_lines: &'a [usize],
    /// The lines of the branches that have arms which were not evaluated.
    partial_branches: &'a [usize],
}

/// The covered part of a program.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Ratio")]
struct RatioLine {
    covered: usize,
    total: usize,
}

/// The last line.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Summary {
    summary: Numbers,
}

/// The numbers of all results.
#[derive(Serialize, JsonSchema)]
struct Numbers {
    tests: usize,
    assertions: usize,
    failed: usize,
    errors: usize,
    /// The tests that were not run to their end because of a signal.
    not_run: usize,
    /// The programs that were run with other answers.
    checks: usize,
    findings: usize,
    duration_ms: u64,
}

/// Renders one object for each test, each check and each covered program, and one with the numbers.
pub(in super::super) fn render(results: &Results<'_>) -> String {
    let Counts { tests, assertions, failed, errors, not_run } = Counts::new(results.tests);
    let findings = results.checks.iter().map(|check| check.findings.len()).sum();
    let duration_ms = milliseconds(results.took);
    let checks = results.checks.len();
    let summary = Numbers { tests, assertions, failed, errors, not_run, checks, findings, duration_ms };
    let mut lines: Vec<String> = results.tests.iter().map(|outcome| line(&test(outcome))).collect();
    lines.extend(results.checks.iter().map(|outcome| line(&check(outcome))));
    lines.extend(results.coverage.unwrap_or_default().iter().map(|program| line(&coverage(program))));
    lines.push(line(&Summary { summary }));
    lines.join("\n") + "\n"
}

fn line(value: &impl Serialize) -> String {
    // The types have string keys only, so that this cannot fail.
    serde_json::to_string(value).unwrap_or_default()
}

fn test(outcome: &TestOutcome) -> TestLine<'_> {
    TestLine {
        test: outcome.shown_name(),
        file: &outcome.file,
        line: outcome.line,
        verdict: outcome.verdict().name(),
        assertions: outcome.assertions,
        failures: outcome.failures.iter().map(failure).collect(),
        error: outcome.error.as_deref(),
        calls: &outcome.calls,
        duration_ms: milliseconds(outcome.duration),
    }
}

fn failure(failure: &FailedAssertion) -> FailureLine<'_> {
    FailureLine {
        line: failure.line,
        form: &failure.form,
        context: &failure.context,
        message: failure.message.as_deref(),
        expected: &failure.expected,
        actual: &failure.actual,
        differences: failure.differences.iter().map(difference).collect(),
    }
}

fn difference(found: &Difference) -> DifferenceLine<'_> {
    DifferenceLine { path: &found.path, expected: found.expected.as_deref(), actual: found.actual.as_deref() }
}

fn check(outcome: &CheckOutcome) -> CheckLine<'_> {
    CheckLine {
        check: outcome.kind,
        program: &outcome.program,
        file: &outcome.file,
        test_file: &outcome.test_file,
        test_line: outcome.test_line,
        verdict: match (&outcome.skipped, outcome.findings.is_empty()) {
            (Some(_), _) => "skipped",
            (None, true) => "passed",
            (None, false) => "failed",
        },
        runs: outcome.runs,
        unanswered: outcome.unanswered,
        left_out: outcome.left_out,
        untried: outcome.untried.iter().map(untried).collect(),
        skipped: outcome.skipped.as_deref(),
        findings: outcome.findings.iter().map(finding).collect(),
        duration_ms: milliseconds(outcome.duration),
    }
}

fn untried(untried: &UntriedFaults) -> UntriedLine<'_> {
    UntriedLine { upstream: untried.upstream, tool: untried.tool, faults: &untried.faults }
}

fn finding(finding: &Finding) -> FindingLine<'_> {
    FindingLine {
        rule: finding.rule,
        message: &finding.message,
        line: finding.position.map(|(line, _)| line),
        column: finding.position.map(|(_, column)| column),
        cause: &finding.cause,
        change: &finding.change,
        answers: finding.answers.iter().map(answer).collect(),
        similar: finding.similar,
    }
}

fn answer(replaced: &ReplacedAnswer) -> AnswerLine<'_> {
    let ReplacedAnswer { upstream, tool, arguments, index, answer, .. } = replaced;
    AnswerLine { upstream, tool, arguments, index: *index, answer }
}

fn coverage(program: &ProgramCoverage) -> CoverageLine<'_> {
    let ratio = |Ratio { covered, total }| RatioLine { covered, total };
    CoverageLine {
        coverage: &program.file,
        forms: ratio(program.forms),
        branches: ratio(program.branches),
        uncovered_lines: &program.uncovered_lines,
        partial_branches: &program.partial_branches,
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
