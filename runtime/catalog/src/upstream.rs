//! Upstreams and their transports.

use crate::{OAuth2, Proxy, Sandbox, Tool, Tools};

/// One configured upstream with its granted tools.
#[derive(Debug, Clone)]
pub struct Upstream {
    /// The name that programs use in `:server`.
    pub name: &'static str,
    /// One line. Empty if neither the configuration nor the upstream has a description.
    pub description: &'static str,
    /// The transport to the upstream.
    pub transport: Transport,
    /// The granted tools, sorted by exposed name.
    pub tools: Tools,
}

impl Upstream {
    /// Returns the tool with this exposed name or, for OpenAPI, with this original `operationId`.
    pub fn tool(&self, name: &str) -> Option<&'static Tool> {
        let tools = self.tools.all();
        match tools.binary_search_by(|t| t.name.cmp(name)) {
            Ok(at) => tools.get(at),
            Err(_) => tools.iter().find(|t| t.operation.is_some_and(|o| o.id == name)),
        }
    }

    /// Returns the maximum bytes of one response from this upstream.
    pub fn max_response_bytes(&self) -> u64 {
        match &self.transport {
            Transport::McpStdio(t) => t.max_response_bytes,
            Transport::McpHttp(t) => t.max_response_bytes,
            Transport::OpenApi(t) => t.max_response_bytes,
        }
    }
}

/// The three kinds of upstreams.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(bound(deserialize = "'de: 'static")))]
pub enum Transport {
    /// An MCP server that is started as a child process.
    McpStdio(McpStdio),
    /// An MCP server over HTTP.
    McpHttp(McpHttp),
    /// A JSON service described by an OpenAPI document.
    OpenApi(OpenApi),
}

impl Transport {
    /// Returns the name in `upstreams.json`: of an MCP server over HTTP, that of the transport that is used.
    pub fn name(&self) -> &'static str {
        match self {
            Transport::McpStdio(_) => "mcp_stdio",
            Transport::McpHttp(McpHttp { http_transport: Some(HttpTransport::Sse), .. }) => "mcp_sse",
            Transport::McpHttp(_) => "mcp_http",
            Transport::OpenApi(_) => "openapi",
        }
    }

    /// Returns the elements of `auth`, none for a child process.
    pub fn auth(&self) -> &'static [Auth] {
        match self {
            Transport::McpStdio(_) => &[],
            Transport::McpHttp(spec) => spec.auth,
            Transport::OpenApi(spec) => spec.auth,
        }
    }

    /// Returns the proxy through which connections are made.
    pub fn proxy(&self) -> Option<Proxy> {
        match self {
            Transport::McpStdio(_) => None,
            Transport::McpHttp(spec) => spec.proxy,
            Transport::OpenApi(spec) => spec.proxy,
        }
    }

    /// Returns the maximum number of calls in flight. Further calls are queued.
    pub fn max_concurrent_calls(&self) -> u64 {
        match self {
            Transport::McpStdio(spec) => spec.max_concurrent_calls,
            Transport::McpHttp(spec) => spec.max_concurrent_calls,
            Transport::OpenApi(spec) => spec.max_concurrent_calls,
        }
    }
}

/// A child process that speaks MCP on its standard input and output.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct McpStdio {
    /// The program. It is looked up in `PATH` if it has no slash.
    pub command: &'static str,
    /// The arguments of the program.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::leaked::list"))]
    pub args: &'static [&'static str],
    /// Environment variables of the child. A value is a list of parts, so that `${VAR}` is resolved when the server starts.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::leaked::pairs"))]
    pub env: &'static [(&'static str, &'static [EnvPart])],
    /// The server's own variables that the child inherits in addition to the base set.
    pub inherit_env: InheritEnv,
    /// The working directory, absolute or relative to `--config-dir`.
    pub cd: Option<&'static str>,
    /// The sandbox of the child. Without one, the child has the rights of the server's user.
    pub sandbox: Option<Sandbox>,
    /// Milliseconds for start and handshake.
    pub handshake_timeout_ms: u64,
    /// Milliseconds without a call after which the child is ended. The next call starts it again.
    pub idle_timeout_ms: Option<u64>,
    /// Maximum bytes of one response.
    pub max_response_bytes: u64,
    /// Maximum calls in flight. Further calls are queued.
    pub max_concurrent_calls: u64,
    /// Limits on the list of its tools.
    pub listing: ListingLimits,
    /// The protocol era that was observed when the catalog was frozen.
    pub era: Option<Era>,
}

/// Limits on the tools that an MCP server lists, over all pages of `tools/list`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ListingLimits {
    /// Maximum bytes of all pages together.
    pub max_bytes: u64,
    /// Maximum tools on all pages together, granted or not.
    pub max_tools: u64,
}

