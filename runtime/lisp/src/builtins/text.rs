//! Builtins for strings, as in `clojure.string`. Positions are graphemes.

use super::row::rows;
use crate::args::{SeqIter, at, expected, indexed_text, int, locate_graphemes, seq, steps, take, text};
use crate::machine::{Machine, Raised};
use crate::metered;
use crate::pattern::Pattern;
use crate::value::{Recent, Text};
use crate::{ErrorKind, Value};

rows! { "clojure.string":
    "join" ["[coll]", "[separator coll]"] join, "The items as text, with the separator between them." { "(clojure.string/join \", \" [1 2])" => "\"1, 2\"", "(clojure.string/join [\"a\" \"b\"])" => "\"ab\"" };
    "split" ["[s re]", "[s re limit]"] split, "The parts between matches of a regex or of a one-character string; without empty ones at the end." { "(clojure.string/split \"a,b,,\" #\",\")" => "[\"a\" \"b\"]", "(clojure.string/split \"a-b-c\" #\"-\" 2)" => "[\"a\" \"b-c\"]" };
    "split-lines" ["[s]"] split_lines, "The lines." { "(clojure.string/split-lines \"a\\nb\\r\\nc\")" => "[\"a\" \"b\" \"c\"]" };
    "trim" ["[s]"] trim, "Without white space at both ends." { "(clojure.string/trim \" a \")" => "\"a\"" };
    "triml" ["[s]"] triml, "Without white space at the start." { "(clojure.string/triml \" a \")" => "\"a \"" };
    "trimr" ["[s]"] trimr, "Without white space at the end." { "(clojure.string/trimr \" a \")" => "\" a\"" };
    "trim-newline" ["[s]"] trim_newline, "Without line ends at the end." { "(clojure.string/trim-newline \"a\\n\")" => "\"a\"" };
    "upper-case" ["[s]"] upper, "In upper case." { "(clojure.string/upper-case \"aB\")" => "\"AB\"" };
    "lower-case" ["[s]"] lower, "In lower case." { "(clojure.string/lower-case \"aB\")" => "\"ab\"" };
    "capitalize" ["[s]"] capitalize, "The first character in upper case, the others in lower case." { "(clojure.string/capitalize \"hELLO\")" => "\"Hello\"" };
    "blank?" ["[s]"] is_blank, "Whether it is nil, empty or only white space." { "(clojure.string/blank? \" \")" => "true" };
    "starts-with?" ["[s prefix]"] starts_with, "Whether s begins with prefix." { "(clojure.string/starts-with? \"hello\" \"he\")" => "true" };
    "ends-with?" ["[s suffix]"] ends_with, "Whether s ends with suffix." { "(clojure.string/ends-with? \"hello\" \"lo\")" => "true" };
    "includes?" ["[s part]"] includes, "Whether part is in s." { "(clojure.string/includes? \"hello\" \"ell\")" => "true" };
    "index-of" ["[s value]", "[s value from]"] index_of, "The index of the first occurrence at or after from, or nil." { "(clojure.string/index-of \"hello\" \"l\")" => "2", "(clojure.string/index-of \"hello\" \"x\")" => "nil" };
    "last-index-of" ["[s value]", "[s value from]"] last_index_of, "The index of the last occurrence at or before from, or nil." { "(clojure.string/last-index-of \"hello\" \"l\")" => "3" };
    "replace" ["[s match replacement]"] replace, "All matches replaced. match is a string or regex; with a regex the replacement may be a function of the match, or have $1." { "(clojure.string/replace \"hello\" \"l\" \"L\")" => "\"heLLo\"", "(clojure.string/replace \"a1b2\" #\"[0-9]\" (fn [d] (str \"<\" d \">\")))" => "\"a<1>b<2>\"" };
    "replace-first" ["[s match replacement]"] replace_first, "The first match replaced." { "(clojure.string/replace-first \"aaa\" \"a\" \"b\")" => "\"baa\"" };
    "reverse" ["[s]"] reverse, "The characters from last to first." { "(clojure.string/reverse \"abc\")" => "\"cba\"" };
    "escape" ["[s cmap]"] escape, "Each character replaced by what cmap gives for it, if anything." { "(clojure.string/escape \"a<b\" {\"<\" \"&lt;\"})" => "\"a&lt;b\"" };
    "re-quote-replacement" ["[s]"] quote_replacement, "Escapes a text so that it is used literally as a replacement." { "(clojure.string/re-quote-replacement \"$1\")" => "\"\\\\$1\"" };
}

