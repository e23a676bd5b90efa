//! Methods of strings, also of vectors and maps where Java has them, and the static methods of `String`.

use super::super::row::rows;
use super::super::text::{first_index, last_index, out_of_range, part, work, worked};
use crate::Value;
use crate::args::{at, expected, indexed_text, int, seq, steps, take, text};
use crate::machine::{Machine, Raised};

rows! { "java.lang.String":
    ".contains" ["[s part]"] contains, "Whether part is in a string, or an item of a vector." { "(.contains \"hello\" \"ell\")" => "true", "(.contains [1 2] 2)" => "true" };
    ".startsWith" ["[s prefix]", "[s prefix from]"] starts_with, "Whether s, from an index on, begins with prefix." { "(.startsWith \"hello\" \"he\")" => "true", "(.startsWith \"hello\" \"l\" 2)" => "true" };
    ".endsWith" ["[s suffix]"] ends_with, "Whether s ends with suffix." { "(.endsWith \"hello\" \"lo\")" => "true" };
    ".indexOf" ["[s part]", "[s part from]"] index_of, "The index of the first occurrence in a string, or of an item of a vector; -1 if there is none." { "(.indexOf \"hello\" \"l\")" => "2", "(.indexOf \"hello\" \"x\")" => "-1", "(.indexOf [:a :b] :b)" => "1" };
    ".lastIndexOf" ["[s part]", "[s part from]"] last_index_of, "The index of the last occurrence in a string, or of an item of a vector; -1 if there is none." { "(.lastIndexOf \"hello\" \"l\")" => "3" };
    ".length" ["[s]"] length, "The number of characters." { "(.length \"abc\")" => "3" };
    ".substring" ["[s start]", "[s start end]"] substring, "The text from start up to end; both must be positions of the text." { "(.substring \"hello\" 1 3)" => "\"el\"" };
    ".charAt" ["[s i]"] char_at, "The character at index i." { "(.charAt \"abc\" 1)" => "\"b\"" };
    ".toLowerCase" ["[s]"] lower, "In lower case." { "(.toLowerCase \"AB\")" => "\"ab\"" };
    ".toUpperCase" ["[s]"] upper, "In upper case." { "(.toUpperCase \"ab\")" => "\"AB\"" };
    ".trim" ["[s]"] trim, "Without white space at both ends." { "(.trim \" a \")" => "\"a\"" };
    ".strip" ["[s]"] strip, "Without white space at both ends, that of Unicode too." { "(.strip \" a \")" => "\"a\"" };
    ".isEmpty" ["[s]"] is_empty, "Whether a string or collection has no character or item." { "(.isEmpty \"\")" => "true" };
    ".isBlank" ["[s]"] is_blank, "Whether a string has nothing but white space." { "(.isBlank \" \")" => "true" };
    ".equalsIgnoreCase" ["[s other]"] equals_ignore_case, "Whether two strings are equal but for the case." { "(.equalsIgnoreCase \"Hello\" \"hELLO\")" => "true" };
    ".equals" ["[x other]"] equals, "Whether two values are equal." { "(.equals \"a\" \"a\")" => "true" };
    ".compareTo" ["[x other]"] compare_to, "-1, 0 or 1 as compare gives it." { "(.compareTo \"a\" \"b\")" => "-1" };
    ".concat" ["[s other]"] concat, "Both strings, one after the other." { "(.concat \"a\" \"b\")" => "\"ab\"" };
    ".replace" ["[s match replacement]"] replace, "All occurrences of a text replaced." { "(.replace \"a.b.c\" \".\" \"-\")" => "\"a-b-c\"" };
    ".replaceAll" ["[s regex replacement]"] replace_all, "All matches of a regular expression, given as text, replaced." { "(.replaceAll \"a1b22\" \"[0-9]+\" \"#\")" => "\"a#b#\"" };
    ".replaceFirst" ["[s regex replacement]"] replace_first, "The first match of a regular expression, given as text, replaced." { "(.replaceFirst \"a1b22\" \"[0-9]+\" \"#\")" => "\"a#b22\"" };
    ".split" ["[s regex]", "[s regex limit]"] split, "The parts between the matches of a regular expression, given as text." { "(.split \"a, b\" \", *\")" => "[\"a\" \"b\"]" };
    ".matches" ["[s regex]"] matches, "Whether a regular expression, given as text, matches the whole string." { "(.matches \"2024\" \"[0-9]{4}\")" => "true" };
    ".repeat" ["[s n]"] repeat, "The string n times over." { "(.repeat \"ab\" 3)" => "\"ababab\"" };
    ".toString" ["[x]"] to_string, "A value as text, as str gives it." { "(.toString 5)" => "\"5\"", "(.toString (LocalDate/of 2024 2 29))" => "\"2024-02-29\"" };
    ".name" ["[x]"] to_string, "The name of a day of the week, a month or a unit." { "(.name (.getMonth (LocalDate/of 2024 2 29)))" => "\"FEBRUARY\"" };
    ".size" ["[coll]"] size, "The number of items or entries." { "(.size [1 2])" => "2" };
    ".get" ["[coll key]"] get, "The value at a key of a map, or the item at an index of a vector." { "(.get {:a 1} :a)" => "1" };
    ".containsKey" ["[m key]"] contains_key, "Whether a map has a key." { "(.containsKey {:a 1} :a)" => "true" };
}

