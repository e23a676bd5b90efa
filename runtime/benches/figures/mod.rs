//! Measurements that several benchmarks share.

use std::process::Child;
use std::time::Duration;

/// Returns the resident memory of a process in KiB, 0 if the process has ended.
pub(crate) fn resident_kib(process: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Formats median and 99th percentile.
pub(crate) fn quantiles(all: &mut [Duration]) -> String {
    all.sort_unstable();
    format!("{:>8.1} µs median, {:>8.1} µs p99", micros(all, 0.5), micros(all, 0.99))
}

/// Returns the median of sorted durations in microseconds.
pub(crate) fn median(all: &[Duration]) -> f64 {
    micros(all, 0.5)
}

/// Formats the ratio of the server's figure to the echo's.
pub(crate) fn ratio(what: &str, [echo, server]: [f64; 2]) -> String {
    format!(" ratio  {what:<22} {:>9.2}", server / echo)
}

fn micros(all: &[Duration], share: f64) -> f64 {
    all[((all.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6
}
