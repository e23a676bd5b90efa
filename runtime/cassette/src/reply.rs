//! One recorded answer or failure.

use ptc_lisp::host::HttpHead;
use ptc_runtime::upstream::intercept::{CallAnswer, CallPayload};
use ptc_runtime::upstream::{Reason, UpstreamError};

use ptc_json::Json;

/// An answer or a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    /// The content.
    pub(crate) content: Content,
    /// The status of the HTTP answer, if there was one.
    pub(crate) status: Option<u16>,
    /// The headers of the answer of an OpenAPI operation that programs see.
    pub(crate) headers: Option<Vec<(String, String)>>,
    /// The body of a failed OpenAPI operation.
    pub(crate) body: Option<Json>,
    /// How long the call took, in milliseconds.
    pub(crate) latency_ms: Option<u64>,
}

/// The content of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    /// Nothing.
    None,
    /// A value, which the upstream sent as JSON, or as text that is JSON.
    Value(Json),
    /// JSON that programs read in another way than this compiler, such as an object with a repeated key.
    RawJson(String),
    /// Text.
    Text(String),
    /// Text that programs do not read as JSON.
    Plain(String),
    /// A failure.
    Fault {
        /// The reason, such as `tool_error`.
        reason: Reason,
        /// The message.
        message: String,
    },
}

/// Returns the value of a JSON text, if its canonical text is the same value to programs.
fn same_value(text: &str) -> Option<Json> {
    let value = Json::parse(text)?;
    let decoded = ptc_lisp::json::decode(text.as_bytes()).ok()?;
    let again = ptc_lisp::json::decode(value.canonical().as_bytes()).ok()?;
    (decoded == again).then_some(value)
}

impl Reply {
    /// Converts the outcome of a call.
    pub(crate) fn new(outcome: Result<&CallAnswer, &UpstreamError>) -> Reply {
        match outcome {
            Ok(answer) => {
                let content = match &answer.payload {
                    CallPayload::None => Content::None,
                    CallPayload::Json(json) => {
                        let text = String::from_utf8_lossy(json);
                        same_value(&text).map_or_else(|| Content::RawJson(text.into_owned()), Content::Value)
                    }
                    CallPayload::Text(text) => same_value(text).map_or_else(|| Content::Text(text.clone()), Content::Value),
                    CallPayload::Plain(text) => Content::Plain(text.clone()),
                };
                let headers = answer.head.as_ref().map(|head| head.headers.clone());
                Reply { content, status: answer.http_status, headers, body: None, latency_ms: None }
            }
            Err(fault) => {
                let content = Content::Fault { reason: fault.reason, message: fault.message.clone().into_owned() };
                let head = fault.head.as_deref();
                let body = head.and_then(|head| same_value(std::str::from_utf8(head.failed_body.as_ref()?).ok()?));
                let headers = head.map(|head| head.headers.clone());
                Reply { content, status: fault.http_status, headers, body, latency_ms: None }
            }
        }
    }

    /// Whether a program receives the same from both, though perhaps after another time.
    pub(crate) fn is_like(&self, other: &Reply) -> bool {
        let Reply { content, status, headers, body, latency_ms: _ } = self;
        (content, status, headers, body) == (&other.content, &other.status, &other.headers, &other.body)
    }

    /// Returns the outcome that a program receives.
    pub(crate) fn outcome(&self) -> Result<CallAnswer, UpstreamError> {
        let failed_body = self.body.as_ref().map(|body| body.canonical().into_bytes());
        let has_head = self.headers.is_some() || failed_body.is_some();
        let head = has_head.then(|| HttpHead {
            status: self.status.unwrap_or_default(),
            headers: self.headers.clone().unwrap_or_default(),
            failed_body,
        });
        let payload = match &self.content {
            Content::Fault { reason, message } => {
                let mut fault = UpstreamError::new(*reason, message.clone());
                (fault.http_status, fault.head) = (self.status, head.map(Box::new));
                return Err(fault);
            }
            Content::None => CallPayload::None,
            Content::Value(value) => CallPayload::Json(value.canonical().into_bytes()),
            Content::RawJson(json) => CallPayload::Json(json.clone().into_bytes()),
            Content::Text(text) => CallPayload::Text(text.clone()),
            Content::Plain(text) => CallPayload::Plain(text.clone()),
        };
        Ok(CallAnswer { payload, http_status: self.status, head })
    }
}
