//! The errors of programs: why a program did not return a value.

use ptc_text::truncate_utf8;
use std::fmt;
use std::sync::Arc;

use crate::Value;

/// Maximum bytes of a message or hint. Values that they quote are previews. Texts of others, such as upstreams, are truncated
/// here.
pub(crate) const MAX_MESSAGE_LEN: usize = 4096;

/// Truncates a message or hint to [`MAX_MESSAGE_LEN`] bytes.
pub(crate) fn truncated(mut text: String) -> String {
    if text.len() > MAX_MESSAGE_LEN {
        text.truncate(truncate_utf8(&text, MAX_MESSAGE_LEN).0.len());
        text.push('…');
    }
    text
}

/// A range of the source text, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset past the last byte.
    pub end: u32,
}

impl Span {
    /// Makes a range of bytes.
    pub const fn new(start: u32, end: u32) -> Self {
        Span { start, end }
    }

    /// Returns the range from the start of `self` to the end of `other`.
    #[must_use]
    pub const fn to(self, other: Span) -> Self {
        Span { start: self.start, end: other.end }
    }

    /// Whether `other` is within this range.
    #[must_use]
    pub const fn contains(self, other: Span) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// A human-readable position in the text. Lines and columns are counted from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

impl Position {
    /// Computes the position of byte `offset` of `source`. An offset past the end counts as the end.
    pub fn at_offset(source: &str, offset: u32) -> Self {
        let before = truncate_utf8(source, offset as usize).0;
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before.bytes().filter(|&b| b == b'\n').count() + 1;
        let column = before.get(line_start..).map_or(0, |text| text.chars().count()) + 1;
        Position { line: line as u32, column: column as u32 }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Why a program did not return a value: the cause, the position, and a hint.
#[derive(Debug, Clone)]
pub struct Error {
    /// The kind, from a closed list.
    pub kind: ErrorKind,
    /// What was expected and what was found. The position is not part of it.
    pub message: String,
    /// How to fix the program, if known.
    pub hint: Option<String>,
    /// The form that caused the error.
    pub span: Option<Span>,
    /// The position of the start of `span`.
    pub position: Option<Position>,
    /// The value of `(fail v)`.
    pub value: Option<Value>,
    /// The calls that led to the error.
    pub trace: Box<Trace>,
}

/// The stack trace of an error.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// The text that the error's span refers to, if that is not the current program but an earlier one whose function it called.
    pub earlier: Option<Arc<str>>,
    /// The active functions, innermost first, each with its call site.
    pub calls: Vec<Call>,
    /// Number of active functions beyond those in `calls`.
    pub omitted: u32,
}

/// A call that was active when an error was raised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The function's name, if it has one.
    pub name: Option<String>,
    /// The position of the call.
    pub position: Option<Position>,
    /// Whether that position refers to an earlier program instead of the current one.
    pub earlier: bool,
}

impl Error {
    /// Makes an error at `span` of `source`.
    pub fn at(kind: ErrorKind, message: impl Into<String>, source: &str, span: Span) -> Self {
        let position = Some(Position::at_offset(source, span.start));
        let hint = kind.advice().map(str::to_owned);
        Error { kind, message: truncated(message.into()), hint, span: Some(span), position, value: None, trace: Box::default() }
    }

    /// Adds a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(truncated(hint.into()));
        self
    }

    /// Renders message, position, the source line with a caret under the form, the calls that led there and the hint. `source` is
    /// the program that was compiled or run.
    pub fn render(&self, source: &str) -> String {
        use fmt::Write as _;
        const EARLIER: &str = " of an earlier program";
        let earlier = |is: bool| if is { EARLIER } else { "" };
        let source = self.trace.earlier.as_deref().unwrap_or(source);
        let mut out = format!("{}: {}", self.kind, self.message);
        if let (Some(span), Some(position)) = (self.span, self.position) {
            let of = earlier(self.trace.earlier.is_some());
            let _ = write!(out, "\n at line {}, column {}{of}", position.line, position.column);
            let line = source.lines().nth(position.line as usize - 1).unwrap_or("");
            let (shown, caret_at) = window(line, position.column as usize - 1);
            let marked = source.get(span.start as usize..span.end as usize).unwrap_or("");
            let width = marked.lines().next().unwrap_or("").chars().count().max(1);
            let width = width.min(shown.chars().count().saturating_sub(caret_at).max(1));
            let number = position.line.to_string();
            let _ = write!(out, "\n {number} | {shown}");
            let _ = write!(out, "\n {} | {}{}", " ".repeat(number.len()), " ".repeat(caret_at), "^".repeat(width));
        }
        for call in &self.trace.calls {
            let _ = write!(out, "\n in {}", call.name.as_deref().unwrap_or("fn"));
            if let Some(position) = call.position {
                let of = earlier(call.earlier);
                let _ = write!(out, ", called at line {}, column {}{of}", position.line, position.column);
            }
        }
        if self.trace.omitted > 0 {
            let _ = write!(out, "\n in {} more calls", self.trace.omitted);
        }
        if let Some(hint) = &self.hint {
            let _ = write!(out, "\nhint: {hint}");
        }
        out
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some(at) => write!(f, "{} at {at}: {}", self.kind, self.message),
            None => write!(f, "{}: {}", self.kind, self.message),
        }
    }
}

