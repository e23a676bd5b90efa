//! Case-insensitive patterns, expanded: `(?i)ab` becomes `[aA][bB]`.
//!
//! Java ignores the case of ASCII letters only, unless `(?u)` asks for all. The engines know one rule, that of all letters, and
//! bring a table for it that a pinned binary would have to relocate: three thousand pointers.

use std::fmt::Write;

/// The letters whose case is ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CaseFolding {
    /// No letters.
    None,
    /// `a` to `z`: `(?i)`.
    Ascii,
    /// All letters: `(?iu)`.
    All,
}

/// Maximum number of non-ASCII members of a range whose other case is looked up. A longer range normally includes both cases.
const MAX_RANGE_LEN: usize = 4096;

/// Letters that fold to the same letter as another pair, although simple case mapping of the pair does not lead to them.
const EXTRA_CASE_VARIANTS: [char; 33] = [
    '\u{B5}', '\u{130}', '\u{131}', '\u{17F}', '\u{1C5}', '\u{1C8}', '\u{1CB}', '\u{1F2}', '\u{345}', '\u{3C2}', '\u{3D0}',
    '\u{3D1}', '\u{3D5}', '\u{3D6}', '\u{3F0}', '\u{3F1}', '\u{3F4}', '\u{3F5}', '\u{1C80}', '\u{1C81}', '\u{1C82}', '\u{1C83}',
    '\u{1C84}', '\u{1C85}', '\u{1C86}', '\u{1C87}', '\u{1C88}', '\u{1E9B}', '\u{1E9E}', '\u{1FBE}', '\u{2126}', '\u{212A}',
    '\u{212B}',
];

/// The upper case as one character, as in Java's `Character.toUpperCase`.
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

/// The lower case as one character, as in Java's `Character.toLowerCase`.
fn lower(letter: char) -> char {
    if letter == 'İ' { 'i' } else { only(letter.to_lowercase()).unwrap_or(letter) }
}

/// The folded form that all case variants of a letter share.
fn folded(letter: char) -> char {
    lower(upper(letter))
}

fn only(mut chars: impl Iterator<Item = char>) -> Option<char> {
    chars.next().filter(|_| chars.next().is_none())
}

impl CaseFolding {
    /// Other case variants of a letter.
    fn others(self, letter: char) -> Vec<char> {
        match self {
            CaseFolding::Ascii if letter.is_ascii_alphabetic() => vec![swapped(letter)],
            CaseFolding::None | CaseFolding::Ascii => Vec::new(),
            CaseFolding::All => {
                let (up, fold) = (upper(letter), folded(letter));
                // In Java a letter without an upper case has no case: `ß` does not match `ẞ`.
                let variants = EXTRA_CASE_VARIANTS.into_iter().filter(|variant| up != fold && folded(*variant) == fold);
                let mut others: Vec<char> = [up, lower(letter), fold, upper(fold)].into_iter().chain(variants).collect();
                others.sort_unstable();
                others.dedup();
                others.retain(|other| *other != letter);
                others
            }
        }
    }

    /// Writes one character, as a class if it is outside of one and has other case variants.
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

    /// Writes the case variants of the members of a range. Returns the number of case look-ups.
    pub(super) fn write_range(self, first: char, last: char, out: &mut String) -> usize {
        if self == CaseFolding::None {
            return 0;
        }
        for (from, to) in [('a', 'z'), ('A', 'Z')] {
            let (from, to) = (first.max(from), last.min(to));
            if from <= to {
                let _ = write!(out, "{}-{}", swapped(from), swapped(to));
            }
        }
        if self == CaseFolding::Ascii {
            return 0;
        }
        let within = |letter: char| (first..=last).contains(&letter);
        // As in Java: its upper case is in the range, or the lower case of that.
        let means = |other: &char| !within(*other) && (within(upper(*other)) || within(folded(*other)));
        out.extend(EXTRA_CASE_VARIANTS.into_iter().filter(means));
        let beyond = (first.max('\u{80}')..=last).take(MAX_RANGE_LEN);
        let mut case_lookups = 0;
        for letter in beyond {
            case_lookups += 1;
            out.extend([upper(letter), lower(letter)].into_iter().filter(means));
        }
        case_lookups
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
    fn case_variants_are_symmetric() {
        let mut cased = 0;
        for letter in '\0'..=char::MAX {
            let others = CaseFolding::All.others(letter);
            cased += usize::from(!others.is_empty());
            for other in &others {
                // The one letter that has a capital and is not its small letter.
                if (letter, *other) == ('ẞ', 'ß') {
                    continue;
                }
                let mut all = CaseFolding::All.others(*other);
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
    fn extra_case_variants_are_not_reached_by_simple_case_mapping() {
        for letter in '\0'..=char::MAX {
            for led in [upper(letter), lower(letter)] {
                assert!(led == letter || !EXTRA_CASE_VARIANTS.contains(&led), "{letter} {led}");
            }
        }
    }
}
