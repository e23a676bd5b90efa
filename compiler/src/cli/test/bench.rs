//! The engines that run tests and the programs under test.
//!
//! Two engines share a config and a cassette: that of the tests has the host tools of assertions, and that of the programs has the
//! limits of a server.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ptc_catalog::Deployment;
use ptc_compiler::files::folder;
use ptc_compiler::serve::cassette::{Cassette, Player};
use ptc_lisp::coverage::Collector;
use ptc_lisp::limits::Cancel;
use ptc_runtime::embed::{Args, Engine, Request, Tool};
use ptc_runtime::settings::Settings;
use serde::Deserialize;

use super::calls::CallLog;
use super::deployments::{Deployments, Unusable};
use super::expand::{ASSERT, RUN};
use super::file::TestFile;
use super::injection::Injection;
use super::outcome::{FailedAssertion, TestOutcome};
use super::program_run::{ProgramRun, run_program, sentence};
use super::shortened;
use crate::console::Console;
use crate::frozen::Frozen;
use crate::{Failure, cassette, load, resolve_lock};

/// Time limit of one test with all programs that it runs.
const TEST_TIMEOUT: Duration = Duration::from_mins(1);
/// Maximum steps of a run of a program with other answers. Unlike a limit of time, they do not depend on the load of the machine.
const MAX_CHECKED_STEPS: u64 = 100_000_000;
/// The owner of all evaluations. The number of a test is their session.
pub(super) const OWNER: &str = "tests";

/// Makes the engines, once for each config and cassette.
pub(super) struct Benches {
    made: HashMap<(Option<PathBuf>, Option<PathBuf>), Bench>,
    deployments: Deployments,
    shared: Shared,
}

/// The engines of a config and a cassette.
#[derive(Clone)]
pub(super) struct Bench(Arc<Engines>);

struct Engines {
    tests: Engine,
    programs: Arc<Engine>,
    /// The engine of programs that run with other answers.
    checked: Engine,
    running: Arc<Running>,
    /// The files of the stored programs.
    program_files: BTreeMap<String, PathBuf>,
    /// The files from which the deployment was made.
    config_files: Vec<PathBuf>,
}

/// The tests that are running, by their number.
#[derive(Default)]
pub(super) struct Running {
    next: AtomicU64,
    tests: Mutex<HashMap<u64, Log>>,
    /// The changed answers of other runs of programs.
    replays: Mutex<HashMap<u64, Arc<Injection>>>,
    /// The texts of program files.
    sources: Mutex<HashMap<PathBuf, Arc<str>>>,
    texts: Arc<Texts>,
    /// Ends all evaluations.
    cancel: Cancel,
}

/// The parts that the engines of all cassettes share.
#[derive(Clone, Default)]
pub(super) struct Shared {
    /// Counts the evaluated forms and branches of the programs under test.
    pub(super) coverage: Option<Arc<Collector>>,
    pub(super) texts: Arc<Texts>,
    /// Ends all evaluations.
    pub(super) cancel: Cancel,
}

/// The texts of programs with their files. Coverage is counted by text, so that no two files may have the same.
#[derive(Default)]
pub(super) struct Texts(Mutex<HashMap<Arc<str>, Vec<PathBuf>>>);

impl Texts {
    /// Returns a text that no other file has: with a comment at its end if another file has the given one.
    fn distinct(&self, text: Arc<str>, file: &Path) -> Arc<str> {
        let real = file.canonicalize().unwrap_or_else(|_| file.to_owned());
        let mut known = lock(&self.0);
        let files = known.entry(Arc::clone(&text)).or_default();
        let at = files.iter().position(|known| *known == real).unwrap_or_else(|| {
            files.push(real);
            files.len() - 1
        });
        if at == 0 { text } else { format!("{text}\n; copy {at}").into() }
    }
}

/// The text of a program under test.
pub(super) struct ProgramText {
    name: String,
    /// The file.
    pub(super) file: PathBuf,
    pub(super) text: Arc<str>,
}

