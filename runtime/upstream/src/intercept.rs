//! Answers calls in place of the upstreams, or observes them: the replay and the recording of answers.
//!
//! A call reaches an interceptor after its arguments and budgets were checked. Its answer takes the path of an upstream's answer:
//! redaction, limits of memory, the record of calls.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use ptc_catalog::{Tool, Upstream};
use ptc_lisp::host::{Fault, HttpHead};
use ptc_schedule::ClientKey;
use ptc_secrets::Redactor;

use crate::UpstreamSettings;
use crate::dispatch::Answered;
use crate::fault::{Reason, UpstreamError};
use crate::mcp::outcome::Payload;
use crate::offload::offload;
use crate::stage::{self, Stage};

/// A component that answers or observes the calls of programs.
pub trait Interceptor: Debug + Send + Sync {
    /// Whether it answers every call, so that no upstream is ever contacted.
    fn is_offline(&self) -> bool;

    /// Called when a server ends, after its last program. Waits for what is still written, for some seconds at most.
    fn finish(&self) {}

    /// Called once for each evaluation, before its first call, with its client.
    fn begin(&self, client_key: &ClientKey) -> Arc<dyn ProgramInterceptor>;
}

/// The interceptor of the calls of one evaluation. It is called from several threads at once.
pub trait ProgramInterceptor: Send + Sync {
    /// Returns the answer to a call, or passes the call on to its upstream.
    fn answer(&self, call: &InterceptedCall) -> Interception;

    /// Called with the outcome of a call that was passed on, and with the time that the call took. Its texts are redacted. The program waits
    /// for it. For a large answer it is called on a blocking thread.
    fn observe(&self, call: &InterceptedCall, outcome: Result<&CallAnswer, &UpstreamError>, took: Duration);
}

/// A valid call.
#[derive(Debug, Clone)]
pub struct InterceptedCall {
    /// The upstream.
    pub upstream: &'static Upstream,
    /// The tool.
    pub tool: &'static Tool,
    /// The arguments, as a JSON object with redacted texts.
    pub arguments: Vec<u8>,
    /// `:accept`
    pub accept: Option<String>,
    /// Whether `:body false` asks for an answer without the bytes of its body.
    pub without_bytes: bool,
}

/// The decision of an interceptor.
#[derive(Debug)]
pub enum Interception {
    /// The upstream is called.
    PassOn,
    /// The program receives this answer or failure.
    Answer(Result<CallAnswer, UpstreamError>),
    /// The program receives this answer or failure after a delay.
    AnswerAfter(Duration, Result<CallAnswer, UpstreamError>),
    /// The program ends with this fault.
    Refuse(Fault),
}

/// The answer to a successful call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallAnswer {
    /// The content.
    pub payload: CallPayload,
    /// The status of the HTTP answer, if there was one.
    pub http_status: Option<u16>,
    /// The head of the answer of an OpenAPI operation.
    pub head: Option<HttpHead>,
}

/// The content of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallPayload {
    /// Nothing.
    None,
    /// JSON text.
    Json(Vec<u8>),
    /// Text, which programs receive decoded if it is JSON.
    Text(String),
    /// Text that programs receive as text.
    Plain(String),
}

impl Answered {
    /// Creates the answer that an interceptor gave.
    pub(crate) fn intercepted(answer: CallAnswer) -> Answered {
        let payload = match answer.payload {
            CallPayload::None => Payload::None,
            CallPayload::Json(json) => Payload::Json(json),
            CallPayload::Text(text) => Payload::Text(text),
            #[cfg(feature = "http")]
            CallPayload::Plain(text) => Payload::Plain(text),
            #[cfg(not(feature = "http"))]
            CallPayload::Plain(text) => Payload::Text(text),
        };
        // Responses show the header, from which the next page of a list is read.
        let link_header = answer.head.iter().flat_map(|head| &head.headers).find(|(name, _)| name == "link");
        let link_header = link_header.map(|(_, value)| value.clone());
        Answered { payload, http_status: answer.http_status, head: answer.head.map(Box::new), link_header }
    }

    /// Copies the answer for an interceptor, with redacted texts. JSON was redacted when it was received.
    fn observed(&self, redactor: &Redactor) -> CallAnswer {
        let payload = match &self.payload {
            Payload::None => CallPayload::None,
            Payload::Json(json) => CallPayload::Json(json.clone()),
            Payload::Text(text) => CallPayload::Text(redactor.redact_text(text.clone())),
            #[cfg(feature = "http")]
            Payload::Plain(text) => CallPayload::Plain(redactor.redact_text(text.clone())),
        };
        CallAnswer { payload, http_status: self.http_status, head: self.head.as_deref().cloned() }
    }
}

/// Passes the outcome of a call on to an interceptor, and returns it. The redaction of a large answer, and what the interceptor does with
/// it, take long, so that a blocking thread does both.
pub(crate) async fn observe(
    program: Arc<dyn ProgramInterceptor>,
    call: InterceptedCall,
    outcome: Result<Answered, UpstreamError>,
    took: Duration,
    redactor: Redactor,
) -> Result<Answered, UpstreamError> {
    let failed_body = |fault: &UpstreamError| fault.head.as_ref().and_then(|head| head.failed_body.as_ref()).map_or(0, Vec::len);
    let answer_bytes =
        outcome.as_ref().map_or_else(|fault| fault.message.len() + failed_body(fault), |answered| answered.payload.len());
    let observed = offload(call.arguments.len() + answer_bytes, move || {
        match &outcome {
            Ok(answered) => program.observe(&call, Ok(&answered.observed(&redactor)), took),
            Err(fault) => {
                let message = redactor.redact_str(&fault.message).into_owned();
                program.observe(&call, Err(&UpstreamError { message: message.into(), ..fault.clone() }), took);
            }
        }
        outcome
    });
    observed.await.unwrap_or_else(Err)
}

/// Sets the stage of a call that an interceptor has answered, which decides whether a write counts as sent.
pub(crate) fn enter_stage(answer: &Result<CallAnswer, UpstreamError>) {
    let was_sent = !matches!(answer, Err(fault) if fault.reason == Reason::UpstreamUnavailable);
    stage::enter(if was_sent { Stage::Reading } else { Stage::Connecting });
}

/// Returns an error if an interceptor answers all calls, so that nothing may connect.
pub(crate) fn check_online(settings: &UpstreamSettings) -> Result<(), UpstreamError> {
    if settings.is_offline() {
        return Err(UpstreamError::unavailable("calls are answered from recorded answers, so that no upstream is contacted"));
    }
    Ok(())
}
