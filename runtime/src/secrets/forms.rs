//! What is looked for of a secret, in a text and in its [views](super::view): what decoding cannot bring back to the secret itself.

use std::fmt::Write as _;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use ptc_lisp::sorting;
use zeroize::Zeroizing;

use super::view::{DEEPEST, Units, View};

/// Bytes to look for; overwritten when they are dropped.
pub(super) type Form = Zeroizing<Vec<u8>>;

/// Shortest form that is looked for: shorter ones are found in ordinary text.
pub(super) const MIN_FORM: usize = 8;

/// What RFC 3986 leaves as it is.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// What JavaScript's `encodeURIComponent` leaves as it is.
const COMPONENT: &AsciiSet = &UNRESERVED.remove(b'!').remove(b'*').remove(b'\'').remove(b'(').remove(b')');
/// What Python's `quote` leaves as it is.
const PATH: &AsciiSet = &UNRESERVED.remove(b'/');

/// Every form of `secret` worth looking for, without duplicates.
pub(super) fn of(secret: &str) -> Vec<Form> {
    let mut forms = vec![form(secret)];
    // A secret that has escapes itself is read as something else in a view.
    let mut units = Units::default();
    for _ in 0..DEEPEST {
        let Some(view) = forms.last().and_then(|last| View::of(last, &units)) else { break };
        units = view.units;
        forms.push(Zeroizing::new(view.text));
    }
    if secret.contains(' ') {
        forms.push(form(&secret.replace(' ', "+")));
    }
    // As dumps of bytes have it.
    forms.extend([hex(secret, false), hex(secret, true)]);
    // As Windows and JavaScript have text in memory.
    let wide = [u16::to_le_bytes, u16::to_be_bytes].map(|bytes| utf16(secret, bytes));
    forms.extend(wide.iter().cloned());
    // Base64 hides what is within it from every view.
    for inner in within_base64(secret).into_iter().chain(wide) {
        for offset in 0..3 {
            forms.extend([&STANDARD, &URL_SAFE].map(|engine| base64_core(engine, &inner, offset)));
        }
    }
    forms.retain(|found| found.as_slice() == secret.as_bytes() || found.len() >= MIN_FORM);
    unique(&mut forms);
    forms
}

pub(super) fn unique(forms: &mut Vec<Form>) {
    sorting::by(forms, |a, b| a.as_slice().cmp(b.as_slice()));
    forms.dedup();
}

fn form(text: &str) -> Form {
    Zeroizing::new(text.as_bytes().to_vec())
}

fn hex(text: &str, upper: bool) -> Form {
    let mut out = Zeroizing::new(String::with_capacity(2 * text.len()));
    for byte in text.bytes() {
        let _ = if upper { write!(out, "{byte:02X}") } else { write!(out, "{byte:02x}") };
    }
    form(&out)
}

fn utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Form {
    let mut out = Zeroizing::new(Vec::with_capacity(2 * text.len()));
    out.extend(text.encode_utf16().flat_map(bytes));
    out
}

/// What a text may have been before it was made base64: itself, a part of JSON or of a URL, or what of base64 starts with it, as the
/// header of a basic credential has it.
fn within_base64(secret: &str) -> Vec<Form> {
    let mut inner =
        vec![form(secret), base64_core(&STANDARD, secret.as_bytes(), 0), base64_core(&URL_SAFE, secret.as_bytes(), 0)];
    for set in [NON_ALPHANUMERIC, UNRESERVED, COMPONENT, PATH] {
        inner.push(Zeroizing::new(utf8_percent_encode(secret, set).to_string().into_bytes()));
    }
    let ascii = in_json(secret, |c| !c.is_ascii(), false);
    // As JavaScript, Python, PHP, Go and .NET write it.
    inner.extend([form(&in_json(secret, |_| false, false)), form(&ascii), form(&ascii.replace('/', "\\/"))]);
    inner.push(form(&in_json(secret, |c| matches!(c, '<' | '>' | '&'), false)));
    inner.push(form(&in_json(secret, |c| !c.is_ascii() || matches!(c, '"' | '&' | '\'' | '+' | '<' | '>' | '`'), true)));
    unique(&mut inner);
    inner
}

/// The inside of a JSON string, with some characters as `\u` and four digits.
fn in_json(text: &str, by_number: impl Fn(char) -> bool, upper: bool) -> Zeroizing<String> {
    let mut out = Zeroizing::new(String::with_capacity(12 * text.len()));
    for c in text.chars() {
        if by_number(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a `String` cannot fail.
                let _ = if upper { write!(out, "\\u{unit:04X}") } else { write!(out, "\\u{unit:04x}") };
            }
        } else {
            let quoted = serde_json::to_string(&c).unwrap_or_default();
            // By position: trimming quotes would eat an escaped one.
            out.push_str(quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default());
        }
    }
    out
}

/// The characters of a base64 text that depend on the secret alone when it starts `offset` bytes into a group of three.
fn base64_core(engine: &impl Engine, secret: &[u8], offset: usize) -> Form {
    let mut padded = Zeroizing::new(vec![0u8; offset + secret.len()]);
    if let Some(place) = padded.get_mut(offset..) {
        place.copy_from_slice(secret);
    }
    let text = Zeroizing::new(engine.encode(padded.as_slice()).into_bytes());
    let first = (offset * 8).div_ceil(6);
    let past = (offset + secret.len()) * 8 / 6;
    Zeroizing::new(text.get(first..past).unwrap_or_default().to_vec())
}
