//! What the functions that `memoize` made have given.
//!
//! The machine holds it and not the function: a result may hold the function itself, and would never be freed then.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use foldhash::fast::RandomState;

use crate::Value;
use crate::collection::Map;

/// A function of `memoize`, as what it gave is kept under.
pub(crate) type Owner = Arc<()>;

/// Results by arguments, for every function.
#[derive(Default)]
pub(crate) struct Memos {
    /// By the addresses of their owners, which stay taken as long as they are here.
    held: HashMap<usize, Memo, RandomState>,
    /// Functions after which those that are gone are looked for.
    full: usize,
}

struct Memo {
    owner: Weak<()>,
    results: Map,
}

/// Fewer functions than this are not worth a look.
const FEW: usize = 32;

impl Memos {
    pub(super) fn get(&self, owner: &Owner, args: &Value) -> Option<&Value> {
        self.held.get(&Arc::as_ptr(owner).addr())?.results.get(args)
    }

    pub(super) fn put(&mut self, owner: &Owner, args: Value, result: Value) {
        let place = Arc::as_ptr(owner).addr();
        if !self.held.contains_key(&place) && self.held.len() >= self.full {
            self.held.retain(|_, memo| memo.owner.strong_count() > 0);
            self.full = FEW.max(self.held.len() * 2);
        }
        let memo = self.held.entry(place).or_insert_with(|| Memo { owner: Arc::downgrade(owner), results: Map::default() });
        memo.results.insert(args, result);
    }
}

#[cfg(test)]
mod tests {
    use super::{FEW, Memos, Owner};
    use crate::Value;

    #[test]
    fn functions_that_are_gone_are_forgotten() {
        let mut memos = Memos::default();
        let kept = Owner::default();
        memos.put(&kept, Value::Nil, Value::Int(1));
        for i in 0..1000 {
            memos.put(&Owner::default(), Value::Nil, Value::Int(i));
        }
        assert!(memos.held.len() <= FEW + 1, "{}", memos.held.len());
        assert_eq!(memos.get(&kept, &Value::Nil), Some(&Value::Int(1)));
        assert_eq!(memos.get(&kept, &Value::Int(2)), None);
    }
}
