//! The contents of one pinned binary.

use crate::{Policy, Tool, Upstream};

/// The data that generated code passes to `ptc_runtime::main`.
#[derive(Debug)]
pub struct Deployment {
    /// The name of the deployment in logs and metrics: `name` of the config, or else the file stem of its output.
    pub name: &'static str,
    /// The name of the server for clients. If it is empty, the server uses its own name.
    pub server_name: &'static str,
    /// The version of the `ptc-compile` that rendered the tables, followed by `+` and the SHA-256 of its sources in lower-case
    /// hex, if known.
    pub compiler: &'static str,
    /// SHA-256 of the config without its formatting, as `sha256:` and lower-case hex.
    pub config_digest: &'static str,
    /// Credential bindings that the `auth` of upstreams refers to, sorted by name. A binding names the source of a secret. Only a
    /// literal source contains the secret itself.
    pub credentials: &'static [Binding],
    /// The frozen catalog.
    pub catalog: &'static Catalog,
    /// Programs that clients can call as tools, sorted by name.
    pub programs: &'static [StoredProgram],
    /// Which callers may call which tools. Without a policy, every caller may call every tool.
    pub policy: Option<&'static Policy>,
}

impl Deployment {
    /// A deployment without a name and without contents, for `..Deployment::EMPTY`.
    pub const EMPTY: Deployment = Deployment {
        name: "",
        server_name: "",
        compiler: "",
        config_digest: "",
        credentials: &[],
        catalog: &Catalog::EMPTY,
        programs: &[],
        policy: None,
    };

    /// Returns the stored program with exactly this name.
    pub fn program(&self, name: &str) -> Option<&'static StoredProgram> {
        let at = self.programs.binary_search_by(|program| program.name.cmp(name)).ok()?;
        self.programs.get(at)
    }
}

/// A program that clients can call as a tool. The arguments of the call become its context.
#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct StoredProgram {
    /// The name of the tool.
    pub name: &'static str,
    /// The description shown to clients. May be empty.
    pub description: &'static str,
    /// The PTC-Lisp source.
    pub source: &'static str,
    /// SHA-256 of `source`, as `sha256:` and lower-case hex.
    pub digest: &'static str,
    /// JSON Schema of the arguments, which are an object.
    pub args: &'static str,
    /// JSON Schema of the result. Empty if unconstrained.
    pub output_schema: &'static str,
}

/// All upstreams and their granted tools.
#[derive(Debug)]
pub struct Catalog {
    /// The lock file's catalog digest, as `sha256:` and lower-case hex.
    pub digest: &'static str,
    /// The upstreams, sorted by name.
    pub upstreams: &'static [Upstream],
    /// The full-text index over all tools, in their order, as rendered by `ptc-search`. If it is empty, the index is built at the
    /// first search.
    pub search_index: &'static [u8],
}

impl Catalog {
    /// A catalog without upstreams, for a plain evaluator.
    pub const EMPTY: Catalog = Catalog { digest: "", upstreams: &[], search_index: &[] };

    /// Returns the upstream with exactly this name.
    pub fn upstream(&self, name: &str) -> Option<&'static Upstream> {
        let at = self.upstreams.binary_search_by(|u| u.name.cmp(name)).ok()?;
        self.upstreams.get(at)
    }

    /// Returns the number of tools over all upstreams.
    pub fn tool_count(&self) -> usize {
        self.upstreams.iter().map(|u| u.tools.len()).sum()
    }

    /// Iterates over every tool with its upstream, in the order of upstreams, then tools.
    pub fn tools(&self) -> impl Iterator<Item = (&'static Upstream, &'static Tool)> {
        self.upstreams.iter().flat_map(|u| u.tools.all().iter().map(move |t| (u, t)))
    }
}

/// A credential binding: the source from which a secret is read when the binary starts.
#[derive(Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Binding {
    /// The name that `auth` entries refer to.
    pub name: &'static str,
    /// The source of the value.
    pub source: Source,
}

/// The source of a secret.
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Source {
    /// An environment variable of the server process.
    Env {
        /// The name of the variable.
        var: &'static str,
    },
    /// A file. Trailing white space is trimmed.
    File {
        /// The path, absolute or relative to `--config-dir`.
        path: &'static str,
    },
    /// The value itself. This is the only way for a secret to get into a binary, and the compiler warns about it.
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
