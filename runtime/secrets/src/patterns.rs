//! Finds secrets: one automaton searches all encodings of all secrets at once, in a text and in each of its decodings.

use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Match, MatchKind};

use super::decoded_text::{self, DecodedText, MAX_DECODE_DEPTH, OffsetMap, RelevantBytes};
use super::encodings::EncodedSecrets;
use super::prefilter::Prefilter;

pub(super) struct Patterns {
    /// Runs first, since most texts contain no secret.
    prefilter: Prefilter,
    /// Finds the encodings. Chosen for a small table, not for speed.
    pub(super) automaton: AhoCorasick,
    pub(super) encodings: EncodedSecrets,
    /// Indices of the encodings, sorted by their reversed bytes.
    by_end: Vec<usize>,
    relevant: RelevantBytes,
}

/// Maximum number of characters by which a match in base64 grows at its end: one that shares bits, and padding.
const EDGE: usize = 3;

/// Compares texts from their ends.
fn from_end(a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    a.iter().rev().cmp(b.iter().rev())
}

impl Patterns {
    /// Builds the patterns of encodings that are sorted and without duplicates.
    pub(super) fn new(encodings: EncodedSecrets) -> Patterns {
        let all: Vec<&[u8]> = encodings.all.iter().map(|encoded| &**encoded).collect();
        let automaton = automaton(MatchKind::LeftmostLongest, Some(AhoCorasickKind::ContiguousNFA), &all);
        let relevant = RelevantBytes::new(all.iter().copied());
        let mut by_end: Vec<usize> = (0..all.len()).collect();
        by_end.sort_by(|a, b| match (all.get(*a), all.get(*b)) {
            (Some(a), Some(b)) => from_end(a, b),
            _ => a.cmp(b),
        });
        Patterns { prefilter: Prefilter::new(&encodings), automaton, encodings, by_end, relevant }
    }

    /// Returns the size in bytes of the encodings and their search tables.
    pub(super) fn bytes(&self) -> usize {
        let EncodedSecrets { all, cores } = &self.encodings;
        let encodings: usize = all.iter().chain(cores).map(|encoded| size_of_val(encoded) + encoded.len()).sum();
        encodings + self.automaton.memory_usage() + self.prefilter.bytes() + size_of_val(self.by_end.as_slice())
    }

    /// Returns the range of the secret around a match. A match of a part grows by the rest of the secret beside it, and one in
    /// base64 by the characters at its ends that contain bits of the secret.
    fn extend_match(&self, text: &[u8], found: Match) -> Range<usize> {
        let (mut start, mut end) = (found.start(), found.end());
        let id = found.pattern().as_usize();
        let Some(encoded) = self.encodings.all.get(id) else { return start..end };
        if encoded.is_part {
            let after = text.get(start..).unwrap_or_default();
            let longer = self.encodings.all.iter().skip(id + 1).take_while(|longer| longer.starts_with(encoded));
            end = longer.map(|longer| start + common(longer.iter(), after.iter())).fold(end, usize::max);
            let before = text.get(..found.end()).unwrap_or_default();
            let ended = |at: &usize| self.encodings.all.get(*at);
            let from = self.by_end.partition_point(|at| ended(at).is_some_and(|other| from_end(other, encoded).is_lt()));
            let longer = self.by_end.iter().skip(from).map_while(ended).take_while(|longer| longer.ends_with(encoded));
            let begins = longer.map(|longer| found.end() - common(longer.iter().rev(), before.iter().rev()));
            start = begins.fold(start, usize::min);
        }
        let has = |at: Option<usize>, is: fn(u8) -> bool| at.and_then(|at| text.get(at)).is_some_and(|b| is(*b));
        if encoded.shares_before && has(start.checked_sub(1), decoded_text::is_base64) {
            start -= 1;
        }
        if encoded.shares_after || (encoded.is_part && encoded.shares_before) {
            end += usize::from(has(Some(end), decoded_text::is_base64));
            end += usize::from(has(Some(end), |b| b == b'='));
            end += usize::from(has(Some(end), |b| b == b'='));
        }
        start..end
    }

    /// Whether a text contains a secret in any encoding.
    pub(super) fn contains_secret(&self, text: &[u8]) -> bool {
        let mut decoded: Option<Vec<u8>> = None;
        for layer in 0..=MAX_DECODE_DEPTH {
            let text = decoded.as_deref().unwrap_or(text);
            if self.prefilter.found(text) {
                if self.automaton.is_match(text) {
                    return true;
                }
            } else if self.prefilter.rules_out_secrets(text) {
                return false;
            }
            if layer == MAX_DECODE_DEPTH {
                return false;
            }
            decoded = decoded_text::decode_layer(text, self.automaton.max_pattern_len(), &self.relevant);
            if decoded.is_none() {
                return false;
            }
        }
        false
    }

