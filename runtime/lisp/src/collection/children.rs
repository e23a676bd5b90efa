//! One traversal for all containers, used by comparison, hashing and similar walks.

use super::map::MapIter;
use super::set::SetIter;
use crate::Value;

/// The values directly inside a container, in canonical order: items, members, or keys and values in alternation.
pub enum Children<'a> {
    /// The items of a vector.
    Items(super::vector::Iter<'a>),
    /// The members of a set.
    Members(SetIter<'a>),
    /// The entries of a map. The second field is the value that follows the key returned last.
    Entries(MapIter<'a>, Option<&'a Value>),
}

impl<'a> Children<'a> {
    /// Returns the children of `value`, or `None` if it is not a container. This is for the interpreter's own walks: the program
    /// does not count as having read the status of a failed call's result.
    pub fn new(value: &'a Value) -> Option<Children<'a>> {
        match value {
            Value::Vector(v) => Some(Children::Items(v.iter())),
            Value::Set(s) => Some(Children::Members(s.iter())),
            Value::Map(m) => Some(Children::Entries(m.untracked_iter(), None)),
            _ => None,
        }
    }

    /// Like [`Children::new`], but for code that shows the children to the program or to the reader of its answer: the status
    /// counts as read.
    pub fn shown(value: &'a Value) -> Option<Children<'a>> {
        match value {
            Value::Map(m) => Some(Children::Entries(m.iter(), None)),
            other => Children::new(other),
        }
    }
}

impl Children<'_> {
    /// Whether all children have been returned.
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
