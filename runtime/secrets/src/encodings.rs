//! The encodings of a secret that the redactor searches, in a text and in its [decodings](super::decoded_text): those that
//! decoding does not convert back to the secret.

use std::fmt::Write as _;
use std::ops::Deref;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use zeroize::Zeroizing;

use super::decoded_text::{DecodedText, MAX_DECODE_DEPTH, OffsetMap};

/// An encoded secret, or part of one. Its bytes are overwritten when it is dropped.
#[derive(Clone)]
pub(super) struct EncodedSecret {
    bytes: Zeroizing<Vec<u8>>,
    /// Whether it is only part of a secret, so that more of the secret may be beside it.
    pub(super) is_part: bool,
    /// For base64: whether the character before it also contains bits of the secret.
    pub(super) shares_before: bool,
    /// For base64: whether the character after it also contains bits of the secret.
    pub(super) shares_after: bool,
}

impl Deref for EncodedSecret {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl EncodedSecret {
    fn from_bytes(bytes: Zeroizing<Vec<u8>>) -> EncodedSecret {
        EncodedSecret { bytes, is_part: false, shares_before: false, shares_after: false }
    }
}

/// The encodings of one or more secrets.
#[derive(Default)]
pub(super) struct EncodedSecrets {
    /// Every form, in order and without duplicates after [`EncodedSecrets::sort_and_dedup`].
    pub(super) all: Vec<EncodedSecret>,
    /// For long secrets, encodings of the common middle of their parts. A text without any of these contains no part of them.
    pub(super) cores: Vec<EncodedSecret>,
}

impl EncodedSecrets {
    /// Adds the encodings of one more secret.
    pub(super) fn add(&mut self, secret: &str) {
        self.all.extend(encodings_of(secret));
        if let Some(parts) = Parts::split(secret) {
            for part in [parts.head, Some(parts.tail)].into_iter().flatten() {
                self.all.extend(encodings_of(part).into_iter().map(|unescaped| EncodedSecret { is_part: true, ..unescaped }));
            }
            self.cores.extend(encodings_of(parts.middle));
        }
    }

    /// Sorts the encodings and removes duplicates.
    pub(super) fn sort_and_dedup(&mut self) {
        unique(&mut self.all);
        unique(&mut self.cores);
    }
}

/// Minimum length in bytes of a secret whose parts are searched. Parts of shorter ones occur in ordinary text.
const MIN_SPLIT_LEN: usize = 24;
/// Minimum length of a part, in bytes.
const MIN_PART_LEN: usize = 12;

/// Parts that reveal a secret if an upstream truncates it: three quarters at either end.
struct Parts<'s> {
    /// `None` if it is not secret, such as the user in `user:password`.
    head: Option<&'s str>,
    tail: &'s str,
    /// The text that both parts contain.
    middle: &'s str,
}

