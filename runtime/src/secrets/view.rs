//! A text as it reads once its escapes are taken away, and where in the text what reads so stands.
//!
//! Encoders differ in what they escape, so that the spellings of a secret cannot be listed; what they all have in common is that
//! decoding gives it back. Of JSON, of URLs, of HTML and of wrapped base64 one layer is taken away at a time: text of one kind stands
//! in text of another.

use std::ops::Range;

use memchr::{memchr, memchr3};

/// How many layers are taken away.
pub(super) const DEEPEST: usize = 5;

/// A line of base64 that goes on in the next one is at least that long: encoders break at 60 to 76 characters. Lines of words are
/// not joined, so that ordinary text has no second reading.
pub(super) const WRAPPED: usize = 32;

/// The longest escape, a pair of surrogates.
pub(super) const LONGEST_ESCAPE: usize = 12;

/// What an escape stands for: a character in UTF-8, a byte of one, or nothing.
pub(super) struct Plain {
    bytes: [u8; 4],
    len: u8,
}

impl Plain {
    const NOTHING: Plain = Plain { bytes: [0; 4], len: 0 };

    fn byte(byte: u8) -> Plain {
        Plain { bytes: [byte, 0, 0, 0], len: 1 }
    }

    fn char(char: char) -> Plain {
        let mut bytes = [0; 4];
        let len = char.encode_utf8(&mut bytes).len() as u8;
        Plain { bytes, len }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}

/// Calls `each` with start and end of every escape and what it stands for.
fn escapes(text: &[u8], mut each: impl FnMut(usize, usize, Plain)) {
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

/// Gives where to go on.
fn escape(text: &[u8], at: usize, each: &mut impl FnMut(usize, usize, Plain)) -> usize {
    let Some((len, plain)) = read_escape(text.get(at..).unwrap_or_default()) else { return at + 1 };
    each(at, at + len, plain);
    at + len
}

/// The escape that a text starts with: its length, and what it stands for.
pub(super) fn read_escape(rest: &[u8]) -> Option<(usize, Plain)> {
    match rest {
        [b'\\', b'u', ..] => unicode(rest),
        [b'\\', b'x', a, b, ..] | [b'%', a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => {
            let len = if rest.first() == Some(&b'%') { 3 } else { 4 };
            Some((len, Plain::byte(hex(&[*a, *b]) as u8)))
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
        .map(|byte| (2, Plain::byte(byte))),
        [b'&', ..] => entity(rest),
        _ => None,
    }
}

/// `\u002f`, two of them for a character beyond the first 65,536, `\u{2f}`.
fn unicode(rest: &[u8]) -> Option<(usize, Plain)> {
    let four = |from: usize| {
        let digits = rest.get(from..from + 4)?;
        digits.iter().all(u8::is_ascii_hexdigit).then(|| hex(digits))
    };
    if rest.get(2) == Some(&b'{') {
        let len = rest.iter().take(LONGEST_ESCAPE).position(|b| *b == b'}')?;
        let digits = rest.get(3..len)?;
        let known = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
        return known.then(|| char::from_u32(hex(digits))).flatten().map(|char| (len + 1, Plain::char(char)));
    }
    let first = four(2)?;
    if let Some(char) = char::from_u32(first) {
        return Some((6, Plain::char(char)));
    }
    let second = if rest.get(6..8) == Some(b"\\u") { four(8)? } else { return None };
    let char = char::decode_utf16([first as u16, second as u16]).next()?.ok()?;
    Some((12, Plain::char(char)))
}

/// Of digits alone: letters have a bit that numbers have not, and are nine less in their last four.
pub(super) fn hex(digits: &[u8]) -> u32 {
    digits.iter().fold(0, |all, b| all << 4 | u32::from((b & 15) + 9 * (b >> 6)))
}

/// `&amp;`, `&#43;`, `&#x2b;`.
fn entity(rest: &[u8]) -> Option<(usize, Plain)> {
    let end = rest.iter().take(LONGEST_ESCAPE).position(|b| *b == b';')?;
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
    Some((end + 1, Plain::char(char)))
}

/// A break within base64, with the indentation of the next line.
fn line_break(text: &[u8], at: usize, each: &mut impl FnMut(usize, usize, Plain)) -> usize {
    let before = text.get(..at).unwrap_or_default();
    let from = if before.last() == Some(&b'\r') { at - 1 } else { at };
    if !ends_wrapped(text, from) {
        return at + 1;
    }
    let indented = text.get(at + 1..).unwrap_or_default().iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
    each(from, at + 1 + indented, Plain::NOTHING);
    at + 1 + indented
}

fn ends_wrapped(text: &[u8], at: usize) -> bool {
    at >= WRAPPED && text.get(at - WRAPPED..at).is_some_and(|line| line.iter().rev().copied().all(is_base64))
}

pub(super) fn is_base64(b: u8) -> bool {
    let half = if b < 64 { BASE64 as u64 } else { (BASE64 >> 64) as u64 };
    b.is_ascii() && half >> (b & 63) & 1 == 1
}

/// The characters of both alphabets, a bit each.
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

/// Bytes that can be part of a pattern, or of an escape. An escape for another byte only separates.
pub(super) struct Telling([bool; 256]);

impl Telling {
    pub(super) fn of<'p>(patterns: impl Iterator<Item = &'p [u8]>) -> Telling {
        let mut telling = std::array::from_fn(|b| (b as u8).is_ascii_alphanumeric());
        for b in patterns.flatten().chain(b"\\%&#;{}+/-_") {
            if let Some(tells) = telling.get_mut(usize::from(*b)) {
                *tells = true;
            }
        }
        Telling(telling)
    }

    fn tells(&self, text: &[u8], from: usize, plain: &Plain) -> bool {
        let tells = |b: &u8| self.0.get(usize::from(*b)) == Some(&true);
        match plain.bytes() {
            [b'\n' | b'\r'] => ends_wrapped(text, from) || plain.bytes().iter().any(tells),
            bytes => bytes.is_empty() || bytes.iter().any(tells),
        }
    }
}

/// The text with one layer less, from `margin` bytes before the first escape that tells; `None` where none does.
pub(super) fn peeled(text: &[u8], margin: usize, telling: &Telling) -> Option<Vec<u8>> {
    let mut peeled: Option<(Vec<u8>, usize)> = None;
    escapes(text, |from, to, plain| {
        if peeled.is_none() && !telling.tells(text, from, &plain) {
            return;
        }
        let (out, copied) = peeled.get_or_insert_with(|| {
            let start = from.saturating_sub(margin.max(2 * WRAPPED));
            (Vec::with_capacity(text.len() - start), start)
        });
        out.extend_from_slice(text.get(*copied..from).unwrap_or_default());
        out.extend_from_slice(plain.bytes());
        *copied = to;
    });
    peeled.map(|(mut out, copied)| {
        out.extend_from_slice(text.get(copied..).unwrap_or_default());
        out
    })
}

/// An escape, or several within one another: where it stands in the text, and what it became in the view.
struct Unit {
    source: Range<usize>,
    at: usize,
    len: usize,
}

/// Where the parts of a view stand in its text: what is in no unit stands as far behind the unit before it as in the view.
#[derive(Default)]
pub(super) struct Units(Vec<Unit>);

impl Units {
    fn at(&self, at: usize) -> Option<&Unit> {
        self.0.get(self.0.partition_point(|unit| unit.at <= at).checked_sub(1)?)
    }

    /// Where the byte at a place of the view starts in the text.
    pub(super) fn start(&self, at: usize) -> usize {
        match self.at(at) {
            Some(unit) if at < unit.at + unit.len => unit.source.start,
            Some(unit) => unit.source.end + (at - unit.at - unit.len),
            None => at,
        }
    }

    /// Where the byte before a place of the view ends in the text.
    fn end(&self, at: usize) -> usize {
        let Some(last) = at.checked_sub(1) else { return 0 };
        match self.at(last) {
            Some(unit) if last < unit.at + unit.len => unit.source.end,
            _ => self.start(last) + 1,
        }
    }

    /// Where a range of the view stands in the text.
    pub(super) fn source(&self, range: Range<usize>) -> Range<usize> {
        self.start(range.start)..self.end(range.end)
    }

    /// The range, with the whole of the units that it has a part of: half an escape would be another one.
    pub(super) fn widened(&self, range: Range<usize>) -> Range<usize> {
        let around = |at: usize| {
            let before = self.0.partition_point(|unit| unit.source.start < at).checked_sub(1)?;
            self.0.get(before).map(|unit| &unit.source).filter(|source| at < source.end)
        };
        let start = around(range.start).map_or(range.start, |source| source.start);
        start..around(range.end).map_or(range.end, |source| source.end)
    }
}

/// A text with some layers less.
pub(super) struct View {
    pub(super) text: Vec<u8>,
    pub(super) units: Units,
}

impl View {
    /// `text`, which stands in another one as `units` say, with one layer less. `None` where it has no escape.
    pub(super) fn of(text: &[u8], units: &Units) -> Option<View> {
        let mut out = Vec::new();
        let mut found = Vec::new();
        let mut copied = 0;
        let mut old = units.0.iter().peekable();
        escapes(text, |from, to, plain| {
            while let Some(unit) = old.next_if(|unit| unit.at < from) {
                found.push(Unit { source: unit.source.clone(), at: out.len() + unit.at - copied, len: unit.len });
            }
            while old.next_if(|unit| unit.at < to).is_some() {}
            out.extend_from_slice(text.get(copied..from).unwrap_or_default());
            found.push(Unit { source: units.source(from..to), at: out.len(), len: plain.bytes().len() });
            out.extend_from_slice(plain.bytes());
            copied = to;
        });
        if copied == 0 {
            return None;
        }
        found.extend(old.map(|unit| Unit { source: unit.source.clone(), at: out.len() + unit.at - copied, len: unit.len }));
        out.extend_from_slice(text.get(copied..).unwrap_or_default());
        Some(View { text: out, units: Units(found) })
    }
}

/// Where the end of a text starts that more text may make another one of: the start of an escape, and of a line of base64 that may be
/// wrapped. The length of the text where it cannot.
pub(super) fn open_end(text: &[u8]) -> usize {
    let mut past = 0;
    escapes(text, |_, to, plain| past = if plain.bytes().is_empty() { past } else { to });
    let goes_on = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'\\' | b'#' | b'{');
    let open = (past.max(text.len().saturating_sub(LONGEST_ESCAPE))..text.len()).find(|at| {
        matches!(text.get(*at), Some(b'\\' | b'%' | b'&')) && text.get(at + 1..).unwrap_or_default().iter().all(goes_on)
    });
    let line = text.trim_ascii_end();
    let broken = line.len() < text.len() && ends_wrapped(text, line.len());
    open.unwrap_or(text.len()).min(if broken { line.len() } else { text.len() })
}

/// Where the line of base64 starts that a place is in: what wraps it is seen only with the whole of it.
pub(super) fn line_start(text: &[u8], at: usize) -> usize {
    let before = text.get(..at).unwrap_or_default().iter().rev();
    at - before.take(4 * WRAPPED).take_while(|b| is_base64(**b)).count()
}
