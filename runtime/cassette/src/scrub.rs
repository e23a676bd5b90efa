//! Replaces personal data in a cassette.
//!
//! Each distinct text becomes `scrubbed-1`, `scrubbed-2`, … in the order of the cassette. Equal texts get equal replacements, also in
//! requests, so that programs still join records by them and replay the same calls. A number is replaced at its path and in requests,
//! since other answers have equal numbers by chance. A number says nothing about the text that it
//! replaces, unlike a hash, which can be found by trying likely texts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use regex::{Captures, Regex};

use crate::{Cassette, Content, Reply, Request};
use ptc_json::Json;
use ptc_runtime::settings::ScrubPath;

/// What is replaced.
#[derive(Debug, Clone)]
pub enum Rule {
    /// The texts and numbers at a path in the answers of a tool. Equal texts are replaced everywhere.
    Path(ScrubPath),
    /// Each match in any text.
    Pattern(Regex),
}

impl Rule {
    /// Creates a rule for the matches of a regular expression.
    ///
    /// # Errors
    ///
    /// Returns a sentence if it is not a regular expression.
    pub fn pattern(text: &str) -> Result<Rule, String> {
        Regex::new(text).map(Rule::Pattern).map_err(|error| error.to_string())
    }
}

impl FromStr for Rule {
    type Err = String;

    /// Parses `SERVER/TOOL:PATH`.
    fn from_str(text: &str) -> Result<Rule, String> {
        text.parse().map(Rule::Path).map_err(str::to_owned)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::Path(path) => path.fmt(f),
            Rule::Pattern(pattern) => pattern.fmt(f),
        }
    }
}

/// The replacements so far.
#[derive(Default)]
pub(crate) struct Replacements {
    texts: BTreeMap<String, String>,
    numbers: BTreeMap<String, String>,
    /// The last numbers that an earlier recording may have used, of texts and of numbers.
    used: (u64, u64),
    /// The numbers in requests, which do not replace others: two requests would become equal.
    in_requests: BTreeSet<String>,
}

/// The prefix of texts that replace others.
const SCRUBBED: &str = "scrubbed-";

impl Replacements {
    /// Begins after the replacements in a cassette. The originals of these are not known, so that an equal value gets another one.
    pub(crate) fn after(cassette: &Cassette, rules: &[Rule]) -> Replacements {
        let mut cassette = cassette.clone();
        let (mut text, mut number) = (0, 0);
        for rule in rules {
            let Rule::Path(ScrubPath { server, tool, path }) = rule else { continue };
            for reply in cassette.replies_mut(server, tool) {
                let Content::Value(value) = &mut reply.content else { continue };
                select(value, path, &mut |value| {
                    if let Json::Number(found) = value {
                        number = number.max(found.parse().unwrap_or(0));
                    }
                });
            }
        }
        let mut see = |found: &str| {
            for (at, _) in found.match_indices(SCRUBBED) {
                let digits = found.get(at + SCRUBBED.len()..).unwrap_or_default();
                let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
                text = text.max(digits.get(..end).unwrap_or_default().parse().unwrap_or(0));
            }
            found.to_owned()
        };
        cassette.change_texts(&mut see);
        let mut replacements = Replacements { used: (text, number), ..Replacements::default() };
        replacements.avoid_requests(&cassette);
        replacements
    }

    fn text(&mut self, text: &str) -> String {
        let next = self.used.0.saturating_add(self.texts.len() as u64 + 1);
        self.texts.entry(text.to_owned()).or_insert_with(|| format!("{SCRUBBED}{next}")).clone()
    }

    fn number(&mut self, number: &str) -> String {
        if let Some(known) = self.numbers.get(number) {
            return known.clone();
        }
        let replacement = loop {
            self.used.1 = self.used.1.saturating_add(1);
            let next = self.used.1.to_string();
            if !self.in_requests.contains(&next) {
                break next;
            }
        };
        self.numbers.insert(number.to_owned(), replacement.clone());
        replacement
    }

    /// Keeps the numbers in the requests of a cassette from becoming replacements.
    fn avoid_requests(&mut self, cassette: &Cassette) {
        for request in cassette.tools.values().flat_map(|recorded| recorded.requests.keys()) {
            walk(&mut request.value(), &mut |value| {
                if let Json::Number(number) = value {
                    self.in_requests.insert(number.clone());
                }
            });
        }
    }

    /// Replaces a value of a request by that of an equal value in an answer. A program may have made a text of a number.
    fn replace_known(&self, value: &mut Json) {
        match value {
            Json::Number(number) => {
                if let Some(replacement) = self.numbers.get(number) {
                    number.clone_from(replacement);
                }
            }
            Json::String(text) => {
                if let Some(replacement) = self.texts.get(text).or_else(|| self.numbers.get(text)) {
                    text.clone_from(replacement);
                }
            }
            _ => {}
        }
    }

    /// Returns the replacement of a text, or the text.
    fn known(&self, text: &str) -> String {
        self.texts.get(text).cloned().unwrap_or_else(|| text.to_owned())
    }
}

