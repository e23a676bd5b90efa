//! The command line of a pinned binary, and of `ptc-compile run`, which has the same flags.
//!
//! - `line`: arguments to a command.
//! - `help`: usage, from the table of settings.
//! - `start`: serve MCP.
//! - `eval`: one program.
//! - `live`: what a program prints while it runs.
//! - `repl`: programs one after another.
//! - `show`, `paint`: what came of programs, and in which colours.
//! - `signals`: what asks a process to end.
//! - `viewer`: traces in a browser.
//! - `version`: what the binary was built from.

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
#[cfg(feature = "viewer")]
mod viewer;

use std::cell::Cell;
use std::ffi::OsString;
use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use ptc_catalog::Deployment;

use crate::log;
use crate::settings::{Settings, SnapshotMode, unknown_env_vars};
use crate::upstream::{Contacts, Load};
pub use help::{COMMANDS, EVALUATING, Evaluating, Usage};
use line::{Command, Grammar, Line};
pub use services::Preparation;
use show::Display;
pub use signals::ShutdownSignals;

/// The program ended with an error.
const FAILED: u8 = 1;
/// The binary was used wrongly, or could not start.
const UNUSABLE: u8 = 2;

/// What a server is made of.
pub struct Origin {
    /// Upstreams, their tools, and where secrets come from.
    pub deployment: &'static Deployment,
    /// The folder from which relative paths of a config start; `None` is the binary's.
    pub config_dir: Option<PathBuf>,
    /// How upstreams that were not asked for their tools yet are taken into the catalog; `None` where all were.
    pub load: Option<Arc<dyn Load>>,
    /// Upstreams that were contacted to make the deployment, and whose connections the server takes over.
    pub contacts: Cell<Option<Contacts>>,
}

/// Runs a pinned binary: the only thing that its `main` calls.
pub fn main(deployment: &'static Deployment) -> ExitCode {
    crate::secrets::seal();
    log::report_panics();
    let with_upstreams = !deployment.catalog.upstreams.is_empty();
    let line = match line::read(std::env::args_os().skip(1), |name| std::env::var_os(name), with_upstreams, Grammar::Pinned) {
        Ok(line) => line,
        Err(faults) => return unusable(deployment.name, &faults),
    };
    let origin = Origin { deployment, config_dir: None, load: None, contacts: Cell::default() };
    let Line { command, settings, warnings } = line;
    log::set_level(settings.log_level);
    warn(&warnings, &command);
    match command {
        Command::Help => written(&help::pinned(deployment)),
        Command::Version(json) => written(&version::render(deployment, &settings.schedule, json)),
        Command::Start => start::run(&origin, settings),
        Command::Eval(program, display) => eval::run(&origin, settings, &program, display),
        Command::Repl(script, display) => repl::run(&origin, settings, &script, display),
    }
}

/// The invocation of a command of `ptc-compile` that takes the flags of the runtime.
#[derive(Debug, Clone, Copy)]
pub struct Invocation<'a> {
    /// Its words on the command line.
    pub program: &'a str,
    /// The line that says which version it is, or with `true` an object of JSON.
    pub version: fn(bool) -> String,
    /// What follows its words.
    pub args: &'a [OsString],
}

/// The config of a command that reads one.
#[derive(Debug, Clone, Copy)]
pub enum ConfigChoice<'a> {
    /// The file that a flag, an argument or a variable names.
    Named(&'a Path),
    /// The file where configs are by default, if it is there.
    Default,
    /// No config: no upstreams.
    Plain,
}

/// The output format of findings in a config.
#[derive(Debug, Clone, Copy)]
pub struct FindingsFormat {
    /// Whether there are colours; `None` goes by the terminal and by `NO_COLOR`.
    pub color: Option<bool>,
    /// Whether they are data: JSON on standard output.
    pub json: bool,
}

