//! Conversion of the arguments of builtins to Rust values, and the errors for wrong arguments.

use crate::collection::Vector;
use crate::infinite::Cursor;
use crate::machine::{Machine, Raised};
use crate::value::Text;
use crate::{ErrorKind, Value};
use crate::{builtins, metered};

/// Bytes of one item of a vector.
pub(crate) const ITEM: usize = 16;

static NIL: Value = Value::Nil;

/// The argument at `index`; nil if it is missing.
#[inline]
pub(crate) fn at(args: &[Value], index: usize) -> &Value {
    args.get(index).unwrap_or(&NIL)
}

/// Moves the argument at `index` out; nil if it is missing.
#[inline]
pub(crate) fn take(args: &mut [Value], index: usize) -> Value {
    args.get_mut(index).map(std::mem::take).unwrap_or_default()
}

/// The kind and a preview of a value: `a string "abc"`.
pub(crate) fn describe(value: &Value) -> String {
    match value {
        Value::Nil => "nil".to_owned(),
        Value::Temporal(temporal) => format!("{} {}", temporal.described(), crate::print::preview_line(value, 60)),
        Value::InfiniteSeq(_) => value.kind().described().to_owned(),
        _ => format!("{} {}", value.kind().described(), crate::print::preview_line(value, 60)),
    }
}

/// The parameters of a builtin, such as `m k v`; empty for an unknown builtin. `arguments` selects one of several argument lists.
fn parameters(name: &str, arguments: usize) -> &'static str {
    let row = crate::analyzer::builtin(name).or_else(|| builtins::all().find(|row| row.name == name));
    let lists = || row.into_iter().flat_map(|row| row.notes.arglists()).map(|list| list.trim_matches(['[', ']']));
    let takes = |list: &str| list.contains('&') || (!list.is_empty() && list.split_whitespace().count() >= arguments);
    let list = lists().find(|list| takes(list)).or_else(|| lists().last()).unwrap_or_default();
    // `(take n)` is a transducer and `(- x)` negates: the longer argument list is called far more often.
    let longer = |other: &&str| other.split_once(' ').is_some_and(|(first, _)| first == list);
    lists().find(longer).unwrap_or(list)
}

/// `(assoc m k v)`, or just the name of an unknown builtin.
fn usage(name: &str, arguments: usize) -> String {
    let list = parameters(name, arguments);
    if list.is_empty() { format!("({name})") } else { format!("({name} {list})") }
}

/// Raises a type error: `(assoc m k v): expected a map as argument 1, found a string "abc"`.
#[cold]
pub(crate) fn expected(m: &mut Machine, name: &str, what: &str, index: usize, found: &Value) -> Raised {
    let usage = usage(name, index + 1);
    let text = format!("{usage}: expected {what} as argument {}, found {}", index + 1, describe(found));
    let parameters = parameters(name, index + 1);
    let hint = match advice(what, found, parameters) {
        Some(advice) => advice.to_owned(),
        None if what == "a map" && matches!(found, Value::Vector(_)) => for_each(name, parameters),
        None if parameters.contains(' ') && !parameters.starts_with('&') => {
            format!("the arguments come as {usage}; -> puts a value in as the first of them, ->> as the last")
        }
        None => format!("(doc {name}) says what it takes"),
    };
    m.raise_with_hint(ErrorKind::TypeError, text, hint)
}

