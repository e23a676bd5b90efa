//! The JSON payloads that answer calls of `lisp_eval`.

use std::collections::BTreeMap;

use ptc_lisp::{Bindings, print};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::embed::Answer;
use ptc_engine::evaluation::{Failure, Reason};
use ptc_engine::response::answer::shown;

/// Maximum bytes of the preview of a definition.
const DEFINITION_BYTES: usize = 512;

/// The reason why a call has no value: the `reason` of an error payload.
///
/// An [`Engine`](crate::embed::Engine) gives these reasons for the following failures:
///
/// | reason | failures |
/// |---|---|
/// | `parse_error` | the program cannot be parsed |
/// | `runtime_error` | the evaluation failed, or the result does not match the signature of [`Request::signature`] |
/// | `timeout`, `memory_limit` | a limit of the engine was reached |
/// | `args_error` | the context is not a JSON object or does not match the signature or the schema of a stored program; the stored program or its output schema is unusable |
/// | `fail` | the program called `(fail v)` |
/// | `validation_error` | the result does not match the JSON Schema of [`Request::output_schema`] or of a stored program |
///
/// PtcRunner v0.12.0 reserves `args_error` and `validation_error` for its MCP server, since its in-process interfaces accept
/// neither JSON arguments nor a JSON Schema. An engine accepts both, and uses the same reasons as the server.
///
/// [`Request::signature`]: crate::embed::Request::signature
/// [`Request::output_schema`]: crate::embed::Request::output_schema
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorReason {
    /// The text is not a valid program.
    ParseError,
    /// The evaluation failed, or the result does not match the signature of the request.
    RuntimeError,
    /// The time limit was exceeded.
    Timeout,
    /// The memory limit was reached.
    MemoryLimit,
    /// The arguments of the call are invalid: `program`, the context, or the name of a stored program.
    ArgsError,
    /// The program called `(fail v)`. This is the only reason with a `result`.
    Fail,
    /// The result does not match the JSON Schema of the request or of the stored program.
    ValidationError,
}

impl ErrorReason {
    /// Every reason.
    pub const ALL: &'static [ErrorReason] = &[
        ErrorReason::ParseError,
        ErrorReason::RuntimeError,
        ErrorReason::Timeout,
        ErrorReason::MemoryLimit,
        ErrorReason::ArgsError,
        ErrorReason::Fail,
        ErrorReason::ValidationError,
    ];

    /// Returns the documented name.
    pub fn name(self) -> &'static str {
        Reason::from(self).name()
    }
}

impl From<ErrorReason> for Reason {
    fn from(reason: ErrorReason) -> Reason {
        match reason {
            ErrorReason::ParseError => Reason::ParseError,
            ErrorReason::RuntimeError => Reason::RuntimeError,
            ErrorReason::Timeout => Reason::Timeout,
            ErrorReason::MemoryLimit => Reason::MemoryLimit,
            ErrorReason::ArgsError => Reason::ArgsError,
            ErrorReason::Fail => Reason::Fail,
            ErrorReason::ValidationError => Reason::ValidationError,
        }
    }
}

/// A reason that only a server has, such as `busy` or `cancelled`, becomes a `runtime_error` with the reason in the message.
impl From<Reason> for ErrorReason {
    fn from(reason: Reason) -> ErrorReason {
        ErrorReason::ALL.iter().copied().find(|known| Reason::from(*known) == reason).unwrap_or(ErrorReason::RuntimeError)
    }
}

