//! Upstreams and how each is reached.

use crate::Tool;

/// One configured upstream with its granted tools.
#[derive(Debug, Clone)]
pub struct Upstream {
    /// The name that programs use in `:server`.
    pub name: &'static str,
    /// One line; empty where nothing was configured or said.
    pub description: &'static str,
    /// How it is reached.
    pub transport: Transport,
    /// Sorted by exposed name.
    pub tools: &'static [Tool],
}

impl Upstream {
    /// The tool of that exposed name or, for OpenAPI, of that original `operationId`.
    pub fn tool(&self, name: &str) -> Option<&'static Tool> {
        match self.tools.binary_search_by(|t| t.name.cmp(name)) {
            Ok(at) => self.tools.get(at),
            Err(_) => self.tools.iter().find(|t| t.operation.is_some_and(|o| o.id == name)),
        }
    }

    /// Largest answer in bytes that is read from this upstream.
    pub fn max_response_bytes(&self) -> u64 {
        match &self.transport {
            Transport::McpStdio(t) => t.max_response_bytes,
            Transport::McpHttp(t) => t.max_response_bytes,
            Transport::OpenApi(t) => t.max_response_bytes,
        }
    }
}

/// The three ways to reach an upstream.
#[derive(Debug, Clone)]
pub enum Transport {
    /// An MCP server that is started as a child process.
    McpStdio(McpStdio),
    /// An MCP server over Streamable HTTP.
    McpHttp(McpHttp),
    /// A JSON service described by an OpenAPI document.
    OpenApi(OpenApi),
}

impl Transport {
    /// The name in `upstreams.json`.
    pub fn name(&self) -> &'static str {
        match self {
            Transport::McpStdio(_) => "mcp_stdio",
            Transport::McpHttp(_) => "mcp_http",
            Transport::OpenApi(_) => "openapi",
        }
    }

    /// Calls in flight; others wait for their turn.
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
pub struct McpStdio {
    /// Program, looked up in `PATH` where it has no slash.
    pub command: &'static str,
    /// Its arguments.
    pub args: &'static [&'static str],
    /// Variables set for the child; a value is a run of parts, so that `${VAR}` is resolved when the server starts.
    pub env: &'static [(&'static str, &'static [EnvPart])],
    /// Which of the server's own variables the child gets beside the base set.
    pub inherit_env: InheritEnv,
    /// Working directory; relative to `--config-dir`.
    pub cd: Option<&'static str>,
    /// Milliseconds for start and handshake.
    pub handshake_timeout_ms: u64,
    /// Bytes of one answer.
    pub max_response_bytes: u64,
    /// Calls in flight; others wait for their turn.
    pub max_concurrent_calls: u64,
    /// Caps on the list of its tools.
    pub listing: ListingLimits,
    /// The protocol era seen when the catalog was frozen.
    pub era: Option<Era>,
}

/// Caps on the tools that an MCP server lists, over all pages of `tools/list`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListingLimits {
    /// Bytes of all pages together.
    pub max_bytes: u64,
    /// Tools on all pages together, granted or not.
    pub max_tools: u64,
}

impl ListingLimits {
    /// 16 MiB and 10,000 tools.
    pub const DEFAULT: ListingLimits = ListingLimits { max_bytes: 16 * 1024 * 1024, max_tools: 10_000 };
}

impl McpStdio {
    /// A command with the defaults of the config contract.
    pub const fn new(command: &'static str) -> Self {
        McpStdio {
            command,
            args: &[],
            env: &[],
            inherit_env: InheritEnv::Base,
            cd: None,
            handshake_timeout_ms: 10_000,
            max_response_bytes: 2 * 1024 * 1024,
            max_concurrent_calls: 100,
            listing: ListingLimits::DEFAULT,
            era: None,
        }
    }
}

