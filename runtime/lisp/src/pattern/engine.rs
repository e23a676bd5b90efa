//! The engines behind patterns, and which of them is asked.

use super::steps::{AllWays, GoingBack, MOST_INSTS, OFTEN, Unfit, parse};
use super::{GoOn, Groups, Refused, SMALLER, TooCostly, explain};
use crate::error::head;

/// Most bytes a compiled pattern may take.
const COMPILED_LIMIT: usize = 1 << 20;
/// A pattern within this size is of little weight.
const SMALL: usize = 48 << 10;
/// What the engine that cannot be stopped may be asked at once: instructions of the pattern times bytes of the text, which cost up to
/// 10 ns together.
const AT_ONCE: usize = 3_000_000;

pub(super) enum Engine {
    /// Linear in the text, by a factor that grows with the pattern.
    Linear(Box<Linear>),
    /// For what looks around or refers back.
    GoingBack(Box<GoingBack>),
}

pub(super) struct Linear {
    regex: regex::Regex,
    is_small: bool,
    /// Bytes that a match has at most, where there is such a number: then parts of a text can be searched one by one.
    longest: Option<usize>,
    /// What searches a text that is too long for `regex`; none where the pattern is too large.
    all_ways: Option<AllWays>,
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
    pub(super) fn compile(translated: &str, backtracks: bool) -> Result<Engine, Refused> {
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
    pub(super) fn group(&self, name: &str) -> Option<usize> {
        match self {
            Engine::Linear(linear) => linear.regex.capture_names().position(|group| group == Some(name)),
            Engine::GoingBack(engine) => engine.group(name),
        }
    }

    /// See [`Pattern::weight`](super::Pattern::weight).
    pub(super) fn weight(&self) -> u32 {
        let (weight, bytes) = match self {
            Engine::Linear(linear) => (if linear.is_small { 1 } else { 32 }, linear.all_ways.as_ref().map_or(0, AllWays::bytes)),
            Engine::GoingBack(engine) => (8, engine.bytes()),
        };
        weight + u32::try_from(bytes / SMALL).unwrap_or(u32::MAX)
    }

    /// See [`Pattern::may_take`](super::Pattern::may_take).
    pub(super) fn may_take(&self, rest: usize, past: Option<usize>) -> usize {
        match self {
            Engine::Linear(linear) => linear.may_take(rest, past),
            Engine::GoingBack(_) => OFTEN as usize,
        }
    }

    /// The byte range of the first match at or after byte `at`, without its groups.
    pub(super) fn range_at(&self, text: &str, at: usize, go_on: GoOn<'_>) -> Result<Option<(usize, usize)>, TooCostly> {
        match self {
            Engine::Linear(linear) => linear.range_at(text, at, go_on),
            Engine::GoingBack(engine) => Ok(engine.find_at(text, at, go_on)?.and_then(whole)),
        }
    }

    pub(super) fn find_at(&self, text: &str, at: usize, go_on: GoOn<'_>) -> Result<Option<Groups>, TooCostly> {
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

pub(super) fn start(groups: &Groups) -> usize {
    groups.first().copied().flatten().map_or(usize::MAX, |(start, _)| start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::{Pattern, translate};

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
            (r"(\x{e9}{1,60}|ab){2,20}c", format!("{}{}c{filler}", "\u{e9}".repeat(4000), "ab".repeat(30))),
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
