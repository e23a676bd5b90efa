//! The options of a build: `ptc-compile CONFIG`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use ptc_compiler::render;

use crate::bundle_args::BundleOptions;
use crate::shared_args::{Connecting, Messages};

/// `ptc-compile CONFIG`
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own, and all of them combine")]
pub(crate) struct Build {
    /// The config, usually `upstreams.json`
    #[arg(value_name = "CONFIG", required = true)]
    pub(crate) config: Option<PathBuf>,

    /// Only report what is wrong with the config, its OpenAPI documents, its lock file and its stored programs; nothing is
    /// contacted, written or built. A lock file that does not cover the config is a warning, with `--locked` an error
    #[arg(long, conflicts_with = "eval")]
    pub(crate) check: bool,

    /// Also check this machine: secrets are available, and the commands and folders of child processes exist. No secret is shown
    #[arg(long)]
    pub(crate) check_env: bool,

    /// Refuse comments and trailing commas in the config
    #[arg(long)]
    pub(crate) strict_json: bool,

    /// Print what was made of the config instead of building: on stdout, as files are generated from it. Only `mcpb` builds the
    /// binary, and writes a file
    #[arg(long, value_name = "WHAT", value_enum, conflicts_with_all = ["check", "eval"])]
    pub(crate) emit: Option<Emit>,

    /// Start a stage of `--emit container` from this image instead of a tag that can move. STAGE is `build`, `runtime` or `uv`.
    /// Repeat the option for each stage
    #[arg(long, value_name = "STAGE=IMAGE@sha256:DIGEST", requires = "emit")]
    pub(crate) base_image: Vec<render::BaseImage>,

    /// After the build, evaluate this PTC-Lisp program in the new binary and show its answer
    #[arg(long, value_name = "PROGRAM", allow_hyphen_values = true)]
    pub(crate) eval: Option<String>,

    /// Where the binary goes, or the bundle of `--emit mcpb` [default: beside the other deployments in the target directory]
    #[arg(short, long, value_name = "PATH", help_heading = "Build")]
    pub(crate) output: Option<PathBuf>,

    /// Fail instead of contacting upstreams when the lock file is missing or does not cover the config
    #[arg(long, help_heading = "Build")]
    pub(crate) locked: bool,

    /// Fail where the tool descriptions that clients pay for are larger than this, `lisp_task` of `--agentic` among them
    #[arg(long, value_name = "N", help_heading = "Build")]
    pub(crate) max_prompt_bytes: Option<u64>,

    /// Write what the deployment is made of, as a CycloneDX 1.6 document
    #[arg(long, value_name = "PATH", conflicts_with_all = ["check", "emit"], help_heading = "Build")]
    pub(crate) sbom: Option<PathBuf>,

    /// Write the licence texts of all software that is linked into the binary, which must accompany it when it is passed on
    #[arg(long, value_name = "PATH", conflicts_with_all = ["check", "emit"], help_heading = "Build")]
    pub(crate) notices: Option<PathBuf>,

    /// Contact nothing: no upstreams, no schema URLs, no package registry
    #[arg(long, help_heading = "Build")]
    pub(crate) offline: bool,

    #[command(flatten)]
    pub(crate) connecting: Connecting,

    /// The linker that puts the catalog into the binary [default: `rust` where cargo is found, else `prebuilt`]
    #[arg(long, value_name = "LINKER", value_enum, help_heading = "Build")]
    pub(crate) link: Option<Link>,

    /// The platform of the binary, for which `ptc-compile runtimes list` shows a prebuilt runtime [default: this one]
    #[arg(long, value_name = "TRIPLE", help_heading = "Build")]
    pub(crate) target: Option<String>,

    /// Link-time optimization: `thin` makes the build much slower, and the binary of the quickstart larger
    #[arg(long, value_name = "KIND", value_enum, default_value_t = Lto::Off, help_heading = "Build")]
    pub(crate) lto: Lto,

    /// The transports that the binary includes; its flags choose one at start
    #[arg(long, value_name = "WHERE", value_enum, default_value_t = ServeOn::Http, help_heading = "Build")]
    pub(crate) serve: ServeOn,

    /// The session stores that the binary includes; its flag `--session-store` chooses one at start
    #[arg(long, value_name = "WHERE", value_enum, default_value_t = SessionStore::Memory, help_heading = "Build")]
    pub(crate) session_store: SessionStore,

    /// Include the trace viewer, which the binary's flag `--http-viewer` turns on
    #[arg(long, help_heading = "Build")]
    pub(crate) viewer: bool,

