//! A prefilter: decides quickly that a text contains no secret in any of its [decodings](super::decoded_text).
//!
//! For each encoding of each secret it searches one piece: a substring without bytes that have a short escape (`\"`, `\\`, `\/`,
//! `\n`). If no piece occurs in the text, and no other escape and no joined line of base64 can produce a byte of a piece or a new
//! escape, then the text contains no secret at any decoding depth. Lines of base64 that may be joined are searched once more
//! where they meet. Only the other texts are decoded.

use aho_corasick::{AhoCorasick, MatchKind, packed};
use memchr::{memchr, memchr_iter, memchr2, memmem};

use super::decoded_text::{self, DecodedEscape};
use super::encodings::EncodedSecrets;

/// Maximum length of a piece in bytes. Search tables store pieces as plain text, so that they never contain a whole secret.
const MAX_PIECE_LEN: usize = 8;

/// Minimum length of a piece in bytes. Shorter ones occur in any text and are slow to search.
const MIN_PIECE_LEN: usize = 4;

/// Maximum number of pieces in one vectorised search.
const MAX_VECTOR_PIECES: usize = 64;

/// Number of groups among which a vectorised search distributes its pieces.
const GROUPS: usize = 16;

/// Whether a byte is common in secrets and rarely escaped.
fn is_rarely_escaped(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~')
}

/// Whether an escape of two characters exists for a byte.
fn has_short_escape(b: u8) -> bool {
    matches!(b, b'"' | b'\\' | b'/' | b'\'' | b'\n' | b'\r' | b'\t' | 8 | 12)
}

/// Separates line ends that are searched together. No piece contains it.
const SEPARATOR: u8 = b'\n';

/// Distance in bytes after an escape within which the next one is searched byte by byte, which is faster if escapes are dense.
const DENSE_DISTANCE: usize = 16;

/// Whether a byte starts an escape.
fn begins_escape(b: u8) -> bool {
    matches!(b, b'\\' | b'%' | b'&')
}

/// Whether a byte can occur in base64 whose characters are escaped.
fn may_be_in_wrapped_base64(b: u8) -> bool {
    decoded_text::is_base64(b) || begins_escape(b) || matches!(b, b'#' | b';' | b'{' | b'}')
}

pub(super) struct Prefilter {
    searches: Vec<Search>,
    /// Bytes that occur in pieces or escapes. `None` if an encoding has no piece; its first bytes are searched instead.
    relevant: Option<Box<[bool; 256]>>,
    unicode: memmem::Finder<'static>,
    byte: memmem::Finder<'static>,
    line: memmem::Finder<'static>,
}

enum Search {
    Vector(packed::Searcher),
    /// For processors without vector instructions.
    Table(AhoCorasick),
}

impl Search {
    fn new(pieces: &[&[u8]]) -> Search {
        match packed::Config::new().builder().extend(pieces).build() {
            Some(searcher) => Search::Vector(searcher),
            None => Search::Table(super::patterns::automaton(MatchKind::LeftmostFirst, None, pieces)),
        }
    }

    /// Returns the size of the table in bytes.
    fn bytes(&self) -> usize {
        match self {
            Search::Vector(searcher) => searcher.memory_usage(),
            Search::Table(table) => table.memory_usage(),
        }
    }

    fn is_match(&self, text: &[u8]) -> bool {
        match self {
            Search::Vector(searcher) => searcher.find(text).is_some(),
            Search::Table(table) => table.is_match(text),
        }
    }
}

impl Prefilter {
    pub(super) fn new(encodings: &EncodedSecrets) -> Prefilter {
        // Sorted.
        let mut pieces: Vec<&[u8]> = Vec::new();
        let mut whole = true;
        // The common middle of a secret's parts comes first, so that one piece covers all of them.
        for form in encodings.cores.iter().chain(&encodings.all) {
            // Encodings share the text before the first character that encoders treat differently.
            if form.windows(MAX_PIECE_LEN).any(|window| pieces.binary_search(&window).is_ok()) {
                continue;
            }
            let piece = piece_of(form);
            whole &= piece.is_some();
            let piece = piece.unwrap_or_else(|| form.get(..MAX_PIECE_LEN).unwrap_or(form));
            if let Err(at) = pieces.binary_search(&piece) {
                pieces.insert(at, piece);
            }
        }
        let is_relevant = |b: u8| {
            let escapes = b.is_ascii_alphanumeric() || begins_escape(b) || matches!(b, b'#' | b';');
            escapes || pieces.iter().any(|piece| piece.contains(&b))
        };
        let relevant = whole.then(|| Box::new(std::array::from_fn(|b| is_relevant(b as u8))));
        Prefilter {
            searches: searches(pieces),
            relevant,
            unicode: memmem::Finder::new(r"\u"),
            byte: memmem::Finder::new(r"\x"),
            line: memmem::Finder::new(r"\n"),
        }
    }

