//! What a `lisp_task` adds to a call's record: the task, a span for each question to the planner and for each of its programs.
//!
//! A trace file begins before the planner writes anything, so the last program stands in its last line.

use std::time::Instant;

use serde_json::{Map, Value, json};

use super::record::{self, Outcome};
use super::trace::microseconds;
use super::{Payloads, Watch};
use crate::agentic::{End, Task};
use crate::profile::metrics::Metrics;

/// A task, as much of it as the policy lets through.
#[derive(Debug)]
pub struct Told {
    /// Its words.
    pub task: Value,
    /// Its spans, in order.
    pub spans: Vec<Map<String, Value>>,
}

impl Watch {
    /// Its arguments are right.
    pub fn task(&mut self, task: &Task) {
        let diagnostics = &self.diagnostics;
        let (payloads, redactor) = (diagnostics.settings.payloads, &diagnostics.redactor);
        self.record.task = Some(Told { task: record::text(&task.text, payloads, redactor), spans: Vec::new() });
        self.record.context = task.context.as_deref().map(|raw| record::context(raw, payloads, redactor));
        self.file = diagnostics.traces.as_ref().and_then(|traces| traces.open(&self.record));
    }

    /// It is over; `answered` are the members of its answer.
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
        if payloads == Payloads::Full {
            record.result = Some(answer.to_owned());
        }
        record.program = end.program.as_deref().map(|program| record::text(program, payloads, redactor));
        record.upstream_calls = end.ledger.calls();
        record.metrics = Some(Metrics::of(answer, &[], &record.upstream_calls));
        if let Some(told) = &mut record.task {
            told.spans = spans(end, record.arrived);
        }
        self.finish();
    }
}

fn spans(end: &End, arrived: Instant) -> Vec<Map<String, Value>> {
    let since = |moment: Instant| microseconds(moment.saturating_duration_since(arrived));
    let mut spans = Vec::new();
    let mut add = |span: Value| spans.extend(if let Value::Object(members) = span { Some(members) } else { None });
    for (at, turn) in end.turns.iter().enumerate() {
        let question = &turn.question;
        let number = at + 1;
        let mut span = json!({
            "span": "planner",
            "turn": number,
            "start_us": since(question.began),
            "duration_us": microseconds(question.duration),
            "attempts": question.attempts,
            "prompt_bytes": question.prompt_bytes,
            "completion_bytes": question.completion_bytes,
            "tokens": question.usage.map(|usage| json!({ "input": usage.prompt, "output": usage.completion, "total": usage.total })),
            "reason": question.error.map(crate::agentic::answer::Reason::name),
        });
        if let (Some(members), Some((messages, completion))) = (span.as_object_mut(), &question.said) {
            let messages: Vec<Value> = messages.iter().map(|m| json!({ "role": m.role, "content": m.content })).collect();
            members.insert("prompt".into(), messages.into());
            members.insert("completion".into(), completion.as_str().into());
        }
        add(span);
        if let Some(ran) = &turn.program {
            for (name, began, took) in [("analyze", ran.began, ran.analysis), ("eval", ran.began + ran.analysis, ran.evaluation)]
            {
                add(json!({ "span": name, "turn": number, "start_us": since(began), "duration_us": microseconds(took) }));
            }
        }
    }
    spans
}
