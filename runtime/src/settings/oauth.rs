//! The authorization server whose access tokens the HTTP listener accepts.

use std::fmt;
use std::time::Duration;

use zeroize::Zeroizing;

use super::flag::base_url;
use super::http::{host_of, is_loopback};

/// Minimum length of the secret of a client in bytes.
const MIN_SECRET_BYTES: usize = 8;

/// Settings of access tokens.
#[derive(Debug, Clone, Default)]
pub struct OauthSettings {
    /// The authorization server, exactly as tokens name it. `None` if no access tokens are accepted.
    pub issuer: Option<String>,
    /// The audience that tokens must have.
    pub audience: Option<String>,
    /// Scopes of which tokens must have all.
    pub scopes: Vec<String>,
    /// The URL at which clients reach the endpoint. `None` means the audience.
    pub resource_url: Option<String>,
    /// The endpoint that says whether an opaque token is active. `None` if only JWT are accepted.
    pub introspection_url: Option<String>,
    /// The id of this server at that endpoint.
    pub client_id: Option<String>,
    /// The secret of this server there.
    pub client_secret: Option<ClientSecret>,
    /// Minimum time between two fetches of the keys of the issuer.
    pub refetch: Duration,
}

/// The secret of a client. Its `Debug` output does not contain it, and it is overwritten when it is dropped.
#[derive(Clone)]
pub struct ClientSecret(Zeroizing<String>);

impl ClientSecret {
    /// Parses a secret. Returns `None` if it is too short to be redacted, or has characters other than printable ASCII.
    pub fn parse(text: &str) -> Option<ClientSecret> {
        let is_printable = text.bytes().all(|byte| byte.is_ascii_graphic());
        (text.len() >= MIN_SECRET_BYTES && is_printable).then(|| ClientSecret(Zeroizing::new(text.to_owned())))
    }

    /// Returns the text of the secret.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ClientSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientSecret(…)")
    }
}

impl OauthSettings {
    /// Returns the URL of the endpoint for clients, the resource identifier of RFC 9728.
    pub fn resource(&self) -> Option<&str> {
        let audience = || self.audience.as_deref().filter(|audience| server_url(audience).is_some());
        self.resource_url.as_deref().or_else(audience)
    }

    /// Returns a sentence for each contradiction. They apply only if the server listens.
    pub(super) fn contradictions(&self) -> Vec<&'static str> {
        let mut faults = Vec::new();
        if self.issuer.is_some() != self.audience.is_some() {
            faults.push("--http-oauth-issuer and --http-oauth-audience go together");
        } else if self.issuer.is_some() && self.resource().is_none() {
            faults.push("--http-oauth-audience is not a URL: give the URL of the endpoint with --http-oauth-resource");
        }
        let introspection = [self.introspection_url.is_some(), self.client_id.is_some(), self.client_secret.is_some()];
        if introspection.contains(&true) && (introspection.contains(&false) || self.issuer.is_none()) {
            faults.push(
                "--http-oauth-introspection-url, --http-oauth-client-id, --http-oauth-client-secret-file and --http-oauth-issuer \
                 go together",
            );
        }
        if self.issuer.is_none() && (!self.scopes.is_empty() || self.resource_url.is_some()) {
            faults.push("--http-oauth-scope and --http-oauth-resource need --http-oauth-issuer");
        }
        faults
    }
}

/// Parses the URL of a server: `https`, or `http` on this machine, without query and fragment. The text is kept as it is, since
/// an issuer is compared exactly.
pub(super) fn server_url(text: &str) -> Option<String> {
    base_url(text)?;
    let (scheme, rest) = text.split_once("://")?;
    let authority = rest.split('/').next()?;
    let is_plain = rest.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"\\<>".contains(&byte));
    (is_plain && (scheme == "https" || is_loopback(host_of(authority)))).then(|| text.to_owned())
}

/// Parses an audience: any text that a header can contain.
pub(super) fn audience(text: &str) -> Option<String> {
    let is_printable = text.bytes().all(|byte| byte.is_ascii_graphic());
    (!text.is_empty() && text.len() <= 1000 && is_printable).then(|| text.to_owned())
}

/// Parses scopes between spaces (RFC 6749, section 3.3).
pub(super) fn scopes(text: &str) -> Option<Vec<String>> {
    let is_scope = |scope: &str| scope.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"\\".contains(&byte));
    let scopes: Vec<&str> = text.split_ascii_whitespace().collect();
    (!scopes.is_empty() && scopes.iter().copied().all(is_scope)).then(|| scopes.into_iter().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issuers_audiences_and_scopes_are_validated() {
        for url in ["https://id.example", "https://id.example/tenant/", "http://127.0.0.1:8080", "http://localhost/realms/a"] {
            assert_eq!(server_url(url).as_deref(), Some(url));
        }
        for wrong in [
            "",
            "id.example",
            "http://id.example",
            "https://id.example?x",
            "https://u@id.example",
            "https://id.example#x",
            "ftp://id",
            "https://a\"b",
        ] {
            assert_eq!(server_url(wrong), None, "{wrong}");
        }
        assert_eq!(scopes("mcp:read  mcp:write").map(|scopes| scopes.len()), Some(2));
        for wrong in ["", " ", "a\"b", "é"] {
            assert!(scopes(wrong).is_none(), "{wrong}");
        }
        assert!(audience("api://gate").is_some() && audience("a b").is_none());
    }

    #[test]
    fn contradicting_settings_of_access_tokens_are_refused() {
        let settings = |issuer: Option<&str>, audience: Option<&str>, resource_url: Option<&str>| OauthSettings {
            issuer: issuer.map(str::to_owned),
            audience: audience.map(str::to_owned),
            resource_url: resource_url.map(str::to_owned),
            ..OauthSettings::default()
        };
        let issuer = Some("https://id.example");
        for (settings, expected) in [
            (settings(None, None, None), None),
            (settings(issuer, Some("https://gate.example/mcp"), None), None),
            (settings(issuer, Some("api://gate"), Some("https://gate.example/mcp")), None),
            (settings(issuer, Some("api://gate"), None), Some("with --http-oauth-resource")),
            (settings(issuer, None, None), Some("go together")),
            (settings(None, Some("x"), None), Some("go together")),
            (settings(None, None, Some("https://gate.example")), Some("need --http-oauth-issuer")),
        ] {
            let found = settings.contradictions();
            assert!(found.len() == usize::from(expected.is_some()), "{found:?}");
            assert!(found.iter().zip(expected).all(|(found, part)| found.contains(part)), "{found:?}");
        }
    }
}
