//! The names of objects: a list of objects has one shape, which need not be found out for each of them.

use std::sync::Arc;

use super::plain::run;
use crate::Value;
use crate::collection::{Map, Names, SMALL};
use crate::sorting;

/// The names of the last object at some depth in the order they came, and their places when sorted.
#[derive(Default)]
pub(super) struct Shape {
    names: Vec<Value>,
    order: Vec<usize>,
    /// The names in order, made when a second object has them.
    sorted: Option<Names>,
    /// Whether the names are written as they are, without an escape.
    literal: bool,
}

impl Shape {
    /// Whether objects can be held against it by their text.
    #[inline]
    pub(super) fn is_literal(&self) -> bool {
        self.literal
    }

    /// The name that came at `index` in the last object.
    #[inline]
    pub(super) fn name(&self, index: usize) -> Option<&Value> {
        self.names.get(index)
    }

    /// The first `count` names.
    pub(super) fn names(&self, count: usize) -> &[Value] {
        self.names.get(..count).unwrap_or_default()
    }

    /// Whether an object of so many names that are all its own has no more of them.
    #[inline]
    pub(super) fn is_whole(&self, count: usize) -> bool {
        self.names.len() == count
    }

    /// The map of an object that has its names, with `values` in the order they came: nothing but nil is left in them.
    pub(super) fn row(&mut self, values: &mut [Value]) -> Map {
        let names = || self.order.iter().map(|at| self.names.get(*at).cloned().unwrap_or_default());
        let ordered = self.order.iter().map(|at| values.get_mut(*at).map(std::mem::take).unwrap_or_default());
        if self.names.len() > SMALL {
            return Map::from_sorted(names().zip(ordered).collect());
        }
        let sorted = self.sorted.get_or_insert_with(|| Arc::new(names().collect()));
        Map::from_row(Arc::clone(sorted), ordered.collect())
    }

    /// The map of an object with these names and values, both in the order they came. Its names are those of the shape from now on, if
    /// none comes twice.
    pub(super) fn map(&mut self, names: &[Value], values: &mut [Value]) -> Map {
        if self.names == names {
            return self.row(values);
        }
        self.order = sorting::places(names.len(), &mut |a, b| names.get(a).cmp(&names.get(b)));
        self.names.clear();
        self.sorted = None;
        let entry = |at: &usize| {
            let value = values.get_mut(*at).map(std::mem::take);
            (names.get(*at).cloned().unwrap_or_default(), value.unwrap_or_default())
        };
        let entries: Vec<_> = self.order.iter().map(entry).collect();
        if entries.windows(2).any(|pair| matches!(pair, [(a, _), (b, _)] if a == b)) {
            self.literal = false;
            return Map::from_entries(entries);
        }
        self.names.extend_from_slice(names);
        self.literal = names.iter().all(|name| name.as_str().is_some_and(|name| run(name.as_bytes()).0 == name.len()));
        Map::from_sorted(entries)
    }
}
