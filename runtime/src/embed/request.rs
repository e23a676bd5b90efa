//! What an engine is asked.

use ptc_lisp::limits::Cancel;
use ptc_lisp::signature::{Mode, Signature};
use serde::Serialize;

use super::Answer;
use crate::evaluation::{Call, Past};

/// A program with its data.
#[derive(Debug)]
pub struct Request {
    pub(super) call: Call,
    pub(super) past: Past,
    pub(super) cancel: Cancel,
    pub(super) signature: Option<(Signature, Mode)>,
}

impl Request {
    /// A program without data.
    pub fn new(program: impl Into<String>) -> Request {
        Request {
            call: Call { program: program.into(), context: None, output_schema: None, stored: None },
            past: Past::default(),
            cancel: Cancel::default(),
            signature: None,
        }
    }

    /// Data that the program reads as `data/key`: anything that serializes to a JSON object.
    pub fn context<T: Serialize + ?Sized>(self, context: &T) -> Result<Request, serde_json::Error> {
        Ok(self.context_json(serde_json::to_string(context)?))
    }

    /// The same as JSON text. It is read on the thread that runs the program, and what is wrong with it is an `args_error`.
    #[must_use]
    pub fn context_json(mut self, context: impl Into<String>) -> Request {
        self.call.context = Some(context.into());
        self
    }

    /// What the program takes and gives. Its parameters are the keys of the context, which are coerced as [`Mode`] says; the result is
    /// checked against its type, and is then part of the answer as JSON.
    #[must_use]
    pub fn signature(mut self, signature: Signature, mode: Mode) -> Request {
        self.signature = Some((signature, mode));
        self
    }

    /// JSON Schema (2020-12) that the result has to match; it is then part of the answer as JSON.
    #[must_use]
    pub fn output_schema(mut self, schema: impl Into<String>) -> Request {
        self.call.output_schema = Some(schema.into());
        self
    }

    /// Goes on where an earlier answer ended: with its definitions, and with its value as `*1`.
    #[must_use]
    pub fn after(mut self, earlier: &Answer) -> Request {
        self.past = Past {
            bindings: earlier.evaluation.bindings.clone(),
            results: earlier.evaluation.value.iter().cloned().chain(earlier.results.iter().cloned()).take(3).collect(),
        };
        self
    }

    /// Something to stop the program with, from any thread.
    #[must_use]
    pub fn cancel(mut self, cancel: Cancel) -> Request {
        self.cancel = cancel;
        self
    }
}
