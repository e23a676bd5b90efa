//! What several benchmarks measure in one way.

use std::process::Child;
use std::time::Duration;

/// What a process has resident, in KiB; 0 where it is gone.
pub(crate) fn resident_kib(process: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Median and 99th percentile, as text.
pub(crate) fn quantiles(all: &mut [Duration]) -> String {
    all.sort_unstable();
    format!("{:>8.1} µs median, {:>8.1} µs p99", micros(all, 0.5), micros(all, 0.99))
}

/// The median of times that are in order, in microseconds.
pub(crate) fn median(all: &[Duration]) -> f64 {
    micros(all, 0.5)
}

/// How the second of two figures compares to the first, as text.
pub(crate) fn ratio(what: &str, [echo, server]: [f64; 2]) -> String {
    format!(" ratio  {what:<22} {:>9.2}", server / echo)
}

fn micros(all: &[Duration], share: f64) -> f64 {
    all[((all.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6
}
