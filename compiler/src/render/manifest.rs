//! Renders `Cargo.toml` of the generated crate.

use serde::Serialize;

use crate::ir::Deployment;

/// Transports on which a binary can serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Serve {
    /// Standard input and output only.
    Stdio,
    /// Streamable HTTP too.
    Http,
    /// Streamable HTTP with TLS in the binary.
    Https,
}

/// Places where a binary can store sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionStore {
    /// Only in its own memory.
    Memory,
    /// Also in Redis or Valkey.
    Redis,
    /// Also in Redis or Valkey over TLS.
    Rediss,
}

/// Optional features of a binary, beside those that its upstreams need. Flags of the binary turn them on when it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each feature is independent, and all of them combine")]
pub struct Abilities {
    /// The transports on which it can serve.
    pub serve: Serve,
    /// The places where it can store sessions.
    pub session_store: SessionStore,
    /// Whether it has the page of traces, which needs an HTTP listener.
    pub viewer: bool,
    /// Whether it can accept access tokens of an authorization server, which needs an HTTP listener.
    pub http_oauth: bool,
    /// Whether a model can write programs for `lisp_task`.
    pub agentic: bool,
    /// Whether it can export its calls to an OpenTelemetry collector.
    pub otlp: bool,
    /// Whether it can record the calls of programs.
    pub recording: bool,
    /// Whether it can read the tokens of logins from the keyring of the system.
    pub keyring: bool,
    /// Whether its `repl` has history, completion, colours and hints.
    pub line_editing: bool,
}

impl From<Serve> for Abilities {
    fn from(serve: Serve) -> Abilities {
        Abilities {
            serve,
            session_store: SessionStore::Memory,
            viewer: false,
            http_oauth: false,
            agentic: false,
            otlp: false,
            recording: false,
            keyring: false,
            line_editing: false,
        }
    }
}

/// Input of the manifest. It contains no paths, so that the manifest is equal on every machine. The path of the runtime is in
/// cargo's configuration instead.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// Name of the package and of its binary.
    pub package: String,
    /// Whether the runtime gets its HTTP client.
    pub http: bool,
    /// Whether it gets its OAuth client.
    pub oauth: bool,
    /// Its optional features.
    pub abilities: Abilities,
    /// Whether the deployment has a policy, which the binary evaluates.
    pub policy: bool,
    /// The `[profile.release]` section, which is equal for every deployment.
    pub profile: String,
}

/// The packages of this workspace that every generated crate depends on, with their folders in the runtime's sources.
pub const DEPENDENCIES: [(&str, &str); 2] = [("ptc-catalog", "runtime/catalog"), ("ptc-runtime", "runtime")];

/// A package that is an optional part of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Part {
    /// Its name.
    package: &'static str,
    /// Its folder in the runtime's sources.
    #[serde(skip)]
    folder: &'static str,
    /// Its features, as in the manifest.
    features: &'static str,
    /// The field of `ptc_runtime::Parts` that it fills.
    field: &'static str,
    /// The path of its value.
    value: &'static str,
}

impl Abilities {
    /// Returns the packages that provide the optional parts.
    fn parts(self) -> Vec<Part> {
        let redis = Part {
            package: "ptc-session-redis",
            folder: "runtime/session-redis",
            features: "",
            field: "session_stores",
            value: "ptc_session_redis::REDIS",
        };
        let store = match self.session_store {
            SessionStore::Memory => None,
            SessionStore::Redis => Some(redis),
            SessionStore::Rediss => Some(Part { features: "\"tls\"", ..redis }),
        };
        let viewer = self.viewer.then_some(Part {
            package: "ptc-viewer",
            folder: "runtime/viewer",
            features: "",
            field: "viewer",
            value: "ptc_viewer::VIEWER",
        });
        let access_tokens = self.http_oauth.then_some(Part {
            package: "ptc-resource-server",
            folder: "runtime/resource-server",
            features: "",
            field: "access_tokens",
            value: "ptc_resource_server::ACCESS_TOKENS",
        });
        let otlp = self.otlp.then_some(Part {
            package: "ptc-otlp",
            folder: "runtime/otlp",
            features: "",
            field: "exporter",
            value: "ptc_otlp::OTLP",
        });
        let recorder = self.recording.then_some(Part {
            package: "ptc-cassette",
            folder: "runtime/cassette",
            features: "",
            field: "recorder",
            value: "ptc_cassette::RECORDER",
        });
        [store, viewer, access_tokens, otlp, recorder].into_iter().flatten().collect()
    }
}

impl Manifest {
    /// Returns the packages that provide optional parts: those of its features, and those that its upstreams and its policy need.
    fn parts(&self) -> Vec<Part> {
        let oauth_client = self.oauth.then_some(Part {
            package: "ptc-oauth-client",
            folder: "runtime/oauth-client",
            features: if self.abilities.keyring { "\"keyring\"" } else { "" },
            field: "oauth_client",
            value: "ptc_oauth_client::OAUTH_CLIENT",
        });
        let policy = self.policy.then_some(Part {
            package: "ptc-policy",
            folder: "runtime/policy",
            features: "",
            field: "policy",
            value: "ptc_policy::POLICY",
        });
        self.abilities.parts().into_iter().chain(oauth_client).chain(policy).collect()
    }

    /// Returns the packages of this workspace that the generated crate depends on, with their folders in the runtime's sources.
    pub fn dependencies(&self) -> Vec<(&'static str, &'static str)> {
        let parts = self.parts();
        DEPENDENCIES.into_iter().chain(parts.iter().map(|part| (part.package, part.folder))).collect()
    }

    /// Makes the manifest of a deployment.
    pub fn new(
        package: impl Into<String>,
        deployment: &Deployment,
        abilities: impl Into<Abilities>,
        profile: impl Into<String>,
    ) -> Self {
        let (package, abilities, profile) = (package.into(), abilities.into(), profile.into());
        // Planner models and collectors are reached over HTTP.
        let http = deployment.needs_http() || abilities.agentic || abilities.otlp || abilities.http_oauth;
        let (oauth, policy) = (deployment.needs_oauth(), deployment.policy.is_some());
        Manifest { package, http, oauth, abilities, policy, profile }
    }

    pub(super) fn view(&self) -> View {
        let server = match self.abilities.serve {
            Serve::Stdio => None,
            Serve::Http => Some("\"http-server\""),
            Serve::Https => Some("\"https-server\""),
        };
        let agentic = self.abilities.agentic.then_some("\"agentic\"");
        let editing = self.abilities.line_editing.then_some("\"line-editing\"");
        let http = self.http.then_some("\"http\"");
        let features: Vec<&str> = [agentic, http, server, editing].into_iter().flatten().collect();
        View {
            compiler: crate::VERSION,
            package: toml_string(&self.package),
            features: features.join(", "),
            parts: self.parts(),
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
    parts: Vec<Part>,
    http: bool,
    profile: String,
}

/// Returns a TOML string for `text`: a literal string, because Windows paths contain many backslashes, or a basic string if
/// `text` contains a quote.
pub fn toml_string(text: &str) -> String {
    if text.contains('\'') || text.chars().any(char::is_control) {
        let mut out = String::new();
        crate::json::quote(text, &mut out);
        out
    } else if text.contains('\\') {
        format!("'{text}'")
    } else {
        format!("\"{text}\"")
    }
}
