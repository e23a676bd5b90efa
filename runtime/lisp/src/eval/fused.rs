//! Inlined arithmetic and comparison of integers and doubles. All other operands are passed to the row of the builtin, which
//! defines the operation.

#![expect(clippy::many_single_char_names, reason = "operands a and b, values x and y, numbers p and q, machine and frame")]

use super::{Code, Frame, Test};
use crate::Value;
use crate::builtins::Builtin;
use crate::error::Span;
use crate::machine::{Machine, Raised};

/// The source of an operand.
pub(super) trait Source: Send + Sync + 'static {
    /// Whether [`Source::int`] can return a value.
    const PEEKS: bool;

    /// Returns the integer, if it is available without evaluating anything.
    #[inline]
    fn int(&self, _: &Frame<'_>) -> Option<i64> {
        None
    }

    fn get(&self, m: &mut Machine, f: &mut Frame<'_>) -> Result<Value, Raised>;
}

/// A local that is borrowed from its slot.
pub(super) struct Slot(pub(super) usize);

/// A constant integer.
pub(super) struct Int(pub(super) i64);

/// Any other expression.
pub(super) struct Any(pub(super) Code);

/// Copies the value of a slot. Fast for integers.
#[inline(always)]
#[expect(clippy::inline_always, reason = "calls of it would take a fifth of all instructions")]
pub(super) fn copy(value: Option<&Value>) -> Value {
    match value {
        Some(Value::Int(i)) => Value::Int(*i),
        other => share(other),
    }
}

#[inline(never)]
fn share(value: Option<&Value>) -> Value {
    value.cloned().unwrap_or_default()
}

impl Source for Slot {
    const PEEKS: bool = true;

    #[inline]
    fn int(&self, f: &Frame<'_>) -> Option<i64> {
        match f.slots.get(self.0) {
            Some(Value::Int(i)) => Some(*i),
            _ => None,
        }
    }

    #[inline]
    fn get(&self, _: &mut Machine, f: &mut Frame<'_>) -> Result<Value, Raised> {
        Ok(share(f.slots.get(self.0)))
    }
}

impl Source for Int {
    const PEEKS: bool = true;

    #[inline]
    fn int(&self, _: &Frame<'_>) -> Option<i64> {
        Some(self.0)
    }

    #[inline]
    fn get(&self, _: &mut Machine, _: &mut Frame<'_>) -> Result<Value, Raised> {
        Ok(Value::Int(self.0))
    }
}

impl Source for Any {
    const PEEKS: bool = false;

    #[inline]
    fn get(&self, m: &mut Machine, f: &mut Frame<'_>) -> Result<Value, Raised> {
        (self.0)(m, f)
    }
}

/// An arithmetic operation on two numbers.
pub(super) trait Arithmetic: Send + Sync + 'static {
    /// Computes the result for integers. `None` on overflow.
    fn ints(a: i64, b: i64) -> Option<i64>;
    fn doubles(a: f64, b: f64) -> f64;
}

/// A comparison of two numbers.
pub(super) trait Comparison: Send + Sync + 'static {
    fn ints(a: i64, b: i64) -> bool;
    fn doubles(a: f64, b: f64) -> bool;
}

macro_rules! arithmetic {
    ($($name:ident $checked:ident $op:tt),*) => {$(
        pub(super) struct $name;
        impl Arithmetic for $name {
            #[inline]
            fn ints(a: i64, b: i64) -> Option<i64> {
                a.$checked(b)
            }
            #[inline]
            fn doubles(a: f64, b: f64) -> f64 {
                a $op b
            }
        }
    )*};
}

macro_rules! comparison {
    ($($name:ident $op:tt),*) => {$(
        pub(super) struct $name;
        impl Comparison for $name {
            #[inline]
            fn ints(a: i64, b: i64) -> bool {
                a $op b
            }
            #[inline]
            #[allow(clippy::float_cmp, reason = "the language compares doubles exactly; only two of six are linted")]
            fn doubles(a: f64, b: f64) -> bool {
                a $op b
            }
        }
    )*};
}

arithmetic!(Add checked_add +, Subtract checked_sub -, Multiply checked_mul *);
comparison!(Less <, LessOrEqual <=, Greater >, GreaterOrEqual >=, Equal ==, NotEqual !=);

