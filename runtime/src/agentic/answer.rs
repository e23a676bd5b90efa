//! The answer of a task to the client.

use serde_json::{Map, Value, json};

use super::milliseconds;
use super::plan::Plan;
use super::request::Task;
use super::turns::{End, PlannerCall};
use crate::upstream::fault::excerpt;
use ptc_engine::evaluation::Failure;
use ptc_engine::response::metrics::{Metrics, tokens};

/// Maximum bytes of a message.
const MESSAGE_BYTES: usize = 2_000;
/// Maximum bytes of details.
const DETAIL_BYTES: usize = 4_000;

/// The reason why a task has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The arguments of the call are invalid.
    ArgsError,
    /// The operator has to change the configuration.
    ConfigError,
    /// The planner or the connection to it failed.
    PlannerError,
    /// The planner did not answer in time.
    PlannerTimeout,
    /// The task exceeded its time limit.
    BudgetExceeded,
    /// A program called `(fail v)`.
    AgentFailed,
    /// A call may have changed something, and no program returned.
    PartialSideEffects,
    /// No program returned within the turns.
    MaxTurns,
    /// No program returned, including the turns for corrections.
    RetriesExhausted,
    /// The client cancelled the call.
    Cancelled,
    /// The server has no capacity for the task.
    Busy,
}

impl Reason {
    /// Returns the documented name.
    pub fn name(self) -> &'static str {
        match self {
            Reason::ArgsError => "args_error",
            Reason::ConfigError => "agentic_config_error",
            Reason::PlannerError => "planner_error",
            Reason::PlannerTimeout => "planner_timeout",
            Reason::BudgetExceeded => "budget_exceeded",
            Reason::AgentFailed => "agent_failed",
            Reason::PartialSideEffects => "partial_side_effects",
            Reason::MaxTurns => "ptc_max_turns_exceeded",
            Reason::RetriesExhausted => "ptc_budget_exhausted",
            Reason::Cancelled => "cancelled",
            Reason::Busy => "busy",
        }
    }
}

/// The end of a task without an answer.
#[derive(Debug, Clone)]
pub struct Stop {
    /// The reason.
    pub reason: Reason,
    /// The message.
    pub message: String,
    /// Details from the last program, if they say more.
    pub detail: String,
    /// Milliseconds after which the task may be sent again, if the server has no capacity.
    pub retry_after_ms: Option<u64>,
}

impl Stop {
    /// Makes an end without details.
    pub fn new(reason: Reason, message: impl Into<String>) -> Stop {
        Stop { reason, message: message.into(), detail: String::new(), retry_after_ms: None }
    }

    /// Makes the end of a task that was not admitted.
    pub fn rejected(failure: Failure) -> Stop {
        let reason = if failure.retry_after_ms.is_some() { Reason::Busy } else { Reason::Cancelled };
        Stop { detail: failure.feedback, retry_after_ms: failure.retry_after_ms, ..Stop::new(reason, failure.message) }
    }

    /// Adds details from the last program.
    #[must_use]
    pub fn with_detail(mut self, detail: String) -> Stop {
        self.detail = detail;
        self
    }
}

/// Returns the members of an answer. All its texts are redacted.
pub fn members(end: &End, task: &Task, plan: &Plan) -> Map<String, Value> {
    let mut warnings: Vec<Value> =
        task.unsupported.iter().map(|name| json!({ "code": "unsupported_constraint", "detail": name })).collect();
    let mut execution = json!({ "duration_ms": milliseconds(end.duration), "turn_count": end.turns.len() });
    let mut metrics_of = String::new();
    let mut members = match &end.outcome {
        Ok(value) => {
            let most = plan.settings.max_result_bytes;
            let result = task.constraints.apply(value.clone());
            let (answer, result, truncated) = rendered(result, most);
            if truncated {
                warnings.push(json!({ "code": "max_result_bytes", "detail": most }));
            }
            metrics_of = json!({ "answer": answer, "structured_result": result }).to_string();
            if let Some(execution) = execution.as_object_mut() {
                execution.insert("result_bytes".into(), metrics_of.len().into());
                execution.insert("max_result_bytes".into(), most.into());
                execution.insert("truncated".into(), truncated.into());
            }
            json!({ "status": "ok", "answer": answer, "structured_result": result })
        }
        Err(stop) => {
            let message = excerpt(&stop.message, MESSAGE_BYTES);
            let feedback = if stop.detail.is_empty() { message.clone() } else { excerpt(&stop.detail, DETAIL_BYTES) };
            let mut members =
                json!({ "status": "error", "reason": stop.reason.name(), "message": message, "feedback": feedback });
            if let (Some(ms), Some(members)) = (stop.retry_after_ms, members.as_object_mut()) {
                members.insert("retry_after_ms".into(), ms.into());
            }
            members
        }
    };
    let calls = end.ledger.calls();
    let mut metrics = json!(Metrics::measure(&metrics_of, &[], &calls).waited(end.queued, end.processor_wait));
    if let Some(metrics) = metrics.as_object_mut() {
        metrics.insert("server_side_llm".into(), spent(&end.turns.iter().map(|turn| &turn.planner_call).collect::<Vec<_>>()));
        metrics.insert(
            "efficiency_note".into(),
            "payload_reduction_ratio compares upstream answers with the answer alone. The cost of the server's own model is in \
             server_side_llm and is not included."
                .into(),
        );
    }
    let rest = json!({
        "warnings": warnings,
        "planner": planner(end, plan),
        "execution": execution,
        "upstream_calls": end.ledger.entries,
        "ptc_metrics": metrics,
    });
    let mut all = members.as_object_mut().map(std::mem::take).unwrap_or_default();
    if let Value::Object(rest) = rest {
        all.extend(rest);
    }
    if let Some(program) = end.program.as_ref().filter(|_| plan.settings.include_program) {
        all.insert("program".into(), program.as_str().into());
    }
    all
}