/// What a test has reported.
#[derive(Default)]
struct Log {
    file: PathBuf,
    assertions: Vec<Assertion>,
    calls: Vec<String>,
    /// The programs that it has run.
    programs: Vec<ProgramRun>,
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The files that a test or a case names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Inputs {
    /// The path of the file with the test.
    pub(super) path: String,
    pub(super) config: Option<PathBuf>,
    pub(super) cassette: Option<PathBuf>,
}

impl Inputs {
    /// Returns the files, and the lock file of the config.
    pub(super) fn files(&self) -> impl Iterator<Item = PathBuf> {
        let lock = self.config.as_deref().map(resolve_lock::path);
        // Without a config, one that appears beside the file is used.
        let missing = self.config.is_none().then(|| Path::new(&self.path).with_file_name("upstreams.json"));
        self.config.iter().chain(&self.cassette).cloned().chain(lock).chain(missing)
    }
}

impl Benches {
    /// Creates an empty set. `coverage` counts the evaluated forms and branches of the programs under test, and `cancel` ends all
    /// evaluations.
    pub(super) fn new(coverage: Option<Arc<Collector>>, deployments: Deployments, cancel: Cancel) -> Benches {
        Benches { made: HashMap::new(), deployments, shared: Shared { coverage, texts: Arc::default(), cancel } }
    }

    /// Returns the engines for the files of a test.
    pub(super) fn of(&mut self, file: &Inputs, console: &Console) -> Result<Bench, Unusable> {
        let key = (file.config.clone(), file.cassette.clone());
        if let Some(made) = self.made.get(&key) {
            return Ok(made.clone());
        }
        let frozen = file.config.as_deref().map(|config| self.deployments.open(config, console)).transpose()?;
        let bench = Bench::new(file, frozen.as_deref(), self.shared.clone()).map_err(|failure| {
            let files = frozen.map(|frozen| frozen.files.clone()).unwrap_or_default();
            Unusable { failure, files }
        })?;
        // Without a cassette, messages name the file.
        if file.cassette.is_some() {
            self.made.insert(key, bench.clone());
        }
        Ok(bench)
    }
}

impl Bench {
    fn new(file: &Inputs, frozen: Option<&Frozen>, shared: Shared) -> Result<Bench, Failure> {
        let deployment = frozen.map(|frozen| frozen.deployment);
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
        let (program_files, config_files) =
            frozen.map(|frozen| (frozen.program_files.clone(), frozen.files.clone())).unwrap_or_default();
        let bench = Bench::with_player(file, deployment, player.as_ref(), program_files, shared)?;
        Ok(bench.with_config_files(config_files))
    }

    /// Makes the engines with given answers.
    pub(super) fn with_player(
        file: &Inputs,
        deployment: Option<&'static Deployment>,
        player: Option<&Arc<Player>>,
        program_files: BTreeMap<String, PathBuf>,
        shared: Shared,
    ) -> Result<Bench, Failure> {
        let Shared { coverage, texts, cancel } = shared;
        let running = Arc::new(Running { texts: Arc::clone(&texts), cancel, ..Running::default() });
        let engine = |tools: Vec<Tool>, limits, coverage: Option<Arc<Collector>>| {
            let mut builder = Engine::builder().limits(limits);
            if let Some(collector) = coverage {
                builder = builder.coverage(collector);
            }
            for tool in tools {
                builder = builder.tool(tool);
            }
            if let Some(deployment) = deployment {
                let config_dir = file.config.as_deref().map(folder).unwrap_or_default();
                let interceptor = player.map(|player| CallLog { player: Arc::clone(player), running: Arc::clone(&running) });
                builder = builder.deployment(deployment).config_dir(config_dir).upstreams(move |settings| {
                    settings.interceptor = interceptor.map(|interceptor| Arc::new(interceptor) as _);
                });
            }
            builder.build().map_err(|error| Failure::new(format!("the tests cannot be run: {error}")))
        };
        let limits = Settings::defaults(deployment.is_some()).limits();
        let programs = Arc::new(engine(Vec::new(), limits.clone(), coverage)?);
        let checked = engine(Vec::new(), limits.clone().wall_clock(TEST_TIMEOUT).steps(Some(MAX_CHECKED_STEPS)), None)?;
        let tests = engine(tools(&running, &programs)?, limits.wall_clock(TEST_TIMEOUT), None)?;
        for program in programs.programs() {
            if let Some(file) = program_files.get(program.name) {
                texts.distinct(program.source.into(), file);
            }
        }
        Ok(Bench(Arc::new(Engines { tests, programs, checked, running, program_files, config_files: Vec::new() })))
    }

    fn with_config_files(mut self, files: Vec<PathBuf>) -> Bench {
        if let Some(engines) = Arc::get_mut(&mut self.0) {
            engines.config_files = files;
        }
        self
    }

