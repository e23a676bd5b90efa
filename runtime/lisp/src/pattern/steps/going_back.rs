//! One way through a pattern after the other.

use fancy_regex::Expr;

use super::program::{Aside, Inst, Program, Unfit};
use super::{Pace, is_one_of, looks, next, previous};
use crate::pattern::{GoOn, Groups, TooCostly};

/// Steps of one search, which are instructions and characters: some 100 ms.
pub(in crate::pattern) const MOST_STEPS: u64 = 25_000_000;
/// Places to go back to that are gone through in the time of a step.
const KEPT_A_STEP: usize = 8;
/// Places to go back to at once, of 32 bytes each.
const MOST_OPEN: usize = 200_000;

/// A pattern that looks around or refers back.
pub(in crate::pattern) struct GoingBack {
    program: Program,
    names: Vec<(String, usize)>,
}

/// What to do where a way leads no further.
enum Open {
    /// Go another one.
    Way { inst: usize, at: usize },
    /// Give back one character of a run that may end anywhere from here to there.
    Less { inst: usize, from: usize, to: usize },
    /// Take one more, of so many.
    More { inst: usize, at: usize, left: u32 },
    /// What was saved before.
    Saved { slot: usize, before: usize },
    /// Something was looked for by itself at a place: it is not there. What is to end here may begin up to so many characters before
    /// where it was begun.
    Aside { inst: usize, at: usize, begun: usize, left: u32 },
}

/// No place.
const NOWHERE: usize = usize::MAX;

struct Search<'a> {
    program: &'a Program,
    text: &'a str,
    slots: Vec<usize>,
    open: Vec<Open>,
    /// Where the [`Open::Aside`]s are among them.
    asides: Vec<usize>,
    pace: Pace<'a>,
}

impl GoingBack {
    pub(in crate::pattern) fn new(pattern: &str) -> Result<GoingBack, Unfit> {
        // Places in a pattern as translated are none of the pattern as written: what is wrong is told without its place.
        let tree = Expr::parse_tree(&format!("(?R){pattern}")).map_err(|fault| match fault {
            fancy_regex::Error::ParseError(_, why) => Unfit::Invalid(why.to_string()),
            other => Unfit::Invalid(other.to_string()),
        })?;
        let program = Program::going_back(&tree.expr)?;
        if let Some((name, _)) = tree.named_groups.iter().find(|(_, groups)| groups.len() > 1) {
            return Err(Unfit::Invalid(format!("two groups are named {name}")));
        }
        let names = tree.named_groups.into_iter().filter_map(|(name, groups)| Some((name, *groups.first()?))).collect();
        Ok(GoingBack { program, names })
    }

    /// Bytes that it takes.
    pub(in crate::pattern) fn bytes(&self) -> usize {
        self.program.bytes
    }

    pub(in crate::pattern) fn group(&self, name: &str) -> Option<usize> {
        self.names.iter().find(|(known, _)| known == name).map(|(_, group)| *group)
    }

