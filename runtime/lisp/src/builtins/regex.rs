//! Builtins for regular expressions.

use std::sync::Arc;

use super::row::rows;
use crate::args::{at, expected, fault, int, take, text};
use crate::machine::{Machine, Raised};
use crate::pattern::{CheckInterrupt, Groups, Pattern, TooCostly};
use crate::print::excerpt;
use crate::{ErrorKind, Value};

rows! { "clojure.core":
    "re-pattern" ["[s]"] re_pattern, "A regex, in Java's syntax." { "(re-find (re-pattern \"[0-9]+\") \"v12\")" => "\"12\"" };
    "re-find" ["[re s]"] re_find, "The first match: its text, or with groups a vector of the text and the groups; nil if there is none." { "(re-find #\"\\d+\" \"v12\")" => "\"12\"", "(re-find #\"(\\w)(\\d)\" \"v12\")" => "[\"v1\" \"v\" \"1\"]" };
    "re-matches" ["[re s]"] re_matches, "The match of the whole text, as re-find gives it; nil if it does not match." { "(re-matches #\"\\d+\" \"12\")" => "\"12\"", "(re-matches #\"\\d+\" \"12a\")" => "nil" };
    "re-seq" ["[re s]"] re_seq, "All matches, as re-find gives them; nil if there are none." { "(re-seq #\"\\d+\" \"1 22\")" => "[\"1\" \"22\"]" };
}

pub(super) mod extensions {
    use super::{extract, extract_int, re_split, rows};
    rows! { "ptc.core":
        "re-split" ["[re s]"] re_split, "The parts between matches." { "(re-split #\",\" \"a,b\")" => "[\"a\" \"b\"]" };
        "extract" ["[re s]", "[re s group]"] extract, "The text of a group of the first match, 1 by default, 0 for the whole; nil if there is none." { "(extract \"ID:(\\\\d+)\" \"ID:42\")" => "\"42\"" };
        "extract-int" ["[re s]", "[re s group]", "[re s group default]"] extract_int, "The same as an integer; default, or nil, if there is none." { "(extract-int \"age=(\\\\d+)\" \"age=25\")" => "25", "(extract-int \"x(\\\\d)\" \"y\" 1 0)" => "0" };
    }
}

/// Returns a compiled pattern from a regex or a string argument.
fn pattern(m: &mut Machine, name: &str, args: &[Value], index: usize) -> Result<Arc<Pattern>, Raised> {
    match at(args, index) {
        Value::Regex(pattern) => Ok(Arc::clone(pattern)),
        Value::Str(source) => compile(m, name, source.as_str()),
        other => Err(expected(m, name, "a regex", index, other)),
    }
}

fn compile(m: &mut Machine, name: &str, source: &str) -> Result<Arc<Pattern>, Raised> {
    m.tick(256)?;
    match Pattern::compile(source) {
        Ok(pattern) => {
            // The time and memory of the compilation are known only now.
            m.checkpoint_now()?;
            Ok(Arc::new(pattern))
        }
        Err(why) => {
            let what = format!("the regex #\"{}\" does not compile: {why}", excerpt(source));
            let raised = fault(m, ErrorKind::RuntimeError, name, &what);
            Err(m.advise(raised, why.hint))
        }
    }
}

