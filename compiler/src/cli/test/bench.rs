//! The engines that run tests and the programs under test.
//!
//! Two engines share a config and a cassette: that of the tests has the host tools of assertions, and that of the programs has the
//! limits of a server.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ptc_catalog::Deployment;
use ptc_compiler::files::folder;
use ptc_compiler::json::Json;
use ptc_compiler::serve::cassette::{Cassette, Player};
use ptc_lisp::print::readable;
use ptc_runtime::embed::{Answer, Args, Engine, Request, Tool, ToolFailure};
use ptc_runtime::evaluation::Failure as ProgramFailure;
use ptc_runtime::settings::Settings;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::calls::CallLog;
use super::edn::Edn;
use super::expand::{ASSERT, RUN};
use super::file::TestFile;
use super::outcome::{FailedAssertion, TestOutcome};
use crate::console::Console;
use crate::{Failure, cassette, frozen, load};

/// Time limit of one test with all programs that it runs.
const TEST_TIMEOUT: Duration = Duration::from_mins(1);
/// The owner of all evaluations. The number of a test is their session.
const OWNER: &str = "tests";
/// Maximum bytes of a value in a report.
const MAX_SHOWN: usize = 2000;

/// Makes the engines, once for each config and cassette.
#[derive(Default)]
pub(super) struct Benches {
    made: HashMap<(Option<PathBuf>, Option<PathBuf>), Bench>,
    deployments: HashMap<PathBuf, &'static Deployment>,
}

/// The engines of a config and a cassette.
#[derive(Clone)]
pub(super) struct Bench(Arc<Engines>);

struct Engines {
    tests: Engine,
    running: Arc<Running>,
}

/// The tests that are running, by their number.
#[derive(Default)]
pub(super) struct Running {
    next: AtomicU64,
    tests: Mutex<HashMap<u64, Log>>,
    /// The texts of program files.
    sources: Mutex<HashMap<PathBuf, Arc<str>>>,
}

/// What a test has reported.
#[derive(Default)]
struct Log {
    file: PathBuf,
    assertions: Vec<Assertion>,
    calls: Vec<String>,
    /// The message about a call without a recorded answer.
    refused: Option<String>,
}

/// The arguments of the host tool of assertions.
#[derive(Deserialize)]
struct Assertion {
    test: u64,
    site: usize,
    pass: bool,
    expected: Option<String>,
    actual: String,
    context: Vec<String>,
    message: Option<String>,
}

/// The arguments of the host tool that runs a program.
#[derive(Deserialize)]
struct ProgramRun {
    test: u64,
    program: String,
    args: String,
    /// Whether a failure is a result of the tool.
    caught: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Benches {
    /// Returns the engines for a file.
    pub(super) fn of(&mut self, file: &TestFile, console: &Console) -> Result<Bench, Failure> {
        let key = (file.config.clone(), file.cassette.clone());
        if let Some(made) = self.made.get(&key) {
            return Ok(made.clone());
        }
        let deployment = file.config.as_deref().map(|config| self.deployment(config, console)).transpose()?;
        let bench = Bench::new(file, deployment)?;
        // Without a cassette, messages name the file.
        if file.cassette.is_some() {
            self.made.insert(key, bench.clone());
        }
        Ok(bench)
    }

    fn deployment(&mut self, config: &Path, console: &Console) -> Result<&'static Deployment, Failure> {
        if let Some(known) = self.deployments.get(config) {
            return Ok(known);
        }
        let opened = frozen::open(config, console);
        let opened = opened.ok_or_else(|| {
            Failure::new(format!("the config {} cannot be used", config.display()))
                .hint(format!("`ptc-compile --check {} --locked` shows its faults", config.display()))
        })?;
        self.deployments.insert(config.to_owned(), opened);
        Ok(opened)
    }
}

