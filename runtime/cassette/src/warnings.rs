//! Warnings that would come for each program: a full disk, for example, fails the recording of every one.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ptc_runtime::log::{self, Field, Level};

/// Minimum time between two lines about the same problem.
const INTERVAL: Duration = Duration::from_mins(1);

/// Logs the first occurrence of a problem at once, and counts the next ones, which share a line.
#[derive(Debug)]
pub(crate) struct RepeatedWarning {
    /// What the log says about one program, and about several ones.
    events: [&'static str; 2],
    folder: String,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    /// The programs that no line has named yet.
    programs: u64,
    /// The calls of these.
    calls: u64,
    /// The reason for the last one of these.
    reason: String,
    last_line: Option<Instant>,
}

impl RepeatedWarning {
    /// Creates the warning about programs that a folder receives.
    pub(crate) fn new(events: [&'static str; 2], folder: String) -> RepeatedWarning {
        RepeatedWarning { events, folder, counts: Mutex::default() }
    }

    /// Counts a program with this number of calls, and logs it unless there was a line within the last minute.
    pub(crate) fn count(&self, calls: u64, reason: &str) {
        if let Some(due) = self.counted(calls, reason, Instant::now()) {
            self.log(&due);
        }
    }

    /// Counts a program. Returns the counts of the line that is due.
    fn counted(&self, calls: u64, reason: &str, now: Instant) -> Option<Counts> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.programs += 1;
        counts.calls += calls;
        reason.clone_into(&mut counts.reason);
        if counts.last_line.is_some_and(|last| now.saturating_duration_since(last) < INTERVAL) {
            return None;
        }
        Some(std::mem::replace(&mut *counts, Counts { last_line: Some(now), ..Counts::default() }))
    }

    /// Logs the programs that no line has named yet.
    pub(crate) fn finish(&self) {
        let counts = std::mem::take(&mut *self.counts.lock().unwrap_or_else(PoisonError::into_inner));
        if counts.programs > 0 {
            self.log(&counts);
        }
    }

    fn log(&self, counts: &Counts) {
        let [one, several] = self.events;
        let event = if counts.programs == 1 { one } else { several };
        let fields = [
            ("folder", Field::Text(&self.folder)),
            ("programs", Field::Number(counts.programs)),
            ("calls", Field::Number(counts.calls)),
            ("reason", Field::Text(&counts.reason)),
        ];
        log::record(Level::Warn, event, &fields);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occurrences_within_a_minute_share_a_line() {
        let warning = RepeatedWarning::new(["one", "several"], String::new());
        let start = Instant::now();
        let counted = |seconds, reason: &str| {
            let due = warning.counted(2, reason, start + Duration::from_secs(seconds));
            due.map(|due| (due.programs, due.calls, due.reason))
        };
        assert_eq!(counted(0, "disk"), Some((1, 2, "disk".to_owned())));
        assert_eq!((counted(1, "disk"), counted(59, "memory")), (None, None));
        assert_eq!(counted(60, "quota"), Some((3, 6, "quota".to_owned())));
        assert_eq!(counted(61, "disk"), None);
    }
}
