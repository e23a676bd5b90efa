//! The metrics of a server, and the state of its upstreams.

use std::time::Duration;

use ptc_catalog::{Deployment, Transport};

use super::dispatch::Server;
use super::identity::Identity;
use crate::diagnostics::counters::{Gauge, Labelled};

impl Server {
    /// Returns the metrics together with those of the transport. Returns `None` if calls are not counted. If a policy restricts `reader`,
    /// samples of other upstreams and stored programs than those that it may call are omitted; totals without such a label are not.
    pub fn metrics(&self, transport: &[Gauge], reader: Option<&Identity>) -> Option<String> {
        let diagnostics = self.diagnostics.as_ref().filter(|_| self.settings.diagnostics.counted)?;
        let sessions = self.sessions.as_ref().map_or(0, |sessions| sessions.store().count());
        let (load, limits) = (self.scheduler.load(), self.scheduler.limits());
        let saturated = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let mut gauges = vec![
            Gauge { name: "ptc_programs_running", help: "Programs that use a processor.", value: load.running },
            Gauge { name: "ptc_programs_waiting", help: "Programs in flight that use no processor.", value: load.waiting },
            Gauge { name: "ptc_programs_queued", help: "Calls that wait for admission.", value: load.queued },
            Gauge {
                name: "ptc_programs_in_flight_limit",
                help: "Programs that may be in flight.",
                value: limits.in_flight.value,
            },
            Gauge {
                name: "ptc_memory_budget_bytes",
                help: "Memory that programs, sessions and requests may use together.",
                value: saturated(limits.memory_budget_bytes.value),
            },
            Gauge {
                name: "ptc_memory_used_bytes",
                help: "Memory that programs, sessions and requests use together.",
                value: saturated(load.used_bytes),
            },
            Gauge { name: "ptc_sessions", help: "Sessions of programs.", value: sessions },
        ];
        gauges.extend(transport);
        let text = diagnostics.metrics(&gauges, &self.labelled_metrics(), &self.scheduler.refusals());
        let Some(access) = reader.and_then(|reader| self.access_of(reader)) else { return Some(text) };
        let Deployment { catalog: whole, programs, .. } = self.deployment;
        let permitted = access.catalog(whole);
        let upstreams = whole.upstreams.iter().filter(|upstream| permitted.upstream(upstream.name).is_none());
        let programs = programs.iter().filter(|program| !self.may_run(&*access, program));
        let hidden: Vec<String> = upstreams
            .map(|upstream| format!("server=\"{}\"", upstream.name))
            .chain(programs.map(|program| format!("tool=\"{}\"", program.name)))
            .collect();
        // The finished text is filtered, so that no metric that is added later can be forgotten.
        let shown = text.split_inclusive('\n').filter(|line| !hidden.iter().any(|label| line.contains(label)));
        Some(shown.collect())
    }

    /// Returns the metrics about the build and about the upstreams.
    fn labelled_metrics(&self) -> [Labelled; 5] {
        let Deployment { name, config_digest, catalog, .. } = self.deployment;
        let build = [
            ("deployment", *name),
            ("version", env!("CARGO_PKG_VERSION")),
            ("catalog_digest", catalog.digest),
            ("config_digest", config_digest),
        ];
        let (mut up, mut running, mut restarts, mut resident) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (upstream, health) in self.evaluator.upstreams().health() {
            let labels = vec![("server", upstream.name.to_owned())];
            up.push((labels.clone(), u64::from(health.down_within(Duration::MAX).is_none())));
            if matches!(upstream.transport, Transport::McpStdio(_)) {
                running.push((labels.clone(), u64::from(health.is_running())));
                restarts.push((labels.clone(), health.restarts()));
                resident.extend(health.resident_bytes().map(|bytes| (labels, bytes)));
            }
        }
        [
            Labelled {
                name: "ptc_build_info",
                help: "What the binary was built from. The value is always 1.",
                kind: "gauge",
                samples: vec![(build.map(|(label, value)| (label, value.to_owned())).to_vec(), 1)],
            },
            Labelled {
                name: "ptc_upstream_up",
                help: "0 if the last call or connection of the upstream failed, or its process ended; otherwise 1.",
                kind: "gauge",
                samples: up,
            },
            Labelled {
                name: "ptc_upstream_child_running",
                help: "1 if the process of the stdio upstream runs, otherwise 0.",
                kind: "gauge",
                samples: running,
            },
            Labelled {
                name: "ptc_upstream_restarts_total",
                help: "Starts of the upstream's process after the first one.",
                kind: "counter",
                samples: restarts,
            },
            Labelled {
                name: "ptc_upstream_child_resident_bytes",
                help: "Resident memory of the upstream's running process (Linux).",
                kind: "gauge",
                samples: resident,
            },
        ]
    }

    /// Returns the upstreams that are down, each with the name of the reason. A failure older than `age` does not count. If a policy
    /// restricts `reader`, upstreams of which it may call nothing are omitted.
    pub fn upstreams_down(&self, age: Duration, reader: Option<&Identity>) -> Vec<(&'static str, &'static str)> {
        let permitted = reader.and_then(|reader| self.access_of(reader)).map(|access| access.catalog(self.deployment.catalog));
        let is_shown = |name: &str| permitted.is_none_or(|permitted| permitted.upstream(name).is_some());
        let health = self.evaluator.upstreams().health().filter(|(upstream, _)| is_shown(upstream.name));
        health.filter_map(|(upstream, health)| Some((upstream.name, health.down_within(age)?.name()))).collect()
    }
}
