//! Conversion of names at the boundary of a tool: hyphens in programs, underscores in signatures and JSON.

use std::borrow::Cow;

use super::findings::{Step, path};
use super::{Findings, MAX_DEPTH};
use crate::Value;
use crate::value::Kind;

/// Converts a name to the form that tools receive.
pub fn underscored(name: &str) -> Cow<'_, str> {
    if name.contains('-') { Cow::Owned(name.replace('-', "_")) } else { Cow::Borrowed(name) }
}

/// Converts a name to the form that programs write. Leading underscores are kept.
///
/// ```
/// use ptc_lisp::signature::{hyphenated, underscored};
///
/// assert_eq!(hyphenated("_email_ids"), "_email-ids");
/// assert_eq!(underscored("was-improved"), "was_improved");
/// ```
pub fn hyphenated(name: &str) -> Cow<'_, str> {
    match name.strip_prefix('_') {
        _ if !name.contains('_') => Cow::Borrowed(name),
        Some(rest) => Cow::Owned(format!("_{}", rest.replace('_', "-"))),
        None => Cow::Owned(name.replace('_', "-")),
    }
}

/// Converts arguments to the form that tools receive: every key of every map is a string with underscores, and sets are lists.
///
/// # Errors
///
/// Keywords, strings, integers and booleans as keys are converted to text. Other keys, two keys with the same converted text,
/// functions, patterns, and nesting beyond [`MAX_DEPTH`] are findings.
pub fn arguments(value: &Value) -> Result<Value, Findings> {
    let mut boundary = Boundary { steps: Vec::new(), faults: Findings::default() };
    if value.depth() > MAX_DEPTH {
        boundary.fault(format!("is nested more than {MAX_DEPTH} deep, which no tool takes"));
        return Err(boundary.faults);
    }
    let passed = boundary.pass(value);
    if boundary.faults.is_empty() { Ok(passed) } else { Err(boundary.faults) }
}

struct Boundary {
    /// The path of keys and indices. They are owned, since keys may have been converted.
    steps: Vec<Owned>,
    faults: Findings,
}

enum Owned {
    Key(String),
    Index(usize),
}

impl Boundary {
    fn fault(&mut self, message: String) {
        let steps: Vec<Step<'_>> = self
            .steps
            .iter()
            .map(|step| match step {
                Owned::Key(name) => Step::Key(name),
                Owned::Index(index) => Step::Index(*index),
            })
            .collect();
        self.faults.add(path(&steps), message);
    }

    fn pass(&mut self, value: &Value) -> Value {
        match value {
            Value::Map(map) => {
                let mut entries: Vec<(Value, Value)> = Vec::with_capacity(map.len());
                for (key, part) in map {
                    let Some(name) = name(key) else {
                        self.fault(format!(
                            "{} cannot be the key of an argument: use a keyword or a string",
                            key.kind().described()
                        ));
                        continue;
                    };
                    self.steps.push(Owned::Key(name.clone()));
                    let part = self.pass(part);
                    self.steps.pop();
                    entries.push((Value::from(name), part));
                }
                let count = entries.len();
                let passed: crate::collection::Map = entries.into_iter().collect();
                if passed.len() < count {
                    self.fault("two keys are the same once hyphens are underscores and keywords are strings".to_owned());
                }
                Value::Map(passed)
            }
            Value::Vector(_) | Value::Set(_) => {
                let mut items = Vec::with_capacity(value.len().unwrap_or(0));
                for (index, item) in value.items().into_iter().flatten().enumerate() {
                    self.steps.push(Owned::Index(index));
                    items.push(self.pass(item));
                    self.steps.pop();
                }
                Value::vector(items)
            }
            other => {
                if matches!(other.kind(), Kind::Regex | Kind::InfiniteSeq | Kind::Var | Kind::Function) {
                    self.fault(format!("expected data, got {}", other.kind().described()));
                }
                other.clone()
            }
        }
    }
}

/// The text of a key with underscores. `None` for a key that cannot be converted.
fn name(key: &Value) -> Option<String> {
    match key {
        Value::Str(text) | Value::Keyword(text) | Value::Symbol(text) => Some(underscored(text.as_str()).into_owned()),
        Value::Int(i) => Some(i.to_string()),
        Value::BigInt(i) => Some(i.to_string()),
        Value::True => Some("true".to_owned()),
        Value::False => Some("false".to_owned()),
        _ => None,
    }
}
