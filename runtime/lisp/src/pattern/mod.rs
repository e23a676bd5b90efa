//! Regular expressions in Java's syntax.
//!
//! A pattern runs on an engine that is linear in the text. Only look-around, back-references, possessive and atomic groups need one that
//! tries one way after the other, whose work is capped.

mod case;
mod steps;
mod translate;

use std::fmt;

use crate::error::head;
use crate::value::Text;
use steps::{AllWays, GoingBack, MOST_INSTS, MOST_STEPS, OFTEN, Unfit, parse};
use translate::MOST_LOOKED_UP;

/// Longest pattern, in bytes.
pub const MAX_PATTERN_BYTES: usize = 4096;
/// Bytes that a look-behind may reach back, which each step may cost.
const FURTHEST_BACK: usize = 64;
/// Most bytes a compiled pattern may take.
const COMPILED_LIMIT: usize = 1 << 20;
/// A pattern within this size is of little weight.
const SMALL: usize = 48 << 10;
/// What the engine that cannot be stopped may be asked at once: instructions of the pattern times bytes of the text, which cost up to
/// 10 ns together.
const AT_ONCE: usize = 3_000_000;

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

enum Engine {
    /// Linear in the text, by a factor that grows with the pattern.
    Linear(Box<Linear>),
    /// For what looks around or refers back.
    GoingBack(Box<GoingBack>),
}

struct Linear {
    regex: regex::Regex,
    is_small: bool,
    /// Bytes that a match has at most, where there is such a number: then parts of a text can be searched one by one.
    longest: Option<usize>,
    /// What searches a text that is too long for `regex`; none where the pattern is too large.
    all_ways: Option<AllWays>,
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

impl Linear {
    fn compile(translated: &str) -> Result<Linear, Refused> {
        let build =
            |limit| regex::RegexBuilder::new(translated).size_limit(limit).dfa_size_limit(COMPILED_LIMIT).crlf(true).build();
        let (built, is_small) = match build(SMALL) {
            Err(regex::Error::CompiledTooBig(_)) => (build(COMPILED_LIMIT), false),
            built => (built, true),
        };
        let regex = built.map_err(|fault| match fault {
            regex::Error::CompiledTooBig(_) => Refused::new("the compiled pattern is too large", SMALLER),
            fault => explain(&fault.to_string()),
        })?;
        let parsed = parse(translated).ok();
        let longest = parsed.as_ref().and_then(|parsed| parsed.properties().maximum_len());
        Ok(Linear { regex, is_small, longest, all_ways: parsed.as_ref().and_then(AllWays::new) })
    }

