//! A pattern as instructions for the Pike VM and the backtracker.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use fancy_regex::{Assertion, Expr, LookAround};
use regex_syntax::hir::{Class, Hir, HirKind, Look};

/// Ranges of characters in ascending order.
pub(super) type Ranges = Arc<[(char, char)]>;

/// Maximum size of the ranges of a program, in bytes. Equal classes are counted once.
const MAX_RANGE_BYTES: usize = 1 << 20;
/// Maximum number of instructions of a program.
pub(crate) const MAX_INSTS: usize = 40_000;

/// How an unbounded repetition is kept from matching the empty text forever.
#[derive(Clone, Copy)]
enum EmptyLoopPolicy {
    /// Each iteration matches at least one character.
    NeverEmpty,
    /// The Pike VM visits each instruction once for each position.
    VisitedOnce,
    /// [`Inst::EmptyCheck`] ends the repetition after an iteration that matches nothing.
    Checked,
}

/// An instruction. Targets are indices of instructions.
#[derive(Clone)]
pub(super) enum Inst {
    /// Matches one character of the ranges.
    Char(Ranges),
    /// Matches a run of characters of the ranges, as long as possible if `greedy`, otherwise as short as possible.
    Run {
        of: Ranges,
        least: u32,
        most: u32,
        greedy: bool,
    },
    /// Continues at both targets; the first has priority.
    Split(usize, usize),
    Jump(usize),
    /// Stores the position in a slot.
    Save(usize),
    /// Jumps to `to`, unless nothing was matched since the position was stored in the slot `since`.
    EmptyCheck {
        since: usize,
        to: usize,
    },
    Look(Look),
    /// A back-reference.
    Back {
        group: usize,
        ignore_case: bool,
    },
    /// Matches the instructions up to [`Inst::EndSubMatch`] on their own; the pattern continues at the target.
    SubMatch(SubMatch, usize),
    /// Ends a sub-match.
    EndSubMatch,
    Match,
}

/// The kind of a sub-match: an atomic group or look-around.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SubMatch {
    /// Atomic group: what it matched is not given back.
    Atomic,
    /// Look-ahead: must match here if `positive`, otherwise must not.
    Ahead { positive: bool },
    /// Look-behind of `least` to `most` characters: must end here if `positive`, otherwise must not.
    Behind { positive: bool, least: u32, most: u32 },
}

/// A pattern as instructions.
pub(super) struct Program {
    pub(super) insts: Vec<Inst>,
    /// Number of groups, including the whole match. Each has a slot for its beginning and one for its end.
    pub(super) groups: usize,
    /// Number of slots.
    pub(super) slots: usize,
    /// Size of instructions and ranges in bytes.
    pub(super) bytes: usize,
}

/// Message for a construct that only other dialects have.
const UNSUPPORTED: &str = "a construct that is not supported";

/// Why a pattern cannot be compiled.
pub(crate) enum CompileError {
    TooLarge,
    Invalid(String),
}

struct Builder<'e> {
    insts: Vec<Inst>,
    groups: Vec<&'e Expr>,
    slots: usize,
    /// The distinct classes of the pattern.
    classes: HashSet<Ranges>,
    /// Size of `classes` in bytes.
    ranges: usize,
    /// Classes by their source text and case flag. Parsing a class again takes long.
    known: HashMap<(&'e str, bool), Ranges>,
}

impl Program {
    /// Compiles a pattern for the backtracker.
    pub(super) fn for_backtracker(expr: &Expr) -> Result<Program, CompileError> {
        let mut groups = Vec::new();
        number(expr, &mut groups);
        let count = groups.len() + 1;
        Builder::new(groups, count).finish(count, |to| to.expr(expr))
    }

    /// Compiles a pattern for the Pike VM.
    pub(super) fn for_pike_vm(hir: &Hir) -> Result<Program, CompileError> {
        let count = hir.properties().explicit_captures_len() + 1;
        Builder::new(Vec::new(), count).finish(count, |to| to.hir(hir))
    }
}

