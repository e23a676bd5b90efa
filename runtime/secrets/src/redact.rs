//! Replaces secrets in texts that leave the process.
//!
//! The time is linear in the length of the text. JSON stays valid: only the content of a string or a whole number is replaced.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use memchr::{memchr, memchr2};

use super::MIN_SECRET_CHARS;
use super::encodings::EncodedSecrets;
use super::issued::IssuedSecrets;
use super::patterns::Patterns;

pub use crate::heuristics::REDACTED;

/// The byte order mark that some systems put at the start of a text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Finds and replaces the secrets of a deployment. Cloning is cheap.
#[derive(Clone)]
pub struct Redactor {
    resolved: Option<Arc<Patterns>>,
    /// The secret of [`Redactor::layered`].
    layer: Option<Arc<Patterns>>,
    issued: Arc<IssuedSecrets>,
}

impl Redactor {
    /// Creates a redactor without secrets.
    pub fn none() -> Redactor {
        Redactor { resolved: None, layer: None, issued: Arc::default() }
    }

    /// Creates a redactor for these secrets. It finds them as plain text, in hexadecimal, in base64 at any offset, and each of
    /// these under several layers of JSON, URL and HTML escapes and of wrapped lines. For secrets of at least 24 bytes it also
    /// finds the first and the last three quarters alone, since some upstreams truncate what they echo. Secrets shorter than
    /// [`MIN_SECRET_CHARS`] characters are ignored.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Redactor {
        let mut encodings = EncodedSecrets::default();
        for secret in secrets.into_iter().filter(|s| s.chars().count() >= MIN_SECRET_CHARS) {
            encodings.add(secret);
        }
        Redactor { resolved: patterns(encodings), layer: None, issued: Arc::default() }
    }

    /// Returns a redactor that finds one more secret. Both find the issued secrets of each other.
    #[must_use]
    pub fn with(&self, secret: &str) -> Redactor {
        let mut encodings = EncodedSecrets::default();
        for known in self.resolved.iter().map(|patterns| &patterns.encodings) {
            encodings.all.extend_from_slice(&known.all);
            encodings.cores.extend_from_slice(&known.cores);
        }
        if secret.chars().count() >= MIN_SECRET_CHARS {
            encodings.add(secret);
        }
        Redactor { resolved: patterns(encodings), ..self.clone() }
    }

    /// Returns a redactor that finds one more secret, like [`Redactor::with`], and shares the tables of the others with this one. It is
    /// for a secret of which there are many, such as the token of a caller: each search takes longer, but only the tables of this secret
    /// are built. They have some 1,000 bytes for each byte of the secret, so that building them takes milliseconds. It replaces the layer
    /// of this redactor, if there is one.
    #[must_use]
    pub fn layered(&self, secret: &str) -> Redactor {
        let mut encodings = EncodedSecrets::default();
        if secret.chars().count() >= MIN_SECRET_CHARS {
            encodings.add(secret);
        }
        Redactor { layer: patterns(encodings), ..self.clone() }
    }

    /// Returns the size in bytes of the tables that this redactor does not share with the one from which
    /// [`Redactor::layered`] has made it.
    pub fn layer_bytes(&self) -> usize {
        self.layer.as_deref().map_or(0, Patterns::bytes)
    }

    /// Makes this redactor and its clones find a secret that was obtained while the server runs, such as an access token. Of each
    /// owner, such as an upstream, the newest four are found.
    pub fn add_issued(&self, owner: &str, secret: &str) {
        self.issued.add(owner, secret);
    }

    /// Makes `later` find the issued secrets of this redactor, also those that are added to it from now on.
    pub fn share_issued_with(&self, later: &Redactor) {
        if !Arc::ptr_eq(&self.issued, &later.issued) {
            self.issued.share_with(&later.issued);
        }
    }

    /// Returns a redactor that does not find issued secrets. It reads answers in which they are expected.
    #[must_use]
    pub fn without_issued(&self) -> Redactor {
        Redactor { issued: Arc::default(), ..self.clone() }
    }

    /// Returns the length of the prefix of an incomplete text that can be redacted now. The rest may be the start of a secret.
    pub(super) fn decided(&self, text: &[u8]) -> usize {
        let decided = |patterns: Option<&Patterns>| patterns.map_or(text.len(), |patterns| patterns.decided(text));
        let shared = decided(self.resolved.as_deref()).min(decided(self.issued.patterns().as_deref()));
        if self.layer.is_some() { shared.min(decided(self.layer.as_deref())) } else { shared }
    }

    /// Applies `clean` for the patterns that occur in `bytes`: those of the resolved secrets, then the others.
    fn each(&self, mut bytes: Vec<u8>, clean: impl Fn(&Patterns, &[u8]) -> Vec<u8>) -> Vec<u8> {
        for patterns in [self.resolved.as_deref(), self.layer.as_deref(), self.issued.patterns().as_deref()].into_iter().flatten()
        {
            if patterns.contains_secret(&bytes) {
                bytes = clean(patterns, &bytes);
            }
        }
        bytes
    }

    /// Redacts arbitrary bytes.
    pub(super) fn redact_plain(&self, bytes: Vec<u8>) -> Vec<u8> {
        self.each(bytes, Patterns::clean)
    }

    /// Redacts plain text.
    pub fn redact_str<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        for patterns in [self.resolved.as_deref(), self.layer.as_deref(), self.issued.patterns().as_deref()].into_iter().flatten()
        {
            if patterns.contains_secret(text.as_bytes()) {
                text = Cow::Owned(into_text(patterns.clean(text.as_bytes())));
            }
        }
        text
    }

    /// Like [`Redactor::redact_str`], but returns the given text if it contains no secret.
    pub fn redact_string(&self, text: String) -> String {
        match self.redact_str(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(clean) => clean,
        }
    }

    /// Like [`Redactor::redact_string`] for a text that may be JSON, which stays valid: see [`Redactor::redact_bytes`].
    pub fn redact_text(&self, text: String) -> String {
        into_text(self.redact_bytes(text.into_bytes()))
    }

    /// Redacts text or JSON. In bytes that start like JSON, keys, strings and numbers are redacted, and the rest is unchanged if
    /// the whole is valid JSON.
    pub fn redact_bytes(&self, bytes: Vec<u8>) -> Vec<u8> {
        self.each(bytes, Patterns::clean_json)
    }
}

