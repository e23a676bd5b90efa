//! The notes of an answer, which report problems although the value may seem complete.

use ptc_catalog::Catalog;
use ptc_check::Finding;
use ptc_lisp::failed_calls::UncheckedCalls;
use ptc_lisp::missing_keys::MissingKey;
use ptc_lisp::mixed_comparisons::MixedComparison;
use ptc_lisp::{Kind, Value};
use ptc_text::join_limited;

use super::CalledTools;
use ptc_text::truncate_utf8;
use ptc_upstream::CallRecord;

/// Maximum bytes of an upstream's message in a note.
const MESSAGE_BYTES: usize = 200;
/// Maximum bytes of a form in a note.
const FORM_BYTES: usize = 80;
/// Maximum number of tools and reasons in a note, and of notes on keys.
const MAX_NAMED: usize = 3;

/// Maximum number of keys of the context in a note.
const MAX_CONTEXT_KEYS: usize = 20;

/// Advice for unchecked calls.
const REMEDY: &str = "A failed call has no :value, so data may be missing. Check :ok of each result, such as \
                      (if (:ok r) (:value r) (fail (:message r))), or call with tool/value, which ends the program when a call fails";

/// The note on a program whose calls are not all known before it runs, if there is a policy.
pub(super) const REACH_UNKNOWN: &str = "This program, or a function of its session, computes names of upstreams or tools, or passes a \
                                        function such as tool/call to others, so that the tools that it reaches could not be checked in \
                                        advance: the policy is checked at each call";

/// Returns the note on failed calls whose `:ok`, `:reason` and `:message` the program did not read. `calls` is the number of all
/// calls.
pub(super) fn failed_calls(mut unchecked: Vec<UncheckedCalls>, calls: usize) -> Option<String> {
    let total: u64 = unchecked.iter().map(|calls| calls.count).sum();
    if total == 0 {
        return None;
    }
    // Most calls first, then by name.
    unchecked.sort_by_key(|calls| std::cmp::Reverse(calls.count));
    let mut named: Vec<String> = unchecked.iter().take(MAX_NAMED).map(described).collect();
    let more: u64 = unchecked.iter().skip(MAX_NAMED).map(|calls| calls.count).sum();
    if more > 0 {
        named.push(format!("and {more} more"));
    }
    let (made, were) = (calls.max(usize::try_from(total).unwrap_or(usize::MAX)), if total == 1 { "was" } else { "were" });
    let each = named.join(", ");
    Some(format!("{total} of {made} upstream calls failed and {were} not checked: {each}. {REMEDY}"))
}

/// Returns notes on the text of a program, with the form of each: at most three, and then the number of the others, which `rest`
/// names.
pub(super) fn of_text(findings: impl ExactSizeIterator<Item = Finding>, source: &str, rest: &str) -> Vec<String> {
    let more = findings.len().saturating_sub(MAX_NAMED);
    let note = |finding: Finding| {
        let form = source.get(finding.span.start as usize..finding.span.end as usize).unwrap_or_default();
        let (form, is_cut) = truncate_utf8(form.lines().next().unwrap_or_default(), FORM_BYTES);
        let (end, hint) = (if is_cut { "…" } else { "" }, finding.hint.map_or_else(String::new, |hint| format!("; {hint}")));
        format!("{form}{end}: {}{hint}", finding.message)
    };
    let mut notes: Vec<String> = findings.take(MAX_NAMED).map(note).collect();
    if more > 0 {
        notes.push(format!("and {more} more {rest}"));
    }
    notes
}

/// Formats `3 × crm/list: timeout "…"`. The message is quoted, so that an upstream's text cannot be mistaken for the server's.
fn described(calls: &UncheckedCalls) -> String {
    let UncheckedCalls { server, tool, reason, message, count, .. } = calls;
    let name = if tool.is_empty() { "other tools".to_owned() } else { format!("{server}/{tool}") };
    let (message, is_cut) = truncate_utf8(message, MESSAGE_BYTES);
    let end = if is_cut { "…" } else { "" };
    format!("{count} × {name} {reason} {:?}", format!("{message}{end}"))
}

/// Returns the notes on missing keys that the program looked up in answers. It continued with nil.
pub(super) fn keys_not_found(
    catalog: &Catalog,
    calls: &[CallRecord],
    earlier: &CalledTools,
    missing: &[MissingKey],
) -> Vec<String> {
    let answered = calls.iter().filter(|call| call.status == "ok");
    let called: Vec<(&str, &str)> = answered.map(|call| (call.server, &*call.tool)).chain(earlier.iter()).collect();
    first_of(ptc_check::keys_not_found(catalog, &called, missing), "keys were looked up and not found")
}

/// Returns the note on keys that the context does not have. The program continued with nil.
pub(super) fn context_keys(missing: &[String], context: &Value) -> Option<String> {
    let quoted = |name: &str| format!("data/{name}");
    let missing = join_limited(missing.iter().map(|name| quoted(name)), ", ", MAX_NAMED);
    let known = join_limited(context.entries()?.filter_map(|(key, _)| key.as_name()).map(quoted), ", ", MAX_CONTEXT_KEYS);
    let has = if known.is_empty() { "is empty".to_owned() } else { format!("has {known}") };
    (!missing.is_empty()).then(|| format!("{missing} gave nil: the context {has}"))
}

/// Returns the note on comparisons of values of different kinds.
pub(super) fn mixed_comparison(mixed: &MixedComparison) -> String {
    let ([left, right], [one, other]) = (mixed.kinds.map(Kind::described), &mixed.values);
    let times = if mixed.count == 1 { "1 comparison".to_owned() } else { format!("{} comparisons", mixed.count) };
    let remedy = match mixed.kinds {
        kinds if kinds.contains(&Kind::Nil) => "leave nil out first, as in (filter some? xs) or (or x 0)",
        kinds if kinds.contains(&Kind::String) => "read a number from a text with parse-long or parse-double",
        _ => "compare values of one kind",
    };
    format!(
        "{times} by <, <=, > or >= of values of different kinds, the first of {left} with {right} ({one} with {other}): such values are \
         ordered by their kinds. {remedy}"
    )
}

/// Returns the notes on lists of which the program read only the first page.
pub(super) fn unread_pages(notes: Vec<String>) -> Vec<String> {
    first_of(notes, "tools gave the first page of a list that was not read on")
}

/// Returns the notes on undeclared arguments.
pub(super) fn misspelt(notes: Vec<String>) -> Vec<String> {
    first_of(notes, "arguments were not declared")
}

/// Returns the first notes, and the number of the others.
fn first_of(mut notes: Vec<String>, rest: &str) -> Vec<String> {
    let more = notes.len().saturating_sub(MAX_NAMED);
    notes.truncate(MAX_NAMED);
    if more > 0 {
        notes.push(format!("{more} more {rest}"));
    }
    notes
}
