//! Export of spans to an OpenTelemetry collector: OTLP over HTTP, as JSON.
//!
//! A server has the export if its `main` passes [`OTLP`] in [`Parts::exporter`](ptc_runtime::Parts::exporter).
//!
//! - [`settings`]: the collector, configured with OpenTelemetry's environment variables.
//! - `spans`: encodes a call as spans.
//! - `sender`: sends batches.
//!
//! A call only appends to a queue; a background thread sends batches. Spans that do not fit into the queue and rejected spans are
//! dropped and counted. Exporting never blocks a call and never makes one fail.

mod sender;
pub mod settings;
mod spans;

use std::collections::VecDeque;
use std::ffi::OsString;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ptc_runtime::diagnostics::Payloads;
use ptc_runtime::diagnostics::export::{Connection, Counter, Exporter, ExporterSettings, ExporterSource, ReadSettings};
use ptc_runtime::diagnostics::record::Record;
use ptc_runtime::log::{self, Field, Level};
use ptc_runtime::secrets::{Redactor, Secrets};
use ptc_runtime::settings::Fault;
use ptc_runtime::upstream::http::proxy::ResolvedProxy;

use self::sender::{BatchSender, DroppedSpans};
use self::settings::OtlpSettings;
use self::spans::EncodedSpans;

/// The export to a collector: the part that `main` passes to the runtime.
pub static OTLP: Otlp = Otlp;

/// Reads the settings of the collector.
#[derive(Debug)]
pub struct Otlp;

impl ExporterSource for Otlp {
    fn read(&self, endpoint: Option<&str>, var: &dyn Fn(&str) -> Option<OsString>) -> Result<ReadSettings, Vec<Fault>> {
        let (settings, warnings) = OtlpSettings::read(endpoint, var)?;
        Ok((settings.map(|settings| Box::new(settings) as Box<dyn ExporterSettings>), warnings))
    }
}

impl ExporterSettings for OtlpSettings {
    fn secrets(&self) -> Vec<&str> {
        self.header_secrets().collect()
    }

    fn start(
        &self,
        secrets: &Secrets,
        connection: Connection,
        redactor: &Redactor,
        deployment: &str,
    ) -> Result<Arc<dyn Exporter>, String> {
        let Connection { extra_roots, proxy, .. } = connection;
        let exporter = SpanExporter::start(self, secrets, extra_roots, proxy, redactor, deployment)?;
        log::line(Level::Info, "spans are exported", &[("url", &self.url)]);
        Ok(exporter)
    }
}

/// Maximum size of the queue, in bytes.
const QUEUE_BYTES: usize = 4 * 1024 * 1024;
/// Approximate maximum size of a batch, in bytes. Collectors accept 4 MiB or more.
const BATCH_BYTES: usize = 512 * 1024;
/// Maximum time that spans wait for a batch.
const INTERVAL: Duration = Duration::from_secs(5);
/// Minimum interval between two warnings.
const WARN_INTERVAL: Duration = Duration::from_mins(1);

/// Exports spans to a collector.
struct SpanExporter {
    shared: Arc<Shared>,
    redactor: Redactor,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// Notified when spans are added, when shutdown begins, and when it is done.
    changed: Condvar,
    exported: AtomicU64,
    lost: AtomicU64,
}

#[derive(Default)]
struct Queue {
    calls: VecDeque<EncodedSpans>,
    bytes: usize,
    /// Shutdown: the remaining batches are sent once, without a delay.
    ending: bool,
    ended: bool,
}

impl SpanExporter {
    /// Starts the exporter. Nothing is sent before the first call has ended.
    fn start(
        settings: &OtlpSettings,
        secrets: &Secrets,
        extra_roots: Option<Arc<[u8]>>,
        proxy: Option<ResolvedProxy>,
        redactor: &Redactor,
        deployment: &str,
    ) -> Result<Arc<SpanExporter>, String> {
        let sender = BatchSender::new(settings, secrets, extra_roots, proxy)?;
        let resource = spans::resource(settings, deployment);
        let shared = Arc::new(Shared::default());
        let thread = {
            let shared = Arc::clone(&shared);
            move || shared.send_all(&sender, &resource)
        };
        std::thread::Builder::new().name("otlp".into()).spawn(thread).map_err(|fault| format!("cannot start: {fault}"))?;
        Ok(Arc::new(SpanExporter { shared, redactor: redactor.clone() }))
    }
}

