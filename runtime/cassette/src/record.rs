//! Records the calls of programs.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ptc_runtime::schedule::ClientKey;
use ptc_runtime::upstream::UpstreamError;
use ptc_runtime::upstream::intercept::{CallAnswer, InterceptedCall, Interception, Interceptor, ProgramInterceptor};

use crate::calls::{Calls, RequestOfTool};
use crate::{Cassette, Content, Reply, is_about_request, merge};

/// Records the calls of one program after the other.
#[derive(Debug, Default)]
pub struct Recorder {
    records_latency: bool,
    logs: Mutex<Vec<Arc<ProgramLog>>>,
    recorded: Mutex<Recorded>,
}

#[derive(Debug, Default)]
struct Recorded {
    cassette: Cassette,
    /// The program that got the first answer to each request.
    first: BTreeMap<RequestOfTool, String>,
}

/// Two programs got different answers to the same request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The tool, as `upstream/tool`.
    pub tool: String,
    /// The request.
    pub request: String,
    /// The programs.
    pub programs: [String; 2],
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Conflict { tool, request, programs: [first, second] } = self;
        write!(f, "`{first}` and `{second}` got different answers to the same request of {tool}: {request}")
    }
}

#[derive(Debug)]
struct ProgramLog {
    records_latency: bool,
    calls: Calls,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Interceptor for Recorder {
    fn is_offline(&self) -> bool {
        false
    }

    fn begin(&self, _: &ClientKey) -> Arc<dyn ProgramInterceptor> {
        let log = Arc::new(ProgramLog { records_latency: self.records_latency, calls: Calls::default() });
        lock(&self.logs).push(Arc::clone(&log));
        log
    }
}

impl ProgramInterceptor for ProgramLog {
    fn answer(&self, _: &InterceptedCall) -> Interception {
        Interception::PassOn
    }

    fn observe(&self, call: &InterceptedCall, outcome: Result<&CallAnswer, &UpstreamError>, took: Duration) {
        self.calls.add(call, outcome, self.records_latency.then_some(took));
    }
}

impl Cassette {
    /// Returns the tools, as `upstream/tool`, of which a failure is recorded that says nothing about the request.
    pub fn tools_with_failed_connections(&self) -> Vec<String> {
        let is_failed = |reply: &Reply| matches!(reply.content, Content::Fault { reason, .. } if !is_about_request(reason));
        let failed = self.tools.iter().filter(|(_, recorded)| recorded.requests.values().flatten().any(is_failed));
        failed.map(|((upstream, tool), _)| format!("{upstream}/{tool}")).collect()
    }
}

impl Recorder {
    /// Also records how long each call takes. Recordings of the same answers are not equal then.
    #[must_use]
    pub fn with_latency(mut self) -> Recorder {
        self.records_latency = true;
        self
    }

    /// Adds the calls since the last time to the cassette. They are those of `program`.
    ///
    /// # Errors
    ///
    /// An earlier program got other answers to the same request, so that no cassette replays both programs.
    pub fn finish(&self, program: &str) -> Result<(), Conflict> {
        let logs = std::mem::take(&mut *lock(&self.logs));
        let mut recorded = lock(&self.recorded);
        for log in logs {
            for ((tool, request), (digest, replies)) in log.calls.take() {
                let first = recorded.first.entry((tool.clone(), request.clone())).or_insert_with(|| program.to_owned()).clone();
                let entry = recorded.cassette.tools.entry(tool.clone()).or_default();
                digest.clone_into(&mut entry.definition);
                if !merge::extend(entry.requests.entry(request.clone()).or_default(), replies) {
                    return Err(Conflict {
                        tool: format!("{}/{}", tool.0, tool.1),
                        request: request.to_string(),
                        programs: [first, program.to_owned()],
                    });
                }
            }
        }
        Ok(())
    }

    /// Returns what was recorded.
    pub fn cassette(&self) -> Cassette {
        let mut cassette = lock(&self.recorded).cassette.clone();
        for tool in cassette.tools.values_mut() {
            tool.requests.values_mut().for_each(merge::without_repetitions);
        }
        cassette
    }
}
