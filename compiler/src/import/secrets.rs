//! Recognises secrets, and names the variables that replace them.

use std::collections::BTreeMap;

use ptc_secrets::heuristics::{SecretCandidate, names_a_secret, scan_argument, scan_named};

use super::text::{Part, parts};
use crate::tree::{Node, Tree};

/// Minimum letters and digits in one word of a value that is random, such as a key without a telling name.
const MIN_RANDOM: usize = 20;
/// Values of settings whose names sound like those of secrets.
const PLAIN_WORDS: &[&str] =
    &["", "true", "false", "none", "null", "yes", "no", "on", "off", "auto", "basic", "bearer", "oauth", "required"];

/// Whether a value with a name is a secret. Uncertain values count as secrets.
pub(super) fn is_secret(name: &str, value: &str) -> bool {
    match scan_named(name, value) {
        Some(candidate) if candidate.likely => true,
        Some(_) => !is_plain(value) && (names_a_secret(name) || value.len() >= 8),
        None => random(value).is_some() || bearer(value).is_some(),
    }
}

/// Returns the part of an argument that is a secret.
pub(super) fn in_argument(before: &str, text: &str) -> Option<SecretCandidate> {
    let found = scan_argument(before, text).filter(|candidate| {
        let value = text.get(candidate.range.clone()).unwrap_or_default();
        candidate.likely || !is_plain(value)
    });
    let range = found.map(|candidate| candidate.range).or_else(|| random(text)).or_else(|| bearer(text))?;
    // The word before a token is not part of it.
    let value = text.get(range.clone()).unwrap_or_default();
    let start = range.start + value.strip_prefix("Bearer ").map_or(0, |token| value.len() - token.len());
    Some(SecretCandidate { range: start..range.end, likely: true })
}

/// Whether a value says where something is, or switches something.
fn is_plain(value: &str) -> bool {
    let is_place = value.starts_with(['/', '.', '~']) || value.contains("://") && !value.contains('@');
    is_place || PLAIN_WORDS.contains(&value.to_ascii_lowercase().as_str()) || value.len() > 1 && value.get(1..3) == Some(":\\")
}

/// Returns a token after the word `Bearer` or `Basic`.
fn bearer(text: &str) -> Option<std::ops::Range<usize>> {
    let start = ["Bearer ", "bearer ", "Basic "].iter().find_map(|word| text.find(word).map(|at| at + word.len()))?;
    let rest = text.get(start..)?;
    let token = rest.split(['"', '\'', ' ', ',', '}', '$']).next().unwrap_or_default();
    (token.len() >= 8).then_some(start..start + token.len())
}

/// Returns a word that looks random: long, with letters and digits mixed. Digests of container images are not secrets.
fn random(text: &str) -> Option<std::ops::Range<usize>> {
    let mut at = 0;
    for word in text.split(|c: char| !c.is_ascii_alphanumeric()) {
        let digits = word.bytes().filter(u8::is_ascii_digit).count();
        let is_digest = text.get(..at).is_some_and(|before| before.ends_with("sha256:"));
        if word.len() >= MIN_RANDOM && digits >= 3 && word.len() - digits >= 3 && !is_digest {
            return Some(whole_token(text, at..at + word.len()));
        }
        at += word.len();
        at += text.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
    }
    None
}

/// Returns the token that contains a word: prefixes such as `napi_` belong to it.
fn whole_token(text: &str, word: std::ops::Range<usize>) -> std::ops::Range<usize> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '+');
    let before = text.get(..word.start).unwrap_or_default();
    let after = text.get(word.end..).unwrap_or_default();
    let start = before.len() - before.chars().rev().take_while(|c| is_part(*c)).count();
    start..word.end + after.chars().take_while(|c| is_part(*c) || *c == '=').count()
}

/// The environment variables that the result reads.
#[derive(Debug, Default)]
pub(super) struct Variables {
    used: BTreeMap<String, Origin>,
}

#[derive(Debug, PartialEq, Eq)]
enum Origin {
    /// A config refers to the variable.
    Reference,
    /// A config has this value, which the variable replaces.
    Value(String),
}

