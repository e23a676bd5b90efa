//! Searching the catalog by words.
//!
//! Names and texts fall into words; a word of the query scores by how it meets one of them. There is no index: one automaton looks for
//! all words of the query in a text at once, and where it finds one, the letters around it tell whether a word begins and ends there.
//! That reads the megabyte of 5,000 tools in the time that building an index takes for a hundred.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use aho_corasick::{AhoCorasick, MatchKind};
use ptc_catalog::{Catalog, Tool, Upstream};
use ptc_lisp::sorting;

/// Scores of a word that is the query's, starts with it, holds it; and what a name adds.
const EXACT: u32 = 10;
const PREFIX: u32 = 5;
const SUBSTRING: u32 = 2;
const IN_NAME: u32 = 2;

/// At most `limit` tools that match any word of the query, best first, then by upstream and name.
pub(crate) fn search(catalog: &'static Catalog, words: &Words, limit: usize) -> Vec<(&'static Upstream, &'static Tool)> {
    // Tools come in the order of the catalog, which breaks ties.
    let scored = catalog.tools().map(|(upstream, tool)| (words.score(upstream, tool), upstream, tool));
    let mut found: Vec<_> = scored.filter(|(score, ..)| *score > 0).collect();
    sorting::by_key(&mut found, |(score, ..)| Reverse(*score));
    found.into_iter().take(limit).map(|(_, upstream, tool)| (upstream, tool)).collect()
}