pub(super) fn arithmetic<O: Arithmetic, A: Source, B: Source>(
    a: A,
    b: B,
    row: &'static Builtin,
    unary: bool,
    span: Span,
) -> Code {
    Box::new(move |m, f| {
        if let (Some(p), Some(q)) = (a.int(f), b.int(f))
            && let Some(result) = O::ints(p, q)
        {
            return Ok(Value::Int(result));
        }
        if A::PEEKS && B::PEEKS {
            // The slow path is out of line, so that the code above stays short.
            calculate_cold::<O, A, B>(&a, &b, row, unary, span, m, f)
        } else {
            calculated::<O, A, B>(&a, &b, row, unary, span, m, f)
        }
    })
}

#[cold]
#[inline(never)]
fn calculate_cold<O: Arithmetic, A: Source, B: Source>(
    a: &A,
    b: &B,
    row: &'static Builtin,
    unary: bool,
    span: Span,
    m: &mut Machine,
    f: &mut Frame<'_>,
) -> Result<Value, Raised> {
    calculated::<O, A, B>(a, b, row, unary, span, m, f)
}

#[inline]
fn calculated<O: Arithmetic, A: Source, B: Source>(
    a: &A,
    b: &B,
    row: &'static Builtin,
    unary: bool,
    span: Span,
    m: &mut Machine,
    f: &mut Frame<'_>,
) -> Result<Value, Raised> {
    let x = a.get(m, f)?;
    let y = b.get(m, f)?;
    let result = match (&x, &y) {
        (Value::Int(p), Value::Int(q)) => O::ints(*p, *q).map(Value::Int),
        (Value::Double(p), Value::Double(q)) => Some(Value::double(O::doubles(p.get(), q.get()))),
        _ => None,
    };
    match result {
        Some(result) => {
            scalars(x, y);
            Ok(result)
        }
        None => slow(m, row, x, y, unary, span),
    }
}

/// Compiles a comparison whose result is only tested.
pub(super) fn test<O: Comparison, A: Source, B: Source>(a: A, b: B, row: &'static Builtin, span: Span) -> Test {
    Box::new(move |m, f| compared::<O, A, B>(&a, &b, row, span, m, f))
}

pub(super) fn comparison<O: Comparison, A: Source, B: Source>(a: A, b: B, row: &'static Builtin, span: Span) -> Code {
    Box::new(move |m, f| compared::<O, A, B>(&a, &b, row, span, m, f).map(Value::bool))
}

#[inline]
fn compared<O: Comparison, A: Source, B: Source>(
    a: &A,
    b: &B,
    row: &'static Builtin,
    span: Span,
    m: &mut Machine,
    f: &mut Frame<'_>,
) -> Result<bool, Raised> {
    match (a.int(f), b.int(f)) {
        (Some(p), Some(q)) => Ok(O::ints(p, q)),
        _ if A::PEEKS && B::PEEKS => compare_cold::<O, A, B>(a, b, row, span, m, f),
        _ => compare_values::<O, A, B>(a, b, row, span, m, f),
    }
}

#[cold]
#[inline(never)]
fn compare_cold<O: Comparison, A: Source, B: Source>(
    a: &A,
    b: &B,
    row: &'static Builtin,
    span: Span,
    m: &mut Machine,
    f: &mut Frame<'_>,
) -> Result<bool, Raised> {
    compare_values::<O, A, B>(a, b, row, span, m, f)
}

#[inline]
fn compare_values<O: Comparison, A: Source, B: Source>(
    a: &A,
    b: &B,
    row: &'static Builtin,
    span: Span,
    m: &mut Machine,
    f: &mut Frame<'_>,
) -> Result<bool, Raised> {
    let x = a.get(m, f)?;
    let y = b.get(m, f)?;
    let result = match (&x, &y) {
        (Value::Int(p), Value::Int(q)) => Some(O::ints(*p, *q)),
        (Value::Double(p), Value::Double(q)) => Some(O::doubles(p.get(), q.get())),
        _ => None,
    };
    match result {
        Some(result) => {
            scalars(x, y);
            Ok(result)
        }
        None => slow(m, row, x, y, false, span).map(|value| value.is_truthy()),
    }
}

/// Drops two scalars without a call to the generic drop code.
#[inline]
fn scalars(x: Value, y: Value) {
    std::mem::forget(x);
    std::mem::forget(y);
}

#[cold]
#[inline(never)]
fn slow(m: &mut Machine, row: &'static Builtin, x: Value, y: Value, unary: bool, span: Span) -> Result<Value, Raised> {
    let mut args = [x, y];
    let args = if unary { args.get_mut(..1).unwrap_or_default() } else { &mut args };
    (row.run)(m, args).map_err(|raised| m.at(raised, span))
}
