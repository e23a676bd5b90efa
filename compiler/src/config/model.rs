//! The model of a checked config. It is owned, ordered by name, and has the positions that later phases report.

use std::collections::BTreeMap;

use ptc_catalog::ListingLimits;

use super::operation_selector::names_operation;
use crate::diag::Code;
use crate::json::Json;
use crate::source::{FileId, Span};

/// A value and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// The position in the config.
    pub place: Span,
}

/// A whole `upstreams.json`.
#[derive(Debug, Clone)]
pub struct Config {
    /// The config file.
    pub file: FileId,
    /// SHA-256 of the canonical text of what goes into a binary, as `sha256:` and lower-case hex. Formatting does not count.
    pub digest: String,
    /// `name`: the name of the deployment.
    pub name: Option<String>,
    /// Upstreams by name.
    pub upstreams: BTreeMap<String, Upstream>,
    /// Entries with errors, as far as they could be read. Later phases check them so that all faults are found in one run, but
    /// nothing is built from them. A `base_url` that cannot be read is empty.
    pub faulty: BTreeMap<String, Upstream>,
    /// Credential bindings by name.
    pub credentials: BTreeMap<String, Binding>,
    /// Stored programs by the names of their tools.
    pub programs: BTreeMap<String, Program>,
    /// Position of `read_only` if it is true: every granted tool must be a read.
    pub read_only: Option<Span>,
    /// `policy`
    pub policy: Option<Policy>,
}

/// `policy`
#[derive(Debug, Clone)]
pub struct Policy {
    /// Position of the key.
    pub place: Span,
    /// SHA-256 of its canonical text, as `sha256:` and lower-case hex.
    pub digest: String,
    /// `rules`, in order. Rules with errors are left out.
    pub rules: Vec<Rule>,
}

/// One element of `rules`.
#[derive(Debug, Clone)]
pub struct Rule {
    /// `name`
    pub name: Spanned<String>,
    /// `when`; empty for every caller.
    pub when: Vec<Spanned<Condition>>,
    /// `allow`
    pub allow: Vec<Grant>,
    /// `calls_per_program` of `limits`
    pub calls_per_program: Option<u32>,
    /// `calls_per_minute` of `limits`
    pub calls_per_minute: Option<u32>,
}

/// One member of `when`.
pub type Condition = ptc_catalog::Condition<String>;

/// One element of `allow`.
#[derive(Debug, Clone)]
pub struct Grant {
    /// `upstream`
    pub upstream: Spanned<String>,
    /// `tools`; empty for all.
    pub tools: Vec<Spanned<String>>,
    /// `arguments`: the permitted values as JSON, by the argument's name.
    pub arguments: Vec<(Spanned<String>, Vec<String>)>,
}

impl Grant {
    /// Whether the grant permits a tool of its upstream, apart from arguments.
    pub fn permits_tool(&self, tool: &str) -> bool {
        self.tools.is_empty() || self.tools.iter().any(|pattern| ptc_catalog::matches_wildcard(&pattern.value, tool))
    }
}

/// One entry of `programs`.
#[derive(Debug, Clone)]
pub struct Program {
    /// Position of the entry's name.
    pub place: Span,
    /// `file`, relative to the config's folder.
    pub file: Spanned<String>,
    /// `description` on one line; may be empty.
    pub description: String,
    /// `args`
    pub args: Option<Spanned<Json>>,
    /// `output_schema`
    pub output_schema: Option<Spanned<Json>>,
    /// `silence`: the notes that are not shown.
    pub silence: Vec<Code>,
}

