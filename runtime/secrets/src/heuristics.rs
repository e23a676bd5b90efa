//! Heuristics that find secrets where they do not belong: in arguments, variables, headers and URLs.
//!
//! A finding is possible or likely. Possible secrets are not shown. Only likely secrets cause a warning, and are removed from the
//! responses of upstreams.

use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::MIN_SECRET_CHARS;

/// Options, variables, headers and query parameters whose names contain one of these words may hold secrets.
const WEAK_HINTS: &[&str] = &["auth", "cookie", "key", "pass", "pwd", "secret", "token", "credential", "signature"];
/// Like [`WEAK_HINTS`], but the words seldom have another meaning.
const STRONG_HINTS: &[&str] =
    &["token", "secret", "password", "passwd", "apikey", "accesskey", "authkey", "privatekey", "credential", "authorization"];
/// Suffixes of names that describe or locate a secret instead of holding it.
const NON_SECRET_SUFFIXES: &[&str] = &[
    "count", "dir", "enabled", "env", "expiry", "file", "header", "id", "length", "limit", "method", "mode", "name", "path",
    "prefix", "size", "timeout", "ttl", "type", "uri", "url", "var",
];
/// First words of names that count something.
const COUNT_PREFIXES: &[&str] = &["max", "min", "num"];

/// Prefixes of the tokens of well-known services.
const TOKEN_PREFIXES: &[&str] = &[
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
    "rk_live_",
    "rk_test_",
    "sk-",
    "sk_live_",
    "sk_test_",
    "xapp-",
    "xoxb-",
    "xoxp-",
    "ya29.",
];
/// Minimum characters of such a token.
const MIN_TOKEN_CHARS: usize = 20;
/// Words that indicate a secret if they are a whole word of a name.
const WHOLE_WORD_HINTS: &[&str] = &["auth", "key", "pass", "pat", "pwd"];

/// The replacement for a secret in shown text.
pub const REDACTED: &str = "[REDACTED]";

/// Returns the part of a URL that may be shown: without query and fragment, which may hold private data.
pub fn without_query(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or(url)
}

/// A part of a text that may be a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretCandidate {
    /// The range in bytes of the text.
    pub range: Range<usize>,
    /// Whether it is certain enough for a warning.
    pub likely: bool,
}

/// Examines an argument of a command together with the argument before it: `--token x`, `--token=x`, `TOKEN=x`, `Authorization:
/// Bearer x`, and anything that has the form of a secret.
pub fn scan_argument(before: &str, text: &str) -> Option<SecretCandidate> {
    let by_name = argument_by_name(before, text);
    stronger(by_name, text)
}

fn argument_by_name(before: &str, text: &str) -> Option<SecretCandidate> {
    let separated = text.find(['=', ':']).filter(|at| !text.get(at + 1..).is_some_and(|rest| rest.starts_with("//")));
    if let Some(at) = separated {
        let (name, value) = (text.get(..at)?, text.get(at + 1..)?);
        let start = at + 1 + (value.len() - value.trim_start().len());
        named(name, value.trim_start(), start)
    } else if before.starts_with('-') && !text.starts_with('-') && !before.contains('=') {
        named(before, text, 0)
    } else {
        None
    }
}

/// Examines a variable, a header, or an argument of a call.
pub fn scan_named(name: &str, value: &str) -> Option<SecretCandidate> {
    stronger(named(name, value, 0), value)
}

/// Combines a finding by name with one by form, which can make it likely: a name such as `OPENAI_KEY` is weak evidence, but a
/// value `sk-…` is strong.
fn stronger(by_name: Option<SecretCandidate>, text: &str) -> Option<SecretCandidate> {
    match by_name {
        Some(candidate) if candidate.likely => Some(candidate),
        other => scan_token(text).or_else(|| password(text)).or(other),
    }
}

/// Returns the values of a URL's query, since any of them may be a secret.
pub fn scan_query(url: &str) -> Vec<SecretCandidate> {
    let Some(start) = url.find('?') else { return Vec::new() };
    let end = url.find('#').filter(|end| *end > start).unwrap_or(url.len());
    let mut candidates = Vec::new();
    let mut at = start + 1;
    for pair in url.get(at..end).unwrap_or("").split('&') {
        if let Some((name, value)) = pair.split_once('=') {
            let from = at + name.len() + 1;
            let likely = named(name, value, from).is_some_and(|candidate| candidate.likely) || scan_token(value).is_some();
            candidates.extend((!value.is_empty()).then_some(SecretCandidate { range: from..from + value.len(), likely }));
        }
        at += pair.len() + 1;
    }
    candidates
}