/// Builds the patterns of encodings. `None` if there are none.
fn patterns(mut encodings: EncodedSecrets) -> Option<Arc<Patterns>> {
    encodings.sort_and_dedup();
    (!encodings.all.is_empty()).then(|| Arc::new(Patterns::new(encodings)))
}

impl Patterns {
    fn clean(&self, text: &[u8]) -> Vec<u8> {
        let mut out = Splice::new(text);
        for range in self.find(text).0 {
            out.put(range, REDACTED.as_bytes());
        }
        out.finish()
    }

    fn clean_json(&self, bytes: &[u8]) -> Vec<u8> {
        let body = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        let json = matches!(body.trim_ascii_start().first(), Some(b'{' | b'[' | b'"'))
            || serde_json::from_slice::<serde_json::Number>(body).is_ok();
        if !json {
            return self.clean(bytes);
        }
        let clean = self.clean_strings(bytes);
        let is_json = |body: &[u8]| serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok();
        // A text that only starts like JSON may contain a secret anywhere. In valid JSON, the bytes between strings and numbers
        // are not secret.
        if self.contains_secret(&clean) && !is_json(clean.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&clean)) {
            return self.clean(&clean);
        }
        clean
    }

    /// Redacts the strings and numbers of a JSON text.
    fn clean_strings(&self, text: &[u8]) -> Vec<u8> {
        let mut out = Splice::new(text);
        let mut at = 0;
        while let Some(quote) = memchr(b'"', text.get(at..).unwrap_or_default()) {
            self.clean_numbers(text, at..at + quote, &mut out);
            let start = at + quote + 1;
            let end = string_end(text, start);
            let inside = text.get(start..end).unwrap_or_default();
            if self.contains_secret(inside) {
                out.put(start..end, &self.clean(inside));
            }
            at = (end + 1).min(text.len());
        }
        self.clean_numbers(text, at..text.len(), &mut out);
        out.finish()
    }

    /// Replaces numbers between two strings that contain a secret. The replacement is a string.
    fn clean_numbers(&self, text: &[u8], within: Range<usize>, out: &mut Splice<'_>) {
        let mut from = within.start;
        let between = text.get(within).unwrap_or_default();
        if !self.automaton.is_match(between) {
            return;
        }
        for token in between.split(|b| !b.is_ascii_alphanumeric() && !matches!(b, b'+' | b'-' | b'.')) {
            if self.automaton.is_match(token) {
                out.put(from..from + token.len(), format!("\"{REDACTED}\"").as_bytes());
            }
            from += token.len() + 1;
        }
    }
}