/// One entry of `upstreams`.
#[derive(Debug, Clone)]
pub struct Upstream {
    /// Position of the entry's name.
    pub place: Span,
    /// `description` on one line.
    pub description: Option<String>,
    /// `include_tools` of an MCP entry; `None` grants all tools.
    pub include_tools: Option<Vec<Spanned<String>>>,
    /// `accept_definitions`
    pub accept_definitions: Vec<Spanned<String>>,
    /// `call_timeout_ms`
    pub call_timeout_ms: Option<u64>,
    /// `trust_annotations` of an MCP entry: the effects that its tools declare are relied on.
    pub trust_annotations: bool,
    /// `tool_overrides` of an MCP entry, by tool.
    pub tool_overrides: BTreeMap<String, ToolOverride>,
    /// The keys that depend on the transport.
    pub transport: Transport,
}

impl Upstream {
    /// Returns the `example` in the override of a tool or operation.
    pub fn example(&self, tool: &str, definition: &Json) -> Option<&Spanned<Json>> {
        match &self.transport {
            Transport::OpenApi(entry) => entry.override_of(definition)?.1.example.as_ref(),
            Transport::McpStdio(_) | Transport::McpHttp(_) => self.tool_overrides.get(tool)?.example.as_ref(),
        }
    }
}

/// One entry of `tool_overrides`.
#[derive(Debug, Clone)]
pub struct ToolOverride {
    /// Position of the tool's name.
    pub place: Span,
    /// `description`
    pub description: Option<String>,
    /// `read_only`, `destructive` and `idempotent`.
    pub effects: Effects,
    /// `paging`: an object, or `false`.
    pub paging: Option<Spanned<Json>>,
    /// `call_timeout_ms`
    pub call_timeout_ms: Option<u64>,
    /// `example`: the arguments of a call.
    pub example: Option<Spanned<Json>>,
}

/// The kinds of transports.
#[derive(Debug, Clone)]
pub enum Transport {
    /// `mcp_stdio`
    McpStdio(McpStdio),
    /// `mcp_http` or `mcp_sse`
    McpHttp(McpHttp),
    /// `openapi`
    OpenApi(OpenApi),
}

impl Transport {
    /// Returns the name of the transport in the config.
    pub fn name(&self) -> &'static str {
        match self {
            Transport::McpStdio(_) => "mcp_stdio",
            Transport::McpHttp(McpHttp { is_sse: true, .. }) => "mcp_sse",
            Transport::McpHttp(_) => "mcp_http",
            Transport::OpenApi(_) => "openapi",
        }
    }

    /// Returns the options of a transport over HTTP.
    pub fn http(&self) -> Option<&HttpOptions> {
        match self {
            Transport::McpStdio(_) => None,
            Transport::McpHttp(http) => Some(&http.http),
            Transport::OpenApi(api) => Some(&api.http),
        }
    }

    /// Returns the proxy through which connections are made.
    pub fn proxy(&self) -> Option<&Proxy> {
        self.http()?.proxy.as_ref()
    }
}

/// `mcp_stdio`
#[derive(Debug, Clone)]
pub struct McpStdio {
    /// `command`
    pub command: Spanned<String>,
    /// `args`
    pub args: Vec<String>,
    /// `env`, by name, split at `${VAR}`.
    pub env: BTreeMap<String, Vec<EnvPart>>,
    /// Positions of the values of `env`, by name.
    pub env_places: BTreeMap<String, Span>,
    /// `inherit_env`
    pub inherit_env: InheritEnv,
    /// `cd`
    pub cd: Option<Spanned<String>>,
    /// `sandbox`
    pub sandbox: Option<Sandbox>,
    /// `handshake_timeout_ms`
    pub handshake_timeout_ms: u64,
    /// `idle_timeout_ms`
    pub idle_timeout_ms: Option<u64>,
    /// `max_response_bytes`
    pub max_response_bytes: u64,
    /// `max_concurrent_calls`
    pub max_concurrent_calls: u64,
    /// `max_listing_bytes` and `max_listing_tools`
    pub listing: ListingLimits,
}