    /// Returns the ranges of secrets in a text, ascending, disjoint and without partial escapes, and the offset maps of the
    /// decoded layers.
    pub(super) fn find(&self, text: &[u8]) -> (Vec<Range<usize>>, Vec<OffsetMap>) {
        let mut found: Vec<Range<usize>> = self.automaton.find_iter(text).map(|found| self.extend_match(text, found)).collect();
        let mut layers: Vec<OffsetMap> = Vec::new();
        let mut next = DecodedText::decode(text, &OffsetMap::default());
        while let Some(DecodedText { text, offsets }) = next {
            found.extend(self.automaton.find_iter(&text).map(|found| offsets.source(self.extend_match(&text, found))));
            next = if layers.len() + 1 < MAX_DECODE_DEPTH { DecodedText::decode(&text, &offsets) } else { None };
            layers.push(offsets);
        }
        for range in &mut found {
            *range = layers.iter().fold(range.clone(), |range, offsets| offsets.widen_to_escapes(range));
        }
        found.sort_by_key(|m| (m.start, m.end));
        let mut apart: Vec<Range<usize>> = Vec::with_capacity(found.len());
        for range in found {
            match apart.last_mut() {
                Some(last) if range.start < last.end => last.end = last.end.max(range.end),
                _ => apart.push(range),
            }
        }
        (apart, layers)
    }

    /// Returns the number of bytes at the start of an incomplete text whose redaction cannot change any more.
    pub(super) fn decided(&self, text: &[u8]) -> usize {
        let mut cut = self.waits(text);
        let mut next =
            DecodedText::decode(text.get(..decoded_text::incomplete_suffix(text)).unwrap_or_default(), &OffsetMap::default());
        for _ in 0..MAX_DECODE_DEPTH {
            let Some(DecodedText { text, offsets }) = next else { break };
            let waits = self.waits(&text);
            if waits < text.len() {
                cut = cut.min(offsets.start(waits));
            }
            next = DecodedText::decode(text.get(..decoded_text::incomplete_suffix(&text)).unwrap_or_default(), &offsets);
        }
        let (found, layers) = self.find(text);
        // A match stays whole, together with the line in which it starts.
        loop {
            let line = decoded_text::line_start(text, cut);
            cut = layers.iter().fold(line, |at, offsets| offsets.widen_to_escapes(at..at).start);
            let Some(split) = found.iter().find(|range| range.start < cut && cut < range.end) else { return cut };
            cut = split.start;
        }
    }

    /// Returns the offset of the suffix that may be the start of a secret.
    fn waits(&self, text: &[u8]) -> usize {
        let open = decoded_text::incomplete_suffix(text);
        let longest = self.automaton.max_pattern_len() + EDGE;
        let shut = text.get(..open).unwrap_or_default();
        // A match that could still grow or shift starts within the last `longest` bytes.
        let mut undecided = open.saturating_sub(longest.saturating_sub(1));
        for found in self.automaton.find_iter(shut) {
            if found.start() >= undecided {
                break;
            }
            undecided = undecided.max(self.extend_match(shut, found).end);
        }
        // Only a prefix of a pattern has to wait.
        let waits = (undecided..open).find(|at| self.begins(shut.get(*at..).unwrap_or_default())).unwrap_or(open);
        decoded_text::line_start(text, waits)
    }

    fn begins(&self, text: &[u8]) -> bool {
        self.encodings.all.iter().any(|encoded| encoded.starts_with(text) || text.starts_with(encoded))
    }
}

/// Returns the length in bytes of the common prefix of two texts.
fn common<'t>(a: impl Iterator<Item = &'t u8>, b: impl Iterator<Item = &'t u8>) -> usize {
    a.zip(b).take_while(|(a, b)| a == b).count()
}

/// Builds an automaton without a prefilter, whose tables would store patterns as plain text.
pub(super) fn automaton(matches: MatchKind, kind: Option<AhoCorasickKind>, patterns: &[&[u8]]) -> AhoCorasick {
    // Building fails only where patterns exceed 2^31 bytes; a process that holds such secrets must not go on without redaction.
    #[expect(clippy::expect_used, reason = "going on unredacted would be worse")]
    AhoCorasick::builder().match_kind(matches).prefilter(false).kind(kind).build(patterns).expect("secrets fit an automaton")
}