/// The parts of a success payload. [`Execution::from_answer`] takes them from an answer. [`Execution::new`] and the setters are for parts
/// from other sources.
///
/// ```
/// use ptc_runtime::ptc_runner_compat::{Execution, SuccessOptions, render_success};
///
/// let execution = Execution::new().result("user=> 42").print("computed");
/// assert_eq!(
///     render_success(&execution, &SuccessOptions::ONE_SHOT),
///     r#"{"status":"ok","result":"user=> 42","prints":["computed"],"feedback":"","truncated":false}"#
/// );
/// ```
///
/// A struct literal does not compile outside this crate, so that a later version can add a part:
///
/// ```compile_fail,E0639
/// use ptc_runtime::ptc_runner_compat::Execution;
///
/// let execution = Execution { returned_nil: true, ..Execution::new() };
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Execution {
    /// The value as text, if there is one to show.
    pub result: Option<String>,
    /// Whether the program's value is nil.
    pub returned_nil: bool,
    /// The printed lines.
    pub prints: Vec<String>,
    /// Further text for the model.
    pub feedback: String,
    /// The definitions that are kept for later calls.
    pub memory: Memory,
    /// Whether anything was truncated.
    pub truncated: bool,
    /// Whether anything other than the memory was truncated.
    pub visible_truncated: bool,
}

/// The definitions that are kept for later calls.
///
/// ```
/// use ptc_runtime::ptc_runner_compat::Memory;
///
/// let memory = Memory::new().changed("total", "12.5").stored_keys(["orders", "total"]);
/// assert_eq!(memory.changed["total"], "12.5");
/// ```
///
/// ```compile_fail,E0639
/// use ptc_runtime::ptc_runner_compat::Memory;
///
/// let memory = Memory { truncated: true, ..Memory::new() };
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Memory {
    /// Names that are new or changed, with their values as text.
    pub changed: BTreeMap<String, String>,
    /// All names that are kept, sorted.
    pub stored_keys: Vec<String>,
    /// Whether a value was truncated.
    pub truncated: bool,
}

impl Memory {
    /// Creates an empty memory.
    pub fn new() -> Memory {
        Memory::default()
    }

    /// Adds a name that is new or changed, with its value as text.
    #[must_use]
    pub fn changed(mut self, name: impl Into<String>, value: impl Into<String>) -> Memory {
        self.changed.insert(name.into(), value.into());
        self
    }

    /// Sets the names that are kept, and sorts them.
    #[must_use]
    pub fn stored_keys<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Memory {
        self.stored_keys = names.into_iter().map(Into::into).collect();
        self.stored_keys.sort_unstable();
        self
    }

    /// Sets whether a value was truncated.
    #[must_use]
    pub fn truncated(mut self, truncated: bool) -> Memory {
        self.truncated = truncated;
        self
    }
}

impl Execution {
    /// Creates an execution without a value, printed lines and definitions.
    pub fn new() -> Execution {
        Execution::default()
    }

    /// Sets the value as text.
    #[must_use]
    pub fn result(mut self, text: impl Into<String>) -> Execution {
        self.result = Some(text.into());
        self
    }

    /// Sets whether the program's value is nil.
    #[must_use]
    pub fn returned_nil(mut self, is_nil: bool) -> Execution {
        self.returned_nil = is_nil;
        self
    }

    /// Adds a printed line.
    #[must_use]
    pub fn print(mut self, line: impl Into<String>) -> Execution {
        self.prints.push(line.into());
        self
    }

    /// Sets the further text for the model.
    #[must_use]
    pub fn feedback(mut self, text: impl Into<String>) -> Execution {
        self.feedback = text.into();
        self
    }

    /// Sets the definitions that are kept for later calls.
    #[must_use]
    pub fn memory(mut self, memory: Memory) -> Execution {
        self.memory = memory;
        self
    }

    /// Sets whether anything was truncated.
    #[must_use]
    pub fn truncated(mut self, truncated: bool) -> Execution {
        self.truncated = truncated;
        self
    }

    /// Sets whether anything other than the memory was truncated.
    #[must_use]
    pub fn visible_truncated(mut self, truncated: bool) -> Execution {
        self.visible_truncated = truncated;
        self
    }

