//! The keys of objects: a list of objects has one shape, which need not be found out for each of them.

use super::plain::run;
use crate::Value;
use crate::collection::Map;
use crate::sorting;

/// The keys of the last object at some depth in the order they came, and their places when sorted.
#[derive(Default)]
pub(super) struct Shape {
    keys: Vec<Value>,
    order: Vec<usize>,
    /// Whether the keys are written as they are, without an escape.
    literal: bool,
}

impl Shape {
    /// The key that came at `index` in the last object, if it can be recognised by its text.
    #[inline]
    pub(super) fn key(&self, index: usize) -> Option<&Value> {
        if self.literal { self.keys.get(index) } else { None }
    }

    fn fits(&self, entries: &[(Value, Value)]) -> bool {
        self.keys.len() == entries.len() && self.keys.iter().zip(entries).all(|(key, (other, _))| key == other)
    }

    /// Learns a shape, if no key comes twice.
    #[cold]
    fn learn(&mut self, entries: &[(Value, Value)]) -> bool {
        self.keys.clear();
        self.keys.extend(entries.iter().map(|(key, _)| key.clone()));
        self.literal = entries.iter().all(|(key, _)| key.as_str().is_some_and(|key| run(key.as_bytes()).0 == key.len()));
        let keys = &self.keys;
        self.order = sorting::places(entries.len(), &mut |a, b| keys.get(a).cmp(&keys.get(b)));
        let twice = self.order.windows(2).any(|pair| matches!(pair, [a, b] if keys.get(*a) == keys.get(*b)));
        if twice {
            self.keys.clear();
        }
        !twice
    }

    /// The map of the entries from `start` on. `followed`: each key was found to be the one that [`Shape::key`] gives.
    pub(super) fn map(&mut self, all: &mut Vec<(Value, Value)>, start: usize, followed: bool) -> Map {
        let entries = all.get_mut(start..).unwrap_or_default();
        let known = if followed { self.keys.len() == entries.len() } else { self.fits(entries) };
        if !known && !self.learn(entries) {
            return Map::from_entries(all.drain(start..).collect());
        }
        let mut sorted = Vec::with_capacity(entries.len());
        for at in &self.order {
            if let Some(entry) = entries.get_mut(*at) {
                sorted.push(std::mem::take(entry));
            }
        }
        // Nothing but nil is left in them.
        all.truncate(start);
        Map::from_sorted(sorted)
    }
}
