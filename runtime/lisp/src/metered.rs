//! Operations on whole collections that count their steps and charge their memory before they allocate.
//!
//! A builtin uses this module or [`SeqIter`](crate::args::SeqIter), or calls [`Machine::charge`] before it allocates and
//! [`Machine::tick`] for the items that it visits. `tests/sweep.rs` checks that no builtin exceeds the limits.

#![expect(clippy::mutable_key_type, reason = "the mutable parts of a function are not hashed")]

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use crate::args::{ITEM, steps};
use crate::builtins::{Keyed, sort_naturally};
use crate::collection::{Map, NameKinds, Set};
use crate::machine::{Machine, Raised};
use crate::{Value, comparison_budget, order};

/// Hashing of values: seeded for each process, so that no input can be made to collide.
pub(crate) type Hasher = foldhash::fast::RandomState;

/// Size of an entry of a map including its share of the tree, in bytes.
const ENTRY: usize = 2 * ITEM + 8;

/// Maximum number of small items that are sorted without a check of the clock.
const MAX_CHEAP_ITEMS: usize = 32 * 1024;

/// Maximum number of parts of these items together. Each takes part in at most 15 comparisons, which stays well below the number
/// of comparisons between two checks.
const MAX_CHEAP_PARTS: u32 = comparison_budget::MAX_CONSISTENT_PARTS / 32;

/// The entries of a map.
pub(crate) fn entries(m: &mut Machine, map: Map) -> Result<Vec<(Value, Value)>, Raised> {
    m.tick(steps(map.len()))?;
    m.charge(map.len() * 2 * ITEM)?;
    Ok(map.into_entries())
}

/// The entries of a map, without a record that the program has read them.
pub(crate) fn untracked_entries(m: &mut Machine, map: Map) -> Result<Vec<(Value, Value)>, Raised> {
    if map.failed_call().is_none() {
        return entries(m, map);
    }
    m.tick(steps(map.len()))?;
    m.charge(map.len() * 2 * ITEM)?;
    Ok(map.untracked_iter().map(|(k, v)| (k.clone(), v.clone())).collect())
}

/// The members of a set.
pub(crate) fn members(m: &mut Machine, set: Set) -> Result<Vec<Value>, Raised> {
    m.tick(steps(set.len()))?;
    m.charge(set.len() * ITEM)?;
    Ok(set.into_members())
}

/// A map of entries in any order. The value of the last of equal keys and the spelling of the first are kept, also if a keyword
/// and a string are the same name.
pub(crate) fn map(m: &mut Machine, entries: Vec<(Value, Value)>) -> Result<Map, Raised> {
    let mut names = NameKinds::default();
    for (key, _) in &entries {
        names.add(NameKinds::from_key(key));
    }
    if !names.are_both() {
        return map_of_exact_keys(m, entries);
    }
    m.charge(entries.len() * ENTRY)?;
    let mut map = Map::default();
    for (key, value) in entries {
        m.step()?;
        map.put(key, value);
    }
    Ok(map)
}

/// [`map`] in which a keyword and a string are two keys, as in a literal.
pub(crate) fn map_of_exact_keys(m: &mut Machine, mut entries: Vec<(Value, Value)>) -> Result<Map, Raised> {
    m.tick(steps(entries.len()))?;
    m.charge(entries.len() * ENTRY)?;
    if is_cheap_to_sort(m, &entries)? {
        return Ok(Map::from_entries(entries));
    }
    sort(m, &mut entries)?;
    Ok(Map::from_sorted(entries))
}

/// A set of members in any order. The first of equal members is kept.
pub(crate) fn set(m: &mut Machine, mut members: Vec<Value>) -> Result<Set, Raised> {
    m.tick(steps(members.len()))?;
    m.charge(members.len() * ENTRY)?;
    if is_cheap_to_sort(m, &members)? {
        return Ok(members.into_iter().collect());
    }
    sort(m, &mut members)?;
    Ok(Set::from_sorted(members))
}

