//! The command line: every option of `ptc-compile`, in one place.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use ptc_compiler::render;

use crate::attest::{Attest, Verify};
use crate::client_args::{Import, Install};
use crate::init::args::Init;
use crate::link::Link;
use crate::link::runtimes::Runtimes;
use crate::schema::Kind;

/// Compiles `upstreams.json` into a pinned MCP server binary.
///
/// Reads the config and its lock file, freezes the tools of every upstream into tables, and links them with the
/// runtime into one binary. Exit codes: 0 done (warnings included), 1 faults found, 2 ptc-compile itself failed.
#[derive(Debug, Parser)]
#[command(
    name = "ptc-compile",
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    /// Something else than building.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    /// Building, and checking, which is building that stops early.
    #[command(flatten)]
    pub(crate) build: Build,
}

/// Everything that is not a build.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve a config without building: MCP on standard input and output
    Run(Serve),
    /// Evaluate programs one after the other, with the upstreams of a config
    Repl(Serve),
    /// Make a first `upstreams.json`: choose an upstream and its tools, check, build
    Init(Box<Init>),
    /// Make an `upstreams.json` of the configs that MCP clients have
    Import(Import),
    /// Add a binary to the config of an MCP client
    Install(Install),
    /// Remove a binary from the config of an MCP client
    Uninstall(Install),
    /// Write what a binary was built from, as an in-toto statement with SLSA provenance
    Attest(Attest),
    /// Check a binary against its statement, or against a config with its lock file
    Verify(Verify),
    /// Explain a diagnostic code: cause, example, fix
    Explain(Explain),
    /// List what of an OpenAPI document can be included, and why the rest cannot
    Operations(Operations),
    /// Compare the upstreams as they are now with the lock file, and change nothing
    Diff(Diff),
    /// Pin the upstreams as they are now, and show what changed
    Update(Update),
    /// Check programs against the frozen catalog, without running them
    CheckProgram(CheckProgram),
    /// Look at the calls that a server left in its --trace-dir, in a browser
    Viewer(Viewer),
    /// Print the JSON Schema of `upstreams.json`, for editors, or of machine-readable output
    Schema(Schema),
    /// List or add prebuilt runtimes, for builds without cargo and for other platforms
    Runtimes(Runtimes),
    /// Print the completions of a shell, for ptc-compile or a pinned binary
    Completions(Completions),
    /// Write man pages, of ptc-compile or a pinned binary
    Man(Man),
    /// Say which compiler this is, and which runtime its binaries are made of
    Version(Version),
    /// Show how ptc-compile or one of its commands is used
    Help(Help),
}

/// `ptc-compile schema`
#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// What the schema describes
    #[arg(value_name = "KIND", value_enum, default_value_t = Kind::Config)]
    pub(crate) kind: Kind,
}

/// `ptc-compile version`
#[derive(Debug, Args)]
pub(crate) struct Version {
    /// As one JSON object, with digests
    #[arg(long)]
    pub(crate) json: bool,
}

/// `ptc-compile help`
#[derive(Debug, Args)]
pub(crate) struct Help {
    /// The command
    #[arg(value_name = "COMMAND")]
    pub(crate) command: Option<String>,
}

/// `ptc-compile completions`
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    pub(crate) shell: clap_complete::Shell,

    /// For a pinned binary: its path, which is asked for its options, or a name, for a binary without optional features
    #[arg(long, value_name = "PATH|NAME")]
    pub(crate) binary: Option<String>,
}

/// `ptc-compile man`
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The folder of the pages, which is created if it does not exist
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,

    /// For a pinned binary: its path, which is asked for its options, or a name, for a binary without optional features
    #[arg(long, value_name = "PATH|NAME")]
    pub(crate) binary: Option<String>,
}

/// `ptc-compile run`, `ptc-compile repl`. Their options are those of a pinned binary, which the runtime reads from its own table.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Serve {
    /// The config, usually `upstreams.json`, and flags of the server; `--help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) rest: Vec<OsString>,
}

/// `ptc-compile viewer`
///
/// Prints where the page is, and shows it until Ctrl-C: the list of calls as it grows, each call as a timeline, statistics. It
/// listens on loopback only. The printed link contains a secret token, without which the page is not shown.
#[derive(Debug, Args)]
pub(crate) struct Viewer {
    /// The folder that `--trace-dir` of a server names
    #[arg(value_name = "TRACE_DIR")]
    pub(crate) folder: PathBuf,

    /// Where to listen; 0 takes a free port
    #[arg(long, value_name = "PORT", default_value_t = 7333)]
    pub(crate) port: u16,
}

