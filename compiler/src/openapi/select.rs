//! Selects the operations of a document that a config includes.
//!
//! An entry of `include_operations` or `exclude_operations` is an `operationId`, a method and a path (`GET /path`), or a pattern. In all
//! of them, `*` matches any characters. `tag:NAME` matches the operations with a tag, and a path alone matches its `GET` operation. A
//! pattern matches only operations that read. Other operations need `allow_writes` and their exact name. An id that no operation
//! has is compared with the names under which programs call the operations.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use super::reference::References;
use super::{effect, name, operation};
use crate::config::model::{OpenApi, Override, Spanned};
use crate::diag::{Code, Diagnostic, Diagnostics, Severity, quoted, suggest};
use crate::source::Span;
use crate::tree::{Node, Tree};

/// Methods that a path item may have, in OpenAPI's spelling.
const METHODS: [&str; 9] = ["get", "put", "post", "delete", "options", "head", "patch", "trace", "query"];

/// An operation of the document with any method.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate<'a> {
    pub(super) method: &'static str,
    pub(super) path: &'a str,
    pub(super) id: Option<&'a str>,
    pub(super) item: &'a Node,
    pub(super) operation: &'a Node,
    /// Byte range where the operation starts: its id, or its method.
    pub(super) place: &'a Range<u32>,
}

impl<'a> Candidate<'a> {
    /// Whether the operation only reads, by its override in `entry` or by its method. `wanted` is the entry that includes it.
    fn is_read(&self, entry: &OpenApi, wanted: &str) -> bool {
        effect::of(self, override_of(entry, self, wanted)).is_read()
    }

    /// Returns the name for messages: the id, or else method and path.
    pub(super) fn name(&self) -> Cow<'a, str> {
        self.id.map_or_else(|| self.location().into(), Cow::Borrowed)
    }

    /// Returns the method and the path.
    pub(super) fn location(&self) -> String {
        format!("{} {}", self.method.to_ascii_uppercase(), self.path)
    }

    /// Iterates over the tags in order.
    pub(super) fn tags(&self) -> impl Iterator<Item = &'a str> {
        self.operation.get("tags").and_then(Node::elements).unwrap_or_default().iter().filter_map(Node::as_str)
    }
}

/// A path whose operations cannot be read.
#[derive(Debug)]
pub(super) struct Unread<'a> {
    pub(super) path: &'a str,
    /// Byte range of the path.
    pub(super) place: &'a Range<u32>,
    /// The reason: a `$ref` that cannot be resolved, or a path item that is not an object.
    pub(super) fault: Diagnostic,
}

impl Unread<'_> {
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
    pub(super) unread: Vec<Unread<'a>>,
}

