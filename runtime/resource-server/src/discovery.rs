//! Finds and fetches the keys of an issuer: metadata of the authorization server (RFC 8414, or OpenID Connect Discovery), then its JSON
//! Web Key Set. The metadata of a public issuer cannot name keys at a private address.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ptc_runtime::diagnostics::export::Connection;
use ptc_runtime::secrets::Secrets;
use ptc_runtime::upstream::http::address::AddressLimits;
use ptc_runtime::upstream::http::authorization_server::metadata_urls;
use ptc_runtime::upstream::http::client::{Endpoint, HttpClient, OutgoingRequest};
use ptc_runtime::upstream::http::proxy::ResolvedProxy;
use reqwest::Method;
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};
use serde::Deserialize;
use url::Url;

use crate::key_set::KeySet;

/// Time limit for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for metadata and keys together.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of the metadata in bytes.
const MAX_METADATA_BYTES: u64 = 64 * 1024;
/// Maximum size of the keys in bytes.
const MAX_KEYS_BYTES: u64 = 256 * 1024;

/// An issuer, and the client that fetches its keys.
pub(crate) struct Issuer {
    /// The name, exactly as in tokens.
    name: String,
    /// Where the metadata may be, in the order in which they are tried.
    locations: Vec<Url>,
    /// The limits for what the metadata names.
    limits: AddressLimits,
    http: HttpClient,
}

/// The outcome of a request.
enum Found {
    Document(Vec<u8>),
    /// The server has no document there. Contains the status.
    Missing(u16),
}

impl Issuer {
    /// Prepares the client. Nothing is sent.
    pub(crate) fn new(name: &str, secrets: &Secrets, connection: Connection) -> Result<Issuer, String> {
        let Connection { extra_roots, proxy, .. } = connection;
        Issuer::connected(name, secrets, extra_roots, proxy)
    }

    fn connected(
        name: &str,
        secrets: &Secrets,
        extra_roots: Option<Arc<[u8]>>,
        proxy: Option<ResolvedProxy>,
    ) -> Result<Issuer, String> {
        let invalid = |why: &dyn std::fmt::Display| format!("--http-oauth-issuer {name}: {why}");
        let url = Url::parse(name).map_err(|why| invalid(&why))?;
        let locations = metadata_urls(&url);
        let endpoint = Endpoint { proxy, extra_roots, posts: false, ..Endpoint::of_own_service(name, CONNECT_TIMEOUT) };
        let limits = AddressLimits::of_issuer(url, None);
        let http = HttpClient::configured(&endpoint, secrets, |builder| match endpoint.proxy {
            None => builder.dns_resolver(limits.clone()),
            // A proxy resolves the names itself.
            Some(_) => builder,
        });
        let http = http.map_err(|fault| invalid(&fault.message))?;
        Ok(Issuer { name: name.to_owned(), locations, limits, http })
    }

    /// Fetches the keys.
    ///
    /// # Errors
    ///
    /// Returns a sentence with the URL and what is wrong there.
    pub(crate) async fn fetch_keys(&self) -> Result<KeySet, String> {
        let deadline = Instant::now() + TIMEOUT;
        let url = self.keys_url(deadline).await?;
        match self.get(&url, MAX_KEYS_BYTES, deadline).await? {
            Found::Document(body) => KeySet::parse(&body).map_err(|why| format!("{url}: {why}")),
            Found::Missing(status) => Err(format!("{url}: expected a JSON Web Key Set, got status {status}")),
        }
    }

    /// Returns the URL of the keys that the metadata names.
    async fn keys_url(&self, deadline: Instant) -> Result<Url, String> {
        #[derive(Deserialize)]
        struct Metadata {
            issuer: String,
            jwks_uri: String,
        }
        let mut missing = Vec::new();
        for location in &self.locations {
            let body = match self.get(location, MAX_METADATA_BYTES, deadline).await? {
                Found::Document(body) => body,
                Found::Missing(status) => {
                    missing.push(format!("{location} (status {status})"));
                    continue;
                }
            };
            let metadata: Metadata = serde_json::from_slice(&body)
                .map_err(|why| format!("{location}: expected metadata with `issuer` and `jwks_uri`: {why}"))?;
            // Otherwise one tenant of a provider could pass its keys off as those of another (RFC 8414, section 3.3).
            if metadata.issuer != self.name {
                return Err(format!("{location}: the metadata is of another issuer; expected {}", self.name));
            }
            let url = Url::parse(&metadata.jwks_uri).map_err(|why| format!("{location}: `jwks_uri` is not a URL: {why}"))?;
            let is_as_safe = url.scheme() == "https" || (url.scheme() == location.scheme() && url.host() == location.host());
            if !is_as_safe {
                return Err(format!("{location}: `jwks_uri` must have the scheme https"));
            }
            self.limits.check(&url).await.map_err(|why| format!("{location}: `jwks_uri` {why}"))?;
            return Ok(url);
        }
        Err(format!("no metadata of the issuer at {}", missing.join(", ")))
    }

