//! Functions as values: compiled code and what it has captured.

use std::fmt;
use std::sync::Arc;

use super::Code;
use crate::Value;
use crate::collection::SHALLOW;
use crate::error::Span;
use crate::ir::{GroupIr, Source};
use crate::value::serial;

/// A function made by `fn`, with its captured values.
pub struct Closure {
    group: Arc<Group>,
    member: u32,
    depth: u32,
    serial: u64,
    captures: Option<Arc<[Value]>>,
}

/// The functions of one `fn` or `letfn`.
///
/// A call goes from the closure to the code: nearly every group has one member and that one arity, so that the first of each
/// is kept in place.
pub(crate) struct Group {
    /// The text that the places of its code lie in.
    pub(crate) source: Arc<Source>,
    /// Its place among the groups of that text.
    pub(crate) number: u32,
    first: Member,
    others: Box<[Member]>,
}

/// One function with its arities.
pub(crate) struct Member {
    pub(crate) name: Option<Arc<str>>,
    pub(crate) doc: Option<Arc<str>>,
    pub(crate) span: Span,
    /// By number of fixed parameters; a variadic one comes last.
    pub(crate) first: Arity,
    pub(crate) others: Box<[Arity]>,
}

/// One arity.
pub(crate) struct Arity {
    pub(crate) arglist: Arc<str>,
    pub(crate) fixed: usize,
    pub(crate) variadic: bool,
    /// Size of the frame.
    pub(crate) slots: usize,
    /// Steps that a call counts.
    pub(crate) weight: u32,
    pub(crate) body: Code,
}

impl Closure {
    pub(crate) fn new(group: Arc<Group>, member: u32, captures: Option<Arc<[Value]>>) -> Self {
        let serial = serial();
        let depth = captures.as_deref().map_or(0, |held| held.iter().map(Value::depth).max().unwrap_or(0) + 1);
        Closure { group, member, depth, serial, captures }
    }

    /// The function of the same group at `member`, with the same captures.
    pub(crate) fn sibling(&self, member: u32) -> Self {
        let serial = serial();
        Closure { group: Arc::clone(&self.group), member, depth: self.depth, serial, captures: self.captures.clone() }
    }

    #[inline]
    pub(crate) fn member(&self) -> Option<&Member> {
        match self.member {
            0 => Some(&self.group.first),
            later => self.group.others.get(later as usize - 1),
        }
    }

    #[inline]
    pub(crate) fn capture(&self, index: u32) -> Option<&Value> {
        self.captures.as_deref()?.get(index as usize)
    }

    /// The text of the program that made it.
    pub(crate) fn source(&self) -> &Arc<str> {
        &self.group.source.text
    }

    /// What made it, and its place there.
    pub(crate) fn origin(&self) -> (&Arc<Group>, u32) {
        (&self.group, self.member)
    }

    /// Its own name, if it was given one.
    pub fn name(&self) -> Option<&str> {
        self.member()?.name.as_deref()
    }

    /// The doc string of `defn`.
    pub fn doc(&self) -> Option<&str> {
        self.member()?.doc.as_deref()
    }

    /// The parameters of each arity, as written.
    pub fn arglists(&self) -> impl Iterator<Item = &str> {
        self.member().into_iter().flat_map(|member| member.arities().map(|arity| &*arity.arglist))
    }

    /// Where its text stands in the program that made it.
    pub fn span(&self) -> Option<Span> {
        Some(self.member()?.span)
    }

    /// A number that grows with every function that is made.
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// A bound of the nesting depth of what it has captured.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// What it has captured.
    pub(crate) fn captured(&self) -> &[Value] {
        self.captures.as_deref().unwrap_or_default()
    }

    /// Hands over the captured values, if nobody else holds them.
    pub(crate) fn dismantle(&mut self, out: &mut Vec<Value>) {
        if let Some(mut captures) = self.captures.take()
            && let Some(values) = Arc::get_mut(&mut captures)
        {
            out.extend(values.iter_mut().map(std::mem::take));
        }
    }
}

impl Drop for Closure {
    fn drop(&mut self) {
        if self.depth > SHALLOW {
            let mut parts = Vec::new();
            self.dismantle(&mut parts);
            crate::value::teardown(parts);
        }
    }
}

impl fmt::Debug for Closure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#fn[{}]", self.name().unwrap_or("anonymous"))
    }
}

impl Group {
    /// None for no member.
    pub(crate) fn new(ir: &GroupIr, members: impl IntoIterator<Item = Member>) -> Option<Group> {
        let mut members = members.into_iter();
        let source = Arc::clone(&ir.source);
        Some(Group { source, number: ir.number, first: members.next()?, others: members.collect() })
    }

    /// The top level of a program, which nobody calls.
    pub(crate) fn top_level(source: &Arc<Source>) -> Group {
        let nothing =
            Arity { arglist: "[]".into(), fixed: 0, variadic: false, slots: 0, weight: 1, body: Box::new(|_, _| Ok(Value::Nil)) };
        let first = Member { name: None, doc: None, span: Span::new(0, 0), first: nothing, others: Box::default() };
        Group { source: Arc::clone(source), number: 0, first, others: Box::default() }
    }
}

impl Member {
    fn arities(&self) -> impl Iterator<Item = &Arity> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// The arity for `count` arguments.
    #[inline]
    pub(crate) fn arity(&self, count: usize) -> Option<&Arity> {
        if self.first.fixed == count { Some(&self.first) } else { self.later_arity(count) }
    }

    #[inline(never)]
    fn later_arity(&self, count: usize) -> Option<&Arity> {
        self.arities().find(|arity| arity.fixed == count || (arity.variadic && count > arity.fixed))
    }
}
