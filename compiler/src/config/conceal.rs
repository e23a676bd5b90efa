//! What no rendering may show: literal secrets, also where they stand in the wrong place or in a file that cannot be read.

use std::ops::Range;

use super::keys;
use super::reading::Reading;
use super::suspects;
use super::table::Table;
use crate::diag::{Diagnostics, suggest};
use crate::source::{FileId, Sources};
use crate::tree::{Member, Node, Place, Tree};

/// Keys of a credential whose values are no secrets.
const OPEN_CREDENTIAL: &[&str] = &["source", "var", "path", "scheme_hint"];
/// Keys of an auth emitter whose values are no secrets.
const OPEN_AUTH: &[&str] = &["scheme", "binding", "header"];
/// Keys whose values are shown even where a file cannot be read.
const HARMLESS: &[&str] = &[
    "source",
    "var",
    "path",
    "scheme_hint",
    "scheme",
    "binding",
    "header",
    "transport",
    "description",
    "command",
    "cd",
    "schema_file",
    "name",
];
/// Conceals what a tree holds of secrets. Keys may be misspelt: what is not known to be harmless is concealed.
pub(super) fn tree(reading: &mut Reading<'_>, root: &Node) {
    for member in root.members() {
        match &*member.key {
            "$schema" | "programs" => {}
            key if keys::is_upstreams(key) => {
                for upstream in member.value.members() {
                    for member in upstream.value.members() {
                        entry(reading, member);
                    }
                }
            }
            _ => {
                for binding in member.value.members() {
                    all_but(reading, &binding.value, OPEN_CREDENTIAL);
                }
            }
        }
    }
}

/// Conceals what a member of an upstream's entry holds of secrets.
fn entry(reading: &mut Reading<'_>, member: &Member) {
    let key = meant(&member.key);
    match key {
        Some("auth") => match member.value.elements() {
            Some(emitters) => emitters.iter().for_each(|emitter| all_but(reading, emitter, OPEN_AUTH)),
            None => all_but(reading, &member.value, OPEN_AUTH),
        },
        Some(key) => {
            for (node, suspect) in suspects::of_member(key, &member.value) {
                reading.conceal_part(node, &suspect.range);
            }
            users(reading, &member.value, matches!(key, "url" | "base_url" | "schema_url" | "proxy"));
        }
        None if matches!(member.value.value, Tree::Number(_)) => {}
        None => all_but(reading, &member.value, &[]),
    }
}

/// The key of an entry that a key is or was meant to be.
fn meant(key: &str) -> Option<&'static str> {
    let rows = || keys::UPSTREAM.cases.iter().flat_map(Table::keys);
    rows()
        .find(|row| row.name == key)
        .or_else(|| rows().find(|row| row.aliases.contains(&key)))
        .map(|row| row.name)
        .or_else(|| suggest::nearest(key, rows().map(|row| row.name)))
}

/// Conceals the `user:password@` of every URL in `node`, which is meant as one where `is_url`.
fn users(reading: &mut Reading<'_>, node: &Node, is_url: bool) {
    node.members().iter().for_each(|member| users(reading, &member.value, false));
    node.elements().unwrap_or(&[]).iter().for_each(|element| users(reading, element, false));
    let Some(text) = node.as_str() else { return };
    let (start, end) = match text.find("://") {
        Some(at) => {
            let rest = text.get(at + 3..).unwrap_or("");
            (at + 3, rest.split(['/', '?', '#']).next().and_then(|authority| authority.rfind('@')).map(|end| at + 3 + end))
        }
        // What comes out of a slip is no URL, and the password in it is one all the same.
        None if is_url => (0, text.rfind('@')),
        None => return,
    };
    let Some(end) = end else { return };
    reading.conceal_part(node, &(start..end));
}

/// Conceals every string in `node` but the values of its own keys in `open`.
fn all_but(reading: &mut Reading<'_>, node: &Node, open: &[&str]) {
    match &node.value {
        Tree::Object(members) => {
            for member in members {
                let is_open =
                    open.contains(&&*member.key) && member.value.members().is_empty() && member.value.elements().is_none();
                if !is_open {
                    all_but(reading, &member.value, &[]);
                }
            }
        }
        Tree::Array(elements) => elements.iter().for_each(|element| all_but(reading, element, &[])),
        Tree::String(_) | Tree::Number(_) => reading.conceal(node),
        Tree::Null | Tree::Bool(_) => {}
    }
}

