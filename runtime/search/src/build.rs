//! Collects the terms of documents. `write` makes an index of them.

use crate::intents::{self, Intent};
use crate::texts::Texts;
use crate::words;

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

pub(crate) const FIELDS: usize = 9;

/// A number that no term has.
const NONE: u32 = u32::MAX;

/// What each occurrence of a word needs. It is apart from what only names need, so that more of it fits into the cache.
#[derive(Debug, Clone, Copy)]
struct Stem {
    /// The term of the stem, which is [`NONE`] until it is needed.
    term: u32,
    is_stop_word: bool,
}

const NEW: Stem = Stem { term: NONE, is_stop_word: false };

/// What a word of a name needs. The terms with the [`FORM_MARK`] and the [`SHARE_MARK`] are [`NONE`] until they are needed.
#[derive(Debug, Clone, Copy)]
struct InName {
    form: u32,
    share: u32,
    intent: Option<Intent>,
}

const NEW_IN_NAME: InName = InName { form: NONE, share: NONE, intent: None };

/// How often a document has a term.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Occurrence {
    pub(crate) term: u32,
    /// The fields that have the term, one bit each.
    pub(crate) fields: u16,
    pub(crate) counts: [u8; FIELDS],
}

/// A stem in the name of a document.
#[derive(Debug)]
pub(crate) struct Share {
    pub(crate) document: u32,
    pub(crate) term: u32,
    /// The number of the pair of upstream and term.
    pub(crate) pair: u32,
}

#[derive(Debug)]
pub(crate) struct Document {
    /// The upstream, as the number of its term.
    pub(crate) group: u32,
    /// Number of words in each field.
    pub(crate) lengths: [u16; FIELDS],
    /// Number of occurrences in the documents before.
    pub(crate) start: u32,
}

/// Collects documents and builds their index.
#[derive(Debug)]
pub struct Builder {
    /// Unstemmed words. Each is stemmed once.
    words: Texts,
    stems: Vec<Stem>,
    in_names: Vec<InName>,
    pub(crate) terms: Texts,
    /// One more than the position of each term's last occurrence.
    last: Vec<u32>,
    pub(crate) documents: Vec<Document>,
    /// Number of occurrences before the last document.
    start: u32,
    /// The terms of all documents, by document.
    pub(crate) occurrences: Vec<Occurrence>,
    /// The stems of all names, by document and term.
    pub(crate) shares: Vec<Share>,
    /// Pairs of an upstream and a stem, each with the number of the upstream's names that have the stem.
    pairs: Texts,
    pub(crate) frequencies: Vec<f32>,
    /// The intents of the verbs in the last name.
    intents: Vec<Intent>,
    /// The description of the current upstream, and its terms.
    group_text: Box<str>,
    group_terms: Vec<u32>,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder::new()
    }
}

impl Builder {
    /// Creates a builder without documents.
    pub fn new() -> Builder {
        let mut builder = Builder {
            words: Texts::default(),
            stems: Vec::new(),
            in_names: Vec::new(),
            terms: Texts::default(),
            last: Vec::new(),
            documents: Vec::new(),
            start: 0,
            occurrences: Vec::new(),
            shares: Vec::new(),
            pairs: Texts::default(),
            frequencies: Vec::new(),
            intents: Vec::new(),
            group_text: Box::default(),
            group_terms: Vec::new(),
        };
        // To look each word up in these lists would take as long as to stem it.
        for word in words::stop_words() {
            let number = builder.words.number(word.as_bytes());
            if let Some(stem) = slot(&mut builder.stems, number, NEW) {
                stem.is_stop_word = true;
            }
        }
        for (intent, verb) in intents::verbs() {
            let number = builder.words.number(verb.as_bytes());
            if let Some(word) = slot(&mut builder.in_names, number, NEW_IN_NAME) {
                word.intent = word.intent.or(Some(intent));
            }
        }
        builder
    }

    /// Begins the next document, which has this name and belongs to the upstream `group`, if any.
    pub fn document(&mut self, group: Option<&str>, name: &str) {
        let mut text = String::with_capacity(64);
        text.push(GROUP_MARK);
        words::plain(group.unwrap_or_default(), &mut text);
        let number = self.terms.number(text.as_bytes());
        self.start = self.occurrences.len() as u32;
        self.documents.push(Document { group: number, lengths: [0; FIELDS], start: self.start });
        if let Some(group) = group {
            self.add(Field::Group, group);
            self.occur(number, Field::Name);
        }
        let end_of_group = text.len();
        words::plain(name, &mut text);
        if group.is_some() {
            text.replace_range(..GROUP_MARK.len_utf8(), NAME_MARK.encode_utf8(&mut [0; 4]));
            self.add_term(&text);
        }
        text.replace_range(..end_of_group, NAME_MARK.encode_utf8(&mut [0; 4]));
        self.add_term(&text);
        self.intents.clear();
        self.add(Field::Name, name);
    }

    fn add_term(&mut self, text: &str) {
        let term = self.terms.number(text.as_bytes());
        self.occur(term, Field::Name);
    }