impl Cassette {
    /// Replaces what rules select. Returns the number of distinct values that were replaced.
    ///
    /// # Errors
    ///
    /// Returns the first rule that selects nothing, which is likely misspelt. The cassette is not fit for use then.
    pub fn scrub(&mut self, rules: &[Rule]) -> Result<usize, Rule> {
        let mut all = Replacements::default();
        match self.replace(rules, &mut all).into_iter().next() {
            Some(unused) => Err(unused),
            None => Ok(all.texts.len() + all.numbers.len()),
        }
    }

    /// Replaces what rules select. Returns the rules that select nothing.
    pub(crate) fn replace(&mut self, rules: &[Rule], all: &mut Replacements) -> Vec<Rule> {
        all.avoid_requests(self);
        let mut unused = Vec::new();
        for rule in rules {
            let Rule::Path(ScrubPath { server, tool, path }) = rule else { continue };
            let mut is_used = false;
            for reply in self.replies_mut(server, tool) {
                let mut replace = |value: &mut Json| {
                    match value {
                        Json::String(text) => *text = all.text(text),
                        Json::Number(number) => *number = all.number(number),
                        _ => return,
                    }
                    is_used = true;
                };
                if let Some(body) = &mut reply.body {
                    select(body, path, &mut replace);
                }
                match &mut reply.content {
                    Content::Value(value) => select(value, path, &mut replace),
                    Content::RawJson(text) | Content::Text(text) if !path.is_empty() => {
                        // Of a member that is repeated, the last value is kept.
                        let Ok(value) = serde_json::from_str::<serde_json::Value>(text) else { continue };
                        let mut value = Json::from(&value);
                        let before = value.canonical();
                        select(&mut value, path, &mut replace);
                        let after = value.canonical();
                        if after != before {
                            *text = after;
                        }
                    }
                    Content::Text(text) | Content::Plain(text) if path.is_empty() => {
                        *text = all.text(text);
                        is_used = true;
                    }
                    _ => {}
                }
            }
            if !is_used {
                unused.push(rule.clone());
            }
        }
        self.change_replies(&mut |text| all.known(text));
        self.change_requests(&mut |value| all.replace_known(value));
        for rule in rules {
            let Rule::Pattern(pattern) = rule else { continue };
            let mut is_used = false;
            self.change_texts(&mut |text| {
                is_used |= pattern.is_match(text);
                pattern.replace_all(text, |found: &Captures<'_>| all.text(&found[0])).into_owned()
            });
            if !is_used {
                unused.push(rule.clone());
            }
        }
        unused
    }

    /// Returns the replies of a tool.
    fn replies_mut(&mut self, server: &str, tool: &str) -> impl Iterator<Item = &mut Reply> {
        let recorded = self.tools.get_mut(&(server.to_owned(), tool.to_owned()));
        recorded.into_iter().flat_map(|recorded| recorded.requests.values_mut().flatten())
    }

    /// Changes the texts of all replies and requests, but not headers.
    fn change_texts(&mut self, change: &mut dyn FnMut(&str) -> String) {
        self.change_replies(change);
        self.change_requests(&mut |value| {
            if let Json::String(text) = value {
                *text = change(text);
            }
        });
    }

    fn change_replies(&mut self, change: &mut dyn FnMut(&str) -> String) {
        let replies = self.tools.values_mut().flat_map(|recorded| recorded.requests.values_mut().flatten());
        replies.for_each(|reply| reply.change_texts(change));
    }

    /// Changes the values of all requests.
    fn change_requests(&mut self, change: &mut dyn FnMut(&mut Json)) {
        for recorded in self.tools.values_mut() {
            let requests = std::mem::take(&mut recorded.requests);
            for (request, replies) in requests {
                let mut value = request.value();
                walk(&mut value, change);
                let args = Json::parse(&request.args).map_or_else(|| request.args.clone(), |_| value.canonical());
                recorded.requests.insert(Request { args, ..request }, replies);
            }
        }
    }
}

/// Calls a function for the values at a path, such as `visits[].owner`.
fn select(value: &mut Json, path: &str, each: &mut dyn FnMut(&mut Json)) {
    if let Some(rest) = path.strip_prefix("[]") {
        if let Json::Array(items) = value {
            for item in items {
                select(item, rest.strip_prefix('.').unwrap_or(rest), each);
            }
        }
        return;
    }
    if path.is_empty() {
        each(value);
        return;
    }
    let end = path.find(['.', '[']).unwrap_or(path.len());
    let (name, rest) = path.split_at(end);
    if let Some(member) = value.get_mut(name) {
        select(member, rest.strip_prefix('.').unwrap_or(rest), each);
    }
}

impl Reply {
    /// Changes the texts of a reply, but not its headers.
    fn change_texts(&mut self, change: &mut dyn FnMut(&str) -> String) {
        match &mut self.content {
            Content::None => {}
            Content::Value(value) => change_texts(value, change),
            Content::RawJson(text) | Content::Text(text) | Content::Plain(text) => *text = change(text),
            Content::Fault { message, .. } => *message = change(message),
        }
        if let Some(body) = &mut self.body {
            change_texts(body, change);
        }
    }
}

fn change_texts(value: &mut Json, change: &mut dyn FnMut(&str) -> String) {
    walk(value, &mut |value| {
        if let Json::String(text) = value {
            *text = change(text);
        }
    });
}

/// Calls a function for the scalars of a value.
fn walk(value: &mut Json, each: &mut dyn FnMut(&mut Json)) {
    match value {
        Json::Array(items) => items.iter_mut().for_each(|item| walk(item, each)),
        Json::Object(members) => members.iter_mut().for_each(|(_, member)| walk(member, each)),
        scalar => each(scalar),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASSETTE: &str = r#"{"cassette": 1, "tools": {
        "shop/get": {"definition": "d", "requests": [
            {"args": {"customer": "Ann"}, "replies": [{"value": {"mail": "ann@example.com", "id": 7}}]}]},
        "shop/list": {"definition": "d", "requests": [{"args": {}, "replies": [
            {"value": {"rows": [{"name": "Ann", "age": 7}, {"name": "Ben", "age": 8}, {"name": "Ann", "age": 7}]}},
            {"text": "call ben@example.com or Ann"}]}]}}}"#;

