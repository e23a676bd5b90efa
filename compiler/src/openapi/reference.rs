//! Resolves local references of a document.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::diag::{Code, Diagnostic};
use crate::source::FileId;
use crate::tree::{Node, Tree};

/// Maximum length of a chain of `$ref`s.
const MAX_HOPS: usize = 32;

/// Cache of resolved pointers. Resolving one again takes time proportional to the number of components.
pub(super) type Followed<'a> = RefCell<HashMap<&'a str, &'a Node>>;

/// Resolves the `$ref`s of one document.
#[derive(Debug, Clone, Copy)]
pub(super) struct References<'a> {
    pub(super) file: FileId,
    pub(super) root: &'a Node,
    followed: &'a Followed<'a>,
}

impl<'a> References<'a> {
    /// Creates a resolver for the document `root`.
    pub(super) fn new(file: FileId, root: &'a Node, followed: &'a Followed<'a>) -> Self {
        References { file, root, followed }
    }

    /// Returns the node itself, or the target of its chain of `$ref`s.
    pub(super) fn resolve(&self, node: &'a Node) -> Result<&'a Node, Diagnostic> {
        let mut at = node;
        for _ in 0..MAX_HOPS {
            let Some(reference) = at.get("$ref").filter(|r| r.as_str().is_some()) else { return Ok(at) };
            at = self.target(reference)?;
        }
        let message = format!("more than {MAX_HOPS} references follow one another");
        Err(Diagnostic::new(Code::BadReference, message)
            .at(node.place(self.file), "starts here")
            .hint("a circle of `$ref`s has no value"))
    }

    /// Returns the node to which the text of a `$ref` points.
    pub(super) fn target(&self, reference: &'a Node) -> Result<&'a Node, Diagnostic> {
        let text = reference.as_str().unwrap_or_default();
        if let Some(known) = self.followed.borrow().get(text) {
            return Ok(*known);
        }
        let fault = |message: String| Diagnostic::new(Code::BadReference, message).at(reference.place(self.file), "");
        let Some(pointer) = text.strip_prefix('#') else {
            return Err(fault(format!("`{text}` points into another document"))
                .hint("bundle the document into one file first, for example with `npx @redocly/cli bundle`"));
        };
        if !pointer.is_empty() && !pointer.starts_with('/') {
            return Err(fault(format!("`{text}` is not a JSON pointer")).hint("pointers look like `#/components/schemas/Pet`"));
        }
        let mut at = self.root;
        for segment in pointer.split('/').skip(1) {
            let name = unescape(segment);
            let next = match &at.value {
                Tree::Array(items) => name.parse::<usize>().ok().and_then(|index| items.get(index)),
                _ => at.get(&name),
            };
            at = next.ok_or_else(|| fault(format!("`{text}` leads nowhere: there is no `{name}`")))?;
        }
        self.followed.borrow_mut().insert(text, at);
        Ok(at)
    }
}

/// Unescapes a segment of a JSON Pointer: percent-encoding first, then `~1` and `~0`.
pub(super) fn unescape(segment: &str) -> String {
    let decoded = if segment.contains('%') {
        let bytes = segment.as_bytes();
        let mut out = Vec::with_capacity(bytes.len());
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            let hex = segment.get(at + 1..at + 3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
            match (byte, hex) {
                (b'%', Some(value)) => {
                    out.push(value);
                    at += 3;
                }
                (byte, _) => {
                    out.push(*byte);
                    at += 1;
                }
            }
        }
        String::from_utf8(out).unwrap_or_else(|_| segment.to_owned())
    } else {
        segment.to_owned()
    };
    decoded.replace("~1", "/").replace("~0", "~")
}
