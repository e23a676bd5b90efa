//! JSON with source positions: the tree into which configs, lock files and OpenAPI documents are parsed.

mod parse;
#[cfg(feature = "cli")]
mod toml;
mod yaml;

use std::ops::Range;

use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::source::{FileId, Sources, Span};
pub use parse::{MAX_DEPTH, Syntax, parse, parse_as};
#[cfg(feature = "cli")]
pub use toml::parse_toml;
pub use yaml::parse_yaml;

/// Parses a document as JSON or YAML, chosen by the path's extension, or by the first character if the extension is neither. See
/// [`parse_as`] and [`parse_yaml`].
pub fn parse_document(sources: &Sources, file: FileId, diagnostics: &mut Diagnostics) -> Option<Node> {
    let source = sources.get(file);
    let is_yaml = match source.path.rsplit('.').next().unwrap_or("").to_ascii_lowercase().as_str() {
        "json" => false,
        "yaml" | "yml" => true,
        _ => !source.text.trim_start().starts_with(['{', '[']),
    };
    if is_yaml { parse_yaml(sources, file, diagnostics) } else { parse_as(sources, file, Syntax::DOCUMENT, diagnostics) }
}

/// The diagnostic for a file of more than [`MAX_BYTES`](crate::source::MAX_BYTES).
pub fn too_large(path: &str) -> Diagnostic {
    Diagnostic::new(Code::TooLarge, format!("`{path}` is larger than 1 GiB, the most that is read"))
}

/// A value with its position.
#[derive(Debug, Clone)]
pub struct Node {
    /// Byte range of the value in the file.
    pub range: Range<u32>,
    /// The value.
    pub value: Tree,
}

/// A JSON value. Numbers keep their text, and members keep their order.
#[derive(Debug, Clone)]
pub enum Tree {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number as written in the source.
    Number(Box<str>),
    /// A string, unescaped.
    String(Box<str>),
    /// The elements in order.
    Array(Vec<Node>),
    /// The members in order. The parser reports a repeated key; the last member with that key counts.
    Object(Vec<Member>),
}

/// A member of an object.
#[derive(Debug, Clone)]
pub struct Member {
    /// The key, unescaped.
    pub key: Box<str>,
    /// Byte range of the key in the file, including its quotes.
    pub key_range: Range<u32>,
    /// The member's value.
    pub value: Node,
}

impl Node {
    /// Returns the value of the member with that key. If the key is repeated, the last one counts.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.members().iter().rev().find(|m| &*m.key == key).map(|m| &m.value)
    }

    /// Returns the members of an object, or an empty slice for other values.
    pub fn members(&self) -> &[Member] {
        match &self.value {
            Tree::Object(members) => members,
            _ => &[],
        }
    }

    /// Returns the elements of an array.
    pub fn elements(&self) -> Option<&[Node]> {
        match &self.value {
            Tree::Array(nodes) => Some(nodes),
            _ => None,
        }
    }

    /// Returns the text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Tree::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the value of a boolean.
    pub fn as_bool(&self) -> Option<bool> {
        match self.value {
            Tree::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the kind of value for messages: `a string`, `an object`.
    pub fn kind(&self) -> &'static str {
        match self.value {
            Tree::Null => "null",
            Tree::Bool(_) => "a boolean",
            Tree::Number(_) => "a number",
            Tree::String(_) => "a string",
            Tree::Array(_) => "an array",
            Tree::Object(_) => "an object",
        }
    }

    /// Returns the position of the node in `file`.
    pub fn place(&self, file: FileId) -> Span {
        Span { file, range: self.range.clone() }
    }
}
