//! The calls of one program, while it runs.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ptc_lisp::host::HttpHead;
use ptc_runtime::upstream::UpstreamError;
use ptc_runtime::upstream::intercept::{CallAnswer, CallPayload, InterceptedCall};

use crate::{Cassette, Reply, Request, merge};

/// A request with its upstream and tool.
pub(crate) type RequestOfTool = ((String, String), Request);

/// A call with its outcome, and its latency if that is recorded.
#[derive(Debug)]
pub(crate) struct Observed {
    call: InterceptedCall,
    outcome: Result<CallAnswer, UpstreamError>,
    took: Option<Duration>,
}

/// The calls of one program, in the order of their ends.
#[derive(Debug, Default)]
pub(crate) struct Calls(Mutex<Vec<Observed>>);

/// The replies to the requests of a program, each with the digest of the tool's definition.
pub(crate) type Replies = BTreeMap<RequestOfTool, (&'static str, Vec<Reply>)>;

impl Observed {
    /// Copies a call. `took` is its latency if that is recorded.
    pub(crate) fn new(call: &InterceptedCall, outcome: Result<&CallAnswer, &UpstreamError>, took: Option<Duration>) -> Observed {
        Observed { call: call.clone(), outcome: outcome.cloned().map_err(Clone::clone), took }
    }
}

impl Calls {
    /// Adds a call. `took` is its latency if that is recorded. The answer is only copied here, since the program waits.
    pub(crate) fn add(&self, call: &InterceptedCall, outcome: Result<&CallAnswer, &UpstreamError>, took: Option<Duration>) {
        let observed = Observed::new(call, outcome, took);
        self.lock().push(observed);
    }

    /// Removes the calls. Returns them by request.
    pub(crate) fn take(&self) -> Replies {
        let observed = std::mem::take(&mut *self.lock());
        replies(observed)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Observed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Converts the calls of a program, which are dropped one after the other.
pub(crate) fn replies(calls: Vec<Observed>) -> Replies {
    let mut replies = Replies::new();
    for Observed { call, outcome, took } in calls {
        let request = ((call.upstream.name.to_owned(), call.tool.name.to_owned()), Request::new(&call));
        let latency_ms = took.map(|took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
        let reply = Reply { latency_ms, ..Reply::new(outcome.as_ref()) };
        replies.entry(request).or_insert_with(|| (call.tool.digest, Vec::new())).1.push(reply);
    }
    replies
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
    let (content, head) = match outcome {
        Ok(answer) => {
            let payload = match &answer.payload {
                CallPayload::None => 0,
                CallPayload::Json(json) => json.len(),
                CallPayload::Text(text) | CallPayload::Plain(text) => text.len(),
            };
            (payload, answer.head.as_ref())
        }
        Err(fault) => (fault.message.len(), fault.head.as_deref()),
    };
    let accept = call.accept.as_ref().map_or(0, String::len);
    (FIXED_BYTES + call.arguments.len() + accept + content + head.map_or(0, head_size)) as u64
}

/// Bytes of a call without its texts. A growing vector has up to twice the elements that it needs.
pub(crate) const FIXED_BYTES: usize = 2 * size_of::<Observed>();

fn head_size(head: &HttpHead) -> usize {
    let headers = head.headers.iter().map(|(name, value)| size_of::<(String, String)>() + name.len() + value.len());
    size_of::<HttpHead>() + headers.sum::<usize>() + head.failed_body.as_ref().map_or(0, Vec::len)
}

#[cfg(test)]
mod tests {
    use ptc_catalog::{Tool, Upstream};

    use super::*;

    static TOOL: Tool = Tool::EMPTY;

    fn upstream() -> &'static Upstream {
        let transport = ptc_catalog::Transport::McpStdio(ptc_catalog::McpStdio::new("x"));
        Box::leak(Box::new(Upstream { name: "s", description: "", transport, tools: ptc_catalog::Tools::table(&[]) }))
    }

    #[test]
    fn size_of_a_call_includes_headers_and_a_fixed_part() {
        let call =
            InterceptedCall { upstream: upstream(), tool: &TOOL, arguments: b"{}".to_vec(), accept: None, without_bytes: false };
        let answer = |headers: usize| CallAnswer {
            payload: CallPayload::None,
            http_status: None,
            head: Some(HttpHead {
                status: 200,
                headers: vec![("x-header".to_owned(), "v".repeat(1000)); headers],
                failed_body: None,
            }),
        };
        let [none, many] = [0, 9].map(|headers| size(&call, Ok(&answer(headers))));
        assert!(none >= size_of::<Observed>() as u64, "{none}");
        assert!(many - none >= 9 * 1008, "{none} {many}");
    }
}
