//! What can be said of a text at a glance: that it holds no secret in any of its [views](super::view).
//!
//! Of every form one piece is looked for, which has nothing that `\"`, `\\`, `\/`, `\n` and their like stand for. Where no escape of
//! another kind, nor a joined line, makes such a byte or a new escape, the bytes of a piece come from the text as they are, side by
//! side, however deep the view is in which the form reads so: a text without a piece has no form then. Lines of base64 that are joined
//! are looked through once more where they meet. Only other texts are peeled.

use aho_corasick::{AhoCorasick, MatchKind, packed};
use memchr::{memchr, memchr_iter, memchr2, memmem};
use ptc_lisp::sorting;

use super::forms::Forms;
use super::view::{self, Plain};

/// The longest piece: tables keep them as they are, so that they hold no secret whole.
const LONGEST: usize = 8;

/// A shorter piece is found in any text, and would be looked for slowly.
const SHORTEST: usize = 4;

/// So many, and no more, are searched with vector instructions.
const FEW: usize = 64;

/// Among which those are handed out.
const GROUPS: usize = 16;

/// What is in many secrets and seldom escaped.
fn is_usual(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~')
}

/// What an escape of two characters stands for.
fn is_of_short_escape(b: u8) -> bool {
    matches!(b, b'"' | b'\\' | b'/' | b'\'' | b'\n' | b'\r' | b'\t' | 8 | 12)
}

/// Keeps the ends of lines apart that are searched together: no piece has it.
const APART: u8 = b'\n';

/// How far from an escape the next one is looked for byte by byte: where they are dense, that is faster than vector instructions.
const NEAR: usize = 16;

/// What an escape can be of, besides letters and digits.
fn begins_escape(b: u8) -> bool {
    matches!(b, b'\\' | b'%' | b'&')
}

/// Of a text that is base64 under escapes.
fn may_be_wrapped(b: u8) -> bool {
    view::is_base64(b) || begins_escape(b) || matches!(b, b'#' | b';' | b'{' | b'}')
}

pub(super) struct Pieces {
    searches: Vec<Search>,
    /// Bytes of pieces and of escapes. `None` where a form has no piece: of that, its beginning is looked for.
    telling: Option<Box<[bool; 256]>>,
    unicode: memmem::Finder<'static>,
    byte: memmem::Finder<'static>,
    line: memmem::Finder<'static>,
}

enum Search {
    Vector(packed::Searcher),
    /// Where a processor has no instructions for it.
    Table(AhoCorasick),
}

impl Search {
    fn of(pieces: &[&[u8]]) -> Search {
        match packed::Config::new().builder().extend(pieces).build() {
            Some(searcher) => Search::Vector(searcher),
            None => Search::Table(super::patterns::automaton(MatchKind::LeftmostFirst, None, pieces)),
        }
    }

    fn is_match(&self, text: &[u8]) -> bool {
        match self {
            Search::Vector(searcher) => searcher.find(text).is_some(),
            Search::Table(table) => table.is_match(text),
        }
    }
}

impl Pieces {
    pub(super) fn of(forms: &Forms) -> Pieces {
        // In order.
        let mut pieces: Vec<&[u8]> = Vec::new();
        let mut whole = true;
        // What all parts of a secret have comes first, so that one piece does for all of them.
        for form in forms.cores.iter().chain(&forms.all) {
            // Forms share what they have before the first character that encoders differ in.
            if form.windows(LONGEST).any(|window| pieces.binary_search(&window).is_ok()) {
                continue;
            }
            let piece = piece_of(form);
            whole &= piece.is_some();
            let piece = piece.unwrap_or_else(|| form.get(..LONGEST).unwrap_or(form));
            if let Err(at) = pieces.binary_search(&piece) {
                pieces.insert(at, piece);
            }
        }
        let tells = |b: u8| {
            let escapes = b.is_ascii_alphanumeric() || begins_escape(b) || matches!(b, b'#' | b';');
            escapes || pieces.iter().any(|piece| piece.contains(&b))
        };
        let telling = whole.then(|| Box::new(std::array::from_fn(|b| tells(b as u8))));
        Pieces {
            searches: searches(pieces),
            telling,
            unicode: memmem::Finder::new(r"\u"),
            byte: memmem::Finder::new(r"\x"),
            line: memmem::Finder::new(r"\n"),
        }
    }

    /// Whether a text has a piece of any form, as each that has a form does.
    pub(super) fn found(&self, text: &[u8]) -> bool {
        self.searches.iter().any(|search| search.is_match(text))
    }

