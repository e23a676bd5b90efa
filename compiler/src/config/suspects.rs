//! Finds values that look like secrets in places where secrets do not belong: arguments, variables, headers, URLs and default
//! arguments.

use ptc_secrets::heuristics::{SecretCandidate, scan_argument, scan_named, scan_query, scan_token};

use super::reader::ConfigReader;
use super::{headers, keys};
use crate::diag::{Code, Diagnostic, quoted};
use crate::tree::{Member, Node};

/// The keys of an upstream whose values are URLs.
pub(super) const URL_KEYS: [&str; 4] = ["base_url", "proxy", "schema_url", "url"];

/// Returns the likely secrets in a member of an entry: strings, and the part of each that looks like a secret. `key` is the key
/// of the member, or the key that was meant.
pub(super) fn of_member<'n>(key: &str, value: &'n Node) -> Vec<(&'n Node, SecretCandidate)> {
    match key {
        "args" => {
            let args = value.elements().unwrap_or(&[]);
            let before = std::iter::once("").chain(args.iter().map(|arg| arg.as_str().unwrap_or("")));
            args.iter().zip(before).filter_map(|(arg, before)| Some((arg, scan_word(before, arg.as_str()?)?))).collect()
        }
        "env" | "static_headers" => {
            let settings = value.members().iter().filter_map(|m| Some((m, scan_named(&m.key, m.value.as_str()?)?)));
            // A header that cannot be set is reported as an error elsewhere.
            let known = |m: &Member| key == "static_headers" && headers::is_reserved(&m.key);
            settings.map(|(m, s)| (&m.value, SecretCandidate { likely: s.likely && !known(m), ..s })).collect()
        }
        "operation_overrides" | "tool_overrides" => {
            let mut found = Vec::new();
            overrides("", value, &mut found);
            found
        }
        key if URL_KEYS.contains(&key) => {
            let value = if key == "proxy" { value.get("url").unwrap_or(value) } else { value };
            let text = value.as_str().unwrap_or("");
            scan_query(text).into_iter().map(|suspect| (value, suspect)).collect()
        }
        _ => value.as_str().and_then(scan_token).map(|suspect| (value, suspect)).into_iter().collect(),
    }
}

/// Examines an argument. Each word of a command line for a shell is an argument of its own.
fn scan_word(before: &str, text: &str) -> Option<SecretCandidate> {
    if before != "-c" || !text.contains(' ') {
        return scan_argument(before, text);
    }
    let (mut at, mut before) = (0, "");
    for word in text.split(' ') {
        // A shell fills variables in also between quotes.
        let range = at..at + word.len();
        let quoted = word.contains("\"$").then(|| word.replace('"', ""));
        if let Some(candidate) = scan_argument(before, quoted.as_deref().unwrap_or(word)) {
            return Some(SecretCandidate { range, ..candidate });
        }
        (at, before) = (range.end + 1, word);
    }
    scan_token(text)
}

/// Searches overrides under all keys, because default arguments end up in the lock, in the binary, and in texts that models read.
fn overrides<'n>(key: &str, value: &'n Node, found: &mut Vec<(&'n Node, SecretCandidate)>) {
    if let Some(suspect) = value.as_str().and_then(|text| scan_named(key, text)) {
        found.push((value, suspect));
    }
    // Names of parameters, which say that they carry secrets.
    if key == "secret_args" {
        return;
    }
    value.elements().unwrap_or(&[]).iter().for_each(|element| overrides(key, element, found));
    value.members().iter().for_each(|member| overrides(&member.key, &member.value, found));
}

/// Minimum length of a run of letters and digits in a generated secret.
const MIN_GENERATED_CHARS: usize = 16;

/// Whether a text contains a secret in a known form.
pub(super) fn has_token(text: &str) -> bool {
    scan_token(text).is_some()
}

/// Whether a text has a long run of letters and digits, with both of them. Names, scopes and fixed words have no such run.
pub(super) fn looks_generated(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|run| {
        run.len() >= MIN_GENERATED_CHARS
            && run.contains(|c: char| c.is_ascii_digit())
            && run.contains(|c: char| c.is_ascii_alphabetic())
    })
}

/// Warns of every likely secret in the entries of a config.
pub(super) fn warn(reader: &mut ConfigReader<'_>, root: &Node) {
    for entry in keys::upstreams(root) {
        for Member { key, value, .. } in entry.value.members() {
            let hint = match &**key {
                "env" => "write `${NAME}`, and set that variable where the server starts",
                "args" => "set it in `env` as `${NAME}`, where the program can take it from there",
                "operation_overrides" | "tool_overrides" => {
                    "models read it there; name it in `credentials` and send it with `auth`, as `api_key` if the service takes it in a query"
                }
                _ => "name it in `credentials` and send it with `auth`",
            };
            for (node, suspect) in of_member(key, value) {
                if suspect.likely {
                    let message = format!("{} holds what looks like a secret", quoted(key));
                    let diagnostic = Diagnostic::new(Code::SecretInPlainSight, message)
                        .at(reader.part(node, &suspect.range), "ends up in the lock or binary, readable by everyone who has it")
                        .hint(hint);
                    reader.report(diagnostic);
                }
            }
        }
    }
}
