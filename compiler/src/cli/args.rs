//! The command line: the commands of `ptc-compile` with their options. Those of a build are in `build_args`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::attest::{Attest, Verify};
use crate::build_args::Build;
use crate::client_args::{Import, Install};
use crate::demo::Demo;
use crate::init::args::Init;
use crate::link::runtimes::Runtimes;
use crate::login::{Login, Logout};
use crate::mock::Mock;
use crate::observe::Observe;
use crate::policy::PolicyArgs;
use crate::record::Record;
use crate::schema::Kind;
use crate::test::Test;

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
    /// Show what a caller may call by the policy of a config
    Policy(PolicyArgs),
    /// Log in to upstreams whose `auth` needs a person, or show who is logged in
    Login(Login),
    /// Remove the tokens of a login, and revoke them
    Logout(Logout),
    /// Run programs, and write the answers of the upstreams into a cassette
    Record(Record),
    /// Infer the shapes of results from answers, and store them in the lock file
    Observe(Observe),
    /// Run the tests of programs, with answers from cassettes
    Test(Test),
    /// Serve the upstreams of a lock file, with recorded or generated answers
    Mock(Mock),
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
    /// Serve the upstreams of the quickstart, or write its files
    Demo(Demo),
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

    /// Files or folders with the tests of programs, which are run with the pinned and the current tools [default: those beside the config]
    #[arg(long, value_name = "PATH")]
    pub(crate) tests: Vec<PathBuf>,

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

    /// Files or folders with the tests of programs, which are run with the pinned and the current tools [default: those beside the config]
    #[arg(long, value_name = "PATH")]
    pub(crate) tests: Vec<PathBuf>,

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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn command_line_definition_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
