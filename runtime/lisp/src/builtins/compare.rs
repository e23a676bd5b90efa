//! Builtins for equality, order and truth.

use std::cmp::Ordering;

use super::arithmetic::is_nan;
use super::row::rows;
use crate::Value;
use crate::args::{at, take};
use crate::machine::{Machine, Raised};
use crate::order;

rows! { "clojure.core":
    "=" ["[x & more]"] equals, "Whether all are equal. Numbers are equal by value: 1 and 1.0 are." { "(= 1 1.0)" => "true", "(= [1 2] [1 2])" => "true", "(= \"a\" :a)" => "false" };
    "==" ["[x & more]"] equals, "The same as =." { "(== 1 1.0)" => "true" };
    "not=" ["[x & more]"] not_equals, "Whether not all are equal." { "(not= 1 2)" => "true" };
    "<" ["[x & more]"] less, "Whether each is less than the next. Compares anything; false with NaN." { "(< 1 2 3)" => "true", "(< \"a\" \"b\")" => "true" };
    "<=" ["[x & more]"] less_or_equal, "Whether none is greater than the next." { "(<= 1 1 2)" => "true" };
    ">" ["[x & more]"] greater, "Whether each is greater than the next." { "(> 3 2 1)" => "true" };
    ">=" ["[x & more]"] greater_or_equal, "Whether none is less than the next." { "(>= 3 3 1)" => "true" };
    "compare" ["[x y]"] compare, "-1, 0 or 1 if x is less than, equal to or greater than y." { "(compare 1 2)" => "-1", "(compare \"b\" \"a\")" => "1" };
    "identical?" ["[x y]"] equals, "The same as =: values have no identity." { "(identical? :a :a)" => "true" };
    "not" ["[x]"] not, "true for nil and false, else false." { "(not nil)" => "true", "(not 0)" => "false" };
    "boolean" ["[x]"] boolean, "false for nil and false, else true." { "(boolean 0)" => "true", "(boolean nil)" => "false" };
    "identity" ["[x]"] identity, "Its argument." { "(identity 5)" => "5" };
}

/// Implements `=`. NaN equals nothing.
fn same(a: &Value, b: &Value) -> bool {
    order::equal(a, b) && !is_nan(a)
}

/// The order of `a` and `b`. `None` if one of them is NaN.
pub(super) fn partial(a: &Value, b: &Value) -> Option<Ordering> {
    if is_nan(a) || is_nan(b) { None } else { Some(order::compare(a, b)) }
}

/// Whether each neighbouring pair is ordered so. Pairs of different kinds are recorded.
fn ordered(m: &mut Machine, args: &[Value], holds: fn(Ordering) -> bool) -> Result<Value, Raised> {
    for pair in args.windows(2) {
        if let [a, b] = pair {
            m.meters.mixed_comparisons.see(a, b);
        }
    }
    let check: &dyn Fn(&Value, &Value) -> bool = &|a, b| partial(a, b).is_some_and(holds);
    chain(m, args, check).map(Value::bool)
}

fn chain(m: &mut Machine, args: &[Value], holds: &dyn Fn(&Value, &Value) -> bool) -> Result<bool, Raised> {
    for pair in args.windows(2) {
        if let [a, b] = pair {
            // Comparing deep values needs memory for a work list.
            m.charge(a.depth().min(b.depth()) as usize * super::output::OPEN)?;
            if !holds(a, b) {
                return Ok(false);
            }
            m.step()?;
        }
    }
    Ok(true)
}

fn equals(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    chain(m, args, &same).map(Value::bool)
}

fn not_equals(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    chain(m, args, &same).map(|same| Value::bool(!same))
}

fn less(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    ordered(m, args, Ordering::is_lt)
}

fn less_or_equal(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    ordered(m, args, Ordering::is_le)
}

fn greater(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    ordered(m, args, Ordering::is_gt)
}

fn greater_or_equal(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    ordered(m, args, Ordering::is_ge)
}

fn compare(_: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let order = partial(at(args, 0), at(args, 1)).unwrap_or(Ordering::Equal);
    Ok(Value::Int(order as i64))
}

fn not(_: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(Value::bool(!at(args, 0).is_truthy()))
}

fn boolean(_: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(Value::bool(at(args, 0).is_truthy()))
}

pub(super) fn identity(_: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(take(args, 0))
}
