//! Persistent maps, sorted by key.

use std::sync::Arc;

use super::entries::{self, Entries, Names, Reader};
use crate::Value;
use crate::failed_calls::FailedCall;
use crate::list_uses::ListMember;
use crate::order::compare;

/// A persistent map, one pointer wide.
#[derive(Clone)]
pub struct Map(Arc<Data>);

#[derive(Clone)]
pub(crate) struct Data {
    entries: Entries,
    depth: u32,
    names: NameKinds,
}

/// The kinds of names among the keys of a map, and whether the map comes from an answer of a tool. A removal does not clear a
/// kind, so this may list too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct NameKinds(u8);

impl NameKinds {
    const BOTH: u8 = 3;
    const ANSWERED: u8 = 4;

    #[inline]
    pub(crate) fn from_key(key: &Value) -> NameKinds {
        NameKinds(match key {
            Value::Keyword(_) => 1,
            Value::Str(_) => 2,
            _ => 0,
        })
    }

    #[inline]
    pub(crate) fn add(&mut self, other: NameKinds) {
        self.0 |= other.0;
    }

    /// Whether the keys may include names of the other kind than `one`. Keys that are not names have one spelling.
    #[inline]
    pub(crate) fn may_hold_other_spelling(self, one: NameKinds) -> bool {
        one.0 != 0 && self.0 & !one.0 & NameKinds::BOTH != 0
    }

    /// Whether both keywords and strings are among the keys.
    #[inline]
    pub(crate) fn are_both(self) -> bool {
        self.0 & NameKinds::BOTH == NameKinds::BOTH
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        if self.depth > super::SHALLOW {
            let mut parts = Vec::new();
            self.entries.dismantle(&mut parts);
            crate::value::teardown(parts);
        }
    }
}

impl Default for Map {
    fn default() -> Self {
        Map(Arc::new(Data { entries: Entries::Small(Vec::new()), depth: 1, names: NameKinds::default() }))
    }
}

/// The last of equal keys wins. The spelling of the first key stays.
impl FromIterator<(Value, Value)> for Map {
    fn from_iter<I: IntoIterator<Item = (Value, Value)>>(entries: I) -> Self {
        Map::from_entries(entries.into_iter().collect())
    }
}

impl Map {
    /// Makes a map of entries in any order. The last of equal keys wins. The spelling of the first key stays.
    pub fn from_entries(mut entries: Vec<(Value, Value)>) -> Map {
        let sorted = entries.windows(2).all(|w| matches!(w, [a, b] if compare(&a.0, &b.0).is_lt()));
        if !sorted {
            // The sort is stable, so that equal keys keep their order.
            entries.sort_by(|a, b| compare(&a.0, &b.0));
            entries.dedup_by(|later, first| {
                let same = compare(&later.0, &first.0).is_eq();
                if same {
                    std::mem::swap(&mut later.1, &mut first.1);
                }
                same
            });
        }
        Map::from_sorted(entries)
    }

    /// Makes a map of entries that are sorted by key and distinct.
    pub(crate) fn from_sorted(entries: Vec<(Value, Value)>) -> Map {
        let (mut depth, mut names) = (0, NameKinds::default());
        for (key, value) in &entries {
            depth = depth.max(key.depth()).max(value.depth());
            names.add(NameKinds::from_key(key));
        }
        Map(Arc::new(Data { entries: Entries::from_sorted(entries), depth: depth + 1, names }))
    }

    /// Makes a map of at most [`super::SMALL`] values whose shared names are given in the same order.
    pub(crate) fn from_row(names: Names, values: Vec<Value>) -> Map {
        debug_assert_eq!(names.len(), values.len());
        let depth = super::vector::depth_over(&values);
        // The sorted names of one kind are adjacent.
        let mut kinds = NameKinds::default();
        for name in [names.first(), names.last()].into_iter().flatten() {
            kinds.add(NameKinds::from_key(name));
        }
        Map(Arc::new(Data { entries: Entries::Row { names, values }, depth, names: kinds }))
    }

