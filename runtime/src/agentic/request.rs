//! The arguments of `lisp_task`.

use serde_json::Value;

use super::constraints::Constraints;
use crate::settings::Settings;
use ptc_engine::protocol::message::{Arguments, kind, string};

/// A task with valid arguments. The keys of its context are checked when it is decoded, on the evaluation's thread.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// The text of the task, trimmed and not empty.
    pub text: String,
    /// Values for programs, as a JSON object.
    pub context: Option<String>,
    /// Constraints on the answer.
    pub constraints: Constraints,
    /// Names of unknown constraints.
    pub unsupported: Vec<String>,
}

impl Task {
    /// Returns the bytes of text and context.
    pub fn bytes(&self) -> usize {
        self.text.len() + self.context.as_deref().map_or(0, str::len)
    }

    /// Parses the arguments.
    ///
    /// # Errors
    ///
    /// Returns the message of an `args_error` if [`Arguments::check`] fails, if `task` is missing or blank, or if an argument
    /// has another type than expected or is too long.
    pub fn read(arguments: &Arguments<'_>, settings: &Settings) -> Result<Task, String> {
        arguments.check()?;
        let text = arguments.get("task").ok_or("argument `task` is required")?;
        let text = match kind(text) {
            "string" => string(text).ok_or("argument `task` is not valid Unicode: it has a lone surrogate")?,
            other => return Err(format!("argument `task` must be a string, got {other}")),
        };
        let text = text.trim().to_owned();
        if text.is_empty() {
            return Err("argument `task` must be a non-empty string".to_owned());
        }
        let (found, most) = (text.len(), settings.max_program_bytes);
        if found > most {
            return Err(format!("argument `task` exceeds max_program_bytes ({found} > {most})"));
        }
        let object = |name: &str| match arguments.get(name).map(|raw| (kind(raw), raw)) {
            None | Some(("null", _)) => Ok(None),
            Some(("object", raw)) if raw.len() > settings.max_context_bytes => {
                let most = settings.max_context_bytes;
                Err(format!("argument `{name}` exceeds max_context_bytes ({} > {most})", raw.len()))
            }
            Some(("object", raw)) => Ok(Some(raw)),
            Some((other, _)) => Err(format!("argument `{name}` must be a JSON object, got {other}")),
        };
        let context = object("context")?.map(str::to_owned);
        let wishes = object("constraints")?.and_then(|raw| serde_json::from_str::<Value>(raw).ok());
        let (constraints, unsupported) = wishes.as_ref().and_then(Value::as_object).map(Constraints::read).unwrap_or_default();
        Ok(Task { text, context, constraints, unsupported })
    }
}
