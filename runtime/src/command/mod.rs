//! The command line of a pinned binary and of `ptc-compile run`, which has the same flags.
//!
//! - `line`: parses arguments into a command.
//! - `help`: generates the help from the table of settings.
//! - `start`: serves MCP.
//! - `eval`: evaluates one program.
//! - `live`: forwards lines that a program prints while it runs.
//! - `repl`: evaluates programs in sequence.
//! - `show`, `paint`: formats results, with colours.
//! - `signals`: signals that request a shutdown.
//! - `version`: reports what the binary was built from.

mod eval;
mod help;
mod line;
mod live;
#[cfg(feature = "line-editing")]
mod paint;
mod repl;
mod services;
mod show;
mod signals;
mod start;
pub(crate) mod version;

use std::cell::Cell;
use std::ffi::OsString;
use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use ptc_catalog::Deployment;

use crate::log;
use crate::parts::Parts;
use crate::settings::{LinkedParts, Settings, SnapshotMode, unknown_env_vars};
use crate::upstream::{Contacts, Load};
pub use help::{COMMANDS, EVALUATING, Evaluating, Usage};
use line::{Command, Grammar, Line};
pub use services::Preparation;
use show::Display;
pub use signals::ShutdownSignals;
pub use version::BinaryVersion;

/// Exit code: the program ended with an error.
const FAILED: u8 = 1;
/// Exit code: the usage is invalid, or the binary could not start.
const UNUSABLE: u8 = 2;

/// The parts of which a server consists.
pub struct Origin {
    /// The upstreams, their tools, and the sources of secrets.
    pub deployment: &'static Deployment,
    /// The folder for relative paths of a config. `None` means the binary's folder.
    pub config_dir: Option<PathBuf>,
    /// Adds the tools of upstreams to the catalog when they are fetched. `None` if the catalog is complete.
    pub load: Option<Arc<dyn Load>>,
    /// Upstreams that were contacted to make the deployment. The server takes over their connections.
    pub contacts: Cell<Option<Contacts>>,
    /// The optional parts of the program.
    pub parts: &'static Parts,
    /// Whether the deployment is part of the binary, so that the binary can run its programs in processes of their own.
    pub is_pinned: bool,
    /// Answers the calls of programs in place of the upstreams.
    #[cfg(feature = "interception")]
    pub interceptor: Option<Arc<dyn crate::upstream::intercept::Interceptor>>,
}

/// The linker that put the deployment into a binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Linker {
    /// `rustc`, as static tables.
    Rust,
    /// `ptc-compile --link prebuilt`, as an image in the executable of a prebuilt runtime.
    Prebuilt,
}

impl Linker {
    /// Returns the name as in `--link`.
    pub const fn name(self) -> &'static str {
        match self {
            Linker::Rust => "rust",
            Linker::Prebuilt => "prebuilt",
        }
    }
}

/// Runs a pinned binary that `rustc` linked without optional parts. Its `main` only calls this function.
pub fn main(deployment: &'static Deployment) -> ExitCode {
    main_with(deployment, &Parts::NONE)
}

/// Runs a pinned binary that `rustc` linked with optional parts. Its `main` only calls this function.
pub fn main_with(deployment: &'static Deployment, parts: &'static Parts) -> ExitCode {
    main_linked_by(deployment, parts, Linker::Rust)
}

/// Runs a pinned binary whose deployment `linker` has put into it.
pub fn main_linked_by(deployment: &'static Deployment, parts: &'static Parts, linker: Linker) -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == ptc_isolation::worker::ARGUMENT) {
        return ptc_isolation::worker::main(deployment, parts.policy_of(deployment));
    }
    crate::secrets::seal();
    log::report_panics();
    let with_upstreams = !deployment.catalog.upstreams.is_empty();
    let (args, linked) = (std::env::args_os().skip(1), parts.linked());
    let line = match line::read(args, |name| std::env::var_os(name), with_upstreams, Grammar::Pinned, parts) {
        Ok(line) => line,
        Err(faults) => return unusable(deployment.name, &faults),
    };
    let origin = Origin {
        deployment,
        config_dir: None,
        load: None,
        contacts: Cell::default(),
        parts,
        is_pinned: true,
        #[cfg(feature = "interception")]
        interceptor: None,
    };
    let Line { command, settings, exporter, warnings } = line;
    log::set_level(settings.log_level);
    warn(&warnings, &command, linked);
    match command {
        Command::Help => written(&help::pinned(deployment, linked)),
        Command::Version(json) => written(&version::render(deployment, linker, &settings.schedule, linked, json)),
        Command::Start => start::run(&origin, settings, exporter.as_deref()),
        Command::Eval(program, context, options) => eval::run(&origin, settings, &program, context, options),
        Command::Repl(script, options) => repl::run(&origin, settings, &script, options),
    }
}

/// The invocation of a command of `ptc-compile` that takes the flags of the runtime.
#[derive(Debug, Clone, Copy)]
pub struct Invocation<'a> {
    /// The command's name on the command line.
    pub program: &'a str,
    /// Returns a line with the version, or with `true` a JSON object.
    pub version: fn(bool) -> String,
    /// The arguments after the command's name.
    pub args: &'a [OsString],
    /// The optional parts of `ptc-compile`.
    pub parts: &'static Parts,
}

