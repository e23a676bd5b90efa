//! Validates results against the schema of a call.

use std::time::{Duration, Instant};

use ptc_catalog::StoredProgram;
use ptc_lisp::json::{self, EncodeError};
use ptc_lisp::limits::Cancel;
use ptc_lisp::{Deadline, Value, print};

use super::{Failure, Preview, Reason};
use ptc_json_schema::{Interrupted, Schema};
use ptc_schedule::alloc;
use ptc_secrets::Redactor;

/// Maximum bytes of a schema.
pub const MAX_SCHEMA_BYTES: usize = 256 * 1024;
/// Maximum bytes of a result, as JSON.
const MAX_RESULT_BYTES: usize = 4 * 1024 * 1024;
/// Maximum bytes of the preview that replaces a long result.
const PREVIEW_BYTES: usize = 512;
/// Maximum depth of a result in structured content. Parsers of clients reject the whole message at 128 levels or more.
const MAX_DEPTH: u32 = 100;

/// A valid result, as JSON.
#[derive(Debug)]
#[non_exhaustive]
pub struct Validated {
    /// The complete JSON text.
    pub json: String,
    /// Whether it is too deep for the parsers of clients.
    pub is_deep: bool,
    /// The preview that replaces it if it is too long for an answer.
    pub preview: Preview,
}

impl Validated {
    /// Creates a validated result from a value and its JSON, which has this depth.
    pub fn new(value: &Value, json: String, depth: u32, redactor: &Redactor) -> Validated {
        let print::Preview { text, truncated, .. } = print::preview(value, PREVIEW_BYTES);
        let preview = Preview { text: redactor.redact_string(text), truncated, nil: value.is_nil() };
        Validated { json: redactor.redact_text(json), is_deep: depth > MAX_DEPTH, preview }
    }
}

/// The conditions that interrupt an evaluation.
pub(super) struct Bounds<'a> {
    pub(super) started: Instant,
    pub(super) wall_clock: Duration,
    pub(super) memory_bytes: u64,
    pub(super) cancel: &'a Cancel,
}

impl Bounds<'_> {
    fn over(&self) -> bool {
        self.cancel.is_cancelled() || self.started.elapsed() > self.wall_clock
    }

    /// Returns the conditions as a deadline, for the steps before the run.
    pub(super) fn deadline(&self) -> Deadline {
        Deadline::new(self.started.checked_add(self.wall_clock), self.cancel)
    }

    /// Returns an error after the deadline or a cancellation.
    pub(super) fn check(&self, during: &str) -> Result<(), Failure> {
        if self.over() { Err(self.stopped(during)) } else { Ok(()) }
    }

    pub(super) fn stopped(&self, during: &str) -> Failure {
        if self.cancel.is_cancelled() {
            return Failure::plain(Reason::Cancelled, "the run was cancelled");
        }
        Failure::plain(Reason::Timeout, format!("the wall clock ran out while {during}"))
    }
}

/// Compiles the `output_schema` of a call.
pub(super) fn schema(raw: &str) -> Result<Schema, Failure> {
    let refuse = |why: String| Failure::plain(Reason::ArgsError, format!("argument `output_schema` is invalid: {why}"));
    let value = json::decode(raw.as_bytes()).map_err(|fault| refuse(fault.to_string()))?;
    Schema::compile(&value).map_err(|refused| refuse(refused.to_string()))
}

/// Compiles a schema of a stored program. `of` names the part that the schema describes.
pub(super) fn stored_schema(program: &StoredProgram, of: &str, text: &str) -> Result<Schema, Failure> {
    let unusable = |why: String| {
        Failure::plain(Reason::ArgsError, format!("the program {} has an unusable schema of {of}: {why}", program.name))
    };
    let value = json::decode(text.as_bytes()).map_err(|fault| unusable(fault.to_string()))?;
    Schema::compile(&value).map_err(|refused| unusable(refused.to_string()))
}

