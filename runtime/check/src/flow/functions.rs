//! Functions and loops of a program: which function an expression refers to, what functions such as `comp` read of their arguments,
//! and which places the variables of a loop have in each of its rounds.

use std::rc::Rc;

use litemap::LiteMap;
use ptc_lisp::Value;
use ptc_lisp::ir::{Capture, GroupIr, Ir, Op};

use super::builtins::{ONE, SAME};
use super::{Frame, MAX_HELPER_DEPTH, MAX_HELPER_STEPS, ResultPath, Walk, item, set};

/// Whether the code that follows functions as values and loops is compiled. Only reports of `ptc-compile` use it.
pub(super) const FOLLOWS_VALUES: bool = cfg!(feature = "function-values");

/// A function of the program, with what it captures.
#[derive(Clone)]
pub(super) struct Function<'p> {
    group: &'p GroupIr,
    member: usize,
    captures: Captures<'p>,
}

/// The captured places and functions of a group of functions. They are shared by all arities, since a `letfn` may have many functions
/// with many captures.
#[derive(Clone, Default)]
pub(super) struct Captures<'p> {
    pub(super) places: Rc<[Option<ResultPath>]>,
    functions: Rc<[Option<Function<'p>>]>,
}

/// A loop whose body is visited.
pub(super) struct Loop {
    /// The places at the start of a round.
    entry: LiteMap<u32, ResultPath>,
    /// The slots that `recur` fills with another place, or with one that is not known.
    changed: Vec<u32>,
}

/// The error for a function that is not followed. The value of its call, and what the function reads, are unknown.
pub(super) struct NotFollowed;

/// Returns what the functions of a group capture.
pub(super) fn captured<'p>(group: &GroupIr, frame: &Frame<'p>) -> Captures<'p> {
    let places = group.captures.iter().map(|capture| match capture {
        Capture::Local(local) => frame.slots.get(&local.slot).cloned(),
        Capture::Capture(at) => frame.captures.places.get(*at as usize).cloned().flatten(),
        Capture::This | Capture::Sibling(_) => None,
    });
    let functions = group.captures.iter().filter(|_| FOLLOWS_VALUES).map(|capture| match capture {
        Capture::Local(local) => frame.functions.get(&local.slot).cloned(),
        Capture::Capture(at) => frame.captures.functions.get(*at as usize).cloned().flatten(),
        Capture::This | Capture::Sibling(_) => None,
    });
    Captures { places: places.collect(), functions: functions.collect() }
}

