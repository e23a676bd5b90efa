//! Regular expressions in Java's syntax.
//!
//! A pattern runs on an engine that is linear in the text. Only look-around, back-references, possessive and atomic groups need the
//! backtracking engine, whose work is capped.

mod case;
mod translate;

use std::fmt;

use crate::error::head;
use crate::value::Text;
use translate::MOST_LOOKED_UP;

/// Longest pattern, in bytes.
pub const MAX_PATTERN_BYTES: usize = 4096;
/// Most backtracking steps of one match on the backtracking engine: no more than some 40 ms.
const BACKTRACK_LIMIT: usize = 400_000;
/// Bytes that a look-behind may reach back, which each step may cost.
const FURTHEST_BACK: usize = 64;
/// Most bytes a compiled pattern may take.
const COMPILED_LIMIT: usize = 1 << 20;
/// A pattern within this size may be matched against texts of any length; the time of others grows with both.
const SMALL: usize = 48 * 1024;
/// Fewest bytes that a pattern which is not small is matched against at a time, where its matches have a greatest length. A byte may
/// cost some 25 µs.
const WINDOW: usize = 2 * 1024;
/// That greatest length, at most.
const LONGEST_MATCH: usize = 16 * 1024;
/// Longest text for a pattern that is not small and has matches of any length.
const LONGEST_TEXT: usize = 64 * 1024;

/// A compiled regular expression.
pub struct Pattern {
    source: Text,
    engine: Engine,
    /// Anchored at both ends, for whole matches.
    whole: Engine,
    /// It may match before a line break at the end of a text.
    before_last_break: bool,
}

enum Engine {
    /// Linear in the text, by a factor that grows with the pattern.
    Linear {
        regex: regex::Regex,
        size: Size,
    },
    Backtracking(Box<fancy_regex::Regex>),
}

/// What a search costs for each byte of the text, at most.
#[derive(Clone, Copy)]
enum Size {
    Small,
    /// Too much for a long text at once. Parts of it can be searched one by one where a match has a greatest length in bytes.
    Large {
        longest: Option<usize>,
    },
}

/// Asked between the parts of a search whether to go on.
pub type GoOn<'a> = &'a mut dyn FnMut() -> bool;

/// Why a pattern is refused, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub hint: &'static str,
}

impl Refused {
    fn new(message: impl Into<String>, hint: &'static str) -> Self {
        Refused { message: message.into(), hint }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// One match: the byte range of the whole, then of each group.
pub type Groups = Vec<Option<(usize, usize)>>;

/// A match would take too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TooCostly {
    /// More backtracking steps than allowed.
    Backtracking,
    /// A large pattern with matches of any length on a long text.
    LargePattern,
    /// It was asked to stop.
    Stopped,
}

impl TooCostly {
    /// What to do.
    pub(crate) fn hint(self) -> &'static str {
        match self {
            TooCostly::Backtracking => {
                "look-around, back-references and a++ try again at every position: do without them, or match each line of \
                 (clojure.string/split-lines s)"
            }
            _ => {
                "counts as in {2,200} and (?U) make a pattern large: use smaller ones and do without, or match each line of (clojure.string/split-lines s)"
            }
        }
    }
}

impl fmt::Display for TooCostly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TooCostly::Backtracking => write!(f, "the regex needs more than {BACKTRACK_LIMIT} backtracking steps on this text"),
            TooCostly::LargePattern => {
                write!(
                    f,
                    "a regex this large, with matches of any length, is matched against at most {LONGEST_TEXT} bytes of text"
                )
            }
            TooCostly::Stopped => f.write_str("the search was stopped"),
        }
    }
}

/// Most bytes of each part that the backtracking engine leaves to the linear one: there are no more of them than there are groups.
fn delegate_limit(translated: &str) -> usize {
    let groups = translated.bytes().filter(|byte| *byte == b'(').count();
    (COMPILED_LIMIT / (1 + groups)).max(SMALL)
}

