//! Building an index.
//!
//! Layout, all numbers little-endian: the magic; the number of documents and the number of terms (`u32` each); for each term the
//! end offset of its text and the end offset of its postings (`u32` each); all texts, sorted; all postings. A posting consists of
//! the distance to the previous document (LEB128) and its BM25F score in 255ths of the maximum (one byte).

use std::collections::HashMap;

use crate::intents::Intent;
use crate::words;

/// First bytes of an index: the format's name and the version of its layout.
pub(crate) const MAGIC: &[u8; 8] = b"PTCSRCH2";

/// Prefix of a term that is the name of a document without its separators.
pub(crate) const NAME_MARK: char = '=';

/// Prefix of a term that is the name of an upstream without its separators. All tools of the upstream have the term.
pub(crate) const GROUP_MARK: char = '@';

/// Prefix of a term that is an unstemmed word of a document's name, such as `requests` of `list_requests`.
pub(crate) const FORM_MARK: char = '~';

/// Prefix of a term that is the stem of a word of the name of a document. The score of its postings is the word's share of the
/// name, in 255ths.
pub(crate) const SHARE_MARK: char = '%';

/// The part of a document that a text belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Field {
    /// The name of the tool.
    Name,
    /// The name of its upstream.
    Group,
    /// The title of the tool for people.
    Title,
    /// The description of the tool.
    Description,
    /// The description of the upstream.
    GroupDescription,
    /// Names of arguments.
    Arguments,
    /// Descriptions of arguments, and their allowed values.
    ArgumentTexts,
    /// The path of an operation.
    Path,
    /// Names of fields of the result.
    Results,
}

const FIELDS: usize = 9;

/// Weight and length normalisation of each field: `w` and `b` of BM25F.
const WEIGHTS: [(f32, f32); FIELDS] =
    [(5.0, 0.3), (2.5, 0.0), (2.5, 0.3), (1.6, 0.7), (0.4, 0.3), (0.9, 0.5), (0.45, 0.3), (0.9, 0.3), (0.15, 0.5)];

/// How fast the score of a term saturates with its frequency: `k1` of BM25F.
pub(crate) const SATURATION: f32 = 2.0;

/// Collects documents and builds their index.
#[derive(Debug, Default)]
pub struct Builder {
    /// Term numbers of unstemmed words, with a flag for stop words.
    known: HashMap<Box<str>, (u32, bool), foldhash::fast::FixedState>,
    terms: HashMap<Box<str>, u32, foldhash::fast::FixedState>,
    texts: Vec<Box<str>>,
    /// Whether each term has the [`SHARE_MARK`].
    is_share: Vec<bool>,
    /// Terms of the document that is being added, with their fields.
    current: Vec<(u32, Field)>,
    /// The upstream of each document, as the number of its term.
    groups: Vec<u32>,
    /// The description of the current upstream, and its terms.
    group_text: Box<str>,
    group_terms: Vec<(u32, Field)>,
    /// Term, document, and frequency in each field, in the order of the documents.
    occurrences: Vec<(u32, u32, [u8; FIELDS])>,
    lengths: Vec<[u16; FIELDS]>,
}

impl Builder {
    /// Creates a builder without documents.
    pub fn new() -> Builder {
        Builder::default()
    }

    /// Begins the next document, which has this name and belongs to the upstream `group`, if any.
    pub fn document(&mut self, group: Option<&str>, name: &str) {
        self.end_document();
        self.lengths.push([0; FIELDS]);
        let number = self.term(&format!("{GROUP_MARK}{}", words::plain(group.unwrap_or_default())));
        self.groups.push(number);
        if let Some(group) = group {
            self.add(Field::Group, group);
            self.add_mark(GROUP_MARK, group);
            self.add_mark(NAME_MARK, &format!("{group}{name}"));
        }
        self.add(Field::Name, name);
        self.add_mark(NAME_MARK, name);
    }

    fn add_mark(&mut self, mark: char, name: &str) {
        let term = self.term(&format!("{mark}{}", words::plain(name)));
        self.current.push((term, Field::Name));
    }