    fn scrubbed(rules: &[Rule]) -> Result<(usize, String), String> {
        let mut cassette = Cassette::read("c.json", CASSETTE).map_err(|error| error.to_string())?;
        let count = cassette.scrub(rules).map_err(|rule| rule.to_string())?;
        let text = cassette.to_string();
        let again = Cassette::read("c.json", &text).map(|read| read.to_string());
        assert_eq!(again.as_ref(), Ok(&text), "{text}");
        Ok((count, text))
    }

    fn path(text: &str) -> Rule {
        text.parse().expect("a rule")
    }

    #[test]
    fn equal_texts_get_equal_replacements_in_answers_and_requests() {
        let rules = [path("shop/list:rows[].name"), path("shop/list:rows[].age")];
        let (count, text) = scrubbed(&rules).expect("it is scrubbed");
        assert_eq!(count, 4);
        assert!(text.contains(r#""args": {"customer": "scrubbed-1"}"#), "{text}");
        let rows = r#"[{"age": 1, "name": "scrubbed-1"}, {"age": 2, "name": "scrubbed-2"}, {"age": 1, "name": "scrubbed-1"}]"#;
        assert!(text.contains(rows), "{text}");
        assert!(text.contains(r#""id": 7"#), "numbers are replaced at their paths alone: {text}");
    }

    #[test]
    fn numbers_of_requests_get_the_replacements_of_answers() {
        let text = r#"{"cassette": 1, "tools": {
            "shop/get": {"definition": "d", "requests": [
                {"args": {"id": 1}, "replies": [{"value": "one"}]},
                {"args": {"id": 7}, "replies": [{"value": "seven"}]},
                {"args": {"key": "7"}, "replies": [{"value": 7}]}]},
            "shop/list": {"definition": "d", "requests": [{"args": {}, "replies": [{"value": [{"id": 7}, {"id": 8}]}]}]}}}"#;
        let mut cassette = Cassette::read("c.json", text).expect("a cassette");
        assert_eq!(cassette.scrub(&[path("shop/list:[].id")]).map_err(|rule| rule.to_string()), Ok(2));
        let text = cassette.to_string();
        // 1 is not a replacement, since a request has it.
        for part in [
            r#"{"args": {"id": 1}, "replies": [{"value": "one"}]}"#,
            r#"{"args": {"id": 2}, "replies": [{"value": "seven"}]}"#,
            r#"{"args": {"key": "2"}, "replies": [{"value": 7}]}"#,
            r#"{"value": [{"id": 2}, {"id": 3}]}"#,
        ] {
            let squeezed = text.split_whitespace().collect::<String>();
            assert!(squeezed.contains(&part.split_whitespace().collect::<String>()), "{part}\n{text}");
        }
    }

    #[test]
    fn matches_of_patterns_are_replaced_in_every_text() {
        let (count, text) = scrubbed(&[Rule::pattern("[a-z]+@[a-z.]+").expect("a pattern")]).expect("it is scrubbed");
        assert_eq!(count, 2);
        assert!(text.contains(r#""mail": "scrubbed-1""#) && text.contains("call scrubbed-2 or Ann"), "{text}");
    }

    #[test]
    fn rule_that_selects_nothing_is_refused() {
        for rule in [path("shop/list:rows[].nam"), path("shop/lists:rows"), Rule::pattern("zebra").expect("a pattern")] {
            assert_eq!(scrubbed(std::slice::from_ref(&rule)), Err(rule.to_string()));
        }
        assert!("shop/list".parse::<Rule>().is_err() && Rule::pattern("(").is_err());
    }
}