pub(super) mod core {
    use super::{rows, subs};
    rows! { "clojure.core":
        "subs" ["[s start]", "[s start end]"] subs, "The text from start up to end. An end behind the text is its end; a bad range is empty." { "(subs \"hello\" 1 3)" => "\"el\"", "(subs \"abc\" 1 99)" => "\"bc\"", "(subs \"abc\" -1)" => "\"\"" };
    }
}

pub(super) mod extensions {
    use super::{lower, rows, upper};
    rows! { "ptc.core":
        "upcase" ["[s]"] upper, "In upper case." { "(upcase \"a\")" => "\"A\"" };
        "downcase" ["[s]"] lower, "In lower case." { "(downcase \"A\")" => "\"a\"" };
    }
}

/// Charges the work on `bytes` of text: one step per 64 bytes, and memory for a result of that size.
pub(super) fn work(m: &mut Machine, bytes: usize) -> Result<(), Raised> {
    m.tick(steps(bytes / 64 + 1))?;
    m.charge(bytes)
}

/// Returns the text of an argument and charges the work on it.
pub(super) fn worked<'a>(m: &mut Machine, name: &str, args: &'a [Value], index: usize) -> Result<&'a Text, Raised> {
    let text = text(m, name, args, index)?;
    work(m, text.as_str().len())?;
    Ok(text)
}

/// Converts an argument that is neither a string nor nil to text, as `str` does.
fn spoken(m: &mut Machine, args: &mut [Value], index: usize) -> Result<(), Raised> {
    if let Some(arg) = args.get_mut(index)
        && !matches!(arg, Value::Str(_) | Value::Nil)
    {
        let mut text = String::new();
        super::output::write_str(m, arg, &mut text)?;
        *arg = Value::from(text);
    }
    Ok(())
}

fn join(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let (separator, place) = match args.len() {
        1 => (Value::Nil, 0),
        _ => (take(args, 0), 1),
    };
    let mut walk = SeqIter::finite(m, "join", args, place)?;
    let mut between = String::new();
    super::output::write_str(m, &separator, &mut between)?;
    let mut out = String::new();
    let mut first = true;
    let mut charged = 0;
    while let Some(item) = walk.next(m)? {
        if !first {
            m.tick(steps(between.len() / 64))?;
            m.charge(between.len())?;
            out.push_str(&between);
        }
        first = false;
        super::output::write_str(m, &item, &mut out)?;
        if out.len() - charged > 4096 {
            work(m, out.len() - charged)?;
            charged = out.len();
        }
    }
    Ok(Value::from(out))
}

/// The delimiter of a split.
enum Delimiter<'a> {
    /// `\s+`: white space.
    Space,
    Regex(&'a Pattern),
    Text(&'a str),
}

fn split(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let limit = if args.len() > 2 { int(m, "split", args, 2)? } else { 0 };
    let subject = worked(m, "split", args, 0)?;
    let by = match at(args, 1) {
        Value::Regex(pattern) => delimiter(pattern),
        Value::Str(text) if text.graphemes().nth(1).is_none() => Delimiter::Text(text.as_str()),
        other => {
            let raised = expected(m, "split", "a regex or a one-character string", 1, other);
            if let (Value::Str(text), Some(fault)) = (other, &mut m.fault) {
                // A longer text would be truncated in the message, and a truncated regex has another meaning.
                fault.hint = Some(if text.as_str().len() <= 40 {
                    format!("write #\"{}\" to split on it", ptc_regex::escape(text.as_str()))
                } else {
                    "write a regex, as in #\"a+\", to split on it".to_owned()
                });
            }
            return Err(raised);
        }
    };
    split_by(m, subject.as_str(), &by, limit)
}

/// The most common pattern has a specialized loop, which is several times as fast as the engine.
fn delimiter(pattern: &Pattern) -> Delimiter<'_> {
    if pattern.source() == r"\s+" { Delimiter::Space } else { Delimiter::Regex(pattern) }
}

