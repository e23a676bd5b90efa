//! Sends batches of spans to the collector, with retries.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ptc_runtime::secrets::Secrets;
use ptc_runtime::upstream::http::client::{Endpoint, HttpClient, OutgoingRequest};
use ptc_runtime::upstream::http::proxy::ResolvedProxy;
use ptc_runtime::upstream::http::status::{ERROR_BODY_BYTES, Head, retry_after};
use ptc_runtime::upstream::{Reason, UpstreamError};
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use tokio::runtime::Runtime;
use url::Url;

use crate::settings::OtlpSettings;

/// Maximum number of attempts for a batch.
const MAX_ATTEMPTS: u32 = 4;
/// Back-off before the second attempt, unless the collector sends `Retry-After`. It doubles with each attempt.
const MIN_BACKOFF: Duration = Duration::from_secs(1);
/// Maximum back-off, also for `Retry-After`, since later batches wait.
const MAX_BACKOFF: Duration = Duration::from_secs(30);
/// Timeout for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Sends batches over HTTP.
pub(crate) struct BatchSender {
    http: HttpClient,
    url: Url,
    headers: HeaderMap,
    timeout: Duration,
    runtime: Runtime,
}

/// Spans that the collector did not accept.
#[derive(Debug)]
pub(crate) struct DroppedSpans {
    /// Their number, if it accepted part of the batch.
    pub(crate) spans: Option<u64>,
    /// The reason.
    pub(crate) why: String,
}

/// Why an attempt failed.
enum SendFailure {
    /// A temporary failure, with the collector's `Retry-After`.
    Retry(String, Option<Duration>),
    Final(DroppedSpans),
}

impl BatchSender {
    /// Creates a client for the configured endpoint. Nothing is sent yet.
    pub(crate) fn new(
        settings: &OtlpSettings,
        secrets: &Secrets,
        extra_roots: Option<Arc<[u8]>>,
        proxy: Option<ResolvedProxy>,
    ) -> Result<BatchSender, String> {
        let url = Url::parse(&settings.url).map_err(|why| format!("--otlp-endpoint: {}: {why}", settings.url))?;
        let mut headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        for (name, value) in &settings.headers {
            let wrong = |what| format!("OTEL_EXPORTER_OTLP_HEADERS: '{name}': expected {what}");
            let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong("a name of a header"))?;
            let mut value = HeaderValue::from_str(value.text()).map_err(|_| wrong("a value that a header can carry"))?;
            value.set_sensitive(true);
            headers.insert(key, value);
        }
        let endpoint = Endpoint { proxy, extra_roots, ..Endpoint::of_own_service(&settings.url, CONNECT_TIMEOUT) };
        let http = HttpClient::new(&endpoint, secrets).map_err(|fault| format!("--otlp-endpoint: {}", fault.message))?;
        // The blocking thread resolves the host's name.
        let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).enable_all().build();
        let runtime = runtime.map_err(|fault| format!("cannot start: {fault}"))?;
        Ok(BatchSender { http, url, headers, timeout: settings.timeout, runtime })
    }

    /// Sends a batch, with retries as long as they may help and `wait` permits the back-off.
    pub(crate) fn post(&self, body: &str, wait: impl Fn(Duration) -> bool) -> Result<(), DroppedSpans> {
        let mut pause = MIN_BACKOFF;
        for attempt in 1.. {
            let (why, named) = match self.runtime.block_on(self.attempt(body)) {
                Ok(()) => return Ok(()),
                Err(SendFailure::Final(lost)) => return Err(lost),
                Err(SendFailure::Retry(why, named)) => (why, named),
            };
            if attempt == MAX_ATTEMPTS || !wait(named.unwrap_or(pause).min(MAX_BACKOFF)) {
                return Err(DroppedSpans { spans: None, why });
            }
            pause *= 2;
        }
        Ok(())
    }

    async fn attempt(&self, body: &str) -> Result<(), SendFailure> {
        let deadline = Instant::now() + self.timeout;
        let asking = OutgoingRequest {
            body: body.to_owned().into(),
            ..OutgoingRequest::new(Method::POST, &self.url, self.headers.clone())
        };
        let mut response = self.http.send(asking, deadline).await.map_err(|fault| self.of_world(fault))?;
        let (status, head, pause) = (response.status(), Head::new(&self.http, &response), retry_after(&response));
        let said = self.http.read_body(&mut response, ERROR_BODY_BYTES.into(), deadline).await;
        if status.is_success() {
            // A success with an unreadable body still counts as success.
            return partial(&said.unwrap_or_default()).map_or(Ok(()), |lost| Err(SendFailure::Final(lost)));
        }
        let why = head.fault(&said.unwrap_or_default()).message.into_owned();
        Err(match status.as_u16() {
            429 | 502 | 503 | 504 => SendFailure::Retry(why, pause),
            _ => SendFailure::Final(DroppedSpans { spans: None, why }),
        })
    }

    fn of_world(&self, fault: UpstreamError) -> SendFailure {
        // A proxy refuses the credentials.
        if fault.reason == Reason::AuthFailed {
            return SendFailure::Final(DroppedSpans { spans: None, why: fault.message.into_owned() });
        }
        let late = fault.reason == Reason::Timeout && fault.message.is_empty();
        SendFailure::Retry(
            if late { format!("no answer within {} ms", self.timeout.as_millis()) } else { fault.message.into_owned() },
            None,
        )
    }
}

/// Parses the response of a collector that accepted only part of a batch.
fn partial(body: &[u8]) -> Option<DroppedSpans> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Answer {
        partial_success: Option<Partial>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    #[derive(Default)]
    struct Partial {
        /// The JSON mapping of protocol buffers encodes 64-bit integers as strings. Some collectors send numbers.
        rejected_spans: serde_json::Value,
        error_message: String,
    }
    let partial = serde_json::from_slice::<Answer>(body).ok()?.partial_success?;
    let rejected = partial.rejected_spans.as_u64().or_else(|| partial.rejected_spans.as_str()?.parse().ok())?;
    (rejected > 0)
        .then(|| DroppedSpans { spans: Some(rejected), why: format!("the collector refused some: {}", partial.error_message) })
}

#[cfg(test)]
mod tests {
    use super::partial;

    #[test]
    fn partial_success_gives_the_number_of_rejected_spans() {
        for (body, rejected) in [
            ("", None),
            ("{}", None),
            (r#"{"partialSuccess":{}}"#, None),
            (r#"{"partialSuccess":{"errorMessage":"a warning"}}"#, None),
            (r#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too old"}}"#, Some(3)),
            (r#"{"partialSuccess":{"rejectedSpans":2}}"#, Some(2)),
        ] {
            assert_eq!(partial(body.as_bytes()).and_then(|lost| lost.spans), rejected, "{body}");
        }
    }
}
