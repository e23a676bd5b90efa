//! Builtins that make collections from values and from other collections.

use super::row::rows;
use super::transducer::{all_infinite, changed, function, run, staged, transducer};
use crate::args::{ITEM, SeqIter, at, copy_first, count, expected, fault, seq, seq_of, sequential, steps, take};
use crate::collection::{Map, Set, Vector};
use crate::infinite::{Cursor, InfiniteSeq, Transducer};
use crate::machine::{Machine, Raised};
use crate::metered;
use crate::{ErrorKind, Value};

rows! { "clojure.core":
    "vector" ["[& xs]"] vector, "A vector of the arguments." { "(vector 1 2)" => "[1 2]" };
    "list" ["[& xs]"] vector, "A vector of the arguments: every finite sequence is a vector." { "(list 1 2)" => "[1 2]" };
    "list*" ["[x & more]"] list_star, "The arguments before the items of the last one; nil if there are none." { "(list* 1 2 [3 4])" => "[1 2 3 4]" };
    "vec" ["[coll]"] vec, "The items as a vector." { "(vec #{1 2})" => "[1 2]", "(vec nil)" => "[]" };
    "hash-set" ["[& xs]"] hash_set, "A set of the arguments." { "(hash-set 1 1 2)" => "#{1 2}" };
    "set" ["[coll]"] set, "The items as a set." { "(set [1 2 2])" => "#{1 2}" };
    "hash-map" ["[& kvs]"] hash_map, "A map of alternating keys and values." { "(hash-map :a 1 :b 2)" => "{:a 1 :b 2}" };
    "array-map" ["[& kvs]"] hash_map, "A map of alternating keys and values." { "(array-map :a 1)" => "{:a 1}" };
    "sorted-map" ["[& kvs]"] hash_map, "A map of alternating keys and values: every map is sorted by key." { "(sorted-map :b 2 :a 1)" => "{:a 1 :b 2}" };
    "sorted-set" ["[& xs]"] hash_set, "A set of the arguments: every set is sorted." { "(sorted-set 2 1)" => "#{1 2}" };
    "conj" ["[]", "[coll & xs]"] conj, "coll with items added: at the end of a vector, [k v] or a map into a map." { "(conj [1 2] 3)" => "[1 2 3]", "(conj {:a 1} [:b 2])" => "{:a 1 :b 2}", "(conj #{1} 2)" => "#{1 2}" };
    "cons" ["[x coll]"] cons, "x before the items of coll." { "(cons 1 [2 3])" => "[1 2 3]" };
    "concat" ["[& colls]"] concat, "The items of all collections, one after the other." { "(concat [1] [2 3])" => "[1 2 3]" };
    "into" ["[]", "[to]", "[to from]", "[to xform from]"] into, "to with all items of from added, as the transducer xform gives them." { "(into [] (map inc) [1 2])" => "[2 3]", "(into {} [[:a 1]])" => "{:a 1}", "(into [] {:a 1})" => "[[:a 1]]", "(into #{} [1 1])" => "#{1}" };
    "empty" ["[coll]"] empty, "An empty collection of the same kind." { "(empty {:a 1})" => "{}" };
    "interleave" ["[& colls]"] interleave, "The first item of each collection, then the second of each, until the shortest collection ends." { "(interleave [1 2] [:a :b])" => "[1 :a 2 :b]" };
    "interpose" ["[sep]", "[sep coll]"] interpose, "The items with sep between them." { "(interpose 0 [1 2 3])" => "[1 0 2 0 3]" };
    "flatten" ["[coll]"] flatten, "The items of nested vectors, in one vector." { "(flatten [1 [2 [3]]])" => "[1 2 3]", "(flatten nil)" => "[]" };
    "reverse" ["[coll]"] reverse, "The items from last to first." { "(reverse [1 2 3])" => "[3 2 1]" };
    "rseq" ["[coll]"] rseq, "The items from last to first; nil if there are none." { "(rseq [1 2])" => "[2 1]" };
    "partition" ["[n coll]", "[n step coll]", "[n step pad coll]"] partition, "Groups of n items that begin every step items; incomplete ones are dropped, or filled from pad." { "(partition 2 [1 2 3 4 5])" => "[[1 2] [3 4]]", "(partition 2 1 [1 2 3])" => "[[1 2] [2 3]]", "(partition 3 3 [0] [1 2 3 4 5])" => "[[1 2 3] [4 5 0]]" };
    "partition-all" ["[n]", "[n coll]", "[n step coll]"] partition_all, "Groups of n items that begin every step items, incomplete ones too." { "(partition-all 2 [1 2 3])" => "[[1 2] [3]]" };
}

