//! Builtins that convert values to text, and printing.

use super::row::rows;
use crate::args::{at, expected, take};
use crate::machine::{Machine, Raised};
use crate::print::{Strings, excerpt, work_of, write_atom, write_while};
use crate::value::Text;
use crate::{ErrorKind, Value};

rows! { "clojure.core":
    "str" ["[& xs]"] str, "The texts of all arguments, one after the other; nil is empty." { "(str \"a\" 1 :b nil)" => "\"a1:b\"", "(str [1 \"x\"])" => "\"[1 \\\"x\\\"]\"" };
    "pr-str" ["[& xs]"] pr_str, "The arguments as they are written in programs." { "(pr-str \"a\" nil)" => "\"\\\"a\\\" nil\"" };
    "prn-str" ["[& xs]"] prn_str, "pr-str with a line end." { "(prn-str 1)" => "\"1\\n\"" };
    "print-str" ["[& xs]"] print_str, "The arguments as text, with spaces between; strings are not quoted at any depth." { "(print-str \"a\" 1 [\"b\"])" => "\"a 1 [b]\"" };
    "println-str" ["[& xs]"] println_str, "print-str with a line end." { "(println-str \"a\")" => "\"a\\n\"" };
    "println" ["[& xs]"] println, "Prints the arguments as text, with spaces between and strings without quotes; nil. What is printed has one budget in the answer: the longest lines are cut first, so that a value, which has its own, holds more." { "(println \"a\" 1)" => "nil" };
    "print" ["[& xs]"] println, "The same as println: output is kept in lines." { "(print \"a\")" => "nil" };
    "prn" ["[& xs]"] prn, "Prints the arguments as they are written in programs; nil." { "(prn \"a\")" => "nil" };
    "pr" ["[& xs]"] prn, "The same as prn: output is kept in lines." { "(pr \"a\")" => "nil" };
    "pprint" ["[x]"] prn, "Prints the argument as it is written in programs; nil." { "(pprint {:a 1})" => "nil" };
    "char" ["[n]"] char, "The character of a code, or a character as it is." { "(char 97)" => "\"a\"" };
    "name" ["[x]"] name, "The name of a keyword or symbol, or a string as it is." { "(name :a)" => "\"a\"" };
    "keyword" ["[x]"] keyword, "The keyword of a name: letters, digits and - _ ? ! after a first letter; nil for nil." { "(keyword \"a\")" => ":a" };
    "symbol" ["[x]"] symbol, "The symbol of a name." { "(name (symbol \"a\"))" => "\"a\"" };
    "namespace" ["[x]"] namespace, "nil: keywords have no namespace." { "(namespace :a)" => "nil" };
}

/// Appends the text of a value as `str` does: strings without quotes, nil as nothing, other values as they print.
pub(crate) fn write_str(m: &mut Machine, value: &Value, out: &mut String) -> Result<(), Raised> {
    match value {
        Value::Nil => {}
        Value::Str(text) => {
            if text.as_str().len() > LONG {
                super::text::work(m, text.as_str().len())?;
            }
            out.push_str(text.as_str());
        }
        Value::Double(d) if !d.get().is_finite() => {
            out.push_str(if d.get().is_nan() {
                "NaN"
            } else if d.get() > 0.0 {
                "Infinity"
            } else {
                "-Infinity"
            });
        }
        Value::Regex(pattern) => out.push_str(pattern.source()),
        Value::Temporal(temporal) => out.push_str(&temporal.to_string()),
        Value::Vector(_) | Value::Map(_) | Value::Set(_) => write_pr(m, value, out)?,
        other => {
            m.tick(work_of(other))?;
            write_atom(other, out);
        }
    }
    Ok(())
}

/// Length in bytes from which copying a text is charged.
const LONG: usize = 1024;

/// Bytes per level of the work list for a walk over a deep value. This includes the doubling of the list.
pub(super) const OPEN: usize = 160;

/// Appends a value in readable form.
fn write_pr(m: &mut Machine, value: &Value, out: &mut String) -> Result<(), Raised> {
    write(m, value, Strings::Quoted, out)
}

/// Appends a value as `print` shows it.
fn write_print(m: &mut Machine, value: &Value, out: &mut String) -> Result<(), Raised> {
    write(m, value, Strings::Plain, out)
}

/// Appends the printed form, which may be much longer than the value's size in memory if it shares parts.
fn write(m: &mut Machine, value: &Value, strings: Strings, out: &mut String) -> Result<(), Raised> {
    // The buffer of a growing text has up to twice its length.
    m.charge(value.depth() as usize * OPEN)?;
    let room = m.room() / 2;
    let start = out.len();
    let mut raised = None;
    let fits = write_while(value, room, strings, out, |work| {
        raised = m.tick(work).err();
        raised.is_none()
    });
    match raised {
        Some(raised) => Err(raised),
        None if fits => super::text::work(m, out.len() - start),
        None => Err(m.raise(ErrorKind::MemoryExceeded, "the text of the value is larger than the memory limit")),
    }
}

