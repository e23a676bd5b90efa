//! Builtins for sets, and for relations as in `clojure.set`.

use super::row::rows;
use crate::Value;
use crate::args::{ITEM, SeqIter, at, expected, steps, take};
use crate::collection::{Map, Set};
use crate::machine::{Machine, Raised};
use crate::metered;

rows! { "clojure.set":
    "union" ["[& sets]"] union, "The members of any of the sets." { "(clojure.set/union #{1 2} #{2 3})" => "#{1 2 3}" };
    "intersection" ["[set & sets]"] intersection, "The members of all sets." { "(clojure.set/intersection #{1 2} #{2 3})" => "#{2}" };
    "difference" ["[set & sets]"] difference, "The members of the first set that no other has." { "(clojure.set/difference #{1 2} #{2 3})" => "#{1}" };
    "subset?" ["[a b]"] subset, "Whether b has all members of a." { "(clojure.set/subset? #{1} #{1 2})" => "true" };
    "superset?" ["[a b]"] superset, "Whether a has all members of b." { "(clojure.set/superset? #{1 2} #{1})" => "true" };
    "select" ["[pred set]"] select, "The members for which pred is true." { "(clojure.set/select even? #{1 2})" => "#{2}" };
    "map-invert" ["[m]"] map_invert, "A map from each value to its key." { "(clojure.set/map-invert {:a 1})" => "{1 :a}" };
    "rename-keys" ["[m kmap]"] rename_keys, "m with the keys of kmap called by its values." { "(clojure.set/rename-keys {:a 1 :b 2} {:a :x})" => "{:b 2 :x 1}" };
    "project" ["[rel keys]"] project, "The set of maps with only these keys." { "(clojure.set/project [{:a 1 :b 2} {:a 1 :b 3}] [:a])" => "#{{:a 1}}" };
    "rename" ["[rel kmap]"] rename, "The set of maps with keys renamed." { "(clojure.set/rename [{:a 1}] {:a :x})" => "#{{:x 1}}" };
    "index" ["[rel keys]"] index, "A map from the values at the keys to the set of maps that have them." { "(clojure.set/index [{:a 1 :b 2}] [:a])" => "{{:a 1} #{{:a 1 :b 2}}}" };
    "join" ["[r1 r2]", "[r1 r2 kmap]"] join, "The set of merged pairs of maps that agree at their common keys, or at those of kmap." { "(clojure.set/join [{:a 1 :b 2}] [{:a 1 :c 3}])" => "#{{:a 1 :b 2 :c 3}}" };
}

pub(super) mod core {
    use super::{disj, rows};
    rows! { "clojure.core":
        "disj" ["[set & xs]"] disj, "The set without the members." { "(disj #{1 2 3} 2)" => "#{1 3}" };
    }
}

/// Returns a set argument. Nil counts as an empty set, and a vector as the set of its items.
fn set_arg(m: &mut Machine, name: &str, args: &mut [Value], index: usize) -> Result<Set, Raised> {
    match take(args, index) {
        Value::Set(set) => Ok(set),
        Value::Nil => Ok(Set::default()),
        Value::Vector(items) => {
            m.charge(items.len() * ITEM)?;
            metered::set(m, items.into_vec())
        }
        other => Err(expected(m, name, "a set", index, &other)),
    }
}

fn disj(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    match take(args, 0) {
        Value::Nil => Ok(Value::Nil),
        Value::Set(mut set) => {
            for member in args.iter().skip(1) {
                set.remove(member);
            }
            Ok(Value::Set(set))
        }
        other => Err(expected(m, "disj", "a set", 0, &other)),
    }
}

fn union(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if !args.is_empty() && args.iter().all(Value::is_nil) {
        return Ok(Value::Nil);
    }
    let mut out = Set::default();
    for index in 0..args.len() {
        let more = set_arg(m, "clojure.set/union", args, index)?;
        // Merging into the larger set is cheaper.
        let (mut into, from) = if out.len() >= more.len() { (out, more) } else { (more, out) };
        for member in metered::members(m, from)? {
            m.step()?;
            into.insert(member);
        }
        out = into;
    }
    Ok(Value::Set(out))
}