pub(super) mod extensions {
    use super::{combinations, rows, zip};
    rows! { "ptc.core":
        "zip" ["[c1 c2 & colls]"] zip, "Vectors of the items at the same position, until the shortest collection ends." { "(zip [1 2] [:a :b])" => "[[1 :a] [2 :b]]" };
        "combinations" ["[coll n]"] combinations, "Every choice of n items, in order." { "(combinations [1 2 3] 2)" => "[[1 2] [1 3] [2 3]]", "(combinations [1 2] 0)" => "[[]]" };
    }
}

/// Moves out the arguments from `from` on.
fn take_from(args: &mut [Value], from: usize) -> Vec<Value> {
    args.iter_mut().skip(from).map(std::mem::take).collect()
}

fn vector(_: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(Value::vector(take_from(args, 0)))
}

fn list_star(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let last = args.len() - 1;
    let tail = seq(m, "list*", args, last)?;
    m.tick(steps(tail.len()))?;
    let mut items = take_from(args, 0);
    items.pop();
    items.extend(tail);
    Ok(if items.is_empty() { Value::Nil } else { Value::vector(items) })
}

fn vec(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(Value::Vector(seq(m, "vec", args, 0)?))
}

fn hash_set(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    metered::set(m, take_from(args, 0)).map(Value::Set)
}

fn set(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if let Value::Set(_) = at(args, 0) {
        return Ok(take(args, 0));
    }
    let items = seq(m, "set", args, 0)?;
    m.charge(items.len() * ITEM)?;
    metered::set(m, items.into_vec()).map(Value::Set)
}

/// Raises a fault for an odd number `count` of arguments, where keys lack values.
#[cold]
pub(super) fn unpaired(m: &mut Machine, name: &str, count: usize) -> Raised {
    let text = format!("keys and values alternate, but they are {count} in number");
    let raised = fault(m, ErrorKind::ArityError, name, &text);
    m.advise(
        raised,
        "give every key a value; (into {} pairs) makes a map of [key value] pairs, (zipmap keys values) of two collections",
    )
}

fn hash_map(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if args.len() % 2 == 1 {
        return Err(unpaired(m, "hash-map", args.len()));
    }
    let pairs = args.chunks_exact_mut(2).map(|pair| (take(pair, 0), take(pair, 1))).collect();
    metered::map(m, pairs).map(Value::Map)
}

/// Adds one item to a map: an entry, or all entries of another map.
fn conj_entry(m: &mut Machine, name: &str, map: &mut Map, index: usize, item: Value) -> Result<(), Raised> {
    match item {
        Value::Nil => {}
        Value::Map(other) => {
            for (k, v) in metered::entries(m, other)? {
                m.step()?;
                map.put(k, v);
            }
        }
        Value::Vector(mut pair) if pair.len() == 2 => {
            let (k, v) = (pair.take(0).unwrap_or_default(), pair.take(1).unwrap_or_default());
            map.put(k, v);
        }
        other => return Err(expected(m, name, "[key value] or a map to add to a map", index, &other)),
    }
    Ok(())
}

fn conj(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    match take(args, 0) {
        Value::Nil if args.len() < 2 => Ok(if args.is_empty() { Value::vector(Vec::new()) } else { Value::Nil }),
        Value::Nil => Ok(Value::vector(take_from(args, 1))),
        Value::Vector(mut items) => {
            copy_first(m, &mut items)?;
            for item in args.iter_mut().skip(1) {
                items.push(std::mem::take(item));
            }
            Ok(Value::Vector(items))
        }
        Value::Set(mut set) => {
            for item in args.iter_mut().skip(1) {
                m.step()?;
                set.insert(std::mem::take(item));
            }
            Ok(Value::Set(set))
        }
        Value::Map(mut map) => {
            for (index, item) in args.iter_mut().enumerate().skip(1) {
                m.step()?;
                conj_entry(m, "conj", &mut map, index, std::mem::take(item))?;
            }
            Ok(Value::Map(map))
        }
        other => Err(expected(m, "conj", "a collection", 0, &other)),
    }
}

