//! Runs recorded programs with the tools before and after a change of the upstreams, for `diff` and `update`.
//!
//! The answers of the cassettes are those of the former tools. For the current tools they are adapted to their output schemas: members
//! that a schema no longer has are removed, and values that it refuses are replaced by generated ones.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ptc_catalog::{Catalog, Deployment, Tool};
use ptc_compiler::drift::cause::Cause;
use ptc_compiler::files::folder;
use ptc_compiler::json::Json;
use ptc_compiler::lower;
use ptc_compiler::serve::cassette::{Cassette, Player};
use ptc_lisp::print::readable;
use ptc_lisp::{ErrorKind, Span};
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
    /// The names of the arguments that it passes to the tools.
    pub(crate) arguments: BTreeSet<String>,
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
    /// Runs the programs of tests. `paths` are files and folders with tests. If there are none, those in the folder of the config and
    /// below it are used.
    ///
    /// # Errors
    ///
    /// A folder or a file cannot be read.
    pub(crate) fn effects(&self, paths: &[PathBuf]) -> Result<Vec<ProgramEffect>, Failure> {
        let beside = [folder(self.config)];
        let paths = discover::files(if paths.is_empty() { &beside } else { paths })?.files;
        let mut effects: Vec<ProgramEffect> = Vec::new();
        for path in paths {
            let text = load::read_text(&path)?;
            // `test` reports files that cannot be used.
            if path.to_string_lossy().ends_with(discover::CASES) {
                let Ok(file) = CaseFile::read(&path, &text) else { continue };
                for (line, case) in &file.cases {
                    self.compare(&file.inputs(case), &text, &Subject::Case(&file, *line, case), &mut effects)?;
                }
            } else {
                let Ok(file) = TestFile::read(&path, &text) else { continue };
                for test in 0..file.tests.len() {
                    self.compare(&file.inputs(), &text, &Subject::Test(&file, test), &mut effects)?;
                }
            }
        }
        Ok(effects)
    }

    /// Runs one test with both catalogs, and adds the effects on its programs. `text` is that of its file.
    fn compare(
        &self,
        inputs: &Inputs,
        text: &str,
        subject: &Subject<'_>,
        effects: &mut Vec<ProgramEffect>,
    ) -> Result<(), Failure> {
        let is_same = |config: &Path| files::is_same(config, self.config);
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
        let (recorded, altered) = self.adapted(recorded);
        let new_bench = bench(self.new, &recorded)?;
        let run = |bench: &Bench| TestRun { inputs: inputs.clone(), subject: subject.clone(), bench: bench.clone() }.run();
        let (before, after) = (run(&old_bench), run(&new_bench));
        for program in &before.programs {
            let (was, is) = (Replay::of(&old_bench, program), Replay::of(&new_bench, program));
            let source = old_bench.source(program);
            let sites = call_sites(&source, [self.old.catalog, self.new.catalog]);
            let (cause, tools) = match self.refused(&sites, &was, &is) {
                Some(site) => (Cause::Refusal, BTreeSet::from([site.tool.clone()])),
                None => (Cause::Answer, self.answering(&was, &altered)),
            };
            let called = sites.iter().filter(|site| tools.contains(&site.tool));
            let literal = called.clone().flat_map(|site| site.arguments.clone());
            let passed = was.calls.iter().filter(|(tool, _)| tools.contains(tool)).flat_map(|(_, names)| names.clone());
            let effect = ProgramEffect {
                name: program.name.clone(),
                program: program.described(),
                file: old_bench.program_file(program),
                test: TestPlace {
                    name: after.name.clone(),
                    file: inputs.path.clone(),
                    text: text.to_owned(),
                    line: after.line,
                    is_failed: after.verdict() != Verdict::Passed,
                },
                cause,
                arguments: literal.chain(passed).collect(),
                call: called.map(|site| site.span).min(),
                undeclared: self.undeclared(&was),
                effect: match &stale {
                    Some(stale) => Effect::Unknown(stale.to_string()),
                    None if before.verdict() != Verdict::Passed => {
                        Effect::Unknown("its test fails with the pinned tools".to_owned())
                    }
                    None => effect(was.answer, is.answer, &after),
                },
                source,
                tools,
            };
            match effects.iter_mut().find(|known| known.program == effect.program && known.file == effect.file) {
                Some(known) if known.effect.rank() < effect.effect.rank() => *known = effect,
                Some(_) => {}
                None => effects.push(effect),
            }
        }
        Ok(())
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

impl Effect {
    /// Whether the program is broken for certain: it fails, or a test of it does.
    pub(crate) fn is_error(&self) -> bool {
        matches!(self, Effect::Fails(..) | Effect::TestFails(_))
    }

    /// Whether the program does something else.
    pub(crate) fn is_break(&self) -> bool {
        self.is_error() || matches!(self, Effect::OtherValue(_))
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