fn keep_members(m: &mut Machine, name: &str, args: &mut [Value], shared: bool) -> Result<Value, Raised> {
    let mut out = set_arg(m, name, args, 0)?;
    for index in 1..args.len() {
        let other = set_arg(m, name, args, index)?;
        let mut kept = Vec::new();
        for member in metered::members(m, out)? {
            m.step()?;
            if other.contains(&member) == shared {
                metered::push(m, &mut kept, member)?;
            }
        }
        out = kept.into_iter().collect();
    }
    Ok(Value::Set(out))
}

fn intersection(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if args.iter().any(Value::is_nil) {
        return Ok(Value::Nil);
    }
    keep_members(m, "clojure.set/intersection", args, true)
}

fn difference(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if at(args, 0).is_nil() {
        return Ok(Value::Nil);
    }
    keep_members(m, "clojure.set/difference", args, false)
}

fn within(m: &mut Machine, name: &str, args: &mut [Value], small: usize, large: usize) -> Result<Value, Raised> {
    let (small, large) = (set_arg(m, name, args, small)?, set_arg(m, name, args, large)?);
    if small.len() > large.len() {
        return Ok(Value::False);
    }
    for member in &small {
        m.step()?;
        if !large.contains(member) {
            return Ok(Value::False);
        }
    }
    Ok(Value::True)
}

fn subset(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    within(m, "clojure.set/subset?", args, 0, 1)
}

fn superset(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    within(m, "clojure.set/superset?", args, 1, 0)
}

fn select(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let set = set_arg(m, "clojure.set/select", args, 1)?;
    let mut out = Vec::new();
    for member in metered::members(m, set)? {
        m.step()?;
        if m.call(at(args, 0), &mut [member.clone()])?.is_truthy() {
            metered::push(m, &mut out, member)?;
        }
    }
    metered::set(m, out).map(Value::Set)
}

fn map_arg(m: &mut Machine, name: &str, args: &mut [Value], index: usize) -> Result<Map, Raised> {
    match take(args, index) {
        Value::Map(map) => {
            m.tick(steps(map.len()))?;
            Ok(map)
        }
        Value::Nil => Ok(Map::default()),
        other => Err(expected(m, name, "a map", index, &other)),
    }
}

fn map_invert(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let map = map_arg(m, "clojure.set/map-invert", args, 0)?;
    let turned = metered::entries(m, map)?.into_iter().map(|(k, v)| (v, k)).collect();
    Ok(Value::Map(metered::map(m, turned)?))
}

fn renamed(m: &mut Machine, map: Map, names: &Map) -> Result<Map, Raised> {
    let mut taken = Vec::new();
    let mut out = map;
    for (old, new) in names {
        m.step()?;
        if let Some(value) = out.remove_named(old) {
            taken.push((new.clone(), value));
        } else {
            super::map::record_removal(m, &out, old);
        }
    }
    for (key, value) in taken {
        m.step()?;
        out.put(key, value);
    }
    Ok(out)
}

fn rename_keys(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if at(args, 0).is_nil() {
        return Ok(Value::Nil);
    }
    let map = map_arg(m, "clojure.set/rename-keys", args, 0)?;
    let names = map_arg(m, "clojure.set/rename-keys", args, 1)?;
    renamed(m, map, &names).map(Value::Map)
}

/// Returns the maps of a relation.
fn relation(m: &mut Machine, name: &str, args: &mut [Value], index: usize) -> Result<Vec<Map>, Raised> {
    let mut walk = SeqIter::finite(m, name, args, index)?;
    let mut out = Vec::with_capacity(walk.len());
    while let Some(item) = walk.next(m)? {
        match item {
            Value::Map(map) => out.push(map),
            other => return Err(expected(m, name, "a collection of maps", index, &other)),
        }
    }
    Ok(out)
}

