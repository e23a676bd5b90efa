//! Runs recorded programs with the tools before and after a change of the upstreams, for `diff` and `update`.
//!
//! The answers of the cassettes are those of the former tools. For the current tools they are adapted to their output schemas: members
//! that a schema no longer has are removed, and values that it refuses are replaced by generated ones. A program that gives the same with
//! these is run once more where only the current schemas permit null or a missing member.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ptc_catalog::{Catalog, Deployment, Tool};
use ptc_compiler::diag::quoted;
use ptc_compiler::drift::cause::Cause;
use ptc_compiler::files::folder;
use ptc_compiler::json::Json;
use ptc_compiler::lower;
use ptc_compiler::serve::cassette::{Cassette, Player};
use ptc_lisp::print::readable;
use ptc_lisp::{ErrorKind, Span};
use ptc_runtime::embed::Answer;
use ptc_runtime::evaluation::Reason;
use ptc_text::join_limited;

use super::bench::{Bench, Inputs, Shared};
use super::cases::CaseFile;
use super::checks::{Weakness, adapted, weaken};
use super::diff::{Difference, differences};
use super::discover;
use super::file::TestFile;
use super::injection::{AsRecorded, Injection};
use super::outcome::{TestOutcome, Verdict};
use super::program_run::ProgramRun;
use super::{Subject, TestRun};
use crate::call_sites::{CallSite, call_sites};
use crate::{Failure, files, load};

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
    /// The program.
    pub(crate) name: String,
    /// The program with its arguments.
    pub(crate) program: String,
    /// The path of the program.
    pub(crate) file: String,
    /// The text of the program.
    pub(crate) source: String,
    /// The first test that runs it, or that fails with the current tools.
    pub(crate) test: TestPlace,
    /// The changed tools that have the effect, by upstream and name. Without an effect, all that it calls.
    pub(crate) tools: BTreeSet<(String, String)>,
    /// How these tools have it.
    pub(crate) cause: Cause,
    /// The names of the arguments that the program passes to the tools, or `None` if these names are unknown.
    pub(crate) arguments: Option<BTreeSet<String>>,
    /// The first call of one of the tools.
    pub(crate) call: Option<Span>,
    /// The changed tools that it calls and that do not declare the shape of their answers, which are not adapted.
    pub(crate) undeclared: Vec<String>,
    pub(crate) effect: Effect,
}

/// A test.
pub(crate) struct TestPlace {
    pub(crate) name: String,
    /// The path of its file.
    pub(crate) file: String,
    /// The text of the file.
    pub(crate) text: String,
    /// The line, from 1.
    pub(crate) line: usize,
    /// Whether it fails with the current tools.
    pub(crate) is_failed: bool,
}

/// The results of running tests with the tools before and after a change.
#[derive(Default)]
pub(crate) struct Effects {
    pub(crate) programs: Vec<ProgramEffect>,
    pub(crate) unusable: Vec<UnusableTests>,
}

/// A file with tests that cannot be run.
pub(crate) struct UnusableTests {
    /// The path.
    pub(crate) file: String,
    /// The text of the file. Empty if it cannot be read.
    pub(crate) text: String,
    /// The line, from 1.
    pub(crate) line: usize,
    /// The reason as a clause.
    pub(crate) reason: String,
    pub(crate) hint: Option<String>,
    /// Whether the tests can be run with their own config, which is not the compared one.
    pub(crate) is_of_other_config: bool,
}

