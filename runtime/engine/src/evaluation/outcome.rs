//! The result of an evaluation: its value, or its failure.

use std::time::{Duration, Instant};

use ptc_lisp::{Bindings, Kind, Span, Value};

use super::{PANIC_BYTES, Reason, Validated};
use ptc_schedule::pool::JobError;
use ptc_schedule::{ProcessorLease, WaitTimes};
use ptc_secrets::Redactor;
use ptc_text::truncate_utf8;
use ptc_upstream::CallRecord;
use ptc_upstream::access::Denial;

/// The complete result of an evaluation. Its texts are redacted.
#[derive(Debug)]
#[non_exhaustive]
pub struct Evaluation {
    /// The preview of the value, or the failure.
    pub outcome: Result<Preview, Failure>,
    /// The value as JSON, if the call had an `output_schema` and the value matches it.
    pub validated: Option<Validated>,
    /// The value.
    pub value: Option<Value>,
    /// Whether the value comes from `(return v)`.
    pub returned: bool,
    /// The definitions after the evaluation. If it failed, those before it.
    pub bindings: Bindings,
    /// Notes about problems that the value or the failure does not show: keys that output schemas do not have, unchecked failed
    /// calls, lists of which only the first page was read, and exhausted budgets.
    pub notes: Vec<String>,
    /// The failed calls of which the program did not read `:ok`, `:reason` or `:message`: the tool as `upstream/tool`, and the number of
    /// calls. A tool has an entry for each reason.
    pub unchecked_calls: Vec<(String, u64)>,
    /// The state of its session, if it ran in one.
    pub session: Option<InSession>,
    /// The printed lines.
    pub prints: Vec<String>,
    /// Upstream calls, in the order of their start. `None` if there are no upstreams.
    pub calls: Option<Vec<CallRecord>>,
    /// Number of steps of all threads.
    pub steps: u64,
    /// Maximum measured bytes of the program's values.
    pub peak_bytes: u64,
    /// When it started. `None` if it did not start.
    pub started: Option<Instant>,
    /// Time to read, analyse and check the program.
    pub analysis: Duration,
    /// Time from the start of the evaluation to its end.
    pub duration: Duration,
    /// Time from the arrival of the call to its admission.
    pub queued: Duration,
    /// Time that its threads waited for a processor.
    pub processor_wait: Duration,
    /// The lease counts the evaluation's memory until it is dropped.
    pub processor: Option<ProcessorLease>,
    /// The context.
    pub context: Option<Value>,
}

/// The state of a session after an evaluation.
#[derive(Debug)]
pub struct InSession {
    /// The metadata of the session. Null if it was closed meanwhile.
    pub metadata: serde_json::Value,
    /// Names that were defined or changed.
    pub changed: Vec<String>,
    /// All names in the session.
    pub stored: Vec<String>,
}

/// A value as readable text.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Preview {
    /// The value as EDN, truncated structurally if it is too long.
    pub text: String,
    /// Whether it was truncated.
    pub truncated: bool,
    /// Whether the value is nil, which structured answers omit.
    pub nil: bool,
}

/// The failure of an evaluation.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Failure {
    /// The reason in the protocol.
    pub reason: Reason,
    /// The message, in one line.
    pub message: String,
    /// Help for repairing the program: position, line with caret, hint. Empty if there is none.
    pub feedback: String,
    /// The value of `(fail v)`.
    pub value: Option<Preview>,
    /// The form with the error, if it is in the program of the call.
    pub span: Option<Span>,
    /// Milliseconds after which the call may be repeated, if the server lacked capacity.
    pub retry_after_ms: Option<u64>,
    /// Why the policy does not permit the program, if that is the reason.
    pub denial: Option<Box<Denial>>,
}

/// Formats reason and message, without the feedback.
impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.reason.name(), self.message)
    }
}

impl std::error::Error for Failure {}

impl Failure {
    /// Creates a failure without feedback.
    pub fn plain(reason: Reason, message: impl Into<String>) -> Self {
        Failure {
            reason,
            message: message.into(),
            feedback: String::new(),
            value: None,
            span: None,
            retry_after_ms: None,
            denial: None,
        }
    }

    /// Returns the scopes that the caller lacks, if the policy does not permit the program.
    pub fn missing_scopes(&self) -> &[String] {
        self.denial.as_ref().map_or(&[], |denial| &denial.missing_scopes)
    }

    /// Returns why the policy refuses the program or one of its calls, for the operator. It must not be in an answer.
    pub fn denial_reason(&self) -> Option<&str> {
        self.denial.as_ref().map(|denial| denial.reason.as_str()).filter(|reason| !reason.is_empty())
    }

    /// Adds why the policy has refused a call of the program, for the operator.
    #[must_use]
    pub fn with_denial(mut self, reason: Option<&str>) -> Self {
        if let Some(reason) = reason.filter(|_| self.denial.is_none()) {
            self.denial = Some(Box::new(Denial { reason: reason.to_owned(), ..Denial::default() }));
        }
        self
    }

    /// Adds help for repairing the program.
    #[must_use]
    pub fn with_feedback(mut self, feedback: impl Into<String>) -> Self {
        self.feedback = feedback.into();
        self
    }
}

impl Evaluation {
    /// Drops the values of the program, which its answer does not need. Their memory does not count any longer.
    pub fn drop_values(&mut self) {
        // The answer shows definitions in another way than other values.
        self.value = self.value.take().filter(|value| value.kind() == Kind::Var);
        (self.bindings, self.context) = (Bindings::default(), None);
        self.processor = None;
    }

    /// Creates the result of an evaluation that did not run.
    pub fn refused(failure: Failure) -> Box<Self> {
        Box::new(Evaluation {
            outcome: Err(failure),
            validated: None,
            value: None,
            returned: false,
            bindings: Bindings::default(),
            notes: Vec::new(),
            unchecked_calls: Vec::new(),
            session: None,
            prints: Vec::new(),
            calls: None,
            steps: 0,
            peak_bytes: 0,
            started: None,
            analysis: Duration::ZERO,
            duration: Duration::ZERO,
            queued: Duration::ZERO,
            processor_wait: Duration::ZERO,
            processor: None,
            context: None,
        })
    }

    /// Records how long the call and its threads have waited.
    pub fn record_waits(&mut self, times: &WaitTimes) {
        (self.queued, self.processor_wait) = (times.queued(), times.processor_wait());
    }

    /// Creates the result of an evaluation that did not run or that panicked. The message of a panic may contain anything,
    /// including secrets.
    pub fn unfinished(error: &JobError, redactor: &Redactor, retry_after_ms: u64) -> Box<Self> {
        let JobError::Panicked(message) = error else {
            return Evaluation::refused(Failure::no_stack(retry_after_ms));
        };
        // Truncation comes after redaction, since a partial secret would not be found.
        let message = redactor.redact_str(message);
        let message =
            format!("internal_error: the evaluation stopped on a bug of the server: {}", truncate_utf8(&message, PANIC_BYTES).0);
        Evaluation::refused(Failure::plain(Reason::RuntimeError, message))
    }
}
