//! The command line: every option of `ptc-compile`, in one place.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

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
    /// Explain a diagnostic code: cause, example, fix
    Explain(Explain),
    /// List what of an OpenAPI document can be included, and why the rest cannot
    Operations(Operations),
}

/// `ptc-compile operations`
#[derive(Debug, Args)]
pub(crate) struct Operations {
    /// The OpenAPI document, JSON or YAML
    #[arg(value_name = "DOCUMENT")]
    pub(crate) document: PathBuf,

    /// What `base_url` will be: operations that other servers serve are ruled out
    #[arg(long, value_name = "URL")]
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

    /// Operations of all methods; only GET can be included
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
}

/// `ptc-compile CONFIG`
#[derive(Debug, Args)]
pub(crate) struct Build {
    /// The config, usually `upstreams.json`
    #[arg(value_name = "CONFIG", required = true)]
    pub(crate) config: Option<PathBuf>,

    /// Only report what is wrong with the config and its OpenAPI documents; nothing is contacted, written or built
    #[arg(long, conflicts_with_all = ["eval", "output"])]
    pub(crate) check: bool,

    /// After the build, evaluate this PTC-Lisp program in the new binary and show its answer
    #[arg(long, value_name = "PROGRAM", allow_hyphen_values = true)]
    pub(crate) eval: Option<String>,

    /// Where the binary goes [default: beside the other deployments in the target directory]
    #[arg(short, long, value_name = "PATH", help_heading = "Build")]
    pub(crate) output: Option<PathBuf>,

    /// Fail instead of contacting upstreams when the lock file is missing or does not cover the config
    #[arg(long, help_heading = "Build")]
    pub(crate) locked: bool,

    /// Contact nothing: no upstreams, no schema URLs, no package registry
    #[arg(long, help_heading = "Build")]
    pub(crate) offline: bool,

    /// Link-time optimization: `thin` makes a smaller binary and a much slower build
    #[arg(long, value_name = "KIND", value_enum, default_value_t = Lto::Off, help_heading = "Build")]
    pub(crate) lto: Lto,

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

    /// How findings are printed: with the text around them, one line each, or one JSON object a line (on stdout)
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Full, help_heading = "Messages")]
    pub(crate) format: Format,

    /// Colours: `auto` is on for a terminal and respects NO_COLOR
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Color::Auto, help_heading = "Messages")]
    pub(crate) color: Color,
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
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
