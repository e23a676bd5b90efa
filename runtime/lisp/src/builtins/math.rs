//! Builtins for rounding, roots and conversions between kinds of numbers.

use num_bigint::BigInt;
use num_traits::FromPrimitive;

use super::arithmetic::{abs, max, min};
use super::row::rows;
use crate::args::{at, double, expected, fault, number};
use crate::machine::{Machine, Raised};
use crate::{ErrorKind, Value, number};

pub(super) mod core {
    use super::{ceil, floor, pow, round, rows, sqrt, to_double, to_int, trunc};
    rows! { "ptc.core":
        "floor" ["[x]"] floor, "Rounds down to an integer." { "(floor 3.7)" => "3", "(floor -1.2)" => "-2" };
        "ceil" ["[x]"] ceil, "Rounds up to an integer." { "(ceil 3.2)" => "4" };
        "round" ["[x]"] round, "Rounds to the nearest integer, halves away from zero." { "(round 3.5)" => "4", "(round -1.5)" => "-2" };
        "trunc" ["[x]"] trunc, "Rounds towards zero to an integer." { "(trunc -3.7)" => "-3" };
        "sqrt" ["[x]"] sqrt, "Square root, a double; NaN of a negative number." { "(sqrt 16)" => "4.0" };
        "pow" ["[x y]"] pow, "x to the power y, a double." { "(pow 2 10)" => "1024.0" };
        "int" ["[x]"] to_int, "A number as an integer, rounded towards zero." { "(int 3.7)" => "3" };
        "long" ["[x]"] to_int, "A number as an integer, rounded towards zero." { "(long 3.7)" => "3" };
        "double" ["[x]"] to_double, "A number as a double." { "(double 5)" => "5.0" };
        "float" ["[x]"] to_double, "A number as a double." { "(float 5)" => "5.0" };
    }
}

pub(super) mod java {
    use super::super::arithmetic::modulo;
    use super::{
        abs, acos, asin, atan, atan2, cbrt, ceil, cos, cosh, exp, floor, floor_div, greatest, hypot, least, log, log10, pow,
        round, rows, signum, sin, sinh, sqrt, tan, tanh, to_degrees, to_radians,
    };
    rows! { "Math":
        "abs" ["[x]"] abs, "Absolute value." { "(Math/abs -2.5)" => "2.5" };
        "max" ["[x & more]"] greatest, "The greatest." { "(Math/max 1 2)" => "2" };
        "min" ["[x & more]"] least, "The least." { "(Math/min 1 2)" => "1" };
        "floor" ["[x]"] floor, "Rounds down to an integer." { "(Math/floor 3.7)" => "3" };
        "ceil" ["[x]"] ceil, "Rounds up to an integer." { "(Math/ceil 3.2)" => "4" };
        "round" ["[x]"] round, "Rounds to the nearest integer, halves away from zero." { "(Math/round 2.5)" => "3" };
        "sqrt" ["[x]"] sqrt, "Square root." { "(Math/sqrt 9)" => "3.0" };
        "cbrt" ["[x]"] cbrt, "Cube root." { "(Math/cbrt 27)" => "3.0" };
        "pow" ["[x y]"] pow, "x to the power y." { "(Math/pow 2 3)" => "8.0" };
        "exp" ["[x]"] exp, "e to the power x." { "(Math/exp 0)" => "1.0" };
        "log" ["[x]"] log, "Natural logarithm." { "(Math/log 1)" => "0.0" };
        "log10" ["[x]"] log10, "Logarithm to base 10." { "(Math/log10 1000)" => "3.0" };
        "sin" ["[x]"] sin, "Sine of an angle in radians." { "(Math/sin 0)" => "0.0" };
        "cos" ["[x]"] cos, "Cosine of an angle in radians." { "(Math/cos 0)" => "1.0" };
        "tan" ["[x]"] tan, "Tangent of an angle in radians." { "(Math/tan 0)" => "0.0" };
        "signum" ["[x]"] signum, "-1.0, 0.0 or 1.0 by the sign." { "(Math/signum -3)" => "-1.0" };
        "asin" ["[x]"] asin, "Angle in radians of a sine." { "(Math/asin 0)" => "0.0" };
        "acos" ["[x]"] acos, "Angle in radians of a cosine." { "(Math/acos 1)" => "0.0" };
        "atan" ["[x]"] atan, "Angle in radians of a tangent." { "(Math/atan 0)" => "0.0" };
        "atan2" ["[y x]"] atan2, "Angle in radians of the point (x, y)." { "(Math/atan2 0 1)" => "0.0" };
        "sinh" ["[x]"] sinh, "Hyperbolic sine." { "(Math/sinh 0)" => "0.0" };
        "cosh" ["[x]"] cosh, "Hyperbolic cosine." { "(Math/cosh 0)" => "1.0" };
        "tanh" ["[x]"] tanh, "Hyperbolic tangent." { "(Math/tanh 0)" => "0.0" };
        "toDegrees" ["[x]"] to_degrees, "An angle in radians as degrees." { "(Math/toDegrees Math/PI)" => "180.0" };
        "toRadians" ["[x]"] to_radians, "An angle in degrees as radians." { "(Math/toRadians 0)" => "0.0" };
        "floorDiv" ["[x y]"] floor_div, "The quotient of integers, rounded down." { "(Math/floorDiv -7 2)" => "-4" };
        "floorMod" ["[x y]"] modulo, "The same as mod." { "(Math/floorMod -7 2)" => "1" };
        "random" ["[]"] super::random_unit, "A random double from 0 up to 1." { "(< -1 (Math/random) 1)" => "true" };
        "hypot" ["[x y]"] hypot, "The square root of x² + y²." { "(Math/hypot 3 4)" => "5.0" };
    }
}