    /// Whether a text without a piece has no form in any view either.
    pub(super) fn settle(&self, text: &[u8]) -> bool {
        let Some(telling) = &self.telling else { return false };
        let glance = Glance { text, telling };
        let backslash = memchr(b'\\', text).unwrap_or(text.len());
        let escaped = text.get(backslash..).unwrap_or_default();
        // The ends of lines that are joined, as they read then.
        let mut joined = Vec::new();
        glance.keeps_others()
            && self.unicode.find_iter(escaped).all(|at| glance.keeps(backslash + at))
            && self.byte.find_iter(escaped).all(|at| glance.keeps(backslash + at))
            && memchr_iter(b'\n', text).all(|at| glance.breaks(at, at + 1, &mut joined))
            && self.line.find_iter(escaped).all(|at| glance.breaks(backslash + at, backslash + at + 2, &mut joined))
            && !self.found(&joined)
    }
}

/// What vector instructions look for, they look for in sixteen groups, by the low halves of the first bytes; they hand out pieces to
/// groups in turn. So those that are alike there come into one group: that has fewer false alarms.
fn searches(mut pieces: Vec<&[u8]>) -> Vec<Search> {
    let low = |piece: &[u8]| piece.iter().take(SHORTEST).fold(0u32, |all, b| all << 4 | u32::from(b & 15));
    sorting::by(&mut pieces, |a, b| low(a).cmp(&low(b)));
    let in_turn = |few: &[&[u8]]| {
        let (each, more) = (few.len() / GROUPS, few.len() % GROUPS);
        let place = |turn: usize| (turn % GROUPS) * each + (turn % GROUPS).min(more) + turn / GROUPS;
        Search::of(&(0..few.len()).filter_map(|turn| few.get(place(turn)).copied()).collect::<Vec<_>>())
    };
    pieces.chunks(FEW).map(in_turn).collect()
}

/// The first run of usual bytes, better one with a digit or a capital, since words are in many texts; else the longest that there is.
fn piece_of(form: &[u8]) -> Option<&[u8]> {
    let usual = || form.windows(LONGEST).filter(|piece| piece.iter().all(|b| is_usual(*b)));
    let telling = usual().find(|piece| !piece.iter().all(u8::is_ascii_lowercase));
    let any = || {
        let runs = form.split(|b| is_of_short_escape(*b) || begins_escape(*b));
        let longest = runs.max_by_key(|run| run.len()).filter(|run| run.len() >= SHORTEST)?;
        Some(longest.get(..LONGEST).unwrap_or(longest))
    };
    telling.or_else(|| usual().next()).or_else(any)
}

/// Whether a text starts as `\u{2f}` does, up to an escape in the place of a brace.
fn lacks_brace(rest: &[u8]) -> bool {
    let Some(code) = rest.strip_prefix(br"\u") else { return false };
    let digits = code.strip_prefix(b"{").unwrap_or_default().iter().take_while(|b| b.is_ascii_hexdigit()).count();
    let brace = if digits == 0 { code.first() } else { code.get(1 + digits) };
    brace.is_some_and(|b| begins_escape(*b))
}

/// A text that a line break follows, without what belongs to that: backslashes of its escape, and a return.
fn without_return(text: &[u8]) -> &[u8] {
    let bare = |text: &[u8]| text.iter().rev().take_while(|b| **b == b'\\').count();
    let text = text.get(..text.len() - bare(text)).unwrap_or_default();
    if let Some(line) = text.strip_suffix(b"\r") {
        return line;
    }
    let line = text.strip_suffix(b"r").unwrap_or_default();
    if line.ends_with(b"\\") { line.get(..line.len() - bare(line)).unwrap_or_default() } else { text }
}

struct Glance<'t> {
    text: &'t [u8],
    telling: &'t [bool; 256],
}