/// Splits `subject`. A positive limit is the maximum number of parts, 0 drops empty parts at the end, and a negative limit keeps
/// all parts.
fn split_by(m: &mut Machine, subject: &str, by: &Delimiter<'_>, limit: i64) -> Result<Value, Raised> {
    let most = usize::try_from(limit).ok().filter(|most| *most > 0).unwrap_or(usize::MAX);
    let mut parts: Vec<&str> = Vec::new();
    let mut start = 0;
    match by {
        Delimiter::Text("") => {
            let mut rest = subject;
            for grapheme in Text::new(subject).graphemes() {
                if parts.len() + 1 == most {
                    break;
                }
                let (part, tail) = rest.split_at_checked(grapheme.len()).unwrap_or((rest, ""));
                metered::push(m, &mut parts, part)?;
                rest = tail;
            }
            if !rest.is_empty() {
                parts.push(rest);
            }
        }
        Delimiter::Space => {
            let is_space = |b: &u8| *b <= b' ' && matches!(b, b' ' | b'\t'..=b'\r');
            let bytes = subject.as_bytes();
            while parts.len() + 1 < most {
                let rest = bytes.get(start..).unwrap_or_default();
                let Some(at) = rest.iter().position(is_space) else { break };
                let spaces = rest.iter().skip(at).take_while(|b| is_space(b)).count();
                metered::push(m, &mut parts, subject.get(start..start + at).unwrap_or_default())?;
                start += at + spaces;
            }
            parts.push(subject.get(start..).unwrap_or_default());
        }
        Delimiter::Text(delimiter) => {
            for part in subject.splitn(most, delimiter) {
                metered::push(m, &mut parts, part)?;
            }
        }
        Delimiter::Regex(pattern) => {
            let mut from = 0;
            while parts.len() + 1 < most {
                let Some((at, end)) = super::regex::find(m, pattern, subject, from)? else { break };
                m.tick(1)?;
                from = if end > at { end } else { super::regex::step(subject, end) };
                // An empty match at the start does not produce an empty part.
                if end > 0 {
                    metered::push(m, &mut parts, subject.get(start..at).unwrap_or_default())?;
                    start = end;
                }
                if from > subject.len() {
                    break;
                }
            }
            parts.push(subject.get(start..).unwrap_or_default());
        }
    }
    if limit == 0 {
        while parts.len() > 1 && parts.last().is_some_and(|part| part.is_empty()) {
            parts.pop();
        }
        // Only an empty subject produces one empty part.
        if !subject.is_empty() && parts.iter().all(|part| part.is_empty()) {
            parts.clear();
        }
    }
    m.charge(parts.len() * 80)?;
    m.tick(steps(parts.len()))?;
    Ok(Value::vector(parts_of(subject, &parts)))
}

/// Minimum number of parts for which equal parts are searched.
const MANY: usize = 64;

/// Converts the parts of a text to strings. Equal parts share one allocation where the cache finds them.
fn parts_of(whole: &str, parts: &[&str]) -> Vec<Value> {
    if parts.len() < MANY {
        return parts.iter().map(Value::string).collect();
    }
    let mut recent = Recent::with_room((parts.len() / 8).min(2048));
    let plain = Text::plain(whole);
    parts.iter().map(|part| Value::Str(recent.get(part, plain || Text::plain(part)))).collect()
}

pub(super) fn split_regex(m: &mut Machine, subject: &str, pattern: &Pattern) -> Result<Value, Raised> {
    work(m, subject.len())?;
    split_by(m, subject, &delimiter(pattern), 0)
}

