//! The results as JUnit XML, in the form that Jenkins and GitLab read. The elements and attributes are those of `junit-10.xsd` of the
//! xUnit plugin of Jenkins, and `file` and `line` of a case.

use std::fmt::{self, Write};
use std::ops::AddAssign;

use super::{Counts, INTERRUPTED, Results, findings, problems};
use crate::test::outcome::{CheckOutcome, TestOutcome, Verdict};

/// The numbers of a suite. A file that cannot be used is a case.
#[derive(Debug, Default, Clone, Copy)]
struct Numbers {
    tests: usize,
    failures: usize,
    errors: usize,
    skipped: usize,
    seconds: f64,
}

impl Numbers {
    fn of_tests(suite: &[TestOutcome]) -> Numbers {
        let Counts { failed, errors, not_run, .. } = Counts::new(suite);
        let seconds = suite.iter().map(|outcome| outcome.duration.as_secs_f64()).sum();
        Numbers { tests: suite.len(), failures: failed, errors, skipped: not_run, seconds }
    }

    fn of_checks(suite: &[CheckOutcome]) -> Numbers {
        Numbers {
            tests: suite.len(),
            failures: suite.iter().filter(|check| !check.findings.is_empty()).count(),
            errors: 0,
            skipped: suite.iter().filter(|check| check.skipped.is_some()).count(),
            seconds: suite.iter().map(|check| check.duration.as_secs_f64()).sum(),
        }
    }
}

impl AddAssign for Numbers {
    fn add_assign(&mut self, other: Numbers) {
        self.tests += other.tests;
        self.failures += other.failures;
        self.errors += other.errors;
        self.skipped += other.skipped;
        self.seconds += other.seconds;
    }
}

/// Formats the attributes that the root has too.
impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Numbers { tests, failures, errors, seconds, .. } = self;
        write!(f, "tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" time=\"{seconds:.3}\"")
    }
}

/// Renders one suite for each file, and one for each check with a case for each program.
pub(in super::super) fn render(results: &Results<'_>) -> String {
    let Results { tests: outcomes, checks, .. } = *results;
    let (mut total, mut suites) = (Numbers::default(), String::new());
    for suite in outcomes.chunk_by(|one, other| one.file == other.file) {
        let Some(TestOutcome { file, .. }) = suite.first() else { continue };
        total += begin_suite(&mut suites, &escaped(file), Numbers::of_tests(suite));
        for outcome in suite {
            case(outcome, &mut suites);
        }
        suites.push_str("  </testsuite>\n");
    }
    for suite in checks.chunk_by(|one, other| one.kind == other.kind) {
        let Some(CheckOutcome { kind, .. }) = suite.first() else { continue };
        total += begin_suite(&mut suites, kind, Numbers::of_checks(suite));
        for check in suite {
            check_case(check, &mut suites);
        }
        suites.push_str("  </testsuite>\n");
    }
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {total}>\n{suites}</testsuites>\n")
}

/// Opens the element of a suite. Returns its numbers.
fn begin_suite(out: &mut String, name: &str, numbers: Numbers) -> Numbers {
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(out, "  <testsuite name=\"{name}\" {numbers} skipped=\"{}\">", numbers.skipped);
    numbers
}

fn case(outcome: &TestOutcome, out: &mut String) {
    let (class, name) = outcome.class_and_name();
    let _ = write!(
        out,
        "    <testcase classname=\"{}\" name=\"{}\" file=\"{}\" line=\"{}\" time=\"{:.3}\"",
        escaped(class),
        escaped(name),
        escaped(&outcome.file),
        outcome.line,
        outcome.duration.as_secs_f64()
    );
    let (element, kind) = match outcome.verdict() {
        Verdict::Passed => return out.push_str("/>\n"),
        Verdict::NotRun => {
            let _ = writeln!(out, ">\n      <skipped message=\"{INTERRUPTED}\"/>\n    </testcase>");
            return;
        }
        Verdict::Failed => ("failure", "assertion"),
        Verdict::Error if outcome.name.is_empty() => ("error", "unusable_file"),
        Verdict::Error => ("error", "error"),
    };
    let problems = problems(outcome);
    let first = problems.first().and_then(|(_, text)| text.lines().next()).unwrap_or_default();
    let all: Vec<String> = problems.iter().map(|(line, text)| format!("{}:{line}\n{text}", outcome.file)).collect();
    let _ = writeln!(
        out,
        ">\n      <{element} type=\"{kind}\" message=\"{}\">{}</{element}>\n    </testcase>",
        escaped(first),
        escaped(&all.join("\n\n"))
    );
}

fn check_case(check: &CheckOutcome, out: &mut String) {
    // Writing to a string cannot fail, here and below.
    let _ = write!(
        out,
        "    <testcase classname=\"{}\" name=\"{}\" file=\"{}\" line=\"{}\" time=\"{:.3}\"",
        check.kind,
        escaped(&check.program),
        escaped(&check.test_file),
        check.test_line,
        check.duration.as_secs_f64()
    );
    let all: Vec<String> = findings(check)
        .map(|(position, text)| match position {
            Some((line, column)) => format!("{}:{line}:{column}\n{text}", check.file),
            None => format!("{}\n{text}", check.file),
        })
        .collect();
    match (&check.skipped, check.findings.first()) {
        (Some(reason), _) => {
            let _ = writeln!(out, ">\n      <skipped message=\"{}\"/>\n    </testcase>", escaped(reason));
        }
        (None, Some(first)) => {
            let (kind, first, all) = (first.rule, escaped(&first.message), escaped(&all.join("\n\n")));
            let _ = writeln!(out, ">\n      <failure type=\"{kind}\" message=\"{first}\">{all}</failure>\n    </testcase>");
        }
        (None, None) => out.push_str("/>\n"),
    }
}

/// Escapes a text for elements and attributes. Characters that XML 1.0 cannot contain become `\u{FFFD}`.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push('\n'),
            '\u{0}'..=' ' if !matches!(c, ' ' | '\t' | '\r') => out.push('\u{FFFD}'),
            '\u{FFFE}' | '\u{FFFF}' => out.push('\u{FFFD}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn texts_are_escaped_for_xml() {
        assert_eq!(escaped("a<b & \"c\">\n\t\u{1}é"), "a&lt;b &amp; &quot;c&quot;&gt;\n\t\u{FFFD}é");
    }
}