/// The config of a command that reads one.
#[derive(Debug, Clone, Copy)]
pub enum ConfigChoice<'a> {
    /// The file that a flag, an argument or a variable names.
    Named(&'a Path),
    /// The file at the default path, if it exists.
    Default,
    /// No config, and therefore no upstreams.
    Plain,
}

/// The output format of findings in a config.
#[derive(Debug, Clone, Copy)]
pub struct FindingsFormat {
    /// Whether to use colours. `None` depends on the terminal and `NO_COLOR`.
    pub color: Option<bool>,
    /// Whether to print findings as JSON on standard output.
    pub json: bool,
}

/// Serves a config without a compiled binary: `ptc-compile run`. `open` makes the deployment from the config that a flag, an
/// argument or the environment names, if any. If it fails, it has already printed the reason.
pub fn run(
    invocation: Invocation<'_>,
    open: impl FnOnce(ConfigChoice<'_>, SnapshotMode, FindingsFormat, Preparation<'_>) -> Result<Origin, ExitCode>,
) -> ExitCode {
    unpinned(Grammar::Run, invocation, open)
}

/// Like [`run`] for `ptc-compile repl`. Its catalog is live unless a flag says otherwise.
pub fn repl(
    invocation: Invocation<'_>,
    open: impl FnOnce(ConfigChoice<'_>, SnapshotMode, FindingsFormat, Preparation<'_>) -> Result<Origin, ExitCode>,
) -> ExitCode {
    unpinned(Grammar::Repl, invocation, open)
}

fn unpinned(
    grammar: Grammar,
    invocation: Invocation<'_>,
    open: impl FnOnce(ConfigChoice<'_>, SnapshotMode, FindingsFormat, Preparation<'_>) -> Result<Origin, ExitCode>,
) -> ExitCode {
    crate::secrets::seal();
    log::report_panics();
    let Invocation { program, version, args, parts } = invocation;
    let linked = parts.linked();
    let read = |with_upstreams| line::read(args.iter().cloned(), |name| std::env::var_os(name), with_upstreams, grammar, parts);
    let (help, usual): (fn(&str, LinkedParts) -> String, _) = match grammar {
        Grammar::Repl => (help::repl, SnapshotMode::Live),
        _ => (help::run, SnapshotMode::Frozen),
    };
    // Report faults of the command line before contacting upstreams.
    let mut line = match read(true) {
        Ok(line) => line,
        Err(faults) => return unusable(program, &faults),
    };
    let json = match line.command {
        Command::Help => return written(&help(program, linked)),
        Command::Version(json) => return written(&version(json)),
        Command::Repl(_, options) => options.display == Display::Envelope,
        Command::Start | Command::Eval(..) => false,
    };
    log::set_level(line.settings.log_level);
    line.settings.serves = matches!(line.command, Command::Start);
    #[cfg(feature = "interception")]
    let usual = if line.settings.interception.cassette.is_some() { SnapshotMode::Frozen } else { usual };
    let mode = line.settings.catalog_snapshot_mode.unwrap_or(usual);
    let config = match line.settings.upstreams_config.as_deref() {
        _ if line.settings.plain => ConfigChoice::Plain,
        Some(path) => ConfigChoice::Named(path),
        None => ConfigChoice::Default,
    };
    let findings_format = FindingsFormat { color: color(&line.settings), json };
    let preparation = Preparation { settings: &line.settings, parts };
    let origin = match open(config, mode, findings_format, preparation) {
        Ok(origin) => origin,
        Err(code) => return code,
    };
    // Parse again: defaults depend on whether there are upstreams.
    match read(!origin.deployment.catalog.upstreams.is_empty()) {
        Ok(Line { mut settings, exporter, warnings, command }) => {
            warn(&warnings, &command, linked);
            settings.config_dir = settings.config_dir.or_else(|| origin.config_dir.clone());
            match command {
                Command::Repl(script, options) => repl::run(&origin, settings, &script, options),
                _ => start::run(&origin, settings, exporter.as_deref()),
            }
        }
        Err(faults) => unusable(program, &faults),
    }
}

#[cfg(feature = "line-editing")]
fn color(settings: &Settings) -> Option<bool> {
    settings.terminal.color
}

#[cfg(not(feature = "line-editing"))]
fn color(_: &Settings) -> Option<bool> {
    None
}

/// Logs warnings about settings without effect, settings that expose a secret, and variables that look like settings.
fn warn(warnings: &[String], command: &Command, linked: LinkedParts) {
    let reads = !matches!(command, Command::Help | Command::Version(_));
    let variables = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok().filter(|_| reads));
    for warning in warnings.iter().chain(&unknown_env_vars(variables, linked)) {
        log::line(log::Level::Warn, "settings", &[("reason", warning)]);
    }
}

/// Prints the reasons for not starting on standard error. Returns the exit code of a program that cannot start.
pub fn unusable(name: &str, faults: &[impl fmt::Display]) -> ExitCode {
    let mut text = String::new();
    for fault in faults {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name}: error: {fault}");
    }
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
    ExitCode::from(UNUSABLE)
}

/// Shuts the services down when startup fails.
fn ended_early(name: &str, services: services::Services, why: &str) -> ExitCode {
    services.shut_down();
    unusable(name, &[why])
}

/// Writes to standard output. Returns the exit code of a program that has done so. A closed reader is not an error.
pub fn written(text: &str) -> ExitCode {
    let mut output = std::io::stdout().lock();
    // A prompt does not end with a line break, so that the output must be flushed.
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) if fault.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(FAILED),
    }
}
