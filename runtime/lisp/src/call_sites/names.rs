//! What is known of the values of names.

use std::rc::Rc;

use crate::Value;
use crate::ir::{Capture, GroupIr, Ir, Op};

/// The known values of the parts of a value. `None` if nothing is known of any.
pub(super) type Parts<'a> = Option<Rc<[Option<Known<'a>>]>>;

/// A literal, or a function of the program.
#[derive(Clone)]
pub(super) struct Known<'a> {
    /// The expression that makes the value.
    pub(super) ir: &'a Ir,
    /// Of a map literal the values of its entries, of a function its captures.
    pub(super) parts: Parts<'a>,
}

impl<'a> Known<'a> {
    /// Returns the value, if it is a constant.
    pub(super) fn constant(&self) -> Option<&'a Value> {
        match &self.ir.op {
            Op::Const(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the function with its captures, if the value is a function.
    pub(super) fn into_function(self) -> Option<(&'a GroupIr, Parts<'a>)> {
        match &self.ir.op {
            Op::Fn(group) => Some((group, self.parts)),
            _ => None,
        }
    }
}

/// The known values of the names of one function.
pub(super) struct Names<'a> {
    slots: Vec<Option<Known<'a>>>,
    captures: Parts<'a>,
}

impl<'a> Names<'a> {
    pub(super) fn new(captures: Parts<'a>) -> Names<'a> {
        Names { slots: Vec::new(), captures }
    }

    pub(super) fn slot(&self, slot: u32) -> Option<Known<'a>> {
        self.slots.get(slot as usize).cloned().flatten()
    }

    pub(super) fn capture(&self, at: u32) -> Option<Known<'a>> {
        self.captures.as_ref()?.get(at as usize).cloned().flatten()
    }

    pub(super) fn bind(&mut self, slot: u32, value: Option<Known<'a>>) {
        *place(&mut self.slots, slot) = value;
    }

    /// Forgets the values of the slots from `first` on.
    pub(super) fn unbind_from(&mut self, first: u32) {
        self.slots.truncate(first as usize);
    }

    /// Returns the known values that a function captures where it is made.
    pub(super) fn captured(&self, group: &GroupIr) -> Parts<'a> {
        let captured = |capture: &Capture| match capture {
            Capture::Local(local) => self.slot(local.slot),
            Capture::Capture(at) => self.capture(*at),
            Capture::This | Capture::Sibling(_) => None,
        };
        (!group.captures.is_empty()).then(|| group.captures.iter().map(captured).collect())
    }
}

/// Returns the item at an index. The list grows to contain it.
pub(super) fn place<T: Default>(list: &mut Vec<T>, at: u32) -> &mut T {
    let at = at as usize;
    while list.len() <= at {
        list.push(T::default());
    }
    #[expect(clippy::indexing_slicing, reason = "the loop above makes it long enough")]
    &mut list[at]
}