    /// Returns the size of the tables in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.searches.iter().map(Search::bytes).sum()
    }

    /// Whether a text contains a piece of any encoding. Every text that contains an encoding does.
    pub(super) fn found(&self, text: &[u8]) -> bool {
        self.searches.iter().any(|search| search.is_match(text))
    }

    /// Whether a text without a piece contains no encoding at any decoding depth either.
    pub(super) fn rules_out_secrets(&self, text: &[u8]) -> bool {
        let Some(relevant) = &self.relevant else { return false };
        let scan = Scan { text, relevant };
        let backslash = memchr(b'\\', text).unwrap_or(text.len());
        let escaped = text.get(backslash..).unwrap_or_default();
        // The text around joined line breaks.
        let mut joined = Vec::new();
        scan.leaves_irrelevant_bytes()
            && self.unicode.find_iter(escaped).all(|at| scan.is_irrelevant_escape(backslash + at))
            && self.byte.find_iter(escaped).all(|at| scan.is_irrelevant_escape(backslash + at))
            && memchr_iter(b'\n', text).all(|at| scan.joins_cleanly(at, at + 1, &mut joined))
            && self.line.find_iter(escaped).all(|at| scan.joins_cleanly(backslash + at, backslash + at + 2, &mut joined))
            && !self.found(&joined)
    }
}

/// Makes the searches. A vectorised search distributes its pieces to sixteen groups in turn and compares the low halves of their
/// first bytes. Ordering the pieces so that similar ones share a group reduces false positives.
fn searches(mut pieces: Vec<&[u8]>) -> Vec<Search> {
    let low = |piece: &[u8]| piece.iter().take(MIN_PIECE_LEN).fold(0u32, |all, b| all << 4 | u32::from(b & 15));
    pieces.sort_by_key(|piece| low(piece));
    let in_turn = |few: &[&[u8]]| {
        let (each, more) = (few.len() / GROUPS, few.len() % GROUPS);
        let place = |turn: usize| (turn % GROUPS) * each + (turn % GROUPS).min(more) + turn / GROUPS;
        Search::new(&(0..few.len()).filter_map(|turn| few.get(place(turn)).copied()).collect::<Vec<_>>())
    };
    pieces.chunks(MAX_VECTOR_PIECES).map(in_turn).collect()
}

/// Returns the piece of an encoding: its first run of rarely escaped bytes, preferably with a digit or a capital, since words
/// occur in many texts. Otherwise it is the longest run without escapes.
fn piece_of(form: &[u8]) -> Option<&[u8]> {
    let usual = || form.windows(MAX_PIECE_LEN).filter(|piece| piece.iter().all(|b| is_rarely_escaped(*b)));
    let relevant = usual().find(|piece| !piece.iter().all(u8::is_ascii_lowercase));
    let any = || {
        let runs = form.split(|b| has_short_escape(*b) || begins_escape(*b));
        let longest = runs.max_by_key(|run| run.len()).filter(|run| run.len() >= MIN_PIECE_LEN)?;
        Some(longest.get(..MAX_PIECE_LEN).unwrap_or(longest))
    };
    relevant.or_else(|| usual().next()).or_else(any)
}

/// Whether a text starts like `\u{2f}`, with an escape in place of a brace.
fn lacks_brace(rest: &[u8]) -> bool {
    let Some(code) = rest.strip_prefix(br"\u") else { return false };
    let digits = code.strip_prefix(b"{").unwrap_or_default().iter().take_while(|b| b.is_ascii_hexdigit()).count();
    let brace = if digits == 0 { code.first() } else { code.get(1 + digits) };
    brace.is_some_and(|b| begins_escape(*b))
}

