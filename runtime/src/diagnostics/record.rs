//! One call, as much of it as the policy lets through.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use ptc_lisp::Span;
use serde_json::{Map, Value, json};

use super::{Origin, Payloads, RequestMeta, milliseconds};
use crate::digest::{hex, sha256};
use crate::evaluation::{Call, Failure};
use crate::protocol::message::string;
use crate::protocol::trace_context;
use crate::response::metrics::Metrics;
use crate::secrets::Redactor;
use crate::upstream::CallRecord;

/// Bytes of a request's id that are kept: as many as `lisp_debug` takes to look one up.
pub const ID_BYTES: usize = 256;
/// Characters of a program that a summary shows.
const PREVIEW_CHARS: usize = 200;
/// Keys of a context that a summary names.
const MAX_KEYS: usize = 50;

/// A call and what became of it.
#[derive(Debug)]
pub struct Record {
    /// When it began.
    pub at: Timestamp,
    /// The same moment, to count from.
    pub arrived: Instant,
    /// The tool.
    pub tool: &'static str,
    /// The id of its request, as [`shown_id`] has it.
    pub request_id: String,
    /// The revision that its client speaks.
    pub protocol_version: Option<&'static str>,
    /// What its transport knows.
    pub origin: Option<Origin>,
    /// The trace that it is a part of: as the message says, else the headers around it.
    pub traceparent: Option<String>,
    /// How it ended.
    pub outcome: Outcome,
    /// From its arrival to its answer.
    pub duration: Duration,
    /// In the queue, before its evaluation began.
    pub queued: Duration,
    /// Without a processor while it could have computed.
    pub processor_wait: Duration,
    /// When its evaluation began.
    pub started: Option<Instant>,
    /// Reading, analyzing and checking its program.
    pub analysis: Option<Duration>,
    /// Evaluating it.
    pub evaluation: Option<Duration>,
    /// Its program, by the policy.
    pub program: Option<Value>,
    /// Whether its program had no secret in it, so that places in it mean the same in what is shown of it.
    pub program_is_clean: bool,
    /// Its context, by the policy.
    pub context: Option<Value>,
    /// Whether it asked for validation.
    pub output_schema_present: bool,
    /// How many lines it printed.
    pub prints_count: Option<usize>,
    /// Those lines, where the policy is `full`.
    pub prints: Vec<String>,
    /// The form at fault, in bytes of the program.
    pub span: Option<Span>,
    /// What helps to repair the program, with a line of it, where the policy is `full`.
    pub feedback: Option<String>,
    /// Bytes of its result as text.
    pub result_bytes: Option<usize>,
    /// Whether its result was cut.
    pub truncated: bool,
    /// Its result, where the policy is `full`.
    pub result: Option<String>,
    /// The SHA-256 of its result in hexadecimal, unless the policy is `none`.
    pub result_sha256: Option<String>,
    /// Its calls of upstream tools.
    pub upstream_calls: Vec<CallRecord>,
    /// What they came to.
    pub metrics: Option<Metrics>,
    /// The name of its trace file.
    pub trace: Option<String>,
    /// What a `lisp_task` adds.
    #[cfg(feature = "agentic")]
    pub task: Option<super::task::TaskTrace>,
}

/// How a call ended.
#[derive(Debug)]
pub enum Outcome {
    /// It has not.
    Open,
    /// With a value.
    Ok,
    /// Without one.
    Error {
        /// The documented reason.
        reason: &'static str,
        /// What happened.
        message: String,
    },
}

impl Outcome {
    /// An error.
    pub fn error(reason: &'static str, message: &str) -> Outcome {
        Outcome::Error { reason, message: message.to_owned() }
    }

    /// Its reason, where it is an error.
    pub fn reason(&self) -> Option<&'static str> {
        match self {
            Outcome::Error { reason, .. } => Some(reason),
            Outcome::Open | Outcome::Ok => None,
        }
    }

    /// `ok`, `error` or `open`.
    pub fn status(&self) -> &'static str {
        match self {
            Outcome::Open => "open",
            Outcome::Ok => "ok",
            Outcome::Error { .. } => "error",
        }
    }
}

