//! The engines that run tests and the programs under test.
//!
//! The tests of a config share engines. Each test has the answers of its own cassette. Engines for each cassette would keep their
//! threads until the command ends. Programs of tests have the limits of a server, and only the tests have the host tools of
//! assertions.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ptc_catalog::Deployment;
use ptc_compiler::files::folder;
use ptc_compiler::serve::cassette::{Cassette, Player};
use ptc_lisp::coverage::Collector;
use ptc_lisp::limits::Cancel;
use ptc_runtime::embed::{Engine, Request, Tool};
use ptc_runtime::settings::Settings;

use super::calls::CallLog;
use super::deployments::{Deployments, Unusable};
use super::file::TestFile;
use super::outcome::TestOutcome;
use super::program_run::{ProgramRun, sentence};
use super::running::{Log, Running, Texts, tools};
use crate::call_sites::{CallSite, call_sites};
use crate::console::Console;
use crate::{Failure, cassette, resolve_lock};

/// Time limit of one test with all programs that it runs.
const TEST_TIMEOUT: Duration = Duration::from_mins(1);
/// Maximum steps of a run of a program with other answers. Unlike a limit of time, they do not depend on the load of the machine.
const MAX_CHECKED_STEPS: u64 = 100_000_000;
/// The owner of all evaluations. The number of a test is their session.
pub(super) const OWNER: &str = "tests";

/// Makes the engines once for each config, and reads each cassette once.
pub(super) struct Benches {
    engines: HashMap<Option<PathBuf>, Arc<Engines>>,
    players: HashMap<(PathBuf, PathBuf), Arc<Player>>,
    deployments: Deployments,
    shared: Shared,
}

/// The engines of a config, and the answers of a cassette.
#[derive(Clone)]
pub(super) struct Bench {
    engines: Arc<Engines>,
    /// `None` if there are no upstreams to call.
    player: Option<Arc<Player>>,
}

/// The engines of a config.
pub(super) struct Engines {
    deployment: Option<&'static Deployment>,
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

/// The parts that the engines of all configs share.
#[derive(Clone, Default)]
pub(super) struct Shared {
    /// Counts the evaluated forms and branches of the programs under test.
    pub(super) coverage: Option<Arc<Collector>>,
    pub(super) texts: Arc<Texts>,
    /// Ends all evaluations.
    pub(super) cancel: Cancel,
}

/// The text of a program under test.
pub(super) struct ProgramText {
    name: String,
    /// The file.
    pub(super) file: PathBuf,
    pub(super) text: Arc<str>,
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
        let shared = Shared { coverage, texts: Arc::default(), cancel };
        Benches { engines: HashMap::new(), players: HashMap::new(), deployments, shared }
    }

    /// Returns the engines and the answers for the files of a test.
    pub(super) fn of(&mut self, file: &Inputs, console: &Console) -> Result<Bench, Unusable> {
        let engines = self.engines(file.config.as_deref(), console)?;
        let player =
            self.player(file, engines.deployment).map_err(|failure| Unusable { failure, files: engines.config_files.clone() })?;
        Ok(Bench { engines, player })
    }

    fn engines(&mut self, config: Option<&Path>, console: &Console) -> Result<Arc<Engines>, Unusable> {
        let key = config.map(Path::to_owned);
        if let Some(made) = self.engines.get(&key) {
            return Ok(Arc::clone(made));
        }
        let frozen = config.map(|config| self.deployments.open(config, console)).transpose()?;
        let deployment = frozen.as_deref().map(|frozen| frozen.deployment);
        let (program_files, config_files) =
            frozen.map(|frozen| (frozen.program_files.clone(), frozen.files.clone())).unwrap_or_default();
        let made = match Engines::new(config, deployment, program_files, self.shared.clone()) {
            Ok(engines) => Arc::new(Engines { config_files, ..engines }),
            Err(failure) => return Err(Unusable { failure, files: config_files }),
        };
        self.engines.insert(key, Arc::clone(&made));
        Ok(made)
    }

    fn player(&mut self, file: &Inputs, deployment: Option<&'static Deployment>) -> Result<Option<Arc<Player>>, Failure> {
        Ok(match (deployment, &file.cassette, &file.config) {
            (Some(deployment), Some(path), Some(config)) => {
                let key = (config.clone(), path.clone());
                if let Some(read) = self.players.get(&key) {
                    return Ok(Some(Arc::clone(read)));
                }
                let read = cassette::open(path, config, deployment.catalog)?;
                self.players.insert(key, Arc::clone(&read));
                Some(read)
            }
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
        })
    }
}

