//! The values that replace others.

use std::collections::{BTreeMap, BTreeSet};

use ptc_json::Json;
use ptc_runtime::settings::ScrubPath;

use super::{Rule, select, walk};
use crate::{Cassette, Content};

/// The replacements so far. Each has the position of the rule that made it.
#[derive(Default)]
pub(crate) struct Replacements {
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
    /// Begins after the replacements in a cassette. The originals of these are not known, so that an equal value gets another one.
    pub(crate) fn after(cassette: &Cassette, rules: &[Rule]) -> Replacements {
        let mut cassette = cassette.clone();
        let mut replacements = Replacements::default();
        for rule in rules {
            let Rule::Path(ScrubPath { server, tool, path }) = rule else { continue };
            for reply in cassette.replies_mut(server, tool) {
                let Content::Value(value) = &mut reply.content else { continue };
                select(value, path, &mut |value| {
                    if let Json::Number(found) = value {
                        replacements.used.1 = replacements.used.1.max(number_in_use(found));
                    }
                });
            }
        }
        replacements.avoid(&mut cassette);
        replacements
    }

    /// Returns the replacement of a text, which the rule at this position selects.
    pub(super) fn text(&mut self, text: &str, rule: usize) -> String {
        let next = self.used.0.saturating_add(self.texts.len() as u64 + 1);
        self.texts.entry(text.to_owned()).or_insert_with(|| (format!("{SCRUBBED}{next}"), rule)).0.clone()
    }

    /// Returns the replacement of a number, which the rule at this position selects.
    pub(super) fn number(&mut self, number: &str, rule: usize) -> String {
        if let Some((known, _)) = self.numbers.get(number) {
            return known.clone();
        }
        let replacement = loop {
            self.used.1 = self.used.1.saturating_add(1);
            let next = self.used.1.to_string();
            if !self.in_requests.contains(&next) {
                break next;
            }
        };
        self.numbers.insert(number.to_owned(), (replacement.clone(), rule));
        replacement
    }

    /// Keeps what a cassette has from becoming a replacement: texts that look like replacements, and the numbers in its requests.
    pub(super) fn avoid(&mut self, cassette: &mut Cassette) {
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
        let (text, found) = match value {
            Json::Number(number) => {
                let found = self.numbers.get(number);
                (number, found)
            }
            Json::String(text) => {
                let found = self.texts.get(text).or_else(|| self.numbers.get(text));
                (text, found)
            }
            _ => return None,
        };
        let (replacement, rule) = found?;
        text.clone_from(replacement);
        Some(*rule)
    }

    /// Returns the number of distinct values that were replaced.
    pub(super) fn len(&self) -> usize {
        self.texts.len() + self.numbers.len()
    }

    /// Returns the replacement of a text.
    pub(super) fn known(&self, text: &str) -> Option<String> {
        self.texts.get(text).map(|(replacement, _)| replacement.clone())
    }
}

/// Returns the number that a replacement has, or zero.
fn number_in_use(digits: &str) -> u64 {
    digits.parse().ok().filter(|number| *number <= MAX_NUMBER).unwrap_or(0)
}
