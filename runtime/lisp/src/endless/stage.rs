//! What a sequence function does with one item after the other: the steps of transducers and of endless sequences.

use std::collections::VecDeque;

use crate::collection::Set;
use crate::convert::described;
use crate::machine::{Machine, Raised};
use crate::{ErrorKind, Value};

/// A function of a sequence as a step that takes one item and gives any number. It remembers what it has seen.
#[derive(Clone)]
pub(crate) enum Stage {
    /// `(map f)`
    Map(Value),
    /// `(filter pred)`, or `(remove pred)` where false is wanted.
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
    /// `(drop-while pred)`; none once an item was let through.
    DropWhile(Option<Value>),
    /// `(take-nth n)`: the step, and how many to leave out next.
    TakeNth(usize, usize),
    /// `(distinct)`: what was seen.
    Distinct(Set),
    /// `(dedupe)`: the last item.
    Dedupe(Option<Value>),
    /// `(interpose sep)`: whether an item went before.
    Interpose(Value, bool),
    /// `(partition n step)` and `(partition-all n step)`.
    Partition { n: usize, step: usize, skip: usize, group: VecDeque<Value>, all: bool },
    /// `(partition-by f)`: the last result and its group.
    PartitionBy { f: Value, last: Option<Value>, group: Vec<Value> },
    /// `(replace smap)`
    Replace(Value),
}

/// Whether a stage wants more items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// It does.
    On,
    /// The sequence ends here.
    Stop,
}

