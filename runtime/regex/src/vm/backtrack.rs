//! A backtracking matcher: tries the alternatives of a pattern one after the other, with a limit on its steps.
//!
//! It implements the extensions that an automaton cannot match: look-around, back-references, atomic groups and possessive
//! quantifiers.

use fancy_regex::Expr;

use super::program::{CompileError, Inst, Program, SubMatch};
use super::{StepBudget, assertion_holds, is_one_of, next, previous};
use crate::{CheckInterrupt, Groups, TooCostly};

/// Maximum number of steps of one search. Each instruction and each character is a step; all together take some 100 ms.
pub(crate) const MAX_STEPS: u64 = 25_000_000;
/// Backtrack points that can be discarded in the time of a step.
const POINTS_PER_STEP: usize = 8;
/// Maximum number of backtrack points at a time, of 32 bytes each.
const MAX_BACKTRACK_POINTS: usize = 200_000;

/// A pattern compiled for the backtracker.
pub(crate) struct Backtracker {
    program: Program,
    names: Vec<(String, usize)>,
}

/// What to do when the current alternative fails.
enum BacktrackPoint {
    /// Continue with another alternative.
    Branch { inst: usize, at: usize },
    /// Give back one character of a run, which may end anywhere between `from` and `to`.
    GiveBack { inst: usize, from: usize, to: usize },
    /// Take one more character of a run, and up to `left` in all.
    TakeMore { inst: usize, at: usize, left: u32 },
    /// Restore the earlier value of a slot.
    RestoreSlot { slot: usize, before: usize },
    /// A sub-match that began at `begun` has failed. A look-behind that is to end at `at` may still begin up to `left` characters
    /// before `begun`.
    SubMatch { inst: usize, at: usize, begun: usize, left: u32 },
}

/// A slot that is not set.
const UNSET: usize = usize::MAX;

struct Search<'a> {
    program: &'a Program,
    text: &'a str,
    slots: Vec<usize>,
    stack: Vec<BacktrackPoint>,
    /// Indices of the [`BacktrackPoint::SubMatch`]s in `stack`.
    sub_matches: Vec<usize>,
    budget: StepBudget<'a>,
}

impl Backtracker {
    pub(crate) fn new(pattern: &str) -> Result<Backtracker, CompileError> {
        // Positions in the translated pattern differ from those in the written one: the error has no position.
        let tree = Expr::parse_tree(&format!("(?R){pattern}")).map_err(|fault| match fault {
            fancy_regex::Error::ParseError(_, why) => CompileError::Invalid(why.to_string()),
            other => CompileError::Invalid(other.to_string()),
        })?;
        let program = Program::for_backtracker(&tree.expr)?;
        if let Some((name, _)) = tree.named_groups.iter().find(|(_, groups)| groups.len() > 1) {
            return Err(CompileError::Invalid(format!("two groups are named {name}")));
        }
        let names = tree.named_groups.into_iter().filter_map(|(name, groups)| Some((name, *groups.first()?))).collect();
        Ok(Backtracker { program, names })
    }

    /// Size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.program.bytes
    }

    pub(crate) fn group(&self, name: &str) -> Option<usize> {
        self.names.iter().find(|(known, _)| known == name).map(|(_, group)| *group)
    }

    /// The first match at or after byte `at`.
    pub(crate) fn find_at(
        &self,
        text: &str,
        mut at: usize,
        may_continue: CheckInterrupt<'_>,
    ) -> Result<Option<Groups>, TooCostly> {
        let budget = StepBudget::new(may_continue, MAX_STEPS);
        let slots = vec![UNSET; self.program.slots];
        let mut search = Search { program: &self.program, text, slots, stack: Vec::new(), sub_matches: Vec::new(), budget };
        loop {
            if search.match_at(at)? {
                let place = |slot: usize| search.slots.get(slot).copied().filter(|at| *at != UNSET);
                return Ok(Some((0..self.program.groups).map(|group| place(2 * group).zip(place(2 * group + 1))).collect()));
            }
            match next(text, at) {
                Some(c) => at += c.len_utf8(),
                None => return Ok(None),
            }
        }
    }
}

