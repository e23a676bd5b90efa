//! Builtins that process the items of a sequence one by one.

use std::collections::HashSet;

use super::build::{finite_prefixes, items_or_none};
use super::row::rows;
use super::transducer::{all_infinite, staged, transducer};
use crate::Value;
use crate::args::{SeqIter, at, expected, seq, take};
use crate::collection::{Set, Vector};
use crate::infinite::{Cursor, InfiniteSeq, Transducer};
use crate::machine::{Machine, Raised};
use crate::metered::{self, Hasher};

rows! { "clojure.core":
    "map" ["[f]", "[f coll]", "[f c1 c2 & colls]"] map, "The results of f on each item, or on the first items of all collections, the second ones …" { "(map inc [1 2])" => "[2 3]", "(map + [1 2 3] [10 20])" => "[11 22]", "(map :a [{:a 1} {:a 2}])" => "[1 2]" };
    "mapv" ["[f coll]", "[f c1 c2 & colls]"] map, "The same as map." { "(mapv inc [1 2])" => "[2 3]" };
    "map-indexed" ["[f]", "[f coll]"] map_indexed, "The results of f on each index and item." { "(map-indexed vector [:a :b])" => "[[0 :a] [1 :b]]" };
    "mapcat" ["[f]", "[f coll]", "[f c1 c2 & colls]"] mapcat, "The items of all results of f." { "(mapcat (fn [x] [x x]) [1 2])" => "[1 1 2 2]" };
    "filter" ["[pred]", "[pred coll]"] filter, "The items for which pred is true." { "(filter even? [1 2 3 4])" => "[2 4]", "(filter (fn [[k v]] (> v 1)) {:a 1 :b 2})" => "[[:b 2]]" };
    "filterv" ["[pred coll]"] filter, "The same as filter." { "(filterv odd? [1 2 3])" => "[1 3]" };
    "remove" ["[pred]", "[pred coll]"] remove, "The items for which pred is false." { "(remove even? [1 2 3])" => "[1 3]" };
    "keep" ["[f]", "[f coll]"] keep, "The results of f that are not nil." { "(keep :a [{:a 1} {} {:a false}])" => "[1 false]" };
    "keep-indexed" ["[f]", "[f coll]"] keep_indexed, "The results of f on each index and item that are not nil." { "(keep-indexed (fn [i x] (when (odd? i) x)) [:a :b :c :d])" => "[:b :d]" };
    "take-while" ["[pred]", "[pred coll]"] take_while, "The items before the first for which pred is false." { "(take-while pos? [1 2 -1 3])" => "[1 2]" };
    "drop-while" ["[pred]", "[pred coll]"] drop_while, "The items from the first for which pred is false." { "(drop-while pos? [1 2 -1 3])" => "[-1 3]" };
    "split-with" ["[pred coll]"] split_with, "The items before the first for which pred is false, and the others." { "(split-with pos? [1 -1 2])" => "[[1] [-1 2]]" };
    "partition-by" ["[f]", "[f coll]"] partition_by, "Groups of neighbours with the same result of f." { "(partition-by odd? [1 1 2 3])" => "[[1 1] [2] [3]]" };
    "some" ["[pred coll]"] some, "The first true result of pred, or nil." { "(some #{2} [1 2 3])" => "2", "(some even? [1 3])" => "nil" };
    "every?" ["[pred coll]"] every, "Whether pred is true for all items." { "(every? even? [2 4])" => "true" };
    "not-any?" ["[pred coll]"] not_any, "Whether pred is true for no item." { "(not-any? even? [1 3])" => "true" };
    "not-every?" ["[pred coll]"] not_every, "Whether pred is false for some item." { "(not-every? even? [2 3])" => "true" };
    "distinct" ["[]", "[coll]"] distinct, "The items without repetitions, in the order of their first coming." { "(distinct [1 2 1 3])" => "[1 2 3]" };
    "dedupe" ["[]", "[coll]"] dedupe, "The items without repetitions of the one before." { "(dedupe [1 1 2 1])" => "[1 2 1]" };
    "distinct?" ["[x & more]"] is_distinct, "Whether no two arguments are equal." { "(distinct? 1 2 3)" => "true", "(distinct? 1 1)" => "false" };
    "run!" ["[f coll]"] run, "Calls f on each item for its effects; nil." { "(run! println [1 2])" => "nil" };
    "doall" ["[coll]"] doall, "Its argument: nothing is lazy." { "(doall [1])" => "[1]" };
    "dorun" ["[coll]"] dorun, "nil: nothing is lazy." { "(dorun [1])" => "nil" };
    "tree-seq" ["[branch? children root]"] tree_seq, "The nodes of a tree, each before its children." { "(tree-seq vector? seq [1 [2]])" => "[[1 [2]] 1 [2] 2]" };
}

