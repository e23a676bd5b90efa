//! One traversal of any container: what comparison, hashing and the like walk over.

use super::map::MapIter;
use super::set::SetIter;
use crate::Value;

/// The values directly inside a container, in canonical order: items, members, or key and value by turns.
pub enum Children<'a> {
    /// Of a vector.
    Items(super::vector::Iter<'a>),
    /// Of a set.
    Members(SetIter<'a>),
    /// Of a map, with the value that comes after the key just given.
    Entries(MapIter<'a>, Option<&'a Value>),
}

impl<'a> Children<'a> {
    /// The children of `value`; `None` if it is not a container. For the interpreter's own walks: the status of a failed call's result does
    /// not count as read by the program.
    pub fn of(value: &'a Value) -> Option<Children<'a>> {
        match value {
            Value::Vector(v) => Some(Children::Items(v.iter())),
            Value::Set(s) => Some(Children::Members(s.iter())),
            Value::Map(m) => Some(Children::Entries(m.untracked_iter(), None)),
            _ => None,
        }
    }

    /// [`Children::of`] for what shows the children to the program or to the reader of its answer.
    pub fn shown(value: &'a Value) -> Option<Children<'a>> {
        match value {
            Value::Map(m) => Some(Children::Entries(m.iter(), None)),
            other => Children::of(other),
        }
    }
}

impl Children<'_> {
    /// Whether none is left.
    pub(crate) fn is_done(&self) -> bool {
        match self {
            Children::Items(items) => items.len() == 0,
            Children::Members(members) => members.size_hint().0 == 0,
            Children::Entries(entries, pending) => pending.is_none() && entries.size_hint().0 == 0,
        }
    }
}

impl<'a> Iterator for Children<'a> {
    type Item = &'a Value;

    #[inline]
    fn next(&mut self) -> Option<&'a Value> {
        match self {
            Children::Items(items) => items.next(),
            Children::Members(members) => members.next(),
            Children::Entries(entries, pending) => pending.take().or_else(|| {
                let (key, value) = entries.next()?;
                *pending = Some(value);
                Some(key)
            }),
        }
    }
}
