//! Writes an index.
//!
//! Layout, all numbers little-endian: the magic; the number of documents and the number of terms (`u32` each); for each term the
//! end offset of its text and the end offset of its postings (`u32` each); all texts, sorted; all postings. A posting consists of
//! the distance to the previous document (LEB128) and its BM25F score in 255ths of the maximum (one byte).

use crate::build::{Builder, Document, FIELDS, Occurrence, Share};

/// First bytes of an index: the format's name and the version of its layout.
pub(crate) const MAGIC: &[u8; 8] = b"PTCSRCH2";

/// Weight and length normalisation of each field: `w` and `b` of BM25F.
const WEIGHTS: [(f32, f32); FIELDS] =
    [(5.0, 0.3), (2.5, 0.0), (2.5, 0.3), (1.6, 0.7), (0.4, 0.3), (0.9, 0.5), (0.45, 0.3), (0.9, 0.3), (0.15, 0.5)];

/// How fast the score of a term saturates with its frequency: `k1` of BM25F.
const SATURATION: f32 = 2.0;

/// The postings of a term.
#[derive(Debug, Clone, Copy, Default)]
struct Postings {
    /// The document of the last posting.
    document: u32,
    /// Number of their bytes, and then the position of the next one.
    bytes: u32,
}

impl Postings {
    /// Adds a posting. Its score is only known when all documents are.
    fn count(&mut self, document: u32) {
        let distance = document - self.document;
        self.document = document;
        self.bytes += 1 + (distance | 1).ilog2() / 7 + 1;
    }
}

impl Builder {
    /// Builds the index and returns its bytes.
    pub fn finish(self) -> Vec<u8> {
        // Numbers of terms in the order of their texts.
        let order = self.order();
        let mut index = Vec::new();
        index.extend_from_slice(MAGIC);
        index.extend_from_slice(&(self.documents.len() as u32).to_le_bytes());
        index.extend_from_slice(&(order.len() as u32).to_le_bytes());
        let mut postings = self.count();
        let (mut text_end, mut end) = (0, 0);
        for term in &order {
            text_end += self.terms.get(*term).len();
            if let Some(postings) = postings.get_mut(*term as usize) {
                end += std::mem::replace(&mut postings.bytes, end);
                postings.document = 0;
            }
            index.extend_from_slice(&(text_end as u32).to_le_bytes());
            index.extend_from_slice(&end.to_le_bytes());
        }
        for term in &order {
            index.extend_from_slice(self.terms.get(*term));
        }
        let start = index.len();
        index.resize(start + end as usize, 0);
        let mut write = |document: u32, term: u32, score: u8| {
            let Some(postings) = postings.get_mut(term as usize) else { return };
            let mut distance = document - postings.document;
            postings.document = document;
            let mut put = |byte: u8| {
                if let Some(place) = index.get_mut(start + postings.bytes as usize) {
                    *place = byte;
                }
                postings.bytes += 1;
            };
            while distance >= 0x80 {
                put(distance as u8 | 0x80);
                distance >>= 7;
            }
            put(distance as u8);
            put(score);
        };
        let averages: [f32; FIELDS] = std::array::from_fn(|field| {
            let lengths = self.documents.iter().filter_map(|document| document.lengths.get(field));
            let total: f32 = lengths.map(|length| f32::from(*length)).sum();
            (total / self.documents.len().max(1) as f32).max(1.0)
        });
        for (number, document, occurrences) in self.documents() {
            let lengths = document.lengths.iter().zip(&averages).zip(&WEIGHTS);
            let mut norms = [0.0; FIELDS];
            for (norm, ((length, average), (_, b))) in norms.iter_mut().zip(lengths) {
                *norm = 1.0 - b + b * f32::from(*length) / average;
            }
            // Most terms occur once, in the same field as the term before.
            let (mut before, mut score) = ((0, [0; FIELDS]), 0);
            for occurrence in occurrences {
                let frequency = (occurrence.fields, occurrence.counts);
                if frequency != before {
                    (before, score) = (frequency, occurrence.score(&norms));
                }
                write(number, occurrence.term, score);
            }
        }
        // Words of names are weighted by their rarity among the names of the upstream, so that a prefix of all of them, such as
        // `slack_`, has a small share.
        let mut sizes = vec![0.0_f32; self.terms.len()];
        for document in &self.documents {
            if let Some(size) = sizes.get_mut(document.group as usize) {
                *size += 1.0;
            }
        }
        for name in self.shares.chunk_by(|a, b| a.document == b.document) {
            let group = name.first().and_then(|share| self.documents.get(share.document as usize)).map_or(0, |of| of.group);
            let size = sizes.get(group as usize).copied().unwrap_or(1.0);
            let rarity = |share: &Share| (1.0 + size / self.frequencies.get(share.pair as usize).copied().unwrap_or(1.0)).ln();
            let total = name.iter().map(rarity).sum::<f32>().max(f32::MIN_POSITIVE);
            for share in name {
                write(share.document, share.term, part(rarity(share) / total));
            }
        }
        index
    }
}

impl Builder {
    /// Returns the documents with their numbers and the occurrences of terms in them.
    pub(crate) fn documents(&self) -> impl Iterator<Item = (u32, &Document, &[Occurrence])> {
        let ends = self.documents.iter().map(|document| document.start as usize).skip(1).chain([self.occurrences.len()]);
        let occurrences = move |start: u32, end: usize| self.occurrences.get(start as usize..end).unwrap_or_default();
        (0..).zip(&self.documents).zip(ends).map(move |((at, document), end)| (at, document, occurrences(document.start, end)))
    }

    /// Returns the lengths of all terms' postings.
    fn count(&self) -> Vec<Postings> {
        let mut postings = vec![Postings::default(); self.terms.len()];
        let of_names = self.shares.iter().map(|share| (share.document, share.term));
        let of_texts = self.documents().flat_map(|(at, _, all)| all.iter().map(move |occurrence| (at, occurrence.term)));
        for (document, term) in of_names.chain(of_texts) {
            if let Some(postings) = postings.get_mut(term as usize) {
                postings.count(document);
            }
        }
        postings
    }

    /// Returns the terms in the order of their texts.
    fn order(&self) -> Vec<u32> {
        // Most terms differ in their first bytes, which are compared as one number.
        let first_bytes = |term| {
            let mut bytes = [0; 8];
            bytes.iter_mut().zip(self.terms.get(term)).for_each(|(to, from)| *to = *from);
            u64::from_be_bytes(bytes)
        };
        let mut order: Vec<(u64, u32)> = (0..self.terms.len() as u32).map(|term| (first_bytes(term), term)).collect();
        order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| self.terms.get(a.1).cmp(self.terms.get(b.1))));
        order.into_iter().map(|(_, term)| term).collect()
    }
}

impl Occurrence {
    /// Returns the saturated, weighted frequency of the term, in 255ths of the maximum.
    fn score(&self, norms: &[f32; FIELDS]) -> u8 {
        let (mut fields, mut frequency) = (self.fields, 0.0);
        while fields != 0 {
            let field = fields.trailing_zeros() as usize;
            fields &= fields - 1;
            if let (Some(count), Some((weight, _)), Some(norm)) = (self.counts.get(field), WEIGHTS.get(field), norms.get(field)) {
                frequency += weight * f32::from(*count) / norm;
            }
        }
        part(frequency / (SATURATION + frequency))
    }
}

/// Returns a share in 255ths, at least one.
fn part(share: f32) -> u8 {
    // The cast rounds down.
    ((share * 255.0 + 0.5) as u8).max(1)
}
