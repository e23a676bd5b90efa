//! Searching an index in place.

use std::ops::Range;

use crate::build::{FORM_MARK, GROUP_MARK, NAME_MARK, SHARE_MARK};
use crate::intents::Intent;
use crate::synonyms;
use crate::words::{Query, is_stop_word, stem};
use crate::write::MAGIC;

/// Score factors of terms that differ from the query's word: a synonym, a longer word that begins with it, a part of it.
const SYNONYM: f32 = 0.6;
const PREFIX: f32 = 0.5;
const PART: f32 = 0.8;

/// Maximum number of terms that are tried for one prefix.
const MAX_PREFIXED: usize = 24;

/// Minimum length in bytes of a prefix that matches longer words.
const MIN_PREFIX: usize = 3;

/// Minimum length in bytes of a term that is a short form of a longer word of the query.
const MIN_SHORT_FORM: usize = 4;

/// Bonus of a document whose name is the query or a word of it.
const NAMED: f32 = 1_000.0;

/// Bonus of a document whose name is a run of words of the query, as a share of the maximum score of all words.
const RUN: f32 = 0.3;

/// Bonus of a document whose name contains an unstemmed word of the query, as a share of the maximum score of that word. With it,
/// `requests` finds `list_requests` before `get_request`.
const FORM: f32 = 0.15;

/// Score factor of documents of an upstream that the query names.
const GROUP: f32 = 1.4;

/// Increase of a document's score if the query covers its whole name, as a share of the score.
const NAME_COVERAGE: f32 = 0.5;

/// Factor of documents whose intent differs from that of the query.
const OTHER_INTENT: f32 = 0.5;

/// Weight of a verb of an intent, as a share of the weight of another word that is as rare. The objects of such verbs distinguish
/// tools better.
const VERB: f32 = 0.8;

/// An index over documents, borrowed from its bytes.
#[derive(Debug, Clone, Copy)]
pub struct Index<'a> {
    documents: u32,
    terms: u32,
    ends: &'a [u8],
    texts: &'a [u8],
    postings: &'a [u8],
}

/// A term that matches a word of the query, with its score factor.
type Variant = (u32, f32);

impl<'a> Index<'a> {
    /// Opens the bytes that [`Builder::finish`](crate::Builder::finish) returned. Returns `None` for other bytes.
    pub fn new(bytes: &'a [u8]) -> Option<Index<'a>> {
        let rest = bytes.strip_prefix(MAGIC)?;
        let (documents, rest) = rest.split_first_chunk::<4>()?;
        let (terms, rest) = rest.split_first_chunk::<4>()?;
        let terms = u32::from_le_bytes(*terms);
        let (ends, rest) = rest.split_at_checked((terms as usize).checked_mul(8)?)?;
        let last = ends.last_chunk::<8>().map_or(0, |last| u32::from_le_bytes([last[0], last[1], last[2], last[3]]));
        let (texts, postings) = rest.split_at_checked(last as usize)?;
        Some(Index { documents: u32::from_le_bytes(*documents), terms, ends, texts, postings })
    }

    /// Returns the number of documents.
    pub fn documents(&self) -> usize {
        self.documents as usize
    }

    /// Returns the end offsets of the text and of the postings of a term.
    fn ends(&self, term: u32) -> (usize, usize) {
        let at = term as usize * 8;
        let number = |at: usize| self.ends.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes);
        (number(at) as usize, number(at + 4) as usize)
    }

    fn starts(&self, term: u32) -> (usize, usize) {
        term.checked_sub(1).map_or((0, 0), |before| self.ends(before))
    }