/// Runs a search, with checks of the limits during long ones.
///
/// A short search may take some time without a check, and a program may run many of them. Its worst-case cost therefore brings
/// the next check forward. `end` returns the end of a match, since nothing after it was scanned.
fn search<T>(
    m: &mut Machine,
    pattern: &Pattern,
    subject: &str,
    from: usize,
    run: impl FnOnce(&Pattern, CheckInterrupt<'_>) -> Result<Option<T>, TooCostly>,
    end: impl FnOnce(&T) -> Option<usize>,
) -> Result<Option<T>, Raised> {
    let mut raised = None;
    let found = run(pattern, &mut || {
        raised = m.checkpoint_now().err();
        raised.is_none()
    });
    match (found, raised) {
        (_, Some(raised)) => Err(raised),
        (Err(why), None) => Err(m.raise_with_hint(ErrorKind::RuntimeError, why.to_string(), why.hint())),
        (Ok(found), None) => {
            m.check_soon(pattern.worst_case_cost(subject, from, found.as_ref().and_then(end)))?;
            Ok(found)
        }
    }
}

/// Returns the byte range of the next match.
pub(super) fn find(m: &mut Machine, pattern: &Pattern, subject: &str, from: usize) -> Result<Option<(usize, usize)>, Raised> {
    search(
        m,
        pattern,
        subject,
        from,
        |pattern, may_continue| pattern.range_at(subject, from, may_continue),
        |range| Some(range.1),
    )
}

/// Returns the next match with its groups.
fn find_groups(m: &mut Machine, pattern: &Pattern, subject: &str, from: usize) -> Result<Option<Groups>, Raised> {
    search(
        m,
        pattern,
        subject,
        from,
        |pattern, may_continue| pattern.find_at(subject, from, may_continue),
        |groups| Some((*groups.first()?)?.1),
    )
}

/// Returns the next character boundary after `at`.
pub(super) fn step(subject: &str, at: usize) -> usize {
    at + subject.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8)
}

fn group(subject: &str, range: Option<(usize, usize)>) -> Value {
    range.and_then(|(start, end)| subject.get(start..end)).map_or(Value::Nil, Value::string)
}

/// Returns the text of a match without groups, otherwise a vector.
fn matched(subject: &str, groups: &Groups) -> Value {
    match groups.as_slice() {
        [only] => group(subject, *only),
        all => Value::vector(all.iter().map(|range| group(subject, *range)).collect()),
    }
}

fn re_pattern(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if let Value::Regex(_) = at(args, 0) {
        return Ok(take(args, 0));
    }
    let source = text(m, "re-pattern", args, 0)?;
    compile(m, "re-pattern", source.as_str()).map(Value::Regex)
}

fn re_find(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let pattern = pattern(m, "re-find", args, 0)?;
    let subject = text(m, "re-find", args, 1)?.as_str();
    super::text::work(m, subject.len() / 4)?;
    let found = find_groups(m, &pattern, subject, 0)?;
    Ok(found.map_or(Value::Nil, |groups| matched(subject, &groups)))
}

fn re_matches(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let pattern = pattern(m, "re-matches", args, 0)?;
    let subject = text(m, "re-matches", args, 1)?.as_str();
    super::text::work(m, subject.len() / 4)?;
    let found = search(m, &pattern, subject, 0, |pattern, may_continue| pattern.matches(subject, may_continue), |_| None)?;
    Ok(found.map_or(Value::Nil, |groups| matched(subject, &groups)))
}

fn re_seq(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let pattern = pattern(m, "re-seq", args, 0)?;
    let subject = text(m, "re-seq", args, 1)?.as_str();
    super::text::work(m, subject.len())?;
    let mut out = Vec::new();
    let mut from = 0;
    while from <= subject.len() {
        let Some(groups) = find_groups(m, &pattern, subject, from)? else { break };
        m.tick(2)?;
        let Some((start, end)) = groups.first().copied().flatten() else { break };
        out.push(matched(subject, &groups));
        from = if end > start { end } else { step(subject, end) };
    }
    Ok(if out.is_empty() { Value::Nil } else { Value::vector(out) })
}

fn re_split(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let pattern = pattern(m, "re-split", args, 0)?;
    let subject = text(m, "re-split", args, 1)?.as_str();
    super::text::split_regex(m, subject, &pattern)
}

