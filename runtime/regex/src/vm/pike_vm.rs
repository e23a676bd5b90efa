//! The Pike VM: simulates a pattern as a nondeterministic automaton, in one pass over the text.
//!
//! Source: Russ Cox, "Regular Expression Matching: the Virtual Machine Approach", 2009.

use regex_syntax::hir::Hir;

use super::program::{Inst, Program};
use super::{StepBudget, assertion_holds, is_one_of, next};
use crate::{CheckInterrupt, Groups, TooCostly};

/// Maximum number of slots that all threads may save together.
const MAX_SAVED_SLOTS: usize = 1 << 20;

/// A pattern compiled for the Pike VM.
pub(crate) struct PikeVm {
    program: Program,
}

/// Threads that have reached the same character, the preferred ones first.
struct ThreadList {
    /// The instruction of each thread.
    at: Vec<usize>,
    /// The slots of each thread, one thread after the other.
    saved: Vec<usize>,
    /// The byte at which each instruction was last reached.
    seen: Vec<usize>,
}

/// A slot that is not set.
const UNSET: usize = usize::MAX;

enum Pending {
    Explore(usize),
    RestoreSlot { slot: usize, before: usize },
}

struct Search<'a> {
    program: &'a Program,
    text: &'a str,
    /// The slots of the current thread.
    slots: Vec<usize>,
    todo: Vec<Pending>,
    budget: StepBudget<'a>,
}

impl PikeVm {
    pub(crate) fn new(pattern: &Hir) -> Option<PikeVm> {
        Program::for_pike_vm(pattern).ok().map(|program| PikeVm { program })
    }

    /// Size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.program.bytes
    }

    /// Upper bound of the cost of one character of the text.
    pub(crate) fn size(&self) -> usize {
        self.program.insts.len()
    }

    /// The first match at or after byte `at`. Without `with_groups` the result has only the range of the whole match.
    pub(crate) fn find_at(
        &self,
        text: &str,
        mut at: usize,
        with_groups: bool,
        may_continue: CheckInterrupt<'_>,
    ) -> Result<Option<Groups>, TooCostly> {
        let insts = &self.program.insts;
        let slots = if with_groups { self.program.slots } else { 2 };
        if insts.len() * slots > MAX_SAVED_SLOTS {
            return Err(TooCostly::LargePattern);
        }
        let threads = || ThreadList { at: Vec::new(), saved: Vec::new(), seen: vec![UNSET; insts.len()] };
        let (mut here, mut ahead, mut matched) = (threads(), threads(), None);
        let budget = StepBudget::new(may_continue, u64::MAX);
        let mut search = Search { program: &self.program, text, slots: vec![UNSET; slots], todo: Vec::new(), budget };
        let first = match insts.get(1) {
            Some(Inst::Char(of)) => Some(of),
            _ => None,
        };
        loop {
            let c = next(text, at);
            let may_begin = first.is_none_or(|of| c.is_some_and(|c| is_one_of(of, c)));
            if matched.is_none() && may_begin {
                search.slots.fill(UNSET);
                search.add_thread(&mut here, 0, at)?;
            }
            if here.at.is_empty() && matched.is_some() {
                break;
            }
            search.budget.charge_one()?;
            for (thread, inst) in here.at.iter().enumerate() {
                search.budget.charge_one()?;
                let saved = here.saved.get(thread * slots..(thread + 1) * slots).unwrap_or_default();
                match (insts.get(*inst), c) {
                    (Some(Inst::Match), _) => {
                        // The threads behind this one have a lower priority.
                        matched = Some(saved.to_vec());
                        break;
                    }
                    (Some(Inst::Char(of)), Some(c)) if is_one_of(of, c) => {
                        search.slots.copy_from_slice(saved);
                        search.add_thread(&mut ahead, inst + 1, at + c.len_utf8())?;
                    }
                    _ => {}
                }
            }
            let Some(c) = c else { break };
            at += c.len_utf8();
            std::mem::swap(&mut here, &mut ahead);
            ahead.at.clear();
            ahead.saved.clear();
        }
        Ok(matched.map(|saved| {
            let place = |at: &usize| Some(*at).filter(|at| *at != UNSET);
            saved.chunks(2).map(|pair| place(pair.first()?).zip(place(pair.last()?))).collect()
        }))
    }
}

impl Search<'_> {
    /// Follows the zero-width instructions from `inst` and adds a thread for each instruction that they lead to (`addthread` in
    /// Cox).
    fn add_thread(&mut self, threads: &mut ThreadList, inst: usize, at: usize) -> Result<(), TooCostly> {
        self.todo.push(Pending::Explore(inst));
        while let Some(todo) = self.todo.pop() {
            let inst = match todo {
                Pending::Explore(inst) => inst,
                Pending::RestoreSlot { slot, before } => {
                    self.save(slot, before);
                    continue;
                }
            };
            self.budget.charge_one()?;
            let Some(seen) = threads.seen.get_mut(inst) else { continue };
            if std::mem::replace(seen, at) == at {
                continue;
            }
            match self.program.insts.get(inst) {
                Some(Inst::Jump(to)) => self.todo.push(Pending::Explore(*to)),
                Some(Inst::Split(first, second)) => self.todo.extend([Pending::Explore(*second), Pending::Explore(*first)]),
                Some(Inst::Look(look)) if assertion_holds(*look, self.text, at) => self.todo.push(Pending::Explore(inst + 1)),
                Some(Inst::Save(slot)) => {
                    if let Some(before) = self.save(*slot, at) {
                        self.todo.push(Pending::RestoreSlot { slot: *slot, before });
                    }
                    self.todo.push(Pending::Explore(inst + 1));
                }
                Some(Inst::Char(_) | Inst::Match) => {
                    threads.at.push(inst);
                    threads.saved.extend_from_slice(&self.slots);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Sets a slot and returns its earlier value; `None` if this search does not record the slot.
    fn save(&mut self, slot: usize, at: usize) -> Option<usize> {
        self.slots.get_mut(slot).map(|place| std::mem::replace(place, at))
    }
}