/// What a change of tools does to a program.
pub(crate) enum Effect {
    /// The tests that run it cannot be used.
    Untested,
    /// It gives the same value.
    None,
    /// It gives the same value with the recorded answers, and fails with others that only the current tools permit.
    MayFail(String, Option<Span>),
    /// It fails with both tools, at the form if that is known.
    FailsBefore(String, Option<Span>),
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
    /// Runs the programs of tests. `paths` are files and folders with tests. If there are none, those in the folder of the config and
    /// below it are used.
    ///
    /// # Errors
    ///
    /// A folder cannot be read, or one of `paths` does not exist.
    pub(crate) fn effects(&self, paths: &[PathBuf]) -> Result<Effects, Failure> {
        let beside = [folder(self.config)];
        let found = discover::files(if paths.is_empty() { &beside } else { paths })?.files;
        let mut effects = Effects::default();
        for path in found {
            let name = path.display().to_string();
            let text = match load::read_text(&path) {
                Ok(text) => text,
                Err(failure) if paths.contains(&path) && !path.exists() => return Err(failure),
                Err(failure) => {
                    let (reason, hint) = failure.into_parts();
                    effects.add_unusable(UnusableTests { hint, ..UnusableTests::new(&name, "", 1, reason) });
                    continue;
                }
            };
            let read = if name.ends_with(discover::CASES) {
                CaseFile::read(&path, &text).map(|file| {
                    file.cases.iter().try_for_each(|(line, case)| {
                        self.compare(&file.inputs(case), &text, *line, &Subject::Case(&file, *line, case), &mut effects)
                    })
                })
            } else {
                TestFile::read(&path, &text).map(|file| {
                    // The config and the cassette are those of the namespace.
                    (0..file.tests.len())
                        .try_for_each(|test| self.compare(&file.inputs(), &text, 1, &Subject::Test(&file, test), &mut effects))
                })
            };
            match read {
                Ok(compared) => compared?,
                Err(error) => effects.add_unusable(UnusableTests::new(&name, &text, error.line, error.message)),
            }
        }
        Ok(effects)
    }

