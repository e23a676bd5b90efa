//! The files of a config as its callers read them: documents, stored programs and the lock file.

use std::fmt;

/// Advice about a relative path in a config that leads nowhere.
pub(crate) const RELATIVE_TO_CONFIG: &str = "the path is relative to the folder of the config";

/// The text of a file with its path or URL.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Text {
    /// The path or URL that diagnostics show.
    pub path: String,
    /// The whole text.
    pub text: String,
}

impl Text {
    /// Creates a text with the path or URL that diagnostics show.
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> Text {
        Text { path: path.into(), text: text.into() }
    }
}

/// A file to read.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Wanted<'a> {
    /// The path, relative to the folder of the config.
    pub path: &'a str,
    /// The largest size in bytes.
    pub max_bytes: u64,
    /// The folder that must contain the file after all symbolic links are resolved, relative to the folder of the config. `None`
    /// if it may be anywhere.
    pub within: Option<&'a str>,
}

impl<'a> Wanted<'a> {
    /// Wants a file that may be anywhere.
    pub fn new(path: &'a str, max_bytes: u64) -> Self {
        Wanted { path, max_bytes, within: None }
    }
}

/// Why a file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unreadable {
    /// It is larger than the given number of bytes.
    TooLarge(u64),
    /// It is not in the folder that must contain it.
    Outside,
    /// Anything else, as the end of a sentence.
    Other(String),
}

impl From<String> for Unreadable {
    fn from(reason: String) -> Self {
        Unreadable::Other(reason)
    }
}

impl From<&str> for Unreadable {
    fn from(reason: &str) -> Self {
        Unreadable::Other(reason.to_owned())
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unreadable::TooLarge(max_bytes) => write!(f, "it is larger than {max_bytes} bytes, the most that is read"),
            Unreadable::Outside => f.write_str("it is in another folder"),
            Unreadable::Other(reason) => f.write_str(reason),
        }
    }
}

/// Reads a file, or returns the reason why it cannot be read.
pub type Reader<'a> = dyn FnMut(&Wanted<'_>) -> Result<Text, Unreadable> + 'a;
