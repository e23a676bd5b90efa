//! Observes the answers to the calls of programs.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ptc_runtime::schedule::ClientKey;
use ptc_runtime::upstream::UpstreamError;
use ptc_runtime::upstream::intercept::{CallAnswer, CallPayload, InterceptedCall, Interception, Interceptor, ProgramInterceptor};

use super::Observations;
use crate::json::Json;

/// Passes all calls on to their upstreams, and observes the redacted arguments and answers. Failures are not observed.
#[derive(Debug, Clone, Default)]
pub struct Observer(Arc<Mutex<Observations>>);

impl Observer {
    /// Returns what was observed so far.
    pub fn observations(&self) -> Observations {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Interceptor for Observer {
    fn is_offline(&self) -> bool {
        false
    }

    fn begin(&self, _: &ClientKey) -> Arc<dyn ProgramInterceptor> {
        Arc::new(self.clone())
    }
}

impl ProgramInterceptor for Observer {
    fn answer(&self, _: &InterceptedCall) -> Interception {
        Interception::PassOn
    }

    fn observe(&self, call: &InterceptedCall, outcome: Result<&CallAnswer, &UpstreamError>, _: Duration) {
        let Ok(answer) = outcome else { return };
        // Without the bytes of its body, an answer has another shape.
        let content = if call.without_bytes { None } else { content_of(answer) };
        let args = std::str::from_utf8(&call.arguments).ok().and_then(Json::parse);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(content) = content {
            all.add(call.upstream.name, call.tool.name, &content);
        }
        if let Some(args) = args {
            all.add_args(call.upstream.name, call.tool.name, &args);
        }
    }
}

/// Returns the content of an answer as programs read it. `None` for an answer without content.
pub fn content_of(answer: &CallAnswer) -> Option<Json> {
    match &answer.payload {
        CallPayload::None => None,
        CallPayload::Json(bytes) => Json::parse(std::str::from_utf8(bytes).ok()?),
        CallPayload::Text(text) => Some(Json::parse(text).unwrap_or_else(|| Json::string(text.as_str()))),
        CallPayload::Plain(text) => Some(Json::string(text.as_str())),
    }
}
