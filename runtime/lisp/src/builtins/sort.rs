//! Sorting: a stable merge sort that counts its steps. It can fail, since comparators are functions of the program.

use std::cmp::Ordering;

use super::row::rows;
use crate::args::{ITEM, SeqIter, describe, seq, take};
use crate::machine::{Machine, Raised};
use crate::{ErrorKind, Value, order};

rows! { "clojure.core":
    "sort" ["[coll]", "[comp coll]"] sort, "The items in order, or in the order of a comparator: a function giving a boolean or a number, :asc or :desc." { "(sort [3 1 2])" => "[1 2 3]", "(sort > [3 1 2])" => "[3 2 1]", "(sort :desc [1 3 2])" => "[3 2 1]" };
    "sort-by" ["[f coll]", "[f comp coll]"] sort_by, "The items in the order of the results of f. f may be a key." { "(sort-by :n [{:n 2} {:n 1}])" => "[{:n 1} {:n 2}]", "(sort-by second > {:a 1 :b 2})" => "[[:b 2] [:a 1]]" };
}

/// The comparison of two keys.
enum Comparator {
    /// The natural order of all values.
    Natural,
    /// The natural order, reversed.
    Descending,
    /// A comparator function of the program.
    Function(Value),
}

impl Comparator {
    /// Returns the comparator from an argument of `name`.
    fn from_argument(m: &mut Machine, name: &str, args: &mut [Value], index: usize) -> Result<Comparator, Raised> {
        let value = take(args, index);
        Ok(match &value {
            Value::Nil => Comparator::Natural,
            Value::Keyword(name) if name.as_str() == "asc" => Comparator::Natural,
            Value::Keyword(name) if name.as_str() == "desc" => Comparator::Descending,
            Value::Builtin(row) if row.namespace == "clojure.core" && matches!(row.name, "<" | "compare") => Comparator::Natural,
            Value::Builtin(row) if row.namespace == "clojure.core" && row.name == ">" => Comparator::Descending,
            Value::Closure(_) | Value::Composed(_) | Value::Builtin(_) | Value::Var(_) => Comparator::Function(value),
            other => {
                let text = format!("({name} …): expected a comparator, found {}", describe(other));
                let hint = "a comparator is a function of two items, such as > or compare; the value to sort by is what the first \
                            argument of sort-by gives: (sort-by :n xs), (sort-by (juxt :a :b) xs)";
                return Err(m.raise_with_hint(ErrorKind::TypeError, text, hint));
            }
        })
    }

    /// Whether `second`, which currently follows `first`, must precede it.
    #[inline]
    fn swaps(&self, m: &mut Machine, first: &Value, second: &Value) -> Result<bool, Raised> {
        match self {
            Comparator::Natural => Ok(order::compare(first, second) == Ordering::Greater),
            Comparator::Descending => Ok(order::compare(first, second) == Ordering::Less),
            Comparator::Function(f) => match m.call_with(f, [first.clone(), second.clone()])? {
                Value::Int(i) => Ok(i > 0),
                Value::Double(d) => Ok(d.get() >= 1.0),
                Value::True => Ok(false),
                Value::False | Value::Nil => Ok(m.call_with(f, [second.clone(), first.clone()])?.is_truthy()),
                other => {
                    let text =
                        format!("(sort …): expected a comparator that gives a number or boolean, it gave {}", describe(&other));
                    Err(m.raise(ErrorKind::TypeError, text))
                }
            },
        }
    }
}

/// An item that is sorted by a key.
pub(crate) trait Keyed: Default {
    fn key(&self) -> &Value;

    /// Takes over the payload of a later item with an equal key.
    fn absorb(&mut self, later: Self);
}

impl Keyed for Value {
    #[inline]
    fn key(&self) -> &Value {
        self
    }

    fn absorb(&mut self, _: Value) {}
}

impl Keyed for (Value, Value) {
    #[inline]
    fn key(&self) -> &Value {
        &self.0
    }

    fn absorb(&mut self, later: (Value, Value)) {
        self.1 = later.1;
    }
}

/// Sorts stably in the natural order of all values.
pub(crate) fn sort_naturally<T: Keyed>(m: &mut Machine, items: &mut Vec<T>) -> Result<(), Raised> {
    merge_sort(m, items, &Comparator::Natural)
}

/// Length of the runs that are sorted by insertion.
const RUN: usize = 8;

/// Sorts in place and stably.
fn merge_sort<T: Keyed>(m: &mut Machine, items: &mut Vec<T>, by: &Comparator) -> Result<(), Raised> {
    let len = items.len();
    for run in items.chunks_mut(RUN) {
        m.tick(RUN as u32)?;
        m.step()?;
        for end in 1..run.len() {
            let mut place = end;
            while place > 0 {
                let [a, b] = run.get(place - 1..=place).unwrap_or_default() else { break };
                if !by.swaps(m, a.key(), b.key())? {
                    break;
                }
                run.swap(place - 1, place);
                place -= 1;
            }
        }
    }
    let mut width = RUN;
    let mut merged: Vec<T> = Vec::with_capacity(if len > RUN { len } else { 0 });
    while width < len {
        merged.clear();
        let mut rest = items.drain(..);
        loop {
            let mut left = rest.by_ref().take(width).collect::<Vec<_>>().into_iter();
            let mut right = rest.by_ref().take(width);
            let (mut low, mut high) = (left.next(), right.next());
            if low.is_none() {
                break;
            }
            loop {
                match (&low, &high) {
                    (Some(first), Some(second)) => {
                        m.step()?;
                        if by.swaps(m, first.key(), second.key())? {
                            merged.extend(high.take());
                            high = right.next();
                        } else {
                            merged.extend(low.take());
                            low = left.next();
                        }
                    }
                    (Some(_), None) => {
                        merged.extend(low.take());
                        merged.extend(left.by_ref());
                        break;
                    }
                    (None, _) => {
                        merged.extend(high.take());
                        merged.extend(right.by_ref());
                        break;
                    }
                }
            }
        }
        drop(rest);
        std::mem::swap(items, &mut merged);
        width *= 2;
    }
    Ok(())
}

fn sort(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let by = if args.len() == 2 { Comparator::from_argument(m, "sort", args, 0)? } else { Comparator::Natural };
    let last = args.len() - 1;
    let items = seq(m, "sort", args, last)?;
    m.charge(items.len() * 2 * ITEM)?;
    let mut items = items.into_vec();
    merge_sort(m, &mut items, &by)?;
    Ok(Value::vector(items))
}

fn sort_by(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let by = if args.len() == 3 { Comparator::from_argument(m, "sort-by", args, 1)? } else { Comparator::Natural };
    let last = args.len() - 1;
    let items = seq(m, "sort-by", args, last)?;
    m.charge(items.len() * 5 * ITEM)?;
    let f = super::reduce::key_function(args);
    let mut keyed = Vec::with_capacity(items.len());
    let mut walk = SeqIter::from_vector(items);
    while let Some(item) = walk.next(m)? {
        keyed.push((m.call_with(&f, [item.clone()])?, item));
    }
    merge_sort(m, &mut keyed, &by)?;
    Ok(Value::vector(keyed.into_iter().map(|(_, item)| item).collect()))
}