impl Search<'_> {
    /// Whether a match begins at `begin`. Its groups are then in the slots.
    fn match_at(&mut self, begin: usize) -> Result<bool, TooCostly> {
        self.stack.clear();
        self.sub_matches.clear();
        self.slots.fill(UNSET);
        let (mut inst, mut at) = (0, begin);
        loop {
            if self.stack.len() > MAX_BACKTRACK_POINTS {
                return Err(TooCostly::Backtracking);
            }
            self.budget.charge_one()?;
            let Some(what) = self.program.insts.get(inst) else { return Ok(false) };
            if matches!(what, Inst::Match) {
                return Ok(true);
            }
            match self.step(inst, what, at)? {
                Some(further) => (inst, at) = further,
                None => match self.go_back() {
                    Some(other) => (inst, at) = other,
                    None => return Ok(false),
                },
            }
        }
    }

    /// Executes one instruction. Returns the next instruction and position, or `None` if it does not match.
    fn step(&mut self, inst: usize, what: &Inst, at: usize) -> Result<Option<(usize, usize)>, TooCostly> {
        let further = inst + 1;
        Ok(match what {
            Inst::Char(of) => next(self.text, at).filter(|c| is_one_of(of, *c)).map(|c| (further, at + c.len_utf8())),
            Inst::Run { of, least, most, greedy } => {
                let wanted = if *greedy { *most } else { *least };
                let Some((from, to)) = self.run(of, at, *least, wanted)? else { return Ok(None) };
                if *greedy && to > from {
                    self.stack.push(BacktrackPoint::GiveBack { inst: further, from, to });
                } else if !*greedy && most > least {
                    self.stack.push(BacktrackPoint::TakeMore { inst, at: to, left: most - least });
                }
                Some((further, to))
            }
            Inst::Split(first, second) => {
                self.stack.push(BacktrackPoint::Branch { inst: *second, at });
                Some((*first, at))
            }
            Inst::Jump(to) => Some((*to, at)),
            Inst::Save(slot) => {
                self.save(*slot, at);
                Some((further, at))
            }
            Inst::EmptyCheck { since, to } => Some((if self.slots.get(*since) == Some(&at) { further } else { *to }, at)),
            Inst::Look(look) => assertion_holds(*look, self.text, at).then_some((further, at)),
            Inst::Back { group, ignore_case } => self.match_backreference(*group, *ignore_case, at)?.map(|end| (further, end)),
            Inst::SubMatch(kind, past) => {
                let (mut begun, mut left) = (at, 0);
                if let SubMatch::Behind { positive, least, most } = kind {
                    left = most - least;
                    for _ in 0..*least {
                        let Some(c) = previous(self.text, begun) else { return Ok((!positive).then_some((*past, at))) };
                        begun -= c.len_utf8();
                        self.budget.charge_one()?;
                    }
                }
                self.open_sub_match(BacktrackPoint::SubMatch { inst, at, begun, left });
                Some((further, begun))
            }
            Inst::EndSubMatch => self.close_sub_match(at)?,
            Inst::Match => None,
        })
    }

    /// Matches between `least` and `most` characters of a class. Returns the ends of the shortest and of the longest run, or
    /// `None` if there are fewer than `least`.
    fn run(&mut self, of: &[(char, char)], mut at: usize, least: u32, most: u32) -> Result<Option<(usize, usize)>, TooCostly> {
        let mut from = at;
        for count in 0..most {
            if count == least {
                from = at;
            }
            match next(self.text, at).filter(|c| is_one_of(of, *c)) {
                Some(c) => at += c.len_utf8(),
                None if count < least => return Ok(None),
                None => return Ok(Some((from, at))),
            }
            self.budget.charge_one()?;
        }
        Ok(Some((if least >= most { at } else { from }, at)))
    }

    fn save(&mut self, slot: usize, at: usize) {
        if let Some(place) = self.slots.get_mut(slot) {
            let before = std::mem::replace(place, at);
            self.stack.push(BacktrackPoint::RestoreSlot { slot, before });
        }
    }

    /// Matches the text of a group at `at` and returns its end. A group that has not matched yet fails.
    fn match_backreference(&mut self, group: usize, ignore_case: bool, at: usize) -> Result<Option<usize>, TooCostly> {
        let place = |slot: usize| self.slots.get(slot).copied().unwrap_or(UNSET);
        let Some(said) = self.text.get(place(2 * group)..place(2 * group + 1)) else { return Ok(None) };
        let mut end = at;
        for wanted in said.chars() {
            let Some(found) = next(self.text, end) else { return Ok(None) };
            let same = found == wanted || ignore_case && found.to_lowercase().eq(wanted.to_lowercase());
            if !same {
                return Ok(None);
            }
            end += found.len_utf8();
            self.budget.charge_one()?;
        }
        Ok(Some(end))
    }

    /// Ends the innermost sub-match.
    fn close_sub_match(&mut self, at: usize) -> Result<Option<(usize, usize)>, TooCostly> {
        let Some(place) = self.sub_matches.last().copied() else { return Ok(None) };
        let Some(BacktrackPoint::SubMatch { inst, at: begun_at, .. }) = self.stack.get(place) else { return Ok(None) };
        let (inst, here) = (*inst, *begun_at);
        let Some(Inst::SubMatch(kind, past)) = self.program.insts.get(inst) else { return Ok(None) };
        Ok(match kind {
            SubMatch::Behind { .. } if at != here => None,
            SubMatch::Ahead { positive: false } | SubMatch::Behind { positive: false, .. } => {
                while self.stack.len() > place {
                    self.undo();
                }
                None
            }
            SubMatch::Atomic | SubMatch::Ahead { .. } | SubMatch::Behind { .. } => {
                // It gives nothing back. Its slots are restored when an earlier alternative is tried.
                let tried = self.stack.split_off(place);
                self.sub_matches.pop();
                self.budget.charge(u32::try_from(tried.len() / POINTS_PER_STEP).unwrap_or(u32::MAX))?;
                self.stack.extend(tried.into_iter().filter(|stack| matches!(stack, BacktrackPoint::RestoreSlot { .. })));
                Some((*past, if *kind == SubMatch::Atomic { at } else { here }))
            }
        })
    }

    /// Begins a sub-match.
    fn open_sub_match(&mut self, sub_match: BacktrackPoint) {
        self.sub_matches.push(self.stack.len());
        self.stack.push(sub_match);
    }

    fn undo(&mut self) -> Option<BacktrackPoint> {
        let stack = self.stack.pop()?;
        if let BacktrackPoint::SubMatch { .. } = stack {
            self.sub_matches.pop();
        }
        if let BacktrackPoint::RestoreSlot { slot, before } = stack
            && let Some(place) = self.slots.get_mut(slot)
        {
            *place = before;
        }
        Some(stack)
    }

    /// The next alternative; `None` if all were tried.
    fn go_back(&mut self) -> Option<(usize, usize)> {
        loop {
            match self.undo()? {
                BacktrackPoint::RestoreSlot { .. } => {}
                BacktrackPoint::Branch { inst, at } => return Some((inst, at)),
                BacktrackPoint::GiveBack { inst, from, to } => {
                    let to = to - previous(self.text, to)?.len_utf8();
                    if to > from {
                        self.stack.push(BacktrackPoint::GiveBack { inst, from, to });
                    }
                    return Some((inst, to));
                }
                BacktrackPoint::TakeMore { inst, at, left } => {
                    let Some(Inst::Run { of, .. }) = self.program.insts.get(inst) else { continue };
                    let Some(c) = next(self.text, at).filter(|c| is_one_of(of, *c)) else { continue };
                    let at = at + c.len_utf8();
                    if left > 1 {
                        self.stack.push(BacktrackPoint::TakeMore { inst, at, left: left - 1 });
                    }
                    return Some((inst + 1, at));
                }
                BacktrackPoint::SubMatch { inst, at, begun, left } => {
                    let Some(Inst::SubMatch(kind, past)) = self.program.insts.get(inst) else { continue };
                    if left > 0
                        && let Some(c) = previous(self.text, begun)
                    {
                        let begun = begun - c.len_utf8();
                        self.open_sub_match(BacktrackPoint::SubMatch { inst, at, begun, left: left - 1 });
                        return Some((inst + 1, begun));
                    }
                    if matches!(kind, SubMatch::Ahead { positive: false } | SubMatch::Behind { positive: false, .. }) {
                        return Some((*past, at));
                    }
                }
            }
        }
    }
}