fn cons(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if let Value::InfiniteSeq(rest) = at(args, 1) {
        let rest = Box::new(rest.cursor());
        return InfiniteSeq::value(m, Cursor::After(vec![take(args, 0)].into(), 0, rest));
    }
    let mut items = seq(m, "cons", args, 1)?;
    copy_first(m, &mut items)?;
    items.push_front(take(args, 0));
    Ok(Value::Vector(items))
}

fn concat(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let mut out = Vector::default();
    for index in 0..args.len() {
        if let Value::InfiniteSeq(rest) = at(args, index) {
            let rest = Box::new(rest.cursor());
            return InfiniteSeq::value(m, Cursor::After(out, 0, rest));
        }
        let items = seq(m, "concat", args, index)?;
        join(m, &mut out, items)?;
    }
    Ok(Value::Vector(out))
}

/// Appends the items of `more` to `out`.
pub(super) fn join(m: &mut Machine, out: &mut Vector, more: Vector) -> Result<(), Raised> {
    if out.is_empty() {
        *out = more;
        return Ok(());
    }
    m.tick(steps(more.len()))?;
    m.charge(more.len() * ITEM)?;
    out.extend(more);
    Ok(())
}

fn into(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    match args.len() {
        0 => return Ok(Value::vector(Vec::new())),
        1 => return Ok(take(args, 0)),
        2 => {}
        _ => {
            let walk = SeqIter::any(m, "into", args, 2)?;
            return run(m, &take(args, 1), function("conj"), take(args, 0), walk);
        }
    }
    let target = take(args, 0);
    if let (Value::Map(map), Value::Map(_)) = (&target, at(args, 1))
        && map.is_empty()
    {
        return Ok(take(args, 1));
    }
    let from = seq(m, "into", args, 1)?;
    m.charge(from.len() * ITEM)?;
    match target {
        Value::Nil if from.is_empty() => Ok(Value::Nil),
        Value::Nil => Ok(Value::Vector(from)),
        Value::Vector(mut out) => {
            join(m, &mut out, from)?;
            Ok(Value::Vector(out))
        }
        Value::Set(mut set) => {
            if set.is_empty() {
                return metered::set(m, from.into_vec()).map(Value::Set);
            }
            for item in from {
                m.step()?;
                set.insert(item);
            }
            Ok(Value::Set(set))
        }
        Value::Map(mut map) => {
            let mut walk = SeqIter::from_vector(from);
            if map.is_empty() && walk.len() > 24 {
                // Building the map at once is several times as fast as inserting entries one by one.
                let mut entries = Vec::with_capacity(walk.len());
                let mut rest = Map::default();
                while let Some(item) = walk.next(m)? {
                    match item {
                        Value::Vector(mut pair) if pair.len() == 2 && rest.is_empty() => {
                            entries.push((pair.take(0).unwrap_or_default(), pair.take(1).unwrap_or_default()));
                        }
                        other => {
                            if rest.is_empty() {
                                rest = metered::map(m, std::mem::take(&mut entries))?;
                            }
                            conj_entry(m, "into", &mut rest, 1, other)?;
                        }
                    }
                }
                return Ok(Value::Map(if rest.is_empty() { metered::map(m, entries)? } else { rest }));
            }
            while let Some(item) = walk.next(m)? {
                conj_entry(m, "into", &mut map, 1, item)?;
            }
            Ok(Value::Map(map))
        }
        other => Err(expected(m, "into", "a collection", 0, &other)),
    }
}

fn empty(_: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(match at(args, 0) {
        Value::Vector(_) => Value::vector(Vec::new()),
        Value::Map(_) => Value::Map(Map::default()),
        Value::Set(_) => Value::Set(Set::default()),
        _ => Value::Nil,
    })
}

