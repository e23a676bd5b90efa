//! Persistent, ordered sets: a map from each member to `()`.

use std::sync::Arc;

use super::tree::{self, Tree};
use super::vector::depth_over;
use crate::Value;
use crate::order::compare;

const SMALL: usize = 32;

/// A persistent set, one pointer wide.
#[derive(Clone)]
pub struct Set(Arc<Data>);

#[derive(Clone)]
struct Data {
    members: Members,
    depth: u32,
}

#[derive(Clone)]
enum Members {
    Small(Vec<(Value, ())>),
    Tree(Tree<()>),
}

impl Members {
    fn dismantle(&mut self, out: &mut Vec<Value>) {
        let mut members = Vec::new();
        match self {
            Members::Small(small) => members = std::mem::take(small),
            Members::Tree(tree) => tree.dismantle(&mut members),
        }
        out.extend(members.into_iter().map(|(v, ())| v));
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        if self.depth > super::SHALLOW {
            let mut parts = Vec::new();
            self.members.dismantle(&mut parts);
            crate::value::teardown(parts);
        }
    }
}

impl Default for Set {
    fn default() -> Self {
        Set(Arc::new(Data { members: Members::Small(Vec::new()), depth: 1 }))
    }
}

impl FromIterator<Value> for Set {
    fn from_iter<I: IntoIterator<Item = Value>>(members: I) -> Self {
        Set::from_members(members.into_iter().map(|v| (v, ())).collect())
    }
}

impl Set {
    /// Makes a set of members in any order. Of equal members the first stays.
    fn from_members(mut members: Vec<(Value, ())>) -> Set {
        let sorted = members.windows(2).all(|w| matches!(w, [a, b] if compare(&a.0, &b.0).is_lt()));
        if !sorted {
            members.sort_by(|a, b| compare(&a.0, &b.0));
            members.dedup_by(|later, first| compare(&later.0, &first.0).is_eq());
        }
        Set::from_pairs(members)
    }

    /// Makes a set of members that are sorted and distinct.
    pub(crate) fn from_sorted(members: Vec<Value>) -> Set {
        Set::from_pairs(members.into_iter().map(|v| (v, ())).collect())
    }

    fn from_pairs(members: Vec<(Value, ())>) -> Set {
        let depth = depth_over(members.iter().map(|(v, ())| v));
        let members = if members.len() <= SMALL { Members::Small(members) } else { Members::Tree(Tree::from_sorted(members)) };
        Set(Arc::new(Data { members, depth }))
    }

    /// Number of members.
    pub fn len(&self) -> usize {
        match &self.0.members {
            Members::Small(members) => members.len(),
            Members::Tree(tree) => tree.len(),
        }
    }

    /// Whether the set has no members.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An upper bound of the nesting depth, at least 1.
    pub fn depth(&self) -> u32 {
        self.0.depth
    }

    /// Returns the member that equals `value`.
    pub fn get(&self, value: &Value) -> Option<&Value> {
        match &self.0.members {
            Members::Small(members) => tree::find(members, value).ok().and_then(|at| members.get(at)).map(|(v, ())| v),
            Members::Tree(tree) => tree.get(value).map(|(v, ())| v),
        }
    }

    /// Whether `value` is a member.
    pub fn contains(&self, value: &Value) -> bool {
        self.get(value).is_some()
    }

    /// Adds a member and returns whether it is new. The set is updated in place if it has a single owner.
    pub fn insert(&mut self, value: Value) -> bool {
        if self.contains(&value) {
            return false;
        }
        let data = Arc::make_mut(&mut self.0);
        data.depth = data.depth.max(value.depth() + 1);
        match &mut data.members {
            Members::Small(members) => {
                let at = tree::find(members, &value).unwrap_or_else(|at| at);
                members.insert(at, (value, ()));
                if members.len() > SMALL {
                    data.members = Members::Tree(Tree::from_sorted(std::mem::take(members)));
                }
            }
            Members::Tree(tree) => {
                tree.insert(value, ());
            }
        }
        true
    }

    /// Removes a member and returns whether it existed. The set is updated in place if it has a single owner.
    pub fn remove(&mut self, value: &Value) -> bool {
        if !self.contains(value) {
            return false;
        }
        match &mut Arc::make_mut(&mut self.0).members {
            Members::Small(members) => {
                if let Ok(at) = tree::find(members, value) {
                    members.remove(at);
                }
            }
            Members::Tree(tree) => {
                tree.remove(value);
            }
        }
        true
    }

    /// Iterates over the members in order.
    pub fn iter(&self) -> SetIter<'_> {
        match &self.0.members {
            Members::Small(members) => SetIter(Walk::Small(members.iter())),
            Members::Tree(tree) => SetIter(Walk::Tree(tree.iter())),
        }
    }

    /// Returns the members in order as a buffer. They are moved if the set has a single owner.
    pub fn into_members(mut self) -> Vec<Value> {
        match Arc::get_mut(&mut self.0) {
            Some(data) => match std::mem::replace(&mut data.members, Members::Small(Vec::new())) {
                Members::Small(members) => members.into_iter().map(|(v, ())| v).collect(),
                Members::Tree(tree) => tree.into_entries().into_iter().map(|(v, ())| v).collect(),
            },
            None => self.iter().cloned().collect(),
        }
    }

    /// Whether the set has more than one owner.
    pub(crate) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// The address of the allocation.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Whether both are the same allocation.
    pub fn same(&self, other: &Set) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Moves the members to `out` if this was the last owner.
    pub(crate) fn dismantle(self, out: &mut Vec<Value>) {
        if let Some(mut data) = Arc::into_inner(self.0) {
            data.members.dismantle(out);
        }
    }
}

/// Iterator over the members of a set, in order.
pub struct SetIter<'a>(Walk<'a>);

enum Walk<'a> {
    Small(std::slice::Iter<'a, (Value, ())>),
    Tree(tree::Iter<'a, ()>),
}

impl<'a> Iterator for SetIter<'a> {
    type Item = &'a Value;

    #[inline]
    fn next(&mut self) -> Option<&'a Value> {
        match &mut self.0 {
            Walk::Small(iter) => iter.next().map(|(v, ())| v),
            Walk::Tree(iter) => iter.next().map(|(v, ())| v),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.0 {
            Walk::Small(iter) => iter.size_hint(),
            Walk::Tree(iter) => iter.size_hint(),
        }
    }
}

impl<'a> IntoIterator for &'a Set {
    type Item = &'a Value;
    type IntoIter = SetIter<'a>;

    fn into_iter(self) -> SetIter<'a> {
        self.iter()
    }
}
