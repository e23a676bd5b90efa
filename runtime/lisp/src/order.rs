//! Equality, order and hash of values as one contract.
//!
//! All values have one total order. It defines their equality (`compare(a, b) == Equal`), and the hash agrees with it. Maps and
//! sets sort their keys by it.
//!
//! - The order of kinds is: numbers, nil, false, true, keywords, symbols, vars, functions, infinite sequences, regexes, dates and
//!   times, maps, sets, vectors, strings.
//! - Numbers compare by exact value, whatever their kind. 1 and 1.0 are equal and the same key, as are 0.0 and -0.0. An integer
//!   is compared with a double without rounding, since otherwise the order would not be transitive. NaN equals itself and is
//!   greater than every other number. (The functions `=` and `<` of the language treat NaN as IEEE 754 does.)
//! - Strings, keywords and symbols compare by their bytes. A string never equals a keyword.
//! - Containers compare by length first, then part by part in canonical order: items, sorted members, sorted entries (key, then
//!   value).
//! - Regexes compare by source, vars and builtins by name, dates and times by kind, then by time or length. Other functions and
//!   infinite sequences are equal only to themselves and are ordered by creation.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::collection::{Children, SHALLOW};
use crate::{Value, comparison_budget, number};

/// Compares two values in the total order.
#[inline]
pub fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Int(x), Value::Int(y)) => x.cmp(y),
        (Value::Str(x), Value::Str(y)) | (Value::Keyword(x), Value::Keyword(y)) => x.cmp(y),
        _ => compare_any(a, b),
    }
}

/// Whether two values are equal under the contract.
#[inline]
pub fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Int(x), Value::Int(y)) => x == y,
        (Value::Str(x), Value::Str(y)) | (Value::Keyword(x), Value::Keyword(y)) => x == y,
        _ => compare_any(a, b).is_eq(),
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        equal(self, other)
    }
}

impl Eq for Value {}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(self, other)
    }
}

/// The position of the value's kind.
fn rank(value: &Value) -> u8 {
    match value {
        Value::Int(_) | Value::Double(_) | Value::BigInt(_) => 0,
        Value::Nil => 1,
        Value::False => 2,
        Value::True => 3,
        Value::Keyword(_) => 4,
        Value::Symbol(_) => 5,
        Value::Var(_) => 6,
        Value::Builtin(_) => 7,
        Value::Composed(_) => 8,
        Value::Closure(_) => 9,
        Value::InfiniteSeq(_) => 10,
        Value::Regex(_) => 11,
        Value::Temporal(_) => 12,
        Value::Map(_) => 13,
        Value::Set(_) => 14,
        Value::Vector(_) => 15,
        Value::Str(_) => 16,
    }
}

/// The cost of comparing two values that are not containers, in parts beyond the first.
fn weight(a: &Value, b: &Value) -> u32 {
    let weight = long(a);
    if weight == 0 || a.is_same(b) { 0 } else { weight.min(long(b)) }
}

/// The cost of walking over a value that is not a container, in parts beyond the first.
fn long(value: &Value) -> u32 {
    match value {
        Value::Str(text) | Value::Keyword(text) | Value::Symbol(text) | Value::Var(text) => {
            comparison_budget::parts_of(text.as_str().len())
        }
        Value::BigInt(big) => comparison_budget::parts_of(number::bytes(big)),
        _ => 0,
    }
}

/// Subtracts the worst-case cost of comparing a value from `left`. Returns false if the cost exceeds it or the value is too deep
/// for native recursion.
pub(crate) fn is_within(value: &Value, left: &mut u32) -> bool {
    let Some(rest) = left.checked_sub(1 + long(value)) else { return false };
    *left = rest;
    match Children::new(value) {
        Some(mut parts) => value.depth() <= SHALLOW && parts.all(|part| is_within(part, left)),
        None => true,
    }
}

/// Maximum parts that are compared by native recursion. Beyond that the work list takes over, which remembers compared pairs.
const QUICK: u32 = 10_000;

fn compare_any(a: &Value, b: &Value) -> Ordering {
    if let Some(order) = compare_flat(a, b) {
        return order;
    }
    if comparison_budget::is_exhausted() {
        return Ordering::Equal;
    }
    let mut left = QUICK;
    let quick = if a.depth().min(b.depth()) <= SHALLOW { compare_parts(a, b, &mut left) } else { None };
    // A small amount of work is covered by the step that requested it.
    if left < QUICK - 16 {
        comparison_budget::charge(QUICK - left);
    }
    quick.unwrap_or_else(|| compare_deep(a, b))
}

/// Compares without looking at parts. `None` for two containers of one kind and length.
fn compare_flat(a: &Value, b: &Value) -> Option<Ordering> {
    let by_rank = rank(a).cmp(&rank(b));
    if by_rank.is_ne() {
        return Some(by_rank);
    }
    let (same, x, y) = match (a, b) {
        (Value::Int(_) | Value::Double(_) | Value::BigInt(_), _) => return Some(number::compare(a, b)),
        (Value::Str(x), Value::Str(y))
        | (Value::Keyword(x), Value::Keyword(y))
        | (Value::Symbol(x), Value::Symbol(y))
        | (Value::Var(x), Value::Var(y)) => return Some(x.cmp(y)),
        (Value::Temporal(x), Value::Temporal(y)) => return Some(x.cmp(y)),
        (Value::InfiniteSeq(x), Value::InfiniteSeq(y)) => return Some(x.serial().cmp(&y.serial())),
        (Value::Regex(x), Value::Regex(y)) => return Some(x.source().cmp(y.source())),
        (Value::Builtin(x), Value::Builtin(y)) => return Some((x.name, x.namespace).cmp(&(y.name, y.namespace))),
        (Value::Composed(x), Value::Composed(y)) => {
            return Some(if Arc::ptr_eq(x, y) { Ordering::Equal } else { x.serial().cmp(&y.serial()) });
        }
        (Value::Closure(x), Value::Closure(y)) => {
            return Some(if Arc::ptr_eq(x, y) { Ordering::Equal } else { x.serial().cmp(&y.serial()) });
        }
        (Value::Vector(x), Value::Vector(y)) => (x.same(y), x.len(), y.len()),
        (Value::Map(x), Value::Map(y)) => (x.same(y), x.len(), y.len()),
        (Value::Set(x), Value::Set(y)) => (x.same(y), x.len(), y.len()),
        _ => return Some(Ordering::Equal),
    };
    if same {
        return Some(Ordering::Equal);
    }
    Some(x.cmp(&y)).filter(|order| order.is_ne())
}

