//! A text with its escapes decoded, and the map from its offsets back to the original text.
//!
//! Encoders differ in the characters that they escape, so that the spellings of a secret cannot be listed; but decoding any of
//! them restores it. Escapes of JSON, URLs, HTML and the line breaks of wrapped base64 are decoded one layer at a time, since
//! texts of one kind are nested in texts of another.

use std::ops::Range;

use memchr::{memchr, memchr3};

/// Maximum number of layers that are decoded.
pub(super) const MAX_DECODE_DEPTH: usize = 5;

/// Minimum length of a wrapped line of base64, in bytes. Encoders wrap at 60 to 76 characters. Lines of words are not joined, so
/// that ordinary text stays as it is.
pub(super) const MIN_WRAPPED_LINE: usize = 32;

/// Length in bytes of the longest escape, a pair of surrogates.
pub(super) const MAX_ESCAPE_LEN: usize = 12;

/// A decoded escape: a character in UTF-8, a byte of one, or nothing.
pub(super) struct DecodedEscape {
    bytes: [u8; 4],
    len: u8,
}

impl DecodedEscape {
    const NOTHING: DecodedEscape = DecodedEscape { bytes: [0; 4], len: 0 };

    fn byte(byte: u8) -> DecodedEscape {
        DecodedEscape { bytes: [byte, 0, 0, 0], len: 1 }
    }

    fn char(char: char) -> DecodedEscape {
        let mut bytes = [0; 4];
        let len = char.encode_utf8(&mut bytes).len() as u8;
        DecodedEscape { bytes, len }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}

/// Calls `each` with the start and the end of every escape, and its decoding.
fn escapes(text: &[u8], mut each: impl FnMut(usize, usize, DecodedEscape)) {
    let find_escape = |from: usize| memchr3(b'\\', b'%', b'&', text.get(from..)?).map(|at| from + at);
    let find_break = |from: usize| memchr(b'\n', text.get(from..)?).map(|at| from + at);
    let (mut next_escape, mut next_break) = (find_escape(0), find_break(0));
    loop {
        let past = match (next_escape, next_break) {
            (None, None) => return,
            (Some(at), None) => escape(text, at, &mut each),
            (Some(at), Some(end)) if at < end => escape(text, at, &mut each),
            (_, Some(at)) => line_break(text, at, &mut each),
        };
        if next_escape.is_some_and(|at| at < past) {
            next_escape = find_escape(past);
        }
        if next_break.is_some_and(|at| at < past) {
            next_break = find_break(past);
        }
    }
}

/// Decodes the escape at `at`. Returns the offset at which to continue.
fn escape(text: &[u8], at: usize, each: &mut impl FnMut(usize, usize, DecodedEscape)) -> usize {
    let Some((len, plain)) = read_escape(text.get(at..).unwrap_or_default()) else { return at + 1 };
    each(at, at + len, plain);
    at + len
}

/// Decodes the escape at the start of a text. Returns its length and its decoding.
pub(super) fn read_escape(rest: &[u8]) -> Option<(usize, DecodedEscape)> {
    match rest {
        [b'\\', b'u', ..] => unicode(rest),
        [b'\\', b'x', a, b, ..] | [b'%', a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => {
            let len = if rest.first() == Some(&b'%') { 3 } else { 4 };
            Some((len, DecodedEscape::byte(hex(&[*a, *b]) as u8)))
        }
        [b'\\', b, ..] => match b {
            b'"' | b'\\' | b'/' | b'\'' => Some(*b),
            b'n' => Some(b'\n'),
            b'r' => Some(b'\r'),
            b't' => Some(b'\t'),
            b'b' => Some(8),
            b'f' => Some(12),
            _ => None,
        }
        .map(|byte| (2, DecodedEscape::byte(byte))),
        [b'&', ..] => entity(rest),
        _ => None,
    }
}

/// Decodes `\u002f` (two of them for a character beyond U+FFFF) and `\u{2f}`.
fn unicode(rest: &[u8]) -> Option<(usize, DecodedEscape)> {
    let four = |from: usize| {
        let digits = rest.get(from..from + 4)?;
        digits.iter().all(u8::is_ascii_hexdigit).then(|| hex(digits))
    };
    if rest.get(2) == Some(&b'{') {
        let len = rest.iter().take(MAX_ESCAPE_LEN).position(|b| *b == b'}')?;
        let digits = rest.get(3..len)?;
        let known = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
        return known.then(|| char::from_u32(hex(digits))).flatten().map(|char| (len + 1, DecodedEscape::char(char)));
    }
    let first = four(2)?;
    if let Some(char) = char::from_u32(first) {
        return Some((6, DecodedEscape::char(char)));
    }
    let second = if rest.get(6..8) == Some(b"\\u") { four(8)? } else { return None };
    let char = char::decode_utf16([first as u16, second as u16]).next()?.ok()?;
    Some((12, DecodedEscape::char(char)))
}

/// Returns the value of hexadecimal digits. In ASCII, letters have bit 6 set, and their low four bits are nine less than their
/// value.
pub(super) fn hex(digits: &[u8]) -> u32 {
    digits.iter().fold(0, |all, b| all << 4 | u32::from((b & 15) + 9 * (b >> 6)))
}

/// Decodes `&amp;`, `&#43;` and `&#x2b;`.
fn entity(rest: &[u8]) -> Option<(usize, DecodedEscape)> {
    let end = rest.iter().take(MAX_ESCAPE_LEN).position(|b| *b == b';')?;
    let name = std::str::from_utf8(rest.get(1..end)?).ok()?;
    let char = match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        _ => {
            let number = name.strip_prefix('#')?;
            let (digits, radix) = number.strip_prefix(['x', 'X']).map_or((number, 10), |digits| (digits, 16));
            // A number may have a sign, an entity may not.
            let code = digits.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, radix));
            char::from_u32(code?.ok()?)?
        }
    };
    Some((end + 1, DecodedEscape::char(char)))
}

