//! `upstreams.lock.json`: what every granted tool was when the catalog was frozen.
//!
//! The file is canonical JSON, indented for review. It alone decides what is generated: a build reads definitions from the
//! lock, and contacts an upstream only where the lock does not cover the config.
//!
//! - [`read`]: text to [`Lock`], with its faults.
//! - [`mod@write`]: [`Lock`] to text.
//! - [`resolve`]: what the lock lacks for a config.
//! - [`mod@lint`]: what is strange in what upstreams say.

pub mod lint;
pub mod read;
pub mod resolve;
pub mod write;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ptc_catalog::{Era, Paging};
use sha2::{Digest, Sha256};

use crate::ir::Json;
use crate::lower::paging;

/// The format that this compiler writes and reads.
pub const VERSION: u32 = 1;

/// A whole lock file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lock {
    /// By the config's names.
    pub upstreams: BTreeMap<String, LockedUpstream>,
}

/// What is known of one upstream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LockedUpstream {
    /// The transport's name in the config.
    pub transport: String,
    /// Protocol era of an MCP server.
    pub era: Option<Era>,
    /// What an MCP server calls itself, or title and version of an OpenAPI document.
    pub server: Option<Server>,
    /// What an MCP server says to models about itself.
    pub instructions: Option<String>,
    /// Whether every tool of the server was granted, or those of a list.
    pub all_tools: bool,
    /// The document of an OpenAPI upstream.
    pub document: Option<Document>,
    /// Granted tools by exposed name.
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

/// An OpenAPI document as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// `schema_file` or `schema_url` as configured.
    pub source: String,
    /// SHA-256 of its bytes.
    pub digest: String,
    /// SHA-256 of what the config selects from it, so that a lock serves while both stay the same.
    pub selection: String,
}

/// One tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockedTool {
    /// The whole definition, unknown fields included.
    pub definition: Json,
    /// Its canonical text.
    pub canonical: String,
    /// SHA-256 of `canonical`.
    pub digest: String,
    /// How its list is paged, by its schemas when it was pinned. The same definition keeps it, whatever a later compiler would
    /// infer.
    pub paging: Option<Paging>,
}

impl LockedTool {
    /// A definition with its digest. It is kept in canonical order, so that what is made of it does not depend on whether it
    /// comes from an upstream or from the lock file.
    pub fn new(definition: Json) -> Self {
        let definition = definition.sorted();
        let canonical = definition.canonical();
        let digest = sha256(canonical.as_bytes());
        let paging = paging::inferred(&definition);
        LockedTool { definition, canonical, digest, paging }
    }
}

impl Lock {
    /// SHA-256 over all that a binary is made of: what upstreams are and say of themselves, names and digests of tools, and how
    /// their lists are paged. Equal catalogs have equal digests, also where a document changed in what the config does not select.
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
            // Where there are no instructions, a model is told this name.
            if let Some(server) = &upstream.server {
                entry = entry.with("server", Json::string(&*server.name));
            }
            if let Some(instructions) = &upstream.instructions {
                entry = entry.with("instructions", Json::string(&**instructions));
            }
            let paged = upstream.tools.iter().filter_map(|(tool, locked)| Some((tool, locked.paging.as_ref()?)));
            let paged: Vec<_> = paged.filter(|_| has_paging).map(|(tool, paging)| (tool.clone(), paging::json(paging))).collect();
            if !paged.is_empty() {
                entry = entry.with("paging", Json::Object(paged));
            }
            (name.clone(), entry)
        });
        let upstreams = Json::Object(upstreams.collect());
        sha256(upstreams.canonical().as_bytes())
    }
}

/// `sha256:` and lower-case hex.
pub fn sha256(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(71);
    text.push_str("sha256:");
    for byte in Sha256::digest(bytes) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}
