//! Sweeps the entry points of the host with hostile values, at small and at default limits.
//!
//! Every pair of an entry point and a value of `table.rs` is a program that a real server runs, with upstreams of every transport. The
//! server's resident memory may grow by the memory limit, a fifth of it, and 16 MB, above what the idle process had. The answer may
//! come 100 ms after the program's timeout. A program that runs for more than 50 ms runs once more and is cancelled meanwhile; then
//! the server must be free within 50 ms. A program that exceeds a bound runs again in new servers, and the lowest figures count, since
//! other processes may use the processors.
//!
//! An unoptimised build runs a small part of the programs, and does not bound the times.

mod table;
mod watch;
pub(crate) mod world;

use std::time::Duration;

use self::table::{ENTRIES, Entry, Hostile, REQUESTS, TEXTS, VALUES, Via};
use self::watch::{Figures, Servers};
use self::world::OPERATIONS;
use crate::Test;

/// The tests of this module.
pub(crate) const TESTS: &[Test] = &[
    ("boundary::entry_points_stay_within_small_limits", entry_points_stay_within_small_limits),
    ("boundary::entry_points_stay_within_default_limits", entry_points_stay_within_default_limits),
];

/// Limits of programs, and the flags that set them.
struct LimitSet {
    name: &'static str,
    memory: u64,
    timeout: Duration,
    flags: &'static [&'static str],
    /// Sizes of JSON texts in requests. A frame may have 8 MiB, which is too much beside a memory limit of 2 MiB: the bytes of
    /// requests do not count as memory of a program.
    request_bytes: &'static [usize],
}

const SMALL: LimitSet = LimitSet {
    name: "small",
    memory: 2 << 20,
    timeout: Duration::from_millis(100),
    flags: &["--program-memory-limit-bytes", "2097152", "--program-timeout-ms", "100"],
    request_bytes: &[CONTEXT_BYTES],
};
/// The default memory. The default timeout of 10 s would make the sweep take hours.
const DEFAULT: LimitSet = LimitSet {
    name: "default",
    memory: 100 << 20,
    timeout: Duration::from_secs(1),
    flags: &["--program-timeout-ms", "1000"],
    request_bytes: &[CONTEXT_BYTES, 8_000_000],
};

/// Maximum growth of resident memory beyond the limit and its fifth.
const MARGIN_BYTES: u64 = 16 << 20;
/// Maximum time of an answer beyond the program's timeout.
const MAX_LATE: Duration = Duration::from_millis(if cfg!(debug_assertions) { 8_000 } else { 100 });
/// Maximum time from a cancellation until another program has run.
const MAX_CANCEL: Duration = Duration::from_millis(if cfg!(debug_assertions) { 8_000 } else { 50 });
/// Number of further runs of a program that exceeds a bound.
const RETRIES: usize = 4;
/// An unoptimised build runs one of this number of programs.
const STEP: usize = if cfg!(debug_assertions) { 211 } else { 1 };
/// Maximum number of entries that a value is made of. A builtin that makes or drops a vector of several million entries does so in
/// one step, which takes about 50 ms.
const MAX_ENTRIES: u64 = 500_000;
/// Size of the JSON text of a context, which may have 4 MiB.
const CONTEXT_BYTES: usize = 4_000_000;

/// One program, or one request without a program.
struct Case {
    /// `None` for a request whose parameters are `text`, in which `JSON` stands for the JSON text.
    via: Option<Via>,
    text: String,
    /// Name and size of the JSON text of `data/v`, or of the request.
    json: Option<(&'static str, usize)>,
}

impl Case {
    fn program(entry: Entry, value: &Hostile, set: &LimitSet) -> Case {
        let call = entry.program.replace("VALUE", value.value);
        let many = (set.memory / 32).min(MAX_ENTRIES);
        let program = format!("{} {}", value.before, value.around.replace("CALL", &call))
            .replace("DOUBLINGS", &(set.memory / 64).ilog2().to_string())
            .replace("MANY", &many.to_string())
            .replace("SOME", &(many / 100).to_string());
        Case {
            via: Some(entry.via),
            text: program.trim_start().to_owned(),
            json: value.context.map(|name| (name, CONTEXT_BYTES)),
        }
    }
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.via {
            Some(via) => write!(f, "{via:?} {}", self.text)?,
            None => write!(f, "request {}", self.text)?,
        }
        self.json.map_or(Ok(()), |(name, bytes)| write!(f, " with {name} of {bytes} bytes"))
    }
}

/// Returns every pair of the tables.
fn cases(set: &LimitSet) -> Vec<Case> {
    let operations = OPERATIONS.iter().filter(|(.., params, _)| params.ends_with('v')).map(|(id, ..)| Entry {
        via: Via::Eval,
        program: format!(r#"(tool/call {{:server "api" :tool "{id}" :args {{:v VALUE}}}})"#).leak(),
    });
    let entries: Vec<Entry> = ENTRIES.iter().copied().chain(operations).collect();
    let has_context = |via| !matches!(via, Via::Embedded);
    let programs = entries.iter().flat_map(|&entry| {
        let values = VALUES.iter().filter(move |value| value.context.is_none() || has_context(entry.via));
        values.map(move |value| Case::program(entry, value, set))
    });
    let requests = REQUESTS.iter().flat_map(|request| {
        let texts = TEXTS.iter().flat_map(|&name| set.request_bytes.iter().map(move |&bytes| (name, bytes)));
        texts.map(|json| Case { via: None, text: (*request).to_owned(), json: Some(json) })
    });
    programs.chain(requests).collect()
}

fn entry_points_stay_within_small_limits() {
    sweep(&SMALL);
}

fn entry_points_stay_within_default_limits() {
    sweep(&DEFAULT);
}

#[expect(clippy::print_stdout, reason = "the figures of an optimised build")]
fn sweep(set: &LimitSet) {
    // A part of a case's text repeats only the cases that contain it.
    let only = std::env::var("BOUNDARY_ONLY").ok();
    let is_chosen = |(index, case): &(usize, Case)| match &only {
        Some(part) => case.to_string().contains(part),
        None => index % STEP == 0,
    };
    let mut servers = Servers::new(set);
    let mut worst = Figures::default();
    let (mut programs, mut faults) = (0, Vec::new());
    for (index, case) in cases(set).into_iter().enumerate().filter(is_chosen) {
        let mut figures = servers.run(&case, index);
        for _ in 0..RETRIES {
            if figures.is_within(set) {
                break;
            }
            servers.restart();
            figures = figures.lowest(servers.run(&case, index));
        }
        if !figures.is_within(set) {
            println!("{} limits: {figures}: {case}", set.name);
            faults.push(format!("{figures}: {case}"));
            servers.restart();
        }
        if only.is_some() {
            println!("{figures}: {case}");
        }
        programs += 1;
        worst.include(&figures);
    }
    println!("{} limits: {programs} programs, {} faults; at most {worst}", set.name, faults.len());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