/// The hint for a wrong argument, by the value that was found. A value that looks like an argument at the wrong position has
/// none.
fn advice(wanted: &str, found: &Value, parameters: &str) -> Option<&'static str> {
    let number = wanted.contains("number") || wanted.contains("integer") || wanted.contains("index");
    let takes = |names: &[&str]| parameters.split_whitespace().any(|parameter| names.contains(&parameter));
    Some(match found {
        Value::InfiniteSeq(_) => INFINITE_SEQ_HINT,
        Value::Nil => {
            "a key that a map does not have gives nil, and so does a text that parse-long or parse-double cannot read: check what it \
             comes from, or give a default as in (or x 0) or (get m k 0)"
        }
        _ if wanted.contains("vector of keys") => "a path is a vector, also of one key: [:a]",
        _ if wanted.starts_with("[key value]") => {
            "make pairs first, as in (into {} (map (fn [x] [(:id x) x]) xs)); assoc puts one value under a key"
        }
        Value::Vector(_) if parameters == "& maps" => "(apply merge maps) merges the maps of a vector",
        Value::Keyword(_) if number && !takes(&["coll", "s"]) => "a field is read from its map: (:total m)",
        Value::Str(_) if wanted.contains("date") || wanted.contains("instant") => {
            "make a date or time of the text first: (LocalDate/parse s), (LocalDateTime/parse s) or (Instant/parse s)"
        }
        Value::Double(_) if wanted.contains("integer") => "(int x) leaves out the fraction, (Math/round x) rounds",
        Value::Keyword(_) if parameters == "& maps" => "assoc puts a value under a key: (assoc m :key value)",
        Value::Str(_) if wanted.contains("position") => "(clojure.string/includes? s part) finds a text in a text",
        Value::Str(text) if number => {
            if takes(&["coll", "s"]) && text.as_str().trim().parse::<f64>().is_err() {
                return None;
            }
            "read the number out of the text with (parse-long s) or (parse-double s)"
        }
        Value::Str(_) if wanted.contains("map") => "text that is JSON becomes data with (json/parse-string s)",
        _ if wanted.contains("date or time") => {
            "numbers make dates with (LocalDate/of year month day), (LocalDate/ofEpochDay n) and (Instant/ofEpochMilli n)"
        }
        Value::Int(_) | Value::Double(_) | Value::BigInt(_) if wanted.contains("string") => "(str n) gives the text of a number",
        Value::Keyword(_) if wanted.contains("string") => "(name k) gives the text of a keyword",
        Value::Closure(_) | Value::Composed(_) | Value::Builtin(_) => {
            "the function is the first argument of map, filter, reduce and their like, the collection the last, where ->> puts it"
        }
        Value::Map(_) if number && !takes(&["coll"]) => "take the number out of the map first, as in (:total m)",
        Value::Vector(_) | Value::Set(_) if number && !takes(&["coll", "s"]) => {
            "(reduce + xs) or (apply max xs) make one number of many"
        }
        Value::Vector(_) if wanted == "a set" => "(set xs) makes a set; (remove #{x} xs) leaves items of a vector out",
        _ if wanted.starts_with("an entry") => {
            "the entries of a map are pairs: (map key m), or (key (first (seq m))) for the first"
        }
        Value::Str(_) if wanted.starts_with("a character") => {
            "(seq s) gives the characters of a text, (first s) the first of them"
        }
        // A single argument cannot be at the wrong position.
        _ if !parameters.contains(' ') => match (found, wanted.contains("collection") || wanted.contains("map")) {
            (Value::Int(_) | Value::Double(_) | Value::BigInt(_), true) => {
                "a number has no items: is it what count or sum gave, or a field that was taken out already? [x] is a collection of one"
            }
            (Value::True | Value::False, true) => "a predicate gives true or false; (filter pred xs) gives the items",
            (Value::Keyword(_) | Value::Symbol(_), true) => "a name has no items: (:key m) gives what a map has under it",
            (Value::Temporal(_), true) => {
                "a date or time has no items: (str x) gives its text, (.getYear x) and its like its parts"
            }
            (Value::Regex(_), true) => "a regex has no items: (re-seq regex s) gives its matches in a text",
            (Value::Str(_), true) if wanted.contains("map") => "text that is JSON becomes data with (json/parse-string s)",
            _ => return None,
        },
        _ => return None,
    })
}

