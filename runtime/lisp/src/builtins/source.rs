//! Builtins that generate sequences from a rule. Without a number of items they are infinite, see [`crate::infinite`].

use super::row::rows;
use crate::args::{ITEM, at, count, expected, fault, number, seq, steps, take};
use crate::infinite::{Cursor, InfiniteSeq};
use crate::machine::{Machine, Raised};
use crate::{ErrorKind, Value, number};

rows! { "clojure.core":
    "range" ["[]", "[end]", "[start end]", "[start end step]"] range, "Numbers from start, 0 by default, up to end; without an end they go on." { "(range 5)" => "[0 1 2 3 4]", "(range 10 0 -3)" => "[10 7 4 1]", "(range 0 1 0.5)" => "[0 0.5]", "(take 3 (range))" => "[0 1 2]" };
    "repeat" ["[n x]", "[x]"] repeat, "x, n times, or without an end." { "(repeat 3 :a)" => "[:a :a :a]", "(take 2 (repeat 0))" => "[0 0]" };
    "replicate" ["[n x]"] repeat, "x, n times." { "(replicate 2 0)" => "[0 0]" };
    "repeatedly" ["[f]", "[n f]"] repeatedly, "The results of n calls of f without arguments, or of calls without an end." { "(repeatedly 2 (constantly 1))" => "[1 1]" };
    "iterate" ["[f x]"] iterate, "x, (f x), (f (f x)) … without an end." { "(take 4 (iterate inc 0))" => "[0 1 2 3]", "(first (drop-while (fn [n] (< n 100)) (iterate (fn [n] (* 2 n)) 1)))" => "128" };
    "cycle" ["[coll]"] cycle, "The items of coll over and over, without an end." { "(take 5 (cycle [1 2]))" => "[1 2 1 2 1]", "(map vector [:a :b :c] (cycle [0 1]))" => "[[:a 0] [:b 1] [:c 0]]" };
}

fn range(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    for index in 0..args.len() {
        number(m, "range", args, index)?;
    }
    let (zero, one, no_end) = (Value::Int(0), Value::Int(1), Value::double(f64::INFINITY));
    let (start, end, step) = match &*args {
        [] => (&zero, &no_end, &one),
        [end] => (&zero, end, &one),
        [start, end] => (start, end, &one),
        [start, end, step, ..] => (start, end, step),
    };
    if let (Value::Int(start), Value::Int(end), Value::Int(step)) = (start, end, step)
        && *step != 0
    {
        return integers(m, *start, *end, *step);
    }
    let forward = number::compare(step, &zero);
    if forward.is_eq() {
        let same = number::compare(start, end).is_eq();
        return if same { Ok(Value::vector(Vec::new())) } else { InfiniteSeq::value(m, Cursor::Repeat(start.clone())) };
    }
    let (Some(from), Some(to), Some(by)) = (start.as_f64(), end.as_f64(), step.as_f64()) else { return Ok(Value::Nil) };
    if from.is_nan() || to.is_nan() || by.is_nan() || from.is_infinite() || by.is_infinite() {
        return Err(fault(m, ErrorKind::ArithmeticError, "range", "only the end may be infinite"));
    }
    if to.is_infinite() && (to > 0.0) == (by > 0.0) {
        return InfiniteSeq::value(m, Cursor::Range(start.clone(), step.clone()));
    }
    let mut items = Vec::new();
    let mut next = start.clone();
    while number::compare(&next, end) == forward.reverse() {
        m.tick(1)?;
        if items.len() == items.capacity() {
            m.charge(items.len() * ITEM)?;
        }
        let after = number::add(&next, step);
        // A step too small to change a large double would never terminate.
        if number::compare(&after, &next).is_eq() {
            return Err(fault(m, ErrorKind::ArithmeticError, "range", "the step is too small to reach the end"));
        }
        items.push(std::mem::replace(&mut next, after));
    }
    Ok(Value::vector(items))
}

fn integers(m: &mut Machine, start: i64, end: i64, step: i64) -> Result<Value, Raised> {
    let span = if step > 0 { i128::from(end) - i128::from(start) } else { i128::from(start) - i128::from(end) };
    let each = i128::from(step.unsigned_abs());
    let len = usize::try_from(((span + each - 1) / each).max(0)).unwrap_or(usize::MAX);
    m.charge(len.saturating_mul(ITEM))?;
    m.tick(steps(len))?;
    let mut items = Vec::with_capacity(len);
    items.extend((0..len as i64).map(|i| Value::Int(start.wrapping_add(i.wrapping_mul(step)))));
    Ok(Value::vector(items))
}

/// Returns the number of items, which is the first argument.
fn bound(m: &mut Machine, name: &str, args: &[Value]) -> Result<usize, Raised> {
    match at(args, 0) {
        Value::Int(_) | Value::BigInt(_) => count(m, name, args, 0),
        other => Err(expected(m, name, "a number of items", 0, other)),
    }
}

fn repeat(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if args.len() == 1 {
        return InfiniteSeq::value(m, Cursor::Repeat(take(args, 0)));
    }
    let n = bound(m, "repeat", args)?;
    m.charge(n.saturating_mul(ITEM))?;
    m.tick(steps(n))?;
    Ok(Value::vector(vec![take(args, 1); n]))
}

fn repeatedly(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if args.len() == 1 {
        return InfiniteSeq::value(m, Cursor::Repeatedly(take(args, 0)));
    }
    let n = bound(m, "repeatedly", args)?;
    let mut items = Vec::new();
    for _ in 0..n {
        m.tick(1)?;
        items.push(m.call(at(args, 1), &mut [])?);
    }
    Ok(Value::vector(items))
}

fn iterate(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    InfiniteSeq::value(m, Cursor::Iterate { f: take(args, 0), first: take(args, 1), last: None })
}

fn cycle(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if let Value::InfiniteSeq(_) = at(args, 0) {
        return Ok(take(args, 0));
    }
    let items = seq(m, "cycle", args, 0)?;
    if items.is_empty() { Ok(Value::Vector(items)) } else { InfiniteSeq::value(m, Cursor::Cycle(items, 0)) }
}
