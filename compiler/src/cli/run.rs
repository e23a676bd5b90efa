//! Runs `run [CONFIG]` and `repl [CONFIG]`, which serve a config, or evaluate programs with it, without a build. Everything
//! except the catalog comes from the runtime, including flags.

use std::cell::Cell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ptc_catalog::Deployment;
use ptc_compiler::diag::Code;
use ptc_compiler::lock::Lock;
use ptc_compiler::serve::catalog;
use ptc_runtime::command::{self, ConfigChoice, FindingsFormat, Invocation, Origin, Preparation};
use ptc_runtime::settings::SnapshotMode;

use crate::command_args::Serve;
use crate::console::Console;
use crate::load::{self, Checked};
use crate::parts::PARTS;
use crate::shared_args::{Color, Messages};
use crate::{Failure, Status, cassette, commands, deployment, generate, resolve_lock, version};

/// Serves until the client disconnects.
pub(crate) fn run(args: &Serve) -> ExitCode {
    command::run(Invocation { program: "ptc-compile run", version: version::render, args: &args.rest, parts: &PARTS }, open)
}

/// Evaluates programs one after another.
pub(crate) fn repl(args: &Serve) -> ExitCode {
    command::repl(Invocation { program: "ptc-compile repl", version: version::render, args: &args.rest, parts: &PARTS }, open)
}

/// Opens the deployment of a config, or one without upstreams if there is no config. Prints the findings.
fn open(
    config: ConfigChoice<'_>,
    mode: SnapshotMode,
    findings_format: FindingsFormat,
    preparation: Preparation<'_>,
) -> Result<Origin, ExitCode> {
    let color = match findings_format.color {
        Some(true) => Color::Always,
        Some(false) => Color::Never,
        None => Color::Auto,
    };
    let console = Console::new(Messages { json: findings_format.json, color, ..Messages::default() });
    let path = match config {
        ConfigChoice::Named(path) => Some(path.to_owned()),
        ConfigChoice::Default => default_config(),
        ConfigChoice::Plain => None,
    };
    let origin = match path {
        Some(path) => of_config(&path, mode, preparation, &console),
        None => plain(preparation).map(Some),
    };
    match origin {
        Ok(Some(origin)) => Ok(origin),
        Ok(None) => Err(Status::Findings.into()),
        Err(failure) => {
            console.failure(&failure);
            Err(Status::Failed.into())
        }
    }
}

/// Returns `ptc_runner_mcp/upstreams.json` in the user's configuration folder, if it exists.
fn default_config() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value: &OsString| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")))?;
    Some(folder.join("ptc_runner_mcp/upstreams.json")).filter(|path| path.is_file())
}

/// The deployment without upstreams.
static PLAIN: Deployment = Deployment { name: "ptc-compile", compiler: ptc_compiler::VERSION, ..Deployment::EMPTY };

/// Opens the deployment without upstreams.
fn plain(preparation: Preparation<'_>) -> Result<Origin, Failure> {
    if let Some(cassette) = &preparation.interception().cassette {
        let message = format!("{} has the answers of a config's upstreams, and there is no config", cassette.display());
        return Err(Failure::new(message).hint("name the config too: `--upstreams cassette:FILE upstreams.json`"));
    }
    Ok(Origin {
        deployment: &PLAIN,
        config_dir: None,
        load: None,
        contacts: Cell::default(),
        parts: &PARTS,
        is_pinned: false,
        interceptor: None,
    })
}

/// Opens the deployment of a config. Returns `None` if there are faults, which are then printed.
fn of_config(
    path: &Path,
    mode: SnapshotMode,
    preparation: Preparation<'_>,
    console: &Console,
) -> Result<Option<Origin>, Failure> {
    let mut checked = load::load(path, ptc_compiler::tree::Syntax::CONFIG)?;
    if let Checked { config: Some(config), folder, diagnostics, .. } = &mut checked {
        commands::check_self(config, folder, None, diagnostics);
        // An unused binding may be the key of a planner, whose flags are parsed later.
        diagnostics.forget(Code::UnusedBinding);
    }
    let found = if checked.diagnostics.has_errors() {
        None
    } else if preparation.interception().cassette.is_some() {
        resolve_lock::pinned(path, &mut checked)?.map(|lock| (lock, None, Lock::default()))
    } else {
        resolve_lock::ephemeral(path, &mut checked, mode, preparation, console)?
    };
    let (lock, contacts, known) = found.map_or((None, None, None), |(lock, contacts, known)| (Some(lock), contacts, Some(known)));
    let deployment = lock.and_then(|lock| deployment::lowered(&mut checked, &lock, &generate::name(path, None), true));
    let status = console.findings(&checked.sources, &checked.diagnostics);
    let (Status::Clean, Some(config), Some(deployment)) = (status, checked.config, deployment) else { return Ok(None) };
    let deployment = deployment.tables;
    let interceptor = cassette::interceptor(preparation.interception(), path, deployment.catalog)?;
    let load = (mode == SnapshotMode::Live).then(|| catalog::loader(config, known.unwrap_or_default()));
    Ok(Some(Origin {
        deployment,
        config_dir: Some(checked.folder),
        load,
        contacts: Cell::new(contacts),
        parts: &PARTS,
        is_pinned: false,
        interceptor,
    }))
}
