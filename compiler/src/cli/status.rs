//! How a run ends.

use std::fmt;
use std::process::ExitCode;

/// The exit codes of `ptc-compile`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// Done; there may have been warnings.
    Clean,
    /// What was asked about has faults.
    Findings,
    /// `ptc-compile` could not do its work.
    Failed,
}

impl Status {
    /// The status of a run that stopped because of what it found.
    pub(crate) fn at_least_findings(self) -> Self {
        if self == Status::Clean { Status::Findings } else { self }
    }
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> ExitCode {
        ExitCode::from(match status {
            Status::Clean => 0,
            Status::Findings => 1,
            Status::Failed => 2,
        })
    }
}

/// Why `ptc-compile` could not do its work, in a sentence or two, and what may help.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    hint: Option<String>,
}

impl Failure {
    /// A failure told by its sentence.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Failure { message: message.into(), hint: None }
    }

    /// With what to do about it.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
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