fn split_lines(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let subject = worked(m, "split-lines", args, 0)?;
    let mut lines: Vec<&str> = Vec::new();
    for line in subject.as_str().split('\n') {
        metered::push(m, &mut lines, line.strip_suffix('\r').unwrap_or(line))?;
    }
    // Only an empty text is one empty line.
    while !subject.as_str().is_empty() && lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    m.charge(lines.len() * 80)?;
    m.tick(steps(lines.len()))?;
    Ok(Value::vector(parts_of(subject.as_str(), &lines)))
}

/// White space as Java defines it: that of Unicode except for no-break spaces.
fn is_space(c: char) -> bool {
    matches!(c, '\u{1C}'..='\u{1F}') || c.is_whitespace() && !matches!(c, '\u{A0}' | '\u{2007}' | '\u{202F}' | '\u{85}')
}

macro_rules! texts {
    ($($name:ident $label:literal $(@ $receiver:literal)? $f:expr;)*) => {
        $(fn $name(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
            let f: fn(&str) -> String = $f;
            $(spoken(m, args, $receiver)?;)?
            Ok(Value::from(f(worked(m, $label, args, 0)?.as_str())))
        })*
    };
}

texts! {
    trim "trim" |s| s.trim_matches(is_space).to_owned();
    triml "triml" |s| s.trim_start_matches(is_space).to_owned();
    trimr "trimr" |s| s.trim_end_matches(is_space).to_owned();
    trim_newline "trim-newline" |s| s.trim_end_matches(['\n', '\r']).to_owned();
    upper "upper-case" @0 str::to_uppercase;
    capitalize "capitalize" @0 capitalized;
    reverse "reverse" |s| Text::new(s).graphemes().rev().collect();
    quote_replacement "re-quote-replacement" |s| s.replace('\\', "\\\\").replace('$', "\\$");
}

fn lower(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    spoken(m, args, 0)?;
    let subject = worked(m, "lower-case", args, 0)?;
    if !subject.is_plain() {
        return Ok(Value::from(subject.as_str().to_lowercase()));
    }
    if subject.as_str().bytes().any(|b| b.is_ascii_uppercase()) {
        return Ok(Value::Str(subject.ascii_lowercase()));
    }
    Ok(take(args, 0))
}

fn capitalized(text: &str) -> String {
    let held = Text::new(text);
    let first = held.graphemes().next().unwrap_or_default();
    let rest = text.get(first.len()..).unwrap_or_default();
    first.to_uppercase() + &rest.to_lowercase()
}

fn is_blank(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if at(args, 0).is_nil() {
        return Ok(Value::True);
    }
    let subject = worked(m, "blank?", args, 0)?;
    Ok(Value::bool(subject.as_str().chars().all(is_space)))
}

fn two<'a>(m: &mut Machine, name: &str, args: &'a mut [Value]) -> Result<(&'a Text, &'a Text), Raised> {
    spoken(m, args, 0)?;
    Ok((worked(m, name, args, 0)?, worked(m, name, args, 1)?))
}

fn starts_with(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let (subject, part) = two(m, "starts-with?", args)?;
    Ok(Value::bool(subject.as_str().starts_with(part.as_str())))
}

fn ends_with(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let (subject, part) = two(m, "ends-with?", args)?;
    Ok(Value::bool(subject.as_str().ends_with(part.as_str())))
}

fn includes(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let (subject, part) = two(m, "includes?", args)?;
    Ok(Value::bool(subject.as_str().contains(part.as_str())))
}

/// The grapheme index of the first occurrence of `part` at or after `from`.
pub(super) fn first_index(subject: &Text, part: &str, from: i64) -> Option<i64> {
    let start = subject.offset(usize::try_from(from).unwrap_or(0))?;
    let found = subject.as_str().get(start..)?.find(part)?;
    Some(subject.index_of_offset(start + found) as i64)
}

