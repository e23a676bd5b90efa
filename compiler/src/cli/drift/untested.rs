//! What the comparison of two locks cannot show: tests that cannot be used, programs without tests, and calls whose tools are computed.

use ptc_compiler::diag::{Code, Diagnostic, Severity, quoted};
use ptc_compiler::ir;
use ptc_compiler::source::{FileId, Sources, Span};
use ptc_lisp::Program;
use ptc_text::join_limited;

use crate::test::upgrade::{ProgramEffect, UnusableTests};

/// Maximum number of lines that a sentence names.
const MAX_LINES: usize = 5;

/// The start of a program.
pub(super) const START: ptc_lisp::Span = ptc_lisp::Span { start: 0, end: 0 };

/// Returns the finding about tests that cannot be used. Tests of another config are not at fault.
pub(super) fn unusable_finding(tests: UnusableTests, sources: &mut Sources) -> Diagnostic {
    let severity = if tests.is_of_other_config { Severity::Note } else { Severity::Warning };
    let (subject, verb) = if tests.is_one_of_file { ("one test", "is") } else { ("the tests", "are") };
    let message = format!("{subject} of {} {verb} not run: {}", quoted(&tests.file), tests.reason);
    let file = sources.add(tests.file, tests.text);
    let place = line_of(file, tests.line, sources);
    let finding = Diagnostic { severity, ..Diagnostic::new(Code::TestsNotRun, message) }.at(place, "");
    tests.hint.into_iter().fold(finding, Diagnostic::hint)
}

/// Returns the start of a line, which counts from 1.
pub(super) fn line_of(file: FileId, line: usize, sources: &Sources) -> Span {
    let before = sources.get(file).text.split_inclusive('\n').take(line.saturating_sub(1));
    let start = u32::try_from(before.map(str::len).sum::<usize>()).unwrap_or(u32::MAX);
    Span { file, range: start..start }
}

/// A program.
pub(super) struct ProgramText {
    pub(super) name: String,
    pub(super) path: String,
    pub(super) source: String,
    /// Whether there are tests that run it and that cannot be used.
    pub(super) has_unusable_tests: bool,
}

/// The stored programs, and those of tests that cannot be used.
pub(super) struct ProgramTexts(Vec<ProgramText>);

impl ProgramTexts {
    pub(super) fn new(stored: &[ir::Program], untested: &[ProgramEffect], sources: &Sources) -> ProgramTexts {
        let text = |program: &ir::Program| {
            let path = sources.get(program.file).path.clone();
            let has_unusable_tests = untested.iter().any(|effect| effect.file == path);
            ProgramText { name: program.name.clone(), source: program.source.clone(), path, has_unusable_tests }
        };
        let mut all: Vec<ProgramText> = stored.iter().map(text).collect();
        for effect in untested {
            if !all.iter().any(|known| known.path == effect.file) {
                let (name, path, source) = (effect.name.clone(), effect.file.clone(), effect.source.clone());
                all.push(ProgramText { name, path, source, has_unusable_tests: true });
            }
        }
        ProgramTexts(all)
    }

    /// Returns the programs that no usable test runs.
    pub(super) fn without(self, is_tested: impl Fn(&str) -> bool) -> Vec<ProgramText> {
        self.0.into_iter().filter(|program| !is_tested(&program.path)).collect()
    }
}

/// The calls of a program whose tool is computed: its text does not show what they read.
pub(super) struct ComputedCalls {
    /// The calls as the start of a sentence: `the tool of its call at line 3 is computed`.
    pub(super) subject: String,
    /// The first of them.
    pub(super) span: ptc_lisp::Span,
}

impl ComputedCalls {
    /// Returns the calls of a program, if there are any.
    pub(super) fn of(source: &str, sources: &Sources, file: FileId) -> Option<ComputedCalls> {
        let spans = ptc_check::calls_without_literal_tool(&Program::compile(source).ok()?);
        let mut lines: Vec<usize> = spans.iter().map(|span| sources.position(file, span.start).0).collect();
        lines.dedup();
        let subject = match lines.as_slice() {
            [line] => format!("the tool of its call at line {line} is computed"),
            lines => format!("the tools of its calls at the lines {} are computed", join_limited(lines, ", ", MAX_LINES)),
        };
        Some(ComputedCalls { subject, span: *spans.first()? })
    }
}
