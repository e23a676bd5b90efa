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
    let (mut programs, mut seen) = (HashSet::new(), HashSet::new());
    each_distinct(values, |value| {
        // Texts and the like are shared too.
        if value.shared_address().is_none() && value.address().is_some_and(|address| !seen.insert(address)) {
            return true;
        }
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
/// `visit` gives false. Takes memory for what is shared and for the depth, not for all that there is.
pub(crate) fn each_distinct<'a>(values: impl IntoIterator<Item = &'a Value>, mut visit: impl FnMut(&'a Value) -> bool) {
    let mut seen = HashSet::new();
    let mut open = vec![Parts::List(values.into_iter().collect::<Vec<_>>().into_iter())];
    while let Some(parts) = open.last_mut() {
        let Some(value) = parts.next() else {
            open.pop();
            continue;
        };
        if value.shared_address().is_some_and(|address| !seen.insert(address)) {
            continue;
        }
        if !visit(value) {
            return;
        }
        let list = match value {
            Value::Closure(closure) => closure.captured().iter().collect(),
            Value::Composed(composed) => composed.parts().iter().collect(),
            Value::Endless(endless) => endless.values(),
            container => {
                open.extend(Children::of(container).map(Parts::Children));
                continue;
            }
        };
        open.push(Parts::List(list.into_iter()));
    }
}

/// What is left to visit of a value.
enum Parts<'a> {
    Children(Children<'a>),
    List(std::vec::IntoIter<&'a Value>),
}

impl<'a> Iterator for Parts<'a> {
    type Item = &'a Value;

    fn next(&mut self) -> Option<&'a Value> {
        match self {
            Parts::Children(children) => children.next(),
            Parts::List(list) => list.next(),
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
