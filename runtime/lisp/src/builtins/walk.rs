//! Rebuilds nested data in post-order or pre-order, as `clojure.walk` does.

use super::row::rows;
use crate::Value;
use crate::args::{ITEM, at, expected, steps, take};
use crate::collection::{Children, Map};
use crate::machine::{Machine, Raised};
use crate::metered;
use crate::reader::is_keyword_name;

rows! { "clojure.walk":
    "walk" ["[inner outer form]"] walk, "outer of form with inner applied to its parts." { "(clojure.walk/walk inc (fn [x] (apply + x)) [1 2 3])" => "9" };
    "prewalk" ["[f form]"] prewalk, "form with f applied to each part before its own parts." { "(clojure.walk/prewalk (fn [x] (if (number? x) (inc x) x)) [1 [2]])" => "[2 [3]]" };
    "postwalk" ["[f form]"] postwalk, "form with f applied to each part after its own parts." { "(clojure.walk/postwalk (fn [x] (if (vector? x) (apply + x) x)) [[1 2] [3]])" => "6" };
    "prewalk-replace" ["[smap form]"] prewalk_replace, "form with each part that is a key of smap replaced, outer parts first." { "(clojure.walk/prewalk-replace {1 :one} [1 [1 2]])" => "[:one [:one 2]]" };
    "postwalk-replace" ["[smap form]"] postwalk_replace, "form with each part that is a key of smap replaced, inner parts first." { "(clojure.walk/postwalk-replace {1 :one} {:a 1})" => "{:a :one}" };
    "keywordize-keys" ["[form]"] keywordize, "form with keywords for the string keys of maps that can be written as keywords." { "(clojure.walk/keywordize-keys {\"a\" [{\"b\" 1}]})" => "{:a [{:b 1}]}" };
    "stringify-keys" ["[form]"] stringify, "form with strings for all keyword keys of maps." { "(clojure.walk/stringify-keys {:a 1})" => "{\"a\" 1}" };
}

/// The functions that a walk calls before and after the children of each part.
struct Visitor<'a> {
    before: &'a mut dyn FnMut(&mut Machine, Value) -> Result<Value, Raised>,
    after: &'a mut dyn FnMut(&mut Machine, Value) -> Result<Value, Raised>,
}

/// The kind of a container that is being rebuilt.
enum Shape {
    Vector,
    Map,
    Set,
}

struct Open {
    shape: Shape,
    /// Whether this is an object of an answer, so that its copy is one too.
    is_answered: bool,
    /// The parts that are not visited yet, in reverse order.
    left: Vec<Value>,
    done: Vec<Value>,
}

fn parts(m: &mut Machine, value: &Value) -> Result<Option<Open>, Raised> {
    let shape = match value {
        Value::Vector(_) => Shape::Vector,
        Value::Map(_) => Shape::Map,
        Value::Set(_) => Shape::Set,
        _ => return Ok(None),
    };
    let each = if let Shape::Map = shape { 12 * ITEM } else { 2 * ITEM };
    let len = value.len().unwrap_or(0);
    m.tick(steps(len))?;
    m.charge(len * each)?;
    // The parts of a map are its entries as vectors.
    let mut left: Vec<Value> = match value {
        Value::Map(map) => map.iter().map(|(k, v)| Value::pair(k.clone(), v.clone())).collect(),
        other => Children::new(other).into_iter().flatten().cloned().collect(),
    };
    left.reverse();
    let is_answered = matches!(value, Value::Map(map) if map.is_answered());
    Ok(Some(Open { shape, is_answered, done: Vec::with_capacity(left.len()), left }))
}

fn rebuilt(m: &mut Machine, open: Open) -> Result<Value, Raised> {
    match open.shape {
        Shape::Vector => Ok(Value::vector(open.done)),
        Shape::Set => metered::set(m, open.done).map(Value::Set),
        Shape::Map => {
            m.charge(open.done.len() * 2 * ITEM)?;
            let mut entries = Vec::with_capacity(open.done.len());
            for part in open.done {
                m.step()?;
                match &part {
                    Value::Vector(pair) if pair.len() == 2 => {
                        entries.push((pair.get(0).cloned().unwrap_or_default(), pair.get(1).cloned().unwrap_or_default()));
                    }
                    Value::Nil => {}
                    other => {
                        return Err(crate::args::expected(m, "clojure.walk/walk", "entries [key value] of a map", 0, other));
                    }
                }
            }
            Ok(marked(metered::map(m, entries)?, open.is_answered))
        }
    }
}

