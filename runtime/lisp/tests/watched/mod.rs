//! What a process takes, told by the system and not by the process.

use std::time::Duration;

/// Greatest resident memory of a process so far, in bytes; 0 where the system does not tell.
pub(crate) fn peak_resident(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).map_or(0, |kb| kb * 1024)
}

/// Time that the threads of a process have computed, those that ended included: a busy machine does not make it longer. In
/// hundredths of a second; zero where the system does not tell.
pub(crate) fn cpu_time(id: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    // The name of the program, in parentheses, may have spaces.
    let fields = stat.rsplit_once(')').map(|(_, fields)| fields).unwrap_or_default();
    let ticks: u64 = fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

/// How much longer than its limit a program may compute.
pub(crate) const LATE: Duration = Duration::from_millis(if cfg!(debug_assertions) { 400 } else { 70 });
