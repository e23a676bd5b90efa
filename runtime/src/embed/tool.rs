//! Tools of the embedding program.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use ptc_check::HostTool;
use ptc_lisp::Value;
use ptc_lisp::signature::{Mode, Signature};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::upstream::arguments::{self, Bounds, Unsendable};

/// Maximum size of arguments as JSON, in bytes, unless the memory limit of the run is lower.
pub(super) const MAX_BYTES: usize = 256 * 1024 * 1024;

/// Names under `tool/` that the language defines.
const RESERVED_NAMES: [&str; 4] = ["all", "call", "servers", "value"];

/// A function that programs call as `(tool/NAME {…})`.
///
/// Its signature is checked for arguments and results. Arguments are passed with string keys and underscores in place of hyphens,
/// and coerced according to [`Mode::Enabled`]. The result is encoded as JSON, and decoded with keywords and instants where the
/// signature has them. A failure or a panic ends the program with `tool_error`.
///
/// ```
/// use ptc_runtime::embed::{Args, Tool};
///
/// let double = Tool::new("double", "(n :int) -> :int", |args: Args| {
///     #[derive(serde::Deserialize)]
///     struct Input {
///         n: i64,
///     }
///     let Input { n } = args.parse()?;
///     Ok(n * 2)
/// })?;
/// let greet = Tool::new_async("greet", "(name :string?) -> :string", |args: Args| async move {
///     Ok(format!("Hello, {}!", args.text("name").unwrap_or("world")))
/// })?
/// .describe("Greets politely.");
/// assert_eq!(greet.to_string(), "greet(name :string?) -> :string\n  Greets politely.");
/// # let _ = double;
/// # Ok::<(), ptc_runtime::embed::ToolDefinitionError>(())
/// ```
#[derive(Clone)]
pub struct Tool {
    name: String,
    description: String,
    signature: Signature,
    mode: Mode,
    pub(super) run: Run,
}

/// The result as JSON text.
pub(super) type ToolOutput = Result<Vec<u8>, ToolFailure>;

/// The future of an asynchronous call.
type ToolFuture = Pin<Box<dyn Future<Output = ToolOutput> + Send>>;

#[derive(Clone)]
pub(super) enum Run {
    /// Runs on a blocking thread.
    Blocking(Arc<dyn Fn(Args) -> ToolOutput + Send + Sync>),
    /// Runs as a task, which is aborted when the program stops waiting.
    Async(Arc<dyn Fn(Args) -> ToolFuture + Send + Sync>),
}

impl Run {
    pub(super) fn blocking<T: Serialize>(run: impl Fn(Args) -> Result<T, ToolFailure> + Send + Sync + 'static) -> Run {
        Run::Blocking(Arc::new(move |args| to_json(&run(args)?)))
    }

    pub(super) fn asynchronous<T: Serialize, F: Future<Output = Result<T, ToolFailure>> + Send + 'static>(
        run: impl Fn(Args) -> F + Send + Sync + 'static,
    ) -> Run {
        Run::Async(Arc::new(move |args| {
            let under_way = run(args);
            Box::pin(async move { to_json(&under_way.await?) })
        }))
    }
}

impl Tool {
    /// Makes a tool whose function may block and compute. It runs on a blocking thread, so that the program's deadline still
    /// applies.
    ///
    /// # Errors
    ///
    /// Returns an error if the name or the signature is not valid.
    pub fn new<T: Serialize>(
        name: &str,
        signature: &str,
        run: impl Fn(Args) -> Result<T, ToolFailure> + Send + Sync + 'static,
    ) -> Result<Tool, ToolDefinitionError> {
        Tool::parse(name, signature, Run::blocking(run))
    }

    /// Makes a tool with an asynchronous function. Its task is aborted if the program ends before the answer.
    ///
    /// # Errors
    ///
    /// Returns an error if the name or the signature is not valid.
    pub fn new_async<T: Serialize, F: Future<Output = Result<T, ToolFailure>> + Send + 'static>(
        name: &str,
        signature: &str,
        run: impl Fn(Args) -> F + Send + Sync + 'static,
    ) -> Result<Tool, ToolDefinitionError> {
        Tool::parse(name, signature, Run::asynchronous(run))
    }

    fn parse(name: &str, signature: &str, run: Run) -> Result<Tool, ToolDefinitionError> {
        Tool::with(name, Signature::parse(signature).map_err(|error| error.render(signature)), run)
    }

    /// Makes a tool with a signature, or an error that says why there is none.
    pub(super) fn with(name: &str, signature: Result<Signature, String>, run: Run) -> Result<Tool, ToolDefinitionError> {
        let plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
        if !plain || RESERVED_NAMES.contains(&name) {
            return Err(ToolDefinitionError::Name(name.to_owned()));
        }
        let signature = signature.map_err(|why| ToolDefinitionError::Signature { tool: name.to_owned(), why })?;
        Ok(Tool { name: name.to_owned(), description: String::new(), signature, mode: Mode::default(), run })
    }

    /// Sets the description.
    #[must_use]
    pub fn describe(mut self, description: impl Into<String>) -> Tool {
        self.description = description.into();
        self
    }

    /// Sets how strictly arguments and results are checked.
    #[must_use]
    pub fn checked(mut self, mode: Mode) -> Tool {
        self.mode = mode;
        self
    }

    /// Returns the name without `tool/`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the description. Empty if there is none.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns the signature.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    pub(super) fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns the tool in the form that the static checks use.
    pub(super) fn outline(&self) -> HostTool<'_> {
        HostTool { name: &self.name, signature: &self.signature, mode: self.mode }
    }
}

