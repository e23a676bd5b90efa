//! The results of memoized functions.
//!
//! The machine stores them instead of the function, since a result that contains the function would be a reference cycle and
//! would never be freed.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use foldhash::fast::RandomState;

use crate::Value;
use crate::collection::Map;

/// The identity of a memoized function, by which its results are stored.
pub(crate) type Owner = Arc<()>;

/// The results of all memoized functions, by arguments.
#[derive(Default)]
pub(crate) struct Memos {
    /// Results by the address of the owner. A weak reference keeps the address from being reused.
    held: HashMap<usize, Memo, RandomState>,
    /// Number of entries at which the entries of dropped functions are removed.
    full: usize,
}

struct Memo {
    owner: Weak<()>,
    results: Map,
}

/// Minimum of [`Memos::full`].
const MIN_SWEEP: usize = 32;

impl Memos {
    pub(super) fn get(&self, owner: &Owner, args: &Value) -> Option<&Value> {
        self.held.get(&Arc::as_ptr(owner).addr())?.results.get(args)
    }

    pub(super) fn put(&mut self, owner: &Owner, args: Value, result: Value) {
        let place = Arc::as_ptr(owner).addr();
        if !self.held.contains_key(&place) && self.held.len() >= self.full {
            self.held.retain(|_, memo| memo.owner.strong_count() > 0);
            self.full = MIN_SWEEP.max(self.held.len() * 2);
        }
        let memo = self.held.entry(place).or_insert_with(|| Memo { owner: Arc::downgrade(owner), results: Map::default() });
        memo.results.insert(args, result);
    }
}

#[cfg(test)]
mod tests {
    use super::{MIN_SWEEP, Memos, Owner};
    use crate::Value;

    #[test]
    fn entries_of_dropped_functions_are_removed() {
        let mut memos = Memos::default();
        let kept = Owner::default();
        memos.put(&kept, Value::Nil, Value::Int(1));
        for i in 0..1000 {
            memos.put(&Owner::default(), Value::Nil, Value::Int(i));
        }
        assert!(memos.held.len() <= MIN_SWEEP + 1, "{}", memos.held.len());
        assert_eq!(memos.get(&kept, &Value::Nil), Some(&Value::Int(1)));
        assert_eq!(memos.get(&kept, &Value::Int(2)), None);
    }
}
