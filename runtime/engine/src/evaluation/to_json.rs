//! The JSON form of values: the contract of `validated`.

use std::fmt;

use ptc_lisp::Value;
use ptc_lisp::json::{self, EncodeError};
use serde_json::value::RawValue;

/// Maximum bytes of a value as JSON.
const MAX_JSON_BYTES: usize = 64 * 1024 * 1024;

/// A value without a JSON form.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotJson {
    /// The path, such as `rows[0].ts`, or `<root>` for the whole value.
    pub path: String,
    /// The reason, with the actual value.
    pub why: String,
}

impl fmt::Display for NotJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "non-JSON-encodable value at {}: {}", self.path, self.why)
    }
}

impl std::error::Error for NotJson {}

/// Converts a value to JSON, with exact numbers of any size. Keywords become strings without their colon, dates and times ISO
/// 8601 text, sets arrays. Keys must be strings or keywords. Other keys, two keys with the same text, functions, patterns and
/// numbers that are not finite are rejected with their path.
///
/// ```
/// use ptc_lisp::{Program, Run};
/// use ptc_engine::evaluation::to_json::to_json_value;
///
/// let program = Program::compile("{:rows [{:ts inc}]}")?;
/// let value = Run::new(&program).execute_on_thread().result?;
/// let fault = to_json_value(&value).unwrap_err();
/// assert_eq!(fault.to_string(), "non-JSON-encodable value at rows[0].ts: a function has no JSON form");
/// # Ok::<(), ptc_lisp::Error>(())
/// ```
///
/// # Errors
///
/// Returns [`NotJson`] for the first value or key without a JSON form, for two keys with the same text, and for a JSON text of more
/// than 64 MiB.
pub fn to_json_value(value: &Value) -> Result<Box<RawValue>, NotJson> {
    let at = |path: String| if path.is_empty() { "<root>".to_owned() } else { path };
    let text = json::encode_named_until(value, MAX_JSON_BYTES, &|| false).map_err(|why| match why {
        EncodeError::Unsupported { path, found } => NotJson { path: at(path), why: format!("{found} has no JSON form") },
        EncodeError::OneKey { path, keys: [one, other] } => {
            NotJson { path: at(path), why: format!("the keys {one} and {other} are one in JSON") }
        }
        EncodeError::TooLarge { max_bytes } => {
            NotJson { path: "<root>".to_owned(), why: format!("it is longer than {max_bytes} bytes") }
        }
    })?;
    RawValue::from_string(text).map_err(|why| NotJson { path: "<root>".to_owned(), why: why.to_string() })
}
