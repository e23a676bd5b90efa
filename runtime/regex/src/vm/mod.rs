//! Engines that can be interrupted at any character.
//!
//! The engines of `regex` are faster and cannot be interrupted. They run where a match takes little time; [`PikeVm`] takes over
//! the searches that would take them long. It runs all threads of a pattern in parallel, in time proportional to the product of
//! text and pattern. [`Backtracker`] matches look-around and back-references, and tries one alternative after the other.

mod backtrack;
mod pike_vm;
mod program;

use regex_syntax::hir::Look;

pub(super) use backtrack::{Backtracker, MAX_STEPS};
pub(super) use pike_vm::PikeVm;
pub(super) use program::{CompileError, MAX_INSTS, max_chars, parse};

/// Steps between two interrupt checks.
pub(super) const CHECK_INTERVAL: u32 = 4096;

/// Counts steps and checks for interrupts every [`CHECK_INTERVAL`] steps.
struct StepBudget<'a> {
    may_continue: super::CheckInterrupt<'a>,
    left: u32,
    taken: u64,
    /// Maximum number of steps. Checked together with interrupts.
    most: u64,
}

impl<'a> StepBudget<'a> {
    fn new(may_continue: super::CheckInterrupt<'a>, most: u64) -> Self {
        StepBudget { may_continue, left: CHECK_INTERVAL, taken: 0, most }
    }

    #[inline]
    fn charge_one(&mut self) -> Result<(), super::TooCostly> {
        self.charge(1)
    }

    #[inline]
    fn charge(&mut self, n: u32) -> Result<(), super::TooCostly> {
        if n < self.left {
            self.left -= n;
            return Ok(());
        }
        self.check_interrupt(n)
    }

    #[cold]
    fn check_interrupt(&mut self, n: u32) -> Result<(), super::TooCostly> {
        self.taken += u64::from(CHECK_INTERVAL - self.left) + u64::from(n);
        self.left = CHECK_INTERVAL;
        if self.taken > self.most {
            return Err(super::TooCostly::Backtracking);
        }
        if (self.may_continue)() { Ok(()) } else { Err(super::TooCostly::Stopped) }
    }
}

/// The character at byte `at` of the text, which must be a character boundary.
#[inline]
fn next(text: &str, at: usize) -> Option<char> {
    let first = *text.as_bytes().get(at)?;
    if first.is_ascii() { Some(char::from(first)) } else { text.get(at..)?.chars().next() }
}

/// The character before byte `at`.
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

/// Whether a zero-width assertion holds at byte `at` of the text.
fn assertion_holds(look: Look, text: &str, at: usize) -> bool {
    let (before, after) = (previous(text, at), next(text, at));
    let word = |c: Option<char>| c.is_some_and(|c| regex_syntax::try_is_word_character(c).unwrap_or(false));
    let ascii = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    match look {
        Look::Start => before.is_none(),
        Look::End => after.is_none(),
        Look::StartLF => before.is_none_or(|c| c == '\n'),
        Look::EndLF => after.is_none_or(|c| c == '\n'),
        // In Java, `^` never matches at the end of the text (`java.util.regex.Pattern.MULTILINE`).
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