/// Marks the copy of an object of an answer.
fn marked(mut map: Map, is_answered: bool) -> Value {
    if is_answered {
        map.mark_answered();
    }
    Value::Map(map)
}

/// Visits every part without native recursion.
fn visit(m: &mut Machine, form: Value, visitor: &mut Visitor<'_>) -> Result<Value, Raised> {
    let mut open: Vec<Open> = Vec::new();
    let mut next = Some(form);
    loop {
        let mut finished = match next.take() {
            Some(part) => {
                m.tick(1)?;
                let part = (visitor.before)(m, part)?;
                match parts(m, &part)? {
                    Some(container) => {
                        open.push(container);
                        None
                    }
                    None => Some((visitor.after)(m, part)?),
                }
            }
            None => None,
        };
        loop {
            let Some(top) = open.last_mut() else { return Ok(finished.unwrap_or_default()) };
            top.done.extend(finished.take());
            if let Some(part) = top.left.pop() {
                next = Some(part);
                break;
            }
            let Some(container) = open.pop() else { return Ok(Value::Nil) };
            let value = rebuilt(m, container)?;
            let value = (visitor.after)(m, value)?;
            if open.is_empty() {
                return Ok(value);
            }
            finished = Some(value);
        }
    }
}

fn as_it_is(_: &mut Machine, value: Value) -> Result<Value, Raised> {
    Ok(value)
}

fn prewalk(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let (f, form) = (take(args, 0), take(args, 1));
    visit(m, form, &mut Visitor { before: &mut |m, part| m.call(&f, &mut [part]), after: &mut as_it_is })
}

fn postwalk(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let (f, form) = (take(args, 0), take(args, 1));
    visit(m, form, &mut Visitor { before: &mut as_it_is, after: &mut |m, part| m.call(&f, &mut [part]) })
}

fn walk(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let form = take(args, 2);
    let form = match parts(m, &form)? {
        None => form,
        Some(mut open) => {
            while let Some(part) = open.left.pop() {
                m.tick(1)?;
                let value = m.call(at(args, 0), &mut [part])?;
                open.done.push(value);
            }
            rebuilt(m, open)?
        }
    };
    m.call(at(args, 1), &mut [form])
}

/// Returns the map of replacements and the form.
fn replacements(m: &mut Machine, name: &str, args: &mut [Value]) -> Result<(Value, Value), Raised> {
    match at(args, 0) {
        Value::Map(_) | Value::Nil => Ok((take(args, 0), take(args, 1))),
        other => Err(expected(m, name, "a map", 0, other)),
    }
}

fn replaced(smap: &Value, part: Value) -> Value {
    match smap {
        Value::Map(map) => map.lookup(&part).cloned().unwrap_or(part),
        _ => part,
    }
}

fn prewalk_replace(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let (smap, form) = replacements(m, "clojure.walk/prewalk-replace", args)?;
    visit(m, form, &mut Visitor { before: &mut |_, part| Ok(replaced(&smap, part)), after: &mut as_it_is })
}

fn postwalk_replace(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let (smap, form) = replacements(m, "clojure.walk/postwalk-replace", args)?;
    visit(m, form, &mut Visitor { before: &mut as_it_is, after: &mut |_, part| Ok(replaced(&smap, part)) })
}

/// Renames all keys of all maps in a form.
fn rekeyed(m: &mut Machine, form: Value, rename: fn(Value) -> Value) -> Result<Value, Raised> {
    let mut after = |m: &mut Machine, part: Value| match part {
        Value::Map(map) => {
            m.charge(map.len() * 2 * ITEM)?;
            let is_answered = map.is_answered();
            let renamed = metered::entries(m, map)?.into_iter().map(|(k, v)| (rename(k), v)).collect();
            Ok(marked(metered::map(m, renamed)?, is_answered))
        }
        other => Ok(other),
    };
    visit(m, form, &mut Visitor { before: &mut as_it_is, after: &mut after })
}

fn keywordize(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    rekeyed(m, take(args, 0), |key| match key {
        // A keyword with characters that the reader rejects would not print readably.
        Value::Str(name) if is_keyword_name(name.as_str()) => Value::Keyword(name),
        other => other,
    })
}

fn stringify(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    rekeyed(m, take(args, 0), |key| match key {
        Value::Keyword(name) => Value::Str(name),
        other => other,
    })
}
