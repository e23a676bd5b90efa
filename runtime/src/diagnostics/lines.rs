//! The lines of trace files, and the records that `lisp_debug` shows. `ptc-compile schema trace` and `ptc-compile schema debug`
//! print their schemas.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Origin;
use crate::upstream::CallRecord;
use ptc_engine::response::metrics::Metrics;

/// One line of a trace file.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(tag = "event")]
pub enum Line<'r> {
    /// The call has arrived. Written before it runs, or at its end if its arguments are invalid.
    #[serde(rename = "call.start")]
    Start(Start<'r>),
    /// A part of the call has ended.
    #[serde(rename = "span")]
    Span(Span<'r>),
    /// The call has returned a value.
    #[serde(rename = "call.success")]
    Success(End<'r>),
    /// The call has failed.
    #[serde(rename = "call.fail")]
    Fail(End<'r>),
}

/// The start of a call.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct Start<'r> {
    #[serde(flatten)]
    pub(super) call: Call<'r>,
    #[serde(flatten)]
    pub(super) input: Input<'r>,
    #[serde(flatten)]
    pub(super) output: Output<'r>,
}

/// The end of a call.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct End<'r> {
    #[serde(flatten)]
    pub(super) call: Call<'r>,
    #[serde(flatten)]
    pub(super) ended: Ended,
    #[serde(flatten)]
    pub(super) output: Output<'r>,
    /// The last program of a `lisp_task`. Null if the planner wrote none.
    #[expect(clippy::option_option, reason = "the member is missing in other calls, and null in a task without a program")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) program: Option<Option<Payload>>,
    /// Number of upstream calls.
    pub(super) upstream_call_count: usize,
    /// Microseconds from arrival to answer.
    pub(super) duration_us: u64,
}

/// A call in the list of `recent`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct Brief<'r> {
    #[serde(flatten)]
    pub(super) call: Call<'r>,
    #[serde(flatten)]
    pub(super) ended: Ended,
    #[serde(flatten)]
    pub(super) input: Input<'r>,
    /// Number of upstream calls.
    pub(super) upstream_calls: usize,
}

/// A call that `get` shows, if it has no trace file.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct Whole<'r> {
    #[serde(flatten)]
    pub(super) call: Call<'r>,
    #[serde(flatten)]
    pub(super) ended: Ended,
    #[serde(flatten)]
    pub(super) input: Input<'r>,
    #[serde(flatten)]
    pub(super) output: Output<'r>,
    /// The upstream calls, in the order of their start.
    pub(super) upstream_calls: &'r [CallRecord],
}

/// The members that identify and measure a call.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub(super) struct Call<'r> {
    /// Time of arrival, in ISO 8601.
    pub(super) ts: String,
    /// Name of the tool.
    pub(super) tool: &'r str,
    /// The id of the request.
    pub(super) request_id: &'r str,
    /// The protocol revision of the client, if it is known.
    pub(super) protocol_version: Option<&'r str>,
    /// Number of printed lines.
    pub(super) prints_count: Option<usize>,
    /// Bytes of the result as text.
    pub(super) result_bytes: Option<usize>,
    /// Whether the result was truncated.
    pub(super) truncated: bool,
    /// Milliseconds in the queue, if there were any.
    #[serde(skip_serializing_if = "ptc_engine::response::metrics::is_zero")]
    pub(super) queued_ms: u64,
    /// Milliseconds without a processor, if there were any.
    #[serde(skip_serializing_if = "ptc_engine::response::metrics::is_zero")]
    pub(super) processor_wait_ms: u64,
    #[serde(flatten)]
    pub(super) origin: Option<&'r Origin>,
    /// The trace context of the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) traceparent: Option<&'r str>,
    /// Metrics of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ptc_metrics: Option<&'r Metrics>,
}

/// A context, reduced according to the policy.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Context {
    /// Its size, and with the policy `summary` its digest and the types and sizes of its members. Or the redacted text, with the
    /// policy `full`, if it is not JSON that every parser accepts.
    Value(Value),
    /// The redacted JSON, with the policy `full`. As values it could have many times the memory of its text.
    Text(Box<RawValue>),
}

/// The arguments of a call.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub(super) struct Input<'r> {
    /// The program.
    pub(super) program: Option<Payload>,
    /// `bytes`, `sha256` and `keys` of the context, or with the policy `full` the context itself.
    #[cfg_attr(feature = "schemars", schemars(with = "Option<Value>"))]
    pub(super) context: Option<Cow<'r, Context>>,
    /// Whether the result was to be validated.
    pub(super) output_schema_present: bool,
    /// The task of a `lisp_task`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) task: Option<Payload>,
}

/// How a call ended.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub(super) struct Ended {
    /// `ok`, `error`, or `open` for a call that has not ended.
    pub(super) status: &'static str,
    /// The documented reason of a failure.
    pub(super) reason: Option<&'static str>,
    /// Milliseconds from arrival to answer.
    pub(super) duration_ms: u64,
}

