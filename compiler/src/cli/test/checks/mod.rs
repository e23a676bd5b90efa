//! Runs the programs of tests again with other answers: `--faults` and `--properties`.
//!
//! | module | purpose |
//! |---|---|
//! | `properties` | runs with generated answers |
//! | `adapt` | a recorded answer as it would be with another output schema |
//! | `judgement` | the rules for the end of a program |
//! | `weaken` | a recorded answer with null and without members, where only another output schema permits it |
//! | `shrink` | smaller answers that break the same rule |
//! | `untried` | the faults that no recorded answer of a tool permits to try |
//! | `thresholds` | the least number and the shortest text and list in an answer that break it |
//!
//! A program is run with the recorded answers first. Each further run depends only on these and on the options, so that two runs of
//! the command give the same report.

mod adapt;
mod judgement;
mod properties;
mod shrink;
mod thresholds;
mod untried;
mod weaken;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use ptc_compiler::json::Json;
use ptc_runtime::embed::Answer;

use super::bench::Bench;
use super::injection::{AsRecorded, CallKey, Injection, Replaced, Seen};
use super::outcome::{CheckOutcome, Finding, ReplacedAnswer};
use super::program_run::ProgramRun;
use super::report::INTERRUPTED;
use crate::answers::Outcome;
use crate::answers::content::{Content, shown};
use crate::answers::faults::{Fault, Recorded, Variant};
pub(super) use adapt::adapted;
use judgement::{Baseline, Violation, judge};
use untried::Untried;
pub(super) use weaken::{Weakness, weaken};

/// The kinds of checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CheckKind {
    Faults,
    Properties,
}

impl CheckKind {
    /// Returns the name in reports, which is that of the option.
    pub(super) fn name(self) -> &'static str {
        match self {
            CheckKind::Faults => "faults",
            CheckKind::Properties => "properties",
        }
    }
}

/// What is checked.
#[derive(Default)]
pub(super) struct Plan {
    /// The faults to try. Empty without `--faults`.
    pub(super) faults: Vec<&'static Fault>,
    /// The seed and the number of runs of `--properties`.
    pub(super) properties: Option<(u64, u32)>,
    /// Whether the failure of a call may end a program.
    pub(super) allows_failed_calls: bool,
}

impl Plan {
    pub(super) fn kinds(&self) -> Vec<CheckKind> {
        let faults = (!self.faults.is_empty()).then_some(CheckKind::Faults);
        faults.into_iter().chain(self.properties.map(|_| CheckKind::Properties)).collect()
    }
}

/// A program with its arguments, as a test runs it.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) bench: Bench,
    pub(super) run: ProgramRun,
    /// The file of the first test that runs it.
    pub(super) test_file: String,
    /// The line of that test.
    pub(super) test_line: usize,
}

/// One run of a program.
struct Replayed {
    answer: Answer,
    seen: Seen,
}

impl Target {
    fn replay(&self, injection: Injection) -> Result<Replayed, String> {
        let injection = Arc::new(injection);
        let answer = self.bench.replay(&self.run, Arc::clone(&injection))?;
        Ok(Replayed { answer, seen: injection.seen() })
    }

    /// Runs the checks of one kind.
    pub(super) fn check(&self, kind: CheckKind, plan: &Plan) -> CheckOutcome {
        let started = Instant::now();
        let mut outcome = CheckOutcome {
            kind: kind.name(),
            program: self.run.described(),
            file: self.bench.program_file(&self.run),
            test_file: self.test_file.clone(),
            test_line: self.test_line,
            ..CheckOutcome::default()
        };
        match self.baseline(plan) {
            Err(skipped) => outcome.skipped = Some(skipped),
            Ok(baseline) => match kind {
                CheckKind::Faults => self.faults(plan, &baseline, &mut outcome),
                CheckKind::Properties => properties::check(self, plan, &baseline, &mut outcome),
            },
        }
        if self.bench.is_interrupted() {
            // Evaluations that a signal ended say nothing about the program.
            outcome.findings.clear();
            outcome.skipped = Some(INTERRUPTED.to_owned());
        }
        outcome.duration = started.elapsed();
        outcome
    }

    /// Runs the program with the recorded answers. Returns why it cannot be checked if it fails with these.
    fn baseline(&self, plan: &Plan) -> Result<Baseline, String> {
        let Replayed { answer, seen } = self.replay(Injection::new(AsRecorded))?;
        if let Some(call) = seen.unanswered {
            return Err(format!("the cassette has no answer to {call}"));
        }
        let mut calls = seen.calls;
        calls.sort_by(|one, other| one.key.cmp(&other.key));
        let unchecked_calls = answer.evaluation.unchecked_calls.clone();
        let baseline = Baseline { calls, unchecked_calls, allows_failed_calls: plan.allows_failed_calls };
        match judge(&answer, &baseline.calls, &baseline, None) {
            Some(violation) => Err(format!("with the recorded answers, {}", violation.message)),
            None => Ok(baseline),
        }
    }

