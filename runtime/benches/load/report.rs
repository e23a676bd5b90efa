//! Prints a table of streams, and bounds.

use std::time::Duration;

use crate::record::{Class, Record};
use crate::server::Usage;

/// A bound of a run, and whether the run meets it.
pub(crate) struct Bound {
    pub(crate) what: String,
    pub(crate) met: bool,
}

/// One line of the table: a stream with its outcomes.
pub(crate) struct Row {
    pub(crate) run: &'static str,
    pub(crate) server: &'static str,
    pub(crate) record: Record,
    pub(crate) usage: Usage,
}

/// Prints the table. Below each line it prints the reasons of unexpected outcomes.
pub(crate) fn print(rows: &[Row]) {
    println!(
        "{:<5} {:<21} {:<38} {:>7} {:>8} {:>7} {:>6} {:>6} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>6}",
        "run",
        "server",
        "stream",
        "sent",
        "answered",
        "refused",
        "ended",
        "failed",
        "p50 ms",
        "p90 ms",
        "p99 ms",
        "max ms",
        "peak MB",
        "RSS MB",
        "CPU s"
    );
    for Row { run, server, record, usage } in rows {
        let [p50, p90, p99, max] = record.quantiles([0.5, 0.9, 0.99, 1.0]).map(millis);
        println!(
            "{run:<5} {server:<21} {:<38} {:>7} {:>8} {:>7} {:>6} {:>6} {p50:>8} {p90:>8} {p99:>8} {max:>8} {:>8.1} {:>8.1} {:>6.1}",
            record.name,
            record.sent,
            record.count(Class::Answered),
            record.count(Class::Refused),
            record.count(Class::Ended),
            record.count(Class::Failed),
            megabytes(usage.peak_kib),
            megabytes(usage.resident_kib),
            usage.processor.as_secs_f64(),
        );
        for (class, word) in [(Class::Refused, "refused"), (Class::Ended, "ended"), (Class::Failed, "failed")] {
            let reasons: Vec<String> = record.reasons(class).map(|(reason, count)| format!("{count} {reason}")).collect();
            if !reasons.is_empty() {
                println!("{:<27} {word}: {}", "", reasons.join(", "));
            }
        }
    }
}

/// Prints bounds. Returns whether all are met.
pub(crate) fn print_bounds(bounds: &[Bound]) -> bool {
    for Bound { what, met } in bounds {
        println!("{:<27} {}: {what}", "", if *met { "met" } else { "NOT MET" });
    }
    bounds.iter().all(|bound| bound.met)
}

/// Bounds the latency at a quantile of all requests, such as 0.99. The bound is met only if every request was answered.
pub(crate) fn at_most(run: &str, record: &Record, share: f64, most: Duration) -> Bound {
    let [found] = record.quantiles([share]);
    let which = if share < 1.0 { format!("p{:.0}", share * 100.0) } else { "last answer".into() };
    let complete = record.count(Class::Answered) == record.sent;
    let share = if complete { "" } else { " of those answered" };
    let what = format!("run {run}, {}: {which}{share} {} ms, at most {} ms of all", record.name, millis(found), most.as_millis());
    Bound { what, met: complete && found <= most }
}

/// Requires that every request was answered as expected.
pub(crate) fn all_answered(run: &str, record: &Record) -> Bound {
    let answered = record.count(Class::Answered);
    let what = format!("run {run}, {}: {answered} of {} answered, all expected", record.name, record.sent);
    Bound { what, met: answered == record.sent }
}

/// Bounds the peak resident memory of the process in bytes.
pub(crate) fn memory(run: &str, usage: Usage, most: u64) -> Bound {
    let peak = megabytes(usage.peak_kib);
    Bound { what: format!("run {run}: peak of {peak:.0} MB, at most {} MB", most / 1_000_000), met: peak * 1e6 <= most as f64 }
}

/// Converts KiB to megabytes of 1,000,000 bytes.
pub(crate) fn megabytes(kib: u64) -> f64 {
    kib as f64 * 1024.0 / 1e6
}

fn millis(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() * 1e3)
}
