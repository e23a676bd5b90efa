//! Detects items that several pages have: the list changed while it was read, so that other items may be missing.
//!
//! Some lists have equal items, such as the songs of a playlist. A repeated item is therefore an error only if its id identifies
//! items: no page has two items with this id. Since a later page can show that ids are not unique, the list is judged at its end.
//! Items without an id may be equal by chance, and members such as `key` name settings, tags and groups, which repeat.

use std::collections::HashSet;

use ptc_lisp::{Kind, Value};

use super::{Error, Pages, hash};

/// Members that identify an item.
const IDS: &[&str] = &["id", "_id", "uuid"];

/// What was seen of repeated items.
#[derive(Debug, Default)]
pub(super) struct Repeated {
    /// Hashes of the received items that have an id.
    seen: HashSet<u64>,
    /// Whether a page had an item of an earlier page.
    is_found: bool,
    /// Whether one page had two items with the same id.
    has_equal_ids: bool,
}

impl Pages {
    /// Records whether an earlier page has one of these items.
    pub(super) fn record_repeated_items(&mut self, page: &[Value]) {
        let mut ids = HashSet::new();
        self.repeated.has_equal_ids |= !page.iter().filter_map(id).all(|id| ids.insert(hash(id)));
        // Other members of the item at the boundary may have changed meanwhile.
        let is_boundary_repeated = page.first().and_then(id).is_some_and(|first| self.items.last().and_then(id) == Some(first));
        let hashes: Vec<u64> = page.iter().filter(|item| id(item).is_some()).map(hash).collect();
        self.repeated.is_found |= is_boundary_repeated || hashes.iter().any(|hash| self.repeated.seen.contains(hash));
        self.repeated.seen.extend(hashes);
    }

    /// Returns an error if pages had items of earlier pages.
    pub(super) fn check_repeated_items(&self) -> Result<(), Error> {
        if self.repeated.is_found && !self.repeated.has_equal_ids {
            return Err(self.broken("a page has an item of an earlier page: the list changed while it was read"));
        }
        Ok(())
    }

    /// Whether two items are the same. Items with equal ids are, since other members may have changed meanwhile.
    pub(super) fn is_same_item(&self, one: &Value, other: &Value) -> bool {
        one == other || !self.repeated.has_equal_ids && id(one).is_some_and(|one| id(other) == Some(one))
    }

    /// Whether a page has the same items as an earlier one.
    pub(super) fn is_seen(&self, page: &[Value]) -> bool {
        self.seen.contains(&hash(page))
    }
}

fn id(item: &Value) -> Option<&Value> {
    if item.kind() != Kind::Map {
        return None;
    }
    IDS.iter().find_map(|name| item.get(name).filter(|id| !id.is_nil()))
}
