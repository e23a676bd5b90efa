//! Builtins for maps and for other collections that are accessed by key.

use super::row::rows;
use crate::args::{ITEM, SeqIter, as_integer, at, copy_first, expected, fault, locate_graphemes, seq, steps, take};
use crate::collection::Map;
use crate::infinite::Transducer;
use crate::machine::{Machine, Raised};
use crate::metered;
use crate::{ErrorKind, Value};

rows! { "clojure.core":
    "get" ["[coll key]", "[coll key not-found]"] get, "The value at a key of a map, an index of a vector or string, or a member of a set. Keywords and strings find each other." { "(get {:a 1} :a)" => "1", "(get {\"a\" 1} :a)" => "1", "(get {} :a 0)" => "0", "(get [5 6] 1)" => "6" };
    "get-in" ["[coll path]", "[coll path not-found]"] get_in, "The value at the end of a path of keys and indices." { "(get-in {:a [{:b 1}]} [:a 0 :b])" => "1", "(get-in {} [:a :b] 0)" => "0" };
    "find" ["[coll key]"] find, "The entry [key value], or nil." { "(find {:a nil} :a)" => "[:a nil]", "(find [10 20] 1)" => "[1 20]" };
    "contains?" ["[coll key]"] contains, "Whether a map has the key, a set or vector the item, or a string the position." { "(contains? {:a nil} :a)" => "true", "(contains? [10 20] 20)" => "true" };
    "assoc" ["[m key value & kvs]"] assoc, "m with values at keys, or items at indices of a vector. A key that m has in the other spelling, as a keyword or a string, changes that entry." { "(assoc {:a 1} :b 2)" => "{:a 1 :b 2}", "(assoc [1 2] 1 5)" => "[1 5]" };
    "assoc-in" ["[m path value]"] assoc_in, "m with a value at the end of a path; maps are made where they are missing." { "(assoc-in {} [:a :b] 1)" => "{:a {:b 1}}" };
    "dissoc" ["[m & keys]"] dissoc, "m without the keys, which are keywords or strings alike." { "(dissoc {:a 1 :b 2} :a)" => "{:b 2}" };
    "update" ["[m key f & args]"] update, "m with the result of f on the value at key and args in its place." { "(update {:n 1} :n + 5)" => "{:n 6}", "(update {} :n (fnil inc 0))" => "{:n 1}" };
    "update-in" ["[m path f & args]"] update_in, "m with the result of f at the end of a path." { "(update-in {:a {:n 1}} [:a :n] inc)" => "{:a {:n 2}}" };
    "update-vals" ["[m f]"] update_vals, "m with the result of f in place of each value." { "(update-vals {:a 1 :b 2} inc)" => "{:a 2 :b 3}" };
    "update-keys" ["[m f]"] update_keys, "m with the result of f in place of each key; of keys that become equal the last one stays." { "(update-keys {:a 1} name)" => "{\"a\" 1}" };
    "merge" ["[& maps]"] merge, "All entries; of equal keys the last one stays." { "(merge {:a 1} {:b 2} {:a 3})" => "{:a 3 :b 2}", "(merge nil {:a 1})" => "{:a 1}" };
    "merge-with" ["[f & maps]"] merge_with, "All entries; f joins the values of equal keys." { "(merge-with + {:a 1} {:a 2 :b 3})" => "{:a 3 :b 3}" };
    "select-keys" ["[m keys]"] select_keys, "The entries at the keys." { "(select-keys {:a 1 :b 2} [:a :c])" => "{:a 1}" };
    "keys" ["[m]"] keys, "The keys, sorted; nil if there are none." { "(keys {:b 2 :a 1})" => "[:a :b]" };
    "vals" ["[m]"] vals, "The values, in the order of their keys; nil if there are none." { "(vals {:b 2 :a 1})" => "[1 2]" };
    "key" ["[entry]"] key, "The key of an entry." { "(key [:a 1])" => ":a" };
    "val" ["[entry]"] val, "The value of an entry." { "(val [:a 1])" => "1" };
    "zipmap" ["[keys vals]"] zipmap, "A map of each key to the value at its place." { "(zipmap [:a :b] [1 2])" => "{:a 1 :b 2}" };
    "replace" ["[smap]", "[smap coll]", "[s match replacement]"] replace, "The items, where smap has a key those of smap; with three arguments clojure.string/replace." { "(replace {1 :one} [1 2])" => "[:one 2]", "(replace \"aaa\" \"a\" \"b\")" => "\"bbb\"" };
}