pub(super) mod extensions {
    use super::{distinct_by, rows};
    rows! { "ptc.core":
        "distinct-by" ["[f coll]"] distinct_by, "The first item for each result of f." { "(distinct-by first [[1 :a] [1 :b] [2 :c]])" => "[[1 :a] [2 :c]]" };
    }
}

/// Makes an empty vector with capacity for one result per item.
fn room(walk: &SeqIter) -> Vec<Value> {
    Vec::with_capacity(walk.len())
}

fn map(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if args.len() <= 2 {
        if let Some(done) = staged(m, args, 1, Transducer::Map) {
            return done;
        }
    } else if let Some(cursors) = all_infinite(args, 1) {
        return InfiniteSeq::value(m, Cursor::Zip(take(args, 0), cursors));
    }
    let mut out = Vec::new();
    map_into(m, "map", args, |_, value| {
        out.push(value);
        Ok(())
    })?;
    Ok(Value::vector(out))
}

/// Calls the first argument with the items of the others and passes each result to `each`.
fn map_into(
    m: &mut Machine,
    name: &str,
    args: &mut [Value],
    mut each: impl FnMut(&mut Machine, Value) -> Result<(), Raised>,
) -> Result<(), Raised> {
    let f = take(args, 0);
    if args.len() == 2 {
        let mut walk = SeqIter::finite(m, name, args, 1)?;
        m.charge(walk.len() * crate::args::ITEM)?;
        while let Some(item) = walk.next(m)? {
            let value = m.call_with(&f, [item])?;
            each(m, value)?;
        }
        return Ok(());
    }
    let (colls, shortest) = finite_prefixes(m, name, args, 1)?;
    m.charge((shortest + colls.len()) * crate::args::ITEM)?;
    let mut row = Vec::with_capacity(colls.len());
    for index in 0..shortest {
        m.tick(crate::args::steps(colls.len()))?;
        row.clear();
        row.extend(colls.iter().filter_map(|c| c.get(index).cloned()));
        let value = m.call(&f, &mut row)?;
        each(m, value)?;
    }
    Ok(())
}

fn map_indexed(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if let Some(done) = staged(m, args, 1, |f| Transducer::MapIndexed(f, 0)) {
        return done;
    }
    let mut walk = SeqIter::finite(m, "map-indexed", args, 1)?;
    let mut out = room(&walk);
    while let Some(item) = walk.next(m)? {
        let value = m.call_with(at(args, 0), [Value::Int(out.len() as i64), item])?;
        out.push(value);
    }
    Ok(Value::vector(out))
}

fn mapcat(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if args.len() <= 2 {
        if let Some(done) = staged(m, args, 1, Transducer::Mapcat) {
            return done;
        }
    } else if let Some(cursors) = all_infinite(args, 1) {
        return InfiniteSeq::value(m, Cursor::transformed(Transducer::Cat, Cursor::Zip(take(args, 0), cursors)));
    }
    let mut out = Vector::default();
    map_into(m, "mapcat", args, |m, value| match items_or_none(m, value.clone())? {
        Some(items) => super::build::join(m, &mut out, items),
        None => Err(expected(m, "mapcat", "a function that gives collections", 0, &value)),
    })?;
    Ok(Value::Vector(out))
}

fn select(m: &mut Machine, name: &str, args: &mut [Value], wanted: bool) -> Result<Value, Raised> {
    let mut walk = SeqIter::finite(m, name, args, 1)?;
    let mut out = Vec::new();
    while let Some(item) = walk.next(m)? {
        if m.call_with(at(args, 0), [item.clone()])?.is_truthy() == wanted {
            out.push(item);
        }
    }
    Ok(Value::vector(out))
}

