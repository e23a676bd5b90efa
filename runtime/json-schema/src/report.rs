//! Mismatches between a value and a schema.

use std::fmt;

use ptc_lisp::{Kind, Value, json};

/// Maximum number of mismatches in a report.
const MAX_REPORTED: usize = 8;
/// Maximum bytes of a value in a message.
const MAX_SHOWN_BYTES: usize = 80;

/// A mismatch at one place of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// The path: `return.items[1].id`.
    pub path: String,
    /// The expected and the actual value.
    what: String,
    /// For alternatives: the mismatch with the alternative that matches best.
    pub(super) nearest: Option<Box<Mismatch>>,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message())
    }
}

impl Mismatch {
    /// Returns a message with the expected and the actual value.
    pub fn message(&self) -> String {
        match &self.nearest {
            Some(nearest) => format!("{}{NEAREST}{nearest}", self.what),
            None => self.what.clone(),
        }
    }

    /// Returns a message without the actual value, which may be a secret.
    pub fn without_value(&self) -> String {
        let expected = self.what.split(", got ").next().unwrap_or_default();
        match &self.nearest {
            Some(nearest) => format!("{expected}{NEAREST}{}: {}", nearest.path, nearest.without_value()),
            None => expected.to_owned(),
        }
    }
}

/// Separates the message about the alternatives from that about the nearest one.
const NEAREST: &str = "; nearest: ";

/// All mismatches of a value, in the order of the value.
#[derive(Debug, Default)]
pub struct Report {
    /// The first mismatches.
    pub mismatches: Vec<Mismatch>,
    /// The total number of mismatches.
    pub total: usize,
}

impl Report {
    /// Whether the value matches.
    pub fn is_valid(&self) -> bool {
        self.total == 0
    }

    pub(super) fn add(&mut self, path: &Path<'_>, what: impl FnOnce() -> String) {
        self.add_near(path, None, what);
    }

    /// Adds a mismatch with alternatives.
    pub(super) fn add_near(&mut self, path: &Path<'_>, nearest: Option<Box<Mismatch>>, what: impl FnOnce() -> String) {
        self.total += 1;
        if self.mismatches.len() < MAX_REPORTED {
            self.mismatches.push(Mismatch { path: path.to_string(), what: what(), nearest });
        }
    }
}

/// The path from the root of a value to the current place.
#[derive(Clone, Copy)]
pub(super) enum Path<'p> {
    Root(&'p str),
    Member(&'p Path<'p>, &'p str),
    Item(&'p Path<'p>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root(name) => f.write_str(name),
            Path::Item(up, at) => write!(f, "{up}[{at}]"),
            Path::Member(up, name) => {
                let plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '$'));
                if plain { write!(f, "{up}.{name}") } else { write!(f, "{up}[{}]", quoted(name)) }
            }
        }
    }
}

/// Formats a string as JSON.
pub(super) fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

/// Formats a list of names: `a`, `b` and `c`.
pub(super) fn listed(names: &[&str], last: &str) -> String {
    match names {
        [] => "nothing".to_owned(),
        [one] => (*one).to_owned(),
        [most @ .., end] => format!("{} {last} {end}", most.join(", ")),
    }
}

/// Describes a value by its JSON type, and a short value itself.
pub(super) fn described(value: &Value) -> String {
    let name = type_name(value);
    if value.is_nil() {
        return name.to_owned();
    }
    match json::encode(value, MAX_SHOWN_BYTES) {
        Ok(text) => format!("{name} {text}"),
        Err(_) => match value.kind() {
            Kind::String => format!("{name} of {} characters", value.as_str().unwrap_or_default().chars().count()),
            _ => format!("{name} of {} entries", value.len().unwrap_or_default()),
        },
    }
}

pub(super) fn type_name(value: &Value) -> &'static str {
    match value.kind() {
        Kind::Nil => "null",
        Kind::Bool => "boolean",
        Kind::Int | Kind::BigInt => "integer",
        Kind::Double => "number",
        Kind::Vector | Kind::Set => "array",
        Kind::Map => "object",
        _ => "string",
    }
}
