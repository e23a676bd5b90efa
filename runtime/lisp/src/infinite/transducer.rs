//! Transducers: sequence functions that process one item after the other.

use std::collections::VecDeque;

use crate::args::describe;
use crate::collection::Set;
use crate::machine::{Machine, Raised};
use crate::{ErrorKind, Value};

/// A stateful function that takes one item and emits any number of items.
#[derive(Clone)]
pub(crate) enum Transducer {
    /// `(map f)`
    Map(Value),
    /// `(filter pred)`, or `(remove pred)` with `false`.
    Filter(Value, bool),
    /// `(keep f)`
    Keep(Value),
    /// `(map-indexed f)`, with the next index.
    MapIndexed(Value, i64),
    /// `(keep-indexed f)`, with the next index.
    KeepIndexed(Value, i64),
    /// `(mapcat f)`
    Mapcat(Value),
    /// `cat`
    Cat,
    /// `(take n)`: how many are left.
    Take(usize),
    /// `(take-while pred)`
    TakeWhile(Value),
    /// `(drop n)`: how many are left.
    Drop(usize),
    /// `(drop-while pred)`; `None` once an item was kept.
    DropWhile(Option<Value>),
    /// `(take-nth n)`: the step, and the number of items to skip next.
    TakeNth(usize, usize),
    /// `(distinct)`: the items so far.
    Distinct(Set),
    /// `(dedupe)`: the last item.
    Dedupe(Option<Value>),
    /// `(interpose sep)`: whether an item was emitted before.
    Interpose(Value, bool),
    /// `(partition n step)` and `(partition-all n step)`.
    Partition { n: usize, step: usize, skip: usize, group: VecDeque<Value>, all: bool },
    /// `(partition-by f)`: the last result and its group.
    PartitionBy { f: Value, last: Option<Value>, group: Vec<Value> },
    /// `(replace smap)`
    Replace(Value),
}

/// Whether a transducer accepts more items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// It accepts more items.
    On,
    /// The sequence ends here.
    Stop,
}

impl Transducer {
    /// Processes an item and appends the emitted ones to `out`.
    pub(crate) fn feed(&mut self, m: &mut Machine, item: Value, out: &mut VecDeque<Value>) -> Result<Flow, Raised> {
        match self {
            Transducer::Map(f) => out.push_back(m.call(f, &mut [item])?),
            Transducer::Filter(pred, wanted) => {
                if m.call(pred, &mut [item.clone()])?.is_truthy() == *wanted {
                    out.push_back(item);
                }
            }
            Transducer::Keep(f) => {
                let value = m.call(f, &mut [item])?;
                out.extend(Some(value).filter(|value| !value.is_nil()));
            }
            Transducer::MapIndexed(f, index) => {
                *index += 1;
                out.push_back(m.call(f, &mut [Value::Int(*index - 1), item])?);
            }
            Transducer::KeepIndexed(f, index) => {
                *index += 1;
                let value = m.call(f, &mut [Value::Int(*index - 1), item])?;
                out.extend(Some(value).filter(|value| !value.is_nil()));
            }
            Transducer::Mapcat(f) => {
                let items = m.call(f, &mut [item])?;
                extend(m, "mapcat", items, out)?;
            }
            Transducer::Cat => extend(m, "cat", item, out)?,
            Transducer::Take(left) => {
                if *left > 0 {
                    *left -= 1;
                    out.push_back(item);
                }
                if *left == 0 {
                    return Ok(Flow::Stop);
                }
            }
            Transducer::TakeWhile(pred) => {
                if !m.call(pred, &mut [item.clone()])?.is_truthy() {
                    return Ok(Flow::Stop);
                }
                out.push_back(item);
            }
            Transducer::Drop(left) => match left.checked_sub(1) {
                Some(less) => *left = less,
                None => out.push_back(item),
            },
            Transducer::DropWhile(pred) => {
                let drop = match pred {
                    Some(pred) => m.call(pred, &mut [item.clone()])?.is_truthy(),
                    None => false,
                };
                if !drop {
                    *pred = None;
                    out.push_back(item);
                }
            }
            Transducer::TakeNth(n, skip) => {
                if *skip == 0 {
                    *skip = *n - 1;
                    out.push_back(item);
                } else {
                    *skip -= 1;
                }
            }
            Transducer::Distinct(seen) => {
                if seen.insert(item.clone()) {
                    out.push_back(item);
                }
            }
            Transducer::Dedupe(last) => {
                if last.as_ref() != Some(&item) {
                    *last = Some(item.clone());
                    out.push_back(item);
                }
            }
            Transducer::Interpose(separator, begun) => {
                if *begun {
                    out.push_back(separator.clone());
                }
                *begun = true;
                out.push_back(item);
            }
            Transducer::Partition { n, step, skip, group, .. } => {
                if *skip > 0 {
                    *skip -= 1;
                    return Ok(Flow::On);
                }
                group.push_back(item);
                if group.len() == *n {
                    out.push_back(Value::vector(group.iter().cloned().collect()));
                    *skip = step.saturating_sub(*n);
                    group.drain(..(*step).min(*n));
                }
            }
            Transducer::PartitionBy { f, last, group } => {
                let value = m.call(f, &mut [item.clone()])?;
                if last.as_ref().is_some_and(|last| *last != value) {
                    out.push_back(Value::vector(std::mem::take(group)));
                }
                *last = Some(value);
                group.push(item);
            }
            Transducer::Replace(smap) => {
                let found = match smap {
                    Value::Map(smap) => smap.get(&item).cloned(),
                    _ => None,
                };
                out.push_back(found.unwrap_or(item));
            }
        }
        Ok(Flow::On)
    }