pub(in crate::builtins) mod class {
    use super::{join, rows, to_string};
    rows! { "String":
        "valueOf" ["[x]"] to_string, "A value as text, as str gives it." { "(String/valueOf 5)" => "\"5\"" };
        "join" ["[separator items]", "[separator & items]"] join, "The texts of the items, with the separator between them." { "(String/join \", \" [\"a\" \"b\"])" => "\"a, b\"" };
        "format" ["[template & args]"] super::super::super::format::format, "The same as format." { "(String/format \"%d%%\" 5)" => "\"5%\"" };
    }
}

fn two<'a>(m: &mut Machine, name: &str, args: &'a [Value]) -> Result<(&'a str, &'a str), Raised> {
    let (subject, part) = (text(m, name, args, 0)?.as_str(), text(m, name, args, 1)?.as_str());
    // The search preprocesses all of the needle, however short the text is.
    m.tick(steps((subject.len() + part.len()) / 64))?;
    Ok((subject, part))
}

fn contains(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if let Some(found) = position(m, args, false)? {
        return Ok(Value::bool(found >= 0));
    }
    let (subject, part) = two(m, ".contains", args)?;
    Ok(Value::bool(subject.contains(part)))
}

fn starts_with(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let from = if args.len() > 2 { int(m, ".startsWith", args, 2)? } else { 0 };
    let (_, part) = two(m, ".startsWith", args)?;
    let subject = indexed_text(m, ".startsWith", args, 0)?;
    let start = usize::try_from(from).ok().and_then(|from| subject.offset(from));
    let rest = start.and_then(|start| subject.as_str().get(start..));
    Ok(Value::bool(rest.is_some_and(|rest| rest.starts_with(part))))
}

fn ends_with(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let (subject, part) = two(m, ".endsWith", args)?;
    Ok(Value::bool(subject.ends_with(part)))
}

/// Returns the index of an item in a vector, or -1. `None` if the receiver is not a vector.
fn position(m: &mut Machine, args: &mut [Value], last: bool) -> Result<Option<i64>, Raised> {
    let (Value::Vector(_), 2) = (at(args, 0), args.len()) else { return Ok(None) };
    let items = seq(m, ".indexOf", args, 0)?;
    let mut found = -1;
    for (place, item) in (0..).zip(&items) {
        m.step()?;
        if item == at(args, 1) {
            found = place;
            if !last {
                break;
            }
        }
    }
    Ok(Some(found))
}

