//! Regular expressions in Java's syntax.
//!
//! A pattern runs on an engine that is linear in the text. Only look-around, back-references, possessive and atomic groups need the
//! backtracking engine, whose work is capped.

mod case;
mod translate;

use std::fmt;

use crate::value::Text;
use translate::MOST_LOOKED_UP;

/// Longest pattern, in bytes.
pub const MAX_PATTERN_BYTES: usize = 4096;
/// What to do about a pattern that does not compile.
pub(crate) const ESCAPE: &str = "characters with a meaning in patterns are written with a backslash: \\( \\[ \\{ \\. \\* \\+ \\?";
/// Most backtracking steps of one match on the backtracking engine.
const BACKTRACK_LIMIT: usize = 100_000;
/// Most bytes a compiled pattern may take.
const COMPILED_LIMIT: usize = 1 << 20;
/// A pattern within this size may be matched against texts of any length; the time of others grows with both.
const SMALL: usize = 48 * 1024;
/// Longest text for a pattern that is not small.
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
        small: bool,
    },
    Backtracking(Box<fancy_regex::Regex>),
}

/// One match: the byte range of the whole, then of each group.
pub type Groups = Vec<Option<(usize, usize)>>;

/// A match would take too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TooCostly {
    /// More backtracking steps than allowed.
    Backtracking,
    /// A large pattern on a long text.
    LargePattern,
}

impl fmt::Display for TooCostly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TooCostly::Backtracking => write!(f, "the regex needs more than {BACKTRACK_LIMIT} backtracking steps on this text"),
            TooCostly::LargePattern => write!(f, "a regex this large is matched against at most {LONGEST_TEXT} bytes of text"),
        }
    }
}

/// Most bytes of each part that the backtracking engine leaves to the linear one: there are no more of them than there are groups.
fn delegate_limit(translated: &str) -> usize {
    let groups = translated.bytes().filter(|byte| *byte == b'(').count();
    (COMPILED_LIMIT / (1 + groups)).max(SMALL)
}

impl Engine {
    fn compile(translated: &str, backtracks: bool) -> Result<Engine, String> {
        if backtracks {
            return fancy_regex::RegexBuilder::new(translated)
                .backtrack_limit(BACKTRACK_LIMIT)
                .delegate_size_limit(delegate_limit(translated))
                .crlf(true)
                .build()
                .map(|regex| Engine::Backtracking(Box::new(regex)))
                .map_err(|fault| explain(&fault.to_string()));
        }
        let linear =
            |limit| regex::RegexBuilder::new(translated).size_limit(limit).dfa_size_limit(COMPILED_LIMIT).crlf(true).build();
        let (built, small) = match linear(SMALL) {
            Err(regex::Error::CompiledTooBig(_)) => (linear(COMPILED_LIMIT), false),
            built => (built, true),
        };
        match built {
            Ok(regex) => Ok(Engine::Linear { regex, small }),
            Err(regex::Error::CompiledTooBig(_)) => Err("the compiled pattern is too large".to_owned()),
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
    fn range_at(&self, text: &str, at: usize) -> Result<Option<(usize, usize)>, TooCostly> {
        match self {
            Engine::Linear { small: false, .. } if text.len() > LONGEST_TEXT => Err(TooCostly::LargePattern),
            Engine::Linear { regex, .. } => Ok(regex.find_at(text, at).map(|found| (found.start(), found.end()))),
            Engine::Backtracking(regex) => {
                let found = regex.find_from_pos(text, at).map_err(|_| TooCostly::Backtracking)?;
                Ok(found.map(|found| (found.start(), found.end())))
            }
        }
    }

    fn find_at(&self, text: &str, at: usize) -> Result<Option<Groups>, TooCostly> {
        match self {
            Engine::Linear { small: false, .. } if text.len() > LONGEST_TEXT => Err(TooCostly::LargePattern),
            Engine::Linear { regex, .. } if regex.captures_len() == 1 => {
                Ok(regex.find_at(text, at).map(|found| vec![Some((found.start(), found.end()))]))
            }
            Engine::Linear { regex, .. } => {
                let found = regex.captures_at(text, at);
                Ok(found.map(|groups| groups.iter().map(|g| g.map(|g| (g.start(), g.end()))).collect()))
            }
            Engine::Backtracking(regex) => {
                let found = regex.captures_from_pos(text, at).map_err(|_| TooCostly::Backtracking)?;
                Ok(found.map(|groups| groups.iter().map(|g| g.map(|g| (g.start(), g.end()))).collect()))
            }
        }
    }
}

/// The last line of the engine's report, which says what is wrong.
fn explain(text: &str) -> String {
    let last = text.lines().last().unwrap_or_default().trim();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

impl Pattern {
    /// Compiles a pattern; the message says what is wrong with it.
    pub fn compile(source: &str) -> Result<Pattern, String> {
        if source.len() > MAX_PATTERN_BYTES {
            return Err(format!("a pattern may have at most {MAX_PATTERN_BYTES} bytes, this one has {}", source.len()));
        }
        let translated = translate::java(source);
        if translated.looked_up > MOST_LOOKED_UP {
            return Err(format!(
                "ranges of a pattern that ignores the case of all letters, (?iu), may have {MOST_LOOKED_UP} letters together; \
                 write shorter ranges, or \\p{{L}}"
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
            Engine::Linear { small: true, .. } => 1,
            Engine::Linear { .. } => 32,
            Engine::Backtracking(_) => 8,
        }
    }

    /// The first match at or after byte `at`.
    pub fn find_at(&self, text: &str, at: usize) -> Result<Option<Groups>, TooCostly> {
        let found = self.engine.find_at(text, at)?;
        let Some(shorter) = self.without_last_break(text, at) else { return Ok(found) };
        let other = self.engine.find_at(shorter, at)?;
        let start = |groups: &Option<Groups>| groups.as_ref().and_then(|g| g.first().copied().flatten()).map(|(start, _)| start);
        Ok(if is_earlier(start(&other), start(&found)) { other } else { found })
    }

    /// The byte range of the first match at or after byte `at`.
    pub fn range_at(&self, text: &str, at: usize) -> Result<Option<(usize, usize)>, TooCostly> {
        let found = self.engine.range_at(text, at)?;
        let Some(shorter) = self.without_last_break(text, at) else { return Ok(found) };
        let other = self.engine.range_at(shorter, at)?;
        Ok(if is_earlier(other.map(|range| range.0), found.map(|range| range.0)) { other } else { found })
    }

    /// The text without the line break at its end, where the pattern may match before it. To the engines, `$` stands only at the
    /// very end.
    fn without_last_break<'t>(&self, text: &'t str, at: usize) -> Option<&'t str> {
        let shorter = text.strip_suffix("\r\n").or_else(|| text.strip_suffix(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']))?;
        (self.before_last_break && at <= shorter.len()).then_some(shorter)
    }

    /// The match of the whole text.
    pub fn matches(&self, text: &str) -> Result<Option<Groups>, TooCostly> {
        self.whole.find_at(text, 0)
    }
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
        assert!(refused.contains("may have 32768 letters together"), "{refused}");
        assert!(Pattern::compile(&pattern.replace("(?iu)", "(?i)")).is_ok());
    }
}
