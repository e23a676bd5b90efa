//! Patterns that ignore case, spelled out: `(?i)ab` as `[aA][bB]`.
//!
//! Java ignores the case of ASCII letters only, unless `(?u)` asks for all. The engines know one rule, that of all letters, and
//! bring a table for it that a pinned binary would have to relocate: three thousand pointers.

use std::fmt::Write;

/// Whose case is ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ignored {
    /// That of no letter.
    None,
    /// That of `a` to `z`: `(?i)`.
    Ascii,
    /// That of all letters: `(?iu)`.
    All,
}

/// Members of a range beyond ASCII whose other case is looked up; a longer range has both cases of what anyone means by it.
const LONGEST_RANGE: usize = 4096;

impl Ignored {
    /// Other spellings of a letter.
    fn others(self, letter: char) -> impl Iterator<Item = char> {
        let single = |mut chars: Box<dyn Iterator<Item = char>>| match (chars.next(), chars.next()) {
            (Some(only), None) => Some(only),
            _ => None,
        };
        let known = match self {
            Ignored::None => [None; 3],
            Ignored::Ascii => [(letter.is_ascii_alphabetic()).then(|| swapped(letter)), None, None],
            Ignored::All => {
                let upper = single(Box::new(letter.to_uppercase()));
                let folded = upper.and_then(|upper| single(Box::new(upper.to_lowercase())));
                [upper, single(Box::new(letter.to_lowercase())), folded]
            }
        };
        let mut seen = vec![letter];
        known.into_iter().flatten().filter(move |other| {
            let new = !seen.contains(other);
            seen.push(*other);
            new
        })
    }

    /// Writes one character, as a class where it stands outside of one and has other spellings.
    pub(super) fn write(self, letter: char, in_class: bool, out: &mut String) {
        let mut others = self.others(letter).peekable();
        if others.peek().is_none() {
            return out.push(letter);
        }
        if !in_class {
            out.push('[');
        }
        out.push(letter);
        out.extend(others);
        if !in_class {
            out.push(']');
        }
    }

    /// Writes what a range of a class has beside itself.
    pub(super) fn write_range(self, first: char, last: char, out: &mut String) {
        if self == Ignored::None {
            return;
        }
        for (from, to) in [('a', 'z'), ('A', 'Z')] {
            let (from, to) = (first.max(from), last.min(to));
            if from <= to {
                let _ = write!(out, "{}-{}", swapped(from), swapped(to));
            }
        }
        if self == Ignored::All {
            let beyond = first.max('\u{80}')..=last;
            out.extend(beyond.take(LONGEST_RANGE).flat_map(|letter| self.others(letter)));
        }
    }
}

/// An ASCII letter in the other case.
fn swapped(letter: char) -> char {
    if letter.is_ascii_lowercase() { letter.to_ascii_uppercase() } else { letter.to_ascii_lowercase() }
}