    /// Marks the document that was begun last with its intent, if its name or `readOnlyHint` has one.
    pub(crate) fn add_intent(&mut self, is_read_only: Option<bool>) {
        if let Some(intent) = Intent::from_tool(&self.intents, is_read_only) {
            self.add_term(intent.term());
        }
    }

    /// Adds a text to the document that was begun last.
    pub fn add(&mut self, field: Field, text: &str) {
        let mut count = 0_usize;
        // All tools of an upstream have its description.
        let is_of_group = field == Field::GroupDescription;
        if is_of_group && *self.group_text == *text {
            let terms = std::mem::take(&mut self.group_terms);
            for term in &terms {
                self.occur(*term, field);
            }
            count = terms.len();
            self.group_terms = terms;
        } else {
            if is_of_group {
                self.group_text = text.into();
                self.group_terms.clear();
            }
            let keeps_stop_words = matches!(field, Field::Name | Field::Group);
            words::each_word(text, |word| {
                let (stem, is_stop_word) = self.word(word, field);
                if keeps_stop_words || !is_stop_word {
                    count += 1;
                    self.occur(stem, field);
                    if is_of_group {
                        self.group_terms.push(stem);
                    }
                }
            });
        }
        if let Some(length) = self.documents.last_mut().and_then(|document| document.lengths.get_mut(field as usize)) {
            *length = length.saturating_add(u16::try_from(count).unwrap_or(u16::MAX));
        }
    }

    /// Returns the term of a word's stem, and whether it is a stop word. Adds the other terms of a word of a name.
    fn word(&mut self, text: &str, field: Field) -> (u32, bool) {
        let number = self.words.number(text.as_bytes());
        let Some(stem) = slot(&mut self.stems, number, NEW) else { return (NONE, true) };
        if stem.term == NONE {
            stem.term = self.terms.number(words::stem(text).as_bytes());
        }
        let stem = *stem;
        if field == Field::Name
            && let Some(word) = slot(&mut self.in_names, number, NEW_IN_NAME)
        {
            if word.form == NONE {
                word.form = self.terms.number(format!("{FORM_MARK}{text}").as_bytes());
                let share = [&[SHARE_MARK as u8], self.terms.get(stem.term)].concat();
                word.share = self.terms.number(&share);
            }
            self.intents.extend(word.intent);
            let (form, share) = (word.form, word.share);
            self.occur(form, field);
            self.share(share);
        }
        (stem.term, stem.is_stop_word)
    }

    /// Adds an occurrence of a term to the last document.
    fn occur(&mut self, term: u32, field: Field) {
        let Some(last) = slot(&mut self.last, term, 0) else { return };
        if *last <= self.start {
            let mut counts = [0; FIELDS];
            if let Some(count) = counts.get_mut(field as usize) {
                *count = 1;
            }
            self.occurrences.push(Occurrence { term, fields: 1 << field as u16, counts });
            *last = self.occurrences.len() as u32;
        } else if let Some(occurrence) = self.occurrences.get_mut(*last as usize - 1) {
            occurrence.fields |= 1 << field as u16;
            if let Some(count) = occurrence.counts.get_mut(field as usize) {
                *count = count.saturating_add(1);
            }
        }
    }

    /// Appends the documents of another builder. The index is the same as if they had been added to this one.
    pub(crate) fn append(&mut self, other: &Builder) {
        // The number of each term of the other builder in this one.
        let terms: Vec<u32> = (0..other.terms.len() as u32).map(|term| self.terms.number(other.terms.get(term))).collect();
        let number = |term: u32| terms.get(term as usize).copied().unwrap_or(NONE);
        let start = self.occurrences.len() as u32;
        let mut shares = other.shares.iter().peekable();
        self.occurrences.reserve(other.occurrences.len());
        for (at, document, occurrences) in other.documents() {
            let group = number(document.group);
            self.documents.push(Document { group, lengths: document.lengths, start: start + document.start });
            for occurrence in occurrences {
                self.occurrences.push(Occurrence { term: number(occurrence.term), ..*occurrence });
            }
            while let Some(share) = shares.next_if(|share| share.document == at) {
                self.share(number(share.term));
            }
        }
    }

    /// Adds a stem to the name of the last document.
    fn share(&mut self, term: u32) {
        let Some(group) = self.documents.last().map(|document| document.group) else { return };
        let document = self.documents.len() as u32 - 1;
        let found = self.shares.binary_search_by_key(&(document, term), |share| (share.document, share.term));
        let Err(at) = found else { return };
        let pair = self.pairs.number(&(u64::from(group) << 32 | u64::from(term)).to_le_bytes());
        self.shares.insert(at, Share { document, term, pair });
        if let Some(frequency) = slot(&mut self.frequencies, pair, 0.0) {
            *frequency += 1.0;
        }
    }
}

/// Returns an entry of a list, which is extended if it is too short.
pub(crate) fn slot<T: Copy>(list: &mut Vec<T>, at: u32, new: T) -> Option<&mut T> {
    if list.len() <= at as usize {
        list.resize(at as usize + 1, new);
    }
    list.get_mut(at as usize)
}
