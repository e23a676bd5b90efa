//! Functions as values: compiled code with captured values.

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
/// A call follows pointers from the closure to the code. Nearly every group has one member with one arity, so that the first of
/// each is stored inline.
pub(crate) struct Group {
    /// The program that contains the code.
    pub(crate) source: Arc<Source>,
    /// The number of the group within that program.
    pub(crate) number: u32,
    first: Member,
    others: Box<[Member]>,
}

/// One function with its arities.
pub(crate) struct Member {
    pub(crate) name: Option<Arc<str>>,
    pub(crate) doc: Option<Arc<str>>,
    pub(crate) span: Span,
    /// The first arity. Arities are sorted by number of fixed parameters, and a variadic one comes last.
    pub(crate) first: Arity,
    pub(crate) others: Box<[Arity]>,
}

/// One arity of a function.
pub(crate) struct Arity {
    pub(crate) arglist: Arc<str>,
    pub(crate) fixed: usize,
    pub(crate) variadic: bool,
    /// Size of the frame in slots.
    pub(crate) slots: usize,
    /// Steps that a call is charged.
    pub(crate) weight: u32,
    pub(crate) body: Code,
}

impl Closure {
    pub(crate) fn new(group: Arc<Group>, member: u32, captures: Option<Arc<[Value]>>) -> Self {
        let serial = serial();
        let depth = captures.as_deref().map_or(0, |held| held.iter().map(Value::depth).max().unwrap_or(0) + 1);
        Closure { group, member, depth, serial, captures }
    }

    /// Returns the function `member` of the same group, with the same captures.
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

    /// The text of the program that contains the function.
    pub(crate) fn source(&self) -> &Arc<str> {
        &self.group.source.text
    }

    /// The group that contains the function, and its index there.
    pub(crate) fn origin(&self) -> (&Arc<Group>, u32) {
        (&self.group, self.member)
    }

    /// The name of the function, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.member()?.name.as_deref()
    }

    /// The doc string of `defn`.
    pub fn doc(&self) -> Option<&str> {
        self.member()?.doc.as_deref()
    }

    /// The parameters of each arity in source form.
    pub fn arglists(&self) -> impl Iterator<Item = &str> {
        self.member().into_iter().flat_map(|member| member.arities().map(|arity| &*arity.arglist))
    }

    /// The range of the function in the source of its program.
    pub fn span(&self) -> Option<Span> {
        Some(self.member()?.span)
    }

    /// A serial number, which is greater for functions that were made later.
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// An upper bound of the nesting depth of the captured values.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// The captured values.
    pub(crate) fn captured(&self) -> &[Value] {
        self.captures.as_deref().unwrap_or_default()
    }

    /// Moves the captured values to `out`, if they have a single owner.
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
    /// Makes a group. `None` if it has no member.
    pub(crate) fn new(ir: &GroupIr, members: impl IntoIterator<Item = Member>) -> Option<Group> {
        let mut members = members.into_iter();
        let source = Arc::clone(&ir.source);
        Some(Group { source, number: ir.number, first: members.next()?, others: members.collect() })
    }

    /// Makes the pseudo-function for the top level of a program, which is never called.
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

    /// Returns the arity for `count` arguments.
    #[inline]
    pub(crate) fn arity(&self, count: usize) -> Option<&Arity> {
        if self.first.fixed == count { Some(&self.first) } else { self.later_arity(count) }
    }

    #[inline(never)]
    fn later_arity(&self, count: usize) -> Option<&Arity> {
        self.arities().find(|arity| arity.fixed == count || (arity.variadic && count > arity.fixed))
    }
}
