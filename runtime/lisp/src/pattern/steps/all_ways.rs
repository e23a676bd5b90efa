//! All ways through a pattern at once.

use regex_syntax::hir::Hir;

use super::program::{Inst, Program};
use super::{Pace, is_one_of, looks, next};
use crate::pattern::{GoOn, Groups, TooCostly};

/// Most places that all ways may have saved together.
const MOST_SAVED: usize = 1 << 20;

/// A pattern whose matches are found in one pass over the text.
pub(in crate::pattern) struct AllWays {
    program: Program,
}

/// Ways that have come as far as a character, the preferred ones first.
struct Ways {
    /// The instruction that each is at.
    at: Vec<usize>,
    /// What each has saved, one after the other.
    saved: Vec<usize>,
    /// The character at which an instruction was last come to.
    seen: Vec<usize>,
}

/// No place.
const NOWHERE: usize = usize::MAX;

enum Todo {
    Go(usize),
    Restore { slot: usize, before: usize },
}

struct Search<'a> {
    program: &'a Program,
    text: &'a str,
    /// What the way that is being followed has saved.
    slots: Vec<usize>,
    todo: Vec<Todo>,
    pace: Pace<'a>,
}

impl AllWays {
    pub(in crate::pattern) fn new(pattern: &Hir) -> Option<AllWays> {
        Program::all_ways(pattern).ok().map(|program| AllWays { program })
    }

    /// Bytes that it takes.
    pub(in crate::pattern) fn bytes(&self) -> usize {
        self.program.bytes
    }

    /// What a character of the text may cost.
    pub(in crate::pattern) fn size(&self) -> usize {
        self.program.insts.len()
    }

    /// The first match at or after byte `at`; of its groups, only the whole match unless `with_groups`.
    pub(in crate::pattern) fn find_at(
        &self,
        text: &str,
        mut at: usize,
        with_groups: bool,
        go_on: GoOn<'_>,
    ) -> Result<Option<Groups>, TooCostly> {
        let insts = &self.program.insts;
        let slots = if with_groups { self.program.slots } else { 2 };
        if insts.len() * slots > MOST_SAVED {
            return Err(TooCostly::LargePattern);
        }
        let ways = || Ways { at: Vec::new(), saved: Vec::new(), seen: vec![NOWHERE; insts.len()] };
        let (mut here, mut ahead, mut matched) = (ways(), ways(), None);
        let pace = Pace::new(go_on, u64::MAX);
        let mut search = Search { program: &self.program, text, slots: vec![NOWHERE; slots], todo: Vec::new(), pace };
        let first = match insts.get(1) {
            Some(Inst::Char(of)) => Some(of),
            _ => None,
        };
        loop {
            let c = next(text, at);
            let may_begin = first.is_none_or(|of| c.is_some_and(|c| is_one_of(of, c)));
            if matched.is_none() && may_begin {
                search.slots.fill(NOWHERE);
                search.follow(&mut here, 0, at)?;
            }
            if here.at.is_empty() && matched.is_some() {
                break;
            }
            search.pace.step()?;
            for (way, inst) in here.at.iter().enumerate() {
                search.pace.step()?;
                let saved = here.saved.get(way * slots..(way + 1) * slots).unwrap_or_default();
                match (insts.get(*inst), c) {
                    (Some(Inst::Match), _) => {
                        // Ways that are preferred less do not count any more.
                        matched = Some(saved.to_vec());
                        break;
                    }
                    (Some(Inst::Char(of)), Some(c)) if is_one_of(of, c) => {
                        search.slots.copy_from_slice(saved);
                        search.follow(&mut ahead, inst + 1, at + c.len_utf8())?;
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
            let place = |at: &usize| Some(*at).filter(|at| *at != NOWHERE);
            saved.chunks(2).map(|pair| place(pair.first()?).zip(place(pair.last()?))).collect()
        }))
    }
}

impl Search<'_> {
    /// Follows what takes no character, from an instruction on, and adds where it leads.
    fn follow(&mut self, ways: &mut Ways, inst: usize, at: usize) -> Result<(), TooCostly> {
        self.todo.push(Todo::Go(inst));
        while let Some(todo) = self.todo.pop() {
            let inst = match todo {
                Todo::Go(inst) => inst,
                Todo::Restore { slot, before } => {
                    self.save(slot, before);
                    continue;
                }
            };
            self.pace.step()?;
            let Some(seen) = ways.seen.get_mut(inst) else { continue };
            if std::mem::replace(seen, at) == at {
                continue;
            }
            match self.program.insts.get(inst) {
                Some(Inst::Jump(to)) => self.todo.push(Todo::Go(*to)),
                Some(Inst::Split(first, second)) => self.todo.extend([Todo::Go(*second), Todo::Go(*first)]),
                Some(Inst::Look(look)) if looks(*look, self.text, at) => self.todo.push(Todo::Go(inst + 1)),
                Some(Inst::Save(slot)) => {
                    if let Some(before) = self.save(*slot, at) {
                        self.todo.push(Todo::Restore { slot: *slot, before });
                    }
                    self.todo.push(Todo::Go(inst + 1));
                }
                Some(Inst::Char(_) | Inst::Match) => {
                    ways.at.push(inst);
                    ways.saved.extend_from_slice(&self.slots);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Saves a place; what was there before, unless nobody asks for it.
    fn save(&mut self, slot: usize, at: usize) -> Option<usize> {
        self.slots.get_mut(slot).map(|place| std::mem::replace(place, at))
    }
}