pub(super) mod extensions {
    use super::{entries, rows};
    rows! { "ptc.core":
        "entries" ["[m]"] entries, "The entries [key value], sorted by key." { "(entries {:b 2 :a 1})" => "[[:a 1] [:b 2]]" };
    }
}

/// Returns the value at a key of any collection. `None` if the key is missing.
pub(crate) fn look_up(coll: &Value, key: &Value) -> Option<Value> {
    match coll {
        Value::Map(map) => map.lookup(key).cloned(),
        Value::Vector(items) => items.get(usize::try_from(as_integer(key)?).ok()?).cloned(),
        Value::Set(set) => set.get(key).cloned(),
        Value::Str(text) => {
            let index = usize::try_from(as_integer(key)?).ok()?;
            text.grapheme(index).map(Value::string)
        }
        _ => None,
    }
}

fn get(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if let Value::Str(text) = at(args, 0) {
        locate_graphemes(m, text)?;
    }
    Ok(m.look_up(at(args, 0), at(args, 1)).unwrap_or_else(|| take(args, 2)))
}

fn get_in(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if !matches!(at(args, 1), Value::Vector(_) | Value::Nil | Value::Set(_) | Value::Map(_) | Value::Str(_)) {
        return Err(expected(m, "get-in", "a vector of keys", 1, at(args, 1)));
    }
    let path = seq(m, "get-in", args, 1)?;
    m.tick(steps(path.len()))?;
    let mut value = take(args, 0);
    for key in &path {
        match m.look_up(&value, key) {
            Some(inner) => value = inner,
            None => return Ok(take(args, 2)),
        }
    }
    Ok(value)
}

fn find(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let found = match at(args, 0) {
        Value::Nil => None,
        Value::Map(map) => {
            let found = map.lookup_entry(at(args, 1)).map(|(k, v)| (k.clone(), v.clone()));
            if found.is_none() {
                m.meters.missing_keys.record_expected(at(args, 0), at(args, 1));
            }
            found
        }
        Value::Vector(_) => look_up(at(args, 0), at(args, 1)).map(|v| (at(args, 1).clone(), v)),
        other => return Err(expected(m, "find", "a map or vector", 0, other)),
    };
    Ok(found.map(|(k, v)| Value::pair(k, v)).unwrap_or_default())
}

fn contains(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let (coll, key) = (at(args, 0), at(args, 1));
    Ok(Value::bool(match coll {
        Value::Nil => false,
        Value::Map(map) => {
            let is_there = map.lookup(key).is_some();
            if !is_there {
                m.meters.missing_keys.record_expected(coll, key);
            }
            is_there
        }
        Value::Set(set) => set.contains(key),
        Value::Vector(items) => {
            let mut found = false;
            for item in items {
                m.step()?;
                found = item == key;
                if found {
                    break;
                }
            }
            found
        }
        Value::Str(_) if as_integer(key).is_some() => look_up(coll, key).is_some(),
        Value::Str(_) => return Err(expected(m, "contains?", "a position in the string", 1, key)),
        other => return Err(expected(m, "contains?", "a collection", 0, other)),
    }))
}

/// A function that changes an entry, and what it expects of the entry.
struct Change {
    name: &'static str,
    /// Whether the function adds the entry where it is missing. Otherwise it reads the entry, and a missing one is recorded.
    adds: bool,
}

const ASSOC: Change = Change { name: "assoc", adds: true };
const ASSOC_IN: Change = Change { name: "assoc-in", adds: true };
const UPDATE: Change = Change { name: "update", adds: false };
const UPDATE_IN: Change = Change { name: "update-in", adds: false };

