//! The record of a `lisp_task` in addition to that of a call: the task, and a span for each request to the planner and for each
//! of its programs.
//!
//! A trace file starts before the planner writes anything. Each program is therefore in the span of its evaluation, and the last
//! program in the last line.

use std::time::Instant;

use serde_json::{Map, Value, json};

use super::record::{self, Outcome};
use super::trace::microseconds;
use super::{CallTrace, Payloads};
use crate::agentic::ledger::Effect;
use crate::agentic::turns::ProgramRun;
use crate::agentic::{End, Task};
use crate::response::metrics::Metrics;
use crate::secrets::Redactor;

/// The record of a task, as detailed as the policy permits.
#[derive(Debug)]
pub struct TaskTrace {
    /// The text of the task.
    pub task: Value,
    /// The spans, in order.
    pub spans: Vec<Map<String, Value>>,
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
        record.metrics = Some(Metrics::of(answer, &[], &record.upstream_calls).waited(end.queued, end.processor_wait));
        if let Some(told) = &mut record.task {
            told.spans = spans(end, record.arrived, payloads, redactor);
            told.calls = end.ledger.entries.iter().map(|entry| (entry.turn, entry.effect)).collect();
        }
        self.finish();
    }
}

fn spans(end: &End, arrived: Instant, payloads: Payloads, redactor: &Redactor) -> Vec<Map<String, Value>> {
    let since = |moment: Instant| microseconds(moment.saturating_duration_since(arrived));
    let mut spans = Vec::new();
    let mut add = |span: Value| spans.extend(if let Value::Object(members) = span { Some(members) } else { None });
    for (at, turn) in end.turns.iter().enumerate() {
        let planner_call = &turn.planner_call;
        let number = at + 1;
        let mut span = json!({
            "span": "planner",
            "turn": number,
            "start_us": since(planner_call.began),
            "duration_us": microseconds(planner_call.duration),
            "attempts": planner_call.attempts,
            "prompt_bytes": planner_call.prompt_bytes,
            "completion_bytes": planner_call.completion_bytes,
            "tokens": planner_call.usage.map(|usage| json!({ "input": usage.prompt, "output": usage.completion, "total": usage.total })),
            "reason": planner_call.error.map(crate::agentic::answer::Reason::name),
        });
        if let (Some(members), Some((messages, completion))) = (span.as_object_mut(), &planner_call.said) {
            let messages: Vec<Value> = messages.iter().map(|m| json!({ "role": m.role, "content": m.content })).collect();
            members.insert("prompt".into(), messages.into());
            members.insert("completion".into(), completion.as_str().into());
        }
        if let (Some(members), Some(why)) = (span.as_object_mut(), &turn.without) {
            members.insert("reason".into(), "no_program".into());
            members.insert("message".into(), redactor.redact_str(why).into());
        }
        add(span);
        if let Some(run) = &turn.program {
            let work = |name: &str, began: Instant, took| json!({ "span": name, "turn": number, "start_us": since(began), "duration_us": microseconds(took) });
            add(work("analyze", run.began, run.analysis));
            let mut span = work("eval", run.began + run.analysis, run.evaluation);
            if let Some(members) = span.as_object_mut() {
                members.extend(became(run, payloads, redactor));
            }
            add(span);
        }
    }
    spans
}

/// Returns the program of a turn with its outcome. A failed analysis is recorded here too, since the evaluation was requested.
fn became(run: &ProgramRun, payloads: Payloads, redactor: &Redactor) -> Map<String, Value> {
    let mut members = Map::new();
    members.insert("program".into(), record::text(&run.source, payloads, redactor));
    members.insert("status".into(), if run.failure.is_some() { "error" } else { "ok" }.into());
    let Some(failure) = &run.failure else { return members };
    members.insert("reason".into(), failure.reason.name().into());
    members.insert("message".into(), redactor.redact_str(&failure.message).into());
    // Positions are valid only in a program without redacted parts.
    if let Some(span) = failure.span.filter(|_| redactor.redact_str(&run.source) == run.source.as_str()) {
        members.insert("error_span".into(), json!({ "start": span.start, "end": span.end }));
    }
    if payloads == Payloads::Full && !failure.feedback.is_empty() {
        members.insert("feedback".into(), redactor.redact_str(&failure.feedback).into());
    }
    members
}
