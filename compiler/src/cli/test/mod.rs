//! Runs `test [PATH…]`: the tests of programs in files that end with `_test.clj`, and the cases in files that end with `_cases.json`.
//!
//! | module | purpose |
//! |---|---|
//! | `discover` | finds the files |
//! | `file` | reads a file: its namespace with config and cassette, its tests, its other forms |
//! | `cases` | reads and runs files with cases; `expected_calls`: compares the calls of a program with those that are expected |
//! | `expand` | turns the forms of `clojure.test` into PTC-Lisp |
//! | `edn` | the values in texts of programs |
//! | `bench` | the engines that run tests and programs, and the answers of each cassette |
//! | `running` | what the tests that are running report, and with which answers they run |
//! | `program_run` | runs the programs under test |
//! | `calls` | the calls of each test |
//! | `injection` | changed answers of one run |
//! | `checks` | `--faults` and `--properties` |
//! | `deployments` | the deployments of the configs, which `--watch` keeps |
//! | `coverage` | the evaluated forms and branches of the programs, for `--coverage` |
//! | `watch` | runs tests again when their files change |
//! | `interrupt` | ends a run when a signal arrives |
//! | `upgrade` | runs programs with the tools before and after a change, for `diff` |
//! | `outcome` | the results |
//! | `diff` | the differences between two values, with their paths |
//! | `report` | the formats |
//!
//! A test is one evaluation, of the forms of its file and of its own body. The assertions in it report through a host tool of the
//! embedding API, so that no server knows the forms. A program under test is an evaluation of its own, as in a server.

mod bench;
mod calls;
pub(crate) mod cases;
mod checks;
mod coverage;
mod deployments;
mod diff;
mod discover;
mod edn;
mod expand;
mod expected_calls;
mod file;
mod injection;
mod interrupt;
mod outcome;
mod program_run;
pub(crate) mod report;
mod running;
pub(crate) mod upgrade;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, ValueEnum};
use ptc_lisp::coverage::Collector;
use ptc_lisp::limits::Cancel;

use crate::answers::faults::FAULTS;
use crate::console::Console;
use crate::shared_args::{ReportFile, report_file};
use crate::{Failure, Status, files, load};
use bench::{Bench, Benches, Inputs};
use cases::{Case, CaseFile};
use checks::{Plan, Target};
use deployments::{Deployments, Unusable};
use file::TestFile;
use interrupt::Interruptible;
use outcome::{CheckOutcome, TestOutcome, Verdict};
use program_run::ProgramRun;
use report::Results;

/// `ptc-compile test`
///
/// Runs the tests of files whose names end with `_test.clj`, and the cases of files whose names end with `_cases.json`. They name a
/// config and a cassette, from which all calls are answered; no upstream is contacted. Exit codes: 0 all tests passed, 1 a test failed, 2 there is nothing to run, 130 Ctrl-C.
///
/// After Ctrl-C, the results so far are printed and written into the reports, and the other tests are counted as not run. A second Ctrl-C
/// ends the command at once.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own, and all of them combine")]
pub(crate) struct Test {
    /// Files with tests or cases, or folders, in which they are searched for
    #[arg(value_name = "PATH", default_value = ".")]
    paths: Vec<PathBuf>,

    /// Only tests with this in their name, as `namespace/test`
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,

    /// Tests that run at the same time [default: one for each processor]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,

    /// Also run each program with answers that have faults, one after the other [default: all faults]
    ///
    /// A program must end with a value of its declared shape, or with `(fail)`. Everything else is a finding, with the smallest answer
    /// that shows it.
    #[arg(
        long,
        value_name = "FAULT,...",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = ALL_FAULTS,
        value_delimiter = ',',
        value_parser = fault_names()
    )]
    faults: Vec<String>,

    /// Also run each program with answers that are generated from the output schemas of the tools
    #[arg(long)]
    properties: bool,

    /// The seed of generated answers
    #[arg(long, value_name = "N", default_value_t = 0, requires = "properties")]
    seed: u64,

    /// The runs of each program with generated answers
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), default_value_t = 100, requires = "properties")]
    runs: u32,

    /// The failure of a call may end a program, as that of `tool/value` does
    #[arg(long)]
    allow_failed_calls: bool,

    /// Also print which forms and branches of the programs the tests evaluate
    ///
    /// With the formats text and json, the table follows the results. With the others, it is printed on standard error. Stored
    /// programs that no test runs are in it too.
    #[arg(long)]
    coverage: bool,

    /// Write the coverage as an LCOV tracefile
    #[arg(long, value_name = "FILE")]
    coverage_lcov: Option<PathBuf>,

    /// Run tests again when their files change: the tests, programs, cassettes, configs and what belongs to these
    ///
    /// Only the files with tests that depend on a changed file are run again. Ctrl-C ends it; the exit code is that of the last runs, or
    /// 130 if tests were running.
    #[arg(long)]
    watch: bool,

    /// How the results are printed
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = TestFormat::Text)]
    format: TestFormat,

    /// Write the results into a file too, in any of these formats; can be repeated
    #[arg(
        long,
        value_name = "FORMAT=FILE",
        value_parser = |text: &str| report_file(TestFormat::value_variants(), text),
        conflicts_with = "watch"
    )]
    report: Vec<ReportFile<TestFormat>>,
}