/// `sandbox`
#[derive(Debug, Clone)]
pub struct Sandbox {
    /// `read`
    pub read: Vec<Spanned<String>>,
    /// `write`
    pub write: Vec<Spanned<String>>,
    /// `network`
    pub network: bool,
    /// `memory_mb`
    pub memory_mb: Option<u64>,
    /// `processes`
    pub processes: Option<u64>,
    /// `open_files`
    pub open_files: Option<u64>,
    /// `cpu_seconds`
    pub cpu_seconds: Option<u64>,
}

impl Sandbox {
    /// Iterates over all paths.
    pub fn paths(&self) -> impl Iterator<Item = &Spanned<String>> {
        self.read.iter().chain(&self.write)
    }
}

/// A part of an `env` value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvPart {
    /// Literal text.
    Text(String),
    /// `${VAR}`
    Var(String),
}

/// `inherit_env`
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InheritEnv {
    /// Absent or `false`.
    Base,
    /// A list of names.
    Names(Vec<String>),
    /// `true`
    All,
}

/// The options of both HTTP transports.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// `auth`, in order.
    pub auth: Vec<Auth>,
    /// Positions of the elements of `auth`.
    pub auth_places: Vec<Span>,
    /// Position of the key `auth`, if it is given.
    pub auth_place: Option<Span>,
    /// `static_headers`, by name in the original spelling.
    pub static_headers: BTreeMap<String, String>,
    /// `request_timeout_ms`
    pub request_timeout_ms: u64,
    /// `connect_timeout_ms`
    pub connect_timeout_ms: u64,
    /// `max_response_bytes`
    pub max_response_bytes: u64,
    /// `max_concurrent_calls`
    pub max_concurrent_calls: u64,
    /// `proxy`
    pub proxy: Option<Proxy>,
}

/// `proxy`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    /// `url`
    pub url: Spanned<String>,
    /// `auth`: the credential binding with user and password.
    pub auth: Option<String>,
    /// `no_proxy`
    pub no_proxy: Vec<String>,
}

impl HttpOptions {
    /// Iterates over place and name of the parameters that every request has: `header`, `query` or `cookie`.
    pub fn sent_parameters(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let static_headers = self.static_headers.keys().map(|name| ("header", name.as_str()));
        self.auth.iter().filter_map(Auth::parameter).chain(static_headers)
    }

    /// Iterates over the names of the headers that every request has.
    pub fn sent_headers(&self) -> impl Iterator<Item = &str> {
        self.sent_parameters().filter(|(place, _)| *place == "header").map(|(_, name)| name)
    }
}

/// `mcp_http` or `mcp_sse`
#[derive(Debug, Clone)]
pub struct McpHttp {
    /// Whether the transport is `mcp_sse`: only HTTP+SSE is used.
    pub is_sse: bool,
    /// `url`
    pub url: Spanned<String>,
    /// Shared options.
    pub http: HttpOptions,
    /// `handshake_timeout_ms`
    pub handshake_timeout_ms: u64,
    /// `max_listing_bytes` and `max_listing_tools`
    pub listing: ListingLimits,
}

/// `openapi`
#[derive(Debug, Clone)]
pub struct OpenApi {
    /// `base_url`, without trailing slashes.
    pub base_url: Spanned<String>,
    /// `allow_writes`: operations that are not reads can be included by name.
    pub allow_writes: bool,
    /// `idempotency_header`: the header that carries a key for each write.
    pub idempotency_header: Option<String>,
    /// `max_request_bytes`
    pub max_request_bytes: u64,
    /// `server_origins`: further origins that operations may have.
    pub server_origins: Vec<Spanned<String>>,
    /// Shared options.
    pub http: HttpOptions,
    /// `schema_file` or `schema_url`
    pub schema: Spanned<SchemaSource>,
    /// `schema_max_bytes`
    pub schema_max_bytes: u64,
    /// The position of `schema_max_bytes`, if it is given.
    pub schema_max_place: Option<Span>,
    /// `include_operations`, which is not empty: operation ids, `GET /path` entries and patterns.
    pub include_operations: Vec<Spanned<String>>,
    /// `exclude_operations`, in the same forms as `include_operations`.
    pub exclude_operations: Vec<Spanned<String>>,
    /// `silence`: the notes that are not shown, also those in the document.
    pub silence: Vec<Code>,
    /// `operation_overrides`, by operation id or `GET /path`.
    pub operation_overrides: BTreeMap<String, Override>,
}

