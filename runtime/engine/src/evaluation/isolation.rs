//! The evaluation in another process, which has no secret, no socket and no file.
//!
//! The other process reads, checks and runs the program with an [`Evaluator`] of its own, and sends a [`PortableEvaluation`] back.
//! That process knows no secret, so that it cannot redact. The server redacts the texts when they arrive.

use std::fmt;
use std::time::{Duration, Instant};

use ptc_lisp::Span;
use ptc_lisp::limits::{Cancel, Limits};
use ptc_schedule::ProcessorLease;
use ptc_secrets::Redactor;
use ptc_upstream::access::Denial;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::{Call, Evaluation, Evaluator, Failure, Preview, PriorState, Reason, Validated};

/// Runs programs in other processes.
pub trait Isolation: Send + Sync {
    /// Evaluates a call whose program holds a processor.
    fn run(&self, run: IsolatedRun<'_>) -> Box<Evaluation>;
}

/// One evaluation in another process.
#[derive(Clone)]
pub struct IsolatedRun<'r> {
    /// The evaluator of this process.
    pub evaluator: &'r Evaluator,
    /// The validated arguments.
    pub call: &'r Call,
    /// The state that earlier evaluations left.
    pub past: PriorState,
    /// Cancels the evaluation.
    pub cancel: &'r Cancel,
    /// When the time of the program began.
    pub started: Instant,
    /// The limits of the program.
    pub limits: Limits,
    /// The program's share of processors and memory.
    pub processor: &'r ProcessorLease,
}

/// The parts of an [`Evaluation`] that another process determines, except for values.
#[derive(Debug, Serialize, Deserialize)]
pub struct PortableEvaluation {
    outcome: Result<PortablePreview, PortableFailure>,
    validated: Option<PortableValidated>,
    returned: bool,
    #[serde(deserialize_with = "bounded_list")]
    notes: Vec<String>,
    #[serde(deserialize_with = "bounded_list")]
    unchecked_tools: Vec<String>,
    /// The number of unchecked calls of each of these tools.
    unchecked_counts: Vec<u64>,
    #[serde(deserialize_with = "bounded_list")]
    prints: Vec<String>,
    steps: u64,
    peak_bytes: u64,
    analysis: Duration,
}

/// Maximum number of texts in a list of another process.
const MAX_TEXTS: usize = 1 << 18;

/// Decodes a list of texts from another process. An empty text takes 1 byte there and 24 bytes here, so that the length of a message
/// does not bound the memory of its texts.
///
/// # Errors
///
/// Fails if the list is too long, or not a list of texts.
pub fn bounded_list<'d, D: Deserializer<'d>>(from: D) -> Result<Vec<String>, D::Error> {
    struct List;
    impl<'d> Visitor<'d> for List {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "at most {MAX_TEXTS} texts")
        }

        fn visit_seq<A: SeqAccess<'d>>(self, mut from: A) -> Result<Vec<String>, A::Error> {
            let mut texts = Vec::new();
            while let Some(text) = from.next_element()? {
                if texts.len() == MAX_TEXTS {
                    return Err(A::Error::invalid_length(MAX_TEXTS + 1, &self));
                }
                texts.push(text);
            }
            Ok(texts)
        }
    }
    from.deserialize_seq(List)
}

