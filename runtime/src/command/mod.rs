//! The command line of a pinned binary.
//!
//! - `line`: arguments to a command.
//! - `help`: usage, from the table of settings.
//! - `start`: serve MCP.
//! - `eval`: one program.
//! - `version`: what the binary was built from.

mod eval;
mod help;
mod host;
mod line;
mod start;
pub(crate) mod version;

use std::fmt::{Display, Write as _};
use std::io::Write as _;
use std::process::ExitCode;

use ptc_catalog::Deployment;

use crate::log;
use line::{Command, Line};

/// The program ended with an error.
const FAILED: u8 = 1;
/// The binary was used wrongly, or could not start.
const UNUSABLE: u8 = 2;

/// Runs a pinned binary: the only thing that its `main` calls.
pub fn main(deployment: &'static Deployment) -> ExitCode {
    crate::secrets::seal();
    let with_upstreams = !deployment.catalog.upstreams.is_empty();
    let line = match line::read(std::env::args_os().skip(1), |name| std::env::var_os(name), with_upstreams) {
        Ok(line) => line,
        Err(faults) => return unusable(deployment, &faults),
    };
    let Line { command, json, settings, warnings } = line;
    log::set_level(settings.log_level);
    for warning in &warnings {
        log::line(log::Level::Warn, "setting ignored", &[("reason", warning)]);
    }
    match command {
        Command::Help => written(&help::render(deployment)),
        Command::Version => written(&version::render(deployment, json)),
        Command::Start => start::run(deployment, settings),
        Command::Eval(program) => eval::run(deployment, settings, &program, json),
    }
}

/// Says on standard error why nothing was done.
fn unusable(deployment: &'static Deployment, faults: &[impl Display]) -> ExitCode {
    let mut text = String::new();
    for fault in faults {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}: error: {fault}", deployment.name);
    }
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
    ExitCode::from(UNUSABLE)
}

/// Writes to standard output; a reader that went away is no fault.
fn written(text: &str) -> ExitCode {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) if fault.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(FAILED),
    }
}
