//! Bytes to bindings and results.

use std::collections::HashMap;
use std::sync::Arc;

use num_bigint::BigInt;

use super::wire::Reader;
use super::{Damaged, HEAD, Node, Slot, temporal};
use crate::Value;
use crate::analyzer::{Tools, analyze, qualified};
use crate::bindings::Bindings;
use crate::builtins::{Composed, How};
use crate::deadline::Deadline;
use crate::eval::{Closure, Group, group};
use crate::ir::{GroupIr, Ir, Op, Unit};
use crate::pattern::Pattern;
use crate::reader;
use crate::value::Text;

/// Bindings and results out of their image. Nothing is evaluated.
pub fn decode(bytes: &[u8]) -> Result<(Bindings, Vec<Value>), Damaged> {
    let bytes = bytes.strip_prefix(HEAD).ok_or(Damaged("it is of another version, or something else"))?;
    let from = &mut Reader::new(bytes);
    let names: Vec<Arc<str>> = from.list(|from| Ok(Arc::from(from.text()?)))?;
    let mut table = Table { sources: from.list(|from| Remade::read(from, &names))?, nodes: Vec::new() };
    for _ in 0..from.count()? {
        let node = table.node(from)?;
        table.nodes.push(node);
    }
    let values = names.iter().map(|_| match from.byte()? {
        0 => Ok(None),
        _ => table.slot(from).map(Some),
    });
    let values = values.collect::<Result<Vec<_>, Damaged>>()?;
    let results = from.list(|from| table.slot(from))?;
    if !from.is_done() {
        return Err(Damaged("something follows its end"));
    }
    Ok((Bindings::of_parts(names, values), results))
}

/// A program that is resolved again, and its groups of functions that are compiled already.
struct Remade {
    unit: Unit,
    groups: HashMap<u32, (Arc<Group>, usize)>,
}

impl Remade {
    fn read(from: &mut Reader<'_>, names: &[Arc<str>]) -> Result<Remade, Damaged> {
        let text = from.text()?;
        let known = names.get(..from.place()? as usize).ok_or(Damaged("a program knows names that are not there"))?;
        // Only whether there was a value matters to the analyzer.
        let mut values = vec![Some(Value::Nil); known.len()];
        for place in from.list(Reader::place)? {
            if let Some(value) = values.get_mut(place as usize) {
                *value = None;
            }
        }
        let known = Bindings::of_parts(known.to_vec(), values);
        let other = |_| Damaged("a function's program is no longer one");
        let forms = reader::read(text).map_err(other)?;
        let source = Arc::new(known.before(Arc::from(text)));
        let unit = analyze(&source, &known, Tools::Any, forms, &Deadline::none()).map_err(other)?;
        // Its own names have to stand where they stood.
        if !unit.globals.iter().zip(names).all(|(now, then)| now == then) || unit.globals.len() > names.len() {
            return Err(Damaged("a program's definitions are not where they were"));
        }
        Ok(Remade { unit, groups: HashMap::new() })
    }

    /// The group of that number, compiled, and how many values its functions capture.
    fn group(&mut self, number: u32) -> Option<&(Arc<Group>, usize)> {
        if !self.groups.contains_key(&number) {
            let (made, captures) = group(find(&self.unit.body, number)?)?;
            self.groups.insert(number, (made, captures.len()));
        }
        self.groups.get(&number)
    }
}

/// The group of that number inside an expression.
fn find(ir: &Ir, number: u32) -> Option<&GroupIr> {
    let mut found = match &ir.op {
        Op::Fn(group) | Op::LetFn { group, .. } if group.number == number => return Some(group),
        _ => None,
    };
    ir.children(&mut |child| {
        if found.is_none() {
            found = find(child, number);
        }
    });
    found
}

enum Block {
    Text(Text),
    Value(Value),
}

struct Table {
    sources: Vec<Remade>,
    nodes: Vec<Block>,
}