/// Returns the result as text and as data, each truncated to its limit, and whether anything was truncated.
fn rendered(result: Value, most: usize) -> (String, Value, bool) {
    let whole = result.to_string();
    let text = match &result {
        Value::String(text) => text.clone(),
        _ => whole.clone(),
    };
    // The quotes around a string are not part of the text and are not counted.
    if text.len() <= most {
        return (text, result, false);
    }
    let cut = text.get(..text.floor_char_boundary(most)).unwrap_or_default().to_owned();
    (cut.clone(), Value::String(cut), true)
}

/// Describes the work of the planner.
fn planner(end: &End, plan: &Plan) -> Value {
    let questions: Vec<&PlannerCall> = end.turns.iter().map(|turn| &turn.planner_call).collect();
    let sum = |count: fn(&PlannerCall) -> usize| questions.iter().map(|planner_call| count(planner_call)).sum::<usize>();
    let mut planner = json!({
        "model": plan.model.shown,
        "calls": questions.len(),
        "attempts": questions.iter().map(|planner_call| planner_call.attempts).sum::<u32>(),
        "turn_count": end.turns.len(),
        "duration_ms": questions.iter().map(|planner_call| milliseconds(planner_call.duration)).sum::<u64>(),
        "prompt_bytes": sum(|planner_call| planner_call.prompt_bytes),
        "completion_bytes": sum(|planner_call| planner_call.completion_bytes),
    });
    if let Some(members) = planner.as_object_mut() {
        if let Some((input, output, total)) = counted(&questions) {
            members.insert("tokens".into(), json!({ "input": input, "output": output, "total": total }));
        }
        if let Some(error) = questions.last().and_then(|planner_call| planner_call.error) {
            members.insert("error".into(), error.name().into());
        }
    }
    planner
}

/// Returns prompt, completion and total tokens, if the provider counted every request.
fn counted(questions: &[&PlannerCall]) -> Option<(u64, u64, u64)> {
    let usages = questions.iter().map(|planner_call| planner_call.usage).collect::<Option<Vec<_>>>()?;
    let add =
        |(a, b, c): (u64, u64, u64), usage: &super::completion::Usage| (a + usage.prompt, b + usage.completion, c + usage.total);
    (!usages.is_empty()).then(|| usages.iter().fold((0, 0, 0), add))
}

/// Returns the documented usage of the server's model.
fn spent(questions: &[&PlannerCall]) -> Value {
    let tokens_of = counted(questions);
    let bytes = |count: fn(&PlannerCall) -> usize| questions.iter().map(|planner_call| count(planner_call) as u64).sum::<u64>();
    let (prompt_bytes, completion_bytes) =
        (bytes(|planner_call| planner_call.prompt_bytes), bytes(|planner_call| planner_call.completion_bytes));
    json!({
        "planner_calls": questions.len(),
        "provider_reported": tokens_of.is_some(),
        "prompt_tokens": tokens_of.map(|(prompt, ..)| prompt),
        "completion_tokens": tokens_of.map(|(_, completion, _)| completion),
        "total_tokens": tokens_of.map(|(.., total)| total),
        "prompt_bytes": prompt_bytes,
        "completion_bytes": completion_bytes,
        "estimated_prompt_tokens": tokens(prompt_bytes),
        "estimated_completion_tokens": tokens(completion_bytes),
        "estimate_method": "utf8_bytes_div_4",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_is_truncated_to_its_byte_limit() {
        assert_eq!(rendered(json!("größe"), 7), ("größe".into(), json!("größe"), false));
        assert_eq!(rendered(json!("größe"), 3), ("gr".into(), json!("gr"), true));
        assert_eq!(rendered(json!([1, 2]), 5), ("[1,2]".into(), json!([1, 2]), false));
        assert_eq!(rendered(json!([1, 23]), 5), ("[1,23".into(), json!("[1,23"), true));
    }
}
