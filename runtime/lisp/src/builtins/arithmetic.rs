//! Builtins for sums, products, quotients, extremes and bits.

use num_bigint::BigInt;

use super::row::rows;
use crate::args::{as_integer, at, expected, fault, number};
use crate::machine::{Machine, Raised};
use crate::number::{self, Fault};
use crate::{ErrorKind, Value};

rows! { "clojure.core":
    "+" ["[& xs]"] add, "Sum. Integers grow beyond 64 bits; one double makes the sum a double." { "(+ 1 2 3)" => "6", "(+)" => "0", "(+ 1 0.5)" => "1.5" };
    "+'" ["[& xs]"] add, "The same as +, which does not overflow." { "(+' 9223372036854775807 1)" => "9223372036854775808" };
    "-" ["[x]", "[x & ys]"] subtract, "Difference, or the negative of one number." { "(- 10 3 2)" => "5", "(- 4)" => "-4" };
    "-'" ["[x]", "[x & ys]"] subtract, "The same as -, which does not overflow." { "(-' 5 3)" => "2" };
    "*" ["[& xs]"] multiply, "Product." { "(* 2 3 4)" => "24", "(*)" => "1" };
    "*'" ["[& xs]"] multiply, "The same as *, which does not overflow." { "(*' 3000000000 4000000000)" => "12000000000000000000" };
    "/" ["[x]", "[x & ys]"] divide, "Quotient, always a double, also of integers that divide evenly; quot gives an integer." { "(/ 10 4)" => "2.5", "(/ 6 3)" => "2.0", "(/ 2)" => "0.5", "(/ 1.0 0.0)" => "##Inf" };
    "quot" ["[x y]"] quot, "Quotient rounded towards zero." { "(quot 10 3)" => "3", "(quot -7 2)" => "-3" };
    "rem" ["[x y]"] rem, "Remainder with the sign of x." { "(rem -10 3)" => "-1" };
    "mod" ["[x y]"] modulo, "Remainder with the sign of y." { "(mod -10 3)" => "2" };
    "inc" ["[x]"] inc, "One more." { "(inc 5)" => "6" };
    "inc'" ["[x]"] inc, "The same as inc, which does not overflow." { "(inc' 5)" => "6" };
    "dec" ["[x]"] dec, "One less." { "(dec 5)" => "4" };
    "dec'" ["[x]"] dec, "The same as dec, which does not overflow." { "(dec' 5)" => "4" };
    "abs" ["[x]"] abs, "Absolute value." { "(abs -5)" => "5" };
    "max" ["[x & more]"] max, "The greatest in the order of all values; NaN if one is NaN." { "(max 1 5 3)" => "5", "(max \"a\" \"b\")" => "\"b\"" };
    "min" ["[x & more]"] min, "The least in the order of all values; NaN if one is NaN." { "(min 4 2 3)" => "2" };
    "bit-and" ["[x y & more]"] bit_and, "Bitwise and." { "(bit-and 12 10)" => "8" };
    "bit-or" ["[x y & more]"] bit_or, "Bitwise or." { "(bit-or 12 10)" => "14" };
    "bit-xor" ["[x y & more]"] bit_xor, "Bitwise exclusive or." { "(bit-xor 12 10)" => "6" };
    "bit-and-not" ["[x y & more]"] bit_and_not, "Bitwise and with the complement of each later argument." { "(bit-and-not 15 9)" => "6" };
    "bit-not" ["[x]"] bit_not, "Bitwise complement." { "(bit-not 0)" => "-1" };
    "bit-shift-left" ["[x n]"] shift_left, "x shifted left by n bits." { "(bit-shift-left 1 4)" => "16" };
    "bit-shift-right" ["[x n]"] shift_right, "x shifted right by n bits, keeping its sign." { "(bit-shift-right 256 4)" => "16" };
    "unsigned-bit-shift-right" ["[x n]"] unsigned_shift_right, "The 64 bits of x shifted right by n bits, with zeros at the left." { "(unsigned-bit-shift-right -1 60)" => "15" };
    "bit-set" ["[x n]"] bit_set, "x with bit n set." { "(bit-set 0 3)" => "8" };
    "bit-clear" ["[x n]"] bit_clear, "x with bit n cleared." { "(bit-clear 15 1)" => "13" };
    "bit-flip" ["[x n]"] bit_flip, "x with bit n flipped." { "(bit-flip 0 2)" => "4" };
    "bit-test" ["[x n]"] bit_test, "Whether bit n of x is set." { "(bit-test 5 0)" => "true", "(bit-test 5 1)" => "false" };
}

/// Maximum size of a big integer in bits.
pub(crate) const MAX_INTEGER_BITS: u64 = 1 << 20;

/// The hint for results that exceed the maximum.
const TOO_LARGE: &str = "compute with doubles, as in (* 1.0 n), where the digits do not matter";

