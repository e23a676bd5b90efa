//! `upstreams.lock.json`: the definitions of all granted tools at the time when the catalog was frozen.
//!
//! The file is canonical JSON, indented for review. It alone decides what is generated: a build reads definitions from the lock,
//! and queries an upstream only if the lock does not cover the config.
//!
//! - [`read`]: parses a [`Lock`] and reports faults of the file.
//! - [`mod@write`]: formats a [`Lock`].
//! - `address`: how upstreams are reached. `authorization`: the authorization servers that they name.
//! - [`security`]: the credentials that operations need.

mod address;
mod authorization;
pub mod read;
pub mod security;
pub mod write;

pub use crate::ir::Observed;
pub use crate::json::digest::{sha256, sha256_of_node};
pub use address::Address;
pub use authorization::Authorization;

use std::collections::BTreeMap;

use ptc_catalog::{Era, HttpTransport, Paging};

use self::security::Security;
use crate::json::Json;
use crate::paging;

/// Version of the format that this compiler reads and writes.
pub const VERSION: u32 = 1;

/// A whole lock file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lock {
    /// The upstreams by their names in the config.
    pub upstreams: BTreeMap<String, LockedUpstream>,
    /// SHA-256 of `policy` of the config. `None` if the config has none.
    pub policy_digest: Option<String>,
}

/// The pinned state of one upstream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LockedUpstream {
    /// The transport's name in the config.
    pub transport: String,
    /// How an MCP upstream was reached. `None` for OpenAPI services, and in files of older compilers.
    pub address: Option<Address>,
    /// The authorization server that the upstream names. `None` if it names none, and in files of older compilers.
    pub authorization: Option<Authorization>,
    /// Protocol era of an MCP server.
    pub era: Option<Era>,
    /// The transport of an MCP server over HTTP. `None` for other upstreams, and in files of older compilers, which knew only
    /// Streamable HTTP.
    pub http_transport: Option<HttpTransport>,
    /// Name and version of an MCP server, or title and version of an OpenAPI document.
    pub server: Option<Server>,
    /// The instructions of an MCP server for models.
    pub instructions: Option<String>,
    /// Whether every tool of the server was granted, and not only listed ones.
    pub all_tools: bool,
    /// The document of an OpenAPI upstream.
    pub document: Option<Document>,
    /// The granted tools by exposed name.
    pub tools: BTreeMap<String, LockedTool>,
}

/// Name and version of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its name.
    pub name: String,
    /// Its version; may be empty.
    pub version: String,
}

/// The OpenAPI document that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// `schema_file` or `schema_url` as configured.
    pub source: String,
    /// SHA-256 of the canonical JSON of its first file: white space, the order of members and the choice of JSON or YAML do not
    /// count.
    pub digest: String,
    /// SHA-256 of the canonical JSON of each further file, by its path in the folder of the document, or by its URL.
    pub files: BTreeMap<String, String>,
    /// SHA-256 of the config's selection from the document. The pin is valid while both digests are unchanged.
    pub selection: String,
}

/// One tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockedTool {
    /// The whole definition, including unknown fields.
    pub definition: Json,
    /// The canonical text of the definition.
    pub canonical: String,
    /// SHA-256 of `canonical`.
    pub digest: String,
    /// How the tool's list is paged, inferred from its schemas when it was pinned. An unchanged definition keeps this value, even
    /// if a later compiler would infer another.
    pub paging: Option<Paging>,
    /// The credentials that calls of an operation need. `None` if its document declares nothing, and in files of older compilers.
    pub security: Option<Security>,
    /// The shape of its results, if answers of it were observed.
    pub observed: Option<Observed>,
    /// The arguments of a recorded call, which `doc` shows if neither the config nor the definition has an example.
    pub example: Option<Json>,
}

impl LockedTool {
    /// Makes a tool from its definition. The definition is put into canonical order, so that derived texts do not depend on
    /// whether it comes from an upstream or from the lock file.
    pub fn new(definition: Json) -> Self {
        let definition = definition.sorted();
        let canonical = definition.canonical();
        let digest = sha256(canonical.as_bytes());
        let paging = paging::inferred(&definition);
        LockedTool { definition, canonical, digest, paging, security: None, observed: None, example: None }
    }
}

impl Lock {
    /// Returns the SHA-256 of everything that a binary is made of: upstreams and their descriptions of themselves, names and
    /// digests of tools, how lists are paged, observed shapes of results, recorded examples of calls, authorization servers, and the policy. Equal
    /// catalogs have equal digests, even if unselected parts of a document differ.
    pub fn catalog_digest(&self) -> String {
        self.digest(true)
    }

    fn digest(&self, has_paging: bool) -> String {
        let upstreams = self.upstreams.iter().map(|(name, upstream)| {
            let tools = upstream.tools.iter().map(|(tool, locked)| (tool.clone(), Json::string(&*locked.digest))).collect();
            let mut entry =
                Json::object().with("transport", Json::string(&*upstream.transport)).with("tools", Json::Object(tools));
            if let Some(era) = upstream.era {
                entry = entry.with("era", Json::string(era.name()));
            }
            // Streamable HTTP is not counted, since files of older compilers do not name it.
            if let Some(http_transport) = upstream.http_transport.filter(|found| *found != HttpTransport::Streamable) {
                entry = entry.with("http_transport", Json::string(http_transport.name()));
            }
            // Models read this name if there are no instructions.
            if let Some(server) = &upstream.server {
                entry = entry.with("server", Json::string(&*server.name));
            }
            if let Some(authorization) = &upstream.authorization {
                entry = entry.with("authorization", authorization.to_json());
            }
            if let Some(instructions) = &upstream.instructions {
                entry = entry.with("instructions", Json::string(&**instructions));
            }
            let paged = upstream.tools.iter().filter_map(|(tool, locked)| Some((tool, locked.paging.as_ref()?)));
            let paged: Vec<_> = paged.filter(|_| has_paging).map(|(tool, paging)| (tool.clone(), paging::json(paging))).collect();
            if !paged.is_empty() {
                entry = entry.with("paging", Json::Object(paged));
            }
            let observed =
                upstream.tools.iter().filter_map(|(tool, locked)| Some((tool.clone(), locked.observed.as_ref()?.to_json())));
            let observed: Vec<_> = observed.collect();
            if !observed.is_empty() {
                entry = entry.with("observed", Json::Object(observed));
            }
            let examples = upstream.tools.iter().filter_map(|(tool, locked)| Some((tool.clone(), locked.example.clone()?)));
            let examples: Vec<_> = examples.collect();
            if !examples.is_empty() {
                entry = entry.with("examples", Json::Object(examples));
            }
            (name.clone(), entry)
        });
        let upstreams = Json::Object(upstreams.collect());
        let pinned = match &self.policy_digest {
            // Files of older compilers have the digest of the upstreams alone.
            None => upstreams,
            Some(digest) => Json::object().with("policy_digest", Json::string(&**digest)).with("upstreams", upstreams),
        };
        sha256(pinned.canonical().as_bytes())
    }
}
