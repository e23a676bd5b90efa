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

/// The term of a word's stem, and whether the word is a stop word. Each occurrence of a word needs it, so it is small and apart from
/// what only names need.
#[derive(Debug, Clone, Copy)]
struct Stem(u32);

impl Stem {
    /// The term is not known yet.
    const NEW: Stem = Stem(u32::MAX - 1);

    fn is_new(self) -> bool {
        self.0 | 1 == u32::MAX
    }

    fn set_term(&mut self, term: u32) {
        self.0 = term << 1 | self.0 & 1;
    }

    fn set_stop_word(&mut self) {
        self.0 |= 1;
    }

    fn term(self) -> u32 {
        self.0 >> 1
    }

    fn is_stop_word(self) -> bool {
        self.0 & 1 == 1
    }
}

/// What a word of a name needs. The terms with the [`FORM_MARK`] and the [`SHARE_MARK`] are [`NONE`] until they are needed.
#[derive(Debug, Clone, Copy)]
struct InName {
    form: u32,
    share: u32,
    intent: Option<Intent>,
}

const NEW_IN_NAME: InName = InName { form: NONE, share: NONE, intent: None };

/// How often each field of a document has a term: three bits for each field, so that a count is at most 7.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts(u32);

impl Counts {
    const BITS: u32 = 3;
    const MAX: u32 = 7;

    fn add(&mut self, field: Field) {
        let shift = field as u32 * Self::BITS;
        if self.0 >> shift & Self::MAX < Self::MAX {
            self.0 += 1 << shift;
        }
    }

    /// Returns the fields that have the term, each with its count.
    pub(crate) fn fields(self) -> impl Iterator<Item = (usize, u32)> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let field = (rest != 0).then(|| rest.trailing_zeros() / Self::BITS)?;
            let shift = field * Self::BITS;
            let count = rest >> shift & Self::MAX;
            rest &= !(Self::MAX << shift);
            Some((field as usize, count))
        })
    }
}

/// How often a document has a term.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Occurrence {
    pub(crate) term: u32,
    pub(crate) counts: Counts,
}

/// What is known of a term's postings before they are written.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Term {
    /// One more than the position of the last occurrence.
    occurrence: u32,
    /// The document of the last posting.
    pub(crate) document: u32,
    /// Length of all postings in bytes.
    pub(crate) bytes: u32,
}

impl Term {
    /// Adds a posting. Its score is only known when all documents are.
    fn count(&mut self, document: u32) {
        let distance = document - self.document;
        self.document = document;
        self.bytes += 1 + (distance | 1).ilog2() / 7 + 1;
    }
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
    /// The number of the first document.
    pub(crate) first: u32,
    /// Unstemmed words. Each is stemmed once.
    words: Texts,
    stems: Vec<Stem>,
    in_names: Vec<InName>,
    pub(crate) texts: Texts,
    pub(crate) terms: Vec<Term>,
    pub(crate) documents: Vec<Document>,
    /// Number of occurrences before the last document.
    start: u32,
    /// The terms of all documents, by document.
    pub(crate) occurrences: Vec<Occurrence>,
    /// The stems of all names, by document and term.
    pub(crate) shares: Vec<Share>,
    /// Number of stems in the names before the last one.
    start_of_shares: usize,
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
        Builder::after(0, 0)
    }

    /// Creates a builder whose documents come after this number of others and have about this number of terms.
    pub(crate) fn after(first: u32, occurrences: usize) -> Builder {
        let mut builder = Builder {
            first,
            words: Texts::default(),
            stems: Vec::new(),
            in_names: Vec::new(),
            texts: Texts::default(),
            terms: Vec::new(),
            documents: Vec::new(),
            start: 0,
            occurrences: Vec::with_capacity(occurrences),
            shares: Vec::new(),
            start_of_shares: 0,
            pairs: Texts::default(),
            frequencies: Vec::new(),
            intents: Vec::new(),
            group_text: Box::default(),
            group_terms: Vec::new(),
        };
        // To look each word up in these lists would take as long as to stem it.
        for word in words::stop_words() {
            let number = builder.words.number(word.as_bytes());
            if let Some(stem) = slot(&mut builder.stems, number, Stem::NEW) {
                stem.set_stop_word();
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
        let number = self.texts.number(text.as_bytes());
        self.start = self.occurrences.len() as u32;
        self.start_of_shares = self.shares.len();
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
        let term = self.texts.number(text.as_bytes());
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
        let Some(stem) = slot(&mut self.stems, number, Stem::NEW) else { return (NONE, true) };
        if stem.is_new() {
            stem.set_term(self.texts.number(words::stem(text).as_bytes()));
        }
        let stem = *stem;
        if field == Field::Name
            && let Some(word) = slot(&mut self.in_names, number, NEW_IN_NAME)
        {
            if word.form == NONE {
                word.form = self.texts.number(format!("{FORM_MARK}{text}").as_bytes());
                let share = [&[SHARE_MARK as u8], self.texts.get(stem.term())].concat();
                word.share = self.texts.number(&share);
            }
            self.intents.extend(word.intent);
            let (form, share) = (word.form, word.share);
            self.occur(form, field);
            self.share(share);
        }
        (stem.term(), stem.is_stop_word())
    }

    /// Returns the number of the last document.
    fn document_number(&self) -> u32 {
        self.first + (self.documents.len() as u32).saturating_sub(1)
    }

    /// Adds an occurrence of a term to the last document.
    fn occur(&mut self, number: u32, field: Field) {
        let document = self.document_number();
        let Some(term) = slot(&mut self.terms, number, Term::default()) else { return };
        if term.occurrence <= self.start {
            self.occurrences.push(Occurrence { term: number, counts: Counts::default() });
            term.occurrence = self.occurrences.len() as u32;
            term.count(document);
        }
        if let Some(occurrence) = self.occurrences.get_mut(term.occurrence as usize - 1) {
            occurrence.counts.add(field);
        }
    }

    /// Adds a stem to the name of the last document.
    fn share(&mut self, number: u32) {
        let document = self.document_number();
        let Some(group) = self.documents.last().map(|document| document.group) else { return };
        let of_document = self.shares.get(self.start_of_shares..).unwrap_or_default();
        let at = of_document.partition_point(|share| share.term < number);
        if of_document.get(at).is_some_and(|share| share.term == number) {
            return;
        }
        let pair = self.pairs.number(&(u64::from(group) << 32 | u64::from(number)).to_le_bytes());
        self.shares.insert(self.start_of_shares + at, Share { document, term: number, pair });
        if let Some(frequency) = slot(&mut self.frequencies, pair, 0.0) {
            *frequency += 1.0;
        }
        if let Some(term) = slot(&mut self.terms, number, Term::default()) {
            term.count(document);
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
