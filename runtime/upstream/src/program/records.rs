//! The records of the calls of one evaluation.

use std::borrow::Cow;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use ptc_catalog::{Auth, Transport, Upstream};

use crate::call_rules::CallRules;
use crate::fault::{Delivery, Reason, UpstreamError};
use crate::mcp::outcome::string_len;
use crate::record::{AuthUsed, CallRecord};
use crate::stage::Progress;

/// Receives a call when it begins and, with `true`, when it ends.
pub(super) type Watch = Box<dyn Fn(&CallRecord, bool) + Send + Sync>;

/// The outcomes of the writes of a program.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Writes {
    /// Number of writes that succeeded.
    pub(crate) made: usize,
    /// Number of writes that the upstream rejected.
    pub(crate) rejected: usize,
    /// Names of the tools of the other writes that were sent, which may have succeeded.
    pub(crate) unknown: Vec<String>,
}

#[derive(Default)]
pub(super) struct Records {
    entries: Mutex<Vec<Entry>>,
    watch: OnceLock<Watch>,
}

struct Entry {
    server: &'static str,
    tool: Cow<'static, str>,
    auth: Option<AuthUsed>,
    progress: Progress,
    started: Instant,
    done: Option<CallRecord>,
    /// Whether the call writes, and is not refused before it is sent.
    is_write: bool,
    /// Whether the call may write without counting as a write, and is not refused before it is sent.
    has_unknown_effect: bool,
    delivery: Delivery,
    /// The rule of the policy that decided about the call.
    rule: Option<&'static str>,
    /// Whether the record is discarded: after the list of tools was fetched, the call turned out to be invalid and was not made.
    is_discarded: bool,
}

impl Entry {
    fn open(&self) -> CallRecord {
        let took = self.started.elapsed();
        CallRecord {
            server: self.server,
            tool: self.tool.clone(),
            status: "error",
            duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            reason: Some(Reason::Timeout.name()),
            error: Some(format!("the program ended while {}", self.progress.reached().described())),
            result_bytes: 0,
            oversize: false,
            auth: self.auth,
            http_status: None,
            rule: self.rule,
            started: self.started,
            took,
        }
    }

    fn record(&self) -> CallRecord {
        self.done.clone().unwrap_or_else(|| self.open())
    }
}

impl Records {
    /// Calls `watch` for later calls. Only the first function that is passed is used.
    pub(super) fn watch_by(&self, watch: Watch) {
        let _ = self.watch.set(watch);
    }

    /// Returns the records so far, in the order of their start.
    pub(super) fn calls(&self) -> Vec<CallRecord> {
        self.lock().iter().filter(|entry| !entry.is_discarded).map(Entry::record).collect()
    }

    /// Sets the effect of a call that is about to be sent.
    pub(super) fn set_effect(&self, entry: usize, rules: CallRules) {
        if let Some(entry) = self.lock().get_mut(entry) {
            entry.is_write = rules.is_write;
            entry.has_unknown_effect = !rules.is_read && !rules.is_write;
        }
    }

    /// Sets the rule of the policy that decided about a call.
    pub(super) fn set_rule(&self, entry: usize, rule: &'static str) {
        if let Some(entry) = self.lock().get_mut(entry) {
            entry.rule = Some(rule);
        }
    }

    /// Whether a call may have written although it does not count as a write, such as a call of an MCP tool.
    pub(super) fn has_unknown_effects(&self) -> bool {
        self.lock().iter().any(|entry| entry.has_unknown_effect && !entry.is_discarded)
    }

    /// Returns the outcomes of the writes, by the status of the answer. A redirect is the result of a write. A server may have
    /// failed after the write, and a rejected repetition may be due to the first request.
    pub(super) fn writes(&self) -> Writes {
        let mut writes = Writes::default();
        for entry in self.lock().iter().filter(|entry| entry.is_write && !entry.is_discarded) {
            let is_sent = entry.delivery != Delivery::Never && entry.progress.may_be_received();
            match entry.record().http_status {
                Some(..400) => writes.made += 1,
                Some(501 | 400..=499) if entry.delivery != Delivery::Twice => writes.rejected += 1,
                None if !is_sent => {}
                _ => writes.unknown.push(format!("{}/{}", entry.server, entry.tool)),
            }
        }
        writes
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn start(&self, upstream: &'static Upstream, tool: Cow<'static, str>, progress: Progress) -> usize {
        let auth: &[Auth] = match &upstream.transport {
            Transport::McpStdio(_) => &[],
            Transport::McpHttp(t) => t.auth,
            Transport::OpenApi(t) => t.auth,
        };
        let auth = auth.first().map(|auth| AuthUsed { scheme: auth.scheme(), binding: auth.binding() });
        let entry = Entry {
            server: upstream.name,
            tool,
            auth,
            progress,
            started: Instant::now(),
            done: None,
            is_write: false,
            has_unknown_effect: false,
            delivery: Delivery::Once,
            rule: None,
            is_discarded: false,
        };
        if let Some(watch) = self.watch.get() {
            watch(&entry.open(), false);
        }
        let mut entries = self.lock();
        entries.push(entry);
        entries.len() - 1
    }

    fn finish(&self, entry: usize, fill: impl FnOnce(CallRecord) -> CallRecord) {
        let done = self.lock().get_mut(entry).map(|entry| entry.done.insert(fill(entry.open())).clone());
        // The callback runs outside the lock, since it may take long.
        if let (Some(watch), Some(done)) = (self.watch.get(), done) {
            watch(&done, true);
        }
    }

    pub(super) fn withdraw(&self, entry: usize) {
        if let Some(entry) = self.lock().get_mut(entry) {
            entry.is_discarded = true;
        }
        self.finish(entry, |open| open);
    }

    pub(super) fn succeed(&self, entry: usize, bytes: u64, http_status: Option<u16>) {
        self.finish(entry, |open| CallRecord {
            status: "ok",
            reason: None,
            error: None,
            result_bytes: bytes,
            http_status,
            ..open
        });
    }

    pub(super) fn fail(&self, entry: usize, fault: &UpstreamError) {
        if let Some(entry) = self.lock().get_mut(entry) {
            entry.delivery = fault.delivery;
        }
        self.finish(entry, |open| CallRecord {
            reason: Some(fault.reason.name()),
            error: Some(fault.message.clone().into_owned()),
            result_bytes: match fault.reason {
                Reason::ToolError => string_len(&fault.message),
                Reason::ResponseTooLarge => fault.refused_bytes,
                _ => 0,
            },
            oversize: fault.reason == Reason::ResponseTooLarge,
            http_status: fault.http_status,
            ..open
        });
    }
}

#[cfg(test)]
mod tests {
    use ptc_catalog::{McpStdio, Tools};

    use super::*;

    #[test]
    fn calls_of_tools_with_unknown_effects_are_recorded() {
        static UPSTREAM: Upstream =
            Upstream { name: "u", description: "", transport: Transport::McpStdio(McpStdio::new("u")), tools: Tools::NONE };
        let records = Records::default();
        let start = || records.start(&UPSTREAM, Cow::Borrowed("t"), Progress::default());
        let rules = |is_read, is_write| CallRules { is_read, is_write, is_repeatable: false, timeout_ms: None };
        records.set_effect(start(), rules(true, false));
        records.set_effect(start(), rules(false, true));
        // A call that was refused before it was sent has no effect.
        start();
        assert!(!records.has_unknown_effects());
        records.set_effect(start(), rules(false, false));
        assert!(records.has_unknown_effects());
    }
}