    /// Marks the document that was begun last with its intent.
    pub(crate) fn add_intent(&mut self, intent: Intent) {
        let term = self.term(intent.term());
        self.current.push((term, Field::Name));
    }

    /// Adds a text to the document that was begun last.
    pub fn add(&mut self, field: Field, text: &str) {
        // All tools of an upstream have its description.
        let is_of_group = field == Field::GroupDescription;
        if is_of_group && *self.group_text == *text {
            self.current.extend_from_slice(&self.group_terms);
            return self.lengthen(field, self.group_terms.len());
        }
        let before = self.current.len();
        let keeps_stop_words = matches!(field, Field::Name | Field::Group);
        let mut count = 0_usize;
        words::each_word(text, |word| {
            let known = self.known.get(word).copied();
            let (term, is_stop_word) = known.unwrap_or_else(|| {
                let known = (self.term(&words::stem(word)), words::is_stop_word(word));
                self.known.insert(word.into(), known);
                known
            });
            if keeps_stop_words || !is_stop_word {
                count += 1;
                self.current.push((term, field));
            }
            if field == Field::Name {
                let form = self.term(&format!("{FORM_MARK}{word}"));
                let share = self.term(&format!("{SHARE_MARK}{}", words::stem(word)));
                self.current.extend([(form, field), (share, field)]);
            }
        });
        if is_of_group {
            self.group_text = text.into();
            self.group_terms = self.current.get(before..).unwrap_or_default().to_vec();
        }
        self.lengthen(field, count);
    }

    /// Adds a number of words to the length of a field of the document that was begun last.
    fn lengthen(&mut self, field: Field, words: usize) {
        if let Some(length) = self.lengths.last_mut().and_then(|lengths| lengths.get_mut(field as usize)) {
            *length = length.saturating_add(u16::try_from(words).unwrap_or(u16::MAX));
        }
    }

    fn term(&mut self, text: &str) -> u32 {
        if let Some(term) = self.terms.get(text) {
            return *term;
        }
        let term = self.texts.len() as u32;
        self.terms.insert(text.into(), term);
        self.texts.push(text.into());
        self.is_share.push(text.starts_with(SHARE_MARK));
        term
    }

    fn end_document(&mut self) {
        let Some(document) = self.lengths.len().checked_sub(1) else { return };
        self.current.sort_unstable_by_key(|(term, _)| *term);
        for same in self.current.chunk_by(|a, b| a.0 == b.0) {
            let mut counts = [0_u8; FIELDS];
            for (_, field) in same {
                if let Some(count) = counts.get_mut(*field as usize) {
                    *count = count.saturating_add(1);
                }
            }
            if let Some((term, _)) = same.first() {
                self.occurrences.push((*term, document as u32, counts));
            }
        }
        self.current.clear();
    }

    /// Computes the share of each word of a name in that name, by term and document. Words are weighted by their rarity among the
    /// names of the upstream, so that a prefix of all of them, such as `slack_`, has a small share.
    fn shares(&self) -> HashMap<(u32, u32), f32, foldhash::fast::FixedState> {
        let group = |document: u32| self.groups.get(document as usize).copied().unwrap_or_default();
        let marked = |term: u32| self.is_share.get(term as usize) == Some(&true);
        let mut sizes: HashMap<u32, f32, foldhash::fast::FixedState> = HashMap::default();
        for number in &self.groups {
            *sizes.entry(*number).or_default() += 1.0;
        }
        let mut frequencies: HashMap<(u32, u32), f32, foldhash::fast::FixedState> = HashMap::default();
        for (term, document, _) in self.occurrences.iter().filter(|(term, ..)| marked(*term)) {
            *frequencies.entry((*term, group(*document))).or_default() += 1.0;
        }
        let mut rarities = Vec::new();
        let mut totals = vec![0.0_f32; self.groups.len()];
        for (term, document, _) in self.occurrences.iter().filter(|(term, ..)| marked(*term)) {
            let often = frequencies.get(&(*term, group(*document))).copied().unwrap_or(1.0);
            let size = sizes.get(&group(*document)).copied().unwrap_or(1.0);
            let rarity = (1.0 + size / often).ln();
            rarities.push(((*term, *document), rarity));
            if let Some(total) = totals.get_mut(*document as usize) {
                *total += rarity;
            }
        }
        let total = |document: u32| totals.get(document as usize).copied().unwrap_or(1.0).max(f32::MIN_POSITIVE);
        rarities.into_iter().map(|((term, document), rarity)| ((term, document), rarity / total(document))).collect()
    }