impl Engine {
    fn compile(translated: &str, backtracks: bool) -> Result<Engine, Refused> {
        if backtracks {
            return fancy_regex::RegexBuilder::new(translated)
                .backtrack_limit(BACKTRACK_LIMIT)
                .delegate_size_limit(delegate_limit(translated))
                .delegate_dfa_size_limit(delegate_limit(translated))
                .crlf(true)
                .build()
                .map(|regex| Engine::Backtracking(Box::new(regex)))
                .map_err(|fault| explain(&fault.to_string()));
        }
        let linear =
            |limit| regex::RegexBuilder::new(translated).size_limit(limit).dfa_size_limit(COMPILED_LIMIT).crlf(true).build();
        let (built, size) = match linear(SMALL) {
            Err(regex::Error::CompiledTooBig(_)) => {
                let longest = longest_match(translated).filter(|longest| *longest <= LONGEST_MATCH);
                (linear(COMPILED_LIMIT), Size::Large { longest })
            }
            built => (built, Size::Small),
        };
        match built {
            Ok(regex) => Ok(Engine::Linear { regex, size }),
            Err(regex::Error::CompiledTooBig(_)) => Err(Refused::new("the compiled pattern is too large", SMALLER)),
            Err(fault) => Err(explain(&fault.to_string())),
        }
    }

    /// The number of a named group.
    fn group(&self, name: &str) -> Option<usize> {
        match self {
            Engine::Linear { regex, .. } => regex.capture_names().position(|group| group == Some(name)),
            Engine::Backtracking(regex) => regex.capture_names().position(|group| group == Some(name)),
        }
    }

    /// The byte range of the first match at or after byte `at`, without its groups.
    fn range_at(&self, text: &str, at: usize, go_on: GoOn<'_>) -> Result<Option<(usize, usize)>, TooCostly> {
        match self {
            Engine::Linear { regex, size } => in_windows(
                *size,
                text,
                at,
                go_on,
                |text, at| regex.find_at(text, at).map(|found| (found.start(), found.end())),
                |found| found.0,
            ),
            Engine::Backtracking(regex) => {
                let found = regex.find_from_pos(text, at).map_err(|_| TooCostly::Backtracking)?;
                if !go_on() {
                    return Err(TooCostly::Stopped);
                }
                Ok(found.map(|found| (found.start(), found.end())))
            }
        }
    }

    fn find_at(&self, text: &str, at: usize, go_on: GoOn<'_>) -> Result<Option<Groups>, TooCostly> {
        match self {
            Engine::Linear { regex, .. } if regex.captures_len() == 1 => {
                Ok(self.range_at(text, at, go_on)?.map(|range| vec![Some(range)]))
            }
            Engine::Linear { regex, size } => {
                let groups = |text: &str, at| {
                    let found = regex.captures_at(text, at);
                    found.map(|groups| groups.iter().map(|g| g.map(|g| (g.start(), g.end()))).collect::<Groups>())
                };
                in_windows(*size, text, at, go_on, groups, start)
            }
            Engine::Backtracking(regex) => {
                let found = regex.captures_from_pos(text, at).map_err(|_| TooCostly::Backtracking)?;
                if !go_on() {
                    return Err(TooCostly::Stopped);
                }
                Ok(found.map(|groups| groups.iter().map(|g| g.map(|g| (g.start(), g.end()))).collect()))
            }
        }
    }
}

fn start(groups: &Groups) -> usize {
    groups.first().copied().flatten().map_or(usize::MAX, |(start, _)| start)
}

/// The first match at or after `at`. Of a long text and a large pattern, parts are searched that overlap by the longest match and the
/// character behind it, which a `\b` or `$` looks at; a match that starts past the part is the next one's to find.
fn in_windows<T>(
    size: Size,
    text: &str,
    mut at: usize,
    go_on: GoOn<'_>,
    find: impl Fn(&str, usize) -> Option<T>,
    start: impl Fn(&T) -> usize,
) -> Result<Option<T>, TooCostly> {
    let longest = match size {
        Size::Large { longest: Some(longest) } => longest,
        Size::Large { longest: None } if text.len() > LONGEST_TEXT => return Err(TooCostly::LargePattern),
        _ => return Ok(find(text, at)),
    };
    loop {
        let next = head(text, at + longest.max(WINDOW)).len();
        let part = head(text, next + longest + 2 * char::MAX.len_utf8());
        let found = find(part, at);
        if part.len() == text.len() || found.as_ref().is_some_and(|found| start(found) < next) {
            return Ok(found);
        }
        if !go_on() {
            return Err(TooCostly::Stopped);
        }
        at = next;
    }
}

