//! The forms in which an upstream may echo a secret.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use ptc_lisp::sorting;
use zeroize::Zeroize;

/// Shortest encoded fragment that is looked for: shorter ones are found in ordinary text.
const MIN_FRAGMENT: usize = 8;

/// How many strings of JSON within one another are looked into.
const DEEPEST: usize = 3;

/// What RFC 3986 leaves as it is.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// What JavaScript's `encodeURIComponent` leaves as it is.
const COMPONENT: &AsciiSet = &UNRESERVED.remove(b'!').remove(b'*').remove(b'\'').remove(b'(').remove(b')');

/// Every form of `secret` worth looking for, without duplicates.
pub(super) fn of(secret: &str) -> Vec<String> {
    let mut forms = vec![secret.to_owned()];
    for set in [NON_ALPHANUMERIC, UNRESERVED, COMPONENT] {
        let upper = utf8_percent_encode(secret, set).to_string();
        forms.push(lower_hex(&upper));
        forms.push(upper.replace("%20", "+"));
        forms.push(upper);
    }
    // As it stands in JSON, and in JSON that is a string of JSON.
    let mut plain = secret.to_owned();
    for _ in 0..DEEPEST {
        let escaped = escaped(&plain);
        forms.push(escaped.replace('/', "\\/"));
        forms.push(escaped.clone());
        plain = escaped;
    }
    for engine in [&STANDARD, &URL_SAFE] {
        forms.extend((0..3).map(|offset| base64_core(engine, secret.as_bytes(), offset)));
    }
    forms.retain(|form| form == secret || form.len() >= MIN_FRAGMENT);
    sorting::by(&mut forms, Ord::cmp);
    forms.dedup();
    forms
}

/// The inside of a JSON string.
fn escaped(text: &str) -> String {
    let quoted = serde_json::to_string(text).unwrap_or_default();
    // By position: trimming quotes would eat an escaped one at the end.
    quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default().to_owned()
}

/// The characters of a base64 text that depend on the secret alone when it starts `offset` bytes into a group of three.
fn base64_core(engine: &impl Engine, secret: &[u8], offset: usize) -> String {
    let mut padded = vec![0u8; offset];
    padded.extend_from_slice(secret);
    let text = engine.encode(&padded);
    padded.zeroize();
    let first = (offset * 8).div_ceil(6);
    let past = (offset + secret.len()) * 8 / 6;
    text.get(first..past).unwrap_or_default().to_owned()
}

/// `%2F` → `%2f`.
fn lower_hex(encoded: &str) -> String {
    let mut in_escape = 0;
    encoded
        .chars()
        .map(|c| {
            if c == '%' {
                in_escape = 2;
                c
            } else if in_escape > 0 {
                in_escape -= 1;
                c.to_ascii_lowercase()
            } else {
                c
            }
        })
        .collect()
}
