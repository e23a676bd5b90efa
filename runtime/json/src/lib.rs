//! JSON that loses nothing: it keeps numbers as written and every field, and has a canonical text.
//!
//! - [`canonical`]: the order of keys and the form of strings in canonical text.
//! - `read`: parses a text.

pub mod canonical;
mod read;

use std::fmt::Write as _;

use ptc_catalog::Type;

pub use read::{Error, MAX_DEPTH};

/// An owned JSON value. Numbers are kept as text; members keep their original order and have unique keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Json {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// The number as written.
    Number(String),
    /// The string without escapes.
    String(String),
    /// Elements in order.
    Array(Vec<Json>),
    /// Members in order.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Parses a JSON text. Returns `None` if it is not JSON, or has a repeated key.
    pub fn parse(text: &str) -> Option<Json> {
        Json::read(text).ok()
    }

    /// Parses a JSON text.
    ///
    /// # Errors
    ///
    /// The text is not JSON, has a repeated key, or is nested more than [`MAX_DEPTH`] levels deep.
    pub fn read(text: &str) -> Result<Json, Error> {
        read::value(text)
    }

    /// Returns an object without members.
    pub fn object() -> Json {
        Json::Object(Vec::new())
    }

    /// Returns a string.
    pub fn string(text: impl Into<String>) -> Json {
        Json::String(text.into())
    }

    /// Returns the member with the key. Returns `None` if there is none, or if the value is not an object.
    pub fn get(&self, key: &str) -> Option<&Json> {
        self.members().iter().find(|(k, _)| k == key).map(|(_, v)| v)
    }

    /// Returns the member with the key, for changes.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Json> {
        match self {
            Json::Object(members) => members.iter_mut().find(|(k, _)| k == key).map(|(_, v)| v),
            _ => None,
        }
    }

    /// Sets a member of an object. Other values stay unchanged.
    pub fn set(&mut self, key: impl Into<String>, value: Json) {
        let key = key.into();
        if let Json::Object(members) = self {
            match members.iter_mut().find(|(k, _)| *k == key) {
                Some((_, slot)) => *slot = value,
                None => members.push((key, value)),
            }
        }
    }

    /// Removes and returns a member of an object.
    pub fn remove(&mut self, key: &str) -> Option<Json> {
        match self {
            Json::Object(members) => {
                let at = members.iter().position(|(k, _)| k == key)?;
                Some(members.remove(at).1)
            }
            _ => None,
        }
    }

    /// Returns the object with the member set.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, value: Json) -> Json {
        self.set(key, value);
        self
    }

    /// Returns the members of an object, and an empty slice for other values.
    pub fn members(&self) -> &[(String, Json)] {
        match self {
            Json::Object(members) => members,
            _ => &[],
        }
    }

    /// Returns the elements of an array, and an empty slice for other values.
    pub fn elements(&self) -> &[Json] {
        match self {
            Json::Array(items) => items,
            _ => &[],
        }
    }

    /// Returns the text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Json::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the value of a boolean.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Json::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns the narrowest type of the value. A number is an integer if it is written as one.
    pub fn kind(&self) -> Type {
        match self {
            Json::Null => Type::Null,
            Json::Bool(_) => Type::Boolean,
            Json::Number(text) if text.bytes().all(|b| b.is_ascii_digit() || b == b'-') => Type::Integer,
            Json::Number(_) => Type::Number,
            Json::String(_) => Type::String,
            Json::Array(_) => Type::Array,
            Json::Object(_) => Type::Object,
        }
    }

    /// Returns the value with the members of every object in canonical order.
    #[must_use]
    pub fn sorted(self) -> Json {
        match self {
            Json::Array(items) => Json::Array(items.into_iter().map(Json::sorted).collect()),
            Json::Object(members) => {
                let mut members: Vec<(String, Json)> = members.into_iter().map(|(key, value)| (key, value.sorted())).collect();
                members.sort_by(|(a, _), (b, _)| canonical::order(a, b));
                Json::Object(members)
            }
            plain => plain,
        }
    }

    /// Returns the canonical text: no white space, and members sorted by UTF-16 code units as in RFC 8785. Unlike in RFC 8785,
    /// numbers stay as written, since a double would change `1.0` and big integers.
    pub fn canonical(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, None);
        out
    }

    /// Returns the text in canonical order, indented by two spaces, for files that people review.
    pub fn pretty(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, Some(0));
        out
    }

    fn write(&self, out: &mut String, indent: Option<usize>) {
        match self {
            Json::Null => out.push_str("null"),
            Json::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Json::Number(text) => out.push_str(text),
            Json::String(text) => quote(text, out),
            Json::Array(items) => {
                // A list of scalars is easiest to read on one line.
                let flat = indent.is_none() || items.iter().all(|i| !matches!(i, Json::Array(_) | Json::Object(_)));
                sequence(
                    out,
                    ['[', ']'],
                    items.iter(),
                    if flat { None } else { indent },
                    indent.is_some(),
                    |item, out, inner| {
                        item.write(out, inner);
                    },
                );
            }
            Json::Object(members) => {
                let mut sorted: Vec<&(String, Json)> = members.iter().collect();
                sorted.sort_by(|(a, _), (b, _)| canonical::order(a, b));
                sequence(out, ['{', '}'], sorted.into_iter(), indent, indent.is_some(), |(key, value), out, inner| {
                    quote(key, out);
                    out.push_str(if indent.is_some() { ": " } else { ":" });
                    value.write(out, inner);
                });
            }
        }
    }
}

