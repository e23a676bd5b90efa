//! Decodes an image to bindings and results.

use std::collections::HashMap;
use std::sync::Arc;

use num_bigint::BigInt;

use super::limits::Meter;
use super::wire::Reader;
use super::{DecodeError, DecodeLimits, HEAD, Node, Slot, temporal};
use crate::Value;
use crate::analyzer::{Tools, analyze, qualified};
use crate::bindings::Bindings;
use crate::builtins::{Combinator, Composed, MAX_INTEGER_BITS};
use crate::collection::Map;
use crate::eval::{Closure, Group, group};
use crate::ir::{GroupIr, Ir, Op, Unit};
use crate::pattern::Pattern;
use crate::reader;
use crate::value::Text;

/// Decodes an image to bindings and results. Does not evaluate anything.
///
/// # Errors
///
/// Returns an error if the bytes are not an image of this version.
pub fn decode(bytes: &[u8]) -> Result<(Bindings, Vec<Value>), DecodeError> {
    decode_within(bytes, &DecodeLimits::default())
}

/// Like [`decode`], within limits of memory and time.
///
/// # Errors
///
/// Returns an error if the bytes are not an image of this version, or if a limit is reached.
pub fn decode_within(bytes: &[u8], limits: &DecodeLimits) -> Result<(Bindings, Vec<Value>), DecodeError> {
    let bytes = bytes.strip_prefix(HEAD).ok_or(DecodeError::Invalid("it is not an image of this version"))?;
    let from = &mut Reader::new(bytes, Meter::new(limits));
    let names: Vec<Arc<str>> = from.list(|from| Ok(Arc::from(from.text()?)))?;
    let recompiled = |from: &mut Reader<'_>| {
        if limits.data_only { Err(DecodeError::Invalid("it has functions")) } else { Recompiled::read(from, &names) }
    };
    let mut table = Table { sources: from.list(recompiled)?, nodes: Vec::new() };
    for _ in 0..from.count()? {
        let node = table.node(from)?;
        table.nodes.push(node);
        from.meter.step()?;
    }
    let values = names.iter().map(|_| match from.byte()? {
        0 => Ok(None),
        _ => table.slot(from).map(Some),
    });
    let values = values.collect::<Result<Vec<_>, DecodeError>>()?;
    let results = from.list(|from| table.slot(from))?;
    if !from.is_done() {
        return Err(DecodeError::Invalid("bytes follow its end"));
    }
    // Comparisons that ended at the deadline have no valid outcome.
    from.meter.check()?;
    Ok((Bindings::of_parts(names, values), results))
}

/// A program that was resolved again, and its groups of functions that are already compiled.
struct Recompiled {
    unit: Unit,
    groups: HashMap<u32, (Arc<Group>, usize)>,
}

impl Recompiled {
    fn read(from: &mut Reader<'_>, names: &[Arc<str>]) -> Result<Recompiled, DecodeError> {
        let text = from.text()?;
        let known =
            names.get(..from.place()? as usize).ok_or(DecodeError::Invalid("a program refers to names that do not exist"))?;
        // The analyzer only needs to know whether a name has a value.
        let mut values = vec![Some(Value::Nil); known.len()];
        for place in from.list(Reader::place)? {
            if let Some(value) = values.get_mut(place as usize) {
                *value = None;
            }
        }
        let known = Bindings::of_parts(known.to_vec(), values);
        let other = |_| DecodeError::Invalid("the program of a function does not compile");
        let forms = reader::read_until(text, &from.meter.deadline);
        from.meter.check()?;
        let forms = forms.map_err(other)?;
        let source = Arc::new(known.before(Arc::from(text)));
        let unit = analyze(&source, &known, Tools::Any, forms, &from.meter.deadline);
        from.meter.check()?;
        let unit = unit.map_err(other)?;
        // The definitions of the program must have the same indices as before.
        if !unit.globals.iter().zip(names).all(|(now, then)| now == then) || unit.globals.len() > names.len() {
            return Err(DecodeError::Invalid("the definitions of a program have other indices"));
        }
        Ok(Recompiled { unit, groups: HashMap::new() })
    }

    /// Returns the compiled group with this number, and the number of values that its functions capture.
    fn group(&mut self, number: u32) -> Option<&(Arc<Group>, usize)> {
        if !self.groups.contains_key(&number) {
            let (made, captures) = group(find(&self.unit.body, number)?)?;
            self.groups.insert(number, (made, captures.len()));
        }
        self.groups.get(&number)
    }
}

/// Returns the group with this number inside an expression.
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

enum DecodedBlock {
    Text(Text),
    Value(Value),
}

struct Table {
    sources: Vec<Recompiled>,
    nodes: Vec<DecodedBlock>,
}

