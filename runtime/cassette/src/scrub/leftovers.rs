//! Finds replaced texts that a cassette still has, where no rule replaces them: as a part of a word, in names of members, in headers.

use std::collections::BTreeSet;

use aho_corasick::AhoCorasick;
use ptc_json::Json;

use crate::{Cassette, Reply};

/// Minimum characters of a text that is searched for. Shorter ones are parts of many words by chance.
const MIN_CHARS: usize = 4;
/// Maximum nesting of JSON in texts of JSON that is read.
const MAX_TEXT_DEPTH: u32 = 4;

/// Returns the places of texts in the requests and replies of a cassette. The case of ASCII letters does not matter.
pub(super) fn find<'t>(cassette: &Cassette, texts: impl Iterator<Item = &'t String>) -> Vec<String> {
    let all: BTreeSet<String> = texts.map(|text| text.to_ascii_lowercase()).collect();
    if all.is_empty() {
        return Vec::new();
    }
    let texts: Vec<&str> = all.iter().map(String::as_str).filter(|text| text.chars().count() >= MIN_CHARS).collect();
    let finder = AhoCorasick::builder().ascii_case_insensitive(true).build(&texts);
    // If the finder cannot be built, each text is searched for on its own.
    let has_any = |found: &str| match &finder {
        Ok(finder) => finder.is_match(found),
        Err(_) => texts.iter().any(|text| found.to_ascii_lowercase().contains(text)),
    };
    let is_number = |number: &str| texts.contains(&number);
    let is_name = |name: &str| all.contains(&name.to_ascii_lowercase());
    let mut search = Search { has_any: &has_any, is_number: &is_number, is_name: &is_name, places: Vec::new() };
    for ((server, tool), recorded) in &cassette.tools {
        for (at, (request, replies)) in recorded.requests.iter().enumerate() {
            let place = format!("{server}/{tool}: requests[{at}]");
            search.value(&request.value(), &format!("{place}.args"), 0);
            search.text(request.accept.as_deref().unwrap_or_default(), &format!("{place}.accept"), 0);
            for (at, reply) in replies.iter().enumerate() {
                search.reply(reply, &format!("{place}.replies[{at}]"));
            }
        }
    }
    search.places
}

struct Search<'s> {
    has_any: &'s dyn Fn(&str) -> bool,
    /// Whether a number has the digits of a replaced text.
    is_number: &'s dyn Fn(&str) -> bool,
    /// Whether the name of a member is a replaced text, which may be short.
    is_name: &'s dyn Fn(&str) -> bool,
    places: Vec<String>,
}

impl Search<'_> {
    /// Searches the members of a reply as they are written to the file. A text of several lines is joined for the search.
    fn reply(&mut self, reply: &Reply, place: &str) {
        for (name, member) in reply.to_json().members() {
            let place = format!("{place}.{name}");
            match (&**name, member) {
                ("fault", _) => {}
                ("text" | "plain_text" | "message", Json::Array(lines)) => {
                    let lines: Vec<&str> = lines.iter().filter_map(Json::as_str).collect();
                    self.text(&lines.join("\n"), &place, 0);
                }
                _ => self.value(member, &place, 0),
            }
        }
    }

    fn value(&mut self, value: &Json, place: &str, text_depth: u32) {
        match value {
            Json::String(text) => self.text(text, place, text_depth),
            Json::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.value(item, &format!("{place}[{at}]"), text_depth);
                }
            }
            Json::Object(members) => {
                for (name, member) in members {
                    if (self.has_any)(name) || (self.is_name)(name) {
                        // The place does not have the name, since messages are kept in logs.
                        self.places.push(format!("{place} (the name of a member)"));
                        self.value(member, &format!("{place}.…"), text_depth);
                    } else {
                        self.value(member, &format!("{place}.{name}"), text_depth);
                    }
                }
            }
            Json::Number(number) if (self.is_number)(number) => self.places.push(place.to_owned()),
            Json::Null | Json::Bool(_) | Json::Number(_) => {}
        }
    }

    /// Searches a text. In a text of JSON, escapes can hide what is searched for.
    fn text(&mut self, text: &str, place: &str, text_depth: u32) {
        if (self.has_any)(text) {
            self.places.push(place.to_owned());
        } else if text_depth < MAX_TEXT_DEPTH
            && text.contains('\\')
            && let Some(value) = Json::parse(text)
        {
            self.value(&value, place, text_depth + 1);
        }
    }
}