/// The value of `--faults` without a value.
const ALL_FAULTS: &str = "all";

/// Returns the values of `--faults`.
fn fault_names() -> PossibleValuesParser {
    let all = PossibleValue::new(ALL_FAULTS).help("all of these");
    let faults = FAULTS.iter().map(|fault| PossibleValue::new(fault.name).help(fault.summary));
    PossibleValuesParser::new(faults.chain([all]))
}

/// `--format` of `test`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TestFormat {
    /// The failed tests, and a line with the numbers
    Text,
    /// One document of JUnit XML
    Junit,
    /// Workflow commands, which GitHub shows at the lines
    Github,
    /// One JSON object a line: the tests, and a summary
    Json,
}

impl TestFormat {
    fn render(self, results: &Results<'_>) -> String {
        match self {
            TestFormat::Text => report::text::render(results),
            TestFormat::Junit => report::junit::render(results),
            TestFormat::Github => report::github::render(results),
            TestFormat::Json => report::json::render(results),
        }
    }
}

/// Runs the tests and prints the results.
pub(crate) fn run(args: &Test, console: &Console) -> Result<Status, Failure> {
    if args.watch {
        return watch::run(args, console);
    }
    let paths = discover::files(&args.paths)?.files;
    let (ran, interrupted) = Interruptible::new()?.run(args, paths, Deployments::default(), console);
    match interrupted {
        Some(status) => Ok(status_after(&ran, status, console)),
        None => ran.map(|ran| ran.status()),
    }
}

/// Returns the status of a run that a signal has ended, and prints what else went wrong, such as a report that cannot be written.
fn status_after(ran: &Result<FileResults, Failure>, status: Status, console: &Console) -> Status {
    if let Err(failure) = ran {
        console.failure(failure);
    }
    status
}

/// The results of files with tests.
#[derive(Default)]
struct FileResults {
    /// The files that were run, each with the files on which its results depend.
    depends: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
    /// The files of which a test failed or has a finding.
    failed: BTreeSet<PathBuf>,
}

impl FileResults {
    fn status(&self) -> Status {
        if self.failed.is_empty() { Status::Clean } else { Status::Findings }
    }
}

