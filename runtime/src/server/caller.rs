//! Who asks, and where answers go: all that the dispatcher knows of a transport.

use std::io::Write;
use std::sync::Arc;

use super::in_flight::{InFlight, Registration};
use super::outbox::Outbox;
use crate::diagnostics::Origin;
use crate::protocol::reply::{self, ErrorBody};

/// A client.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Whose sessions it may use.
    pub owner: Arc<str>,
    /// Its calls that run.
    pub calls: Arc<InFlight>,
    /// What HTTP knows of the request, where something keeps it.
    pub origin: Option<Arc<Origin>>,
}

/// An answer, ready to be sent.
#[derive(Debug)]
pub struct Answer {
    /// The message with its newline.
    pub line: Vec<u8>,
    /// The code, where it is an error.
    pub error: Option<i32>,
}

/// Where answers go.
pub trait ResponseSink: Send + Sync {
    /// Sends an answer. `call` is the one that it belongs to: its place is given back before the client can see the answer, and
    /// not before the answer is bounded where it waits.
    fn send(&self, answer: Answer, call: Option<Registration>);
}

impl Answer {
    /// The answer that holds a result, as raw JSON.
    pub fn result(id: &str, result: &str) -> Answer {
        Answer { line: reply::result(id, result), error: None }
    }

    /// The answer that holds an error.
    pub fn error(id: &str, body: &ErrorBody) -> Answer {
        Answer { line: reply::error(id, body), error: Some(body.code) }
    }
}

impl<W: Write + Send> ResponseSink for Outbox<W> {
    fn send(&self, answer: Answer, call: Option<Registration>) {
        Outbox::send(self, &answer.line, call);
    }
}
