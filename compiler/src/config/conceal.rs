//! What no rendering may show: literal secrets, also where they stand in the wrong place or in a file that cannot be read.

use super::reading::Reading;
use crate::diag::Diagnostics;
use crate::source::{FileId, Sources};
use crate::tree::{Node, Place, Tree};

/// Keys of a credential whose values are no secrets.
const OPEN_CREDENTIAL: &[&str] = &["source", "var", "path", "scheme_hint"];
/// Keys of an auth emitter whose values are no secrets.
const OPEN_AUTH: &[&str] = &["scheme", "binding", "header"];
/// Headers and variables with one of these in their names likely hold secrets.
const TELLING: &[&str] = &["auth", "cookie", "key", "pass", "secret", "token", "credential"];

/// Conceals what a tree holds of secrets.
pub(super) fn tree(reading: &mut Reading<'_>, root: &Node) {
    for binding in root.get("credentials").map_or(&[][..], Node::members) {
        all_but(reading, &binding.value, OPEN_CREDENTIAL);
    }
    for upstream in root.get("upstreams").map_or(&[][..], Node::members) {
        for member in upstream.value.members() {
            match &*member.key {
                "auth" => match &member.value.value {
                    Tree::Array(elements) => elements.iter().for_each(|element| all_but(reading, element, OPEN_AUTH)),
                    _ => all_but(reading, &member.value, OPEN_AUTH),
                },
                "static_headers" | "headers" | "env" => {
                    for entry in member.value.members() {
                        let name = entry.key.to_lowercase();
                        let resolved = entry.value.as_str().is_some_and(|text| text.starts_with("${"));
                        if TELLING.iter().any(|word| name.contains(word)) && !resolved {
                            reading.conceal(&entry.value);
                        }
                    }
                }
                "token" | "password" | "api_key" | "secret" => reading.conceal(&member.value),
                _ => {}
            }
        }
    }
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

/// Conceals what the text of a config that is not JSON may hold of secrets: the strings given to keys that are not
/// known to be harmless. Quotes may be missing, so a string ends with its line at the latest.
pub(super) fn text(sources: &Sources, file: FileId, diagnostics: &mut Diagnostics) {
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
    let source = &sources.get(file).text;
    let mut start = 0;
    let mut key = "";
    // The last character outside of strings: after some of them a string is a key or an element of a list.
    let mut before = '{';
    for line in source.split_inclusive('\n') {
        let mut at = 0;
        while let Some(open) = line.get(at..).and_then(|rest| rest.find(['"', '\''])).map(|found| at + found) {
            before = line.get(at..open).and_then(|between| between.trim_end().chars().last()).unwrap_or(before);
            let end = string_end(line, open);
            let content = line.get(open + 1..end).unwrap_or("");
            let after = line.get((end + 1).min(line.len())..).unwrap_or("");
            if after.trim_start().starts_with(':') {
                key = content;
            } else if !HARMLESS.contains(&key) && !matches!(before, '{' | ',' | '[') {
                let range = (start + open + 1) as u32..(start + end) as u32;
                diagnostics.conceal(Place { file, range });
            }
            before = '"';
            at = end + 1;
        }
        before = line.get(at..).and_then(|rest| rest.trim_end().chars().last()).unwrap_or(before);
        start += line.len();
    }
}

/// Where the string that opens at `open` ends: at its quote, or with the line.
fn string_end(line: &str, open: usize) -> usize {
    let content = line.trim_end();
    let quote = line.as_bytes().get(open);
    let mut escaped = false;
    for (at, byte) in content.bytes().enumerate().skip(open + 1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            _ if Some(&byte) == quote => return at,
            _ => {}
        }
    }
    content.len().max(open + 1).min(line.len())
}
