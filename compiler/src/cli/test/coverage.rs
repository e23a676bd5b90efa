//! The evaluated forms and branches of the programs under test, by lines of their files.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;
use std::path::{Path, PathBuf};

use ptc_lisp::Program;
use ptc_lisp::coverage::{Collector, Counter, Coverage};

use super::TestRun;
use super::bench::ProgramText;
use super::file::line_of;
use super::outcome::TestOutcome;

/// The covered part of what a program has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Ratio {
    pub(super) covered: usize,
    pub(super) total: usize,
}

/// The coverage of a program. Lines count from 1.
#[derive(Debug)]
pub(super) struct ProgramCoverage {
    /// The path of the program, relative to the current folder if the program is in it.
    pub(super) file: String,
    pub(super) forms: Ratio,
    /// The arms of all branches.
    pub(super) branches: Ratio,
    /// The lines that have forms which were not evaluated.
    pub(super) uncovered_lines: Vec<usize>,
    /// The lines of the branches that have arms which were not evaluated.
    pub(super) partial_branches: Vec<usize>,
    /// The lines that have forms, each with the evaluations of the form that was evaluated most.
    pub(super) lines: BTreeMap<usize, u64>,
    /// The line of each branch, with the evaluations of its arms.
    pub(super) arms: Vec<(usize, Vec<u64>)>,
    /// The line and the name of each function, with its calls.
    pub(super) functions: Vec<(usize, String, u64)>,
}

/// Returns the coverage of the programs that tests have run, and of the stored programs of their configs, sorted by file. Programs
/// that cannot be compiled have none.
pub(super) fn of_programs(ran: &[(&TestRun<'_>, TestOutcome)], collector: &Collector) -> Vec<ProgramCoverage> {
    let mut programs: BTreeMap<String, ProgramText> = BTreeMap::new();
    for (run, outcome) in ran {
        let called = outcome.programs.iter().filter_map(|program| run.bench.program_text(program));
        for program in called.chain(run.bench.stored_programs()) {
            programs.entry(shown(&program.file)).or_insert(program);
        }
    }
    let measure = |(file, program): (String, ProgramText)| {
        let coverage = collector.coverage(&Program::compile(&program.text).ok()?)?;
        Some(ProgramCoverage::new(file, &program.text, &coverage))
    };
    programs.into_iter().filter_map(measure).collect()
}

/// Returns a path for reports. Paths to the same file become equal.
fn shown(path: &Path) -> String {
    let Ok(real) = path.canonicalize() else { return path.display().to_string() };
    let here = std::env::current_dir().and_then(|here| here.canonicalize()).unwrap_or_else(|_| PathBuf::new());
    real.strip_prefix(here).unwrap_or(&real).display().to_string()
}

impl ProgramCoverage {
    fn new(file: String, text: &str, coverage: &Coverage) -> ProgramCoverage {
        let (mut forms, mut branches) = (Ratio::default(), Ratio::default());
        let (mut uncovered, mut partial) = (BTreeSet::new(), BTreeSet::new());
        let mut lines: BTreeMap<usize, u64> = BTreeMap::new();
        for form in &coverage.forms {
            let (line, count) = (line_of(text, form.span.start), form.counter.count());
            let known = lines.entry(line).or_default();
            *known = count.max(*known);
            if !forms.add(count) {
                uncovered.insert(line);
            }
        }
        let mut arms = Vec::with_capacity(coverage.branches.len());
        for branch in &coverage.branches {
            let line = line_of(text, branch.span.start);
            let counts: Vec<u64> = branch.arms.iter().map(Counter::count).collect();
            for count in &counts {
                if !branches.add(*count) {
                    partial.insert(line);
                }
            }
            arms.push((line, counts));
        }
        let functions = coverage.functions.iter();
        let functions =
            functions.map(|function| (line_of(text, function.span.start), function.name.to_string(), function.counter.count()));
        ProgramCoverage {
            file,
            forms,
            branches,
            uncovered_lines: uncovered.into_iter().collect(),
            partial_branches: partial.into_iter().collect(),
            lines,
            arms,
            functions: functions.collect(),
        }
    }
}

impl Ratio {
    /// Counts one more. Returns whether it is covered.
    fn add(&mut self, count: u64) -> bool {
        self.total += 1;
        self.covered += usize::from(count > 0);
        count > 0
    }

    /// Returns the percentage with one decimal, rounded down, so that only complete coverage is 100. `None` if there is nothing to
    /// cover.
    pub(super) fn percentage(self) -> Option<String> {
        let tenths = (self.covered * 1000).checked_div(self.total)?;
        Some(format!("{}.{}", tenths / 10, tenths % 10))
    }
}

impl AddAssign for Ratio {
    fn add_assign(&mut self, other: Ratio) {
        self.covered += other.covered;
        self.total += other.total;
    }
}