/// Stores a value at a key or index. The collection is updated in place if it has a single owner.
fn put(m: &mut Machine, change: &Change, coll: Value, key: Value, value: Value) -> Result<Value, Raised> {
    let name = change.name;
    match coll {
        Value::Map(mut map) => {
            if change.adds && map.is_answered() && map.get(&key).is_none() {
                m.meters.missing_keys.add(&key);
            }
            map.put(key, value);
            Ok(Value::Map(map))
        }
        Value::Nil => Ok(Value::Map(Map::from_sorted(vec![(key, value)]))),
        Value::Vector(mut items) => {
            let index = as_integer(&key).and_then(|i| usize::try_from(i).ok()).filter(|i| *i <= items.len());
            let Some(index) = index else {
                let text = format!("expected an index from 0 to {}, found {}", items.len(), crate::args::describe(&key));
                let raised = fault(m, ErrorKind::TypeError, name, &text);
                return Err(m.advise(raised, "a vector has indexes, not keys; conj adds at its end"));
            };
            copy_first(m, &mut items)?;
            items.set(index, value);
            Ok(Value::Vector(items))
        }
        other => Err(expected(m, name, "a map or vector", 0, &other)),
    }
}

fn assoc(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if args.len().is_multiple_of(2) {
        return Err(fault(m, ErrorKind::ArityError, "assoc", "keys and values alternate, but the last key has no value"));
    }
    let mut coll = take(args, 0);
    for pair in args.get_mut(1..).unwrap_or_default().chunks_exact_mut(2) {
        m.step()?;
        coll = put(m, &ASSOC, coll, take(pair, 0), take(pair, 1))?;
    }
    Ok(coll)
}

/// Moves the value at `key` out of `coll`, so that it can be changed in place. If the collection has other owners, the value is
/// cloned.
fn take_out(coll: &mut Value, key: &Value) -> Value {
    match coll {
        Value::Map(map) => match map.take(key) {
            Some(value) => value,
            None => map.get(key).cloned().unwrap_or_default(),
        },
        Value::Vector(items) => {
            as_integer(key).and_then(|i| usize::try_from(i).ok()).and_then(|i| items.take(i)).unwrap_or_default()
        }
        _ => Value::Nil,
    }
}

/// Returns the key under which a map stores what `key` looks up, so that an update changes the entry that a lookup finds.
fn held_key(coll: &Value, key: Value) -> Value {
    match coll {
        Value::Map(map) => map.named_key(key),
        _ => key,
    }
}

/// Records that an update finds no entry in a map.
fn record_missing(m: &Machine, coll: &Value, key: &Value) {
    if let Value::Map(map) = coll
        && map.get(key).is_none()
    {
        m.meters.missing_keys.record(coll, key);
    }
}

/// Replaces the value at the end of `path` by the result of `compute`.
fn at_path(
    m: &mut Machine,
    change: &Change,
    root: Value,
    path: Vec<Value>,
    compute: impl FnOnce(&mut Machine, Value) -> Result<Value, Raised>,
) -> Result<Value, Raised> {
    m.tick(steps(path.len()))?;
    m.charge(path.len() * 3 * ITEM)?;
    let mut coll = root;
    let mut outer = Vec::with_capacity(path.len());
    for key in path {
        let key = held_key(&coll, key);
        if !change.adds {
            record_missing(m, &coll, &key);
        }
        let inner = take_out(&mut coll, &key);
        outer.push((coll, key));
        coll = inner;
    }
    let mut value = compute(m, coll)?;
    while let Some((coll, key)) = outer.pop() {
        value = put(m, change, coll, key, value)?;
    }
    Ok(value)
}

/// Returns a path argument, which has at least one key.
fn path(m: &mut Machine, change: &Change, args: &mut [Value]) -> Result<Vec<Value>, Raised> {
    match take(args, 1) {
        Value::Vector(keys) if keys.is_empty() => Ok(vec![Value::Nil]),
        Value::Vector(keys) => Ok(keys.into_vec()),
        Value::Nil => Ok(vec![Value::Nil]),
        other => Err(expected(m, change.name, "a vector of keys", 1, &other)),
    }
}

fn assoc_in(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let path = path(m, &ASSOC_IN, args)?;
    let value = take(args, 2);
    at_path(m, &ASSOC_IN, take(args, 0), path, |_, _| Ok(value))
}

