//! The compiler's own model of a deployment: owned, ordered, complete. [`render`](crate::render) turns it into text.
//!
//! - [`json`]: JSON values with exact numbers and a canonical text.

pub mod json;

pub use json::Json;
use ptc_catalog::{Annotations, Era, Place, Style, Types};

use crate::config::model::{CredentialSource, Transport};
use crate::source::FileId;

/// One deployment.
#[derive(Debug, Clone)]
pub struct Deployment {
    /// File stem of the binary.
    pub name: String,
    /// Version of the compiler, and where it is known `+` and a digest of its sources.
    pub compiler: String,
    /// SHA-256 of the config file.
    pub config_digest: String,
    /// Bindings that some `auth` names, by name.
    pub credentials: Vec<Credential>,
    /// The lock file's catalog digest.
    pub catalog_digest: String,
    /// By name.
    pub upstreams: Vec<Upstream>,
    /// Programs that clients call as tools, by name.
    pub programs: Vec<Program>,
}

/// A stored program.
#[derive(Debug, Clone)]
pub struct Program {
    /// The tool's name.
    pub name: String,
    /// One line; may be empty.
    pub description: String,
    /// PTC-Lisp source.
    pub source: String,
    /// SHA-256 of `source`.
    pub digest: String,
    /// The source among the texts of the run.
    pub file: FileId,
    /// JSON Schema of the arguments, canonical.
    pub args: String,
    /// The same of the result; empty for any.
    pub output_schema: String,
}

impl Deployment {
    /// Number of tools over all upstreams.
    pub fn tool_count(&self) -> usize {
        self.upstreams.iter().map(|u| u.tools.len()).sum()
    }

    /// Whether any upstream is reached over HTTP, so that the runtime needs its client.
    pub fn needs_http(&self) -> bool {
        self.upstreams.iter().any(|u| !matches!(u.transport, Transport::McpStdio(_)))
    }
}

/// A credential binding in use.
#[derive(Debug, Clone)]
pub struct Credential {
    /// The name that `auth` entries use.
    pub name: String,
    /// Where the secret comes from.
    pub source: CredentialSource,
}

/// One upstream.
#[derive(Debug, Clone)]
pub struct Upstream {
    /// The name in `:server`.
    pub name: String,
    /// One line; may be empty.
    pub description: String,
    /// How it is reached, as configured.
    pub transport: Transport,
    /// Protocol era of an MCP upstream, where the lock knows it.
    pub era: Option<Era>,
    /// By name.
    pub tools: Vec<Tool>,
}

/// One granted tool.
#[derive(Debug, Clone)]
pub struct Tool {
    /// The name in `:tool`.
    pub name: String,
    /// One line, capped.
    pub description: String,
    /// Required ones in the schema's order, then optional ones by name.
    pub args: Vec<Arg>,
    /// Whether other arguments are refused.
    pub closed: bool,
    /// The shape of what a call that succeeds gives: `{:id integer :name string?}`, `any`.
    pub result: String,
    /// What `doc` shows.
    pub doc: String,
    /// Canonical JSON.
    pub definition: String,
    /// SHA-256 of `definition`.
    pub digest: String,
    /// What it says of its effects.
    pub annotations: Annotations,
    /// How an OpenAPI operation is requested.
    pub operation: Option<Operation>,
    /// How its list is paged, as [`ptc_catalog::Paging`] writes it; empty where its schemas do not tell.
    pub paging: String,
}

/// One argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arg {
    /// Its name in `:args`.
    pub name: String,
    /// Whether a call without it is refused.
    pub required: bool,
    /// JSON types admitted.
    pub types: Types,
    /// The type as documents show it.
    pub label: String,
    /// JSON texts of the only values admitted; empty for no such bound.
    pub allowed: Vec<String>,
}

/// A `GET` operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// `operationId`, or `GET /path`.
    pub id: String,
    /// Path template with a leading slash, to be put after `base_url`.
    pub path: String,
    /// Path and query parameters.
    pub params: Vec<Param>,
    /// Name and JSON text, by name.
    pub default_args: Vec<(String, String)>,
}

impl Operation {
    /// The text of [`Params`](ptc_catalog::Params).
    pub fn params(&self) -> String {
        let lines = self.params.iter().map(|param| {
            let Param { name, arg, place, style, explode, allow_reserved } = param;
            let (place, style, explode, allow_reserved) = (*place, *style, *explode, *allow_reserved);
            ptc_catalog::Param { name, arg, place, style, explode, allow_reserved }.to_string()
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// How one argument travels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    /// Its name in the document; one line.
    pub name: String,
    /// Its name in `:args`; one line.
    pub arg: String,
    /// Where it goes.
    pub place: Place,
    /// How it is written.
    pub style: Style,
    /// Whether each element stands alone.
    pub explode: bool,
    /// Whether reserved characters stay.
    pub allow_reserved: bool,
}
