//! How much memory values hold.

use std::collections::HashSet;

use super::Value;
use crate::collection::Children;

/// Allocations have a header and are rounded up; `Arc` adds two counts.
const BLOCK: usize = 32;
/// Bytes of code for a byte of a function's text.
const CODE_PER_TEXT: usize = 16;

/// Bytes on the heap of `values` and all that they hold, about. What is shared counts once; a function holds its code and the
/// text of the whole program that made it.
pub(crate) fn footprint<'a>(values: impl IntoIterator<Item = &'a Value>) -> usize {
    let mut bytes = 0;
    let mut programs = HashSet::new();
    each_distinct(values, |value| {
        bytes += own_bytes(value);
        if let Value::Closure(closure) = value
            && programs.insert(closure.source().as_ptr())
        {
            bytes += closure.source().len();
        }
        true
    });
    bytes
}

/// Visits every value that is reachable from `values`, containers and functions once however often they are shared, until
/// `visit` gives false.
pub(crate) fn each_distinct<'a>(values: impl IntoIterator<Item = &'a Value>, mut visit: impl FnMut(&'a Value) -> bool) {
    let mut work: Vec<&'a Value> = values.into_iter().collect();
    let mut seen = HashSet::new();
    while let Some(value) = work.pop() {
        if value.address().is_some_and(|address| !seen.insert(address)) {
            continue;
        }
        if !visit(value) {
            return;
        }
        match value {
            Value::Closure(closure) => work.extend(closure.captured()),
            Value::Composed(composed) => work.extend(composed.parts()),
            Value::Endless(endless) => work.extend(endless.values()),
            container => work.extend(Children::of(container).into_iter().flatten()),
        }
    }
}

/// Bytes of a value's own block, without the values in it and without the 16 bytes that refer to it.
fn own_bytes(value: &Value) -> usize {
    let slots = |count: usize| count * size_of::<Value>();
    match value {
        Value::Nil | Value::False | Value::True | Value::Int(_) | Value::Double(_) | Value::Builtin(_) => 0,
        Value::BigInt(big) => BLOCK + usize::try_from(big.bits() / 8).unwrap_or(usize::MAX),
        Value::Str(text) | Value::Keyword(text) | Value::Symbol(text) | Value::Var(text) => {
            // Short text lies inside its block.
            BLOCK + size_of::<String>() + if text.as_str().len() > size_of::<String>() { text.as_str().len() } else { 0 }
        }
        Value::Vector(items) => 2 * BLOCK + slots(items.len()),
        Value::Set(members) => 2 * BLOCK + slots(members.len()),
        Value::Map(map) => 2 * BLOCK + slots(2 * map.len()),
        // A compiled pattern has tables of its own.
        Value::Regex(pattern) => 4096 + pattern.source().as_str().len(),
        Value::Closure(closure) => {
            let text = closure.span().map_or(0, |span| span.end.saturating_sub(span.start) as usize);
            BLOCK + slots(2 + closure.captured().len()) + CODE_PER_TEXT * text
        }
        Value::Temporal(_) => BLOCK + size_of::<crate::temporal::Temporal>(),
        Value::Endless(endless) => 2 * BLOCK + slots(2 + endless.values().len()),
        Value::Composed(composed) => BLOCK + slots(2 + composed.parts().len()),
    }
}