/// All upstreams, best match of name and description first, then by name.
pub(crate) fn upstreams(catalog: &'static Catalog, words: &Words) -> Vec<&'static Upstream> {
    let score = |upstream: &Upstream| words.score_of(&[upstream.name], &[upstream.description]);
    let mut found: Vec<_> = catalog.upstreams.iter().map(|upstream| (score(upstream), upstream)).collect();
    sorting::by_key(&mut found, |(score, _)| Reverse(*score));
    found.into_iter().map(|(_, upstream)| upstream).collect()
}

/// The words of a query.
pub(crate) struct Words {
    words: Vec<String>,
    /// Finds them in ASCII texts, by their number; `None` where there are no words.
    finder: Option<AhoCorasick>,
}

/// A query of more words than are looked for at once: the time that a search takes grows with them.
pub(crate) struct TooMany {
    pub(crate) most: usize,
    pub(crate) found: usize,
}

/// Different words of a query.
const MOST_WORDS: usize = 64;

/// Bytes of a word that is looked for: no name has longer ones, and the time to build the automaton grows with the square of it.
const LONGEST_WORD: usize = 64;

impl Words {
    pub(crate) fn of(query: &str) -> Result<Words, TooMany> {
        let mut words = BTreeSet::new();
        each_word(query, |word| {
            words.insert(word.to_owned());
        });
        if words.len() > MOST_WORDS {
            return Err(TooMany { most: MOST_WORDS, found: words.len() });
        }
        let words: Vec<String> = words.into_iter().filter(|word| word.len() <= LONGEST_WORD).collect();
        // Overlapping matches are wanted: `read` and `reader` may stand in one query.
        let build = || AhoCorasick::builder().ascii_case_insensitive(true).match_kind(MatchKind::Standard).build(&words);
        // Building fails only for patterns of gigabytes, which a program cannot have.
        let finder = if words.is_empty() { None } else { build().ok() };
        Ok(Words { words, finder })
    }

    /// What each word scores at best in the names, and in the rest, added up.
    fn score(&self, upstream: &Upstream, tool: &Tool) -> u32 {
        let mut texts = vec![tool.description];
        texts.extend(tool.args.iter().map(|arg| arg.name));
        let effects = tool.annotations;
        for (said, text) in [
            (effects.read_only, "readOnly"),
            (effects.destructive, "destructive"),
            (effects.idempotent, "idempotent"),
            (effects.open_world, "openWorld"),
        ] {
            if said == Some(true) {
                texts.push(text);
            }
        }
        self.score_of(&[upstream.name, tool.name], &texts)
    }

    fn score_of(&self, in_names: &[&str], in_texts: &[&str]) -> u32 {
        let best = |of: &[&str]| {
            let mut scores = vec![0; self.words.len()];
            for text in of {
                self.meet(text, &mut scores);
            }
            scores
        };
        let (names, texts) = (best(in_names), best(in_texts));
        names.iter().zip(&texts).map(|(name, text)| name + if *name > 0 { IN_NAME } else { 0 } + text).sum()
    }

    /// Raises the score of each word that is met in `text`.
    fn meet(&self, text: &str, scores: &mut [u32]) {
        let mut raise = |number: usize, score: u32| {
            if let Some(slot) = scores.get_mut(number) {
                *slot = score.max(*slot);
            }
        };
        if !text.is_ascii() {
            // Lower case may have another length there.
            each_word(text, |found| {
                for (number, wanted) in self.words.iter().enumerate() {
                    raise(number, meeting(found, wanted));
                }
            });
            return;
        }
        let bytes = text.as_bytes();
        for found in self.finder.iter().flat_map(|finder| finder.find_overlapping_iter(bytes)) {
            let (start, end) = (found.start(), found.end());
            if (start + 1..end).any(|at| parts(bytes, at)) {
                continue;
            }
            raise(
                found.pattern().as_usize(),
                match (parts(bytes, start), parts(bytes, end)) {
                    (true, true) => EXACT,
                    (true, false) => PREFIX,
                    _ => SUBSTRING,
                },
            );
        }
    }
}

/// How a word of a text meets a word of the query.
fn meeting(found: &str, wanted: &str) -> u32 {
    match found.find(wanted) {
        Some(0) if found.len() == wanted.len() => EXACT,
        Some(0) => PREFIX,
        Some(_) => SUBSTRING,
        None => 0,
    }
}

/// Whether a word ends and another may begin before the byte at `at`: the rule of [`each_word`], for ASCII.
fn parts(text: &[u8], at: usize) -> bool {
    let byte = |at: usize| text.get(at).copied().unwrap_or(b' ');
    let Some(before) = at.checked_sub(1).map(byte) else { return true };
    let here = byte(at);
    !before.is_ascii_alphanumeric()
        || !here.is_ascii_alphanumeric()
        || here.is_ascii_uppercase() && (!before.is_ascii_uppercase() || byte(at + 1).is_ascii_lowercase())
}

/// Lower-case words of `text`: split at what is no letter or digit, and where lower case turns upper (`readFile`,
/// `HTTPServer`).
fn each_word(text: &str, mut take: impl FnMut(&str)) {
    let mut word = String::new();
    let mut chars = text.chars().peekable();
    let mut before: Option<char> = None;
    while let Some(c) = chars.next() {
        if !c.is_alphanumeric() {
            flush(&mut word, &mut take);
            before = None;
            continue;
        }
        let rises =
            c.is_uppercase() && before.is_some_and(|b| !b.is_uppercase() || chars.peek().is_some_and(|next| next.is_lowercase()));
        if rises {
            flush(&mut word, &mut take);
        }
        word.extend(c.to_lowercase());
        before = Some(c);
    }
    flush(&mut word, &mut take);
}

fn flush(word: &mut String, take: &mut impl FnMut(&str)) {
    if !word.is_empty() {
        take(word);
        word.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> String {
        let mut words = Vec::new();
        each_word(text, |word| words.push(word.to_owned()));
        words.join(" ")
    }

    const TEXTS: [(&str, &str); 8] = [
        ("camelCaseTool", "camel case tool"),
        ("snake_case_tool", "snake case tool"),
        ("kebab-case", "kebab case"),
        ("HTTPServer2xx", "http server2xx"),
        ("parseJSON", "parse json"),
        ("aB2C d", "a b2 c d"),
        ("Größe der Datei", "größe der datei"),
        (" ", ""),
    ];

    #[test]
    fn names_fall_into_words() {
        for (text, expected) in TEXTS {
            assert_eq!(words(text), expected, "{text}");
        }
    }

    #[test]
    fn words_score_by_how_they_match() {
        for (word, wanted, score) in [("read", "read", 10), ("reader", "read", 5), ("thread", "read", 2), ("rea", "read", 0)] {
            assert_eq!(meeting(word, wanted), score, "{word}");
        }
    }

    /// The look at the letters around a match gives what taking the text apart would give.
    #[test]
    fn both_ways_to_score_agree() {
        for (text, _) in TEXTS {
            for query in ["c", "ca", "case", "tool", "amel", "server2", "server", "http", "s", "json", "b2", "2c", "d", "pserver"]
            {
                let query_words = Words::of(query).ok().unwrap();
                let mut scores = vec![0; query_words.words.len()];
                query_words.meet(text, &mut scores);
                let mut expected = vec![0; scores.len()];
                each_word(text, |word| {
                    for (slot, wanted) in expected.iter_mut().zip(&query_words.words) {
                        *slot = meeting(word, wanted).max(*slot);
                    }
                });
                assert_eq!(scores, expected, "{query} in {text}");
            }
        }
    }
}
