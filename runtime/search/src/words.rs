//! Splits texts into terms: stemmed words in lower case.

use std::borrow::Cow;

use crate::intents::Intent;

/// Words with a grammatical function only. They are ignored in queries and texts, but kept in names.
const STOP_WORDS: &str = "a about all also am an and any are as at be been being but by can could did do does for from had has have \
    he her his how i if in into is it its just like may me might my need of on or our out she should so some such than that the their \
    them then there these they this those to us via want was we were what when where which while who whom whose why will with would \
    you your please let one s t d ll re ve make me something somebody anything everything";

/// Phrasal verbs, each with the single verb that names of tools use instead.
const PHRASAL_VERBS: [(&str, &str, &str); 24] = [
    ("bring", "back", "restore"),
    ("call", "off", "cancel"),
    ("carry", "out", "run"),
    ("check", "in", "commit"),
    ("clean", "up", "clear"),
    ("fill", "in", "fill"),
    ("fill", "out", "fill"),
    ("find", "out", "find"),
    ("get", "rid", "delete"),
    ("give", "back", "return"),
    ("log", "in", "login"),
    ("log", "out", "logout"),
    ("look", "for", "search"),
    ("look", "up", "find"),
    ("set", "up", "create"),
    ("shut", "down", "stop"),
    ("sign", "in", "login"),
    ("sign", "up", "register"),
    ("switch", "off", "disable"),
    ("switch", "on", "enable"),
    ("take", "back", "undo"),
    ("throw", "away", "delete"),
    ("turn", "off", "disable"),
    ("turn", "on", "enable"),
];

/// Endings of names of files and of hosts. A catalog does not have the name itself, but words for what it names.
const FILE_ENDINGS: &str = "bmp c cfg conf cpp css csv doc docx gif go gz html ini java jpeg jpg js json log md mp3 mp4 pdf png ppt pptx py rb rs \
    sh sql svg tar toml ts tsv txt wav webp xls xlsx xml yaml yml zip";
const HOST_ENDINGS: &str = "com dev edu gov io net org";

/// Classifies a part of a query by its notation: `notes.txt` is a file with an ending, `example.com` a URL.
fn literal(word: &str) -> Option<(&'static str, Option<&str>)> {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    let is_in = |list: &str, ending: &str| list.split_ascii_whitespace().any(|other| other.eq_ignore_ascii_case(ending));
    if word.contains("://") {
        return Some(("url", None));
    }
    let (stem, ending) = word.rsplit_once('.')?;
    if is_in(FILE_ENDINGS, ending) {
        return Some(("file", Some(ending)));
    }
    (is_in(HOST_ENDINGS, ending) && !stem.is_empty()).then_some(("url", None))
}

/// Maximum number of consecutive words that may together be one name.
const MAX_RUN: usize = 4;

/// Maximum bytes of a word. Longer words are truncated.
const MAX_WORD: usize = 48;

/// Calls `take` with each word of `text` in lower case. Words end at characters that are neither letters nor digits, and where
/// lower case changes to upper case (`readFile`, `HTTPServer`). A run of characters in a script without spaces gives each pair of
/// neighbouring characters.
pub(crate) fn each_word(text: &str, mut take: impl FnMut(&str)) {
    if text.is_ascii() {
        return each_ascii_word(text, take);
    }
    let mut word = String::new();
    let mut run: Vec<char> = Vec::new();
    let mut chars = text.chars().peekable();
    let mut before: Option<char> = None;
    while let Some(c) = chars.next() {
        if !run.is_empty() && !is_without_spaces(c) {
            pairs(&mut run, &mut take);
        }
        if !c.is_alphanumeric() && !is_without_spaces(c) {
            flush(&mut word, &mut take);
            before = None;
            continue;
        }
        if is_without_spaces(c) {
            flush(&mut word, &mut take);
            before = None;
            run.push(c);
            continue;
        }
        let is_start = c.is_uppercase()
            && before.is_some_and(|before| !before.is_uppercase() || chars.peek().is_some_and(|next| next.is_lowercase()));
        if is_start {
            flush(&mut word, &mut take);
        }
        if c.is_ascii() {
            word.push(c.to_ascii_lowercase());
        } else {
            word.extend(c.to_lowercase());
        }
        before = Some(c);
    }
    pairs(&mut run, &mut take);
    flush(&mut word, &mut take);
}

