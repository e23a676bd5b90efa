//! The values that replace others.

use std::collections::{BTreeMap, BTreeSet};

use ptc_json::Json;

use super::key::{ScrubKey, is_replacement};
use super::phrases::Phrases;
use super::{Rule, Rules, walk};
use crate::Cassette;

/// The replacements so far. Each has the position of the rule that made it.
pub(crate) struct Replacements {
    /// The key that makes them. Without one they are counted.
    key: Option<ScrubKey>,
    /// With a key, what the paths of rules select in the cassette that is extended. The originals are recognised by these.
    earlier: BTreeMap<String, usize>,
    texts: BTreeMap<String, (String, usize)>,
    numbers: BTreeMap<String, (String, usize)>,
    /// The last numbers that are in use, of texts and of numbers.
    used: (u64, u64),
    /// Numbers that requests contain, also as texts. They are not used as replacements, since two requests could become equal.
    in_requests: BTreeSet<String>,
}

/// The prefix of texts that replace others.
const SCRUBBED: &str = "scrubbed-";
/// Numbers above this one are not from a recording, which would never have reached them.
const MAX_NUMBER: u64 = u64::MAX / 2;

impl Replacements {
    /// Begins without replacements.
    pub(crate) fn new(key: Option<&ScrubKey>) -> Replacements {
        let (texts, numbers, earlier) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Replacements { key: key.cloned(), earlier, texts, numbers, used: (0, 0), in_requests: BTreeSet::new() }
    }

    /// Begins after the replacements in a cassette. Without a key, the originals of these are not known, so that an equal value gets
    /// another one.
    pub(crate) fn after(cassette: &Cassette, rules: &Rules) -> Replacements {
        let mut cassette = cassette.clone();
        let mut replacements = Replacements::new(rules.key.as_ref());
        for (at, rule) in rules.list.iter().enumerate() {
            let Rule::Path(path) = rule else { continue };
            cassette.replace_at(path, &mut |value| match value {
                Json::Number(found) if replacements.key.is_none() => {
                    replacements.used.1 = replacements.used.1.max(number_in_use(found));
                }
                Json::Number(found) => drop(replacements.earlier.insert(found.clone(), at)),
                Json::String(text) if is_replacement(text) => drop(replacements.earlier.insert(text.clone(), at)),
                _ => {}
            });
        }
        replacements.avoid(&mut cassette);
        replacements
    }

    /// Returns the replacement of a text, which the rule at this position selects.
    pub(super) fn text(&mut self, text: &str, rule: usize) -> String {
        // An upstream repeated a text of the cassette, which a program had sent.
        if self.earlier.contains_key(text) && is_replacement(text) {
            return text.to_owned();
        }
        let next = self.used.0.saturating_add(self.texts.len() as u64 + 1);
        let replacement = || self.key.as_ref().map_or_else(|| format!("{SCRUBBED}{next}"), |key| key.text(text));
        self.texts.entry(text.to_owned()).or_insert_with(|| (replacement(), rule)).0.clone()
    }

    /// Returns the replacement of a number, which the rule at this position selects.
    pub(super) fn number(&mut self, number: &str, rule: usize) -> String {
        // With a key: an upstream repeated a number of the cassette, which a program had sent.
        if self.earlier.contains_key(number) {
            return number.to_owned();
        }
        if let Some((known, _)) = self.numbers.get(number) {
            return known.clone();
        }
        let replacement = match &self.key {
            Some(key) => key.number(number),
            None => self.next_number(),
        };
        self.numbers.insert(number.to_owned(), (replacement.clone(), rule));
        replacement
    }

    /// Returns the next number that is not in use.
    fn next_number(&mut self) -> String {
        loop {
            self.used.1 = self.used.1.saturating_add(1);
            let next = self.used.1.to_string();
            if !self.in_requests.contains(&next) {
                return next;
            }
        }
    }

