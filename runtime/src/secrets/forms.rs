//! What is looked for of a secret, in a text and in its [views](super::view): what decoding cannot bring back to the secret itself.

use std::fmt::Write as _;
use std::ops::Deref;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use ptc_lisp::sorting;
use zeroize::Zeroizing;

use super::view::{DEEPEST, Units, View};

/// Bytes to look for; overwritten when they are dropped.
#[derive(Clone)]
pub(super) struct Form {
    bytes: Zeroizing<Vec<u8>>,
    /// Whether they are of a part of a secret, so that more of it may be beside them.
    pub(super) is_part: bool,
    /// Of base64: whether the character before them has bits of the secret, too.
    pub(super) shares_before: bool,
    /// Of base64: whether the character after them has bits of the secret, too.
    pub(super) shares_after: bool,
}

impl Deref for Form {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Form {
    fn of(bytes: Zeroizing<Vec<u8>>) -> Form {
        Form { bytes, is_part: false, shares_before: false, shares_after: false }
    }
}

/// What is looked for of one or more secrets.
#[derive(Default)]
pub(super) struct Forms {
    /// Every form, in order and without duplicates after [`Forms::settle`].
    pub(super) all: Vec<Form>,
    /// Of long secrets, forms of what all their parts have: a text without any of these has no form of them either.
    pub(super) cores: Vec<Form>,
}

impl Forms {
    /// Adds the forms of one more secret.
    pub(super) fn add(&mut self, secret: &str) {
        self.all.extend(whole(secret));
        if let Some(parts) = Parts::of(secret) {
            for part in [parts.head, Some(parts.tail)].into_iter().flatten() {
                self.all.extend(whole(part).into_iter().map(|form| Form { is_part: true, ..form }));
            }
            self.cores.extend(whole(parts.middle));
        }
    }

    /// Brings them into order.
    pub(super) fn settle(&mut self) {
        unique(&mut self.all);
        unique(&mut self.cores);
    }
}

/// A secret of fewer bytes has no parts that are looked for: they would be found in ordinary text.
const MIN_DIVIDED: usize = 24;
/// The shortest part.
const MIN_PART: usize = 12;

/// Parts that give a secret away when an upstream cuts the rest off: three quarters at either end.
struct Parts<'s> {
    /// `None` where it is a name that is no secret: the user of `user:password`.
    head: Option<&'s str>,
    tail: &'s str,
    /// What both have.
    middle: &'s str,
}

impl<'s> Parts<'s> {
    fn of(secret: &'s str) -> Option<Parts<'s>> {
        if secret.len() < MIN_DIVIDED {
            return None;
        }
        let kept = (secret.len() * 3).div_ceil(4).max(MIN_PART);
        let head = (0..=kept).rev().find(|at| secret.is_char_boundary(*at))?;
        // A multiple of three, so that base64 of the tail is a part of base64 of the whole.
        let cut = (secret.len() - kept).next_multiple_of(3);
        let tail = (cut..head).step_by(3).find(|at| secret.is_char_boundary(*at))?;
        let is_name = secret.find(':').is_some_and(|colon| head < colon + 1 + MIN_FORM);
        Some(Parts { head: secret.get(..head).filter(|_| !is_name), tail: secret.get(tail..)?, middle: secret.get(tail..head)? })
    }
}

/// Shortest form that is looked for: shorter ones are found in ordinary text.
pub(super) const MIN_FORM: usize = 8;

/// What RFC 3986 leaves as it is.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// What JavaScript's `encodeURIComponent` leaves as it is.
const COMPONENT: &AsciiSet = &UNRESERVED.remove(b'!').remove(b'*').remove(b'\'').remove(b'(').remove(b')');
/// What Python's `quote` leaves as it is.
const PATH: &AsciiSet = &UNRESERVED.remove(b'/');

/// Every form of a text worth looking for.
fn whole(secret: &str) -> Vec<Form> {
    let mut forms = vec![form(secret)];
    // A secret that has escapes itself is read as something else in a view.
    let mut units = Units::default();
    for _ in 0..DEEPEST {
        let Some(view) = forms.last().and_then(|last| View::of(last, &units)) else { break };
        units = view.units;
        forms.push(Form::of(Zeroizing::new(view.text)));
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
    forms.retain(|found| **found == *secret.as_bytes() || found.len() >= MIN_FORM);
    forms
}

fn unique(forms: &mut Vec<Form>) {
    sorting::by(forms, |a, b| a.bytes.cmp(&b.bytes));
    forms.dedup_by(|other, kept| {
        let is_equal = other.bytes == kept.bytes;
        if is_equal {
            kept.is_part |= other.is_part;
            kept.shares_before |= other.shares_before;
            kept.shares_after |= other.shares_after;
        }
        is_equal
    });
}

fn form(text: &str) -> Form {
    Form::of(Zeroizing::new(text.as_bytes().to_vec()))
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
    Form::of(out)
}

/// What a text may have been before it was made base64: itself, a part of JSON or of a URL, or what of base64 starts with it, as the
/// header of a basic credential has it.
fn within_base64(secret: &str) -> Vec<Form> {
    let mut inner =
        vec![form(secret), base64_core(&STANDARD, secret.as_bytes(), 0), base64_core(&URL_SAFE, secret.as_bytes(), 0)];
    for set in [NON_ALPHANUMERIC, UNRESERVED, COMPONENT, PATH] {
        inner.push(Form::of(Zeroizing::new(utf8_percent_encode(secret, set).to_string().into_bytes())));
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

/// The characters of a base64 text that depend on the secret alone when it starts `offset` bytes into a group of three. Beside them may be
/// one character at either end that shares its bits with another byte.
fn base64_core(engine: &impl Engine, secret: &[u8], offset: usize) -> Form {
    let mut padded = Zeroizing::new(vec![0u8; offset + secret.len()]);
    if let Some(place) = padded.get_mut(offset..) {
        place.copy_from_slice(secret);
    }
    let text = Zeroizing::new(engine.encode(padded.as_slice()).into_bytes());
    let first = (offset * 8).div_ceil(6);
    let past = (offset + secret.len()) * 8 / 6;
    let bytes = Zeroizing::new(text.get(first..past).unwrap_or_default().to_vec());
    let (shares_before, shares_after) = (offset != 0, !((offset + secret.len()) * 8).is_multiple_of(6));
    Form { shares_before, shares_after, ..Form::of(bytes) }
}
