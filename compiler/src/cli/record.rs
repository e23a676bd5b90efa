//! Runs `record CONFIG [PROGRAM…] -o FILE`, which runs programs with the upstreams and writes a cassette of their answers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use ptc_catalog::Deployment;
use ptc_compiler::serve::cassette::Recorder;
use ptc_compiler::serve::cassette::scrub::Rule;
use ptc_compiler::{diag::suggest, files::folder};
use ptc_runtime::command::ShutdownSignals;
use ptc_runtime::embed::{Engine, Request};
use ptc_runtime::evaluation::Failure as ProgramFailure;
use ptc_runtime::secrets;
use ptc_runtime::settings::Settings;

use crate::args::Messages;
use crate::console::Console;
use crate::{Failure, Status, files, frozen, load};

/// `ptc-compile record`
///
/// Runs programs with the upstreams of a config, one after the other, and writes their calls with the redacted answers into a file.
/// `run`, `repl` and `test` replay it without the upstreams. The upstreams must be pinned in the lock file. If a program fails,
/// nothing is written.
#[derive(Debug, Args)]
pub(crate) struct Record {
    /// The config, usually `upstreams.json`, with its lock file beside it
    #[arg(value_name = "CONFIG")]
    config: PathBuf,

    /// Files with programs, or names of stored programs of the config [default: all stored programs]
    #[arg(value_name = "PROGRAM")]
    programs: Vec<String>,

    /// The cassette
    #[arg(short, long, value_name = "FILE", required = true)]
    output: PathBuf,

    /// What the programs read as `data/NAME`, or the arguments of stored programs: a JSON object
    #[arg(long, value_name = "JSON", value_parser = object)]
    context: Option<String>,

    /// Time limit of each program, in milliseconds
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=86_400_000), default_value_t = 60_000)]
    program_timeout_ms: u64,

    /// Time limit of each call, in milliseconds
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=86_400_000), default_value_t = 30_000)]
    upstream_call_timeout_ms: u64,

    /// Replace the texts and numbers at a path of a tool's answers, such as `petstore/list-pets:[].owner`; can be repeated
    ///
    /// Equal texts get equal replacements, `scrubbed-1` and so on, in all answers and requests. A path that selects nothing is an error.
    #[arg(long, value_name = "SERVER/TOOL:PATH")]
    scrub: Vec<Rule>,

    /// Replace the matches of a regular expression in all texts of answers and requests; can be repeated
    #[arg(long, value_name = "REGEX", value_parser = Rule::pattern)]
    scrub_pattern: Vec<Rule>,

    /// Also record how long each call takes, so that `--replay-latency` can delay its answer. Recording again changes the file then
    #[arg(long)]
    latency: bool,

    #[command(flatten)]
    pub(crate) messages: Messages,
}

/// Accepts the text of a JSON object.
fn object(text: &str) -> Result<String, String> {
    let parsed: Result<serde_json::Map<String, serde_json::Value>, _> = serde_json::from_str(text);
    parsed.map(|_| text.to_owned()).map_err(|error| format!("expected a JSON object: {error}"))
}

/// Records the programs.
pub(crate) fn run(args: &Record, console: &Console) -> Result<Status, Failure> {
    let Some(deployment) = frozen::open(&args.config, console) else { return Ok(Status::Findings) };
    let programs = requests(args, deployment)?;
    let recorder = Recorder::default();
    let recorder = Arc::new(if args.latency { recorder.with_latency() } else { recorder });
    secrets::seal();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start the runtime that talks to upstreams: {error}")))?;
    let recorded = runtime.block_on(record(args, deployment, programs, &recorder, console));
    runtime.shutdown_background();
    recorded?;
    let mut cassette = recorder.cassette();
    let rules: Vec<Rule> = args.scrub.iter().chain(&args.scrub_pattern).cloned().collect();
    let scrubbed = cassette.scrub(&rules).map_err(|rule| {
        Failure::new(format!("the rule {rule} selects nothing in the recorded answers"))
            .hint("nothing was written; `test --faults` shows paths as they are written in a rule")
    })?;
    if scrubbed > 0 {
        console.message(&format!("scrubbed {scrubbed} values\n"));
    }
    let is_new = files::write_if_changed(&args.output, cassette.to_string().as_bytes())?;
    let (verb, path) = (if is_new { "wrote" } else { "unchanged:" }, args.output.display());
    console.message(&format!("{verb} {path} with {} requests\n", cassette.requests()));
    Ok(Status::Clean)
}

