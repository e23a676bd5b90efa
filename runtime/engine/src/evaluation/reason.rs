//! The closed list of reasons of tool results.

use ptc_lisp::ErrorKind;

/// The reason of a failure, as clients see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The text is not a valid program.
    ParseError,
    /// The program failed.
    RuntimeError,
    /// The time limit was exceeded.
    Timeout,
    /// The memory limit was reached.
    MemoryLimit,
    /// The arguments of the call are invalid.
    ArgsError,
    /// The policy does not permit a call of the program.
    Forbidden,
    /// The program called `(fail v)`.
    Fail,
    /// The result does not match the schema that the call gave.
    ValidationError,
    /// A limit of the session does not permit the new state.
    SessionLimitExceeded,
    /// The session's store cannot represent a value of the new state.
    SessionNotStorable,
    /// The session's store is unavailable.
    SessionStoreUnavailable,
    /// The server has no capacity.
    Busy,
    /// The client cancelled the call.
    Cancelled,
    /// The tool does not exist.
    UnknownTool,
    /// The server is shutting down.
    ShuttingDown,
    /// The program has ended. Its answer was discarded, since its client does not read answers.
    AnswerDiscarded,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Reason; 16] = [
        Reason::ParseError,
        Reason::RuntimeError,
        Reason::Timeout,
        Reason::MemoryLimit,
        Reason::ArgsError,
        Reason::Forbidden,
        Reason::Fail,
        Reason::ValidationError,
        Reason::SessionLimitExceeded,
        Reason::SessionNotStorable,
        Reason::SessionStoreUnavailable,
        Reason::Busy,
        Reason::Cancelled,
        Reason::UnknownTool,
        Reason::ShuttingDown,
        Reason::AnswerDiscarded,
    ];

    /// Returns the documented name.
    pub fn name(self) -> &'static str {
        match self {
            Reason::ParseError => "parse_error",
            Reason::RuntimeError => "runtime_error",
            Reason::Timeout => "timeout",
            Reason::MemoryLimit => "memory_limit",
            Reason::ArgsError => "args_error",
            Reason::Forbidden => "forbidden",
            Reason::Fail => "fail",
            Reason::ValidationError => "validation_error",
            Reason::SessionLimitExceeded => "session_limit_exceeded",
            Reason::SessionNotStorable => "session_not_storable",
            Reason::SessionStoreUnavailable => "session_store_unavailable",
            Reason::Busy => "busy",
            Reason::Cancelled => "cancelled",
            Reason::UnknownTool => "unknown_tool",
            Reason::ShuttingDown => "shutting_down",
            Reason::AnswerDiscarded => "answer_discarded",
        }
    }

    /// Returns the reason for an error kind of the language.
    pub fn from_kind(kind: ErrorKind) -> Reason {
        match kind {
            ErrorKind::ParseError
            | ErrorKind::InvalidForm
            | ErrorKind::InvalidArity
            | ErrorKind::InvalidPlaceholder
            | ErrorKind::UnsupportedPattern => Reason::ParseError,
            ErrorKind::MemoryExceeded => Reason::MemoryLimit,
            ErrorKind::Timeout => Reason::Timeout,
            ErrorKind::Cancelled => Reason::Cancelled,
            ErrorKind::Forbidden => Reason::Forbidden,
            ErrorKind::Failed => Reason::Fail,
            ErrorKind::UnsupportedMethod
            | ErrorKind::TypeError
            | ErrorKind::ArithmeticError
            | ErrorKind::ArityError
            | ErrorKind::UnboundVar
            | ErrorKind::NotCallable
            | ErrorKind::DestructureError
            | ErrorKind::UnknownTool
            | ErrorKind::ToolError
            | ErrorKind::RuntimeError
            | ErrorKind::LoopLimitExceeded
            | ErrorKind::DepthExceeded
            | ErrorKind::ParallelCapacityExceeded
            | ErrorKind::InternalError => Reason::RuntimeError,
        }
    }

    /// Whether the reason's name is as specific as the kind's name, so that a message need not repeat it.
    pub fn says_kind(self, kind: ErrorKind) -> bool {
        self.name() == kind.name() || matches!(self, Reason::MemoryLimit)
    }
}