fn extract(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let pattern = pattern(m, "extract", args, 0)?;
    let wanted = if args.len() > 2 { int(m, "extract", args, 2)? } else { 1 };
    let Value::Str(subject) = at(args, 1) else {
        if at(args, 1).is_nil() {
            return Ok(Value::Nil);
        }
        return Err(expected(m, "extract", "a string", 1, at(args, 1)));
    };
    super::text::work(m, subject.as_str().len() / 4)?;
    let found = find_groups(m, &pattern, subject.as_str(), 0)?;
    let range = found.and_then(|groups| groups.get(usize::try_from(wanted).ok()?).copied().flatten());
    Ok(group(subject.as_str(), range))
}

fn extract_int(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let default = take(args, 3);
    let found = extract(m, args.get_mut(..3.min(args.len())).unwrap_or_default())?;
    let number = found.as_str().and_then(super::parse::integer);
    Ok(number.unwrap_or(default))
}

/// Replaces matches by a template with `$1`, or by the result of a function of the match.
pub(super) fn replace(
    m: &mut Machine,
    name: &str,
    subject: &str,
    pattern: &Pattern,
    with: &Value,
    most: usize,
) -> Result<String, Raised> {
    let mut out = String::new();
    let (mut copied, mut from, mut done) = (0, 0, 0);
    while from <= subject.len() && done < most {
        let Some(groups) = find_groups(m, pattern, subject, from)? else { break };
        m.tick(2)?;
        let Some((start, end)) = groups.first().copied().flatten() else { break };
        out.push_str(subject.get(copied..start).unwrap_or_default());
        match with {
            Value::Str(template) => expand(m, name, template.as_str(), pattern, subject, &groups, &mut out)?,
            f => {
                let text = m.call(f, &mut [matched(subject, &groups)])?;
                super::output::write_str(m, &text, &mut out)?;
            }
        }
        super::text::work(m, out.len() / 64)?;
        copied = end;
        done += 1;
        from = if end > start { end } else { step(subject, end) };
    }
    out.push_str(subject.get(copied..).unwrap_or_default());
    Ok(out)
}

/// Appends a replacement template. `$1` and `${name}` refer to groups, and a backslash escapes the next character.
fn expand(
    m: &mut Machine,
    name: &str,
    template: &str,
    pattern: &Pattern,
    subject: &str,
    groups: &Groups,
    out: &mut String,
) -> Result<(), Raised> {
    let mut chars = template.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                let Some(taken) = chars.next() else {
                    let what =
                        "the replacement ends with a backslash, which takes the next character as it is; write \\\\\\\\ for one";
                    return Err(fault(m, ErrorKind::RuntimeError, name, what));
                };
                out.push(taken);
            }
            '$' => {
                let (index, written) = group_reference(&mut chars, pattern, groups.len());
                let Some(range) = index.and_then(|index| groups.get(index)) else {
                    let what =
                        format!("the replacement has {written}, which is not a group of the regex; write \\\\$ for the sign");
                    return Err(fault(m, ErrorKind::RuntimeError, name, &what));
                };
                let group = range.and_then(|(start, end)| subject.get(start..end)).unwrap_or_default();
                super::text::work(m, group.len())?;
                out.push_str(group);
            }
            other => out.push(other),
        }
    }
    Ok(())
}

/// Parses the group reference after a `$`. Returns the number of the group and its source text.
fn group_reference(
    chars: &mut std::iter::Peekable<std::str::Chars<'_>>,
    pattern: &Pattern,
    count: usize,
) -> (Option<usize>, String) {
    if chars.next_if_eq(&'{').is_some() {
        let name: String = chars.by_ref().take_while(|c| *c != '}').collect();
        return (pattern.group(&name), format!("${{{name}}}"));
    }
    let mut index = None;
    // Takes as many digits as form the number of an existing group.
    while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
        let next = index.unwrap_or(0) * 10 + digit as usize;
        if index.is_some() && next >= count {
            break;
        }
        index = Some(next);
        chars.next();
    }
    (index, index.map_or_else(|| "$ without a number".to_owned(), |index| format!("${index}")))
}
