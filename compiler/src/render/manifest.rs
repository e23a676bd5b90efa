//! `Cargo.toml` of the generated crate.

use serde::Serialize;

use crate::ir::Deployment;

/// What a binary can be a server on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Serve {
    /// Standard input and output only.
    Stdio,
    /// Streamable HTTP too.
    Http,
    /// Streamable HTTP, with TLS of its own.
    Https,
}

/// Where a binary can keep sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionStore {
    /// In its memory only.
    Memory,
    /// In Redis or Valkey too.
    Redis,
    /// There, also over TLS.
    Rediss,
}

/// What a binary is able to do beside what its upstreams need. What it does is chosen when it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a part of its own, and all of them combine")]
pub struct Abilities {
    /// What it can be a server on.
    pub serve: Serve,
    /// Where its sessions can live.
    pub session_store: SessionStore,
    /// Whether it has the page of traces, which needs a listener.
    pub viewer: bool,
    /// Whether a model can write programs for `lisp_task`.
    pub agentic: bool,
    /// Whether its calls can be told to a collector of OpenTelemetry.
    pub otlp: bool,
    /// Whether its `repl` has history, completion, colours and hints.
    pub line_editing: bool,
}

impl From<Serve> for Abilities {
    fn from(serve: Serve) -> Abilities {
        Abilities { serve, session_store: SessionStore::Memory, viewer: false, agentic: false, otlp: false, line_editing: false }
    }
}

/// What the manifest needs to know. No path is in it: it is the same on every machine, and where the runtime lies is told to
/// cargo beside it.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// Package and binary name.
    pub package: String,
    /// Whether the runtime gets its HTTP client.
    pub http: bool,
    /// What else it gets.
    pub abilities: Abilities,
    /// The `[profile.release]` section, the same for every deployment.
    pub profile: String,
}

/// The packages of ours that a generated crate names, with their folders in the runtime's sources.
pub const DEPENDENCIES: [(&str, &str); 2] = [("ptc-catalog", "runtime/catalog"), ("ptc-runtime", "runtime")];

impl Manifest {
    /// The manifest of a deployment.
    pub fn new(
        package: impl Into<String>,
        deployment: &Deployment,
        abilities: impl Into<Abilities>,
        profile: impl Into<String>,
    ) -> Self {
        let (package, abilities, profile) = (package.into(), abilities.into(), profile.into());
        // Models and collectors are reached over HTTP.
        let http = deployment.needs_http() || abilities.agentic || abilities.otlp;
        Manifest { package, http, abilities, profile }
    }

    pub(super) fn view(&self) -> View {
        let server = match self.abilities.serve {
            Serve::Stdio => None,
            Serve::Http => Some("\"http-server\""),
            Serve::Https => Some("\"https-server\""),
        };
        let store = match self.abilities.session_store {
            SessionStore::Memory => None,
            SessionStore::Redis => Some("\"session-redis\""),
            SessionStore::Rediss => Some("\"session-redis-tls\""),
        };
        let viewer = self.abilities.viewer.then_some("\"viewer\"");
        let agentic = self.abilities.agentic.then_some("\"agentic\"");
        let otlp = self.abilities.otlp.then_some("\"otlp\"");
        let editing = self.abilities.line_editing.then_some("\"line-editing\"");
        let http = self.http.then_some("\"http\"");
        let features: Vec<&str> = [agentic, http, server, store, viewer, otlp, editing].into_iter().flatten().collect();
        View {
            compiler: crate::VERSION,
            package: toml_string(&self.package),
            features: features.join(", "),
            http: self.http,
            profile: self.profile.trim().to_owned(),
        }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct View {
    compiler: &'static str,
    package: String,
    features: String,
    http: bool,
    profile: String,
}

/// A TOML string that means `text`: literal, since paths of Windows are full of backslashes, or basic where a quote is inside.
pub fn toml_string(text: &str) -> String {
    if text.contains('\'') || text.chars().any(char::is_control) {
        let mut out = String::new();
        crate::ir::json::quote(text, &mut out);
        out
    } else if text.contains('\\') {
        format!("'{text}'")
    } else {
        format!("\"{text}\"")
    }
}
