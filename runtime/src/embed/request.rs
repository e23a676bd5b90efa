//! What an engine is asked.

use ptc_lisp::limits::Cancel;
use ptc_lisp::signature::{Mode, Signature};
use serde::Serialize;

use super::Answer;
use super::event::{Event, Listener};
use crate::evaluation::{Call, PriorState};
use crate::schedule::ClientKey;

/// A program with its data.
#[derive(Debug)]
pub struct Request {
    pub(super) call: Call,
    /// The stored program that is wanted, for the engine to find.
    pub(super) stored: Option<String>,
    pub(super) past: PriorState,
    pub(super) cancel: Cancel,
    pub(super) signature: Option<(Signature, Mode)>,
    pub(super) listener: Option<Listener>,
    pub(super) client_key: ClientKey,
}

impl Request {
    /// A program without data.
    pub fn new(program: impl Into<String>) -> Request {
        Request {
            call: Call { program: program.into(), context: None, output_schema: None, stored: None },
            stored: None,
            past: PriorState::default(),
            cancel: Cancel::default(),
            signature: None,
            listener: None,
            client_key: ClientKey::default(),
        }
    }

    /// A stored program of the engine's deployment. Its arguments are the context, which has to match their schema; its result has
    /// to match the schema of its results, where it has one, and is then part of the answer as JSON.
    ///
    /// A name that the deployment does not have is an `args_error`, and so are arguments that do not match. A result that does not
    /// match its schema is a `validation_error`.
    pub fn stored(name: impl Into<String>) -> Request {
        Request { stored: Some(name.into()), ..Request::new("") }
    }

    /// Data that the program reads as `data/key`: anything that serializes to a JSON object.
    pub fn context<T: Serialize + ?Sized>(self, context: &T) -> Result<Request, serde_json::Error> {
        Ok(self.context_json(serde_json::to_string(context)?))
    }

    /// As [`Request::context`], from JSON text. The text is parsed on the thread that runs the program; text that is not a JSON
    /// object is an `args_error`.
    #[must_use]
    pub fn context_json(mut self, context: impl Into<String>) -> Request {
        self.call.context = Some(context.into());
        self
    }

    /// What the program takes and gives. Its parameters are the keys of the context, which are coerced as [`Mode`] says; the result
    /// is checked against its type, and is then part of the answer as JSON.
    ///
    /// A context that does not match is an `args_error`; a result that does not match, or that has no JSON form, is a
    /// `runtime_error`.
    #[must_use]
    pub fn signature(mut self, signature: Signature, mode: Mode) -> Request {
        self.signature = Some((signature, mode));
        self
    }

    /// JSON Schema (2020-12) that the result has to match, instead of that of a stored program; it is then part of the answer as
    /// JSON. A result that does not match is a `validation_error`, as in the server; a schema that cannot be compiled is an
    /// `args_error`.
    #[must_use]
    pub fn output_schema(mut self, schema: impl Into<String>) -> Request {
        self.call.output_schema = Some(schema.into());
        self
    }

    /// Goes on where an earlier answer ended: with its definitions, and with its value as `*1`.
    #[must_use]
    pub fn after(mut self, earlier: &Answer) -> Request {
        self.past = PriorState {
            bindings: earlier.evaluation.bindings.clone(),
            results: earlier.evaluation.value.iter().cloned().chain(earlier.results.iter().cloned()).take(3).collect(),
        };
        self
    }

    /// Tells `listen` what happens while the program runs. It is called on the threads where that happens, which wait for it: it
    /// should hand on what it hears and return.
    ///
    /// ```
    /// use ptc_runtime::embed::{Engine, Event, Request};
    ///
    /// let (send, heard) = std::sync::mpsc::channel();
    /// let request = Request::new("(println \"on my way\") 42").on_event(move |event| {
    ///     if let Event::Printed(line) = event {
    ///         let _ = send.send(line.to_owned());
    ///     }
    /// });
    /// Engine::builder().build()?.run(request);
    /// assert_eq!(heard.recv()?, "on my way");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn on_event(mut self, listen: impl Fn(Event<'_>) + Send + Sync + 'static) -> Request {
        self.listener = Some(Listener::new(listen));
        self
    }

    /// For whom the program runs. Callers of different owners share the engine in equal parts while some of them wait, and so do
    /// the sessions of an owner.
    #[must_use]
    pub fn on_behalf_of(mut self, owner: &str, session: u64) -> Request {
        self.client_key = ClientKey { owner: owner.into(), session };
        self
    }

    /// Something to stop the program with, from any thread.
    #[must_use]
    pub fn cancel(mut self, cancel: Cancel) -> Request {
        self.cancel = cancel;
        self
    }
}
