//! The results as JUnit XML, in the form that Jenkins and GitLab read.

use std::fmt::Write;

use super::{Counts, Results, findings, problems};
use crate::test::outcome::{CheckOutcome, TestOutcome, Verdict};

/// Renders one suite for each file, and one for each check with a case for each program.
pub(in super::super) fn render(results: &Results<'_>) -> String {
    let Results { tests: outcomes, checks, .. } = *results;
    let Counts { tests, failed, errors, .. } = Counts::new(outcomes);
    let (tests, failed) = (tests + checks.len(), failed + with_findings(checks));
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(out, "<testsuites tests=\"{tests}\" failures=\"{failed}\" errors=\"{errors}\">");
    for suite in outcomes.chunk_by(|one, other| one.file == other.file) {
        let Some(TestOutcome { file, .. }) = suite.first() else { continue };
        let Counts { failed, errors, .. } = Counts::new(suite);
        let seconds: f64 = suite.iter().map(|outcome| outcome.duration.as_secs_f64()).sum();
        let _ = writeln!(
            out,
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{failed}\" errors=\"{errors}\" time=\"{seconds:.3}\">",
            escaped(file),
            suite.len()
        );
        for outcome in suite {
            case(outcome, &mut out);
        }
        out.push_str("  </testsuite>\n");
    }
    for suite in checks.chunk_by(|one, other| one.kind == other.kind) {
        let Some(CheckOutcome { kind, .. }) = suite.first() else { continue };
        let seconds: f64 = suite.iter().map(|check| check.duration.as_secs_f64()).sum();
        let (tests, failed) = (suite.len(), with_findings(suite));
        let skipped = suite.iter().filter(|check| check.skipped.is_some()).count();
        let _ = writeln!(
            out,
            "  <testsuite name=\"{kind}\" tests=\"{tests}\" failures=\"{failed}\" errors=\"0\" skipped=\"{skipped}\" time=\"{seconds:.3}\">"
        );
        for check in suite {
            check_case(check, &mut out);
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

fn case(outcome: &TestOutcome, out: &mut String) {
    let (class, name) = outcome.shown_name().rsplit_once('/').unwrap_or(("", outcome.shown_name()));
    let _ = write!(
        out,
        "    <testcase classname=\"{}\" name=\"{}\" file=\"{}\" line=\"{}\" time=\"{:.3}\"",
        escaped(class),
        escaped(name),
        escaped(&outcome.file),
        outcome.line,
        outcome.duration.as_secs_f64()
    );
    let element = match outcome.verdict() {
        Verdict::Passed => return out.push_str("/>\n"),
        Verdict::Failed => "failure",
        Verdict::Error => "error",
    };
    let problems = problems(outcome);
    let first = problems.first().and_then(|(_, text)| text.lines().next()).unwrap_or_default();
    let all: Vec<String> = problems.iter().map(|(line, text)| format!("{}:{line}\n{text}", outcome.file)).collect();
    let _ = writeln!(
        out,
        ">\n      <{element} message=\"{}\">{}</{element}>\n    </testcase>",
        escaped(first),
        escaped(&all.join("\n\n"))
    );
}

fn with_findings(checks: &[CheckOutcome]) -> usize {
    checks.iter().filter(|check| !check.findings.is_empty()).count()
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
            let (first, all) = (escaped(&first.message), escaped(&all.join("\n\n")));
            let _ = writeln!(out, ">\n      <failure message=\"{first}\">{all}</failure>\n    </testcase>");
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