    /// Returns the parts of an answer. `before` are the definitions with which its program began. Returns `None` if the answer
    /// has no value.
    pub fn from_answer(answer: &Answer, before: &Bindings) -> Option<Execution> {
        let value = answer.evaluation.outcome.as_ref().ok()?;
        let mut memory = Memory {
            changed: BTreeMap::new(),
            stored_keys: answer.bindings().iter().map(|(name, _)| name.to_owned()).collect(),
            truncated: false,
        };
        for (name, held) in answer.bindings().changes(before) {
            let print::Preview { text, truncated, .. } = print::preview(held, DEFINITION_BYTES);
            memory.truncated |= truncated;
            memory.changed.insert(name.to_owned(), answer.redacted(text));
        }
        let feedback: Vec<String> = memory.changed.iter().map(|(name, text)| format!("{name} = {text}")).collect();
        Some(Execution {
            result: (!value.nil).then(|| shown(value).into_owned()),
            returned_nil: value.nil,
            prints: answer.prints().to_vec(),
            feedback: feedback.join("\n"),
            truncated: value.truncated || memory.truncated,
            visible_truncated: value.truncated,
            memory,
        })
    }
}

/// Options of a success payload: one of the two presets, and setters.
///
/// ```
/// use ptc_runtime::ptc_runner_compat::SuccessOptions;
///
/// let known = ptc_lisp::Bindings::default();
/// let options = SuccessOptions::STATEFUL.before(&known);
/// assert!(options.include_memory);
/// ```
///
/// ```compile_fail,E0639
/// use ptc_runtime::ptc_runner_compat::SuccessOptions;
///
/// let options = SuccessOptions { include_memory: true, ..SuccessOptions::STATEFUL };
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct SuccessOptions<'a> {
    /// Whether `memory` is included. If not, `truncated` refers only to the included parts.
    pub include_memory: bool,
    /// The validated value as JSON.
    pub validated: Option<&'a RawValue>,
    /// For [`render`]: the definitions with which the program began. `None` means that there were none.
    pub before: Option<&'a Bindings>,
}

impl SuccessOptions<'_> {
    /// The preset for definitions that outlive a call.
    pub const STATEFUL: SuccessOptions<'static> = SuccessOptions { include_memory: true, validated: None, before: None };
    /// The preset for independent calls.
    pub const ONE_SHOT: SuccessOptions<'static> = SuccessOptions { include_memory: false, validated: None, before: None };
}

impl<'a> SuccessOptions<'a> {
    /// Sets whether `memory` is part of the payload.
    #[must_use]
    pub fn include_memory(mut self, include: bool) -> Self {
        self.include_memory = include;
        self
    }

    /// Sets the validated value as JSON.
    #[must_use]
    pub fn validated(mut self, json: &'a RawValue) -> Self {
        self.validated = Some(json);
        self
    }

    /// For [`render`]: sets the definitions with which the program began.
    #[must_use]
    pub fn before(mut self, bindings: &'a Bindings) -> Self {
        self.before = Some(bindings);
        self
    }
}

/// The preset [`SuccessOptions::STATEFUL`].
impl Default for SuccessOptions<'_> {
    fn default() -> Self {
        SuccessOptions::STATEFUL
    }
}

/// A member that may be absent, as opposed to null.
#[derive(Serialize)]
#[serde(untagged)]
enum Field<'a> {
    Text(Option<&'a str>),
    Absent,
}

impl Field<'_> {
    fn is_absent(&self) -> bool {
        matches!(self, Field::Absent)
    }
}

/// Renders the payload of a success: `status`, `result`, `prints`, `feedback`, `truncated`, and optionally `memory` and
/// `validated`. `result` is absent if there is neither a text nor a value.
pub fn render_success(execution: &Execution, options: &SuccessOptions<'_>) -> String {
    #[derive(Serialize)]
    struct Payload<'a> {
        status: &'static str,
        #[serde(skip_serializing_if = "Field::is_absent")]
        result: Field<'a>,
        prints: &'a [String],
        feedback: &'a str,
        truncated: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        memory: Option<&'a Memory>,
        #[serde(skip_serializing_if = "Option::is_none")]
        validated: Option<&'a RawValue>,
    }
    let nothing = execution.result.is_none() && execution.returned_nil;
    let payload = Payload {
        status: "ok",
        result: if nothing { Field::Absent } else { Field::Text(execution.result.as_deref()) },
        prints: &execution.prints,
        feedback: &execution.feedback,
        truncated: if options.include_memory { execution.truncated } else { execution.visible_truncated },
        memory: options.include_memory.then_some(&execution.memory),
        validated: options.validated,
    };
    serde_json::to_string(&payload).unwrap_or_default()
}

