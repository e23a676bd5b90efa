//! Builtins that return parts of sequences by position.

use super::row::rows;
use super::transducer::{changed, transducer};
use crate::args::{at, count, expected, fault, int, locate_graphemes, seq, sequential, steps, take};
use crate::collection::Vector;
use crate::infinite::Transducer;
use crate::machine::{Machine, Raised};
use crate::{ErrorKind, Value};

rows! { "clojure.core":
    "first" ["[coll]"] first, "The first item, or nil." { "(first [1 2 3])" => "1", "(first [])" => "nil", "(first \"abc\")" => "\"a\"" };
    "second" ["[coll]"] second, "The second item, or nil." { "(second [1 2 3])" => "2" };
    "last" ["[coll]"] last, "The last item, or nil." { "(last [1 2 3])" => "3" };
    "rest" ["[coll]"] rest, "All items but the first." { "(rest [1 2 3])" => "[2 3]", "(rest [])" => "[]" };
    "next" ["[coll]"] next, "All items but the first; nil if there are none." { "(next [1 2])" => "[2]", "(next [1])" => "nil" };
    "butlast" ["[coll]"] butlast, "All items but the last; nil if there are none." { "(butlast [1 2 3])" => "[1 2]", "(butlast [1])" => "nil" };
    "ffirst" ["[coll]"] ffirst, "The first item of the first." { "(ffirst [[1 2] [3]])" => "1" };
    "fnext" ["[coll]"] second, "The second item." { "(fnext [1 2 3])" => "2" };
    "nfirst" ["[coll]"] nfirst, "All but the first of the first item." { "(nfirst [[1 2] [3]])" => "[2]" };
    "nnext" ["[coll]"] nnext, "All items but the first two; nil if there are none." { "(nnext [1 2 3 4])" => "[3 4]" };
    "nth" ["[coll i]", "[coll i not-found]"] nth, "The item at index i; not-found, or nil, where there is none." { "(nth [1 2 3] 1)" => "2", "(nth [1] 5)" => "nil", "(nth [1] 5 :none)" => ":none" };
    "nthrest" ["[coll n]"] nthrest, "All items but the first n." { "(nthrest [1 2 3] 2)" => "[3]" };
    "nthnext" ["[coll n]"] nthnext, "All items but the first n; nil if there are none." { "(nthnext [1 2 3] 3)" => "nil" };
    "take" ["[n]", "[n coll]"] take_first, "The first n items." { "(take 2 [1 2 3])" => "[1 2]" };
    "drop" ["[n]", "[n coll]"] drop_first, "All items but the first n." { "(drop 2 [1 2 3])" => "[3]" };
    "take-last" ["[n coll]"] take_last, "The last n items; nil if there are none." { "(take-last 2 [1 2 3])" => "[2 3]" };
    "drop-last" ["[coll]", "[n coll]"] drop_last, "All items but the last n, 1 by default." { "(drop-last [1 2 3])" => "[1 2]", "(drop-last 2 [1 2 3])" => "[1]" };
    "take-nth" ["[n]", "[n coll]"] take_nth, "Every n-th item, beginning with the first." { "(take-nth 2 [1 2 3 4 5])" => "[1 3 5]" };
    "split-at" ["[n coll]"] split_at, "The first n items and the others." { "(split-at 2 [1 2 3])" => "[[1 2] [3]]" };
    "subvec" ["[v start]", "[v start end]"] subvec, "The items from start up to end; bounds outside the vector count as its own." { "(subvec [0 1 2 3 4] 1 3)" => "[1 2]" };
    "peek" ["[coll]"] peek, "The last item of a vector, or nil." { "(peek [1 2 3])" => "3" };
    "pop" ["[coll]"] pop, "A vector without its last item; nil if it is empty." { "(pop [1 2 3])" => "[1 2]", "(pop [])" => "nil" };
    "count" ["[coll]"] count_of, "The number of items, entries, members or characters; 0 for nil." { "(count [1 2 3])" => "3", "(count \"abc\")" => "3", "(count nil)" => "0" };
    "bounded-count" ["[n coll]"] bounded_count, "The number of items." { "(bounded-count 2 [1 2 3])" => "3" };
    "seq" ["[coll]"] to_seq, "The items as a vector: entries of a map, characters of a string; nil if there are none." { "(seq {:a 1})" => "[[:a 1]]", "(seq \"ab\")" => "[\"a\" \"b\"]", "(seq [])" => "nil" };
    "not-empty" ["[coll]"] not_empty, "The collection, or nil if it is empty." { "(not-empty [1])" => "[1]", "(not-empty [])" => "nil" };
}

