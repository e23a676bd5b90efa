//! Counters over all calls of this process, for Prometheus.

use std::fmt::Write as _;
use std::time::Duration;

use litemap::LiteMap;

use super::record::Record;

/// Upper bounds of the histograms' buckets in seconds.
const BOUNDS: [f64; 12] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0];

/// All counters.
#[derive(Debug, Default)]
pub struct Counters {
    /// Number of calls by tool and status.
    calls: LiteMap<(&'static str, &'static str), u64>,
    /// Number of errors by tool and reason.
    errors: LiteMap<(&'static str, &'static str), u64>,
    /// Durations by tool.
    durations: LiteMap<&'static str, Durations>,
    queued: Durations,
    processor_waits: Durations,
    /// Number of upstream calls by upstream and `ok` or the reason.
    upstream_calls: LiteMap<(String, &'static str), u64>,
    fetched_bytes: u64,
    shown_bytes: u64,
}

#[derive(Debug, Default)]
struct Durations {
    below: [u64; BOUNDS.len()],
    count: u64,
    sum: Duration,
}

/// A value that is read when the metrics are requested.
#[derive(Debug, Clone, Copy)]
pub struct Gauge {
    /// The name of the metric.
    pub name: &'static str,
    /// The description of the metric.
    pub help: &'static str,
    /// The current value.
    pub value: usize,
}

/// A metric with labels that is read when the metrics are requested.
#[derive(Debug, Clone)]
pub struct Labelled {
    /// The name of the metric.
    pub name: &'static str,
    /// The description of the metric.
    pub help: &'static str,
    /// `gauge` or `counter`.
    pub kind: &'static str,
    /// The samples: the labels with their values, and the value.
    pub samples: Vec<(Vec<(&'static str, String)>, u64)>,
}

impl Labelled {
    /// Appends the samples. Without samples the metric is omitted.
    fn render(&self, text: &mut String) {
        if self.samples.is_empty() {
            return;
        }
        head(text, self.name, self.help, self.kind);
        for (labels, value) in &self.samples {
            let labels: Vec<String> = labels.iter().map(|(name, label)| format!("{name}=\"{}\"", escaped(label))).collect();
            let _ = writeln!(text, "{}{{{}}} {value}", self.name, labels.join(","));
        }
    }
}

impl Counters {
    /// Counts a call.
    pub fn add(&mut self, record: &Record) {
        *self.calls.entry((record.tool, record.outcome.status())).or_default() += 1;
        if let Some(reason) = record.outcome.reason() {
            *self.errors.entry((record.tool, reason)).or_default() += 1;
        }
        self.durations.entry(record.tool).or_default().add(record.duration);
        // A call that was refused after a wait has not started. One that was refused before it asked has not waited.
        for (durations, waited) in [(&mut self.queued, record.queued), (&mut self.processor_waits, record.processor_wait)] {
            if record.started.is_some() || !waited.is_zero() {
                durations.add(waited);
            }
        }
        for call in &record.upstream_calls {
            *self.upstream_calls.entry((call.server.to_string(), call.reason.unwrap_or("ok"))).or_default() += 1;
        }
        if let Some(metrics) = &record.metrics {
            self.fetched_bytes += metrics.upstream_result_bytes;
            self.shown_bytes += metrics.final_result_bytes;
        }
    }

    /// Formats the metrics, with `gauges` and `labelled` first.
    pub fn render(&self, gauges: &[Gauge], labelled: &[Labelled], refusals: &[(&'static str, u64)]) -> String {
        let mut text = String::new();
        for Gauge { name, help, value } in gauges {
            head(&mut text, name, help, "gauge");
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name} {value}");
        }
        for metric in labelled {
            metric.render(&mut text);
        }
        pairs(&mut text, "ptc_calls_total", "Calls of tools.", ["tool", "status"], &self.calls);
        pairs(&mut text, "ptc_call_errors_total", "Calls without a value, by reason.", ["tool", "reason"], &self.errors);
        let name = "ptc_call_duration_seconds";
        head(&mut text, name, "From the arrival of a call to its answer.", "histogram");
        for (tool, durations) in &self.durations {
            durations.render(&mut text, name, &format!("tool=\"{tool}\""));
        }
        for (name, help, durations) in [
            ("ptc_queue_seconds", "Time of calls in the queue, including calls that were refused afterwards.", &self.queued),
            (
                "ptc_processor_wait_seconds",
                "Time of programs without a processor while they could have computed.",
                &self.processor_waits,
            ),
        ] {
            head(&mut text, name, help, "histogram");
            durations.render(&mut text, name, "");
        }
        let name = "ptc_refusals_total";
        head(
            &mut text,
            name,
            "Calls refused and answers discarded for lack of capacity, and programs ended to free memory.",
            "counter",
        );
        for (reason, count) in refusals {
            let _ = writeln!(text, "{name}{{reason=\"{reason}\"}} {count}");
        }
        let help = "Calls of upstream tools by outcome.";
        pairs(&mut text, "ptc_upstream_calls_total", help, ["server", "outcome"], &self.upstream_calls);
        for (name, help, value) in [
            ("ptc_upstream_result_bytes_total", "Bytes of upstream answers that programs received.", self.fetched_bytes),
            ("ptc_final_result_bytes_total", "Bytes of the results of these programs.", self.shown_bytes),
        ] {
            sum(&mut text, name, help, value);
        }
        text
    }
}

impl Durations {
    /// Appends the samples. `label` is common to all of them, and may be empty.
    fn render(&self, text: &mut String, name: &str, label: &str) {
        let (comma, braced) = if label.is_empty() { ("", String::new()) } else { (",", format!("{{{label}}}")) };
        for (bound, below) in BOUNDS.iter().zip(self.below) {
            let _ = writeln!(text, "{name}_bucket{{{label}{comma}le=\"{bound}\"}} {below}");
        }
        let (count, sum) = (self.count, self.sum.as_secs_f64());
        let _ = writeln!(text, "{name}_bucket{{{label}{comma}le=\"+Inf\"}} {count}");
        let _ = writeln!(text, "{name}_sum{braced} {sum}\n{name}_count{braced} {count}");
    }

    fn add(&mut self, duration: Duration) {
        for (below, bound) in self.below.iter_mut().zip(BOUNDS) {
            *below += u64::from(duration.as_secs_f64() <= bound);
        }
        self.count += 1;
        self.sum += duration;
    }
}

/// Appends a counter without labels.
pub(super) fn sum(text: &mut String, name: &str, help: &str, value: u64) {
    head(text, name, help, "counter");
    let _ = writeln!(text, "{name} {value}");
}

fn head(text: &mut String, name: &str, help: &str, kind: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// Escapes the value of a label.
fn escaped(label: &str) -> String {
    label.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

fn pairs<A: AsRef<str>>(text: &mut String, name: &str, help: &str, labels: [&str; 2], all: &LiteMap<(A, &'static str), u64>) {
    head(text, name, help, "counter");
    let [first, second] = labels;
    for ((one, other), value) in all {
        let one = escaped(one.as_ref());
        let _ = writeln!(text, "{name}{{{first}=\"{one}\",{second}=\"{other}\"}} {value}");
    }
}
