//! Masks literal secrets in renderings, also those at a wrong position or in a file that cannot be parsed.

use std::ops::Range;

use super::keys;
use super::reader::ConfigReader;
use super::suspects;
use super::table::Table;
use crate::diag::{Diagnostics, suggest};
use crate::source::{FileId, Sources, Span};
use crate::tree::{Member, Node, Tree};

/// Keys of a credential whose values are not secret.
const PUBLIC_CREDENTIAL_KEYS: &[&str] = &["source", "var", "path", "scheme_hint"];
/// Keys of an element of `auth`, and of its `identity_provider`, whose values are not secret.
const PUBLIC_AUTH_KEYS: &[&str] = &[
    "scheme",
    "binding",
    "header",
    "in",
    "name",
    "grant",
    "token_url",
    "client_id",
    "client_auth",
    "key_id",
    "issuer",
    "scopes",
    "resource",
    "subject",
    "subject_token_type",
    "audience",
];
/// Keys of an element of `auth` whose values are URLs.
const AUTH_URL_KEYS: &[&str] = &["token_url", "issuer"];
/// Keys of an element of `auth` whose values an authorization server may have generated, so that they look like secrets.
const IDENTIFIER_KEYS: &[&str] = &["client_id", "key_id", "token_url", "issuer", "resource", "audience"];
/// Keys whose values are shown even if a file cannot be parsed.
const PUBLIC_KEYS: &[&str] = &[
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
/// Masks the secrets in a tree. Since keys may be misspelt, every value that is not known to be public is masked.
pub(super) fn tree(reader: &mut ConfigReader<'_>, root: &Node) {
    for member in root.members() {
        match &*member.key {
            "$schema" | "programs" | "policy" => {}
            key if keys::is_upstreams(key) => {
                for upstream in member.value.members() {
                    for member in upstream.value.members() {
                        mask_member(reader, member);
                    }
                }
            }
            _ => {
                for binding in member.value.members() {
                    mask_except(reader, &binding.value, PUBLIC_CREDENTIAL_KEYS);
                }
            }
        }
    }
}

/// Masks the secrets in a member of an upstream's entry.
fn mask_member(reader: &mut ConfigReader<'_>, member: &Member) {
    let key = intended_key(&member.key);
    match key {
        Some("auth") => match member.value.elements() {
            Some(elements) => elements.iter().for_each(|element| mask_auth(reader, element)),
            None => mask_auth(reader, &member.value),
        },
        Some(key) => {
            for (node, suspect) in suspects::of_member(key, &member.value) {
                reader.mask_part(node, &suspect.range);
            }
            if key == "proxy" {
                mask_proxy(reader, &member.value);
            }
            mask_userinfo(reader, &member.value, suspects::URL_KEYS.contains(&key));
        }
        None if matches!(member.value.value, Tree::Number(_)) => {}
        None => mask_except(reader, &member.value, &[]),
    }
}

/// Masks an element of `auth`, or its `identity_provider`, except public values. A public value is masked too if it looks like a secret,
/// which may have been written to the wrong key.
fn mask_auth(reader: &mut ConfigReader<'_>, element: &Node) {
    if element.members().is_empty() {
        return mask_except(reader, element, &[]);
    }
    for Member { key, value, .. } in element.members() {
        match (&**key, &value.value) {
            ("identity_provider", Tree::Object(_)) => mask_auth(reader, value),
            ("scopes", Tree::Array(scopes)) => scopes.iter().for_each(|scope| mask_suspect(reader, "scopes", scope)),
            (key, Tree::String(_)) if PUBLIC_AUTH_KEYS.contains(&key) => mask_suspect(reader, key, value),
            _ => mask_except(reader, value, &[]),
        }
    }
}

/// Masks a value of an element of `auth` if it looks like a secret, or the parts of a URL that may be one.
fn mask_suspect(reader: &mut ConfigReader<'_>, key: &str, node: &Node) {
    let Some(text) = node.as_str() else { return mask_except(reader, node, &[]) };
    if suspects::has_token(text) || !IDENTIFIER_KEYS.contains(&key) && suspects::looks_generated(text) {
        return reader.mask(node);
    }
    let is_url = AUTH_URL_KEYS.contains(&key);
    if is_url {
        for (node, suspect) in suspects::of_member("url", node) {
            reader.mask_part(node, &suspect.range);
        }
    }
    mask_userinfo(reader, node, is_url);
}

/// Masks possible passwords in the members of a proxy.
fn mask_proxy(reader: &mut ConfigReader<'_>, proxy: &Node) {
    for Member { key, value, .. } in proxy.members() {
        match &**key {
            "url" => mask_userinfo(reader, value, true),
            "no_proxy" => {}
            // The name of a credential has no colon, unlike a user with a password.
            "auth" if value.as_str().is_some_and(|name| !name.contains(':')) => {}
            "auth" => mask_auth(reader, value),
            _ => mask_except(reader, value, &[]),
        }
    }
}

/// Returns the known key that equals a key or is closest to it.
fn intended_key(key: &str) -> Option<&'static str> {
    let rows = || keys::UPSTREAM.cases.iter().flat_map(Table::keys);
    rows()
        .find(|row| row.name == key)
        .or_else(|| rows().find(|row| row.aliases.contains(&key)))
        .map(|row| row.name)
        .or_else(|| suggest::closest_match(key, rows().map(|row| row.name)))
}

