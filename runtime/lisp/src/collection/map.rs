//! Maps, sorted by key.

use std::sync::Arc;

use super::entries::{self, Entries, Names};
use crate::Value;
use crate::order::compare;

/// A persistent map, one pointer wide.
#[derive(Clone)]
pub struct Map(Arc<Data>);

#[derive(Clone)]
pub(crate) struct Data {
    entries: Entries,
    depth: u32,
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
        Map(Arc::new(Data { entries: Entries::Small(Vec::new()), depth: 1 }))
    }
}

/// The last of equal keys wins; the spelling of the first stays.
impl FromIterator<(Value, Value)> for Map {
    fn from_iter<I: IntoIterator<Item = (Value, Value)>>(entries: I) -> Self {
        Map::from_entries(entries.into_iter().collect())
    }
}

impl Map {
    /// A map of entries in any order. The last of equal keys wins; the spelling of the first stays.
    pub fn from_entries(mut entries: Vec<(Value, Value)>) -> Map {
        let sorted = entries.windows(2).all(|w| matches!(w, [a, b] if compare(&a.0, &b.0).is_lt()));
        if !sorted {
            // Stable, so that equal keys keep their order.
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

    /// A map of entries that are sorted by key, each key once.
    pub(crate) fn from_sorted(entries: Vec<(Value, Value)>) -> Map {
        let depth = entries.iter().map(|(k, v)| k.depth().max(v.depth())).max().unwrap_or(0) + 1;
        Map(Arc::new(Data { entries: Entries::from_sorted(entries), depth }))
    }

    /// A map of values under names that it shares with others: at most [`super::SMALL`], in the order of the names.
    pub(crate) fn from_row(names: Names, values: Vec<Value>) -> Map {
        debug_assert_eq!(names.len(), values.len());
        let depth = super::vector::depth_over(&values);
        Map(Arc::new(Data { entries: Entries::Row { names, values }, depth }))
    }

    /// Number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A bound of the nesting depth, at least 1.
    pub fn depth(&self) -> u32 {
        self.0.depth
    }

    /// The value under exactly this key.
    #[inline]
    pub fn get(&self, key: &Value) -> Option<&Value> {
        self.find(key).map(|(_, v)| v)
    }

    /// The entry of exactly this key.
    #[inline]
    pub fn find(&self, key: &Value) -> Option<(&Value, &Value)> {
        self.0.entries.find(key)
    }

    /// The value under a key as programs look it up: exactly, else a keyword for a string and the reverse, else both with
    /// underscores for hyphens.
    #[inline]
    pub fn lookup(&self, key: &Value) -> Option<&Value> {
        if let Value::Keyword(_) = key
            && let Ok(found) = self.0.entries.named(key)
        {
            return found.or_else(|| self.underscored(key));
        }
        self.find(key).or_else(|| self.loose(key)).map(|(_, v)| v)
    }

    /// The entry that [`Map::lookup`] finds.
    pub fn lookup_entry(&self, key: &Value) -> Option<(&Value, &Value)> {
        self.find(key).or_else(|| self.loose(key))
    }

    fn loose(&self, key: &Value) -> Option<(&Value, &Value)> {
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

    /// Puts `value` under `key`, in place where nobody else holds the map; gives the old value back.
    pub fn insert(&mut self, key: Value, value: Value) -> Option<Value> {
        let data = Arc::make_mut(&mut self.0);
        data.depth = data.depth.max(key.depth() + 1).max(value.depth() + 1);
        data.entries.insert(key, value)
    }

    /// Takes the value under `key` out for an update in place, leaving nil there. `None`, and nothing changed, where
    /// somebody else holds the map or the key is missing.
    pub fn take(&mut self, key: &Value) -> Option<Value> {
        Arc::get_mut(&mut self.0)?.entries.get_mut(key).map(std::mem::take)
    }

    /// Removes `key`, in place where nobody else holds the map.
    pub fn remove(&mut self, key: &Value) -> Option<Value> {
        self.find(key)?;
        Arc::make_mut(&mut self.0).entries.remove(key)
    }

    /// The entries, sorted by key.
    pub fn iter(&self) -> MapIter<'_> {
        MapIter(self.0.entries.iter())
    }

    /// The entries as a buffer, sorted by key; moved where nobody else holds the map.
    pub fn into_entries(mut self) -> Vec<(Value, Value)> {
        match Arc::get_mut(&mut self.0) {
            Some(data) => data.entries.take(),
            None => self.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
        }
    }

    /// Whether somebody else holds it too.
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

    /// Hands keys and values to `out` if this was the last holder.
    pub(crate) fn dismantle(self, out: &mut Vec<Value>) {
        if let Some(mut data) = Arc::into_inner(self.0) {
            data.entries.dismantle(out);
        }
    }
}

/// The entries of a map, sorted by key.
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
