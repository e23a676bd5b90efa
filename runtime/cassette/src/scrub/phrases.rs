//! Finds replaced texts as words within longer texts, such as a name in a sentence.

use aho_corasick::{AhoCorasick, BuildError};

/// Minimum characters of a text that is searched for. Shorter ones are in many texts by chance.
const MIN_CHARS: usize = 3;
/// The same for texts of digits alone, which are in many texts as numbers.
const MIN_DIGITS: usize = 6;

/// Texts with their replacements, and the positions of the rules that made these.
pub(super) struct Phrases {
    finder: AhoCorasick,
    replacements: Vec<(String, usize)>,
}

impl Phrases {
    /// Prepares the search for texts. Those that are short are left out.
    pub(super) fn new<'t>(texts: impl Iterator<Item = (&'t String, &'t (String, usize))>) -> Result<Phrases, BuildError> {
        let (texts, replacements): (Vec<_>, _) =
            texts.filter(|(text, _)| is_distinctive(text)).map(|(text, replacement)| (text, replacement.clone())).unzip();
        Ok(Phrases { finder: AhoCorasick::new(texts)?, replacements })
    }

    /// Returns a text with the replacements, and the position of a rule. `None` if it contains none of the texts as words.
    pub(super) fn replace(&self, text: &str) -> Option<(String, usize)> {
        let is_word = |from, to| is_boundary(text, from) && is_boundary(text, to);
        let mut found: Vec<_> =
            self.finder.find_overlapping_iter(text).filter(|found| is_word(found.start(), found.end())).collect();
        // Of several texts that begin at the same place, the longest one is meant: a whole name, and not its first part.
        found.sort_by_key(|found| (found.start(), std::cmp::Reverse(found.end())));
        let (mut replaced, mut end, mut rule) = (String::new(), 0, None);
        for found in found.iter().filter(|found| !found.is_empty()) {
            let Some((replacement, at)) = self.replacements.get(found.pattern().as_usize()) else { continue };
            if found.start() < end {
                continue;
            }
            replaced.push_str(text.get(end..found.start()).unwrap_or_default());
            replaced.push_str(replacement);
            (end, rule) = (found.end(), Some(*at));
        }
        replaced.push_str(text.get(end..).unwrap_or_default());
        Some((replaced, rule?))
    }
}

fn is_distinctive(text: &str) -> bool {
    let least = if text.bytes().all(|byte| byte.is_ascii_digit()) { MIN_DIGITS } else { MIN_CHARS };
    text.chars().count() >= least
}

/// Whether a position is not between two letters or digits.
fn is_boundary(text: &str, at: usize) -> bool {
    let is_inner = |found: Option<char>| found.is_some_and(char::is_alphanumeric);
    let (before, after) = text.split_at_checked(at).unwrap_or_default();
    !(is_inner(before.chars().next_back()) && is_inner(after.chars().next()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn whole_words_are_replaced_and_the_longest_text_wins() {
        let texts = ["Ann", "Ann Lee", "bo", "12345", "985112", "Zoë", "a+b"];
        let texts: BTreeMap<String, (String, usize)> =
            texts.iter().enumerate().map(|(at, text)| ((*text).to_owned(), (format!("<{text}>"), at))).collect();
        let phrases = Phrases::new(texts.iter()).expect("a finder");
        let replaced = |text: &str| phrases.replace(text).map(|(text, _)| text);
        for (text, expected) in [
            ("call Ann, or ann", "call <Ann>, or ann"),
            ("Ann Lee and Ann Leeson", "<Ann Lee> and <Ann> Leeson"),
            ("Ann\nZoë: 985112", "<Ann>\n<Zoë>: <985112>"),
            ("x=a+b;", "x=<a+b>;"),
        ] {
            assert_eq!(replaced(text).as_deref(), Some(expected), "{text}");
        }
        for text in ["", "Annex, Hanna, Zoës", "bo has 12345", "9851120"] {
            assert_eq!(replaced(text), None, "{text}");
        }
    }
}
