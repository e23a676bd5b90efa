//! Replacing secrets in texts that leave.
//!
//! Linear in the text: one automaton looks for every form of every secret at once. JSON stays JSON: only the inside of a
//! string is ever replaced, or a whole number.

use std::borrow::Cow;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use memchr::{memchr, memchr2};
use ptc_lisp::sorting;
use zeroize::Zeroizing;

use super::{MIN_SECRET_CHARS, forms};

pub use ptc_catalog::suspect::REDACTED;

/// Finds the secrets of a deployment. Cheap to clone.
#[derive(Clone)]
pub struct Redactor {
    patterns: Option<Arc<AhoCorasick>>,
    /// What the automaton was built from.
    forms: Arc<[Zeroizing<String>]>,
}

impl Redactor {
    /// Nothing to look for.
    pub fn none() -> Redactor {
        Redactor { patterns: None, forms: Arc::default() }
    }

    /// Looks for these secrets: plain, URL-encoded, escaped as in JSON, and in base64 at any offset. Secrets shorter than
    /// [`MIN_SECRET_CHARS`] characters are passed over.
    pub fn of<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Redactor {
        let all: Vec<String> =
            secrets.into_iter().filter(|s| s.chars().count() >= MIN_SECRET_CHARS).flat_map(forms::of).collect();
        Redactor::of_forms(all)
    }

    fn of_forms(mut all: Vec<String>) -> Redactor {
        sorting::by(&mut all, Ord::cmp);
        all.dedup();
        if all.is_empty() {
            return Redactor::none();
        }
        // The builder fails only where patterns exceed 2^31 bytes; a process that holds such secrets must not go on without
        // redaction.
        #[expect(clippy::expect_used, reason = "going on unredacted would be worse")]
        let built = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&all).expect("secrets fit an automaton");
        Redactor { patterns: Some(Arc::new(built)), forms: all.into_iter().map(Zeroizing::new).collect() }
    }

    /// The same, looking for another secret too.
    #[must_use]
    pub fn with(&self, secret: &str) -> Redactor {
        let mut all: Vec<String> = forms::of(secret);
        all.extend(self.forms.iter().map(|form| form.to_string()));
        Redactor::of_forms(all)
    }

    /// How much of a text that goes on can be redacted now: what follows may be the start of a secret.
    pub(super) fn decided(&self, text: &[u8]) -> usize {
        let Some(patterns) = self.patterns.as_deref() else { return text.len() };
        let longest = patterns.max_pattern_len();
        // A match that could still grow or shift starts within the last `longest` bytes.
        let mut undecided = text.len().saturating_sub(longest.saturating_sub(1));
        for found in patterns.find_iter(text) {
            if found.start() >= undecided {
                break;
            }
            undecided = undecided.max(found.end());
        }
        // Of that, only what begins a pattern needs to wait.
        (undecided..text.len()).find(|at| self.begins(text.get(*at..).unwrap_or_default())).unwrap_or(text.len())
    }

    fn begins(&self, text: &[u8]) -> bool {
        self.forms.iter().any(|form| form.as_bytes().starts_with(text) || text.starts_with(form.as_bytes()))
    }

    /// The same for bytes that are no JSON.
    pub(super) fn redact_plain(&self, bytes: Vec<u8>) -> Vec<u8> {
        match self.patterns.as_deref() {
            Some(patterns) if patterns.is_match(&bytes) => {
                patterns.replace_all_bytes(&bytes, &vec![REDACTED; patterns.patterns_len()])
            }
            _ => bytes,
        }
    }

    /// Plain text without secrets.
    pub fn redact_str<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.patterns.as_deref() {
            Some(patterns) if patterns.is_match(text) => Cow::Owned(replace(patterns, text)),
            _ => Cow::Borrowed(text),
        }
    }

    /// The same, without a copy where nothing is found.
    pub fn redact_string(&self, text: String) -> String {
        match self.redact_str(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(clean) => clean,
        }
    }

    /// The same for text that may be JSON, which stays JSON: see [`Redactor::redact_bytes`].
    pub fn redact_text(&self, text: String) -> String {
        let clean = self.redact_bytes(text.into_bytes());
        String::from_utf8(clean).unwrap_or_else(|odd| String::from_utf8_lossy(odd.as_bytes()).into_owned())
    }

    /// Text or JSON without secrets. Bytes that start like a JSON object or array are taken as JSON: keys, strings and
    /// numbers are cleaned, whatever their escapes, and everything between them stays.
    pub fn redact_bytes(&self, bytes: Vec<u8>) -> Vec<u8> {
        let Some(patterns) = self.patterns.as_deref() else { return bytes };
        let hit = patterns.is_match(&bytes);
        let json = matches!(bytes.iter().find(|b| !b.is_ascii_whitespace()), Some(b'{' | b'[' | b'"'));
        if json && (hit || memchr(b'\\', &bytes).is_some()) {
            return redact_json(patterns, bytes, hit);
        }
        if hit { self.redact_plain(bytes) } else { bytes }
    }
}

