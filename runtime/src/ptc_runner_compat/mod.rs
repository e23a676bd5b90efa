//! `lisp_eval` as a tool of another program's agent: its descriptions, and the JSON of its answers.
//!
//! The server of this crate implements MCP itself. This module is for a program that embeds an [`Engine`](crate::embed::Engine)
//! and passes the tool to its model in another way.
//!
//! ```
//! use ptc_runtime::embed::{Engine, Request};
//! use ptc_runtime::ptc_runner_compat::{self, Capability, SuccessOptions};
//!
//! let engine = Engine::builder().build()?;
//! // The description of the tool for the model, and a call by the model:
//! assert!(Capability::McpNoTools.description().contains("with context"));
//! let arguments = serde_json::json!({ "program": "(+ 1 2)" });
//! let answered = match ptc_runner_compat::validate_program(arguments.get("program")) {
//!     Ok(program) => ptc_runner_compat::render(&engine.run(Request::new(program)), &SuccessOptions::ONE_SHOT),
//!     Err(fault) => fault.render(),
//! };
//! assert_eq!(answered, r#"{"status":"ok","result":"user=> 3","prints":[],"feedback":"","truncated":false}"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - [`Capability`]: the descriptions, one for each way in which the tool is offered.
//! - [`validate_program`]: validates the required argument.
//! - [`render`]: renders an answer. [`render_success`] and [`render_error`] do so for parts from other sources.
//! - [`to_json_value`], [`parse_signature`], [`atomize_value`], [`validate_return`]: typed results.
//!
//! Structs with options have constructors and setters, and enums that may grow are `#[non_exhaustive]`, so that a later version
//! can extend both without breaking callers.

mod payload;

use std::fmt;

use ptc_lisp::Value;
use ptc_lisp::signature::{Findings, Signature, Type};

pub use payload::{ErrorOptions, ErrorReason, Execution, Memory, SuccessOptions, render, render_error, render_success};

pub use crate::description::text::MCP_NO_TOOLS;
pub use ptc_engine::evaluation::to_json::{NotJson, to_json_value};
use ptc_text::truncate_utf8;

/// The description for [`Capability::InProcessWithAppTools`].
pub const IN_PROCESS_WITH_APP_TOOLS: &str = "Runs a PTC-Lisp program in a bounded interpreter and answers with its last value. Use it for \
     exact computation and to combine tools. A program calls the application's tools as `(tool/name {:argument value})`. They cannot be \
     called in any other way: of native functions there is only `lisp_eval`.";

/// The description for [`Capability::InProcessTextMode`].
pub const IN_PROCESS_TEXT_MODE: &str = "Runs a PTC-Lisp program in a bounded interpreter and answers with its last value. Use it for exact \
     computation: filtering, aggregating, reshaping data in several steps. Tools that are exposed as `:both` can be called inside a program \
     as `(tool/name {:argument value})`, and natively too, but not natively in the same turn as `lisp_eval`.";

/// The tools that a program can call, depending on how `lisp_eval` is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Capability {
    /// `lisp_eval` is the only native function. The application's tools are available only in programs.
    InProcessWithAppTools,
    /// `lisp_eval` is offered beside the application's tools, which both programs and the model can call.
    InProcessTextMode,
    /// Programs cannot call tools. The MCP server of this crate begins its description with the same text if it has no upstreams.
    McpNoTools,
}

impl Capability {
    /// All variants.
    pub const ALL: &'static [Capability] =
        &[Capability::InProcessWithAppTools, Capability::InProcessTextMode, Capability::McpNoTools];

    /// Returns the description of `lisp_eval` for a model: its capabilities and their limits. The list of tools and the syntax of
    /// programs belong into the prompt.
    pub const fn description(self) -> &'static str {
        match self {
            Capability::InProcessWithAppTools => IN_PROCESS_WITH_APP_TOOLS,
            Capability::InProcessTextMode => IN_PROCESS_TEXT_MODE,
            Capability::McpNoTools => MCP_NO_TOOLS,
        }
    }
}

/// An error in the arguments of a call, with the message of an `args_error`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgsFault(String);

impl ArgsFault {
    /// Creates an error with this message, for arguments that the embedding program validates.
    pub fn new(message: impl Into<String>) -> ArgsFault {
        ArgsFault(message.into())
    }

    /// Returns the message, a sentence.
    pub fn message(&self) -> &str {
        &self.0
    }

    /// Renders the payload that answers the call.
    pub fn render(&self) -> String {
        render_error(ErrorReason::ArgsError, &self.0, ErrorOptions::new())
    }
}

impl fmt::Display for ArgsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ArgsFault {}

/// Validates the `program` argument of a call, which must be a string that is not blank.
///
/// ```
/// use ptc_runtime::ptc_runner_compat::validate_program;
/// use serde_json::json;
///
/// assert_eq!(validate_program(Some(&json!("(+ 1 2)"))), Ok("(+ 1 2)"));
/// let wrong = validate_program(Some(&json!(42))).unwrap_err();
/// assert_eq!(wrong.to_string(), "lisp_eval `program` must be a string, got 42.");
/// ```
///
/// # Errors
///
/// Returns [`ArgsFault`] if the argument is missing, null, not a string or blank.
pub fn validate_program(program: Option<&serde_json::Value>) -> Result<&str, ArgsFault> {
    match program {
        None | Some(serde_json::Value::Null) => {
            Err(ArgsFault("lisp_eval requires a non-empty `program` string argument.".into()))
        }
        Some(serde_json::Value::String(text)) if text.trim().is_empty() => {
            Err(ArgsFault("lisp_eval `program` must be a non-empty string.".into()))
        }
        Some(serde_json::Value::String(text)) => Ok(text),
        Some(other) => {
            let text = other.to_string();
            let (shown, is_cut) = truncate_utf8(&text, SHOWN);
            let mark = if is_cut { "…" } else { "" };
            Err(ArgsFault(format!("lisp_eval `program` must be a string, got {shown}{mark}.")))
        }
    }
}

/// Maximum bytes of an invalid argument in a message.
const SHOWN: usize = 200;
/// Parses a signature; see [`ptc_lisp::signature`] for the grammar.
///
/// # Errors
///
/// Returns the first error of the text, with its position.
pub fn parse_signature(text: &str) -> Result<Signature, ptc_lisp::Error> {
    Signature::parse(text)
}

/// Converts a decoded JSON value according to a type: text becomes keywords and instants where the type requires them.
pub fn atomize_value(value: &Value, of: &Type) -> Value {
    of.from_wire(value)
}

/// Validates a value against the result of a signature. Without a signature every value is valid.
///
/// # Errors
///
/// Returns the mismatches.
pub fn validate_return(signature: Option<&Signature>, value: &Value) -> Result<(), Findings> {
    signature.map_or(Ok(()), |signature| signature.output.validate(value))
}
