//! Writes an index.
//!
//! Layout, all numbers little-endian: the magic; the number of documents and the number of terms (`u32` each); for each term the
//! end offset of its text and the end offset of its postings (`u32` each); all texts, sorted; all postings. A posting consists of
//! the distance to the previous document (LEB128) and its BM25F score in 255ths of the maximum (one byte).

use std::cmp::Ordering;

use crate::build::{Builder, Counts, Document, FIELDS, Occurrence, Share};

/// First bytes of an index: the format's name and the version of its layout.
pub(crate) const MAGIC: &[u8; 8] = b"PTCSRCH2";

/// Weight and length normalisation of each field: `w` and `b` of BM25F.
const WEIGHTS: [(f32, f32); FIELDS] =
    [(5.0, 0.3), (2.5, 0.0), (2.5, 0.3), (1.6, 0.7), (0.4, 0.3), (0.9, 0.5), (0.45, 0.3), (0.9, 0.3), (0.15, 0.5)];

/// How fast the score of a term saturates with its frequency: `k1` of BM25F.
const SATURATION: f32 = 2.0;

/// Where the next posting of a term is written.
#[derive(Debug, Clone, Copy, Default)]
struct Cursor {
    /// The document of the posting before.
    document: u32,
    at: u32,
}

/// A term with the first bytes of its text as a number. Most texts differ in them, so that few texts are compared.
type Sorted = (u64, u32);

/// The postings of some documents by term, in the order of the terms' texts.
pub(crate) struct Part<'a> {
    builder: &'a Builder,
    order: Vec<Sorted>,
    postings: Vec<u8>,
}

/// The mean number of words in each field.
pub(crate) struct Averages([f32; FIELDS]);

impl Averages {
    pub(crate) fn compute(builders: &[&Builder]) -> Averages {
        let documents = || builders.iter().flat_map(|builder| &builder.documents);
        let count = documents().count().max(1) as f32;
        Averages(std::array::from_fn(|field| {
            let lengths = documents().filter_map(|document| document.lengths.get(field));
            let total: f32 = lengths.map(|length| f32::from(*length)).sum();
            (total / count).max(1.0)
        }))
    }

    /// Returns the factor of each field's count in the weighted frequency of a term in a document.
    fn factors(&self, document: &Document) -> [f32; FIELDS] {
        let mut factors = [0.0; FIELDS];
        let lengths = document.lengths.iter().zip(&self.0).zip(&WEIGHTS);
        for (factor, ((length, average), (weight, b))) in factors.iter_mut().zip(lengths) {
            *factor = weight / (1.0 - b + b * f32::from(*length) / average);
        }
        factors
    }
}

impl Builder {
    /// Builds the index and returns its bytes.
    pub fn finish(self) -> Vec<u8> {
        index(&self.part(&Averages::compute(&[&self])), None)
    }

    /// Writes the postings of these documents.
    pub(crate) fn part(&self, averages: &Averages) -> Part<'_> {
        let order = self.order();
        let mut cursors = vec![Cursor::default(); self.texts.len()];
        let mut end = 0;
        for (_, term) in &order {
            if let Some((cursor, term)) = cursors.get_mut(*term as usize).zip(self.terms.get(*term as usize)) {
                cursor.at = end;
                end += term.bytes;
            }
        }
        let mut postings = vec![0; end as usize];
        let mut write = |document: u32, term: u32, score: u8| {
            let Some(cursor) = cursors.get_mut(term as usize) else { return };
            let distance = document - cursor.document;
            cursor.document = document;
            let mut put = |byte: u8| {
                if let Some(place) = postings.get_mut(cursor.at as usize) {
                    *place = byte;
                }
                cursor.at += 1;
            };
            number(distance, &mut put);
            put(score);
        };
        for (number, document, occurrences) in self.documents() {
            let factors = averages.factors(document);
            // Most terms occur once, in the same field as the term before.
            let (mut before, mut score) = (Counts::default(), 0);
            for Occurrence { term, counts } in occurrences {
                if *counts != before {
                    (before, score) = (*counts, score_of(*counts, &factors));
                }
                write(number, *term, score);
            }
        }
        // Words of names are weighted by their rarity among the names of the upstream, so that a prefix of all of them, such as
        // `slack_`, has a small share.
        let mut sizes = vec![0.0_f32; self.texts.len()];
        for document in &self.documents {
            if let Some(size) = sizes.get_mut(document.group as usize) {
                *size += 1.0;
            }
        }
        for name in self.shares.chunk_by(|a, b| a.document == b.document) {
            let document = name.first().and_then(|share| self.documents.get((share.document - self.first) as usize));
            let size = document.and_then(|document| sizes.get(document.group as usize)).copied().unwrap_or(1.0);
            let rarity = |share: &Share| (1.0 + size / self.frequencies.get(share.pair as usize).copied().unwrap_or(1.0)).ln();
            let total = name.iter().map(rarity).sum::<f32>().max(f32::MIN_POSITIVE);
            for share in name {
                write(share.document, share.term, part(rarity(share) / total));
            }
        }
        Part { builder: self, order, postings }
    }

    /// Returns the documents with their numbers and the occurrences of terms in them.
    fn documents(&self) -> impl Iterator<Item = (u32, &Document, &[Occurrence])> {
        let ends = self.documents.iter().map(|document| document.start as usize).skip(1).chain([self.occurrences.len()]);
        let occurrences = move |start: u32, end: usize| self.occurrences.get(start as usize..end).unwrap_or_default();
        (self.first..)
            .zip(&self.documents)
            .zip(ends)
            .map(move |((at, document), end)| (at, document, occurrences(document.start, end)))
    }

    /// Returns the terms in the order of their texts.
    fn order(&self) -> Vec<Sorted> {
        let first_bytes = |term| {
            let mut bytes = [0; 8];
            bytes.iter_mut().zip(self.texts.get(term)).for_each(|(to, from)| *to = *from);
            u64::from_be_bytes(bytes)
        };
        let mut order: Vec<Sorted> = (0..self.texts.len() as u32).map(|term| (first_bytes(term), term)).collect();
        order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| self.texts.get(a.1).cmp(self.texts.get(b.1))));
        order
    }
}

