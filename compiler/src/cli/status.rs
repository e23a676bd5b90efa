//! Exit codes and failures of a run.

use std::fmt;
use std::process::ExitCode;

/// The exit codes of `ptc-compile`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// The run succeeded, perhaps with warnings.
    Clean,
    /// The input has faults.
    Findings,
    /// `ptc-compile` could not do its work.
    Failed,
    /// The signal of this number ended the run. The exit code is that of shells, 128 and the number.
    Ended(u8),
}

impl Status {
    /// Returns the status of a run that stopped because of its findings.
    pub(crate) fn at_least_findings(self) -> Self {
        if self == Status::Clean { Status::Findings } else { self }
    }

    /// Returns the status of a run that a signal ends. `signal` is one of those of `ShutdownSignals`.
    pub(crate) fn ended_by(signal: &str) -> Self {
        Status::Ended(match signal {
            "SIGHUP" => 1,
            "SIGQUIT" => 3,
            "SIGTERM" => 15,
            _ => 2,
        })
    }

    /// Ends the process.
    pub(crate) fn exit(self) -> ! {
        std::process::exit(i32::from(self.code()))
    }

    fn code(self) -> u8 {
        match self {
            Status::Clean => 0,
            Status::Findings => 1,
            Status::Failed => 2,
            Status::Ended(signal) => 128 + signal,
        }
    }
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> ExitCode {
        ExitCode::from(status.code())
    }
}

/// Why `ptc-compile` could not do its work, in one or two sentences, with a hint.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    hint: Option<String>,
}

impl Failure {
    /// Makes a failure with a sentence as its message.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Failure { message: message.into(), hint: None }
    }

    /// Adds advice on how to fix the failure.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Returns the message and the advice.
    pub(crate) fn into_parts(self) -> (String, Option<String>) {
        (self.message, self.hint)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, "\nhelp: {hint}")?;
        }
        Ok(())
    }
}
