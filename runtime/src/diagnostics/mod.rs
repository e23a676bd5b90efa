//! Diagnostics of calls: for a model through `lisp_debug`, and for people in files.
//!
//! - [`record`]: the record of one call, as detailed as the policy permits.
//! - [`lines`]: the JSON of records, in files and in answers of `lisp_debug`.
//! - [`ring`]: the last calls of this process.
//! - [`counters`]: counters for Prometheus.
//! - [`stats`]: statistics over records.
//! - [`trace`]: a trace file for each call.
//! - [`export`]: exporters of calls to a collector.
//! - [`task`]: the record of a `lisp_task`.
//! - [`tool`]: the tool `lisp_debug`.
//!
//! Diagnostics are off by default. All texts are redacted.

pub mod counters;
pub mod export;
pub mod lines;
pub mod record;
pub mod ring;
pub mod stats;
#[cfg(feature = "agentic")]
pub mod task;
pub mod tool;
pub mod trace;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use crate::log::{self, Level};
use crate::schedule::WaitTimes;
use crate::secrets::Redactor;
pub use crate::settings::{DiagnosticsSettings, Payloads};
use counters::{Counters, Gauge, Labelled};
use export::Exporter;
use ptc_engine::evaluation::{Call, Evaluation};
use ptc_engine::response::{Budget, answer};
use record::{Outcome, Record};
use ring::Ring;
use trace::{TraceFile, Traces};

/// HTTP metadata of a call.
#[derive(Debug, Clone, serde::Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct Origin {
    /// The id of the HTTP request.
    pub transport_request_id: String,
    /// A digest of the owner.
    pub owner_hash: String,
    /// A digest of the protocol session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcp_session_hash: Option<String>,
    /// The `traceparent` header.
    #[serde(skip)]
    pub traceparent: Option<String>,
}

/// Metadata of a request.
#[derive(Debug, Clone, Copy)]
pub struct RequestMeta<'a> {
    /// Its raw id.
    pub id: &'a str,
    /// The internal name of its owner.
    pub owner: &'a Arc<str>,
    /// The protocol revision of its client, if known.
    pub protocol_version: Option<&'static str>,
    /// Metadata of its transport.
    pub origin: Option<&'a Origin>,
    /// Its `_meta`, raw.
    pub meta: Option<&'a str>,
}

/// Records calls.
pub struct Diagnostics {
    settings: DiagnosticsSettings,
    with_upstreams: bool,
    redactor: Redactor,
    ring: Mutex<Ring>,
    counters: Mutex<Counters>,
    traces: Option<Traces>,
    exporter: Option<Arc<dyn Exporter>>,
}

/// The record of a running call. If it is never finished, the call ended in a panic.
pub struct CallTrace {
    diagnostics: Arc<Diagnostics>,
    /// Boxed, since the trace moves with every step of a call.
    record: Box<Record>,
    file: Option<TraceFile>,
    /// Whether opening a file was attempted. A failure is logged once.
    is_begun: bool,
}

impl Diagnostics {
    /// Makes diagnostics by the settings.
    ///
    /// # Errors
    ///
    /// Returns a sentence if the trace folder cannot be created or listed.
    pub fn new(settings: &DiagnosticsSettings, with_upstreams: bool, redactor: Redactor) -> Result<Diagnostics, String> {
        let ring = Mutex::new(Ring::new(if settings.tool { settings.ring_size } else { 0 }));
        let traces = settings.trace_dir.as_deref().map(|folder| {
            let unmade = |fault| format!("--trace-dir: cannot make the folder {}: {fault}", folder.display());
            Traces::new(folder, settings.trace_max_files, settings.payloads).map_err(unmade)
        });
        Ok(Diagnostics {
            settings: settings.clone(),
            with_upstreams,
            redactor,
            ring,
            counters: Mutex::default(),
            traces: traces.transpose()?,
            exporter: None,
        })
    }

    /// Adds an exporter.
    #[must_use]
    pub fn with_exporter(mut self, exporter: Option<Arc<dyn Exporter>>) -> Diagnostics {
        self.exporter = exporter;
        self
    }

    /// Returns the diagnostics; `None` if all of them are off.
    pub fn if_enabled(self) -> Option<Arc<Diagnostics>> {
        let is_enabled = self.settings.tool || self.settings.counted || self.traces.is_some() || self.exporter.is_some();
        is_enabled.then(|| Arc::new(self))
    }

    /// Begins the record of a call.
    pub fn begin(self: &Arc<Self>, tool: &'static str, request: &RequestMeta<'_>) -> CallTrace {
        let record = Box::new(Record::new(tool, request, Timestamp::now(), &self.redactor));
        CallTrace { diagnostics: Arc::clone(self), record, file: None, is_begun: false }
    }

    /// Whether recording a call may block on files or read a long context.
    pub fn may_block(&self) -> bool {
        self.settings.tool || self.traces.is_some()
    }

