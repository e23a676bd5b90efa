//! The closed list of reasons that a tool result may give.

use ptc_lisp::ErrorKind;

/// Why a call has no value, as clients see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The text is not a program.
    ParseError,
    /// The program went wrong.
    RuntimeError,
    /// The wall clock ran out.
    Timeout,
    /// The memory limit was reached.
    MemoryLimit,
    /// The arguments of the call are wrong.
    ArgsError,
    /// The program called `(fail v)`.
    Fail,
    /// The result does not match the schema that the call gave.
    ValidationError,
    /// The session may not keep so much.
    SessionLimitExceeded,
    /// The session's store cannot hold what the program defined or gave.
    SessionNotStorable,
    /// The session's store went away.
    SessionStoreUnavailable,
    /// As many evaluations run as may.
    Busy,
    /// The client stopped the call.
    Cancelled,
    /// There is no such tool.
    UnknownTool,
    /// `shutdown` was received.
    ShuttingDown,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Reason; 14] = [
        Reason::ParseError,
        Reason::RuntimeError,
        Reason::Timeout,
        Reason::MemoryLimit,
        Reason::ArgsError,
        Reason::Fail,
        Reason::ValidationError,
        Reason::SessionLimitExceeded,
        Reason::SessionNotStorable,
        Reason::SessionStoreUnavailable,
        Reason::Busy,
        Reason::Cancelled,
        Reason::UnknownTool,
        Reason::ShuttingDown,
    ];

    /// Its documented name.
    pub fn name(self) -> &'static str {
        match self {
            Reason::ParseError => "parse_error",
            Reason::RuntimeError => "runtime_error",
            Reason::Timeout => "timeout",
            Reason::MemoryLimit => "memory_limit",
            Reason::ArgsError => "args_error",
            Reason::Fail => "fail",
            Reason::ValidationError => "validation_error",
            Reason::SessionLimitExceeded => "session_limit_exceeded",
            Reason::SessionNotStorable => "session_not_storable",
            Reason::SessionStoreUnavailable => "session_store_unavailable",
            Reason::Busy => "busy",
            Reason::Cancelled => "cancelled",
            Reason::UnknownTool => "unknown_tool",
            Reason::ShuttingDown => "shutting_down",
        }
    }

    /// The reason of an error kind of the language.
    pub fn of(kind: ErrorKind) -> Reason {
        match kind {
            ErrorKind::ParseError
            | ErrorKind::InvalidForm
            | ErrorKind::InvalidArity
            | ErrorKind::InvalidPlaceholder
            | ErrorKind::UnsupportedPattern => Reason::ParseError,
            ErrorKind::MemoryExceeded => Reason::MemoryLimit,
            ErrorKind::Timeout => Reason::Timeout,
            ErrorKind::Cancelled => Reason::Cancelled,
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

    /// Whether the reason's name tells all that the kind's name does, so that a message need not repeat it.
    pub fn says_kind(self, kind: ErrorKind) -> bool {
        self.name() == kind.name() || matches!(self, Reason::MemoryLimit)
    }
}
