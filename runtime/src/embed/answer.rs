//! The results of runs.

use std::fmt;

use ptc_lisp::{Bindings, Value};
use serde::de::DeserializeOwned;

use super::host::ToolCall;
use crate::secrets::Redactor;
use crate::upstream::CallRecord;
use ptc_engine::evaluation::{Evaluation, Failure, PriorState, Reason};
use ptc_engine::response::metrics::Metrics;

/// The result of a run.
#[non_exhaustive]
pub struct Answer {
    /// The evaluation. Its texts are redacted.
    pub evaluation: Box<Evaluation>,
    /// Calls of own tools, in the order of their start.
    pub tool_calls: Vec<ToolCall>,
    /// Deviations from the request's signature that were coerced or tolerated, such as `context: limit: coerced string "10" to
    /// int`.
    pub warnings: Vec<String>,
    /// The state before this run, without its definitions.
    pub(super) past: PriorState,
    pub(super) redactor: Option<Redactor>,
}

impl Answer {
    pub(super) fn lost() -> Answer {
        Answer::refused(Failure::plain(Reason::RuntimeError, "internal_error: the evaluation's thread was lost"))
    }

    pub(super) fn refused(failure: Failure) -> Answer {
        Answer {
            evaluation: Evaluation::refused(failure),
            tool_calls: Vec::new(),
            warnings: Vec::new(),
            past: PriorState::default(),
            redactor: None,
        }
    }

    /// Returns the value.
    ///
    /// # Errors
    ///
    /// Returns the failure of the run, if it failed.
    pub fn value(&self) -> Result<&Value, &Failure> {
        static NIL: Value = Value::Nil;
        self.evaluation.outcome.as_ref().map(|_| self.evaluation.value.as_ref().unwrap_or(&NIL))
    }

    /// Returns the value as readable text, truncated if long.
    ///
    /// # Errors
    ///
    /// Returns the name of the reason if the run failed.
    pub fn preview(&self) -> Result<&str, &'static str> {
        self.evaluation.outcome.as_ref().map(|value| value.text.as_str()).map_err(|failure| failure.reason.name())
    }

    /// Returns the value as JSON text, if the request had a signature or a schema and the value matches it.
    pub fn validated(&self) -> Option<&str> {
        self.evaluation.validated.as_ref().map(|validated| validated.json.as_str())
    }

    /// Deserializes the value, if the request had a signature or a schema. A failed run returns its failure. A value that does
    /// not deserialize is a `validation_error`.
    ///
    /// # Errors
    ///
    /// Returns the failure of the run, if it failed. Returns a `validation_error` if the request had neither a signature nor a
    /// schema, or if the value does not deserialize as `T`.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        self.value().map_err(Clone::clone)?;
        let invalid = |message: String| Failure::plain(Reason::ValidationError, message);
        let json = self.validated().ok_or_else(|| invalid("the request has neither a signature nor a schema".to_owned()))?;
        serde_json::from_str(json).map_err(|why| invalid(format!("return: {why}")))
    }

    /// Returns the lines that the program printed.
    pub fn prints(&self) -> &[String] {
        &self.evaluation.prints
    }

    /// Returns notes about problems that the value or the failure does not show: unchecked failed calls, and exhausted budgets.
    pub fn notes(&self) -> &[String] {
        &self.evaluation.notes
    }

    /// Returns calls of upstreams, in the order of their start.
    pub fn calls(&self) -> &[CallRecord] {
        self.evaluation.calls.as_deref().unwrap_or_default()
    }

    /// Returns metrics about the reduction from upstream payloads to the answer.
    pub fn metrics(&self) -> Metrics {
        Metrics::measure(self.preview().unwrap_or_default(), self.prints(), self.calls())
    }

    /// Redacts the deployment's secrets in a text.
    pub(crate) fn redacted(&self, text: String) -> String {
        match &self.redactor {
            Some(redactor) => redactor.redact_string(text),
            None => text,
        }
    }

    /// Returns the definitions after the run.
    pub fn bindings(&self) -> &Bindings {
        &self.evaluation.bindings
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer")
            .field("evaluation", &self.evaluation)
            .field("tool_calls", &self.tool_calls)
            .field("warnings", &self.warnings)
            .finish_non_exhaustive()
    }
}