    /// Returns the metrics in the text format of Prometheus. `refusals` are the rejected calls by reason.
    pub fn metrics(&self, gauges: &[Gauge], labelled: &[Labelled], refusals: &[(&'static str, u64)]) -> String {
        let mut text = self.counters().render(gauges, labelled, refusals);
        for counter in self.exporter.iter().flat_map(|exporter| exporter.counters()) {
            counters::sum(&mut text, counter.name, counter.help, counter.value);
        }
        text
    }

    fn counters(&self) -> MutexGuard<'_, Counters> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallTrace {
    /// Records valid arguments. Writes the start of the trace file now, so that it exists even if the call ends the process.
    pub fn arguments(&mut self, call: &Call) {
        let Diagnostics { settings, redactor, traces, .. } = &*self.diagnostics;
        // Spans and metrics contain no payload: without traces and the tool, long contexts are not read.
        if settings.tool || traces.is_some() {
            self.record.arguments(call, settings.payloads, redactor);
        }
        self.begin_file();
    }

    fn begin_file(&mut self) {
        if let Some(traces) = self.diagnostics.traces.as_ref().filter(|_| !self.is_begun) {
            self.file = traces.open(&self.record);
            self.record.trace = self.file.as_ref().map(|file| file.name.clone());
            self.is_begun = true;
        }
    }

    /// Records an evaluation. `shown` is the text of the answer, limited by `budget`.
    pub fn evaluated(mut self, evaluation: &Evaluation, shown: &str, budget: Budget) {
        let record = &mut self.record;
        match &evaluation.outcome {
            Ok(value) => {
                record.outcome = Outcome::Ok;
                record.result_bytes = Some(shown.len());
                record.prints_count = Some(evaluation.prints.len());
                record.truncated = answer::is_cut(evaluation, value, budget);
            }
            Err(failure) => {
                let message = self.diagnostics.redactor.redact_str(&failure.message);
                record.outcome = Outcome::error(failure.reason.name(), &message);
                record.missing_scopes = failure.missing_scopes().to_vec();
                record.denial = failure.denial_reason().map(|reason| self.diagnostics.redactor.redact_str(reason).into_owned());
                record.result_bytes = failure.value.as_ref().map(|value| value.text.len());
                record.failed_at(failure, self.diagnostics.settings.payloads);
            }
        }
        record.result(shown, self.diagnostics.settings.payloads);
        if self.diagnostics.settings.payloads == Payloads::Full {
            record.prints.clone_from(&evaluation.prints);
        }
        (record.queued, record.processor_wait) = (evaluation.queued, evaluation.processor_wait);
        record.started = evaluation.started;
        record.analysis = Some(evaluation.analysis);
        record.evaluation = Some(evaluation.duration.saturating_sub(evaluation.analysis));
        record.metrics = answer::metrics(evaluation, budget);
        record.upstream_calls = evaluation.calls.clone().unwrap_or_default();
        self.finish();
    }

    /// Records how long the call and its threads have waited.
    #[must_use]
    pub fn with_waits(mut self, times: Option<&WaitTimes>) -> CallTrace {
        if let Some(times) = times {
            (self.record.queued, self.record.processor_wait) = (times.queued(), times.processor_wait());
        }
        self
    }

    /// Records that the call was refused.
    pub fn refused(mut self, reason: &'static str, message: &str) {
        self.record.outcome = Outcome::error(reason, &self.diagnostics.redactor.redact_str(message));
        self.finish();
    }

    /// Records a call of a program that is hidden from its caller, with the reason for the operator. The caller must not find the record.
    /// Only files and collectors receive it. The viewer lists the traces in files by owner, so that there the owner is a part of the reason.
    pub fn hidden(mut self, reason: &'static str, denial: &str) {
        self.record.outcome = Outcome::error(reason, "the program is hidden from its caller");
        let mut denial = self.diagnostics.redactor.redact_str(denial).into_owned();
        self.record.denial = Some(denial.clone());
        self.export_spans();
        if let Some(origin) = &mut self.record.origin {
            denial.extend(["; the call is of the owner ", &std::mem::take(&mut origin.owner_hash)]);
            self.record.denial = Some(denial);
        }
        self.close_file();
    }

    /// Records a call that was answered without running a program.
    pub fn answered(mut self, bytes: usize) {
        self.record.outcome = Outcome::Ok;
        self.record.result_bytes = Some(bytes);
        self.finish();
    }

    fn finish(mut self) {
        self.close_file();
        self.export_spans();
        self.record.denial = None;
        // The spans are used only in files and by collectors. They can contain long prompts.
        #[cfg(feature = "agentic")]
        if let Some(told) = &mut self.record.task {
            told.spans = Vec::new();
        }
        self.diagnostics.counters().add(&self.record);
        self.diagnostics.ring().push(*self.record);
    }

    /// Writes the end of the call into its file.
    fn close_file(&mut self) {
        self.record.duration = self.record.arrived.elapsed();
        self.begin_file();
        if let Some(Err(fault)) = self.file.take().map(|mut file| file.close(&self.record)) {
            log::line(Level::Warn, "trace not written", &[("reason", &fault.to_string())]);
        }
    }

    /// Sends the spans of the call to a collector.
    fn export_spans(&mut self) {
        self.record.duration = self.record.arrived.elapsed();
        if let Some(exporter) = &self.diagnostics.exporter {
            exporter.enqueue(&self.record, self.diagnostics.settings.payloads);
        }
    }
}

/// Converts a duration to milliseconds.
fn milliseconds(duration: Duration) -> u64 {
    duration.as_millis() as u64
}
