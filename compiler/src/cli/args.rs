//! The command line: the commands of `ptc-compile`. Their options are beside the commands, or in `build_args`, `client_args` and
//! `command_args`.

use clap::{Args, Parser, Subcommand};

use crate::attest::{Attest, Verify};
use crate::build_args::Build;
use crate::client_args::{Import, Install};
use crate::command_args::{CheckProgram, Completions, Diff, Explain, Help, Man, Operations, Serve, Update, Version, Viewer};
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn command_line_definition_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
