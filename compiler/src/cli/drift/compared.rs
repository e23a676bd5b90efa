//! The comparison of two locks, with what the changes do to programs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ptc_catalog::Catalog;
use ptc_compiler::config::model::Config;
use ptc_compiler::diag::{Code, Diagnostic, Diagnostics, Severity, quoted};
use ptc_compiler::drift::callers::Callers;
use ptc_compiler::drift::cause::{Cause, Change};
use ptc_compiler::drift::severity::BreakingTools;
use ptc_compiler::drift::{self, Count};
use ptc_compiler::ir;
use ptc_compiler::leak;
use ptc_compiler::lock::Lock;
use ptc_compiler::lock::read::Places;
use ptc_compiler::lower;
use ptc_compiler::source::{Sources, Span};

use super::causes::{self, CauseOfBreak, RefusedCall};
use super::removed_reads::{RemovedMembers, RemovedRead};
use super::untested::{self, ComputedCalls, ProgramText, ProgramTexts, START, unusable_finding};
use crate::call_sites::{CallSite, call_sites};
use crate::program::NewFindings;
use crate::test::upgrade::{Effect, Effects, ProgramEffect, TestPlace, Upgrade};
use crate::{Failure, files, program};

/// Maximum number of places that a finding names beside its own.
const MAX_PLACES: usize = 5;