/// Replaces a character code by its character, since Java accepts both as an argument.
fn code_to_text(args: &mut [Value]) {
    if let Some(part @ Value::Int(_)) = args.get_mut(1)
        && let Value::Int(code) = *part
        && let Some(c) = u32::try_from(code).ok().and_then(char::from_u32)
    {
        *part = Value::string(c.encode_utf8(&mut [0; 4]));
    }
}

fn index_of(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if let Some(found) = position(m, args, false)? {
        return Ok(Value::Int(found));
    }
    code_to_text(args);
    let from = if args.len() > 2 { int(m, ".indexOf", args, 2)? } else { 0 };
    let (_, part) = two(m, ".indexOf", args)?;
    let subject = indexed_text(m, ".indexOf", args, 0)?;
    Ok(Value::Int(first_index(subject, part, from).unwrap_or(-1)))
}

fn last_index_of(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if let Some(found) = position(m, args, true)? {
        return Ok(Value::Int(found));
    }
    code_to_text(args);
    let from = if args.len() > 2 { int(m, ".lastIndexOf", args, 2)? } else { i64::MAX };
    let (_, part) = two(m, ".lastIndexOf", args)?;
    let subject = indexed_text(m, ".lastIndexOf", args, 0)?;
    Ok(Value::Int(last_index(subject, part, from).unwrap_or(-1)))
}

fn length(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(Value::Int(indexed_text(m, ".length", args, 0)?.count() as i64))
}

fn substring(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let subject = indexed_text(m, ".substring", args, 0)?;
    let len = subject.count();
    let start = int(m, ".substring", args, 1)?;
    let end = if args.len() > 2 { int(m, ".substring", args, 2)? } else { len as i64 };
    if start < 0 || end < start || usize::try_from(end).is_ok_and(|end| end > len) {
        return Err(out_of_range(m, ".substring", len));
    }
    let part = part(subject, start, end);
    work(m, part.len())?;
    Ok(Value::string(part))
}

fn lower(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(Value::from(worked(m, ".toLowerCase", args, 0)?.as_str().to_lowercase()))
}

fn upper(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(Value::from(worked(m, ".toUpperCase", args, 0)?.as_str().to_uppercase()))
}

fn trim(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(Value::string(worked(m, ".trim", args, 0)?.as_str().trim_matches(|c: char| c <= ' ')))
}

fn strip(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(Value::string(worked(m, ".strip", args, 0)?.as_str().trim()))
}

fn char_at(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let (subject, index) = (indexed_text(m, ".charAt", args, 0)?, int(m, ".charAt", args, 1)?);
    let len = subject.count();
    if usize::try_from(index).is_ok_and(|index| index < len) {
        return Ok(Value::string(part(subject, index, index + 1)));
    }
    Err(out_of_range(m, ".charAt", len))
}

fn is_empty(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    match at(args, 0) {
        Value::Str(text) => Ok(Value::bool(text.as_str().is_empty())),
        other => match other.len().filter(|_| !other.is_nil()) {
            Some(len) => Ok(Value::bool(len == 0)),
            None => Err(expected(m, ".isEmpty", "a string or collection", 0, other)),
        },
    }
}

fn is_blank(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(Value::bool(worked(m, ".isBlank", args, 0)?.as_str().trim().is_empty()))
}

fn equals_ignore_case(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let subject = text(m, ".equalsIgnoreCase", args, 0)?.as_str();
    let Some(other) = at(args, 1).as_str() else { return Ok(Value::False) };
    // Both texts are copied. A letter may grow to six times its length.
    work(m, (subject.len() + other.len()) * 4)?;
    Ok(Value::bool(other.to_lowercase() == subject.to_lowercase()))
}

fn equals(_: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(Value::bool(at(args, 0) == at(args, 1)))
}