/// Validates the arguments of a stored program.
pub(super) fn arguments(schema: &Schema, context: &Value, bounds: &Bounds<'_>) -> Result<(), Failure> {
    let refuse = |why: String| Failure::plain(Reason::ArgsError, why);
    let report = schema.validate_named("arguments", context, &|| bounds.over()).map_err(|interrupted| match interrupted {
        Interrupted::Stopped => bounds.stopped("the arguments were checked"),
        Interrupted::TooCostly => refuse("the arguments take too long to check".into()),
        Interrupted::TooDeep => refuse("the arguments nest too deep to check".into()),
    })?;
    match report.mismatches.split_first() {
        None => Ok(()),
        Some((first, rest)) => {
            let mut failure = refuse(first.to_string());
            failure.feedback = rest.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
            Err(failure)
        }
    }
}

/// Encodes the value as JSON and validates it. The encoding is that of
/// [`to_json_value`](super::to_json::to_json_value), the contract of `validated`: keys are names.
pub(super) fn validate(schema: &Schema, value: &Value, bounds: &Bounds<'_>, redactor: &Redactor) -> Result<Validated, Failure> {
    let invalid = |message: String| Failure::plain(Reason::ValidationError, message);
    let at = |path: &str| format!("return{}{path}", if path.is_empty() || path.starts_with('[') { "" } else { "." });
    let text = json::encode_named_until(value, MAX_RESULT_BYTES, &|| bounds.over()).map_err(|why| match why {
        _ if bounds.over() => bounds.stopped("the result was validated"),
        EncodeError::TooLarge { max_bytes } => {
            invalid(format!("return: longer than {max_bytes} bytes as JSON, too long to validate; return less of it"))
        }
        EncodeError::Unsupported { path, found } => {
            let hint = if found.ends_with(" as a key") { "; make the keys strings or keywords" } else { "" };
            invalid(format!("{}: {found} has no JSON form{hint}", at(&path)))
        }
        EncodeError::OneKey { path, keys: [one, other] } => {
            let why = format!("{}: the keys {one} and {other} are one in JSON; leave one of them out", at(&path));
            invalid(redactor.redact_str(&why).into_owned())
        }
    })?;
    // The schema is applied to the decoded JSON, the client's view: keywords are strings, sets are arrays. Parts that the value
    // shares are values of their own in it.
    let before = alloc::live_bytes();
    let mut is_too_large = false;
    let decoded = json::decode_exact_while(text.as_bytes(), &mut || {
        is_too_large = u64::try_from(alloc::live_bytes() - before).is_ok_and(|bytes| bytes > bounds.memory_bytes);
        !is_too_large && !bounds.over()
    });
    let plain = decoded.map_err(|fault| match fault {
        _ if bounds.over() => bounds.stopped("the result was validated"),
        _ if is_too_large => Failure::result_too_large(bounds.memory_bytes),
        fault => invalid(format!("return: {fault}")),
    })?;
    let report = schema.validate(&plain, &|| bounds.over()).map_err(|interrupted| match interrupted {
        Interrupted::Stopped => bounds.stopped("the result was validated"),
        Interrupted::TooCostly => invalid("return: takes too long to validate; give `output_schema` fewer alternatives".into()),
        Interrupted::TooDeep => invalid("return: nests too deep to validate".into()),
    })?;
    if let Some(first) = report.mismatches.first() {
        let mut failure = invalid(redactor.redact_str(&first.to_string()).into_owned());
        let mut more: Vec<String> = report.mismatches.iter().skip(1).map(ToString::to_string).collect();
        let unsaid = report.total - report.mismatches.len();
        if unsaid > 0 {
            more.push(format!("… and {unsaid} more mismatches"));
        }
        failure.feedback = redactor.redact_str(&more.join("\n")).into_owned();
        return Err(failure);
    }
    Ok(Validated::new(value, text, plain.depth(), redactor))
}
