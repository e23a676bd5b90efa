//! Calls `GET` operations of a JSON service.
//!
//! - [`encode`]: encodes a call as a request.
//! - [`address`]: builds path and query from the arguments, in OpenAPI's styles.
//! - [`fields`]: builds headers and cookies from the arguments.
//! - [`text`]: encodes values with a length limit.
//! - [`path`]: checks the finished path.

mod address;
mod encode;
mod fields;
mod path;
mod text;

use std::time::{Duration, Instant};

use ptc_catalog::OpenApi;
use reqwest::Method;
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue, LINK};

use super::fault::{UpstreamError, excerpt};
use super::http::client::{Endpoint, HttpClient, OutgoingRequest};
use super::http::status::{ERROR_BODY_BYTES, Head};
use super::mcp::outcome::Payload;
use super::settings::{ResponseCap, UpstreamSettings};
use crate::secrets::Secrets;
use encode::Arguments;
pub(crate) use encode::{EncodedRequest, encode};

/// A service with its client.
pub(crate) struct Service {
    client: HttpClient,
    cap: ResponseCap,
}

impl Service {
    /// Creates the client. Nothing is sent yet.
    pub(crate) fn new(spec: &'static OpenApi, secrets: &Secrets, settings: &UpstreamSettings) -> Result<Service, UpstreamError> {
        let endpoint = Endpoint {
            url: spec.base_url,
            auth: spec.auth,
            static_headers: spec.static_headers,
            connect_timeout: Duration::from_millis(spec.connect_timeout_ms),
            proxy: None,
            extra_roots: settings.extra_roots.clone(),
            posts: false,
        };
        Ok(Service { client: HttpClient::new(&endpoint, secrets)?, cap: settings.response_cap(spec.max_response_bytes) })
    }

    /// Sends a request. The payload is JSON or empty. Headers of the config entry replace those from arguments.
    pub(crate) async fn call(&self, request: &EncodedRequest, deadline: Instant) -> Result<Got, UpstreamError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.extend(request.headers.iter().filter(|(name, _)| !self.client.sets(name)).map(|(n, v)| (n.clone(), v.clone())));
        let asking = OutgoingRequest { repeatable: true, ..OutgoingRequest::new(Method::GET, &request.url, headers) };
        let mut answer = self.client.send(asking, deadline).await?;
        let status = answer.status();
        if !status.is_success() {
            let head = Head::of(&self.client, &answer);
            let body = self.client.read_body(&mut answer, ERROR_BODY_BYTES.into(), deadline).await.unwrap_or_default();
            return Err(head.fault(&body));
        }
        let link_header = link_header(answer.headers());
        let body = self.client.read_body(&mut answer, self.cap, deadline).await?;
        let json = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&body);
        if json.trim_ascii().is_empty() {
            return Ok(Got { payload: Payload::None, status: status.as_u16(), link_header });
        }
        // The body is validated here, so that redaction and the program receive valid JSON.
        if let Some(why) = why_not_json(json) {
            let shown = String::from_utf8_lossy(json);
            let message = format!("the answer is not JSON ({why}): {}", excerpt(&shown, 200));
            return Err(UpstreamError::upstream(message).with_status(status.as_u16()));
        }
        let json = if json.len() == body.len() { body } else { json.to_vec() };
        Ok(Got { payload: Payload::Json(json), status: status.as_u16(), link_header })
    }
}

/// A response with a successful status.
pub(crate) struct Got {
    pub(crate) payload: Payload,
    pub(crate) status: u16,
    pub(crate) link_header: Option<String>,
}

/// Maximum bytes of a `Link` header. A longer one is ignored.
const MAX_LINK_HEADER: usize = 16 * 1024;

/// Joins all `Link` headers.
fn link_header(headers: &HeaderMap) -> Option<String> {
    let all: Vec<&str> = headers.get_all(LINK).iter().filter_map(|value| value.to_str().ok()).collect();
    let joined = all.join(", ");
    (!all.is_empty() && joined.len() <= MAX_LINK_HEADER).then_some(joined)
}

/// Returns why a body is not JSON. The text is validated as UTF-8 first, since the parser does not validate the bytes of skipped
/// strings.
fn why_not_json(bytes: &[u8]) -> Option<String> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(odd) => return Some(format!("byte {} is not UTF-8", odd.valid_up_to())),
    };
    serde_json::from_str::<serde::de::IgnoredAny>(text).err().map(|why| why.to_string())
}