/// Returns the first character of a string, without splitting all of it.
fn first_of(value: &Value) -> Option<Value> {
    match value {
        Value::Nil => Some(Value::Nil),
        Value::Vector(items) => Some(items.get(0).cloned().unwrap_or_default()),
        Value::Str(text) => Some(text.graphemes().next().map(Value::string).unwrap_or_default()),
        Value::Set(set) => Some(set.iter().next().cloned().unwrap_or_default()),
        _ => None,
    }
}

fn first(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    match first_of(at(args, 0)) {
        Some(value) => Ok(value),
        None => nth_of(m, "first", args, 0),
    }
}

/// Returns the item at `index` of the first argument, or nil.
fn nth_of(m: &mut Machine, name: &str, args: &mut [Value], index: usize) -> Result<Value, Raised> {
    match at(args, 0) {
        Value::Vector(items) => return Ok(items.get(index).cloned().unwrap_or_default()),
        Value::InfiniteSeq(infinite) => return infinite.nth(m, index),
        _ => {}
    }
    let items = sequential(m, name, args, 0)?;
    Ok(items.get(index).cloned().unwrap_or_default())
}

fn second(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    nth_of(m, "second", args, 1)
}

fn last(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if let Value::Str(text) = at(args, 0) {
        return Ok(text.graphemes().next_back().map(Value::string).unwrap_or_default());
    }
    let items = sequential(m, "last", args, 0)?;
    Ok(items.last().cloned().unwrap_or_default())
}

/// Returns the items `from..to` of an argument.
fn window(mut items: Vector, from: usize, to: usize) -> Value {
    items.narrow(from, to);
    Value::Vector(items)
}

/// Like [`window`], but returns nil if it is empty.
fn some_window(items: Vector, from: usize, to: usize) -> Value {
    if from >= to.min(items.len()) { Value::Nil } else { window(items, from, to) }
}

fn rest(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if let Value::InfiniteSeq(infinite) = at(args, 0) {
        return infinite.skip(m, 1);
    }
    Ok(window(sequential(m, "rest", args, 0)?, 1, usize::MAX))
}

fn next(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if let Value::InfiniteSeq(infinite) = at(args, 0) {
        return infinite.skip(m, 1);
    }
    Ok(some_window(sequential(m, "next", args, 0)?, 1, usize::MAX))
}

fn butlast(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let items = sequential(m, "butlast", args, 0)?;
    let len = items.len();
    Ok(some_window(items, 0, len.saturating_sub(1)))
}

fn ffirst(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let inner = first(m, args)?;
    first(m, &mut [inner])
}

fn nfirst(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let inner = first(m, args)?;
    next(m, &mut [inner])
}

fn nnext(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if let Value::InfiniteSeq(infinite) = at(args, 0) {
        return infinite.skip(m, 2);
    }
    Ok(some_window(sequential(m, "nnext", args, 0)?, 2, usize::MAX))
}

fn nth(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    // A negative index is out of bounds, like one past the end.
    let index = usize::try_from(int(m, "nth", args, 1)?).unwrap_or(usize::MAX);
    let otherwise = take(args, 2);
    if let Value::Str(text) = at(args, 0) {
        locate_graphemes(m, text)?;
        return Ok(text.grapheme(index).map_or(otherwise, Value::string));
    }
    if let Value::Set(_) = at(args, 0) {
        let found = take(args, 0);
        return Err(expected(m, "nth", "a vector or string", 0, &found));
    }
    if let Value::InfiniteSeq(infinite) = at(args, 0) {
        return if index == usize::MAX { Ok(otherwise) } else { infinite.nth(m, index) };
    }
    let items = sequential(m, "nth", args, 0)?;
    Ok(items.get(index).cloned().unwrap_or(otherwise))
}

fn nthrest(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let n = count(m, "nthrest", args, 1)?;
    if n == 0 && at(args, 0).len().is_some() || matches!(at(args, 0), Value::Nil) {
        return Ok(take(args, 0));
    }
    if let Value::InfiniteSeq(infinite) = at(args, 0) {
        return infinite.skip(m, n);
    }
    Ok(window(seq(m, "nthrest", args, 0)?, n, usize::MAX))
}

fn nthnext(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let n = count(m, "nthnext", args, 1)?;
    if let Value::InfiniteSeq(infinite) = at(args, 0) {
        return infinite.skip(m, n);
    }
    Ok(some_window(seq(m, "nthnext", args, 0)?, n, usize::MAX))
}

fn take_first(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let n = count(m, "take", args, 0)?;
    match args {
        [_] => return Ok(transducer(Transducer::Take(n))),
        [_, Value::InfiniteSeq(infinite)] => return infinite.take(m, n).map(Value::vector),
        _ => {}
    }
    Ok(window(seq(m, "take", args, 1)?, 0, n))
}

