//! The form of the lock file. The library writes and reads it member by member (`lock::write`, `lock::read`), so that these types
//! only describe it; a test compares them with lock files.
#![expect(dead_code, reason = "the types are described and never constructed")]

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_json::{Map, Value};

/// `upstreams.lock.json`: the tools of each upstream when they were pinned.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct LockFile {
    /// The version of the format.
    lock_version: u32,
    /// SHA-256 of everything that is pinned.
    catalog_digest: String,
    /// The upstreams by their names in the config.
    upstreams: BTreeMap<String, Upstream>,
    /// SHA-256 of `policy` of the config.
    policy_digest: Option<String>,
}

/// The pinned state of an upstream.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Upstream {
    /// The transport's name in the config.
    transport: String,
    /// The granted tools by the names under which programs call them.
    tools: BTreeMap<String, Tool>,
    /// How an MCP upstream was reached.
    address: Option<Address>,
    /// The authorization server that the upstream names, if it names one.
    authorization: Option<Authorization>,
    /// The protocol era of an MCP server.
    era: Option<Era>,
    /// The transport that was agreed with an MCP server over HTTP.
    http_transport: Option<HttpTransport>,
    /// Name and version of an MCP server, or title and version of an OpenAPI document.
    server: Option<Server>,
    /// The instructions of an MCP server for models.
    instructions: Option<String>,
    /// Which tools of an MCP server are granted.
    grants: Option<Grants>,
    /// The OpenAPI document that was read.
    document: Option<Document>,
}

/// The command or the URL of an MCP upstream, with possible secrets replaced.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Address {
    command: Option<String>,
    args: Option<Vec<String>>,
    cd: Option<String>,
    /// The names in `env`.
    env: Option<Vec<String>>,
    url: Option<String>,
}

/// An authorization server, as the upstream named it.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Authorization {
    issuer: String,
    /// The parameter `resource` of requests for tokens.
    resource: String,
    /// The scopes that the upstream asks for.
    scopes: Vec<String>,
    /// Whether the upstream requires tokens that are bound to a key (DPoP). The member is absent if it does not.
    dpop: Option<bool>,
}

/// Streamable HTTP, or HTTP+SSE of protocol revision 2024-11-05.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
enum HttpTransport {
    StreamableHttp,
    HttpSse,
}

/// `handshake` for a server with `initialize`, `stateless` for a later protocol.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
enum Era {
    Handshake,
    Stateless,
}

/// `all` tools, or those that the config lists.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
enum Grants {
    All,
    Listed,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Server {
    name: String,
    /// May be empty.
    version: String,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Document {
    /// `schema_file` or `schema_url` of the config.
    source: String,
    /// SHA-256 of the canonical JSON of its first file.
    digest: String,
    /// SHA-256 of each further file, by its path or URL.
    files: Option<BTreeMap<String, String>>,
    /// SHA-256 of the config's selection from the document.
    selection: String,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Tool {
    /// SHA-256 of the canonical JSON of the definition.
    digest: String,
    /// The definition of the tool, as in `tools/list` of MCP.
    definition: Map<String, Value>,
    /// How its list is paged, in the form of `paging` in the config.
    paging: Option<Map<String, Value>>,
    /// The credentials that an operation needs.
    security: Option<Security>,
    /// The shape of its results, inferred from answers.
    observed: Option<Observed>,
    /// The arguments of a recorded call, which `doc` shows if neither the config nor the definition has an example.
    example: Option<Map<String, Value>>,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Observed {
    /// The number of answers.
    answers: u64,
    /// A JSON Schema that admits these answers.
    schema: Value,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Security {
    /// The alternatives, each a list of credentials that are needed together.
    any_of: Option<Vec<Vec<Credential>>>,
    /// Parameters that send a credential.
    sent: Option<Vec<Parameter>>,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Parameter {
    r#in: String,
    name: String,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Credential {
    /// The name in the document.
    scheme: String,
    /// Such as `bearer` or `api_key`.
    r#type: Option<String>,
    /// The words of the document for a kind that no entry of `auth` can satisfy, instead of `type`.
    unsupported: Option<String>,
    /// The place of an API key.
    r#in: Option<String>,
    /// The name of the parameter of an API key.
    name: Option<String>,
    /// The scopes of OAuth2.
    scopes: Option<Vec<String>>,
}
