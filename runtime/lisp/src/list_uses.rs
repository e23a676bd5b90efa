//! Whether a program reads the items of a list in an answer, or only what the answer says about the list, such as a total.
//!
//! The object with the items is tracked in all of its copies. A look-up of the member with the items counts as reading them, as
//! does iteration over all entries: printing, encoding, `keys`, `seq`, or an answer that shows the object.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::Value;

/// What a program has read of an object with a list.
#[derive(Debug, Default)]
pub struct ListUses {
    items: AtomicBool,
    others: AtomicBool,
}

impl ListUses {
    /// Whether the program has read the items.
    pub fn are_items_read(&self) -> bool {
        self.items.load(Ordering::Relaxed)
    }

    /// Whether the program has read another member.
    pub fn are_others_read(&self) -> bool {
        self.others.load(Ordering::Relaxed)
    }
}

/// A list in an answer.
#[derive(Debug, Clone)]
pub struct TrackedList {
    /// The keys that lead from the answer to the items, at least one.
    pub keys: Vec<String>,
    /// What the program has read.
    pub uses: Arc<ListUses>,
}

impl TrackedList {
    /// Tracks the object with the items in an answer.
    pub(crate) fn track(&self, answer: Value) -> Value {
        track(answer, &self.keys, &self.uses)
    }
}

fn track(value: Value, keys: &[String], uses: &Arc<ListUses>) -> Value {
    let Value::Map(mut map) = value else { return value };
    match keys {
        [] => {}
        [member] => map.track_list(ListMember { member: member.as_str().into(), uses: Arc::clone(uses) }),
        [key, rest @ ..] => {
            let key = Value::string(key);
            if let Some(inner) = map.take(&key) {
                map.insert(key, track(inner, rest, uses));
            }
        }
    }
    Value::Map(map)
}

/// The member of an object that has the items.
#[derive(Debug, Clone)]
pub(crate) struct ListMember {
    member: Arc<str>,
    uses: Arc<ListUses>,
}

impl ListMember {
    /// Records that the program reads the entry at `key`.
    pub(crate) fn read(&self, key: &Value) {
        let is_item = key.as_name().is_some_and(|name| name == &*self.member);
        let flag = if is_item { &self.uses.items } else { &self.uses.others };
        flag.store(true, Ordering::Relaxed);
    }

    /// Records that the program reads all entries.
    pub(crate) fn read_all(&self) {
        self.uses.items.store(true, Ordering::Relaxed);
    }
}
