//! The time limit of a call, and the errors of calls that exceed it.

use std::time::{Duration, Instant};

use super::call_rules::CallRules;
use super::fault::{Reason, UpstreamError};
use super::settings::UpstreamSettings;
use super::stage;

/// The time limit of one call, and the setting that it comes from.
pub(crate) struct TimeLimit {
    time: Duration,
    setting: &'static str,
    /// The part of the time in which the call waited until its upstream could be started.
    pub(crate) spent: Duration,
}

impl TimeLimit {
    /// Returns the limit of a tool: that of its config, else the lower one of the server's limit and the upstream's.
    pub(crate) fn for_call(settings: &UpstreamSettings, rules: CallRules, request_timeout_ms: Option<u64>) -> TimeLimit {
        if let Some(time) = rules.timeout_ms {
            return TimeLimit::new(Duration::from_millis(time), "call_timeout_ms");
        }
        match request_timeout_ms.map(Duration::from_millis) {
            Some(time) if time < settings.call_timeout => TimeLimit::new(time, "request_timeout_ms of the upstream"),
            _ => TimeLimit::new(settings.call_timeout, "--upstream-call-timeout-ms"),
        }
    }

    /// Returns the limit for connecting without a call.
    pub(crate) fn connecting(settings: &UpstreamSettings) -> TimeLimit {
        TimeLimit::new(settings.connect_timeout, "--connect-timeout-ms")
    }

    fn new(time: Duration, setting: &'static str) -> TimeLimit {
        TimeLimit { time, setting, spent: Duration::ZERO }
    }

    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.time.saturating_sub(self.spent)
    }

    /// Creates the error of a call whose upstream could not be started within the limit, because all children have calls in flight.
    pub(crate) fn no_permit(&self, upstream: &str, children: usize) -> UpstreamError {
        let message = format!(
            "'{upstream}' could not be started within {} ms ({}), because --max-children allows {children} processes of upstreams \
             at a time, and all have calls in flight; call it again later",
            self.time.as_millis(),
            self.setting
        );
        UpstreamError::new(Reason::UpstreamBusy, message)
    }

    /// Adds to a timeout whose limit it was, and which stage took the time.
    pub(crate) fn explain(&self, upstream: &str, fault: UpstreamError) -> UpstreamError {
        if !fault.is_timeout() {
            return fault;
        }
        let message = format!(
            "'{upstream}' did not answer the call within {} ms ({}): the time ran out while {}",
            self.time.as_millis(),
            self.setting,
            stage::reached().described()
        );
        UpstreamError { message: message.into(), ..fault }
    }
}
