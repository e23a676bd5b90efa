//! Searching the catalog by words.
//!
//! A query is scored once against each distinct word of the catalog, and then every tool adds up what its words scored. With
//! 5,000 tools that is some thousand string comparisons and some hundred thousand look-ups by number.

use std::collections::{BTreeSet, HashMap};
use std::sync::OnceLock;

use memchr::memmem::Finder;
use ptc_catalog::{Catalog, Tool, Upstream};

/// Scores of a word that is the query's, starts with it, holds it; and what a name adds.
const EXACT: u8 = 10;
const PREFIX: u8 = 5;
const SUBSTRING: u8 = 2;
const IN_NAME: u32 = 2;

/// The words of a catalog, gathered at the first search.
pub(crate) struct Index {
    catalog: &'static Catalog,
    words: OnceLock<Words>,
}

struct Words {
    /// Distinct words, by number: in the order in which they were first seen.
    vocabulary: Vec<Box<str>>,
    /// In the order of the catalog.
    tools: Vec<Entry>,
    /// Numbers of words, run by run.
    numbers: Vec<u32>,
}

struct Entry {
    upstream: &'static Upstream,
    tool: &'static Tool,
    /// Where the words of its names start in `numbers`, those of its texts, and the next entry's.
    runs: [u32; 3],
}

impl Index {
    pub(crate) fn new(catalog: &'static Catalog) -> Index {
        Index { catalog, words: OnceLock::new() }
    }

    /// At most `limit` tools that match any word of the query, best first, then by upstream and name.
    pub(crate) fn search(&self, query: &str, limit: usize) -> Vec<(&'static Upstream, &'static Tool)> {
        let words = self.words.get_or_init(|| Words::gather(self.catalog));
        let mut wanted = BTreeSet::new();
        each_word(query, |word| {
            wanted.insert(word.to_owned());
        });
        let mut totals = vec![0u32; words.tools.len()];
        let mut scores = vec![0u8; words.vocabulary.len()];
        for wanted in &wanted {
            let finder = Finder::new(wanted);
            for (score, word) in scores.iter_mut().zip(&words.vocabulary) {
                *score = score_of(word, wanted, &finder);
            }
            for (total, entry) in totals.iter_mut().zip(&words.tools) {
                let [names, texts, end] = entry.runs;
                let in_names = best(&scores, words.run(names, texts));
                *total += in_names + if in_names > 0 { IN_NAME } else { 0 } + best(&scores, words.run(texts, end));
            }
        }
        // Entries stand in the order of the catalog, which breaks ties.
        let mut found: Vec<(u32, usize)> = totals.iter().enumerate().filter(|(_, t)| **t > 0).map(|(at, t)| (*t, at)).collect();
        found.sort_unstable_by(|(a, x), (b, y)| b.cmp(a).then(x.cmp(y)));
        let entries = found.into_iter().take(limit).filter_map(|(_, at)| words.tools.get(at));
        entries.map(|entry| (entry.upstream, entry.tool)).collect()
    }
}

fn score_of(word: &str, wanted: &str, finder: &Finder<'_>) -> u8 {
    if word.len() < wanted.len() {
        return 0;
    }
    match finder.find(word.as_bytes()) {
        Some(0) if word.len() == wanted.len() => EXACT,
        Some(0) => PREFIX,
        Some(_) => SUBSTRING,
        None => 0,
    }
}

fn best(scores: &[u8], numbers: &[u32]) -> u32 {
    numbers.iter().filter_map(|number| scores.get(*number as usize)).max().map_or(0, |score| u32::from(*score))
}

impl Words {
    fn run(&self, from: u32, to: u32) -> &[u32] {
        self.numbers.get(from as usize..to as usize).unwrap_or_default()
    }

    fn gather(catalog: &'static Catalog) -> Words {
        let mut known: HashMap<Box<str>, u32> = HashMap::new();
        let mut vocabulary: Vec<Box<str>> = Vec::new();
        let mut numbers = Vec::new();
        let mut tools = Vec::with_capacity(catalog.tool_count());
        let mut add = |numbers: &mut Vec<u32>, text: &str| {
            each_word(text, |word| {
                let number = known.get(word).copied().unwrap_or_else(|| {
                    let number = vocabulary.len() as u32;
                    vocabulary.push(word.into());
                    known.insert(word.into(), number);
                    number
                });
                numbers.push(number);
            });
        };
        for (upstream, tool) in catalog.tools() {
            let names = numbers.len() as u32;
            add(&mut numbers, upstream.name);
            add(&mut numbers, tool.name);
            let texts = numbers.len() as u32;
            add(&mut numbers, tool.description);
            for arg in tool.args {
                add(&mut numbers, arg.name);
            }
            let effects = tool.annotations;
            for (said, text) in [
                (effects.read_only, "readOnly"),
                (effects.destructive, "destructive"),
                (effects.idempotent, "idempotent"),
                (effects.open_world, "openWorld"),
            ] {
                if said == Some(true) {
                    add(&mut numbers, text);
                }
            }
            tools.push(Entry { upstream, tool, runs: [names, texts, numbers.len() as u32] });
        }
        Words { vocabulary, tools, numbers }
    }
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
        if c.is_ascii() {
            word.push(c.to_ascii_lowercase());
        } else {
            word.extend(c.to_lowercase());
        }
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

    #[test]
    fn names_fall_into_words() {
        let cases = [
            ("camelCaseTool", "camel case tool"),
            ("snake_case_tool", "snake case tool"),
            ("kebab-case", "kebab case"),
            ("HTTPServer2xx", "http server2xx"),
            ("parseJSON", "parse json"),
            ("Größe der Datei", "größe der datei"),
            (" ", ""),
        ];
        for (text, expected) in cases {
            assert_eq!(words(text), expected, "{text}");
        }
    }

    #[test]
    fn words_score_by_how_they_match() {
        for (word, wanted, score) in [("read", "read", 10), ("reader", "read", 5), ("thread", "read", 2), ("rea", "read", 0)] {
            assert_eq!(score_of(word, wanted, &Finder::new(wanted)), score, "{word}");
        }
    }
}
