//! A tool of the embedding program.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use ptc_check::OwnTool;
use ptc_lisp::Value;
use ptc_lisp::signature::{Mode, Signature};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::upstream::arguments::{self, Bounds, Unsendable};

/// Bytes of arguments as JSON, where the memory of the run is not less.
pub(super) const MAX_BYTES: usize = 256 * 1024 * 1024;

/// Names under `tool/` that the language has itself.
const TAKEN: [&str; 4] = ["all", "call", "servers", "value"];

/// A function that programs call as `(tool/NAME {…})`.
///
/// Its signature is checked on both sides. Arguments arrive with string keys, hyphens as underscores, and are coerced as
/// [`Mode::Enabled`] says; the result travels as JSON and becomes keywords and instants where the signature has them. A failure, and
/// a panic, ends the program with `tool_error`.
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
/// # Ok::<(), ptc_runtime::embed::BadTool>(())
/// ```
#[derive(Clone)]
pub struct Tool {
    name: String,
    description: String,
    signature: Signature,
    mode: Mode,
    pub(super) run: Run,
}

/// JSON text of the result.
pub(super) type Given = Result<Vec<u8>, ToolFailure>;

/// A call of an asynchronous tool.
type UnderWay = Pin<Box<dyn Future<Output = Given> + Send>>;

#[derive(Clone)]
pub(super) enum Run {
    /// On a thread that may block.
    Blocking(Arc<dyn Fn(Args) -> Given + Send + Sync>),
    /// As a task, which is aborted when the program stops waiting.
    Async(Arc<dyn Fn(Args) -> UnderWay + Send + Sync>),
}

impl Tool {
    /// A tool whose function may block and compute: it runs on a thread for that, so that the program's deadline holds all the same.
    pub fn new<T: Serialize>(
        name: &str,
        signature: &str,
        run: impl Fn(Args) -> Result<T, ToolFailure> + Send + Sync + 'static,
    ) -> Result<Tool, BadTool> {
        Tool::with(name, signature, Run::Blocking(Arc::new(move |args| given(&run(args)?))))
    }

    /// A tool whose function is asynchronous. Its task is aborted when the program ends before the answer.
    pub fn new_async<T: Serialize, F: Future<Output = Result<T, ToolFailure>> + Send + 'static>(
        name: &str,
        signature: &str,
        run: impl Fn(Args) -> F + Send + Sync + 'static,
    ) -> Result<Tool, BadTool> {
        let run = move |args| {
            let under_way = run(args);
            Box::pin(async move { given(&under_way.await?) }) as UnderWay
        };
        Tool::with(name, signature, Run::Async(Arc::new(run)))
    }

    fn with(name: &str, signature: &str, run: Run) -> Result<Tool, BadTool> {
        let plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
        if !plain || TAKEN.contains(&name) {
            return Err(BadTool::Name(name.to_owned()));
        }
        let signature = Signature::parse(signature)
            .map_err(|error| BadTool::Signature { tool: name.to_owned(), why: error.render(signature) })?;
        Ok(Tool { name: name.to_owned(), description: String::new(), signature, mode: Mode::default(), run })
    }

    /// The same tool with a line about what it does.
    #[must_use]
    pub fn describe(mut self, description: impl Into<String>) -> Tool {
        self.description = description.into();
        self
    }

    /// The same tool, checked more or less strictly.
    #[must_use]
    pub fn checked(mut self, mode: Mode) -> Tool {
        self.mode = mode;
        self
    }

    /// Its name, without `tool/`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it does; empty where nobody said.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// What it takes and gives.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    pub(super) fn mode(&self) -> Mode {
        self.mode
    }

    /// As the checker of programs sees it.
    pub(super) fn outline(&self) -> OwnTool<'_> {
        OwnTool { name: &self.name, signature: &self.signature, mode: self.mode }
    }
}

/// As prompts list tools: name and signature, and what it does on a line of its own.
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

fn given<T: Serialize>(value: &T) -> Given {
    serde_json::to_vec(value).map_err(|why| ToolFailure::new(format!("the result has no JSON form: {why}")))
}

/// Why a tool cannot be offered.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadTool {
    /// Not a letter and then letters, digits, `-` and `_`; or `call` or `servers`, which the language has itself.
    Name(String),
    /// The signature is none: the place and what to write, over several lines.
    Signature {
        /// The tool.
        tool: String,
        /// The rendered error.
        why: String,
    },
    /// Two tools of one name; hyphens and underscores are the same.
    Twice(String),
}

impl fmt::Display for BadTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadTool::Name(name) if TAKEN.contains(&name.as_str()) => {
                write!(f, "a tool cannot be named {name:?}: tool/{name} is a function of the language")
            }
            BadTool::Name(name) => {
                write!(f, "a tool cannot be named {name:?}: use a letter, then letters, digits, '-' and '_'")
            }
            BadTool::Signature { tool, why } => write!(f, "the signature of the tool {tool:?}: {why}"),
            BadTool::Twice(name) => write!(f, "there are two tools named {name:?}; hyphens and underscores are the same"),
        }
    }
}

impl std::error::Error for BadTool {}

/// Why a call of a tool failed: what the program, and whoever wrote it, is told. Any error turns into it with `?`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolFailure(pub(super) String);

impl ToolFailure {
    /// A failure with this message.
    pub fn new(message: impl Into<String>) -> Self {
        ToolFailure(message.into())
    }
}

// It is no error itself, or this would be two conversions of one type.
impl<E: std::error::Error> From<E> for ToolFailure {
    fn from(error: E) -> Self {
        ToolFailure(error.to_string())
    }
}

/// The arguments of a call: data under string keys, at any depth, with underscores.
#[derive(Debug, Clone)]
pub struct Args {
    pub(super) value: Value,
    pub(super) bounds: Bounds,
}

impl Args {
    /// All of them, as a map.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// One of them, if the program gave it.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.value.get(name)
    }

    /// One that is a string.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    /// One that is an integer of 64 bits.
    pub fn int(&self, name: &str) -> Option<i64> {
        self.get(name)?.as_int()
    }

    /// All of them as a type of yours, by way of JSON: keywords are strings, instants are ISO text.
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
