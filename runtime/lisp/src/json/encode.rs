//! Values to compact JSON.

use std::fmt::{self, Write};

use crate::Value;
use crate::collection::{Children, Map};
use crate::machine::{Machine, Raised};
use crate::print::{is_longer, work_of};
use crate::value::Kind;

/// Why a value has no JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EncodeError {
    /// A value that JSON cannot hold.
    Unsupported {
        /// Where it stands, such as `[3].user.name`; empty at the top.
        path: String,
        /// What it is, with its article.
        found: &'static str,
    },
    /// A map of which two keys have one text: whoever reads the object would see one of their values.
    OneKey {
        /// Where the map stands; empty at the top.
        path: String,
        /// Both keys as they are read in a program.
        keys: [String; 2],
    },
    /// The text would be longer than allowed.
    TooLarge {
        /// The bytes allowed.
        max_bytes: usize,
    },
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EncodeError::Unsupported { path, found } if path.is_empty() => write!(f, "{found} has no JSON form"),
            EncodeError::Unsupported { path, found } => write!(f, "{found} at {path} has no JSON form"),
            EncodeError::OneKey { path, keys: [one, other] } => {
                write!(f, "the keys {one} and {other}")?;
                if !path.is_empty() {
                    write!(f, " at {path}")?;
                }
                f.write_str(" are one in JSON")
            }
            EncodeError::TooLarge { max_bytes } => write!(f, "the JSON text is longer than {max_bytes} bytes"),
        }
    }
}

impl std::error::Error for EncodeError {}

/// Writes `value` as compact JSON of at most `max_bytes`.
///
/// Keywords are written as strings without their colon, dates and times as ISO text, sets as arrays in order, number and boolean keys as their text. A
/// function, a regex, a var, an infinite double or a container as a key has no JSON form, nor has a map of which two keys have one text.
pub fn encode(value: &Value, max_bytes: usize) -> Result<String, EncodeError> {
    encode_while(value, max_bytes, Keys::Any, |_| true)
}

/// [`encode_until`] where only names are keys: a number or a boolean as a key has no JSON form either, since its text might be another
/// key's. Typed results are encoded with it.
pub fn encode_named_until(value: &Value, max_bytes: usize, is_over: &dyn Fn() -> bool) -> Result<String, EncodeError> {
    encode_while(value, max_bytes, Keys::Names, |_| !is_over())
}

/// [`encode`] that ends where `is_over` says so, as if the text were too long: digits of many large integers take their time. It is
/// asked between any two of them, and now and then.
pub fn encode_until(value: &Value, max_bytes: usize, is_over: &dyn Fn() -> bool) -> Result<String, EncodeError> {
    encode_while(value, max_bytes, Keys::Any, |_| !is_over())
}

/// [`encode_until`] at the end of a text that exists, which grows by at most `max_bytes`. Where the text has room for what
/// [`measure`](super::measure) has found, it is not allocated anew.
pub fn encode_to(out: &mut String, value: &Value, max_bytes: usize, is_over: &dyn Fn() -> bool) -> Result<(), EncodeError> {
    encode_into(out, value, max_bytes, Keys::Any, |_| !is_over())
}

/// What may be a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keys {
    Names,
    /// Numbers and booleans too, as their text.
    Any,
}

/// [`encode`] on the account of a program.
pub(crate) fn encode_metered(m: &mut Machine, value: &Value, max_bytes: usize) -> Result<Result<String, EncodeError>, Raised> {
    let mut raised = None;
    let encoded = encode_while(value, max_bytes, Keys::Any, |work| {
        raised = m.tick(work).err();
        raised.is_none()
    });
    raised.map_or(Ok(encoded), Err)
}

/// Ends as if the text were too long where `go_on` says no, which is asked now and then with the work done since.
fn encode_while(value: &Value, max_bytes: usize, keys: Keys, go_on: impl FnMut(u32) -> bool) -> Result<String, EncodeError> {
    let mut out = String::new();
    encode_into(&mut out, value, max_bytes, keys, go_on)?;
    Ok(out)
}

fn encode_into(
    out: &mut String,
    value: &Value,
    max_bytes: usize,
    keys: Keys,
    mut go_on: impl FnMut(u32) -> bool,
) -> Result<(), EncodeError> {
    const OFTEN: u32 = 1024;
    let end = out.len().saturating_add(max_bytes);
    let mut steps = 0_u32;
    let mut work: Vec<Frame<'_>> = Vec::new();
    let mut next = Some(value);
    loop {
        if let Some(value) = next.take() {
            steps = steps.saturating_add(work_of(value));
            let stop = steps >= OFTEN && !go_on(std::mem::take(&mut steps));
            if stop || is_longer(value, end.saturating_sub(out.len())) {
                return Err(EncodeError::TooLarge { max_bytes });
            }
            match Children::shown(value) {
                None => leaf(value, out).map_err(|found| EncodeError::Unsupported { path: path(&work), found })?,
                Some(children) => {
                    let map = matches!(value, Value::Map(_));
                    out.push(if map { '{' } else { '[' });
                    work.push(Frame { children, map, mixed: mixed(value), index: 0, key: None });
                }
            }
        }
        if out.len() > end {
            return Err(EncodeError::TooLarge { max_bytes });
        }
        let Some(frame) = work.last_mut() else { return Ok(()) };
        let Some(child) = frame.children.next() else {
            out.push(if frame.map { '}' } else { ']' });
            work.pop();
            continue;
        };
        if frame.index > 0 {
            out.push(',');
        }
        frame.index += 1;
        if frame.map {
            frame.key = Some(child);
            next = frame.children.next();
            steps = steps.saturating_add(work_of(child));
            if is_longer(child, end.saturating_sub(out.len())) {
                return Err(EncodeError::TooLarge { max_bytes });
            }
            let other = frame.mixed.and_then(|map| same_text(map, child));
            if let Err(found) = key(child, keys, out) {
                work.pop();
                return Err(EncodeError::Unsupported { path: path(&work), found });
            }
            if let Some(other) = other {
                work.pop();
                let keys = [child, &other].map(|key| crate::print::preview(key, 60).text);
                return Err(EncodeError::OneKey { path: path(&work), keys });
            }
            out.push(':');
        } else {
            next = Some(child);
        }
    }
}

