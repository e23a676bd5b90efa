//! Finding secrets: one automaton looks for every form of every secret at once, in a text and in each of its [`view`]s.

use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Match, MatchKind};
use ptc_lisp::sorting;

use super::forms::Forms;
use super::pieces::Pieces;
use super::view::{self, DEEPEST, Telling, Units, View};

pub(super) struct Patterns {
    /// What is searched first, since most texts hold no secret.
    pieces: Pieces,
    /// Finds the forms; small rather than fast.
    pub(super) automaton: AhoCorasick,
    pub(super) forms: Forms,
    /// Places of the forms in the order of their ends.
    by_end: Vec<usize>,
    telling: Telling,
}

/// Characters that a match in base64 may grow by at its end: one that shares bits, and padding.
const EDGE: usize = 3;

/// The order of texts read from their ends.
fn from_end(a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    a.iter().rev().cmp(b.iter().rev())
}

impl Patterns {
    /// Of forms in order, without duplicates.
    pub(super) fn of(forms: Forms) -> Patterns {
        let all: Vec<&[u8]> = forms.all.iter().map(|form| &**form).collect();
        let automaton = automaton(MatchKind::LeftmostLongest, Some(AhoCorasickKind::ContiguousNFA), &all);
        let telling = Telling::of(all.iter().copied());
        let mut by_end: Vec<usize> = (0..all.len()).collect();
        sorting::by(&mut by_end, |a, b| match (all.get(*a), all.get(*b)) {
            (Some(a), Some(b)) => from_end(a, b),
            _ => a.cmp(b),
        });
        Patterns { pieces: Pieces::of(&forms), automaton, forms, by_end, telling }
    }

    /// Where the secret is that a match is of. A part of a secret is found with what else of the secret is beside it, and base64 with the
    /// characters at its ends that have bits of the secret.
    fn reach(&self, text: &[u8], found: Match) -> Range<usize> {
        let (mut start, mut end) = (found.start(), found.end());
        let id = found.pattern().as_usize();
        let Some(form) = self.forms.all.get(id) else { return start..end };
        if form.is_part {
            let after = text.get(start..).unwrap_or_default();
            let longer = self.forms.all.iter().skip(id + 1).take_while(|longer| longer.starts_with(form));
            end = longer.map(|longer| start + common(longer.iter(), after.iter())).fold(end, usize::max);
            let before = text.get(..found.end()).unwrap_or_default();
            let ended = |at: &usize| self.forms.all.get(*at);
            let from = self.by_end.partition_point(|at| ended(at).is_some_and(|other| from_end(other, form).is_lt()));
            let longer = self.by_end.iter().skip(from).map_while(ended).take_while(|longer| longer.ends_with(form));
            let begins = longer.map(|longer| found.end() - common(longer.iter().rev(), before.iter().rev()));
            start = begins.fold(start, usize::min);
        }
        let has = |at: Option<usize>, is: fn(u8) -> bool| at.and_then(|at| text.get(at)).is_some_and(|b| is(*b));
        if form.shares_before && has(start.checked_sub(1), view::is_base64) {
            start -= 1;
        }
        if form.shares_after || (form.is_part && form.shares_before) {
            end += usize::from(has(Some(end), view::is_base64));
            end += usize::from(has(Some(end), |b| b == b'='));
            end += usize::from(has(Some(end), |b| b == b'='));
        }
        start..end
    }

    /// Whether a text holds a secret, in whatever form.
    pub(super) fn hit(&self, text: &[u8]) -> bool {
        let mut peeled: Option<Vec<u8>> = None;
        for layer in 0..=DEEPEST {
            let text = peeled.as_deref().unwrap_or(text);
            if self.pieces.found(text) {
                if self.automaton.is_match(text) {
                    return true;
                }
            } else if self.pieces.settle(text) {
                return false;
            }
            if layer == DEEPEST {
                return false;
            }
            peeled = view::peeled(text, self.automaton.max_pattern_len(), &self.telling);
            if peeled.is_none() {
                return false;
            }
        }
        false
    }