#[derive(Debug, Serialize, Deserialize)]
struct PortablePreview {
    text: String,
    truncated: bool,
    nil: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct PortableFailure {
    reason: String,
    message: String,
    feedback: String,
    value: Option<PortablePreview>,
    span: Option<(u32, u32)>,
    retry_after_ms: Option<u64>,
    #[serde(deserialize_with = "bounded_list")]
    missing_scopes: Vec<String>,
    /// Why the policy refuses the program, for the operator.
    denial: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct PortableValidated {
    json: String,
    is_deep: bool,
    preview: PortablePreview,
}

impl PortableEvaluation {
    /// Takes the parts out of an evaluation, which keeps its values.
    pub fn take(evaluation: &mut Evaluation) -> PortableEvaluation {
        let outcome = match &evaluation.outcome {
            Ok(preview) => Ok(PortablePreview::new(preview)),
            Err(failure) => Err(PortableFailure::new(failure)),
        };
        let validated = evaluation.validated.take().map(|validated| PortableValidated {
            preview: PortablePreview::new(&validated.preview),
            json: validated.json,
            is_deep: validated.is_deep,
        });
        let (unchecked_tools, unchecked_counts) = std::mem::take(&mut evaluation.unchecked_calls).into_iter().unzip();
        PortableEvaluation {
            outcome,
            validated,
            returned: evaluation.returned,
            notes: std::mem::take(&mut evaluation.notes),
            unchecked_tools,
            unchecked_counts,
            prints: std::mem::take(&mut evaluation.prints),
            steps: evaluation.steps,
            peak_bytes: evaluation.peak_bytes,
            analysis: evaluation.analysis,
        }
    }

    /// Returns the evaluation without values. Its texts are redacted. Those that are longer than a program may make them are
    /// truncated, since the other process may not keep to the limits.
    pub fn into_evaluation(self, evaluator: &Evaluator, limits: &Limits) -> Box<Evaluation> {
        let redactor = evaluator.redactor();
        let texts = Texts { redactor, preview_bytes: evaluator.preview_bytes.saturating_add(SLACK_BYTES) };
        let mut evaluation = Evaluation::refused(Failure::plain(Reason::RuntimeError, ""));
        evaluation.outcome = match self.outcome {
            Ok(preview) => Ok(preview.into_preview(&texts)),
            Err(failure) => Err(failure.into_failure(&texts)),
        };
        evaluation.validated = self.validated.map(|validated| Validated {
            json: redactor.redact_text(validated.json),
            is_deep: validated.is_deep,
            preview: validated.preview.into_preview(&texts),
        });
        evaluation.returned = self.returned;
        evaluation.notes = texts.list(self.notes, SLACK_BYTES);
        let unchecked_tools = texts.list(self.unchecked_tools, SLACK_BYTES);
        evaluation.unchecked_calls = unchecked_tools.into_iter().zip(self.unchecked_counts).collect();
        evaluation.prints = texts.list(self.prints, limits.print_bytes.saturating_add(SLACK_BYTES));
        evaluation.steps = self.steps;
        evaluation.peak_bytes = self.peak_bytes;
        evaluation.analysis = self.analysis;
        evaluation
    }
}

/// Bytes of the texts of an evaluation for which there is no other limit, and by which others may exceed theirs.
const SLACK_BYTES: usize = 128 * 1024;

/// Redacts and truncates the texts of another process.
struct Texts<'r> {
    redactor: &'r Redactor,
    preview_bytes: usize,
}

impl Texts<'_> {
    /// A text is redacted first, so that no part of a secret stays.
    fn text(&self, text: String, max: usize) -> String {
        let mut text = self.redactor.redact_string(text);
        if text.len() > max {
            text.truncate(text.floor_char_boundary(max));
            text.shrink_to_fit();
        }
        text
    }

    /// Returns the first texts, each truncated to `max` bytes, until they have `max` bytes together.
    fn list(&self, texts: Vec<String>, max: usize) -> Vec<String> {
        let mut left = max;
        let fits = |text: &String| {
            let has_room = left > 0;
            left = left.saturating_sub(text.len() + 1);
            has_room
        };
        texts.into_iter().map(|text| self.text(text, max)).take_while(fits).collect()
    }
}

impl PortablePreview {
    fn new(preview: &Preview) -> PortablePreview {
        PortablePreview { text: preview.text.clone(), truncated: preview.truncated, nil: preview.nil }
    }

    fn into_preview(self, texts: &Texts<'_>) -> Preview {
        let truncated = self.truncated || self.text.len() > texts.preview_bytes;
        Preview { text: texts.text(self.text, texts.preview_bytes), truncated, nil: self.nil }
    }
}

impl PortableFailure {
    fn new(failure: &Failure) -> PortableFailure {
        PortableFailure {
            reason: failure.reason.name().to_owned(),
            message: failure.message.clone(),
            feedback: failure.feedback.clone(),
            value: failure.value.as_ref().map(PortablePreview::new),
            span: failure.span.map(|span| (span.start, span.end)),
            retry_after_ms: failure.retry_after_ms,
            missing_scopes: failure.missing_scopes().to_vec(),
            denial: failure.denial.as_ref().map(|denial| denial.reason.clone()),
        }
    }

    fn into_failure(self, texts: &Texts<'_>) -> Failure {
        let reason = Reason::ALL.into_iter().find(|reason| reason.name() == self.reason).unwrap_or(Reason::RuntimeError);
        Failure {
            reason,
            message: texts.text(self.message, SLACK_BYTES),
            feedback: texts.text(self.feedback, SLACK_BYTES),
            value: self.value.map(|value| value.into_preview(texts)),
            span: self.span.map(|(start, end)| Span { start, end }),
            retry_after_ms: self.retry_after_ms,
            denial: self.denial.map(|reason| {
                let missing_scopes = texts.list(self.missing_scopes, SLACK_BYTES);
                Box::new(Denial { missing_scopes, reason: texts.text(reason, SLACK_BYTES), ..Denial::default() })
            }),
        }
    }
}