/// The most bytes that a match of a translated pattern has; `None` where it has any length, or cannot be told.
fn longest_match(translated: &str) -> Option<usize> {
    let mut parser = regex_syntax::ParserBuilder::new().crlf(true).build();
    parser.parse(translated).ok()?.properties().maximum_len()
}

/// What to do about characters that mean something in patterns.
const ESCAPE: &str = "characters with a meaning in patterns are written with a backslash: \\( \\[ \\{ \\. \\* \\+ \\?";
/// What to do about a pattern that is too large.
const SMALLER: &str = "use smaller counts than in {2,200}, or * and +, or several patterns one after the other";

/// The last line of the engine's report, which says what is wrong.
fn explain(text: &str) -> Refused {
    let last = text.lines().last().unwrap_or_default().trim();
    let last = last.strip_prefix("error: ").unwrap_or(last);
    let hint = match last {
        "Unicode property not found" | "Unicode property value not found" => {
            "properties are \\p{L} letters, \\p{Lu} \\p{Ll} their cases, \\p{N} numbers, \\p{P} punctuation, \\p{IsGreek} scripts and \\p{Alpha} \
             \\p{Digit} and their like for ASCII"
        }
        "unrecognized escape sequence" => {
            "letters with a meaning are \\d \\w \\s \\h \\v \\R \\b \\A \\z \\Z \\Q…\\E and their capitals; other letters stand without a backslash; (seq s) \
             gives the characters of a text, as \\X would"
        }
        _ => ESCAPE,
    };
    Refused::new(last, hint)
}

impl Pattern {
    /// Compiles a pattern; the message says what is wrong with it.
    pub fn compile(source: &str) -> Result<Pattern, Refused> {
        if source.len() > MAX_PATTERN_BYTES {
            let message = format!("a pattern may have at most {MAX_PATTERN_BYTES} bytes, this one has {}", source.len());
            return Err(Refused::new(message, "many words are found in a set: (filter #{\"a\" \"b\"} (re-seq #\"\\w+\" s))"));
        }
        let translated = translate::java(source);
        if translated.looked_up > MOST_LOOKED_UP {
            let message = format!(
                "ranges of a pattern that ignores the case of all letters, (?iu), may have {MOST_LOOKED_UP} letters together"
            );
            return Err(Refused::new(message, "write shorter ranges, or \\p{L}"));
        }
        // One that is no pattern of its own is told by the engine.
        let too_far = |behind: &String| longest_match(behind).is_none_or(|longest| longest > FURTHEST_BACK) && repeats(behind);
        if translated.behind.iter().any(too_far) {
            return Err(Refused::new(
                format!("a look-behind may look back at most {FURTHEST_BACK} bytes"),
                "bound what it looks for, as in (?<=a{0,9}), or match it too and take the rest as a group",
            ));
        }
        let engine = Engine::compile(&translated.text, translated.backtracks)?;
        let whole = Engine::compile(&format!(r"\A(?:{})\z", translated.text), translated.backtracks)?;
        Ok(Pattern { source: Text::new(source), engine, whole, before_last_break: translated.before_last_break })
    }

    /// The pattern as written.
    pub fn source(&self) -> &Text {
        &self.source
    }

    /// The number of a named group.
    pub fn group(&self, name: &str) -> Option<usize> {
        self.engine.group(name)
    }

    /// What it takes to compile and to hold, where that of a small pattern is 1.
    pub(crate) fn weight(&self) -> u32 {
        match self.engine {
            Engine::Linear { size: Size::Small, .. } => 1,
            Engine::Linear { .. } => 32,
            Engine::Backtracking(_) => 8,
        }
    }

    /// The first match at or after byte `at`.
    pub fn find_at(&self, text: &str, at: usize, go_on: GoOn<'_>) -> Result<Option<Groups>, TooCostly> {
        let found = self.engine.find_at(text, at, go_on)?;
        let Some(shorter) = self.without_last_break(text, at) else { return Ok(found) };
        let other = self.engine.find_at(shorter, at, go_on)?;
        Ok(if is_earlier(other.as_ref().map(start), found.as_ref().map(start)) { other } else { found })
    }

