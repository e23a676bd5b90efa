//! `for` and `doseq`: nested loops over collections.

use super::{Code, Frame, Test};
use crate::Value;
use crate::args;
use crate::error::{ErrorKind, Span};
use crate::machine::{Machine, Raised};

/// A compiled clause of `for` or `doseq`.
pub(super) enum Turn {
    Each(usize, Code, Span),
    Bind(usize, Code),
    When(Test),
    While(Test),
    Body(Code),
}

/// Whether the iteration over the innermost collection continues.
#[derive(PartialEq, Eq)]
enum Next {
    On,
    Stop,
}

pub(super) fn comprehension(turns: Vec<Turn>, weight: u32, collect: bool) -> Code {
    Box::new(move |m, f| {
        let mut out = collect.then(Vec::new);
        run(&turns, weight, m, f, &mut out)?;
        Ok(out.map_or(Value::Nil, Value::vector))
    })
}

fn run(turns: &[Turn], weight: u32, m: &mut Machine, f: &mut Frame<'_>, out: &mut Option<Vec<Value>>) -> Result<Next, Raised> {
    let Some((turn, rest)) = turns.split_first() else { return Ok(Next::On) };
    match turn {
        Turn::Each(slot, items, span) => {
            let items = items(m, f)?;
            if let Value::InfiniteSeq(infinite) = &items {
                let own = rest.iter().take_while(|turn| !matches!(turn, Turn::Each(..)));
                if out.is_some() && !own.into_iter().any(|turn| matches!(turn, Turn::While(_))) {
                    let hint =
                        "end it with :while, as in (for [x (range) :while (< x 10)] …), or take what is needed of it first";
                    let raised =
                        m.raise_with_hint(ErrorKind::TypeError, "for iterates over all items of an infinite sequence", hint);
                    return Err(m.at(raised, *span));
                }
                let mut cursor = infinite.cursor();
                while let Some(item) = cursor.next(m)? {
                    m.tick(weight)?;
                    f.set(*slot, item);
                    if run(rest, weight, m, f, out)? == Next::Stop {
                        break;
                    }
                }
                return Ok(Next::On);
            }
            let items = match args::seq_of(m, items)? {
                Ok(items) => items,
                Err(other) => {
                    let found = args::describe(&other);
                    let message = format!("expected a collection to go over, found {found}");
                    let raised = match other {
                        Value::Int(_) => m.raise_with_hint(ErrorKind::TypeError, message, "(range n) gives the numbers below n"),
                        _ => m.raise(ErrorKind::TypeError, message),
                    };
                    return Err(m.at(raised, *span));
                }
            };
            for item in items {
                m.tick(weight)?;
                f.set(*slot, item);
                if run(rest, weight, m, f, out)? == Next::Stop {
                    break;
                }
            }
            Ok(Next::On)
        }
        Turn::Bind(slot, value) => {
            let value = value(m, f)?;
            f.set(*slot, value);
            run(rest, weight, m, f, out)
        }
        Turn::When(test) => {
            if test(m, f)? {
                run(rest, weight, m, f, out)
            } else {
                Ok(Next::On)
            }
        }
        Turn::While(test) => {
            if test(m, f)? {
                run(rest, weight, m, f, out)
            } else {
                Ok(Next::Stop)
            }
        }
        Turn::Body(body) => {
            let value = body(m, f)?;
            if let Some(out) = out {
                if out.len() == out.capacity() {
                    m.charge(out.len() * args::ITEM * 2)?;
                }
                out.push(value);
            }
            Ok(Next::On)
        }
    }
}