fn replace(patterns: &AhoCorasick, text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut from = 0;
    for found in patterns.find_iter(text) {
        clean.push_str(text.get(from..found.start()).unwrap_or_default());
        clean.push_str(REDACTED);
        from = found.end();
    }
    clean.push_str(text.get(from..).unwrap_or_default());
    clean
}

/// Walks the strings of a JSON text. Strings with escapes are unescaped before they are searched, since an upstream may
/// escape any character.
fn redact_json(patterns: &AhoCorasick, bytes: Vec<u8>, raw_hit: bool) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(&bytes) else {
        return patterns.replace_all_bytes(&bytes, &vec![REDACTED; patterns.patterns_len()]);
    };
    let mut clean = String::new();
    let mut copied = 0; // everything before it is in `clean`
    let mut at = 0;
    let mut put = |from: usize, to: usize, with: &str| {
        clean.push_str(text.get(copied..from).unwrap_or_default());
        clean.push_str(with);
        copied = to;
    };
    while let Some(quote) = memchr(b'"', text.as_bytes().get(at..).unwrap_or_default()) {
        let open = at + quote;
        if raw_hit {
            redact_scalars(patterns, text, at, open, &mut put);
        }
        let start = open + 1;
        let (end, escaped) = string_end(text.as_bytes(), start);
        let inside = text.get(start..end).unwrap_or_default();
        if escaped {
            // An unfinished or invalid string is searched as it stands.
            let plain = serde_json::from_str::<String>(text.get(open..=end).unwrap_or_default());
            let plain = plain.as_deref().unwrap_or(inside);
            if patterns.is_match(plain) {
                let quoted = serde_json::to_string(&replace(patterns, plain)).unwrap_or_default();
                put(start, end, quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default());
            }
        } else if raw_hit && patterns.is_match(inside) {
            put(start, end, &replace(patterns, inside));
        }
        at = (end + 1).min(text.len());
    }
    if raw_hit {
        redact_scalars(patterns, text, at, text.len(), &mut put);
    }
    if copied == 0 {
        return bytes;
    }
    clean.push_str(text.get(copied..).unwrap_or_default());
    clean.into_bytes()
}

/// Numbers that hold a secret, between two strings, become a string as a whole.
fn redact_scalars(patterns: &AhoCorasick, text: &str, from: usize, to: usize, put: &mut impl FnMut(usize, usize, &str)) {
    let between = text.get(from..to).unwrap_or_default();
    if !patterns.is_match(between) {
        return;
    }
    let is_scalar = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let mut rest = from;
    for token in between.split(|c| !is_scalar(c)) {
        if !token.is_empty() && patterns.is_match(token) {
            put(rest, rest + token.len(), &format!("\"{REDACTED}\""));
        }
        rest += token.len() + 1; // separators that are not ASCII cannot be in JSON here
    }
}

