//! Holds the state of running tests: their logs, their recorded answers, and the texts of their programs.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ptc_compiler::serve::cassette::Player;
use ptc_lisp::limits::Cancel;
use ptc_runtime::embed::{Args, Engine, Tool};
use serde::Deserialize;

use super::expand::{ASSERT, RUN};
use super::file::TestFile;
use super::injection::Injection;
use super::outcome::FailedAssertion;
use super::program_run::{ProgramRun, run_program};
use super::shortened;
use crate::{Failure, load};

/// The evaluations that are running, by their number, which is their session.
#[derive(Default)]
pub(super) struct Running {
    next: AtomicU64,
    tests: Mutex<HashMap<u64, Log>>,
    /// The answers of each evaluation, and their changes.
    answers: Mutex<HashMap<u64, RunAnswers>>,
    /// The texts of program files.
    sources: Mutex<HashMap<PathBuf, Arc<str>>>,
    texts: Arc<Texts>,
    /// Ends all evaluations.
    cancel: Cancel,
}

/// The answers of upstreams in one evaluation.
#[derive(Clone)]
pub(super) struct RunAnswers {
    pub(super) player: Arc<Player>,
    /// Changes the answers of the player.
    pub(super) injection: Option<Arc<Injection>>,
}

/// The texts of programs with their files. Coverage is counted by text, so that no two files may have the same.
#[derive(Default)]
pub(super) struct Texts(Mutex<HashMap<Arc<str>, Vec<PathBuf>>>);

impl Texts {
    /// Returns a text that no other file has: with a comment at its end if another file has the given one.
    pub(super) fn distinct(&self, text: Arc<str>, file: &Path) -> Arc<str> {
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

/// What a test has reported.
#[derive(Default)]
pub(super) struct Log {
    pub(super) file: PathBuf,
    pub(super) assertions: Vec<Assertion>,
    pub(super) calls: Vec<String>,
    /// The programs that it has run.
    pub(super) programs: Vec<ProgramRun>,
    /// The message about a call without a recorded answer.
    refused: Option<String>,
}

/// The arguments of the host tool of assertions.
#[derive(Deserialize)]
pub(super) struct Assertion {
    test: u64,
    site: usize,
    pub(super) pass: bool,
    expected: Option<String>,
    actual: String,
    context: Vec<String>,
    message: Option<String>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Assertion {
    pub(super) fn failed(self, file: &TestFile) -> FailedAssertion {
        let (line, form) = file.sites.get(self.site).map_or((1, String::new()), |site| (site.line, site.form.clone()));
        let expected = self.expected.unwrap_or_else(|| form.clone());
        let Assertion { context, message, actual, .. } = self;
        let failed = FailedAssertion { line, form, context, message, expected, actual, differences: Vec::new() }.compared();
        FailedAssertion { expected: shortened(&failed.expected), actual: shortened(&failed.actual), ..failed }
    }
}

/// Returns the host tools of tests.
pub(super) fn tools(running: &Arc<Running>, programs: &Arc<Engine>) -> Result<Vec<Tool>, Failure> {
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
    pub(super) fn new(texts: Arc<Texts>, cancel: Cancel) -> Running {
        Running { texts, cancel, ..Running::default() }
    }

    /// Returns the token that cancels all evaluations.
    pub(super) fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }

    /// Begins a test with the answers of a player, if its config has upstreams. Returns its number.
    pub(super) fn begin_test(&self, file: &Path, player: Option<&Arc<Player>>) -> u64 {
        let id = self.begin_run(player, None);
        lock(&self.tests).insert(id, Log { file: file.to_owned(), ..Log::default() });
        id
    }

    /// Ends a test. Returns what it has reported.
    pub(super) fn end_test(&self, id: u64) -> Log {
        self.end_run(id);
        lock(&self.tests).remove(&id).unwrap_or_default()
    }

    /// Begins a run of a program with the answers of a player, which an injection changes. Returns its number.
    pub(super) fn begin_run(&self, player: Option<&Arc<Player>>, injection: Option<Arc<Injection>>) -> u64 {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        if let Some(player) = player {
            lock(&self.answers).insert(id, RunAnswers { player: Arc::clone(player), injection });
        }
        id
    }

    /// Ends a run of a program.
    pub(super) fn end_run(&self, id: u64) {
        lock(&self.answers).remove(&id);
    }

    /// Returns the answers of a run. `None` if the run has ended, or its config has no upstreams.
    pub(super) fn answers(&self, id: u64) -> Option<RunAnswers> {
        lock(&self.answers).get(&id).cloned()
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
