//! Finds replaced texts as words within longer texts, such as a name in a sentence.

use aho_corasick::{AhoCorasick, BuildError};
use ptc_json::Json;

/// Minimum characters of a text that is searched for. Shorter ones are in many texts by chance.
const MIN_CHARS: usize = 3;
/// Minimum digits of a text of only digits. Shorter ones are numbers in many texts.
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

/// Whether a text of JSON, or each line of JSON in a text, still has the same members after a replacement. A number, a keyword or a name
/// may be equal to a text by chance.
pub(super) fn keeps_json(before: &str, after: &str) -> bool {
    let members =
        |text: &str| Json::parse(text).filter(|json| matches!(json, Json::Object(_) | Json::Array(_))).map(|json| names(&json));
    if let Some(before) = members(before) {
        return members(after) == Some(before);
    }
    let (before, after) = (before.lines().map(members), after.lines().map(members));
    before.clone().flatten().next().is_none() || before.eq(after)
}

/// Returns the names of all members in their order.
fn names(json: &Json) -> Vec<String> {
    let of_members = json.members().iter().flat_map(|(name, value)| std::iter::once(name.clone()).chain(names(value)));
    of_members.chain(json.elements().iter().flat_map(names)).collect()
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
