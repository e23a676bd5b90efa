//! Infinite sequences: `(range)`, `(iterate f x)`, `(repeat x)`, `(cycle xs)`, `(repeatedly f)`, and the results of `map`,
//! `filter` and similar functions on them.
//!
//! Every other sequence is a vector. An infinite one describes how its items are computed and holds a position. Items are
//! computed when a function needs them and are not cached: reading them twice computes them twice, and memory does not grow with
//! the position. Functions that need only a part of a sequence (`take`, `take-while`, `first`, `nth`, `some`, `reduce` with
//! `reduced`,
//! `for` with `:while` …) give ordinary values; functions that change items one by one give another infinite sequence; functions
//! that need all items raise an error. An infinite sequence cannot be the result of a program.

mod cursor;
mod transducer;

use std::fmt;
use std::sync::atomic::Ordering;

pub(crate) use cursor::Cursor;
pub(crate) use transducer::{Flow, Transducer};

use crate::machine::{Machine, Raised};
use crate::{ErrorKind, Value};

/// Maximum number of nested transformations of an infinite sequence. Each item passes through all of them on the native stack.
const MAX_LEVELS: u32 = 200;

/// An infinite sequence.
pub struct InfiniteSeq {
    cursor: Cursor,
    depth: u32,
    serial: u64,
}

impl InfiniteSeq {
    /// The sequence of the items from the cursor's position on.
    pub(crate) fn value(m: &mut Machine, cursor: Cursor) -> Result<Value, Raised> {
        if cursor.levels() > MAX_LEVELS {
            let message = format!("an infinite sequence has more than {MAX_LEVELS} nested transformations");
            return Err(m.raise_with_hint(ErrorKind::DepthExceeded, message, "take the items that are needed in between"));
        }
        m.meters.made_infinite_seq.store(true, Ordering::Relaxed);
        let depth = cursor.depth() + 1;
        let serial = crate::value::serial();
        Ok(Value::InfiniteSeq(std::sync::Arc::new(InfiniteSeq { cursor, depth, serial })))
    }

    /// A cursor at its first item.
    pub(crate) fn cursor(&self) -> Cursor {
        self.cursor.clone()
    }

    /// The first `n` items.
    pub(crate) fn take(&self, m: &mut Machine, n: usize) -> Result<Vec<Value>, Raised> {
        let mut cursor = self.cursor();
        let mut items = Vec::new();
        while items.len() < n {
            if items.len() == items.capacity() {
                m.charge(items.len() * 2 * crate::args::ITEM)?;
            }
            match cursor.next(m)? {
                Some(item) => items.push(item),
                None => break,
            }
        }
        Ok(items)
    }

    /// The item at `index`.
    pub(crate) fn nth(&self, m: &mut Machine, index: usize) -> Result<Value, Raised> {
        let mut cursor = self.cursor();
        cursor.skip(m, index)?;
        Ok(cursor.next(m)?.unwrap_or_default())
    }

    /// All items but the first `n`.
    pub(crate) fn skip(&self, m: &mut Machine, n: usize) -> Result<Value, Raised> {
        let mut cursor = self.cursor();
        cursor.skip(m, n)?;
        InfiniteSeq::value(m, cursor)
    }

    pub(crate) fn serial(&self) -> u64 {
        self.serial
    }

    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    /// The values in it.
    pub(crate) fn values(&self) -> Vec<&Value> {
        self.cursor.values()
    }

    /// Moves the values in it to `out`, for a drop without recursion.
    pub(crate) fn dismantle(&mut self, out: &mut Vec<Value>) {
        self.cursor.dismantle(out);
    }
}

impl Drop for InfiniteSeq {
    fn drop(&mut self) {
        if self.depth > crate::collection::SHALLOW {
            let mut parts = Vec::new();
            self.dismantle(&mut parts);
            crate::value::teardown(parts);
        }
    }
}

impl fmt::Debug for InfiniteSeq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("#endless")
    }
}
