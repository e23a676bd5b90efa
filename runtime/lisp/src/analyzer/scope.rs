//! Names in scope: slots of a function's frame, captures, and the function itself.

use std::collections::HashMap;
use std::rc::Rc;

use foldhash::fast::RandomState;

use crate::ir::{Capture, Local};

/// An index of names. Scopes can have as many names as a program likes, so that linear search would be quadratic.
type Index<K> = HashMap<K, u32, RandomState>;

/// The scope of one function during analysis.
pub(super) struct Scope<'s> {
    /// Names bound at this point, innermost last.
    locals: Vec<Binding<'s>>,
    /// Index in `locals` of the innermost binding of each name.
    innermost: Index<&'s str>,
    next: u32,
    size: u32,
    captures: Captures,
    /// The name by which the function calls itself.
    pub(super) own_name: Option<&'s str>,
    /// The functions of the same `letfn`.
    siblings: Siblings<'s>,
    /// The target of `recur`.
    pub(super) target: Option<Target>,
}

struct Binding<'s> {
    name: &'s str,
    slot: u32,
    /// Index of the binding that this one shadows.
    hidden: Option<u32>,
}

/// The functions of a `letfn` by name, shared by all of their scopes.
#[derive(Clone, Default)]
pub(super) struct Siblings<'s>(Rc<Index<&'s str>>);

impl<'s> Siblings<'s> {
    /// If two functions have the same name, the name refers to the first.
    pub(super) fn new(names: impl Iterator<Item = &'s str>) -> Siblings<'s> {
        let mut index = Index::default();
        for (at, name) in (0..).zip(names) {
            index.entry(name).or_insert(at);
        }
        Siblings(Rc::new(index))
    }
}

/// The captures of a function, in order.
#[derive(Default)]
pub(super) struct Captures {
    list: Vec<Capture>,
    index: Index<ResolvedName>,
}

impl Captures {
    pub(super) fn into_list(self) -> Vec<Capture> {
        self.list
    }
}

/// A loop or function that `recur` continues.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    /// The first slot that `recur` fills.
    pub(crate) first: u32,
    /// Number of slots that it fills.
    pub(crate) count: u32,
    /// Whether the target is the body of a function.
    pub(crate) function: bool,
}

/// The binding of a name, relative to one function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ResolvedName {
    Local(u32),
    Capture(u32),
    This,
    Sibling(u32),
}

/// The state to restore when a scope ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    locals: usize,
    next: u32,
}

impl<'s> Scope<'s> {
    pub(super) fn new(own_name: Option<&'s str>, siblings: Siblings<'s>) -> Self {
        Scope {
            locals: Vec::new(),
            innermost: Index::default(),
            next: 0,
            size: 0,
            captures: Captures::default(),
            own_name,
            siblings,
            target: None,
        }
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { locals: self.locals.len(), next: self.next }
    }

    /// Removes the names bound since `mark` and frees their slots.
    pub(super) fn reset(&mut self, mark: Mark) {
        while self.locals.len() > mark.locals {
            let Some(Binding { name, hidden, .. }) = self.locals.pop() else { break };
            match hidden {
                Some(at) => self.innermost.insert(name, at),
                None => self.innermost.remove(name),
            };
        }
        self.next = mark.next;
    }

    /// Allocates a slot without a name.
    pub(super) fn slot(&mut self) -> u32 {
        let slot = self.next;
        self.next += 1;
        self.size = self.size.max(self.next);
        slot
    }

    pub(super) fn name(&mut self, name: &'s str, slot: u32) {
        let hidden = self.innermost.insert(name, self.locals.len() as u32);
        self.locals.push(Binding { name, slot, hidden });
    }

    /// Size of the frame in slots.
    pub(super) fn size(&self) -> u32 {
        self.size
    }

    pub(super) fn into_captures(self) -> Captures {
        self.captures
    }

    /// Sets the captures, which all arities of a function share.
    pub(super) fn set_captures(&mut self, captures: Captures) {
        self.captures = captures;
    }

    fn find(&self, name: &str) -> Option<ResolvedName> {
        if let Some(binding) = self.innermost.get(name).and_then(|at| self.locals.get(*at as usize)) {
            return Some(ResolvedName::Local(binding.slot));
        }
        if let Some(index) = self.siblings.0.get(name) {
            return Some(ResolvedName::Sibling(*index));
        }
        (self.own_name == Some(name)).then_some(ResolvedName::This)
    }

    fn capture(&mut self, outer: ResolvedName) -> ResolvedName {
        let Captures { list, index } = &mut self.captures;
        let index = *index.entry(outer).or_insert_with(|| {
            list.push(match outer {
                ResolvedName::Local(slot) => Capture::Local(Local::new(slot)),
                ResolvedName::Capture(index) => Capture::Capture(index),
                ResolvedName::This => Capture::This,
                ResolvedName::Sibling(index) => Capture::Sibling(index),
            });
            list.len() as u32 - 1
        });
        ResolvedName::Capture(index)
    }

    /// Names in scope, for suggestions.
    pub(super) fn names(&self) -> impl Iterator<Item = &'s str> {
        self.locals.iter().map(|binding| binding.name)
    }
}

/// Looks `name` up from the innermost of `scopes` outwards. A binding of an enclosing function becomes a capture of every
/// function in between.
pub(super) fn resolve(scopes: &mut [Scope<'_>], name: &str) -> Option<ResolvedName> {
    let (innermost, around) = scopes.split_last_mut()?;
    if let Some(place) = innermost.find(name) {
        return Some(place);
    }
    let outer = resolve(around, name)?;
    Some(innermost.capture(outer))
}