/// The groups in the order of their numbers.
fn number<'e>(expr: &'e Expr, groups: &mut Vec<&'e Expr>) {
    if matches!(expr, Expr::Group(_)) {
        groups.push(expr);
    }
    for child in expr.children_iter() {
        number(child, groups);
    }
}

/// Parses a pattern with the parser of the linear engine.
pub(crate) fn parse(pattern: &str) -> Result<Hir, CompileError> {
    let mut parser = regex_syntax::ParserBuilder::new().crlf(true).build();
    parser.parse(pattern).map_err(|fault| CompileError::Invalid(fault.to_string()))
}

/// Maximum number of characters that a pattern for the backtracker matches; `None` if it is unbounded or the pattern is not
/// valid.
pub(crate) fn max_chars(pattern: &str) -> Option<usize> {
    let tree = Expr::parse_tree(&format!("(?R){pattern}")).ok()?;
    let (_, most) = width(&tree.expr).ok()?;
    (most != u32::MAX).then_some(most as usize)
}

/// The part as [`Hir`], if it is a class, a literal or an assertion.
fn leaf(expr: &Expr) -> Result<Option<Hir>, CompileError> {
    let with = |flag: &str, inner: &str| parse(&format!("(?{flag}:{inner})")).map(Some);
    let look = |look| Ok(Some(Hir::look(look)));
    match expr {
        Expr::Empty => Ok(Some(Hir::empty())),
        Expr::Any { newline, crlf } => with(
            if *newline {
                "s"
            } else if *crlf {
                "R"
            } else {
                "-R"
            },
            ".",
        ),
        Expr::Literal { val, casei } => with(if *casei { "i" } else { "" }, &regex_syntax::escape(val)),
        Expr::Delegate { inner, casei } => with(if *casei { "i" } else { "" }, inner),
        Expr::Assertion(assertion) => match assertion {
            Assertion::StartText => look(Look::Start),
            Assertion::EndText => look(Look::End),
            Assertion::StartLine { crlf: true } => look(Look::StartCRLF),
            Assertion::StartLine { crlf: false } => look(Look::StartLF),
            Assertion::EndLine { crlf: true } => look(Look::EndCRLF),
            Assertion::EndLine { crlf: false } => look(Look::EndLF),
            Assertion::WordBoundary => look(Look::WordUnicode),
            Assertion::NotWordBoundary => look(Look::WordUnicodeNegate),
            Assertion::LeftWordBoundary => look(Look::WordStartUnicode),
            Assertion::LeftWordHalfBoundary => look(Look::WordStartHalfUnicode),
            Assertion::RightWordBoundary => look(Look::WordEndUnicode),
            Assertion::RightWordHalfBoundary => look(Look::WordEndHalfUnicode),
            _ => Ok(None),
        },
        _ => Ok(None),
    }
}

/// The characters of a pattern that matches exactly one.
fn one_of(hir: &Hir) -> Option<Vec<(char, char)>> {
    match hir.kind() {
        HirKind::Class(Class::Unicode(class)) => Some(class.iter().map(|range| (range.start(), range.end())).collect()),
        HirKind::Class(Class::Bytes(class)) => {
            Some(class.iter().map(|range| (char::from(range.start()), char::from(range.end()))).collect())
        }
        HirKind::Literal(literal) => {
            let mut chars = std::str::from_utf8(&literal.0).ok()?.chars();
            let only = chars.next().filter(|_| chars.next().is_none())?;
            Some(vec![(only, only)])
        }
        _ => None,
    }
}

/// Minimum and maximum number of characters that a pattern matches.
fn width(expr: &Expr) -> Result<(u32, u32), CompileError> {
    if let Some(leaf) = leaf(expr)? {
        return Ok(leaf_width(&leaf));
    }
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Ok(match expr {
        Expr::Concat(all) => all.iter().map(width).try_fold((0_u32, 0_u32), |sum, part| {
            let part = part?;
            Ok((sum.0.saturating_add(part.0), sum.1.saturating_add(part.1)))
        })?,
        Expr::Alt(branches) => branches.iter().map(width).try_fold((u32::MAX, 0), |all, branch| {
            let branch = branch?;
            Ok((all.0.min(branch.0), all.1.max(branch.1)))
        })?,
        Expr::Group(inner) => width(inner)?,
        Expr::AtomicGroup(inner) => width(inner)?,
        Expr::Repeat { child, lo, hi, .. } => {
            let (least, most) = width(child)?;
            (least.saturating_mul(count(*lo)), most.saturating_mul(count(*hi)))
        }
        Expr::Backref { .. } => (0, u32::MAX),
        Expr::LookAround(..) => (0, 0),
        _ => return Err(CompileError::Invalid(UNSUPPORTED.to_owned())),
    })
}

