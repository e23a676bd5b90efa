//! Spans of calls for a collector of OpenTelemetry: OTLP over HTTP, as JSON.
//!
//! - `spans`: what a call comes to.
//! - `post`: a batch on its way.
//!
//! A call only appends to a queue; a thread of its own sends batches. What does not fit, and what the collector does not take, is
//! counted and let go: no call waits for a collector, and none fails by it.

mod post;
mod spans;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use self::post::{Lost, Postman};
use self::spans::Told;
use super::Payloads;
use super::record::Record;
use crate::log::{self, Field, Level};
use crate::secrets::{Redactor, Secrets};
use crate::settings::OtlpSettings;

/// Bytes that may wait.
const QUEUE_BYTES: usize = 4 * 1024 * 1024;
/// Bytes of a batch, about: collectors take 4 MiB or more.
const BATCH_BYTES: usize = 512 * 1024;
/// How long spans wait for others.
const INTERVAL: Duration = Duration::from_secs(5);
/// How often what goes wrong is logged at most.
const QUIET: Duration = Duration::from_secs(60);

/// The way to a collector.
pub struct Exporter {
    shared: Arc<Shared>,
    redactor: Redactor,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// Something was put in, or it is to end, or it has ended.
    changed: Condvar,
    exported: AtomicU64,
    lost: AtomicU64,
}

#[derive(Default)]
struct Queue {
    calls: VecDeque<Told>,
    bytes: usize,
    /// Nothing more comes: what there is goes out at once, each batch once.
    ending: bool,
    ended: bool,
}

/// Sums since the start.
#[derive(Debug, Clone, Copy)]
pub struct Sums {
    /// Spans that the collector has taken.
    pub exported: u64,
    /// Spans that it has not, or that found no room.
    pub lost: u64,
}

impl Exporter {
    /// Begins; nothing is sent before the first call has ended. `resource` says what this process is.
    pub fn start(
        settings: &OtlpSettings,
        secrets: &Secrets,
        extra_roots: Option<Arc<[u8]>>,
        redactor: &Redactor,
        deployment: &str,
    ) -> Result<Arc<Exporter>, String> {
        let postman = Postman::new(settings, secrets, extra_roots)?;
        let resource = spans::resource(settings, deployment);
        let shared = Arc::new(Shared::default());
        let thread = {
            let shared = Arc::clone(&shared);
            move || shared.send_all(&postman, &resource)
        };
        std::thread::Builder::new().name("otlp".into()).spawn(thread).map_err(|fault| format!("cannot start: {fault}"))?;
        Ok(Arc::new(Exporter { shared, redactor: redactor.clone() }))
    }

    /// Takes a call that has ended. It costs what writing its spans down costs.
    pub(super) fn tell(&self, record: &Record, payloads: Payloads) {
        let Some(told) = spans::of(record, payloads, &self.redactor) else { return };
        let mut queue = self.shared.queue();
        if queue.ending || queue.bytes + told.text.len() > QUEUE_BYTES {
            self.shared.lost.fetch_add(told.spans, Ordering::Relaxed);
            return;
        }
        queue.bytes += told.text.len();
        queue.calls.push_back(told);
        drop(queue);
        self.shared.changed.notify_all();
    }

    /// What has become of spans so far.
    pub fn sums(&self) -> Sums {
        let read = |sum: &AtomicU64| sum.load(Ordering::Relaxed);
        Sums { exported: read(&self.shared.exported), lost: read(&self.shared.lost) }
    }

    /// Sends what is left, within that time.
    pub fn end(&self, most: Duration) {
        let mut queue = self.shared.queue();
        queue.ending = true;
        self.shared.changed.notify_all();
        let (queue, _) =
            self.shared.changed.wait_timeout_while(queue, most, |queue| !queue.ended).unwrap_or_else(PoisonError::into_inner);
        if !queue.ended {
            let waiting: u64 = queue.calls.iter().map(|told| told.spans).sum();
            let fields = [
                ("reason", Field::Text("the collector did not take them before the process ended")),
                ("waiting", Field::Number(waiting)),
                ("lost", Field::Number(self.sums().lost)),
            ];
            log::record(Level::Warn, "spans not exported", &fields);
        }
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread's work, until it is to end and nothing is left.
    fn send_all(&self, postman: &Postman, resource: &str) {
        let mut complaint = Complaint::default();
        while let Some(batch) = self.batch() {
            let spans: u64 = batch.iter().map(|told| told.spans).sum();
            let body = spans::body(resource, &batch);
            let lost = match postman.post(&body, |pause| self.is_worth_waiting(pause)) {
                Ok(()) => None,
                Err(Lost { spans: some, why }) => Some((some.unwrap_or(spans).min(spans), why)),
            };
            let count = lost.as_ref().map_or(0, |(count, _)| *count);
            self.exported.fetch_add(spans - count, Ordering::Relaxed);
            let all = self.lost.fetch_add(count, Ordering::Relaxed) + count;
            match lost {
                Some((_, why)) => complaint.say(&why, all, Instant::now()),
                None => complaint.is_over(all),
            }
        }
        self.queue().ended = true;
        self.changed.notify_all();
    }

    /// The next calls to send; `None` at the end.
    fn batch(&self) -> Option<Vec<Told>> {
        let queue = self
            .changed
            .wait_while(self.queue(), |queue| queue.calls.is_empty() && !queue.ending)
            .unwrap_or_else(PoisonError::into_inner);
        let more = |queue: &mut Queue| queue.bytes < BATCH_BYTES && !queue.ending;
        let (mut queue, _) = self.changed.wait_timeout_while(queue, INTERVAL, more).unwrap_or_else(PoisonError::into_inner);
        let mut batch = Vec::new();
        let mut bytes = 0;
        while bytes < BATCH_BYTES
            && let Some(told) = queue.calls.pop_front()
        {
            bytes += told.text.len();
            batch.push(told);
        }
        queue.bytes -= bytes;
        (!batch.is_empty()).then_some(batch)
    }

    /// Waits before another attempt; whether there is to be one.
    fn is_worth_waiting(&self, pause: Duration) -> bool {
        let (queue, _) =
            self.changed.wait_timeout_while(self.queue(), pause, |queue| !queue.ending).unwrap_or_else(PoisonError::into_inner);
        !queue.ending
    }
}

/// What is logged of a collector that takes nothing: the first fault, then one line a minute, then that it is over.
#[derive(Default)]
struct Complaint {
    said: Option<Instant>,
}

impl Complaint {
    fn say(&mut self, why: &str, lost: u64, now: Instant) {
        if self.said.is_none_or(|said| now.saturating_duration_since(said) >= QUIET) {
            self.said = Some(now);
            log::record(Level::Warn, "spans not exported", &[("reason", Field::Text(why)), ("lost", Field::Number(lost))]);
        }
    }

    fn is_over(&mut self, lost: u64) {
        if self.said.take().is_some() {
            log::record(Level::Info, "spans are exported again", &[("lost", Field::Number(lost))]);
        }
    }
}