/// Optional parts of an error payload.
///
/// ```
/// use ptc_runtime::ptc_runner_compat::{ErrorOptions, ErrorReason, render_error};
///
/// assert_eq!(
///     render_error(ErrorReason::Fail, "no stock", ErrorOptions::new().result("{:sku 7}")),
///     r#"{"status":"error","reason":"fail","message":"no stock","feedback":"no stock","result":"{:sku 7}"}"#
/// );
/// ```
///
/// ```compile_fail,E0639
/// use ptc_runtime::ptc_runner_compat::ErrorOptions;
///
/// let options = ErrorOptions { result: None, feedback: None };
/// ```
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct ErrorOptions<'a> {
    /// The value of `(fail v)` as text. Other reasons have none.
    pub result: Option<&'a str>,
    /// Help for repairing the call. The default is the message.
    pub feedback: Option<&'a str>,
}

impl<'a> ErrorOptions<'a> {
    /// Creates options without a result, and with the message as feedback.
    pub fn new() -> Self {
        ErrorOptions::default()
    }

    /// Sets the value of `(fail v)` as text.
    #[must_use]
    pub fn result(mut self, text: &'a str) -> Self {
        self.result = Some(text);
        self
    }

    /// Sets help for repairing the call, instead of the message.
    #[must_use]
    pub fn feedback(mut self, text: &'a str) -> Self {
        self.feedback = Some(text);
        self
    }
}

/// Renders the payload of an error: `status`, `reason`, `message`, `feedback`, and `result` for [`ErrorReason::Fail`] only.
pub fn render_error(reason: ErrorReason, message: &str, options: ErrorOptions<'_>) -> String {
    #[derive(Serialize)]
    struct Payload<'a> {
        status: &'static str,
        reason: &'static str,
        message: &'a str,
        feedback: &'a str,
        #[serde(skip_serializing_if = "Field::is_absent")]
        result: Field<'a>,
    }
    let payload = Payload {
        status: "error",
        reason: reason.name(),
        message,
        feedback: options.feedback.unwrap_or(message),
        result: if reason == ErrorReason::Fail { Field::Text(options.result) } else { Field::Absent },
    };
    serde_json::to_string(&payload).unwrap_or_default()
}

/// Renders the payload of an answer, either a success according to `options` or an error. A value that the engine has validated
/// is included as `validated` in any case.
pub fn render(answer: &Answer, options: &SuccessOptions<'_>) -> String {
    if let Err(failure) = &answer.evaluation.outcome {
        return error(failure, answer.notes());
    }
    let none = Bindings::default();
    let mut execution = Execution::from_answer(answer, options.before.unwrap_or(&none)).unwrap_or_default();
    if !options.include_memory {
        execution.feedback.clear();
    }
    append(&mut execution.feedback, answer.notes());
    let validated: Option<&RawValue> = answer.validated().and_then(|json| serde_json::from_str(json).ok());
    render_success(&execution, &SuccessOptions { validated: options.validated.or(validated), ..*options })
}

/// Appends notes, one per line.
fn append(feedback: &mut String, notes: &[String]) {
    for note in notes {
        if !feedback.is_empty() {
            feedback.push('\n');
        }
        feedback.push_str(note);
    }
}

fn error(failure: &Failure, notes: &[String]) -> String {
    let reason = ErrorReason::from(failure.reason);
    let message = if reason.name() == failure.reason.name() {
        failure.message.clone()
    } else {
        format!("{}: {}", failure.reason.name(), failure.message)
    };
    let mut feedback = if failure.feedback.is_empty() { message.clone() } else { format!("{message}\n{}", failure.feedback) };
    append(&mut feedback, notes);
    let result = failure.value.as_ref().map(|value| value.text.as_str());
    render_error(reason, &message, ErrorOptions { result, feedback: Some(&feedback) })
}
