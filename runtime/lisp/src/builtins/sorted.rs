//! Clojure's functions for sorted maps and sets. Here all maps and sets are sorted in the natural order of all values and in no
//! other order.

use super::row::rows;
use super::transducer::function;
use crate::args::{ITEM, at, expected, take};
use crate::collection::Vector;
use crate::machine::{Machine, Raised};
use crate::metered;
use crate::{ErrorKind, Value};

rows! { "clojure.core":
    "sorted-map-by" ["[comp & kvs]"] sorted_map_by, "A map of alternating keys and values; comp must order the keys as every map does, as compare and < do." { "(sorted-map-by compare :b 2 :a 1)" => "{:a 1 :b 2}" };
    "sorted-set-by" ["[comp & xs]"] sorted_set_by, "A set of the arguments; comp must order them as every set does, as compare and < do." { "(sorted-set-by < 3 1 2)" => "#{1 2 3}" };
    "subseq" ["[coll test key]", "[coll start-test start end-test end]"] subseq, "The members of a set or entries of a map whose key compares so, in order; a test is <, <=, > or >=." { "(subseq #{1 2 3 4} > 2)" => "[3 4]", "(subseq {1 :a 2 :b 3 :c} >= 2 < 3)" => "[[2 :b]]" };
    "rsubseq" ["[coll test key]", "[coll start-test start end-test end]"] rsubseq, "The same as subseq, from last to first." { "(rsubseq #{1 2 3 4} <= 3)" => "[3 2 1]" };
    "comparator" ["[pred]"] comparator, "A function of two values for sort: -1 where pred is true, 1 where it is true the other way round, else 0." { "(sort (comparator >) [1 3 2])" => "[3 2 1]", "((comparator <) 1 2)" => "-1" };
}

/// Checks that a comparator agrees with the order of the keys, which are sorted.
fn check_order(m: &mut Machine, name: &str, by: &Value, keys: &[Value]) -> Result<(), Raised> {
    if let Value::Builtin(row) = by
        && row.namespace == "clojure.core"
        && matches!(row.name, "compare" | "<")
    {
        return Ok(());
    }
    let mut agrees = keys.len() > 1;
    for pair in keys.windows(2) {
        let [a, b] = pair else { continue };
        agrees &= match m.call(by, &mut [a.clone(), b.clone()])? {
            Value::Int(order) => order < 0,
            other => other.is_truthy(),
        };
    }
    if agrees {
        return Ok(());
    }
    let message = format!("({name} …): every map and set is sorted in the order of compare, and in no other");
    Err(m.raise_with_hint(ErrorKind::TypeError, message, "sort the entries where the order counts: (sort-by key > m)"))
}

fn sorted_map_by(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if args.len().is_multiple_of(2) {
        return Err(super::build::unpaired(m, "sorted-map-by", args.len() - 1));
    }
    let made = m.call(&function("hash-map"), args.get_mut(1..).unwrap_or_default())?;
    let keys: Vec<Value> = made.entries().into_iter().flatten().map(|(key, _)| key.clone()).collect();
    check_order(m, "sorted-map-by", at(args, 0), &keys)?;
    Ok(made)
}

fn sorted_set_by(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let made = m.call(&function("hash-set"), args.get_mut(1..).unwrap_or_default())?;
    let keys: Vec<Value> = made.items().into_iter().flatten().cloned().collect();
    check_order(m, "sorted-set-by", at(args, 0), &keys)?;
    Ok(made)
}

/// Returns the members or entries whose keys pass all tests.
fn selected(m: &mut Machine, name: &str, args: &mut [Value]) -> Result<Vector, Raised> {
    if args.len() == 4 {
        let message = format!("{name} takes 3 or 5 arguments, got 4");
        return Err(m.raise(ErrorKind::ArityError, message));
    }
    let pairs: Vec<(Value, Value)> = match take(args, 0) {
        Value::Nil => Vec::new(),
        Value::Map(map) => {
            m.charge(map.len() * 10 * ITEM)?;
            metered::entries(m, map)?.into_iter().map(|(k, v)| (k.clone(), Value::pair(k, v))).collect()
        }
        Value::Set(set) => {
            m.charge(set.len() * 2 * ITEM)?;
            metered::members(m, set)?.into_iter().map(|member| (member.clone(), member)).collect()
        }
        other => return Err(expected(m, name, "a map or set", 0, &other)),
    };
    let mut out = Vec::new();
    for (key, item) in pairs {
        m.step()?;
        let mut passes = true;
        for test in args.get(1..).unwrap_or_default().chunks(2) {
            let [test, bound] = test else { continue };
            let order = Value::Int(crate::order::compare(&key, bound) as i64);
            passes = passes && m.call(test, &mut [order, Value::Int(0)])?.is_truthy();
        }
        if passes {
            out.push(item);
        }
    }
    Ok(out.into())
}

fn subseq(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let found = selected(m, "subseq", args)?;
    Ok(if found.is_empty() { Value::Nil } else { Value::Vector(found) })
}

fn rsubseq(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let mut found = selected(m, "rsubseq", args)?.into_vec();
    found.reverse();
    Ok(if found.is_empty() { Value::Nil } else { Value::vector(found) })
}

fn comparator(_: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(super::Composed::value(super::Combinator::Comparator, vec![take(args, 0)]))
}
