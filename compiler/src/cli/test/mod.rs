//! Runs `test [PATH…]`: the tests of programs in files that end with `_test.clj`.
//!
//! | module | purpose |
//! |---|---|
//! | `discover` | finds the files |
//! | `file` | reads a file: its namespace with config and cassette, its tests, its other forms |
//! | `expand` | turns the forms of `clojure.test` into PTC-Lisp |
//! | `edn` | the values in texts of programs |
//! | `bench` | the engines that run tests and programs, for each config and cassette |
//! | `calls` | the calls of each test |
//! | `outcome` | the results |
//! | `diff` | the differences between two values, with their paths |
//! | `report` | the formats |
//!
//! A test is one evaluation, of the forms of its file and of its own body. The assertions in it report through a host tool of the
//! embedding API, so that no server knows the forms. A program under test is an evaluation of its own, as in a server.

mod bench;
mod calls;
mod diff;
mod discover;
mod edn;
mod expand;
mod file;
mod outcome;
mod report;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use clap::{Args, ValueEnum};

use crate::console::Console;
use crate::{Failure, Status, load};
use bench::Benches;
use file::TestFile;
use outcome::{TestOutcome, Verdict};

/// `ptc-compile test`
///
/// Runs the tests of files whose names end with `_test.clj`. The namespace of a file names a config and a cassette, from which all
/// calls are answered; no upstream is contacted. Exit codes: 0 all tests passed, 1 a test failed, 2 there is nothing to run.
#[derive(Debug, Args)]
pub(crate) struct Test {
    /// Files with tests, or folders, in which they are searched for
    #[arg(value_name = "PATH", default_value = ".")]
    paths: Vec<PathBuf>,

    /// Only tests with this in their name, as `namespace/test`
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,

    /// Tests that run at the same time [default: one for each processor]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,

    /// How the results are printed
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = TestFormat::Text)]
    format: TestFormat,
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

/// Runs the tests and prints the results.
pub(crate) fn run(args: &Test, console: &Console) -> Result<Status, Failure> {
    let started = Instant::now();
    let paths = discover::files(&args.paths)?;
    let mut files = Vec::new();
    let mut outcomes = Vec::new();
    for path in paths {
        let name = path.display().to_string();
        match TestFile::read(&path, &load::read_text(&path)?) {
            Ok(file) => files.push(file),
            Err(error) => outcomes.push(TestOutcome::of_file(&name, error.line, error.message)),
        }
    }
    let mut benches = Benches::default();
    let mut runs = Vec::new();
    for file in &files {
        let is_selected = |name: &str| args.filter.as_ref().is_none_or(|filter| file.full_name(name).contains(&**filter));
        let tests: Vec<usize> =
            file.tests.iter().enumerate().filter(|(_, test)| is_selected(&test.name)).map(|(at, _)| at).collect();
        if tests.is_empty() {
            continue;
        }
        match benches.of(file, console) {
            Ok(bench) => runs.extend(tests.into_iter().map(|test| (file, test, bench.clone()))),
            Err(failure) => outcomes.push(TestOutcome::of_file(&file.path, 1, failure.to_string())),
        }
    }
    if runs.is_empty() && outcomes.is_empty() {
        let failure = Failure::new("there are no tests to run");
        return Err(match &args.filter {
            Some(filter) => failure.hint(format!("no name of a test contains `{filter}`")),
            None => failure.hint("tests are in files whose names end with `_test.clj`, as `(deftest name …)`"),
        });
    }
    outcomes.extend(run_all(&runs, jobs(args)));
    outcomes.sort_by(|one, other| (&one.file, one.line).cmp(&(&other.file, other.line)));
    console.data(&match args.format {
        TestFormat::Text => report::text::render(&outcomes, started.elapsed()),
        TestFormat::Junit => report::junit::render(&outcomes),
        TestFormat::Github => report::github::render(&outcomes),
        TestFormat::Json => report::json::render(&outcomes, started.elapsed()),
    });
    let is_passed = outcomes.iter().all(|outcome| outcome.verdict() == Verdict::Passed);
    Ok(if is_passed { Status::Clean } else { Status::Findings })
}

fn jobs(args: &Test) -> usize {
    let processors = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    args.jobs.map_or_else(processors, usize::from)
}

/// Runs tests on several threads.
fn run_all(runs: &[(&TestFile, usize, bench::Bench)], jobs: usize) -> Vec<TestOutcome> {
    let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(runs.len())));
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(runs.len()) {
            scope.spawn(|| {
                while let Some((file, test, bench)) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = bench.run(file, *test);
                    outcomes.lock().unwrap_or_else(PoisonError::into_inner).push(outcome);
                }
            });
        }
    });
    outcomes.into_inner().unwrap_or_else(PoisonError::into_inner)
}
