//! Builtins that fold sequences into one value: reductions, groups and sums.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::row::rows;
use crate::args::{ITEM, SeqIter, at, describe, expected, take};
use crate::collection::NameKinds;
use crate::infinite::{Cursor, InfiniteSeq};
use crate::machine::{Machine, Raised};
use crate::metered::{self, Hasher};
use crate::{ErrorKind, Value, number, order};

rows! { "clojure.core":
    "reduce" ["[f coll]", "[f init coll]"] reduce, "f of a total and each item in turn; (reduced x) ends it early." { "(reduce + [1 2 3])" => "6", "(reduce conj [] [1 2])" => "[1 2]", "(reduce + [])" => "0" };
    "reductions" ["[f coll]", "[f init coll]"] reductions, "All totals of a reduce." { "(reductions + [1 2 3])" => "[1 3 6]" };
    "reduce-kv" ["[f init coll]"] reduce_kv, "reduce with f taking total, key and value; the keys of a vector are its indices." { "(reduce-kv (fn [t k v] (+ t v)) 0 {:a 1 :b 2})" => "3" };
    "group-by" ["[f coll]"] group_by, "A map from each result of f to the items that gave it." { "(group-by odd? [1 2 3])" => "{false [2] true [1 3]}" };
    "frequencies" ["[coll]"] frequencies, "A map from each item to the number of times it comes." { "(frequencies [:a :b :a])" => "{:a 2 :b 1}" };
    "max-key" ["[f x & more]"] max_key, "The argument with the greatest result of f, the last of several." { "(max-key count \"a\" \"abc\")" => "\"abc\"" };
    "min-key" ["[f x & more]"] min_key, "The argument with the least result of f, the last of several." { "(min-key count \"abc\" \"a\")" => "\"a\"" };
}

pub(super) mod extensions {
    use super::{avg, avg_by, max_by, min_by, rows, sum, sum_by};
    rows! { "ptc.core":
        "sum" ["[coll]"] sum, "The sum of the numbers; nil items are left out." { "(sum [1 2 3])" => "6", "(sum [])" => "0" };
        "avg" ["[coll]"] avg, "The mean of the numbers, a double; nil items are left out; nil if there are none." { "(avg [1 2])" => "1.5", "(avg [])" => "nil" };
        "sum-by" ["[f coll]"] sum_by, "The sum of the results of f; nil ones are left out. f may be a key." { "(sum-by :n [{:n 1} {:n 2} {}])" => "3" };
        "avg-by" ["[f coll]"] avg_by, "The mean of the results of f; nil ones are left out." { "(avg-by :n [{:n 1} {:n 2} {}])" => "1.5" };
        "min-by" ["[f coll]", "[f x y & more]"] min_by, "The first item with the least result of f that is not nil." { "(min-by :n [{:n 2} {:n 1} {}])" => "{:n 1}" };
        "max-by" ["[f coll]", "[f x y & more]"] max_by, "The first item with the greatest result of f that is not nil." { "(max-by :n [{:n 2} {:n 3} {}])" => "{:n 3}" };
    }
}

/// Takes the function from the first argument. A string becomes the function that looks it up.
pub(super) fn key_function(args: &mut [Value]) -> Value {
    match take(args, 0) {
        // A keyword finds string keys as well.
        Value::Str(name) => Value::Keyword(name),
        f => f,
    }
}

/// `Err(x)` if a total is the `(reduced x)` that ends a reduction.
fn ended(total: Value) -> Result<Value, Value> {
    match &total {
        Value::Composed(made) => match made.reduced() {
            Some(value) => Err(value.clone()),
            None => Ok(total),
        },
        _ => Ok(total),
    }
}

fn reduce(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let last = args.len() - 1;
    let mut walk = SeqIter::any(m, "reduce", args, last)?;
    let f = take(args, 0);
    let mut total = if last == 2 {
        take(args, 1)
    } else {
        let Some(first) = walk.next(m)? else {
            let empty = "the collection is empty: give a value to begin with, as in (reduce max 0 xs)";
            return m.call_with(&f, []).map_err(|raised| m.advise_empty(raised, empty));
        };
        first
    };
    while let Some(item) = walk.next(m)? {
        total = match ended(m.call_with(&f, [total, item])?) {
            Ok(total) => total,
            Err(value) => return Ok(value),
        };
    }
    Ok(total)
}