/// Where an OpenAPI document comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaSource {
    /// A path as written, relative to the config's folder.
    File(String),
    /// A URL, which is fetched at build time only.
    Url(String),
}

/// One entry of `operation_overrides`.
#[derive(Debug, Clone)]
pub struct Override {
    /// Position of the operation id.
    pub place: Span,
    /// `name`
    pub name: Option<Spanned<String>>,
    /// `description`
    pub description: Option<String>,
    /// `default_args`, by argument name. Numbers keep their original text.
    pub default_args: Option<BTreeMap<String, Spanned<Json>>>,
    /// `allow_deprecated`: patterns include the operation although it is deprecated.
    pub allow_deprecated: bool,
    /// `read_only`, `destructive` and `idempotent`.
    pub effects: Effects,
    /// `content_type`: the media type of the request body.
    pub content_type: Option<Spanned<String>>,
    /// `secret_args`: parameters that carry secrets and that programs may pass all the same.
    pub secret_args: Vec<String>,
    /// `paging`: an object, or `false`.
    pub paging: Option<Spanned<Json>>,
    /// `call_timeout_ms`
    pub call_timeout_ms: Option<u64>,
    /// `example`: the arguments of a call.
    pub example: Option<Spanned<Json>>,
}

impl OpenApi {
    /// Returns the override of an operation with its key, by the `_ptc` of the operation's definition.
    pub fn override_of(&self, definition: &Json) -> Option<(&str, &Override)> {
        let operation = definition.get("_ptc")?;
        let said = |key: &str| operation.get(key).and_then(Json::as_str);
        let by_id = said("operationId").and_then(|id| self.operation_overrides.get_key_value(id));
        let (path, method) = (said("path")?, said("method").unwrap_or("GET"));
        let by_path = || self.operation_overrides.iter().find(|(key, _)| names_operation(key, method, path));
        by_id.or_else(by_path).map(|(key, overriding)| (key.as_str(), overriding))
    }
}

/// The effects that an override states. `None` leaves the default of an operation's method, or what is known of a tool.
#[derive(Debug, Clone, Copy, Default)]
pub struct Effects {
    /// `read_only`
    pub read_only: Option<bool>,
    /// `destructive`
    pub destructive: Option<bool>,
    /// `idempotent`
    pub idempotent: Option<bool>,
}

impl Effects {
    /// Returns the flags with their keys.
    pub fn named(self) -> [(&'static str, Option<bool>); 3] {
        [("read_only", self.read_only), ("destructive", self.destructive), ("idempotent", self.idempotent)]
    }
}

/// One element of `auth`.
pub type Auth = ptc_catalog::Auth<String>;

/// One entry of `credentials`.
#[derive(Debug, Clone)]
pub struct Binding {
    /// Position of the binding's name.
    pub place: Span,
    /// `source` and the keys that depend on it.
    pub source: CredentialSource,
    /// `scheme_hint`
    pub scheme_hint: Option<String>,
}

/// Where a secret comes from.
#[derive(Clone)]
pub enum CredentialSource {
    /// `env`
    Env {
        /// `var`
        var: String,
    },
    /// `file`
    File {
        /// `path`
        path: String,
    },
    /// `literal`
    Literal {
        /// `value`
        value: String,
    },
}

impl std::fmt::Debug for CredentialSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CredentialSource::Env { var } => f.debug_struct("Env").field("var", var).finish(),
            CredentialSource::File { path } => f.debug_struct("File").field("path", path).finish(),
            CredentialSource::Literal { .. } => f.write_str("Literal { .. }"),
        }
    }
}