    /// Fetches a document. Redirects are not followed: they could lead to keys of someone else, or into the network of this server.
    async fn get(&self, url: &Url, max_bytes: u64, deadline: Instant) -> Result<Found, String> {
        let failed = |why: &str| format!("{url}: {why}");
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]);
        let request = OutgoingRequest { repeatable: true, follows: false, ..OutgoingRequest::new(Method::GET, url, headers) };
        let sent = self.http.send(request, deadline).await;
        let late = format!("no answer within {} s", TIMEOUT.as_secs());
        let mut response = sent.map_err(|fault| failed(if fault.message.is_empty() { &late } else { &fault.message }))?;
        let status = response.status();
        if status.is_redirection() {
            return Err(failed("redirects are not followed; give the issuer as its metadata names it"));
        }
        if status.is_client_error() {
            return Ok(Found::Missing(status.as_u16()));
        }
        if !status.is_success() {
            return Err(failed(&format!("status {}", status.as_u16())));
        }
        let body = self.http.read_body(&mut response, max_bytes.into(), deadline).await;
        let too_large = format!("expected at most {max_bytes} bytes");
        let is_too_large = |reason| reason == ptc_runtime::upstream::Reason::ResponseTooLarge;
        body.map(Found::Document).map_err(|fault| failed(if is_too_large(fault.reason) { &too_large } else { &fault.message }))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;
    use std::path::Path;
    use std::sync::Mutex;

    use super::*;

    /// Fetches the keys of an issuer through a proxy that answers for all hosts: each request gets the same metadata. Returns the error,
    /// and the URLs that were requested.
    fn fetch(name: &str, jwks_uri: &str) -> (String, Vec<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = ResolvedProxy::new(&format!("http://{}", listener.local_addr().unwrap()), None, &[] as &[&str]);
        let metadata = serde_json::json!({ "issuer": name, "jwks_uri": jwks_uri }).to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&asked);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
                let first = lines.next().unwrap_or_default();
                lines.take_while(|line| !line.is_empty()).for_each(drop);
                noted.lock().unwrap().push(first.split(' ').nth(1).unwrap_or_default().to_owned());
                let length = metadata.len();
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
                let _ = stream.write_all(format!("{head}{metadata}").as_bytes());
            }
        });
        let secrets = Secrets::resolve_for(&[], &[], Path::new(".")).unwrap_or_else(|_| panic!("it has no secrets"));
        let issuer = Issuer::connected(name, &secrets, None, Some(proxy)).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let why = runtime.block_on(issuer.fetch_keys()).err().unwrap_or_default();
        let asked = asked.lock().unwrap().clone();
        (why, asked)
    }

    #[test]
    fn keys_at_a_private_address_are_for_issuers_in_a_private_network() {
        let document = "/.well-known/oauth-authorization-server";
        for url in ["https://10.0.0.1/keys", "https://169.254.169.254/keys", "https://localhost/keys", "https://[::1]/keys"] {
            let (why, asked) = fetch("http://203.0.113.7", url);
            let expected = "`jwks_uri` is not used: it is at a private address, and the issuer is not";
            assert_eq!(why, format!("http://203.0.113.7{document}: {expected}"), "{url}");
            assert_eq!(asked, [format!("http://203.0.113.7{document}")], "{url}");
        }
        // These keys are fetched: the answer is not a key set.
        for issuer in ["http://127.0.0.1:1", "http://10.0.0.7", "http://203.0.113.7"] {
            let keys = format!("{issuer}/keys");
            let (why, asked) = fetch(issuer, &keys);
            assert!(why.starts_with(&format!("{keys}: ")), "{issuer}: {why}");
            assert_eq!(asked, [format!("{issuer}{document}"), keys]);
        }
    }
}