fn drop_first(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let n = count(m, "drop", args, 0)?;
    match args {
        [_] => return Ok(transducer(Transducer::Drop(n))),
        [_, Value::InfiniteSeq(infinite)] => return infinite.skip(m, n),
        _ => {}
    }
    Ok(window(seq(m, "drop", args, 1)?, n, usize::MAX))
}

fn take_last(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let n = count(m, "take-last", args, 0)?;
    let items = seq(m, "take-last", args, 1)?;
    let from = items.len().saturating_sub(n);
    Ok(if from == items.len() { Value::Nil } else { window(items, from, usize::MAX) })
}

fn drop_last(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let (n, place) = if args.len() == 1 { (1, 0) } else { (count(m, "drop-last", args, 0)?, 1) };
    let items = seq(m, "drop-last", args, place)?;
    let to = items.len().saturating_sub(n);
    Ok(window(items, 0, to))
}

fn take_nth(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let n = int(m, "take-nth", args, 0)?;
    let Some(step) = usize::try_from(n).ok().filter(|n| *n > 0) else {
        return Err(expected(m, "take-nth", "a positive integer", 0, &Value::Int(n)));
    };
    if args.len() == 1 {
        return Ok(transducer(Transducer::TakeNth(step, 0)));
    }
    if let Some(changed) = changed(m, args, 1, Transducer::TakeNth(step, 0)) {
        return changed;
    }
    let items = seq(m, "take-nth", args, 1)?;
    m.tick(steps(items.len() / step))?;
    Ok(Value::vector(items.iter().step_by(step).cloned().collect()))
}

fn split_at(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let n = count(m, "split-at", args, 0)?;
    if let Value::InfiniteSeq(infinite) = at(args, 1) {
        let (first, rest) = (infinite.take(m, n)?, infinite.skip(m, n)?);
        return Ok(Value::vector(vec![Value::vector(first), rest]));
    }
    let items = seq(m, "split-at", args, 1)?;
    Ok(split(items, n))
}

/// Returns a pair of the first `n` items and the others.
pub(super) fn split(items: Vector, n: usize) -> Value {
    Value::vector(vec![window(items.clone(), 0, n), window(items, n, usize::MAX)])
}

fn subvec(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    // `subvec` truncates a fractional position, whereas [`count`] would round it up.
    for position in args.iter_mut().skip(1) {
        if let Value::Double(d) = position {
            *position = Value::double(d.get().trunc());
        }
    }
    let start = count(m, "subvec", args, 1)?;
    let end = if args.len() > 2 { count(m, "subvec", args, 2)? } else { usize::MAX };
    if end < start {
        return Err(fault(m, ErrorKind::RuntimeError, "subvec", &format!("the end {end} is before the start {start}")));
    }
    match take(args, 0) {
        Value::Vector(items) => Ok(window(items, start, end.max(start))),
        other => Err(expected(m, "subvec", "a vector", 0, &other)),
    }
}

fn peek(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    match at(args, 0) {
        Value::Nil => Ok(Value::Nil),
        Value::Vector(items) => Ok(items.last().cloned().unwrap_or_default()),
        other => Err(expected(m, "peek", "a vector", 0, other)),
    }
}

fn pop(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    match take(args, 0) {
        Value::Nil => Ok(Value::Nil),
        Value::Vector(mut items) => Ok(if items.pop().is_some() { Value::Vector(items) } else { Value::Nil }),
        other => Err(expected(m, "pop", "a vector", 0, &other)),
    }
}

fn count_of(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if let Value::Str(text) = at(args, 0) {
        locate_graphemes(m, text)?;
    }
    match at(args, 0).len() {
        Some(len) => Ok(Value::Int(len as i64)),
        None => Err(expected(m, "count", "a collection", 0, at(args, 0))),
    }
}

fn bounded_count(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let n = count(m, "bounded-count", args, 0)?;
    if let Value::InfiniteSeq(_) = at(args, 1) {
        return Ok(Value::Int(i64::try_from(n).unwrap_or(i64::MAX)));
    }
    let items = take(args, 1);
    count_of(m, &mut [items])
}

fn to_seq(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if let Value::InfiniteSeq(_) = at(args, 0) {
        return Ok(take(args, 0));
    }
    let items = seq(m, "seq", args, 0)?;
    Ok(if items.is_empty() { Value::Nil } else { Value::Vector(items) })
}

fn not_empty(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let value = take(args, 0);
    let empty = match &value {
        Value::InfiniteSeq(_) => false,
        Value::Str(text) => text.as_str().is_empty(),
        other => match other.len() {
            Some(len) => len == 0,
            None => return Err(expected(m, "not-empty", "a collection", 0, other)),
        },
    };
    Ok(if empty { Value::Nil } else { value })
}
