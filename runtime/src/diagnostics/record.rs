//! The record of one call, as detailed as the policy permits.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use ptc_lisp::Span;
use ptc_lisp::json::Walk;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::lines::{self, Brief, Context, Ended, ErrorSpan, Input, Output, Payload, Whole};
use super::{Origin, Payloads, RequestMeta, milliseconds};
use crate::digest::{hex, sha256};
use crate::json_shape::Shape;
use crate::secrets::Redactor;
use crate::upstream::CallRecord;
use ptc_engine::evaluation::{Call, Failure};
use ptc_engine::protocol::message::string;
use ptc_engine::protocol::trace_context;
use ptc_engine::response::metrics::Metrics;

/// Maximum recorded bytes of a request's id, equal to the maximum that `lisp_debug` accepts for a look-up.
pub const ID_BYTES: usize = 256;
/// Characters of a program in a summary.
const PREVIEW_CHARS: usize = 200;
/// Maximum number of a context's keys in a summary.
const MAX_KEYS: usize = 50;
/// Depth of a context from which on it is recorded as a text. Parsers reject JSON that is deeper.
const MAX_DEPTH: usize = 128;

/// A call with its outcome.
#[derive(Debug)]
pub struct Record {
    /// Wall-clock time of its arrival.
    pub at: Timestamp,
    /// Monotonic time of its arrival.
    pub arrived: Instant,
    /// Name of the tool.
    pub tool: &'static str,
    /// The internal name of the owner, whose clients alone see the record.
    pub owner: Arc<str>,
    /// The request's id, formatted by [`shown_id`].
    pub request_id: String,
    /// The protocol revision of the client.
    pub protocol_version: Option<&'static str>,
    /// HTTP metadata.
    pub origin: Option<Origin>,
    /// The trace context, from the message or else from the HTTP headers.
    pub traceparent: Option<String>,
    /// The outcome.
    pub outcome: Outcome,
    /// Time from arrival to answer.
    pub duration: Duration,
    /// Time in the queue before the evaluation.
    pub queued: Duration,
    /// Time without a processor while the program could have run.
    pub processor_wait: Duration,
    /// Start of the evaluation.
    pub started: Option<Instant>,
    /// Time to read, analyse and check the program.
    pub analysis: Option<Duration>,
    /// Time to evaluate the program.
    pub evaluation: Option<Duration>,
    /// The program, reduced according to the policy.
    pub program: Option<Payload>,
    /// Whether the program contains no secret, so that positions in it are valid in its displayed form.
    pub program_is_clean: bool,
    /// The context, reduced according to the policy.
    pub context: Option<Context>,
    /// Whether the result was to be validated.
    pub output_schema_present: bool,
    /// Number of printed lines.
    pub prints_count: Option<usize>,
    /// The printed lines, with the policy `full`.
    pub prints: Vec<String>,
    /// The scopes that the caller lacks, if the policy does not permit the program.
    pub missing_scopes: Vec<String>,
    /// Why the policy refuses the program or one of its calls. It names what other callers have, so that no caller may see it.
    pub denial: Option<String>,
    /// The form with the error, as a byte range of the program.
    pub span: Option<Span>,
    /// Advice for repairing the program, with a line of it, with the policy `full`.
    pub feedback: Option<String>,
    /// Bytes of the result as text.
    pub result_bytes: Option<usize>,
    /// Whether the result was truncated.
    pub truncated: bool,
    /// The result, with the policy `full`.
    pub result: Option<String>,
    /// SHA-256 of the result in hexadecimal, unless the policy is `none`.
    pub result_sha256: Option<String>,
    /// Calls of upstream tools.
    pub upstream_calls: Vec<CallRecord>,
    /// Metrics of the call.
    pub metrics: Option<Metrics>,
    /// Name of the trace file.
    pub trace: Option<String>,
    /// The additional record of a `lisp_task`.
    #[cfg(feature = "agentic")]
    pub task: Option<super::task::TaskTrace>,
}

/// The outcome of a call.
#[derive(Debug)]
pub enum Outcome {
    /// The call has not ended.
    Open,
    /// The call returned a value.
    Ok,
    /// The call failed.
    Error {
        /// The documented reason.
        reason: &'static str,
        /// The message.
        message: String,
    },
}

impl Outcome {
    /// Makes an error outcome.
    pub fn error(reason: &'static str, message: &str) -> Outcome {
        Outcome::Error { reason, message: message.to_owned() }
    }