fn filter(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if let Some(done) = staged(m, args, 1, |pred| Transducer::Filter(pred, true)) {
        return done;
    }
    select(m, "filter", args, true)
}

fn remove(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if let Some(done) = staged(m, args, 1, |pred| Transducer::Filter(pred, false)) {
        return done;
    }
    select(m, "remove", args, false)
}

fn keep(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if let Some(done) = staged(m, args, 1, Transducer::Keep) {
        return done;
    }
    let mut walk = SeqIter::finite(m, "keep", args, 1)?;
    let mut out = Vec::new();
    while let Some(item) = walk.next(m)? {
        let value = m.call_with(at(args, 0), [item])?;
        if !value.is_nil() {
            out.push(value);
        }
    }
    Ok(Value::vector(out))
}

fn keep_indexed(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if let Some(done) = staged(m, args, 1, |f| Transducer::KeepIndexed(f, 0)) {
        return done;
    }
    let mut walk = SeqIter::finite(m, "keep-indexed", args, 1)?;
    let mut out = Vec::new();
    let mut index = 0;
    while let Some(item) = walk.next(m)? {
        let value = m.call_with(at(args, 0), [Value::Int(index), item])?;
        index += 1;
        if !value.is_nil() {
            out.push(value);
        }
    }
    Ok(Value::vector(out))
}

/// The number of items before the first one for which the truthiness of the predicate is `stop`.
fn prefix(m: &mut Machine, f: &Value, items: &Vector, stop: bool) -> Result<usize, Raised> {
    for (index, item) in items.iter().enumerate() {
        m.step()?;
        if m.call_with(f, [item.clone()])?.is_truthy() == stop {
            return Ok(index);
        }
    }
    Ok(items.len())
}

fn take_while(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if args.len() == 1 {
        return Ok(transducer(Transducer::TakeWhile(take(args, 0))));
    }
    if let Value::InfiniteSeq(_) = at(args, 1) {
        let (mut walk, mut out) = (SeqIter::any(m, "take-while", args, 1)?, Vec::new());
        while let Some(item) = walk.next(m)? {
            if !m.call(at(args, 0), &mut [item.clone()])?.is_truthy() {
                break;
            }
            out.push(item);
        }
        return Ok(Value::vector(out));
    }
    let mut items = seq(m, "take-while", args, 1)?;
    let end = prefix(m, at(args, 0), &items, false)?;
    items.narrow(0, end);
    Ok(Value::Vector(items))
}

fn drop_while(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if let Some(done) = staged(m, args, 1, |pred| Transducer::DropWhile(Some(pred))) {
        return done;
    }
    let mut items = seq(m, "drop-while", args, 1)?;
    let start = prefix(m, at(args, 0), &items, false)?;
    items.narrow(start, usize::MAX);
    Ok(Value::Vector(items))
}

fn split_with(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if let Value::InfiniteSeq(infinite) = at(args, 1) {
        let rest = Cursor::transformed(Transducer::DropWhile(Some(at(args, 0).clone())), infinite.cursor());
        let rest = InfiniteSeq::value(m, rest)?;
        return Ok(Value::vector(vec![take_while(m, args)?, rest]));
    }
    let items = seq(m, "split-with", args, 1)?;
    let end = prefix(m, at(args, 0), &items, false)?;
    Ok(super::access::split(items, end))
}

fn partition_by(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if let Some(done) = staged(m, args, 1, |f| Transducer::PartitionBy { f, last: None, group: Vec::new() }) {
        return done;
    }
    let items = seq(m, "partition-by", args, 1)?;
    let mut out = Vec::new();
    let mut start = 0;
    let mut before: Option<Value> = None;
    for (index, item) in items.iter().enumerate() {
        m.step()?;
        let value = m.call_with(at(args, 0), [item.clone()])?;
        if before.as_ref().is_some_and(|before| *before != value) {
            let mut group = items.clone();
            group.narrow(start, index);
            out.push(Value::Vector(group));
            start = index;
        }
        before = Some(value);
    }
    if before.is_some() {
        let mut group = items;
        group.narrow(start, usize::MAX);
        out.push(Value::Vector(group));
    }
    Ok(Value::vector(out))
}

