//! `lisp_eval` as a tool of somebody else's agent: how it describes itself, and the JSON that answers its calls.
//!
//! The server of this crate speaks MCP by itself; this module is for a program that embeds an [`Engine`](crate::embed::Engine) and
//! hands its model the tool in its own way.
//!
//! ```
//! use ptc_runtime::embed::{Engine, Request};
//! use ptc_runtime::ptc_runner_compat::{self, Capability, SuccessOptions};
//!
//! let engine = Engine::builder().build()?;
//! // What the model is told of the tool, and what it sends:
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
//! - [`validate_program`]: the one required argument.
//! - [`render`], or [`render_success`] and [`render_error`] for parts that come from elsewhere: the payloads.
//! - [`to_json_value`], [`parse_signature`], [`atomize_value`], [`validate_return`]: typed results.
//!
//! The structs with options have constructors and setters, and the enums that may grow are `#[non_exhaustive]`: a later version can
//! add to both without breaking a caller.

mod payload;

use std::fmt;

use ptc_lisp::Value;
use ptc_lisp::json::{self, EncodeError};
use ptc_lisp::signature::{Findings, Signature, Type};
use serde_json::value::RawValue;

pub use payload::{ErrorOptions, ErrorReason, Execution, Memory, SuccessOptions, render, render_error, render_success};

use crate::response::answer::truncate_utf8;
pub use crate::tools_list::text::MCP_NO_TOOLS;

/// The tool among the engine's own: [`Capability::InProcessWithAppTools`].
pub const IN_PROCESS_WITH_APP_TOOLS: &str = "Runs a PTC-Lisp program in a bounded interpreter and answers with its last value. Use it for \
     exact computation and to combine tools. A program calls the application's tools as `(tool/name {:argument value})`. They cannot be \
     called in any other way: of native functions there is only `lisp_eval`.";

/// The tool beside native ones: [`Capability::InProcessTextMode`].
pub const IN_PROCESS_TEXT_MODE: &str = "Runs a PTC-Lisp program in a bounded interpreter and answers with its last value. Use it for exact \
     computation: filtering, aggregating, reshaping data in several steps. Tools that are exposed as `:both` can be called inside a program \
     as `(tool/name {:argument value})`, and natively too, but not natively in the same turn as `lisp_eval`.";

/// What a program can do where the tool is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Capability {
    /// `lisp_eval` is the only native function; the application's tools exist inside programs only.
    InProcessWithAppTools,
    /// `lisp_eval` stands beside the application's tools, which both programs and the model can call.
    InProcessTextMode,
    /// No tools inside programs. The MCP server of this crate begins its own description with the same text where it has no
    /// upstreams.
    McpNoTools,
}

impl Capability {
    /// All of them.
    pub const ALL: &'static [Capability] =
        &[Capability::InProcessWithAppTools, Capability::InProcessTextMode, Capability::McpNoTools];

    /// The description of `lisp_eval` for a model: what it can do and what not. Which tools there are, and how to write a program,
    /// is for the prompt to say.
    pub const fn description(self) -> &'static str {
        match self {
            Capability::InProcessWithAppTools => IN_PROCESS_WITH_APP_TOOLS,
            Capability::InProcessTextMode => IN_PROCESS_TEXT_MODE,
            Capability::McpNoTools => MCP_NO_TOOLS,
        }
    }
}

/// What is wrong with the arguments of a call: the message of an `args_error`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgsFault(String);

impl ArgsFault {
    /// A fault with this message, for arguments that the embedding program checks itself.
    pub fn new(message: impl Into<String>) -> ArgsFault {
        ArgsFault(message.into())
    }

    /// What is wrong, in one sentence.
    pub fn message(&self) -> &str {
        &self.0
    }

    /// The payload that answers the call.
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

/// The `program` argument of a call: a string that is not blank.
///
/// ```
/// use ptc_runtime::ptc_runner_compat::validate_program;
/// use serde_json::json;
///
/// assert_eq!(validate_program(Some(&json!("(+ 1 2)"))), Ok("(+ 1 2)"));
/// let wrong = validate_program(Some(&json!(42))).unwrap_err();
/// assert_eq!(wrong.to_string(), "lisp_eval `program` must be a string, got 42.");
/// ```
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

/// Bytes of a wrong argument that a message shows.
const SHOWN: usize = 200;
/// Bytes of a value as JSON.
const MAX_JSON_BYTES: usize = 64 * 1024 * 1024;

/// A value that JSON cannot hold.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotJson {
    /// Where it stands, such as `rows[0].ts`; `<root>` where it is all there is.
    pub path: String,
    /// Why, with what was found.
    pub why: String,
}

impl fmt::Display for NotJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "non-JSON-encodable value at {}: {}", self.path, self.why)
    }
}

impl std::error::Error for NotJson {}

/// A value as JSON, with numbers exact at any size: keywords become strings without their colon, dates and times ISO text, sets
/// arrays. Keys are strings and keywords; any other key, two keys of one text, a function, a pattern and a number that is
/// not finite are refused with the path to them.
///
/// ```
/// use ptc_lisp::{Program, Run};
/// use ptc_runtime::ptc_runner_compat::to_json_value;
///
/// let program = Program::compile("{:rows [{:ts inc}]}")?;
/// let value = Run::new(&program).execute_on_thread().result?;
/// let fault = to_json_value(&value).unwrap_err();
/// assert_eq!(fault.to_string(), "non-JSON-encodable value at rows[0].ts: a function has no JSON form");
/// # Ok::<(), ptc_lisp::Error>(())
/// ```
pub fn to_json_value(value: &Value) -> Result<Box<RawValue>, NotJson> {
    let at = |path: String| if path.is_empty() { "<root>".to_owned() } else { path };
    let text = json::encode_named_until(value, MAX_JSON_BYTES, &|| false).map_err(|why| match why {
        EncodeError::Unsupported { path, found } => NotJson { path: at(path), why: format!("{found} has no JSON form") },
        EncodeError::OneKey { path, keys: [one, other] } => {
            NotJson { path: at(path), why: format!("the keys {one} and {other} are one in JSON") }
        }
        EncodeError::TooLarge { max_bytes } => {
            NotJson { path: "<root>".to_owned(), why: format!("it is longer than {max_bytes} bytes") }
        }
    })?;
    RawValue::from_string(text).map_err(|why| NotJson { path: "<root>".to_owned(), why: why.to_string() })
}

/// Reads a signature; see [`ptc_lisp::signature`] for the grammar.
pub fn parse_signature(text: &str) -> Result<Signature, ptc_lisp::Error> {
    Signature::parse(text)
}

/// The value that JSON stands for under a type: text becomes keywords and instants where the type says so.
pub fn atomize_value(value: &Value, of: &Type) -> Value {
    of.from_wire(value)
}

/// Holds a value to the result of a signature; without one everything will do.
pub fn validate_return(signature: Option<&Signature>, value: &Value) -> Result<(), Findings> {
    signature.map_or(Ok(()), |signature| signature.output.validate(value))
}