impl Table {
    fn node(&mut self, from: &mut Reader<'_>) -> Result<Block, Damaged> {
        let kind = Node::ALL.get(usize::from(from.byte()?)).copied().ok_or(Damaged("a value of an unknown kind"))?;
        Ok(Block::Value(match kind {
            Node::Text => return Ok(Block::Text(Text::new(from.text()?))),
            Node::BigInt => Value::big(BigInt::from_signed_bytes_le(from.bytes()?)),
            Node::Vector => Value::vector(self.slots(from)?),
            Node::Set => Value::set(self.slots(from)?),
            Node::Map => Value::map(from.list(|from| Ok((self.slot(from)?, self.slot(from)?)))?),
            Node::Regex => {
                let pattern = Pattern::compile(from.text()?).map_err(|_| Damaged("a regex does not compile"))?;
                Value::Regex(Arc::new(pattern))
            }
            Node::Temporal => Value::Temporal(Arc::new(temporal::read(from)?)),
            Node::Composed => {
                let name = from.text()?;
                let storable = |how: How| !matches!(how, How::Transducer | How::Step);
                let how = How::ALL.iter().find(|(how, known)| *known == name && storable(*how));
                let how = how.ok_or(Damaged("a function is composed in an unknown way"))?.0;
                let parts = self.slots(from)?;
                if parts.is_empty() && !matches!(how, How::Comp | How::Juxt) {
                    return Err(Damaged("a composed function has no parts"));
                }
                Composed::value(how, parts)
            }
            Node::Closure => self.closure(from)?,
        }))
    }

    fn closure(&mut self, from: &mut Reader<'_>) -> Result<Value, Damaged> {
        let (source, number, member) = (from.place()?, from.place()?, from.place()?);
        let (start, end) = (from.place()?, from.place()?);
        let captures = self.slots(from)?;
        let gone = Damaged("a function is not where it was in its program");
        let (group, captured) = self.sources.get_mut(source as usize).and_then(|source| source.group(number)).ok_or(gone)?;
        let agrees = captures.len() == *captured;
        let captures = (!captures.is_empty()).then(|| captures.into());
        let closure = Closure::new(Arc::clone(group), member, captures);
        let there = closure.span().is_some_and(|span| (span.start, span.end) == (start, end));
        if there && agrees { Ok(Value::Closure(Arc::new(closure))) } else { Err(gone) }
    }

    fn slots(&self, from: &mut Reader<'_>) -> Result<Vec<Value>, Damaged> {
        from.list(|from| self.slot(from))
    }

    fn slot(&self, from: &mut Reader<'_>) -> Result<Value, Damaged> {
        let kind = Slot::ALL.get(usize::from(from.byte()?)).copied().ok_or(Damaged("a value of an unknown kind"))?;
        Ok(match kind {
            Slot::Nil => Value::Nil,
            Slot::False => Value::False,
            Slot::True => Value::True,
            Slot::Int => Value::Int(from.signed()?),
            Slot::Double => {
                let bits = from.take(8)?.first_chunk().copied().unwrap_or_default();
                Value::double(f64::from_bits(u64::from_le_bytes(bits)))
            }
            Slot::Builtin => {
                let (namespace, name) = (from.text()?, from.text()?);
                Value::Builtin(qualified(namespace, name).ok_or(Damaged("a builtin does not exist"))?)
            }
            Slot::String => Value::Str(self.text(from)?),
            Slot::Keyword => Value::Keyword(self.text(from)?),
            Slot::Symbol => Value::Symbol(self.text(from)?),
            Slot::Var => Value::Var(self.text(from)?),
            Slot::Object => match self.block(from)? {
                Block::Value(value) => value.clone(),
                Block::Text(_) => return Err(Damaged("a text stands for a value")),
            },
        })
    }

    fn text(&self, from: &mut Reader<'_>) -> Result<Text, Damaged> {
        match self.block(from)? {
            Block::Text(text) => Ok(text.clone()),
            Block::Value(_) => Err(Damaged("a value stands for a text")),
        }
    }

    /// A node that was read before.
    fn block(&self, from: &mut Reader<'_>) -> Result<&Block, Damaged> {
        self.nodes.get(from.place()? as usize).ok_or(Damaged("a value comes before what it holds"))
    }
}