struct Frame<'a> {
    children: Children<'a>,
    map: bool,
    /// The map where its keys are of several kinds.
    mixed: Option<&'a Map>,
    index: usize,
    key: Option<&'a Value>,
}

/// A map with keys of several kinds. Keys of one kind have texts as different as they are.
fn mixed(value: &Value) -> Option<&Map> {
    let Value::Map(map) = value else { return None };
    let mut kinds = map.iter().map(|(key, _)| key.kind());
    let first = kinds.next()?;
    kinds.any(|kind| kind != first).then_some(map)
}

/// Another key with the text of this one. Of two such keys one at least is a name, and is found from the other.
fn same_text(map: &Map, key: &Value) -> Option<Value> {
    let text = match key {
        Value::Str(text) | Value::Keyword(text) | Value::Symbol(text) => text.clone(),
        Value::Int(_) | Value::BigInt(_) | Value::Double(_) | Value::False | Value::True | Value::Temporal(_) => {
            let mut text = String::new();
            leaf(key, &mut text).ok()?;
            text.trim_matches('"').into()
        }
        _ => return None,
    };
    let names = [Value::Str(text.clone()), Value::Keyword(text.clone()), Value::Symbol(text)];
    names.into_iter().find(|name| name.kind() != key.kind() && map.get(name).is_some())
}

/// Bytes of a path in a message.
const MAX_PATH: usize = 1_000;

fn path(work: &[Frame<'_>]) -> String {
    let mut path = String::new();
    for frame in work {
        if path.len() > MAX_PATH {
            path.truncate(path.floor_char_boundary(MAX_PATH));
            path.push('…');
            break;
        }
        match frame.key {
            Some(key) => {
                if !path.is_empty() {
                    path.push('.');
                }
                match key.as_name() {
                    Some(name) => path.push_str(name),
                    None => path.push_str(&crate::print::preview(key, 60).text),
                }
            }
            None => {
                let _ = write!(path, "[{}]", frame.index.saturating_sub(1));
            }
        }
    }
    path
}

fn leaf(value: &Value, out: &mut String) -> Result<(), &'static str> {
    match value {
        Value::Nil => out.push_str("null"),
        Value::False => out.push_str("false"),
        Value::True => out.push_str("true"),
        Value::Int(i) => integer(*i, out),
        Value::BigInt(big) => {
            let _ = write!(out, "{big}");
        }
        Value::Double(d) if d.get().is_finite() => out.push_str(zmij::Buffer::new().format_finite(d.get())),
        Value::Double(d) => return Err(if d.get().is_nan() { "NaN" } else { "an infinite number" }),
        Value::Str(text) | Value::Keyword(text) | Value::Symbol(text) => string(text.as_str(), out),
        Value::Temporal(temporal) => {
            let _ = write!(out, "\"{temporal}\"");
        }
        other => return Err(other.kind().described()),
    }
    Ok(())
}

fn integer(i: i64, out: &mut String) {
    let _ = write!(out, "{i}");
}

fn key(key: &Value, keys: Keys, out: &mut String) -> Result<(), &'static str> {
    match key {
        Value::Str(_) | Value::Keyword(_) | Value::Symbol(_) | Value::Temporal(_) => leaf(key, out),
        Value::Int(_) | Value::BigInt(_) | Value::Double(_) | Value::False | Value::True if keys == Keys::Any => {
            out.push('"');
            leaf(key, out)?;
            out.push('"');
            Ok(())
        }
        _ => Err(match key.kind() {
            Kind::Nil => "the key nil",
            Kind::Int | Kind::BigInt => "an integer as a key",
            Kind::Bool => "a boolean as a key",
            Kind::Double => "a double as a key",
            Kind::Vector => "a vector as a key",
            Kind::Map => "a map as a key",
            Kind::Set => "a set as a key",
            _ => "a function as a key",
        }),
    }
}

/// Appends a JSON string with its quotes.
pub(crate) fn string(text: &str, out: &mut String) {
    out.push('"');
    let mut from = 0;
    for (at, b) in text.bytes().enumerate() {
        if b >= 0x20 && b != b'"' && b != b'\\' {
            continue;
        }
        out.push_str(text.get(from..at).unwrap_or_default());
        from = at + 1;
        match b {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x08 => out.push_str("\\b"),
            0x0C => out.push_str("\\f"),
            _ => {
                let _ = write!(out, "\\u{b:04x}");
            }
        }
    }
    out.push_str(text.get(from..).unwrap_or_default());
    out.push('"');
}
