//! Engines that can be stopped at any character.
//!
//! The engines of `regex` are faster, and cannot be stopped: they are asked where a match is sure to take little time.
//! [`AllWays`] takes over what would take them long. It goes all ways through a pattern at once, in time that grows with
//! the text and the pattern together. [`GoingBack`] matches what looks around or refers back, and tries one way after the other.

mod all_ways;
mod going_back;
mod program;

use regex_syntax::hir::Look;

pub(super) use all_ways::AllWays;
pub(super) use going_back::{GoingBack, MOST_STEPS};
pub(super) use program::{MOST_INSTS, Unfit, most_chars, parse};

/// Steps between two questions whether to go on.
pub(super) const OFTEN: u32 = 4096;

/// Counts steps, and asks now and then whether to go on.
struct Pace<'a> {
    go_on: super::GoOn<'a>,
    left: u32,
    taken: u64,
    /// Steps after which a search is given up, at the next question.
    most: u64,
}

impl<'a> Pace<'a> {
    fn new(go_on: super::GoOn<'a>, most: u64) -> Self {
        Pace { go_on, left: OFTEN, taken: 0, most }
    }

    #[inline]
    fn step(&mut self) -> Result<(), super::TooCostly> {
        self.steps(1)
    }

    #[inline]
    fn steps(&mut self, n: u32) -> Result<(), super::TooCostly> {
        if n < self.left {
            self.left -= n;
            return Ok(());
        }
        self.ask(n)
    }

    #[cold]
    fn ask(&mut self, n: u32) -> Result<(), super::TooCostly> {
        self.taken += u64::from(OFTEN - self.left) + u64::from(n);
        self.left = OFTEN;
        if self.taken > self.most {
            return Err(super::TooCostly::Backtracking);
        }
        if (self.go_on)() { Ok(()) } else { Err(super::TooCostly::Stopped) }
    }
}

/// The character at a place of the text; a place is always between two characters.
#[inline]
fn next(text: &str, at: usize) -> Option<char> {
    let first = *text.as_bytes().get(at)?;
    if first.is_ascii() { Some(char::from(first)) } else { text.get(at..)?.chars().next() }
}

/// The one before it.
#[inline]
fn previous(text: &str, at: usize) -> Option<char> {
    let last = *text.as_bytes().get(at.checked_sub(1)?)?;
    if last.is_ascii() { Some(char::from(last)) } else { text.get(..at)?.chars().next_back() }
}

#[inline]
fn is_one_of(of: &[(char, char)], c: char) -> bool {
    if let [(first, last)] = of {
        return (*first..=*last).contains(&c);
    }
    let after = of.partition_point(|(first, _)| *first <= c);
    after.checked_sub(1).and_then(|at| of.get(at)).is_some_and(|(_, last)| c <= *last)
}

/// Whether a place of the text is as an assertion wants it.
fn looks(look: Look, text: &str, at: usize) -> bool {
    let (before, after) = (previous(text, at), next(text, at));
    let word = |c: Option<char>| c.is_some_and(|c| regex_syntax::try_is_word_character(c).unwrap_or(false));
    let ascii = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    match look {
        Look::Start => before.is_none(),
        Look::End => after.is_none(),
        Look::StartLF => before.is_none_or(|c| c == '\n'),
        Look::EndLF => after.is_none_or(|c| c == '\n'),
        // To Java, no line begins at the end of a text.
        Look::StartCRLF => after.is_some() && before.is_none_or(|c| c == '\n' || c == '\r' && after != Some('\n')),
        Look::EndCRLF => after.is_none_or(|c| c == '\r' || c == '\n' && before != Some('\r')),
        Look::WordAscii => ascii(before) != ascii(after),
        Look::WordAsciiNegate => ascii(before) == ascii(after),
        Look::WordUnicode => word(before) != word(after),
        Look::WordUnicodeNegate => word(before) == word(after),
        Look::WordStartAscii => !ascii(before) && ascii(after),
        Look::WordEndAscii => ascii(before) && !ascii(after),
        Look::WordStartUnicode => !word(before) && word(after),
        Look::WordEndUnicode => word(before) && !word(after),
        Look::WordStartHalfAscii => !ascii(before),
        Look::WordEndHalfAscii => !ascii(after),
        Look::WordStartHalfUnicode => !word(before),
        Look::WordEndHalfUnicode => !word(after),
    }
}
