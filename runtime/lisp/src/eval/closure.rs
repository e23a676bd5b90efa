//! Functions as values: compiled code and what it has captured.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Code;
use crate::Value;
use crate::collection::SHALLOW;
use crate::error::Span;

/// A function made by `fn`, with its captured values.
pub struct Closure {
    group: Arc<Group>,
    member: u32,
    depth: u32,
    serial: u64,
    captures: Option<Arc<[Value]>>,
}

/// Numbers functions in the order of their making, so that they have a place in the order of values.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The functions of one `fn` or `letfn`.
pub(crate) struct Group {
    /// The text that the places of its code lie in.
    pub(crate) source: Arc<str>,
    pub(crate) members: Vec<Member>,
}

/// One function with its arities.
pub(crate) struct Member {
    pub(crate) name: Option<Arc<str>>,
    pub(crate) doc: Option<Arc<str>>,
    pub(crate) span: Span,
    /// By number of fixed parameters; a variadic one comes last.
    pub(crate) arities: Vec<Arity>,
}

/// One arity.
pub(crate) struct Arity {
    pub(crate) arglist: Arc<str>,
    pub(crate) fixed: usize,
    pub(crate) variadic: bool,
    /// Size of the frame.
    pub(crate) slots: usize,
    pub(crate) body: Code,
}

impl Closure {
    pub(crate) fn new(group: Arc<Group>, member: u32, captures: Option<Arc<[Value]>>) -> Self {
        let serial = NEXT.fetch_add(1, Ordering::Relaxed);
        let depth = captures.as_deref().map_or(0, |held| held.iter().map(Value::depth).max().unwrap_or(0) + 1);
        Closure { group, member, depth, serial, captures }
    }

    /// The function of the same group at `member`, with the same captures.
    pub(crate) fn sibling(&self, member: u32) -> Self {
        let serial = NEXT.fetch_add(1, Ordering::Relaxed);
        Closure { group: Arc::clone(&self.group), member, depth: self.depth, serial, captures: self.captures.clone() }
    }

    #[inline]
    pub(crate) fn member(&self) -> Option<&Member> {
        self.group.members.get(self.member as usize)
    }

    #[inline]
    pub(crate) fn capture(&self, index: u32) -> Option<&Value> {
        self.captures.as_deref()?.get(index as usize)
    }

    /// The text of the program that made it.
    pub(crate) fn source(&self) -> &Arc<str> {
        &self.group.source
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
        self.member().into_iter().flat_map(|member| member.arities.iter().map(|arity| &*arity.arglist))
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

impl Member {
    /// The arity for `count` arguments.
    #[inline]
    pub(crate) fn arity(&self, count: usize) -> Option<&Arity> {
        self.arities.iter().find(|arity| arity.fixed == count || (arity.variadic && count > arity.fixed))
    }
}