fn greatest(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    all_numbers(m, "Math/max", args)?;
    max(m, args)
}

fn least(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    all_numbers(m, "Math/min", args)?;
    min(m, args)
}

fn all_numbers(m: &mut Machine, name: &str, args: &[Value]) -> Result<(), Raised> {
    (0..args.len()).try_for_each(|index| number(m, name, args, index).map(drop))
}

/// Converts a double without a fraction to an integer. Infinities and NaN stay doubles.
fn integral(d: f64) -> Value {
    if d.abs() < 9e15 { Value::Int(d as i64) } else { BigInt::from_f64(d).map_or_else(|| Value::double(d), Value::big) }
}

fn rounded(m: &mut Machine, name: &str, args: &[Value], by: fn(f64) -> f64) -> Result<Value, Raised> {
    match number(m, name, args, 0)? {
        Value::Double(d) => Ok(integral(by(d.get()))),
        whole => Ok(whole.clone()),
    }
}

fn floor(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    rounded(m, "floor", args, f64::floor)
}

fn ceil(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    rounded(m, "ceil", args, f64::ceil)
}

fn round(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    rounded(m, "round", args, f64::round)
}

fn trunc(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    rounded(m, "trunc", args, f64::trunc)
}

fn to_int(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    match at(args, 0) {
        Value::Double(d) if d.get().is_nan() => Ok(Value::Int(0)),
        Value::Double(d) if d.get().is_infinite() => {
            Err(fault(m, ErrorKind::ArithmeticError, "int", "an infinite number has no integer"))
        }
        Value::Str(text) if text.count() == 1 => {
            let code = text.as_str().chars().next().map_or(0, u32::from);
            Ok(Value::Int(i64::from(code)))
        }
        _ => rounded(m, "int", args, f64::trunc),
    }
}

fn to_double(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(Value::double(double(m, "double", args, 0)?))
}

fn sqrt(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(Value::double(double(m, "sqrt", args, 0)?.sqrt()))
}

fn pow(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let (x, y) = (double(m, "pow", args, 0)?, double(m, "pow", args, 1)?);
    // Java returns NaN where C returns 1.
    if y.is_nan() || y.is_infinite() && x.abs().total_cmp(&1.0).is_eq() {
        return Ok(Value::double(f64::NAN));
    }
    Ok(Value::double(x.powf(y)))
}

macro_rules! functions {
    ($($name:ident $label:literal $f:expr;)*) => {
        $(fn $name(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
            let f: fn(f64) -> f64 = $f;
            Ok(Value::double(f(double(m, $label, args, 0)?)))
        })*
    };
}