/// Builds a copy of a text with some ranges replaced, in ascending order.
struct Splice<'t> {
    text: &'t [u8],
    out: Vec<u8>,
    copied: usize,
}

impl<'t> Splice<'t> {
    fn new(text: &'t [u8]) -> Splice<'t> {
        Splice { text, out: Vec::with_capacity(text.len()), copied: 0 }
    }

    fn put(&mut self, range: Range<usize>, with: &[u8]) {
        self.out.extend_from_slice(self.text.get(self.copied..range.start).unwrap_or_default());
        self.out.extend_from_slice(with);
        self.copied = range.end;
    }

    fn finish(mut self) -> Vec<u8> {
        self.out.extend_from_slice(self.text.get(self.copied..).unwrap_or_default());
        self.out
    }
}

fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|odd| String::from_utf8_lossy(odd.as_bytes()).into_owned())
}

/// Returns the end of the string that starts at `from`, or the end of the text if the string is not closed.
fn string_end(text: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(found) = memchr2(b'"', b'\\', text.get(at..).unwrap_or_default()) {
        if text.get(at + found) == Some(&b'"') {
            return at + found;
        }
        at += found + 2;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::super::stream::StreamRedactor;
    use super::*;

    const SECRET: &str = "s3cr3t/to\"ken+v";

    fn redact(json: &str) -> String {
        String::from_utf8(Redactor::new([SECRET]).redact_bytes(json.as_bytes().to_vec())).unwrap()
    }

    /// Returns the spellings of a secret that encoders produce.
    fn spellings(secret: &str) -> Vec<String> {
        use base64::Engine;
        use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
        use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
        let url = utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string();
        let hex = secret.bytes().fold(String::new(), |all, byte| all + &format!("{byte:02x}"));
        let numbered = |digits: fn(u16) -> String| -> String { secret.encode_utf16().map(digits).collect() };
        let json = |text: &str| -> String {
            let quoted = serde_json::to_string(text).unwrap();
            quoted[1..quoted.len() - 1].to_owned()
        };
        let mut all = vec![
            secret.to_owned(),
            url.replace("%2F", "/").replace("%2B", "%2b"),
            url.replace("%2F", "/"),
            utf8_percent_encode(&url, NON_ALPHANUMERIC).to_string(),
            json(&json(&json(secret))),
            json(secret).replace('/', "\\/"),
            json(&json(secret).replace('/', "\\/")).replace('/', "\\/"),
            json(secret).replace('+', "\\u002B").replace('"', "\\u0022"),
            numbered(|unit| format!("\\u{unit:04x}")),
            numbered(|unit| format!("\\u{unit:04X}")),
            secret.replace('+', "&#43;").replace('"', "&quot;"),
            secret.replace('+', "&#x2B;").replace('"', "&#34;"),
            url.replace('%', "\\u0025"),
            hex.clone(),
            hex.to_uppercase(),
        ];
        for bytes in [u16::to_le_bytes, u16::to_be_bytes] {
            let wide: Vec<u8> = format!("-{secret}-").encode_utf16().flat_map(bytes).collect();
            all.extend(
                [wide.clone(), [b"x", wide.as_slice()].concat(), [b"xy", wide.as_slice()].concat()]
                    .map(|wide| STANDARD.encode(wide)),
            );
            all.extend(String::from_utf8(wide).ok());
        }
        // A header that was encoded in base64 again.
        all.push(STANDARD.encode(format!("Authorization: Basic {}", STANDARD.encode(secret))));
        for prefix in ["", "a", "ab", "user:", "Authorization: "] {
            for inner in [secret, &url, &json(secret), &STANDARD.encode(secret), &json(secret).replace('/', "\\/")] {
                let bits = STANDARD.encode(format!("{prefix}{inner} and more, {}", "x".repeat(60)));
                all.push(utf8_percent_encode(&bits, NON_ALPHANUMERIC).to_string());
                for (width, line_break) in [(64, "\n"), (76, "\r\n"), (70, "\n    ")] {
                    let far = STANDARD.encode(format!("{}{prefix}{inner} and more {}", "x".repeat(45), "x".repeat(60)));
                    let lines: Vec<&str> = (0..far.len()).step_by(width).map(|at| &far[at..far.len().min(at + width)]).collect();
                    all.push(lines.join(line_break));
                    all.push(json(&lines.join(line_break)));
                }
                all.push(bits);
                all.push(URL_SAFE_NO_PAD.encode(format!("{prefix}{inner}")));
            }
        }
        all
    }

    const SECRETS: [&str; 4] = [SECRET, "b4ck\\nslash%2Fit", "w\u{f6}rter und \u{1f511} schl\u{fc}ssel", "Ab3/Zq9+Xy&Kt'LmPw0"];

    /// Returns a token in the form of a JWT.
    fn jwt(length: usize) -> String {
        use base64::Engine;
        use base64::engine::general_purpose::URL_SAFE_NO_PAD;
        let bytes: Vec<u8> = (0..length as u64).map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
        let mut token = URL_SAFE_NO_PAD.encode(bytes);
        token.truncate(length);
        token.replace_range(40..41, ".");
        token
    }

    #[test]
    fn layer_is_found_in_every_encoding_beside_the_other_secrets() {
        let base = Redactor::new(SECRETS);
        base.add_issued("crm", "not-a-real-token-one");
        let token = jwt(64);
        let layered = base.layered("not-a-real-token-two").layered(&token);
        for secret in SECRETS.into_iter().chain(["not-a-real-token-one", &token]) {
            for encoded in spellings(secret) {
                let clean = layered.redact_str(&encoded).into_owned();
                assert!(clean.contains(REDACTED), "{encoded} -> {clean}");
            }
        }
        assert_eq!(layered.redact_str("not-a-real-token-two"), "not-a-real-token-two", "it is replaced");
        assert_eq!(base.redact_str(&token), token);
        let mut stream = StreamRedactor::new(layered);
        let mut clean: Vec<u8> = format!("x {token} y").as_bytes().chunks(9).flat_map(|piece| stream.feed(piece)).collect();
        clean.extend(stream.finish());
        assert_eq!(String::from_utf8_lossy(&clean), format!("x {REDACTED} y"));
    }

    #[test]
    fn layer_has_no_tables_of_the_other_secrets() {
        let secrets: Vec<String> = (0..20).map(|n| jwt(41 + n)).collect();
        let base = Redactor::new(secrets.iter().map(String::as_str));
        let bytes = |redactor: &Redactor| redactor.resolved.as_deref().map_or(0, Patterns::bytes);
        let token = jwt(1_000);
        let (whole, layer) = (bytes(&base.with(&token)), base.layered(&token).layer_bytes());
        println!("{} bytes for 20 secrets; for one more of 1,000 bytes {whole} in one table, {layer} in a layer", bytes(&base));
        assert_eq!(layer, Redactor::none().layered(&token).layer_bytes());
        assert!(layer + bytes(&base) / 2 < whole, "{layer} of {whole}");
        assert!(
            (500..2_000).contains(&(layer / token.len())),
            "{layer}: the limit of the bytes of callers assumes some 1,000 each"
        );
    }

    #[test]
    fn every_encoding_is_redacted_in_text_and_json() {
        for secret in SECRETS {
            let redactor = Redactor::new([secret]);
            for encoded in spellings(secret) {
                let text = format!("before {encoded} after");
                let clean = redactor.redact_str(&text).into_owned();
                assert!(clean.contains(REDACTED), "{encoded} -> {clean}");
                assert!(clean.starts_with("before ") && clean.ends_with(" after"), "{encoded} -> {clean}");
                let json = serde_json::json!({"k": text, &text: [1, "x"]}).to_string();
                let clean = String::from_utf8(redactor.redact_bytes(json.into_bytes())).unwrap();
                let value: serde_json::Value = serde_json::from_str(&clean).unwrap_or_else(|why| panic!("{why}: {clean}"));
                assert!(value["k"].as_str().is_some_and(|k| k.contains(REDACTED)), "{encoded} -> {clean}");
                assert!(redactor.redact_str(&clean) == clean, "{clean}");
            }
        }
    }

    #[test]
    fn encoding_is_redacted_at_any_chunk_boundary() {
        for secret in &SECRETS[..2] {
            let redactor = Redactor::new([*secret]);
            for encoded in spellings(secret) {
                let text = format!("before {encoded} after\n");
                for step in [3, 17] {
                    let mut stream = StreamRedactor::new(redactor.clone());
                    let mut clean: Vec<u8> = text.as_bytes().chunks(step).flat_map(|piece| stream.feed(piece)).collect();
                    clean.extend(stream.finish());
                    assert_eq!(String::from_utf8_lossy(&clean), redactor.redact_str(&text), "pieces of {step} of {encoded}");
                }
            }
        }
    }

    #[test]
    fn long_line_is_not_buffered() {
        let mut stream = StreamRedactor::new(Redactor::new([SECRET]));
        let sent: usize = (0..100).map(|_| stream.feed("QWxhZGRp".repeat(10).as_bytes()).len()).sum();
        assert!(sent > 7_500, "{sent} of 8,000");
    }

    #[test]
    fn text_before_or_inside_json_does_not_hide_a_secret() {
        let redactor = Redactor::new([SECRET, "1234567890", "ghp_0123456789"]);
        let escaped = r"\u0073\u0033cr3t\/to\u0022ken\u002Bv";
        for (text, clean) in [
            (
                format!("\u{feff}{{\"k\":\"{escaped}\",\"n\":1234567890}}").into_bytes(),
                "\u{feff}{\"k\":\"[REDACTED]\",\"n\":\"[REDACTED]\"}",
            ),
            (
                [b"{\"x\":\"\xff\",\"k\":\"".as_slice(), escaped.as_bytes(), b"\"}"].concat(),
                "{\"x\":\"\u{fffd}\",\"k\":\"[REDACTED]\"}",
            ),
            (b" 1234567890\n".to_vec(), " \"[REDACTED]\"\n"),
            (b"1234567890 items".to_vec(), "[REDACTED] items"),
            (b"[INFO] token=ghp_0123456789".to_vec(), "[INFO] token=[REDACTED]"),
            (format!("Error: {{\"token\":\"{escaped}\"}}").into_bytes(), "Error: {\"token\":\"[REDACTED]\"}"),
        ] {
            assert_eq!(String::from_utf8_lossy(&redactor.redact_bytes(text)), clean);
        }
    }

    #[test]
    fn partial_escape_is_not_replaced() {
        let redactor = Redactor::new(["n3wline-s3cret"]);
        for json in [r#"{"a":"\n3wline-s3cret"}"#, r#"{"a":"{\"b\":\"\\n3wline-s3cret\"}"}"#] {
            let clean: serde_json::Value = serde_json::from_slice(&redactor.redact_bytes(json.as_bytes().to_vec())).unwrap();
            let inner = clean["a"].as_str().unwrap();
            assert!(inner == REDACTED || inner == r#"{"b":"[REDACTED]"}"#, "{inner}");
        }
    }

    #[test]
    fn escaped_text_without_secret_is_unchanged() {
        let redactor = Redactor::new([SECRET]);
        for text in [
            r"C:\users\new\x41",
            "100% & more &amp; \\",
            r#"{"a":"\ud83d","b":"\ud83d\udd11 \u00e9 %zz %"}"#,
            "\\u{110000} &#x110000;",
        ] {
            assert_eq!(redactor.redact_str(text), text);
            assert_eq!(redactor.redact_bytes(text.as_bytes().to_vec()), text.as_bytes());
        }
    }

    /// Encodes a text in base64 at each offset into a group of three bytes.
    fn at_offsets(text: &str) -> Vec<String> {
        use base64::Engine;
        use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE};
        let prefixed = ["", "a", "ab"].map(|prefix| format!("{prefix}{text}"));
        let standard = prefixed.iter().map(|text| STANDARD.encode(text));
        let bare = prefixed.iter().map(|text| STANDARD_NO_PAD.encode(text));
        standard.chain(bare).chain(prefixed.iter().map(|text| URL_SAFE.encode(text))).collect()
    }

    #[test]
    fn base64_is_redacted_with_its_last_character_and_padding() {
        for secret in ["fuser:fpassword77", "fuser:fpassword7", "fuser:fpassword", "fuser:fpassword77-and-twenty-more-bytes"] {
            let redactor = Redactor::new([secret]);
            for (at, text) in at_offsets(secret).iter().enumerate() {
                let clean = redactor.redact_str(&format!("Basic {text}, more")).into_owned();
                // The remaining characters before the secret contain no bits of it.
                let kept = clean.strip_prefix("Basic ").and_then(|rest| rest.strip_suffix("[REDACTED], more"));
                assert!(kept.is_some_and(|kept| kept.len() <= at % 3), "{text} -> {clean}");
                let json = redactor.redact_text(format!("{{\"authorization\":\"Basic {text}\"}}"));
                assert!(json.ends_with("[REDACTED]\"}"), "{json}");
            }
        }
    }

    #[test]
    fn truncated_secret_is_redacted_in_every_encoding() {
        for secret in [
            "ghp_0123456789abcdefABCDEF",
            "s3cr3t/with+signs/and=more,of&it-all",
            "w\u{f6}rter und \u{1f511} schl\u{fc}ssel, lang",
        ] {
            let redactor = Redactor::new([secret]);
            let chars: Vec<char> = secret.chars().collect();
            for cut in [1, 2, 3] {
                let parts: [String; 2] = [chars[..chars.len() - cut].iter().collect(), chars[cut..].iter().collect()];
                // Nested base64 is found if it begins with the secret or at a multiple of three bytes after its start.
                let is_aligned = [true, (secret.len() - parts[1].len()).is_multiple_of(3)];
                for (part, is_aligned) in parts.iter().zip(is_aligned) {
                    let encodings = if is_aligned { spellings(part) } else { at_offsets(part) };
                    for encoded in encodings {
                        let text = format!("before {encoded} after");
                        let clean = redactor.redact_str(&text).into_owned();
                        assert!(clean.contains(REDACTED), "{cut}: {encoded} -> {clean}");
                    }
                    assert_eq!(redactor.redact_str(&format!("<{part}\u{2026}>")), "<[REDACTED]\u{2026}>", "{part}");
                }
            }
        }
    }

    #[test]
    fn truncated_short_secret_and_user_name_are_not_redacted() {
        let redactor = Redactor::new(["0123456789abcdefghijklm", "integration-service-user@example.com:hunter2-hunter2"]);
        for text in ["0123456789abcdefghijkl", "integration-service-user@example.com", "integration-service-user@example.com:x"] {
            assert_eq!(redactor.redact_str(text), text);
        }
    }

    #[test]
    fn ordinary_words_are_not_redacted() {
        let redactor = Redactor::new(["abc", "e"]);
        assert_eq!(redactor.redact_str("event abc"), "event abc");
    }

    #[test]
    fn redacted_json_keeps_its_structure() {
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
    fn secret_like_json_syntax_or_number_does_not_break_json() {
        let redactor = Redactor::new([r#""a":1,"b""#, "1234567890"]);
        let text = br#"{"a":1,"b":[1234567890, 99123456789012, 5],"c":"1234567890"}"#.to_vec();
        let clean = redactor.redact_bytes(text);
        let value: serde_json::Value = serde_json::from_slice(&clean).unwrap();
        assert_eq!(value.to_string(), r#"{"a":1,"b":["[REDACTED]","[REDACTED]",5],"c":"[REDACTED]"}"#);
    }
}
