//! The entries of a map, sorted by key. Small maps are a buffer, or values beside keys that many maps share. Larger maps are a
//! tree.

use std::sync::Arc;

use super::tree::{self, Tree};
use crate::Value;
use crate::failed_calls::FailedCall;
use crate::list_uses::ListMember;
use crate::order::compare;

/// Maximum entries of a map that is not a tree.
pub(crate) const SMALL: usize = 24;
/// Maximum entries for which names are found by a linear scan: short texts are compared faster for equality than for order.
const SCANNED: usize = 12;

/// Sorted, distinct keys that several maps share. All keys are names (strings or keywords). One pointer wide.
pub(crate) type Names = Arc<Box<[Value]>>;

/// Entries sorted by key, with distinct keys.
#[derive(Clone)]
pub(super) enum Entries {
    /// At most [`SMALL`] entries.
    Small(Vec<(Value, Value)>),
    /// A row of a data source, which shares its names with the other rows. It is cheap to make, to store and to drop.
    Row {
        /// At most [`SMALL`] names.
        names: Names,
        /// One value per name.
        values: Vec<Value>,
    },
    Tree(Tree<Value>),
    /// Entries that record when the program reads them.
    Tracked(Box<Tracked>),
}

/// Entries of the result of a failed call, or of an object with a list, which record when the program reads them.
#[derive(Clone)]
pub(super) struct Tracked {
    /// The entries, which are never `Tracked` themselves.
    entries: Entries,
    reader: Reader,
}

/// The record of what a program reads.
#[derive(Clone)]
pub(super) enum Reader {
    /// Of the status of a failed call.
    Status(Arc<FailedCall>),
    /// Of the items of a list.
    List(ListMember),
}

impl Tracked {
    /// Records that the program reads the entry at `key`.
    fn read(&self, key: &Value) {
        match &self.reader {
            Reader::Status(call) if matches!(key.as_name(), Some("ok" | "reason" | "message" | "status")) => call.check(),
            Reader::Status(_) => {}
            Reader::List(list) => list.read(key),
        }
    }
}

impl Entries {
    pub(super) fn from_sorted(entries: Vec<(Value, Value)>) -> Entries {
        if entries.len() <= SMALL { Entries::Small(entries) } else { Entries::Tree(Tree::from_sorted(entries)) }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        match self {
            Entries::Small(entries) => entries.len(),
            Entries::Row { values, .. } => values.len(),
            Entries::Tree(tree) => tree.len(),
            Entries::Tracked(tracked) => tracked.entries.len(),
        }
    }

    /// Returns the entry with exactly this key.
    #[inline]
    pub(super) fn find(&self, key: &Value) -> Option<(&Value, &Value)> {
        match self {
            Entries::Small(entries) => {
                let at = match key {
                    Value::Keyword(_) | Value::Str(_) if entries.len() <= SCANNED => {
                        entries.iter().position(|(k, _)| is_name(k, key))
                    }
                    _ => tree::find(entries, key).ok(),
                };
                entries.get(at?).map(|(k, v)| (k, v))
            }
            Entries::Row { names, values } => {
                let at = place(names, key)?;
                names.get(at).zip(values.get(at))
            }
            Entries::Tree(tree) => tree.get(key),
            Entries::Tracked(tracked) => {
                let found = tracked.entries.find(key)?;
                tracked.read(found.0);
                Some(found)
            }
        }
    }

    /// Returns the value under a keyword, or else under the string with the same text. `Err` if this representation cannot answer
    /// in one pass.
    #[inline]
    pub(super) fn named(&self, keyword: &Value) -> Result<Option<&Value>, ()> {
        match self {
            Entries::Small(entries) if entries.len() <= SCANNED => Ok(named(entries.iter().map(|(k, v)| (k, v)), keyword)),
            Entries::Row { names, values } if names.len() <= SCANNED => Ok(named(names.iter().zip(values), keyword)),
            _ => Err(()),
        }
    }

    /// Returns the value under exactly this key, for a change in place.
    #[inline]
    pub(super) fn get_mut(&mut self, key: &Value) -> Option<&mut Value> {
        match self {
            Entries::Small(entries) => {
                let at = tree::find(entries, key).ok()?;
                entries.get_mut(at).map(|(_, v)| v)
            }
            Entries::Row { names, values } => values.get_mut(place(names, key)?),
            Entries::Tree(tree) => tree.get_mut(key),
            Entries::Tracked(tracked) => {
                tracked.read(key);
                tracked.entries.get_mut(key)
            }
        }
    }

    /// Stores `value` under `key` and returns the old value.
    pub(super) fn insert(&mut self, key: Value, value: Value) -> Option<Value> {
        if let Entries::Row { names, values } = self {
            if let Some(old) = place(names, &key).and_then(|at| values.get_mut(at)) {
                return Some(std::mem::replace(old, value));
            }
            self.own_names();
        }
        match self {
            Entries::Small(entries) => match tree::find(entries, &key) {
                Ok(at) => entries.get_mut(at).map(|(_, v)| std::mem::replace(v, value)),
                Err(at) => {
                    entries.insert(at, (key, value));
                    if entries.len() > SMALL {
                        *self = Entries::Tree(Tree::from_sorted(std::mem::take(entries)));
                    }
                    None
                }
            },
            Entries::Tree(tree) => tree.insert(key, value),
            Entries::Row { .. } => unreachable!("it has names of its own by now"),
            Entries::Tracked(tracked) => tracked.entries.insert(key, value),
        }
    }