/// Compares part by part. `None` if there are more than `left` parts.
fn compare_parts(a: &Value, b: &Value, left: &mut u32) -> Option<Ordering> {
    let (Some(xs), Some(ys)) = (Children::new(a), Children::new(b)) else { return Some(Ordering::Equal) };
    for (x, y) in xs.zip(ys) {
        *left = left.checked_sub(1 + weight(x, y))?;
        let order = match compare_flat(x, y) {
            Some(order) => order,
            None => compare_parts(x, y, left)?,
        };
        if order.is_ne() {
            return Some(order);
        }
    }
    Some(Ordering::Equal)
}

/// Union-find over the addresses of values that a comparison has found equal. Each entry points to another value of its class,
/// and the last one represents the class.
///
/// A difference ends the comparison, so that a pair can count as equal once its comparison has started. Values that share parts
/// can have exponentially many paths to them, and quadratically many pairs. With classes each value is compared only once.
#[derive(Default)]
struct Classes(HashMap<usize, usize>);

impl Classes {
    fn find(&mut self, mut value: usize) -> usize {
        while let Some(next) = self.0.get(&value).copied() {
            // Path halving.
            let after = self.0.get(&next).copied().unwrap_or(next);
            self.0.insert(value, after);
            value = after;
        }
        value
    }

    /// Merges two classes. Returns false if they were one already.
    fn join(&mut self, a: &Value, b: &Value) -> bool {
        let (Some(a), Some(b)) = (a.address(), b.address()) else { return true };
        let (to, other) = (self.find(a), self.find(b));
        to != other && self.0.insert(other, to).is_none()
    }
}

/// Maximum parts of a flat container that is compared again rather than looked up.
const SMALL: usize = 16;

/// Whether a pair is worth remembering, because comparing it costs more than an entry in the classes.
fn is_large(x: &Value, y: &Value) -> bool {
    x.depth() > 1 || x.len().is_some_and(|len| len > SMALL) || weight(x, y) > 0
}

/// Compares with a work list.
fn compare_deep(a: &Value, b: &Value) -> Ordering {
    let mut work = Vec::new();
    let mut equal = Classes::default();
    work.extend(Children::new(a).zip(Children::new(b)));
    let mut parts = 0_u32;
    while let Some((xs, ys)) = work.last_mut() {
        let (Some(x), Some(y)) = (xs.next(), ys.next()) else {
            work.pop();
            continue;
        };
        // A chain of last parts, as in a deeply nested list, needs no memory on the work list.
        if xs.is_done() {
            work.pop();
        }
        parts += 1;
        if parts >= 1024 {
            comparison_budget::charge(std::mem::take(&mut parts));
            if comparison_budget::is_exhausted() {
                return Ordering::Equal;
            }
        }
        if is_large(x, y) && !x.is_same(y) && x.kind() == y.kind() && !equal.join(x, y) {
            continue;
        }
        match compare_flat(x, y) {
            Some(Ordering::Equal) => parts = parts.saturating_add(weight(x, y)),
            Some(order) => return order,
            None => work.extend(Children::new(x).zip(Children::new(y))),
        }
    }
    Ordering::Equal
}

/// Maximum parts that contribute to a hash. This bounds the work and still distinguishes most values.
const HASHED: usize = 1_000;

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash_flat(self, state);
        if self.depth() == 0 {
            return;
        }
        let mut work: Vec<Children<'_>> = Vec::new();
        work.extend(Children::new(self));
        let mut left = HASHED;
        while let Some(parts) = work.last_mut() {
            let Some(part) = parts.next().filter(|_| left > 0) else {
                work.pop();
                continue;
            };
            left = left.saturating_sub(1 + long(part) as usize);
            hash_flat(part, state);
            work.extend(Children::new(part));
        }
    }
}

/// Hashes a value except for the parts of a container.
fn hash_flat<H: Hasher>(value: &Value, state: &mut H) {
    match value {
        Value::Int(i) => state.write_i64(*i),
        Value::Double(_) | Value::BigInt(_) => number::hash(value, state),
        Value::Str(text) => text.hash(state),
        _ => {
            state.write_u8(rank(value));
            match value {
                Value::Keyword(text) | Value::Symbol(text) | Value::Var(text) => text.hash(state),
                Value::Vector(v) => state.write_usize(v.len()),
                Value::Map(m) => state.write_usize(m.len()),
                Value::Set(s) => state.write_usize(s.len()),
                Value::Regex(r) => r.source().hash(state),
                Value::Temporal(t) => t.hash(state),
                Value::InfiniteSeq(e) => state.write_u64(e.serial()),
                Value::Builtin(b) => (b.name, b.namespace).hash(state),
                Value::Composed(c) => state.write_u64(c.serial()),
                Value::Closure(c) => state.write_u64(c.serial()),
                _ => {}
            }
        }
    }
}
