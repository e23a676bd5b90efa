//! Regular expressions in Java's syntax.
//!
//! Most patterns run on an engine whose time is linear in the text. Look-around, back-references, possessive and atomic groups
//! need the backtracker, whose number of steps is limited.

mod case;
mod engine;
mod translate;
mod vm;

use std::fmt;

/// Writes a text as a pattern that matches exactly this text.
pub use regex::escape;

use engine::{Engine, start};
use translate::{LineAnchors, MAX_CASE_LOOKUPS};
use vm::{MAX_STEPS, max_chars, parse};

/// Longest pattern, in bytes.
pub const MAX_PATTERN_BYTES: usize = 4096;
/// Maximum length of a look-behind, in bytes. Each step may cost that much.
const MAX_LOOKBEHIND_BYTES: usize = 64;
/// Units of [`MAX_UNINTERRUPTED`](engine) that count as one step of the machine. The steps between two checks of the clock take
/// some 20 ms.
const BYTES_PER_STEP: usize = 2048;

/// A compiled regular expression.
pub struct Pattern {
    source: Box<str>,
    engine: Engine,
    /// The pattern anchored at both ends, for matches of the whole text.
    whole: Engine,
    /// Whether the pattern may match before a line break at the end of a text.
    before_last_break: bool,
}

/// Called between the parts of a search. The search stops when it returns `false`.
pub type CheckInterrupt<'a> = &'a mut dyn FnMut() -> bool;

/// Why a pattern is invalid, and how to correct it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternError {
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub hint: &'static str,
}

impl PatternError {
    fn new(message: impl Into<String>, hint: &'static str) -> Self {
        PatternError { message: message.into(), hint }
    }
}

impl fmt::Display for PatternError {
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
    /// [`CheckInterrupt`] returned `false`.
    Stopped,
}

impl TooCostly {
    /// What to do.
    pub fn hint(self) -> &'static str {
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
            TooCostly::Backtracking => write!(f, "the regex needs more than {MAX_STEPS} backtracking steps on this text"),
            TooCostly::LargePattern => {
                f.write_str("a regex this large, with matches of any length, is not matched against a text this long")
            }
            TooCostly::Stopped => f.write_str("the search was stopped"),
        }
    }
}

/// The maximum length of a match of a translated pattern, in bytes, or in characters if the pattern contains look-around. `None`
/// if the length is unbounded or unknown.
fn longest_match(translated: &str) -> Option<usize> {
    match parse(translated) {
        Ok(parsed) => parsed.properties().maximum_len(),
        Err(_) => max_chars(translated),
    }
}

/// Whether a pattern needs an engine that implements Java's rule for `^` in multi-line mode. The rule makes no difference if the
/// pattern begins with `^` and matches at least one byte after it.
fn needs_line_anchors(translated: &translate::Translated) -> bool {
    match translated.line_anchors {
        LineAnchors::None => false,
        LineAnchors::Leading => parse(&translated.text).is_ok_and(|parsed| parsed.properties().minimum_len() == Some(0)),
        LineAnchors::Inner => true,
    }
}

/// Hint for characters with a meaning in patterns.
const ESCAPE: &str = "characters with a meaning in patterns are written with a backslash: \\( \\[ \\{ \\. \\* \\+ \\?";
/// Hint for a pattern that is too large.
const SMALLER: &str = "use smaller counts than in {2,200}, or * and +, or several patterns one after the other";

/// The last line of the engine's report, which names the error, with a hint.
fn explain(text: &str) -> PatternError {
    let last = text.lines().last().unwrap_or_default().trim();
    let last = last.strip_prefix("error: ").unwrap_or(last);
    let hint = match last {
        "Unicode property not found" | "Unicode property value not found" => {
            "properties are \\p{L} letters, \\p{Lu} \\p{Ll} their cases, \\p{N} numbers, \\p{P} punctuation, \\p{IsGreek} scripts and \\p{Alpha} \
             \\p{Digit} and their like for ASCII"
        }
        "unrecognized escape sequence" => {
            "letters with a meaning are \\d \\w \\s \\h \\v \\R \\b \\A \\z \\Z \\Q…\\E and their capitals; write other letters without a backslash; (seq s) \
             gives the characters of a text, as \\X would"
        }
        "Invalid back reference" => {
            "groups are counted by their opening brackets, from \\1; in a replacement the text of a group is $1"
        }
        _ => ESCAPE,
    };
    PatternError::new(last, hint)
}

