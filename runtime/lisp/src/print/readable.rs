//! Prints values in a form that reads back as an equal value.

use std::fmt::Write;

use crate::Value;
use crate::collection::Children;

/// Prints a value as EDN, without commas, with maps and sets in the order of their keys. Functions, regexes and vars have a
/// printed form, but functions cannot be read back. Dates and times print as their ISO text in quotes. A value that shares parts
/// may print much longer than its size in memory. Use [`crate::print::preview`] to bound the length.
pub fn readable(value: &Value) -> String {
    let mut out = String::new();
    write_within(value, usize::MAX, &mut out);
    out
}

/// Appends the printed form if it has at most `room` bytes. Otherwise returns false and leaves `out` unchanged.
pub(crate) fn write_within(value: &Value, room: usize, out: &mut String) -> bool {
    write_while(value, room, Strings::Quoted, out, |_| true)
}

/// How strings inside of a value are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strings {
    /// In quotes, as in a program.
    Quoted,
    /// Without quotes, as `print` shows them. This form cannot be read back.
    Plain,
}

/// The work of writing a value that is not a container. It is 1 for most. Digits of a large number take time quadratic in its
/// length.
pub(crate) fn work_of(value: &Value) -> u32 {
    match value {
        Value::BigInt(big) => u32::try_from((big.bits() / 512).saturating_pow(2) + 1).unwrap_or(u32::MAX),
        _ => 1,
    }
}

/// Whether a text or a large number certainly takes more than `room` bytes. This is decided without writing it.
pub(crate) fn is_longer(value: &Value, room: usize) -> bool {
    match value {
        Value::Str(text) => text.as_str().len() > room,
        // A digit has less than four bits.
        Value::BigInt(big) => big.bits() / 4 > room as u64,
        _ => false,
    }
}

/// Like [`write_within`], but also stops once `go_on` returns false. `go_on` is called regularly with the work since its last
/// call.
pub(crate) fn write_while(
    value: &Value,
    room: usize,
    strings: Strings,
    out: &mut String,
    mut go_on: impl FnMut(u32) -> bool,
) -> bool {
    const CHECK_INTERVAL: u32 = 1024;
    let mut work = 0_u32;
    let start = out.len();
    let limit = start.saturating_add(room);
    // Open containers with their closing characters, so that deep nesting does not use the native stack.
    let mut open: Vec<(Children<'_>, char)> = Vec::new();
    let mut first = true;
    let mut next = Some(value);
    loop {
        let left = limit.saturating_sub(out.len());
        let long = next.is_some_and(|value| is_longer(value, left));
        work = work.saturating_add(next.map_or(1, work_of));
        let stop = work >= CHECK_INTERVAL && !go_on(std::mem::take(&mut work));
        if stop || long || out.len() > limit {
            out.truncate(start);
            return false;
        }
        if let Some(value) = next {
            if !first {
                out.push(' ');
            }
            first = false;
            if let Some(children) = Children::shown(value) {
                let close = match value {
                    Value::Vector(_) => {
                        out.push('[');
                        ']'
                    }
                    Value::Set(_) => {
                        out.push_str("#{");
                        '}'
                    }
                    _ => {
                        out.push('{');
                        '}'
                    }
                };
                open.push((children, close));
                first = true;
            } else {
                match (strings, value) {
                    (Strings::Plain, Value::Str(text)) => out.push_str(text.as_str()),
                    (Strings::Plain, Value::Temporal(temporal)) => {
                        let _ = write!(out, "{temporal}");
                    }
                    _ => write_atom(value, out),
                }
            }
        } else if let Some((_, close)) = open.pop() {
            out.push(close);
            first = false;
        }
        match open.last_mut() {
            Some((children, _)) => next = children.next(),
            None if out.len() > limit => {
                out.truncate(start);
                return false;
            }
            None => return true,
        }
    }
}

/// Appends a value that is not a container.
pub(crate) fn write_atom(value: &Value, out: &mut String) {
    match value {
        Value::Nil => out.push_str("nil"),
        Value::False => out.push_str("false"),
        Value::True => out.push_str("true"),
        Value::Int(i) => {
            let _ = write!(out, "{i}");
        }
        Value::BigInt(big) => {
            let _ = write!(out, "{big}");
        }
        Value::Double(d) => crate::number::write_double(d.get(), out),
        Value::Str(text) => write_quoted(text.as_str(), out),
        Value::Keyword(name) => {
            out.push(':');
            out.push_str(name.as_str());
        }
        Value::Symbol(name) => out.push_str(name.as_str()),
        Value::Temporal(temporal) => {
            let _ = write!(out, "\"{temporal}\"");
        }
        Value::InfiniteSeq(_) => out.push_str("#endless"),
        Value::Var(name) => {
            out.push_str("#'");
            out.push_str(name.as_str());
        }
        Value::Regex(pattern) => write_regex(pattern.source(), out),
        Value::Builtin(row) => {
            let _ = write!(out, "#fn[{}]", row.full_name());
        }
        Value::Composed(composed) => {
            let _ = write!(out, "#fn[{}]", composed.name());
        }
        Value::Closure(closure) => {
            let _ = write!(out, "#fn[{}]", closure.name().unwrap_or("anonymous"));
        }
        Value::Vector(_) | Value::Map(_) | Value::Set(_) => {
            write_within(value, usize::MAX, out);
        }
    }
}

/// Appends a string in double quotes.
pub(crate) fn write_quoted(text: &str, out: &mut String) {
    out.push('"');
    let mut from = 0;
    for (at, b) in text.bytes().enumerate() {
        let escape = match b {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x08 => "\\b",
            0x0C => "\\f",
            _ => continue,
        };
        out.push_str(text.get(from..at).unwrap_or_default());
        out.push_str(escape);
        from = at + 1;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    out.push('"');
}

/// Appends `#"…"`. A double quote inside is escaped, which does not change the meaning of the pattern.
fn write_regex(source: &str, out: &mut String) {
    out.push_str("#\"");
    let mut escaped = false;
    for c in source.chars() {
        if c == '"' && !escaped {
            out.push('\\');
        }
        escaped = c == '\\' && !escaped;
        out.push(c);
    }
    out.push('"');
}
