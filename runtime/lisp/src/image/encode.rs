//! Encodes bindings and results as bytes.

use std::collections::HashMap;
use std::sync::Arc;

use super::wire::Writer;
use super::{EncodeError, HEAD, Node, Slot, temporal};
use crate::Value;
use crate::bindings::Bindings;
use crate::builtins::Combinator;
use crate::collection::Children;
use crate::error::Span;
use crate::ir::Source;
use crate::value::{Text, each_distinct};

/// Encodes bindings and the recent results, newest first, as an image.
///
/// # Errors
///
/// Returns an error that names the first value that contains an infinite sequence or a transducer.
pub fn encode(bindings: &Bindings, results: &[Value]) -> Result<Vec<u8>, EncodeError> {
    let roots = || bindings.iter().map(|(_, value)| value).chain(results);
    if let Some(what) = obstacle(roots()) {
        let named = bindings.iter().map(|(name, value)| (format!("`{name}`"), value));
        let recent = (1..).zip(results).map(|(at, value)| (format!("*{at}"), value));
        let name = named.chain(recent).find(|(_, value)| obstacle([*value]).is_some()).map_or_else(String::new, |(name, _)| name);
        return Err(EncodeError { name, what });
    }
    let mut image = Image::default();
    // Functions are encoded and decoded in the order of their creation. A function refers only to older functions.
    let mut functions = Vec::new();
    each_distinct(roots(), |value| {
        functions.extend(made(value).map(|serial| (serial, value)));
        true
    });
    functions.sort_unstable_by_key(|(serial, _)| *serial);
    for (_, function) in functions {
        image.visit(function);
    }
    for value in roots() {
        image.visit(value);
    }
    let mut out = Writer { bytes: HEAD.to_vec() };
    let names: Vec<_> = bindings.places().collect();
    out.count(names.len());
    for (name, _) in &names {
        out.text(name);
    }
    out.count(image.sources.len());
    for source in &image.sources {
        out.text(&source.text);
        out.unsigned(source.imported_globals.into());
        out.count(source.unbound.len());
        for place in &source.unbound {
            out.unsigned((*place).into());
        }
    }
    out.count(image.places.len());
    out.bytes.append(&mut image.nodes.bytes);
    // The slots follow the nodes that they refer to.
    std::mem::swap(&mut image.nodes, &mut out);
    for (_, value) in &names {
        image.nodes.byte(value.is_some().into());
        if let Some(value) = value {
            image.slot(value);
        }
    }
    image.nodes.count(results.len());
    for value in results {
        image.slot(value);
    }
    Ok(image.nodes.bytes)
}

/// Returns the kind of the first value that an image cannot contain.
fn obstacle<'a>(values: impl IntoIterator<Item = &'a Value>) -> Option<&'static str> {
    let mut found = None;
    each_distinct(values, |value| {
        found = match value {
            Value::InfiniteSeq(_) => Some("an infinite sequence"),
            Value::Composed(made) if matches!(made.combinator(), Combinator::Transducer | Combinator::Step) => {
                Some("a transducer")
            }
            _ => None,
        };
        found.is_none()
    });
    found
}

/// Returns the serial number of a function, which increases with the order of creation.
fn made(value: &Value) -> Option<u64> {
    match value {
        Value::Closure(closure) => Some(closure.serial()),
        Value::Composed(composed) => Some(composed.serial()),
        _ => None,
    }
}

/// An image that is being written.
#[derive(Default)]
struct Image {
    nodes: Writer,
    /// Indices of nodes by the addresses of their heap blocks.
    places: HashMap<usize, usize>,
    sources: Vec<Arc<Source>>,
    source_places: HashMap<usize, usize>,
}

/// Returns the values directly inside a value.
fn parts(value: &Value) -> impl Iterator<Item = &Value> {
    let held = match value {
        Value::Closure(closure) => closure.captured(),
        Value::Composed(composed) => composed.parts(),
        _ => &[],
    };
    held.iter().chain(Children::new(value).into_iter().flatten())
}