impl Pattern {
    /// Compiles a pattern in Java's syntax.
    ///
    /// # Errors
    ///
    /// Returns an error if the pattern is longer than [`MAX_PATTERN_BYTES`], is not valid, or needs too much memory.
    pub fn compile(source: &str) -> Result<Pattern, PatternError> {
        if source.len() > MAX_PATTERN_BYTES {
            let message = format!("a pattern may have at most {MAX_PATTERN_BYTES} bytes, this one has {}", source.len());
            return Err(PatternError::new(
                message,
                "many words are found in a set: (filter #{\"a\" \"b\"} (re-seq #\"\\w+\" s))",
            ));
        }
        let mut translated = translate::java(source);
        if let Some(refused) = translated.refused.take() {
            return Err(refused);
        }
        if translated.case_lookups > MAX_CASE_LOOKUPS {
            let message = format!(
                "ranges of a pattern that ignores the case of all letters, (?iu), may have {MAX_CASE_LOOKUPS} letters together"
            );
            return Err(PatternError::new(message, "write shorter ranges, or \\p{L}"));
        }
        // The engine reports a look-behind that is not a valid pattern.
        let too_far =
            |behind: &String| longest_match(behind).is_none_or(|longest| longest > MAX_LOOKBEHIND_BYTES) && repeats(behind);
        if translated.behind.iter().any(too_far) {
            return Err(PatternError::new(
                format!("a look-behind may look back at most {MAX_LOOKBEHIND_BYTES} bytes"),
                "bound what it looks for, as in (?<=a{0,9}), or match it too and take the rest as a group",
            ));
        }
        let needs_backtracking = translated.backtracks || needs_line_anchors(&translated);
        let engine = Engine::compile(&translated.text, needs_backtracking)?;
        let whole = Engine::compile(&format!(r"\A(?:{})\z", translated.text), needs_backtracking)?;
        Ok(Pattern { source: source.into(), engine, whole, before_last_break: translated.before_last_break })
    }

    /// The pattern as written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The number of a named group.
    pub fn group(&self, name: &str) -> Option<usize> {
        self.engine.group(name)
    }

    /// Relative cost of compiling and storing the pattern. That of a small pattern is 1.
    pub fn weight(&self) -> u32 {
        self.engine.weight()
    }

    /// The first match at or after byte `at`, with its groups.
    ///
    /// # Errors
    ///
    /// Returns an error if the search needs too many steps or `may_continue` stops it.
    pub fn find_at(&self, text: &str, at: usize, may_continue: CheckInterrupt<'_>) -> Result<Option<Groups>, TooCostly> {
        let found = self.engine.find_at(text, at, may_continue)?;
        let Some(shorter) = self.without_last_break(text, at) else { return Ok(found) };
        let other = self.engine.find_at(shorter, at, may_continue)?;
        Ok(if is_earlier(other.as_ref().map(start), found.as_ref().map(start)) { other } else { found })
    }

    /// The byte range of the first match at or after byte `at`.
    ///
    /// # Errors
    ///
    /// Returns an error if the search needs too many steps or `may_continue` stops it.
    pub fn range_at(&self, text: &str, at: usize, may_continue: CheckInterrupt<'_>) -> Result<Option<(usize, usize)>, TooCostly> {
        let found = self.engine.range_at(text, at, may_continue)?;
        let Some(shorter) = self.without_last_break(text, at) else { return Ok(found) };
        let other = self.engine.range_at(shorter, at, may_continue)?;
        Ok(if is_earlier(other.map(|range| range.0), found.map(|range| range.0)) { other } else { found })
    }