impl Engines {
    /// Makes the engines of a config.
    pub(super) fn new(
        config: Option<&Path>,
        deployment: Option<&'static Deployment>,
        program_files: BTreeMap<String, PathBuf>,
        shared: Shared,
    ) -> Result<Engines, Failure> {
        let Shared { coverage, texts, cancel } = shared;
        let running = Arc::new(Running::new(Arc::clone(&texts), cancel));
        let engine = |tools: Vec<Tool>, limits, coverage: Option<Arc<Collector>>| {
            let mut builder = Engine::builder().limits(limits);
            if let Some(collector) = coverage {
                builder = builder.coverage(collector);
            }
            for tool in tools {
                builder = builder.tool(tool);
            }
            if let Some(deployment) = deployment {
                let config_dir = config.map(folder).unwrap_or_default();
                let interceptor = CallLog(Arc::clone(&running));
                builder = builder.deployment(deployment).config_dir(config_dir).upstreams(move |settings| {
                    settings.interceptor = Some(Arc::new(interceptor));
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
        Ok(Engines { deployment, tests, programs, checked, running, program_files, config_files: Vec::new() })
    }
}

impl Bench {
    /// Returns a bench with given answers.
    pub(super) fn new(engines: &Arc<Engines>, player: Player) -> Bench {
        Bench { engines: Arc::clone(engines), player: Some(Arc::new(player)) }
    }

    /// Returns the files from which the deployment was made: the config, OpenAPI documents, stored programs and the lock file.
    pub(super) fn config_files(&self) -> &[PathBuf] {
        &self.engines.config_files
    }

    /// Returns the engine of programs under test.
    pub(super) fn programs(&self) -> &Engine {
        &self.engines.programs
    }

    /// Returns the engine of programs that run with other answers. Its limits do not depend on time.
    pub(super) fn checked(&self) -> &Engine {
        &self.engines.checked
    }

    pub(super) fn running(&self) -> &Running {
        &self.engines.running
    }

    /// Returns the recorded answers.
    pub(super) fn player(&self) -> Option<&Arc<Player>> {
        self.player.as_ref()
    }

    /// Returns whether a signal has cancelled the evaluations of all tests.
    pub(super) fn is_interrupted(&self) -> bool {
        self.running().cancel().is_cancelled()
    }

    /// Returns a program that a test has run, or `None` if its text cannot be read.
    pub(super) fn program_text(&self, run: &ProgramRun) -> Option<ProgramText> {
        let Some(path) = &run.path else {
            return self.stored_programs().find(|program| program.name == run.name);
        };
        let text = self.running().source(path.clone()).ok()?;
        Some(ProgramText { name: run.name.clone(), file: path.clone(), text })
    }

    /// Returns the stored programs of the config.
    pub(super) fn stored_programs(&self) -> impl Iterator<Item = ProgramText> {
        self.programs().programs().iter().map(|program| {
            let file = self.engines.program_files.get(program.name).cloned().unwrap_or_else(|| program.name.into());
            ProgramText { name: program.name.to_owned(), file, text: program.source.into() }
        })
    }

    /// Returns the calls in the text of a program that name their tools.
    pub(super) fn call_sites(&self, run: &ProgramRun) -> Vec<CallSite> {
        let Some(deployment) = self.engines.deployment else { return Vec::new() };
        call_sites(&self.source(run), [deployment.catalog; 2])
    }

    /// Returns the path of a program for reports.
    pub(super) fn program_file(&self, run: &ProgramRun) -> String {
        let path = run.path.as_ref().or_else(|| self.engines.program_files.get(&run.name));
        path.map_or_else(|| run.name.clone(), |path| path.display().to_string())
    }

    /// Runs a test of a file.
    pub(super) fn run(&self, file: &TestFile, test: usize) -> TestOutcome {
        let started = Instant::now();
        let running = self.running();
        let id = running.begin_test(Path::new(&file.path), self.player());
        let request = Request::new(file.program(test, id)).on_behalf_of(OWNER, id);
        let answer = self.engines.tests.run(request.cancel(running.cancel()));
        let Log { assertions, calls, programs, .. } = running.end_test(id);
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
