//! Shapes of objects. The objects of a list usually have the same names, which are compared with the previous object instead of
//! being looked up.

use std::sync::Arc;

use super::plain::run;
use crate::Value;
use crate::collection::{Map, Names, SMALL};

/// The names of the last object at some depth in the order of the text, and their positions when sorted.
#[derive(Default)]
pub(super) struct Shape {
    names: Vec<Value>,
    order: Vec<usize>,
    /// The sorted names, computed when a second object has the same ones.
    sorted: Option<Names>,
    /// Whether all names are written without an escape.
    literal: bool,
}

impl Shape {
    /// Whether objects can be compared with the shape by their text.
    #[inline]
    pub(super) fn is_literal(&self) -> bool {
        self.literal
    }

    /// The name at `index` in the last object.
    #[inline]
    pub(super) fn name(&self, index: usize) -> Option<&Value> {
        self.names.get(index)
    }

    /// The first `count` names of the last object.
    pub(super) fn names(&self, count: usize) -> &[Value] {
        self.names.get(..count).unwrap_or_default()
    }

    /// Whether an object whose first `count` names match has all names of the shape.
    #[inline]
    pub(super) fn is_whole(&self, count: usize) -> bool {
        self.names.len() == count
    }

    /// Makes the map of an object that has the names of the shape. `values` are in the order of the text and are replaced by nil.
    pub(super) fn row(&mut self, values: &mut [Value]) -> Map {
        let names = || self.order.iter().map(|at| self.names.get(*at).cloned().unwrap_or_default());
        let ordered = self.order.iter().map(|at| values.get_mut(*at).map(std::mem::take).unwrap_or_default());
        if self.names.len() > SMALL {
            return Map::from_sorted(names().zip(ordered).collect());
        }
        let sorted = self.sorted.get_or_insert_with(|| Arc::new(names().collect()));
        Map::from_row(Arc::clone(sorted), ordered.collect())
    }

    /// Makes the map of an object with these names and values, both in the order of the text. The shape takes over its names, if
    /// they are distinct.
    pub(super) fn map(&mut self, names: &[Value], values: &mut [Value]) -> Map {
        if self.names == names {
            return self.row(values);
        }
        self.order = {
            let mut order: Vec<usize> = (0..names.len()).collect();
            order.sort_by_key(|at| names.get(*at));
            order
        };
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
