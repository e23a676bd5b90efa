//! Detects items that several pages have: the list changed while it was read, so that other items may be missing.

use ptc_lisp::{Kind, Value};

use super::{Error, Pages, hash};

/// Members that identify an item. Items without them may be equal although they are different.
const IDS: &[&str] = &["id", "_id", "uuid", "key"];

impl Pages {
    /// Returns an error if an earlier page has one of these items.
    pub(super) fn check_repeated_items(&mut self, page: &[Value]) -> Result<(), Error> {
        let is_boundary_repeated =
            page.first().zip(self.items.last()).is_some_and(|(first, last)| id(first).is_some() && is_same_item(first, last));
        let hashes: Vec<u64> = page.iter().filter(|item| id(item).is_some()).map(hash).collect();
        if is_boundary_repeated || hashes.iter().any(|hash| self.seen_items.contains(hash)) {
            return Err(self.broken("a page has an item of an earlier page: the list changed while it was read"));
        }
        self.seen_items.extend(hashes);
        Ok(())
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

/// Whether two items are the same. Items with equal ids are, since other members may have changed meanwhile.
pub(super) fn is_same_item(one: &Value, other: &Value) -> bool {
    one == other || id(one).is_some_and(|one| id(other) == Some(one))
}