/// Whether the name of a variable indicates a secret, for an unknown value. `GITHUB_PAT` and `API_KEY` do, `TOKEN_FILE` and
/// `KEYBOARD` do not.
pub fn names_a_secret(name: &str) -> bool {
    let alone = |word: &str| WHOLE_WORD_HINTS.iter().any(|known| word.eq_ignore_ascii_case(known));
    let plain = plain(name);
    let telling =
        STRONG_HINTS.iter().any(|word| plain.contains(word)) || name.split(|c: char| !c.is_ascii_alphanumeric()).any(alone);
    telling && !is_pointer(name, &plain)
}

/// Names of parameters that carry a credential, without separators.
const CREDENTIAL_NAMES: &[&str] = &[
    "auth",
    "authentication",
    "authorization",
    "bearer",
    "cookie",
    "credential",
    "credentials",
    "idtoken",
    "jwt",
    "pass",
    "passwd",
    "password",
    "pwd",
    "secret",
    "session",
    "sid",
    "token",
];
/// Endings of such names. `pageToken`, `sessionCount` and `shareToken` do not have them.
const CREDENTIAL_SUFFIXES: &[&str] = &[
    "accesskey",
    "accesstoken",
    "apikey",
    "apitoken",
    "appkey",
    "applicationkey",
    "apptoken",
    "authkey",
    "authorization",
    "authtoken",
    "bearertoken",
    "bottoken",
    "csrftoken",
    "functionskey",
    "logintoken",
    "oauthtoken",
    "passphrase",
    "password",
    "passwordconfirmation",
    "privatekey",
    "privatetoken",
    "refreshtoken",
    "secret",
    "secretkey",
    "securitytoken",
    "servicetoken",
    "sessid",
    "sessionid",
    "sessionkey",
    "sessiontoken",
    "subscriptionkey",
    "usertoken",
    "vaulttoken",
    "xsrftoken",
];

/// Whether the name of a request's parameter says that it carries a credential: `api_key`, `X-Auth-Token`, `session`.
pub fn names_a_credential(name: &str) -> bool {
    let plain = plain(name);
    let is_extension = name.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("x-"));
    let bare = plain.strip_prefix('x').filter(|_| is_extension).unwrap_or(&plain);
    CREDENTIAL_NAMES.contains(&bare) || CREDENTIAL_SUFFIXES.iter().any(|end| plain.ends_with(end))
}

fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

fn is_pointer(name: &str, plain: &str) -> bool {
    let first = name.split(|c: char| !c.is_ascii_alphanumeric()).find(|word| !word.is_empty()).unwrap_or_default();
    NON_SECRET_SUFFIXES.iter().any(|end| plain.ends_with(end))
        || COUNT_PREFIXES.iter().any(|word| first.eq_ignore_ascii_case(word))
}

/// Examines a value by its name. `start` is its offset in the text.
fn named(name: &str, value: &str, start: usize) -> Option<SecretCandidate> {
    let plain = plain(name);
    let own = own_chars(value);
    if own == 0 || !WEAK_HINTS.iter().any(|word| plain.contains(word)) {
        return None;
    }
    // A shorter value is more probably a mode or a number.
    let sure = STRONG_HINTS.iter().any(|word| plain.contains(word)) && !is_pointer(name, &plain);
    Some(SecretCandidate { range: start..start + value.len(), likely: sure && own >= MIN_SECRET_CHARS })
}

/// Returns the number of literal characters of a value. `${NAME}` is resolved when the server starts, so that it does not count.
/// A whole `$NAME` is treated alike. Other texts that begin with a dollar sign may be passwords.
fn own_chars(value: &str) -> usize {
    let is_name = |name: &str, lower: bool| {
        let is_letter = |c: char| c == '_' || c.is_ascii_uppercase() || lower && c.is_ascii_lowercase();
        name.starts_with(is_letter) && name.chars().all(|c| is_letter(c) || c.is_ascii_digit())
    };
    if value.strip_prefix('$').is_some_and(|name| is_name(name, false)) {
        return 0;
    }
    let mut parts = value.split("${");
    let mut own = parts.next().unwrap_or_default().chars().count();
    for part in parts {
        own += match part.split_once('}') {
            Some((name, rest)) if is_name(name, true) => rest.chars().count(),
            _ => 2 + part.chars().count(),
        };
    }
    own
}