fn picked(m: &mut Machine, map: &Map, keys: &[Value]) -> Result<Map, Raised> {
    let mut entries = Vec::new();
    for key in keys {
        m.step()?;
        if let Some(value) = map.lookup(key) {
            metered::push(m, &mut entries, (key.clone(), value.clone()))?;
        }
    }
    metered::map(m, entries)
}

fn keys_arg(m: &mut Machine, name: &str, args: &mut [Value]) -> Result<Vec<Value>, Raised> {
    let keys = crate::args::seq(m, name, args, 1)?;
    m.tick(steps(keys.len()))?;
    m.charge(keys.len() * ITEM)?;
    Ok(keys.into_vec())
}

fn project(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let maps = relation(m, "clojure.set/project", args, 0)?;
    let keys = keys_arg(m, "clojure.set/project", args)?;
    let mut out = Vec::new();
    for map in maps {
        let picked = picked(m, &map, &keys)?;
        metered::push(m, &mut out, Value::Map(picked))?;
    }
    metered::set(m, out).map(Value::Set)
}

fn rename(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let maps = relation(m, "clojure.set/rename", args, 0)?;
    let names = map_arg(m, "clojure.set/rename", args, 1)?;
    let mut out = Vec::new();
    for map in maps {
        let renamed = renamed(m, map, &names)?;
        metered::push(m, &mut out, Value::Map(renamed))?;
    }
    metered::set(m, out).map(Value::Set)
}

fn index(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let maps = relation(m, "clojure.set/index", args, 0)?;
    let keys = keys_arg(m, "clojure.set/index", args)?;
    let mut out = Map::default();
    for map in maps {
        m.step()?;
        let key = Value::Map(picked(m, &map, &keys)?);
        let mut group = match out.take(&key) {
            Some(Value::Set(group)) => group,
            _ => Set::default(),
        };
        group.insert(Value::Map(map));
        out.insert(key, Value::Set(group));
    }
    Ok(Value::Map(out))
}

fn join(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let (left, right) = (relation(m, "clojure.set/join", args, 0)?, relation(m, "clojure.set/join", args, 1)?);
    let pairs: Vec<(Value, Value)> = if args.len() == 3 {
        let names = map_arg(m, "clojure.set/join", args, 2)?;
        metered::entries(m, names)?
    } else {
        let (Some(a), Some(b)) = (left.first(), right.first()) else { return Ok(Value::Set(Set::default())) };
        m.tick(steps(a.len()))?;
        let named = |key: &Value| {
            let other = b.named_key(key.clone());
            b.find(&other).is_some().then(|| (key.clone(), other))
        };
        a.iter().filter_map(|(key, _)| named(key)).collect()
    };
    let keys = |m: &mut Machine, map: &Map, side: fn(&(Value, Value)) -> &Value| {
        m.tick(steps(pairs.len()))?;
        m.charge(pairs.len() * ITEM)?;
        m.step()?;
        Ok(Value::vector(pairs.iter().map(|pair| map.lookup(side(pair)).cloned().unwrap_or_default()).collect()))
    };
    // Index the right side by its values at the keys, so that the work is proportional to the result.
    let mut by_key: Map = Map::default();
    for (place, map) in right.iter().enumerate() {
        let key = keys(m, map, |(_, right)| right)?;
        let mut places = by_key.take(&key).unwrap_or_else(|| Value::vector(Vec::new()));
        if let Value::Vector(places) = &mut places {
            places.push(Value::Int(place as i64));
        }
        by_key.insert(key, places);
    }
    let mut out = Vec::new();
    for map in left {
        let key = keys(m, &map, |(left, _)| left)?;
        for place in by_key.get(&key).and_then(Value::items).into_iter().flatten() {
            m.step()?;
            let Some(other) = place.as_int().and_then(|p| right.get(p as usize)) else { continue };
            let mut merged = map.clone();
            for (k, v) in other {
                m.step()?;
                merged.put(k.clone(), v.clone());
            }
            metered::push(m, &mut out, Value::Map(merged))?;
        }
    }
    metered::set(m, out).map(Value::Set)
}
