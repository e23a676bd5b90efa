//! Runs `record CONFIG [PROGRAM…] -o FILE`, which runs programs with the upstreams and writes a cassette of their answers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use ptc_compiler::serve::cassette::scrub::{MergedRequests, Rule, Rules, ScrubError};
use ptc_compiler::serve::cassette::{Cassette, Recorder};
use ptc_compiler::serve::observe::Observations;
use ptc_text::join_limited;

use crate::console::Console;
use crate::numbers::count;
use crate::observe::{self, Storing};
use crate::shared_args::Messages;
use crate::upstream_runs::UpstreamRuns;
use crate::{Failure, Status, files, frozen};

/// Maximum number of places that a warning lists.
const MAX_LISTED: usize = 10;

/// `ptc-compile record`
///
/// Runs programs with the upstreams of a config, one after the other, and writes their calls with the redacted answers into a file.
/// `run`, `repl` and `test` replay it without the upstreams. The upstreams must be pinned in the lock file. If a program fails,
/// nothing is written.
#[derive(Debug, Args)]
pub(crate) struct Record {
    #[command(flatten)]
    runs: UpstreamRuns,

    /// The cassette
    #[arg(short, long, value_name = "FILE", required = true)]
    output: PathBuf,

    /// Replace the texts and numbers at a path of a tool's answers, such as `petstore/list-pets:[].owner`; can be repeated
    ///
    /// Equal texts get equal replacements, `scrubbed-1` and so on, in all answers and requests, also as words within longer texts. A path
    /// that selects nothing is an error.
    #[arg(long, value_name = "SERVER/TOOL:PATH")]
    scrub: Vec<Rule>,

    /// Replace the matches of a regular expression in all texts of answers and requests; can be repeated
    #[arg(long, value_name = "REGEX", value_parser = Rule::pattern)]
    scrub_pattern: Vec<Rule>,

    /// The environment variable with a secret key, with which equal texts get equal replacements in all recordings
    ///
    /// A replacement is a keyed hash then, in place of a counter. The key has at least 32 characters, such as the output of
    /// `openssl rand -hex 32`.
    #[arg(long, value_name = "VARIABLE")]
    scrub_key_env: Option<String>,

    /// Also infer the shapes of results from the cassette if it is new, as `ptc-compile observe --cassette` does
    #[arg(long)]
    observe: bool,

    /// Also record how long each call takes, so that `--replay-latency` can delay its answer. Recording again changes the file then
    #[arg(long)]
    latency: bool,

    #[command(flatten)]
    pub(crate) messages: Messages,
}

/// Records the programs.
pub(crate) fn run(args: &Record, console: &Console) -> Result<Status, Failure> {
    let config = &args.runs.config;
    refuse_other_file(&args.output)?;
    let Some(frozen) = frozen::open_all(config, console) else { return Ok(Status::Findings) };
    let rules = args.scrub.iter().chain(&args.scrub_pattern).cloned().collect();
    let rules = Rules::new(rules, args.scrub_key_env.as_deref(), frozen.deployment.catalog)
        .map_err(|error| Failure::new(error.to_string()))?;
    let recorder = Recorder::default();
    let recorder = Arc::new(if args.latency { recorder.with_latency() } else { recorder });
    args.runs.run(frozen.deployment, Arc::clone(&recorder) as _, |name, calls| {
        console.message(&format!("recorded {name}: {}\n", count(calls, "call")));
        recorder.finish(name).map_err(|conflict| {
            Failure::new(format!("the programs cannot share a cassette: {conflict}"))
                .hint("nothing was written; each program replays the first answer first, so record these programs into cassettes of their own")
        })
    })?;
    let mut cassette = recorder.cassette();
    let scrubbed = cassette.scrub(&rules).map_err(|error| {
        let hint = match &error {
            ScrubError::Merged(MergedRequests { request, .. }) => {
                format!("nothing was written; both became {request}; select whole texts, so that different texts stay different")
            }
            _ => "nothing was written; `test --faults` shows paths as they are written in a rule".to_owned(),
        };
        Failure::new(error.to_string()).hint(hint)
    })?;
    if scrubbed.values > 0 {
        console.message(&format!("scrubbed {}\n", count(scrubbed.values, "value")));
    }
    if !scrubbed.leftovers.is_empty() {
        console.message(&format!(
            "warning: these places of the cassette still have scrubbed texts, as parts of words, with other letter case, as numbers, in \
             names of members or in headers: {}\n\
             help: select these texts with another --scrub or --scrub-pattern; change names of members and headers in the file\n",
            join_limited(&scrubbed.leftovers, ", ", MAX_LISTED)
        ));
    }
    let failed = cassette.tools_with_failed_connections();
    if !failed.is_empty() {
        console.message(&format!(
            "warning: the cassette has failures that say nothing about the requests, such as an upstream that cannot be reached: {}\n\
             help: record again if programs are to be tested with the answers of these tools\n",
            join_limited(&failed, ", ", MAX_LISTED)
        ));
    }
    let is_new = files::write_if_changed(&args.output, cassette.to_string().as_bytes())?;
    let (verb, path) = (if is_new { "wrote" } else { "unchanged:" }, args.output.display());
    console.message(&format!("{verb} {path} with {}\n", count(cassette.requests(), "request")));
    if args.observe && is_new {
        observe::store(config, frozen.lock, &Observations::from(&cassette), Storing::default(), console)?;
    } else if args.observe {
        // Equal answers that are observed again would count twice.
        console.message(&format!(
            "observed nothing: the cassette is unchanged; if its answers are not observed yet, use `ptc-compile observe {} --cassette {path}`\n",
            config.display()
        ));
    }
    Ok(Status::Clean)
}

/// Refuses to replace a file that is not a cassette: a program whose name is written after `-o` would be lost.
fn refuse_other_file(path: &Path) -> Result<(), Failure> {
    let Ok(bytes) = std::fs::read(path) else { return Ok(()) };
    if bytes.is_empty() || Cassette::is_begun_by(&String::from_utf8_lossy(&bytes)) {
        return Ok(());
    }
    let message = format!("`{}` exists and is not a cassette, so that it is not replaced", path.display());
    Err(Failure::new(message)
        .hint("nothing was recorded; `-o` takes the cassette to write, and programs are arguments without an option"))
}