    /// Runs one test with both catalogs, and adds the effects on its programs. `text` is that of its file, and `line` the one that names
    /// its config and its cassette.
    fn compare(
        &self,
        inputs: &Inputs,
        text: &str,
        line: usize,
        subject: &Subject<'_>,
        effects: &mut Effects,
    ) -> Result<(), Failure> {
        // A test without recorded answers calls no tools.
        let Some(cassette) = &inputs.cassette else { return Ok(()) };
        let unusable = |reason: String| UnusableTests::new(&inputs.path, text, line, reason);
        match &inputs.config {
            Some(config) if files::is_same(config, self.config) => {}
            config => {
                effects.add_unusable(self.of_other_config(config.as_deref(), unusable));
                return Ok(());
            }
        }
        let name = cassette.display().to_string();
        let read = crate::cassette::read(cassette, self.config, self.old.catalog);
        let bench = |deployment: &'static Deployment, cassette: &Cassette| {
            let player = Arc::new(Player::new(name.clone(), cassette, deployment.catalog));
            Bench::with_player(inputs, Some(deployment), Some(&player), self.program_files.clone(), Shared::default())
        };
        let run = |bench: &Bench| TestRun { inputs: inputs.clone(), subject: subject.clone(), bench: bench.clone() }.run();
        let recorded = match read {
            Ok(recorded) => recorded,
            Err(failure) => {
                let (reason, hint) = failure.into_parts();
                effects.add_unusable(UnusableTests { hint, ..unusable(reason) });
                // Without answers, the test still shows which programs it runs.
                let bench = bench(self.old, &Cassette::default())?;
                let ran = run(&bench);
                for program in &ran.programs {
                    effects.add(Self::untested(&bench, program, test_place(&ran, inputs, text)));
                }
                return Ok(());
            }
        };
        let old_bench = bench(self.old, &recorded)?;
        let (recorded, altered) = self.adapted(recorded);
        let new_bench = bench(self.new, &recorded)?;
        let mut weakened = Vec::new();
        for weakness in Weakness::ALL {
            let (recorded, places) = self.weakened(recorded.clone(), weakness);
            if !places.is_empty() {
                weakened.push((bench(self.new, &recorded)?, places));
            }
        }
        let (before, after) = (run(&old_bench), run(&new_bench));
        for program in &before.programs {
            let (was, is) = (Replay::of(&old_bench, program), Replay::of(&new_bench, program));
            let base = Self::untested(&old_bench, program, test_place(&after, inputs, text));
            let sites = call_sites(&base.source, [self.old.catalog, self.new.catalog]);
            let refused = self.refused(&sites, &was, &is);
            let (cause, tools) = match refused {
                Some(site) => (Cause::Refusal, BTreeSet::from([site.tool.clone()])),
                None => (Cause::Answer, self.answering(&was, &altered)),
            };
            let recorded = was.calls.iter().filter(|(tool, _)| tools.contains(tool)).flat_map(|(_, names)| names.clone());
            let recorded = Some(recorded.collect::<BTreeSet<String>>()).filter(|_| !was.calls.is_empty());
            let called = sites.iter().filter(|site| tools.contains(&site.tool)).map(|site| site.span).min();
            effects.add(ProgramEffect {
                cause,
                // A refused call has its own arguments. The other calls of the tool may have passed more.
                arguments: refused.and_then(|site| site.arguments.clone()).or(recorded),
                call: refused.map(|site| site.span).or(called),
                undeclared: self.undeclared(&was),
                effect: match effect(was.answer, is.answer, &before, &after) {
                    Effect::None => may_fail(&weakened, program, &was.calls).unwrap_or(Effect::None),
                    effect => effect,
                },
                tools,
                ..base
            });
        }
        Ok(())
    }

    /// Describes tests that have another config, or none.
    fn of_other_config(&self, config: Option<&Path>, unusable: impl Fn(String) -> UnusableTests) -> UnusableTests {
        let own = quoted(&self.config.display().to_string());
        let hint = || Some(format!("the tests of {own} name it as `:config`, or as `config` of a case"));
        match config {
            None => UnusableTests {
                hint: hint(),
                ..unusable("the file names no config, and its folder has no `upstreams.json`".to_owned())
            },
            Some(config) => {
                let other = quoted(&config.display().to_string());
                if config.exists() {
                    UnusableTests { is_of_other_config: true, ..unusable(format!("they are tests of the config {other}")) }
                } else {
                    UnusableTests { hint: hint(), ..unusable(format!("its config {other} does not exist")) }
                }
            }
        }
    }

    /// Returns a program that a test runs, without its effect.
    fn untested(bench: &Bench, program: &ProgramRun, test: TestPlace) -> ProgramEffect {
        ProgramEffect {
            name: program.name.clone(),
            program: program.described(),
            file: bench.program_file(program),
            source: bench.source(program),
            test,
            tools: BTreeSet::new(),
            cause: Cause::Answer,
            arguments: None,
            call: None,
            undeclared: Vec::new(),
            effect: Effect::Untested,
        }
    }

    /// Adapts recorded answers to the output schemas of the current tools. Returns the tools with other answers too.
    fn adapted(&self, mut cassette: Cassette) -> (Cassette, BTreeSet<(String, String)>) {
        let mut altered = BTreeSet::new();
        cassette.change_values(|server, name, value| {
            if let Some((before, now)) = self.changed(server, name) {
                let adapted = adapted(before, now, value);
                if adapted != *value {
                    altered.insert((server.to_owned(), name.to_owned()));
                    *value = adapted;
                }
            }
        });
        (cassette, altered)
    }

    /// Makes recorded answers null, or removes members, where only the current tools permit it. Returns the places.
    fn weakened(&self, mut cassette: Cassette, weakness: Weakness) -> (Cassette, Vec<WeakenedPlace>) {
        let mut places = Vec::new();
        cassette.change_values(|server, name, value| {
            let Some((before, now)) = self.changed(server, name) else { return };
            for place in weaken(before, now, value, weakness) {
                let place = WeakenedPlace { tool: (server.to_owned(), name.to_owned()), place, weakness };
                if !places.contains(&place) {
                    places.push(place);
                }
            }
        });
        (cassette, places)
    }

    /// Returns both definitions of a tool that changed and still exists.
    fn changed(&self, server: &str, name: &str) -> Option<(&'static Tool, &'static Tool)> {
        let tool = |catalog: &'static Catalog| catalog.upstream(server)?.tool(name);
        let (before, now) = (tool(self.old.catalog)?, tool(self.new.catalog)?);
        (before.digest != now.digest).then_some((before, now))
    }

    /// Whether a tool differs or is gone.
    fn is_other(&self, (server, name): &(String, String)) -> bool {
        let tool = |catalog: &'static Catalog| Some(catalog.upstream(server)?.tool(name)?.digest);
        tool(self.old.catalog) != tool(self.new.catalog)
    }

    /// Returns the call that a changed tool refuses, if that ends the program: the call did not come to its answer.
    fn refused<'s>(&self, sites: &'s [CallSite], was: &Replay, is: &Replay) -> Option<&'s CallSite> {
        let failure = is.answer.as_ref().ok()?.value().err()?;
        let is_refusal =
            [ErrorKind::ToolError, ErrorKind::UnknownTool].iter().any(|kind| failure.message.starts_with(kind.name()));
        let site = CallSite::around(sites, failure.span?)?;
        let count = |replay: &Replay| replay.calls.iter().filter(|(tool, _)| *tool == site.tool).count();
        let is_unanswered = count(was) == 0 || count(is) < count(was);
        (is_refusal && !is.is_unrecorded && is_unanswered && self.is_other(&site.tool)).then_some(site)
    }

    /// Returns the called tools whose answers are other ones, or else all that changed.
    fn answering(&self, was: &Replay, altered: &BTreeSet<(String, String)>) -> BTreeSet<(String, String)> {
        let called = was.calls.iter().map(|(tool, _)| tool).filter(|tool| self.is_other(tool));
        let answering: BTreeSet<_> = called.clone().filter(|tool| altered.contains(*tool)).cloned().collect();
        if answering.is_empty() { called.cloned().collect() } else { answering }
    }

    /// Returns the names of the called tools that changed and whose answers cannot be adapted.
    fn undeclared(&self, was: &Replay) -> Vec<String> {
        let has_no_shape =
            |tool: &Tool| Json::parse(tool.definition).is_none_or(|definition| lower::declared_output(&definition).is_none());
        let called: BTreeSet<&(String, String)> = was.calls.iter().map(|(tool, _)| tool).collect();
        let called = called.into_iter().filter(|(server, name)| {
            self.changed(server, name).is_some_and(|(before, now)| has_no_shape(before) || has_no_shape(now))
        });
        called.map(|(_, name)| name.clone()).collect()
    }
}