/// Calls the function at `args[2]` with a value and the arguments after it.
fn call_with(m: &mut Machine, args: &mut [Value], value: Value) -> Result<Value, Raised> {
    let f = take(args, 2);
    if args.len() == 3 {
        return m.call(&f, &mut [value]);
    }
    let mut all = vec![value];
    all.extend(args.iter_mut().skip(3).map(std::mem::take));
    m.call(&f, &mut all)
}

fn update(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let mut coll = take(args, 0);
    let key = held_key(&coll, take(args, 1));
    record_missing(m, &coll, &key);
    let old = take_out(&mut coll, &key);
    let new = call_with(m, args, old)?;
    put(m, &UPDATE, coll, key, new)
}

fn update_in(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let path = path(m, &UPDATE_IN, args)?;
    let root = take(args, 0);
    at_path(m, &UPDATE_IN, root, path, |m, value| call_with(m, args, value))
}

/// Returns a map argument. Nil counts as an empty map.
fn map_arg(m: &mut Machine, name: &str, args: &mut [Value], index: usize) -> Result<Map, Raised> {
    match take(args, index) {
        Value::Map(map) => Ok(map),
        Value::Nil => Ok(Map::default()),
        other => Err(expected(m, name, "a map", index, &other)),
    }
}

fn dissoc(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if at(args, 0).is_nil() {
        return Ok(Value::Nil);
    }
    let mut map = map_arg(m, "dissoc", args, 0)?;
    for key in args.iter().skip(1) {
        m.step()?;
        if map.remove_named(key).is_none() {
            record_removal(m, &map, key);
        }
    }
    Ok(Value::Map(map))
}

/// Records that there is no entry to remove.
#[cold]
pub(super) fn record_removal(m: &Machine, map: &Map, key: &Value) {
    m.meters.missing_keys.record_expected(&Value::Map(map.clone()), key);
}

fn update_vals(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if let Value::Vector(_) = at(args, 0) {
        let Value::Vector(items) = take(args, 0) else { return Ok(Value::Nil) };
        m.charge(items.len() * ITEM)?;
        let mut out = Vec::with_capacity(items.len());
        for item in items {
            m.step()?;
            out.push(m.call(at(args, 1), &mut [item])?);
        }
        return Ok(Value::vector(out));
    }
    let map = map_arg(m, "update-vals", args, 0)?;
    m.charge(map.len() * 2 * ITEM)?;
    let mut out = Vec::with_capacity(map.len());
    for (k, v) in metered::entries(m, map)? {
        m.step()?;
        out.push((k, m.call(at(args, 1), &mut [v])?));
    }
    Ok(Value::Map(Map::from_sorted(out)))
}

fn update_keys(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let map = map_arg(m, "update-keys", args, 0)?;
    m.charge(map.len() * 2 * ITEM)?;
    let mut out = Vec::with_capacity(map.len());
    for (k, v) in metered::entries(m, map)? {
        m.step()?;
        out.push((m.call(at(args, 1), &mut [k])?, v));
    }
    metered::map(m, out).map(Value::Map)
}

fn merge(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if args.iter().all(Value::is_nil) {
        return Ok(Value::Nil);
    }
    let mut out = map_arg(m, "merge", args, 0)?;
    for index in 1..args.len() {
        if let Value::Vector(pair) = at(args, index)
            && let [key, value] = pair.iter().collect::<Vec<_>>().as_slice()
        {
            out.put((*key).clone(), (*value).clone());
            continue;
        }
        let more = map_arg(m, "merge", args, index)?;
        if out.is_empty() {
            out = more;
            continue;
        }
        let failed_call = more.failed_call().cloned();
        for (k, v) in metered::untracked_entries(m, more)? {
            m.step()?;
            out.put(k, v);
        }
        // The merged map contains the status of a failed call's result, so that reading it there counts as well.
        if let Some(call) = failed_call {
            out.track(call);
        }
    }
    Ok(Value::Map(out))
}

fn merge_with(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if args.iter().skip(1).all(Value::is_nil) {
        return Ok(Value::Nil);
    }
    let mut out = map_arg(m, "merge-with", args, 1)?;
    let f = take(args, 0);
    for index in 2..args.len() {
        let more = map_arg(m, "merge-with", args, index)?;
        for (k, v) in metered::entries(m, more)? {
            m.step()?;
            let k = out.held_key(k);
            let value = match out.take(&k).or_else(|| out.get(&k).cloned()) {
                Some(old) => m.call(&f, &mut [old, v])?,
                None => v,
            };
            out.insert(k, value);
        }
    }
    Ok(Value::Map(out))
}

