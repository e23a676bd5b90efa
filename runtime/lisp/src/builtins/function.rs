//! Builtins that take or return functions.

use super::composed::{Combinator, Composed};
use super::row::rows;
use crate::args::{ITEM, at, describe, expected, seq, steps, take};
use crate::error::MAX_MESSAGE_LEN;
use crate::machine::{Machine, Raised};
use crate::value::Kind;
use crate::{ErrorKind, Value};
use ptc_text::truncate_utf8;

rows! { "clojure.core":
    "apply" ["[f coll]", "[f x & more]"] apply, "Calls f with the items of the last argument, after those before it." { "(apply + [1 2 3])" => "6", "(apply max 1 [5 2])" => "5" };
    "comp" ["[& fs]"] comp, "A function that calls the last of fs, then the one before with its result, up to the first." { "((comp str inc) 5)" => "\"6\"" };
    "partial" ["[f & args]"] partial, "A function that calls f with these arguments before its own." { "((partial + 10) 5)" => "15" };
    "complement" ["[f]"] complement, "A function that is true where f is false." { "((complement even?) 3)" => "true" };
    "constantly" ["[x]"] constantly, "A function that gives x for any arguments." { "((constantly 5) 1 2)" => "5" };
    "juxt" ["[f & fs]"] juxt, "A function that gives a vector of the results of all fs." { "((juxt first last) [1 2 3])" => "[1 3]" };
    "fnil" ["[f x]", "[f x y]", "[f x y z]"] fnil, "f with x in place of a first argument that is nil, y and z in place of the second and third." { "((fnil inc 0) nil)" => "1" };
    "every-pred" ["[p & ps]"] every_pred, "A function that is true where all ps are true for all arguments." { "((every-pred even? pos?) 4)" => "true" };
    "some-fn" ["[p & ps]"] some_fn, "A function that gives the first true result of ps." { "((some-fn :a :b) {:b 2})" => "2" };
    "memoize" ["[f]"] memoize, "f with a memory: what it gave for arguments once, it gives for them again." { "((memoize inc) 1)" => "2" };
    "trampoline" ["[f & args]"] trampoline, "Calls f, then what it gives as long as that is a function." { "(trampoline (fn [n] (fn [] (inc n))) 1)" => "2" };
    "assert" ["[x]", "[x message]"] assert, "nil if x is true; else the program ends with the message." { "(assert (pos? 1) \"positive\")" => "nil" };
    "reduced" ["[x]"] reduced, "Ends a reduce, whose result is x." { "(reduce (fn [t x] (if (> x 2) (reduced t) (+ t x))) [1 2 3 4])" => "3" };
    "reduced?" ["[x]"] is_reduced, "Whether it was made by reduced." { "(reduced? 1)" => "false" };
    "unreduced" ["[x]"] unreduced, "The value inside reduced, or x itself." { "(unreduced (reduced 1))" => "1" };
}

fn apply(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let last = args.len() - 1;
    if last == 0 {
        return Err(expected(m, "apply", "a collection", last, at(args, last)));
    }
    let rest = seq(m, "apply", args, last)?;
    let none = rest.is_empty();
    m.tick(steps(rest.len()))?;
    m.charge((last + rest.len()) * ITEM)?;
    let f = take(args, 0);
    let mut all = Vec::with_capacity(last - 1 + rest.len());
    all.extend(args.iter_mut().take(last).skip(1).map(std::mem::take));
    all.extend(rest);
    m.call(&f, &mut all).map_err(|raised| {
        if none {
            m.advise_empty(
                raised,
                "the collection is empty: test it with (seq xs) first, or give one value more, as in (apply max 0 xs)",
            )
        } else {
            raised
        }
    })
}

fn made(combinator: Combinator, args: &mut [Value]) -> Value {
    Composed::value(combinator, args.iter_mut().map(std::mem::take).collect())
}

macro_rules! makers {
    ($($name:ident $combinator:ident;)*) => {
        $(        fn $name(_: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
            Ok(made(Combinator::$combinator, args))
        })*
    };
}

makers! {
    comp Comp;
    partial Partial;
    complement Complement;
    constantly Constantly;
    juxt Juxt;
    fnil Fnil;
    every_pred EveryPred;
    some_fn SomeFn;
    memoize Memoize;
    reduced Reduced;
}

fn trampoline(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let f = take(args, 0);
    let mut value = m.call(&f, args.get_mut(1..).unwrap_or_default())?;
    while value.kind() == Kind::Function {
        m.tick(1)?;
        value = m.call(&value, &mut [])?;
    }
    Ok(value)
}

fn assert(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if at(args, 0).is_truthy() {
        return Ok(Value::Nil);
    }
    let message = match at(args, 1) {
        Value::Nil => "an assertion does not hold".to_owned(),
        other => format!(
            "an assertion does not hold: {}",
            other.as_str().map_or_else(|| describe(other), |text| truncate_utf8(text, MAX_MESSAGE_LEN).0.to_owned())
        ),
    };
    Err(m.raise(ErrorKind::RuntimeError, message))
}

fn is_reduced(_: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(Value::bool(matches!(at(args, 0), Value::Composed(made) if made.reduced().is_some())))
}

fn unreduced(_: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let inner = match at(args, 0) {
        Value::Composed(made) => made.reduced().cloned(),
        _ => None,
    };
    Ok(inner.unwrap_or_else(|| take(args, 0)))
}