/// Like [`each_word`] for ASCII text, the common case. Words without capitals are slices of the text.
fn each_ascii_word(text: &str, mut take: impl FnMut(&str)) {
    let bytes = text.as_bytes();
    let mut lower = [0; MAX_WORD];
    let mut at = 0;
    loop {
        let rest = |from: usize| bytes.get(from..).unwrap_or_default();
        let Some(others) = rest(at).iter().position(u8::is_ascii_alphanumeric) else { break };
        let start = at + others;
        let capitals = rest(start).iter().take_while(|byte| byte.is_ascii_uppercase()).count();
        at = start + capitals;
        if capitals > 1 && bytes.get(at).is_some_and(u8::is_ascii_lowercase) {
            // The last capital begins the next word.
            at -= 1;
        } else {
            at += small(rest(at));
        }
        let word = text.get(start..at.min(start + MAX_WORD)).unwrap_or_default();
        match lower.get_mut(..word.len()) {
            Some(lower) if capitals > 0 => {
                lower.copy_from_slice(word.as_bytes());
                lower.make_ascii_lowercase();
                take(str::from_utf8(lower).unwrap_or_default());
            }
            _ => take(word),
        }
    }
}

/// Returns the number of small letters and digits at the beginning of an ASCII text. It looks at eight bytes together.
fn small(text: &[u8]) -> usize {
    const EACH: u64 = 0x0101_0101_0101_0101;
    // Sets the highest bit of each byte that is in the range. No addition carries over into the next byte.
    let within = |bytes: u64, first: u8, last: u8| {
        (bytes + EACH * u64::from(0x80 - first)) & !(bytes + EACH * u64::from(0x7f - last)) & (EACH * 0x80)
    };
    let mut count = 0;
    while let Some(bytes) = text.get(count..).and_then(<[u8]>::first_chunk) {
        let bytes = u64::from_le_bytes(*bytes);
        let others = !(within(bytes, b'a', b'z') | within(bytes, b'0', b'9')) & (EACH * 0x80);
        if others != 0 {
            return count + others.trailing_zeros() as usize / 8;
        }
        count += 8;
    }
    let rest = text.get(count..).unwrap_or_default().iter();
    count + rest.take_while(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()).count()
}

fn flush(word: &mut String, take: &mut impl FnMut(&str)) {
    if !word.is_empty() {
        take(word.get(..word.floor_char_boundary(MAX_WORD)).unwrap_or_default());
        word.clear();
    }
}

fn pairs(run: &mut Vec<char>, take: &mut impl FnMut(&str)) {
    let mut buffer = String::new();
    let width = run.len().min(2);
    if width > 0 {
        for pair in run.windows(width) {
            buffer.clear();
            buffer.extend(pair);
            take(&buffer);
        }
    }
    run.clear();
}

/// Whether a character belongs to a script without separated words: Thai, Lao, Myanmar, Khmer, kana, ideographs. Hangul has
/// spaces, but attaches endings to its words.
fn is_without_spaces(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
}

pub(crate) fn stop_words() -> impl Iterator<Item = &'static str> {
    STOP_WORDS.split_ascii_whitespace()
}

pub(crate) fn is_stop_word(word: &str) -> bool {
    stop_words().any(|stop| stop == word)
}

/// Returns the English stem of a word. Words of other scripts are returned unchanged.
pub(crate) fn stem(word: &str) -> Cow<'_, str> {
    if word.len() < 3 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Cow::Borrowed(word);
    }
    let mut state = waken_snowball::SnowballEnv::create(word);
    waken_snowball::algorithms::english_stemmer::stem(&mut state);
    state.get_current()
}

/// Appends a name in lower case and without separators: `List-Pets` and `listPets` both give `listpets`.
pub(crate) fn plain(name: &str, text: &mut String) {
    if name.is_ascii() {
        let kept = name.bytes().filter(u8::is_ascii_alphanumeric);
        return kept.for_each(|byte| text.push(char::from(byte.to_ascii_lowercase())));
    }
    text.extend(name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase));
}

/// The query has too many different words. The time of a search grows with their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyWords {
    /// Number of different words in the query.
    pub found: usize,
}

/// A parsed query.
#[derive(Debug)]
pub struct Query {
    /// The different words with their stems, in order and without stop words.
    pub(crate) words: Vec<(String, String)>,
    /// Parts of the text that are written like names, without separators (`list_pets` gives `listpets`), and the whole query as
    /// the last one.
    pub(crate) names: Vec<String>,
    /// All runs of one to four consecutive different words, joined: `who am i` gives `whoami`.
    pub(crate) runs: Vec<String>,
    /// The intent of the verb or question word that the query begins with.
    pub(crate) intent: Option<Intent>,
}