/// Returns the text before a line break, without the backslashes of its escape and the carriage return.
fn without_return(text: &[u8]) -> &[u8] {
    let bare = |text: &[u8]| text.iter().rev().take_while(|b| **b == b'\\').count();
    let text = text.get(..text.len() - bare(text)).unwrap_or_default();
    if let Some(line) = text.strip_suffix(b"\r") {
        return line;
    }
    let line = text.strip_suffix(b"r").unwrap_or_default();
    if line.ends_with(b"\\") { line.get(..line.len() - bare(line)).unwrap_or_default() } else { text }
}

struct Scan<'t> {
    text: &'t [u8],
    relevant: &'t [bool; 256],
}

impl Scan<'_> {
    fn is_relevant(&self, plain: &DecodedEscape) -> bool {
        plain.bytes().iter().any(|b| self.relevant.get(usize::from(*b)) == Some(&true))
    }

    /// Whether all escapes of URLs and HTML are [irrelevant](Scan::is_irrelevant_escape).
    fn leaves_irrelevant_bytes(&self) -> bool {
        let text = self.text;
        let mut from = 0;
        while let Some(found) = text.get(from..).and_then(|rest| memchr2(b'%', b'&', rest)) {
            from += found;
            let mut near = from;
            while near < text.len().min(from + DENSE_DISTANCE) {
                match text.get(near..) {
                    Some([b'%', a, b, ..]) if self.is_irrelevant_percent(*a, *b) => {
                        near += 3;
                        from = near;
                    }
                    Some([b'%' | b'&', ..]) => {
                        if !self.is_irrelevant_escape(near) {
                            return false;
                        }
                        near += 1;
                        from = near;
                    }
                    _ => near += 1,
                }
            }
            from = near;
        }
        true
    }

    /// Whether `%` and two digits decode to an irrelevant byte, as in `%20`.
    fn is_irrelevant_percent(&self, a: u8, b: u8) -> bool {
        let digits = a.is_ascii_hexdigit() && b.is_ascii_hexdigit();
        let made = decoded_text::hex(&[a, b]) as u8;
        digits && made != b'\n' && self.relevant.get(usize::from(made)) == Some(&false)
    }

    /// Whether the escape at `at`, here or in a decoding, produces neither a byte of a piece nor another escape that does.
    fn is_irrelevant_escape(&self, at: usize) -> bool {
        let rest = self.text.get(at..).unwrap_or_default();
        let Some((len, plain)) = decoded_text::read_escape(rest) else { return !lacks_brace(rest) };
        let rest = rest.get(len..).unwrap_or_default();
        match plain.bytes() {
            [made @ (b'&' | b'%')] => self.is_irrelevant_nested_escape(*made, rest, at),
            _ => self.is_irrelevant(&plain, at),
        }
    }

    fn is_irrelevant(&self, plain: &DecodedEscape, at: usize) -> bool {
        if plain.bytes() == b"\n" { self.is_ordinary_line_break(at) } else { !self.is_relevant(plain) }
    }

    /// Whether a decoded `&` or `%` together with the following text is irrelevant, as in `?a=1&amp;b=2` but not in `&amp;#65;`.
    fn is_irrelevant_nested_escape(&self, made: u8, rest: &[u8], at: usize) -> bool {
        let mut read = [made; decoded_text::MAX_ESCAPE_LEN];
        let len = rest.len().min(read.len() - 1);
        let (Some(to), Some(from)) = (read.get_mut(1..=len), rest.get(..len)) else { return false };
        to.copy_from_slice(from);
        // The second of two digits may be escaped too.
        let apart = !from.iter().take(2).any(|b| begins_escape(*b));
        apart
            && decoded_text::read_escape(read.get(..=len).unwrap_or_default())
                .is_none_or(|(_, plain)| self.is_irrelevant(&plain, at))
    }

    /// Whether a line break is not inside wrapped base64, here or in a decoding.
    fn is_ordinary_line_break(&self, at: usize) -> bool {
        let before = self.text.get(..at).unwrap_or_default();
        let before = before.strip_suffix(b"\r").unwrap_or(before);
        let wrapped = |line: &[u8]| line.iter().rev().all(|b| may_be_in_wrapped_base64(*b));
        !before.len().checked_sub(decoded_text::MIN_WRAPPED_LINE).and_then(|from| before.get(from..)).is_some_and(wrapped)
    }

    /// Whether the line break at `at..end` joins at most two lines that have no escape where they meet. Then appends to `joined`
    /// the text in which a piece could span both lines.
    fn joins_cleanly(&self, at: usize, end: usize, joined: &mut Vec<u8>) -> bool {
        if self.is_ordinary_line_break(at) {
            return true;
        }
        let before = without_return(self.text.get(..at).unwrap_or_default());
        let after = self.text.get(end..).unwrap_or_default();
        let blank = after.iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
        let after = after.get(blank..).unwrap_or_default();
        // An escape that spans the line break would start here.
        let line = before.len().checked_sub(decoded_text::MAX_ESCAPE_LEN).and_then(|from| before.get(from..));
        let Some(line) = line.filter(|line| line.iter().copied().all(decoded_text::is_base64)) else { return false };
        // A short line that ends in a break may be joined on both sides, in a view that is deeper by one.
        let next = after.get(..decoded_text::MIN_WRAPPED_LINE).unwrap_or(after);
        let stop = next.iter().find(|b| !decoded_text::is_base64(**b));
        if stop.is_some_and(|b| begins_escape(*b) || matches!(b, b'\r' | b'\n')) {
            return false;
        }
        let clean = next.iter().take(MAX_PIECE_LEN - 1).take_while(|b| !begins_escape(**b) && !matches!(b, b'\r' | b'\n'));
        joined.extend_from_slice(line.get(line.len() - (MAX_PIECE_LEN - 1)..).unwrap_or_default());
        joined.extend(clean);
        joined.push(SEPARATOR);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::Redactor;
    use super::super::patterns::Patterns;
    use super::*;

    fn encodings(secret: &str) -> EncodedSecrets {
        let mut encodings = EncodedSecrets::default();
        encodings.add(secret);
        encodings.sort_and_dedup();
        encodings
    }

    /// Numbers that look random and are the same in every run.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, bound: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % bound
        }

        fn choose<'t>(&mut self, all: &[&'t str]) -> &'t str {
            all[self.below(all.len())]
        }

        /// Escapes some characters of a text, each in one of several ways.
        fn escaped(&mut self, text: &str) -> String {
            let often = 1 + self.below(12);
            let one = |c: char| {
                let code = u32::from(c);
                match (self.below(often), self.below(8)) {
                    (0, 0) => format!("\\u{code:04x}"),
                    (0, 1) => format!("&#{code};"),
                    (0, 2) if c == '&' => "&amp;".to_owned(),
                    (0, 3) => format!("\\u{{{code:X}}}"),
                    (0, 4) if c.is_ascii() => format!("\\x{code:02X}"),
                    (0, 5..) if c.is_ascii() => format!("%{code:02X}"),
                    (_, _) if matches!(c, '"' | '\\') => format!("\\{c}"),
                    (_, 0..3) if c == '\n' => "\\n".to_owned(),
                    _ => c.to_string(),
                }
            };
            text.chars().map(one).collect()
        }
    }

    const SECRETS: [&str; 5] = [
        "s3cr3t/to\"ken+v",
        "b4ck\\nslash%2Fit",
        "w\u{f6}rter und \u{1f511} schl\u{fc}ssel",
        "QWxhZGRpbjpvcGVuIHNlc2FtZTpvcGVuIHNlc2FtZQabcdefghijklmnop",
        "a/b/c/d/e/f",
    ];

    /// What spells escapes, breaks and secrets where it meets, with bars between.
    const ATOMS: &str = "\\|\\\\|%|%25|&|&amp;|amp;|\\u%7B|\\u{|}|#|#65;|u00|u0041|x41|41|n|\\n|\n|\r\n|%0A|&#10;|\\u0026|\
        \\u{26}|lt;| |\"|\\/|QWxhZGRpbjpvcGVuIHNlc2FtZTpvcGVuIHNlc2FtZQ";

    #[test]
    fn text_ruled_out_by_prefilter_contains_no_encoded_secret() {
        let mut dice = Dice(7);
        let atoms: Vec<&str> = ATOMS.split('|').collect();
        let (mut settled, mut hidden) = (0, 0);
        for secret in SECRETS {
            let (patterns, pieces) = (Patterns::new(encodings(secret)), Prefilter::new(&encodings(secret)));
            for _ in 0..4_000 {
                let some = |dice: &mut Dice| -> String { (0..dice.below(6)).map(|_| dice.choose(&atoms)).collect() };
                let at = dice.below(secret.len());
                let (start, end) = secret.split_at_checked(at).unwrap_or((secret, ""));
                let break_in = if dice.below(4) == 0 { "\n" } else { "" };
                let mut text = [&some(&mut dice), start, break_in, end, &some(&mut dice)].concat();
                for _ in 0..dice.below(4) {
                    text = dice.escaped(&text);
                }
                let holds = !patterns.find(text.as_bytes()).0.is_empty();
                let scan = !pieces.found(text.as_bytes()) && pieces.rules_out_secrets(text.as_bytes());
                assert!(!(holds && scan), "{secret} is in {text}");
                assert!(patterns.contains_secret(text.as_bytes()) || !holds, "{secret} is in {text}");
                settled += usize::from(scan);
                hidden += usize::from(holds && !text.contains(secret));
            }
        }
        assert!(settled > 100 && hidden > 5_000, "{settled} settled, {hidden} hidden");
    }

    #[test]
    fn text_with_joined_lines_is_not_ruled_out() {
        let mut dice = Dice(11);
        let secret = "s3cr3t/to\"ken+value-of-some-length";
        let (patterns, pieces) = (Patterns::new(encodings(secret)), Prefilter::new(&encodings(secret)));
        let all = encodings(secret).all;
        let alphabet: Vec<char> = ('A'..='Z').chain('a'..='z').chain('0'..='9').chain("+/".chars()).collect();
        let joins_cleanly = ["\n", "\r\n", "\n  ", "\r\n\t", "\n\n", "\r\r\n", "=\n", "%0A", "\\n", "&\n", "\n&#48;"];
        let (mut settled, mut hidden) = (0, 0);
        for _ in 0..12_000 {
            let some = |dice: &mut Dice| (0..dice.below(120)).map(|_| alphabet[dice.below(64)]).collect::<String>();
            let form = std::str::from_utf8(&all[dice.below(all.len())]).unwrap_or(secret).to_owned();
            let form = if dice.below(2) == 0 { String::new() } else { form };
            let whole = [some(&mut dice), form, some(&mut dice)].concat();
            let (often, width) = (1 + dice.below(6), [33, 64, 76][dice.below(3)]);
            let mut text = String::new();
            for (at, c) in whole.chars().enumerate() {
                if at % width == width - 1 || dice.below(30 * often) == 0 {
                    text += if dice.below(often) == 0 { dice.choose(&joins_cleanly) } else { joins_cleanly[0] };
                }
                text.push(c);
            }
            text += dice.choose(&["", "\n", "==\n", "\n\"}"]);
            for _ in 0..dice.below(4) {
                text = serde_json::Value::from(text).to_string();
            }
            let holds = !patterns.find(text.as_bytes()).0.is_empty();
            let scan = !pieces.found(text.as_bytes()) && pieces.rules_out_secrets(text.as_bytes());
            assert!(!(holds && scan), "a secret is in {text}");
            settled += usize::from(scan && text.contains('\n') | text.contains("\\n"));
            hidden += usize::from(holds && !pieces.found(text.as_bytes()));
        }
        assert!(settled > 1_000 && hidden > 300, "{settled} settled, {hidden} hidden");
    }

    #[test]
    fn ordinary_text_is_ruled_out() {
        let pieces = Prefilter::new(&encodings("s3cr3t/to\"ken+v"));
        for text in [
            r#"{"content":[{"text":"{\"url\":\"https:\/\/h\/?a=1\u0026b=2\",\n\"t\":\"na\u00efve\"}"}]}"#,
            "https://h/a%20b?q=%7B%22k%22%3A%22%C3%A9%22%7D&amp;r=%252F",
            "one &lt;b&gt;line&lt;/b&gt;\r\nand the next\n",
            "50 % & more",
            &format!("{0}\\n{0}\\n{0}==\\n\"}}", "QWxhZGRp".repeat(9)),
            &format!("{0}\r\n  {0}\n{0}", "QWxhZGRp".repeat(9)),
        ] {
            assert!(!pieces.found(text.as_bytes()) && pieces.rules_out_secrets(text.as_bytes()), "{text}");
        }
        for text in [r"\\u0041", "%2541", "&amp;#65;", "%5cu0041", "&amp;#10;", "\\nx\\n", "\n\\u"] {
            let text = format!("{}{text}", "x".repeat(32));
            assert!(!pieces.rules_out_secrets(text.as_bytes()), "{text}");
        }
        assert!(!Prefilter::new(&encodings("a/b/c/d/e/f")).rules_out_secrets(b"x"), "a form without a piece");
        assert_eq!(Redactor::new(["a/b/c/d/e/f"]).redact_str(r"\u0061/b\/c/d/e/f"), "[REDACTED]");
    }
}