impl ListingLimits {
    /// 16 MiB and 10,000 tools.
    pub const DEFAULT: ListingLimits = ListingLimits { max_bytes: 16 * 1024 * 1024, max_tools: 10_000 };
}

impl McpStdio {
    /// Makes a transport for a command, with the defaults of the configuration format.
    pub const fn new(command: &'static str) -> Self {
        McpStdio {
            command,
            args: &[],
            env: &[],
            inherit_env: InheritEnv::Base,
            cd: None,
            sandbox: None,
            handshake_timeout_ms: 10_000,
            idle_timeout_ms: None,
            max_response_bytes: 2 * 1024 * 1024,
            max_concurrent_calls: 100,
            listing: ListingLimits::DEFAULT,
            era: None,
        }
    }
}

/// A part of the value of a child's environment variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum EnvPart {
    /// Literal text.
    Text(&'static str),
    /// `${VAR}`: a variable of the server process, which must be set.
    Var(&'static str),
}

/// Prefix of the environment variables that configure the server itself.
pub const RESERVED_PREFIX: &str = "PTC_RUNNER_";

/// The server's variables that a child inherits in addition to `PATH HOME USER LANG LC_* TMPDIR TERM SHELL`. Variables of the
/// server's own settings and of credentials are never inherited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(bound(deserialize = "'de: 'static")))]
pub enum InheritEnv {
    /// No further variables.
    Base,
    /// These variables, if they are set.
    Names(#[cfg_attr(feature = "serde", serde(deserialize_with = "crate::leaked::list"))] &'static [&'static str]),
    /// All other variables.
    All,
}

/// The two transports of MCP over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum HttpTransport {
    /// Streamable HTTP, of protocol revisions from 2025-03-26 on.
    Streamable,
    /// HTTP+SSE, of protocol revision 2024-11-05.
    Sse,
}

impl HttpTransport {
    /// Returns the name in the lock file.
    pub fn name(self) -> &'static str {
        match self {
            HttpTransport::Streamable => "streamable_http",
            HttpTransport::Sse => "http_sse",
        }
    }
}

/// An MCP server over HTTP.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct McpHttp {
    /// The URL of the endpoint, or of the event stream of HTTP+SSE.
    pub url: &'static str,
    /// The credentials that requests carry, in order.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::leaked::list"))]
    pub auth: &'static [Auth],
    /// Literal, non-secret headers.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::leaked::list"))]
    pub static_headers: &'static [(&'static str, &'static str)],
    /// Milliseconds for connect and handshake.
    pub handshake_timeout_ms: u64,
    /// Milliseconds of one request.
    pub request_timeout_ms: u64,
    /// Milliseconds to connect.
    pub connect_timeout_ms: u64,
    /// Maximum bytes of one response.
    pub max_response_bytes: u64,
    /// Maximum calls in flight. Further calls are queued.
    pub max_concurrent_calls: u64,
    /// Limits on the list of its tools.
    pub listing: ListingLimits,
    /// The proxy through which connections are made.
    pub proxy: Option<Proxy>,
    /// The protocol era that was observed when the catalog was frozen.
    pub era: Option<Era>,
    /// The only transport that is used: that of the config, or that which was agreed when the catalog was frozen. `None` tries
    /// Streamable HTTP, then HTTP+SSE.
    pub http_transport: Option<HttpTransport>,
}

impl McpHttp {
    /// Makes a transport for an endpoint, with the defaults of the configuration format.
    pub const fn new(url: &'static str) -> Self {
        McpHttp {
            url,
            auth: &[],
            static_headers: &[],
            handshake_timeout_ms: 10_000,
            request_timeout_ms: 30_000,
            connect_timeout_ms: 5_000,
            max_response_bytes: 2 * 1024 * 1024,
            max_concurrent_calls: 1_000,
            listing: ListingLimits::DEFAULT,
            proxy: None,
            era: None,
            http_transport: None,
        }
    }
}

/// A JSON service described by an OpenAPI document.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct OpenApi {
    /// Prefix of every operation's path, without a trailing slash.
    pub base_url: &'static str,
    /// Further origins to which operations may send requests, such as `https://uploads.example.com`.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::leaked::list"))]
    pub server_origins: &'static [&'static str],
    /// The header that carries a key with each write.
    pub idempotency_header: Option<&'static str>,
    /// Maximum bytes of a request body.
    pub max_request_bytes: u64,
    /// The credentials that requests carry, in order.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::leaked::list"))]
    pub auth: &'static [Auth],
    /// Literal, non-secret headers.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::leaked::list"))]
    pub static_headers: &'static [(&'static str, &'static str)],
    /// Milliseconds of one request.
    pub request_timeout_ms: u64,
    /// Milliseconds to connect.
    pub connect_timeout_ms: u64,
    /// Maximum bytes of one response.
    pub max_response_bytes: u64,
    /// Maximum calls in flight. Further calls are queued.
    pub max_concurrent_calls: u64,
    /// The proxy through which connections are made.
    pub proxy: Option<Proxy>,
}

