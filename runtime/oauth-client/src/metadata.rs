//! Finds the endpoints of an issuer in its metadata (RFC 8414, or OpenID Connect Discovery 1.0 where it has none).

use std::time::Instant;

use ptc_upstream::http::authorization_server::metadata_urls;
use ptc_upstream::http::client::{HttpClient, OutgoingRequest};
use reqwest::Method;
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};
use serde_json::{Map, Value};
use url::Url;

/// Maximum bytes of the metadata.
const MAX_METADATA_BYTES: u64 = 256 * 1024;

/// The metadata of an issuer.
pub(crate) struct Metadata {
    members: Map<String, Value>,
    /// Whether the issuer has no TLS, so that its endpoints need none.
    is_plain: bool,
}

/// Fetches the metadata of `issuer`.
///
/// # Errors
///
/// Returns a clause that says why the metadata cannot be used.
pub(crate) async fn of_issuer(http: &HttpClient, issuer: &str, deadline: Instant) -> Result<Metadata, String> {
    let parsed = Url::parse(issuer).map_err(|why| format!("is not a URL: {why}"))?;
    let mut refusals = Vec::new();
    for url in metadata_urls(&parsed) {
        match fetch(http, &url, deadline).await {
            Ok(members) => return Metadata::new(members, issuer).map_err(|why| format!("{url} {why}")),
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

impl Metadata {
    /// Checks the issuer of a document. That of another issuer is refused (RFC 8414, section 3.3).
    fn new(members: Map<String, Value>, issuer: &str) -> Result<Metadata, String> {
        if members.get("issuer").and_then(Value::as_str) != Some(issuer) {
            return Err(format!("is the metadata of another issuer than `{issuer}`, which must be written exactly like there"));
        }
        let is_plain = Url::parse(issuer).is_ok_and(|issuer| issuer.scheme() == "http");
        Ok(Metadata { members, is_plain })
    }

    /// Returns an endpoint, such as `token_endpoint`. One without TLS is refused, unless the issuer has none either.
    ///
    /// # Errors
    ///
    /// Returns a clause that says why there is no usable endpoint.
    pub(crate) fn endpoint(&self, name: &str) -> Result<Url, String> {
        let text = self.members.get(name).and_then(Value::as_str).ok_or_else(|| format!("has no `{name}`"))?;
        let url = Url::parse(text).map_err(|why| format!("has a `{name}` that is not a URL: {why}"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(format!("has a `{name}` with a user or a password"));
        }
        let is_permitted = url.scheme() == "https" || self.is_plain && url.scheme() == "http";
        if is_permitted { Ok(url) } else { Err(format!("has a `{name}` without TLS")) }
    }

    /// Whether a list has this element. `None` if the metadata has no such list.
    pub(crate) fn lists(&self, name: &str, element: &str) -> Option<bool> {
        let list = self.members.get(name)?.as_array()?;
        Some(list.iter().any(|listed| listed == element))
    }

    /// Whether a member is `true`.
    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.members.get(name) == Some(&Value::Bool(true))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn metadata_of_another_issuer_or_without_tls_is_refused() {
        let endpoint = |metadata: Value, issuer| {
            let Value::Object(metadata) = metadata else { panic!("an object") };
            Metadata::new(metadata, issuer)?.endpoint("token_endpoint").map(String::from)
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
