//! What the readers of an entry share: the entry, the upstream that is being made of it, and refusals.

use std::ops::Range;

use super::Field;
use crate::json::Json;

/// An upstream that is being made.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) fields: Vec<Field>,
    pub(super) comments: Vec<String>,
}

impl Draft {
    pub(super) fn add(&mut self, key: &str, value: Json) {
        self.with(key, value, Vec::new());
    }

    pub(super) fn with(&mut self, key: &str, value: Json, comments: Vec<String>) {
        self.fields.push(Field { key: key.to_owned(), value, comments });
    }
}

/// The entry that is being read.
pub(super) struct Entry {
    /// Its name in the result.
    pub(super) name: String,
    /// The position of its name.
    pub(super) place: Range<u32>,
}

/// The transport that an entry names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Stdio,
    Http,
    Sse,
    OpenApi,
}

/// `env` and `inherit_env` of an upstream.
#[derive(Default)]
pub(super) struct Env {
    pub(super) set: Vec<(String, Json)>,
    pub(super) inherited: Vec<String>,
    pub(super) comments: Vec<String>,
}

impl Env {
    /// Sets a variable, unless it is set already.
    pub(super) fn set(&mut self, name: &str, value: String) {
        if !self.set.iter().any(|(known, _)| known == name) {
            self.set.push((name.to_owned(), Json::String(value)));
        }
    }
}

/// Why an entry cannot become an upstream.
pub(super) struct Refusal {
    pub(super) why: String,
    pub(super) hint: &'static str,
}

/// Creates a refusal.
pub(super) fn refuse<T>(why: impl Into<String>, hint: &'static str) -> Result<T, Refusal> {
    Err(Refusal { why: why.into(), hint })
}
