//! Transducers: sequence functions without their collection, and the functions that run them.
//!
//! `(map f)`, `(filter pred)` and similar calls take a reducing function and return another one. They are implemented by the
//! [`Transducer`]s that also transform infinite sequences. A reducing function takes no argument (initialization), a total
//! (completion), or a total and an item.

use super::composed::{Combinator, Composed, is_reduced};
use super::row::rows;
use crate::Value;
use crate::args::{SeqIter, at, take};
use crate::infinite::{Cursor, InfiniteSeq, Transducer};
use crate::machine::{Machine, Raised};

rows! { "clojure.core":
    "transduce" ["[xform f coll]", "[xform f init coll]"] transduce, "reduce of the items as the transducer xform gives them." { "(transduce (map inc) + [1 2 3])" => "9", "(transduce (comp (filter odd?) (take 2)) conj [] (range))" => "[1 3]" };
    "completing" ["[f]", "[f done]"] completing, "f as a reducing function that calls done, identity by default, with the last total." { "(transduce (map inc) (completing + str) 0 [1 2])" => "\"5\"" };
    "sequence" ["[coll]", "[xform coll]"] sequence, "The items as the transducer xform gives them." { "(sequence (map inc) [1 2])" => "[2 3]", "(sequence (take 2) (range))" => "[0 1]" };
    "eduction" ["[xform coll]", "[xform & more]"] eduction, "The items as the transducers give them, one after the other; the collection comes last." { "(eduction (map inc) (filter even?) [1 2 3])" => "[2 4]" };
    "cat" ["[f]"] cat, "A transducer that gives the items of each collection." { "(into [] cat [[1 2] [3]])" => "[1 2 3]" };
    "ensure-reduced" ["[x]"] ensure_reduced, "(reduced x), or x itself if it is that already." { "(unreduced (ensure-reduced 1))" => "1" };
}

/// Makes the transducer of a stage.
pub(super) fn transducer(stage: Transducer) -> Value {
    Composed::staged(stage, None)
}

/// Applies a stage to the argument at `index`, if that is an infinite sequence.
pub(super) fn changed(m: &mut Machine, args: &[Value], index: usize, stage: Transducer) -> Option<Result<Value, Raised>> {
    match at(args, index) {
        Value::InfiniteSeq(infinite) => Some(InfiniteSeq::value(m, Cursor::transformed(stage, infinite.cursor()))),
        _ => None,
    }
}

/// Handles calls whose collection, the argument at `index`, is missing or infinite. Without a collection the result is a
/// transducer. For an infinite sequence it is another infinite sequence. The stage is made from the first argument.
pub(super) fn staged(
    m: &mut Machine,
    args: &mut [Value],
    index: usize,
    stage: impl FnOnce(Value) -> Transducer,
) -> Option<Result<Value, Raised>> {
    let first = |args: &mut [Value]| if index == 0 { Value::Nil } else { take(args, 0) };
    match args.get(index) {
        None => Some(Ok(transducer(stage(first(args))))),
        Some(Value::InfiniteSeq(infinite)) => {
            let input = infinite.cursor();
            let stage = stage(first(args));
            Some(InfiniteSeq::value(m, Cursor::transformed(stage, input)))
        }
        Some(_) => None,
    }
}

/// Returns the cursors of the arguments from `from` on, if all of them are infinite sequences.
pub(super) fn all_infinite(args: &[Value], from: usize) -> Option<Vec<Cursor>> {
    let cursors = args.iter().skip(from).map(|arg| match arg {
        Value::InfiniteSeq(infinite) => Some(infinite.cursor()),
        _ => None,
    });
    cursors.collect::<Option<Vec<Cursor>>>().filter(|cursors| !cursors.is_empty())
}

/// Reduces with the reducing function that the transducer makes from `f`.
pub(super) fn run(m: &mut Machine, xform: &Value, f: Value, init: Value, mut walk: SeqIter) -> Result<Value, Raised> {
    let step = m.call(xform, &mut [f])?;
    let mut total = init;
    while let Some(item) = walk.next(m)? {
        total = m.call(&step, &mut [total, item])?;
        if is_reduced(&total) {
            break;
        }
    }
    let total = unreduced(total);
    m.call(&step, &mut [total])
}

fn unreduced(value: Value) -> Value {
    match &value {
        Value::Composed(made) => made.reduced().cloned().unwrap_or(value),
        _ => value,
    }
}

fn transduce(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let last = args.len() - 1;
    let walk = SeqIter::any(m, "transduce", args, last)?;
    let (xform, f) = (take(args, 0), take(args, 1));
    let init = if last == 3 { take(args, 2) } else { m.call(&f, &mut [])? };
    run(m, &xform, f, init, walk)
}

fn completing(_: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let f = take(args, 0);
    let done = if args.len() > 1 { take(args, 1) } else { function("identity") };
    Ok(Composed::value(Combinator::Completing, vec![f, done]))
}

/// Returns a function of the core by its name.
pub(super) fn function(name: &str) -> Value {
    super::find(name).map(Value::Builtin).unwrap_or_default()
}

/// Returns the items that the transducer produces as a vector.
fn collected(m: &mut Machine, xform: &Value, walk: SeqIter) -> Result<Value, Raised> {
    run(m, xform, function("conj"), Value::vector(Vec::new()), walk)
}

fn sequence(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if args.len() == 1 {
        if let Value::InfiniteSeq(_) = at(args, 0) {
            return Ok(take(args, 0));
        }
        return Ok(Value::Vector(crate::args::seq(m, "sequence", args, 0)?));
    }
    let walk = SeqIter::any(m, "sequence", args, 1)?;
    collected(m, &take(args, 0), walk)
}

fn eduction(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let last = args.len() - 1;
    let walk = SeqIter::any(m, "eduction", args, last)?;
    let xforms: Vec<Value> = args.iter_mut().take(last).map(std::mem::take).collect();
    collected(m, &Composed::value(Combinator::Comp, xforms), walk)
}

fn cat(_: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(Composed::staged(Transducer::Cat, Some(take(args, 0))))
}

fn ensure_reduced(_: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let value = take(args, 0);
    Ok(if is_reduced(&value) { value } else { Composed::value(Combinator::Reduced, vec![value]) })
}
