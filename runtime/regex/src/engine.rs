//! The engines that run patterns, and the choice between them.

use super::vm::{Backtracker, CHECK_INTERVAL, CompileError, MAX_INSTS, PikeVm, parse};
use super::{CheckInterrupt, Groups, PatternError, SMALLER, TooCostly, explain};
use ptc_text::truncate_utf8;

/// Maximum size of a compiled pattern, in bytes.
const COMPILED_LIMIT: usize = 1 << 20;
/// Maximum size in bytes of a pattern that counts as small.
const SMALL: usize = 48 << 10;
/// Maximum work of one call of the engine that cannot be interrupted: instructions of the pattern times bytes of the text. One
/// unit costs up to 10 ns.
const MAX_UNINTERRUPTED: usize = 3_000_000;

pub(super) enum Engine {
    /// Linear in the text. The factor grows with the pattern.
    Linear(Box<Linear>),
    /// For look-around and back-references.
    Backtracker(Box<Backtracker>),
}

pub(super) struct Linear {
    regex: regex::Regex,
    is_small: bool,
    /// Maximum length of a match in bytes, if it is bounded. Parts of a text can then be searched one by one.
    longest: Option<usize>,
    /// Searches a text that is too long for `regex`. `None` if the pattern is too large.
    pike_vm: Option<PikeVm>,
}

impl Linear {
    fn compile(translated: &str) -> Result<Linear, PatternError> {
        let build =
            |limit| regex::RegexBuilder::new(translated).size_limit(limit).dfa_size_limit(COMPILED_LIMIT).crlf(true).build();
        let (built, is_small) = match build(SMALL) {
            Err(regex::Error::CompiledTooBig(_)) => (build(COMPILED_LIMIT), false),
            built => (built, true),
        };
        let regex = built.map_err(|fault| match fault {
            regex::Error::CompiledTooBig(_) => PatternError::new("the compiled pattern is too large", SMALLER),
            fault => explain(&fault.to_string()),
        })?;
        let parsed = parse(translated).ok();
        let longest = parsed.as_ref().and_then(|parsed| parsed.properties().maximum_len());
        Ok(Linear { regex, is_small, longest, pike_vm: parsed.as_ref().and_then(PikeVm::new) })
    }