impl std::error::Error for Error {}

/// Returns at most 160 characters of `line` around column `at`, and the column within them.
fn window(line: &str, at: usize) -> (String, usize) {
    const WIDTH: usize = 160;
    let clean = |c: char| if c == '\t' || c.is_control() { ' ' } else { c };
    let length = line.chars().count();
    if length <= WIDTH {
        return (line.chars().map(clean).collect(), at);
    }
    let from = at.saturating_sub(WIDTH / 2).min(length - WIDTH);
    (line.chars().skip(from).take(WIDTH).map(clean).collect(), at - from)
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),* $(,)?) => {
        /// The closed list of error kinds.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorKind { $($(#[$doc])* $variant),* }

        impl ErrorKind {
            /// Every kind.
            pub const ALL: &'static [ErrorKind] = &[$(ErrorKind::$variant),*];

            /// The kind's documented name.
            pub fn name(self) -> &'static str {
                match self { $(ErrorKind::$variant => $name),* }
            }
        }
    };
}

kinds! {
    /// The text is not valid PTC-Lisp.
    ParseError = "parse_error",
    /// A special form is misused.
    InvalidForm = "invalid_form",
    /// A special form has the wrong number of parts.
    InvalidArity = "invalid_arity",
    /// `%` outside `#()`, or a placeholder out of range.
    InvalidPlaceholder = "invalid_placeholder",
    /// A pattern that is not supported.
    UnsupportedPattern = "unsupported_pattern",
    /// A method of Java that is not supported.
    UnsupportedMethod = "unsupported_method",
    /// An argument of the wrong type.
    TypeError = "type_error",
    /// An arithmetic error, such as division by zero.
    ArithmeticError = "arithmetic_error",
    /// A function called with the wrong number of arguments.
    ArityError = "arity_error",
    /// A name without a binding.
    UnboundVar = "unbound_var",
    /// A value in call position that is not a function.
    NotCallable = "not_callable",
    /// A value that does not match a destructuring pattern.
    DestructureError = "destructure_error",
    /// An upstream, tool or namespace that does not exist.
    UnknownTool = "unknown_tool",
    /// A call that the host rejects.
    ToolError = "tool_error",
    /// A call that the host's policy does not permit.
    Forbidden = "forbidden",
    /// Any other fault at run time.
    RuntimeError = "runtime_error",
    /// The limit of loop iterations or steps was exceeded.
    LoopLimitExceeded = "loop_limit_exceeded",
    /// The limit of nested calls was exceeded.
    DepthExceeded = "depth_exceeded",
    /// No permit was available for a parallel worker.
    ParallelCapacityExceeded = "parallel_capacity_exceeded",
    /// The deadline passed.
    Timeout = "timeout",
    /// The memory limit was exceeded.
    MemoryExceeded = "memory_exceeded",
    /// Another thread stopped the run.
    Cancelled = "cancelled",
    /// The program called `(fail v)`.
    Failed = "fail",
    /// A bug of the interpreter.
    InternalError = "internal_error",
}

impl ErrorKind {
    /// The general advice for faults of this kind, used without a more specific hint. `None` if only the program's author can
    /// decide.
    pub(crate) fn advice(self) -> Option<&'static str> {
        Some(match self {
            ErrorKind::ParseError => "write values as in [1 \"text\" :key {:a 1}] and calls as in (f x y)",
            ErrorKind::InvalidForm | ErrorKind::InvalidArity | ErrorKind::UnsupportedPattern => {
                "(doc name) shows how a form is written"
            }
            ErrorKind::InvalidPlaceholder => "name the parameters instead: (fn [x y] …)",
            ErrorKind::UnsupportedMethod => "use a function of clojure.string, or look for one with (apropos \"word\")",
            ErrorKind::TypeError => "look at what the arguments hold with println; (doc f) says what f takes",
            ErrorKind::ArithmeticError => "test the divisor first, as in (if (zero? d) 0 (/ n d))",
            ErrorKind::ArityError => "(doc f) shows the arguments of f",
            ErrorKind::UnboundVar => "bind it with def or let first; (apropos \"word\") finds what there is",
            ErrorKind::NotCallable => "the first thing in (…) must be a function; data is written [1 2]",
            ErrorKind::DestructureError => "look at the value with println, and take apart what it is",
            ErrorKind::UnknownTool => "(tool/servers) lists the upstreams, (dir \"name\") the tools of one",
            ErrorKind::ToolError => "(doc \"upstream/tool\") shows how a tool is called",
            ErrorKind::Forbidden => "(tool/servers) lists what this caller may use",
            ErrorKind::LoopLimitExceeded => "check that every turn comes closer to the end",
            ErrorKind::DepthExceeded => "use loop and recur, or reduce, instead of calling deeper and deeper",
            ErrorKind::ParallelCapacityExceeded => "use map, or fewer items at a time",
            ErrorKind::Timeout => "do less: filter early, ask tools for less, make calls of tools at the same time with pmap",
            ErrorKind::MemoryExceeded => "filter or aggregate earlier, so that less is held at once",
            ErrorKind::RuntimeError => "look at the values with println before this form",
            ErrorKind::Cancelled | ErrorKind::Failed | ErrorKind::InternalError => return None,
        })
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