impl Query {
    /// Parses a text into its words.
    ///
    /// # Errors
    ///
    /// Returns [`TooManyWords`] if the text has more than `max_words` different words.
    pub fn parse(text: &str, max_words: usize) -> Result<Query, TooManyWords> {
        let mut all: Vec<String> = Vec::new();
        each_word(text, |word| all.push(word.to_owned()));
        let mut seen = std::collections::HashSet::new();
        all.retain(|word| seen.insert(word.clone()));
        if all.len() > max_words {
            return Err(TooManyWords { found: all.len() });
        }
        let runs = (1..=MAX_RUN).flat_map(|count| all.windows(count)).map(<[String]>::concat);
        let runs = runs.filter(|run| run.len() <= 4 * MAX_WORD).collect();
        let mut all = Self::plain_words(text);
        seen.clear();
        all.retain(|word| seen.insert(word.clone()));
        // `how do I delete …` and `which labels …`.
        let first = [all.iter().find(|word| !is_stop_word(word)), all.first()];
        let intent = first.into_iter().flatten().find_map(|word| Intent::from_word(word));
        let kept: Vec<&String> = all.iter().filter(|word| !is_stop_word(word)).collect();
        let kept = if kept.is_empty() { all.iter().collect() } else { kept };
        let words = kept.into_iter().map(|word| (word.clone(), stem(word).into_owned())).collect();
        let parts =
            text.split_whitespace().filter(|part| part.contains(['_', '-', '/', '.']) || part.chars().any(char::is_uppercase));
        let parts = parts.take(max_words).chain([text]);
        let mut names: Vec<String> = parts
            .map(|part| {
                let mut name = String::new();
                plain(part, &mut name);
                name
            })
            .collect();
        names.retain(|name| !name.is_empty() && name.len() <= 4 * MAX_WORD);
        Ok(Query { words, names, runs, intent })
    }

    /// Returns the words of a text, with phrasal verbs and names of files and hosts replaced.
    fn plain_words(text: &str) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        for part in text.split_whitespace() {
            if let Some((kind, ending)) = literal(part) {
                words.push(kind.to_owned());
                words.extend(ending.map(str::to_ascii_lowercase));
                continue;
            }
            each_word(part, |word| {
                let last = words.last().map_or("", String::as_str);
                match PHRASAL_VERBS.iter().find(|(verb, particle, _)| (*verb, *particle) == (last, word)) {
                    Some((.., plain)) => {
                        words.pop();
                        words.push((*plain).to_owned());
                    }
                    None => words.push(word.to_owned()),
                }
            });
        }
        words
    }

    /// Whether the query has no words.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
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
    fn names_and_texts_are_split_into_words() {
        for (text, expected) in [
            ("camelCaseTool", "camel case tool"),
            ("snake_case_tool", "snake case tool"),
            ("kebab-case", "kebab case"),
            ("HTTPServer2xx", "http server2xx"),
            ("parseJSON", "parse json"),
            ("aB2C d", "a b2 c d"),
            ("Größe der Datei", "größe der datei"),
            ("天気予報を見る", "天気 気予 予報 報を を見 見る"),
            ("GitHubの課題list", "git hub の課 課題 list"),
            ("本", "本"),
            (" ", ""),
        ] {
            assert_eq!(words(text), expected, "{text}");
        }
    }

    #[test]
    fn ascii_texts_are_split_into_the_same_words() {
        let texts = ["camelCaseTool", "HTTPServer2xx", "parseJSON", "aB2C d", "a", "A", "x-Y_z9", "ABCdef GHI", "", "a-"];
        for text in texts {
            let mut found = Vec::new();
            each_ascii_word(text, |word| found.push(word.to_owned()));
            // A separate non-ASCII letter forces the general implementation.
            assert_eq!(format!("{} é", found.join(" ")).trim(), words(&format!("{text} é")), "{text}");
        }
    }

    #[test]
    fn stems_join_forms_of_a_word() {
        for (word, expected) in [
            ("repositories", "repositori"),
            ("repository", "repositori"),
            ("closing", "close"),
            ("closed", "close"),
            ("dateien", "dateien"),
            ("größen", "größen"),
            ("id", "id"),
            ("v2s", "v2s"),
        ] {
            assert_eq!(stem(word), expected, "{word}");
        }
    }

    #[test]
    fn phrasal_verbs_and_literals_are_replaced() {
        for (text, expected) in [
            ("look up the order", "find the order"),
            ("how do I set up a webhook?", "how do i create a webhook"),
            ("show notes.txt", "show file txt"),
            ("fetch https://a.example/x?y=1 (or example.com).", "fetch url or url"),
            ("node.x version 1.2", "node x version 1 2"),
        ] {
            assert_eq!(Query::plain_words(text).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn intent_is_that_of_the_first_verb_or_question_word() {
        for (text, expected) in [
            ("delete a label", Some(Intent::Delete)),
            ("how do I rename a file", Some(Intent::Update)),
            ("which labels are there", Some(Intent::Read)),
            ("label colors", None),
        ] {
            assert_eq!(Query::parse(text, 64).unwrap().intent, expected, "{text}");
        }
    }

    #[test]
    fn stop_words_are_dropped_unless_there_is_nothing_else() {
        let words = |text: &str| Query::parse(text, 64).unwrap().words.into_iter().map(|(word, _)| word).collect::<Vec<_>>();
        assert_eq!(words("who is the owner of it"), ["owner"]);
        assert_eq!(words("who is it"), ["who", "is", "it"]);
        assert!(Query::parse(" -- ", 64).unwrap().is_empty());
        assert_eq!(Query::parse("a b c", 2).unwrap_err(), TooManyWords { found: 3 });
    }
}
