//! Encodes values as compact JSON.

use std::fmt::{self, Write};

use crate::Value;
use crate::collection::{Children, Map};
use crate::machine::{Machine, Raised};
use crate::print::{is_longer, work_of};
use crate::value::Kind;

/// Reports why a value cannot be encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EncodeError {
    /// JSON cannot represent a value of this kind.
    Unsupported {
        /// The path of the value, such as `[3].user.name`. Empty at the top.
        path: String,
        /// The kind of the value, with its article.
        found: &'static str,
    },
    /// Two keys of a map are encoded as the same text, so that a reader of the object would see only one of their values.
    OneKey {
        /// The path of the map. Empty at the top.
        path: String,
        /// Both keys in the syntax of programs.
        keys: [String; 2],
    },
    /// The text would be too long.
    TooLarge {
        /// The maximum in bytes.
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

/// Encodes `value` as compact JSON of at most `max_bytes`.
///
/// Keywords are written as strings without their colon, dates and times as ISO 8601 text, sets as arrays in order, number and
/// boolean keys as their text.
///
/// # Errors
///
/// A function, a regex, a var, an infinite double, and a container as a key have no JSON form. Neither has a map with two keys of
/// the same text.
pub fn encode(value: &Value, max_bytes: usize) -> Result<String, EncodeError> {
    encode_while(value, max_bytes, Keys::Any, |_| true)
}

/// Like [`encode_until`], but accepts only names as keys. Numbers and booleans are rejected as keys, since their text might equal
/// another key's. Typed results are encoded with this function.
///
/// # Errors
///
/// Returns an error as [`encode_until`] does, and for a key that is not a name.
pub fn encode_named_until(value: &Value, max_bytes: usize, is_over: &dyn Fn() -> bool) -> Result<String, EncodeError> {
    encode_while(value, max_bytes, Keys::Names, |_| !is_over())
}

/// Like [`encode`], but fails with [`EncodeError::TooLarge`] once `is_over` returns true: formatting many large integers takes
/// time. `is_over` is called between any two of them, and regularly otherwise.
///
/// # Errors
///
/// Returns an error as [`encode`] does, and [`EncodeError::TooLarge`] once `is_over` returned true.
pub fn encode_until(value: &Value, max_bytes: usize, is_over: &dyn Fn() -> bool) -> Result<String, EncodeError> {
    encode_while(value, max_bytes, Keys::Any, |_| !is_over())
}

/// Like [`encode_until`], but appends to `out`, which grows by at most `max_bytes`. `out` is not reallocated if it has the
/// capacity that [`measure`](super::measure) computed.
///
/// # Errors
///
/// Returns an error as [`encode_until`] does.
pub fn encode_to(out: &mut String, value: &Value, max_bytes: usize, is_over: &dyn Fn() -> bool) -> Result<(), EncodeError> {
    encode_into(out, value, max_bytes, Keys::Any, |_| !is_over())
}

/// Which values are allowed as keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keys {
    Names,
    /// Names, and numbers and booleans as their text.
    Any,
}

/// Like [`encode`], but charges the work to the program.
pub(crate) fn encode_metered(m: &mut Machine, value: &Value, max_bytes: usize) -> Result<Result<String, EncodeError>, Raised> {
    let mut raised = None;
    let encoded = encode_while(value, max_bytes, Keys::Any, |work| {
        raised = m.tick(work).err();
        raised.is_none()
    });
    raised.map_or(Ok(encoded), Err)
}

/// Fails with `TooLarge` once `go_on` returns false. `go_on` is called regularly with the amount of work since its last call.
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
    const CHECK_INTERVAL: u32 = 1024;
    let end = out.len().saturating_add(max_bytes);
    let mut steps = 0_u32;
    let mut work: Vec<Frame<'_>> = Vec::new();
    let mut next = Some(value);
    loop {
        if let Some(value) = next.take() {
            steps = steps.saturating_add(work_of(value));
            let stop = steps >= CHECK_INTERVAL && !go_on(std::mem::take(&mut steps));
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
    /// The map, if its keys are of several kinds.
    mixed: Option<&'a Map>,
    index: usize,
    key: Option<&'a Value>,
}

/// Returns the map if its keys are of several kinds. Different keys of one kind have different texts.
fn mixed(value: &Value) -> Option<&Map> {
    let Value::Map(map) = value else { return None };
    let mut kinds = map.iter().map(|(key, _)| key.kind());
    let first = kinds.next()?;
    kinds.any(|kind| kind != first).then_some(map)
}

/// Finds another key with the text of this one. At least one of two such keys is a name, and it is found from the other.
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

/// Maximum length of a path in a message, in bytes.
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