/// Removes a line break within base64, with the indentation of the next line.
fn line_break(text: &[u8], at: usize, each: &mut impl FnMut(usize, usize, DecodedEscape)) -> usize {
    let before = text.get(..at).unwrap_or_default();
    let from = if before.last() == Some(&b'\r') { at - 1 } else { at };
    if !ends_wrapped(text, from) {
        return at + 1;
    }
    let indented = text.get(at + 1..).unwrap_or_default().iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
    each(from, at + 1 + indented, DecodedEscape::NOTHING);
    at + 1 + indented
}

fn ends_wrapped(text: &[u8], at: usize) -> bool {
    at >= MIN_WRAPPED_LINE && text.get(at - MIN_WRAPPED_LINE..at).is_some_and(|line| line.iter().rev().copied().all(is_base64))
}

pub(super) fn is_base64(b: u8) -> bool {
    let half = if b < 64 { BASE64 as u64 } else { (BASE64 >> 64) as u64 };
    b.is_ascii() && half >> (b & 63) & 1 == 1
}

/// The characters of both base64 alphabets, one bit each.
const BASE64: u128 = {
    let (mut all, mut b) = (0, 0u8);
    while b < 128 {
        if b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'-' | b'_') {
            all |= 1 << b;
        }
        b += 1;
    }
    all
};

/// Bytes that can be part of a pattern or of an escape. Escapes of other bytes need not be decoded.
pub(super) struct RelevantBytes([bool; 256]);

impl RelevantBytes {
    pub(super) fn new<'p>(patterns: impl Iterator<Item = &'p [u8]>) -> RelevantBytes {
        let mut relevant = std::array::from_fn(|b| (b as u8).is_ascii_alphanumeric());
        for b in patterns.flatten().chain(b"\\%&#;{}+/-_") {
            if let Some(is_relevant) = relevant.get_mut(usize::from(*b)) {
                *is_relevant = true;
            }
        }
        RelevantBytes(relevant)
    }

    fn is_relevant(&self, text: &[u8], from: usize, plain: &DecodedEscape) -> bool {
        let is_relevant = |b: &u8| self.0.get(usize::from(*b)) == Some(&true);
        match plain.bytes() {
            [b'\n' | b'\r'] => ends_wrapped(text, from) || plain.bytes().iter().any(is_relevant),
            bytes => bytes.is_empty() || bytes.iter().any(is_relevant),
        }
    }
}

/// Decodes one layer of the text, from `margin` bytes before the first relevant escape on. `None` if no escape is relevant.
pub(super) fn decode_layer(text: &[u8], margin: usize, relevant: &RelevantBytes) -> Option<Vec<u8>> {
    let mut decoded: Option<(Vec<u8>, usize)> = None;
    escapes(text, |from, to, plain| {
        if decoded.is_none() && !relevant.is_relevant(text, from, &plain) {
            return;
        }
        let (out, copied) = decoded.get_or_insert_with(|| {
            let start = from.saturating_sub(margin.max(2 * MIN_WRAPPED_LINE));
            (Vec::with_capacity(text.len() - start), start)
        });
        out.extend_from_slice(text.get(*copied..from).unwrap_or_default());
        out.extend_from_slice(plain.bytes());
        *copied = to;
    });
    decoded.map(|(mut out, copied)| {
        out.extend_from_slice(text.get(copied..).unwrap_or_default());
        out
    })
}

