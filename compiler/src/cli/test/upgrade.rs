//! Runs recorded programs with the tools before and after a change of the upstreams, for `diff` and `update`.
//!
//! The answers of the cassettes are those of the former tools. For the current tools they are adapted to their output schemas: members
//! that a schema no longer has are removed, and values that it refuses are replaced by generated ones.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ptc_catalog::{Catalog, Deployment};
use ptc_compiler::files::folder;
use ptc_compiler::serve::cassette::{Cassette, Player};
use ptc_lisp::Span;
use ptc_lisp::print::readable;
use ptc_runtime::embed::Answer;

use super::bench::{Bench, Inputs, Shared};
use super::cases::CaseFile;
use super::checks::adapted;
use super::diff::{Difference, differences};
use super::discover;
use super::file::TestFile;
use super::injection::{AsRecorded, Injection};
use super::outcome::{TestOutcome, Verdict};
use super::program_run::ProgramRun;
use super::{Subject, TestRun};
use crate::{Failure, load};

/// Maximum number of shown differences of a value.
const MAX_DIFFERENCES: usize = 3;

/// A change of the tools of a config.
pub(crate) struct Upgrade<'a> {
    pub(crate) config: &'a Path,
    pub(crate) old: &'static Deployment,
    pub(crate) new: &'static Deployment,
    /// The files of the stored programs by name.
    pub(crate) program_files: BTreeMap<String, PathBuf>,
}

/// A program, and what the change does to it.
pub(crate) struct ProgramEffect {
    /// The program with its arguments.
    pub(crate) program: String,
    /// The path of the program.
    pub(crate) file: String,
    /// The text of the program.
    pub(crate) source: String,
    /// The name of the first test that runs it, or that fails with the current tools.
    pub(crate) test: String,
    /// The tools that it calls, by upstream and name.
    pub(crate) tools: BTreeSet<(String, String)>,
    pub(crate) effect: Effect,
}

/// What a change of tools does to a program.
pub(crate) enum Effect {
    /// It gives the same value.
    None,
    /// It fails, at the form if that is known.
    Fails(String, Option<Span>),
    /// It gives another value, which a test refuses.
    TestFails(String),
    /// It gives another value, which no test refuses.
    OtherValue(String),
    /// It cannot be compared, for this reason.
    Unknown(String),
}

impl Upgrade<'_> {
    /// Runs the programs of tests. `paths` are files and folders with tests. If there are none, those beside the config are used.
    ///
    /// # Errors
    ///
    /// A folder or a file cannot be read.
    pub(crate) fn effects(&self, paths: &[PathBuf]) -> Result<Vec<ProgramEffect>, Failure> {
        let paths = if paths.is_empty() { discover::beside(&folder(self.config))? } else { discover::files(paths)?.files };
        let mut effects: Vec<ProgramEffect> = Vec::new();
        for path in paths {
            let text = load::read_text(&path)?;
            // `test` reports files that cannot be used.
            if path.to_string_lossy().ends_with(discover::CASES) {
                let Ok(file) = CaseFile::read(&path, &text) else { continue };
                for (line, case) in &file.cases {
                    self.compare(&file.inputs(case), &Subject::Case(&file, *line, case), &mut effects)?;
                }
            } else {
                let Ok(file) = TestFile::read(&path, &text) else { continue };
                for test in 0..file.tests.len() {
                    self.compare(&file.inputs(), &Subject::Test(&file, test), &mut effects)?;
                }
            }
        }
        Ok(effects)
    }

    /// Runs one test with both catalogs, and adds the effects on its programs.
    fn compare(&self, inputs: &Inputs, subject: &Subject<'_>, effects: &mut Vec<ProgramEffect>) -> Result<(), Failure> {
        let is_same = |config: &Path| match (config.canonicalize(), self.config.canonicalize()) {
            (Ok(one), Ok(other)) => one == other,
            _ => false,
        };
        let (Some(cassette), true) = (&inputs.cassette, inputs.config.as_deref().is_some_and(is_same)) else { return Ok(()) };
        let name = cassette.display().to_string();
        // `test` reports cassettes that cannot be used.
        let recorded = load::read_text(cassette).ok().and_then(|text| Cassette::read(&name, &text).ok());
        let Some(recorded) = recorded else { return Ok(()) };
        let stale = recorded.check(self.old.catalog).err();
        let bench = |deployment: &'static Deployment, cassette: &Cassette| {
            let player = Arc::new(Player::new(name.clone(), cassette, deployment.catalog));
            Bench::with_player(inputs, Some(deployment), Some(&player), self.program_files.clone(), Shared::default())
        };
        let old_bench = bench(self.old, &recorded)?;
        let new_bench = bench(self.new, &self.adapted(recorded))?;
        let run = |bench: &Bench| TestRun { inputs: inputs.clone(), subject: subject.clone(), bench: bench.clone() }.run();
        let (before, after) = (run(&old_bench), run(&new_bench));
        for program in &before.programs {
            let (old_answer, tools) = replay(&old_bench, program);
            let effect = match &stale {
                Some(stale) => Effect::Unknown(stale.to_string()),
                None if before.verdict() != Verdict::Passed => Effect::Unknown("its test fails with the pinned tools".to_owned()),
                None => effect(old_answer, replay(&new_bench, program).0, &after),
            };
            let described = program.described();
            let effect = ProgramEffect {
                file: old_bench.program_file(program),
                source: old_bench.source(program),
                program: described,
                test: after.name.clone(),
                tools,
                effect,
            };
            match effects.iter_mut().find(|known| known.program == effect.program && known.file == effect.file) {
                Some(known) if known.effect.rank() < effect.effect.rank() => *known = effect,
                Some(_) => {}
                None => effects.push(effect),
            }
        }
        Ok(())
    }

    /// Adapts recorded answers to the output schemas of the current tools.
    fn adapted(&self, mut cassette: Cassette) -> Cassette {
        let tool =
            |catalog: &'static Catalog, server: &str, tool: &str| catalog.upstream(server).and_then(|known| known.tool(tool));
        cassette.change_values(|server, name, value| {
            if let (Some(before), Some(now)) = (tool(self.old.catalog, server, name), tool(self.new.catalog, server, name))
                && before.digest != now.digest
            {
                *value = adapted(before, now, value);
            }
        });
        cassette
    }
}