/// Runs the programs, until a signal arrives. If a signal ended the process directly, child processes would outlive it.
async fn record(
    args: &Record,
    deployment: &'static Deployment,
    programs: Vec<(String, Request)>,
    recorder: &Arc<Recorder>,
    console: &Console,
) -> Result<(), Failure> {
    let mut signals = ShutdownSignals::listen(true, true)
        .map_err(|error| Failure::new(format!("cannot take over the signals that end a process: {error}")))?;
    let engine = engine(args, deployment, recorder)?;
    let recorded = tokio::select! {
        recorded = record_all(&engine, programs, recorder, console) => recorded,
        name = signals.recv() => Err(Failure::new(format!("{name} came while programs ran; nothing was written"))),
    };
    engine.shut_down().await;
    recorded
}

async fn record_all(
    engine: &Engine,
    programs: Vec<(String, Request)>,
    recorder: &Recorder,
    console: &Console,
) -> Result<(), Failure> {
    for (name, request) in programs {
        let answer = engine.run_async(request).await;
        if let Err(failure) = answer.value() {
            return Err(Failure::new(format!("the program {name} failed: {}", sentence(failure)))
                .hint("nothing was written; a program that is to be recorded must end with a value"));
        }
        console.message(&format!("recorded {name}: {} calls\n", answer.calls().len()));
        recorder.finish(&name).map_err(|conflict| {
            Failure::new(format!("the programs cannot share a cassette: {conflict}"))
                .hint("nothing was written; each program replays the first answer first, so record these programs into cassettes of their own")
        })?;
    }
    Ok(())
}

/// Returns the programs with their names.
fn requests(args: &Record, deployment: &'static Deployment) -> Result<Vec<(String, Request)>, Failure> {
    let stored = || deployment.programs.iter().map(|program| program.name);
    let names: Vec<String> = if args.programs.is_empty() { stored().map(str::to_owned).collect() } else { args.programs.clone() };
    if names.is_empty() {
        return Err(Failure::new(format!("{} has no stored programs", args.config.display()))
            .hint("name a file with a program after the config"));
    }
    let request = |name: String| {
        let request = if stored().any(|known| known == name) {
            Request::stored(&*name)
        } else if Path::new(&name).exists() || name.contains(['/', '.']) {
            Request::new(load::read_text(Path::new(&name))?)
        } else {
            let failure = Failure::new(format!("there is no stored program and no file `{name}`"));
            return Err(match suggest::closest_match(&name, stored()) {
                Some(near) => failure.hint(format!("did you mean `{near}`?")),
                None => failure.hint("name a file with a program, or an entry of `programs` in the config"),
            });
        };
        let request = match &args.context {
            Some(context) => request.context_json(&**context),
            None => request,
        };
        Ok((name, request))
    };
    names.into_iter().map(request).collect()
}

fn engine(args: &Record, deployment: &'static Deployment, recorder: &Arc<Recorder>) -> Result<Engine, Failure> {
    let limits = Settings::defaults(true).limits().wall_clock(Duration::from_millis(args.program_timeout_ms));
    let (recorder, call_timeout) = (Arc::clone(recorder), Duration::from_millis(args.upstream_call_timeout_ms));
    let builder = Engine::builder().deployment(deployment).config_dir(folder(&args.config)).limits(limits);
    let builder = builder.upstreams(move |settings| {
        settings.interceptor = Some(recorder);
        settings.call_timeout = call_timeout;
    });
    builder.build().map_err(|error| Failure::new(format!("the programs cannot be recorded: {error}")))
}

/// Returns the failure of a program as a sentence, with its hint or its place.
pub(crate) fn sentence(failure: &ProgramFailure) -> String {
    let feedback = if failure.feedback.is_empty() { String::new() } else { format!("\n{}", failure.feedback) };
    format!("{}: {}{feedback}", failure.reason.name(), failure.message)
}