impl Glance<'_> {
    fn tells(&self, plain: &Plain) -> bool {
        plain.bytes().iter().any(|b| self.telling.get(usize::from(*b)) == Some(&true))
    }

    /// Whether all escapes of URLs and of HTML are [kept](Glance::keeps).
    fn keeps_others(&self) -> bool {
        let text = self.text;
        let mut from = 0;
        while let Some(found) = text.get(from..).and_then(|rest| memchr2(b'%', b'&', rest)) {
            from += found;
            let mut near = from;
            while near < text.len().min(from + NEAR) {
                match text.get(near..) {
                    Some([b'%', a, b, ..]) if self.is_quiet(*a, *b) => {
                        near += 3;
                        from = near;
                    }
                    Some([b'%' | b'&', ..]) => {
                        if !self.keeps(near) {
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

    /// Of `%20` and the like, which most are.
    fn is_quiet(&self, a: u8, b: u8) -> bool {
        let digits = a.is_ascii_hexdigit() && b.is_ascii_hexdigit();
        let made = view::hex(&[a, b]) as u8;
        digits && made != b'\n' && self.telling.get(usize::from(made)) == Some(&false)
    }

    /// Whether the escape at a place, if it is one here or in a view, makes neither a byte of a piece nor another escape that does.
    fn keeps(&self, at: usize) -> bool {
        let rest = self.text.get(at..).unwrap_or_default();
        let Some((len, plain)) = view::read_escape(rest) else { return !lacks_brace(rest) };
        let rest = rest.get(len..).unwrap_or_default();
        match plain.bytes() {
            [made @ (b'&' | b'%')] => self.keeps_made(*made, rest, at),
            _ => self.is_kept(&plain, at),
        }
    }

    fn is_kept(&self, plain: &Plain, at: usize) -> bool {
        if plain.bytes() == b"\n" { self.ends_line(at) } else { !self.tells(plain) }
    }

    /// The same of what an escape made with what follows it: `&amp;` before `#65;`, and in `?a=1&amp;b=2`, where it stands for itself.
    fn keeps_made(&self, made: u8, rest: &[u8], at: usize) -> bool {
        let mut read = [made; view::LONGEST_ESCAPE];
        let len = rest.len().min(read.len() - 1);
        let (Some(to), Some(from)) = (read.get_mut(1..=len), rest.get(..len)) else { return false };
        to.copy_from_slice(from);
        // Of two digits the second may be made too.
        let apart = !from.iter().take(2).any(|b| begins_escape(*b));
        apart && view::read_escape(read.get(..=len).unwrap_or_default()).is_none_or(|(_, plain)| self.is_kept(&plain, at))
    }

    /// Whether a line break is no break within base64, here or in a view.
    fn ends_line(&self, at: usize) -> bool {
        let before = self.text.get(..at).unwrap_or_default();
        let before = before.strip_suffix(b"\r").unwrap_or(before);
        let wrapped = |line: &[u8]| line.iter().rev().all(|b| may_be_wrapped(*b));
        !before.len().checked_sub(view::WRAPPED).and_then(|from| before.get(from..)).is_some_and(wrapped)
    }

    /// Whether a line break, of which that is start and end, makes at most one line of two that have no escape where they meet. Then
    /// adds to `joined` what a piece that lies in both has of them.
    fn breaks(&self, at: usize, end: usize, joined: &mut Vec<u8>) -> bool {
        if self.ends_line(at) {
            return true;
        }
        let before = without_return(self.text.get(..at).unwrap_or_default());
        let after = self.text.get(end..).unwrap_or_default();
        let blank = after.iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
        let after = after.get(blank..).unwrap_or_default();
        // An escape that goes on in the next line would start here.
        let line = before.len().checked_sub(view::LONGEST_ESCAPE).and_then(|from| before.get(from..));
        let Some(line) = line.filter(|line| line.iter().copied().all(view::is_base64)) else { return false };
        // A short line that ends in a break may be joined on both sides, in a view that is deeper by one.
        let next = after.get(..view::WRAPPED).unwrap_or(after);
        let stop = next.iter().find(|b| !view::is_base64(**b));
        if stop.is_some_and(|b| begins_escape(*b) || matches!(b, b'\r' | b'\n')) {
            return false;
        }
        let clean = next.iter().take(LONGEST - 1).take_while(|b| !begins_escape(**b) && !matches!(b, b'\r' | b'\n'));
        joined.extend_from_slice(line.get(line.len() - (LONGEST - 1)..).unwrap_or_default());
        joined.extend(clean);
        joined.push(APART);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::Redactor;
    use super::super::patterns::Patterns;
    use super::*;

    fn forms(secret: &str) -> Forms {
        let mut forms = Forms::default();
        forms.add(secret);
        forms.settle();
        forms
    }

    /// Numbers that look random and are the same in every run.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, bound: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % bound
        }

        fn of<'t>(&mut self, all: &[&'t str]) -> &'t str {
            all[self.below(all.len())]
        }

        /// Some characters of a text escaped, each in one way of several.
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
    fn what_a_glance_settles_has_no_form_in_any_view() {
        let mut dice = Dice(7);
        let atoms: Vec<&str> = ATOMS.split('|').collect();
        let (mut settled, mut hidden) = (0, 0);
        for secret in SECRETS {
            let (patterns, pieces) = (Patterns::of(forms(secret)), Pieces::of(&forms(secret)));
            for _ in 0..4_000 {
                let some = |dice: &mut Dice| -> String { (0..dice.below(6)).map(|_| dice.of(&atoms)).collect() };
                let at = dice.below(secret.len());
                let (start, end) = secret.split_at_checked(at).unwrap_or((secret, ""));
                let break_in = if dice.below(4) == 0 { "\n" } else { "" };
                let mut text = [&some(&mut dice), start, break_in, end, &some(&mut dice)].concat();
                for _ in 0..dice.below(4) {
                    text = dice.escaped(&text);
                }
                let holds = !patterns.find(text.as_bytes()).0.is_empty();
                let glance = !pieces.found(text.as_bytes()) && pieces.settle(text.as_bytes());
                assert!(!(holds && glance), "{secret} is in {text}");
                assert!(patterns.hit(text.as_bytes()) || !holds, "{secret} is in {text}");
                settled += usize::from(glance);
                hidden += usize::from(holds && !text.contains(secret));
            }
        }
        assert!(settled > 100 && hidden > 5_000, "{settled} settled, {hidden} hidden");
    }

    #[test]
    fn what_lines_hide_is_not_settled() {
        let mut dice = Dice(11);
        let secret = "s3cr3t/to\"ken+value-of-some-length";
        let (patterns, pieces) = (Patterns::of(forms(secret)), Pieces::of(&forms(secret)));
        let all = forms(secret).all;
        let alphabet: Vec<char> = ('A'..='Z').chain('a'..='z').chain('0'..='9').chain("+/".chars()).collect();
        let breaks = ["\n", "\r\n", "\n  ", "\r\n\t", "\n\n", "\r\r\n", "=\n", "%0A", "\\n", "&\n", "\n&#48;"];
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
                    text += if dice.below(often) == 0 { dice.of(&breaks) } else { breaks[0] };
                }
                text.push(c);
            }
            text += dice.of(&["", "\n", "==\n", "\n\"}"]);
            for _ in 0..dice.below(4) {
                text = serde_json::Value::from(text).to_string();
            }
            let holds = !patterns.find(text.as_bytes()).0.is_empty();
            let glance = !pieces.found(text.as_bytes()) && pieces.settle(text.as_bytes());
            assert!(!(holds && glance), "a secret is in {text}");
            settled += usize::from(glance && text.contains('\n') | text.contains("\\n"));
            hidden += usize::from(holds && !pieces.found(text.as_bytes()));
        }
        assert!(settled > 1_000 && hidden > 300, "{settled} settled, {hidden} hidden");
    }

    #[test]
    fn usual_text_is_settled() {
        let pieces = Pieces::of(&forms("s3cr3t/to\"ken+v"));
        for text in [
            r#"{"content":[{"text":"{\"url\":\"https:\/\/h\/?a=1\u0026b=2\",\n\"t\":\"na\u00efve\"}"}]}"#,
            "https://h/a%20b?q=%7B%22k%22%3A%22%C3%A9%22%7D&amp;r=%252F",
            "one &lt;b&gt;line&lt;/b&gt;\r\nand the next\n",
            "50 % & more",
            &format!("{0}\\n{0}\\n{0}==\\n\"}}", "QWxhZGRp".repeat(9)),
            &format!("{0}\r\n  {0}\n{0}", "QWxhZGRp".repeat(9)),
        ] {
            assert!(!pieces.found(text.as_bytes()) && pieces.settle(text.as_bytes()), "{text}");
        }
        for text in [r"\\u0041", "%2541", "&amp;#65;", "%5cu0041", "&amp;#10;", "\\nx\\n", "\n\\u"] {
            let text = format!("{}{text}", "x".repeat(32));
            assert!(!pieces.settle(text.as_bytes()), "{text}");
        }
        assert!(!Pieces::of(&forms("a/b/c/d/e/f")).settle(b"x"), "a form without a piece");
        assert_eq!(Redactor::of(["a/b/c/d/e/f"]).redact_str(r"\u0061/b\/c/d/e/f"), "[REDACTED]");
    }
}
