//! Sequences without an end: `(range)`, `(iterate f x)`, `(repeat x)`, `(cycle xs)`, `(repeatedly f)`, and what `map`,
//! `filter` and their like make of them.
//!
//! Every other sequence is a vector. An endless one is a description of how its items are found, and a place in it: nothing is
//! computed before a function asks for items, and nothing is kept, so that asking twice computes twice and memory does not
//! grow with the place. Functions that need only a part of a sequence (`take`, `take-while`, `first`, `nth`, `some`, `reduce`
//! with `reduced`, `for` with `:while` …) give ordinary values; functions that change items one by one give another endless
//! sequence; functions that need all items refuse. No endless sequence leaves a program.

mod cursor;
mod stage;

use std::fmt;
use std::sync::atomic::Ordering;

pub(crate) use cursor::Cursor;
pub(crate) use stage::{Flow, Stage};

use crate::machine::{Machine, Raised};
use crate::{ErrorKind, Value};

/// Changes of an endless sequence on top of each other; each item goes through all of them on the native stack.
const MAX_LEVELS: u32 = 200;

/// A sequence without an end.
pub struct Endless {
    cursor: Cursor,
    depth: u32,
    serial: u64,
}

impl Endless {
    /// The sequence of what the cursor finds from its place on.
    pub(crate) fn value(m: &mut Machine, cursor: Cursor) -> Result<Value, Raised> {
        if cursor.levels() > MAX_LEVELS {
            let message = format!("an endless sequence is changed more than {MAX_LEVELS} times over");
            return Err(m.raise_with_hint(ErrorKind::DepthExceeded, message, "take the items that are needed in between"));
        }
        m.meters.made_endless.store(true, Ordering::Relaxed);
        let depth = cursor.depth() + 1;
        let serial = crate::value::serial();
        Ok(Value::Endless(std::sync::Arc::new(Endless { cursor, depth, serial })))
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
                m.charge(items.len() * 2 * crate::convert::ITEM)?;
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
        Endless::value(m, cursor)
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

    /// Hands the values in it over, for a drop without recursion.
    pub(crate) fn dismantle(&mut self, out: &mut Vec<Value>) {
        self.cursor.dismantle(out);
    }
}

impl Drop for Endless {
    fn drop(&mut self) {
        if self.depth > crate::collection::SHALLOW {
            let mut parts = Vec::new();
            self.dismantle(&mut parts);
            crate::value::teardown(parts);
        }
    }
}

impl fmt::Debug for Endless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("#endless")
    }
}
