//! Answers: what a run gave.

use std::fmt;

use ptc_lisp::{Bindings, Value};

use super::host::ToolCall;
use crate::evaluation::{Evaluation, Failure, Reason};
use crate::response::metrics::Metrics;
use crate::secrets::Redactor;
use crate::upstream::CallRecord;

/// What a run gave.
#[non_exhaustive]
pub struct Answer {
    /// All that is known of it. Its texts are redacted.
    pub evaluation: Evaluation,
    /// Calls of own tools, in order of their start.
    pub tool_calls: Vec<ToolCall>,
    /// What the signature of the request had coerced or let pass, such as `context: limit: coerced string "10" to int`.
    pub warnings: Vec<String>,
    /// Values of earlier answers, newest first.
    pub(super) results: Vec<Value>,
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
            results: Vec::new(),
            redactor: None,
        }
    }

    /// The value itself, or why there is none.
    pub fn value(&self) -> Result<&Value, &Failure> {
        static NIL: Value = Value::Nil;
        self.evaluation.outcome.as_ref().map(|_| self.evaluation.value.as_ref().unwrap_or(&NIL))
    }

    /// The value as readable text, cut where it is long; or the reason, such as `timeout`, why there is none.
    pub fn preview(&self) -> Result<&str, &'static str> {
        self.evaluation.outcome.as_ref().map(|value| value.text.as_str()).map_err(|failure| failure.reason.name())
    }

    /// The value as JSON text, where the request had a signature or a schema and the value matches.
    pub fn validated(&self) -> Option<&str> {
        self.evaluation.validated.as_ref().map(|validated| validated.json.as_str())
    }

    /// The lines that the program printed.
    pub fn prints(&self) -> &[String] {
        &self.evaluation.prints
    }

    /// What the value or the failure does not show: failed calls that the program did not check, and budgets that refused something.
    pub fn notes(&self) -> &[String] {
        &self.evaluation.notes
    }

    /// Calls of upstreams, in order of their start.
    pub fn calls(&self) -> &[CallRecord] {
        self.evaluation.calls.as_deref().unwrap_or_default()
    }

    /// How much upstream payload became how small an answer.
    pub fn metrics(&self) -> Metrics {
        Metrics::of(self.preview().unwrap_or_default(), self.prints(), self.calls())
    }

    /// A text without the deployment's secrets.
    pub(crate) fn redacted(&self, text: String) -> String {
        match &self.redactor {
            Some(redactor) => redactor.redact_string(text),
            None => text,
        }
    }

    /// The definitions after the run.
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