fn sequence<T>(
    out: &mut String,
    [open, close]: [char; 2],
    items: impl ExactSizeIterator<Item = T>,
    indent: Option<usize>,
    spaced: bool,
    mut each: impl FnMut(T, &mut String, Option<usize>),
) {
    let empty = items.len() == 0;
    out.push(open);
    for (at, item) in items.enumerate() {
        if at > 0 {
            out.push_str(if spaced && indent.is_none() { ", " } else { "," });
        }
        if let Some(level) = indent {
            let _ = write!(out, "\n{:1$}", "", (level + 1) * 2);
        }
        each(item, out, indent.map(|level| level + 1));
    }
    if let (Some(level), false) = (indent, empty) {
        let _ = write!(out, "\n{:1$}", "", level * 2);
    }
    out.push(close);
}

/// Appends a JSON string literal. As RFC 8785 requires, only those characters are escaped that must be.
pub fn quote(text: &str, out: &mut String) {
    // Writing to a string cannot fail.
    let _ = canonical::quote(text, out);
}

impl From<&serde_json::Value> for Json {
    fn from(value: &serde_json::Value) -> Json {
        match value {
            serde_json::Value::Null => Json::Null,
            serde_json::Value::Bool(value) => Json::Bool(*value),
            serde_json::Value::Number(number) => Json::Number(number.to_string()),
            serde_json::Value::String(text) => Json::String(text.clone()),
            serde_json::Value::Array(items) => Json::Array(items.iter().map(Json::from).collect()),
            serde_json::Value::Object(members) => {
                Json::Object(members.iter().map(|(key, value)| (key.clone(), Json::from(value))).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Json;

    fn number(text: &str) -> Json {
        Json::Number(text.into())
    }

    #[test]
    fn canonical_text_is_sorted_by_utf16_and_preserves_numbers() {
        let value = Json::object()
            .with("\u{fb01}", number("1.0"))
            .with("\u{1f600}", number("123456789012345678901234567890"))
            .with("a", Json::Array(vec![Json::Null, Json::Bool(true), Json::string("\u{1}\n\"é")]));
        assert_eq!(
            value.canonical(),
            "{\"a\":[null,true,\"\\u0001\\n\\\"é\"],\"\u{1f600}\":123456789012345678901234567890,\"\u{fb01}\":1.0}"
        );
    }

    #[test]
    fn pretty_text_writes_plain_lists_on_one_line() {
        let value = Json::object().with("b", Json::Array(vec![number("1"), number("2")])).with("a", Json::object());
        assert_eq!(value.pretty(), "{\n  \"a\": {},\n  \"b\": [1, 2]\n}");
    }
}