/// `ptc-compile check-program`
#[derive(Debug, Args)]
pub(crate) struct CheckProgram {
    /// The config, usually `upstreams.json`, with its lock file beside it
    #[arg(value_name = "CONFIG")]
    pub(crate) config: PathBuf,

    /// PTC-Lisp programs
    #[arg(value_name = "PROGRAM", required = true)]
    pub(crate) programs: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) messages: Messages,
}

/// `ptc-compile diff`
#[derive(Debug, Args)]
#[command(mut_arg("format", |format| format.value_parser(formats(&[Format::Markdown]))))]
pub(crate) struct Diff {
    /// The config, usually `upstreams.json`
    #[arg(value_name = "CONFIG")]
    pub(crate) config: PathBuf,

    /// Upstreams to compare [default: all]
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,

    /// Least severity of a change that ends with exit code 1; with `note`, `diff` and `--check --locked` agree
    #[arg(long, value_name = "SEVERITY", value_enum, default_value_t = Threshold::Note)]
    pub(crate) fail_on: Threshold,

    /// Write the comparison into a file too, as json, sarif, github or markdown; can be repeated
    #[arg(long, value_name = "FORMAT=FILE", value_parser = report_file)]
    pub(crate) report: Vec<ReportFile>,

    /// Print each change of a tool with its places, instead of one line for each tool
    #[arg(long)]
    pub(crate) details: bool,

    #[command(flatten)]
    pub(crate) connecting: Connecting,

    #[command(flatten)]
    pub(crate) messages: Messages,
}

/// A file into which the result of a comparison is written.
#[derive(Debug, Clone)]
pub(crate) struct ReportFile {
    /// The format of the file.
    pub(crate) format: Format,
    /// The path of the file.
    pub(crate) path: PathBuf,
}

/// Parses `FORMAT=FILE`.
fn report_file(text: &str) -> Result<ReportFile, String> {
    let (format, path) = text.split_once('=').filter(|(_, path)| !path.is_empty()).ok_or("expected FORMAT=FILE")?;
    let format = Format::from_str(format, false).ok().filter(|format| format.is_for_tools() || *format == Format::Markdown);
    let format = format.ok_or("the format of a file is json, sarif, github or markdown")?;
    Ok(ReportFile { format, path: path.into() })
}

/// `ptc-compile update`
#[derive(Debug, Args)]
#[command(mut_arg("format", |format| format.value_parser(formats(&[Format::Markdown]))))]
pub(crate) struct Update {
    /// The config, usually `upstreams.json`
    #[arg(value_name = "CONFIG")]
    pub(crate) config: PathBuf,

    /// Upstreams to pin anew; all others stay as they are [default: all]
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,

    /// Pin the upstreams that answer although others cannot be reached
    #[arg(long)]
    pub(crate) keep_going: bool,

    /// Print each change of a tool with its places, instead of one line for each tool
    #[arg(long)]
    pub(crate) details: bool,

    #[command(flatten)]
    pub(crate) connecting: Connecting,

    #[command(flatten)]
    pub(crate) messages: Messages,
}

/// How upstreams are asked for their tools.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Connecting {
    /// Upstreams that start at the same time; others wait [default: 2 processes for each processor, 32 connections over HTTP]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) connect_concurrency: Option<u16>,

    /// Time in which all upstreams together must answer, in milliseconds
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=86_400_000), default_value_t = 180_000)]
    pub(crate) connect_timeout_ms: u64,
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
}

/// `--fail-on`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Threshold {
    /// Changes that break programs or make a tool less harmless
    Error,
    /// Also what may be understood differently
    Warning,
    /// Any change
    Note,
    /// None
    Never,
}

/// Accepts an `http` or `https` URL and returns it as written.
pub(crate) fn web_address(text: &str) -> Result<String, String> {
    match url::Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(text.to_owned()),
        Ok(url) => Err(format!("a URL starts with `https://`, this one with `{}:`", url.scheme())),
        Err(error) => Err(format!("{error}: a URL starts with `https://`")),
    }
}

/// `ptc-compile operations`
#[derive(Debug, Args)]
pub(crate) struct Operations {
    /// The OpenAPI document, JSON or YAML
    #[arg(value_name = "DOCUMENT")]
    pub(crate) document: PathBuf,

    /// What `base_url` will be: operations that other servers serve are ruled out
    #[arg(long, value_name = "URL", value_parser = web_address)]
    pub(crate) base_url: Option<String>,

    /// Only operations with this tag
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Option<String>,