functions! {
    cbrt "Math/cbrt" f64::cbrt;
    exp "Math/exp" f64::exp;
    log "Math/log" f64::ln;
    log10 "Math/log10" f64::log10;
    sin "Math/sin" f64::sin;
    cos "Math/cos" f64::cos;
    tan "Math/tan" f64::tan;
    asin "Math/asin" f64::asin;
    acos "Math/acos" f64::acos;
    atan "Math/atan" f64::atan;
    sinh "Math/sinh" f64::sinh;
    cosh "Math/cosh" f64::cosh;
    tanh "Math/tanh" f64::tanh;
    to_degrees "Math/toDegrees" |x| x * (180.0 / std::f64::consts::PI);
    to_radians "Math/toRadians" |x| x * (std::f64::consts::PI / 180.0);
    signum "Math/signum" |x| if x == 0.0 { x } else { x.signum() };
}

fn atan2(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let (y, x) = (double(m, "Math/atan2", args, 0)?, double(m, "Math/atan2", args, 1)?);
    Ok(Value::double(y.atan2(x)))
}

/// Computes `(x - (mod x y)) / y`.
fn floor_div(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let (x, y) = (number(m, "Math/floorDiv", args, 0)?.clone(), number(m, "Math/floorDiv", args, 1)?.clone());
    super::arithmetic::divided(m, &x, &y)?;
    super::arithmetic::divided(m, &x, &y)?;
    let left = number::floor_mod(&x, &y).map_err(|why| super::arithmetic::raise(m, "Math/floorDiv", why))?;
    number::quotient(&number::subtract(&x, &left), &y).map_err(|why| super::arithmetic::raise(m, "Math/floorDiv", why))
}

fn random_unit(m: &mut Machine, _: &mut [Value]) -> Result<Value, Raised> {
    Ok(Value::double(unit(m)))
}

fn hypot(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let (x, y) = (double(m, "Math/hypot", args, 0)?, double(m, "Math/hypot", args, 1)?);
    Ok(Value::double(x.hypot(y)))
}

pub(super) mod random {
    use super::{rand, rand_int, rand_nth, rows, shuffle};
    rows! { "clojure.core":
        "rand" ["[]", "[n]"] rand, "A random double from 0 up to n, 1 by default." { "(< -1 (rand) 1)" => "true" };
        "rand-int" ["[n]"] rand_int, "A random integer from 0 up to n, without n." { "(rand-int 1)" => "0" };
        "rand-nth" ["[coll]"] rand_nth, "A random item." { "(rand-nth [:a])" => ":a" };
        "shuffle" ["[coll]"] shuffle, "The items in a random order." { "(sort (shuffle [3 1 2]))" => "[1 2 3]" };
    }
}

/// Returns a random double in `[0, 1)`.
fn unit(m: &Machine) -> f64 {
    (m.host().random() >> 11) as f64 / (1u64 << 53) as f64
}

fn rand(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let scale = if args.is_empty() { 1.0 } else { double(m, "rand", args, 0)? };
    Ok(Value::double(unit(m) * scale))
}

fn rand_int(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let scale = double(m, "rand-int", args, 0)?;
    Ok(Value::Int((unit(m) * scale) as i64))
}

fn rand_nth(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if at(args, 0).is_nil() {
        return Ok(Value::Nil);
    }
    let items = crate::args::sequential(m, "rand-nth", args, 0)?;
    let index = (unit(m) * items.len() as f64) as usize;
    match items.get(index) {
        Some(item) => Ok(item.clone()),
        None => Err(expected(m, "rand-nth", "a collection with items", 0, &Value::Vector(items))),
    }
}

/// Number of swaps between two checks of the limits.
const CHECK_INTERVAL: usize = 4096;

fn shuffle(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let items = crate::args::seq(m, "shuffle", args, 0)?;
    m.charge(items.len() * crate::args::ITEM)?;
    let mut items = items.into_vec();
    m.tick(crate::args::steps(items.len() % CHECK_INTERVAL))?;
    for last in (1..items.len()).rev() {
        if last % CHECK_INTERVAL == 0 {
            m.tick(crate::args::steps(CHECK_INTERVAL))?;
        }
        items.swap(last, (unit(m) * (last + 1) as f64) as usize);
    }
    Ok(Value::vector(items))
}