    /// Gives each call each fault.
    fn faults(&self, plan: &Plan, baseline: &Baseline, outcome: &mut CheckOutcome) {
        let mut untried = Untried::default();
        for call in &baseline.calls {
            let recorded = Recorded::new(call.tool, call.outcome.clone());
            let filled = recorded.filled();
            let has_size_variant = plan.faults.iter().any(|fault| {
                fault.is_of_size() && fault.variants(&recorded, filled.as_ref()).0.iter().any(|one| one.has_generated_items)
            });
            // A rule that any items break says nothing about a fault of one of their members. The faults of size report it then.
            let of_items = filled.as_ref().filter(|_| has_size_variant).and_then(|filled| {
                let answers = BTreeMap::from([(call.key.clone(), filled.outcome().clone())]);
                self.judged(answers, baseline, None).ok().flatten()
            });
            for fault in &plan.faults {
                let (variants, left_out) = fault.variants(&recorded, filled.as_ref());
                untried.add(call, fault, !variants.is_empty(), fault.is_untestable(&recorded, filled.as_ref()));
                outcome.left_out += left_out;
                let mut found: Vec<(Violation, Variant<'_>, usize)> = Vec::new();
                for variant in variants {
                    if self.bench.is_interrupted() {
                        return;
                    }
                    outcome.runs += 1;
                    match self.violation(&call.key, &variant, baseline) {
                        Ok(Some(violation))
                            if variant.has_generated_items
                                && !fault.is_of_size()
                                && of_items.as_ref().is_some_and(|known| known.is_like(&violation)) => {}
                        Ok(None) => {}
                        Ok(Some(violation)) => match found.iter_mut().find(|(known, ..)| known.is_like(&violation)) {
                            Some((.., similar)) => *similar += 1,
                            None => found.push((violation, variant, 0)),
                        },
                        Err(Unanswered) => outcome.unanswered += 1,
                    }
                }
                for (violation, variant, similar) in found {
                    let origin = filled.as_ref().filter(|_| variant.has_generated_items).unwrap_or(&recorded);
                    let (violation, answer) = self.shrunk(&call.key, variant, violation, baseline, origin, fault.is_gradual());
                    let Variant { change, outcome: answer, .. } = answer;
                    let answers = vec![ReplacedAnswer::new(&call.key, &shown(&answer))];
                    outcome.findings.push(self.finding(violation, fault.name, change, answers, similar));
                }
            }
        }
        outcome.untried = untried.faults();
        let sites = self.bench.call_sites(&self.run);
        let has_one_form = |tool: (&str, &str)| sites.iter().filter(|site| (&*site.tool.0, &*site.tool.1) == tool).count() == 1;
        outcome.merge_findings(&has_one_form);
    }

    fn finding(
        &self,
        violation: Violation,
        cause: &str,
        change: String,
        answers: Vec<ReplacedAnswer>,
        similar: usize,
    ) -> Finding {
        let position = violation.span.map(|span| self.bench.position(&self.run, span));
        Finding {
            rule: violation.rule.name(),
            message: violation.message,
            position,
            cause: cause.to_owned(),
            change,
            answers,
            similar,
        }
    }

    /// Returns the rule that the program breaks with an answer.
    fn violation(&self, key: &CallKey, variant: &Variant<'_>, baseline: &Baseline) -> Result<Option<Violation>, Unanswered> {
        let answers = BTreeMap::from([(key.clone(), variant.outcome.clone())]);
        let page_of = variant.has_next_page.then_some((key.upstream, key.tool));
        self.judged(answers, baseline, page_of)
    }

    /// Runs the program with replaced answers.
    fn judged(
        &self,
        answers: BTreeMap<CallKey, Outcome>,
        baseline: &Baseline,
        page_of: Option<(&str, &str)>,
    ) -> Result<Option<Violation>, Unanswered> {
        let replaced = Replaced { answers, others: baseline.other_answers() };
        let Ok(Replayed { answer, seen }) = self.replay(Injection::new(replaced)) else { return Err(Unanswered) };
        if seen.unanswered.is_some() {
            return Err(Unanswered);
        }
        Ok(judge(&answer, &seen.calls, baseline, page_of))
    }

    /// Returns a smaller answer with the same fault, with which the program breaks the same rule.
    fn shrunk<'r>(
        &self,
        key: &CallKey,
        variant: Variant<'r>,
        violation: Violation,
        baseline: &Baseline,
        recorded: &Recorded,
        is_gradual: bool,
    ) -> (Violation, Variant<'r>) {
        let (Some(json), Some(edit), Ok(answer)) = (recorded.json(), &variant.edit, &variant.outcome) else {
            return (violation, variant);
        };
        let mut last = violation;
        let outcome = |json: &Json| Ok(Content::Json(json.clone()).replace_in(answer));
        let mut is_like = |json: &Json| {
            if !recorded.declared.permits(json) {
                return false;
            }
            let page_of = variant.has_next_page.then_some((key.upstream, key.tool));
            match self.judged(BTreeMap::from([(key.clone(), outcome(json))]), baseline, page_of) {
                Ok(Some(found)) if found.is_like(&last) => {
                    last = found;
                    true
                }
                _ => false,
            }
        };
        // The recorded answer is made smaller, so that the smallest answer still has the fault.
        let smallest =
            shrink::smallest(json, &mut |json| edit(json).is_some_and(|changed| changed != *json && is_like(&changed)));
        let mut smallest = edit(&smallest).unwrap_or(smallest);
        if is_gradual {
            smallest = shrink::smallest(&smallest, &mut is_like);
        }
        let outcome = outcome(&smallest);
        (last, Variant { outcome, ..variant })
    }
}

/// A run that needs an answer that is not known. It shows nothing about the program.
struct Unanswered;