/// A part of a child's environment value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnvPart {
    /// Literal text.
    Text(&'static str),
    /// `${VAR}`: a variable of the server process, which must be set.
    Var(&'static str),
}

/// What the names of the server's own settings start with in its environment.
pub const RESERVED_PREFIX: &str = "PTC_RUNNER_";

/// What a child sees of the server's environment, beside `PATH HOME USER LANG LC_* TMPDIR TERM SHELL`. Variables of the server's own
/// settings and those that a credential names are never among it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InheritEnv {
    /// Nothing more.
    Base,
    /// These variables where set.
    Names(&'static [&'static str]),
    /// Every other variable.
    All,
}

/// An MCP server over Streamable HTTP.
#[derive(Debug, Clone)]
pub struct McpHttp {
    /// Endpoint.
    pub url: &'static str,
    /// Emitters, in order.
    pub auth: &'static [Auth],
    /// Literal, non-secret headers.
    pub static_headers: &'static [(&'static str, &'static str)],
    /// Milliseconds for connect and handshake.
    pub handshake_timeout_ms: u64,
    /// Milliseconds of one request.
    pub request_timeout_ms: u64,
    /// Milliseconds to connect.
    pub connect_timeout_ms: u64,
    /// Bytes of one answer.
    pub max_response_bytes: u64,
    /// Calls in flight; others wait for their turn.
    pub max_concurrent_calls: u64,
    /// Caps on the list of its tools.
    pub listing: ListingLimits,
    /// Proxy URL.
    pub proxy: Option<&'static str>,
    /// The protocol era seen when the catalog was frozen.
    pub era: Option<Era>,
}

impl McpHttp {
    /// An endpoint with the defaults of the config contract.
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
        }
    }
}

/// A JSON service described by an OpenAPI document.
#[derive(Debug, Clone)]
pub struct OpenApi {
    /// Prefix of every operation's path, without a trailing slash.
    pub base_url: &'static str,
    /// Emitters, in order.
    pub auth: &'static [Auth],
    /// Literal, non-secret headers.
    pub static_headers: &'static [(&'static str, &'static str)],
    /// Milliseconds of one request.
    pub request_timeout_ms: u64,
    /// Milliseconds to connect.
    pub connect_timeout_ms: u64,
    /// Bytes of one answer.
    pub max_response_bytes: u64,
    /// Calls in flight; others wait for their turn.
    pub max_concurrent_calls: u64,
}

impl OpenApi {
    /// A base URL with the defaults of the config contract.
    pub const fn new(base_url: &'static str) -> Self {
        OpenApi {
            base_url,
            auth: &[],
            static_headers: &[],
            request_timeout_ms: 30_000,
            connect_timeout_ms: 5_000,
            max_response_bytes: 2 * 1024 * 1024,
            max_concurrent_calls: 1_000,
        }
    }
}

/// A header that carries a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auth {
    /// `Authorization: Bearer v`.
    Bearer {
        /// Credential binding.
        binding: &'static str,
    },
    /// `Authorization: Basic base64(user:pass)`.
    Basic {
        /// Credential binding.
        binding: &'static str,
    },
    /// `header: v`.
    CustomHeader {
        /// Header name.
        header: &'static str,
        /// Credential binding.
        binding: &'static str,
    },
}

impl Auth {
    /// The binding whose value it sends.
    pub fn binding(&self) -> &'static str {
        match self {
            Auth::Bearer { binding } | Auth::Basic { binding } | Auth::CustomHeader { binding, .. } => binding,
        }
    }

    /// The scheme's name in `upstreams.json`.
    pub fn scheme(&self) -> &'static str {
        match self {
            Auth::Bearer { .. } => "bearer",
            Auth::Basic { .. } => "basic",
            Auth::CustomHeader { .. } => "custom_header",
        }
    }
}

/// The two protocol eras of MCP: with `initialize` and sessions, and stateless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// Revisions up to 2025-11-25.
    Handshake,
    /// From 2026-07-28 on.
    Stateless,
}

impl Era {
    /// The name in the lock file.
    pub fn name(self) -> &'static str {
        match self {
            Era::Handshake => "handshake",
            Era::Stateless => "stateless",
        }
    }
}
