//! Replaces personal data in a cassette.
//!
//! Each distinct text becomes `scrubbed-1`, `scrubbed-2`, … in the order of the cassette. Equal texts get equal replacements, also in
//! requests, so that programs still join records by them and replay the same calls. A number is replaced at its path and in requests,
//! since other answers have equal numbers by chance. A text is also replaced as a word within other texts, unless the text is short. A
//! counter says nothing about the text that the counter replaces, unlike a hash without a key, which can be found by trying likely texts.
//!
//! With a secret [key](ScrubKey), a replacement is a keyed hash, so that it is the same in all recordings with this key.
//!
//! No counted replacement is a value that the cassette already has, so that different requests stay different. The matches of a pattern
//! can still make two requests equal: `scrubbed-1` followed by `0` is also the tenth replacement. With a key, a request that has the
//! replacement of another one becomes equal to it.

mod key;
mod leftovers;
mod phrases;
mod replacements;
mod rule;

use std::collections::BTreeMap;

use regex::Captures;

use crate::{Cassette, Content, Reply, Request, merge};
use ptc_json::Json;
use ptc_runtime::settings::ScrubPath;

pub use key::{KeyError, ScrubKey};
pub(crate) use replacements::Replacements;
pub use rule::{MergedRequests, Rule, Rules, ScrubError};

/// What [`Cassette::scrub`] replaced.
#[derive(Debug, Clone, Default)]
pub struct Scrubbed {
    /// The number of distinct values.
    pub values: usize,
    /// The places where the cassette still has a replaced text that is not very short: as a part of a word, in a name of a member, in a
    /// header, or with letters of another case.
    pub leftovers: Vec<String>,
}

/// The outcome of a replacement.
pub(crate) struct Replaced {
    /// The positions of the rules that selected nothing.
    pub(crate) unused: Vec<usize>,
    /// The requests that became equal. The answers to the first one are kept.
    pub(crate) merged: Vec<MergedRequests>,
}

impl Cassette {
    /// Replaces what rules select.
    ///
    /// # Errors
    ///
    /// A rule selects nothing, or it makes two requests equal that got different answers. The cassette is not fit for use then.
    pub fn scrub(&mut self, rules: &Rules) -> Result<Scrubbed, ScrubError> {
        let mut all = Replacements::new(rules.key.as_ref());
        let Replaced { unused, merged } = self.replace(&rules.list, &mut all);
        if let Some(rule) = unused.into_iter().find_map(|at| rules.list.get(at)) {
            return Err(ScrubError::Unused(rule.clone()));
        }
        match merged.into_iter().next() {
            Some(merged) => Err(ScrubError::Merged(merged)),
            None => Ok(Scrubbed { values: all.len(), leftovers: leftovers::find(self, all.originals()) }),
        }
    }

