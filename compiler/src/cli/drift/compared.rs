//! The comparison of two locks, with what the changes do to programs.

use std::path::{Path, PathBuf};

use ptc_compiler::config::model::Config;
use ptc_compiler::diag::{Code, Diagnostic, Diagnostics, Severity, quoted};
use ptc_compiler::drift::callers::Callers;
use ptc_compiler::drift::severity::BreakingTools;
use ptc_compiler::drift::{self, Count};
use ptc_compiler::ir;
use ptc_compiler::leak;
use ptc_compiler::lock::Lock;
use ptc_compiler::lock::read::Places;
use ptc_compiler::lower;
use ptc_compiler::source::{Sources, Span};

use crate::test::upgrade::{Effect, ProgramEffect, Upgrade};
use crate::{Failure, program};

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
        let deployment = |lock: &Lock| {
            let mut deployment = lower::deployment(config, lock, "tests");
            deployment.programs = programs.to_vec();
            leak::leak_static(&deployment)
        };
        let path_of = |program: &ir::Program| (program.name.clone(), PathBuf::from(&sources.get(program.file).path));
        let program_files = programs.iter().map(path_of).collect();
        let upgrade = Upgrade { config: path, old: deployment(&self.old), new: deployment(&self.new), program_files };
        let effects = upgrade.effects(tests)?;
        let is_tested = |program: &ir::Program| effects.iter().any(|effect| effect.file == sources.get(program.file).path);
        let untested: Vec<&ir::Program> = programs.iter().filter(|program| !is_tested(program)).collect();
        self.add_untested(config, programs, &untested);
        for found in effects {
            if found.effect.is_error() {
                self.breaking.add(&found.tools);
            }
            self.programs.push(self.finding(found, sources));
        }
        self.breaking.raise(&mut self.drift);
        Ok(())
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

    /// Returns the finding about a program that tests run.
    fn finding(&self, found: ProgramEffect, sources: &mut Sources) -> Diagnostic {
        let ProgramEffect { program, file, source, test, tools, effect } = found;
        let name = quoted(&program);
        let (code, severity, message, span) = match effect {
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
                let message = format!("{name} fails the test {} with the current tools: {message}", quoted(&test));
                (Code::ProgramBreaks, Severity::Error, message, None)
            }
            Effect::OtherValue(message) => {
                let message = format!("{name} gives another value with the current tools: {message}");
                (Code::ProgramBreaks, Severity::Warning, message, None)
            }
        };
        let file = sources.add(file, source);
        let span = span.unwrap_or(ptc_lisp::Span { start: 0, end: 0 });
        let finding = Diagnostic { severity, ..Diagnostic::new(code, message) };
        let mut finding = finding.at(Span { file, range: span.start..span.end }, "");
        if code == Code::ProgramBreaks {
            for (upstream, tool) in &tools {
                let [old, new] = [&self.old, &self.new].map(|lock| lock.upstreams.get(upstream));
                let changes = drift::changes(upstream, old, new).tools.remove(tool).unwrap_or_default();
                for (_, what) in changes {
                    finding = finding.hint(format!("{} of {} {what}", quoted(tool), quoted(upstream)));
                }
            }
        }
        finding
    }
}
