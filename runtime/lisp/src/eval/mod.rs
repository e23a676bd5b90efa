//! Compiles resolved programs to closures, and runs them.

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
/// `Err` without a fault in the machine means that a `recur` is unwinding to its loop.
pub(crate) type Code = Box<dyn Fn(&mut Machine, &mut Frame<'_>) -> Result<Value, Raised> + Send + Sync>;

/// A compiled expression whose result is only tested for truthiness.
pub(crate) type Test = Box<dyn Fn(&mut Machine, &mut Frame<'_>) -> Result<bool, Raised> + Send + Sync>;

/// The state of one call of a function.
pub(crate) struct Frame<'a> {
    /// Parameters first, then other locals.
    pub(crate) slots: &'a mut [Value],
    /// The current function.
    pub(crate) this: &'a Arc<Closure>,
    /// The program's globals.
    pub(crate) globals: &'a Globals,
}

/// Whether dropping the value has no effect.
#[inline]
pub(crate) fn is_scalar(value: &Value) -> bool {
    matches!(value, Value::Nil | Value::False | Value::True | Value::Int(_) | Value::Double(_))
}

/// Drops a value. Skips the call to the generic drop code for scalars.
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