    /// Removes `key` and returns its value.
    pub(super) fn remove(&mut self, key: &Value) -> Option<Value> {
        self.own_names();
        match self {
            Entries::Small(entries) => tree::find(entries, key).ok().map(|at| entries.remove(at).1),
            Entries::Tree(tree) => tree.remove(key).map(|(_, v)| v),
            Entries::Row { .. } => unreachable!("it has names of its own by now"),
            Entries::Tracked(tracked) => tracked.entries.remove(key),
        }
    }

    /// Moves all entries out and leaves none.
    pub(super) fn take(&mut self) -> Vec<(Value, Value)> {
        self.own_names();
        match std::mem::replace(self, Entries::Small(Vec::new())) {
            Entries::Small(entries) => entries,
            Entries::Tree(tree) => tree.into_entries(),
            Entries::Row { .. } => unreachable!("it has names of its own by now"),
            Entries::Tracked(mut tracked) => tracked.entries.take(),
        }
    }

    /// Moves all values that may be deep to `out` and leaves none.
    pub(super) fn dismantle(&mut self, out: &mut Vec<Value>) {
        let mut entries = Vec::new();
        match self {
            Entries::Small(small) => entries = std::mem::take(small),
            // Names have no children.
            Entries::Row { values, .. } => out.append(values),
            Entries::Tree(tree) => tree.dismantle(&mut entries),
            Entries::Tracked(tracked) => return tracked.entries.dismantle(out),
        }
        out.extend(entries.into_iter().flat_map(|(k, v)| [k, v]));
    }

    /// Converts a row to a buffer with keys of its own, so that the keys can change.
    fn own_names(&mut self) {
        if let Entries::Row { names, values } = self {
            *self = Entries::Small(names.iter().cloned().zip(std::mem::take(values)).collect());
        }
    }

    pub(super) fn iter(&self) -> Iter<'_> {
        match self {
            Entries::Small(entries) => Iter::Small(entries.iter()),
            Entries::Row { names, values } => Iter::Row(names.iter(), values.iter()),
            Entries::Tree(tree) => Iter::Tree(tree.iter()),
            Entries::Tracked(tracked) => tracked.entries.iter(),
        }
    }

    /// Records that the program reads all entries.
    pub(super) fn read_all(&self) {
        if let Entries::Tracked(tracked) = self {
            match &tracked.reader {
                Reader::Status(call) => call.check(),
                Reader::List(list) => list.read_all(),
            }
        }
    }

    /// Returns the failed call that produced these entries.
    pub(super) fn failed_call(&self) -> Option<&Arc<FailedCall>> {
        match self {
            Entries::Tracked(tracked) => match &tracked.reader {
                Reader::Status(call) => Some(call),
                Reader::List(_) => None,
            },
            _ => None,
        }
    }

    /// Tracks the entries, unless they are tracked already.
    pub(super) fn track(&mut self, reader: Reader) {
        if !matches!(self, Entries::Tracked(_)) {
            let entries = std::mem::replace(self, Entries::Small(Vec::new()));
            *self = Entries::Tracked(Box::new(Tracked { entries, reader }));
        }
    }
}

/// Whether `key` equals the name `wanted`, which is a string or a keyword.
#[inline]
fn is_name(key: &Value, wanted: &Value) -> bool {
    match (key, wanted) {
        (Value::Keyword(key), Value::Keyword(wanted)) | (Value::Str(key), Value::Str(wanted)) => key == wanted,
        _ => false,
    }
}

/// The position of `key` among sorted names.
#[inline]
fn place(names: &[Value], key: &Value) -> Option<usize> {
    match key {
        Value::Keyword(_) | Value::Str(_) if names.len() <= SCANNED => names.iter().position(|name| is_name(name, key)),
        _ => names.binary_search_by(|name| compare(name, key)).ok(),
    }
}

#[inline]
fn named<'a>(entries: impl Iterator<Item = (&'a Value, &'a Value)>, keyword: &Value) -> Option<&'a Value> {
    let Value::Keyword(wanted) = keyword else { return None };
    let mut other = None;
    for (key, value) in entries {
        match key {
            Value::Keyword(text) if text == wanted => return Some(value),
            Value::Str(text) if text == wanted => other = Some(value),
            _ => {}
        }
    }
    other
}

/// Iterates over entries in the order of their keys.
pub(super) enum Iter<'a> {
    Small(std::slice::Iter<'a, (Value, Value)>),
    Row(std::slice::Iter<'a, Value>, std::slice::Iter<'a, Value>),
    Tree(tree::Iter<'a, Value>),
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a Value, &'a Value);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Iter::Small(iter) => iter.next().map(|(k, v)| (k, v)),
            Iter::Row(names, values) => names.next().zip(values.next()),
            Iter::Tree(iter) => iter.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Iter::Small(iter) => iter.size_hint(),
            Iter::Row(names, _) => names.size_hint(),
            Iter::Tree(iter) => iter.size_hint(),
        }
    }
}