    /// Returns the reason of an error.
    pub fn reason(&self) -> Option<&'static str> {
        match self {
            Outcome::Error { reason, .. } => Some(reason),
            Outcome::Open | Outcome::Ok => None,
        }
    }

    /// Returns `ok`, `error` or `open`.
    pub fn status(&self) -> &'static str {
        match self {
            Outcome::Open => "open",
            Outcome::Ok => "ok",
            Outcome::Error { .. } => "error",
        }
    }
}

impl Record {
    /// Creates the record of a call that has just arrived.
    pub fn new(tool: &'static str, asked: &RequestMeta<'_>, at: Timestamp, redactor: &Redactor) -> Record {
        let of_headers = || asked.origin.and_then(|origin| origin.traceparent.clone());
        let id = string(asked.id).unwrap_or(Cow::Borrowed(asked.id));
        Record {
            at,
            arrived: Instant::now(),
            tool,
            owner: Arc::clone(asked.owner),
            request_id: shown_id(&id, redactor),
            protocol_version: asked.protocol_version,
            origin: asked.origin.cloned(),
            traceparent: asked.meta.and_then(trace_context::of_meta).map(Cow::into_owned).or_else(of_headers),
            outcome: Outcome::Open,
            duration: Duration::ZERO,
            queued: Duration::ZERO,
            processor_wait: Duration::ZERO,
            started: None,
            analysis: None,
            evaluation: None,
            program: None,
            program_is_clean: false,
            context: None,
            output_schema_present: false,
            prints_count: None,
            missing_scopes: Vec::new(),
            denial: None,
            prints: Vec::new(),
            span: None,
            feedback: None,
            result_bytes: None,
            truncated: false,
            result: None,
            result_sha256: None,
            upstream_calls: Vec::new(),
            metrics: None,
            trace: None,
            #[cfg(feature = "agentic")]
            task: None,
        }
    }

    /// Records the arguments according to the policy.
    pub fn arguments(&mut self, call: &Call, payloads: Payloads, redactor: &Redactor) {
        self.program_is_clean = redactor.redact_str(&call.program) == call.program.as_str();
        self.program = Some(text(&call.program, payloads, redactor));
        self.context = call.context.as_deref().map(|raw| context(raw, payloads, redactor));
        let stored = call.stored.is_some_and(|program| !program.output_schema.is_empty());
        self.output_schema_present = stored || call.output_schema.is_some();
    }

    /// Records the redacted result according to the policy.
    pub fn result(&mut self, shown: &str, payloads: Payloads) {
        self.result_sha256 = (payloads != Payloads::None && !shown.is_empty()).then(|| hex(&sha256(shown.as_bytes())));
        self.result = (payloads == Payloads::Full).then(|| shown.to_owned());
    }

    /// Records the position of an error, and advice according to the policy.
    pub fn failed_at(&mut self, failure: &Failure, payloads: Payloads) {
        self.span = failure.span.filter(|_| self.program_is_clean);
        let told = payloads == Payloads::Full && !failure.feedback.is_empty();
        self.feedback = told.then(|| failure.feedback.clone());
    }

    /// Iterates over the stages of the call: name, start relative to the arrival, and duration.
    pub fn stages(&self) -> impl Iterator<Item = (&'static str, Duration, Duration)> {
        let analyzed = self.started.zip(self.analysis).map(|(started, analysis)| started + analysis);
        [("analyze", self.started, self.analysis), ("eval", analyzed, self.evaluation)]
            .into_iter()
            .filter_map(|(name, began, took)| Some((name, began?.saturating_duration_since(self.arrived), took?)))
    }

    /// Returns the text of a `lisp_task`.
    pub fn task_text(&self) -> Option<&Payload> {
        #[cfg(feature = "agentic")]
        let text = self.task.as_ref().map(|told| &told.task);
        #[cfg(not(feature = "agentic"))]
        let text = None;
        text
    }

    /// Returns the spans of a `lisp_task`, in order.
    pub fn task_spans(&self) -> &[lines::Span<'static>] {
        #[cfg(feature = "agentic")]
        let spans = self.task.as_ref().map_or(&[][..], |told| &told.spans);
        #[cfg(not(feature = "agentic"))]
        let spans = &[];
        spans
    }

    /// Whether it is a `lisp_task`, whose programs are written while it runs.
    pub fn is_task(&self) -> bool {
        self.task_text().is_some()
    }

    /// Returns the milliseconds from arrival to answer.
    pub fn duration_ms(&self) -> u64 {
        milliseconds(self.duration)
    }

