//! Replaces personal data in a cassette.
//!
//! Each distinct text becomes `scrubbed-1`, `scrubbed-2`, … in the order of the cassette. Equal texts get equal replacements, also in
//! requests, so that programs still join records by them and replay the same calls. A number says nothing about the text that it
//! replaces, unlike a hash, which can be found by trying likely texts.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use regex::{Captures, Regex};

use super::{Cassette, Content, Reply, Request};
use crate::json::Json;

/// What is replaced.
#[derive(Debug, Clone)]
pub enum Rule {
    /// The texts and numbers at a path in the answers of a tool. Equal texts are replaced everywhere.
    Path {
        /// The upstream.
        server: String,
        /// The tool.
        tool: String,
        /// The path as written, such as `visits[].owner`.
        path: String,
    },
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
        let parts = text.split_once('/').and_then(|(server, rest)| Some((server, rest.split_once(':')?)));
        let (server, (tool, path)) = parts.ok_or("expected SERVER/TOOL:PATH, such as `petstore/list-pets:[].owner`")?;
        Ok(Rule::Path { server: server.to_owned(), tool: tool.to_owned(), path: path.to_owned() })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::Path { server, tool, path } => write!(f, "{server}/{tool}:{path}"),
            Rule::Pattern(pattern) => pattern.fmt(f),
        }
    }
}

/// The replacements so far.
#[derive(Default)]
struct Replacements {
    texts: BTreeMap<String, String>,
    numbers: BTreeMap<String, String>,
}

impl Replacements {
    fn text(&mut self, text: &str) -> String {
        let next = self.texts.len() + 1;
        self.texts.entry(text.to_owned()).or_insert_with(|| format!("scrubbed-{next}")).clone()
    }

    fn number(&mut self, number: &str) -> String {
        let next = self.numbers.len() + 1;
        self.numbers.entry(number.to_owned()).or_insert_with(|| next.to_string()).clone()
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
        for rule in rules {
            let Rule::Path { server, tool, path } = rule else { continue };
            let mut is_used = false;
            if let Some(recorded) = self.tools.get_mut(&(server.clone(), tool.clone())) {
                for reply in recorded.requests.values_mut().flatten() {
                    match &mut reply.content {
                        Content::Value(value) => select(value, path, &mut all, &mut is_used),
                        Content::Text(text) | Content::Plain(text) if path.is_empty() => {
                            *text = all.text(text);
                            is_used = true;
                        }
                        _ => {}
                    }
                }
            }
            if !is_used {
                return Err(rule.clone());
            }
        }
        for recorded in self.tools.values_mut() {
            recorded.requests.values_mut().flatten().for_each(|reply| reply.change_texts(&mut |text| known(text, &all)));
        }
        self.change_requests(&mut |text| known(text, &all));
        for rule in rules {
            let Rule::Pattern(pattern) = rule else { continue };
            let mut is_used = false;
            let mut change = |text: &str| {
                is_used |= pattern.is_match(text);
                pattern.replace_all(text, |found: &Captures<'_>| all.text(&found[0])).into_owned()
            };
            for recorded in self.tools.values_mut() {
                for reply in recorded.requests.values_mut().flatten() {
                    reply.change_texts(&mut change);
                }
            }
            self.change_requests(&mut change);
            if !is_used {
                return Err(rule.clone());
            }
        }
        Ok(all.texts.len() + all.numbers.len())
    }

    fn change_requests(&mut self, change: &mut dyn FnMut(&str) -> String) {
        for recorded in self.tools.values_mut() {
            let requests = std::mem::take(&mut recorded.requests);
            for (request, replies) in requests {
                let mut value = request.value();
                change_texts(&mut value, change);
                let args = Json::parse(&request.args).map_or_else(|| request.args.clone(), |_| value.canonical());
                recorded.requests.insert(Request { args, ..request }, replies);
            }
        }
    }
}

/// Returns the replacement of a text, or the text.
fn known(text: &str, all: &Replacements) -> String {
    all.texts.get(text).cloned().unwrap_or_else(|| text.to_owned())
}

/// Replaces the texts and numbers at a path, such as `visits[].owner`.
fn select(value: &mut Json, path: &str, all: &mut Replacements, is_used: &mut bool) {
    if let Some(rest) = path.strip_prefix("[]") {
        if let Json::Array(items) = value {
            for item in items {
                select(item, rest.strip_prefix('.').unwrap_or(rest), all, is_used);
            }
        }
        return;
    }
    if path.is_empty() {
        match value {
            Json::String(text) => *text = all.text(text),
            Json::Number(number) => *number = all.number(number),
            _ => return,
        }
        *is_used = true;
        return;
    }
    let end = path.find(['.', '[']).unwrap_or(path.len());
    let (name, rest) = path.split_at(end);
    if let Some(member) = value.get_mut(name) {
        select(member, rest.strip_prefix('.').unwrap_or(rest), all, is_used);
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
    match value {
        Json::String(text) => *text = change(text),
        Json::Array(items) => {
            for item in items {
                change_texts(item, change);
            }
        }
        Json::Object(members) => {
            for (_, member) in members {
                change_texts(member, change);
            }
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
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