impl<'p> Walk<'_, 'p> {
    /// Whether values that are functions are followed.
    pub(super) fn follows_values(&self) -> bool {
        FOLLOWS_VALUES && self.follows_values
    }

    /// Records the function that a slot has, if the expression that fills the slot refers to one.
    pub(super) fn set_function(&self, slot: u32, value: &'p Ir, frame: &mut Frame<'p>) {
        if self.follows_values()
            && let Some(function) = self.function_of(value, frame)
        {
            frame.functions.insert(slot, function);
        }
    }

    /// Records the functions of a `letfn`.
    pub(super) fn set_group(&self, slots: &[u32], group: &'p GroupIr, frame: &mut Frame<'p>) {
        if self.follows_values() {
            let captures = captured(group, frame);
            for (member, slot) in slots.iter().enumerate() {
                frame.functions.insert(*slot, Function { group, member, captures: captures.clone() });
            }
        }
    }

    /// Returns the function of the program that an expression refers to.
    fn function_of(&self, ir: &'p Ir, frame: &Frame<'p>) -> Option<Function<'p>> {
        match &ir.op {
            Op::Fn(group) => Some(Function { group, member: 0, captures: captured(group, frame) }),
            Op::Local(local) => frame.functions.get(&local.slot).cloned(),
            Op::Capture(at) => frame.captures.functions.get(*at as usize).cloned().flatten(),
            Op::Global { index, .. } => {
                let group = self.helpers.as_ref()?.get(index).copied().flatten()?;
                group.captures.is_empty().then(|| Function { group, member: 0, captures: Captures::default() })
            }
            _ => None,
        }
    }

    /// Visits a call of an expression that is not a name of a global function.
    pub(super) fn call_value(
        &mut self,
        f: &'p Ir,
        args: &'p [Ir],
        frame: &mut Frame<'p>,
    ) -> Result<Option<ResultPath>, NotFollowed> {
        let is_combined = || matches!(&f.op, Op::Builtin { row, .. } if is_combinator(row.name));
        if !self.follows_values() || !(is_combined() || self.function_of(f, frame).is_some()) {
            return Err(NotFollowed);
        }
        // The function itself is visited too, since it may not take this number of arguments.
        self.expr(f, frame);
        let places: Vec<Option<ResultPath>> = args.iter().map(|arg| self.expr(arg, frame)).collect();
        Ok(self.apply(f, &places, frame).unwrap_or_default())
    }

    /// Visits a call of a function with the places of its arguments, and returns the place of its value.
    pub(super) fn apply(
        &mut self,
        f: &'p Ir,
        places: &[Option<ResultPath>],
        frame: &mut Frame<'p>,
    ) -> Result<Option<ResultPath>, NotFollowed> {
        if !self.follows_values() || self.depth >= MAX_HELPER_DEPTH {
            return Err(NotFollowed);
        }
        match (&f.op, places) {
            (Op::Const(key @ Value::Keyword(_)), [from, ..]) => Ok(from.clone().and_then(|from| self.key(from, key, f.span))),
            (Op::Const(Value::Builtin(row)), [from]) if ONE.contains(&row.name) => Ok(from.clone().map(item)),
            (Op::Const(Value::Builtin(row)), [from]) if SAME.contains(&row.name) => Ok(from.clone()),
            (Op::Builtin { row, args }, _) if is_combinator(row.name) => {
                let is_chain = row.name == "comp";
                let mut passed = places.to_vec();
                for f in args.iter().rev() {
                    let given = self.apply(f, &passed, frame);
                    if given.is_err() {
                        self.expr(f, frame);
                    }
                    if is_chain {
                        passed = vec![given.unwrap_or_default()];
                    }
                }
                Ok(passed.pop().flatten().filter(|_| is_chain))
            }
            _ => {
                let function = self.function_of(f, frame).ok_or(NotFollowed)?;
                let member = function.group.members.get(function.member).ok_or(NotFollowed)?;
                let takes = |arity: &&ptc_lisp::ir::ArityIr| !arity.variadic && arity.fixed as usize == places.len();
                let arity = member.arities.iter().find(takes).ok_or(NotFollowed)?;
                let mut inner = Frame { captures: function.captures.clone(), ..Frame::default() };
                for (slot, place) in places.iter().enumerate() {
                    set(&mut inner, slot as u32, place.clone());
                }
                self.depth += 1;
                let given = self.expr(&arity.body, &mut inner);
                self.depth -= 1;
                Ok(given)
            }
        }
    }

    /// Visits a loop. A variable has a place only if it has this place in each round.
    pub(super) fn follow_loop(&mut self, first: u32, inits: &'p [Ir], body: &'p Ir, frame: &mut Frame<'p>) -> Option<ResultPath> {
        for (at, init) in inits.iter().enumerate() {
            let place = self.expr(init, frame);
            set(frame, first + at as u32, place);
        }
        let (findings, closed) = (self.findings.len(), self.closed.len());
        loop {
            let entry = frame.slots.clone();
            self.loops.push(Loop { entry: entry.clone(), changed: Vec::new() });
            let given = self.expr(body, frame);
            let changed = self.loops.pop().map(|ended| ended.changed).unwrap_or_default();
            let is_incomplete = self.helper_steps > MAX_HELPER_STEPS || self.deadline.is_passed();
            if changed.is_empty() && !is_incomplete {
                return given;
            }
            // These findings depend on places that a later round may not have.
            self.findings.truncate(findings);
            self.closed.truncate(closed);
            if is_incomplete {
                return None;
            }
            frame.slots = entry;
            for slot in changed {
                frame.slots.remove(&slot);
            }
        }
    }

    /// Visits a `recur`, and compares the new places of the innermost loop with those that it began with.
    pub(super) fn recur(&mut self, first: u32, args: &'p [Ir], frame: &mut Frame<'p>) {
        for (slot, arg) in (first..).zip(args) {
            let place = self.expr(arg, frame);
            let Some(before) = self.loops.last().and_then(|inner| inner.entry.get(&slot)) else { continue };
            let is_kept = place.is_some_and(|place| self.is_same(&place, before));
            if !is_kept && let Some(inner) = self.loops.last_mut() {
                inner.changed.push(slot);
            }
        }
    }

    /// Whether two places are the same part of the answers of one tool. Each visit of a call counts as another call.
    fn is_same(&self, place: &ResultPath, other: &ResultPath) -> bool {
        let name = |place: &ResultPath| self.sites.get(place.site).map(|site| &site.name);
        place.path == other.path && place.lists == other.lists && name(place) == name(other)
    }
}

/// Whether a builtin makes a function that passes its arguments to the functions that it combines.
fn is_combinator(name: &str) -> bool {
    matches!(name, "comp" | "juxt" | "complement" | "every-pred" | "some-fn")
}