/// Raises the fault that an operation reports.
#[cold]
pub(super) fn raise(m: &mut Machine, name: &str, why: Fault) -> Raised {
    match why {
        Fault::DivisionByZero => fault(m, ErrorKind::ArithmeticError, name, "division by zero"),
        Fault::NotFinite => fault(m, ErrorKind::ArithmeticError, name, "the quotient is not a finite number"),
    }
}

/// Number of 64-bit words of an integer.
fn words(value: &Value) -> u64 {
    match value {
        Value::BigInt(big) => big.bits().div_ceil(64),
        _ => 1,
    }
}

/// Charges one pass over a big integer.
fn pass(m: &mut Machine, value: &Value) -> Result<(), Raised> {
    if let Value::BigInt(_) = value { m.tick(u32::try_from(words(value)).unwrap_or(u32::MAX)) } else { Ok(()) }
}

/// Charges a multiplication of `a` words by `b` words, which is quadratic at worst.
fn multiplied(m: &mut Machine, a: u64, b: u64) -> Result<(), Raised> {
    m.tick(u32::try_from(a.saturating_mul(b) / 64).unwrap_or(u32::MAX))
}

/// Charges one division.
pub(super) fn divided(m: &mut Machine, dividend: &Value, divisor: &Value) -> Result<(), Raised> {
    let (all, by) = (words(dividend), words(divisor));
    multiplied(m, (all + 1).saturating_sub(by), by)?;
    pass(m, dividend)
}

/// Charges the work of an operation on big integers, and rejects results that are too large.
fn weigh(m: &mut Machine, name: &str, result: Value) -> Result<Value, Raised> {
    pass(m, &result)?;
    if words(&result) > MAX_INTEGER_BITS / 64 {
        let raised = fault(m, ErrorKind::ArithmeticError, name, "the result has more than a million bits");
        return Err(m.advise(raised, TOO_LARGE));
    }
    Ok(result)
}

fn fold(m: &mut Machine, name: &str, args: &[Value], from: usize, op: fn(&Value, &Value) -> Value) -> Result<Value, Raised> {
    let mut total = number(m, name, args, 0)?.clone();
    for index in from..args.len() {
        let next = number(m, name, args, index)?;
        total = op(&total, next);
        total = weigh(m, name, total)?;
    }
    Ok(total)
}

fn add(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    match args {
        [] => Ok(Value::Int(0)),
        [Value::Int(a), Value::Int(b)] if a.checked_add(*b).is_some() => Ok(Value::Int(a.wrapping_add(*b))),
        _ => fold(m, "+", args, 1, number::add),
    }
}

fn subtract(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if args.len() == 1 {
        let x = number(m, "-", args, 0)?;
        return Ok(number::negate(x));
    }
    fold(m, "-", args, 1, number::subtract)
}

fn multiply(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if args.is_empty() {
        return Ok(Value::Int(1));
    }
    let mut total = number(m, "*", args, 0)?.clone();
    for index in 1..args.len() {
        let next = number(m, "*", args, index)?;
        if words(&total) + words(next) > MAX_INTEGER_BITS / 64 {
            return Err(fault(m, ErrorKind::ArithmeticError, "*", "the result has more than a million bits"));
        }
        multiplied(m, words(&total), words(next))?;
        total = number::multiply(&total, next);
    }
    Ok(total)
}

fn divide(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let one = Value::Int(1);
    let first = number(m, "/", args, 0)?;
    if args.len() == 1 {
        return number::divide(&one, first).map_err(|why| raise(m, "/", why));
    }
    let mut total = first.clone();
    for index in 1..args.len() {
        let next = number(m, "/", args, index)?;
        pass(m, next)?;
        total = number::divide(&total, next).map_err(|why| raise(m, "/", why))?;
    }
    Ok(total)
}

fn pair<'a>(m: &mut Machine, name: &str, args: &'a [Value]) -> Result<(&'a Value, &'a Value), Raised> {
    Ok((number(m, name, args, 0)?, number(m, name, args, 1)?))
}

fn quot(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let (x, y) = pair(m, "quot", args)?;
    divided(m, x, y)?;
    number::quotient(x, y).map_err(|why| raise(m, "quot", why))
}

fn rem(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let (x, y) = pair(m, "rem", args)?;
    divided(m, x, y)?;
    number::remainder(x, y).map_err(|why| raise(m, "rem", why))
}

pub(super) fn modulo(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let (x, y) = pair(m, "mod", args)?;
    divided(m, x, y)?;
    number::floor_mod(x, y).map_err(|why| raise(m, "mod", why))
}

fn inc(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let x = number(m, "inc", args, 0)?;
    Ok(number::add(x, &Value::Int(1)))
}

fn dec(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let x = number(m, "dec", args, 0)?;
    Ok(number::subtract(x, &Value::Int(1)))
}

pub(super) fn abs(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    match number(m, "abs", args, 0)? {
        Value::Double(d) => Ok(Value::double(d.get().abs())),
        x if number::compare(x, &Value::Int(0)).is_lt() => Ok(number::negate(x)),
        x => Ok(x.clone()),
    }
}

