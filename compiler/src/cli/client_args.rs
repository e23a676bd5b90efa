//! The command lines of `import`, `install` and `uninstall`, which read and edit the configs of MCP clients.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use ptc_compiler::clients::CLIENTS;

use crate::shared_args::Messages;

/// `ptc-compile import`
///
/// Each server of the configs becomes an upstream, or a finding at its line. Secrets become references to variables or files; no
/// value is copied.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// Configs of Claude Desktop, Claude Code, Cursor, VS Code, Windsurf, Zed, Gemini CLI, Codex, Goose, Continue, or PtcRunner
    #[arg(value_name = "FILE", required_unless_present = "discover")]
    pub(crate) files: Vec<PathBuf>,

    /// Import the configs that are where the clients keep them, in this folder and in the home of the user
    #[arg(long)]
    pub(crate) discover: bool,

    /// The client whose configs these are [default: determined from path and content]
    #[arg(long, value_name = "NAME", value_parser = client_names())]
    pub(crate) client: Option<String>,

    /// Where the config goes [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Replace the file of --output
    #[arg(long, requires = "output")]
    pub(crate) force: bool,

    /// Only report findings, and write nothing
    #[arg(long, conflicts_with = "output")]
    pub(crate) check: bool,

    /// Read the secrets of HTTP upstreams from files in this folder instead of variables
    #[arg(long, value_name = "DIR")]
    pub(crate) secret_files: Option<String>,

    #[command(flatten)]
    pub(crate) messages: Messages,
}

/// The names of all clients.
fn client_names() -> PossibleValuesParser {
    PossibleValuesParser::new(CLIENTS.iter().map(|row| row.name))
}

/// `ptc-compile install`, `ptc-compile uninstall`
#[derive(Debug, Args)]
pub(crate) struct Install {
    /// The binary
    #[arg(value_name = "BINARY")]
    pub(crate) binary: PathBuf,

    /// The client
    #[arg(long, value_name = "NAME", value_parser = client_names())]
    pub(crate) client: String,

    /// The config of the client [default: the config of the user, where the client keeps it]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// The name of the entry [default: the name of the binary]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Do not ask before the config is changed
    #[arg(short, long)]
    pub(crate) yes: bool,
}
