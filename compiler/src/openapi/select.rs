//! Selects the operations of a document that a config includes.
//!
//! An entry of `include_operations` or `exclude_operations` is an `operationId`, a method and a path (`GET /path`), or a pattern.
//! In all of them, `*` matches any characters. `tag:NAME` matches the operations with a tag, and a path alone matches its `GET`
//! operation. A pattern matches only operations that read. Other operations need `allow_writes` and their exact name. An id that
//! no operation has is compared with the names under which programs call the operations.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use ptc_catalog::matches_wildcard;

use super::candidate::Candidate;
use super::reference::References;
use super::{effect, operation};
use crate::config::model::{OpenApi, Override, Spanned};
use crate::config::operation_selector::{Selector, names_operation};
use crate::diag::{Code, Diagnostic, Diagnostics, Severity, Subject, quoted, suggest};
use crate::source::Span;
use crate::tree::{Node, Tree};

/// The keys of a path item that are methods, with these methods. Further methods are under `additionalOperations`.
const METHODS: [(&str, &str); 9] = [
    ("get", "GET"),
    ("put", "PUT"),
    ("post", "POST"),
    ("delete", "DELETE"),
    ("options", "OPTIONS"),
    ("head", "HEAD"),
    ("patch", "PATCH"),
    ("trace", "TRACE"),
    ("query", "QUERY"),
];

/// A path whose operations cannot be read.
#[derive(Debug)]
pub(super) struct UnreadablePath<'a> {
    pub(super) path: &'a str,
    /// Byte range of the path.
    pub(super) place: &'a Range<u32>,
    /// The reason: a `$ref` that cannot be resolved, or a path item that is not an object.
    pub(super) fault: Diagnostic,
}

impl UnreadablePath<'_> {
    /// Returns a warning, since included operations may be on this path.
    fn left_out(&self) -> Diagnostic {
        let fault = &self.fault;
        let message = format!("what {} offers is left out: {}", quoted(self.path), fault.message);
        Diagnostic { severity: Severity::Warning, message, ..fault.clone() }
    }
}

/// The operations and unreadable paths of a document.
#[derive(Debug, Default)]
pub(super) struct Operations<'a> {
    /// Every operation, in the document's order.
    pub(super) known: Vec<Candidate<'a>>,
    /// Every path that cannot be read, in the document's order.
    pub(super) unread: Vec<UnreadablePath<'a>>,
}