/// Minimum and maximum number of characters that a leaf matches.
fn leaf_width(hir: &Hir) -> (u32, u32) {
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => (0, 0),
        HirKind::Class(_) => (1, 1),
        HirKind::Literal(literal) => {
            let chars = count(String::from_utf8_lossy(&literal.0).chars().count());
            (chars, chars)
        }
        HirKind::Capture(group) => leaf_width(&group.sub),
        HirKind::Repetition(repeated) => {
            let (least, most) = leaf_width(&repeated.sub);
            (least.saturating_mul(repeated.min), most.saturating_mul(repeated.max.unwrap_or(u32::MAX)))
        }
        HirKind::Concat(all) => all
            .iter()
            .map(leaf_width)
            .fold((0, 0), |sum: (u32, u32), part| (sum.0.saturating_add(part.0), sum.1.saturating_add(part.1))),
        HirKind::Alternation(branches) => {
            let widths = branches.iter().map(leaf_width);
            widths.fold((u32::MAX, 0), |all, branch| (all.0.min(branch.0), all.1.max(branch.1)))
        }
    }
}

impl<'e> Builder<'e> {
    fn new(groups: Vec<&'e Expr>, count: usize) -> Self {
        Builder { insts: Vec::new(), groups, slots: 2 * count, classes: HashSet::new(), ranges: 0, known: HashMap::new() }
    }

    fn finish(
        mut self,
        groups: usize,
        body: impl FnOnce(&mut Self) -> Result<(), CompileError>,
    ) -> Result<Program, CompileError> {
        self.group(0, body)?;
        self.push(Inst::Match)?;
        let bytes = self.ranges + self.insts.len() * size_of::<Inst>();
        Ok(Program { insts: self.insts, groups, slots: self.slots, bytes })
    }

    /// Stores equal ranges in one allocation. Those of `\p{L}` take 6 KB.
    fn class(&mut self, of: &[(char, char)]) -> Result<Ranges, CompileError> {
        if let Some(known) = self.classes.get(of) {
            return Ok(Arc::clone(known));
        }
        self.ranges += size_of_val(of);
        if self.ranges > MAX_RANGE_BYTES {
            return Err(CompileError::TooLarge);
        }
        let new = Ranges::from(of);
        self.classes.insert(Arc::clone(&new));
        Ok(new)
    }

    fn push(&mut self, inst: Inst) -> Result<usize, CompileError> {
        if self.insts.len() == MAX_INSTS {
            return Err(CompileError::TooLarge);
        }
        self.insts.push(inst);
        Ok(self.insts.len() - 1)
    }

    /// Replaces the placeholder at `at`.
    fn set(&mut self, at: usize, inst: Inst) {
        if let Some(place) = self.insts.get_mut(at) {
            *place = inst;
        }
    }

    fn group(&mut self, number: usize, body: impl FnOnce(&mut Self) -> Result<(), CompileError>) -> Result<(), CompileError> {
        self.push(Inst::Save(2 * number))?;
        body(self)?;
        self.push(Inst::Save(2 * number + 1)).map(drop)
    }

    /// An alternation.
    fn either<T>(
        &mut self,
        branches: &[T],
        mut each: impl FnMut(&mut Self, &T) -> Result<(), CompileError>,
    ) -> Result<(), CompileError> {
        let mut ends = Vec::new();
        for (index, branch) in branches.iter().enumerate() {
            if index + 1 == branches.len() {
                each(self, branch)?;
                break;
            }
            let split = self.fork()?;
            each(self, branch)?;
            ends.push(self.push(Inst::Jump(0))?);
            self.set(split, Inst::Split(split + 1, self.insts.len()));
        }
        for end in ends {
            self.set(end, Inst::Jump(self.insts.len()));
        }
        Ok(())
    }

