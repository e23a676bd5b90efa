//! Resolves the references of a document.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;

use super::faults::Faults;
use super::files::Files;
use super::location::percent_decoded;
use crate::diag::{Code, Diagnostic};
use crate::source::{FileId, Span};
use crate::tree::{Node, Tree};

/// Maximum length of a chain of `$ref`s.
const MAX_HOPS: usize = 32;

/// Cache of resolved `$ref`s, by the file and the text. Resolving one again takes time proportional to the number of components.
pub(super) type Followed<'a> = RefCell<HashMap<(usize, &'a str), &'a Node>>;

/// Resolves the `$ref`s of one document.
#[derive(Debug, Clone, Copy)]
pub(super) struct References<'a> {
    /// The first file, to which the places of all nodes refer until [`Files::translate`] is called.
    pub(super) file: FileId,
    pub(super) root: &'a Node,
    files: &'a Files,
    followed: &'a Followed<'a>,
}

/// A member of `content`: a media type with its schema and examples, or a `$ref` to these, as OpenAPI 3.2 permits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Content<'a> {
    pub(super) media_type: &'a str,
    pub(super) value: &'a Node,
}

/// Returns the media types under `content` of a node. Each may be a `$ref`; one that is not used need not be valid.
pub(super) fn contents(node: &Node) -> Vec<Content<'_>> {
    let members = node.get("content").map(Node::members).unwrap_or_default();
    members.iter().map(|member| Content { media_type: &member.key, value: &member.value }).collect()
}

impl<'a> References<'a> {
    /// Creates a resolver for a document with the root `root` and the first file `file`.
    pub(super) fn new(file: FileId, root: &'a Node, files: &'a Files, followed: &'a Followed<'a>) -> Self {
        References { file, root, files, followed }
    }

    /// Returns a media type without a `$ref`, or adds a fault.
    pub(super) fn resolve_content(&self, content: Content<'a>, faults: &mut Faults) -> Option<Content<'a>> {
        Some(Content { value: faults.keep(self.resolve(content.value))?, ..content })
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
        self.follow(reference.as_str().unwrap_or_default(), &reference.range)
    }

    /// Returns the node to which a URI at a position points.
    pub(super) fn follow(&self, text: &'a str, range: &Range<u32>) -> Result<&'a Node, Diagnostic> {
        let place = || Span { file: self.file, range: range.clone() };
        let from = self.files.index_of(range.start);
        if let Some(known) = self.followed.borrow().get(&(from, text)) {
            return Ok(*known);
        }
        let fault = |message: String| Diagnostic::new(Code::BadReference, message).at(place(), "");
        let (document, pointer) = text.split_once('#').unwrap_or((text, ""));
        let target = self.files.follow(from, document).map_err(|fault| match fault.primary {
            None => fault.at(place(), ""),
            Some(_) => fault.also(place(), "refers to it"),
        })?;
        if !pointer.is_empty() && !pointer.starts_with('/') {
            return Err(fault(format!("`{text}` is not a JSON pointer")).hint("pointers look like `#/components/schemas/Pet`"));
        }
        let mut at = self.files.root(target).unwrap_or(self.root);
        for segment in pointer.split('/').skip(1) {
            let name = unescape(segment);
            let next = match &at.value {
                Tree::Array(items) => name.parse::<usize>().ok().and_then(|index| items.get(index)),
                _ => at.get(&name),
            };
            at = next.ok_or_else(|| fault(format!("`{text}` leads nowhere: there is no `{name}`")))?;
        }
        self.followed.borrow_mut().insert((from, text), at);
        Ok(at)
    }
}

/// Unescapes a segment of a JSON Pointer: percent-encoding first, then `~1` and `~0`.
pub(super) fn unescape(segment: &str) -> String {
    percent_decoded(segment).replace("~1", "/").replace("~0", "~")
}