/// The hint for a function of a map that was given a vector of maps.
fn for_each(name: &str, parameters: &str) -> String {
    let call = if parameters.contains(' ') { format!("#({name} % …)") } else { name.to_owned() };
    format!("for a vector of maps call it for each, as in (map {call} maps)")
}

/// Hint for an infinite sequence where a finite one is needed.
pub(crate) const INFINITE_SEQ_HINT: &str = "take what is needed first, as in (take 10 xs) or (take-while pred xs)";

/// Raises another fault of a builtin: `(nth coll i): …`.
#[cold]
pub(crate) fn fault(m: &mut Machine, kind: ErrorKind, name: &str, what: &str) -> Raised {
    m.raise(kind, format!("{}: {what}", usage(name, 1)))
}

/// A string.
pub(crate) fn text<'a>(m: &mut Machine, name: &str, args: &'a [Value], index: usize) -> Result<&'a Text, Raised> {
    match at(args, index) {
        Value::Str(text) => Ok(text),
        other => Err(expected(m, name, "a string", index, other)),
    }
}

/// A string whose graphemes can be indexed.
pub(crate) fn indexed_text<'a>(m: &mut Machine, name: &str, args: &'a [Value], index: usize) -> Result<&'a Text, Raised> {
    let text = text(m, name, args, index)?;
    locate_graphemes(m, text)?;
    Ok(text)
}

/// Computes the grapheme offsets of a text, with checks of the limits. The first call for a long text takes some time.
pub(crate) fn locate_graphemes(m: &mut Machine, text: &Text) -> Result<(), Raised> {
    text.locate(|graphemes| m.tick(steps(graphemes)))
}

/// A number of any kind.
pub(crate) fn number<'a>(m: &mut Machine, name: &str, args: &'a [Value], index: usize) -> Result<&'a Value, Raised> {
    match at(args, index) {
        number @ (Value::Int(_) | Value::Double(_) | Value::BigInt(_)) => Ok(number),
        other => Err(expected(m, name, "a number", index, other)),
    }
}

/// A number as a double.
pub(crate) fn double(m: &mut Machine, name: &str, args: &[Value], index: usize) -> Result<f64, Raised> {
    Ok(number(m, name, args, index)?.as_f64().unwrap_or(f64::NAN))
}

/// The value of a number as a 64-bit integer, if it has no fraction.
pub(crate) fn as_integer(value: &Value) -> Option<i64> {
    match value {
        Value::Int(i) => Some(*i),
        Value::Double(d) if d.get().fract() == 0.0 && d.get().abs() < 9e18 => Some(d.get() as i64),
        _ => None,
    }
}

/// An integer of 64 bits.
pub(crate) fn int(m: &mut Machine, name: &str, args: &[Value], index: usize) -> Result<i64, Raised> {
    let value = at(args, index);
    as_integer(value).ok_or(()).map_err(|()| expected(m, name, "an integer", index, value))
}

/// A number of items. Negative numbers mean 0, large ones all items.
pub(crate) fn count(m: &mut Machine, name: &str, args: &[Value], index: usize) -> Result<usize, Raised> {
    match at(args, index) {
        Value::BigInt(big) => Ok(if big.sign() == num_bigint::Sign::Minus { 0 } else { usize::MAX }),
        Value::Double(d) if !d.get().is_nan() => Ok(d.get().ceil().max(0.0) as usize),
        Value::Int(i) => Ok(usize::try_from(*i).unwrap_or(0)),
        other => Err(expected(m, name, "a number of items", index, other)),
    }
}

/// The items of a value as a vector: entries of a map, members of a set, graphemes of a string. Nil has no items.
pub(crate) fn seq(m: &mut Machine, name: &str, args: &mut [Value], index: usize) -> Result<Vector, Raised> {
    match take(args, index) {
        Value::Vector(items) => Ok(items),
        other => match seq_of(m, other)? {
            Ok(items) => Ok(items),
            Err(other) => Err(expected(m, name, "a collection", index, &other)),
        },
    }
}