    /// Replaces what rules select.
    pub(crate) fn replace(&mut self, rules: &[Rule], all: &mut Replacements) -> Replaced {
        if rules.is_empty() {
            return Replaced { unused: Vec::new(), merged: Vec::new() };
        }
        all.avoid(self);
        let mut unused = Vec::new();
        for (at, rule) in rules.iter().enumerate() {
            let Rule::Path(path) = rule else { continue };
            if !self.replace_at(path, &mut |value| match value {
                Json::String(text) => *text = all.text(text, at),
                Json::Number(number) => *number = all.number(number, at),
                _ => {}
            }) {
                unused.push(at);
            }
        }
        self.change_replies(&mut |text| all.known(text));
        let mut merged = self.change_requests(rules, &mut |value| all.replace_known(value));
        for (at, rule) in rules.iter().enumerate() {
            let Rule::Pattern(pattern) = rule else { continue };
            let mut is_used = false;
            let mut change = |text: &str| {
                if !pattern.is_match(text) {
                    return None;
                }
                is_used = true;
                Some(pattern.replace_all(text, |found: &Captures<'_>| all.text(&found[0], at)).into_owned())
            };
            self.change_replies(&mut change);
            merged.extend(self.change_requests(rules, &mut |value| {
                let Json::String(text) = value else { return None };
                *text = change(text)?;
                Some(at)
            }));
            if !is_used {
                unused.push(at);
            }
        }
        // The patterns come before, since they match the words as they were recorded.
        if let Some(phrases) = all.phrases(rules) {
            self.change_replies(&mut |text| {
                phrases.replace(text).map(|(replaced, _)| replaced).filter(|replaced| phrases::keeps_json(text, replaced))
            });
            merged.extend(self.change_requests(rules, &mut |value| {
                let Json::String(text) = value else { return None };
                let (replaced, rule) = phrases.replace(text)?;
                *text = replaced;
                Some(rule)
            }));
        }
        Replaced { unused, merged }
    }

    /// Replaces the texts and numbers at a path. Returns whether there are any.
    fn replace_at(&mut self, ScrubPath { server, tool, path }: &ScrubPath, replace: &mut dyn FnMut(&mut Json)) -> bool {
        let mut is_used = false;
        for reply in self.replies_mut(server, tool) {
            let mut replace = |value: &mut Json| {
                is_used |= matches!(value, Json::String(_) | Json::Number(_));
                replace(value);
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
                    let mut value = Json::string(&**text);
                    replace(&mut value);
                    if let Json::String(replaced) = value {
                        *text = replaced;
                    }
                }
                _ => {}
            }
        }
        is_used
    }

    /// Returns the replies of a tool.
    fn replies_mut(&mut self, server: &str, tool: &str) -> impl Iterator<Item = &mut Reply> {
        let recorded = self.tools.get_mut(&(server.to_owned(), tool.to_owned()));
        recorded.into_iter().flat_map(|recorded| recorded.requests.values_mut().flatten())
    }

    /// Calls a function for the texts of all replies and requests, but not for headers.
    fn change_texts(&mut self, change: &mut dyn FnMut(&str) -> Option<String>) {
        self.change_replies(change);
        for request in self.tools.values().flat_map(|recorded| recorded.requests.keys()) {
            change_texts(&mut request.value(), change);
        }
    }

    fn change_replies(&mut self, change: &mut dyn FnMut(&str) -> Option<String>) {
        let replies = self.tools.values_mut().flat_map(|recorded| recorded.requests.values_mut().flatten());
        replies.for_each(|reply| reply.change_texts(change));
    }

    /// Changes the values of all requests. `change` returns the position of the rule that has changed a value. Returns the requests that
    /// became equal although their answers differ.
    fn change_requests(&mut self, rules: &[Rule], change: &mut dyn FnMut(&mut Json) -> Option<usize>) -> Vec<MergedRequests> {
        let mut merged = Vec::new();
        for ((server, tool), recorded) in &mut self.tools {
            let mut changed_by = BTreeMap::new();
            for (request, replies) in std::mem::take(&mut recorded.requests) {
                let mut rule = None;
                let mut value = request.value();
                walk(&mut value, &mut |value| rule = change(value).or(rule));
                // Text that is not JSON identifies itself.
                let args = match value {
                    Json::String(text) if Json::parse(&request.args).is_none() => text,
                    value => value.canonical(),
                };
                let request = Request { args, ..request };
                if let Some(known) = recorded.requests.get(&request) {
                    let rule = rule.or_else(|| changed_by.get(&request).copied()).and_then(|at| rules.get(at));
                    merged.extend(rule.filter(|_| !merge::are_interchangeable(known, &replies)).map(|rule| MergedRequests {
                        rule: rule.clone(),
                        tool: format!("{server}/{tool}"),
                        request: request.to_string(),
                    }));
                    continue;
                }
                changed_by.extend(rule.map(|rule| (request.clone(), rule)));
                recorded.requests.insert(request, replies);
            }
        }
        merged
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
    fn change_texts(&mut self, change: &mut dyn FnMut(&str) -> Option<String>) {
        match &mut self.content {
            Content::None => {}
            Content::Value(value) => change_texts(value, change),
            Content::RawJson(text) | Content::Text(text) | Content::Plain(text) | Content::Fault { message: text, .. } => {
                change_text(text, change);
            }
        }
        if let Some(body) = &mut self.body {
            change_texts(body, change);
        }
    }
}

fn change_texts(value: &mut Json, change: &mut dyn FnMut(&str) -> Option<String>) {
    walk(value, &mut |value| {
        if let Json::String(text) = value {
            change_text(text, change);
        }
    });
}

fn change_text(text: &mut String, change: &mut dyn FnMut(&str) -> Option<String>) {
    if let Some(changed) = change(text) {
        *text = changed;
    }
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
        let count = cassette.scrub(&counted(rules)).map_err(|error| error.to_string())?.values;
        let text = cassette.to_string();
        let again = Cassette::read("c.json", &text).map(|read| read.to_string());
        assert_eq!(again.as_ref(), Ok(&text), "{text}");
        Ok((count, text))
    }

    fn path(text: &str) -> Rule {
        text.parse().expect("a rule")
    }

    fn counted(rules: &[Rule]) -> Rules {
        Rules { list: rules.to_vec(), key: None }
    }

    #[test]
    fn equal_texts_get_equal_replacements_in_answers_and_requests() {
        let rules = [path("shop/list:rows[].name"), path("shop/list:rows[].age")];
        let (count, text) = scrubbed(&rules).expect("it is scrubbed");
        assert_eq!(count, 4);
        assert!(text.contains(r#""args": {"customer": "scrubbed-1"}"#), "{text}");
        let rows = r#"[{"age": 1, "name": "scrubbed-1"}, {"age": 2, "name": "scrubbed-2"}, {"age": 1, "name": "scrubbed-1"}]"#;
        assert!(text.contains(rows), "{text}");
        assert!(text.contains("call ben@example.com or scrubbed-1"), "a word of another text: {text}");
        assert!(text.contains(r#""id": 7"#), "numbers are replaced at their paths alone: {text}");
    }

    #[test]
    fn words_in_texts_of_json_are_replaced_only_where_the_json_stays_valid() {
        let text = r#"{"cassette": 1, "tools": {
            "s/get": {"definition": "d", "requests": [{"args": {}, "replies": [
                {"text": "{\"owner\": \"from mail ann\"}\n{\"id\": 7}"},
                {"text": "{\"mail\": \"ann\"}\n{\"id\": 985112}"},
                {"text": "chip 985112 of ann"}]}]},
            "s/list": {"definition": "d", "requests": [{"args": {}, "replies": [
                {"value": [{"name": "ann", "chip": "985112", "by": "mail"}]}]}]}}}"#;
        let rules = ["s/list:[].name", "s/list:[].chip", "s/list:[].by"].map(path);
        let mut cassette = Cassette::read("c.json", text).expect("a cassette");
        let scrubbed = cassette.scrub(&counted(&rules)).expect("it is scrubbed");
        let text = cassette.to_string();
        for part in [r#"{\"owner\": \"from scrubbed-3 scrubbed-1\"}"#, r#"{\"id\": 985112}"#, r#"{\"mail\": \"ann\"}"#] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(text.contains("chip scrubbed-2 of scrubbed-1"), "{text}");
        assert_eq!(scrubbed.leftovers, ["s/get: requests[0].replies[1].text"], "the texts that stay are reported");
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
        assert_eq!(cassette.scrub(&counted(&[path("shop/list:[].id")])).expect("it is scrubbed").values, 2);
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
    fn rule_that_makes_requests_equal_is_refused_if_their_answers_differ() {
        // `a` is the first replacement and `j` the tenth, so that both `a0` and `j` become `scrubbed-10`.
        let cassette = |last: &str| {
            let request = |q: &str, reply: &str| format!(r#"{{"args": {{"q": "{q}"}}, "replies": [{{"value": {reply}}}]}}"#);
            let others = ["b", "c", "d", "e", "f", "g", "h", "i"].map(|q| request(q, "2"));
            let requests = [&[request("a0", "1")][..], &others, &[request("j", last)]].concat().join(",");
            let text = format!(r#"{{"cassette": 1, "tools": {{"s/t": {{"definition": "d", "requests": [{requests}]}}}}}}"#);
            Cassette::read("c.json", &text).expect("a cassette")
        };
        let rules = [Rule::pattern("[a-z]").expect("a pattern")];
        let error = cassette("9").scrub(&counted(&rules)).expect_err("the answers differ");
        let expected = "the rule [a-z] makes two requests of s/t equal that got different answers";
        assert_eq!(error.to_string(), expected);
        assert!(matches!(error, ScrubError::Merged(MergedRequests { request, .. }) if request == r#"{"q":"scrubbed-10"}"#));
        let mut same = cassette("1");
        assert_eq!(
            (same.scrub(&counted(&rules)).ok().map(|scrubbed| scrubbed.values), same.requests()),
            (Some(10), 9),
            "equal answers do no harm"
        );
    }

    #[test]
    fn replacements_of_earlier_programs_that_a_request_has_are_reported() {
        let cassette = |requests: &str| {
            let text = format!(
                r#"{{"cassette": 1, "tools": {{"s/get": {{"definition": "d", "requests": [{requests}]}},
                "s/list": {{"definition": "d", "requests": [{{"args": {{}}, "replies": [{{"value": [{{"id": 7}}]}}]}}]}}}}}}"#
            );
            Cassette::read("c.json", &text).expect("a cassette")
        };
        let (rules, mut all) = ([path("s/list:[].id")], Replacements::new(None));
        let seven = r#"{"args": {"id": 7}, "replies": [{"value": "seven"}]}"#;
        assert!(cassette(seven).replace(&rules, &mut all).merged.is_empty());
        let one = r#"{"args": {"id": 1}, "replies": [{"value": "one"}]}"#;
        let merged = cassette(&format!("{one}, {seven}")).replace(&rules, &mut all).merged;
        let merged: Vec<String> = merged.iter().map(ToString::to_string).collect();
        assert_eq!(merged, ["the rule s/list:[].id makes two requests of s/get equal that got different answers"]);
    }

    #[test]
    fn values_of_the_cassette_do_not_become_replacements() {
        let text = r#"{"cassette": 1, "tools": {
            "s/get": {"definition": "d", "requests": [
                {"args": {"key": "1"}, "replies": [{"value": "one"}]},
                {"args": {"key": "7"}, "replies": [{"value": "seven"}]},
                {"args": {"key": "ann"}, "replies": [{"value": true}]},
                {"args": {"key": "scrubbed-1"}, "replies": [{"value": false}]}]},
            "s/list": {"definition": "d", "requests": [{"args": {}, "replies": [{"value": [{"id": 7, "name": "ann"}]}]}]}}}"#;
        let mut cassette = Cassette::read("c.json", text).expect("a cassette");
        let scrubbed = cassette.scrub(&counted(&[path("s/list:[].id"), path("s/list:[].name")])).expect("it is scrubbed");
        assert_eq!((scrubbed.values, cassette.requests()), (2, 5));
        let text = cassette.to_string();
        assert!(text.contains(r#"[{"id": 2, "name": "scrubbed-2"}]"#), "{text}");
        for key in ["1", "2", "scrubbed-1", "scrubbed-2"] {
            assert!(text.contains(&format!(r#""key": "{key}""#)), "{key}: {text}");
        }
    }

    #[test]
    fn request_that_is_not_json_is_scrubbed_as_a_text() {
        let text = r#"{"cassette": 1, "tools": {"s/t": {"definition": "d", "requests": [
            {"args": "{\"to\": \"\\ud800 ann\"}", "replies": [{"value": 1}]}]}}}"#;
        let mut cassette = Cassette::read("c.json", text).expect("a cassette");
        let scrubbed = cassette.scrub(&counted(&[Rule::pattern("an+").expect("a pattern")])).expect("it is scrubbed");
        assert_eq!(scrubbed.values, 1);
        let text = cassette.to_string();
        assert!(text.contains("scrubbed-1") && !text.contains("ann"), "{text}");
        assert_eq!(Cassette::read("c.json", &text).map(|read| read.to_string()).as_ref(), Ok(&text));
    }

    #[test]
    fn places_that_keep_a_replaced_text_are_returned() {
        let text = r#"{"cassette": 1, "tools": {
            "s/get": {"definition": "d", "requests": [
                {"args": {"of": "Hannah"}, "replies": [{"headers": {"x-by": "Hannah"}, "value": {"a": {"Hannah": 1}, "b": ["hannahs"], "c": {"bo": 1}}}]},
                {"args": {"of": "xHannah"}, "replies": [{"text": ["to", "Hannah Lee", "Hannah"]}, {"text": "[\"\\u0048annahs\"]"}]}]},
            "s/list": {"definition": "d", "requests": [{"args": {}, "replies": [{"value": ["Hannah", "Bo"]}]}]}}}"#;
        let mut cassette = Cassette::read("c.json", text).expect("a cassette");
        let scrubbed = cassette.scrub(&counted(&[path("s/list:[]")])).expect("it is scrubbed");
        let expected = [
            "s/get: requests[0].replies[0].headers.x-by",
            "s/get: requests[0].replies[0].value.a (the name of a member)",
            "s/get: requests[0].replies[0].value.b[0]",
            "s/get: requests[0].replies[0].value.c (the name of a member)",
            "s/get: requests[1].args.of",
            "s/get: requests[1].replies[1].text[0]",
        ];
        // The requests were sorted again: `scrubbed-1` is before `xHannah`.
        assert_eq!(scrubbed.leftovers, expected, "{cassette}");
    }

    #[test]
    fn rule_that_selects_nothing_is_refused() {
        for rule in [path("shop/list:rows[].nam"), path("shop/lists:rows"), Rule::pattern("zebra").expect("a pattern")] {
            let expected = format!("the rule {rule} selects nothing in the recorded answers");
            assert_eq!(scrubbed(std::slice::from_ref(&rule)), Err(expected));
        }
        assert!("shop/list".parse::<Rule>().is_err() && Rule::pattern("(").is_err());
    }
}
