//! Names in scope: slots of a function's frame, captures, and the function itself.

use crate::ir::{Capture, Local};

/// The scope of one function while it is analysed.
pub(super) struct Scope<'s> {
    /// Names bound at this point, innermost last.
    locals: Vec<(&'s str, u32)>,
    next: u32,
    size: u32,
    captures: Vec<Capture>,
    /// The name by which the function calls itself.
    pub(super) own_name: Option<&'s str>,
    /// The names of its `letfn`.
    pub(super) siblings: Vec<&'s str>,
    /// Where `recur` goes.
    pub(super) target: Option<Target>,
}

/// A place that `recur` goes to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    /// The first slot that it fills.
    pub(crate) first: u32,
    /// How many.
    pub(crate) count: u32,
    /// Whether it is the body of a function.
    pub(crate) function: bool,
}

/// What a name is bound to, seen from inside a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Local(u32),
    Capture(u32),
    This,
    Sibling(u32),
}

/// To go back to when a scope ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    locals: usize,
    next: u32,
}

impl<'s> Scope<'s> {
    pub(super) fn new(own_name: Option<&'s str>, siblings: Vec<&'s str>) -> Self {
        Scope { locals: Vec::new(), next: 0, size: 0, captures: Vec::new(), own_name, siblings, target: None }
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { locals: self.locals.len(), next: self.next }
    }

    /// Forgets the names bound since `mark` and frees their slots.
    pub(super) fn reset(&mut self, mark: Mark) {
        self.locals.truncate(mark.locals);
        self.next = mark.next;
    }

    /// A slot without a name.
    pub(super) fn slot(&mut self) -> u32 {
        let slot = self.next;
        self.next += 1;
        self.size = self.size.max(self.next);
        slot
    }

    pub(super) fn name(&mut self, name: &'s str, slot: u32) {
        self.locals.push((name, slot));
    }

    /// Size of the frame.
    pub(super) fn size(&self) -> u32 {
        self.size
    }

    pub(super) fn into_captures(self) -> Vec<Capture> {
        self.captures
    }

    /// The captures of several arities of a function are one list.
    pub(super) fn set_captures(&mut self, captures: Vec<Capture>) {
        self.captures = captures;
    }

    fn find(&self, name: &str) -> Option<Place> {
        if let Some((_, slot)) = self.locals.iter().rev().find(|(bound, _)| *bound == name) {
            return Some(Place::Local(*slot));
        }
        if let Some(index) = self.siblings.iter().position(|sibling| *sibling == name) {
            return Some(Place::Sibling(index as u32));
        }
        (self.own_name == Some(name)).then_some(Place::This)
    }

    fn capture(&mut self, outer: Place) -> Place {
        let index = self.captures.iter().position(|held| place_of(*held) == outer).unwrap_or_else(|| {
            self.captures.push(match outer {
                Place::Local(slot) => Capture::Local(Local::of(slot)),
                Place::Capture(index) => Capture::Capture(index),
                Place::This => Capture::This,
                Place::Sibling(index) => Capture::Sibling(index),
            });
            self.captures.len() - 1
        });
        Place::Capture(index as u32)
    }

    /// Names in scope, for did-you-mean.
    pub(super) fn names(&self) -> impl Iterator<Item = &'s str> {
        self.locals.iter().map(|(name, _)| *name)
    }
}

fn place_of(capture: Capture) -> Place {
    match capture {
        Capture::Local(local) => Place::Local(local.slot),
        Capture::Capture(index) => Place::Capture(index),
        Capture::This => Place::This,
        Capture::Sibling(index) => Place::Sibling(index),
    }
}

/// Looks `name` up from the innermost of `scopes` outwards; what a function around binds becomes a capture of every function
/// in between.
pub(super) fn resolve(scopes: &mut [Scope<'_>], name: &str) -> Option<Place> {
    let (innermost, around) = scopes.split_last_mut()?;
    if let Some(place) = innermost.find(name) {
        return Some(place);
    }
    let outer = resolve(around, name)?;
    Some(innermost.capture(outer))
}