/// Where the string that starts at `from` ends, and whether it has escapes. The end of the text, if it is not closed.
fn string_end(text: &[u8], from: usize) -> (usize, bool) {
    let mut at = from;
    let mut escaped = false;
    while let Some(found) = memchr2(b'"', b'\\', text.get(at..).unwrap_or_default()) {
        let here = at + found;
        if text.get(here) == Some(&b'"') {
            return (here, escaped);
        }
        escaped = true;
        at = here + 2;
    }
    (text.len(), escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "s3cr3t/to\"ken+v";

    fn redact(json: &str) -> String {
        String::from_utf8(Redactor::of([SECRET]).redact_bytes(json.as_bytes().to_vec())).unwrap()
    }

    #[test]
    fn every_form_is_found_in_plain_text() {
        use base64::Engine;
        use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
        let redactor = Redactor::of([SECRET]);
        let mut forms = vec![
            SECRET.to_owned(),
            "s3cr3t%2Fto%22ken%2Bv".to_owned(),
            "s3cr3t%2fto%22ken%2bv".to_owned(),
            r#"s3cr3t/to\"ken+v"#.to_owned(),
            r#"s3cr3t\/to\"ken+v"#.to_owned(),
        ];
        for prefix in ["", "a", "ab", "user:"] {
            forms.push(STANDARD.encode(format!("{prefix}{SECRET} and more")));
            forms.push(URL_SAFE_NO_PAD.encode(format!("{prefix}{SECRET}")));
        }
        for form in forms {
            let clean = redactor.redact_str(&form).into_owned();
            assert!(clean.contains(REDACTED), "{form} -> {clean}");
        }
    }

    #[test]
    fn ordinary_words_stay_whole() {
        let redactor = Redactor::of(["abc", "e"]);
        assert_eq!(redactor.redact_str("event abc"), "event abc");
    }

    #[test]
    fn json_keeps_its_structure() {
        let cases = [
            (r#"{"a":"s3cr3t/to\"ken+v","b":[1,2]}"#, r#"{"a":"[REDACTED]","b":[1,2]}"#),
            (r#"{"a":"x \u0073\u00333cr3t"}"#, r#"{"a":"x \u0073\u00333cr3t"}"#),
            (r#"{"a":"\u0073\u0033cr3t\/to\u0022ken+v!"}"#, r#"{"a":"[REDACTED]!"}"#),
            (r#"{"s3cr3t/to\"ken+v":1}"#, r#"{"[REDACTED]":1}"#),
            (r#"{"t":"{\"k\":\"s3cr3t/to\\\"ken+v\"}"}"#, r#"{"t":"{\"k\":\"[REDACTED]\"}"}"#),
            (
                r#"{"t":"{\"u\":\"{\\\"k\\\":\\\"s3cr3t/to\\\\\\\"ken+v\\\"}\"}"}"#,
                r#"{"t":"{\"u\":\"{\\\"k\\\":\\\"[REDACTED]\\\"}\"}"}"#,
            ),
            (r#"{"a":"unchanged \n"}"#, r#"{"a":"unchanged \n"}"#),
            (r#"{"a":"open s3cr3t/to\"ken+v"#, r#"{"a":"open [REDACTED]"#),
        ];
        for (text, clean) in cases {
            assert_eq!(redact(text), clean, "{text}");
        }
    }

    #[test]
    fn a_secret_that_looks_like_structure_or_a_number_does_not_break_json() {
        let redactor = Redactor::of([r#""a":1,"b""#, "1234567890"]);
        let text = br#"{"a":1,"b":[1234567890, 99123456789012, 5],"c":"1234567890"}"#.to_vec();
        let clean = redactor.redact_bytes(text);
        let value: serde_json::Value = serde_json::from_slice(&clean).unwrap();
        assert_eq!(value.to_string(), r#"{"a":1,"b":["[REDACTED]","[REDACTED]",5],"c":"[REDACTED]"}"#);
    }
}
