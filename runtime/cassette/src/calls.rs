//! The calls of one program, while it runs.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ptc_runtime::upstream::UpstreamError;
use ptc_runtime::upstream::intercept::{CallAnswer, CallPayload, InterceptedCall};

use crate::{Cassette, Reply, Request, merge};

/// A request with its upstream and tool.
pub(crate) type RequestOfTool = ((String, String), Request);

/// A call with its outcome, and its latency if that is recorded.
type Observed = (InterceptedCall, Result<CallAnswer, UpstreamError>, Option<Duration>);

/// The calls of one program, in the order of their ends.
#[derive(Debug, Default)]
pub(crate) struct Calls(Mutex<Vec<Observed>>);

/// The replies to the requests of a program, each with the digest of the tool's definition.
pub(crate) type Replies = BTreeMap<RequestOfTool, (&'static str, Vec<Reply>)>;

impl Calls {
    /// Adds a call. `took` is its latency if that is recorded. Called by the thread that serves all upstreams, so that the answer is
    /// only copied here.
    pub(crate) fn add(&self, call: &InterceptedCall, outcome: Result<&CallAnswer, &UpstreamError>, took: Option<Duration>) {
        self.lock().push((call.clone(), outcome.cloned().map_err(Clone::clone), took));
    }

    /// Removes the calls. Returns them by request.
    pub(crate) fn take(&self) -> Replies {
        let mut replies = Replies::new();
        let observed = std::mem::take(&mut *self.lock());
        for (call, outcome, took) in observed {
            let request = ((call.upstream.name.to_owned(), call.tool.name.to_owned()), Request::new(&call));
            let latency_ms = took.map(|took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
            let reply = Reply { latency_ms, ..Reply::new(outcome.as_ref()) };
            replies.entry(request).or_insert_with(|| (call.tool.digest, Vec::new())).1.push(reply);
        }
        replies
    }

    /// Whether there are no calls.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Observed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<Replies> for Cassette {
    fn from(replies: Replies) -> Cassette {
        let mut cassette = Cassette::default();
        for ((tool, request), (digest, mut replies)) in replies {
            let entry = cassette.tools.entry(tool).or_default();
            digest.clone_into(&mut entry.definition);
            merge::without_repetitions(&mut replies);
            entry.requests.insert(request, replies);
        }
        cassette
    }
}

/// Returns the bytes that a call with its answer takes in memory, approximately.
pub(crate) fn size(call: &InterceptedCall, outcome: Result<&CallAnswer, &UpstreamError>) -> u64 {
    let answer = match outcome {
        Ok(answer) => match &answer.payload {
            CallPayload::None => 0,
            CallPayload::Json(json) => json.len(),
            CallPayload::Text(text) | CallPayload::Plain(text) => text.len(),
        },
        Err(fault) => fault.message.len() + fault.head.iter().flat_map(|head| &head.failed_body).map(Vec::len).sum::<usize>(),
    };
    (call.arguments.len() + answer) as u64
}