/// A place of a tool's answers that is null or missing in a run.
#[derive(PartialEq, Eq)]
struct WeakenedPlace {
    tool: (String, String),
    /// Members and items, such as `items[].price`.
    place: String,
    weakness: Weakness,
}

/// Runs a program that gives the same with the adapted answers with weakened ones. Returns the first error.
fn may_fail(
    weakened: &[(Bench, Vec<WeakenedPlace>)],
    program: &ProgramRun,
    calls: &[((String, String), Vec<String>)],
) -> Option<Effect> {
    weakened.iter().find_map(|(bench, places)| {
        let of_program = || places.iter().filter(|place| calls.iter().any(|(tool, _)| *tool == place.tool));
        let weakness = of_program().map(|place| place.weakness).next()?;
        let is = Replay::of(bench, program);
        let answer = is.answer.ok()?;
        // A program that asks for something else because of these answers has no recorded answers to that.
        let failure = answer.value().err().filter(|failure| failure.reason != Reason::Fail && !is.is_unrecorded)?;
        let named = of_program().map(|at| format!("{} of {}", quoted(&at.place), quoted(&at.tool.1)));
        let condition = format!("where {} is {}", join_limited(named, ", ", MAX_DIFFERENCES), weakness.adjective());
        Some(Effect::MayFail(format!("{condition}: {failure}"), failure.span))
    })
}

/// Returns the place of a test with its outcome with the current tools.
fn test_place(after: &TestOutcome, inputs: &Inputs, text: &str) -> TestPlace {
    TestPlace {
        name: after.name.clone(),
        file: inputs.path.clone(),
        text: text.to_owned(),
        line: after.line,
        is_failed: after.verdict() != Verdict::Passed,
    }
}

impl Effects {
    /// Adds the effect on a program. Of several tests of it, the one with the worst effect is kept.
    fn add(&mut self, effect: ProgramEffect) {
        let is_same = |known: &&mut ProgramEffect| known.program == effect.program && known.file == effect.file;
        match self.programs.iter_mut().find(is_same) {
            Some(known) if known.effect.rank() < effect.effect.rank() => *known = effect,
            Some(_) => {}
            None => self.programs.push(effect),
        }
    }