    /// Returns the files from which the deployment was made: the config, OpenAPI documents, stored programs and the lock file.
    pub(super) fn config_files(&self) -> &[PathBuf] {
        &self.0.config_files
    }

    /// Returns the engine of programs under test.
    pub(super) fn programs(&self) -> &Engine {
        &self.0.programs
    }

    /// Returns the engine of programs that run with other answers. Its limits do not depend on time.
    pub(super) fn checked(&self) -> &Engine {
        &self.0.checked
    }

    pub(super) fn running(&self) -> &Running {
        &self.0.running
    }

    /// Returns whether a signal has cancelled the evaluations of all tests.
    pub(super) fn is_interrupted(&self) -> bool {
        self.0.running.cancel.is_cancelled()
    }

    /// Returns a program that a test has run, or `None` if its text cannot be read.
    pub(super) fn program_text(&self, run: &ProgramRun) -> Option<ProgramText> {
        let Some(path) = &run.path else {
            return self.stored_programs().find(|program| program.name == run.name);
        };
        let text = self.0.running.source(path.clone()).ok()?;
        Some(ProgramText { name: run.name.clone(), file: path.clone(), text })
    }

    /// Returns the stored programs of the config.
    pub(super) fn stored_programs(&self) -> impl Iterator<Item = ProgramText> {
        self.0.programs.programs().iter().map(|program| {
            let file = self.0.program_files.get(program.name).cloned().unwrap_or_else(|| program.name.into());
            ProgramText { name: program.name.to_owned(), file, text: program.source.into() }
        })
    }

    /// Returns the path of a program for reports.
    pub(super) fn program_file(&self, run: &ProgramRun) -> String {
        let path = run.path.as_ref().or_else(|| self.0.program_files.get(&run.name));
        path.map_or_else(|| run.name.clone(), |path| path.display().to_string())
    }

    /// Runs a test of a file.
    pub(super) fn run(&self, file: &TestFile, test: usize) -> TestOutcome {
        let started = Instant::now();
        let Engines { tests, running, .. } = &*self.0;
        let id = running.next.fetch_add(1, Ordering::Relaxed);
        lock(&running.tests).insert(id, Log { file: (&file.path).into(), ..Log::default() });
        let request = Request::new(file.program(test, id)).on_behalf_of(OWNER, id);
        let answer = tests.run(request.cancel(running.cancel.clone()));
        let Log { assertions, calls, programs, .. } = lock(&running.tests).remove(&id).unwrap_or_default();
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
            programs,
            duration: started.elapsed(),
            is_interrupted: false,
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

impl Running {
    /// Returns what ends an evaluation.
    pub(super) fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }

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

    /// Adds a program to those that a test has run.
    pub(super) fn add_program(&self, test: u64, program: ProgramRun) {
        if let Some(test) = lock(&self.tests).get_mut(&test).filter(|test| !test.programs.contains(&program)) {
            test.programs.push(program);
        }
    }

    /// Returns the file of a test.
    pub(super) fn test_file(&self, test: u64) -> PathBuf {
        lock(&self.tests).get(&test).map(|test| test.file.clone()).unwrap_or_default()
    }

    /// Begins a run of a program with changed answers. Returns its number.
    pub(super) fn begin_replay(&self, injection: Arc<Injection>) -> u64 {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        lock(&self.replays).insert(id, injection);
        id
    }

    /// Ends a run of a program with changed answers.
    pub(super) fn end_replay(&self, id: u64) {
        lock(&self.replays).remove(&id);
    }

    /// Returns the changed answers of a run, if it has some.
    pub(super) fn replay(&self, id: u64) -> Option<Arc<Injection>> {
        lock(&self.replays).get(&id).cloned()
    }

    /// Returns the message about the last call of a test without a recorded answer.
    pub(super) fn refusal(&self, test: u64) -> Option<String> {
        lock(&self.tests).get(&test)?.refused.clone()
    }

    /// Returns the text of a program file, which is read once.
    pub(super) fn source(&self, path: PathBuf) -> Result<Arc<str>, String> {
        if let Some(known) = lock(&self.sources).get(&path) {
            return Ok(Arc::clone(known));
        }
        let text: Arc<str> = load::read_text(&path).map_err(|failure| failure.to_string())?.into();
        let text = self.texts.distinct(text, &path);
        lock(&self.sources).insert(path, Arc::clone(&text));
        Ok(text)
    }
}
