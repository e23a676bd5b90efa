//! Resolved programs to closures, and running them.

mod access;
mod argument;
mod call;
mod closure;
mod compile;
mod fused;
mod globals;
mod iterate;
mod looping;
mod operators;

pub(crate) use call::call_value;
pub use closure::Closure;
pub(crate) use closure::{Arity, Group, Member};
pub(crate) use compile::{compile, group};
pub(crate) use globals::Globals;

use std::sync::Arc;

use crate::Value;
use crate::machine::{Machine, Raised};

/// A compiled expression.
///
/// `Err` with no fault in the machine is `recur` on its way to its loop.
pub(crate) type Code = Box<dyn Fn(&mut Machine, &mut Frame<'_>) -> Result<Value, Raised> + Send + Sync>;

/// A compiled expression of which only the truth counts.
pub(crate) type Test = Box<dyn Fn(&mut Machine, &mut Frame<'_>) -> Result<bool, Raised> + Send + Sync>;

/// What one call of a function works on.
pub(crate) struct Frame<'a> {
    /// Parameters first, then other locals.
    pub(crate) slots: &'a mut [Value],
    /// The function under way.
    pub(crate) this: &'a Arc<Closure>,
    /// The program's definitions.
    pub(crate) globals: &'a Globals,
}

/// Whether dropping the value does nothing.
#[inline]
pub(crate) fn is_scalar(value: &Value) -> bool {
    matches!(value, Value::Nil | Value::False | Value::True | Value::Int(_) | Value::Double(_))
}

/// Drops a value; without the call that a drop of an unknown value is where there is nothing to do.
#[inline]
pub(crate) fn discard(value: Value) {
    if is_scalar(&value) {
        std::mem::forget(value);
    }
}

impl Frame<'_> {
    #[inline]
    pub(crate) fn set(&mut self, slot: usize, value: Value) {
        if let Some(held) = self.slots.get_mut(slot) {
            if is_scalar(held) {
                std::mem::forget(std::mem::replace(held, value));
            } else {
                *held = value;
            }
        }
    }

    #[inline]
    pub(crate) fn take(&mut self, slot: usize) -> Value {
        self.slots.get_mut(slot).map(std::mem::take).unwrap_or_default()
    }
}