/// The result or the failure of a call.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub(super) struct Output<'r> {
    /// The result, with the policy `full`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<&'r str>,
    /// SHA-256 of the result in hexadecimal, unless the policy is `none`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) result_sha256: Option<&'r str>,
    /// The printed lines, with the policy `full`.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(super) prints: &'r [String],
    /// The scopes that the caller lacks, if the policy does not permit the program.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(super) missing_scopes: &'r [String],
    #[serde(flatten)]
    pub(super) failure: Failure,
}

/// The message of a failure, with its position.
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub(super) struct Failure {
    /// The message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<String>,
    /// Bytes of the message, which replace it in files if it is the value of `fail` and the policy is not `full`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message_bytes: Option<usize>,
    /// The form with the error, as a byte range of the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error_span: Option<ErrorSpan>,
    /// Advice for repairing the program, with the policy `full`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) feedback: Option<String>,
    /// Why the policy refuses the program or one of its calls, with rules and conditions. It is only in files, and not shown to callers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) denial: Option<String>,
}

/// A byte range of a program.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub(super) struct ErrorSpan {
    start: u32,
    end: u32,
}

impl From<ptc_lisp::Span> for ErrorSpan {
    fn from(span: ptc_lisp::Span) -> ErrorSpan {
        ErrorSpan { start: span.start, end: span.end }
    }
}

/// A text, reduced according to the policy.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct Payload {
    /// Size in bytes.
    pub bytes: usize,
    /// SHA-256 in hexadecimal, unless the text contains a secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The beginning of the redacted text, in `lisp_debug` with the policy `summary`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// The redacted text, with the policy `full`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl Payload {
    /// Returns the size and the digest only.
    #[must_use]
    pub(super) fn digest_only(self) -> Payload {
        Payload { preview: None, text: None, ..self }
    }

    /// Estimates the bytes of memory that the payload takes.
    pub(super) fn weight(&self) -> usize {
        let texts = [&self.sha256, &self.preview, &self.text].into_iter().flatten();
        size_of::<Payload>() + texts.map(String::len).sum::<usize>()
    }
}

/// A part of a call.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(tag = "span", rename_all = "snake_case")]
pub enum Span<'r> {
    /// A program was read, analysed and checked.
    Analyze(Stage),
    /// A program was evaluated.
    Eval(Eval),
    /// The planner of a `lisp_task` was asked for a program.
    Planner(Planner),
    /// A tool of an upstream was called.
    UpstreamCall(UpstreamCall<'r>),
}

/// The time of a part of a call.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct Stage {
    /// The turn of a `lisp_task`, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// Microseconds from the arrival of the call to the start.
    pub start_us: u64,
    /// Duration in microseconds.
    pub duration_us: u64,
}

/// An evaluation. Those of a `lisp_task` contain the program and how it ended.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct Eval {
    /// Its time.
    #[serde(flatten)]
    pub stage: Stage,
    /// The program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) program: Option<Payload>,
    /// `ok` or `error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<&'static str>,
    /// The documented reason of a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    #[serde(flatten)]
    pub(super) failure: Failure,
}

impl From<Stage> for Eval {
    /// The evaluation of a call, whose program and outcome are in other lines.
    fn from(stage: Stage) -> Eval {
        Eval { stage, program: None, status: None, reason: None, failure: Failure::default() }
    }
}

/// A request to the planner.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct Planner {
    /// Its time.
    #[serde(flatten)]
    pub stage: Stage,
    /// Number of HTTP requests.
    pub attempts: u32,
    /// Bytes of the prompt.
    pub(super) prompt_bytes: usize,
    /// Bytes of the completion.
    pub(super) completion_bytes: usize,
    /// Tokens, if the planner counted them.
    pub tokens: Option<Tokens>,
    /// The documented reason of a failure, or `no_program`.
    pub reason: Option<&'static str>,
    /// Why the completion contains no program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<String>,
    /// The messages of the prompt, if prompts are recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) prompt: Option<Vec<Message>>,
    /// The completion, if prompts are recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) completion: Option<String>,
}

/// Tokens of a request to the planner.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct Tokens {
    /// Tokens of the prompt.
    pub input: u64,
    /// Tokens of the completion.
    pub output: u64,
    /// All tokens.
    pub total: u64,
}

/// A message of a prompt.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub(super) struct Message {
    pub(super) role: &'static str,
    pub(super) content: String,
}

/// A call of an upstream tool.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct UpstreamCall<'r> {
    #[serde(flatten)]
    pub(super) call: &'r CallRecord,
    #[serde(flatten)]
    pub(super) stage: Stage,
    /// The effect that the tool declares, in a `lisp_task`.
    #[cfg(feature = "agentic")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) effect: Option<crate::agentic::ledger::Effect>,
}