/// Returns the arguments from `from` on as vectors, and the length of the shortest finite one. Of an infinite sequence, that many
/// items are taken. Raises if all are infinite.
pub(super) fn finite_prefixes(
    m: &mut Machine,
    name: &str,
    args: &mut [Value],
    from: usize,
) -> Result<(Vec<Vector>, usize), Raised> {
    let mut colls = Vec::with_capacity(args.len());
    let infinite = args.iter().skip(from).filter(|arg| matches!(arg, Value::InfiniteSeq(_))).count();
    for index in from..args.len() {
        let take_later = infinite < args.len() - from && matches!(at(args, index), Value::InfiniteSeq(_));
        colls.push(if take_later { Vector::default() } else { seq(m, name, args, index)? });
    }
    let finite = colls.iter().zip(args.iter().skip(from)).filter(|(_, arg)| !matches!(arg, Value::InfiniteSeq(_)));
    let shortest = finite.map(|(coll, _)| coll.len()).min().unwrap_or(0);
    for (coll, arg) in colls.iter_mut().zip(args.iter().skip(from)) {
        if let Value::InfiniteSeq(infinite) = arg {
            *coll = infinite.take(m, shortest)?.into();
        }
    }
    Ok((colls, shortest))
}

fn interleave(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    for index in 0..args.len() {
        if let Value::Map(_) = at(args, index) {
            return sequential(m, "interleave", args, index).map(Value::Vector);
        }
    }
    if let Some(cursors) = all_infinite(args, 0) {
        return InfiniteSeq::value(m, Cursor::transformed(Transducer::Cat, Cursor::Zip(function("vector"), cursors)));
    }
    let (colls, shortest) = finite_prefixes(m, "interleave", args, 0)?;
    m.charge(shortest.saturating_mul(colls.len()) * ITEM)?;
    m.tick(steps(shortest.saturating_mul(colls.len())))?;
    let items = (0..shortest).flat_map(|at| colls.iter().filter_map(move |c| c.get(at).cloned()));
    Ok(Value::vector(items.collect()))
}

fn zip(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if let Some(cursors) = all_infinite(args, 0) {
        return InfiniteSeq::value(m, Cursor::Zip(function("vector"), cursors));
    }
    let (colls, shortest) = finite_prefixes(m, "zip", args, 0)?;
    m.charge(shortest.saturating_mul(colls.len() * ITEM + 64))?;
    m.tick(steps(shortest.saturating_mul(colls.len())))?;
    let rows = (0..shortest).map(|at| Value::vector(colls.iter().filter_map(|c| c.get(at).cloned()).collect()));
    Ok(Value::vector(rows.collect()))
}

fn interpose(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if let Some(done) = staged(m, args, 1, |separator| Transducer::Interpose(separator, false)) {
        return done;
    }
    let items = sequential(m, "interpose", args, 1)?;
    let separator = take(args, 0);
    m.charge(items.len() * 2 * ITEM)?;
    m.tick(steps(items.len()))?;
    let mut out = Vec::with_capacity(items.len() * 2);
    for item in items {
        if !out.is_empty() {
            out.push(separator.clone());
        }
        out.push(item);
    }
    Ok(Value::vector(out))
}

fn flatten(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let items = match take(args, 0) {
        Value::Vector(items) => items,
        infinite @ Value::InfiniteSeq(_) => return Err(expected(m, "flatten", "a collection", 0, &infinite)),
        _ => return Ok(Value::vector(Vec::new())),
    };
    let mut out = Vec::new();
    let mut open = vec![SeqIter::from_vector(items)];
    while let Some(walk) = open.last_mut() {
        match walk.next(m)? {
            Some(Value::Vector(inner)) => open.push(SeqIter::from_vector(inner)),
            Some(item) => {
                if out.len() == out.capacity() {
                    m.charge(out.len() * ITEM)?;
                }
                out.push(item);
            }
            None => {
                open.pop();
            }
        }
    }
    Ok(Value::vector(out))
}

