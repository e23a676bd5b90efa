//! JSON with places: the one tree that configs, lock files and OpenAPI documents are read into.

mod parse;
mod yaml;

use std::ops::Range;

use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::source::{FileId, Sources};
pub use parse::{MAX_DEPTH, Syntax, parse, parse_as};
pub use yaml::parse_yaml;

/// Reads a document that is JSON or YAML: by the end of its path, and where that does not tell, by its first character.
/// See [`parse_as`] and [`parse_yaml`].
pub fn parse_document(sources: &Sources, file: FileId, diagnostics: &mut Diagnostics) -> Option<Node> {
    let source = sources.get(file);
    let is_yaml = match source.path.rsplit('.').next().unwrap_or("").to_ascii_lowercase().as_str() {
        "json" => false,
        "yaml" | "yml" => true,
        _ => !source.text.trim_start().starts_with(['{', '[']),
    };
    if is_yaml { parse_yaml(sources, file, diagnostics) } else { parse_as(sources, file, Syntax::DOCUMENT, diagnostics) }
}

/// What is said of a file of more than [`MOST_BYTES`](crate::source::MOST_BYTES).
pub fn too_large(path: &str) -> Diagnostic {
    Diagnostic::new(Code::TooLarge, format!("`{path}` is larger than 1 GiB, the most that is read"))
}

/// A value and where it stands.
#[derive(Debug, Clone)]
pub struct Node {
    /// Bytes of the file that hold the value.
    pub range: Range<u32>,
    /// The value.
    pub value: Tree,
}

/// A JSON value. Numbers keep their text; members keep their order.
#[derive(Debug, Clone)]
pub enum Tree {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// As written.
    Number(Box<str>),
    /// Unescaped.
    String(Box<str>),
    /// Elements in order.
    Array(Vec<Node>),
    /// Members in order; a repeated key is a diagnostic of the parser, and the last one counts.
    Object(Vec<Member>),
}

/// A member of an object.
#[derive(Debug, Clone)]
pub struct Member {
    /// Unescaped.
    pub key: Box<str>,
    /// Bytes of the file that hold the key, quotes included.
    pub key_range: Range<u32>,
    /// Its value.
    pub value: Node,
}

/// A node's place in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: FileId,
    /// Bytes of it.
    pub range: Range<u32>,
}

impl Node {
    /// The member of that key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.members().iter().rev().find(|m| &*m.key == key).map(|m| &m.value)
    }

    /// The members of an object; empty for anything else.
    pub fn members(&self) -> &[Member] {
        match &self.value {
            Tree::Object(members) => members,
            _ => &[],
        }
    }

    /// The elements of an array.
    pub fn elements(&self) -> Option<&[Node]> {
        match &self.value {
            Tree::Array(nodes) => Some(nodes),
            _ => None,
        }
    }

    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Tree::String(text) => Some(text),
            _ => None,
        }
    }

    /// The value of a boolean.
    pub fn as_bool(&self) -> Option<bool> {
        match self.value {
            Tree::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// What kind of value it is, for messages: `a string`, `an object`.
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

    /// Its place in `file`.
    pub fn place(&self, file: FileId) -> Place {
        Place { file, range: self.range.clone() }
    }
}
