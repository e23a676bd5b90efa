//! An operation of a document, before it is decided whether it is included.

use std::borrow::Cow;
use std::ops::Range;

use crate::tree::Node;

/// Methods that cannot be included. The answer to a `TRACE` is the whole request with its credentials, and `CONNECT` opens a
/// tunnel.
const REFUSED: [&str; 2] = ["TRACE", "CONNECT"];

/// An operation of the document with any method.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate<'a> {
    /// The method as it is sent. Methods are case-sensitive.
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) id: Option<&'a str>,
    pub(super) item: &'a Node,
    pub(super) operation: &'a Node,
    /// Byte range where the operation starts: its id, or its method.
    pub(super) place: &'a Range<u32>,
}

impl<'a> Candidate<'a> {
    /// Whether the method can never be included.
    pub(super) fn is_refused(&self) -> bool {
        REFUSED.iter().any(|method| self.method.eq_ignore_ascii_case(method))
    }

    /// Returns the name for messages: the id, or else method and path.
    pub(super) fn name(&self) -> Cow<'a, str> {
        self.id.map_or_else(|| self.location().into(), Cow::Borrowed)
    }

    /// Returns the method and the path.
    pub(super) fn location(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// Iterates over the tags in order.
    pub(super) fn tags(&self) -> impl Iterator<Item = &'a str> {
        self.operation.get("tags").and_then(Node::elements).unwrap_or_default().iter().filter_map(Node::as_str)
    }
}