impl Image {
    /// Writes the nodes of a value in post-order. Uses a work list, since values may be nested deeper than the native stack
    /// allows.
    fn visit(&mut self, value: &Value) {
        let mut work = vec![(value.clone(), false)];
        while let Some((value, entered)) = work.pop() {
            let Some(address) = value.address().filter(|address| !self.places.contains_key(address)) else { continue };
            if entered {
                self.node(&value);
                self.places.insert(address, self.places.len());
            } else {
                let inside: Vec<_> =
                    parts(&value).filter(|part| part.address().is_some()).map(|part| (part.clone(), false)).collect();
                work.push((value, true));
                work.extend(inside);
            }
        }
    }

    fn tag(&mut self, node: Node) {
        self.nodes.byte(node as u8);
    }

    fn node(&mut self, value: &Value) {
        match value {
            Value::Str(text) | Value::Keyword(text) | Value::Symbol(text) | Value::Var(text) => {
                self.tag(Node::Text);
                self.nodes.text(text.as_str());
            }
            Value::BigInt(big) => {
                self.tag(Node::BigInt);
                self.nodes.bytes(&big.to_signed_bytes_le());
            }
            Value::Vector(_) | Value::Set(_) | Value::Map(_) => {
                self.tag(match value {
                    Value::Vector(_) => Node::Vector,
                    Value::Set(_) => Node::Set,
                    Value::Map(map) if map.is_answered() => Node::AnsweredMap,
                    _ => Node::Map,
                });
                self.nodes.count(value.len().unwrap_or_default());
                for part in parts(value) {
                    self.slot(part);
                }
            }
            Value::Regex(pattern) => {
                self.tag(Node::Regex);
                self.nodes.text(pattern.source());
            }
            Value::Temporal(held) => {
                self.tag(Node::Temporal);
                temporal::write(&mut self.nodes, held);
            }
            Value::Composed(composed) => {
                self.tag(Node::Composed);
                self.nodes.text(composed.name());
                self.slots(composed.parts());
            }
            Value::Closure(closure) => {
                let (group, member) = closure.origin();
                let source = self.source(&group.source);
                self.tag(Node::Closure);
                self.nodes.count(source);
                self.nodes.unsigned(group.number.into());
                self.nodes.unsigned(member.into());
                let span = closure.span().unwrap_or(Span::new(0, 0));
                self.nodes.unsigned(span.start.into());
                self.nodes.unsigned(span.end.into());
                self.slots(closure.captured());
            }
            // These have no heap block, or were rejected before.
            Value::Nil
            | Value::False
            | Value::True
            | Value::Int(_)
            | Value::Double(_)
            | Value::Builtin(_)
            | Value::InfiniteSeq(_) => {}
        }
    }

    fn source(&mut self, source: &Arc<Source>) -> usize {
        let address = Arc::as_ptr(source).addr();
        *self.source_places.entry(address).or_insert_with(|| {
            self.sources.push(Arc::clone(source));
            self.sources.len() - 1
        })
    }

    fn slots(&mut self, values: &[Value]) {
        self.nodes.count(values.len());
        for value in values {
            self.slot(value);
        }
    }

    fn slot(&mut self, value: &Value) {
        let text = |image: &mut Self, slot: Slot, text: &Text| image.refer(slot, Some(text.address()));
        match value {
            Value::Nil => self.nodes.byte(Slot::Nil as u8),
            Value::False => self.nodes.byte(Slot::False as u8),
            Value::True => self.nodes.byte(Slot::True as u8),
            Value::Int(number) => {
                self.nodes.byte(Slot::Int as u8);
                self.nodes.signed(*number);
            }
            Value::Double(number) => {
                self.nodes.byte(Slot::Double as u8);
                self.nodes.bytes.extend_from_slice(&number.get().to_bits().to_le_bytes());
            }
            Value::Builtin(row) => {
                self.nodes.byte(Slot::Builtin as u8);
                self.nodes.text(row.namespace);
                self.nodes.text(row.name);
            }
            Value::Str(held) => text(self, Slot::String, held),
            Value::Keyword(held) => text(self, Slot::Keyword, held),
            Value::Symbol(held) => text(self, Slot::Symbol, held),
            Value::Var(held) => text(self, Slot::Var, held),
            other => self.refer(Slot::Object, other.address()),
        }
    }

    fn refer(&mut self, slot: Slot, address: Option<usize>) {
        let place = address.and_then(|address| self.places.get(&address)).copied().unwrap_or_default();
        self.nodes.byte(slot as u8);
        self.nodes.count(place);
    }
}