    /// Appends the items that remain at the end of the sequence to `out`.
    pub(crate) fn finish(&mut self, out: &mut VecDeque<Value>) {
        match self {
            Transducer::Partition { step, group, all: true, .. } => {
                while !group.is_empty() {
                    out.push_back(Value::vector(group.iter().cloned().collect()));
                    group.drain(..(*step).min(group.len()));
                }
            }
            Transducer::PartitionBy { group, .. } if !group.is_empty() => out.push_back(Value::vector(std::mem::take(group))),
            _ => {}
        }
    }

    /// A bound of the nesting depth of the values in it.
    pub(crate) fn depth(&self) -> u32 {
        match self {
            Transducer::Map(value)
            | Transducer::Filter(value, _)
            | Transducer::Keep(value)
            | Transducer::MapIndexed(value, _)
            | Transducer::KeepIndexed(value, _)
            | Transducer::Mapcat(value)
            | Transducer::TakeWhile(value)
            | Transducer::Interpose(value, _)
            | Transducer::DropWhile(Some(value))
            | Transducer::Dedupe(Some(value))
            | Transducer::Replace(value) => value.depth(),
            Transducer::Cat
            | Transducer::Take(_)
            | Transducer::Drop(_)
            | Transducer::TakeNth(..)
            | Transducer::DropWhile(None)
            | Transducer::Dedupe(None) => 0,
            Transducer::Distinct(seen) => seen.depth(),
            Transducer::Partition { group, .. } => group.iter().map(Value::depth).max().unwrap_or(0),
            Transducer::PartitionBy { f, last, group } => {
                let held = group.iter().chain(last).map(Value::depth).max().unwrap_or(0);
                held.max(f.depth())
            }
        }
    }

    /// The values in it.
    pub(crate) fn values(&self) -> Vec<&Value> {
        match self {
            Transducer::Map(value)
            | Transducer::Filter(value, _)
            | Transducer::Keep(value)
            | Transducer::MapIndexed(value, _)
            | Transducer::KeepIndexed(value, _)
            | Transducer::Mapcat(value)
            | Transducer::TakeWhile(value)
            | Transducer::Interpose(value, _)
            | Transducer::DropWhile(Some(value))
            | Transducer::Dedupe(Some(value))
            | Transducer::Replace(value) => vec![value],
            Transducer::Partition { group, .. } => group.iter().collect(),
            Transducer::PartitionBy { f, last, group } => group.iter().chain([f]).chain(last).collect(),
            Transducer::Distinct(seen) => seen.iter().collect(),
            Transducer::Cat
            | Transducer::Take(_)
            | Transducer::Drop(_)
            | Transducer::TakeNth(..)
            | Transducer::DropWhile(None)
            | Transducer::Dedupe(None) => Vec::new(),
        }
    }

    /// Moves the values in it to `out`, for a drop without recursion.
    pub(crate) fn dismantle(&mut self, out: &mut Vec<Value>) {
        match self {
            Transducer::Map(value)
            | Transducer::Filter(value, _)
            | Transducer::Keep(value)
            | Transducer::MapIndexed(value, _)
            | Transducer::KeepIndexed(value, _)
            | Transducer::Mapcat(value)
            | Transducer::TakeWhile(value)
            | Transducer::Interpose(value, _)
            | Transducer::DropWhile(Some(value))
            | Transducer::Dedupe(Some(value))
            | Transducer::Replace(value) => out.push(std::mem::take(value)),
            Transducer::Partition { group, .. } => out.extend(group.drain(..)),
            Transducer::PartitionBy { f, last, group } => {
                out.push(std::mem::take(f));
                out.extend(last.take());
                out.append(group);
            }
            _ => {}
        }
    }
}

/// Appends all items of a collection to `out`.
fn extend(m: &mut Machine, of: &str, items: Value, out: &mut VecDeque<Value>) -> Result<(), Raised> {
    match crate::args::seq_of(m, items)? {
        Ok(items) => {
            m.tick(crate::args::steps(items.len()))?;
            m.charge(items.len() * crate::args::ITEM)?;
            out.extend(items);
            Ok(())
        }
        Err(other) => {
            let message = format!("{of} joins collections, found {}", describe(&other));
            Err(m.raise(ErrorKind::TypeError, message))
        }
    }
}