/// Reads all paths of a document.
pub(super) fn operations(references: References<'_>) -> Operations<'_> {
    let mut out = Operations::default();
    for path in references.root.get("paths").map(Node::members).unwrap_or_default() {
        let unread = |fault| UnreadablePath { path: &path.key, place: &path.key_range, fault };
        let item = match references.resolve(&path.value) {
            Ok(item) => item,
            Err(fault) => {
                out.unread.push(unread(fault));
                continue;
            }
        };
        // An extension may have any value, and a path without a value has no operations.
        if !matches!(item.value, Tree::Object(_) | Tree::Null) && !path.key.starts_with("x-") {
            let message = format!("a path is an object of operations, found {}", item.kind());
            out.unread.push(unread(Diagnostic::new(Code::NotOpenApi, message).at(item.place(references.file), "")));
        }
        let own = item.members().iter().filter_map(|member| {
            let (_, method) = METHODS.iter().find(|(key, _)| *key == &*member.key)?;
            Some((*method, member))
        });
        let additional = item.get("additionalOperations").map(Node::members).unwrap_or_default();
        for (method, member) in own.chain(additional.iter().map(|member| (&*member.key, member))) {
            let id = member.value.get("operationId");
            out.known.push(Candidate {
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

/// An included operation with the entry that includes it.
pub(super) struct Chosen<'a, 'e> {
    pub(super) candidate: Candidate<'a>,
    pub(super) wanted: &'e Spanned<String>,
    /// Whether the entry is a pattern. Operations that cannot be tools are then skipped.
    pub(super) by_pattern: bool,
}

/// Returns the operations that an entry includes and does not exclude, each once: those listed individually first, then those of
/// patterns in the document's order. Reports entries that match no operation.
pub(super) fn included<'a, 'e>(
    references: References<'a>,
    operations: &Operations<'a>,
    entry: &'e OpenApi,
    diagnostics: &mut Diagnostics,
) -> Vec<Chosen<'a, 'e>> {
    let candidates = operations.known.as_slice();
    let mut excluded: BTreeSet<(&str, &str)> = BTreeSet::new();
    let unread = |wanted: &str| operations.unread.iter().find(|unread| Selector::parse(wanted).is_path(unread.path));
    for wanted in entry.exclude_operations.iter().filter(|wanted| unread(&wanted.value).is_none()) {
        let found = find(references, candidates, entry, wanted, Purpose::Exclude, diagnostics);
        excluded.extend(found.iter().map(|c| (c.path, c.method)));
    }
    let mut taken = BTreeSet::new();
    // Entries that may match operations of an unreadable path.
    let mut sought = Vec::new();
    let mut out = Vec::new();
    let (patterns, single): (Vec<_>, Vec<_>) =
        entry.include_operations.iter().partition(|wanted| Selector::parse(&wanted.value).is_pattern());
    for (by_pattern, wanted) in single.into_iter().map(|w| (false, w)).chain(patterns.into_iter().map(|w| (true, w))) {
        if let Some(unread) = unread(&wanted.value) {
            let mut fault = unread.fault.clone().also(wanted.place.clone(), "included here");
            fault.message = format!("{}: {}", quoted(&wanted.value), fault.message);
            fault.subject.operation = Some(wanted.value.clone());
            diagnostics.push(fault);
            continue;
        }
        let found = find(references, candidates, entry, wanted, Purpose::Include, diagnostics);
        if by_pattern || found.is_empty() {
            sought.push(Selector::parse(&wanted.value));
        }
        if by_pattern && !found.is_empty() && found.iter().all(|c| excluded.contains(&(c.path, c.method))) {
            diagnostics.push(all_excluded(entry, &found, wanted));
        }
        for candidate in found {
            let key = (candidate.path, candidate.method);
            if excluded.contains(&key) {
                if !by_pattern {
                    diagnostics.push(also_excluded(entry, &candidate, wanted));
                }
            } else if taken.insert(key) {
                out.push(Chosen { candidate, wanted, by_pattern });
            }
        }
    }
    let is_excluded = |path: &str| entry.exclude_operations.iter().any(|e| Selector::parse(&e.value).may_fit(path, false));
    for unread in &operations.unread {
        if sought.iter().any(|wanted| wanted.may_fit(unread.path, true)) && !is_excluded(unread.path) {
            diagnostics.push(unread.left_out());
        }
    }
    out
}

/// Returns a diagnostic about the operation that an entry names.
fn named(code: Code, message: String, operation: &str) -> Diagnostic {
    Diagnostic::new(code, message).about(Subject::default().operation(operation))
}

fn also_excluded(entry: &OpenApi, candidate: &Candidate<'_>, wanted: &Spanned<String>) -> Diagnostic {
    let message = format!("the operation `{}` is both included and excluded", wanted.value);
    let diagnostic = named(Code::IncludedAndExcluded, message, &wanted.value).at(wanted.place.clone(), "included here");
    let excluding = entry.exclude_operations.iter().find(|e| selects(Selector::parse(&e.value), candidate));
    match excluding {
        Some(excluding) => diagnostic.also(excluding.place.clone(), "excluded here"),
        None => diagnostic,
    }
    .hint("remove one of the two")
}

fn all_excluded(entry: &OpenApi, found: &[Candidate<'_>], wanted: &Spanned<String>) -> Diagnostic {
    let message = format!("every operation that `{}` fits is excluded", wanted.value);
    let diagnostic = Diagnostic::new(Code::EmptyPattern, message).at(wanted.place.clone(), "includes nothing");
    let excluding = entry.exclude_operations.iter().find(|e| found.iter().any(|c| selects(Selector::parse(&e.value), c)));
    match excluding {
        Some(excluding) => diagnostic.also(excluding.place.clone(), "excluded here"),
        None => diagnostic,
    }
}

/// Whether a selector matches an operation.
fn selects(selector: Selector<'_>, candidate: &Candidate<'_>) -> bool {
    match selector {
        // The pattern `*` matches an operation without an id, too.
        Selector::Id(pattern) => matches_wildcard(pattern, candidate.id.unwrap_or("")),
        Selector::Path(method, pattern) => {
            candidate.method.eq_ignore_ascii_case(method)
                && (pattern == candidate.path || matches_wildcard(pattern, candidate.path))
        }
        Selector::Tag(pattern) => candidate.tags().any(|tag| matches_wildcard(pattern, tag)),
    }
}

/// Which key of the config has an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Include,
    /// Every operation can be excluded, also one that cannot be included.
    Exclude,
}

/// Returns the operations that an entry names, and reports faults of the entry.
fn find<'a>(
    references: References<'a>,
    candidates: &[Candidate<'a>],
    entry: &OpenApi,
    wanted: &Spanned<String>,
    purpose: Purpose,
    diagnostics: &mut Diagnostics,
) -> Vec<Candidate<'a>> {
    let place = |range: &Range<u32>| Span { file: references.file, range: range.clone() };
    let meant = Selector::parse(&wanted.value);
    let mut matches: Vec<Candidate<'a>> = candidates.iter().filter(|c| selects(meant, c)).copied().collect();
    if let (true, Selector::Id(name)) = (matches.is_empty() && !meant.is_pattern(), meant) {
        let is_exposed = |c: &&Candidate<'a>| {
            let exposed = operation::exposed_name(references, c, override_of(entry, c, name));
            exposed.is_ok_and(|exposed| exposed == name)
        };
        matches.extend(candidates.iter().filter(is_exposed));
    }
    let is_usable = |c: &Candidate<'a>| match purpose {
        Purpose::Include => !c.is_refused() && (is_read(c, entry, &wanted.value) || entry.allow_writes && !meant.is_pattern()),
        Purpose::Exclude => true,
    };
    let readable: Vec<Candidate<'a>> = matches.iter().copied().filter(is_usable).collect();
    if meant.is_pattern() {
        if readable.is_empty() {
            diagnostics.push(matches_nothing(candidates, entry, wanted, meant, !matches.is_empty()));
        }
        return readable;
    }
    match (readable.as_slice(), matches.as_slice()) {
        ([first, second, ..], _) => {
            let hint = format!("name one by its path: `{}` or `{}`", first.location(), second.location());
            let message = format!("the document gives the id `{}` to more than one operation", wanted.value);
            diagnostics.push(
                named(Code::AmbiguousOperation, message, &wanted.value)
                    .at(wanted.place.clone(), "")
                    .also(place(first.place), "the first")
                    .also(place(second.place), "the second")
                    .hint(hint),
            );
            return Vec::new();
        }
        ([], [other, ..]) => {
            let method = other.method;
            let refused = |why: String| {
                let message = format!("`{}` is a {method} operation{why}", wanted.value);
                let diagnostic = named(Code::WriteNotAllowed, message, &wanted.value);
                diagnostic.at(wanted.place.clone(), "").also(place(other.place), "the operation")
            };
            diagnostics.push(if other.is_refused() {
                refused(", which cannot be included".to_owned())
                    .hint("remove it: a TRACE is answered with the whole request, including its credentials, and a CONNECT opens a tunnel")
            } else {
                refused(", and the entry does not allow writes".to_owned()).hint(
                    "`\"allow_writes\": true` allows it; if the operation only reads, set `\"read_only\": true` in its override",
                )
            });
        }
        ([], []) => diagnostics.push(unknown(candidates, entry, wanted, meant)),
        ([_], _) => {}
    }
    readable
}

fn matches_nothing(
    candidates: &[Candidate<'_>],
    entry: &OpenApi,
    wanted: &Spanned<String>,
    meant: Selector<'_>,
    others: bool,
) -> Diagnostic {
    let is_read = |c: &&Candidate<'_>| is_read(c, entry, &wanted.value);
    let message = format!("`{}` fits no operation that only reads", wanted.value);
    let diagnostic = Diagnostic::new(Code::EmptyPattern, message).at(wanted.place.clone(), "");
    if others {
        return diagnostic.hint("it fits operations that write: name each of them, and set `\"allow_writes\": true`");
    }
    if !candidates.iter().any(|c| is_read(&c)) {
        return diagnostic.hint("the document has no operation that only reads");
    }
    let hint = match meant {
        Selector::Tag(tag) => {
            let tags: BTreeSet<&str> = candidates.iter().filter(is_read).flat_map(Candidate::tags).collect();
            suggest::hint(tag, "tag", tags.iter().copied())
        }
        Selector::Id(_) | Selector::Path(..) => None,
    };
    diagnostic.hint(hint.unwrap_or_else(|| list_hint(entry)))
}

fn unknown(candidates: &[Candidate<'_>], entry: &OpenApi, wanted: &Spanned<String>, meant: Selector<'_>) -> Diagnostic {
    let message = format!("the document has no operation `{}`", wanted.value);
    let mut diagnostic = named(Code::UnknownOperation, message, &wanted.value).at(wanted.place.clone(), "");
    let by_path = matches!(meant, Selector::Path(..));
    let names: Vec<Cow<'_, str>> = candidates
        .iter()
        .filter(|c| entry.allow_writes || is_read(c, entry, &wanted.value))
        .map(|c| if by_path { c.location().into() } else { c.name() })
        .collect();
    if let Some(hint) = suggest::hint(&wanted.value, "operation", names.iter().map(Cow::as_ref)) {
        diagnostic = diagnostic.hint(hint);
    } else if names.is_empty() {
        diagnostic = diagnostic.hint("the document has no operation that only reads");
    }
    diagnostic.hint(format!("{}; if the operation was removed, remove it from `include_operations`", list_hint(entry)))
}

/// Names the command that lists the operations of the entry's document.
fn list_hint(entry: &OpenApi) -> String {
    format!("`ptc-compile operations {}` lists the operations of the document", super::source(entry))
}

/// Returns the config's override of an operation: by its id, by the entry that includes it, or by its path, in this order.
pub(super) fn override_of<'c>(entry: &'c OpenApi, candidate: &Candidate<'_>, wanted: &str) -> Option<&'c Override> {
    let named = |name: &str| entry.operation_overrides.get(name);
    let by_path = || entry.operation_overrides.iter().find(|(name, _)| names_operation(name, candidate.method, candidate.path));
    candidate.id.and_then(named).or_else(|| named(wanted)).or_else(|| Some(by_path()?.1))
}

/// Whether an operation only reads, by its override in `entry` or by its method. `wanted` is the entry that includes it.
fn is_read(candidate: &Candidate<'_>, entry: &OpenApi, wanted: &str) -> bool {
    effect::classify(candidate, override_of(entry, candidate, wanted)).is_read()
}