impl Table {
    fn node(&mut self, from: &mut Reader<'_>) -> Result<DecodedBlock, DecodeError> {
        let kind = Node::ALL.get(usize::from(from.byte()?)).copied().ok_or(DecodeError::Invalid("a value of an unknown kind"))?;
        Ok(DecodedBlock::Value(match kind {
            Node::Text => return Ok(DecodedBlock::Text(Text::new(from.text()?))),
            Node::BigInt => {
                let bytes = from.bytes()?;
                if bytes.len() as u64 > MAX_INTEGER_BITS / 8 + 1 {
                    return Err(DecodeError::Invalid("an integer is too large"));
                }
                Value::big(BigInt::from_signed_bytes_le(bytes))
            }
            Node::Vector => Value::vector(self.slots(from)?),
            Node::Set => Value::set(self.slots(from)?),
            Node::Map => Value::Map(self.map(from)?),
            Node::AnsweredMap => {
                let mut map = self.map(from)?;
                map.mark_answered();
                Value::Map(map)
            }
            Node::Regex => {
                let pattern = Pattern::compile(from.text()?).map_err(|_| DecodeError::Invalid("a regex does not compile"))?;
                from.meter.check()?;
                Value::Regex(Arc::new(pattern))
            }
            Node::Temporal => Value::Temporal(Arc::new(temporal::read(from)?)),
            Node::Composed => {
                let name = from.text()?;
                let storable = |combinator: Combinator| !matches!(combinator, Combinator::Transducer | Combinator::Step);
                let combinator = Combinator::ALL.iter().find(|(combinator, known)| *known == name && storable(*combinator));
                let combinator = combinator.ok_or(DecodeError::Invalid("a function has an unknown combinator"))?.0;
                let parts = self.slots(from)?;
                if parts.is_empty() && !matches!(combinator, Combinator::Comp | Combinator::Juxt) {
                    return Err(DecodeError::Invalid("a composed function has no parts"));
                }
                Composed::value(combinator, parts)
            }
            Node::Closure => self.closure(from)?,
        }))
    }

    fn map(&self, from: &mut Reader<'_>) -> Result<Map, DecodeError> {
        Ok(from.list(|from| Ok((self.slot(from)?, self.slot(from)?)))?.into_iter().collect())
    }

    fn closure(&mut self, from: &mut Reader<'_>) -> Result<Value, DecodeError> {
        let (source, number, member) = (from.place()?, from.place()?, from.place()?);
        let (start, end) = (from.place()?, from.place()?);
        let captures = self.slots(from)?;
        let gone = DecodeError::Invalid("a function is not at its position in its program");
        let (group, captured) = self.sources.get_mut(source as usize).and_then(|source| source.group(number)).ok_or(gone)?;
        let agrees = captures.len() == *captured;
        let captures = (!captures.is_empty()).then(|| captures.into());
        let closure = Closure::new(Arc::clone(group), member, captures);
        let there = closure.span().is_some_and(|span| (span.start, span.end) == (start, end));
        if there && agrees { Ok(Value::Closure(Arc::new(closure))) } else { Err(gone) }
    }

    fn slots(&self, from: &mut Reader<'_>) -> Result<Vec<Value>, DecodeError> {
        from.list(|from| self.slot(from))
    }

    fn slot(&self, from: &mut Reader<'_>) -> Result<Value, DecodeError> {
        let kind = Slot::ALL.get(usize::from(from.byte()?)).copied().ok_or(DecodeError::Invalid("a value of an unknown kind"))?;
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
                Value::Builtin(qualified(namespace, name).ok_or(DecodeError::Invalid("a builtin does not exist"))?)
            }
            Slot::String => Value::Str(self.text(from)?),
            Slot::Keyword => Value::Keyword(self.text(from)?),
            Slot::Symbol => Value::Symbol(self.text(from)?),
            Slot::Var => Value::Var(self.text(from)?),
            Slot::Object => match self.block(from)? {
                DecodedBlock::Value(value) => value.clone(),
                DecodedBlock::Text(_) => return Err(DecodeError::Invalid("expected a value, found a text")),
            },
        })
    }

    fn text(&self, from: &mut Reader<'_>) -> Result<Text, DecodeError> {
        match self.block(from)? {
            DecodedBlock::Text(text) => Ok(text.clone()),
            DecodedBlock::Value(_) => Err(DecodeError::Invalid("expected a text, found a value")),
        }
    }

    /// Returns a node that was read before.
    fn block(&self, from: &mut Reader<'_>) -> Result<&DecodedBlock, DecodeError> {
        self.nodes.get(from.place()? as usize).ok_or(DecodeError::Invalid("a value precedes a value that it contains"))
    }
}
