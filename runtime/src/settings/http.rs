//! Settings of the HTTP listener.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use zeroize::Zeroizing;

use super::feature::{LinkedParts, how_to_enable};
#[cfg(feature = "http-oauth")]
use super::oauth::OauthSettings;

/// Minimum length of a bearer token in bytes.
pub const MIN_TOKEN_BYTES: usize = 32;

/// Settings of the HTTP listener: its address, its clients, its limits.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a documented switch")]
pub struct HttpSettings {
    /// Whether the server listens. Standard input is not used in this case.
    pub on: bool,
    /// The address to listen on.
    pub host: IpAddr,
    /// The port to listen on. With 0 the system chooses a free port, which is logged.
    pub port: u16,
    /// The path of the protocol's endpoint.
    pub path: String,
    /// The token that clients must send.
    pub auth_token: Option<AuthToken>,
    /// Path of the digests of further tokens.
    pub tokens_file: Option<PathBuf>,
    /// The access tokens that clients may send.
    #[cfg(feature = "http-oauth")]
    pub oauth: OauthSettings,
    /// Whether the server generated the token for this start only.
    pub token_is_generated: bool,
    /// Whether clients on this machine need no token.
    pub disable_auth: bool,
    /// A Unix socket to listen on instead of an address.
    pub unix_socket: Option<PathBuf>,
    /// The port of a second listener for `/health`, `/ready` and metrics. With 0 the system chooses a free port, which is logged.
    pub admin_port: Option<u16>,
    /// Whether `/ready` answers 503 while an upstream is down.
    pub ready_needs_upstreams: bool,
    /// Allowed origins of browsers, `scheme://host[:port]`. If empty, origins of this machine are allowed on a loopback address.
    pub allowed_origins: Vec<String>,
    /// Time limit for receiving a whole request, and for each 64 KiB of an answer to be accepted.
    pub request_timeout: Duration,
    /// Time limit for calls in flight during shutdown.
    pub shutdown_grace: Duration,
    /// Maximum bytes of a request's body. `None` means the maximum of a frame.
    pub max_body_bytes: Option<usize>,
    /// Maximum lifetime of a protocol session.
    pub session_ttl: Duration,
    /// Time without use after which a protocol session is closed.
    pub session_idle: Duration,
    /// Maximum number of live protocol sessions.
    pub max_sessions: usize,
    /// Maximum number of live protocol sessions of one owner. `None` means the maximum of all sessions.
    pub max_sessions_per_owner: Option<usize>,
    /// Whether addresses other than loopback are allowed.
    pub allow_unsafe_network: bool,
    /// The path of Prometheus metrics, if they are enabled.
    pub metrics_path: String,
    /// Whether the trace viewer is served.
    pub viewer: bool,
    /// The name of this process in log lines and traces. `None` means the host's name.
    pub instance_label: Option<String>,
    /// Path of the certificates for HTTPS, in PEM.
    pub tls_cert: Option<PathBuf>,
    /// Path of their private key, in PEM.
    pub tls_key: Option<PathBuf>,
    /// Path of the certificates whose holders may issue certificates of clients, in PEM.
    pub tls_client_ca: Option<PathBuf>,
    /// Whether replies to wrong tokens are delayed after repeated failures.
    pub auth_rate_limit: bool,
    /// Time during which a failure counts.
    pub auth_rate_limit_window: Duration,
    /// Failures of one address within that time before its replies are delayed.
    pub auth_rate_limit_max_failures: u32,
    /// Duration of the delays for that address.
    pub auth_rate_limit_block: Duration,
}

/// A bearer token. Its `Debug` output does not contain it, and it is overwritten when it is dropped.
#[derive(Clone)]
pub struct AuthToken(Zeroizing<String>);

impl AuthToken {
    /// Parses a token. Returns `None` if it is too short or contains characters that a header cannot contain.
    pub fn parse(text: &str) -> Option<AuthToken> {
        let sendable = text.bytes().all(|byte| byte.is_ascii_graphic());
        (text.len() >= MIN_TOKEN_BYTES && sendable).then(|| AuthToken(Zeroizing::new(text.to_owned())))
    }

    /// Returns the text of the token.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for AuthToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AuthToken(…)")
    }
}