    /// Reserves an instruction for a [`Inst::Split`]; [`Builder::join`] fills it in.
    fn fork(&mut self) -> Result<usize, CompileError> {
        self.push(Inst::Split(0, 0))
    }

    fn join(&mut self, fork: usize, greedy: bool) {
        let (into, past) = (fork + 1, self.insts.len());
        self.set(fork, if greedy { Inst::Split(into, past) } else { Inst::Split(past, into) });
    }

    /// Appends a copy of instructions, with their targets adjusted.
    fn copy(&mut self, from: Range<usize>) -> Result<(), CompileError> {
        let by = self.insts.len() - from.start;
        for at in from {
            let Some(inst) = self.insts.get(at).cloned() else { break };
            self.push(match inst {
                Inst::Split(first, second) => Inst::Split(first + by, second + by),
                Inst::Jump(to) => Inst::Jump(to + by),
                Inst::EmptyCheck { since, to } => Inst::EmptyCheck { since, to: to + by },
                Inst::SubMatch(kind, past) => Inst::SubMatch(kind, past + by),
                other => other,
            })?;
        }
        Ok(())
    }

    fn repeat(
        &mut self,
        (least, most): (usize, Option<usize>),
        greedy: bool,
        policy: EmptyLoopPolicy,
        body: &mut dyn FnMut(&mut Self) -> Result<(), CompileError>,
    ) -> Result<(), CompileError> {
        let mut made: Option<Range<usize>> = None;
        let mut push = |to: &mut Self| {
            if let Some(made) = &made {
                return to.copy(made.clone());
            }
            let start = to.insts.len();
            body(to)?;
            made = Some(start..to.insts.len());
            Ok(())
        };
        // The test for another iteration comes after the body.
        let asked_after = most.is_none() && matches!(policy, EmptyLoopPolicy::VisitedOnce);
        let before = if asked_after { least.saturating_sub(1) } else { least };
        for round in 0..before {
            let start = self.insts.len();
            push(self)?;
            if round == 0 && self.insts.len() == start {
                // The body is empty.
                return Ok(());
            }
        }
        if asked_after {
            let fork = if least == 0 { Some(self.fork()?) } else { None };
            let start = self.insts.len();
            push(self)?;
            let past = self.insts.len() + 1;
            self.push(if greedy { Inst::Split(start, past) } else { Inst::Split(past, start) })?;
            if let Some(fork) = fork {
                self.join(fork, greedy);
            }
            return Ok(());
        }
        let Some(most) = most else {
            let fork = self.fork()?;
            if let EmptyLoopPolicy::Checked = policy {
                let since = self.slots;
                self.slots += 1;
                self.push(Inst::Save(since))?;
                push(self)?;
                self.push(Inst::EmptyCheck { since, to: fork })?;
            } else {
                push(self)?;
                self.push(Inst::Jump(fork))?;
            }
            self.join(fork, greedy);
            return Ok(());
        };
        let mut forks = Vec::new();
        for _ in least..most {
            forks.push(self.fork()?);
            push(self)?;
        }
        for fork in forks {
            self.join(fork, greedy);
        }
        Ok(())
    }

    fn hir(&mut self, hir: &Hir) -> Result<(), CompileError> {
        if let Some(of) = one_of(hir) {
            let of = self.class(&of)?;
            return self.push(Inst::Char(of)).map(drop);
        }
        match hir.kind() {
            HirKind::Empty | HirKind::Class(_) => Ok(()),
            HirKind::Literal(literal) => {
                for c in String::from_utf8_lossy(&literal.0).chars() {
                    let of = self.class(&[(c, c)])?;
                    self.push(Inst::Char(of))?;
                }
                Ok(())
            }
            HirKind::Look(look) => self.push(Inst::Look(*look)).map(drop),
            HirKind::Repetition(repeated) => {
                let most = repeated.max.map(|most| most as usize);
                let is_longer = repeated.sub.properties().minimum_len().is_some_and(|least| least > 0);
                let policy = if is_longer { EmptyLoopPolicy::NeverEmpty } else { EmptyLoopPolicy::VisitedOnce };
                self.repeat((repeated.min as usize, most), repeated.greedy, policy, &mut |to| to.hir(&repeated.sub))
            }
            HirKind::Capture(group) => self.group(group.index as usize, |to| to.hir(&group.sub)),
            HirKind::Concat(all) => all.iter().try_for_each(|part| self.hir(part)),
            HirKind::Alternation(branches) => self.either(branches, Self::hir),
        }
    }