/// Returns the part before the `@` of the first URL in a text, and the user and the password in it, all as they are written.
pub(crate) fn user_and_password(text: &str) -> Option<(&str, &str, &str)> {
    let (_, rest) = text.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (pair, _) = authority.rsplit_once('@')?;
    let (user, password) = pair.split_once(':')?;
    Some((pair, user, password))
}

/// Finds the password of a URL anywhere in a text, such as a connection string: `postgres://user:password@host/db`. A password
/// that equals the user's name is ignored: examples and local databases have such passwords.
fn password(text: &str) -> Option<SecretCandidate> {
    let (_, user, password) = user_and_password(text)?;
    let from = text.find("://")? + 3 + user.len() + 1;
    // `<password>` and `{password}` are placeholders of documentation.
    let is_blank = [('<', '>'), ('{', '}')].iter().any(|(open, close)| password.starts_with(*open) && password.ends_with(*close));
    let is_secret = own_chars(password) > 0 && !is_blank && user != password;
    is_secret.then_some(SecretCandidate { range: from..from + password.len(), likely: true })
}

/// The compiler searches all texts of all definitions for it, and the search of the standard library prepares a table each time.
static BEGIN_OF_PEM: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("-----BEGIN "));

/// Finds a private key in PEM format. The first line alone is not enough.
fn private_key(text: &str) -> Option<SecretCandidate> {
    let from = BEGIN_OF_PEM.find(text.as_bytes())?;
    let (label, rest) = text.get(from + BEGIN_OF_PEM.needle().len()..)?.split_once("-----")?;
    // In variables line feeds are often written as `\n`.
    let body = rest.trim_start().trim_start_matches("\\n");
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=');
    let length = body.find(|c| !is_base64(c)).unwrap_or(body.len());
    (label.ends_with("PRIVATE KEY") && length >= MIN_TOKEN_CHARS)
        .then_some(SecretCandidate { range: from..text.len(), likely: true })
}

/// Whether a word is a signed JSON Web Token (RFC 7519): three parts, the first two of which are JSON objects.
fn is_web_token(word: &str) -> bool {
    let parts: Vec<&str> = word.split('.').collect();
    matches!(parts.as_slice(), [head, body, signature] if head.starts_with("eyJ") && body.starts_with("eyJ") && !signature.is_empty())
}

