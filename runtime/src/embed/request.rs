//! Requests to an engine.

use ptc_lisp::limits::Cancel;
use ptc_lisp::signature::{Mode, Signature};
use serde::Serialize;

use super::Answer;
use super::event::{Event, Listener};
use crate::schedule::ClientKey;
use ptc_engine::evaluation::{Call, PriorState};

/// A program with its data.
#[derive(Debug)]
pub struct Request {
    pub(super) call: Call,
    /// The name of a stored program, which the engine resolves.
    pub(super) stored: Option<String>,
    pub(super) past: PriorState,
    pub(super) cancel: Cancel,
    pub(super) signature: Option<(Signature, Mode)>,
    pub(super) listener: Option<Listener>,
    pub(super) client_key: ClientKey,
}

impl Request {
    /// Creates a request for a program without data.
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

    /// Creates a request for a stored program of the engine's deployment. The context contains its arguments, which must match
    /// their schema. The result must match the schema of results, if there is one, and is then also returned as JSON.
    ///
    /// An unknown name and arguments that do not match are an `args_error`. A result that does not match is a `validation_error`.
    pub fn stored(name: impl Into<String>) -> Request {
        Request { stored: Some(name.into()), ..Request::new("") }
    }

    /// Sets the data that the program reads as `data/key`. The value must serialize to a JSON object.
    ///
    /// # Errors
    ///
    /// Returns an error if the value cannot be serialized, such as a map whose keys are not strings. A value that serializes to
    /// something other than an object makes the run fail with an `args_error`.
    pub fn context<T: Serialize + ?Sized>(self, context: &T) -> Result<Request, serde_json::Error> {
        Ok(self.context_json(serde_json::to_string(context)?))
    }

    /// Like [`Request::context`], with JSON text. The text is parsed on the thread that runs the program. Text that is not a JSON
    /// object is an `args_error`.
    #[must_use]
    pub fn context_json(mut self, context: impl Into<String>) -> Request {
        self.call.context = Some(context.into());
        self
    }

    /// Sets the signature of the program. Its parameters are the keys of the context, which are coerced according to [`Mode`].
    /// The result is checked against its type and then also returned as JSON.
    ///
    /// A context that does not match is an `args_error`. A result that does not match, or that has no JSON form, is a
    /// `runtime_error`.
    #[must_use]
    pub fn signature(mut self, signature: Signature, mode: Mode) -> Request {
        self.signature = Some((signature, mode));
        self
    }

    /// Sets a JSON Schema (2020-12) for the result, which replaces that of a stored program. The result is then also returned as
    /// JSON. A result that does not match is a `validation_error`, as in the server. A schema that cannot be compiled is an
    /// `args_error`.
    #[must_use]
    pub fn output_schema(mut self, schema: impl Into<String>) -> Request {
        self.call.output_schema = Some(schema.into());
        self
    }

    /// Continues after an earlier answer, with its definitions and with its value as `*1`.
    #[must_use]
    pub fn after(mut self, earlier: &Answer) -> Request {
        let (evaluation, past) = (&earlier.evaluation, &earlier.past);
        self.past = PriorState {
            is_kept: true,
            bindings: evaluation.bindings.clone(),
            results: evaluation.value.iter().cloned().chain(past.results.iter().cloned()).take(3).collect(),
            called: past.called.clone(),
        };
        self.past.called.add(evaluation.calls.as_deref().unwrap_or_default());
        self
    }

    /// Sets a listener for events while the program runs. It is called on the threads on which the events occur. These wait for
    /// it, so that it should pass the event on and return.
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

    /// Sets the client of the request. While programs wait, owners share the engine equally, and so do the sessions of an owner.
    #[must_use]
    pub fn on_behalf_of(mut self, owner: &str, session: u64) -> Request {
        self.client_key = ClientKey { owner: owner.into(), session };
        self
    }

    /// Sets a handle with which any thread can cancel the program.
    #[must_use]
    pub fn cancel(mut self, cancel: Cancel) -> Request {
        self.cancel = cancel;
        self
    }
}
