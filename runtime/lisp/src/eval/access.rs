//! Compiles access by key, and destructuring.

use super::fused::copy;
use super::{Code, Frame};
use crate::Value;
use crate::builtins::Builtin;
use crate::collection::Vector;
use crate::error::{ErrorKind, Span};
use crate::ir::Local;
use crate::machine::{Machine, Raised};

/// Compiles `(:key local)` and `(get local key)`. The value is borrowed from its slot.
pub(super) fn key_of_slot(slot: usize, key: Value, row: &'static Builtin, span: Span) -> Code {
    Box::new(move |m, f| match f.slots.get(slot) {
        Some(coll @ Value::Map(map)) => Ok(found(m, map.lookup(&key), coll, &key)),
        other => {
            let held = copy(other);
            get(m, row, held, &key, span)
        }
    })
}

/// Like [`key_of_slot`], for a computed value.
pub(super) fn key_of(from: Code, key: Value, row: &'static Builtin, span: Span) -> Code {
    Box::new(move |m, f| match from(m, f)? {
        ref coll @ Value::Map(ref map) => Ok(found(m, map.lookup(&key), coll, &key)),
        other => get(m, row, other, &key, span),
    })
}

/// Compiles `(get local local)`. Neither value is moved.
pub(super) fn slot_at_slot(from: usize, key: Local, row: &'static Builtin, span: Span) -> Code {
    Box::new(move |m, f| match (f.slots.get(from), f.slots.get(key.slot as usize)) {
        (Some(coll @ Value::Map(map)), Some(key)) => Ok(found(m, map.lookup(key), coll, key)),
        (other, _) => {
            let held = copy(other);
            let key = local(f, key);
            get(m, row, held, &key, span)
        }
    })
}

/// Like [`slot_at_slot`], for a captured value of the current function.
pub(super) fn capture_at_slot(from: u32, key: Local, row: &'static Builtin, span: Span) -> Code {
    Box::new(move |m, f| match (f.this.capture(from), f.slots.get(key.slot as usize)) {
        (Some(coll @ Value::Map(map)), Some(key)) => Ok(found(m, map.lookup(key), coll, key)),
        (other, _) => {
            let held = copy(other);
            let key = local(f, key);
            get(m, row, held, &key, span)
        }
    })
}

/// Returns a copy of the value at a key of `coll`. If it is missing, records the key and returns nil.
#[inline]
fn found(m: &Machine, value: Option<&Value>, coll: &Value, key: &Value) -> Value {
    if value.is_none() {
        m.meters.missing_keys.record(coll, key);
    }
    copy(value)
}

fn get(m: &mut Machine, row: &'static Builtin, from: Value, key: &Value, span: Span) -> Result<Value, Raised> {
    (row.run)(m, &mut [from, key.clone()]).map_err(|raised| m.at(raised, span))
}

/// Returns the items of a value that is destructured by position. The items of a string are its graphemes.
fn items(m: &mut Machine, value: &Value, span: Span) -> Result<Option<Vector>, Raised> {
    match value {
        Value::Vector(items) => Ok(Some(items.clone())),
        Value::Nil => Ok(None),
        Value::Str(_) => match crate::args::seq_of(m, value.clone())? {
            Ok(items) => Ok(Some(items)),
            Err(_) => Ok(None),
        },
        other => {
            let found = crate::args::describe(other);
            let raised = m.raise_with_hint(
                ErrorKind::DestructureError,
                format!("a pattern [a b] takes a vector apart, found {found}"),
                match other {
                    Value::Map(_) => "take a map apart with {:keys [a b]}",
                    Value::Set(_) => "a set has no order; use (vec (sort s))",
                    _ => "check what the value is before it is taken apart",
                },
            );
            Err(m.at(raised, span))
        }
    }
}

/// Compiles a read of the item at `index` of a slot.
pub(super) fn nth(from: Local, index: u32, span: Span) -> Code {
    let slot = from.slot as usize;
    Box::new(move |m, f| match f.slots.get(slot) {
        Some(Value::Vector(items)) => Ok(copy(items.get(index as usize))),
        Some(Value::InfiniteSeq(infinite)) => infinite.clone().nth(m, index as usize),
        other => {
            let held = copy(other);
            Ok(items(m, &held, span)?.and_then(|items| items.get(index as usize).cloned()).unwrap_or_default())
        }
    })
}

/// Compiles a read of the items of a slot after the first `skipped`. Nil if there are none.
pub(super) fn rest(from: Local, skipped: u32, span: Span) -> Code {
    Box::new(move |m, f| {
        let held = local(f, from);
        if let Value::InfiniteSeq(infinite) = &held {
            return infinite.skip(m, skipped as usize);
        }
        let Some(mut items) = items(m, &held, span)? else { return Ok(Value::Nil) };
        drop(held);
        let (skipped, len) = (skipped as usize, items.len());
        if skipped >= len {
            return Ok(Value::Nil);
        }
        items.narrow(skipped, len);
        Ok(Value::Vector(items))
    })
}

fn local(f: &mut Frame<'_>, local: Local) -> Value {
    if local.last { f.take(local.slot as usize) } else { copy(f.slots.get(local.slot as usize)) }
}

/// Compiles a read of a key of a slot that is destructured.
pub(super) fn key(from: Local, key: Value, default: Option<Code>, span: Span) -> Code {
    let slot = from.slot as usize;
    Box::new(move |m, f| {
        let found = match f.slots.get(slot) {
            Some(coll @ Value::Map(map)) => {
                let value = map.lookup(&key);
                if value.is_none() {
                    m.meters.missing_keys.record_destructured(coll, &key);
                }
                value.cloned()
            }
            Some(Value::Nil) | None => None,
            // Positions are the keys of a vector or string.
            Some(held @ (Value::Vector(_) | Value::Str(_))) if crate::args::as_integer(&key).is_some() => {
                crate::builtins::look_up(held, &key)
            }
            Some(other) => {
                let found = crate::args::describe(other);
                let raised = m.raise_with_hint(
                    ErrorKind::DestructureError,
                    format!("a pattern {{:keys [a b]}} takes a map apart, found {found}"),
                    match other {
                        Value::Vector(_) => "take a vector apart with [a b]",
                        _ => "check what the value is before it is taken apart",
                    },
                );
                return Err(m.at(raised, span));
            }
        };
        match (found, &default) {
            (Some(value), _) => Ok(value),
            (None, Some(default)) => default(m, f),
            (None, None) => Ok(Value::Nil),
        }
    })
}

/// Compiles keyword arguments: `:a 1 :b 2`, or one map.
pub(super) fn named(from: Local, span: Span) -> Code {
    Box::new(move |m, f| {
        let held = local(f, from);
        let Some(items) = items(m, &held, span)? else { return Ok(Value::Nil) };
        if let (Some(only @ Value::Map(_)), 1) = (items.get(0), items.len()) {
            return Ok(only.clone());
        }
        if items.len() % 2 == 1 {
            let raised = m.raise(ErrorKind::ArityError, format!("named arguments come in pairs, got {} values", items.len()));
            return Err(m.at(raised, span));
        }
        let mut items = items.into_iter();
        let pairs = std::iter::from_fn(|| Some((items.next()?, items.next()?))).collect();
        crate::metered::map(m, pairs).map(Value::Map)
    })
}
