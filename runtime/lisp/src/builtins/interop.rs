//! Methods of Java's strings, for programs that are written with them.

use super::row::rows;
use super::text::{first_index, last_index, out_of_range, part, work};
use crate::Value;
use crate::convert::{int, text};
use crate::machine::{Machine, Raised};

rows! { "java.lang.String":
    ".contains" ["[s part]"] contains, "Whether part is in s." { "(.contains \"hello\" \"ell\")" => "true" };
    ".startsWith" ["[s prefix]"] starts_with, "Whether s begins with prefix." { "(.startsWith \"hello\" \"he\")" => "true" };
    ".endsWith" ["[s suffix]"] ends_with, "Whether s ends with suffix." { "(.endsWith \"hello\" \"lo\")" => "true" };
    ".indexOf" ["[s part]", "[s part from]"] index_of, "The index of the first occurrence, or -1." { "(.indexOf \"hello\" \"l\")" => "2", "(.indexOf \"hello\" \"x\")" => "-1" };
    ".lastIndexOf" ["[s part]", "[s part from]"] last_index_of, "The index of the last occurrence, or -1." { "(.lastIndexOf \"hello\" \"l\")" => "3" };
    ".length" ["[s]"] length, "The number of characters." { "(.length \"abc\")" => "3" };
    ".substring" ["[s start]", "[s start end]"] substring, "The text from start up to end; both must be positions of the text." { "(.substring \"hello\" 1 3)" => "\"el\"" };
    ".toLowerCase" ["[s]"] lower, "In lower case." { "(.toLowerCase \"AB\")" => "\"ab\"" };
    ".toUpperCase" ["[s]"] upper, "In upper case." { "(.toUpperCase \"ab\")" => "\"AB\"" };
    ".trim" ["[s]"] trim, "Without white space at both ends." { "(.trim \" a \")" => "\"a\"" };
}

fn two<'a>(m: &mut Machine, name: &str, args: &'a [Value]) -> Result<(&'a str, &'a str), Raised> {
    let subject = text(m, name, args, 0)?.as_str();
    work(m, subject.len() / 4)?;
    Ok((subject, text(m, name, args, 1)?.as_str()))
}

fn contains(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let (subject, part) = two(m, ".contains", args)?;
    Ok(Value::bool(subject.contains(part)))
}

fn starts_with(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let (subject, part) = two(m, ".startsWith", args)?;
    Ok(Value::bool(subject.starts_with(part)))
}

fn ends_with(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let (subject, part) = two(m, ".endsWith", args)?;
    Ok(Value::bool(subject.ends_with(part)))
}

fn index_of(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let from = if args.len() > 2 { int(m, ".indexOf", args, 2)? } else { 0 };
    let (_, part) = two(m, ".indexOf", args)?;
    let subject = text(m, ".indexOf", args, 0)?;
    Ok(Value::Int(first_index(subject, part, from).unwrap_or(-1)))
}

fn last_index_of(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let from = if args.len() > 2 { int(m, ".lastIndexOf", args, 2)? } else { i64::MAX };
    let (_, part) = two(m, ".lastIndexOf", args)?;
    let subject = text(m, ".lastIndexOf", args, 0)?;
    Ok(Value::Int(last_index(subject, part, from).unwrap_or(-1)))
}

fn length(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(Value::Int(text(m, ".length", args, 0)?.count() as i64))
}

fn substring(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let subject = text(m, ".substring", args, 0)?;
    let len = subject.count();
    let start = int(m, ".substring", args, 1)?;
    let end = if args.len() > 2 { int(m, ".substring", args, 2)? } else { len as i64 };
    if start < 0 || end < start || usize::try_from(end).is_ok_and(|end| end > len) {
        return Err(out_of_range(m, ".substring", len));
    }
    Ok(Value::string(part(subject, start, end)))
}

fn lower(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(Value::from(text(m, ".toLowerCase", args, 0)?.as_str().to_lowercase()))
}

fn upper(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(Value::from(text(m, ".toUpperCase", args, 0)?.as_str().to_uppercase()))
}

fn trim(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(Value::string(text(m, ".trim", args, 0)?.as_str().trim_matches(|c: char| c <= ' ')))
}
