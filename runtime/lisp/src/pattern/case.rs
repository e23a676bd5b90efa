//! Patterns that ignore case, spelled out: `(?i)ab` as `[aA][bB]`.
//!
//! Java ignores the case of ASCII letters only, unless `(?u)` asks for all. The engines know one rule, that of all letters, and
//! bring a table for it that a pinned binary would have to relocate: three thousand pointers.

use crate::sorting;
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

/// Letters that share their case with another pair: no member of the pair leads to them.
const STRAYS: [char; 33] = [
    '\u{B5}', '\u{130}', '\u{131}', '\u{17F}', '\u{1C5}', '\u{1C8}', '\u{1CB}', '\u{1F2}', '\u{345}', '\u{3C2}', '\u{3D0}',
    '\u{3D1}', '\u{3D5}', '\u{3D6}', '\u{3F0}', '\u{3F1}', '\u{3F4}', '\u{3F5}', '\u{1C80}', '\u{1C81}', '\u{1C82}', '\u{1C83}',
    '\u{1C84}', '\u{1C85}', '\u{1C86}', '\u{1C87}', '\u{1C88}', '\u{1E9B}', '\u{1E9E}', '\u{1FBE}', '\u{2126}', '\u{212A}',
    '\u{212B}',
];

/// The upper case as one character, as Java has it.
fn upper(letter: char) -> char {
    let code = u32::from(letter);
    // Small letters with a iota below: one capital each, though Unicode's full mapping writes the iota beside it.
    let with_iota = match code {
        0x1F80..=0x1F87 | 0x1F90..=0x1F97 | 0x1FA0..=0x1FA7 => char::from_u32(code + 8),
        0x1FB3 | 0x1FC3 | 0x1FF3 => char::from_u32(code + 9),
        _ => None,
    };
    with_iota.or_else(|| only(letter.to_uppercase())).unwrap_or(letter)
}

/// The lower case as one character, as Java has it.
fn lower(letter: char) -> char {
    if letter == 'İ' { 'i' } else { only(letter.to_lowercase()).unwrap_or(letter) }
}

/// What all spellings of a letter have in common.
fn folded(letter: char) -> char {
    lower(upper(letter))
}

fn only(mut chars: impl Iterator<Item = char>) -> Option<char> {
    chars.next().filter(|_| chars.next().is_none())
}

impl Ignored {
    /// Other spellings of a letter.
    fn others(self, letter: char) -> Vec<char> {
        match self {
            Ignored::Ascii if letter.is_ascii_alphabetic() => vec![swapped(letter)],
            Ignored::None | Ignored::Ascii => Vec::new(),
            Ignored::All => {
                let (up, fold) = (upper(letter), folded(letter));
                // Java takes a letter without a capital for one without case: `ß` is not `ẞ`.
                let strays = STRAYS.into_iter().filter(|stray| up != fold && folded(*stray) == fold);
                let mut others: Vec<char> = [up, lower(letter), fold, upper(fold)].into_iter().chain(strays).collect();
                sorting::by(&mut others, Ord::cmp);
                others.dedup();
                others.retain(|other| *other != letter);
                others
            }
        }
    }

    /// Writes one character, as a class where it stands outside of one and has other spellings.
    pub(super) fn write(self, letter: char, in_class: bool, out: &mut String) {
        let others = self.others(letter);
        if others.is_empty() {
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

    /// Writes what a range of a class has beside itself; how many letters were looked up for that.
    pub(super) fn write_range(self, first: char, last: char, out: &mut String) -> usize {
        if self == Ignored::None {
            return 0;
        }
        for (from, to) in [('a', 'z'), ('A', 'Z')] {
            let (from, to) = (first.max(from), last.min(to));
            if from <= to {
                let _ = write!(out, "{}-{}", swapped(from), swapped(to));
            }
        }
        if self == Ignored::Ascii {
            return 0;
        }
        let within = |letter: char| (first..=last).contains(&letter);
        // As Java has it: its capital is in the range, or the small letter of that.
        let means = |other: &char| !within(*other) && (within(upper(*other)) || within(folded(*other)));
        out.extend(STRAYS.into_iter().filter(means));
        let beyond = (first.max('\u{80}')..=last).take(LONGEST_RANGE);
        let mut looked_up = 0;
        for letter in beyond {
            looked_up += 1;
            out.extend([upper(letter), lower(letter)].into_iter().filter(means));
        }
        looked_up
    }
}

/// An ASCII letter in the other case.
fn swapped(letter: char) -> char {
    if letter.is_ascii_lowercase() { letter.to_ascii_uppercase() } else { letter.to_ascii_lowercase() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_a_letter_are_spellings_of_each_other() {
        let mut cased = 0;
        for letter in '\0'..=char::MAX {
            let others = Ignored::All.others(letter);
            cased += usize::from(!others.is_empty());
            for other in &others {
                // The one letter that has a capital and is not its small letter.
                if (letter, *other) == ('ẞ', 'ß') {
                    continue;
                }
                let mut all = Ignored::All.others(*other);
                all.push(*other);
                all.sort_unstable();
                let mut same = others.clone();
                same.push(letter);
                same.sort_unstable();
                assert_eq!(all, same, "{letter} {other}");
            }
        }
        assert!(cased > 2700, "{cased}");
    }

    #[test]
    fn no_stray_is_led_to() {
        for letter in '\0'..=char::MAX {
            for led in [upper(letter), lower(letter)] {
                assert!(led == letter || !STRAYS.contains(&led), "{letter} {led}");
            }
        }
    }
}