impl HttpSettings {
    /// Returns a sentence for each contradiction between settings, and for each setting that needs a part that is not `linked`.
    pub fn contradictions(&self, linked: LinkedParts) -> Vec<String> {
        let mut faults = Vec::new();
        if !self.on {
            return faults;
        }
        for (is_on, feature, sentence) in [
            (true, "http-server", "--http: this binary was built for stdio only"),
            (self.tls_cert.is_some(), "https-server", "--http-tls-cert: this binary was built without TLS of its own"),
            (self.has_issuer(), "http-oauth", "--http-oauth-issuer: this binary was built without access tokens"),
            (self.viewer, "viewer", "--http-viewer: this binary was built without the page of traces"),
        ] {
            let missing = how_to_enable(feature, linked).filter(|_| is_on);
            faults.extend(missing.map(|how_to_enable| format!("{sentence}; {how_to_enable}")));
        }
        let mut wrong = |sentence: &str| faults.push(sentence.to_owned());
        let loopback = self.host.is_loopback();
        if !loopback && !self.allow_unsafe_network {
            wrong(
                "--http-host: an address other than loopback is reached from outside; \
                 give --http-allow-unsafe-network if that is meant",
            );
        }
        if !loopback && !self.has_credentials() {
            wrong(
                "--http-host: an address other than loopback needs --http-auth-token, --http-tokens-file, --http-oauth-issuer or --http-tls-client-ca",
            );
        }
        if self.tls_cert.is_some() != self.tls_key.is_some() {
            wrong("--http-tls-cert and --http-tls-key go together");
        }
        if self.tls_client_ca.is_some() && self.tls_cert.is_none() {
            wrong("--http-tls-client-ca needs --http-tls-cert");
        }
        if self.viewer && !loopback {
            wrong("--http-viewer is for loopback addresses only");
        }
        if self.disable_auth && !loopback {
            wrong("--http-disable-auth is for loopback addresses only");
        }
        if self.disable_auth && self.allow_unsafe_network {
            wrong("--http-disable-auth does not go with --http-allow-unsafe-network");
        }
        if self.viewer && self.disable_auth {
            wrong("--http-viewer does not go with --http-disable-auth: other users of this machine could read the traces");
        }
        if self.unix_socket.is_some() {
            for (is_on, flag) in [
                (!loopback, "--http-host"),
                (self.tls_cert.is_some(), "--http-tls-cert"),
                (self.viewer, "--http-viewer"),
                (self.disable_auth, "--http-disable-auth"),
                (self.allow_unsafe_network, "--http-allow-unsafe-network"),
            ] {
                if is_on {
                    wrong(&format!("--http-unix-socket does not go with {flag}"));
                }
            }
        }
        if self.admin_port.is_some_and(|port| port != 0 && port == self.port && self.unix_socket.is_none()) {
            wrong("--http-admin-port: --http-port has that port; give another one");
        }
        if self.disable_auth {
            for (is_on, flag) in [
                (self.auth_token.is_some(), "--http-auth-token"),
                (self.tokens_file.is_some(), "--http-tokens-file"),
                (self.has_issuer(), "--http-oauth-issuer"),
                (self.tls_client_ca.is_some(), "--http-tls-client-ca"),
            ] {
                if is_on {
                    wrong(&format!("--http-disable-auth does not go with {flag}"));
                }
            }
        }
        #[cfg(feature = "http-oauth")]
        self.oauth.contradictions().into_iter().for_each(&mut wrong);
        if ["/health", "/ready"].contains(&self.path.as_str()) {
            wrong("--http-path: /health and /ready are taken");
        }
        if self.metrics_path == self.path || ["/health", "/ready"].contains(&self.metrics_path.as_str()) {
            wrong("--http-metrics-path: that path is taken");
        }
        if self.viewer
            && [&self.path, &self.metrics_path].into_iter().any(|path| path == "/viewer" || path.starts_with("/viewer/"))
        {
            wrong("--http-viewer: /viewer is taken by --http-path or --http-metrics-path");
        }
        faults
    }
}

impl HttpSettings {
    /// Whether clients must show a credential.
    pub fn has_credentials(&self) -> bool {
        self.accepts_tokens() || self.tls_client_ca.is_some()
    }

    /// Whether clients can send a token.
    pub fn accepts_tokens(&self) -> bool {
        self.auth_token.is_some() || self.tokens_file.is_some() || self.has_issuer()
    }