    fn text(&self, term: u32) -> &'a [u8] {
        self.texts.get(self.starts(term).0..self.ends(term).0).unwrap_or_default()
    }

    /// Returns the first term that is not less than `text`.
    fn lower_bound(&self, text: &[u8]) -> u32 {
        let (mut low, mut high) = (0, self.terms);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.text(middle) < text {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    fn term(&self, text: &str) -> Option<u32> {
        let at = self.lower_bound(text.as_bytes());
        (at < self.terms && self.text(at) == text.as_bytes()).then_some(at)
    }

    /// Returns the terms that begin with `text` and are longer.
    fn prefixed(&self, text: &str) -> impl Iterator<Item = u32> {
        let first = self.lower_bound(text.as_bytes());
        (first..self.terms)
            .take_while(move |term| self.text(*term).starts_with(text.as_bytes()))
            .filter(move |term| self.text(*term).len() > text.len())
            .take(MAX_PREFIXED)
    }

    /// Returns the documents of a term with their scores.
    fn postings(&self, term: u32) -> impl Iterator<Item = (u32, u8)> {
        let mut rest = self.postings.get(self.starts(term).1..self.ends(term).1).unwrap_or_default().iter();
        let mut document = 0_u32;
        std::iter::from_fn(move || {
            let (mut distance, mut shift) = (0_u32, 0);
            loop {
                let byte = *rest.next()?;
                distance |= u32::from(byte & 0x7f) << shift;
                if byte < 0x80 {
                    break;
                }
                shift = (shift + 7).min(28);
            }
            document = document.saturating_add(distance);
            Some((document, *rest.next()?))
        })
    }

    /// Returns the documents that have the marked name. An upstream's name also matches by a prefix if no upstream has exactly
    /// that name.
    fn marked(&self, mark: char, name: &str) -> impl Iterator<Item = u32> {
        let text = format!("{mark}{name}");
        let exact = self.term(&text);
        let longer =
            (mark == GROUP_MARK && exact.is_none() && name.len() > MIN_PREFIX).then(|| self.prefixed(&text).next()).flatten();
        exact.or(longer).into_iter().flat_map(|term| self.postings(term)).map(|(document, _)| document)
    }

    /// Returns the terms that match one word of the query, with the word's own term first.
    fn variants(&self, query: &Query, at: usize) -> Vec<Variant> {
        let Some((word, stemmed)) = query.words.get(at) else { return Vec::new() };
        let own = self.term(stemmed);
        let mut variants: Vec<Variant> = own.map(|term| (term, 1.0)).into_iter().collect();
        // A name may join two words of the query, or separate a word of it: `file system` and `filesystem`.
        for (left, right) in [(at.checked_sub(1), Some(at)), (Some(at), Some(at + 1))] {
            let words = left.zip(right).and_then(|(left, right)| query.words.get(left).zip(query.words.get(right)));
            if let Some(joined) = words.and_then(|((left, _), (right, _))| self.term(&stem(&format!("{left}{right}")))) {
                variants.push((joined, 1.0));
            }
        }
        let known = variants.len();
        variants.extend(synonyms::synonyms(stemmed).filter_map(|other| self.term(other)).map(|term| (term, SYNONYM)));
        let has_synonyms = variants.len() > known;
        if stemmed.len() >= MIN_PREFIX && (own.is_none() || stemmed.len() > MIN_PREFIX) {
            let factor = if own.is_none() { PREFIX + 0.3 } else { PREFIX };
            variants.extend(self.prefixed(stemmed).map(|term| (term, factor)));
        }
        if own.is_none() {
            let cuts = (3..word.len().saturating_sub(2)).filter(|cut| word.is_char_boundary(*cut));
            let parts = cuts.filter_map(|cut| {
                let (left, right) =
                    word.split_at_checked(cut).filter(|(left, right)| !is_stop_word(left) && !is_stop_word(right))?;
                Some([self.term(&stem(left))?, self.term(&stem(right))?])
            });
            variants.extend(parts.take(usize::from(!has_synonyms)).flatten().map(|term| (term, PART)));
            // The catalog may have a short form: `admin` for `administrator`.
            let beginnings = (MIN_SHORT_FORM.max(word.len() / 3)..word.len()).rev().filter_map(|end| self.term(word.get(..end)?));
            variants.extend(beginnings.take(1).map(|term| (term, PREFIX)));
        }
        variants
    }

    /// Returns the share of its name that these terms cover, for each document.
    fn covered_names(&self, mut terms: Vec<Variant>) -> Vec<f32> {
        terms.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
        terms.dedup_by_key(|(term, _)| *term);
        let mut shares = vec![0.0_f32; self.documents as usize];
        for (term, factor) in terms {
            let Ok(stem) = str::from_utf8(self.text(term)) else { continue };
            for (document, share) in self.term(&format!("{SHARE_MARK}{stem}")).into_iter().flat_map(|term| self.postings(term)) {
                if let Some(covered) = shares.get_mut(document as usize) {
                    *covered += factor * f32::from(share) / 255.0;
                }
            }
        }
        shares
    }

    /// Returns at most `limit` documents that match any word, best first. Documents with equal scores keep their order.
    pub fn search(&self, query: &Query, limit: usize) -> Vec<usize> {
        let total = self.documents as usize;
        let mut scores = vec![0.0_f32; total];
        let mut covered = vec![0.0_f32; total];
        let mut best = vec![0.0_f32; total];
        let mut touched: Vec<u32> = Vec::new();
        let mut decoded: Vec<(u32, u8)> = Vec::new();
        let mut weight_of_all = 0.0_f32;
        let mut matched: Vec<Variant> = Vec::new();
        for at in 0..query.words.len() {
            let variants = self.variants(query, at);
            // A word that no document contains does not distinguish between documents.
            if variants.is_empty() {
                continue;
            }
            touched.clear();
            matched.extend_from_slice(&variants);
            let rarity_of = |documents: usize| {
                let documents = documents.min(total) as f32;
                (1.0 + (total as f32 - documents + 0.5) / (documents + 0.5)).ln()
            };
            decoded.clear();
            let lists = variants.iter().map(|(term, factor)| {
                let start = decoded.len();
                decoded.extend(self.postings(*term));
                (*factor, start..decoded.len())
            });
            let lists: Vec<(f32, Range<usize>)> = lists.collect();
            // The weight comes from the word itself, or from all its variants if no document has the word.
            let own = lists.iter().take_while(|(factor, _)| *factor >= 1.0).map(|(_, list)| list.len()).max();
            let is_verb = query.words.get(at).is_some_and(|(word, _)| Intent::from_word(word).is_some());
            let weight = rarity_of(own.unwrap_or(decoded.len())) * if is_verb { VERB } else { 1.0 };
            weight_of_all += weight;
            for (factor, list) in lists {
                let factor = factor * rarity_of(list.len()).min(weight) / 255.0;
                for (document, score) in decoded.get(list).unwrap_or_default() {
                    let Some(best) = best.get_mut(*document as usize) else { continue };
                    if *best == 0.0 {
                        touched.push(*document);
                    }
                    *best = best.max(factor * f32::from(*score));
                }
            }
            let form = query.words.get(at).and_then(|(word, _)| self.term(&format!("{FORM_MARK}{word}")));
            for (document, _) in form.into_iter().flat_map(|term| self.postings(term)) {
                // The bonus applies to documents that have the word's stem. All documents with the word have it.
                if let Some(best) = best.get_mut(document as usize).filter(|best| **best > 0.0) {
                    *best += weight * FORM;
                }
            }
            for document in &touched {
                let at = *document as usize;
                let (Some(best), Some(score), Some(covered)) = (best.get_mut(at), scores.get_mut(at), covered.get_mut(at)) else {
                    continue;
                };
                let own = std::mem::take(best);
                *score += own;
                *covered += (weight * own).sqrt();
            }
        }
        if weight_of_all > 0.0 {
            for (score, covered) in scores.iter_mut().zip(&covered).filter(|(score, _)| **score > 0.0) {
                *score *= coverage(covered / weight_of_all);
            }
        }
        for (score, share) in scores.iter_mut().zip(self.covered_names(matched)) {
            *score *= 1.0 + NAME_COVERAGE * share;
        }
        for intent in Intent::ALL.into_iter().filter(|intent| query.intent.is_some_and(|asked| asked != *intent)) {
            for (document, _) in self.term(intent.term()).into_iter().flat_map(|term| self.postings(term)) {
                if let Some(score) = scores.get_mut(document as usize) {
                    *score *= OTHER_INTENT;
                }
            }
        }
        for run in &query.runs {
            for document in self.marked(NAME_MARK, run) {
                if let Some(score) = scores.get_mut(document as usize) {
                    *score += RUN * weight_of_all;
                }
            }
            for document in self.marked(GROUP_MARK, run) {
                if let Some(score) = scores.get_mut(document as usize) {
                    *score *= GROUP;
                }
            }
        }
        for (at, name) in query.names.iter().rev().enumerate() {
            // A match of the whole query counts more than a match of one word.
            let bonus = if at == 0 { 2.0 * NAMED } else { NAMED };
            for document in self.marked(NAME_MARK, name) {
                if let Some(score) = scores.get_mut(document as usize) {
                    *score += bonus;
                }
            }
        }
        top(&scores, limit)
    }
}

/// Returns the score factor of a document that contains this share of the query's words: the share to the power of five eighths.
/// Square roots take a tenth of the time of `powf`.
fn coverage(share: f32) -> f32 {
    let root = share.sqrt();
    root * root.sqrt().sqrt()
}

/// Returns the positions of the highest scores above 0, best first.
fn top(scores: &[f32], limit: usize) -> Vec<usize> {
    let mut found: Vec<(f32, usize)> =
        scores.iter().enumerate().filter(|(_, score)| **score > 0.0).map(|(at, score)| (*score, at)).collect();
    let order = |a: &(f32, usize), b: &(f32, usize)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
    if limit < found.len() {
        found.select_nth_unstable_by(limit, order);
        found.truncate(limit);
    }
    found.sort_unstable_by(order);
    found.into_iter().map(|(_, at)| at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, Field};

    fn index() -> Vec<u8> {
        let mut builder = Builder::new();
        for (group, name, description) in [
            ("files", "list_directory", "Names of what a folder holds."),
            ("files", "read_file", "The text of one file, to be shown in a list."),
            ("github", "listIssues", "Tickets of a repository."),
            ("github", "whoami", "The account in use."),
            ("github", "search-code", "Looks for code in all repositories."),
            ("weather", "天気予報", "明日の天気を調べる"),
            ("wiki", "list_pages", "What was written."),
            ("wiki", "show_page", "What was written."),
        ] {
            builder.document(Some(group), name);
            builder.add(Field::Description, description);
        }
        builder.finish()
    }

    fn first(query: &str) -> Option<usize> {
        let bytes = index();
        Index::new(&bytes).unwrap().search(&Query::parse(query, 64).unwrap(), 3).first().copied()
    }

    #[test]
    fn best_document_is_first() {
        for (query, expected) in [
            ("list", Some(6)),
            ("files", Some(1)),
            ("list issues", Some(2)),
            ("pages", Some(6)),
            ("page", Some(7)),
            ("LIST_ISSUES", Some(2)),
            ("github/listIssues", Some(2)),
            ("read a list with list-directory", Some(0)),
            ("who am I", Some(3)),
            ("searching repository code", Some(4)),
            ("git hub tickets", Some(2)),
            ("dir", Some(0)),
            ("repos", Some(2)),
            ("天気", Some(5)),
            ("予報", Some(5)),
            ("zebra", None),
            ("", None),
        ] {
            assert_eq!(first(query), expected, "{query}");
        }
    }

    /// Returns the names of the found documents, best first.
    fn found(tools: &[(&'static str, &str)], query: &str) -> Vec<&'static str> {
        let mut builder = Builder::new();
        for (name, description) in tools {
            builder.document(Some("tracker"), name);
            builder.add_intent(None);
            builder.add(Field::Description, description);
        }
        let bytes = builder.finish();
        let found = Index::new(&bytes).unwrap().search(&Query::parse(query, 64).unwrap(), 10);
        found.into_iter().map(|at| tools[at].0).collect()
    }

    #[test]
    fn tools_with_another_intent_are_last() {
        let tools = [("update_label", "A label."), ("delete_label", "A label."), ("create_label", "A label.")];
        assert_eq!(found(&tools, "remove the label").first(), Some(&"delete_label"));
        assert_eq!(found(&tools, "how do I add a label").first(), Some(&"create_label"));
    }

    #[test]
    fn name_covered_by_the_query_ranks_above_a_longer_one() {
        let tools =
            [("ticket_comment_authors", "About tickets."), ("tickets", "Texts and their authors, about tickets and comments.")];
        assert_eq!(found(&tools, "ticket").first(), Some(&"tickets"));
    }

    #[test]
    fn abbreviation_in_a_catalog_is_found_by_the_full_word() {
        assert_eq!(found(&[("set_color", "Paints."), ("notify", "Informs the admin.")], "administrators"), ["notify"]);
    }

    #[test]
    fn index_is_deterministic() {
        assert_eq!(index(), index());
    }

    #[test]
    fn damaged_index_is_refused_without_panic() {
        let bytes = index();
        assert!(Index::new(b"").is_none());
        assert!(Index::new(bytes.get(1..).unwrap()).is_none());
        let query = Query::parse("list github issues dir 天気 zebra", 64).unwrap();
        for at in 0..bytes.len() {
            if let Some(cut) = Index::new(&bytes[..at]) {
                cut.search(&query, 10);
            }
            let mut changed = bytes.clone();
            changed[at] ^= 0x55;
            // A damaged header with a huge number of documents would only make the search allocate much memory. In practice the
            // bytes come from the compiler.
            if let Some(changed) = Index::new(&changed).filter(|index| index.documents() < 10_000) {
                changed.search(&query, 10);
            }
        }
    }
}
