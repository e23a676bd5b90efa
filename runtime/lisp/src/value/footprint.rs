//! Estimates how much heap memory values occupy.

use std::collections::HashSet;

use super::Value;
use crate::collection::Children;

/// Estimated overhead of an allocation in bytes: its header, rounding up, and the two counts of an `Arc`.
const BLOCK: usize = 32;
/// Estimated bytes of compiled code per byte of a function's source text.
const CODE_PER_TEXT: usize = 16;

/// Estimates the bytes on the heap of `values` and of everything reachable from them. Shared parts count once. A function counts
/// with its code and with the text of the whole program that made it.
pub(crate) fn footprint<'a>(values: impl IntoIterator<Item = &'a Value>) -> usize {
    let mut bytes = 0;
    let (mut programs, mut seen) = (HashSet::new(), HashSet::new());
    each_distinct(values, |value| {
        // Texts and other leaves can be shared too.
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

/// Visits every value that is reachable from `values` until `visit` returns false. A shared container or function is visited
/// once. Memory use is proportional to the number of shared values and to the depth, not to the number of all values.
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
            Value::InfiniteSeq(infinite) => infinite.values(),
            container => {
                open.extend(Children::new(container).map(Parts::Children));
                continue;
            }
        };
        open.push(Parts::List(list.into_iter()));
    }
}

/// The children of a value that are not visited yet.
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

/// Bytes of a value's own heap block, without its children and without the 16 bytes that refer to it.
fn own_bytes(value: &Value) -> usize {
    let slots = |count: usize| count * size_of::<Value>();
    match value {
        Value::Nil | Value::False | Value::True | Value::Int(_) | Value::Double(_) | Value::Builtin(_) => 0,
        Value::BigInt(big) => BLOCK + usize::try_from(big.bits() / 8).unwrap_or(usize::MAX),
        Value::Str(text) | Value::Keyword(text) | Value::Symbol(text) | Value::Var(text) => {
            // Short text is stored inline in its block.
            BLOCK + size_of::<String>() + if text.as_str().len() > size_of::<String>() { text.as_str().len() } else { 0 }
        }
        Value::Vector(items) => 2 * BLOCK + slots(items.len()),
        Value::Set(members) => 2 * BLOCK + slots(members.len()),
        Value::Map(map) => 2 * BLOCK + slots(2 * map.len()),
        // A compiled pattern has transition tables of its own.
        Value::Regex(pattern) => 4096 + pattern.source().len(),
        Value::Closure(closure) => {
            let text = closure.span().map_or(0, |span| span.end.saturating_sub(span.start) as usize);
            BLOCK + slots(2 + closure.captured().len()) + CODE_PER_TEXT * text
        }
        Value::Temporal(_) => BLOCK + size_of::<crate::temporal::Temporal>(),
        Value::InfiniteSeq(infinite) => 2 * BLOCK + slots(2 + infinite.values().len()),
        Value::Composed(composed) => BLOCK + slots(2 + composed.parts().len()),
    }
}