    /// Whether access tokens are accepted.
    #[cfg_attr(not(feature = "http-oauth"), expect(clippy::unused_self, reason = "without the feature there is no issuer"))]
    fn has_issuer(&self) -> bool {
        #[cfg(feature = "http-oauth")]
        return self.oauth.issuer.is_some();
        #[cfg(not(feature = "http-oauth"))]
        false
    }

    /// Whether SIGHUP makes the server read files again. Otherwise it ends the server.
    pub fn reloads(&self) -> bool {
        self.on && (self.tokens_file.is_some() || self.tls_cert.is_some())
    }

    /// Generates a token if there is no credential and authentication is not disabled, since other users of the machine can reach its
    /// loopback address. Returns the generated token, if any. On a Unix socket the permissions of the file replace
    /// authentication.
    ///
    /// # Errors
    ///
    /// Returns an error if the operating system provides no random bytes.
    pub fn generate_token(&mut self) -> std::io::Result<Option<AuthToken>> {
        if !self.on || self.disable_auth || self.has_credentials() || self.unix_socket.is_some() {
            return Ok(None);
        }
        self.auth_token = AuthToken::parse(&crate::secrets::random::text::<24>()?);
        self.token_is_generated = true;
        Ok(self.auth_token.clone())
    }
}

impl Default for HttpSettings {
    /// Returns settings that allow nothing. The table of settings sets every value.
    fn default() -> Self {
        HttpSettings {
            on: false,
            host: Ipv4Addr::LOCALHOST.into(),
            port: 0,
            path: String::new(),
            auth_token: None,
            tokens_file: None,
            #[cfg(feature = "http-oauth")]
            oauth: OauthSettings::default(),
            token_is_generated: false,
            disable_auth: false,
            unix_socket: None,
            ready_needs_upstreams: false,
            admin_port: None,
            allowed_origins: Vec::new(),
            request_timeout: Duration::ZERO,
            shutdown_grace: Duration::ZERO,
            max_body_bytes: None,
            session_ttl: Duration::ZERO,
            session_idle: Duration::ZERO,
            max_sessions: 0,
            max_sessions_per_owner: None,
            allow_unsafe_network: false,
            metrics_path: String::new(),
            viewer: false,
            instance_label: None,
            tls_cert: None,
            tls_key: None,
            tls_client_ca: None,
            auth_rate_limit: true,
            auth_rate_limit_window: Duration::ZERO,
            auth_rate_limit_max_failures: 0,
            auth_rate_limit_block: Duration::ZERO,
        }
    }
}

/// Parses `localhost` or an address.
pub(super) fn host(text: &str) -> Option<IpAddr> {
    if text.eq_ignore_ascii_case("localhost") { Some(Ipv4Addr::LOCALHOST.into()) } else { text.parse().ok() }
}

/// Parses the absolute path of an endpoint. It must not contain characters that a client would have to escape.
pub(super) fn path(text: &str) -> Option<String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    (text.len() > 1 && text.starts_with('/') && text.bytes().all(plain)).then(|| text.to_owned())
}

/// Parses a name without control characters, so that log lines can contain it unchanged.
pub(super) fn label(text: &str) -> Option<String> {
    let printable = text.chars().all(|c| !c.is_control());
    (!text.trim().is_empty() && text.len() <= 200 && printable).then(|| text.to_owned())
}

/// Parses a comma-separated list of origins in the format of browsers.
pub(super) fn origins(text: &str) -> Option<Vec<String>> {
    text.split(',').map(str::trim).filter(|origin| !origin.is_empty()).map(origin).collect()
}

/// Normalises an origin: lower case, without the default port.
pub fn origin(text: &str) -> Option<String> {
    let text = text.trim_end_matches('/').to_ascii_lowercase();
    let (scheme, authority) = text.split_once("://")?;
    let default = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => return None,
    };
    let authority = authority.strip_suffix(default).unwrap_or(authority);
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
    (!authority.is_empty() && authority.chars().all(plain)).then(|| format!("{scheme}://{authority}"))
}

/// Returns the host of `host[:port]`, without brackets.
pub fn host_of(authority: &str) -> &str {
    if let Some(rest) = authority.strip_prefix('[') {
        return rest.split(']').next().unwrap_or(rest);
    }
    authority.split(':').next().unwrap_or(authority)
}