    /// Returns the members that `recent` shows.
    pub fn brief(&self) -> Brief<'_> {
        Brief { call: self.call(), ended: self.ended(), input: self.input(), upstream_calls: self.upstream_calls.len() }
    }

    /// Returns the members that `get` shows.
    pub fn whole(&self) -> Whole<'_> {
        let (call, ended, input, output) = (self.call(), self.ended(), self.input(), self.output());
        Whole { call, ended, input, output, upstream_calls: &self.upstream_calls }
    }

    /// Estimates the bytes of memory that the record takes.
    pub fn weight(&self) -> usize {
        let message = if let Outcome::Error { message, .. } = &self.outcome { message.len() } else { 0 };
        let calls = self.upstream_calls.iter().map(|call| size_of::<CallRecord>() + call.error.as_ref().map_or(0, String::len));
        let prints = self.prints.iter().chain(&self.missing_scopes).map(|line| size_of::<String>() + line.len()).sum::<usize>();
        let texts = [&self.result, &self.result_sha256, &self.feedback, &self.trace]
            .into_iter()
            .flatten()
            .map(String::len)
            .sum::<usize>();
        let texts = self.request_id.len() + message + prints + texts;
        let payloads = self.program.as_ref().into_iter().chain(self.task_text()).map(Payload::weight).sum::<usize>();
        let context = match &self.context {
            None => 0,
            Some(Context::Value(value)) => weight(value),
            Some(Context::Text(text)) => text.get().len(),
        };
        size_of::<Record>() + texts + payloads + context + calls.sum::<usize>()
    }

    /// Removes the payloads. The rest has a few kilobytes.
    #[must_use]
    pub fn without_payloads(mut self) -> Record {
        let texts = self.program.iter_mut();
        #[cfg(feature = "agentic")]
        let texts = texts.chain(self.task.as_mut().map(|told| &mut told.task));
        texts.for_each(|payload| payload.text = None);
        (self.context, self.result, self.feedback) = (None, None, None);
        self.prints = Vec::new();
        self
    }

    pub(super) fn call(&self) -> lines::Call<'_> {
        lines::Call {
            ts: self.at.to_string(),
            tool: self.tool,
            request_id: &self.request_id,
            protocol_version: self.protocol_version,
            prints_count: self.prints_count,
            result_bytes: self.result_bytes,
            truncated: self.truncated,
            queued_ms: milliseconds(self.queued),
            processor_wait_ms: milliseconds(self.processor_wait),
            origin: self.origin.as_ref(),
            traceparent: self.traceparent.as_deref(),
            ptc_metrics: self.metrics.as_ref(),
        }
    }

    pub(super) fn input(&self) -> Input<'_> {
        Input {
            program: self.program.clone(),
            context: self.context.as_ref().map(Cow::Borrowed),
            output_schema_present: self.output_schema_present,
            task: self.task_text().cloned(),
        }
    }

    pub(super) fn ended(&self) -> Ended {
        let (status, reason) = (self.outcome.status(), self.outcome.reason());
        Ended { status, reason, duration_ms: self.duration_ms() }
    }

    pub(super) fn output(&self) -> Output<'_> {
        let message = if let Outcome::Error { message, .. } = &self.outcome { Some(message.clone()) } else { None };
        let failure = lines::Failure {
            message,
            message_bytes: None,
            error_span: self.span.map(ErrorSpan::from),
            feedback: self.feedback.clone(),
            denial: None,
        };
        let (result, result_sha256) = (self.result.as_deref(), self.result_sha256.as_deref());
        Output { result, result_sha256, prints: &self.prints, missing_scopes: &self.missing_scopes, failure }
    }
}

/// Returns a redacted id, truncated if long.
pub fn shown_id(id: &str, redactor: &Redactor) -> String {
    let clean = redactor.redact_str(id);
    clean.get(..clean.floor_char_boundary(ID_BYTES)).unwrap_or_default().to_owned()
}

/// Estimates the bytes of memory that a JSON value takes.
fn weight(value: &Value) -> usize {
    let inside = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(members) => members.iter().map(|(name, value)| size_of::<String>() + name.len() + weight(value)).sum(),
    };
    size_of::<Value>() + inside
}

/// Reduces a text according to the policy.
pub(super) fn text(text: &str, payloads: Payloads, redactor: &Redactor) -> Payload {
    let clean = redactor.redact_str(text);
    let preview = (payloads == Payloads::Summary).then(|| clean.chars().take(PREVIEW_CHARS).collect());
    let sha256 = digest(text, &clean);
    Payload { bytes: text.len(), sha256, preview, text: (payloads == Payloads::Full).then(|| clean.into_owned()) }
}

