//! The health of an upstream as far as calls and connections have shown it, with log lines for operators.
//!
//! The first failure of a kind is logged. Repeats within `REPEAT_INTERVAL` are counted, and the next line of that kind contains
//! their number. After a logged failure, the first success is logged too.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ptc_log::{self as log, Field, Level};

use super::fault::{Reason, UpstreamError};

/// Minimum time between two lines of one kind.
const REPEAT_INTERVAL: Duration = Duration::from_secs(10);

/// The kinds of log lines about an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    Started,
    Restarted,
    Back,
    Ended,
    Unavailable,
    TimedOut,
    CredentialRefused,
    ToolsChanged,
    ToolsNotCompared,
}

impl Event {
    const COUNT: usize = Event::ToolsNotCompared as usize + 1;

    /// Returns the text and the level of its line, and whether it is a failure of the upstream.
    fn row(self) -> (&'static str, Level, bool) {
        match self {
            Event::Started => ("upstream started", Level::Info, false),
            Event::Restarted => ("upstream restarted", Level::Info, false),
            Event::Back => ("upstream is back", Level::Info, false),
            Event::Ended => ("upstream ended", Level::Warn, true),
            Event::Unavailable => ("upstream unavailable", Level::Warn, true),
            Event::TimedOut => ("upstream timed out", Level::Warn, true),
            Event::CredentialRefused => ("upstream refused the credential", Level::Warn, true),
            Event::ToolsChanged => ("tools have changed", Level::Warn, false),
            Event::ToolsNotCompared => ("tools were not compared", Level::Warn, false),
        }
    }
}

/// The health of one upstream.
#[derive(Debug)]
pub struct Health {
    name: &'static str,
    /// Whether starts, failures and recoveries are logged. Changed tools always are.
    logs: bool,
    /// Whether the credentials are those of callers.
    has_callers: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The time and the reason of the last failure, unless a success came later.
    down: Option<(Instant, Reason)>,
    /// Number of children that were started.
    starts: u64,
    /// The process id of the running child.
    process: Option<u32>,
    /// Whether the last child ended on its own and was not replaced yet.
    ended: bool,
    /// Whether a failure was logged after which no success was logged.
    failure_logged: bool,
    /// Number of failures since the last success.
    failures: u64,
    /// For each event its last line.
    lines: [Line; Event::COUNT],
}

/// The last line of a kind, and the number of repeats since then.
#[derive(Debug, Default)]
struct Line(Option<(Instant, u64)>);

impl Line {
    /// Returns the number of repeats since the last line if another one is to be written now. Otherwise counts a repeat.
    fn due(&mut self, now: Instant) -> Option<u64> {
        let repeated = match &mut self.0 {
            Some((last, repeated)) if now.duration_since(*last) < REPEAT_INTERVAL => {
                *repeated += 1;
                return None;
            }
            Some((_, repeated)) => *repeated,
            None => 0,
        };
        self.0 = Some((now, 0));
        Some(repeated)
    }
}

impl Health {
    pub(crate) fn new(name: &'static str, logs: bool) -> Arc<Health> {
        Health::with_callers(name, logs, false)
    }

