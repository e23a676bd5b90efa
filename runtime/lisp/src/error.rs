//! Why a program did not give a value.

use std::fmt;

/// A range of the source text, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// Past the last byte.
    pub end: u32,
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
    /// The text is not PTC-Lisp.
    ParseError = "parse_error",
    /// A special form is misused.
    InvalidForm = "invalid_form",
    /// A special form has the wrong number of parts.
    InvalidArity = "invalid_arity",
    /// `%` outside `#()`, or a placeholder out of range.
    InvalidPlaceholder = "invalid_placeholder",
    /// A pattern that is not supported.
    UnsupportedPattern = "unsupported_pattern",
    /// An argument of the wrong type.
    TypeError = "type_error",
    /// Division by zero and its like.
    ArithmeticError = "arithmetic_error",
    /// A function called with the wrong number of arguments.
    ArityError = "arity_error",
    /// A name that nothing binds.
    UnboundVar = "unbound_var",
    /// A value in call position that is not a function.
    NotCallable = "not_callable",
    /// A value that a pattern cannot take apart.
    DestructureError = "destructure_error",
    /// An upstream, tool or namespace that does not exist.
    UnknownTool = "unknown_tool",
    /// A call that the host refuses.
    ToolError = "tool_error",
    /// Any other fault while running.
    RuntimeError = "runtime_error",
    /// More loop turns, or steps, than the limit.
    LoopLimitExceeded = "loop_limit_exceeded",
    /// Calls nested deeper than the limit.
    DepthExceeded = "depth_exceeded",
    /// No place for a parallel worker.
    ParallelCapacityExceeded = "parallel_capacity_exceeded",
    /// The wall clock ran out.
    Timeout = "timeout",
    /// The memory limit was reached.
    MemoryExceeded = "memory_exceeded",
    /// Another thread stopped the run.
    Cancelled = "cancelled",
    /// The program called `(fail v)`.
    Failed = "fail",
    /// A bug of the interpreter.
    InternalError = "internal_error",
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
