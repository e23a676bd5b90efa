//! Regular expressions in Java's syntax.
//!
//! A pattern runs on an engine that is linear in the text. Only look-around, back-references, possessive and atomic groups need one that
//! tries one way after the other, whose work is capped.

mod case;
mod engine;
mod steps;
mod translate;

use std::fmt;

use crate::value::Text;
use engine::{Engine, start};
use steps::{MOST_STEPS, most_chars, parse};
use translate::{Begins, MOST_LOOKED_UP};

/// Longest pattern, in bytes.
pub const MAX_PATTERN_BYTES: usize = 4096;
/// Bytes that a look-behind may reach back, which each step may cost.
const FURTHEST_BACK: usize = 64;
/// What is asked at once counts as a step by so much: as many steps as pass between two looks at the clock take some 20 ms.
const A_STEP: usize = 2048;

/// A compiled regular expression.
pub struct Pattern {
    source: Text,
    engine: Engine,
    /// Anchored at both ends, for whole matches.
    whole: Engine,
    /// It may match before a line break at the end of a text.
    before_last_break: bool,
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
            TooCostly::LargePattern => {
                "counts as in {2,200} and (?U) make a pattern large: use smaller ones and do without, or match each line of (clojure.string/split-lines s)"
            }
            TooCostly::Stopped => "match a shorter text, or each line of (clojure.string/split-lines s)",
        }
    }
}

impl fmt::Display for TooCostly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TooCostly::Backtracking => write!(f, "the regex needs more than {MOST_STEPS} backtracking steps on this text"),
            TooCostly::LargePattern => {
                f.write_str("a regex this large, with matches of any length, is not matched against a text this long")
            }
            TooCostly::Stopped => f.write_str("the search was stopped"),
        }
    }
}

/// The most bytes that a match of a translated pattern has, or characters where it looks around; `None` where it has any length,
/// or cannot be told.
fn longest_match(translated: &str) -> Option<usize> {
    match parse(translated) {
        Ok(parsed) => parsed.properties().maximum_len(),
        Err(_) => most_chars(translated),
    }
}

/// Whether a pattern must be matched by an engine that knows where Java's lines begin. It makes no difference where all that is
/// matched begins with the `^` and goes on from there.
fn asks_for_lines(translated: &translate::Translated) -> bool {
    match translated.begins_lines {
        Begins::Nowhere => false,
        Begins::First => parse(&translated.text).is_ok_and(|parsed| parsed.properties().minimum_len() == Some(0)),
        Begins::Elsewhere => true,
    }
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
        "Invalid back reference" => {
            "groups are counted by their opening brackets, from \\1; in a replacement the text of a group is $1"
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
        let mut translated = translate::java(source);
        if let Some(refused) = translated.refused.take() {
            return Err(refused);
        }
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
        let goes_back = translated.backtracks || asks_for_lines(&translated);
        let engine = Engine::compile(&translated.text, goes_back)?;
        let whole = Engine::compile(&format!(r"\A(?:{})\z", translated.text), goes_back)?;
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
        self.engine.weight()
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

    /// What a search from byte `at` may have taken since `go_on` was asked, in steps of some 20 µs; `end` is that of what it found.
    pub(crate) fn may_take(&self, text: &str, at: usize, end: Option<usize>) -> u32 {
        let rest = text.len().saturating_sub(at);
        let taken = if self.before_last_break {
            2 * self.engine.may_take(rest, None)
        } else {
            self.engine.may_take(rest, end.map(|end| end.saturating_sub(at)))
        };
        u32::try_from(taken / A_STEP).unwrap_or(u32::MAX)
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
    fn counts_are_in_order_wherever_they_stand() {
        for pattern in ["(?=x)a{3,1}", "(?<=a{3,1})b", "(?=x)(?:ab){3,1}", "a{3,1}"] {
            assert!(Pattern::compile(pattern).is_err(), "{pattern}");
        }
        let refused = Pattern::compile("(?=x)a{3,1}").err().unwrap();
        assert!(refused.message.contains("{3,1}"), "{refused}");
    }

    #[test]
    fn what_java_does_not_take_is_refused_whichever_engine_it_is_for() {
        for (pattern, says) in [
            ("x**", "* stands behind another one"),
            ("(?=x)x+?*", "* stands behind another one"),
            ("(?=x)a{2}{3}", "{ stands behind another one"),
            ("(?=x)a{,2}", "followed by no count"),
            ("{", "followed by no count"),
            ("(?<n>a)(?=b)|(?<n>b)", "two groups are named n"),
            (r"(?=x)\N", "unrecognized escape"),
            (r"\u{e9}", "four hexadecimal digits"),
        ] {
            let refused = Pattern::compile(pattern).err().unwrap_or_else(|| panic!("{pattern}"));
            assert!(refused.message.contains(says), "{pattern}: {refused}");
        }
    }

    #[test]
    fn what_is_looked_for_behind_is_as_long_as_its_characters() {
        for (pattern, text, range) in [
            ("(?iu)(?<=\u{e9}t\u{e9})x", "\u{c9}T\u{c9}x", (5, 6)),
            (r"(?<=\R)x", "\r\nx", (2, 3)),
            (r"(?<=[a-c]{2}\d)x", "ab1x", (3, 4)),
        ] {
            let pattern = Pattern::compile(pattern).unwrap_or_else(|why| panic!("{pattern}: {why}"));
            assert_eq!(pattern.range_at(text, 0, &mut || true), Ok(Some(range)), "{}", pattern.source().as_str());
        }
    }

    #[test]
    fn equal_classes_are_one_and_unequal_ones_are_weighed() {
        let weight = |classes: &str| Pattern::compile(&format!("(?U)(?=a){classes}")).map(|pattern| pattern.weight());
        assert_eq!(weight(&r"\w".repeat(600)), Ok(8));
        let distinct = |count: u32| (0..count).map(|n| format!("[\\w\\x{{{:x}}}]", 0xE000 + n)).collect::<Vec<_>>().concat();
        assert!(weight(&distinct(100)).is_ok_and(|weight| weight > 16));
        assert!(weight(&distinct(300)).is_err_and(|why| why.message.contains("too large")));
    }
}