    /// Builds the index and returns its bytes.
    pub fn finish(mut self) -> Vec<u8> {
        self.end_document();
        let documents = self.lengths.len();
        let averages: [f32; FIELDS] = std::array::from_fn(|field| {
            let total: f32 = self.lengths.iter().filter_map(|lengths| lengths.get(field)).map(|length| f32::from(*length)).sum();
            (total / documents.max(1) as f32).max(1.0)
        });
        // Numbers of terms in the order of their texts.
        let mut order: Vec<u32> = (0..self.texts.len() as u32).collect();
        order.sort_unstable_by(|a, b| self.texts.get(*a as usize).cmp(&self.texts.get(*b as usize)));
        let mut starts = vec![0_u32; self.texts.len() + 1];
        for (term, ..) in &self.occurrences {
            if let Some(start) = starts.get_mut(*term as usize + 1) {
                *start += 1;
            }
        }
        for at in 1..starts.len() {
            let before = starts.get(at - 1).copied().unwrap_or(0);
            if let Some(start) = starts.get_mut(at) {
                *start += before;
            }
        }
        let shares = self.shares();
        // Documents of a term, in order: occurrences come by document.
        let mut sorted = vec![(0_u32, 0_u8); self.occurrences.len()];
        let mut next = starts.clone();
        for (term, document, counts) in &self.occurrences {
            let lengths = self.lengths.get(*document as usize).copied().unwrap_or_default();
            let is_share = self.is_share.get(*term as usize) == Some(&true);
            let score = match is_share.then(|| shares.get(&(*term, *document))).flatten() {
                Some(share) => (share * 255.0).round().max(1.0) as u8,
                None => score(*counts, &lengths, &averages),
            };
            if let Some(slot) = next.get_mut(*term as usize) {
                if let Some(posting) = sorted.get_mut(*slot as usize) {
                    *posting = (*document, score);
                }
                *slot += 1;
            }
        }
        let (mut texts, mut postings, mut ends) = (Vec::new(), Vec::new(), Vec::with_capacity(8 * order.len()));
        for term in &order {
            let at = *term as usize;
            texts.extend_from_slice(self.texts.get(at).map(|text| text.as_bytes()).unwrap_or_default());
            let range = starts.get(at).copied().unwrap_or(0) as usize..starts.get(at + 1).copied().unwrap_or(0) as usize;
            let mut before = 0;
            for (document, score) in sorted.get(range).unwrap_or_default() {
                let mut distance = document - before;
                before = *document;
                while distance >= 0x80 {
                    postings.push(distance as u8 | 0x80);
                    distance >>= 7;
                }
                postings.extend([distance as u8, *score]);
            }
            ends.extend_from_slice(&(texts.len() as u32).to_le_bytes());
            ends.extend_from_slice(&(postings.len() as u32).to_le_bytes());
        }
        let mut index = Vec::with_capacity(16 + ends.len() + texts.len() + postings.len());
        index.extend_from_slice(MAGIC);
        index.extend_from_slice(&(documents as u32).to_le_bytes());
        index.extend_from_slice(&(order.len() as u32).to_le_bytes());
        index.append(&mut ends);
        index.append(&mut texts);
        index.append(&mut postings);
        index
    }
}

/// Returns the saturated, weighted frequency of a term in a document, in 255ths of the maximum.
fn score(counts: [u8; FIELDS], lengths: &[u16; FIELDS], averages: &[f32; FIELDS]) -> u8 {
    let fields = counts.into_iter().zip(lengths).zip(averages).zip(WEIGHTS);
    let frequency: f32 = fields
        .filter(|(((count, _), _), _)| *count > 0)
        .map(|(((count, length), average), (weight, b))| weight * f32::from(count) / (1.0 - b + b * f32::from(*length) / average))
        .sum();
    (frequency / (SATURATION + frequency) * 255.0).round().max(1.0) as u8
}