/// Rejects texts that would be too large before they are built. Returns the approximate bytes of all arguments.
fn weigh(m: &mut Machine, args: &[Value]) -> Result<usize, Raised> {
    let bytes = args.iter().map(|arg| arg.as_str().map_or(8, str::len)).sum();
    super::text::work(m, bytes)?;
    Ok(bytes)
}

fn str(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let bytes = weigh(m, args)?;
    // Appending to a text with a single owner grows it in place.
    if let [Value::Str(head), _, ..] = args
        && !head.is_shared()
        && let Value::Str(mut head) = take(args, 0)
    {
        // The appended part is built as a text of its own first. It is charged together with the whole, because two separate
        // requests could both be granted although there is no room for both.
        m.charge(bytes.saturating_mul(2).saturating_sub(head.as_str().len()))?;
        let mut tail = String::new();
        for arg in args.iter().skip(1) {
            write_str(m, arg, &mut tail)?;
        }
        head.push_str(&tail);
        return Ok(Value::Str(head));
    }
    let mut out = String::with_capacity(bytes);
    for arg in args.iter() {
        write_str(m, arg, &mut out)?;
    }
    Ok(Value::from(out))
}

/// Appends one argument.
type Write = fn(&mut Machine, &Value, &mut String) -> Result<(), Raised>;

fn joined(m: &mut Machine, args: &[Value], write: Write) -> Result<String, Raised> {
    weigh(m, args)?;
    let mut out = String::new();
    for (index, arg) in args.iter().enumerate() {
        if index > 0 {
            out.push(' ');
        }
        write(m, arg, &mut out)?;
    }
    Ok(out)
}

fn pr_str(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    joined(m, args, write_pr).map(Value::from)
}

fn prn_str(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(Value::from(joined(m, args, write_pr)? + "\n"))
}

fn print_str(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    joined(m, args, write_print).map(Value::from)
}

fn println_str(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(Value::from(joined(m, args, write_print)? + "\n"))
}

fn println(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let line = joined(m, args, write_print)?;
    m.print(line)?;
    Ok(Value::Nil)
}

fn prn(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let line = joined(m, args, write_pr)?;
    m.print(line)?;
    Ok(Value::Nil)
}

fn char(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    if let Value::Str(text) = at(args, 0)
        && text.count() == 1
    {
        return Ok(take(args, 0));
    }
    let code = at(args, 0).as_int().and_then(|code| u32::try_from(code).ok()).and_then(char::from_u32);
    match code {
        Some(c) => Ok(Value::from(String::from(c))),
        None => Err(expected(m, "char", "a character or its code", 0, at(args, 0))),
    }
}

fn name(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    match take(args, 0) {
        Value::Keyword(name) | Value::Symbol(name) | Value::Str(name) => Ok(Value::Str(name)),
        other => Err(expected(m, "name", "a keyword, symbol or string", 0, &other)),
    }
}

/// Whether a keyword of this name has a readable form.
fn is_keyword_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && chars.all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '?' | '!'))
}

fn keyword(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    match take(args, 0) {
        Value::Nil => Ok(Value::Nil),
        Value::Keyword(name) => Ok(Value::Keyword(name)),
        Value::Str(name) | Value::Symbol(name) if is_keyword_name(name.as_str()) => Ok(Value::Keyword(name)),
        Value::Str(name) | Value::Symbol(name) => {
            let text = format!("{:?} is not a valid keyword name", excerpt(name.as_str()));
            Err(m.raise_with_hint(ErrorKind::TypeError, text, "a name has letters, digits and - _ ? ! and begins with a letter"))
        }
        other => Err(expected(m, "keyword", "a string", 0, &other)),
    }
}

fn symbol(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    match take(args, 0) {
        Value::Symbol(name) | Value::Str(name) | Value::Keyword(name) | Value::Var(name) => Ok(Value::Symbol(name)),
        other => Err(expected(m, "symbol", "a string", 0, &other)),
    }
}

fn namespace(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    match at(args, 0) {
        Value::Keyword(name) | Value::Symbol(name) => {
            let space = name.as_str().split_once('/').filter(|(space, name)| !space.is_empty() && !name.is_empty());
            Ok(space.map_or(Value::Nil, |(space, _)| Value::Str(Text::new(space))))
        }
        other => Err(expected(m, "namespace", "a keyword or symbol", 0, other)),
    }
}