fn extreme(m: &mut Machine, args: &mut [Value], better: fn(std::cmp::Ordering) -> bool) -> Result<Value, Raised> {
    let mut best = Value::Nil;
    for (index, arg) in args.iter_mut().enumerate() {
        let arg = std::mem::take(arg);
        if is_nan(&arg) {
            return Ok(arg);
        }
        m.step()?;
        if index == 0 || better(crate::order::compare(&arg, &best)) {
            best = arg;
        }
    }
    Ok(best)
}

pub(super) fn is_nan(value: &Value) -> bool {
    matches!(value, Value::Double(d) if d.get().is_nan())
}

pub(super) fn max(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    extreme(m, args, std::cmp::Ordering::is_gt)
}

pub(super) fn min(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    extreme(m, args, std::cmp::Ordering::is_lt)
}

fn integer(m: &mut Machine, name: &str, args: &[Value], index: usize) -> Result<BigInt, Raised> {
    match at(args, index) {
        Value::Int(i) => Ok(BigInt::from(*i)),
        Value::BigInt(big) => Ok((**big).clone()),
        other => Err(expected(m, name, "an integer", index, other)),
    }
}

fn bits(
    m: &mut Machine,
    name: &str,
    args: &[Value],
    small: fn(i64, i64) -> i64,
    large: fn(BigInt, BigInt) -> BigInt,
) -> Result<Value, Raised> {
    let mut total = match at(args, 0) {
        Value::Int(i) => Value::Int(*i),
        _ => Value::big(integer(m, name, args, 0)?),
    };
    for index in 1..args.len() {
        total = match (&total, at(args, index)) {
            (Value::Int(x), Value::Int(y)) => Value::Int(small(*x, *y)),
            (x, _) => {
                let y = integer(m, name, args, index)?;
                pass(m, x)?;
                let x = integer(m, name, std::slice::from_ref(x), 0)?;
                Value::big(large(x, y))
            }
        };
    }
    Ok(total)
}

fn bit_and(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    bits(m, "bit-and", args, |x, y| x & y, |x, y| x & y)
}

fn bit_or(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    bits(m, "bit-or", args, |x, y| x | y, |x, y| x | y)
}

fn bit_xor(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    bits(m, "bit-xor", args, |x, y| x ^ y, |x, y| x ^ y)
}

fn bit_and_not(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    bits(m, "bit-and-not", args, |x, y| x & !y, |x, y| x & !y)
}

fn bit_not(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(Value::big(!integer(m, "bit-not", args, 0)?))
}

/// Returns the index of a bit from an argument.
fn bit_index(m: &mut Machine, name: &str, args: &[Value]) -> Result<u64, Raised> {
    match at(args, 1) {
        Value::Int(n) if u64::try_from(*n).is_ok_and(|n| n <= MAX_INTEGER_BITS) => Ok(*n as u64),
        other => {
            let other = other.clone();
            Err(expected(m, name, "a bit index from 0 to 1048576", 1, &other))
        }
    }
}

fn shift_left(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let n = bit_index(m, "bit-shift-left", args)?;
    let shifted = Value::big(integer(m, "bit-shift-left", args, 0)? << n);
    weigh(m, "bit-shift-left", shifted)
}

fn shift_right(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let n = bit_index(m, "bit-shift-right", args)?;
    Ok(Value::big(integer(m, "bit-shift-right", args, 0)? >> n))
}

/// The shift distance is taken modulo 64, as in Java.
fn unsigned_shift_right(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let x = crate::args::int(m, "unsigned-bit-shift-right", args, 0)?;
    let n = crate::args::int(m, "unsigned-bit-shift-right", args, 1)?;
    Ok(Value::big(BigInt::from(x as u64 >> n.rem_euclid(64))))
}

fn with_bit(m: &mut Machine, name: &str, args: &[Value], change: fn(bool) -> bool) -> Result<Value, Raised> {
    let n = bit_index(m, name, args)?;
    let mut x = integer(m, name, args, 0)?;
    let bit = x.bit(n);
    x.set_bit(n, change(bit));
    Ok(Value::big(x))
}

fn bit_set(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    with_bit(m, "bit-set", args, |_| true)
}

fn bit_clear(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    with_bit(m, "bit-clear", args, |_| false)
}

fn bit_flip(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    with_bit(m, "bit-flip", args, |bit| !bit)
}

fn bit_test(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let n = bit_index(m, "bit-test", args)?;
    Ok(Value::bool(integer(m, "bit-test", args, 0)?.bit(n)))
}

/// Whether a value is an even number. `None` for values that are not integral numbers.
pub(super) fn is_even(value: &Value) -> Option<bool> {
    match value {
        Value::BigInt(big) => Some(!big.bit(0)),
        other => as_integer(other).map(|i| i % 2 == 0),
    }
}