/// Whether items are sorted in less time than passes between two checks of the clock. Earlier comparisons are charged first, so
/// that the order stays consistent until the items are sorted.
fn is_cheap_to_sort<T: Keyed>(m: &mut Machine, items: &[T]) -> Result<bool, Raised> {
    m.step()?;
    let mut left = MAX_CHEAP_PARTS;
    let is_cheap = items.len() <= MAX_CHEAP_ITEMS && items.iter().all(|item| order::is_within(item.key(), &mut left));
    // Visiting a part costs as much as comparing it.
    m.tick((MAX_CHEAP_PARTS - left) / 16)?;
    Ok(is_cheap)
}

/// Sorts by key and merges items with equal keys. Counts every comparison.
fn sort<T: Keyed>(m: &mut Machine, items: &mut Vec<T>) -> Result<(), Raised> {
    let mut sorted = true;
    for pair in items.windows(2) {
        m.step()?;
        sorted = matches!(pair, [a, b] if a.key() < b.key());
        if !sorted {
            break;
        }
    }
    if sorted {
        return Ok(());
    }
    m.charge(items.len() * 2 * size_of::<T>())?;
    sort_naturally(m, items)?;
    let mut unique: Vec<T> = Vec::with_capacity(items.len());
    for item in items.drain(..) {
        m.step()?;
        match unique.last_mut() {
            Some(last) if last.key() == item.key() => last.absorb(item),
            _ => unique.push(item),
        }
    }
    *items = unique;
    Ok(())
}

/// Adds an item to a list of items of a program.
#[inline]
pub(crate) fn push<T>(m: &mut Machine, items: &mut Vec<T>, item: T) -> Result<(), Raised> {
    if items.len() == items.capacity() {
        grow(m, items)?;
    }
    items.push(item);
    Ok(())
}

#[cold]
#[inline(never)]
fn grow<T>(m: &mut Machine, items: &mut Vec<T>) -> Result<(), Raised> {
    // The old items stay beside the new ones while they are moved.
    m.charge(items.len() * 2 * size_of::<T>())?;
    items.reserve(1);
    Ok(())
}

#[cold]
#[inline(never)]
fn charge_table(m: &mut Machine, len: usize, each: usize) -> Result<(), Raised> {
    // Twice as many slots, not all of them used, beside the old ones.
    m.charge(len * 3 * each)
}

/// Charges the growth of a full table for its next key.
#[inline]
fn charge_growth<K, V>(m: &mut Machine, len: usize, capacity: usize) -> Result<(), Raised> {
    if len == capacity { charge_table(m, len, size_of::<(K, V)>() + 1) } else { Ok(()) }
}

/// Adds a value to a set. Returns whether it is new.
#[inline]
pub(crate) fn insert_seen(m: &mut Machine, seen: &mut HashSet<Value, Hasher>, value: Value) -> Result<bool, Raised> {
    charge_growth::<Value, ()>(m, seen.len(), seen.capacity())?;
    Ok(seen.insert(value))
}

/// The key of a table for `key`: `key` itself, or the other spelling of that name if the table contains only that. `names` are
/// the kinds of names in the table.
#[inline]
pub(crate) fn held_key<V>(table: &HashMap<Value, V, Hasher>, names: &mut NameKinds, key: Value) -> Value {
    let kind = NameKinds::from_key(&key);
    if names.may_hold_other_spelling(kind)
        && !table.contains_key(&key)
        && let Some(other) = key.other_spelling()
        && table.contains_key(&other)
    {
        return other;
    }
    names.add(kind);
    key
}

/// Charges the memory of one more key of a table.
#[inline]
pub(crate) fn room_for_key<K: Eq + Hash, V>(m: &mut Machine, table: &HashMap<K, V, Hasher>) -> Result<(), Raised> {
    charge_growth::<K, V>(m, table.len(), table.capacity())
}