    /// The characters of a part that matches exactly one.
    fn one(&mut self, expr: &'e Expr) -> Result<Option<Ranges>, CompileError> {
        let written = if let Expr::Delegate { inner, casei } = expr { Some((inner.as_str(), *casei)) } else { None };
        if let Some(known) = written.as_ref().and_then(|written| self.known.get(written)) {
            return Ok(Some(Arc::clone(known)));
        }
        let Some(of) = leaf(expr)?.as_ref().and_then(one_of) else { return Ok(None) };
        let of = self.class(&of)?;
        if let Some(written) = written {
            self.known.insert(written, Arc::clone(&of));
        }
        Ok(Some(of))
    }

    fn expr(&mut self, expr: &'e Expr) -> Result<(), CompileError> {
        if let Expr::Delegate { .. } = expr
            && let Some(of) = self.one(expr)?
        {
            return self.push(Inst::Char(of)).map(drop);
        }
        if let Some(leaf) = leaf(expr)? {
            return self.hir(&leaf);
        }
        match expr {
            Expr::Concat(all) => all.iter().try_for_each(|part| self.expr(part)),
            Expr::Alt(branches) => {
                let branches: Vec<&'e Expr> = branches.iter().collect();
                self.either(&branches, |to, branch| to.expr(branch))
            }
            Expr::Group(inner) => {
                let number = self.groups.iter().position(|group| std::ptr::eq(*group, expr)).unwrap_or(0);
                self.group(number + 1, |to| to.expr(inner))
            }
            Expr::Repeat { lo, hi, .. } if lo > hi => {
                Err(CompileError::Invalid(format!("of the counts in {{{lo},{hi}}}, the first is to be the smaller one")))
            }
            Expr::Repeat { child, lo, hi, greedy } => {
                let most = (*hi != usize::MAX).then_some(*hi);
                if let Some(of) = self.one(child)? {
                    let limit = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
                    return self.push(Inst::Run { of, least: limit(*lo), most: limit(*hi), greedy: *greedy }).map(drop);
                }
                self.repeat((*lo, most), *greedy, EmptyLoopPolicy::Checked, &mut |to| to.expr(child))
            }
            Expr::AtomicGroup(inner) => self.sub_match(SubMatch::Atomic, inner),
            Expr::LookAround(inner, kind) => {
                let sub_match = match kind {
                    LookAround::LookAhead => SubMatch::Ahead { positive: true },
                    LookAround::LookAheadNeg => SubMatch::Ahead { positive: false },
                    LookAround::LookBehind | LookAround::LookBehindNeg => {
                        let (least, most) = width(inner)?;
                        SubMatch::Behind { positive: *kind == LookAround::LookBehind, least, most }
                    }
                };
                self.sub_match(sub_match, inner)
            }
            Expr::Backref { group, casei } if *group <= self.groups.len() => {
                self.push(Inst::Back { group: *group, ignore_case: *casei }).map(drop)
            }
            Expr::Backref { .. } => Err(CompileError::Invalid("Invalid back reference".to_owned())),
            _ => Err(CompileError::Invalid(UNSUPPORTED.to_owned())),
        }
    }

    fn sub_match(&mut self, kind: SubMatch, inner: &'e Expr) -> Result<(), CompileError> {
        let at = self.push(Inst::SubMatch(kind, 0))?;
        self.expr(inner)?;
        self.push(Inst::EndSubMatch)?;
        self.set(at, Inst::SubMatch(kind, self.insts.len()));
        Ok(())
    }
}