impl Bench {
    fn new(file: &TestFile, deployment: Option<&'static Deployment>) -> Result<Bench, Failure> {
        let player = match (deployment, &file.cassette, &file.config) {
            (Some(deployment), Some(path), Some(config)) => Some(cassette::open(path, config, deployment.catalog)?),
            (Some(deployment), None, _) => {
                let name = format!("of {}, which names none,", file.path);
                Some(Arc::new(Player::new(name, &Cassette::default(), deployment.catalog)))
            }
            (None, Some(path), _) => {
                let failure = Failure::new(format!("the cassette {} needs the config of its upstreams", path.display()));
                return Err(
                    failure.hint("name it in the namespace, as `(ns my-test {:config \"upstreams.json\" :cassette \"…\"})`")
                );
            }
            _ => None,
        };
        let running = Arc::new(Running::default());
        let engine = |tools: Vec<Tool>, limits| {
            let mut builder = Engine::builder().limits(limits);
            for tool in tools {
                builder = builder.tool(tool);
            }
            if let Some(deployment) = deployment {
                let config_dir = file.config.as_deref().map(folder).unwrap_or_default();
                let interceptor = player.clone().map(|player| CallLog { player, running: Arc::clone(&running) });
                builder = builder.deployment(deployment).config_dir(config_dir).upstreams(move |settings| {
                    settings.interceptor = interceptor.map(|interceptor| Arc::new(interceptor) as _);
                });
            }
            builder.build().map_err(|error| Failure::new(format!("the tests cannot be run: {error}")))
        };
        let limits = Settings::defaults(deployment.is_some()).limits();
        let programs = Arc::new(engine(Vec::new(), limits.clone())?);
        let tests = engine(tools(&running, &programs)?, limits.wall_clock(TEST_TIMEOUT))?;
        Ok(Bench(Arc::new(Engines { tests, running })))
    }

    /// Runs a test of a file.
    pub(super) fn run(&self, file: &TestFile, test: usize) -> TestOutcome {
        let started = Instant::now();
        let Engines { tests, running } = &*self.0;
        let id = running.next.fetch_add(1, Ordering::Relaxed);
        lock(&running.tests).insert(id, Log { file: (&file.path).into(), ..Log::default() });
        let answer = tests.run(Request::new(file.program(test, id)).on_behalf_of(OWNER, id));
        let Log { assertions, calls, .. } = lock(&running.tests).remove(&id).unwrap_or_default();
        let count = assertions.len();
        let failures =
            assertions.into_iter().filter(|assertion| !assertion.pass).map(|assertion| assertion.failed(file)).collect();
        let (name, line) = file.tests.get(test).map_or((String::new(), 1), |test| (file.full_name(&test.name), test.line));
        TestOutcome {
            file: file.path.clone(),
            name,
            line,
            assertions: count,
            failures,
            error: answer.value().err().map(sentence),
            calls,
            duration: started.elapsed(),
        }
    }
}

impl Assertion {
    fn failed(self, file: &TestFile) -> FailedAssertion {
        let (line, form) = file.sites.get(self.site).map_or((1, String::new()), |site| (site.line, site.form.clone()));
        let expected = self.expected.unwrap_or_else(|| form.clone());
        let Assertion { context, message, actual, .. } = self;
        let failed = FailedAssertion { line, form, context, message, expected, actual, differences: Vec::new() }.compared();
        FailedAssertion { expected: shortened(&failed.expected), actual: shortened(&failed.actual), ..failed }
    }
}

/// Truncates a value for a report.
fn shortened(text: &str) -> String {
    let (text, is_cut) = ptc_text::truncate_utf8(text, MAX_SHOWN);
    format!("{text}{}", if is_cut { "…" } else { "" })
}

/// Returns the host tools of tests.
fn tools(running: &Arc<Running>, programs: &Arc<Engine>) -> Result<Vec<Tool>, Failure> {
    let log = Arc::clone(running);
    let signature =
        "(test :int, site :int, pass :bool, expected :string?, actual :string, context [:string], message :string?) -> :bool";
    let assert = Tool::new_async(ASSERT, signature, move |args: Args| {
        let log = Arc::clone(&log);
        async move {
            let assertion: Assertion = args.parse()?;
            let is_passed = assertion.pass;
            if let Some(test) = lock(&log.tests).get_mut(&assertion.test) {
                test.assertions.push(assertion);
            }
            Ok(is_passed)
        }
    });
    let (running, programs) = (Arc::clone(running), Arc::clone(programs));
    let run = Tool::new_async(RUN, "(test :int, program :string, args :string, caught :bool) -> :any", move |args: Args| {
        let (running, programs) = (Arc::clone(&running), Arc::clone(&programs));
        async move { run_program(&running, &programs, args.parse()?).await }
    });
    let failed = |error| Failure::new(format!("the tests cannot be run: {error}"));
    Ok(vec![assert.map_err(failed)?, run.map_err(failed)?])
}

