//! Runs programs with generated answers.

use std::collections::BTreeMap;

use ptc_catalog::Tool;

use super::judgement::{Baseline, Violation, judge};
use super::{Plan, Replayed, Target, shrink};
use crate::answers::content::{Content, shown};
use crate::answers::declared_output::DeclaredOutput;
use crate::answers::{Outcome, generate};
use crate::test::injection::{Answers, CallKey, Injection, OtherAnswers};
use crate::test::outcome::{CheckOutcome, ReplacedAnswer};

/// The answers of one run: those of tools with an output schema are generated.
struct Generated {
    seed: u64,
    run: u32,
    /// The first recorded answer of each tool. Generated answers have its status and headers, and tools without an output schema give it.
    others: OtherAnswers,
}

impl Answers for Generated {
    fn answer(&self, key: &CallKey, tool: &'static Tool, recorded: Option<Outcome>) -> Option<Outcome> {
        let known = || recorded.or_else(|| self.others.get(&(key.upstream, key.tool)).cloned());
        let Some(Ok(model)) = self.others.get(&(key.upstream, key.tool)) else { return known() };
        let declared = DeclaredOutput::new(tool);
        let Some(json) = generate::answer_to(tool, &declared, self.seed_of(key), &key.request) else { return known() };
        Some(Ok(Content::Json(json).replace_in(model)))
    }
}

impl Generated {
    /// Returns the seed of a call, which depends on nothing but the options and the call.
    fn seed_of(&self, key: &CallKey) -> u64 {
        let CallKey { upstream, tool, request, index } = key;
        generate::seed_from(&format!("{} {} {upstream}/{tool} {index} {request}", self.seed, self.run))
    }
}

/// Runs a program with generated answers.
pub(super) fn check(target: &Target, plan: &Plan, baseline: &Baseline, outcome: &mut CheckOutcome) {
    let Some((seed, runs)) = plan.properties else { return };
    let has_schema = |tool: &Tool| DeclaredOutput::new(tool).schema().is_some();
    if !baseline.calls.iter().any(|call| has_schema(call.tool)) {
        outcome.skipped = Some("no tool that it calls has an output schema".to_owned());
        return;
    }
    let others = baseline.other_answers();
    let mut found: Vec<(Violation, BTreeMap<CallKey, Outcome>, u32, usize)> = Vec::new();
    for run in 1..=runs {
        if target.bench.is_interrupted() {
            return;
        }
        outcome.runs += 1;
        let generated = Generated { seed, run, others: others.clone() };
        let Ok(Replayed { answer, seen }) = target.replay(Injection::new(generated)) else { continue };
        if seen.unanswered.is_some() {
            outcome.unanswered += 1;
            continue;
        }
        let Some(violation) = judge(&answer, &seen.calls, baseline, None) else { continue };
        if let Some((.., similar)) = found.iter_mut().find(|(known, ..)| known.is_like(&violation)) {
            *similar += 1;
        } else {
            let answers = seen.calls.into_iter().map(|call| (call.key, call.outcome)).collect();
            found.push((violation, answers, run, 0));
        }
    }
    for (violation, answers, run, similar) in found {
        let (violation, answers) = shrunk(target, baseline, violation, answers);
        let answers = answers.iter().map(|(key, answer)| ReplacedAnswer::new(key, &shown(answer))).collect();
        let change = "generated answers".to_owned();
        let finding = target.finding(violation, &format!("seed {seed}, run {run}"), change, answers, similar);
        outcome.findings.push(finding);
    }
}

/// Returns the answers that are needed to break the rule, as small as possible. The other calls get recorded answers.
fn shrunk(
    target: &Target,
    baseline: &Baseline,
    violation: Violation,
    mut answers: BTreeMap<CallKey, Outcome>,
) -> (Violation, BTreeMap<CallKey, Outcome>) {
    let mut last = violation;
    let mut is_like = |answers: &BTreeMap<CallKey, Outcome>| match target.judged(answers.clone(), baseline, None) {
        Ok(Some(found)) if found.is_like(&last) => {
            last = found;
            true
        }
        _ => false,
    };
    for key in answers.keys().cloned().collect::<Vec<_>>() {
        let Some(removed) = answers.remove(&key) else { continue };
        if !is_like(&answers) {
            answers.insert(key, removed);
        }
    }
    for (key, answer) in answers.clone() {
        let (Some(Content::Json(json)), Ok(model)) = (Content::new(&answer), &answer) else { continue };
        let tool = baseline.calls.iter().find(|call| (call.key.upstream, call.key.tool) == (key.upstream, key.tool));
        let Some(declared) = tool.map(|call| DeclaredOutput::new(call.tool)) else { continue };
        let smallest = shrink::smallest(&json, &mut |json| {
            let mut candidate = answers.clone();
            candidate.insert(key.clone(), Ok(Content::Json(json.clone()).replace_in(model)));
            declared.permits(json) && is_like(&candidate)
        });
        answers.insert(key.clone(), Ok(Content::Json(smallest).replace_in(model)));
    }
    (last, answers)
}
