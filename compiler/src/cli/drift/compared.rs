//! The comparison of two locks, with what the changes do to programs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ptc_catalog::Catalog;
use ptc_compiler::config::model::Config;
use ptc_compiler::diag::{Code, Diagnostic, Diagnostics, Severity, quoted};
use ptc_compiler::drift::callers::Callers;
use ptc_compiler::drift::cause::Cause;
use ptc_compiler::drift::severity::BreakingTools;
use ptc_compiler::drift::{self, Count};
use ptc_compiler::ir;
use ptc_compiler::leak;
use ptc_compiler::lock::Lock;
use ptc_compiler::lock::read::Places;
use ptc_compiler::lower;
use ptc_compiler::source::{Sources, Span};

use super::removed_reads::{RemovedMembers, RemovedRead};
use crate::call_sites::{CallSite, call_sites};
use crate::test::upgrade::{Effect, ProgramEffect, TestPlace, Upgrade};
use crate::{Failure, files, program};

/// Maximum number of places that a finding names beside its own.
const MAX_PLACES: usize = 5;

/// Two locks that were compared, with the findings about what differs.
pub(super) struct Compared {
    pub(super) old: Lock,
    pub(super) new: Lock,
    pub(super) changed: Count,
    /// The changes of tools and upstreams.
    pub(super) drift: Diagnostics,
    /// The tools through which programs break.
    pub(super) breaking: BreakingTools,
    /// Findings about the stored programs that they have only with the current tools.
    pub(super) programs: Diagnostics,
}

impl Compared {
    /// Compares two locks. `hint_path`: the path of the config for the command in the hints of the changes, which otherwise have none.
    pub(super) fn new(
        config: &Config,
        programs: &[ir::Program],
        old: Lock,
        new: Lock,
        places: &Places,
        hint_path: Option<&Path>,
    ) -> Self {
        let mut drift = Diagnostics::default();
        let hint_path = hint_path.map(|path| path.display().to_string());
        let changed = drift::compare(config, &old, &new, places, hint_path.as_deref(), &mut drift);
        let programs = program::new_findings(config, programs, &old, &new);
        Compared { old, new, changed, drift, breaking: BreakingTools::default(), programs }
    }

    /// Runs the tests of programs with both locks, and adds what the changes do to the programs.
    ///
    /// # Errors
    ///
    /// A folder or a file with tests cannot be read.
    pub(super) fn add_tests(
        &mut self,
        path: &Path,
        config: &Config,
        programs: &[ir::Program],
        tests: &[PathBuf],
        sources: &mut Sources,
    ) -> Result<(), Failure> {
        if self.changed == Count::default() {
            return Ok(());
        }
        let deployment = |lock: &Lock| ir::Deployment { programs: programs.to_vec(), ..lower::deployment(config, lock, "tests") };
        let (old, new) = (deployment(&self.old), deployment(&self.new));
        let removed = RemovedMembers::new(&old, &new);
        let path_of = |program: &ir::Program| (program.name.clone(), PathBuf::from(&sources.get(program.file).path));
        let program_files = programs.iter().map(path_of).collect();
        let (old, new) = (leak::leak_static(&old), leak::leak_static(&new));
        let upgrade = Upgrade { config: path, old, new, program_files };
        let mut effects = upgrade.effects(tests)?;
        // A test in another folder names a stored program by another path.
        for effect in &mut effects {
            let stored = programs.iter().map(|program| &sources.get(program.file).path);
            if let Some(path) = stored.into_iter().find(|path| files::is_same(Path::new(path), Path::new(&effect.file))) {
                effect.file.clone_from(path);
            }
        }
        self.add_changes_to_calls(programs, [old.catalog, new.catalog]);
        let reads = self.add_reads(programs, &removed, &effects, sources);
        let is_tested = |program: &ir::Program| effects.iter().any(|effect| effect.file == sources.get(program.file).path);
        let untested: Vec<&ir::Program> = programs.iter().filter(|program| !is_tested(program)).collect();
        self.add_untested(config, programs, &untested);
        for found in effects {
            let reads = reads.get(&found.file).map(Vec::as_slice).unwrap_or_default();
            // A read that the test does not reach has its own finding.
            if matches!(found.effect, Effect::None) && !reads.is_empty() {
                continue;
            }
            if found.effect.is_error() {
                self.breaking.add(&found.tools);
            }
            self.programs.push(self.finding(found, reads, sources));
        }
        self.breaking.raise(&mut self.drift);
        Ok(())
    }