impl<'s> Parts<'s> {
    fn split(secret: &'s str) -> Option<Parts<'s>> {
        if secret.len() < MIN_SPLIT_LEN {
            return None;
        }
        let kept = (secret.len() * 3).div_ceil(4).max(MIN_PART_LEN);
        let head = (0..=kept).rev().find(|at| secret.is_char_boundary(*at))?;
        // A multiple of three, so that base64 of the tail is a part of base64 of the whole.
        let cut = (secret.len() - kept).next_multiple_of(3);
        let tail = (cut..head).step_by(3).find(|at| secret.is_char_boundary(*at))?;
        let is_name = secret.find(':').is_some_and(|colon| head < colon + 1 + MIN_ENCODED_LEN);
        Some(Parts { head: secret.get(..head).filter(|_| !is_name), tail: secret.get(tail..)?, middle: secret.get(tail..head)? })
    }
}

/// Minimum length of an encoding in bytes. Shorter ones occur in ordinary text.
pub(super) const MIN_ENCODED_LEN: usize = 8;

/// Characters that RFC 3986 does not escape.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// Characters that JavaScript's `encodeURIComponent` does not escape.
const COMPONENT: &AsciiSet = &UNRESERVED.remove(b'!').remove(b'*').remove(b'\'').remove(b'(').remove(b')');
/// Characters that Python's `quote` does not escape.
const PATH: &AsciiSet = &UNRESERVED.remove(b'/');

/// Returns all encodings of a text that the redactor searches.
fn encodings_of(secret: &str) -> Vec<EncodedSecret> {
    let mut encodings = vec![unescaped(secret)];
    // A secret that contains escapes itself changes in a decoded text.
    let mut offsets = OffsetMap::default();
    for _ in 0..MAX_DECODE_DEPTH {
        let Some(decoded) = encodings.last().and_then(|last| DecodedText::decode(last, &offsets)) else { break };
        offsets = decoded.offsets;
        encodings.push(EncodedSecret::from_bytes(Zeroizing::new(decoded.text)));
    }
    if secret.contains(' ') {
        encodings.push(unescaped(&secret.replace(' ', "+")));
    }
    // The secret may appear in hexadecimal dumps.
    encodings.extend([hex(secret, false), hex(secret, true)]);
    // Windows and JavaScript store text in UTF-16.
    let wide = [u16::to_le_bytes, u16::to_be_bytes].map(|bytes| utf16(secret, bytes));
    encodings.extend(wide.iter().cloned());
    // Decoding does not look inside base64.
    for inner in texts_within_base64(secret).into_iter().chain(wide) {
        for offset in 0..3 {
            encodings.extend([&STANDARD, &URL_SAFE].map(|engine| base64_infix(engine, &inner, offset)));
        }
    }
    encodings.retain(|found| **found == *secret.as_bytes() || found.len() >= MIN_ENCODED_LEN);
    encodings
}

fn unique(encodings: &mut Vec<EncodedSecret>) {
    encodings.sort_by(|a, b| a.bytes.cmp(&b.bytes));
    encodings.dedup_by(|other, kept| {
        let is_equal = other.bytes == kept.bytes;
        if is_equal {
            kept.is_part |= other.is_part;
            kept.shares_before |= other.shares_before;
            kept.shares_after |= other.shares_after;
        }
        is_equal
    });
}

fn unescaped(text: &str) -> EncodedSecret {
    EncodedSecret::from_bytes(Zeroizing::new(text.as_bytes().to_vec()))
}

fn hex(text: &str, upper: bool) -> EncodedSecret {
    let mut out = Zeroizing::new(String::with_capacity(2 * text.len()));
    for byte in text.bytes() {
        let _ = if upper { write!(out, "{byte:02X}") } else { write!(out, "{byte:02x}") };
    }
    unescaped(&out)
}

fn utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> EncodedSecret {
    let mut out = Zeroizing::new(Vec::with_capacity(2 * text.len()));
    out.extend(text.encode_utf16().flat_map(bytes));
    EncodedSecret::from_bytes(out)
}

/// Returns the texts that may have been encoded in base64: the secret itself, its escaped forms in JSON and URLs, and the start
/// of its own base64, as in the header of a basic credential.
fn texts_within_base64(secret: &str) -> Vec<EncodedSecret> {
    let mut inner =
        vec![unescaped(secret), base64_infix(&STANDARD, secret.as_bytes(), 0), base64_infix(&URL_SAFE, secret.as_bytes(), 0)];
    for set in [NON_ALPHANUMERIC, UNRESERVED, COMPONENT, PATH] {
        inner.push(EncodedSecret::from_bytes(Zeroizing::new(utf8_percent_encode(secret, set).to_string().into_bytes())));
    }
    let ascii = json_escaped(secret, |c| !c.is_ascii(), false);
    // These are the escapes of JavaScript, Python, PHP, Go and .NET.
    inner.extend([unescaped(&json_escaped(secret, |_| false, false)), unescaped(&ascii), unescaped(&ascii.replace('/', "\\/"))]);
    inner.push(unescaped(&json_escaped(secret, |c| matches!(c, '<' | '>' | '&'), false)));
    inner.push(unescaped(&json_escaped(
        secret,
        |c| !c.is_ascii() || matches!(c, '"' | '&' | '\'' | '+' | '<' | '>' | '`'),
        true,
    )));
    unique(&mut inner);
    inner
}

/// Returns the inside of a JSON string. Characters for which `by_number` is true become `\u` and four digits.
fn json_escaped(text: &str, by_number: impl Fn(char) -> bool, upper: bool) -> Zeroizing<String> {
    let mut out = Zeroizing::new(String::with_capacity(12 * text.len()));
    for c in text.chars() {
        if by_number(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a `String` cannot fail.
                let _ = if upper { write!(out, "\\u{unit:04X}") } else { write!(out, "\\u{unit:04x}") };
            }
        } else {
            let quoted = serde_json::to_string(&c).unwrap_or_default();
            // The quotes are removed by position, since trimming would also remove an escaped quote.
            out.push_str(quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default());
        }
    }
    out
}

/// Returns the characters of a base64 text that depend on the secret alone when it starts `offset` bytes into a group of three.
/// Beside them may be one character at either end that shares its bits with another byte.
fn base64_infix(engine: &impl Engine, secret: &[u8], offset: usize) -> EncodedSecret {
    let mut padded = Zeroizing::new(vec![0u8; offset + secret.len()]);
    if let Some(place) = padded.get_mut(offset..) {
        place.copy_from_slice(secret);
    }
    let text = Zeroizing::new(engine.encode(padded.as_slice()).into_bytes());
    let first = (offset * 8).div_ceil(6);
    let past = (offset + secret.len()) * 8 / 6;
    let bytes = Zeroizing::new(text.get(first..past).unwrap_or_default().to_vec());
    let (shares_before, shares_after) = (offset != 0, !((offset + secret.len()) * 8).is_multiple_of(6));
    EncodedSecret { shares_before, shares_after, ..EncodedSecret::from_bytes(bytes) }
}
