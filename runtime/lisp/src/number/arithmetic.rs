//! Arithmetic over integers of any size and doubles: the four operations and division with remainder.
//!
//! Integer results are exact. A result that does not fit in 64 bits becomes a big integer, and a big integer that fits again
//! becomes a small one. If one operand is a double, the result is a double. Callers have checked that both operands are numbers.
//! Anything else counts as zero.

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::Zero;

use crate::Value;

/// Why an operation has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// An integer was divided by zero.
    DivisionByZero,
    /// The quotient of two doubles is infinite or not a number, so that it has no integer part.
    NotFinite,
}

fn big(value: &Value) -> BigInt {
    match value {
        Value::Int(i) => BigInt::from(*i),
        Value::BigInt(b) => (**b).clone(),
        _ => BigInt::zero(),
    }
}

fn float(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

fn is_double(value: &Value) -> bool {
    matches!(value, Value::Double(_))
}

macro_rules! operation {
    ($(#[$doc:meta])* $name:ident, $checked:ident, $op:tt) => {
        $(#[$doc])*
        #[inline]
        pub fn $name(a: &Value, b: &Value) -> Value {
            if let (Value::Int(x), Value::Int(y)) = (a, b)
                && let Some(z) = x.$checked(*y)
            {
                return Value::Int(z);
            }
            if is_double(a) || is_double(b) { Value::double(float(a) $op float(b)) } else { Value::big(big(a) $op big(b)) }
        }
    };
}

operation!(
    /// `a + b`
    add, checked_add, +);
operation!(
    /// `a - b`
    subtract, checked_sub, -);
operation!(
    /// `a * b`
    multiply, checked_mul, *);

/// `-a`
pub fn negate(a: &Value) -> Value {
    match a {
        Value::Double(d) => Value::double(-d.get()),
        _ => subtract(&Value::Int(0), a),
    }
}

/// Computes `a / b` as a double. Division by a double follows IEEE 754.
///
/// # Errors
///
/// Returns an error for the integer 0 as a divisor.
pub fn divide(a: &Value, b: &Value) -> Result<Value, Fault> {
    if matches!(b, Value::Int(0)) {
        return Err(Fault::DivisionByZero);
    }
    Ok(Value::double(float(a) / float(b)))
}

/// Returns the quotient rounded towards zero.
///
/// # Errors
///
/// Returns an error for a divisor of 0, and for doubles whose quotient has no integer part.
pub fn quotient(a: &Value, b: &Value) -> Result<Value, Fault> {
    if is_double(a) || is_double(b) {
        let (x, y) = doubles(a, b)?;
        return Ok(Value::double((x / y).trunc()));
    }
    match (a, b) {
        (_, Value::Int(0)) => Err(Fault::DivisionByZero),
        (Value::Int(x), Value::Int(y)) if *y != -1 => Ok(Value::Int(x / y)),
        _ => Ok(Value::big(big(a) / big(b))),
    }
}

/// Returns the remainder with the sign of `a`.
///
/// # Errors
///
/// Returns an error as [`quotient`] does.
pub fn remainder(a: &Value, b: &Value) -> Result<Value, Fault> {
    if is_double(a) || is_double(b) {
        let (x, y) = doubles(a, b)?;
        return Ok(Value::double(rest(x, y)));
    }
    match (a, b) {
        (_, Value::Int(0)) => Err(Fault::DivisionByZero),
        (_, Value::Int(-1)) => Ok(Value::Int(0)),
        (Value::Int(x), Value::Int(y)) => Ok(Value::Int(x % y)),
        _ => Ok(Value::big(big(a) % big(b))),
    }
}

/// Returns the remainder with the sign of `b`.
///
/// # Errors
///
/// Returns an error as [`quotient`] does.
pub fn floor_mod(a: &Value, b: &Value) -> Result<Value, Fault> {
    if is_double(a) || is_double(b) {
        let (x, y) = doubles(a, b)?;
        let rest = rest(x, y);
        return Ok(Value::double(if rest != 0.0 && (x > 0.0) != (y > 0.0) { rest + y } else { rest }));
    }
    match (a, b) {
        (_, Value::Int(0)) => Err(Fault::DivisionByZero),
        (_, Value::Int(-1)) => Ok(Value::Int(0)),
        (Value::Int(x), Value::Int(y)) => Ok(Value::Int(x.mod_floor(y))),
        _ => Ok(Value::big(big(a).mod_floor(&big(b)))),
    }
}

/// The remainder of `x` after subtracting a whole multiple of `y`. Clojure rounds the quotient before it truncates it, so that
/// `(rem 1.0 0.1)` is 0.0 and not the exact remainder of the two doubles.
fn rest(x: f64, y: f64) -> f64 {
    x - (x / y).trunc() * y
}

fn doubles(a: &Value, b: &Value) -> Result<(f64, f64), Fault> {
    let (x, y) = (float(a), float(b));
    if y == 0.0 {
        Err(Fault::DivisionByZero)
    } else if (x / y).is_finite() {
        Ok((x, y))
    } else {
        Err(Fault::NotFinite)
    }
}
