//! Runs `observe CONFIG [PROGRAM…]`, which infers the shapes of results from answers and stores them in the lock file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use ptc_compiler::diag::Diagnostics;
use ptc_compiler::lock::read::Places;
use ptc_compiler::lock::{self, Lock};
use ptc_compiler::lower::shape;
use ptc_compiler::serve::observe::{Observations, Observer};
use ptc_compiler::source::Sources;
use ptc_compiler::{config, drift};

use crate::console::Console;
use crate::shared_args::Messages;
use crate::upstream_runs::UpstreamRuns;
use crate::{Failure, Status, cassette, files, frozen, load, resolve_lock};

/// `ptc-compile observe`
///
/// Runs programs with the upstreams of a config, and infers the shape of each tool's results from the redacted answers. The lock
/// file gets the shapes, and `doc` shows those of tools without an output schema. Shapes have no values of answers, except
/// small enumerations of categories. If a program fails, nothing is written.
#[derive(Debug, Args)]
pub(crate) struct Observe {
    #[command(flatten)]
    runs: UpstreamRuns,

    /// Infer shapes from the answers in a cassette; can be repeated
    ///
    /// With a cassette, only the programs that are named run, so that without names no upstream is contacted.
    #[arg(long, value_name = "FILE")]
    cassette: Vec<PathBuf>,

    /// Forget what was observed earlier of the same tools, instead of adding to it
    #[arg(long)]
    replace: bool,

    #[command(flatten)]
    pub(crate) messages: Messages,
}

/// Observes the answers.
pub(crate) fn run(args: &Observe, console: &Console) -> Result<Status, Failure> {
    let config = &args.runs.config;
    let Some(frozen) = frozen::open_all(config, console) else { return Ok(Status::Findings) };
    let mut all = Observations::default();
    for path in &args.cassette {
        all.extend(Observations::from(&cassette::read(path, config, frozen.deployment.catalog)?));
    }
    if args.cassette.is_empty() || !args.runs.programs.is_empty() {
        let observer = Observer::default();
        args.runs.run(frozen.deployment, Arc::new(observer.clone()), |name, calls| {
            console.message(&format!("observed {name}: {calls} calls\n"));
            Ok(())
        })?;
        all.extend(observer.observations());
    }
    store(config, frozen.lock, &all, args.replace, console)?;
    Ok(Status::Clean)
}

/// Adds observations to a lock, writes it, and prints which shapes of earlier observations have changed. `is_replaced`: whether earlier
/// observations of the same tools are forgotten.
pub(crate) fn store(
    config: &Path,
    mut lock: Lock,
    observations: &Observations,
    is_replaced: bool,
    console: &Console,
) -> Result<(), Failure> {
    let mut before = lock.clone();
    for (upstream, tool, observed) in observations.apply(&mut lock, is_replaced) {
        console.message(&format!("{upstream}/{tool}: {}, {}\n", shape::shape(&observed.schema), observed.source()));
        // The line above says what is observed for the first time.
        if let Some(known) = before.upstreams.get_mut(&upstream).and_then(|known| known.tools.get_mut(&tool)) {
            known.observed.get_or_insert(observed);
        }
    }
    print_changes(config, &before, &lock, console)?;
    let path = resolve_lock::path(config);
    let is_new = files::write_if_changed(&path, lock::write::write(&lock).as_bytes())?;
    console.message(&format!("{} {}\n", if is_new { "wrote" } else { "unchanged:" }, path.display()));
    Ok(())
}

/// Prints the changes of shapes as findings, at the upstreams of the config.
fn print_changes(path: &Path, before: &Lock, after: &Lock, console: &Console) -> Result<(), Failure> {
    let (mut sources, mut changes) = (Sources::default(), Diagnostics::default());
    // The findings about the config itself are those of `--check`.
    let mut of_config = Diagnostics::default();
    let file = load::read_source(path, &mut sources, &mut of_config)?;
    if let Some(config) = file.and_then(|file| config::read(&sources, file, &mut of_config)) {
        drift::compare(&config, before, after, &Places::default(), None, &mut changes);
    }
    console.findings(&sources, &changes);
    Ok(())
}