impl Variables {
    /// Notes the variables that the values in `node` refer to, so that no secret gets the name of one.
    pub(super) fn note_references(&mut self, node: &Node) {
        if let Tree::String(text) = &node.value {
            for part in parts(text) {
                if let Part::Variable(name, _) = part {
                    self.used.insert(name, Origin::Reference);
                }
            }
        }
        node.elements().unwrap_or(&[]).iter().for_each(|element| self.note_references(element));
        node.members().iter().for_each(|member| self.note_references(&member.value));
    }

    /// Returns the name of the variable that replaces an input of VS Code: the same for all uses of the input.
    pub(super) fn replacing_input(&mut self, id: &str, wanted: &str, owner: &str) -> String {
        let input = format!("${{input:{id}}}");
        let known = self.used.iter().find(|(_, origin)| matches!(origin, Origin::Value(value) if *value == input));
        match known {
            Some((name, _)) => name.clone(),
            None => self.replacing(wanted, owner, &input),
        }
    }

    /// Returns the name of the variable that replaces a secret: `wanted`, or a name with the owner in it if another secret has
    /// that name.
    pub(super) fn replacing(&mut self, wanted: &str, owner: &str, secret: &str) -> String {
        let wanted = variable_name(wanted);
        let origin = Origin::Value(secret.to_owned());
        let owned = format!("{}_{wanted}", variable_name(owner));
        let numbered = (2..).map(|count| format!("{owned}_{count}"));
        let mut names = [wanted, owned.clone()].into_iter().chain(numbered);
        let free = names.find(|name| self.used.get(name).is_none_or(|known| *known == origin));
        let name = free.unwrap_or(owned);
        self.used.insert(name.clone(), origin);
        name
    }
}

/// Returns the name of a variable for a value of an upstream, such as `SHOP_API_KEY`.
pub(super) fn owned_name(owner: &str, value: &str) -> String {
    let (owner, value) = (variable_name(owner), variable_name(value));
    if value.starts_with(&owner) { value } else { format!("{owner}_{value}") }
}

/// Returns a text as the name of a variable.
pub(super) fn variable_name(text: &str) -> String {
    // `apiKey` has two words.
    let mut spaced = String::with_capacity(text.len() + 4);
    let mut before = ' ';
    for c in text.chars() {
        if c.is_ascii_uppercase() && before.is_ascii_lowercase() {
            spaced.push('_');
        }
        spaced.push(c);
        before = c;
    }
    let words = spaced.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    match words.map(str::to_ascii_uppercase).collect::<Vec<_>>().join("_") {
        name if name.is_empty() => "SECRET".to_owned(),
        name if name.starts_with(|c: char| c.is_ascii_digit()) => format!("_{name}"),
        name => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_recognised_and_settings_are_not() {
        for (name, value) in [
            ("GITHUB_TOKEN", "hunter2-hunter2"),
            ("API_KEY", "abc"),
            ("PROJECT", "a1b2c3d4e5f6a7b8c9d0e1f2"),
            ("OPENAPI_MCP_HEADERS", "{\"Authorization\": \"Bearer hunter2-hunter2\"}"),
            ("DATABASE_URL", "postgres://app:hunter2@db/x"),
        ] {
            assert!(is_secret(name, value), "{name}");
        }
        for (name, value) in [
            ("LOG_LEVEL", "debug"),
            ("TOKEN_FILE", "/run/secrets/token"),
            ("AUTH_MODE", "none"),
            ("IMAGE", "server@sha256:0123456789abcdef0123456789abcdef"),
            ("API_KEY", "${API_KEY}"),
            ("URL", "https://example.com/mcp"),
        ] {
            assert!(!is_secret(name, value), "{name}");
        }
    }

    #[test]
    fn different_secrets_get_different_variables() {
        let mut variables = Variables::default();
        assert_eq!(variables.replacing("API_KEY", "one", "a"), "API_KEY");
        assert_eq!(variables.replacing("API_KEY", "two", "a"), "API_KEY");
        assert_eq!(variables.replacing("api-key", "two", "b"), "TWO_API_KEY");
        assert_eq!(variables.replacing("apiKey", "two", "c"), "TWO_API_KEY_2");
        assert_eq!(variables.replacing_input("key", "SHOP_KEY", "shop"), "SHOP_KEY");
        assert_eq!(variables.replacing_input("key", "OTHER", "other"), "SHOP_KEY");
    }
}
