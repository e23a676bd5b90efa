//! Compares the answers of a program with the former and the current tools, and classifies the effect of the change.

use std::collections::BTreeSet;

use ptc_compiler::drift::cause::Cause;
use ptc_lisp::Span;
use ptc_lisp::print::readable;
use ptc_runtime::embed::Answer;

use super::UnusableTests;
use crate::test::diff::{Difference, differences};
use crate::test::outcome::{TestOutcome, Verdict};
use crate::test::shortened;

/// Maximum number of shown differences of a value.
const MAX_DIFFERENCES: usize = 3;

/// A program with the effect of a change on it.
pub(crate) struct ProgramEffect {
    /// The program.
    pub(crate) name: String,
    /// The program with its arguments.
    pub(crate) program: String,
    /// The path of the program.
    pub(crate) file: String,
    /// The text of the program.
    pub(crate) source: String,
    /// The first test that runs it, or that fails with the current tools.
    pub(crate) test: TestPlace,
    /// The changed tools that have the effect, by upstream and name. Without an effect, all that it calls.
    pub(crate) tools: BTreeSet<(String, String)>,
    /// How these tools have it.
    pub(crate) cause: Cause,
    /// The names of the arguments that the program passes to the tools, or `None` if these names are unknown.
    pub(crate) arguments: Option<BTreeSet<String>>,
    /// The first call of one of the tools.
    pub(crate) call: Option<Span>,
    /// The changed tools that it calls and that do not declare the shape of their answers, which are not adapted.
    pub(crate) undeclared: Vec<String>,
    pub(crate) effect: Effect,
}

/// A test.
pub(crate) struct TestPlace {
    pub(crate) name: String,
    /// The path of its file.
    pub(crate) file: String,
    /// The text of the file.
    pub(crate) text: String,
    /// The line, from 1.
    pub(crate) line: usize,
    /// Whether the test fails with the current tools.
    pub(crate) is_failed: bool,
}

/// The results of running tests with the tools before and after a change.
#[derive(Default)]
pub(crate) struct Effects {
    pub(crate) programs: Vec<ProgramEffect>,
    pub(crate) unusable: Vec<UnusableTests>,
}

/// The effect of a change of tools on a program.
pub(crate) enum Effect {
    /// The tests that run it cannot be used.
    Untested,
    /// It gives the same value.
    None,
    /// It gives the same value with the recorded answers, and fails with others that only the current tools permit.
    MayFail(String, Option<Span>),
    /// It fails with both tools, at the form if that is known.
    FailsBefore(String, Option<Span>),
    /// It fails, at the form if that is known.
    Fails(String, Option<Span>),
    /// It gives another value, which a test refuses.
    TestFails(String),
    /// It gives another value, which no test refuses.
    OtherValue(String),
    /// It cannot be compared, for this reason.
    Unknown(String),
}

impl Effects {
    /// Adds the effect on a program. Of several tests of it, the one with the worst effect is kept.
    pub(super) fn add(&mut self, effect: ProgramEffect) {
        let is_same = |known: &&mut ProgramEffect| known.program == effect.program && known.file == effect.file;
        match self.programs.iter_mut().find(is_same) {
            Some(known) if known.effect.rank() < effect.effect.rank() => *known = effect,
            Some(_) => {}
            None => self.programs.push(effect),
        }
    }
}

impl Effect {
    /// Returns whether the change certainly breaks the program: the program or one of its tests fails.
    pub(crate) fn is_error(&self) -> bool {
        matches!(self, Effect::Fails(..) | Effect::TestFails(_))
    }

    /// Returns whether the change breaks the program, gives it another value, or lets it fail with answers that were not recorded.
    pub(crate) fn is_break(&self) -> bool {
        self.is_error() || matches!(self, Effect::OtherValue(_) | Effect::MayFail(..))
    }

    fn rank(&self) -> usize {
        match self {
            Effect::Untested => 0,
            Effect::None => 1,
            Effect::Unknown(_) => 2,
            Effect::FailsBefore(..) => 3,
            Effect::MayFail(..) => 4,
            Effect::OtherValue(_) => 5,
            Effect::TestFails(_) => 6,
            Effect::Fails(..) => 7,
        }
    }
}

/// Compares the answers of a program with both catalogs. `test_before` and `test` are the outcomes of the test with them.
pub(super) fn effect(
    old: Result<Answer, String>,
    new: Result<Answer, String>,
    test_before: &TestOutcome,
    test: &TestOutcome,
) -> Effect {
    let (before, after) = match (old, new) {
        (Ok(before), Ok(after)) => (before, after),
        (Err(message), _) | (_, Err(message)) => return Effect::Unknown(message),
    };
    let is_failed = test.verdict() != Verdict::Passed;
    if test_before.verdict() != Verdict::Passed {
        return match (before.value(), after.value()) {
            (Err(failure), Err(_)) => Effect::FailsBefore(failure.to_string(), failure.span),
            (Ok(_), Err(failure)) => Effect::Fails(failure.to_string(), failure.span),
            _ if is_failed => Effect::FailsBefore("its test fails".to_owned(), None),
            _ => Effect::Unknown("its test fails with the pinned tools".to_owned()),
        };
    }
    let other = |message: String| if is_failed { Effect::TestFails(message) } else { Effect::OtherValue(message) };
    match (before.value(), after.value()) {
        (Ok(before), Ok(after)) => {
            let (before, after) = (readable(before), readable(after));
            if before == after { Effect::None } else { other(changed(&before, &after)) }
        }
        (Ok(_), Err(failure)) => Effect::Fails(failure.to_string(), failure.span),
        // The test expects the failure.
        (Err(before), Err(after)) if before.to_string() == after.to_string() => Effect::None,
        (Err(before), Err(after)) => other(format!("the failure {after}, which was {before}")),
        (Err(_), Ok(_)) => other("it does not fail any more".to_owned()),
    }
}

/// Describes the change of a value.
fn changed(before: &str, after: &str) -> String {
    let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
    let differences = differences(before, after);
    if differences.is_empty() {
        return format!("{}, which was {}", shortened(after), shortened(before));
    }
    let line = |found: &Difference| format!("at {} {}, which was {}", found.path, shown(&found.actual), shown(&found.expected));
    let lines: Vec<String> = differences.iter().take(MAX_DIFFERENCES).map(line).collect();
    shortened(&lines.join("; "))
}