/// Calls a function of the language with the arguments.
fn as_function(m: &mut Machine, name: &str, args: &mut [Value]) -> Result<Value, Raised> {
    m.call(&super::super::transducer::function(name), args)
}

fn compare_to(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if at(args, 0).kind() != at(args, 1).kind() {
        let wanted = format!("{}, as the other one,", at(args, 0).kind().described());
        return Err(expected(m, ".compareTo", &wanted, 1, at(args, 1)));
    }
    as_function(m, "compare", args)
}

fn concat(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    text(m, ".concat", args, 0)?;
    text(m, ".concat", args, 1)?;
    as_function(m, "str", args)
}

fn replace(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    for index in 0..3 {
        text(m, ".replace", args, index)?;
    }
    as_function(m, "clojure.string/replace", args)
}

/// Compiles the regular expression in a text.
fn pattern(m: &mut Machine, name: &str, args: &mut [Value]) -> Result<Value, Raised> {
    text(m, name, args, 0)?;
    match at(args, 1) {
        Value::Regex(_) => Ok(take(args, 1)),
        Value::Str(_) => as_function(m, "re-pattern", &mut [take(args, 1)]),
        other => Err(expected(m, name, "a regular expression", 1, other)),
    }
}

fn replace_all(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let pattern = pattern(m, ".replaceAll", args)?;
    as_function(m, "clojure.string/replace", &mut [take(args, 0), pattern, take(args, 2)])
}

fn replace_first(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let pattern = pattern(m, ".replaceFirst", args)?;
    as_function(m, "clojure.string/replace-first", &mut [take(args, 0), pattern, take(args, 2)])
}

fn split(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let pattern = pattern(m, ".split", args)?;
    let mut all = vec![take(args, 0), pattern];
    all.extend(args.iter_mut().skip(2).map(std::mem::take));
    as_function(m, "clojure.string/split", &mut all)
}

fn matches(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let pattern = pattern(m, ".matches", args)?;
    let found = as_function(m, "re-matches", &mut [pattern, take(args, 0)])?;
    Ok(Value::bool(!found.is_nil()))
}

fn repeat(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let (subject, n) = (text(m, ".repeat", args, 0)?, int(m, ".repeat", args, 1)?);
    let Ok(n) = usize::try_from(n) else { return Err(expected(m, ".repeat", "a number of times", 1, at(args, 1))) };
    let bytes = subject.as_str().len().saturating_mul(n);
    m.charge(bytes)?;
    work(m, bytes)?;
    Ok(Value::from(subject.as_str().repeat(n)))
}

fn to_string(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    match at(args, 0) {
        Value::Nil => Err(expected(m, ".toString", "a value", 0, &Value::Nil)),
        _ => as_function(m, "str", args),
    }
}

fn size(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    match at(args, 0) {
        coll @ (Value::Vector(_) | Value::Map(_) | Value::Set(_)) => Ok(Value::Int(coll.len().unwrap_or(0) as i64)),
        other => Err(expected(m, ".size", "a collection", 0, other)),
    }
}

fn get(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    match at(args, 0) {
        Value::Map(_) => as_function(m, "get", args),
        Value::Vector(items) => {
            let index = int(m, ".get", args, 1)?;
            let found = usize::try_from(index).ok().and_then(|index| items.get(index).cloned());
            found.ok_or(()).map_err(|()| out_of_range(m, ".get", items.len()))
        }
        other => Err(expected(m, ".get", "a map or vector", 0, other)),
    }
}

fn contains_key(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    match at(args, 0) {
        Value::Map(_) => as_function(m, "contains?", args),
        other => Err(expected(m, ".containsKey", "a map", 0, other)),
    }
}

fn join(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    text(m, "String/join", args, 0)?;
    let items = match args {
        [_, Value::Vector(_)] => take(args, 1),
        _ => Value::vector(args.iter_mut().skip(1).map(std::mem::take).collect()),
    };
    as_function(m, "clojure.string/join", &mut [take(args, 0), items])
}