/// Whether a host name or address from a client refers to this machine.
pub fn is_loopback(host: &str) -> bool {
    self::host(host).is_some_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_paths_and_origins_are_validated() {
        assert_eq!(host("localhost"), Some(Ipv4Addr::LOCALHOST.into()));
        assert!(host("::1").is_some_and(|host| host.is_loopback()) && host("example.org").is_none());
        assert_eq!(path("/mcp").as_deref(), Some("/mcp"));
        for wrong in ["", "/", "mcp", "/m cp", "/mcp?x"] {
            assert_eq!(path(wrong), None, "{wrong}");
        }
        assert_eq!(origin("HTTPS://Example.org:443").as_deref(), Some("https://example.org"));
        assert_eq!(origin("http://localhost:3000").as_deref(), Some("http://localhost:3000"));
        for wrong in ["null", "", "file://", "https://", "ftp://x", "https://a b"] {
            assert_eq!(origin(wrong), None, "{wrong}");
        }
        for (authority, loopback) in [
            ("localhost:80", true),
            ("127.0.0.1:7332", true),
            ("[::1]:7332", true),
            ("127.9.9.9", true),
            ("localhost.evil.example", false),
            ("evil.example:7332", false),
            ("", false),
        ] {
            assert_eq!(is_loopback(host_of(authority)), loopback, "{authority}");
        }
    }

    #[test]
    fn short_token_is_refused_and_debug_output_hides_it() {
        assert!(AuthToken::parse(&"x".repeat(31)).is_none());
        assert!(AuthToken::parse(&format!("{} y", "x".repeat(32))).is_none());
        let token = AuthToken::parse(&"x".repeat(32)).expect("long enough");
        assert!(!format!("{token:?}").contains('x'));
    }

    #[test]
    fn contradicting_http_settings_are_refused() {
        let on = || HttpSettings { on: true, path: "/mcp".into(), ..HttpSettings::default() };
        let token = AuthToken::parse(&"x".repeat(32));
        let outside: IpAddr = [0, 0, 0, 0].into();
        assert_eq!(on().contradictions(LinkedParts::default()).len(), usize::from(!cfg!(feature = "http-server")));
        let socket = || HttpSettings { unix_socket: Some("/run/x.sock".into()), ..on() };
        let rows: [(HttpSettings, &[&str]); 14] = [
            (HttpSettings { viewer: true, disable_auth: true, ..on() }, &["--http-viewer does not go with"]),
            (HttpSettings { viewer: true, ..socket() }, &["--http-unix-socket does not go with --http-viewer"]),
            (HttpSettings { disable_auth: true, ..socket() }, &["--http-unix-socket does not go with --http-disable-auth"]),
            (HttpSettings { admin_port: Some(7333), ..socket() }, &[]),
            (HttpSettings { admin_port: Some(7332), port: 7332, ..on() }, &["--http-admin-port"]),
            (HttpSettings { admin_port: Some(0), port: 0, ..on() }, &[]),
            (HttpSettings { host: outside, ..on() }, &["--http-allow-unsafe-network", "needs --http-auth-token"]),
            (HttpSettings { host: outside, auth_token: token.clone(), allow_unsafe_network: true, ..on() }, &[]),
            (HttpSettings { disable_auth: true, allow_unsafe_network: true, ..on() }, &["does not go with"]),
            (HttpSettings { disable_auth: true, auth_token: token.clone(), ..on() }, &["does not go with --http-auth-token"]),
            (HttpSettings { path: "/ready".into(), ..on() }, &["/ready are taken"]),
            (HttpSettings { on: false, host: outside, ..on() }, &[]),
            (HttpSettings { viewer: true, path: "/viewer/x".into(), ..on() }, &["/viewer is taken"]),
            (
                HttpSettings { viewer: true, host: outside, auth_token: token.clone(), allow_unsafe_network: true, ..on() },
                &["for loopback addresses only"],
            ),
        ];
        for (settings, expected) in rows {
            let mut found = settings.contradictions(LinkedParts::default());
            found.retain(|sentence| !sentence.contains("built without"));
            assert_eq!(found.len(), expected.len(), "{found:?}");
            assert!(found.iter().zip(expected).all(|(found, part)| found.contains(part)), "{found:?}");
        }
    }
}
