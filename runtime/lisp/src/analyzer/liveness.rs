//! Liveness analysis: marks the last read of every slot, so that the value can be moved out instead of shared.
//!
//! Each function is walked backwards through its order of evaluation with the set of slots that are read later. Slots from
//! outside of a loop that its body reads stay live in the whole body, since the body may run again.

use std::rc::Rc;

use crate::deadline::Deadline;
use crate::ir::{Capture, GroupIr, Ir, Local, Op, Step, Unit};

/// Marks the last reads of a program. Stops early once the deadline has passed, which the caller checks.
pub(super) fn mark(unit: &mut Unit, deadline: &Deadline) {
    Walk::new(deadline).visit(&mut unit.body, &mut Live::default());
}

/// Words per chunk of a [`Live`] set. A chunk covers 1,024 slots.
const WORDS_PER_CHUNK: usize = 16;

/// A set of slots. Every branch takes a copy, and a program may have as many branches as slots. Copies therefore share unchanged
/// chunks.
#[derive(Clone, Default)]
struct Live {
    low: u64,
    /// The slots from 64 on.
    high: Vec<Rc<[u64; WORDS_PER_CHUNK]>>,
}

impl Live {
    fn contains(&self, slot: u32) -> bool {
        if slot < 64 {
            return self.low >> slot & 1 == 1;
        }
        let index = slot as usize / 64 - 1;
        let chunk = self.high.get(index / WORDS_PER_CHUNK);
        chunk.and_then(|chunk| chunk.get(index % WORDS_PER_CHUNK)).is_some_and(|word| word >> (slot % 64) & 1 == 1)
    }

    fn word(&mut self, slot: u32) -> &mut u64 {
        if slot < 64 {
            return &mut self.low;
        }
        let index = slot as usize / 64 - 1;
        let chunk = index / WORDS_PER_CHUNK;
        if self.high.len() <= chunk {
            self.high.resize(chunk + 1, Rc::default());
        }
        let chunk = self.high.get_mut(chunk).map(Rc::make_mut);
        chunk.and_then(|chunk| chunk.get_mut(index % WORDS_PER_CHUNK)).unwrap_or(&mut self.low)
    }

    fn insert(&mut self, slot: u32) {
        if !self.contains(slot) {
            *self.word(slot) |= 1 << (slot % 64);
        }
    }

    fn remove(&mut self, slot: u32) {
        if self.contains(slot) {
            *self.word(slot) &= !(1 << (slot % 64));
        }
    }

    fn union(&mut self, other: &Live) {
        self.low |= other.low;
        let shared = self.high.len();
        for (mine, theirs) in self.high.iter_mut().zip(&other.high) {
            let lacks = |(mine, theirs): (&u64, &u64)| theirs & !mine != 0;
            if !Rc::ptr_eq(mine, theirs) && mine.iter().zip(theirs.iter()).any(lacks) {
                for (mine, theirs) in Rc::make_mut(mine).iter_mut().zip(theirs.iter()) {
                    *mine |= theirs;
                }
            }
        }
        self.high.extend(other.high.iter().skip(shared).cloned());
    }
}

struct Walk<'d> {
    deadline: &'d Deadline,
    /// The slots that are live at the start of each enclosing loop, innermost last.
    again: Vec<Live>,
}