impl OpenApi {
    /// Makes a transport for a base URL, with the defaults of the configuration format.
    pub const fn new(base_url: &'static str) -> Self {
        OpenApi {
            base_url,
            server_origins: &[],
            idempotency_header: None,
            max_request_bytes: 4 * 1024 * 1024,
            auth: &[],
            static_headers: &[],
            request_timeout_ms: 30_000,
            connect_timeout_ms: 5_000,
            max_response_bytes: 2 * 1024 * 1024,
            max_concurrent_calls: 1_000,
            proxy: None,
        }
    }
}

/// How an upstream is authenticated: the scheme, and the credential binding that it uses. `T` is the type of its texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Auth<T = &'static str> {
    /// `Authorization: Bearer v`.
    Bearer {
        /// The credential binding.
        binding: T,
    },
    /// `Authorization: Basic base64(user:pass)`.
    Basic {
        /// The credential binding.
        binding: T,
    },
    /// `header: v`.
    CustomHeader {
        /// The name of the header.
        header: T,
        /// The credential binding.
        binding: T,
    },
    /// A query parameter or a cookie.
    ApiKey {
        /// Where the secret is.
        place: KeyPlace,
        /// The name of the parameter or cookie.
        name: T,
        /// The credential binding.
        binding: T,
    },
    /// A client certificate: PEM certificates with their private key.
    ClientCertificate {
        /// The credential binding.
        binding: T,
    },
    /// `Authorization: Bearer t`, with an access token that an authorization server issues at run time.
    OAuth2(OAuth2<T>),
}

/// Where a key is that is not in a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum KeyPlace {
    /// A parameter of the query.
    Query,
    /// A cookie.
    Cookie,
}

impl<T> Auth<T> {
    /// Returns the credential binding whose value is sent to the upstream, or to its authorization server.
    pub fn binding(&self) -> &T {
        match self {
            Auth::Bearer { binding }
            | Auth::Basic { binding }
            | Auth::CustomHeader { binding, .. }
            | Auth::ApiKey { binding, .. }
            | Auth::ClientCertificate { binding }
            | Auth::OAuth2(OAuth2 { binding, .. }) => binding,
        }
    }

    /// Returns all credential bindings. Those that are not used are empty.
    pub fn bindings(&self) -> impl Iterator<Item = &T> {
        let of_others = self.oauth().map(|oauth| oauth.bindings().skip(1)).into_iter().flatten();
        std::iter::once(self.binding()).chain(of_others)
    }

    /// Returns the name of the scheme in `upstreams.json`.
    pub fn scheme(&self) -> &'static str {
        match self {
            Auth::Bearer { .. } => "bearer",
            Auth::Basic { .. } => "basic",
            Auth::CustomHeader { .. } => "custom_header",
            Auth::ApiKey { .. } => "api_key",
            Auth::ClientCertificate { .. } => "mtls",
            Auth::OAuth2(_) => "oauth2",
        }
    }
}

impl<T> Auth<T> {
    /// Returns how access tokens are obtained, if the upstream needs any.
    pub fn oauth(&self) -> Option<&OAuth2<T>> {
        match self {
            Auth::OAuth2(oauth) => Some(oauth),
            _ => None,
        }
    }
}

impl<T: AsRef<str>> Auth<T> {
    /// Returns place and name of the parameter that carries the secret. `None` for a certificate.
    pub fn parameter(&self) -> Option<(&'static str, &str)> {
        match self {
            Auth::Bearer { .. } | Auth::Basic { .. } | Auth::OAuth2(_) => Some(("header", "Authorization")),
            Auth::CustomHeader { header, .. } => Some(("header", header.as_ref())),
            Auth::ApiKey { place: KeyPlace::Query, name, .. } => Some(("query", name.as_ref())),
            Auth::ApiKey { place: KeyPlace::Cookie, name, .. } => Some(("cookie", name.as_ref())),
            Auth::ClientCertificate { .. } => None,
        }
    }
}

/// The two protocol eras of MCP: with `initialize` and sessions, and stateless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Era {
    /// Protocol revisions up to 2025-11-25.
    Handshake,
    /// Protocol revisions from 2026-07-28 on.
    Stateless,
}

impl Era {
    /// Returns the name in the lock file.
    pub fn name(self) -> &'static str {
        match self {
            Era::Handshake => "handshake",
            Era::Stateless => "stateless",
        }
    }
}