    /// Keeps what a cassette has from becoming a replacement: texts that look like replacements, and the numbers in its requests. A key
    /// leaves no choice.
    pub(super) fn avoid(&mut self, cassette: &mut Cassette) {
        if self.key.is_some() {
            return;
        }
        for request in cassette.tools.values().flat_map(|recorded| recorded.requests.keys()) {
            walk(&mut request.value(), &mut |value| {
                if let Json::Number(text) | Json::String(text) = value
                    && text.bytes().all(|byte| byte.is_ascii_digit())
                {
                    self.in_requests.insert(text.clone());
                }
            });
        }
        let mut last = 0;
        cassette.change_texts(&mut |found| {
            for (at, _) in found.match_indices(SCRUBBED) {
                let digits = found.get(at + SCRUBBED.len()..).unwrap_or_default();
                let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
                last = last.max(number_in_use(digits.get(..end).unwrap_or_default()));
            }
            None
        });
        self.used.0 = self.used.0.max(last);
    }

    /// Replaces a value of a request by that of an equal value in an answer. A program may have made a text of a number. Returns the
    /// position of the rule.
    pub(super) fn replace_known(&self, value: &mut Json) -> Option<usize> {
        let (replacement, rule) = match value {
            Json::Number(number) => self.known_number(number),
            Json::String(text) => self.known_text(text).or_else(|| self.known_number(text)),
            _ => None,
        }?;
        if let Json::Number(text) | Json::String(text) = value {
            *text = replacement;
        }
        Some(rule)
    }

    /// Returns the texts that paths of rules selected, to find them within longer texts. `None` if there are none, or too many for a
    /// search.
    pub(super) fn phrases(&self, rules: &[Rule]) -> Option<Phrases> {
        let is_at_path = |at: usize| matches!(rules.get(at), Some(Rule::Path(_)));
        let mut texts = self.texts.iter().filter(|(_, (_, at))| is_at_path(*at)).peekable();
        texts.peek()?;
        Phrases::new(texts).ok()
    }

    /// Returns the texts that were replaced.
    pub(super) fn originals(&self) -> impl Iterator<Item = &String> {
        self.texts.keys()
    }

    /// Returns the number of distinct values that were replaced.
    pub(super) fn len(&self) -> usize {
        self.texts.len() + self.numbers.len()
    }

    /// Returns the replacement of a text.
    pub(super) fn known(&self, text: &str) -> Option<String> {
        self.known_text(text).map(|(replacement, _)| replacement)
    }

    fn known_text(&self, text: &str) -> Option<(String, usize)> {
        self.texts.get(text).cloned().or_else(|| self.earlier(|key| key.text(text)))
    }

    fn known_number(&self, number: &str) -> Option<(String, usize)> {
        self.numbers.get(number).cloned().or_else(|| self.earlier(|key| key.number(number)))
    }

    /// Returns a replacement if the cassette that is extended has it.
    fn earlier(&self, replacement: impl FnOnce(&ScrubKey) -> String) -> Option<(String, usize)> {
        let key = self.key.as_ref().filter(|_| !self.earlier.is_empty())?;
        self.earlier.get_key_value(&replacement(key)).map(|(replacement, rule)| (replacement.clone(), *rule))
    }
}

