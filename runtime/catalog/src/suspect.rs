//! What looks like a secret where secrets do not belong: in arguments, variables, headers and URLs.
//!
//! Suspicion has two degrees. Whatever may be a secret is not shown; only what likely is one is warned of, and taken out of what
//! upstreams answer.

use std::ops::Range;

/// Options, variables, headers and query parameters with one of these in their names may hold secrets.
const TELLING: &[&str] = &["auth", "cookie", "key", "pass", "pwd", "secret", "token", "credential", "signature"];
/// The same, where hardly anything else is meant.
const SURE: &[&str] =
    &["token", "secret", "password", "passwd", "apikey", "accesskey", "authkey", "privatekey", "credential", "authorization"];
/// Ends of names that say where a secret is or what it is like, and not what it is.
const POINTERS: &[&str] = &[
    "count", "dir", "enabled", "env", "expiry", "file", "header", "id", "length", "limit", "method", "mode", "name", "path",
    "prefix", "size", "timeout", "ttl", "type", "uri", "url", "var",
];
/// First words of names that count something.
const COUNTS: &[&str] = &["max", "min", "num"];

/// How tokens of well-known services begin.
const TOKENS: &[&str] = &[
    "AIza",
    "AKIA",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "hf_",
    "npm_",
    "ntn_",
    "pypi-",
    "sk-",
    "sk_live_",
    "xapp-",
    "xoxb-",
    "xoxp-",
    "ya29.",
];
/// Least characters of such a token.
const TOKEN_CHARS: usize = 20;
/// Words that say the same where they stand alone.
const ALONE: &[&str] = &["auth", "key", "pass", "pat", "pwd"];
/// A value shorter than this is rather a mode or a number.
const SECRET_CHARS: usize = 8;

/// What stands where a secret was.
pub const REDACTED: &str = "[REDACTED]";

/// A URL as it may be shown: without its query and fragment, which may hold what is nobody's business.
pub fn without_query(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or(url)
}

/// A part of a text that may be a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspect {
    /// Bytes of the text.
    pub range: Range<usize>,
    /// Whether it is worth a warning.
    pub likely: bool,
}

/// An argument of a command, and the one before it: `--token x`, `--token=x`, `TOKEN=x`, `Authorization: Bearer x`.
pub fn argument(before: &str, text: &str) -> Option<Suspect> {
    let separated = text.find(['=', ':']).filter(|at| !text.get(at + 1..).is_some_and(|rest| rest.starts_with("//")));
    if let Some(at) = separated {
        let (name, value) = (text.get(..at)?, text.get(at + 1..)?);
        let start = at + 1 + (value.len() - value.trim_start().len());
        if let Some(suspect) = named(name, value.trim_start(), start) {
            return Some(suspect);
        }
    } else if before.starts_with('-')
        && !text.starts_with('-')
        && !before.contains('=')
        && let Some(suspect) = named(before, text, 0)
    {
        return Some(suspect);
    }
    token(text)
}

/// A variable or header.
pub fn setting(name: &str, value: &str) -> Option<Suspect> {
    named(name, value, 0).or_else(|| token(value))
}

/// The values of a URL's query: any of them may be a secret.
pub fn query(url: &str) -> Vec<Suspect> {
    let Some(start) = url.find('?') else { return Vec::new() };
    let end = url.find('#').filter(|end| *end > start).unwrap_or(url.len());
    let mut suspects = Vec::new();
    let mut at = start + 1;
    for pair in url.get(at..end).unwrap_or("").split('&') {
        if let Some((name, value)) = pair.split_once('=') {
            let from = at + name.len() + 1;
            suspects.extend(named(name, value, from).or_else(|| {
                (!value.is_empty()).then_some(Suspect { range: from..from + value.len(), likely: token(value).is_some() })
            }));
        }
        at += pair.len() + 1;
    }
    suspects
}

/// Whether a variable of that name holds a secret, where nothing is known of its value. `GITHUB_PAT` and `API_KEY` do, `TOKEN_FILE`
/// and `KEYBOARD` do not.
pub fn names_a_secret(name: &str) -> bool {
    let alone = |word: &str| ALONE.iter().any(|known| word.eq_ignore_ascii_case(known));
    let plain = plain(name);
    let telling = SURE.iter().any(|word| plain.contains(word)) || name.split(|c: char| !c.is_ascii_alphanumeric()).any(alone);
    telling && !is_pointer(name, &plain)
}

fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

fn is_pointer(name: &str, plain: &str) -> bool {
    let first = name.split(|c: char| !c.is_ascii_alphanumeric()).find(|word| !word.is_empty()).unwrap_or_default();
    POINTERS.iter().any(|end| plain.ends_with(end)) || COUNTS.iter().any(|word| first.eq_ignore_ascii_case(word))
}

/// A value at `start` of its text, suspected for its name.
fn named(name: &str, value: &str, start: usize) -> Option<Suspect> {
    // What is resolved when the server starts is no secret yet.
    if value.is_empty() || value.starts_with("${") || value.starts_with('$') {
        return None;
    }
    let plain = plain(name);
    if !TELLING.iter().any(|word| plain.contains(word)) {
        return None;
    }
    let sure = SURE.iter().any(|word| plain.contains(word)) && !is_pointer(name, &plain);
    Some(Suspect { range: start..start + value.len(), likely: sure && value.chars().count() >= SECRET_CHARS })
}

/// A token of a well-known service, wherever in the text it stands.
pub fn token(text: &str) -> Option<Suspect> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let mut at = 0;
    for word in text.split(|c| !is_part(c)) {
        if word.len() >= TOKEN_CHARS && TOKENS.iter().any(|token| word.starts_with(token)) {
            return Some(Suspect { range: at..at + word.len(), likely: true });
        }
        at += word.len();
        at += text.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, suspect: Option<Suspect>) -> Option<(&str, bool)> {
        suspect.map(|suspect| (text.get(suspect.range).unwrap_or("no such part"), suspect.likely))
    }

    #[test]
    fn secrets_among_arguments() {
        for (before, text, expected) in [
            ("--token", "hunter2-hunter2", Some(("hunter2-hunter2", true))),
            ("", "--token=hunter2-hunter2", Some(("hunter2-hunter2", true))),
            ("-e", "API_KEY=hunter2-hunter2", Some(("hunter2-hunter2", true))),
            ("-H", "Authorization: Bearer abcdefgh", Some(("Bearer abcdefgh", true))),
            ("--header", "X: ghp_0123456789abcdefghij", Some(("ghp_0123456789abcdefghij", true))),
            ("--auth", "none", Some(("none", false))),
            ("--token-file", "/run/secrets/token", Some(("/run/secrets/token", false))),
            ("--token", "${TOKEN}", None),
            ("--token", "--verbose", None),
            ("-y", "@scope/some-server", None),
            ("", "https://example.com/a=b", None),
            ("--port", "8080", None),
        ] {
            assert_eq!(shown(text, argument(before, text)), expected, "{before} {text}");
        }
    }

    #[test]
    fn names_of_secrets() {
        for name in ["GITHUB_PAT", "API_KEY", "MY_TOKEN", "PGPASSWORD", "BASIC_AUTH", "apiKey", "DB_PWD", "MINIO_SECRET_KEY"] {
            assert!(names_a_secret(name), "{name}");
        }
        for name in [
            "TOKEN_FILE",
            "KEYBOARD",
            "PATH",
            "SSH_AUTH_PATH",
            "ROOT",
            "AUTHOR",
            "SECRET_NAME",
            "MAX_TOKENS",
            "AUTH_MODE",
            "TOKEN_TTL",
        ] {
            assert!(!names_a_secret(name), "{name}");
        }
    }

    #[test]
    fn values_of_queries() {
        let url = "https://h/p?apiKey=hunter2-hunter2&v=2&empty=#x=1";
        let found: Vec<_> = query(url).into_iter().map(|s| shown(url, Some(s))).collect();
        assert_eq!(found, [Some(("hunter2-hunter2", true)), Some(("2", false))]);
        assert_eq!(query("https://h/p"), []);
    }

    #[test]
    fn settings_by_name_or_by_form() {
        for (name, value, expected) in [
            ("GITHUB_TOKEN", "hunter2-hunter2", Some(("hunter2-hunter2", true))),
            ("GITHUB_TOKEN", "${PAT}", None),
            ("KEYBOARD", "qwerty", Some(("qwerty", false))),
            ("NOTE", "use sk-0123456789abcdefghij here", Some(("sk-0123456789abcdefghij", true))),
            ("LANG", "en", None),
        ] {
            assert_eq!(shown(value, setting(name, value)), expected, "{name}");
        }
    }
}