impl Record {
    /// A call that has just arrived.
    pub fn new(tool: &'static str, asked: &RequestMeta<'_>, at: Timestamp, redactor: &Redactor) -> Record {
        let of_headers = || asked.origin.and_then(|origin| origin.traceparent.clone());
        let id = string(asked.id).unwrap_or(Cow::Borrowed(asked.id));
        Record {
            at,
            arrived: Instant::now(),
            tool,
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

    /// Takes the arguments over, by the policy.
    pub fn arguments(&mut self, call: &Call, payloads: Payloads, redactor: &Redactor) {
        self.program_is_clean = redactor.redact_str(&call.program) == call.program.as_str();
        self.program = Some(text(&call.program, payloads, redactor));
        self.context = call.context.as_deref().map(|raw| context(raw, payloads, redactor));
        let stored = call.stored.is_some_and(|program| !program.output_schema.is_empty());
        self.output_schema_present = stored || call.output_schema.is_some();
    }

    /// Takes over what it came to, without secrets, by the policy.
    pub fn result(&mut self, shown: &str, payloads: Payloads) {
        self.result_sha256 = (payloads != Payloads::None && !shown.is_empty()).then(|| hex(&sha256(shown.as_bytes())));
        self.result = (payloads == Payloads::Full).then(|| shown.to_owned());
    }

    /// Takes over where it failed, and by the policy what helps.
    pub fn failed_at(&mut self, failure: &Failure, payloads: Payloads) {
        self.span = failure.span.filter(|_| self.program_is_clean);
        let told = payloads == Payloads::Full && !failure.feedback.is_empty();
        self.feedback = told.then(|| failure.feedback.clone());
    }

    /// What it was done in: the name of a stage, its start from the call's arrival, and how long it took.
    pub fn stages(&self) -> impl Iterator<Item = (&'static str, Duration, Duration)> {
        let analyzed = self.started.zip(self.analysis).map(|(started, analysis)| started + analysis);
        [("analyze", self.started, self.analysis), ("eval", analyzed, self.evaluation)]
            .into_iter()
            .filter_map(|(name, began, took)| Some((name, began?.saturating_duration_since(self.arrived), took?)))
    }

    /// Whether its program was written while it ran.
    pub fn is_task(&self) -> bool {
        #[cfg(feature = "agentic")]
        let task = self.task.is_some();
        #[cfg(not(feature = "agentic"))]
        let task = false;
        task
    }

    /// Milliseconds from its arrival to its answer.
    pub fn duration_ms(&self) -> u64 {
        milliseconds(self.duration)
    }

    /// What `recent` shows of it.
    pub fn brief(&self) -> Map<String, Value> {
        let mut shown = self.common();
        shown.insert("upstream_calls".into(), self.upstream_calls.len().into());
        shown
    }

    /// What `get` shows of it.
    pub fn whole(&self) -> Map<String, Value> {
        let mut shown = self.common();
        shown.insert("upstream_calls".into(), json!(self.upstream_calls));
        for (name, text) in [("result", &self.result), ("result_sha256", &self.result_sha256)] {
            shown.extend(text.as_deref().map(|text| (name.to_owned(), text.into())));
        }
        if let Outcome::Error { message, .. } = &self.outcome {
            shown.insert("message".into(), message.as_str().into());
        }
        if !self.prints.is_empty() {
            shown.insert("prints".into(), json!(self.prints));
        }
        if let Some(span) = self.span {
            shown.insert("error_span".into(), json!({ "start": span.start, "end": span.end }));
        }
        if let Some(feedback) = &self.feedback {
            shown.insert("feedback".into(), feedback.as_str().into());
        }
        shown
    }

    /// Bytes that it takes in memory, about.
    pub fn weight(&self) -> usize {
        let message = if let Outcome::Error { message, .. } = &self.outcome { message.len() } else { 0 };
        let calls = self.upstream_calls.iter().map(|call| size_of::<CallRecord>() + call.error.as_ref().map_or(0, String::len));
        let prints = self.prints.iter().map(|line| size_of::<String>() + line.len()).sum::<usize>();
        let texts = [&self.result, &self.result_sha256, &self.feedback, &self.trace]
            .into_iter()
            .flatten()
            .map(String::len)
            .sum::<usize>();
        let texts = self.request_id.len() + message + prints + texts;
        let payloads = self.program.iter().chain(&self.context);
        #[cfg(feature = "agentic")]
        let payloads = payloads.chain(self.task.iter().flat_map(|told| {
            // With the words of prompts and completions, where those are kept.
            std::iter::once(&told.task).chain(told.spans.iter().flat_map(|span| span.values()))
        }));
        let payloads = payloads.map(weight).sum::<usize>();
        size_of::<Record>() + texts + payloads + calls.sum::<usize>()
    }

    /// Lets go of its payloads: what is left is a few kilobytes.
    #[must_use]
    pub fn without_payloads(mut self) -> Record {
        let texts = self.program.iter_mut();
        #[cfg(feature = "agentic")]
        let texts = texts.chain(self.task.as_mut().map(|told| &mut told.task));
        for text in texts.filter_map(Value::as_object_mut) {
            text.remove("text");
        }
        #[cfg(feature = "agentic")]
        for span in self.task.iter_mut().flat_map(|told| &mut told.spans) {
            span.remove("prompt");
            span.remove("completion");
        }
        (self.context, self.result, self.feedback) = (None, None, None);
        self.prints = Vec::new();
        self
    }

    fn common(&self) -> Map<String, Value> {
        let shown = json!({
            "ts": self.at.to_string(),
            "tool": self.tool,
            "request_id": self.request_id,
            "protocol_version": self.protocol_version,
            "status": self.outcome.status(),
            "reason": self.outcome.reason(),
            "duration_ms": self.duration_ms(),
            "program": self.program,
            "context": self.context,
            "output_schema_present": self.output_schema_present,
            "prints_count": self.prints_count,
            "result_bytes": self.result_bytes,
            "truncated": self.truncated,
        });
        let mut shown = if let Value::Object(shown) = shown { shown } else { Map::new() };
        for (name, waited) in [("queued_ms", self.queued), ("processor_wait_ms", self.processor_wait)] {
            let waited = milliseconds(waited);
            shown.extend((waited > 0).then(|| (name.to_owned(), waited.into())));
        }
        if let Some(origin) = &self.origin
            && let Ok(Value::Object(origin)) = serde_json::to_value(origin)
        {
            shown.extend(origin);
        }
        if let Some(parent) = &self.traceparent {
            shown.insert("traceparent".into(), parent.as_str().into());
        }
        if let Some(metrics) = &self.metrics {
            shown.insert("ptc_metrics".into(), json!(metrics));
        }
        #[cfg(feature = "agentic")]
        if let Some(task) = &self.task {
            shown.insert("task".into(), task.task.clone());
        }
        shown
    }
}

/// An id without secrets, cut where it is long.
pub fn shown_id(id: &str, redactor: &Redactor) -> String {
    let clean = redactor.redact_str(id);
    clean.get(..clean.floor_char_boundary(ID_BYTES)).unwrap_or_default().to_owned()
}

/// Bytes of a tree of JSON in memory, about.
fn weight(value: &Value) -> usize {
    let inside = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(members) => members.iter().map(|(name, value)| size_of::<String>() + name.len() + weight(value)).sum(),
    };
    size_of::<Value>() + inside
}

/// A text, by the policy.
pub(super) fn text(text: &str, payloads: Payloads, redactor: &Redactor) -> Value {
    let clean = redactor.redact_str(text);
    let mut shown = digest(text, &clean);
    match payloads {
        Payloads::None => {}
        Payloads::Summary => {
            shown.insert("preview".into(), clean.chars().take(PREVIEW_CHARS).collect::<String>().into());
        }
        Payloads::Full => {
            shown.insert("text".into(), clean.into());
        }
    }
    shown.into()
}

/// A context, by the policy.
pub(super) fn context(context: &str, payloads: Payloads, redactor: &Redactor) -> Value {
    match payloads {
        Payloads::None => json!({ "bytes": context.len() }),
        Payloads::Summary => {
            let mut shown = digest(context, &redactor.redact_text(context.to_owned()));
            shown.insert("keys".into(), shape(context, redactor));
            shown.into()
        }
        Payloads::Full => {
            let clean = redactor.redact_text(context.to_owned());
            serde_json::from_str(&clean).unwrap_or(Value::String(clean))
        }
    }
}

/// The size of a text and its digest, unless it holds a secret, which a digest would let be guessed at.
fn digest(text: &str, clean: &str) -> Map<String, Value> {
    let mut shown = Map::from_iter([("bytes".to_owned(), text.len().into())]);
    if clean == text {
        shown.insert("sha256".into(), hex(&sha256(text.as_bytes())).into());
    }
    shown
}

/// The keys of a context, with the kind and size of what is under them.
fn shape(context: &str, redactor: &Redactor) -> Value {
    let Ok(Value::Object(members)) = serde_json::from_str(context) else { return Value::Null };
    let row = |(name, value): (&String, &Value)| {
        let (kind, count) = match value {
            Value::Null => ("null", None),
            Value::Bool(_) => ("boolean", None),
            Value::Number(_) => ("number", None),
            Value::String(text) => ("string", Some(text.len())),
            Value::Array(items) => ("array", Some(items.len())),
            Value::Object(members) => ("object", Some(members.len())),
        };
        (redactor.redact_str(name).into_owned(), json!({ "type": kind, "count": count }))
    };
    let mut rows = Map::new();
    rows.extend(members.iter().take(MAX_KEYS).map(row));
    rows.into()
}
