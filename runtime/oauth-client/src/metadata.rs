//! Finds the token endpoint of an issuer in its metadata (RFC 8414, or OpenID Connect Discovery 1.0 where it has none).

use std::time::Instant;

use ptc_upstream::http::authorization_server::metadata_urls;
use ptc_upstream::http::client::{HttpClient, OutgoingRequest};
use reqwest::Method;
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};
use serde_json::{Map, Value};
use url::Url;

/// Maximum bytes of the metadata.
const MAX_METADATA_BYTES: u64 = 256 * 1024;

/// Returns the token endpoint of `issuer`.
///
/// # Errors
///
/// Returns a clause that says why the metadata cannot be used.
pub(crate) async fn token_endpoint(http: &HttpClient, issuer: &str, deadline: Instant) -> Result<Url, String> {
    let parsed = Url::parse(issuer).map_err(|why| format!("is not a URL: {why}"))?;
    let mut refusals = Vec::new();
    for url in metadata_urls(&parsed) {
        match fetch(http, &url, deadline).await {
            Ok(metadata) => return read(&metadata, issuer).map_err(|why| format!("{url} {why}")),
            Err(why) => refusals.push(format!("{url} {why}")),
        }
    }
    Err(refusals.join(", and "))
}

/// Fetches a document. Redirects are not followed, since the document decides where the credential of the client goes.
async fn fetch(http: &HttpClient, url: &Url, deadline: Instant) -> Result<Map<String, Value>, String> {
    let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]);
    let request = OutgoingRequest { repeatable: true, follows: false, ..OutgoingRequest::new(Method::GET, url, headers) };
    let failed = |message: &str| {
        if message.is_empty() { "gave no answer in time".to_owned() } else { format!("cannot be used: {message}") }
    };
    let mut answer = http.send(request, deadline).await.map_err(|fault| failed(&fault.message))?;
    if answer.status().as_u16() != 200 {
        return Err(format!("answered with HTTP {}", answer.status().as_u16()));
    }
    let body = http.read_body(&mut answer, MAX_METADATA_BYTES.into(), deadline).await.map_err(|fault| failed(&fault.message))?;
    serde_json::from_slice(&body).map_err(|_| "is not a JSON object".to_owned())
}

/// Returns the token endpoint in the metadata of `issuer`. A document of another issuer is refused (RFC 8414, section 3.3), and so is an
/// endpoint without TLS, unless the issuer has none either.
fn read(metadata: &Map<String, Value>, issuer: &str) -> Result<Url, String> {
    let text = |name| metadata.get(name).and_then(Value::as_str);
    if text("issuer") != Some(issuer) {
        return Err(format!("is the metadata of another issuer than `{issuer}`, which must be written exactly like there"));
    }
    let endpoint = text("token_endpoint").ok_or("has no `token_endpoint`")?;
    let url = Url::parse(endpoint).map_err(|why| format!("has a `token_endpoint` that is not a URL: {why}"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("has a `token_endpoint` with a user or a password".to_owned());
    }
    let has_tls = |url: &Url| url.scheme() == "https";
    let is_plain_issuer = Url::parse(issuer).is_ok_and(|issuer| !has_tls(&issuer));
    let is_permitted = has_tls(&url) || is_plain_issuer && url.scheme() == "http";
    if !is_permitted {
        return Err("has a `token_endpoint` without TLS".to_owned());
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn metadata_of_another_issuer_or_without_tls_is_refused() {
        let endpoint = |metadata: Value, issuer| {
            let Value::Object(metadata) = metadata else { panic!("an object") };
            read(&metadata, issuer).map(String::from)
        };
        let issuer = "https://id.example";
        let token = "https://tokens.example/token";
        assert_eq!(endpoint(json!({"issuer": issuer, "token_endpoint": token}), issuer).as_deref(), Ok(token));
        for metadata in [
            json!({"token_endpoint": token}),
            json!({"issuer": "https://id.example/", "token_endpoint": token}),
            json!({"issuer": "https://evil.example", "token_endpoint": token}),
            json!({"issuer": issuer}),
            json!({"issuer": issuer, "token_endpoint": "/token"}),
            json!({"issuer": issuer, "token_endpoint": "http://id.example/token"}),
            json!({"issuer": issuer, "token_endpoint": "file:///etc/passwd"}),
        ] {
            assert!(endpoint(metadata.clone(), issuer).is_err(), "{metadata}");
        }
        let plain = "http://127.0.0.1:1";
        assert!(endpoint(json!({"issuer": plain, "token_endpoint": "http://127.0.0.1:1/token"}), plain).is_ok());
    }
}
