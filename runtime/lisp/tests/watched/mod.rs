//! Memory and processor time of a process, as reported by the system.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Returns the peak resident memory of a process in bytes, or 0 if the system does not report it.
pub(crate) fn peak_resident(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).map_or(0, |kb| kb * 1024)
}

/// Returns the processor time of all threads of a process, including those that have ended, to a hundredth of a second. A busy
/// machine does not increase it. Returns zero if the system does not report it.
pub(crate) fn cpu_time(id: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    // The name of the program, in parentheses, may contain spaces.
    let fields = stat.rsplit_once(')').map(|(_, fields)| fields).unwrap_or_default();
    let ticks: u64 = fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

/// The processor time of a process at a later moment, available after that moment.
pub(crate) struct Later(Arc<OnceLock<Duration>>);

impl Later {
    pub(crate) fn new(id: u32, after: Duration) -> Later {
        let found = Arc::new(OnceLock::new());
        let later = Later(Arc::clone(&found));
        std::thread::spawn(move || {
            std::thread::sleep(after);
            let _ = found.set(cpu_time(id));
        });
        later
    }

    /// Returns the processor time used since that moment, or zero before it.
    pub(crate) fn since(&self, now: Duration) -> Duration {
        self.0.get().map_or(Duration::ZERO, |then| now.saturating_sub(*then))
    }
}

/// The processor time that a program may use after its deadline: 50 ms, and what the resolution of the system's clock adds at
/// both ends. Threads of one program run at the same time. The optimised run (`.ci/limits`) asserts this figure. Unoptimised code
/// is slower between two checks of the deadline: one program took from 170 to 440 ms there. That bound only finds programs that
/// do not check the deadline.
pub(crate) fn most_late(program: &str) -> Duration {
    let once = Duration::from_millis(if cfg!(debug_assertions) { 1_000 } else { 60 });
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    once * if program.contains("pmap") || program.contains("pcalls") { cores } else { 1 }
}