impl Exporter for SpanExporter {
    /// Encodes the spans of a call that has ended and adds them to the queue.
    fn enqueue(&self, record: &Record, payloads: Payloads) {
        let Some(encoded) = spans::encode(record, payloads, &self.redactor) else { return };
        let mut queue = self.shared.queue();
        if queue.ending || queue.bytes + encoded.text.len() > QUEUE_BYTES {
            self.shared.lost.fetch_add(encoded.spans, Ordering::Relaxed);
            return;
        }
        queue.bytes += encoded.text.len();
        queue.calls.push_back(encoded);
        drop(queue);
        self.shared.changed.notify_all();
    }

    fn counters(&self) -> Vec<Counter> {
        let counter = |name, help, sum: &AtomicU64| Counter { name, help, value: sum.load(Ordering::Relaxed) };
        vec![
            counter("ptc_spans_exported_total", "Spans that the collector has taken.", &self.shared.exported),
            counter("ptc_spans_lost_total", "Spans that it has not, or that found no room.", &self.shared.lost),
        ]
    }

    fn end(&self, most: Duration) {
        let mut queue = self.shared.queue();
        queue.ending = true;
        self.shared.changed.notify_all();
        let (queue, _) =
            self.shared.changed.wait_timeout_while(queue, most, |queue| !queue.ended).unwrap_or_else(PoisonError::into_inner);
        if !queue.ended {
            let waiting: u64 = queue.calls.iter().map(|encoded| encoded.spans).sum();
            let fields = [
                ("reason", Field::Text("the collector did not take them before the process ended")),
                ("waiting", Field::Number(waiting)),
                ("lost", Field::Number(self.shared.lost.load(Ordering::Relaxed))),
            ];
            log::record(Level::Warn, "spans not exported", &fields);
        }
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends batches until shutdown, and then the remaining ones.
    fn send_all(&self, sender: &BatchSender, resource: &str) {
        let mut warnings = WarnThrottle::default();
        while let Some(batch) = self.batch() {
            let spans: u64 = batch.iter().map(|encoded| encoded.spans).sum();
            let body = spans::body(resource, &batch);
            let lost = match sender.post(&body, |pause| self.is_worth_waiting(pause)) {
                Ok(()) => None,
                Err(DroppedSpans { spans: some, why }) => Some((some.unwrap_or(spans).min(spans), why)),
            };
            let count = lost.as_ref().map_or(0, |(count, _)| *count);
            self.exported.fetch_add(spans - count, Ordering::Relaxed);
            let all = self.lost.fetch_add(count, Ordering::Relaxed) + count;
            match lost {
                Some((_, why)) => warnings.warn(&why, all, Instant::now()),
                None => warnings.recovered(all),
            }
        }
        self.queue().ended = true;
        self.changed.notify_all();
    }

    /// Waits for a batch. Returns the calls to send, or `None` at the end.
    fn batch(&self) -> Option<Vec<EncodedSpans>> {
        let queue = self
            .changed
            .wait_while(self.queue(), |queue| queue.calls.is_empty() && !queue.ending)
            .unwrap_or_else(PoisonError::into_inner);
        let more = |queue: &mut Queue| queue.bytes < BATCH_BYTES && !queue.ending;
        let (mut queue, _) = self.changed.wait_timeout_while(queue, INTERVAL, more).unwrap_or_else(PoisonError::into_inner);
        let mut batch = Vec::new();
        let mut bytes = 0;
        while bytes < BATCH_BYTES
            && let Some(encoded) = queue.calls.pop_front()
        {
            bytes += encoded.text.len();
            batch.push(encoded);
        }
        queue.bytes -= bytes;
        (!batch.is_empty()).then_some(batch)
    }

    /// Waits before another attempt. Returns whether to make one.
    fn is_worth_waiting(&self, pause: Duration) -> bool {
        let (queue, _) =
            self.changed.wait_timeout_while(self.queue(), pause, |queue| !queue.ending).unwrap_or_else(PoisonError::into_inner);
        !queue.ending
    }
}

/// Limits the warnings about a failing collector: the first failure, then one line a minute, then the recovery.
#[derive(Default)]
struct WarnThrottle {
    said: Option<Instant>,
}

impl WarnThrottle {
    fn warn(&mut self, why: &str, lost: u64, now: Instant) {
        if self.said.is_none_or(|said| now.saturating_duration_since(said) >= WARN_INTERVAL) {
            self.said = Some(now);
            log::record(Level::Warn, "spans not exported", &[("reason", Field::Text(why)), ("lost", Field::Number(lost))]);
        }
    }

    fn recovered(&mut self, lost: u64) {
        if self.said.take().is_some() {
            log::record(Level::Info, "spans are exported again", &[("lost", Field::Number(lost))]);
        }
    }
}