    /// The first match at or after `at`, by `find` where that takes little time.
    ///
    /// Of a long text, parts are searched that overlap by the longest match and the character behind it, which a `\b` or `$` looks at;
    /// a match that starts past the part is the next one's to find. Where there is no longest match the other engine goes over it.
    fn search<T>(
        &self,
        text: &str,
        mut at: usize,
        go_on: GoOn<'_>,
        find: impl Fn(&str, usize) -> Option<T>,
        start: impl Fn(&T) -> usize,
        other: impl FnOnce(&AllWays, GoOn<'_>) -> Result<Option<T>, TooCostly>,
    ) -> Result<Option<T>, TooCostly> {
        let at_once = AT_ONCE / self.size();
        if text.len().saturating_sub(at) <= at_once {
            return Ok(find(text, at));
        }
        let overlap = self.longest.map(|longest| longest.saturating_add(2 * char::MAX.len_utf8()));
        let Some(overlap) = overlap.filter(|overlap| *overlap <= at_once / 2) else {
            return other(self.all_ways.as_ref().ok_or(TooCostly::LargePattern)?, go_on);
        };
        loop {
            let next = head(text, at + at_once - overlap).len();
            let part = head(text, next + overlap);
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

    /// What a byte of the text may cost.
    fn size(&self) -> usize {
        self.all_ways.as_ref().map_or(MOST_INSTS, AllWays::size)
    }

    /// What a search may have taken that nobody was asked about, in the unit of [`AT_ONCE`]; `past` the end of the match where there
    /// is one. What the engine looks at behind a match is known only where no match is longer than so many bytes.
    fn may_take(&self, rest: usize, past: Option<usize>) -> usize {
        let known =
            past.zip(self.longest).map(|(past, longest)| past.saturating_add(longest).saturating_add(char::MAX.len_utf8()));
        // The other engine makes room for its instructions.
        (rest.min(known.unwrap_or(rest)).saturating_mul(self.size())).min(AT_ONCE).max(self.size())
    }

    fn range_at(&self, text: &str, at: usize, go_on: GoOn<'_>) -> Result<Option<(usize, usize)>, TooCostly> {
        self.search(
            text,
            at,
            go_on,
            |text, at| self.regex.find_at(text, at).map(|found| (found.start(), found.end())),
            |found| found.0,
            |all_ways, go_on| Ok(all_ways.find_at(text, at, false, go_on)?.and_then(whole)),
        )
    }

    fn groups_at(&self, text: &str, at: usize, go_on: GoOn<'_>) -> Result<Option<Groups>, TooCostly> {
        let groups = |text: &str, at| {
            let found = self.regex.captures_at(text, at);
            found.map(|groups| groups.iter().map(|g| g.map(|g| (g.start(), g.end()))).collect::<Groups>())
        };
        self.search(text, at, go_on, groups, start, |all_ways, go_on| all_ways.find_at(text, at, true, go_on))
    }
}

impl Engine {
    fn compile(translated: &str, backtracks: bool) -> Result<Engine, Refused> {
        if !backtracks {
            return Linear::compile(translated).map(|linear| Engine::Linear(Box::new(linear)));
        }
        match GoingBack::new(translated) {
            Ok(engine) => Ok(Engine::GoingBack(Box::new(engine))),
            Err(Unfit::TooLarge) => Err(Refused::new("the compiled pattern is too large", SMALLER)),
            Err(Unfit::Invalid(fault)) => Err(explain(&fault)),
        }
    }

    /// The number of a named group.
    fn group(&self, name: &str) -> Option<usize> {
        match self {
            Engine::Linear(linear) => linear.regex.capture_names().position(|group| group == Some(name)),
            Engine::GoingBack(engine) => engine.group(name),
        }
    }

    /// See [`Pattern::may_take`].
    fn may_take(&self, rest: usize, past: Option<usize>) -> usize {
        match self {
            Engine::Linear(linear) => linear.may_take(rest, past),
            Engine::GoingBack(_) => OFTEN as usize,
        }
    }

    /// The byte range of the first match at or after byte `at`, without its groups.
    fn range_at(&self, text: &str, at: usize, go_on: GoOn<'_>) -> Result<Option<(usize, usize)>, TooCostly> {
        match self {
            Engine::Linear(linear) => linear.range_at(text, at, go_on),
            Engine::GoingBack(engine) => Ok(engine.find_at(text, at, go_on)?.and_then(whole)),
        }
    }

    fn find_at(&self, text: &str, at: usize, go_on: GoOn<'_>) -> Result<Option<Groups>, TooCostly> {
        match self {
            Engine::Linear(linear) if linear.regex.captures_len() == 1 => {
                Ok(linear.range_at(text, at, go_on)?.map(|range| vec![Some(range)]))
            }
            Engine::Linear(linear) => linear.groups_at(text, at, go_on),
            Engine::GoingBack(engine) => engine.find_at(text, at, go_on),
        }
    }
}

/// The range of the whole match.
fn whole(groups: Groups) -> Option<(usize, usize)> {
    groups.into_iter().next().flatten()
}

fn start(groups: &Groups) -> usize {
    groups.first().copied().flatten().map_or(usize::MAX, |(start, _)| start)
}

/// The most bytes that a match of a translated pattern has; `None` where it has any length, or cannot be told.
fn longest_match(translated: &str) -> Option<usize> {
    parse(translated).ok()?.properties().maximum_len()
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
        let (weight, bytes) = match &self.engine {
            Engine::Linear(linear) => (if linear.is_small { 1 } else { 32 }, linear.all_ways.as_ref().map_or(0, AllWays::bytes)),
            Engine::GoingBack(engine) => (8, engine.bytes()),
        };
        weight + u32::try_from(bytes / SMALL).unwrap_or(u32::MAX)
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

    /// Every match of a search of the whole text, by `find` from place to place.
    fn all(text: &str, mut find: impl FnMut(usize) -> Option<Groups>) -> Vec<Groups> {
        let (mut at, mut all) = (0, Vec::new());
        while at <= text.len() {
            let Some(groups) = find(at) else { break };
            let Some(Some((start, end))) = groups.first().copied() else { break };
            at = if end > start { end } else { end + text[end..].chars().next().map_or(1, char::len_utf8) };
            all.push(groups);
        }
        all
    }

    fn by_regex(linear: &Linear, text: &str) -> Vec<Groups> {
        all(text, |at| {
            let found = linear.regex.captures_at(text, at)?;
            Some(found.iter().map(|group| group.map(|group| (group.start(), group.end()))).collect())
        })
    }

    const TEXTS: [&str; 7] = [
        "",
        "aab ab abab\nb\r\nAb",
        "\r\n\n\r",
        "foo=12, bar=3; Fo\u{f6} \u{e9}\u{301} 2024-01-31T10:00Z <a><b></a>",
        "the the cat \u{df}\u{df} \u{1f600}x\"q\\\"r\"",
        "xyxxyyxyxxyxy",
        "aaaaaaaaaaaa",
    ];

    #[test]
    fn all_ways_lead_where_the_linear_engine_comes() {
        let patterns = [
            "",
            "a",
            "a*",
            "a+?b",
            "(a*)*",
            "(a|b)*?b",
            "(a|ab)(c|bcd)?",
            "(|a)+",
            "(|a)*",
            "(a|)+b?",
            "(?:a{2,3}?){1,2}b",
            "a{3}|aa",
            "^b",
            "(?m)^(.*)$",
            "(?m)$",
            r"\b\w+\b",
            r"\B",
            r"(?U)\b\w+",
            r"(\w+)=(\d+)[,;]?",
            r"(\d{4})-(\d\d)(-\d\d)?",
            r"\z",
            r"\A.",
            "(?s).",
            ".",
            r"[^\s,]+",
            r"\p{L}+",
            "(x|y|xy){2,5}",
            "((x)|(y))+",
            "(?:(x)|y)*",
            r"<(\w)>.*?</(\w)>",
            r"\R",
            "(a*?)(a*)",
            "(?i)AB",
        ];
        for pattern in patterns {
            let translated = translate::java(pattern).text;
            let linear = Linear::compile(&translated).unwrap_or_else(|why| panic!("{pattern}: {why}"));
            let all_ways = linear.all_ways.as_ref().unwrap();
            for text in TEXTS {
                let expected = by_regex(&linear, text);
                assert_eq!(
                    all(text, |at| all_ways.find_at(text, at, true, &mut || true).unwrap()),
                    expected,
                    "{pattern} {text:?}"
                );
                let ranges: Vec<_> = expected.into_iter().map(|groups| groups[..1].to_vec()).collect();
                assert_eq!(
                    all(text, |at| all_ways.find_at(text, at, false, &mut || true).unwrap()),
                    ranges,
                    "{pattern} {text:?}"
                );
                // Here Java's way is another: a last round may match nothing.
                if ["(a*)*", "(|a)*", "(|a)+", "(a|)+b?"].contains(&pattern) {
                    continue;
                }
                let back = GoingBack::new(&translated).map_err(|_| pattern).unwrap();
                assert_eq!(
                    all(text, |at| back.find_at(text, at, &mut || true).unwrap()),
                    by_regex(&linear, text),
                    "{pattern} {text:?}"
                );
            }
        }
    }

    #[test]
    fn going_back_finds_what_the_other_engine_finds_that_does() {
        for pattern in [
            r"(?<!x)ab(?!a)",
            r"(?<=a)b",
            r"(?<=a|ab)b",
            r"(?<!a|\s)b",
            r"(?<=\d{1,2}-)\d",
            r"\b(\w+)\s+\1\b",
            r"(a+)+\1b",
            r"(?=(a+))\1",
            r"(?>a+)ab",
            r"a++b",
            r"(?:a|ab)++b",
            r#""(?:[^"\\]++|\\.)*+""#,
            r"(?m)^(?!a).*$",
            r"(?m)(?<=^)b",
            r"(?i)(a)\1",
            r"(?<n>a)\k<n>",
            r"(?=.*y)x",
            r"(?!x)\w",
            r"(?=(?!b)(a|b))\w",
            r"(?<=(a))b",
            r"<(\w)>.*?</\1>",
            r"(x+?)y\1",
            r"(?:x(?=y)|y)*",
            r"(?s)a(?!.*a)",
            r"(?:(?=a)|b)*c?",
            r"(?<![a-z])[a-z]{2,3}?(?![a-z])",
            r"(\u{df})\1",
            r"(?=\R)\r",
            r"(?<=\R)b?",
            r"(?>x|xy)y",
            r"(?U)(?<!\w)\w",
            r"(a)|(?=b)\1",
            r"(?:a{0,3}+a)?b",
        ] {
            let translated = translate::java(pattern).text;
            let Ok(back) = GoingBack::new(&translated) else { panic!("{pattern}") };
            let other = fancy_regex::RegexBuilder::new(&translated).crlf(true).build().unwrap();
            for text in TEXTS {
                let expected = all(text, |at| {
                    let found = other.captures_from_pos(text, at).unwrap()?;
                    Some(found.iter().map(|group| group.map(|group| (group.start(), group.end()))).collect())
                });
                let found = all(text, |at| back.find_at(text, at, &mut || true).unwrap_or_else(|why| panic!("{pattern}: {why}")));
                assert_eq!(found, expected, "{pattern} {text:?}");
            }
        }
    }

    #[test]
    fn a_text_is_searched_in_parts_as_it_is_as_a_whole() {
        let (mut asked, mut stopped, filler) = (0, 0, "x".repeat(5000));
        for (pattern, text) in [
            (r".{0,200}error.{0,200}", format!("{filler}\n{filler} an error here {filler}\nno")),
            (r"\b\p{L}{2,20}\b", format!("{filler}, ab {filler}\u{e9}")),
            (r"[^.!?]{10,300}[.!?]$", format!("{filler}. Then some more words.\n{filler}. Some words at the end.")),
            (r"(\u{e9}{1,60}|ab){2,20}c", format!("{}{}c{filler}", "\u{e9}".repeat(4000), "ab".repeat(30))),
            (r"(?m)^#.{0,300}$", format!("{filler}\n#{}\r\n#{filler}\n", "y".repeat(300))),
            (r"[xy]*y[xy]{290}[a-w]", format!("{filler}y{filler}b{filler}")),
            (r"((x{1,40}){1,20}|y)+(?:z|$)", format!("{filler}z{filler}")),
        ] {
            let text = text.repeat(2);
            let pattern = Pattern::compile(pattern).unwrap_or_else(|why| panic!("{pattern}: {why}"));
            let Engine::Linear(linear) = &pattern.engine else { panic!("{} looks around", pattern.source().as_str()) };
            let found = all(&text, |at| {
                let mut go_on = || {
                    asked += 1;
                    true
                };
                linear.groups_at(&text, at, &mut go_on).unwrap()
            });
            assert_eq!(found, by_regex(linear, &text), "{}", pattern.source().as_str());
            stopped += usize::from(pattern.range_at(&text, 0, &mut || false) == Err(TooCostly::Stopped));
        }
        assert!(asked > 100 && stopped > 4, "{asked} {stopped}");
    }
}