/// Runs the tests of files and prints the results. `cancel` ends the tests that have not ended, and those results are printed too.
fn run_files(
    args: &Test,
    paths: Vec<PathBuf>,
    deployments: &Deployments,
    cancel: Cancel,
    console: &Console,
) -> Result<FileResults, Failure> {
    let started = Instant::now();
    let mut ran_files = FileResults::default();
    let (mut test_files, mut case_files, mut outcomes) = (Vec::new(), Vec::new(), Vec::new());
    for path in paths {
        let name = path.display().to_string();
        ran_files.depends.entry(path.clone()).or_default();
        let text = match load::read_text(&path) {
            Ok(text) => text,
            // With `--watch`, a file may be missing while it is replaced.
            Err(failure) if !args.watch && args.paths.contains(&path) && !path.exists() => return Err(failure),
            Err(failure) => {
                outcomes.push(TestOutcome::of_file(&name, 1, failure.to_string()));
                continue;
            }
        };
        let read = if name.ends_with(discover::CASES) {
            CaseFile::read(&path, &text).map(|file| case_files.push(file))
        } else {
            TestFile::read(&path, &text).map(|file| test_files.push(file))
        };
        if let Err(error) = read {
            outcomes.push(TestOutcome::of_file(&name, error.line, error.message));
        }
    }
    let is_selected = |name: &str| args.filter.as_ref().is_none_or(|filter| name.contains(&**filter));
    let mut asked: Vec<(Inputs, Subject<'_>)> = Vec::new();
    for file in &test_files {
        for (at, test) in file.tests.iter().enumerate().filter(|(_, test)| is_selected(&file.full_name(&test.name))) {
            match &test.error {
                Some(error) => outcomes.push(TestOutcome::of_test(file, test, error)),
                None => asked.push((file.inputs(), Subject::Test(file, at))),
            }
        }
    }
    for file in &case_files {
        outcomes.extend(file.wrong_outcomes(is_selected));
        let cases = file.cases.iter().filter(|(_, case)| is_selected(&file.full_name(case)));
        asked.extend(cases.map(|(line, case)| (file.inputs(case), Subject::Case(file, *line, case))));
    }
    let collector = (args.coverage || args.coverage_lcov.is_some()).then(Arc::<Collector>::default);
    let mut benches = Benches::new(collector.clone(), deployments.clone(), cancel);
    let mut refused: BTreeSet<Inputs> = BTreeSet::new();
    let mut runs = Vec::new();
    for (inputs, subject) in asked {
        let depends = ran_files.depends.entry(PathBuf::from(&inputs.path)).or_default();
        depends.extend(inputs.files());
        match benches.of(&inputs, console) {
            Ok(bench) => {
                depends.extend(bench.config_files().iter().cloned());
                runs.push(TestRun { inputs, subject, bench });
            }
            Err(Unusable { failure, files }) => {
                depends.extend(files);
                if !refused.contains(&inputs) {
                    outcomes.push(TestOutcome::of_file(&inputs.path, 1, failure.to_string()));
                    refused.insert(inputs);
                }
            }
        }
    }
    // A changed file may have no test that is selected.
    if runs.is_empty() && outcomes.is_empty() && !args.watch {
        let failure = Failure::new("there are no tests to run");
        return Err(match &args.filter {
            Some(filter) => failure.hint(format!("no name of a test contains `{filter}`")),
            None => failure.hint(format!(
                "tests are in files whose names end with `{}`, as `(deftest name …)`, and cases in files whose names end with `{}`",
                discover::TESTS,
                discover::CASES
            )),
        });
    }
    let jobs = jobs(args);
    let mut ran = in_parallel(&runs, jobs, |run| (run, run.run()));
    ran.sort_by(|(_, one), (_, other)| (&one.file, one.line).cmp(&(&other.file, other.line)));
    for (_, outcome) in &ran {
        let programs = outcome.programs.iter().filter_map(|program| program.path.clone());
        ran_files.depends.entry(PathBuf::from(&outcome.file)).or_default().extend(programs);
    }
    let targets = targets(&ran);
    let coverage = collector.map(|collector| coverage::of_programs(&ran, &collector)).unwrap_or_default();
    outcomes.extend(ran.into_iter().map(|(_, outcome)| outcome));
    outcomes.sort_by(|one, other| (&one.file, one.line).cmp(&(&other.file, other.line)));
    let plan = plan(args);
    let checks: Vec<_> = plan.kinds().into_iter().flat_map(|kind| targets.iter().map(move |target| (kind, target))).collect();
    let mut checks = in_parallel(&checks, jobs, |(kind, target)| target.check(*kind, &plan));
    checks.sort_by(|one, other| check_order(one).cmp(&check_order(other)));
    if let Some(path) = &args.coverage_lcov {
        files::write_if_changed(path, report::lcov::render(&coverage).as_bytes())?;
    }
    let shown = if args.coverage { Some(&*coverage) } else { None };
    let results = Results { tests: &outcomes, checks: &checks, coverage: shown, took: started.elapsed() };
    console.data(&args.format.render(&results));
    if matches!(args.format, TestFormat::Junit | TestFormat::Github) {
        // These formats have no line for people, and an annotation exists only for what fails.
        console.message(&report::text::numbers(&results));
    }
    for report in &args.report {
        files::write_if_changed(&report.path, report.format.render(&results).as_bytes())?;
    }
    let failed = outcomes.iter().filter(|outcome| outcome.verdict() != Verdict::Passed).map(|outcome| &outcome.file);
    let found = checks.iter().filter(|check| !check.findings.is_empty()).map(|check| &check.test_file);
    ran_files.failed = failed.chain(found).map(PathBuf::from).collect();
    Ok(ran_files)
}

/// Returns the order of checks in reports.
fn check_order(check: &CheckOutcome) -> (&str, &str, usize, &str) {
    (check.kind, &check.test_file, check.test_line, &check.program)
}

/// Returns the checks that the options ask for.
fn plan(args: &Test) -> Plan {
    let is_asked = |name: &str| args.faults.iter().any(|asked| asked == name || asked == ALL_FAULTS);
    Plan {
        faults: FAULTS.iter().filter(|fault| is_asked(fault.name)).collect(),
        properties: args.properties.then_some((args.seed, args.runs)),
        allows_failed_calls: args.allow_failed_calls,
    }
}

/// A test or a case.
#[derive(Clone)]
enum Subject<'f> {
    /// A file with the index of the test.
    Test(&'f TestFile, usize),
    /// A file with the line of the case.
    Case(&'f CaseFile, usize, &'f Case),
}

/// A test or a case that can be run.
struct TestRun<'f> {
    inputs: Inputs,
    subject: Subject<'f>,
    bench: Bench,
}