    /// The byte range of the first match at or after byte `at`.
    pub fn range_at(&self, text: &str, at: usize, go_on: GoOn<'_>) -> Result<Option<(usize, usize)>, TooCostly> {
        let found = self.engine.range_at(text, at, go_on)?;
        let Some(shorter) = self.without_last_break(text, at) else { return Ok(found) };
        let other = self.engine.range_at(shorter, at, go_on)?;
        Ok(if is_earlier(other.map(|range| range.0), found.map(|range| range.0)) { other } else { found })
    }

    /// The text without the line break at its end, where the pattern may match before it. To the engines, `$` stands only at the
    /// very end.
    fn without_last_break<'t>(&self, text: &'t str, at: usize) -> Option<&'t str> {
        let shorter = text.strip_suffix("\r\n").or_else(|| text.strip_suffix(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']))?;
        (self.before_last_break && at <= shorter.len()).then_some(shorter)
    }

    /// The match of the whole text.
    pub fn matches(&self, text: &str, go_on: GoOn<'_>) -> Result<Option<Groups>, TooCostly> {
        self.whole.find_at(text, 0, go_on)
    }
}

/// Whether something in a pattern may be there a varying number of times.
fn repeats(pattern: &str) -> bool {
    pattern.contains(['*', '+', '{', '?', '|', '\\'])
}

fn is_earlier(a: Option<usize>, b: Option<usize>) -> bool {
    a.is_some_and(|a| b.is_none_or(|b| a < b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_ranges_that_ignore_case_are_refused_before_they_are_written_out() {
        let ranges = "\u{400}-\u{2400}".repeat(500);
        let pattern = format!("(?iu)[{ranges}]");
        assert!(pattern.len() < MAX_PATTERN_BYTES);
        assert!(translate::java(&pattern).text.len() < 256 * 1024);
        let refused = Pattern::compile(&pattern).err().unwrap();
        assert!(refused.message.contains("may have 32768 letters together"), "{refused}");
        assert!(Pattern::compile(&pattern.replace("(?iu)", "(?i)")).is_ok());
    }

    #[test]
    fn a_text_is_searched_in_parts_as_it_is_as_a_whole() {
        let (mut stopped, filler) = (0, "x".repeat(5000));
        for (pattern, text) in [
            (r".{0,200}error.{0,200}", format!("{filler}\n{filler} an error here {filler}\nno")),
            (r"\b\p{L}{2,20}\b", format!("{filler}, ab {filler}é")),
            (r"[^.!?]{10,300}[.!?]$", format!("{filler}. Then some more words.\n{filler}. Some words at the end.")),
            (r"(é{1,60}|ab){2,20}c", format!("{}{}c{filler}", "é".repeat(4000), "ab".repeat(30))),
            (r"(?m)^#.{0,300}$", format!("{filler}\n#{}\r\n#{filler}\n", "y".repeat(300))),
        ] {
            let pattern = Pattern::compile(pattern).unwrap_or_else(|why| panic!("{pattern}: {why}"));
            let Engine::Linear { regex, size: Size::Large { longest: Some(_) } } = &pattern.engine else {
                panic!("{} is searched at once", pattern.source().as_str())
            };
            let mut at = 0;
            while at <= text.len() {
                let whole = regex.find_at(&text, at).map(|found| (found.start(), found.end()));
                let found = pattern.engine.range_at(&text, at, &mut || {
                    stopped += 1;
                    true
                });
                assert_eq!(found.unwrap(), whole, "{} from {at}", pattern.source().as_str());
                let Some((start, end)) = whole else { break };
                at = if end > start { end } else { head(&text, end + 4).len().max(end + 1) };
            }
            let refused = pattern.range_at(&text, 0, &mut || false);
            assert!(matches!(refused, Ok(Some((0..2000, _))) | Err(TooCostly::Stopped)), "{refused:?}");
        }
        assert!(stopped > 10, "{stopped}");
    }
}
