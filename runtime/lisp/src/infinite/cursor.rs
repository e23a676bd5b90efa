//! A position in an infinite sequence, and the computation of the next item.

use std::collections::VecDeque;

use super::transducer::{Flow, Transducer};
use crate::collection::Vector;
use crate::machine::{Machine, Raised};
use crate::{Value, number};

/// A position in a sequence. A clone continues from the same position independently.
#[derive(Clone)]
pub(crate) enum Cursor {
    /// `(iterate f x)`, with the item that was returned last.
    Iterate { f: Value, first: Value, last: Option<Value> },
    /// `(repeat x)`
    Repeat(Value),
    /// `(cycle items)`, with the index of the next item.
    Cycle(Vector, usize),
    /// `(repeatedly f)`
    Repeatedly(Value),
    /// `(range)`: the next number and the step.
    Range(Value, Value),
    /// The items of a vector from an index on, then those of a sequence.
    After(Vector, usize, Box<Cursor>),
    /// `(map f s1 s2 …)`
    Zip(Value, Vec<Cursor>),
    /// `(reductions f init s)`, with the total that was returned last.
    Reductions { f: Value, first: Option<Value>, last: Option<Value>, input: Box<Cursor> },
    /// Another sequence, transformed, with the items that the transducer has already emitted.
    Transformed { transducer: Transducer, input: Box<Cursor>, ready: VecDeque<Value>, ended: bool },
}

impl Cursor {
    /// Applies `transducer` to `input`.
    pub(crate) fn transformed(transducer: Transducer, input: Cursor) -> Cursor {
        Cursor::Transformed { transducer, input: Box::new(input), ready: VecDeque::new(), ended: false }
    }

    /// The next item; `None` if a transducer or a reduction ended the sequence.
    pub(crate) fn next(&mut self, m: &mut Machine) -> Result<Option<Value>, Raised> {
        m.tick(1)?;
        Ok(Some(match self {
            Cursor::Iterate { f, first, last } => {
                let next = match last.take() {
                    Some(last) => m.call(f, &mut [last])?,
                    None => first.clone(),
                };
                *last = Some(next.clone());
                next
            }
            Cursor::Repeat(item) => item.clone(),
            Cursor::Cycle(items, at) => {
                let item = items.get(*at).cloned().unwrap_or_default();
                *at = (*at + 1) % items.len().max(1);
                item
            }
            Cursor::Repeatedly(f) => m.call(f, &mut [])?,
            Cursor::Range(next, step) => {
                let after = number::add(next, step);
                std::mem::replace(next, after)
            }
            Cursor::After(items, at, rest) => match items.get(*at).cloned() {
                Some(item) => {
                    *at += 1;
                    item
                }
                None => return rest.next(m),
            },
            Cursor::Zip(f, cursors) => {
                let mut row = Vec::with_capacity(cursors.len());
                for cursor in cursors {
                    match cursor.next(m)? {
                        Some(item) => row.push(item),
                        None => return Ok(None),
                    }
                }
                m.call(f, &mut row)?
            }
            Cursor::Reductions { f, first, last, input } => {
                let total = match last.take() {
                    Some(Value::Composed(ended)) if ended.reduced().is_some() => return Ok(None),
                    Some(total) => match input.next(m)? {
                        Some(item) => m.call(f, &mut [total, item])?,
                        None => return Ok(None),
                    },
                    None => match first.take() {
                        Some(first) => first,
                        None => return input.next(m).inspect(|item| last.clone_from(item)),
                    },
                };
                *last = Some(total.clone());
                match &total {
                    Value::Composed(made) => made.reduced().cloned().unwrap_or(total),
                    _ => total,
                }
            }
            Cursor::Transformed { transducer, input, ready, ended } => loop {
                if let Some(item) = ready.pop_front() {
                    break item;
                }
                if *ended {
                    return Ok(None);
                }
                let flow = match input.next(m)? {
                    Some(item) => transducer.feed(m, item, ready)?,
                    None => Flow::Stop,
                };
                if flow == Flow::Stop {
                    *ended = true;
                    transducer.finish(ready);
                }
            },
        }))
    }

