//! Encodes a call as spans, in the JSON of OTLP.
//!
//! Names follow OpenTelemetry's semantic conventions for MCP and generative AI if they define one; the others begin with `ptc.`.
//! Spans never contain payloads: programs, contexts and results are not exported. A failure's message may quote them and is
//! exported only with full payloads.

use std::time::Duration;

use ptc_runtime::diagnostics::record::{Outcome, Record};
use ptc_runtime::diagnostics::{Payloads, lines};
use ptc_runtime::digest::hex;
use ptc_runtime::protocol::trace_context::TraceParent;
use ptc_runtime::secrets::Redactor;
use ptc_runtime::secrets::random;
use serde_json::{Value, json};

use crate::settings::OtlpSettings;

/// The name of the instrumentation scope: the package that measures the calls.
const SCOPE: &str = "ptc-runtime";
/// Kinds of spans.
const INTERNAL: u8 = 1;
const SERVER: u8 = 2;
const CLIENT: u8 = 3;
/// The status of a failure.
const ERROR: u8 = 2;
/// Flags: the trace is sampled; the location of the parent is known; the parent is remote.
const SAMPLED: u32 = 1;
const KNOWN: u32 = 0x100;
const REMOTE: u32 = 0x200;

/// The encoded spans of a call.
#[derive(Debug)]
pub(crate) struct EncodedSpans {
    /// Its spans as JSON, with commas between them.
    pub(crate) text: String,
    /// Number of spans.
    pub(crate) spans: u64,
}

/// An interval of a call.
struct Span {
    name: String,
    kind: u8,
    /// Start relative to the call's arrival.
    start: Duration,
    took: Duration,
    /// Index of the parent. `None` for the call itself.
    parent: Option<usize>,
    attributes: Vec<(&'static str, Value)>,
    /// Whether it failed; the reason is an attribute.
    failed: bool,
    /// The failure's message, if it may be exported.
    message: Option<String>,
}

impl Span {
    fn within(name: impl Into<String>, start: Duration, took: Duration) -> Span {
        Span {
            name: name.into(),
            kind: INTERNAL,
            start,
            took,
            parent: Some(0),
            attributes: Vec::new(),
            failed: false,
            message: None,
        }
    }
}

/// Encodes the resource attributes: the service, and the attributes that the operator configured.
pub(crate) fn resource(settings: &OtlpSettings, deployment: &str) -> String {
    let service = settings.service.as_deref().unwrap_or(deployment);
    let own = [("service.name", service), ("service.version", env!("CARGO_PKG_VERSION"))];
    let said = settings.resource.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let own = own.into_iter().filter(|(name, _)| *name == "service.name" || said.clone().all(|(other, _)| other != *name));
    let all: Vec<Value> = own.chain(said.clone()).map(|(name, value)| attribute(name, &value.into())).collect();
    Value::from(all).to_string()
}

/// Encodes the body of a request.
pub(crate) fn body(resource: &str, calls: &[EncodedSpans]) -> String {
    let spans: Vec<&str> = calls.iter().map(|encoded| encoded.text.as_str()).collect();
    let scope = json!({ "name": SCOPE, "version": env!("CARGO_PKG_VERSION") });
    format!(
        r#"{{"resourceSpans":[{{"resource":{{"attributes":{resource}}},"scopeSpans":[{{"scope":{scope},"spans":[{}]}}]}}]}}"#,
        spans.join(",")
    )
}

/// Encodes a call that has ended; `None` if the client's trace is not sampled.
pub(crate) fn encode(record: &Record, payloads: Payloads, redactor: &Redactor) -> Option<EncodedSpans> {
    let parent = record.traceparent.as_deref().and_then(TraceParent::parse);
    if parent.is_some_and(|parent| !parent.sampled) {
        return None;
    }
    let spans = all(record, payloads, redactor);
    let mut bytes = vec![0; 16 + 8 * spans.len()];
    random::fill(&mut bytes).ok()?;
    let (own, ids) = bytes.split_at_checked(16)?;
    let trace = parent.map_or_else(|| hex(own), |parent| parent.trace.to_owned());
    let ids: Vec<String> = ids.chunks(8).map(hex).collect();
    let began = record.at.as_nanosecond();
    let mut texts = Vec::new();
    for (span, id) in spans.iter().zip(&ids) {
        let start = began + span.start.as_nanos() as i128;
        let above = match span.parent {
            Some(at) => ids.get(at).map(String::as_str),
            None => parent.map(|parent| parent.span),
        };
        let remote = if span.parent.is_none() && parent.is_some() { REMOTE } else { 0 };
        let attributes: Vec<Value> =
            span.attributes.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| attribute(name, value)).collect();
        let mut encoded = json!({
            "traceId": trace,
            "spanId": id,
            "flags": SAMPLED | KNOWN | remote,
            "name": span.name,
            "kind": span.kind,
            "startTimeUnixNano": start.to_string(),
            "endTimeUnixNano": (start + span.took.as_nanos() as i128).to_string(),
            "attributes": attributes,
        });
        if let Some(members) = encoded.as_object_mut() {
            members.extend(above.map(|id| ("parentSpanId".to_owned(), id.into())));
            let said = span.message.as_ref();
            members.extend(span.failed.then(|| {
                let status = said.map_or_else(|| json!({ "code": ERROR }), |said| json!({ "code": ERROR, "message": said }));
                ("status".to_owned(), status)
            }));
        }
        texts.push(encoded.to_string());
    }
    Some(EncodedSpans { spans: texts.len() as u64, text: texts.join(",") })
}