fn reductions(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let last = args.len() - 1;
    if let Value::InfiniteSeq(input) = at(args, last) {
        let input = Box::new(input.cursor());
        let first = if last == 2 { Some(take(args, 1)) } else { None };
        return InfiniteSeq::value(m, Cursor::Reductions { f: take(args, 0), first, last: None, input });
    }
    let mut walk = SeqIter::finite(m, "reductions", args, last)?;
    let f = take(args, 0);
    let mut total = if last == 2 {
        take(args, 1)
    } else {
        match walk.next(m)? {
            Some(first) => first,
            None => return Ok(Value::vector(vec![m.call_with(&f, [])?])),
        }
    };
    let mut out = vec![total.clone()];
    while let Some(item) = walk.next(m)? {
        total = match ended(m.call_with(&f, [total, item])?) {
            Ok(total) => total,
            Err(value) => {
                out.push(value);
                break;
            }
        };
        out.push(total.clone());
    }
    Ok(Value::vector(out))
}

fn reduce_kv(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let f = take(args, 0);
    let mut total = take(args, 1);
    let mut each = |m: &mut Machine, key: Value, value: Value| {
        m.step()?;
        let result = ended(m.call_with(&f, [std::mem::take(&mut total), key, value])?);
        let goes_on = result.is_ok();
        total = result.unwrap_or_else(|value| value);
        Ok(goes_on)
    };
    match take(args, 2) {
        Value::Nil => {}
        Value::Map(map) => {
            for (key, value) in metered::entries(m, map)? {
                if !each(m, key, value)? {
                    break;
                }
            }
        }
        Value::Vector(items) => {
            for (index, value) in (0..).zip(items) {
                if !each(m, Value::Int(index), value)? {
                    break;
                }
            }
        }
        other => return Err(expected(m, "reduce-kv", "a map or vector", 2, &other)),
    }
    Ok(total)
}

fn group_by(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let mut walk = SeqIter::finite(m, "group-by", args, 1)?;
    let f = key_function(args);
    let mut places: HashMap<Value, usize, Hasher> = HashMap::default();
    let mut groups: Vec<(Value, Vec<Value>)> = Vec::new();
    let mut names = NameKinds::default();
    while let Some(item) = walk.next(m)? {
        let key = m.call_with(&f, [item.clone()])?;
        let key = metered::held_key(&places, &mut names, key);
        metered::room_for_key(m, &places)?;
        match places.entry(key) {
            Entry::Occupied(place) => {
                if let Some((_, group)) = groups.get_mut(*place.get()) {
                    metered::push(m, group, item)?;
                }
            }
            Entry::Vacant(place) => {
                metered::push(m, &mut groups, (place.key().clone(), vec![item]))?;
                place.insert(groups.len() - 1);
            }
        }
    }
    drop(places);
    // A vector has a header in addition to its items.
    m.charge(groups.len() * 4 * ITEM)?;
    let groups = groups.into_iter().map(|(key, group)| (key, Value::vector(group))).collect();
    Ok(Value::Map(metered::map_of_exact_keys(m, groups)?))
}

fn frequencies(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let mut walk = SeqIter::finite(m, "frequencies", args, 0)?;
    // Capacity for many distinct items, limited for small inputs.
    let mut places: HashMap<Value, usize, Hasher> =
        HashMap::with_capacity_and_hasher((walk.len() / 8).min(4096), Hasher::default());
    let mut counts: Vec<i64> = Vec::new();
    let mut names = NameKinds::default();
    while let Some(item) = walk.next(m)? {
        let item = metered::held_key(&places, &mut names, item);
        metered::room_for_key(m, &places)?;
        match places.entry(item) {
            Entry::Occupied(place) => {
                if let Some(count) = counts.get_mut(*place.get()) {
                    *count += 1;
                }
            }
            Entry::Vacant(place) => {
                place.insert(counts.len());
                metered::push(m, &mut counts, 1)?;
            }
        }
    }
    let total = |(item, place): (Value, usize)| (item, Value::Int(counts.get(place).copied().unwrap_or(0)));
    // The resulting map is sorted, so that the order of the hash table is not observable.
    m.charge(places.len() * 2 * ITEM)?;
    let totals = places.into_iter().map(total).collect();
    Ok(Value::Map(metered::map_of_exact_keys(m, totals)?))
}