    /// Include the verification of access tokens, which the binary's flag `--http-oauth-issuer` turns on
    #[arg(long, help_heading = "Build")]
    pub(crate) http_oauth: bool,

    /// Let the binary offer `lisp_task`, for which a model writes programs; its flag `--agentic` turns that on. The binary
    /// includes every credential source of the config, since any of them may be the model's key
    #[arg(long, help_heading = "Build")]
    pub(crate) agentic: bool,

    /// Include the exporter of OpenTelemetry, which the binary's flag `--otlp-endpoint` turns on
    #[arg(long, help_heading = "Build")]
    pub(crate) otlp: bool,

    /// Include the recorder, which the binary's flag `--record-dir` turns on, and the replay of recordings, with `--upstreams`
    #[arg(long, help_heading = "Build")]
    pub(crate) recording: bool,

    /// Include the keyring of the system, which the binary's flag `--token-store keyring` reads the tokens of logins from
    #[arg(long, help_heading = "Build")]
    pub(crate) keyring: bool,

    /// History, completion, colours and hints in the binary's `repl` on a terminal
    #[arg(long, help_heading = "Build")]
    pub(crate) line_editing: bool,

    /// Where the runtime's source comes from [default: this workspace where there is one, else the embedded copy]
    #[arg(long, value_name = "SOURCE", value_enum, help_heading = "Build")]
    pub(crate) runtime_source: Option<RuntimeSource>,

    /// Parallel jobs of the build [default: as many as there are processors]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Build")]
    pub(crate) jobs: Option<u16>,

    #[command(flatten)]
    pub(crate) bundle_options: BundleOptions,

    #[command(flatten)]
    pub(crate) messages: Messages,
}

/// `--emit`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Emit {
    /// The catalog's tables, `src/catalog.rs` of the generated crate
    Rust,
    /// Argument types of every tool as Rust structs with serde, for programs that embed the catalog
    Args,
    /// What `doc` shows of every tool
    Docs,
    /// The lock file
    Lock,
    /// Upstreams and tools with their arguments, as one JSON object
    CatalogJson,
    /// The catalog as one page to look at and search in
    Html,
    /// A Dockerfile for the folder of the config: an image that serves HTTP
    Container,
    /// The `.dockerignore` beside that Dockerfile
    Dockerignore,
    /// Kubernetes manifests that run replicas of that image
    K8s,
    /// An MCP bundle for desktop clients, a file that contains the binary
    Mcpb,
    /// The entry of a published bundle in the MCP registry
    ServerJson,
}

/// `--lto`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Lto {
    /// None: the build takes seconds
    Off,
    /// Thin
    Thin,
}

/// `--serve`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServeOn {
    /// Standard input and output only: no listener in the binary
    Stdio,
    /// HTTP too
    Http,
    /// HTTP too, with `--http-tls-cert` and `--http-tls-key`
    Https,
}

/// `--session-store`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SessionStore {
    /// In its memory only
    Memory,
    /// In Redis or Valkey too, which replicas share
    Redis,
    /// In Redis or Valkey too, over TLS if the URL begins with rediss://
    Rediss,
}

impl Build {
    /// Returns the optional features of the binary.
    pub(crate) fn abilities(&self) -> render::Abilities {
        let serve = match self.serve {
            ServeOn::Stdio => render::Serve::Stdio,
            ServeOn::Http => render::Serve::Http,
            ServeOn::Https => render::Serve::Https,
        };
        render::Abilities {
            serve,
            session_store: match self.session_store {
                SessionStore::Memory => render::SessionStore::Memory,
                SessionStore::Redis => render::SessionStore::Redis,
                SessionStore::Rediss => render::SessionStore::Rediss,
            },
            viewer: self.viewer,
            http_oauth: self.http_oauth,
            agentic: self.agentic,
            otlp: self.otlp,
            recording: self.recording,
            keyring: self.keyring,
            line_editing: self.line_editing,
        }
    }
}

/// `--runtime-source`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RuntimeSource {
    /// The workspace that this ptc-compile was built in
    Workspace,
    /// The copy inside ptc-compile
    Embedded,
}

/// `--link`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Link {
    /// Compile the catalog as Rust tables and link them with the runtime: needs cargo, and has only the parts that are asked for
    Rust,
    /// Add the catalog to a prebuilt runtime, which has every optional part: takes a fraction of a second
    Prebuilt,
}
