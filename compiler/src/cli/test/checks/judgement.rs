//! Judges how a program ended: with a value of its declared shape, or with `(fail …)`. Everything else is a violation.

use std::collections::BTreeSet;

use ptc_lisp::Span;
use ptc_runtime::embed::Answer;
use ptc_runtime::evaluation::Reason;

use crate::answers::pages;
use crate::test::injection::{OtherAnswers, SeenCall};

/// A rule that a program broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Rule {
    /// The program ends with an error of its own, such as one about a type.
    Error,
    /// The program ends with the failure of a call, as `tool/value` does.
    FailedCall,
    /// The value does not match the declared output schema.
    OutputSchema,
    /// The program ends with a value although it did not read whether a failed call succeeded.
    UncheckedCall,
    /// The program ends with a value although it did not request an announced page.
    UnreadPage,
    /// The program ends with `(fail …)` of nil or of an empty text, which is often a member with another name.
    EmptyFailure,
}

impl Rule {
    /// Returns the name in reports.
    pub(in super::super) fn name(self) -> &'static str {
        match self {
            Rule::Error => "error",
            Rule::FailedCall => "failed_call",
            Rule::OutputSchema => "output_schema",
            Rule::UncheckedCall => "unchecked_call",
            Rule::UnreadPage => "unread_page",
            Rule::EmptyFailure => "empty_failure",
        }
    }
}

/// A broken rule.
#[derive(Debug, Clone)]
pub(super) struct Violation {
    pub(super) rule: Rule,
    /// The kind of the error, such as `type_error`, or the tool of an unchecked call. Empty for the other rules.
    kind: String,
    /// What the program did.
    pub(super) message: String,
    /// The form that failed.
    pub(super) span: Option<Span>,
}

impl Violation {
    /// Whether another violation has the same cause, as far as that can be seen.
    pub(super) fn is_like(&self, other: &Violation) -> bool {
        (self.rule, &self.kind, self.span) == (other.rule, &other.kind, other.span)
    }
}

/// What is known about a run before it is judged.
#[derive(Debug, Clone, Default)]
pub(super) struct Baseline {
    /// The calls with the recorded answers, sorted.
    pub(super) calls: Vec<SeenCall>,
    /// The tools of the failed calls that the program does not check with the recorded answers either, each as `upstream/tool` with the
    /// number of calls.
    pub(super) unchecked_calls: Vec<(String, u64)>,
    /// Whether the failure of a call may end the program.
    pub(super) allows_failed_calls: bool,
}

impl Baseline {
    /// Returns the first recorded answer of each tool.
    pub(super) fn other_answers(&self) -> OtherAnswers {
        let mut answers = OtherAnswers::new();
        for call in self.calls.iter().filter(|call| call.outcome.is_ok()) {
            answers.entry((call.key.upstream, call.key.tool)).or_insert_with(|| call.outcome.clone());
        }
        answers
    }

    /// Returns a tool with more unchecked calls than the recording explains: its recorded failures that occur again, and calls that no
    /// upstream received. `unchecked` has the tools with their numbers of unchecked calls, and `calls` are those of the run.
    fn new_unchecked_call<'a>(&self, unchecked: &'a [(String, u64)], calls: &[SeenCall]) -> Option<&'a str> {
        unchecked.iter().map(|(tool, _)| tool.as_str()).find(|tool| {
            let failed = |call: &&SeenCall| call.outcome.is_err() && format!("{}/{}", call.key.upstream, call.key.tool) == *tool;
            let ignored = count_of(&self.unchecked_calls, tool);
            let recorded: BTreeSet<_> = self.calls.iter().filter(failed).map(|call| &call.key).collect();
            let requests: BTreeSet<_> = recorded.iter().map(|key| &key.request).collect();
            let known = calls.iter().filter(failed).filter(|call| requests.contains(&call.key.request)).count() as u64;
            let expected = match ignored.checked_sub(recorded.len() as u64) {
                Some(others) => known + others,
                None => known.min(ignored),
            };
            count_of(unchecked, tool) > expected
        })
    }
}

/// Returns the number of unchecked calls of a tool.
fn count_of(unchecked: &[(String, u64)], tool: &str) -> u64 {
    unchecked.iter().filter(|(name, _)| name == tool).map(|(_, count)| count).sum()
}

/// Whether a program that reads all pages makes more calls of a tool than these: one after each answer that announces a page.
fn lacks_pages(calls: &[SeenCall], tool: (&str, &str)) -> bool {
    let of_tool = || calls.iter().filter(|call| (call.key.upstream, call.key.tool) == tool);
    of_tool().count() <= of_tool().filter(|call| pages::announces(call.tool, &call.outcome)).count()
}

/// Judges the end of a run. `calls` are those that it made, and `page_of` is the tool whose answer announced another page.
pub(super) fn judge(
    answer: &Answer,
    calls: &[SeenCall],
    baseline: &Baseline,
    page_of: Option<(&str, &str)>,
) -> Option<Violation> {
    match answer.value() {
        Ok(_) => {
            let violation = |rule, kind: &str, message| Some(Violation { rule, kind: kind.to_owned(), message, span: None });
            if let Some(tool) = baseline.new_unchecked_call(&answer.evaluation.unchecked_calls, calls) {
                let message = format!("it returns a value, and reads neither `:ok` nor `:reason` of the failed call of {tool}");
                return violation(Rule::UncheckedCall, tool, message);
            }
            let unread = page_of.filter(|tool| lacks_pages(calls, *tool));
            unread.and_then(|(upstream, tool)| {
                violation(Rule::UnreadPage, "", format!("it returns a value without the further page of {upstream}/{tool}"))
            })
        }
        Err(failure) => {
            let ends_with_call = || {
                calls.iter().any(|call| {
                    let reason = call.outcome.as_ref().err().map(|fault| fault.reason.name());
                    reason.is_some_and(|reason| {
                        let failed = format!("{}/{} failed ({reason})", call.key.upstream, call.key.tool);
                        failure.message.contains(&failed)
                    })
                })
            };
            let rule = match failure.reason {
                // The printed value.
                Reason::Fail if matches!(&*failure.message, "nil" | "\"\"") => Rule::EmptyFailure,
                Reason::Fail => return None,
                Reason::ValidationError => Rule::OutputSchema,
                Reason::RuntimeError if ends_with_call() => Rule::FailedCall,
                _ => Rule::Error,
            };
            if rule == Rule::FailedCall && baseline.allows_failed_calls {
                return None;
            }
            let message = format!("it ends with {}: {}", failure.reason.name(), failure.message);
            let kind = failure.message.split(':').next().unwrap_or_default().to_owned();
            Some(Violation { rule, kind, message, span: failure.span })
        }
    }
}