/// Finds a secret by its form, anywhere in a text: the token of a well-known service, a JSON Web Token, or a private key.
pub fn scan_token(text: &str) -> Option<SecretCandidate> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let mut at = 0;
    for word in text.split(|c| !is_part(c)) {
        if word.len() >= MIN_TOKEN_CHARS && (is_web_token(word) || TOKEN_PREFIXES.iter().any(|token| word.starts_with(token))) {
            return Some(SecretCandidate { range: at..at + word.len(), likely: true });
        }
        at += word.len();
        at += text.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
    }
    private_key(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEM: &str = "-----BEGIN RSA PRIVATE KEY-----\\nMIIBhunter2hunter2hunter2";

    fn shown(text: &str, candidate: Option<SecretCandidate>) -> Option<(&str, bool)> {
        candidate.map(|candidate| (text.get(candidate.range).unwrap_or("no such part"), candidate.likely))
    }

    #[test]
    fn secrets_in_command_arguments_are_detected() {
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
            ("--key", "sk-0123456789abcdefghij", Some(("sk-0123456789abcdefghij", true))),
            ("", "postgres://app:hunter2@db/x", Some(("hunter2", true))),
            ("", "--dsn=mysql://app:hunter2@db", Some(("hunter2", true))),
            ("", "postgres://postgres:postgres@localhost/x", None),
            ("", "https://user@example.com/", None),
            ("", "postgres://app:${PASSWORD}@db/x", None),
            ("", "postgres://app:$PASSWORD@db/x", None),
            ("", "postgres://app:<password>@db/x", None),
            ("", "postgres://app:$hunter2@db/x", Some(("$hunter2", true))),
            ("", "postgres://app:<hunter2@db/x", Some(("<hunter2", true))),
            ("--password", "$hunter2-hunter2", Some(("$hunter2-hunter2", true))),
            ("--password", "$PASSWORD", None),
            ("", "Authorization: Bearer ${TOKEN}", Some(("Bearer ${TOKEN}", false))),
        ] {
            assert_eq!(shown(text, scan_argument(before, text)), expected, "{before} {text}");
        }
    }

    #[test]
    fn secret_names_are_recognised() {
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
    fn secrets_in_query_strings_are_detected() {
        let url = "https://h/p?apiKey=hunter2-hunter2&v=2&empty=&key=sk-0123456789abcdefghij#x=1";
        let found: Vec<_> = scan_query(url).into_iter().map(|s| shown(url, Some(s))).collect();
        assert_eq!(found, [Some(("hunter2-hunter2", true)), Some(("2", false)), Some(("sk-0123456789abcdefghij", true))]);
        assert_eq!(scan_query("https://h/p"), []);
    }

    #[test]
    fn settings_are_detected_by_name_or_token_format() {
        for (name, value, expected) in [
            ("GITHUB_TOKEN", "hunter2-hunter2", Some(("hunter2-hunter2", true))),
            ("GITHUB_TOKEN", "${PAT}", None),
            ("GITHUB_TOKEN", "${USER}${pat_1}", None),
            ("GITHUB_TOKEN", "${PAT}hunter2-hunter2", Some(("${PAT}hunter2-hunter2", true))),
            ("GITHUB_TOKEN", "${hunter2-hunter2", Some(("${hunter2-hunter2", true))),
            ("GITHUB_TOKEN", "${hunter2-hunter2}", Some(("${hunter2-hunter2}", true))),
            ("GITHUB_TOKEN", "$hunter2hunter2", Some(("$hunter2hunter2", true))),
            ("GITHUB_TOKEN", "$", Some(("$", false))),
            ("KEYBOARD", "qwerty", Some(("qwerty", false))),
            ("NOTE", "use sk-0123456789abcdefghij here", Some(("sk-0123456789abcdefghij", true))),
            ("LANG", "en", None),
            ("OPENAI_KEY", "sk-0123456789abcdefghij", Some(("sk-0123456789abcdefghij", true))),
            ("GITHUB_AUTH", "ghp_0123456789abcdefghij", Some(("ghp_0123456789abcdefghij", true))),
            ("STRIPE", "sk_test_0123456789abcdefghij", Some(("sk_test_0123456789abcdefghij", true))),
            ("DATABASE_URL", "postgres://app:hunter2@db/x", Some(("hunter2", true))),
            ("SESSION", "eyJhbGciOiJub25lIn0.eyJhIjoxfQ.hunter2", Some(("eyJhbGciOiJub25lIn0.eyJhIjoxfQ.hunter2", true))),
            ("CURSOR", "eyJhbGciOiJub25lIiwiYSI6MX0", None),
            ("PEM", "-----BEGIN RSA PRIVATE KEY-----\\nMIIBhunter2hunter2hunter2", Some((PEM, true))),
            ("NOTE", "begins with -----BEGIN PRIVATE KEY----- and goes on", None),
        ] {
            assert_eq!(shown(value, scan_named(name, value)), expected, "{name}");
        }
    }

    #[test]
    fn parameters_that_carry_credentials_are_recognised_by_name() {
        for name in [
            "api_key",
            "apikey",
            "X-API-Key",
            "token",
            "X-Token",
            "access_token",
            "Authorization",
            "session",
            "sessionId",
            "Password",
            "Ocp-Apim-Subscription-Key",
            "X-Auth-Token",
            "X-CSRF-Token",
            "PHPSESSID",
            "X-Vault-Token",
            "PRIVATE-TOKEN",
            "api_secret",
            "X-Functions-Key",
            "password_confirmation",
            "id_token",
            "passphrase",
        ] {
            assert!(names_a_credential(name), "{name}");
        }
        for name in [
            "page_token",
            "nextToken",
            "continuationToken",
            "key",
            "sessions",
            "session_count",
            "author",
            "tokens",
            "passive",
            "id_token_hint",
            "password_changed",
            "xtoken",
        ] {
            assert!(!names_a_credential(name), "{name}");
        }
    }
}