/// One term of a part.
struct Entry<'a> {
    first_bytes: u64,
    text: &'a [u8],
    /// The document of the last posting.
    document: u32,
    postings: &'a [u8],
}

impl Part<'_> {
    fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        let mut rest = self.postings.as_slice();
        self.order.iter().map(move |(first_bytes, number)| {
            let term = self.builder.terms.get(*number as usize).copied().unwrap_or_default();
            let (postings, after) = rest.split_at_checked(term.bytes as usize).unwrap_or_default();
            rest = after;
            Entry { first_bytes: *first_bytes, text: self.builder.texts.get(*number), document: term.document, postings }
        })
    }
}

/// Returns the index over the documents of one part or of two.
pub(crate) fn index(first: &Part, second: Option<&Part>) -> Vec<u8> {
    let parts = || [Some(first), second].into_iter().flatten();
    let documents: usize = parts().map(|part| part.builder.documents.len()).sum();
    let most: usize = parts().map(|part| part.order.len()).sum();
    let (mut ends, mut texts) = (Vec::with_capacity(8 * most), Vec::new());
    let mut postings = Vec::with_capacity(parts().map(|part| part.postings.len()).sum());
    let (mut ours, mut theirs) = (first.entries().peekable(), second.into_iter().flat_map(Part::entries).peekable());
    loop {
        let order = match (ours.peek(), theirs.peek()) {
            (Some(a), Some(b)) => a.first_bytes.cmp(&b.first_bytes).then_with(|| a.text.cmp(b.text)),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => break,
        };
        let one = ours.next_if(|_| order.is_le());
        let other = theirs.next_if(|_| order.is_ge());
        texts.extend_from_slice(one.as_ref().or(other.as_ref()).map_or(&[], |entry| entry.text));
        if let Some(one) = &one {
            postings.extend_from_slice(one.postings);
        }
        if let Some(other) = other {
            let before = one.map_or(0, |one| one.document);
            append(before, other.postings, &mut postings);
        }
        ends.extend_from_slice(&(texts.len() as u32).to_le_bytes());
        ends.extend_from_slice(&(postings.len() as u32).to_le_bytes());
    }
    let mut index = Vec::with_capacity(MAGIC.len() + 8 + ends.len() + texts.len() + postings.len());
    index.extend_from_slice(MAGIC);
    index.extend_from_slice(&(documents as u32).to_le_bytes());
    index.extend_from_slice(&(ends.len() as u32 / 8).to_le_bytes());
    for part in [ends, texts, postings] {
        index.extend_from_slice(&part);
    }
    index
}

/// Appends postings after one of the document `before`. The first of them contains the number of its document.
fn append(before: u32, more: &[u8], postings: &mut Vec<u8>) {
    let length = more.iter().take_while(|byte| **byte >= 0x80).count() + 1;
    let Some((first, rest)) = more.split_at_checked(length) else { return };
    let document = first.iter().rev().fold(0, |document, byte| document << 7 | u32::from(byte & 0x7f));
    number(document - before, |byte| postings.push(byte));
    postings.extend_from_slice(rest);
}

/// Writes a number in LEB128.
fn number(mut number: u32, mut put: impl FnMut(u8)) {
    while number >= 0x80 {
        put(number as u8 | 0x80);
        number >>= 7;
    }
    put(number as u8);
}

/// Returns the saturated, weighted frequency of a term in a document, in 255ths of the maximum.
fn score_of(counts: Counts, factors: &[f32; FIELDS]) -> u8 {
    let weighted = counts.fields().filter_map(|(field, count)| Some(factors.get(field)? * count as f32));
    let frequency: f32 = weighted.sum();
    part(frequency / (SATURATION + frequency))
}

/// Returns a share in 255ths, at least one.
fn part(share: f32) -> u8 {
    // The cast rounds down.
    ((share * 255.0 + 0.5) as u8).max(1)
}