/// Masks the `user:password@` of every URL in `node`. With `is_url` the value is expected to be a URL.
fn mask_userinfo(reader: &mut ConfigReader<'_>, node: &Node, is_url: bool) {
    node.members().iter().for_each(|member| mask_userinfo(reader, &member.value, false));
    node.elements().unwrap_or(&[]).iter().for_each(|element| mask_userinfo(reader, element, false));
    let Some(text) = node.as_str() else { return };
    let (start, end) = match text.find("://") {
        Some(at) => {
            let rest = text.get(at + 3..).unwrap_or("");
            (at + 3, rest.split(['/', '?', '#']).next().and_then(|authority| authority.rfind('@')).map(|end| at + 3 + end))
        }
        // A misspelt URL may still contain a password.
        None if is_url => (0, text.rfind('@')),
        None => return,
    };
    let Some(end) = end else { return };
    reader.mask_part(node, &(start..end));
}

/// Masks every string in `node` except the values of its direct keys in `public`.
fn mask_except(reader: &mut ConfigReader<'_>, node: &Node, public: &[&str]) {
    match &node.value {
        Tree::Object(members) => {
            for member in members {
                let is_public =
                    public.contains(&&*member.key) && member.value.members().is_empty() && member.value.elements().is_none();
                if !is_public {
                    mask_except(reader, &member.value, &[]);
                }
            }
        }
        Tree::Array(elements) => elements.iter().for_each(|element| mask_except(reader, element, &[])),
        Tree::String(_) | Tree::Number(_) => reader.mask(node),
        Tree::Null | Tree::Bool(_) => {}
    }
}

/// Masks possible secrets in the text of a config that is not JSON. Keys, words of the config's own tables, and values of public
/// keys stay visible; everything else is masked.
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
    /// The key whose value follows; empty elsewhere.
    key: &'a str,
    /// The last character outside strings, which distinguishes keys from values.
    before: char,
}

impl<'a> Scan<'a> {
    fn line(&mut self, line: &'a str, start: usize) {
        let strings = strings(line);
        let Some(strings) = strings else {
            // A quote is missing, so that the inside and the outside of strings cannot be distinguished.
            self.key = "";
            self.words(line, start);
            return;
        };
        let mut at = 0;
        for (public, end) in strings {
            self.outside(line, at..public, start);
            let content = line.get(public + 1..end).unwrap_or("");
            let is_key = line.get(end + 1..).is_some_and(|rest| rest.trim_start().starts_with(':'));
            if is_key && matches!(self.before, '{' | ',' | '}' | ']') {
                self.key = content;
            } else {
                if !PUBLIC_KEYS.contains(&self.key) && !is_own_word(content) {
                    self.mask(start + public + 1..start + end);
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

    /// Masks every word that does not belong to JSON's syntax or to the config's own keys.
    fn words(&mut self, text: &str, start: usize) {
        let mut at = 0;
        for word in text.split(|c: char| c.is_whitespace() || "{}[]:,=\"'".contains(c)) {
            let is_plain = matches!(word, "" | "true" | "false" | "null" | "True" | "False" | "None" | "/*" | "//")
                || word.trim_start_matches('-').bytes().all(|b| b.is_ascii_digit())
                || is_own_word(word);
            if !is_plain {
                self.mask(start + at..start + at + word.len());
            }
            // Every separator is one byte, except white space beyond ASCII.
            let after = at + word.len();
            at = after + text.get(after..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        }
    }

    fn mask(&mut self, range: Range<usize>) {
        self.diagnostics.mask(Span { file: self.file, range: range.start as u32..range.end as u32 });
    }
}

/// Returns the start and end of each string of a line, or `None` if a string is not closed.
fn strings(line: &str) -> Option<Vec<(usize, usize)>> {
    let mut found = Vec::new();
    let mut public: Option<(usize, u8)> = None;
    let mut escaped = false;
    for (at, byte) in line.bytes().enumerate() {
        match (public, byte) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), b'\\') => escaped = true,
            (Some((start, quote)), _) if byte == quote => {
                found.push((start, at));
                public = None;
            }
            (None, b'"' | b'\'') => public = Some((at, byte)),
            _ => {}
        }
    }
    public.is_none().then_some(found)
}

/// Whether a text is a key, an alias or a tag of the config.
fn is_own_word(text: &str) -> bool {
    let variants = [&keys::UPSTREAM, &keys::CREDENTIAL, &keys::AUTH].into_iter().flat_map(|variants| variants.cases);
    [&keys::CONFIG, &keys::OVERRIDE, &keys::PROGRAM, &keys::PROXY]
        .into_iter()
        .chain(variants)
        .any(|table| table.tag == text || table.keys().any(|key| key.name == text || key.aliases.contains(&text)))
}