    /// Where secrets stand: ascending, apart, and never half an escape. And what that was seen in.
    pub(super) fn find(&self, text: &[u8]) -> (Vec<Range<usize>>, Vec<Units>) {
        let mut found: Vec<Range<usize>> = self.automaton.find_iter(text).map(|found| self.reach(text, found)).collect();
        let mut layers: Vec<Units> = Vec::new();
        let mut next = View::of(text, &Units::default());
        while let Some(View { text, units }) = next {
            found.extend(self.automaton.find_iter(&text).map(|found| units.source(self.reach(&text, found))));
            next = if layers.len() + 1 < DEEPEST { View::of(&text, &units) } else { None };
            layers.push(units);
        }
        for range in &mut found {
            *range = layers.iter().fold(range.clone(), |range, units| units.widened(range));
        }
        sorting::by(&mut found, |a, b| (a.start, a.end).cmp(&(b.start, b.end)));
        let mut apart: Vec<Range<usize>> = Vec::with_capacity(found.len());
        for range in found {
            match apart.last_mut() {
                Some(last) if range.start < last.end => last.end = last.end.max(range.end),
                _ => apart.push(range),
            }
        }
        (apart, layers)
    }

    /// How much of a text that goes on is decided.
    pub(super) fn decided(&self, text: &[u8]) -> usize {
        let mut cut = self.waits(text);
        let mut next = View::of(text.get(..view::open_end(text)).unwrap_or_default(), &Units::default());
        for _ in 0..DEEPEST {
            let Some(View { text, units }) = next else { break };
            let waits = self.waits(&text);
            if waits < text.len() {
                cut = cut.min(units.start(waits));
            }
            next = View::of(text.get(..view::open_end(&text)).unwrap_or_default(), &units);
        }
        let (found, layers) = self.find(text);
        // What is found goes on whole, with the line that it starts in.
        loop {
            let line = view::line_start(text, cut);
            cut = layers.iter().fold(line, |at, units| units.widened(at..at).start);
            let Some(split) = found.iter().find(|range| range.start < cut && cut < range.end) else { return cut };
            cut = split.start;
        }
    }

    /// Where the end of a text starts that may go on as a secret.
    fn waits(&self, text: &[u8]) -> usize {
        let open = view::open_end(text);
        let longest = self.automaton.max_pattern_len() + EDGE;
        let shut = text.get(..open).unwrap_or_default();
        // A match that could still grow or shift starts within the last `longest` bytes.
        let mut undecided = open.saturating_sub(longest.saturating_sub(1));
        for found in self.automaton.find_iter(shut) {
            if found.start() >= undecided {
                break;
            }
            undecided = undecided.max(self.reach(shut, found).end);
        }
        // Of that, only what begins a pattern needs to wait.
        let waits = (undecided..open).find(|at| self.begins(shut.get(*at..).unwrap_or_default())).unwrap_or(open);
        view::line_start(text, waits)
    }

    fn begins(&self, text: &[u8]) -> bool {
        self.forms.all.iter().any(|form| form.starts_with(text) || text.starts_with(form))
    }
}

/// How many bytes two texts have in common where they begin.
fn common<'t>(a: impl Iterator<Item = &'t u8>, b: impl Iterator<Item = &'t u8>) -> usize {
    a.zip(b).take_while(|(a, b)| a == b).count()
}

/// Without a prefilter, a table holds no pattern as text.
pub(super) fn automaton(matches: MatchKind, kind: Option<AhoCorasickKind>, patterns: &[&[u8]]) -> AhoCorasick {
    // Building fails only where patterns exceed 2^31 bytes; a process that holds such secrets must not go on without redaction.
    #[expect(clippy::expect_used, reason = "going on unredacted would be worse")]
    AhoCorasick::builder().match_kind(matches).prefilter(false).kind(kind).build(patterns).expect("secrets fit an automaton")
}