impl Effect {
    /// Whether the program is broken for certain: it fails, or a test of it does.
    pub(crate) fn is_error(&self) -> bool {
        matches!(self, Effect::Fails(..) | Effect::TestFails(_))
    }

    fn rank(&self) -> usize {
        match self {
            Effect::None => 0,
            Effect::Unknown(_) => 1,
            Effect::OtherValue(_) => 2,
            Effect::TestFails(_) => 3,
            Effect::Fails(..) => 4,
        }
    }
}

/// Runs a program with the recorded answers. Returns its answer, or why it cannot be run, and the tools that it called.
fn replay(bench: &Bench, program: &ProgramRun) -> (Result<Answer, String>, BTreeSet<(String, String)>) {
    let injection = Arc::new(Injection::new(AsRecorded));
    let answer = bench.replay(program, Arc::clone(&injection));
    let calls = injection.seen().calls.into_iter();
    (answer, calls.map(|call| (call.key.upstream.to_owned(), call.key.tool.to_owned())).collect())
}

/// Compares the answers of a program with both catalogs. `test` is the test with the current one.
fn effect(old: Result<Answer, String>, new: Result<Answer, String>, test: &TestOutcome) -> Effect {
    let (before, after) = match (old, new) {
        (Ok(before), Ok(after)) => (before, after),
        (Err(message), _) | (_, Err(message)) => return Effect::Unknown(message),
    };
    match (before.value(), after.value()) {
        (Ok(before), Ok(after)) => {
            let (before, after) = (readable(before), readable(after));
            let is_failed = test.verdict() != Verdict::Passed;
            match before == after {
                true => Effect::None,
                false if is_failed => Effect::TestFails(changed(&before, &after)),
                false => Effect::OtherValue(changed(&before, &after)),
            }
        }
        (Ok(_), Err(failure)) => Effect::Fails(failure.to_string(), failure.span),
        (Err(before), Err(after)) if before.to_string() != after.to_string() => Effect::Fails(after.to_string(), after.span),
        (Err(_), Err(_)) => Effect::None,
        (Err(_), Ok(_)) => Effect::TestFails("it does not fail any more".to_owned()),
    }
}

/// Describes the change of a value.
fn changed(before: &str, after: &str) -> String {
    let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
    let differences = differences(before, after);
    if differences.is_empty() {
        return format!("{}, which was {}", super::shortened(after), super::shortened(before));
    }
    let line = |found: &Difference| format!("at {} {}, which was {}", found.path, shown(&found.actual), shown(&found.expected));
    let lines: Vec<String> = differences.iter().take(MAX_DIFFERENCES).map(line).collect();
    super::shortened(&lines.join("; "))
}
