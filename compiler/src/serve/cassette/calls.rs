//! The calls of one program, while it runs.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ptc_runtime::upstream::UpstreamError;
use ptc_runtime::upstream::intercept::{CallAnswer, CallPayload, InterceptedCall};

use super::{Cassette, Reply, Request, merge};

/// A request with its upstream and tool.
pub(super) type RequestOfTool = ((String, String), Request);

/// The calls of one program, in the order of their ends.
#[derive(Debug, Default)]
pub(super) struct Calls(Mutex<Vec<(RequestOfTool, &'static str, Reply)>>);

/// The replies to the requests of a program, each with the digest of the tool's definition.
pub(super) type Replies = BTreeMap<RequestOfTool, (&'static str, Vec<Reply>)>;

impl Calls {
    /// Adds a call. `took` is its latency if that is recorded.
    pub(super) fn add(&self, call: &InterceptedCall, outcome: Result<&CallAnswer, &UpstreamError>, took: Option<Duration>) {
        let tool = (call.upstream.name.to_owned(), call.tool.name.to_owned());
        let latency_ms = took.map(|took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
        let reply = Reply { latency_ms, ..Reply::new(outcome) };
        self.lock().push(((tool, Request::new(call)), call.tool.digest, reply));
    }

    /// Removes the calls. Returns them by request.
    pub(super) fn take(&self) -> Replies {
        let mut replies = Replies::new();
        for (request, digest, reply) in std::mem::take(&mut *self.lock()) {
            replies.entry(request).or_insert_with(|| (digest, Vec::new())).1.push(reply);
        }
        replies
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(RequestOfTool, &'static str, Reply)>> {
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
pub(super) fn size(call: &InterceptedCall, outcome: Result<&CallAnswer, &UpstreamError>) -> u64 {
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