/// Returns the span of the call, followed by the spans of its parts.
fn all(record: &Record, payloads: Payloads, redactor: &Redactor) -> Vec<Span> {
    let clean = |text: &str| Value::from(redactor.redact_str(text).into_owned());
    let encoded = |message: &str| (payloads == Payloads::Full).then(|| redactor.redact_str(message).into_owned());
    let origin = record.origin.as_ref();
    let mut call = Span::within(format!("tools/call {}", record.tool), Duration::ZERO, record.duration);
    (call.kind, call.parent) = (SERVER, None);
    call.attributes = vec![
        ("mcp.method.name", "tools/call".into()),
        ("gen_ai.operation.name", "execute_tool".into()),
        ("gen_ai.tool.name", record.tool.into()),
        ("jsonrpc.request.id", clean(&record.request_id)),
        ("mcp.protocol.version", record.protocol_version.into()),
        ("network.transport", if origin.is_some() { "tcp" } else { "pipe" }.into()),
        ("ptc.http_request.id", origin.map(|origin| origin.transport_request_id.as_str()).into()),
        ("ptc.owner.hash", origin.map(|origin| origin.owner_hash.as_str()).into()),
        ("ptc.mcp_session.hash", origin.and_then(|origin| origin.mcp_session_hash.as_deref()).into()),
        ("ptc.result.bytes", record.result_bytes.into()),
        ("ptc.result.truncated", record.truncated.into()),
        ("ptc.prints", record.prints_count.into()),
        ("ptc.upstream_calls", record.upstream_calls.len().into()),
        ("error.type", record.outcome.reason().into()),
    ];
    if let Outcome::Error { message, .. } = &record.outcome {
        (call.failed, call.message) = (true, encoded(record.denial.as_ref().unwrap_or(message)));
    }
    let mut spans = vec![call];
    spans.extend(record.stages().map(|(name, start, took)| Span::within(name, start, took)));
    spans.extend(record.task_spans().iter().filter_map(of_task));
    let programs: Vec<(usize, Duration, Duration)> =
        spans.iter().enumerate().filter(|(_, span)| span.name == "eval").map(|(at, s)| (at, s.start, s.start + s.took)).collect();
    for upstream in &record.upstream_calls {
        let start = upstream.started.saturating_duration_since(record.arrived);
        let mut span = Span::within(format!("{}/{}", upstream.server, redactor.redact_str(&upstream.tool)), start, upstream.took);
        span.kind = CLIENT;
        // The parent is the program that made the call.
        span.parent =
            programs.iter().rev().find(|(_, from, to)| (*from..=*to).contains(&start)).map_or(Some(0), |(at, ..)| Some(*at));
        span.attributes = vec![
            ("gen_ai.operation.name", "execute_tool".into()),
            ("gen_ai.tool.name", clean(&upstream.tool)),
            ("ptc.upstream", upstream.server.into()),
            ("ptc.result.bytes", upstream.result_bytes.into()),
            ("ptc.result.oversize", upstream.oversize.into()),
            ("ptc.auth.binding", upstream.auth.map(|auth| auth.binding).into()),
            ("ptc.policy.rule", upstream.rule.into()),
            ("http.response.status_code", upstream.http_status.into()),
            ("error.type", upstream.reason.into()),
        ];
        span.failed = upstream.reason.is_some();
        span.message = upstream.error.as_deref().and_then(encoded);
        spans.push(span);
    }
    spans
}

/// Returns the span of a request to the planner, or of a stage of one of its programs.
fn of_task(part: &lines::Span<'_>) -> Option<Span> {
    let (name, stage, reason) = match part {
        lines::Span::Analyze(stage) => ("analyze", stage, None),
        lines::Span::Eval(eval) => ("eval", &eval.stage, eval.reason),
        lines::Span::Planner(planner) => ("planner", &planner.stage, planner.reason),
        lines::Span::UpstreamCall(_) => return None,
    };
    let mut span = Span::within(name, Duration::from_micros(stage.start_us), Duration::from_micros(stage.duration_us));
    span.attributes = vec![("ptc.turn", stage.turn.into()), ("error.type", reason.into())];
    if let lines::Span::Planner(planner) = part {
        span.kind = CLIENT;
        span.attributes.push(("ptc.attempts", planner.attempts.into()));
        if let Some(tokens) = planner.tokens {
            span.attributes.push(("gen_ai.usage.input_tokens", tokens.input.into()));
            span.attributes.push(("gen_ai.usage.output_tokens", tokens.output.into()));
        }
    }
    span.failed = reason.is_some();
    Some(span)
}

fn attribute(name: &str, value: &Value) -> Value {
    let value = match value {
        Value::Bool(yes) => json!({ "boolValue": yes }),
        // The JSON mapping of protocol buffers encodes 64-bit integers as strings.
        Value::Number(number) => json!({ "intValue": number.to_string() }),
        Value::String(text) => json!({ "stringValue": text }),
        other => json!({ "stringValue": other.to_string() }),
    };
    json!({ "key": name, "value": value })
}
