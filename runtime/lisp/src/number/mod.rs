//! Numbers: 64-bit integers that overflow into big integers, and doubles.

mod arithmetic;
mod format;

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use num_bigint::BigInt;
use num_traits::FromPrimitive;

pub use arithmetic::{Fault, add, divide, floor_mod, multiply, negate, quotient, remainder, subtract};
pub use format::double as write_double;

use crate::Value;

/// 2⁶³, the first double above every 64-bit integer.
const TWO_63: f64 = 9_223_372_036_854_775_808.0;

/// Compares two numbers by exact value. NaN is greater than all others. Values that are not numbers are equal.
pub fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Int(x), Value::Int(y)) => x.cmp(y),
        (Value::Double(x), Value::Double(y)) => double_order(x.get(), y.get()),
        (Value::Int(x), Value::Double(y)) => int_double(*x, y.get()),
        (Value::Double(x), Value::Int(y)) => int_double(*y, x.get()).reverse(),
        (Value::BigInt(x), Value::BigInt(y)) => {
            crate::comparison_budget::charge_bytes(bytes(x).min(bytes(y)));
            x.cmp(y)
        }
        (Value::BigInt(x), Value::Int(_)) => big_side(x),
        (Value::Int(_), Value::BigInt(y)) => big_side(y).reverse(),
        (Value::BigInt(x), Value::Double(y)) => big_double(x, y.get()),
        (Value::Double(x), Value::BigInt(y)) => big_double(y, x.get()).reverse(),
        _ => Ordering::Equal,
    }
}

/// Bytes that a big integer occupies.
pub fn bytes(big: &BigInt) -> usize {
    usize::try_from(big.bits() / 8).unwrap_or(usize::MAX)
}

/// How a big integer compares with every 64-bit integer.
fn big_side(big: &BigInt) -> Ordering {
    if big.sign() == num_bigint::Sign::Minus { Ordering::Less } else { Ordering::Greater }
}

fn double_order(x: f64, y: f64) -> Ordering {
    x.partial_cmp(&y).unwrap_or_else(|| x.is_nan().cmp(&y.is_nan()))
}

fn int_double(i: i64, d: f64) -> Ordering {
    if d.is_nan() || d >= TWO_63 {
        Ordering::Less
    } else if d < -TWO_63 {
        Ordering::Greater
    } else {
        i.cmp(&(d as i64)).then_with(|| double_order(0.0, d.fract()))
    }
}

fn big_double(big: &BigInt, d: f64) -> Ordering {
    match BigInt::from_f64(d) {
        // Doubles with a fraction are far below every big integer in magnitude.
        Some(whole) => big.cmp(&whole),
        None if d.is_nan() || d > 0.0 => Ordering::Less,
        None => Ordering::Greater,
    }
}

/// Hashes a number by its exact value.
pub fn hash<H: Hasher>(value: &Value, state: &mut H) {
    match value {
        Value::Int(i) => state.write_i64(*i),
        Value::BigInt(big) => {
            crate::comparison_budget::charge_bytes(bytes(big));
            big.hash(state);
        }
        Value::Double(d) => {
            let d = d.get();
            if d.fract() != 0.0 || !d.is_finite() {
                state.write_u64(d.to_bits());
            } else if (-TWO_63..TWO_63).contains(&d) {
                state.write_i64(d as i64);
            } else if let Some(big) = BigInt::from_f64(d) {
                big.hash(state);
            }
        }
        _ => {}
    }
}