/// The grapheme index of the last occurrence of `part` at or before `from`.
pub(super) fn last_index(subject: &Text, part: &str, from: i64) -> Option<i64> {
    let from = usize::try_from(from).ok()?;
    let limit = subject.offset(from).map_or(subject.as_str().len(), |at| (at + part.len()).min(subject.as_str().len()));
    let found = subject.as_str().get(..subject.as_str().floor_char_boundary(limit))?.rfind(part)?;
    Some(subject.index_of_offset(found) as i64)
}

fn index_of(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let from = if args.len() > 2 { int(m, "index-of", args, 2)? } else { 0 };
    let (subject, part) = two(m, "index-of", args)?;
    locate_graphemes(m, subject)?;
    Ok(first_index(subject, part.as_str(), from).map_or(Value::Nil, Value::Int))
}

fn last_index_of(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let from = if args.len() > 2 { int(m, "last-index-of", args, 2)? } else { i64::MAX };
    let (subject, part) = two(m, "last-index-of", args)?;
    locate_graphemes(m, subject)?;
    Ok(last_index(subject, part.as_str(), from).map_or(Value::Nil, Value::Int))
}

pub(super) fn replace(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    replaced(m, "clojure.string/replace", args, usize::MAX)
}

fn replace_first(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    replaced(m, "clojure.string/replace-first", args, 1)
}

fn replaced(m: &mut Machine, name: &str, args: &mut [Value], most: usize) -> Result<Value, Raised> {
    spoken(m, args, 0)?;
    let subject = worked(m, name, args, 0)?.clone();
    match (at(args, 1), at(args, 2)) {
        (Value::Str(part), Value::Str(with)) => {
            let hits = subject.as_str().matches(part.as_str()).take(most).count();
            work(m, subject.as_str().len() + hits * with.as_str().len())?;
            Ok(Value::from(subject.as_str().replacen(part.as_str(), with.as_str(), most)))
        }
        (Value::Regex(_), other @ (Value::Nil | Value::True | Value::False | Value::Int(_) | Value::Double(_))) => {
            Err(expected(m, name, "a string or function", 2, other))
        }
        (Value::Regex(pattern), with) => super::regex::replace(m, name, subject.as_str(), pattern, with, most).map(Value::from),
        (Value::Str(_), other) => Err(expected(m, name, "a string", 2, other)),
        (other, _) => Err(expected(m, name, "a string or regex", 1, other)),
    }
}

fn escape(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let chars = seq(m, "clojure.string/escape", args, 0)?;
    let mut out = String::new();
    for c in chars {
        m.tick(1)?;
        let with = m.call(at(args, 1), &mut [c.clone()])?;
        super::output::write_str(m, if with.is_nil() { &c } else { &with }, &mut out)?;
    }
    Ok(Value::from(out))
}

fn subs(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let start = int(m, "subs", args, 1)?;
    let end = if args.len() > 2 { int(m, "subs", args, 2)? } else { i64::MAX };
    let part = part(indexed_text(m, "subs", args, 0)?, start, end);
    work(m, part.len())?;
    Ok(Value::string(part))
}

/// Returns the graphemes `start..end`, or an empty text for an invalid range.
pub(super) fn part(subject: &Text, start: i64, end: i64) -> &str {
    let (Ok(start), Ok(end)) = (usize::try_from(start), usize::try_from(end)) else { return "" };
    let Some(from) = subject.offset(start) else { return "" };
    let to = subject.offset(end).unwrap_or(subject.as_str().len());
    subject.as_str().get(from..to).unwrap_or_default()
}

/// Raises a fault for a position outside of a text.
#[cold]
pub(super) fn out_of_range(m: &mut Machine, name: &str, len: usize) -> Raised {
    let what = match len {
        0 => "the text is empty".to_owned(),
        _ => format!("the text has {len} characters, at positions 0 to {}", len - 1),
    };
    let raised = crate::args::fault(m, ErrorKind::RuntimeError, name, &what);
    m.advise(raised, "(count s) gives the length; (get s i) and (subs s from to) allow for positions outside of the text")
}
