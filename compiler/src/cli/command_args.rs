//! The options of commands that do not build.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::shared_args::{Connecting, Format, Messages, ReportFile, formats, report_file, web_address};

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
    #[arg(long, value_name = "FORMAT=FILE", value_parser = |text: &str| report_file(&COMPARISONS, text))]
    pub(crate) report: Vec<ReportFile<Format>>,

    /// Files or folders with the tests of programs, which are run with the pinned and the current tools [default: those in the folder of the config and below it]
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

/// The formats of files with comparisons.
const COMPARISONS: [Format; 4] = [Format::Json, Format::Sarif, Format::Github, Format::Markdown];

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

    /// Files or folders with the tests of programs, which are run with the pinned and the current tools [default: those in the folder of the config and below it]
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

/// `ptc-compile operations`
#[derive(Debug, Args)]
pub(crate) struct Operations {
    /// The OpenAPI document, JSON or YAML
    #[arg(value_name = "DOCUMENT")]
    pub(crate) document: PathBuf,

    /// The `base_url` that the config will have. Operations that only other servers have are refused
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