impl TestRun<'_> {
    fn run(&self) -> TestOutcome {
        if self.bench.is_interrupted() {
            return self.interrupted();
        }
        let outcome = match self.subject {
            Subject::Test(file, test) => self.bench.run(file, test),
            Subject::Case(file, line, case) => file.run(line, case, &self.bench),
        };
        // An evaluation that a signal ended says nothing about the test.
        if self.bench.is_interrupted() { self.interrupted() } else { outcome }
    }

    /// Returns the result after a signal.
    fn interrupted(&self) -> TestOutcome {
        let (name, line) = match self.subject {
            Subject::Test(file, at) => {
                file.tests.get(at).map_or((String::new(), 1), |test| (file.full_name(&test.name), test.line))
            }
            Subject::Case(file, line, case) => (file.full_name(case), line),
        };
        TestOutcome { file: self.inputs.path.clone(), name, line, is_interrupted: true, ..TestOutcome::default() }
    }
}

/// Returns the programs that tests run, each with its arguments once for each config, cassette and declared shape. One without a
/// declared shape is left out if a case declares it.
fn targets(ran: &[(&TestRun<'_>, TestOutcome)]) -> Vec<Target> {
    let key = |run: &TestRun<'_>, program: &ProgramRun| {
        let without_shape = ProgramRun { output_schema: None, ..program.clone() };
        (run.inputs.config.clone(), run.inputs.cassette.clone(), without_shape)
    };
    let programs = ran.iter().flat_map(|(run, outcome)| outcome.programs.iter().map(move |program| (run, program)));
    let has_shape = programs.filter(|(_, program)| program.output_schema.is_some());
    let has_shape: BTreeSet<_> = has_shape.map(|(run, program)| key(run, program)).collect();
    let mut known = BTreeSet::new();
    let mut targets = Vec::new();
    for (run, outcome) in ran {
        for program in &outcome.programs {
            if program.output_schema.is_none() && has_shape.contains(&key(run, program)) {
                continue;
            }
            if known.insert((&run.inputs.config, &run.inputs.cassette, program)) {
                let (test_file, test_line) = (outcome.file.clone(), outcome.line);
                targets.push(Target { bench: run.bench.clone(), run: program.clone(), test_file, test_line });
            }
        }
    }
    targets
}

fn jobs(args: &Test) -> usize {
    let processors = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    args.jobs.map_or_else(processors, usize::from)
}

/// Returns the results of a function for all items, which are computed on several threads. Their order is not that of the items.
fn in_parallel<'i, T: Sync, R: Send>(items: &'i [T], jobs: usize, compute: impl Fn(&'i T) -> R + Sync) -> Vec<R> {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(items.len())));
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(items.len()) {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = compute(item);
                    results.lock().unwrap_or_else(PoisonError::into_inner).push(result);
                }
            });
        }
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Maximum bytes of a value in a report.
const MAX_SHOWN: usize = 2000;

/// Truncates a value for a report.
fn shortened(text: &str) -> String {
    let (text, is_cut) = ptc_text::truncate_utf8(text, MAX_SHOWN);
    format!("{text}{}", if is_cut { "…" } else { "" })
}