/// Reduces a context according to the policy.
pub(super) fn context(context: &str, payloads: Payloads, redactor: &Redactor) -> Context {
    match payloads {
        Payloads::None => Context::Value(json!({ "bytes": context.len() })),
        Payloads::Summary => {
            let mut shown = json!({ "bytes": context.len(), "keys": shape(context, redactor) });
            if let (Some(members), Some(sha256)) =
                (shown.as_object_mut(), digest(context, &redactor.redact_text(context.to_owned())))
            {
                members.insert("sha256".into(), sha256.into());
            }
            Context::Value(shown)
        }
        Payloads::Full => {
            let mut clean = redactor.redact_text(context.to_owned());
            // A trace file has one record per line. In JSON, a line break can only be white space.
            // Bytes are searched several times as fast as characters.
            if [b'\n', b'\r'].iter().any(|byte| clean.as_bytes().contains(byte)) {
                clean = clean.replace(['\n', '\r'], " ");
            }
            let text = (depth(&clean) < MAX_DEPTH).then(|| serde_json::from_str::<Box<RawValue>>(&clean).ok()).flatten();
            text.map_or_else(|| Context::Value(Value::String(clean)), Context::Text)
        }
    }
}

/// Returns the maximum number of open containers in a JSON text.
fn depth(json: &str) -> usize {
    let (mut open, mut deepest, mut in_string) = (0_usize, 0, false);
    let mut bytes = json.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' if in_string => drop(bytes.next()),
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                open += 1;
                deepest = deepest.max(open);
            }
            b']' | b'}' if !in_string => open = open.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Returns the digest of a text, unless it contains a secret. A digest would permit guessing the secret.
fn digest(text: &str, clean: &str) -> Option<String> {
    (clean == text).then(|| hex(&sha256(text.as_bytes())))
}

/// Returns the first keys of a context in their order, with type and size of the values.
fn shape(context: &str, redactor: &Redactor) -> Value {
    let mut members = BTreeMap::new();
    let mut walk = Walk::new(context);
    let read = walk.object(|walk, name| {
        members.insert(name.into_owned(), walk.pass()?);
        if members.len() > MAX_KEYS {
            members.pop_last();
        }
        Ok(())
    });
    if read.and_then(|()| walk.end()).is_err() {
        return Value::Null;
    }
    let mut rows = Map::new();
    rows.extend(members.into_iter().map(|(name, json)| {
        let Shape { kind, count } = Shape::parse(json);
        (redactor.redact_str(&name).into_owned(), json!({ "type": kind, "count": count }))
    }));
    rows.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full(text: &str) -> Value {
        json!(context(text, Payloads::Full, &Redactor::none()))
    }

    #[test]
    fn full_context_is_its_json_in_one_line() {
        let text = "{\"a\":\n[1,\r\n2],\"b\":\"\\n\"}";
        assert_eq!(full(text), json!({ "a": [1, 2], "b": "\n" }));
        let Context::Text(shown) = context(text, Payloads::Full, &Redactor::none()) else { panic!("it is JSON") };
        assert!(!shown.get().contains(['\n', '\r']));
    }

    #[test]
    fn context_that_parsers_reject_is_a_text() {
        for (levels, is_text) in [(126, false), (127, true), (100_000, true)] {
            let text = format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
            assert_eq!(full(&text).is_string(), is_text, "{levels}");
        }
        assert_eq!(depth(r#"["[\"[", {"[": [{}]}]"#), 4);
    }

    #[test]
    fn summary_has_types_and_sizes_of_the_first_keys() {
        let shape = |text: &str| shape(text, &Redactor::none());
        let kinds = shape(r#"{"a":[1,[2,3]],"b":{"c":1},"a":[]}"#);
        let expected = json!({ "a": { "type": "array", "count": 0 }, "b": { "type": "object", "count": 1 } });
        assert_eq!(kinds, expected);
        let many = json!((0..1_000).rev().map(|key| (format!("{key:04}"), key)).collect::<BTreeMap<_, _>>()).to_string();
        let kept = shape(&many);
        let names: Vec<&String> = kept.as_object().into_iter().flatten().map(|(name, _)| name).collect();
        assert_eq!((names.len(), names[0].as_str(), names[49].as_str()), (MAX_KEYS, "0000", "0049"));
        assert_eq!(shape("[1]"), Value::Null);
    }
}
