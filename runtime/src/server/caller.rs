//! The dispatcher's view of a transport: the client of a request, and the receiver of answers.

use std::sync::Arc;

use super::identity::Identity;
use super::in_flight::{InFlight, Registration};
use super::outbox::{Outbox, Output};
use crate::diagnostics::Origin;
use crate::schedule::Scheduler;
use ptc_engine::protocol::reply::{self, ErrorBody};

/// A client.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Its identity. The client may use the sessions of its owner.
    pub identity: Arc<Identity>,
    /// Its calls in flight.
    pub calls: Arc<InFlight>,
    /// HTTP metadata of the request, if diagnostics are on.
    pub origin: Option<Arc<Origin>>,
}

impl Caller {
    /// Returns the owner's internal name.
    pub fn owner(&self) -> &Arc<str> {
        &self.identity.owner.id
    }
}

/// An answer that is ready to be sent.
#[derive(Debug)]
pub struct Answer {
    /// The message with its newline.
    pub line: Vec<u8>,
    /// The error code, if it is an error.
    pub error: Option<i32>,
    /// The scopes that the caller lacks for its program.
    pub missing_scopes: Vec<String>,
}

/// Receives answers.
pub trait ResponseSink: Send + Sync {
    /// Sends an answer, which counts in the memory budget until it is written. `call` is the call that it answers. Its permit is
    /// released before the client can see the answer, but after the answer counts in the limit of the sink.
    fn send(&self, answer: Answer, call: Option<Registration>);

    /// Receives the call of the request before it is queued or run.
    fn registered(&self, _call: &Registration) {}

    /// Waits while too many answers wait because the client does not read. The next request is read afterwards.
    fn wait_for_reader(&self) {}
}

impl Answer {
    /// Creates an answer with a result, as raw JSON.
    pub fn result(id: &str, result: &str) -> Answer {
        Answer { line: reply::result(id, result), error: None, missing_scopes: Vec::new() }
    }

    /// Creates an answer with an error.
    pub fn error(id: &str, body: &ErrorBody) -> Answer {
        Answer { line: reply::error(id, body), error: Some(body.code), missing_scopes: Vec::new() }
    }
}

/// Sends answers to standard output. An answer that waits for space counts in the memory budget.
pub struct OutboxSink<W> {
    outbox: Arc<Outbox<W>>,
    scheduler: Arc<Scheduler>,
}

impl<W: Output> OutboxSink<W> {
    /// Creates a sink for an outbox.
    pub fn new(outbox: Arc<Outbox<W>>, scheduler: Arc<Scheduler>) -> OutboxSink<W> {
        OutboxSink { outbox, scheduler }
    }
}

impl<W: Output> ResponseSink for OutboxSink<W> {
    fn send(&self, answer: Answer, call: Option<Registration>) {
        let _memory = self.scheduler.hold(answer.line.capacity());
        self.outbox.send(&answer.line, call);
    }

    fn wait_for_reader(&self) {
        self.outbox.wait_for_reader();
    }
}