impl<'d> Walk<'d> {
    fn new(deadline: &'d Deadline) -> Walk<'d> {
        Walk { deadline, again: Vec::new() }
    }

    /// Walks `ir` backwards. `live` is the set of slots read after `ir` and becomes the set read from its start on.
    fn visit(&mut self, ir: &mut Ir, live: &mut Live) {
        if self.deadline.step() {
            return;
        }
        match &mut ir.op {
            Op::Const(_)
            | Op::Capture(_)
            | Op::This
            | Op::Sibling(_)
            | Op::Global { .. }
            | Op::Context(_)
            | Op::History(_)
            | Op::Fault { .. } => {}
            Op::Local(local) | Op::Nth(local, _) | Op::Rest(local, _) | Op::Named(local) => read(local, live),
            Op::Vector(parts) | Op::Map(parts) | Op::Set(parts) | Op::Do(parts) | Op::Builtin { args: parts, .. } => {
                self.backwards(parts, live);
            }
            Op::Call { f, args } => {
                self.backwards(args, live);
                self.visit(f, live);
            }
            Op::If(parts) => {
                let [test, then, otherwise] = &mut **parts;
                let mut other = live.clone();
                self.visit(otherwise, &mut other);
                self.visit(then, live);
                live.union(&other);
                self.visit(test, live);
            }
            Op::And(parts) | Op::Or(parts) => {
                let exit = live.clone();
                for part in parts.iter_mut().rev() {
                    live.union(&exit);
                    self.visit(part, live);
                }
            }
            Op::Let { bindings, body } => {
                self.visit(body, live);
                for (slot, value) in bindings.iter_mut().rev() {
                    live.remove(*slot);
                    self.visit(value, live);
                }
            }
            Op::Loop { first, inits, body } => {
                outer_reads(body, *first, live);
                self.again.push(live.clone());
                self.visit(body, live);
                self.again.pop();
                for (index, init) in inits.iter_mut().enumerate().rev() {
                    live.remove(*first + index as u32);
                    self.visit(init, live);
                }
            }
            Op::Recur { args, .. } => {
                *live = self.again.last().cloned().unwrap_or_default();
                self.backwards(args, live);
            }
            Op::Fn(group) => self.group(group, live),
            Op::LetFn { slots, group, body } => {
                self.visit(body, live);
                for slot in slots {
                    live.remove(*slot);
                }
                self.group(group, live);
            }
            Op::Def { value, .. } => {
                if let Some(value) = value {
                    self.visit(value, live);
                }
            }
            Op::Case(case) => {
                let after = live.clone();
                for arm in &mut case.arms {
                    let mut from = after.clone();
                    self.visit(arm, &mut from);
                    live.union(&from);
                }
                self.visit(&mut case.subject, live);
            }
            Op::For { steps, .. } => self.steps(steps, live),
            Op::Key { from, default, .. } => {
                if let Some(default) = default {
                    let mut missing = live.clone();
                    self.visit(default, &mut missing);
                    live.union(&missing);
                }
                read(from, live);
            }
            #[cfg(feature = "coverage")]
            Op::Probe { body, .. } => self.visit(body, live),
        }
    }

    fn backwards(&mut self, parts: &mut [Ir], live: &mut Live) {
        for part in parts.iter_mut().rev() {
            self.visit(part, live);
        }
    }

    fn group(&self, group: &mut GroupIr, live: &mut Live) {
        for capture in group.captures.iter_mut().rev() {
            if let Capture::Local(local) = capture {
                read(local, live);
            }
        }
        for member in &mut group.members {
            for arity in &mut member.arities {
                Walk::new(self.deadline).visit(&mut arity.body, &mut Live::default());
            }
        }
    }

    fn steps(&mut self, steps: &mut [Step], live: &mut Live) {
        let Some((step, rest)) = steps.split_first_mut() else { return };
        match step {
            Step::Each(slot, items) => {
                for step in rest.iter() {
                    outer_reads(step_ir(step), *slot, live);
                }
                self.steps(rest, live);
                live.remove(*slot);
                self.visit(items, live);
            }
            Step::Bind(slot, value) => {
                self.steps(rest, live);
                live.remove(*slot);
                self.visit(value, live);
            }
            Step::When(test) | Step::While(test) => {
                let skipped = live.clone();
                self.steps(rest, live);
                live.union(&skipped);
                self.visit(test, live);
            }
            Step::Body(body) => self.visit(body, live),
        }
    }
}

fn step_ir(step: &Step) -> &Ir {
    match step {
        Step::Each(_, ir) | Step::Bind(_, ir) | Step::When(ir) | Step::While(ir) | Step::Body(ir) => ir,
    }
}

fn read(local: &mut Local, live: &mut Live) {
    local.last = !live.contains(local.slot);
    live.insert(local.slot);
}

/// Adds the slots below `first` that `ir` reads. Scopes nest, so that those slots belong to enclosing scopes.
fn outer_reads(ir: &Ir, first: u32, out: &mut Live) {
    let mut note = |local: &Local| {
        if local.slot < first {
            out.insert(local.slot);
        }
    };
    match &ir.op {
        Op::Local(local) | Op::Nth(local, _) | Op::Rest(local, _) | Op::Named(local) => note(local),
        Op::Key { from, default, .. } => {
            note(from);
            if let Some(default) = default {
                outer_reads(default, first, out);
            }
        }
        Op::Fn(group) => captured(group, first, out),
        Op::LetFn { group, body, .. } => {
            captured(group, first, out);
            outer_reads(body, first, out);
        }
        _ => ir.children(&mut |child| outer_reads(child, first, out)),
    }
}

fn captured(group: &GroupIr, first: u32, out: &mut Live) {
    for capture in &group.captures {
        if let Capture::Local(local) = capture
            && local.slot < first
        {
            out.insert(local.slot);
        }
    }
}