    /// The first match at or after `at`. Uses `find` if that takes little time.
    ///
    /// A long text is searched in parts. Two parts overlap by the maximum length of a match and the character behind it, which
    /// `\b` and `$` examine. A match that starts past a part is found in the next one. If the length of a match is not bounded,
    /// `other` searches the text.
    fn search<T>(
        &self,
        text: &str,
        mut at: usize,
        may_continue: CheckInterrupt<'_>,
        find: impl Fn(&str, usize) -> Option<T>,
        start: impl Fn(&T) -> usize,
        other: impl FnOnce(&PikeVm, CheckInterrupt<'_>) -> Result<Option<T>, TooCostly>,
    ) -> Result<Option<T>, TooCostly> {
        let max_part = MAX_UNINTERRUPTED / self.size();
        if text.len().saturating_sub(at) <= max_part {
            return Ok(find(text, at));
        }
        let overlap = self.longest.map(|longest| longest.saturating_add(2 * char::MAX.len_utf8()));
        let Some(overlap) = overlap.filter(|overlap| *overlap <= max_part / 2) else {
            return other(self.pike_vm.as_ref().ok_or(TooCostly::LargePattern)?, may_continue);
        };
        loop {
            let next = truncate_utf8(text, at + max_part - overlap).0.len();
            let part = truncate_utf8(text, next + overlap).0;
            let found = find(part, at);
            if part.len() == text.len() || found.as_ref().is_some_and(|found| start(found) < next) {
                return Ok(found);
            }
            if !may_continue() {
                return Err(TooCostly::Stopped);
            }
            at = next;
        }
    }

    /// Upper bound of the cost of one byte of the text.
    fn size(&self) -> usize {
        self.pike_vm.as_ref().map_or(MAX_INSTS, PikeVm::size)
    }

    /// Upper bound of the work since the last interrupt check, in units of [`MAX_UNINTERRUPTED`]. `past` is the end of the match,
    /// if there is one. The engine examines text behind a match, by a known length only if the length of matches is bounded.
    fn worst_case_cost(&self, rest: usize, past: Option<usize>) -> usize {
        let known =
            past.zip(self.longest).map(|(past, longest)| past.saturating_add(longest).saturating_add(char::MAX.len_utf8()));
        // The Pike VM allocates one entry for each instruction.
        (rest.min(known.unwrap_or(rest)).saturating_mul(self.size())).min(MAX_UNINTERRUPTED).max(self.size())
    }

    fn range_at(&self, text: &str, at: usize, may_continue: CheckInterrupt<'_>) -> Result<Option<(usize, usize)>, TooCostly> {
        self.search(
            text,
            at,
            may_continue,
            |text, at| self.regex.find_at(text, at).map(|found| (found.start(), found.end())),
            |found| found.0,
            |pike_vm, may_continue| Ok(pike_vm.find_at(text, at, false, may_continue)?.and_then(whole)),
        )
    }

    fn groups_at(&self, text: &str, at: usize, may_continue: CheckInterrupt<'_>) -> Result<Option<Groups>, TooCostly> {
        let groups = |text: &str, at| {
            let found = self.regex.captures_at(text, at);
            found.map(|groups| groups.iter().map(|g| g.map(|g| (g.start(), g.end()))).collect::<Groups>())
        };
        self.search(text, at, may_continue, groups, start, |pike_vm, may_continue| pike_vm.find_at(text, at, true, may_continue))
    }
}

impl Engine {
    pub(super) fn compile(translated: &str, backtracks: bool) -> Result<Engine, PatternError> {
        if !backtracks {
            return Linear::compile(translated).map(|linear| Engine::Linear(Box::new(linear)));
        }
        match Backtracker::new(translated) {
            Ok(engine) => Ok(Engine::Backtracker(Box::new(engine))),
            Err(CompileError::TooLarge) => Err(PatternError::new("the compiled pattern is too large", SMALLER)),
            Err(CompileError::Invalid(fault)) => Err(explain(&fault)),
        }
    }

    /// The number of a named group.
    pub(super) fn group(&self, name: &str) -> Option<usize> {
        match self {
            Engine::Linear(linear) => linear.regex.capture_names().position(|group| group == Some(name)),
            Engine::Backtracker(engine) => engine.group(name),
        }
    }

    /// See [`Pattern::weight`](super::Pattern::weight).
    pub(super) fn weight(&self) -> u32 {
        let (weight, bytes) = match self {
            Engine::Linear(linear) => (if linear.is_small { 1 } else { 32 }, linear.pike_vm.as_ref().map_or(0, PikeVm::bytes)),
            Engine::Backtracker(engine) => (8, engine.bytes()),
        };
        weight + u32::try_from(bytes / SMALL).unwrap_or(u32::MAX)
    }

    /// See [`Pattern::worst_case_cost`](super::Pattern::worst_case_cost).
    pub(super) fn worst_case_cost(&self, rest: usize, past: Option<usize>) -> usize {
        match self {
            Engine::Linear(linear) => linear.worst_case_cost(rest, past),
            Engine::Backtracker(_) => CHECK_INTERVAL as usize,
        }
    }

    /// The byte range of the first match at or after byte `at`, without its groups.
    pub(super) fn range_at(
        &self,
        text: &str,
        at: usize,
        may_continue: CheckInterrupt<'_>,
    ) -> Result<Option<(usize, usize)>, TooCostly> {
        match self {
            Engine::Linear(linear) => linear.range_at(text, at, may_continue),
            Engine::Backtracker(engine) => Ok(engine.find_at(text, at, may_continue)?.and_then(whole)),
        }
    }