/// The predicate about a program that fails with the pinned tools too.
const BROKEN_BEFORE: &str = "was broken before as well, with the pinned tools";

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
    /// The errors of stored programs that they have with the pinned tools too.
    old_errors: Vec<Diagnostic>,
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
        let NewFindings { new: programs, old_errors } = program::new_findings(config, programs, &old, &new);
        Compared { old, new, changed, drift, breaking: BreakingTools::default(), programs, old_errors }
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
        let Effects { programs: mut effects, unusable } = upgrade.effects(tests)?;
        for tests in unusable {
            self.programs.push(unusable_finding(tests, sources));
        }
        // A test in another folder names a stored program by another path.
        for effect in &mut effects {
            let stored = programs.iter().map(|program| &sources.get(program.file).path);
            if let Some(path) = stored.into_iter().find(|path| files::is_same(Path::new(path), Path::new(&effect.file))) {
                effect.file.clone_from(path);
            }
        }
        self.add_changes_to_calls(programs, [old.catalog, new.catalog]);
        let reads = self.add_reads(programs, &removed, &effects, sources);
        self.add_old_errors(programs, &effects);
        let (untested, effects): (Vec<_>, Vec<_>) =
            effects.into_iter().partition(|effect| matches!(effect.effect, Effect::Untested));
        let texts = ProgramTexts::new(programs, &untested, sources);
        let is_tested = |path: &str| effects.iter().any(|effect| effect.file == path);
        self.add_untested(config, texts.without(is_tested), sources);
        for found in effects {
            let reads = reads.get(&found.file).map(Vec::as_slice).unwrap_or_default();
            // A read that the test does not reach has its own finding.
            if matches!(found.effect, Effect::None) && !reads.is_empty() {
                continue;
            }
            if found.effect.is_error() {
                self.breaking.add(&found.tools);
            }
            let mut finding = self.finding(found, reads, config, [old.catalog, new.catalog], sources);
            self.merge_refusals(&mut finding);
            self.programs.push(finding);
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
            let causes = self.causes(&site.tool, cause, site.arguments.as_ref());
            // A refusal names the argument. Each other argument that is refused has its own finding.
            let is_about = |cause: &&CauseOfBreak| {
                cause.change.argument().is_some_and(|argument| finding.message.contains(&format!("'{argument}'")))
            };
            let about: Vec<CauseOfBreak> = causes.iter().filter(is_about).cloned().collect();
            // The change says more than a similar name, and some formats have only the first hint.
            finding.hints.splice(0..0, causes::sentence(if about.is_empty() { &causes } else { &about }));
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
                    let cause = causes::sentence(&self.causes(&read.tool, Cause::Answer, None));
                    self.programs.push(read.finding(&quoted(name), file, cause));
                }
            }
            found.insert(path, reads);
        }
        found
    }

    /// Removes the findings about refused calls that a finding about a run shows too, and adds their help to this finding.
    fn merge_refusals(&mut self, run: &mut Diagnostic) {
        let mut others = Diagnostics::default();
        for finding in std::mem::take(&mut self.programs).sorted() {
            if finding.code != Code::CallFails || !is_shown_by(finding, run) {
                others.push(finding.clone());
                continue;
            }
            run.severity = run.severity.max(finding.severity);
            for hint in &finding.hints {
                if !run.hints.iter().any(|known| known.contains(hint.as_str())) {
                    run.hints.push(hint.clone());
                }
            }
        }
        self.programs = others;
    }

    /// Returns the changes of a tool that can be the cause of what a program does.
    fn causes(&self, tool: &(String, String), cause: Cause, passed: Option<&BTreeSet<String>>) -> Vec<CauseOfBreak> {
        causes::causes([&self.old, &self.new], tool, cause, passed)
    }

    /// Adds the errors that stored programs have with both locks, unless a test shows that the program fails with both.
    fn add_old_errors(&mut self, programs: &[ir::Program], effects: &[ProgramEffect]) {
        for finding in std::mem::take(&mut self.old_errors) {
            let Some(place) = finding.primary.as_ref().map(|label| label.place.clone()) else { continue };
            let Some(program) = programs.iter().find(|program| program.file == place.file) else { continue };
            let is_shown =
                |effect: &ProgramEffect| effect.name == program.name && matches!(effect.effect, Effect::FailsBefore(..));
            if !effects.iter().any(is_shown) {
                let message = format!("{} {BROKEN_BEFORE}: {}", quoted(&program.name), finding.message);
                let before = Diagnostic { severity: Severity::Warning, ..Diagnostic::new(Code::ProgramUnaffected, message) };
                self.programs.push(finding.hints.into_iter().fold(before.at(place, ""), Diagnostic::hint));
            }
        }
    }

    /// Adds a note for each program that no test compares and that has no finding: whether it calls changed tools.
    fn add_untested(&mut self, config: &Config, untested: Vec<ProgramText>, sources: &mut Sources) {
        for program in untested {
            let file = sources.add(program.path, program.source.clone());
            let is_in = |finding: &&Diagnostic| finding.primary.as_ref().is_some_and(|label| label.place.file == file);
            if self.programs.sorted().iter().any(is_in) {
                continue;
            }
            let name = quoted(&program.name);
            let (message, span) = if self.may_call_changes(config, &program.name, &program.source, Change::is_of_contract) {
                let why = if program.has_unusable_tests {
                    "the tests that run it cannot be used"
                } else {
                    "no test runs it with recorded answers"
                };
                match ComputedCalls::of(&program.source, sources, file) {
                    Some(ComputedCalls { subject, span }) => (
                        format!("{name} is not compared: {subject}, so that only tests show what the changes do, and {why}"),
                        span,
                    ),
                    None => (format!("{name} is not compared: it may call tools that changed, and {why}"), START),
                }
            } else if self.may_call_changes(config, &program.name, &program.source, |_| true) {
                (format!("{name} calls tools of which only descriptions or observed shapes changed"), START)
            } else {
                (format!("{name} calls no tool that changed"), START)
            };
            let place = Span { file, range: span.start..span.end };
            self.programs.push(Diagnostic::new(Code::ProgramUnaffected, message).at(place, ""));
        }
    }

    /// Returns whether a program may call a tool with a change for which `is_wanted` holds.
    fn may_call_changes(&self, config: &Config, name: &str, source: &str, is_wanted: fn(&Change) -> bool) -> bool {
        let callers = [program::caller(name, source)];
        Callers::of_changes(&callers, config, [&self.old, &self.new], is_wanted).contain(name)
    }

    /// Returns the finding about a program that tests run. `reads` are those of removed members.
    fn finding(
        &self,
        found: ProgramEffect,
        reads: &[RemovedRead],
        config: &Config,
        catalogs: [&'static Catalog; 2],
        sources: &mut Sources,
    ) -> Diagnostic {
        let name = quoted(&found.program);
        let is_break = found.effect.is_break();
        let file = sources.add(found.file, found.source.clone());
        let computed = ComputedCalls::of(&found.source, sources, file)
            .filter(|_| self.may_call_changes(config, &found.name, &found.source, |_| true));
        let (code, severity, message, span) = match found.effect {
            Effect::None if !found.undeclared.is_empty() => {
                let tools: Vec<String> = found.undeclared.iter().map(|tool| quoted(tool)).collect();
                let answers = format!("the recorded answers of {}, whose shape is not declared", tools.join(", "));
                (Code::ProgramUnaffected, Severity::Note, format!("{name} gives the same with {answers}"), None)
            }
            Effect::None | Effect::Untested => {
                let message = format!("{name} gives the same with the current tools");
                match computed {
                    Some(ComputedCalls { subject, span }) => {
                        let message = format!("{message} in its tests: {subject}, so that only they show what the changes do");
                        (Code::ProgramUnaffected, Severity::Note, message, Some(span))
                    }
                    None => (Code::ProgramUnaffected, Severity::Note, message, None),
                }
            }
            Effect::FailsBefore(message, span) => {
                (Code::ProgramUnaffected, Severity::Warning, format!("{name} {BROKEN_BEFORE}: {message}"), span)
            }
            Effect::MayFail(message, span) => {
                (Code::ProgramBreaks, Severity::Warning, format!("{name} fails {message}; the current tools permit this"), span)
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
        let finding = Diagnostic { severity, ..Diagnostic::new(code, message) };
        if !is_break {
            let span = span.unwrap_or(START);
            return finding.at(Span { file, range: span.start..span.end }, "");
        }
        let span = span.or(reads.first().map(|read| read.span)).or(found.call).unwrap_or(START);
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
        let of_tools = |cause| {
            let of_tool = |tool| self.causes(tool, cause, found.arguments.as_ref());
            found.tools.iter().flat_map(of_tool).collect::<Vec<_>>()
        };
        let mut causes = of_tools(found.cause);
        if causes.is_empty() {
            causes = of_tools(if found.cause == Cause::Answer { Cause::Refusal } else { Cause::Answer });
        }
        // A program that ends with a refused call does not reach what else breaks it.
        if found.cause == Cause::Refusal {
            let is_other = |call: &RefusedCall| call.span.end <= span.start || span.end <= call.span.start;
            for call in causes::refused_calls(&found.source, catalogs).into_iter().filter(is_other).take(MAX_PLACES) {
                causes.extend(self.causes(&call.site.tool, Cause::Refusal, call.site.arguments.as_ref()));
                finding = finding.also(Span { file, range: call.span.start..call.span.end }, call.message);
            }
            for read in reads {
                causes.extend(self.causes(&read.tool, Cause::Answer, None));
            }
        }
        causes::sentence(&causes).into_iter().fold(finding, Diagnostic::hint)
    }
}

/// Whether a finding about a run has the place and the message of a finding about a call.
fn is_shown_by(call: &Diagnostic, run: &Diagnostic) -> bool {
    let Some(place) = call.primary.as_ref().map(|label| &label.place) else { return false };
    let is_at =
        |other: &Span| other.file == place.file && other.range.start <= place.range.end && place.range.start <= other.range.end;
    run.primary.as_ref().is_some_and(|label| is_at(&label.place) && run.message.contains(&call.message))
        || run.secondary.iter().any(|label| is_at(&label.place) && *label.text == *call.message)
}

/// Returns the start of the line of a test.
fn place_of(test: &TestPlace, sources: &mut Sources) -> Span {
    let file = sources.add(test.file.clone(), test.text.clone());
    untested::line_of(file, test.line, sources)
}