/// Runs a program. Returns `{"ok": true, "value": …}` with a tagged value, or `{"ok": false, "message": …}`.
async fn run_program(running: &Running, programs: &Engine, run: ProgramRun) -> Result<Box<RawValue>, ToolFailure> {
    let args = Edn::parse(&run.args).ok_or_else(|| ToolFailure::new("the arguments of a program are data, without functions"))?;
    let request = if programs.programs().iter().any(|known| known.name == run.program) {
        Request::stored(&*run.program)
    } else {
        let file = lock(&running.tests).get(&run.test).map(|test| test.file.clone()).unwrap_or_default();
        Request::new(&*running.source(file.with_file_name(&run.program))?)
    };
    let request = request.context_json(args.to_json().canonical()).on_behalf_of(OWNER, run.test);
    let answer = programs.run_async(request).await;
    // A cassette without the answer must not pass for a program that fails.
    if let Some(message) = running.refusal(run.test).filter(|_| run.caught) {
        return Err(ToolFailure::new(format!("the program {}: {message}", run.program)));
    }
    let outcome = match (tagged(&answer), run.caught) {
        (Ok(value), _) => Json::object().with("ok", Json::Bool(true)).with("value", value),
        (Err(message), true) => Json::object().with("ok", Json::Bool(false)).with("message", Json::String(message)),
        (Err(message), false) => return Err(ToolFailure::new(format!("the program {}: {message}", run.program))),
    };
    Ok(RawValue::from_string(outcome.canonical())?)
}

/// Returns the value of a program, or why there is none.
fn tagged(answer: &Answer) -> Result<Json, String> {
    let value = readable(answer.value().map_err(sentence)?);
    let value =
        Edn::parse(&value).ok_or_else(|| "its value contains something that is not data, such as a function".to_owned())?;
    Ok(value.tagged())
}

/// Describes the failure of a test or a program. The lines of a test are those of its file, but not the columns and the excerpt, since
/// its forms are expanded.
fn sentence(failure: &ProgramFailure) -> String {
    let own = format!("tool/{RUN}: ");
    let message = failure.message.replace(&own, "");
    // The hint about tools is not meant for those of the tests.
    let is_own = message != failure.message;
    let is_shown = |line: &&str| match line.trim_start() {
        line if line.starts_with("hint: ") => !is_own,
        line => line.starts_with("at line ") || line.starts_with("in ") && !line.starts_with("in ptc-test-"),
    };
    let mut text = format!("{}: {message}", failure.reason.name());
    for line in failure.feedback.lines().filter(is_shown) {
        text.push('\n');
        text.push_str(line.split_once(", column ").map_or(line, |(line, _)| line));
    }
    text
}

impl Running {
    /// Adds a call to the log of a test.
    pub(super) fn add_call(&self, test: u64, call: String) {
        if let Some(test) = lock(&self.tests).get_mut(&test) {
            test.calls.push(call);
        }
    }

    /// Notes that a test made a call without a recorded answer.
    pub(super) fn refuse_call(&self, test: u64, message: String) {
        if let Some(test) = lock(&self.tests).get_mut(&test) {
            test.refused = Some(message);
        }
    }

    /// Returns the message about the last call of a test without a recorded answer.
    fn refusal(&self, test: u64) -> Option<String> {
        lock(&self.tests).get(&test)?.refused.clone()
    }

    /// Returns the text of a program file, which is read once.
    fn source(&self, path: PathBuf) -> Result<Arc<str>, ToolFailure> {
        if let Some(known) = lock(&self.sources).get(&path) {
            return Ok(Arc::clone(known));
        }
        let text: Arc<str> = load::read_text(&path).map_err(|failure| ToolFailure::new(failure.to_string()))?.into();
        lock(&self.sources).insert(path, Arc::clone(&text));
        Ok(text)
    }
}