    /// Adds a file that cannot be used. Several of its tests may have the same reason.
    fn add_unusable(&mut self, tests: UnusableTests) {
        if !self.unusable.iter().any(|known| known.file == tests.file && known.reason == tests.reason) {
            self.unusable.push(tests);
        }
    }
}

impl UnusableTests {
    fn new(file: &str, text: &str, line: usize, reason: String) -> UnusableTests {
        UnusableTests { file: file.to_owned(), text: text.to_owned(), line, reason, hint: None, is_of_other_config: false }
    }
}

impl Effect {
    /// Whether the program is broken for certain: it fails, or a test of it does.
    pub(crate) fn is_error(&self) -> bool {
        matches!(self, Effect::Fails(..) | Effect::TestFails(_))
    }

    /// Whether the program does something else, or may do so.
    pub(crate) fn is_break(&self) -> bool {
        self.is_error() || matches!(self, Effect::OtherValue(_) | Effect::MayFail(..))
    }

    fn rank(&self) -> usize {
        match self {
            Effect::Untested => 0,
            Effect::None => 1,
            Effect::Unknown(_) => 2,
            Effect::FailsBefore(..) => 3,
            Effect::MayFail(..) => 4,
            Effect::OtherValue(_) => 5,
            Effect::TestFails(_) => 6,
            Effect::Fails(..) => 7,
        }
    }
}

/// A run of a program with recorded answers.
struct Replay {
    /// The answer, or why the program cannot be run.
    answer: Result<Answer, String>,
    /// The upstream and the tool of each answered call, with the names of its arguments.
    calls: Vec<((String, String), Vec<String>)>,
    /// Whether it made a call without a recorded answer.
    is_unrecorded: bool,
}

impl Replay {
    fn of(bench: &Bench, program: &ProgramRun) -> Replay {
        let injection = Arc::new(Injection::new(AsRecorded));
        let answer = bench.replay(program, Arc::clone(&injection));
        let seen = injection.seen();
        let calls = seen.calls.into_iter().map(|call| {
            let args = Json::parse(&call.args).unwrap_or(Json::Null);
            let names = args.members().iter().map(|(name, _)| name.clone()).collect();
            ((call.key.upstream.to_owned(), call.key.tool.to_owned()), names)
        });
        Replay { answer, calls: calls.collect(), is_unrecorded: seen.unanswered.is_some() }
    }
}

/// Compares the answers of a program with both catalogs. `test_before` and `test` are the outcomes of the test with them.
fn effect(old: Result<Answer, String>, new: Result<Answer, String>, test_before: &TestOutcome, test: &TestOutcome) -> Effect {
    let (before, after) = match (old, new) {
        (Ok(before), Ok(after)) => (before, after),
        (Err(message), _) | (_, Err(message)) => return Effect::Unknown(message),
    };
    let is_failed = test.verdict() != Verdict::Passed;
    if test_before.verdict() != Verdict::Passed {
        return match (before.value(), after.value()) {
            (Err(failure), Err(_)) => Effect::FailsBefore(failure.to_string(), failure.span),
            (Ok(_), Err(failure)) => Effect::Fails(failure.to_string(), failure.span),
            _ if is_failed => Effect::FailsBefore("its test fails".to_owned(), None),
            _ => Effect::Unknown("its test fails with the pinned tools".to_owned()),
        };
    }
    let other = |message: String| if is_failed { Effect::TestFails(message) } else { Effect::OtherValue(message) };
    match (before.value(), after.value()) {
        (Ok(before), Ok(after)) => {
            let (before, after) = (readable(before), readable(after));
            if before == after { Effect::None } else { other(changed(&before, &after)) }
        }
        (Ok(_), Err(failure)) => Effect::Fails(failure.to_string(), failure.span),
        // The test expects the failure.
        (Err(before), Err(after)) if before.to_string() == after.to_string() => Effect::None,
        (Err(before), Err(after)) => other(format!("the failure {after}, which was {before}")),
        (Err(_), Ok(_)) => other("it does not fail any more".to_owned()),
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
