//! Fetches OpenAPI documents at build time.

use std::time::{Duration, Instant};

use ptc_catalog::OpenApi;
use reqwest::Method;
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};
use url::Url;

use super::access_token::AccessTokens;
use super::client::{Endpoint, HttpClient, OutgoingRequest};
use super::proxy::ResolvedProxy;
use super::status::{ERROR_BODY_BYTES, Head};
use crate::fault::{Reason, UpstreamError};
use ptc_secrets::Secrets;

/// Fetches the document at `url`, of at most `max_bytes`, with the headers, credentials, proxy and timeouts of its config entry. An
/// access token is sent only to the origin of the service.
pub(crate) async fn fetch(
    url: &'static str,
    max_bytes: u64,
    entry: &OpenApi,
    secrets: &Secrets,
    tokens: &AccessTokens,
) -> Result<Vec<u8>, UpstreamError> {
    let OpenApi { auth, static_headers, .. } = *entry;
    let connect_timeout = Duration::from_millis(entry.connect_timeout_ms);
    let request_timeout = Duration::from_millis(entry.request_timeout_ms);
    let address = Url::parse(url).map_err(|why| UpstreamError::unavailable(format!("'{url}' is not a URL: {why}")))?;
    let proxy = ResolvedProxy::resolve(entry.proxy, secrets)?;
    let endpoint =
        Endpoint { upstream: None, url, auth, static_headers, connect_timeout, proxy, extra_roots: None, posts: false };
    let is_of_service = Url::parse(entry.base_url).is_ok_and(|base| base.origin() == address.origin());
    let tokens = if is_of_service { tokens.source(&endpoint, secrets)? } else { None };
    let client = HttpClient::new(&endpoint, secrets)?.with_tokens(tokens);
    let deadline = Instant::now() + request_timeout;
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, application/yaml;q=0.5, */*;q=0.1"));
    let late = |fault: UpstreamError| match fault.reason {
        Reason::Timeout if fault.is_timeout() => {
            let message = format!("the document did not arrive within {} ms (request_timeout_ms)", request_timeout.as_millis());
            UpstreamError { message: message.into(), ..fault }
        }
        Reason::ResponseTooLarge => {
            UpstreamError { message: format!("the document is larger than {max_bytes} bytes (schema_max_bytes)").into(), ..fault }
        }
        _ => fault,
    };
    let mut answer = client.send(OutgoingRequest::new(Method::GET, &address, headers), deadline).await.map_err(late)?;
    if answer.status().is_success() {
        return client.read_body(&mut answer, max_bytes.into(), deadline).await.map_err(late);
    }
    let head = Head::new(&client, &answer);
    let body = client.read_body(&mut answer, ERROR_BODY_BYTES.into(), deadline).await.unwrap_or_default();
    Err(head.fault(&body))
}