/// Conceals what the text of a config that is not JSON may hold of secrets: all but keys, the words of the config's own
/// tables, and what is given to keys that are known to be harmless.
pub(super) fn text(sources: &Sources, file: FileId, diagnostics: &mut Diagnostics) {
    let mut scan = Scan { file, diagnostics, key: "", before: '{' };
    let mut start = 0;
    for line in sources.get(file).text.split_inclusive('\n') {
        scan.line(line, start);
        start += line.len();
    }
}

struct Scan<'a> {
    file: FileId,
    diagnostics: &'a mut Diagnostics,
    /// The key whose value comes next; empty elsewhere.
    key: &'a str,
    /// The last character outside of strings: it tells a key from a value.
    before: char,
}

impl<'a> Scan<'a> {
    fn line(&mut self, line: &'a str, start: usize) {
        let strings = strings(line);
        let Some(strings) = strings else {
            // A quote is missing, so that inside and outside cannot be told apart.
            self.key = "";
            self.words(line, start);
            return;
        };
        let mut at = 0;
        for (open, end) in strings {
            self.outside(line, at..open, start);
            let content = line.get(open + 1..end).unwrap_or("");
            let is_key = line.get(end + 1..).is_some_and(|rest| rest.trim_start().starts_with(':'));
            if is_key && matches!(self.before, '{' | ',' | '}' | ']') {
                self.key = content;
            } else {
                if !HARMLESS.contains(&self.key) && !is_own_word(content) {
                    self.conceal(start + open + 1..start + end);
                }
                self.key = "";
            }
            self.before = '"';
            at = end + 1;
        }
        self.outside(line, at..line.len(), start);
    }

    fn outside(&mut self, line: &'a str, range: Range<usize>, start: usize) {
        let text = line.get(range.clone()).unwrap_or("");
        self.words(text, start + range.start);
        if !matches!(text.trim(), "" | ":") {
            self.key = "";
        }
        self.before = text.trim_end().chars().last().unwrap_or(self.before);
    }

    /// Conceals every word that is not one of JSON's or the config's own.
    fn words(&mut self, text: &str, start: usize) {
        let mut at = 0;
        for word in text.split(|c: char| c.is_whitespace() || "{}[]:,=\"'".contains(c)) {
            let is_plain = matches!(word, "" | "true" | "false" | "null" | "True" | "False" | "None" | "/*" | "//")
                || word.trim_start_matches('-').bytes().all(|b| b.is_ascii_digit())
                || is_own_word(word);
            if !is_plain {
                self.conceal(start + at..start + at + word.len());
            }
            // Every separator is one byte, except for white space beyond ASCII.
            let after = at + word.len();
            at = after + text.get(after..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        }
    }

    fn conceal(&mut self, range: Range<usize>) {
        self.diagnostics.conceal(Place { file: self.file, range: range.start as u32..range.end as u32 });
    }
}

/// Where the strings of a line begin and end; `None` where one is not closed.
fn strings(line: &str) -> Option<Vec<(usize, usize)>> {
    let mut found = Vec::new();
    let mut open: Option<(usize, u8)> = None;
    let mut escaped = false;
    for (at, byte) in line.bytes().enumerate() {
        match (open, byte) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), b'\\') => escaped = true,
            (Some((start, quote)), _) if byte == quote => {
                found.push((start, at));
                open = None;
            }
            (None, b'"' | b'\'') => open = Some((at, byte)),
            _ => {}
        }
    }
    open.is_none().then_some(found)
}

/// Whether a text is a key, an alias or a tag of the config.
fn is_own_word(text: &str) -> bool {
    let variants = [&keys::UPSTREAM, &keys::CREDENTIAL, &keys::AUTH].into_iter().flat_map(|variants| variants.cases);
    [&keys::CONFIG, &keys::OVERRIDE, &keys::PROGRAM]
        .into_iter()
        .chain(variants)
        .any(|table| table.tag == text || table.keys().any(|key| key.name == text || key.aliases.contains(&text)))
}