    pub(super) fn find_at(&self, text: &str, at: usize, may_continue: CheckInterrupt<'_>) -> Result<Option<Groups>, TooCostly> {
        match self {
            Engine::Linear(linear) if linear.regex.captures_len() == 1 => {
                Ok(linear.range_at(text, at, may_continue)?.map(|range| vec![Some(range)]))
            }
            Engine::Linear(linear) => linear.groups_at(text, at, may_continue),
            Engine::Backtracker(engine) => engine.find_at(text, at, may_continue),
        }
    }
}

/// The range of the whole match.
fn whole(groups: Groups) -> Option<(usize, usize)> {
    groups.into_iter().next().flatten()
}

pub(super) fn start(groups: &Groups) -> usize {
    groups.first().copied().flatten().map_or(usize::MAX, |(start, _)| start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Pattern, translate};

    /// Every match in the text, found by repeated calls of `find`.
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
    fn pike_vm_and_backtracker_match_like_the_regex_crate() {
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
            "(?m)^(.+)$",
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
            let pike_vm = linear.pike_vm.as_ref().unwrap();
            for text in TEXTS {
                let expected = by_regex(&linear, text);
                assert_eq!(
                    all(text, |at| pike_vm.find_at(text, at, true, &mut || true).unwrap()),
                    expected,
                    "{pattern} {text:?}"
                );
                let ranges: Vec<_> = expected.into_iter().map(|groups| groups[..1].to_vec()).collect();
                assert_eq!(all(text, |at| pike_vm.find_at(text, at, false, &mut || true).unwrap()), ranges, "{pattern} {text:?}");
                // Java differs here: a last iteration may match nothing.
                if ["(a*)*", "(|a)*", "(|a)+", "(a|)+b?"].contains(&pattern) {
                    continue;
                }
                let back = Backtracker::new(&translated).map_err(|_| pattern).unwrap();
                assert_eq!(
                    all(text, |at| back.find_at(text, at, &mut || true).unwrap()),
                    by_regex(&linear, text),
                    "{pattern} {text:?}"
                );
            }
        }
    }

    #[test]
    fn backtracker_matches_like_fancy_regex() {
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
            r"(?m)^(?!a).+$",
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
            r"(\x{df})\1",
            r"(?=\R)\r",
            r"(?<=\R)b?",
            r"(?>x|xy)y",
            r"(?U)(?<!\w)\w",
            r"(a)|(?=b)\1",
            r"(?:a{0,3}+a)?b",
        ] {
            let translated = translate::java(pattern).text;
            let Ok(back) = Backtracker::new(&translated) else { panic!("{pattern}") };
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
    fn search_in_parts_finds_the_matches_of_an_undivided_search() {
        let (mut asked, mut stopped, filler) = (0, 0, "x".repeat(5000));
        for (pattern, text) in [
            (r".{0,200}error.{0,200}", format!("{filler}\n{filler} an error here {filler}\nno")),
            (r"\b\p{L}{2,20}\b", format!("{filler}, ab {filler}\u{e9}")),
            (r"[^.!?]{10,300}[.!?]$", format!("{filler}. Then some more words.\n{filler}. Some words at the end.")),
            (r"(\x{e9}{1,60}|ab){2,20}c", format!("{}{}c{filler}", "\u{e9}".repeat(4000), "ab".repeat(30))),
            (r"(?m)^#.{0,300}$", format!("{filler}\n#{}\r\n#{filler}\n", "y".repeat(300))),
            (r"[xy]*y[xy]{290}[a-w]", format!("{filler}y{filler}b{filler}")),
            (r"((x{1,40}){1,20}|y)+(?:z|$)", format!("{filler}z{filler}")),
        ] {
            let text = text.repeat(2);
            let pattern = Pattern::compile(pattern).unwrap_or_else(|why| panic!("{pattern}: {why}"));
            let Engine::Linear(linear) = &pattern.engine else { panic!("{} looks around", pattern.source()) };
            let found = all(&text, |at| {
                let mut may_continue = || {
                    asked += 1;
                    true
                };
                linear.groups_at(&text, at, &mut may_continue).unwrap()
            });
            assert_eq!(found, by_regex(linear, &text), "{}", pattern.source());
            stopped += usize::from(pattern.range_at(&text, 0, &mut || false) == Err(TooCostly::Stopped));
        }
        assert!(asked > 100 && stopped > 4, "{asked} {stopped}");
    }
}