    /// Marks the map as an object of an answer. The mark stays in changed copies.
    pub(crate) fn mark_answered(&mut self) {
        if let Some(data) = Arc::get_mut(&mut self.0) {
            data.names.0 |= NameKinds::ANSWERED;
        }
    }

    /// Whether the map is an object of an answer, or a changed copy of one.
    #[inline]
    pub(crate) fn is_answered(&self) -> bool {
        self.0.names.0 & NameKinds::ANSWERED != 0
    }

    /// Number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.entries.len()
    }

    /// Whether the map has no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An upper bound of the nesting depth, at least 1.
    pub fn depth(&self) -> u32 {
        self.0.depth
    }

    /// Returns the value under exactly this key.
    #[inline]
    pub fn get(&self, key: &Value) -> Option<&Value> {
        self.find(key).map(|(_, v)| v)
    }

    /// Returns the entry with exactly this key.
    #[inline]
    pub fn find(&self, key: &Value) -> Option<(&Value, &Value)> {
        self.0.entries.find(key)
    }

    /// Looks a key up as programs do: first exactly, then with a keyword for a string and the reverse, then both with underscores
    /// for hyphens.
    #[inline]
    pub fn lookup(&self, key: &Value) -> Option<&Value> {
        if let Value::Keyword(_) = key
            && let Ok(found) = self.0.entries.named(key)
        {
            return found.or_else(|| self.underscored(key));
        }
        self.find(key).or_else(|| self.find_other_spelling(key)).map(|(_, v)| v)
    }

    /// Returns the entry that [`Map::lookup`] finds.
    pub fn lookup_entry(&self, key: &Value) -> Option<(&Value, &Value)> {
        self.find(key).or_else(|| self.find_other_spelling(key))
    }

    fn find_other_spelling(&self, key: &Value) -> Option<(&Value, &Value)> {
        let other = key.other_spelling()?;
        self.find(&other).or_else(|| {
            let under = key.underscored()?;
            self.find(&under).or_else(|| self.find(&under.other_spelling()?))
        })
    }

    fn underscored(&self, key: &Value) -> Option<&Value> {
        let under = key.underscored()?;
        self.find(&under).or_else(|| self.find(&under.other_spelling()?)).map(|(_, v)| v)
    }

    /// Stores `value` under exactly `key` and returns the old value. The map is updated in place if it has a single owner.
    pub fn insert(&mut self, key: Value, value: Value) -> Option<Value> {
        let data = Arc::make_mut(&mut self.0);
        data.depth = data.depth.max(key.depth() + 1).max(value.depth() + 1);
        data.names.add(NameKinds::from_key(&key));
        data.entries.insert(key, value)
    }

    /// Stores `value` as programs do. If no entry has `key` itself but one has the same name in the other spelling, that entry is
    /// changed and keeps its key.
    #[inline]
    pub(crate) fn put(&mut self, key: Value, value: Value) {
        let key = self.held_key(key);
        self.insert(key, value);
    }

    /// Returns the key under which [`Map::put`] stores a value.
    #[inline]
    pub(crate) fn held_key(&self, key: Value) -> Value {
        if self.0.names.may_hold_other_spelling(NameKinds::from_key(&key)) { self.other_spelling_of(key) } else { key }
    }

    #[inline(never)]
    fn other_spelling_of(&self, key: Value) -> Value {
        if self.find(&key).is_some() {
            return key;
        }
        let Some(other) = key.other_spelling() else { return key };
        let held = self.find(&other).or_else(|| match &key {
            // A keyword with hyphens also names the key that JSON spells with underscores. A string is data and is taken
            // literally.
            Value::Keyword(_) => self.find(&key.underscored()?.other_spelling()?),
            _ => None,
        });
        match held {
            Some((held, _)) => held.clone(),
            None => key,
        }
    }

    /// Returns the key of the entry that an update or a removal by `key` affects, or `key` itself if the map has no such entry. A
    /// string with hyphens never matches one with underscores, since both may be data.
    pub(crate) fn named_key(&self, key: Value) -> Value {
        if self.find(&key).is_some() {
            return key;
        }
        let held = match &key {
            Value::Keyword(_) => self.find_other_spelling(&key),
            _ => key.other_spelling().and_then(|other| self.find(&other)),
        };
        match held {
            Some((held, _)) => held.clone(),
            None => key,
        }
    }

    /// Moves the value under `key` out for an update in place and leaves nil there. Returns `None` without any change if the map
    /// has other owners or the key is missing.
    pub fn take(&mut self, key: &Value) -> Option<Value> {
        Arc::get_mut(&mut self.0)?.entries.get_mut(key).map(std::mem::take)
    }

    /// Removes exactly `key`. The map is updated in place if it has a single owner.
    pub fn remove(&mut self, key: &Value) -> Option<Value> {
        self.find(key)?;
        Arc::make_mut(&mut self.0).entries.remove(key)
    }

    /// Removes the entry that `key` names. The map is updated in place if it has a single owner.
    pub(crate) fn remove_named(&mut self, key: &Value) -> Option<Value> {
        if self.find(key).is_some() {
            return Arc::make_mut(&mut self.0).entries.remove(key);
        }
        self.remove(&self.named_key(key.clone()))
    }

    /// Iterates over the entries, sorted by key. This counts as reading them where that is tracked.
    pub fn iter(&self) -> MapIter<'_> {
        self.0.entries.read_all();
        self.untracked_iter()
    }

    /// Like [`Map::iter`], but does not record that the program has read the entries.
    pub(crate) fn untracked_iter(&self) -> MapIter<'_> {
        MapIter(self.0.entries.iter())
    }

    /// Returns the failed call that produced this map.
    pub(crate) fn failed_call(&self) -> Option<&Arc<FailedCall>> {
        self.0.entries.failed_call()
    }

    /// Marks the map as the result of a failed call, unless it already belongs to one. From then on reading its status is
    /// recorded, also through copies and changed copies.
    pub(crate) fn track(&mut self, call: Arc<FailedCall>) {
        Arc::make_mut(&mut self.0).entries.track(Reader::Status(call));
    }

    /// Marks the map as the object with a list. From then on reading the list is recorded, also through copies.
    pub(crate) fn track_list(&mut self, list: ListMember) {
        Arc::make_mut(&mut self.0).entries.track(Reader::List(list));
    }

    /// Returns the entries as a buffer, sorted by key. They are moved if the map has a single owner. Like [`Map::iter`], this
    /// counts as reading them.
    pub fn into_entries(mut self) -> Vec<(Value, Value)> {
        self.0.entries.read_all();
        match Arc::get_mut(&mut self.0) {
            Some(data) => data.entries.take(),
            None => self.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
        }
    }

    /// Whether the map has more than one owner.
    pub(crate) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// The address of the allocation.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Whether both are the same allocation.
    pub fn same(&self, other: &Map) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Moves keys and values to `out` if this was the last owner.
    pub(crate) fn dismantle(self, out: &mut Vec<Value>) {
        if let Some(mut data) = Arc::into_inner(self.0) {
            data.entries.dismantle(out);
        }
    }
}

/// Iterator over the entries of a map, sorted by key.
pub struct MapIter<'a>(entries::Iter<'a>);

impl<'a> Iterator for MapIter<'a> {
    type Item = (&'a Value, &'a Value);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<'a> IntoIterator for &'a Map {
    type Item = (&'a Value, &'a Value);
    type IntoIter = MapIter<'a>;

    fn into_iter(self) -> MapIter<'a> {
        self.iter()
    }
}
