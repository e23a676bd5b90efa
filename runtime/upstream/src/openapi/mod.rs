//! Calls operations of an HTTP service.
//!
//! - [`encode`]: encodes a call as a request.
//! - [`address`]: builds path and query from the arguments, in OpenAPI's styles.
//! - [`fields`]: builds headers and cookies from the arguments.
//! - [`body`]: encodes the request body.
//! - [`answer`]: reads the body of an answer.
//! - [`head`]: reads the status and the headers of an answer.
//! - [`text`]: encodes values with a length limit.
//! - [`path`]: checks the finished path.

mod address;
mod answer;
mod body;
mod charset;
mod encode;
mod fields;
mod head;
mod path;
mod text;

use std::time::{Duration, Instant};

use ptc_catalog::OpenApi;
use ptc_lisp::host::HttpHead;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, LINK};
use reqwest::{Method, StatusCode};

use super::call_rules::CallRules;
use super::fault::{Delivery, UpstreamError};
use super::http::client::{Endpoint, HttpClient, OutgoingRequest};
use super::http::proxy::ResolvedProxy;
use super::http::status::{ERROR_BODY_BYTES, Head};
use super::mcp::outcome::Payload;
use super::mcp::wire::OutgoingFrame;
use super::offload::offload;
use super::settings::{ResponseCap, UpstreamSettings};
use encode::{Arguments, random_uuid};
pub(crate) use encode::{CallOptions, EncodedRequest, encode};
use ptc_secrets::Secrets;

/// A service with its client.
pub(crate) struct Service {
    client: HttpClient,
    cap: ResponseCap,
}

impl Service {
    /// Creates the client. Nothing is sent yet.
    pub(crate) fn new(
        upstream: &'static str,
        spec: &'static OpenApi,
        secrets: &Secrets,
        settings: &UpstreamSettings,
    ) -> Result<Service, UpstreamError> {
        let endpoint = Endpoint {
            upstream: Some(upstream),
            url: spec.base_url,
            auth: spec.auth,
            static_headers: spec.static_headers,
            connect_timeout: Duration::from_millis(spec.connect_timeout_ms),
            proxy: ResolvedProxy::resolve(spec.proxy, secrets)?,
            extra_roots: settings.extra_roots.clone(),
            posts: false,
        };
        let client = HttpClient::new(&endpoint, secrets)?.with_tokens(settings.access_tokens.source(&endpoint, secrets)?);
        Ok(Service { client, cap: settings.response_cap(spec.max_response_bytes) })
    }

    /// Sends a request and reads the answer. Headers of the config entry replace those from arguments.
    ///
    /// # Errors
    ///
    /// An error of the answer has its head, and its body if that is JSON.
    pub(crate) async fn call(&self, request: &EncodedRequest, deadline: Instant) -> Result<Got, UpstreamError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, request.accept.clone());
        headers.extend(request.headers.iter().filter(|(name, _)| !self.client.sets(name)).map(|(n, v)| (n.clone(), v.clone())));
        let mut body = OutgoingFrame::default();
        if let Some(sent) = &request.body {
            headers.insert(CONTENT_TYPE, sent.content_type.clone());
            body.arguments = sent.bytes.clone();
        }
        let CallRules { is_write, is_repeatable, .. } = request.rules;
        let sent = OutgoingRequest {
            body,
            repeatable: is_repeatable,
            follows: !is_write,
            ..OutgoingRequest::new(request.method.clone(), &request.url, headers)
        };
        let mut answer = self.client.send(sent, deadline).await?;
        let status = answer.status();
        let head = head::read(status.as_u16(), answer.headers(), request.answers, &self.client);
        let delivery = if answer.is_repeated() { Delivery::Twice } else { Delivery::Once };
        let with_head = |head, error| UpstreamError { head: Some(Box::new(head)), delivery, ..error };
        // The redirect that answers a write is its result: `Location` says where to look.
        let is_result = status == StatusCode::NOT_MODIFIED || is_write && status.is_redirection();
        if !status.is_success() && !is_result {
            let error_head = Head::new(&self.client, &answer);
            let body = self.client.read_body(&mut answer, ERROR_BODY_BYTES.into(), deadline).await.unwrap_or_default();
            let error = error_head.fault(&body);
            let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(&body).is_ok();
            return Err(with_head(HttpHead { failed_body: is_json.then_some(body), ..head }, error));
        }
        let link_header = link_header(answer.headers());
        // The type of an answer that cannot have a body says nothing about its value.
        let is_bodiless = request.method == Method::HEAD
            || matches!(status, StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED);
        let content_type = answer.headers().get(CONTENT_TYPE).filter(|_| !is_bodiless);
        let content_type = content_type.and_then(|value| value.to_str().ok()).map(str::to_owned);
        let body = self.client.read_body(&mut answer, self.cap, deadline).await;
        let with_bytes = request.with_bytes;
        let read = match body {
            Ok(body) => {
                offload(body.len(), move || answer::read(content_type.as_deref(), body, with_bytes)).await.and_then(|read| read)
            }
            Err(error) => Err(error),
        };
        match read {
            Ok(payload) => Ok(Got { payload, head, link_header }),
            Err(error) => Err(with_head(head, error.with_status(status.as_u16()))),
        }
    }
}

/// A response with a successful status.
pub(crate) struct Got {
    pub(crate) payload: Payload,
    pub(crate) head: HttpHead,
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