/// Formats the tool for prompts: name and signature, and the description on a separate line.
impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.name, self.signature)?;
        if self.description.is_empty() { Ok(()) } else { write!(f, "\n  {}", self.description) }
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tool").field(&self.to_string()).finish()
    }
}

fn to_json<T: Serialize>(value: &T) -> ToolOutput {
    serde_json::to_vec(value).map_err(|why| ToolFailure::new(format!("the result has no JSON form: {why}")))
}

/// Why a tool cannot be defined.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolDefinitionError {
    /// The name is not a letter followed by letters, digits, `-` and `_`, or it is reserved by the language, such as `call`.
    Name(String),
    /// The signature is invalid. The error contains the position and a hint, in several lines.
    Signature {
        /// The name of the tool.
        tool: String,
        /// The rendered error.
        why: String,
    },
    /// Two tools have the same name. Hyphens and underscores count as equal.
    Twice(String),
}

impl fmt::Display for ToolDefinitionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ToolDefinitionError::Name(name) if RESERVED_NAMES.contains(&name.as_str()) => {
                write!(f, "a tool cannot be named {name:?}: tool/{name} is a function of the language")
            }
            ToolDefinitionError::Name(name) => {
                write!(f, "a tool cannot be named {name:?}: use a letter, then letters, digits, '-' and '_'")
            }
            ToolDefinitionError::Signature { tool, why } => write!(f, "the signature of the tool {tool:?}: {why}"),
            ToolDefinitionError::Twice(name) => {
                write!(f, "there are two tools named {name:?}; hyphens and underscores are the same")
            }
        }
    }
}

impl std::error::Error for ToolDefinitionError {}

/// Why a call of a tool failed. The program and its author see the message. Any error converts to it with `?`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolFailure(pub(super) String);

impl ToolFailure {
    /// Creates a failure with this message.
    pub fn new(message: impl Into<String>) -> Self {
        ToolFailure(message.into())
    }
}

// `ToolFailure` does not implement `Error`, since this conversion would then conflict with the reflexive one.
impl<E: std::error::Error> From<E> for ToolFailure {
    fn from(error: E) -> Self {
        ToolFailure(error.to_string())
    }
}

/// The arguments of a call. All keys are strings with underscores, at any depth.
#[derive(Debug, Clone)]
pub struct Args {
    pub(super) value: Value,
    pub(super) bounds: Bounds,
}

impl Args {
    /// Returns all arguments as a map.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Returns an argument, if it was given.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.value.get(name)
    }

    /// Returns an argument that is a string.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    /// Returns an argument that is a 64-bit integer.
    pub fn int(&self, name: &str) -> Option<i64> {
        self.get(name)?.as_int()
    }

    /// Deserializes the arguments from their JSON form. Keywords become strings, instants ISO 8601 text.
    ///
    /// # Errors
    ///
    /// Returns [`ToolFailure`] if an argument has no JSON form, the JSON text is too long or does not fit into the memory of
    /// the program, the program ends meanwhile, or `T` does not accept the arguments.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, ToolFailure> {
        let failure = |why| match why {
            Unsendable::TooLarge => ToolFailure::new(format!("the arguments are longer than {MAX_BYTES} bytes as JSON")),
            Unsendable::Invalid(why) => ToolFailure::new(why),
            Unsendable::Fault(fault) => ToolFailure::new(fault.message),
        };
        let bytes = arguments::measure(&self.value, MAX_BYTES, &self.bounds).map_err(failure)?;
        let _reservation = self.bounds.reserve(bytes).map_err(|fault| ToolFailure::new(fault.message))?;
        let mut text = String::with_capacity(bytes);
        arguments::encode(&mut text, &self.value, bytes, &self.bounds).map_err(failure)?;
        serde_json::from_str(&text).map_err(|why| ToolFailure::new(format!("unusable arguments: {why}")))
    }
}