/// Returns the number that a replacement has, or zero.
fn number_in_use(digits: &str) -> u64 {
    digits.parse().ok().filter(|number| *number <= MAX_NUMBER).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use zeroize::Zeroizing;

    use super::*;
    use crate::scrub::{Replaced, ScrubError};

    /// Two recordings. The second one has the records in another order, and a request with a name and a number of the first one.
    const FIRST: &str = r#"{"cassette": 1, "tools": {"s/list": {"definition": "d", "requests": [{"args": {}, "replies": [
        {"value": [{"name": "ann", "id": 7}, {"name": "bob", "id": 8}]}]}]}}}"#;
    const SECOND: &str = r#"{"cassette": 1, "tools": {"s/find": {"definition": "d", "requests": [
        {"args": {"id": 8, "key": "7", "name": "bob"}, "replies": [{"value": {"owner": "bob", "other": "ann", "count": 7}}]}]}}}"#;

    fn rules(rules: &[&str], key: char) -> Rules {
        let key = ScrubKey::new(Zeroizing::new(key.to_string().repeat(40).into_bytes())).expect("a key");
        Rules { list: rules.iter().map(|rule| rule.parse().expect("a rule")).collect(), key: Some(key) }
    }

    fn cassette(text: &str) -> Cassette {
        Cassette::read("c.json", text).expect("a cassette")
    }

    #[test]
    fn equal_values_get_equal_replacements_in_recordings_with_the_same_key() {
        let rules = rules(&["s/list:[].name", "s/list:[].id"], 'k');
        let key = rules.key.clone().expect("a key");
        let (mut first, mut swapped) = (cassette(FIRST), cassette(FIRST));
        swapped.change_values(|_, _, value| {
            if let Json::Array(rows) = value {
                rows.reverse();
            }
        });
        for cassette in [&mut first, &mut swapped] {
            assert_eq!(cassette.scrub(&rules).expect("it is scrubbed").values, 4);
            let text = cassette.to_string();
            for (name, id) in [("ann", "7"), ("bob", "8")] {
                let row = format!(r#"{{"id": {}, "name": "{}"}}"#, key.number(id), key.text(name));
                assert!(text.contains(&row), "{row}: {text}");
            }
        }
        let with_other_key = &super::tests::rules(&["s/list:[].name", "s/list:[].id"], 'o');
        let mut other = cassette(FIRST);
        other.scrub(with_other_key).expect("it is scrubbed");
        assert!(!other.to_string().contains(&key.text("ann")), "another key makes other replacements");
    }

    #[test]
    fn values_that_an_earlier_recording_replaced_are_replaced_in_new_calls() {
        let rules = rules(&["s/list:[].name", "s/list:[].id"], 'k');
        let key = rules.key.clone().expect("a key");
        let mut first = cassette(FIRST);
        first.scrub(&rules).expect("it is scrubbed");
        let mut replacements = Replacements::after(&first, &rules);
        let mut second = cassette(SECOND);
        let Replaced { merged, .. } = second.replace(&rules.list, &mut replacements);
        assert!(merged.is_empty());
        let (ann, bob, text) = (key.text("ann"), key.text("bob"), second.to_string());
        let request = format!(r#"{{"id": {}, "key": "{}", "name": "{bob}"}}"#, key.number("8"), key.number("7"));
        assert!(text.contains(&request), "{request}: {text}");
        // Numbers of other answers are equal by chance.
        let answer = format!(r#"{{"count": 7, "other": "{ann}", "owner": "{bob}"}}"#);
        assert!(text.contains(&answer), "{answer}: {text}");
        // A replacement of the first recording that comes back stays as it is.
        let mut again = cassette(&FIRST.replace("ann", &ann));
        again.replace(&rules.list, &mut replacements);
        assert!(again.to_string().contains(&format!(r#""name": "{ann}""#)), "{again}");
    }

    #[test]
    fn rule_with_a_key_that_makes_requests_equal_is_refused_if_their_answers_differ() {
        let mut rules = rules(&[], 'k');
        rules.list = vec![Rule::pattern("ann").expect("a pattern")];
        let replacement = rules.key.as_ref().expect("a key").text("ann");
        let cassette = |reply: &str| {
            cassette(&format!(
                r#"{{"cassette": 1, "tools": {{"s/t": {{"definition": "d", "requests": [
                {{"args": {{"q": "ann"}}, "replies": [{{"value": 1}}]}},
                {{"args": {{"q": "{replacement}"}}, "replies": [{{"value": {reply}}}]}}]}}}}}}"#
            ))
        };
        let error = cassette("2").scrub(&rules).expect_err("the answers differ");
        assert!(matches!(error, ScrubError::Merged(_)), "{error}");
        assert_eq!(error.to_string(), "the rule ann makes two requests of s/t equal that got different answers");
        assert_eq!(cassette("1").scrub(&rules).ok().map(|scrubbed| scrubbed.values), Some(1), "equal answers do no harm");
    }
}