    /// Upper bound of the cost of a search from byte `at` since `may_continue` was last called, in steps of some 20 µs. `end` is
    /// the end of the match, if there is one.
    pub fn worst_case_cost(&self, text: &str, at: usize, end: Option<usize>) -> u32 {
        let rest = text.len().saturating_sub(at);
        let taken = if self.before_last_break {
            2 * self.engine.worst_case_cost(rest, None)
        } else {
            self.engine.worst_case_cost(rest, end.map(|end| end.saturating_sub(at)))
        };
        u32::try_from(taken / BYTES_PER_STEP).unwrap_or(u32::MAX)
    }

    /// The text without its final line break, if the pattern may match before it. In the engines' syntax `$` matches only at the
    /// very end.
    fn without_last_break<'t>(&self, text: &'t str, at: usize) -> Option<&'t str> {
        let shorter = text.strip_suffix("\r\n").or_else(|| text.strip_suffix(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']))?;
        (self.before_last_break && at <= shorter.len()).then_some(shorter)
    }

    /// Matches the whole text.
    ///
    /// # Errors
    ///
    /// Returns an error if the search needs too many steps or `may_continue` stops it.
    pub fn matches(&self, text: &str, may_continue: CheckInterrupt<'_>) -> Result<Option<Groups>, TooCostly> {
        self.whole.find_at(text, 0, may_continue)
    }
}

/// Whether the length of a match of the pattern may vary.
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
    fn too_many_case_insensitive_ranges_are_refused_before_expansion() {
        let ranges = "\u{400}-\u{2400}".repeat(500);
        let pattern = format!("(?iu)[{ranges}]");
        assert!(pattern.len() < MAX_PATTERN_BYTES);
        assert!(translate::java(&pattern).text.len() < 256 * 1024);
        let refused = Pattern::compile(&pattern).err().unwrap();
        assert!(refused.message.contains("may have 32768 letters together"), "{refused}");
        assert!(Pattern::compile(&pattern.replace("(?iu)", "(?i)")).is_ok());
    }

    #[test]
    fn repetition_with_descending_counts_is_refused_by_both_engines() {
        for pattern in ["(?=x)a{3,1}", "(?<=a{3,1})b", "(?=x)(?:ab){3,1}", "a{3,1}"] {
            assert!(Pattern::compile(pattern).is_err(), "{pattern}");
        }
        let refused = Pattern::compile("(?=x)a{3,1}").err().unwrap();
        assert!(refused.message.contains("{3,1}"), "{refused}");
    }

    #[test]
    fn syntax_that_java_rejects_is_refused_for_both_engines() {
        for (pattern, says) in [
            ("x**", "* follows another quantifier"),
            ("(?=x)x+?*", "* follows another quantifier"),
            ("(?=x)a{2}{3}", "{ follows another quantifier"),
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
    fn lookbehind_steps_back_by_characters_not_bytes() {
        for (pattern, text, range) in [
            ("(?iu)(?<=\u{e9}t\u{e9})x", "\u{c9}T\u{c9}x", (5, 6)),
            (r"(?<=\R)x", "\r\nx", (2, 3)),
            (r"(?<=[a-c]{2}\d)x", "ab1x", (3, 4)),
        ] {
            let pattern = Pattern::compile(pattern).unwrap_or_else(|why| panic!("{pattern}: {why}"));
            assert_eq!(pattern.range_at(text, 0, &mut || true), Ok(Some(range)), "{}", pattern.source());
        }
    }

    #[test]
    fn equal_classes_share_memory_and_distinct_ones_add_weight() {
        let weight = |classes: &str| Pattern::compile(&format!("(?U)(?=a){classes}")).map(|pattern| pattern.weight());
        assert_eq!(weight(&r"\w".repeat(600)), Ok(8));
        let distinct = |count: u32| (0..count).map(|n| format!("[\\w\\x{{{:x}}}]", 0xE000 + n)).collect::<Vec<_>>().concat();
        assert!(weight(&distinct(100)).is_ok_and(|weight| weight > 16));
        assert!(weight(&distinct(300)).is_err_and(|why| why.message.contains("too large")));
    }
}