    /// The first match at or after byte `at`.
    pub(in crate::pattern) fn find_at(&self, text: &str, mut at: usize, go_on: GoOn<'_>) -> Result<Option<Groups>, TooCostly> {
        let pace = Pace::new(go_on, MOST_STEPS);
        let slots = vec![NOWHERE; self.program.slots];
        let mut search = Search { program: &self.program, text, slots, open: Vec::new(), asides: Vec::new(), pace };
        loop {
            if search.match_at(at)? {
                let place = |slot: usize| search.slots.get(slot).copied().filter(|at| *at != NOWHERE);
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
    /// Whether there is a match that begins here; its groups are in the slots then.
    fn match_at(&mut self, begin: usize) -> Result<bool, TooCostly> {
        self.open.clear();
        self.asides.clear();
        self.slots.fill(NOWHERE);
        let (mut inst, mut at) = (0, begin);
        loop {
            if self.open.len() > MOST_OPEN {
                return Err(TooCostly::Backtracking);
            }
            self.pace.step()?;
            let Some(what) = self.program.insts.get(inst) else { return Ok(false) };
            if matches!(what, Inst::Match) {
                return Ok(true);
            }
            match self.follow(inst, what, at)? {
                Some(further) => (inst, at) = further,
                None => match self.go_back() {
                    Some(other) => (inst, at) = other,
                    None => return Ok(false),
                },
            }
        }
    }

    /// Where an instruction leads; none where it does not match.
    fn follow(&mut self, inst: usize, what: &Inst, at: usize) -> Result<Option<(usize, usize)>, TooCostly> {
        let further = inst + 1;
        Ok(match what {
            Inst::Char(of) => next(self.text, at).filter(|c| is_one_of(of, *c)).map(|c| (further, at + c.len_utf8())),
            Inst::Run { of, least, most, greedy } => {
                let wanted = if *greedy { *most } else { *least };
                let Some((from, to)) = self.run(of, at, *least, wanted)? else { return Ok(None) };
                if *greedy && to > from {
                    self.open.push(Open::Less { inst: further, from, to });
                } else if !*greedy && most > least {
                    self.open.push(Open::More { inst, at: to, left: most - least });
                }
                Some((further, to))
            }
            Inst::Split(first, second) => {
                self.open.push(Open::Way { inst: *second, at });
                Some((*first, at))
            }
            Inst::Jump(to) => Some((*to, at)),
            Inst::Save(slot) => {
                self.save(*slot, at);
                Some((further, at))
            }
            Inst::Again { since, to } => Some((if self.slots.get(*since) == Some(&at) { further } else { *to }, at)),
            Inst::Look(look) => looks(*look, self.text, at).then_some((further, at)),
            Inst::Back { group, ignore_case } => self.once_more(*group, *ignore_case, at)?.map(|end| (further, end)),
            Inst::Aside(kind, past) => {
                let (mut begun, mut left) = (at, 0);
                if let Aside::Behind { there, least, most } = kind {
                    left = most - least;
                    for _ in 0..*least {
                        let Some(c) = previous(self.text, begun) else { return Ok((!there).then_some((*past, at))) };
                        begun -= c.len_utf8();
                        self.pace.step()?;
                    }
                }
                self.begin(Open::Aside { inst, at, begun, left });
                Some((further, begun))
            }
            Inst::Done => self.done(at)?,
            Inst::Match => None,
        })
    }

    /// How far characters of a kind go: where a run of the fewest ends, and one of the most. None where there are too few.
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
            self.pace.step()?;
        }
        Ok(Some((if least >= most { at } else { from }, at)))
    }

    fn save(&mut self, slot: usize, at: usize) {
        if let Some(place) = self.slots.get_mut(slot) {
            let before = std::mem::replace(place, at);
            self.open.push(Open::Saved { slot, before });
        }
    }

    /// Where the text of a group ends that stands here once more. A group that has matched nothing yet does not.
    fn once_more(&mut self, group: usize, ignore_case: bool, at: usize) -> Result<Option<usize>, TooCostly> {
        let place = |slot: usize| self.slots.get(slot).copied().unwrap_or(NOWHERE);
        let Some(said) = self.text.get(place(2 * group)..place(2 * group + 1)) else { return Ok(None) };
        let mut end = at;
        for wanted in said.chars() {
            let Some(found) = next(self.text, end) else { return Ok(None) };
            let same = found == wanted || ignore_case && found.to_lowercase().eq(wanted.to_lowercase());
            if !same {
                return Ok(None);
            }
            end += found.len_utf8();
            self.pace.step()?;
        }
        Ok(Some(end))
    }

    /// The end of what was looked for by itself.
    fn done(&mut self, at: usize) -> Result<Option<(usize, usize)>, TooCostly> {
        let Some(place) = self.asides.last().copied() else { return Ok(None) };
        let Some(Open::Aside { inst, at: begun_at, .. }) = self.open.get(place) else { return Ok(None) };
        let (inst, here) = (*inst, *begun_at);
        let Some(Inst::Aside(kind, past)) = self.program.insts.get(inst) else { return Ok(None) };
        Ok(match kind {
            Aside::Behind { .. } if at != here => None,
            Aside::Ahead { there: false } | Aside::Behind { there: false, .. } => {
                while self.open.len() > place {
                    self.undo();
                }
                None
            }
            Aside::Atomic | Aside::Ahead { .. } | Aside::Behind { .. } => {
                // It gives nothing back, but what it saved is to be forgotten with what comes before it.
                let tried = self.open.split_off(place);
                self.asides.pop();
                self.pace.steps(u32::try_from(tried.len() / KEPT_A_STEP).unwrap_or(u32::MAX))?;
                self.open.extend(tried.into_iter().filter(|open| matches!(open, Open::Saved { .. })));
                Some((*past, if *kind == Aside::Atomic { at } else { here }))
            }
        })
    }

    /// Begins to look for something by itself.
    fn begin(&mut self, aside: Open) {
        self.asides.push(self.open.len());
        self.open.push(aside);
    }

    fn undo(&mut self) -> Option<Open> {
        let open = self.open.pop()?;
        if let Open::Aside { .. } = open {
            self.asides.pop();
        }
        if let Open::Saved { slot, before } = open
            && let Some(place) = self.slots.get_mut(slot)
        {
            *place = before;
        }
        Some(open)
    }

    /// The next way to go; none where all were tried.
    fn go_back(&mut self) -> Option<(usize, usize)> {
        loop {
            match self.undo()? {
                Open::Saved { .. } => {}
                Open::Way { inst, at } => return Some((inst, at)),
                Open::Less { inst, from, to } => {
                    let to = to - previous(self.text, to)?.len_utf8();
                    if to > from {
                        self.open.push(Open::Less { inst, from, to });
                    }
                    return Some((inst, to));
                }
                Open::More { inst, at, left } => {
                    let Some(Inst::Run { of, .. }) = self.program.insts.get(inst) else { continue };
                    let Some(c) = next(self.text, at).filter(|c| is_one_of(of, *c)) else { continue };
                    let at = at + c.len_utf8();
                    if left > 1 {
                        self.open.push(Open::More { inst, at, left: left - 1 });
                    }
                    return Some((inst + 1, at));
                }
                Open::Aside { inst, at, begun, left } => {
                    let Some(Inst::Aside(kind, past)) = self.program.insts.get(inst) else { continue };
                    if left > 0
                        && let Some(c) = previous(self.text, begun)
                    {
                        let begun = begun - c.len_utf8();
                        self.begin(Open::Aside { inst, at, begun, left: left - 1 });
                        return Some((inst + 1, begun));
                    }
                    if matches!(kind, Aside::Ahead { there: false } | Aside::Behind { there: false, .. }) {
                        return Some((*past, at));
                    }
                }
            }
        }
    }
}
