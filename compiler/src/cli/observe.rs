//! Runs `observe CONFIG [PROGRAM…]`, which infers the shapes of results from answers and stores them in the lock file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use ptc_compiler::diag::Diagnostics;
use ptc_compiler::lock::read::Places;
use ptc_compiler::lock::{self, Lock};
use ptc_compiler::lower::shape;
use ptc_compiler::serve::observe::{ExampleOutcome, Observations, Observer};
use ptc_compiler::source::Sources;
use ptc_compiler::{config, drift, resolve};

use crate::console::Console;
use crate::numbers::count;
use crate::shared_args::Messages;
use crate::upstream_runs::UpstreamRuns;
use crate::{Failure, Status, cassette, defaults, files, frozen, load, resolve_lock};

/// `ptc-compile observe`
///
/// Runs programs with the upstreams of a config, and infers the shape of each tool's results from the redacted answers. The lock
/// file gets the shapes, and `doc` shows those of tools without an output schema. Shapes have no values of answers, except
/// small enumerations of categories. With `--examples` the lock file also gets example calls. If a program fails, nothing is written.
#[derive(Debug, Args)]
pub(crate) struct Observe {
    #[command(flatten)]
    runs: UpstreamRuns,

    /// Infer shapes from the answers in a cassette; can be repeated
    ///
    /// With a cassette, only the programs that are named run, so that without names no upstream is contacted.
    #[arg(long, value_name = "FILE")]
    cassette: Vec<PathBuf>,

    /// Also store an example call of each tool that has none in the config or in its definition: the arguments of its smallest call
    ///
    /// These arguments are values, which `doc` shows to models and the lock file keeps. Failed calls are not used, nor are arguments that
    /// were redacted or that the tool's schema does not permit.
    #[arg(long)]
    examples: bool,

    /// Forget what was observed earlier of the same tools, and their examples, instead of adding to it
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
            console.message(&format!("observed {name}: {}\n", count(calls, "call")));
            Ok(())
        })?;
        all.extend(observer.observations());
    }
    store(config, frozen.lock, &all, Storing { is_replaced: args.replace, has_examples: args.examples }, console)?;
    Ok(Status::Clean)
}

/// How observations are stored.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Storing {
    /// Whether earlier observations of the same tools are forgotten.
    pub(crate) is_replaced: bool,
    /// Whether example calls are stored.
    pub(crate) has_examples: bool,
}

/// Adds observations to a lock, writes it, and prints which shapes of earlier observations have changed.
pub(crate) fn store(
    config: &Path,
    mut lock: Lock,
    observations: &Observations,
    storing: Storing,
    console: &Console,
) -> Result<(), Failure> {
    let mut sources = Sources::default();
    // The findings about the config itself are those of `--check`.
    let file = load::read_source(config, &mut sources, &mut Diagnostics::default())?;
    let read = file.and_then(|file| config::read(&sources, file, &mut Diagnostics::default()));
    let mut before = lock.clone();
    for (upstream, tool, observed) in observations.apply(&mut lock, storing.is_replaced) {
        console.message(&format!("{upstream}/{tool}: {}, {}\n", shape::shape(&observed.schema), observed.source()));
        // The line above says what is observed for the first time.
        if let Some(known) = before.upstreams.get_mut(&upstream).and_then(|known| known.tools.get_mut(&tool)) {
            known.observed.get_or_insert(observed);
        }
    }
    if let Some(read) = read {
        if storing.has_examples {
            for (upstream, tool, outcome) in observations.apply_examples(&read, &mut lock, &defaults::is_example) {
                console.message(&format!("{upstream}/{tool}: {}\n", described(outcome)));
            }
        }
        let mut changes = Diagnostics::default();
        drift::compare(&read, &before, &lock, &Places::default(), None, &mut changes);
        console.findings(&sources, &changes);
    }
    for (upstream, tool) in resolve::dropped_examples(&before, &lock) {
        console.message(&format!("{upstream}/{tool}: its earlier example is dropped\n"));
    }
    let path = resolve_lock::path(config);
    let is_new = files::write_if_changed(&path, lock::write::write(&lock).as_bytes())?;
    console.message(&format!("{} {}\n", if is_new { "wrote" } else { "unchanged:" }, path.display()));
    Ok(())
}

/// Describes what happened to the example of a tool. The text has no arguments, which may be personal.
fn described(outcome: ExampleOutcome) -> &'static str {
    match outcome {
        ExampleOutcome::Stored => "the smallest call is its example",
        ExampleOutcome::Kept => "its example stays",
        ExampleOutcome::NoneSuitable => "none of its calls can be an example",
    }
}