    /// Only operations whose path begins with this
    #[arg(long, value_name = "PREFIX")]
    pub(crate) path: Option<String>,

    /// Only operations with this in their id, path or summary
    #[arg(long = "match", value_name = "TEXT")]
    pub(crate) matching: Option<String>,

    /// Only operations that can be included
    #[arg(long, conflicts_with = "refused")]
    pub(crate) usable: bool,

    /// Only operations that cannot be included
    #[arg(long)]
    pub(crate) refused: bool,

    /// Also operations that write
    #[arg(long)]
    pub(crate) all_methods: bool,

    #[command(flatten)]
    pub(crate) messages: Messages,
}

/// `ptc-compile explain`
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// A code such as PTC0201; without one, all codes are listed
    #[arg(value_name = "CODE")]
    pub(crate) code: Option<String>,

    /// One JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

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

    /// Print what was made of the config instead of building: on stdout, as files are generated from it
    #[arg(long, value_name = "WHAT", value_enum, conflicts_with_all = ["check", "eval", "output"])]
    pub(crate) emit: Option<Emit>,

    /// Start a stage of `--emit container` from this image instead of a tag that can move. STAGE is `build`, `runtime` or `uv`.
    /// Repeat the option for each stage
    #[arg(long, value_name = "STAGE=IMAGE@sha256:DIGEST", requires = "emit")]
    pub(crate) base_image: Vec<render::BaseImage>,

    /// After the build, evaluate this PTC-Lisp program in the new binary and show its answer
    #[arg(long, value_name = "PROGRAM", allow_hyphen_values = true)]
    pub(crate) eval: Option<String>,

    /// Where the binary goes [default: beside the other deployments in the target directory]
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

    /// What puts the catalog into the binary [default: `rust` where cargo is found, else `prebuilt`]
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

    /// Let the binary offer `lisp_task`, for which a model writes programs; its flag `--agentic` turns that on. The binary
    /// includes every credential source of the config, since any of them may be the model's key
    #[arg(long, help_heading = "Build")]
    pub(crate) agentic: bool,

    /// Include the exporter of OpenTelemetry, which the binary's flag `--otlp-endpoint` turns on
    #[arg(long, help_heading = "Build")]
    pub(crate) otlp: bool,

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
    pub(crate) messages: Messages,
}

/// How findings are shown.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Messages {
    /// Exit with 1 on warnings too
    #[arg(long, help_heading = "Messages")]
    pub(crate) deny_warnings: bool,

    /// How findings are printed: for people on stderr, for tools on stdout
    #[arg(long, value_name = "FORMAT", value_parser = formats(&[]), default_value = "full", help_heading = "Messages")]
    pub(crate) format: Format,

    /// Short for `--format json`: findings and results are printed as one JSON object per line
    #[arg(long, conflicts_with = "format", help_heading = "Messages")]
    pub(crate) json: bool,

    /// Colours: `auto` is on for a terminal and respects NO_COLOR
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Color::Auto, help_heading = "Messages")]
    pub(crate) color: Color,
}

impl Default for Messages {
    fn default() -> Self {
        Messages { deny_warnings: false, format: Format::Full, json: false, color: Color::Auto }
    }
}

impl Messages {
    /// Returns the format of findings and results.
    pub(crate) fn format(self) -> Format {
        if self.json { Format::Json } else { self.format }
    }
}

/// `--format`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// With the source text, carets and hints
    Full,
    /// One line each
    Short,
    /// One JSON object a line
    Json,
    /// One SARIF 2.1.0 log, for code scanning
    Sarif,
    /// Workflow commands, which GitHub shows at the lines
    Github,
    /// One Markdown document on stdout, for the summary of a job or the body of a pull request
    Markdown,
}

/// Returns the parser of the formats of findings and of `others`, which a command has beside them.
fn formats(others: &[Format]) -> impl TypedValueParser<Value = Format> + use<> {
    let is_offered = |format: &&Format| **format != Format::Markdown || others.contains(format);
    let offered = Format::value_variants().iter().filter(is_offered).filter_map(Format::to_possible_value);
    PossibleValuesParser::new(offered.collect::<Vec<_>>()).try_map(|name| Format::from_str(&name, false))
}

impl Format {
    /// Whether findings are printed in a format that other programs read, such as SARIF.
    pub(crate) fn is_for_tools(self) -> bool {
        matches!(self, Format::Json | Format::Sarif | Format::Github)
    }
}

/// `--color`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal
    Auto,
    /// Everywhere
    Always,
    /// Nowhere
    Never,
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
            agentic: self.agentic,
            otlp: self.otlp,
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn command_line_definition_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