fn some(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let mut walk = SeqIter::any(m, "some", args, 1)?;
    while let Some(item) = walk.next(m)? {
        let value = m.call_with(at(args, 0), [item])?;
        if value.is_truthy() {
            return Ok(value);
        }
    }
    Ok(Value::Nil)
}

/// Whether the predicate's truthiness is `truth` for some item.
fn exists(m: &mut Machine, name: &str, args: &mut [Value], truth: bool) -> Result<bool, Raised> {
    let mut walk = SeqIter::any(m, name, args, 1)?;
    while let Some(item) = walk.next(m)? {
        if m.call(at(args, 0), &mut [item])?.is_truthy() == truth {
            return Ok(true);
        }
    }
    Ok(false)
}

fn every(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    exists(m, "every?", args, false).map(|found| Value::bool(!found))
}

fn not_any(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    exists(m, "not-any?", args, true).map(|found| Value::bool(!found))
}

fn not_every(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    exists(m, "not-every?", args, false).map(Value::bool)
}

fn distinct(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if let Some(done) = staged(m, args, 0, |_| Transducer::Distinct(Set::default())) {
        return done;
    }
    let mut walk = SeqIter::finite(m, "distinct", args, 0)?;
    let mut seen: HashSet<Value, Hasher> = HashSet::default();
    let mut out = Vec::new();
    while let Some(item) = walk.next(m)? {
        if metered::insert_seen(m, &mut seen, item.clone())? {
            metered::push(m, &mut out, item)?;
        }
    }
    Ok(Value::vector(out))
}

fn distinct_by(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let mut walk = SeqIter::finite(m, "distinct-by", args, 1)?;
    let f = super::reduce::key_function(args);
    let mut seen: HashSet<Value, Hasher> = HashSet::default();
    let mut out = Vec::new();
    while let Some(item) = walk.next(m)? {
        let key = m.call_with(&f, [item.clone()])?;
        if metered::insert_seen(m, &mut seen, key)? {
            metered::push(m, &mut out, item)?;
        }
    }
    Ok(Value::vector(out))
}

fn dedupe(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if let Some(done) = staged(m, args, 0, |_| Transducer::Dedupe(None)) {
        return done;
    }
    let mut walk = SeqIter::finite(m, "dedupe", args, 0)?;
    let mut out: Vec<Value> = Vec::new();
    while let Some(item) = walk.next(m)? {
        if out.last() != Some(&item) {
            out.push(item);
        }
    }
    Ok(Value::vector(out))
}

fn is_distinct(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let mut seen: HashSet<Value, Hasher> = HashSet::default();
    for arg in args.iter_mut() {
        m.step()?;
        if !metered::insert_seen(m, &mut seen, std::mem::take(arg))? {
            return Ok(Value::False);
        }
    }
    Ok(Value::True)
}

fn run(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let mut walk = SeqIter::any(m, "run!", args, 1)?;
    while let Some(item) = walk.next(m)? {
        m.call_with(at(args, 0), [item])?;
    }
    Ok(Value::Nil)
}

fn doall(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    has_items(m, "doall", args)?;
    Ok(take(args, 0))
}

fn dorun(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    has_items(m, "dorun", args)?;
    Ok(Value::Nil)
}

/// Raises a fault if the first argument is not a collection.
fn has_items(m: &mut Machine, name: &str, args: &[Value]) -> Result<(), Raised> {
    match at(args, 0) {
        Value::InfiniteSeq(_) => Ok(()),
        coll if coll.len().is_some() => Ok(()),
        other => Err(expected(m, name, "a collection", 0, other)),
    }
}

fn tree_seq(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let mut out = Vec::new();
    let mut open = vec![SeqIter::from_vector(Vector::from(vec![take(args, 2)]))];
    while let Some(walk) = open.last_mut() {
        let Some(node) = walk.next(m)? else {
            open.pop();
            continue;
        };
        out.push(node.clone());
        if m.call_with(at(args, 0), [node.clone()])?.is_truthy() {
            let children = m.call_with(at(args, 1), [node])?;
            match items_or_none(m, children.clone())? {
                Some(items) => open.push(SeqIter::from_vector(items)),
                None => return Err(expected(m, "tree-seq", "a function that gives collections", 1, &children)),
            }
        }
    }
    Ok(Value::vector(out))
}