/// [`seq`] of a value that is not an argument. Returns a value without items as `Err`.
pub(crate) fn seq_of(m: &mut Machine, value: Value) -> Result<Result<Vector, Value>, Raised> {
    Ok(Ok(match value {
        Value::Vector(items) => items,
        Value::Nil => Vector::default(),
        Value::Map(map) => {
            // Each entry becomes a vector of two.
            m.charge(map.len() * (112 + 2 * ITEM))?;
            let pairs = metered::entries(m, map)?;
            pairs.into_iter().map(|(k, v)| Value::pair(k, v)).collect()
        }
        Value::Set(set) => {
            m.charge(set.len() * ITEM)?;
            Vector::from(metered::members(m, set)?)
        }
        Value::Str(text) => {
            m.charge(text.as_str().len() * (ITEM + 48))?;
            m.tick(steps(text.as_str().len()))?;
            text.graphemes().map(Value::string).collect()
        }
        other => return Ok(Err(other)),
    }))
}

/// [`seq`] for functions that take an index, which are undefined for maps.
pub(crate) fn sequential(m: &mut Machine, name: &str, args: &mut [Value], index: usize) -> Result<Vector, Raised> {
    if let Value::Map(_) = at(args, index) {
        let found = take(args, index);
        let text = format!(
            "{}: expected a vector or string as argument {}, found {}",
            usage(name, index + 1),
            index + 1,
            describe(&found)
        );
        return Err(m.raise_with_hint(ErrorKind::TypeError, text, "a map has no first item: use seq, keys or vals"));
    }
    seq(m, name, args, index)
}

/// Charges for the items that an update of a shared vector copies.
#[inline]
pub(crate) fn copy_first(m: &mut Machine, items: &mut Vector) -> Result<(), Raised> {
    let copied = items.shared_items();
    m.charge(copied * ITEM)?;
    m.tick(steps(copied / 8))
}

/// A length as a number of steps.
pub(crate) fn steps(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// An iterator over the items of an argument. Each item costs a step.
pub(crate) enum SeqIter {
    /// The items of a vector.
    Finite(crate::collection::IntoIter),
    /// The items of an infinite sequence.
    Infinite(Box<Cursor>),
}

impl SeqIter {
    /// Iterates over the argument at `index`, which must be finite.
    pub(crate) fn finite(m: &mut Machine, name: &str, args: &mut [Value], index: usize) -> Result<SeqIter, Raised> {
        Ok(SeqIter::Finite(seq(m, name, args, index)?.into_iter()))
    }

    /// Iterates over the argument at `index`, which may be infinite, for functions that may stop early.
    pub(crate) fn any(m: &mut Machine, name: &str, args: &mut [Value], index: usize) -> Result<SeqIter, Raised> {
        match at(args, index) {
            Value::InfiniteSeq(infinite) => Ok(SeqIter::Infinite(Box::new(infinite.cursor()))),
            _ => SeqIter::finite(m, name, args, index),
        }
    }

    /// Iterates over a vector.
    pub(crate) fn from_vector(items: Vector) -> SeqIter {
        SeqIter::Finite(items.into_iter())
    }

    /// The next item.
    #[inline]
    pub(crate) fn next(&mut self, m: &mut Machine) -> Result<Option<Value>, Raised> {
        match self {
            SeqIter::Finite(items) => match items.next() {
                Some(item) => {
                    m.step()?;
                    Ok(Some(item))
                }
                None => Ok(None),
            },
            SeqIter::Infinite(cursor) => cursor.next(m),
        }
    }

    /// Number of remaining items; 0 for an infinite sequence.
    pub(crate) fn len(&self) -> usize {
        match self {
            SeqIter::Finite(items) => items.len(),
            SeqIter::Infinite(_) => 0,
        }
    }
}