/// Serves a config without a binary of its own: `ptc-compile run`. `open` makes the deployment of the config that flag, argument or
/// environment name, if any; where it cannot, it has said why.
pub fn run(
    invocation: Invocation<'_>,
    open: impl FnOnce(ConfigChoice<'_>, SnapshotMode, FindingsFormat, Preparation<'_>) -> Result<Origin, ExitCode>,
) -> ExitCode {
    unpinned(Grammar::Run, invocation, open)
}

/// The same for `ptc-compile repl`, whose catalog is live unless a flag says otherwise.
pub fn repl(
    invocation: Invocation<'_>,
    open: impl FnOnce(ConfigChoice<'_>, SnapshotMode, FindingsFormat, Preparation<'_>) -> Result<Origin, ExitCode>,
) -> ExitCode {
    unpinned(Grammar::Repl, invocation, open)
}

/// Shows the traces of a folder in a browser: `ptc-compile viewer`, whose words on the command line are `program`. Port 0 is a free
/// one.
#[cfg(feature = "viewer")]
pub fn viewer(program: &str, folder: &Path, port: u16) -> ExitCode {
    viewer::run(program, folder, port)
}

fn unpinned(
    grammar: Grammar,
    invocation: Invocation<'_>,
    open: impl FnOnce(ConfigChoice<'_>, SnapshotMode, FindingsFormat, Preparation<'_>) -> Result<Origin, ExitCode>,
) -> ExitCode {
    crate::secrets::seal();
    log::report_panics();
    let Invocation { program, version, args } = invocation;
    let read = |with_upstreams| line::read(args.iter().cloned(), |name| std::env::var_os(name), with_upstreams, grammar);
    let (help, usual): (fn(&str) -> String, _) = match grammar {
        Grammar::Repl => (help::repl, SnapshotMode::Live),
        _ => (help::run, SnapshotMode::Frozen),
    };
    // Report faults of the command line before contacting upstreams.
    let line = match read(true) {
        Ok(line) => line,
        Err(faults) => return unusable(program, &faults),
    };
    let json = match line.command {
        Command::Help => return written(&help(program)),
        Command::Version(json) => return written(&version(json)),
        Command::Repl(_, display) => display == Display::Envelope,
        Command::Start | Command::Eval(..) => false,
    };
    log::set_level(line.settings.log_level);
    let mode = line.settings.catalog_snapshot_mode.unwrap_or(usual);
    let config = match line.settings.upstreams_config.as_deref() {
        _ if line.settings.plain => ConfigChoice::Plain,
        Some(path) => ConfigChoice::Named(path),
        None => ConfigChoice::Default,
    };
    let findings_format = FindingsFormat { color: color(&line.settings), json };
    let preparation = Preparation { settings: &line.settings };
    let origin = match open(config, mode, findings_format, preparation) {
        Ok(origin) => origin,
        Err(code) => return code,
    };
    // Parse again: defaults depend on whether there are upstreams.
    match read(!origin.deployment.catalog.upstreams.is_empty()) {
        Ok(Line { mut settings, warnings, command }) => {
            warn(&warnings, &command);
            settings.config_dir = settings.config_dir.or_else(|| origin.config_dir.clone());
            match command {
                Command::Repl(script, display) => repl::run(&origin, settings, &script, display),
                _ => start::run(&origin, settings),
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

/// Warns of settings that have no effect or show a secret, and of variables that look like settings.
fn warn(warnings: &[String], command: &Command) {
    let reads = !matches!(command, Command::Help | Command::Version(_));
    let variables = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok().filter(|_| reads));
    for warning in warnings.iter().chain(&unknown_env_vars(variables)) {
        log::line(log::Level::Warn, "settings", &[("reason", warning)]);
    }
}

/// Says on standard error why nothing was done.
fn unusable(name: &str, faults: &[impl fmt::Display]) -> ExitCode {
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

/// Writes to standard output; a reader that went away is no fault.
fn written(text: &str) -> ExitCode {
    let mut output = std::io::stdout().lock();
    // A prompt ends no line.
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) if fault.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(FAILED),
    }
}