fn select_keys(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let mut keys = SeqIter::finite(m, "select-keys", args, 1)?;
    let coll = match take(args, 0) {
        Value::Nil => return Ok(Value::Map(Map::default())),
        coll @ (Value::Map(_) | Value::Vector(_)) => coll,
        other => return Err(expected(m, "select-keys", "a map", 0, &other)),
    };
    let mut out = Vec::with_capacity(keys.len().min(64));
    while let Some(key) = keys.next(m)? {
        if let Some(value) = m.look_up(&coll, &key) {
            metered::push(m, &mut out, (key, value))?;
        }
    }
    metered::map(m, out).map(Value::Map)
}

/// Returns the entries of a map, or of a vector of pairs.
fn entries_of(m: &mut Machine, name: &str, args: &mut [Value]) -> Result<Vec<(Value, Value)>, Raised> {
    match take(args, 0) {
        Value::Nil => Ok(Vec::new()),
        Value::Map(map) => {
            m.charge(map.len() * ITEM)?;
            metered::entries(m, map)
        }
        Value::Vector(items) if items.iter().all(|item| matches!(item, Value::Vector(pair) if pair.len() == 2)) => {
            m.tick(steps(items.len()))?;
            m.charge(items.len() * 3 * ITEM)?;
            Ok(items.into_iter().map(|item| pair(&item)).collect())
        }
        other => Err(expected(m, name, "a map", 0, &other)),
    }
}

fn pair(item: &Value) -> (Value, Value) {
    match item {
        Value::Vector(pair) => (pair.get(0).cloned().unwrap_or_default(), pair.get(1).cloned().unwrap_or_default()),
        _ => (Value::Nil, Value::Nil),
    }
}

fn some_vector(items: Vec<Value>) -> Value {
    if items.is_empty() { Value::Nil } else { Value::vector(items) }
}

fn keys(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(some_vector(entries_of(m, "keys", args)?.into_iter().map(|(k, _)| k).collect()))
}

fn vals(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(some_vector(entries_of(m, "vals", args)?.into_iter().map(|(_, v)| v).collect()))
}

fn entries(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let map = map_arg(m, "entries", args, 0)?;
    Ok(Value::Vector(seq(m, "entries", &mut [Value::Map(map)], 0)?))
}

fn entry(m: &mut Machine, name: &str, args: &[Value]) -> Result<(Value, Value), Raised> {
    match at(args, 0) {
        item @ Value::Vector(items) if items.len() == 2 => Ok(pair(item)),
        other => Err(expected(m, name, "an entry [key value]", 0, other)),
    }
}

fn key(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(entry(m, "key", args)?.0)
}

fn val(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(entry(m, "val", args)?.1)
}

fn zipmap(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let (mut colls, len) = super::build::finite_prefixes(m, "zipmap", args, 0)?;
    let (vals, keys) = (colls.pop().unwrap_or_default(), colls.pop().unwrap_or_default());
    m.charge(len * 2 * ITEM)?;
    let pairs = keys.into_iter().zip(vals).collect();
    metered::map(m, pairs).map(Value::Map)
}

fn replace(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if args.len() == 3 {
        return super::text::replace(m, args);
    }
    if args.len() == 1 {
        let smap = map_arg(m, "replace", args, 0)?;
        return Ok(super::transducer::transducer(Transducer::Replace(Value::Map(smap))));
    }
    let items = seq(m, "replace", args, 1)?;
    m.charge(items.len() * ITEM)?;
    let by = match at(args, 0) {
        Value::Vector(_) => take(args, 0),
        _ => Value::Map(map_arg(m, "replace", args, 0)?),
    };
    let (mut walk, mut out) = (SeqIter::from_vector(items), Vec::new());
    while let Some(item) = walk.next(m)? {
        let found = match &by {
            Value::Map(smap) => smap.lookup(&item).cloned(),
            by => look_up(by, &item),
        };
        out.push(found.unwrap_or(item));
    }
    Ok(Value::vector(out))
}
