//! Which operations of a document a config includes.

use crate::config::model::{OpenApi, Spanned};
use crate::diag::{Code, Diagnostic, Diagnostics, suggest};
use crate::source::FileId;
use crate::tree::{Node, Place};

use super::reference::References;

/// Methods that a path item may have, as OpenAPI writes them.
const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

/// An operation of the document, whatever its method.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate<'a> {
    pub(super) method: &'static str,
    pub(super) path: &'a str,
    pub(super) id: Option<&'a str>,
    pub(super) item: &'a Node,
    pub(super) operation: &'a Node,
    /// Where the operation starts: its id, or its method.
    pub(super) place: &'a std::ops::Range<u32>,
}

/// Every operation of a document, in its order. A path item that cannot be resolved has none.
pub(super) fn candidates(references: References<'_>) -> Vec<Candidate<'_>> {
    let mut out = Vec::new();
    for path in references.root.get("paths").map(Node::members).unwrap_or_default() {
        let Ok(item) = references.resolve(&path.value) else { continue };
        for member in item.members() {
            let Some(method) = METHODS.iter().find(|m| **m == &*member.key) else { continue };
            let id = member.value.get("operationId");
            out.push(Candidate {
                method,
                path: &path.key,
                id: id.and_then(Node::as_str),
                item,
                operation: &member.value,
                place: id.map_or(&member.key_range, |id| &id.range),
            });
        }
    }
    out
}

/// The operation that an entry of `include_operations` names, by id or as `GET /path`.
pub(super) fn choose<'a>(
    file: FileId,
    candidates: &[Candidate<'a>],
    wanted: &Spanned<String>,
    diagnostics: &mut Diagnostics,
) -> Option<Candidate<'a>> {
    let place = |range: &std::ops::Range<u32>| Place { file, range: range.clone() };
    let by_path = wanted.value.split_once(char::is_whitespace).map(|(method, path)| (method, path.trim()));
    let matches: Vec<&Candidate<'a>> = match by_path.filter(|(_, path)| path.starts_with('/')) {
        Some((method, path)) => candidates.iter().filter(|c| c.path == path && c.method.eq_ignore_ascii_case(method)).collect(),
        None => candidates.iter().filter(|c| c.id == Some(wanted.value.as_str())).collect(),
    };
    let readable: Vec<&Candidate<'a>> = matches.iter().copied().filter(|c| c.method == "get").collect();
    match (readable.as_slice(), matches.as_slice()) {
        ([one], _) => Some(**one),
        ([first, second, ..], _) => {
            let hint = format!("name one by its path: `GET {}` or `GET {}`", first.path, second.path);
            let message = format!("the document gives the id `{}` to more than one operation", wanted.value);
            diagnostics.push(
                Diagnostic::new(Code::AmbiguousOperation, message)
                    .at(wanted.place.clone(), "")
                    .also(place(first.place), "the first")
                    .also(place(second.place), "the second")
                    .hint(hint),
            );
            None
        }
        ([], [other, ..]) => {
            let method = other.method.to_ascii_uppercase();
            let message = format!("`{}` is a {method} operation; only GET can be included", wanted.value);
            diagnostics.push(
                Diagnostic::new(Code::NotGet, message).at(wanted.place.clone(), "").also(place(other.place), "the operation"),
            );
            None
        }
        ([], []) => {
            diagnostics.push(unknown(candidates, wanted, by_path.is_some()));
            None
        }
    }
}

fn unknown(candidates: &[Candidate<'_>], wanted: &Spanned<String>, by_path: bool) -> Diagnostic {
    let message = format!("the document has no operation `{}`", wanted.value);
    let mut diagnostic = Diagnostic::new(Code::UnknownOperation, message).at(wanted.place.clone(), "");
    let names: Vec<String> = candidates
        .iter()
        .filter(|c| c.method == "get")
        .map(|c| match c.id {
            Some(id) if !by_path => id.to_owned(),
            _ => format!("GET {}", c.path),
        })
        .collect();
    if let Some(hint) = suggest::hint(&wanted.value, "operation", names.iter().map(String::as_str)) {
        diagnostic = diagnostic.hint(hint);
    } else if names.is_empty() {
        diagnostic = diagnostic.hint("the document has no GET operation at all");
    }
    diagnostic
}

/// What a config says of an operation: by its id, or by the words that include it.
pub(super) fn override_of<'c>(
    entry: &'c OpenApi,
    candidate: &Candidate<'_>,
    wanted: &str,
) -> Option<&'c crate::config::model::Override> {
    candidate.id.and_then(|id| entry.operation_overrides.get(id)).or_else(|| entry.operation_overrides.get(wanted))
}