impl Stage {
    /// Takes an item and puts what it makes of it into `out`.
    pub(crate) fn feed(&mut self, m: &mut Machine, item: Value, out: &mut VecDeque<Value>) -> Result<Flow, Raised> {
        match self {
            Stage::Map(f) => out.push_back(m.call(f, &mut [item])?),
            Stage::Filter(pred, wanted) => {
                if m.call(pred, &mut [item.clone()])?.is_truthy() == *wanted {
                    out.push_back(item);
                }
            }
            Stage::Keep(f) => {
                let value = m.call(f, &mut [item])?;
                out.extend(Some(value).filter(|value| !value.is_nil()));
            }
            Stage::MapIndexed(f, index) => {
                *index += 1;
                out.push_back(m.call(f, &mut [Value::Int(*index - 1), item])?);
            }
            Stage::KeepIndexed(f, index) => {
                *index += 1;
                let value = m.call(f, &mut [Value::Int(*index - 1), item])?;
                out.extend(Some(value).filter(|value| !value.is_nil()));
            }
            Stage::Mapcat(f) => {
                let items = m.call(f, &mut [item])?;
                extend(m, "mapcat", items, out)?;
            }
            Stage::Cat => extend(m, "cat", item, out)?,
            Stage::Take(left) => {
                if *left > 0 {
                    *left -= 1;
                    out.push_back(item);
                }
                if *left == 0 {
                    return Ok(Flow::Stop);
                }
            }
            Stage::TakeWhile(pred) => {
                if !m.call(pred, &mut [item.clone()])?.is_truthy() {
                    return Ok(Flow::Stop);
                }
                out.push_back(item);
            }
            Stage::Drop(left) => match left.checked_sub(1) {
                Some(less) => *left = less,
                None => out.push_back(item),
            },
            Stage::DropWhile(pred) => {
                let drop = match pred {
                    Some(pred) => m.call(pred, &mut [item.clone()])?.is_truthy(),
                    None => false,
                };
                if !drop {
                    *pred = None;
                    out.push_back(item);
                }
            }
            Stage::TakeNth(n, skip) => {
                if *skip == 0 {
                    *skip = *n - 1;
                    out.push_back(item);
                } else {
                    *skip -= 1;
                }
            }
            Stage::Distinct(seen) => {
                if seen.insert(item.clone()) {
                    out.push_back(item);
                }
            }
            Stage::Dedupe(last) => {
                if last.as_ref() != Some(&item) {
                    *last = Some(item.clone());
                    out.push_back(item);
                }
            }
            Stage::Interpose(separator, begun) => {
                if *begun {
                    out.push_back(separator.clone());
                }
                *begun = true;
                out.push_back(item);
            }
            Stage::Partition { n, step, skip, group, .. } => {
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
            Stage::PartitionBy { f, last, group } => {
                let value = m.call(f, &mut [item.clone()])?;
                if last.as_ref().is_some_and(|last| *last != value) {
                    out.push_back(Value::vector(std::mem::take(group)));
                }
                *last = Some(value);
                group.push(item);
            }
            Stage::Replace(smap) => {
                let found = match smap {
                    Value::Map(smap) => smap.get(&item).cloned(),
                    _ => None,
                };
                out.push_back(found.unwrap_or(item));
            }
        }
        Ok(Flow::On)
    }

    /// Puts what is left at the end of the sequence into `out`.
    pub(crate) fn finish(&mut self, out: &mut VecDeque<Value>) {
        match self {
            Stage::Partition { step, group, all: true, .. } => {
                while !group.is_empty() {
                    out.push_back(Value::vector(group.iter().cloned().collect()));
                    group.drain(..(*step).min(group.len()));
                }
            }
            Stage::PartitionBy { group, .. } if !group.is_empty() => out.push_back(Value::vector(std::mem::take(group))),
            _ => {}
        }
    }

    /// A bound of the nesting depth of the values in it.
    pub(crate) fn depth(&self) -> u32 {
        match self {
            Stage::Map(value)
            | Stage::Filter(value, _)
            | Stage::Keep(value)
            | Stage::MapIndexed(value, _)
            | Stage::KeepIndexed(value, _)
            | Stage::Mapcat(value)
            | Stage::TakeWhile(value)
            | Stage::Interpose(value, _)
            | Stage::DropWhile(Some(value))
            | Stage::Dedupe(Some(value))
            | Stage::Replace(value) => value.depth(),
            Stage::Cat | Stage::Take(_) | Stage::Drop(_) | Stage::TakeNth(..) | Stage::DropWhile(None) | Stage::Dedupe(None) => 0,
            Stage::Distinct(seen) => seen.depth(),
            Stage::Partition { group, .. } => group.iter().map(Value::depth).max().unwrap_or(0),
            Stage::PartitionBy { f, last, group } => {
                let held = group.iter().chain(last).map(Value::depth).max().unwrap_or(0);
                held.max(f.depth())
            }
        }
    }

    /// The values in it.
    pub(crate) fn values(&self) -> Vec<&Value> {
        match self {
            Stage::Map(value)
            | Stage::Filter(value, _)
            | Stage::Keep(value)
            | Stage::MapIndexed(value, _)
            | Stage::KeepIndexed(value, _)
            | Stage::Mapcat(value)
            | Stage::TakeWhile(value)
            | Stage::Interpose(value, _)
            | Stage::DropWhile(Some(value))
            | Stage::Dedupe(Some(value))
            | Stage::Replace(value) => vec![value],
            Stage::Partition { group, .. } => group.iter().collect(),
            Stage::PartitionBy { f, last, group } => group.iter().chain([f]).chain(last).collect(),
            Stage::Distinct(seen) => seen.iter().collect(),
            Stage::Cat | Stage::Take(_) | Stage::Drop(_) | Stage::TakeNth(..) | Stage::DropWhile(None) | Stage::Dedupe(None) => {
                Vec::new()
            }
        }
    }

    /// Moves the values in it to `out`, for a drop without recursion.
    pub(crate) fn dismantle(&mut self, out: &mut Vec<Value>) {
        match self {
            Stage::Map(value)
            | Stage::Filter(value, _)
            | Stage::Keep(value)
            | Stage::MapIndexed(value, _)
            | Stage::KeepIndexed(value, _)
            | Stage::Mapcat(value)
            | Stage::TakeWhile(value)
            | Stage::Interpose(value, _)
            | Stage::DropWhile(Some(value))
            | Stage::Dedupe(Some(value))
            | Stage::Replace(value) => out.push(std::mem::take(value)),
            Stage::Partition { group, .. } => out.extend(group.drain(..)),
            Stage::PartitionBy { f, last, group } => {
                out.push(std::mem::take(f));
                out.extend(last.take());
                out.append(group);
            }
            _ => {}
        }
    }
}

/// Puts all items of a collection into `out`.
fn extend(m: &mut Machine, of: &str, items: Value, out: &mut VecDeque<Value>) -> Result<(), Raised> {
    match crate::convert::seq_of(m, items)? {
        Ok(items) => {
            m.tick(crate::convert::steps(items.len()))?;
            m.charge(items.len() * crate::convert::ITEM)?;
            out.extend(items);
            Ok(())
        }
        Err(other) => {
            let message = format!("{of} joins collections, found {}", described(&other));
            Err(m.raise(ErrorKind::TypeError, message))
        }
    }
}
