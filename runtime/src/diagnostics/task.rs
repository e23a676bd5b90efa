//! The record of a `lisp_task` in addition to that of a call: the task, and a span for each request to the planner and for each
//! of its programs.
//!
//! A trace file starts before the planner writes anything. Each program is therefore in the span of its evaluation, and the last
//! program in the last line.

use std::time::Instant;

use serde_json::{Map, Value};

use super::lines::{self, ErrorSpan, Eval, Message, Payload, Planner, Span, Stage, Tokens};
use super::record::{self, Outcome};
use super::trace::microseconds;
use super::{CallTrace, Payloads};
use crate::agentic::ledger::Effect;
use crate::agentic::turns::ProgramRun;
use crate::agentic::{End, Task};
use crate::secrets::Redactor;
use ptc_engine::response::metrics::Metrics;

/// The record of a task, as detailed as the policy permits.
#[derive(Debug)]
pub struct TaskTrace {
    /// The text of the task.
    pub task: Payload,
    /// The spans, in order.
    pub spans: Vec<Span<'static>>,
    /// Turn and effect of each upstream call, in order.
    pub calls: Vec<(u32, Effect)>,
}

impl CallTrace {
    /// Records valid arguments.
    pub fn task(&mut self, task: &Task) {
        let diagnostics = &self.diagnostics;
        let (payloads, redactor) = (diagnostics.settings.payloads, &diagnostics.redactor);
        self.record.task =
            Some(TaskTrace { task: record::text(&task.text, payloads, redactor), spans: Vec::new(), calls: Vec::new() });
        self.record.context = task.context.as_deref().map(|raw| record::context(raw, payloads, redactor));
        self.begin_file();
    }

    /// Records the end. `answered` are the members of the answer.
    pub fn task_ended(mut self, end: &End, answered: &Map<String, Value>) {
        let diagnostics = &self.diagnostics;
        let (payloads, redactor) = (diagnostics.settings.payloads, &diagnostics.redactor);
        let answer = answered.get("answer").and_then(Value::as_str).unwrap_or_default();
        let record = &mut self.record;
        match &end.outcome {
            Ok(_) => {
                record.outcome = Outcome::Ok;
                record.result_bytes = Some(answer.len());
                record.truncated =
                    answered.get("execution").and_then(|execution| execution.get("truncated")) == Some(&Value::Bool(true));
            }
            Err(stop) => record.outcome = Outcome::error(stop.reason.name(), &redactor.redact_str(&stop.message)),
        }
        record.result(answer, payloads);
        record.program = end.program.as_deref().map(|program| record::text(program, payloads, redactor));
        let last = end.turns.last().and_then(|turn| turn.program.as_ref()).filter(|_| end.outcome.is_err());
        if let Some((run, failure)) = last.and_then(|run| Some((run, run.failure.as_ref()?))) {
            record.program_is_clean = redactor.redact_str(&run.source) == run.source.as_str();
            record.failed_at(failure, payloads);
        }
        record.upstream_calls = end.ledger.calls();
        (record.started, record.queued, record.processor_wait) = (end.started, end.queued, end.processor_wait);
        record.metrics = Some(Metrics::measure(answer, &[], &record.upstream_calls).waited(end.queued, end.processor_wait));
        if let Some(told) = &mut record.task {
            told.spans = spans(end, record.arrived, payloads, redactor);
            told.calls = end.ledger.entries.iter().map(|entry| (entry.turn, entry.effect)).collect();
        }
        self.finish();
    }
}

fn spans(end: &End, arrived: Instant, payloads: Payloads, redactor: &Redactor) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    for (number, turn) in (1..).zip(&end.turns) {
        let stage = |began: Instant, duration| Stage {
            turn: Some(number),
            start_us: microseconds(began.saturating_duration_since(arrived)),
            duration_us: microseconds(duration),
        };
        let asked = &turn.planner_call;
        let message = |m: &crate::agentic::client::Message| Message { role: m.role, content: m.content.clone() };
        let without = turn.without.as_deref();
        spans.push(Span::Planner(Planner {
            stage: stage(asked.began, asked.duration),
            attempts: asked.attempts,
            prompt_bytes: asked.prompt_bytes,
            completion_bytes: asked.completion_bytes,
            tokens: asked.usage.map(|usage| Tokens { input: usage.prompt, output: usage.completion, total: usage.total }),
            reason: without.map(|_| "no_program").or(asked.error.map(crate::agentic::answer::Reason::name)),
            message: without.map(|why| redactor.redact_str(why).into_owned()),
            prompt: asked.said.as_ref().map(|(messages, _)| messages.iter().map(message).collect()),
            completion: asked.said.as_ref().map(|(_, completion)| completion.clone()),
        }));
        if let Some(run) = &turn.program {
            spans.push(Span::Analyze(stage(run.began, run.analysis)));
            spans.push(Span::Eval(eval(run, stage(run.began + run.analysis, run.evaluation), payloads, redactor)));
        }
    }
    spans
}

/// Returns the program of a turn with its outcome. A failed analysis is recorded here too, since the evaluation was requested.
fn eval(run: &ProgramRun, stage: Stage, payloads: Payloads, redactor: &Redactor) -> Eval {
    let failure = run.failure.as_ref();
    // Positions are valid only in a program without redacted parts.
    let is_clean = || redactor.redact_str(&run.source) == run.source.as_str();
    let feedback = failure.map(|failure| &failure.feedback).filter(|text| payloads == Payloads::Full && !text.is_empty());
    Eval {
        stage,
        program: Some(record::text(&run.source, payloads, redactor)),
        status: Some(if failure.is_some() { "error" } else { "ok" }),
        reason: failure.map(|failure| failure.reason.name()),
        failure: lines::Failure {
            message: failure.map(|failure| redactor.redact_str(&failure.message).into_owned()),
            message_bytes: None,
            error_span: failure.and_then(|failure| failure.span).filter(|_| is_clean()).map(ErrorSpan::from),
            feedback: feedback.map(|text| redactor.redact_str(text).into_owned()),
            denial: failure.and_then(|failure| failure.denial_reason()).map(|reason| redactor.redact_str(reason).into_owned()),
        },
    }
}
