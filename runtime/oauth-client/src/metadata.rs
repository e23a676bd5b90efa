//! Finds the endpoints of an issuer in its metadata (RFC 8414, or OpenID Connect Discovery 1.0 where it has none).

use std::time::Instant;

use ptc_upstream::http::address::AddressLimits;
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

/// How metadata is fetched.
#[derive(Clone, Copy)]
pub(crate) struct Fetcher<'f> {
    /// The client. It carries no credentials.
    pub(crate) http: &'f HttpClient,
    /// The limits for URLs that an upstream or its authorization server names. `None` for those of the config.
    pub(crate) limits: Option<&'f AddressLimits>,
    /// When fetching ends.
    pub(crate) deadline: Instant,
}

/// Why there is no metadata, as a clause.
#[derive(Debug)]
pub(crate) enum FetchError {
    /// The server has no such document: it answers with a client error (4xx).
    Absent(String),
    /// The document cannot be fetched or used.
    Unusable(String),
}

impl FetchError {
    /// Returns the clause.
    pub(crate) fn into_clause(self) -> String {
        match self {
            FetchError::Absent(why) | FetchError::Unusable(why) => why,
        }
    }

    /// Puts the clauses of several documents together. They are absent if all of them are.
    pub(crate) fn joined(errors: Vec<FetchError>) -> FetchError {
        let is_absent = errors.iter().all(|error| matches!(error, FetchError::Absent(_)));
        let why = errors.into_iter().map(FetchError::into_clause).collect::<Vec<_>>().join(", and ");
        if is_absent { FetchError::Absent(why) } else { FetchError::Unusable(why) }
    }
}

impl Fetcher<'_> {
    /// Fetches the metadata of `issuer`.
    ///
    /// # Errors
    ///
    /// The metadata cannot be fetched, or is that of another issuer.
    pub(crate) async fn metadata(&self, issuer: &str) -> Result<Metadata, FetchError> {
        let parsed = Url::parse(issuer).map_err(|why| FetchError::Unusable(format!("`{issuer}` is not a URL: {why}")))?;
        let mut errors = Vec::new();
        for url in metadata_urls(&parsed) {
            match self.document(&url).await {
                Ok(members) => {
                    return Metadata::new(members, issuer).map_err(|why| FetchError::Unusable(format!("{url} {why}")));
                }
                Err(why) => errors.push(why),
            }
        }
        Err(FetchError::joined(errors))
    }

    /// Fetches a document. Redirects are not followed, since the document decides where the credential of the client goes.
    ///
    /// # Errors
    ///
    /// There is no such document, or it may not or cannot be fetched.
    pub(crate) async fn document(&self, url: &Url) -> Result<Map<String, Value>, FetchError> {
        let unusable = |why: String| FetchError::Unusable(format!("{url} {why}"));
        if let Some(limits) = self.limits {
            limits.check(url).await.map_err(|why| unusable(why.to_owned()))?;
        }
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]);
        let request = OutgoingRequest { repeatable: true, follows: false, ..OutgoingRequest::new(Method::GET, url, headers) };
        let failed = |message: &str| {
            unusable(if message.is_empty() { "gave no answer in time".to_owned() } else { format!("cannot be used: {message}") })
        };
        let mut answer = self.http.send(request, self.deadline).await.map_err(|fault| failed(&fault.message))?;
        let status = answer.status();
        if status.as_u16() != 200 {
            let why = format!("{url} answered with HTTP {}", status.as_u16());
            // These statuses ask for a later attempt.
            let is_absent = status.is_client_error() && !matches!(status.as_u16(), 408 | 425 | 429);
            return Err(if is_absent { FetchError::Absent(why) } else { FetchError::Unusable(why) });
        }
        let body = self.http.read_body(&mut answer, MAX_METADATA_BYTES.into(), self.deadline).await;
        let body = body.map_err(|fault| failed(&fault.message))?;
        serde_json::from_slice(&body).map_err(|_| unusable("is not a JSON object".to_owned()))
    }
}

impl Metadata {
    /// Returns the metadata of an authorization server that has none, as revision 2025-03-26 of MCP defines it: the endpoints are at fixed
    /// paths of the upstream's origin, and each server supports PKCE.
    pub(crate) fn of_default_endpoints(origin: &Url) -> Metadata {
        let at = |path: &str| Value::String(origin.join(path).map(String::from).unwrap_or_default());
        let members = [
            ("authorization_endpoint", at("/authorize")),
            ("token_endpoint", at("/token")),
            ("registration_endpoint", at("/register")),
            ("code_challenge_methods_supported", Value::Array(vec!["S256".into()])),
            ("token_endpoint_auth_methods_supported", Value::Array(vec!["none".into()])),
        ];
        let members = members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Metadata { members, is_plain: origin.scheme() == "http" }
    }

    /// Checks the issuer of a document. That of another issuer is refused (RFC 8414, section 3.3).
    fn new(members: Map<String, Value>, issuer: &str) -> Result<Metadata, String> {
        if members.get("issuer").and_then(Value::as_str) != Some(issuer) {
            return Err(format!("is the metadata of another issuer than `{issuer}`, which must be written exactly like there"));
        }
        let is_plain = Url::parse(issuer).is_ok_and(|issuer| issuer.scheme() == "http");
        Ok(Metadata { members, is_plain })
    }

    /// Whether there is an endpoint with this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.members.contains_key(name)
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
