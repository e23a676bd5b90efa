//! Marks what no finding may show. A finding shows the line of its position, and a config on one line has everything there, so
//! that all values are masked except those that are known to be public.

use std::ops::Range;

use super::secrets;
use crate::diag::Diagnostics;
use crate::source::{FileId, Sources, Span};
use crate::tree::{Node, Tree};

/// Keys whose texts are shown.
const PUBLIC: &[&str] = &["command", "cmd", "type", "transport", "cwd", "name", "source", "envFile"];

/// Masks every line of a text that could not be parsed.
pub(super) fn all(sources: &Sources, file: FileId, diagnostics: &mut Diagnostics) {
    hide(sources, file, Vec::new(), diagnostics);
}

/// Masks a text except its keys, public values and punctuation.
pub(super) fn tree(sources: &Sources, file: FileId, root: &Node, diagnostics: &mut Diagnostics) {
    let mut public = Vec::new();
    collect("", root, &mut public);
    hide(sources, file, public, diagnostics);
}

/// Returns a text in which every masked part is replaced.
pub(super) fn applied(text: &str, diagnostics: &Diagnostics) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for place in diagnostics.masked() {
        let (start, end) = (place.range.start as usize, place.range.end as usize);
        out.push_str(text.get(at..start).unwrap_or_default());
        out.push_str("********");
        at = end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

fn collect(key: &str, node: &Node, public: &mut Vec<Range<u32>>) {
    for member in node.members() {
        public.push(member.key_range.clone());
        collect(&member.key, &member.value, public);
    }
    let elements = node.elements().unwrap_or(&[]);
    let before = std::iter::once("").chain(elements.iter().map(|element| element.as_str().unwrap_or("")));
    for (element, before) in elements.iter().zip(before) {
        let is_public = key == "args" && element.as_str().is_some_and(|text| secrets::in_argument(before, text).is_none());
        if is_public {
            public.push(element.range.clone());
        }
        collect("", element, public);
    }
    let is_public = match &node.value {
        Tree::Null | Tree::Bool(_) => true,
        Tree::String(text) => PUBLIC.contains(&key) && secrets::in_argument("", text).is_none(),
        _ => false,
    };
    if is_public {
        public.push(node.range.clone());
    }
}

/// Masks what is outside of the public ranges, except punctuation.
fn hide(sources: &Sources, file: FileId, mut public: Vec<Range<u32>>, diagnostics: &mut Diagnostics) {
    let text = &sources.get(file).text;
    public.sort_by_key(|range| (range.start, range.end));
    let mut at = 0;
    for range in public.into_iter().chain(std::iter::once(text.len() as u32..text.len() as u32)) {
        if range.start > at {
            hide_part(text, at..range.start, file, diagnostics);
        }
        at = at.max(range.end);
    }
}

fn hide_part(text: &str, part: Range<u32>, file: FileId, diagnostics: &mut Diagnostics) {
    let mut start = part.start;
    for line in text.get(part.start as usize..part.end as usize).unwrap_or("").split_inclusive('\n') {
        let shown = |c: char| !c.is_alphanumeric();
        let from = line.find(|c| !shown(c));
        let to = line.rfind(|c| !shown(c));
        if let (Some(from), Some(to)) = (from, to) {
            let end = to + line.get(to..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8);
            diagnostics.mask(Span { file, range: start + from as u32..start + end as u32 });
        }
        start += line.len() as u32;
    }
}
