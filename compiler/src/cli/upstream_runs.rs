//! Runs programs with the upstreams, while an interceptor receives the answers: for `record` and `observe`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use ptc_catalog::Deployment;
use ptc_compiler::{diag::suggest, files::folder};
use ptc_runtime::command::ShutdownSignals;
use ptc_runtime::embed::{Engine, Request};
use ptc_runtime::evaluation::Failure as ProgramFailure;
use ptc_runtime::secrets;
use ptc_runtime::settings::Settings;
use ptc_runtime::upstream::intercept::Interceptor;

use crate::{Failure, load};

/// The programs that a command runs, and their limits.
#[derive(Debug, Args)]
pub(crate) struct UpstreamRuns {
    /// The config, usually `upstreams.json`, with its lock file beside it
    #[arg(value_name = "CONFIG")]
    pub(crate) config: PathBuf,

    /// Files with programs, or names of stored programs of the config [default: all stored programs]
    #[arg(value_name = "PROGRAM")]
    pub(crate) programs: Vec<String>,

    /// A JSON object: the values of `data/NAME` in programs, and the arguments of stored programs
    #[arg(long, value_name = "JSON", value_parser = object)]
    context: Option<String>,

    /// Time limit of each program, in milliseconds
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=86_400_000), default_value_t = 60_000)]
    program_timeout_ms: u64,

    /// Time limit of each call, in milliseconds
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=86_400_000), default_value_t = 30_000)]
    upstream_call_timeout_ms: u64,
}

/// Accepts the text of a JSON object.
fn object(text: &str) -> Result<String, String> {
    let parsed: Result<serde_json::Map<String, serde_json::Value>, _> = serde_json::from_str(text);
    parsed.map(|_| text.to_owned()).map_err(|error| format!("expected a JSON object: {error}"))
}

impl UpstreamRuns {
    /// Runs the programs one after the other. Calls `finished` after each program with its name and its number of calls. Fails if
    /// a program fails, or if a signal arrives: if a signal ended the process directly, child processes would outlive it.
    pub(crate) fn run(
        &self,
        deployment: &'static Deployment,
        interceptor: Arc<dyn Interceptor>,
        mut finished: impl FnMut(&str, usize) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let programs = self.requests(deployment)?;
        secrets::seal();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::new(format!("cannot start the runtime that talks to upstreams: {error}")))?;
        let work = async {
            let mut signals = ShutdownSignals::listen(true, true)
                .map_err(|error| Failure::new(format!("cannot take over the signals that end a process: {error}")))?;
            let engine = self.engine(deployment, interceptor)?;
            let outcome = tokio::select! {
                outcome = run_all(&engine, programs, &mut finished) => outcome,
                name = signals.recv() => Err(Failure::new(format!("{name} came while programs ran; nothing was written"))),
            };
            engine.shut_down().await;
            outcome
        };
        let outcome = runtime.block_on(work);
        runtime.shutdown_background();
        outcome
    }

    /// Returns the programs with their names.
    fn requests(&self, deployment: &'static Deployment) -> Result<Vec<(String, Request)>, Failure> {
        let stored = || deployment.programs.iter().map(|program| program.name);
        let names: Vec<String> =
            if self.programs.is_empty() { stored().map(str::to_owned).collect() } else { self.programs.clone() };
        if names.is_empty() {
            return Err(Failure::new(format!("{} has no stored programs", self.config.display()))
                .hint("name a file with a program after the config"));
        }
        let request = |name: String| {
            let request = if stored().any(|known| known == name) {
                Request::stored(&*name)
            } else if Path::new(&name).exists() || name.contains(['/', '.']) {
                Request::new(load::read_text(Path::new(&name))?)
            } else {
                let failure = Failure::new(format!("`{name}` is neither a stored program nor a file"));
                return Err(match suggest::closest_match(&name, stored()) {
                    Some(near) => failure.hint(format!("did you mean `{near}`?")),
                    None => failure.hint("name a file with a program, or an entry of `programs` in the config"),
                });
            };
            let request = match &self.context {
                Some(context) => request.context_json(&**context),
                None => request,
            };
            Ok((name, request))
        };
        names.into_iter().map(request).collect()
    }

    fn engine(&self, deployment: &'static Deployment, interceptor: Arc<dyn Interceptor>) -> Result<Engine, Failure> {
        let limits = Settings::defaults(true).limits().wall_clock(Duration::from_millis(self.program_timeout_ms));
        let call_timeout = Duration::from_millis(self.upstream_call_timeout_ms);
        let builder = Engine::builder().deployment(deployment).config_dir(folder(&self.config)).limits(limits);
        let builder = builder.upstreams(move |settings| {
            settings.interceptor = Some(interceptor);
            settings.call_timeout = call_timeout;
        });
        builder.build().map_err(|error| Failure::new(format!("the programs cannot be run: {error}")))
    }
}

async fn run_all(
    engine: &Engine,
    programs: Vec<(String, Request)>,
    finished: &mut impl FnMut(&str, usize) -> Result<(), Failure>,
) -> Result<(), Failure> {
    for (name, request) in programs {
        let answer = engine.run_async(request).await;
        if let Err(failure) = answer.value() {
            return Err(Failure::new(format!("the program {name} failed: {}", sentence(failure)))
                .hint("nothing was written; a program must end with a value here"));
        }
        finished(&name, answer.calls().len())?;
    }
    Ok(())
}

/// Returns the failure of a program as a sentence, with its hint or its place.
fn sentence(failure: &ProgramFailure) -> String {
    let feedback = if failure.feedback.is_empty() { String::new() } else { format!("\n{}", failure.feedback) };
    format!("{}: {}{feedback}", failure.reason.name(), failure.message)
}
