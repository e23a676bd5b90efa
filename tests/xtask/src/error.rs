//! Errors of tasks: sentences that say what failed.

use std::fmt;
use std::path::Path;

/// The reason why a task failed, as a sentence.
#[derive(Debug)]
pub(crate) struct Error(String);

impl Error {
    pub(crate) fn new(message: impl Into<String>) -> Error {
        Error(message.into())
    }

    /// Returns a function that adds what was done with a file.
    pub(crate) fn at<E: fmt::Display>(what: &str, path: &Path) -> impl FnOnce(E) -> Error {
        move |error| Error(format!("cannot {what} `{}`: {error}", path.display()))
    }

    /// Returns a function that adds which package could not be written.
    pub(crate) fn writing<E: fmt::Display>(package: &str) -> impl FnOnce(E) -> Error {
        move |error| Error(format!("cannot write the package {package}: {error}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