    /// Skips `n` items.
    pub(crate) fn skip(&mut self, m: &mut Machine, n: usize) -> Result<(), Raised> {
        match self {
            Cursor::Repeat(_) => {}
            Cursor::Cycle(items, at) => *at = (*at + n % items.len().max(1)) % items.len().max(1),
            Cursor::Range(next, step) => *next = number::add(next, &number::multiply(step, &Value::int(n as i64))),
            _ => {
                for _ in 0..n {
                    if self.next(m)?.is_none() {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// How deep cursors are nested.
    pub(super) fn levels(&self) -> u32 {
        1 + match self {
            Cursor::After(_, _, inner) => inner.levels(),
            Cursor::Zip(_, cursors) => cursors.iter().map(Cursor::levels).max().unwrap_or(0),
            Cursor::Reductions { input, .. } | Cursor::Transformed { input, .. } => input.levels(),
            _ => 0,
        }
    }

    /// A bound of the nesting depth of the values in it.
    pub(super) fn depth(&self) -> u32 {
        let of = |value: &Option<Value>| value.as_ref().map_or(0, Value::depth);
        match self {
            Cursor::Iterate { f, first, last } => f.depth().max(first.depth()).max(of(last)),
            Cursor::Repeat(value) | Cursor::Repeatedly(value) => value.depth(),
            Cursor::Cycle(items, _) => items.depth(),
            Cursor::Range(..) => 0,
            Cursor::After(items, _, inner) => items.depth().max(inner.depth()),
            Cursor::Zip(f, cursors) => cursors.iter().map(Cursor::depth).max().unwrap_or(0).max(f.depth()),
            Cursor::Reductions { f, first, last, input } => f.depth().max(of(first)).max(of(last)).max(input.depth()),
            Cursor::Transformed { transducer, input, ready, .. } => {
                transducer.depth().max(input.depth()).max(ready.iter().map(Value::depth).max().unwrap_or(0))
            }
        }
    }

    /// The values in it.
    pub(super) fn values(&self) -> Vec<&Value> {
        match self {
            Cursor::Iterate { f, first, last } => [f, first].into_iter().chain(last).collect(),
            Cursor::Repeat(value) | Cursor::Repeatedly(value) => vec![value],
            Cursor::Cycle(items, _) => items.iter().collect(),
            Cursor::Range(next, step) => vec![next, step],
            Cursor::After(items, _, inner) => items.iter().chain(inner.values()).collect(),
            Cursor::Zip(f, cursors) => cursors.iter().flat_map(Cursor::values).chain([f]).collect(),
            Cursor::Reductions { f, first, last, input } => {
                input.values().into_iter().chain([f]).chain(first).chain(last).collect()
            }
            Cursor::Transformed { transducer, input, ready, .. } => {
                input.values().into_iter().chain(transducer.values()).chain(ready).collect()
            }
        }
    }

    /// Moves the values in it to `out`.
    pub(super) fn dismantle(&mut self, out: &mut Vec<Value>) {
        match self {
            Cursor::Iterate { f, first, last } => {
                out.extend([std::mem::take(f), std::mem::take(first)]);
                out.extend(last.take());
            }
            Cursor::Repeat(value) | Cursor::Repeatedly(value) => out.push(std::mem::take(value)),
            Cursor::Cycle(items, _) => out.push(Value::Vector(std::mem::take(items))),
            Cursor::Range(..) => {}
            Cursor::After(items, _, inner) => {
                out.push(Value::Vector(std::mem::take(items)));
                inner.dismantle(out);
            }
            Cursor::Zip(f, cursors) => {
                out.push(std::mem::take(f));
                for cursor in cursors {
                    cursor.dismantle(out);
                }
            }
            Cursor::Reductions { f, first, last, input } => {
                out.push(std::mem::take(f));
                out.extend(first.take());
                out.extend(last.take());
                input.dismantle(out);
            }
            Cursor::Transformed { transducer, input, ready, .. } => {
                transducer.dismantle(out);
                out.extend(ready.drain(..));
                input.dismantle(out);
            }
        }
    }
}