    /// Adds the changes of the called tools to the findings about calls and paths.
    fn add_changes_to_calls(&mut self, programs: &[ir::Program], catalogs: [&'static Catalog; 2]) {
        let mut findings = std::mem::take(&mut self.programs);
        for finding in findings.iter_mut() {
            let Some(place) = finding.primary.as_ref().map(|label| &label.place) else { continue };
            let Some(program) = programs.iter().find(|program| program.file == place.file) else { continue };
            let sites = call_sites(&program.source, catalogs);
            let (cause, site) = match finding.code {
                Code::CallFails | Code::CallDoubtful => {
                    let part = ptc_lisp::Span { start: place.range.start, end: place.range.end };
                    (Cause::Refusal, CallSite::around(&sites, part))
                }
                Code::PathNotInSchema => {
                    let is_of = |site: &&CallSite| finding.message.starts_with(&format!("{}: ", site.written));
                    (Cause::Answer, sites.iter().find(is_of))
                }
                _ => continue,
            };
            let Some(site) = site else { continue };
            let changes =
                self.changes(&site.tool, cause, &|argument| site.arguments.iter().any(|name| is_inside(argument, name)));
            // A refusal names the argument, and then other changes of the input are not its cause.
            let is_about = |change: &&String| {
                let mut names = change.split('`').skip(1).step_by(2).filter(|name| !name.is_empty() && **name != *site.tool.1);
                names.any(|name| finding.message.contains(&format!("'{name}'")))
            };
            let about: Vec<String> = changes.iter().filter(is_about).cloned().collect();
            let changes = if about.is_empty() { changes } else { about };
            // The change says more than a similar name, and some formats have only the first hint.
            finding.hints.splice(0..0, changes);
        }
        self.programs = findings;
    }

    /// Adds findings about programs that read removed members, unless a test shows that they break. Returns the reads by file.
    fn add_reads(
        &mut self,
        programs: &[ir::Program],
        removed: &RemovedMembers,
        effects: &[ProgramEffect],
        sources: &mut Sources,
    ) -> BTreeMap<String, Vec<RemovedRead>> {
        let stored = programs.iter().map(|program| (sources.get(program.file).path.clone(), &*program.name, &*program.source));
        let mut texts: Vec<(String, &str, &str)> = stored.collect();
        for effect in effects {
            if !texts.iter().any(|(path, ..)| *path == effect.file) {
                texts.push((effect.file.clone(), &effect.name, &effect.source));
            }
        }
        let mut found = BTreeMap::new();
        for (path, name, text) in texts {
            // Reports list findings in the order in which files are added.
            let file = sources.add(path.clone(), text);
            let reads = removed.reads(text);
            if reads.is_empty() {
                continue;
            }
            // A similar name was a finding about the path already.
            let is_known = |finding: &Diagnostic| {
                let at = |place: &Span| reads.iter().any(|read| read.place(file) == *place);
                finding.code == Code::PathNotInSchema && finding.primary.as_ref().is_some_and(|label| at(&label.place))
            };
            let others: Vec<Diagnostic> = self.programs.sorted().into_iter().filter(|it| !is_known(it)).cloned().collect();
            self.programs = Diagnostics::default();
            self.programs.extend(others);
            for read in &reads {
                if read.was_required {
                    self.breaking.add(&BTreeSet::from([read.tool.clone()]));
                }
                if !effects.iter().any(|effect| effect.file == path && effect.effect.is_break()) {
                    let changes = self.changes(&read.tool, Cause::Answer, &|_| true);
                    self.programs.push(read.finding(&quoted(name), file, &changes));
                }
            }
            found.insert(path, reads);
        }
        found
    }

    /// Returns sentences about the changes of a tool that can be the cause. `passes`: whether a program passes an argument, whose quoted
    /// name is given.
    fn changes(&self, tool: &(String, String), cause: Cause, passes: &dyn Fn(&str) -> bool) -> Vec<String> {
        let (upstream, tool) = tool;
        let [old, new] = [&self.old, &self.new].map(|lock| lock.upstreams.get(upstream));
        let changes = drift::changes_of_tools(upstream, old, new).remove(tool).unwrap_or_default();
        let sentence = |what: &str| format!("{} of {} {what}", quoted(tool), quoted(upstream));
        cause.changes(&changes, passes).into_iter().map(sentence).collect()
    }

    /// Adds a note for each stored program without tests and without new findings: whether it calls changed tools.
    fn add_untested(&mut self, config: &Config, programs: &[ir::Program], untested: &[&ir::Program]) {
        let callers = program::callers(programs);
        let affected = Callers::of_changes(&callers, config, &self.old, &self.new);
        let has_finding = |program: &ir::Program| {
            let is_in = |finding: &&Diagnostic| finding.primary.as_ref().is_some_and(|label| label.place.file == program.file);
            self.programs.sorted().iter().any(is_in)
        };
        let unaffected = untested.iter().filter(|program| !has_finding(program)).map(|program| {
            let what = if affected.contain(&program.name) {
                "is not compared: it may call tools that changed, and no test runs it with recorded answers"
            } else {
                "calls no tool that changed"
            };
            let message = format!("{} {what}", quoted(&program.name));
            Diagnostic::new(Code::ProgramUnaffected, message).at(Span { file: program.file, range: 0..0 }, "")
        });
        let notes: Vec<Diagnostic> = unaffected.collect();
        self.programs.extend(notes);
    }

    /// Returns the finding about a program that tests run. `reads` are those of removed members.
    fn finding(&self, found: ProgramEffect, reads: &[RemovedRead], sources: &mut Sources) -> Diagnostic {
        let name = quoted(&found.program);
        let is_break = found.effect.is_break();
        let (code, severity, message, span) = match found.effect {
            Effect::None if !found.undeclared.is_empty() => {
                let tools: Vec<String> = found.undeclared.iter().map(|tool| quoted(tool)).collect();
                let answers = format!("the recorded answers of {}, whose shape is not declared", tools.join(", "));
                (Code::ProgramUnaffected, Severity::Note, format!("{name} gives the same with {answers}"), None)
            }
            Effect::None => {
                (Code::ProgramUnaffected, Severity::Note, format!("{name} gives the same with the current tools"), None)
            }
            Effect::Unknown(reason) => {
                (Code::ProgramUnaffected, Severity::Warning, format!("{name} cannot be compared: {reason}"), None)
            }
            Effect::Fails(message, span) => {
                (Code::ProgramBreaks, Severity::Error, format!("{name} fails with the current tools: {message}"), span)
            }
            Effect::TestFails(message) => {
                let test = quoted(&found.test.name);
                let message = format!("{name} fails the test {test} with the current tools: {message}");
                (Code::ProgramBreaks, Severity::Error, message, None)
            }
            Effect::OtherValue(message) => {
                let message = format!("{name} gives another value with the current tools: {message}");
                (Code::ProgramBreaks, Severity::Warning, message, None)
            }
        };
        let file = sources.add(found.file, found.source);
        let finding = Diagnostic { severity, ..Diagnostic::new(code, message) };
        if !is_break {
            return finding.at(Span { file, range: 0..0 }, "");
        }
        let start = ptc_lisp::Span { start: 0, end: 0 };
        let span = span.or(reads.first().map(|read| read.span)).or(found.call).unwrap_or(start);
        let (here, elsewhere): (Vec<_>, Vec<_>) = reads.iter().partition(|read| read.span == span);
        let label = here.first().map_or("", |read| &read.message);
        let mut finding = finding.at(Span { file, range: span.start..span.end }, label);
        // A test must not make a finding less severe than the text of the program does.
        finding.severity = reads.iter().map(RemovedRead::severity).fold(severity, Severity::max);
        for read in elsewhere.into_iter().take(MAX_PLACES) {
            finding = finding.also(read.place(file), &*read.message);
        }
        if found.test.is_failed {
            finding = finding.also(place_of(&found.test, sources), "the test that fails");
        }
        let passes = |argument: &str| found.arguments.iter().any(|name| is_inside(argument, name));
        let of_cause = |cause| found.tools.iter().flat_map(|tool| self.changes(tool, cause, &passes)).collect::<Vec<_>>();
        let mut changes = of_cause(found.cause);
        if changes.is_empty() {
            changes = of_cause(if found.cause == Cause::Answer { Cause::Refusal } else { Cause::Answer });
        }
        changes.into_iter().fold(finding, Diagnostic::hint)
    }
}

/// Returns whether a quoted place in a change, such as `filter.state`, is inside an argument, such as `filter`.
fn is_inside(place: &str, argument: &str) -> bool {
    let place = place.trim_matches('`');
    place.strip_prefix(argument).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Returns the start of the line of a test.
fn place_of(test: &TestPlace, sources: &mut Sources) -> Span {
    let file = sources.add(test.file.clone(), test.text.clone());
    let before = sources.get(file).text.split_inclusive('\n').take(test.line.saturating_sub(1));
    let start = u32::try_from(before.map(str::len).sum::<usize>()).unwrap_or(u32::MAX);
    Span { file, range: start..start }
}