fn best_key(m: &mut Machine, args: &mut [Value], better: fn(std::cmp::Ordering) -> bool) -> Result<Value, Raised> {
    if args.len() == 2 {
        return Ok(take(args, 1));
    }
    let mut best: Option<(Value, Value)> = None;
    let f = take(args, 0);
    for arg in args.iter_mut().skip(1) {
        m.step()?;
        let key = m.call_with(&f, [arg.clone()])?;
        if best.as_ref().is_none_or(|(_, other)| better(order::compare(&key, other))) {
            best = Some((std::mem::take(arg), key));
        }
    }
    Ok(best.map(|(value, _)| value).unwrap_or_default())
}

fn max_key(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    best_key(m, args, std::cmp::Ordering::is_ge)
}

fn min_key(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    best_key(m, args, std::cmp::Ordering::is_le)
}

const NOT_A_NUMBER: &str = "nil is left out; read numbers out of texts first, as in (sum-by #(parse-double (:n %)) xs)";

/// Returns the sum and the number of the values that are not nil. The values are the items, or the results of `f` for them.
fn total(m: &mut Machine, name: &str, args: &mut [Value], f: Option<&Value>) -> Result<(Value, usize), Raised> {
    let last = args.len() - 1;
    let mut walk = SeqIter::finite(m, name, args, last)?;
    let (mut total, mut count) = (Value::Int(0), 0);
    while let Some(item) = walk.next(m)? {
        let value = match f {
            Some(f) => m.call_with(f, [item])?,
            None => item,
        };
        match value {
            Value::Nil => {}
            Value::Int(_) | Value::Double(_) | Value::BigInt(_) => {
                total = number::add(&total, &value);
                count += 1;
            }
            other => {
                let text = format!("({name} …): expected numbers to add up, found {}", describe(&other));
                return Err(m.raise_with_hint(ErrorKind::ArithmeticError, text, NOT_A_NUMBER));
            }
        }
    }
    Ok((total, count))
}

fn mean((total, count): (Value, usize)) -> Value {
    if count == 0 { Value::Nil } else { Value::double(total.as_f64().unwrap_or(f64::NAN) / count as f64) }
}

fn sum(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(total(m, "sum", args, None)?.0)
}

fn avg(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    total(m, "avg", args, None).map(mean)
}

fn sum_by(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let f = key_function(args);
    Ok(total(m, "sum-by", args, Some(&f))?.0)
}

fn avg_by(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let f = key_function(args);
    total(m, "avg-by", args, Some(&f)).map(mean)
}

fn best_by(m: &mut Machine, name: &str, args: &mut [Value], better: fn(std::cmp::Ordering) -> bool) -> Result<Value, Raised> {
    let f = key_function(args);
    let mut walk = if args.len() == 2 {
        SeqIter::finite(m, name, args, 1)?
    } else {
        SeqIter::from_vector(args.iter_mut().skip(1).map(std::mem::take).collect())
    };
    let mut best: Option<(Value, Value)> = None;
    while let Some(item) = walk.next(m)? {
        let key = m.call_with(&f, [item.clone()])?;
        if !key.is_nil() && best.as_ref().is_none_or(|(_, other)| better(order::compare(&key, other))) {
            best = Some((item, key));
        }
    }
    Ok(best.map(|(item, _)| item).unwrap_or_default())
}

fn min_by(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    best_by(m, "min-by", args, std::cmp::Ordering::is_lt)
}

fn max_by(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    best_by(m, "max-by", args, std::cmp::Ordering::is_gt)
}
