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
    let at = |share: f64| all[((all.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6;
    format!("{:>8.1} µs median, {:>8.1} µs p99", at(0.5), at(0.99))
}