    /// Creates the health of an upstream. `has_callers` says whether its credentials are those of callers.
    pub(crate) fn with_callers(name: &'static str, logs: bool, has_callers: bool) -> Arc<Health> {
        Arc::new(Health { name, logs, has_callers, state: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the reason of the last failure if it happened within `age` and no success came later.
    pub fn down_within(&self, age: Duration) -> Option<Reason> {
        self.lock().down.filter(|(since, _)| since.elapsed() <= age).map(|(_, reason)| reason)
    }

    /// Returns the number of times that the child was started again.
    pub fn restarts(&self) -> u64 {
        self.lock().starts.saturating_sub(1)
    }

    /// Whether a child runs, even if its handshake is not complete.
    pub fn is_running(&self) -> bool {
        self.lock().process.is_some()
    }

    /// Returns the resident memory of the running child in bytes, without that of processes that it has started. `None` where the
    /// system does not have the file of Linux.
    pub fn resident_bytes(&self) -> Option<u64> {
        let process = self.lock().process?;
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse::<u64>().ok())?;
        Some(kib.saturating_mul(1024))
    }

    /// Records that the process of a child runs.
    pub(crate) fn process_started(&self, process: Option<u32>) {
        self.lock().process = process;
    }

    /// Records that the process of a child has ended. A later child may run already.
    pub(crate) fn process_ended(&self, process: Option<u32>) {
        let mut state = self.lock();
        if state.process == process {
            state.process = None;
        }
    }

    /// Records that a child was started and has completed its handshake.
    pub(crate) fn started(&self) {
        let mut state = self.lock();
        state.starts += 1;
        let restarts = state.starts - 1;
        (state.ended, state.down) = (false, None);
        let (event, fields) = if restarts == 0 {
            (Event::Started, vec![])
        } else {
            (Event::Restarted, vec![("restarts", Field::Number(restarts))])
        };
        self.write(&mut state, event, &fields);
    }

    /// Records that the child ended on its own, with its exit status and an excerpt of its standard error.
    pub(crate) fn ended(&self, status: &str, stderr: &str) {
        let mut state = self.lock();
        state.ended = true;
        state.down = Some((Instant::now(), Reason::UpstreamUnavailable));
        let mut fields = vec![("status", Field::Text(status))];
        if !stderr.is_empty() {
            fields.push(("stderr", Field::Text(stderr)));
        }
        self.write(&mut state, Event::Ended, &fields);
    }

    /// Records that a connection was made.
    pub(crate) fn connected(&self) {
        self.lock().down = None;
    }

    /// Records an answer of the upstream, which may be an error of the tool.
    pub(crate) fn answered(&self) {
        let mut state = self.lock();
        state.down = None;
        let failures = std::mem::take(&mut state.failures);
        if std::mem::take(&mut state.failure_logged) {
            self.write(&mut state, Event::Back, &[("failures", Field::Number(failures))]);
        }
    }

    /// Records a failed call or attempt to connect.
    pub(crate) fn failed(&self, fault: &UpstreamError) {
        let event = match fault.reason {
            // The credential of one caller says nothing about the others.
            Reason::AuthFailed if self.has_callers => return,
            // One tool needs more scopes than the token has. The upstream has answered.
            Reason::AuthFailed | Reason::AuthExpired if fault.http_status == Some(403) => return self.answered(),
            Reason::UpstreamUnavailable => Event::Unavailable,
            Reason::Timeout => Event::TimedOut,
            Reason::AuthFailed | Reason::AuthExpired => Event::CredentialRefused,
            // The upstream has answered.
            Reason::UpstreamError | Reason::ToolError | Reason::RateLimited | Reason::ResponseTooLarge => {
                return self.answered();
            }
            // The call was not sent.
            Reason::CapExhausted | Reason::UpstreamBusy | Reason::Forbidden => return,
        };
        let mut state = self.lock();
        state.down = Some((Instant::now(), fault.reason));
        // The end of the child has its own line, with the same reason.
        if event == Event::Unavailable && state.ended {
            return;
        }
        self.write(&mut state, event, &[("reason", Field::Text(&fault.message))]);
    }

    /// Records that the tools differ from the catalog.
    pub(crate) fn tools_changed(&self, changes: &str, denied: &str) {
        let command = format!("ptc-compile update CONFIG {}", self.name);
        let fields = [("changes", Field::Text(changes)), ("denied", Field::Text(denied)), ("command", Field::Text(&command))];
        self.write(&mut self.lock(), Event::ToolsChanged, &fields);
    }

    /// Records that the tools could not be compared with the catalog.
    pub(crate) fn tools_not_compared(&self, reason: &str) {
        self.write(&mut self.lock(), Event::ToolsNotCompared, &[("reason", Field::Text(reason))]);
    }

    /// Writes the line of an event, or counts it if the last line of its kind is recent.
    fn write(&self, state: &mut State, event: Event, fields: &[(&str, Field<'_>)]) {
        let (text, level, is_failure) = event.row();
        state.failures += u64::from(is_failure);
        let is_logged = self.logs || matches!(event, Event::ToolsChanged | Event::ToolsNotCompared);
        let line = state.lines.get_mut(event as usize).filter(|_| is_logged);
        let Some(repeated) = line.and_then(|line| line.due(Instant::now())) else { return };
        state.failure_logged |= is_failure;
        let mut all = vec![("upstream", Field::Text(self.name))];
        all.extend_from_slice(fields);
        if repeated > 0 {
            all.push(("repeated", Field::Number(repeated)));
        }
        log::record(level, text, &all);
    }
}

/// Connects, and records whether that succeeded.
pub(crate) async fn recorded<C>(
    health: Arc<Health>,
    attempt: impl Future<Output = Result<C, UpstreamError>>,
) -> Result<C, UpstreamError> {
    let outcome = attempt.await;
    match &outcome {
        Ok(_) => health.connected(),
        Err(fault) => health.failed(fault),
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_are_counted_and_reported_with_the_next_line() {
        let (start, mut line) = (Instant::now(), Line::default());
        let after = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(line.due(start), Some(0), "the first line is written");
        assert_eq!([1, 5, 9].map(|at| line.due(after(at))), [None; 3], "repeats within ten seconds are counted");
        assert_eq!(line.due(after(10)), Some(3), "the next line has their number");
        assert_eq!(line.due(after(19)), None, "the interval starts with each line");
        assert_eq!(line.due(after(20)), Some(1));
        assert_eq!(line.due(after(40)), Some(0), "without repeats there is no number");
    }
}