/// One escape, or several nested ones: its range in the original text, and its decoded range.
struct MappedRange {
    source: Range<usize>,
    at: usize,
    len: usize,
}

/// Maps offsets of a decoded text to the original text. Outside of the mapped ranges the distance to the preceding range is the
/// same in both texts.
#[derive(Default)]
pub(super) struct OffsetMap(Vec<MappedRange>);

impl OffsetMap {
    fn at(&self, at: usize) -> Option<&MappedRange> {
        self.0.get(self.0.partition_point(|unit| unit.at <= at).checked_sub(1)?)
    }

    /// Returns the offset in the original text of the byte at `at` of the decoded text.
    pub(super) fn start(&self, at: usize) -> usize {
        match self.at(at) {
            Some(unit) if at < unit.at + unit.len => unit.source.start,
            Some(unit) => unit.source.end + (at - unit.at - unit.len),
            None => at,
        }
    }

    /// Returns the end in the original text of the byte before `at` of the decoded text.
    fn end(&self, at: usize) -> usize {
        let Some(last) = at.checked_sub(1) else { return 0 };
        match self.at(last) {
            Some(unit) if last < unit.at + unit.len => unit.source.end,
            _ => self.start(last) + 1,
        }
    }

    /// Returns the range in the original text of a range of the decoded text.
    pub(super) fn source(&self, range: Range<usize>) -> Range<usize> {
        self.start(range.start)..self.end(range.end)
    }

    /// Extends a range of the original text to whole escapes.
    pub(super) fn widen_to_escapes(&self, range: Range<usize>) -> Range<usize> {
        let around = |at: usize| {
            let before = self.0.partition_point(|unit| unit.source.start < at).checked_sub(1)?;
            self.0.get(before).map(|unit| &unit.source).filter(|source| at < source.end)
        };
        let start = around(range.start).map_or(range.start, |source| source.start);
        start..around(range.end).map_or(range.end, |source| source.end)
    }
}

/// A text with some layers decoded.
pub(super) struct DecodedText {
    pub(super) text: Vec<u8>,
    pub(super) offsets: OffsetMap,
}

impl DecodedText {
    /// Decodes one layer of `text`, which `offsets` maps to the original text. `None` if it has no escape.
    pub(super) fn decode(text: &[u8], offsets: &OffsetMap) -> Option<DecodedText> {
        let mut out = Vec::new();
        let mut found = Vec::new();
        let mut copied = 0;
        let mut old = offsets.0.iter().peekable();
        escapes(text, |from, to, plain| {
            while let Some(unit) = old.next_if(|unit| unit.at < from) {
                found.push(MappedRange { source: unit.source.clone(), at: out.len() + unit.at - copied, len: unit.len });
            }
            while old.next_if(|unit| unit.at < to).is_some() {}
            out.extend_from_slice(text.get(copied..from).unwrap_or_default());
            found.push(MappedRange { source: offsets.source(from..to), at: out.len(), len: plain.bytes().len() });
            out.extend_from_slice(plain.bytes());
            copied = to;
        });
        if copied == 0 {
            return None;
        }
        found.extend(old.map(|unit| MappedRange {
            source: unit.source.clone(),
            at: out.len() + unit.at - copied,
            len: unit.len,
        }));
        out.extend_from_slice(text.get(copied..).unwrap_or_default());
        Some(DecodedText { text: out, offsets: OffsetMap(found) })
    }
}

/// Returns the offset of the suffix whose decoding depends on the text that follows: an incomplete escape, or a line of base64
/// that may be wrapped. Returns the length of the text if there is none.
pub(super) fn incomplete_suffix(text: &[u8]) -> usize {
    let mut past = 0;
    escapes(text, |_, to, plain| past = if plain.bytes().is_empty() { past } else { to });
    let goes_on = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'\\' | b'#' | b'{');
    let open = (past.max(text.len().saturating_sub(MAX_ESCAPE_LEN))..text.len()).find(|at| {
        matches!(text.get(*at), Some(b'\\' | b'%' | b'&')) && text.get(at + 1..).unwrap_or_default().iter().all(goes_on)
    });
    let line = text.trim_ascii_end();
    let broken = line.len() < text.len() && ends_wrapped(text, line.len());
    open.unwrap_or(text.len()).min(if broken { line.len() } else { text.len() })
}

/// Returns the start of the line of base64 that contains `at`. Wrapping is recognised only with the whole line.
pub(super) fn line_start(text: &[u8], at: usize) -> usize {
    let before = text.get(..at).unwrap_or_default().iter().rev();
    at - before.take(4 * MIN_WRAPPED_LINE).take_while(|b| is_base64(**b)).count()
}