/// Reads all paths of a document.
pub(super) fn operations(references: References<'_>) -> Operations<'_> {
    let mut out = Operations::default();
    for path in references.root.get("paths").map(Node::members).unwrap_or_default() {
        let unread = |fault| Unread { path: &path.key, place: &path.key_range, fault };
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
        for member in item.members() {
            let Some(method) = METHODS.iter().find(|m| **m == &*member.key) else { continue };
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
    let unread = |wanted: &str| operations.unread.iter().find(|unread| Wanted::of(wanted).is_path(unread.path));
    for wanted in entry.exclude_operations.iter().filter(|wanted| unread(&wanted.value).is_none()) {
        let found = find(references, candidates, entry, wanted, Purpose::Exclude, diagnostics);
        excluded.extend(found.iter().map(|c| (c.path, c.method)));
    }
    let mut taken = BTreeSet::new();
    // Entries that may match operations of an unreadable path.
    let mut sought = Vec::new();
    let mut out = Vec::new();
    let (patterns, single): (Vec<_>, Vec<_>) =
        entry.include_operations.iter().partition(|wanted| Wanted::of(&wanted.value).is_pattern());
    for (by_pattern, wanted) in single.into_iter().map(|w| (false, w)).chain(patterns.into_iter().map(|w| (true, w))) {
        if let Some(unread) = unread(&wanted.value) {
            diagnostics.push(unread.fault.clone().also(wanted.place.clone(), "included here"));
            continue;
        }
        let found = find(references, candidates, entry, wanted, Purpose::Include, diagnostics);
        if by_pattern || found.is_empty() {
            sought.push(Wanted::of(&wanted.value));
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
    let is_excluded = |path: &str| entry.exclude_operations.iter().any(|e| Wanted::of(&e.value).may_fit(path, false));
    for unread in &operations.unread {
        if sought.iter().any(|wanted| wanted.may_fit(unread.path, true)) && !is_excluded(unread.path) {
            diagnostics.push(unread.left_out());
        }
    }
    out
}

fn also_excluded(entry: &OpenApi, candidate: &Candidate<'_>, wanted: &Spanned<String>) -> Diagnostic {
    let message = format!("the operation `{}` is both included and excluded", wanted.value);
    let diagnostic = Diagnostic::new(Code::IncludedAndExcluded, message).at(wanted.place.clone(), "included here");
    let excluding = entry.exclude_operations.iter().find(|e| Wanted::of(&e.value).fits(candidate));
    match excluding {
        Some(excluding) => diagnostic.also(excluding.place.clone(), "excluded here"),
        None => diagnostic,
    }
    .hint("remove one of the two")
}

fn all_excluded(entry: &OpenApi, found: &[Candidate<'_>], wanted: &Spanned<String>) -> Diagnostic {
    let message = format!("every operation that `{}` fits is excluded", wanted.value);
    let diagnostic = Diagnostic::new(Code::EmptyPattern, message).at(wanted.place.clone(), "includes nothing");
    let excluding = entry.exclude_operations.iter().find(|e| found.iter().any(|c| Wanted::of(&e.value).fits(c)));
    match excluding {
        Some(excluding) => diagnostic.also(excluding.place.clone(), "excluded here"),
        None => diagnostic,
    }
}

/// Whether an entry names an operation by its path instead of its id.
pub fn is_path(entry: &str) -> bool {
    matches!(Wanted::of(entry), Wanted::Path(..))
}

/// Whether an entry is a pattern, which may match any number of operations.
pub fn is_pattern(entry: &str) -> bool {
    Wanted::of(entry).is_pattern()
}

/// Whether one of the `included` names may be that of the operation `id`: its id, or its exposed name, which is `name` if the override
/// sets one.
pub fn may_be_included<'n>(mut included: impl Iterator<Item = &'n str>, id: &str, name: Option<&str>) -> bool {
    let exposed = name::kebab(name.unwrap_or(id));
    included.any(|entry| entry == id || name::kebab(entry) == exposed)
}

/// An entry of `include_operations` or `exclude_operations`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted<'e> {
    /// An `operationId`, in which `*` matches any characters.
    Id(&'e str),
    /// A method and a path, in which `*` matches any characters.
    Path(&'e str, &'e str),
    /// A tag, in which `*` matches any characters.
    Tag(&'e str),
}

impl<'e> Wanted<'e> {
    fn of(text: &'e str) -> Self {
        if let Some(tag) = text.strip_prefix("tag:") {
            return Wanted::Tag(tag.trim());
        }
        if text.starts_with('/') {
            return Wanted::Path("get", text);
        }
        match text.split_once(char::is_whitespace) {
            Some((method, path)) if path.trim_start().starts_with('/') => Wanted::Path(method, path.trim()),
            _ => Wanted::Id(text),
        }
    }

    fn is_pattern(self) -> bool {
        match self {
            Wanted::Id(text) | Wanted::Path(_, text) => text.contains('*'),
            Wanted::Tag(_) => true,
        }
    }

    /// Whether this is the `GET` operation of exactly that path.
    fn is_path(self, path: &str) -> bool {
        matches!(self, Wanted::Path(method, wanted) if wanted == path && method.eq_ignore_ascii_case("get"))
    }

    /// Whether this may match a GET operation of that path. `unknown` is the result for ids and tags, which are not known.
    fn may_fit(self, path: &str, unknown: bool) -> bool {
        match self {
            Wanted::Id(_) | Wanted::Tag(_) => unknown,
            Wanted::Path(method, pattern) => method.eq_ignore_ascii_case("get") && fits(pattern, path),
        }
    }

    fn fits(self, candidate: &Candidate<'_>) -> bool {
        match self {
            // The pattern `*` matches an operation without an id, too.
            Wanted::Id(pattern) => fits(pattern, candidate.id.unwrap_or("")),
            Wanted::Path(method, pattern) => {
                candidate.method.eq_ignore_ascii_case(method) && (pattern == candidate.path || fits(pattern, candidate.path))
            }
            Wanted::Tag(pattern) => candidate.tags().any(|tag| fits(pattern, tag)),
        }
    }
}

/// Whether a text matches a pattern, in which `*` matches any characters.
pub(super) fn fits(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut left) = text.strip_prefix(head) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let tail = parts.pop().unwrap_or("");
    // Each part is matched at its first occurrence, which leaves the longest rest for the following parts.
    for part in parts {
        let Some(at) = left.find(part) else { return false };
        left = left.get(at + part.len()..).unwrap_or("");
    }
    left.len() >= tail.len() && left.ends_with(tail)
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
    let meant = Wanted::of(&wanted.value);
    let mut matches: Vec<Candidate<'a>> = candidates.iter().filter(|c| meant.fits(c)).copied().collect();
    if let (true, Wanted::Id(name)) = (matches.is_empty() && !meant.is_pattern(), meant) {
        let is_exposed = |c: &&Candidate<'a>| {
            let exposed = operation::exposed_name(references, c, override_of(entry, c, name));
            exposed.is_ok_and(|exposed| exposed == name)
        };
        matches.extend(candidates.iter().filter(is_exposed));
    }
    let is_usable = |c: &Candidate<'a>| match purpose {
        Purpose::Include => c.method != "trace" && (c.is_read(entry, &wanted.value) || entry.allow_writes && !meant.is_pattern()),
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
                Diagnostic::new(Code::AmbiguousOperation, message)
                    .at(wanted.place.clone(), "")
                    .also(place(first.place), "the first")
                    .also(place(second.place), "the second")
                    .hint(hint),
            );
            return Vec::new();
        }
        ([], [other, ..]) => {
            let method = other.method.to_ascii_uppercase();
            let refused = |why: String| {
                let diagnostic =
                    Diagnostic::new(Code::WriteNotAllowed, format!("`{}` is a {method} operation{why}", wanted.value));
                diagnostic.at(wanted.place.clone(), "").also(place(other.place), "the operation")
            };
            diagnostics.push(if other.method == "trace" {
                refused(", which cannot be included".to_owned())
                    .hint("remove it: a TRACE is answered with the whole request, including its credentials")
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
    meant: Wanted<'_>,
    others: bool,
) -> Diagnostic {
    let is_read = |c: &&Candidate<'_>| c.is_read(entry, &wanted.value);
    let message = format!("`{}` fits no operation that only reads", wanted.value);
    let diagnostic = Diagnostic::new(Code::EmptyPattern, message).at(wanted.place.clone(), "");
    if others {
        return diagnostic.hint("it fits operations that write: name each of them, and set `\"allow_writes\": true`");
    }
    if !candidates.iter().any(|c| is_read(&c)) {
        return diagnostic.hint("the document has no operation that only reads");
    }
    let hint = match meant {
        Wanted::Tag(tag) => {
            let tags: BTreeSet<&str> = candidates.iter().filter(is_read).flat_map(Candidate::tags).collect();
            suggest::hint(tag, "tag", tags.iter().copied())
        }
        Wanted::Id(_) | Wanted::Path(..) => None,
    };
    diagnostic.hint(hint.unwrap_or_else(|| list_hint(entry)))
}

fn unknown(candidates: &[Candidate<'_>], entry: &OpenApi, wanted: &Spanned<String>, meant: Wanted<'_>) -> Diagnostic {
    let message = format!("the document has no operation `{}`", wanted.value);
    let mut diagnostic = Diagnostic::new(Code::UnknownOperation, message).at(wanted.place.clone(), "");
    let by_path = matches!(meant, Wanted::Path(..));
    let names: Vec<Cow<'_, str>> = candidates
        .iter()
        .filter(|c| entry.allow_writes || c.is_read(entry, &wanted.value))
        .map(|c| if by_path { c.location().into() } else { c.name() })
        .collect();
    if let Some(hint) = suggest::hint(&wanted.value, "operation", names.iter().map(Cow::as_ref)) {
        diagnostic = diagnostic.hint(hint);
    } else if names.is_empty() {
        diagnostic = diagnostic.hint("the document has no operation that only reads");
    }
    diagnostic.hint(list_hint(entry))
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

/// Whether an override names an operation by its method and path.
pub fn names_operation(name: &str, method: &str, path: &str) -> bool {
    matches!(Wanted::of(name), Wanted::Path(named, wanted) if wanted == path && named.eq_ignore_ascii_case(method))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_characters() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("*", "anything", true),
            ("list*", "listOrders", true),
            ("list*", "getOrders", false),
            ("*Orders", "listOrders", true),
            ("a*b*c", "a1b2b3c", true),
            ("a*b*c", "a1c", false),
            ("ab*bc", "abc", false),
            ("/repos/*/issues", "/repos/{owner}/{repo}/issues", true),
            ("exact", "exact", true),
            ("exact", "exactly", false),
        ] {
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn entries_are_told_apart() {
        for (text, expected, is_pattern) in [
            ("listOrders", Wanted::Id("listOrders"), false),
            ("GET /orders", Wanted::Path("GET", "/orders"), false),
            ("/orders/*", Wanted::Path("get", "/orders/*"), true),
            ("tag: orders", Wanted::Tag("orders"), true),
            ("List orders", Wanted::Id("List orders"), false),
        ] {
            assert_eq!((Wanted::of(text), Wanted::of(text).is_pattern()), (expected, is_pattern), "{text}");
        }
    }
}