fn reverse(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let items = sequential(m, "reverse", args, 0)?;
    m.charge(items.len() * ITEM)?;
    m.tick(steps(items.len()))?;
    let mut items = items.into_vec();
    items.reverse();
    Ok(Value::vector(items))
}

fn rseq(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if let Value::Set(_) = at(args, 0) {
        return Err(expected(m, "rseq", "a vector or string", 0, at(args, 0)));
    }
    match reverse(m, args)? {
        Value::Vector(items) if items.is_empty() => Ok(Value::Nil),
        items => Ok(items),
    }
}

/// Returns an argument that is a group size or a step. It must be at least 1.
fn at_least_one(m: &mut Machine, name: &str, args: &[Value], index: usize) -> Result<usize, Raised> {
    match count(m, name, args, index)? {
        0 => Err(expected(m, name, "a positive number of items", index, at(args, index))),
        n => Ok(n),
    }
}

fn groups(m: &mut Machine, items: &Vector, n: usize, step: usize, incomplete: bool) -> Result<Vec<Value>, Raised> {
    let mut out = Vec::new();
    let mut from = 0;
    while from < items.len() && (incomplete || items.len() - from >= n) {
        m.tick(1)?;
        let mut group = items.clone();
        group.narrow(from, from.saturating_add(n));
        metered::push(m, &mut out, Value::Vector(group))?;
        from = from.saturating_add(step);
    }
    Ok(out)
}

fn grouping(n: usize, step: usize, all: bool) -> Transducer {
    Transducer::Partition { n, step, skip: 0, group: std::collections::VecDeque::new(), all }
}

fn partition(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let n = at_least_one(m, "partition", args, 0)?;
    let step = if args.len() > 2 { at_least_one(m, "partition", args, 1)? } else { n };
    let last = args.len() - 1;
    if let Some(changed) = changed(m, args, last, grouping(n, step, false)) {
        return changed;
    }
    let items = seq(m, "partition", args, last)?;
    let mut out = groups(m, &items, n, step, false)?;
    let from = out.len().saturating_mul(step);
    if args.len() == 4 && from < items.len() {
        let mut group = items.clone();
        group.narrow(from, usize::MAX);
        let missing = n - group.len();
        let mut pad = seq(m, "partition", args, 2)?;
        pad.narrow(0, missing);
        group.extend(pad);
        out.push(Value::Vector(group));
    }
    Ok(Value::vector(out))
}

fn partition_all(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let n = at_least_one(m, "partition-all", args, 0)?;
    let step = if args.len() > 2 { at_least_one(m, "partition-all", args, 1)? } else { n };
    let last = args.len() - 1;
    if last == 0 {
        return Ok(transducer(grouping(n, n, true)));
    }
    if let Some(changed) = changed(m, args, last, grouping(n, step, true)) {
        return changed;
    }
    let items = seq(m, "partition-all", args, last)?;
    groups(m, &items, n, step, true).map(Value::vector)
}

fn combinations(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let n = count(m, "combinations", args, 1)?;
    let items = seq(m, "combinations", args, 0)?;
    let items: Vec<&Value> = items.iter().collect();
    let mut out = Vec::new();
    if n > items.len() {
        return Ok(Value::vector(out));
    }
    let mut picks: Vec<usize> = (0..n).collect();
    loop {
        m.tick(steps(n + 1))?;
        m.charge(n * ITEM + 80)?;
        out.push(Value::vector(picks.iter().filter_map(|&at| items.get(at).copied().cloned()).collect()));
        // The last pick that can still advance. The picks after it restart directly behind it.
        let Some(moving) = (0..n).rev().find(|&i| picks.get(i).is_some_and(|&p| p < items.len() - n + i)) else {
            return Ok(Value::vector(out));
        };
        let next = picks.get(moving).map_or(0, |p| p + 1);
        for (pick, place) in picks.iter_mut().skip(moving).zip(next..) {
            *pick = place;
        }
    }
}

/// Returns the items of any value, or `None` if it has no items.
pub(super) fn items_or_none(m: &mut Machine, value: Value) -> Result<Option<Vector>, Raised> {
    Ok(seq_of(m, value)?.ok())
}
