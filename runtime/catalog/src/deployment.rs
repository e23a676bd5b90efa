//! What one pinned binary is made of.

use crate::{Tool, Upstream};

/// Everything that generated code hands to `ptc_runtime::main`.
#[derive(Debug)]
pub struct Deployment {
    /// Name of the deployment: the file stem of its output.
    pub name: &'static str,
    /// Version of the `ptc-compile` that wrote the tables; where it is known, `+` and SHA-256 of its sources in lower-case hex.
    pub compiler: &'static str,
    /// SHA-256 of the config file, `sha256:` and lower-case hex.
    pub config_digest: &'static str,
    /// Credential bindings that the upstreams' `auth` names, sorted by name. Sources, never values.
    pub credentials: &'static [Binding],
    /// The frozen catalog.
    pub catalog: &'static Catalog,
    /// Programs that clients call as tools, sorted by name.
    pub programs: &'static [StoredProgram],
}

impl Deployment {
    /// The stored program of that name.
    pub fn program(&self, name: &str) -> Option<&'static StoredProgram> {
        let at = self.programs.binary_search_by(|program| program.name.cmp(name)).ok()?;
        self.programs.get(at)
    }
}

/// A program that clients call as a tool: its arguments are its context.
#[derive(Debug, PartialEq, Eq)]
pub struct StoredProgram {
    /// The tool's name.
    pub name: &'static str,
    /// What clients are told of it; may be empty.
    pub description: &'static str,
    /// PTC-Lisp source.
    pub source: &'static str,
    /// SHA-256 of `source`, `sha256:` and lower-case hex.
    pub digest: &'static str,
    /// JSON Schema of the arguments, an object.
    pub args: &'static str,
    /// JSON Schema of the result; empty for any.
    pub output_schema: &'static str,
}

/// All upstreams and their granted tools.
#[derive(Debug)]
pub struct Catalog {
    /// The lock file's catalog digest, `sha256:` and lower-case hex.
    pub digest: &'static str,
    /// Sorted by name.
    pub upstreams: &'static [Upstream],
    /// The full-text index over the tools, in their order, as `ptc-search` writes it; empty where it is built at the first search.
    pub search_index: &'static [u8],
}

impl Catalog {
    /// A catalog without upstreams: the plain, closed-world evaluator.
    pub const EMPTY: Catalog = Catalog { digest: "", upstreams: &[], search_index: &[] };

    /// The upstream of that exact name.
    pub fn upstream(&self, name: &str) -> Option<&'static Upstream> {
        let at = self.upstreams.binary_search_by(|u| u.name.cmp(name)).ok()?;
        self.upstreams.get(at)
    }

    /// Number of tools over all upstreams.
    pub fn tool_count(&self) -> usize {
        self.upstreams.iter().map(|u| u.tools.len()).sum()
    }

    /// Every tool with its upstream, in order of upstream, then tool.
    pub fn tools(&self) -> impl Iterator<Item = (&'static Upstream, &'static Tool)> {
        self.upstreams.iter().flat_map(|u| u.tools.iter().map(move |t| (u, t)))
    }
}

/// A credential binding: where a secret comes from when the binary starts.
#[derive(Debug)]
pub struct Binding {
    /// The name that `auth` entries use.
    pub name: &'static str,
    /// Where the value is read.
    pub source: Source,
}

/// Where a secret comes from.
pub enum Source {
    /// An environment variable of the server process.
    Env {
        /// Its name.
        var: &'static str,
    },
    /// A file; trailing white space is trimmed.
    File {
        /// Absolute, or relative to `--config-dir`.
        path: &'static str,
    },
    /// The value itself. The one way for a secret to be in a binary; the compiler warns.
    Literal {
        /// The secret.
        value: &'static str,
    },
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Source::Env { var } => f.debug_struct("Env").field("var", var).finish(),
            Source::File { path } => f.debug_struct("File").field("path", path).finish(),
            Source::Literal { .. } => f.write_str("Literal { .. }"),
        }
    }
}
