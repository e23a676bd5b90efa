//! JSON with places: the one tree that configs, lock files and OpenAPI documents are read into.

mod parse;

use std::ops::Range;

use crate::source::FileId;
pub use parse::{MAX_DEPTH, Syntax, parse, parse_as};

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
