//! Runs recorded programs with the tools before and after a change of the upstreams, for `diff` and `update`.
//!
//! The answers of the cassettes are those of the former tools. For the current tools they are adapted to their output schemas: members
//! that a schema no longer has are removed, and values that it refuses are replaced by generated ones. A program that gives the same with
//! these is run once more where only the current schemas permit null or a missing member.
//!
//! | module | purpose |
//! |---|---|
//! | `effect` | the effect of a change on a program, from its answers with both catalogs |
//! | `weakened` | answers with null and without members, where only the current tools permit it |
//! | `unusable` | tests that cannot be run |
//! | `replay` | one run of a program |

mod effect;
mod replay;
mod unusable;
mod weakened;

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ptc_catalog::{Catalog, Deployment, Tool};
use ptc_compiler::drift::cause::Cause;
use ptc_compiler::files::folder;
use ptc_compiler::json::Json;
use ptc_compiler::lower;
use ptc_compiler::serve::cassette::{Cassette, Player};
use ptc_lisp::ErrorKind;

use super::bench::{Bench, Engines, Inputs, Shared};
use super::cases::{CaseFile, WrongCase};
use super::checks::{Weakness, adapted};
use super::discover;
use super::file::TestFile;
use super::outcome::{TestOutcome, Verdict};
use super::program_run::ProgramRun;
use super::{Subject, TestRun};
use crate::call_sites::{CallSite, call_sites};
use crate::{Failure, files, load};
use effect::effect;
pub(crate) use effect::{Effect, Effects, ProgramEffect, TestPlace};
use replay::Replay;
pub(crate) use unusable::UnusableTests;
use weakened::may_fail;

/// A change of the tools of a config.
pub(crate) struct Upgrade<'a> {
    pub(crate) config: &'a Path,
    pub(crate) old: &'static Deployment,
    pub(crate) new: &'static Deployment,
    /// The files of the stored programs by name.
    pub(crate) program_files: BTreeMap<String, PathBuf>,
}

/// The engines of both catalogs, which are made for the first test that needs them.
struct BothEngines {
    old: Arc<Engines>,
    new: Arc<Engines>,
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
        let engines = OnceCell::new();
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
                    for WrongCase { error, .. } in &file.wrong {
                        effects.add_unusable(UnusableTests::one(&name, &text, error));
                    }
                    file.cases.iter().try_for_each(|(line, case)| {
                        let subject = Subject::Case(&file, *line, case);
                        self.compare(&engines, &file.inputs(case), &text, *line, &subject, &mut effects)
                    })
                })
            } else {
                TestFile::read(&path, &text).map(|file| {
                    file.tests.iter().enumerate().try_for_each(|(at, test)| {
                        match &test.error {
                            Some(error) => {
                                effects.add_unusable(UnusableTests::one(&name, &text, error));
                                Ok(())
                            }
                            // The config and the cassette are those of the namespace.
                            None => self.compare(&engines, &file.inputs(), &text, 1, &Subject::Test(&file, at), &mut effects),
                        }
                    })
                })
            };
            match read {
                Ok(compared) => compared?,
                Err(error) => effects.add_unusable(UnusableTests::new(&name, &text, error.line, error.message)),
            }
        }
        Ok(effects)
    }

    fn engines(&self, deployment: &'static Deployment) -> Result<Arc<Engines>, Failure> {
        let engines = Engines::new(Some(self.config), Some(deployment), self.program_files.clone(), Shared::default());
        engines.map(Arc::new)
    }

    /// Runs one test with both catalogs, and adds the effects on its programs. `text` is that of its file, and `line` the one that names
    /// its config and its cassette.
    fn compare(
        &self,
        engines: &OnceCell<BothEngines>,
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
        let engines = if let Some(made) = engines.get() {
            made
        } else {
            let made = BothEngines { old: self.engines(self.old)?, new: self.engines(self.new)? };
            engines.get_or_init(|| made)
        };
        let name = cassette.display().to_string();
        let read = crate::cassette::read(cassette, self.config, self.old.catalog);
        let bench_of = |engines, deployment: &'static Deployment, cassette: &Cassette| {
            Bench::new(engines, Player::new(name.clone(), cassette, deployment.catalog))
        };
        let old_bench = |cassette: &Cassette| bench_of(&engines.old, self.old, cassette);
        let new_bench = |cassette: &Cassette| bench_of(&engines.new, self.new, cassette);
        let run = |bench: &Bench| TestRun { inputs: inputs.clone(), subject: subject.clone(), bench: bench.clone() }.run();
        let recorded = match read {
            Ok(recorded) => recorded,
            Err(failure) => {
                let (reason, hint) = failure.into_parts();
                effects.add_unusable(UnusableTests { hint, ..unusable(reason) });
                // Without answers, the test still shows which programs it runs.
                let bench = old_bench(&Cassette::default());
                let ran = run(&bench);
                for program in &ran.programs {
                    effects.add(Self::untested(&bench, program, test_place(&ran, inputs, text)));
                }
                return Ok(());
            }
        };
        let former = old_bench(&recorded);
        let (recorded, altered) = self.adapted(recorded);
        let current = new_bench(&recorded);
        let mut weakened = Vec::new();
        for weakness in Weakness::ALL {
            let (recorded, places) = self.weakened(recorded.clone(), weakness);
            if !places.is_empty() {
                weakened.push((new_bench(&recorded), places));
            }
        }
        let (before, after) = (run(&former), run(&current));
        for program in &before.programs {
            let (was, is) = (Replay::of(&former, program), Replay::of(&current, program));
            let base = Self::untested(&former, program, test_place(&after, inputs, text));
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
