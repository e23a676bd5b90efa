//! Parses a line into a message. Ids and payloads stay raw JSON text. Only the few members that the protocol reads are parsed, in
//! one pass over the bytes, independent of the payload's size.

use std::borrow::Cow;

use ptc_lisp::json::{DecodeError, Walk};

use super::reply::{ErrorBody, INVALID_REQUEST, PARSE_ERROR};

/// Maximum bytes of an id as raw JSON. The server copies an id several times and keeps it until the answer.
pub const MAX_ID_BYTES: usize = 256;

/// Maximum number of members of `arguments`. Many short ones would need several times the memory of the line.
pub const MAX_ARGUMENTS: usize = 1_000;

/// A message from the client.
#[derive(Debug)]
pub enum Message<'a> {
    /// A message that requires an answer.
    Request {
        /// The id as raw JSON: a string, a number or null.
        id: &'a str,
        /// The method.
        method: Cow<'a, str>,
        /// The parameters.
        params: Params<'a>,
    },
    /// A message without an answer.
    Notification {
        /// The method.
        method: Cow<'a, str>,
        /// The parameters.
        params: Params<'a>,
    },
}

/// The reason why a line is not a valid message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Invalid JSON, code -32700.
    Parse,
    /// Invalid JSON because of a byte order mark, code -32700.
    Marked,
    /// Invalid JSON because of UTF-16, code -32700.
    Utf16,
    /// Not a valid JSON-RPC message, code -32600.
    Invalid,
    /// An id of this many bytes, which is more than [`MAX_ID_BYTES`], code -32600.
    LongId(usize),
}

impl Refusal {
    /// Returns the error for the client.
    pub fn body(self) -> ErrorBody {
        match self {
            Refusal::Parse => ErrorBody::new(PARSE_ERROR, "Parse error: the line is not JSON"),
            Refusal::Marked => {
                ErrorBody::new(PARSE_ERROR, "Parse error: the line begins with a byte order mark; send UTF-8 without one")
            }
            Refusal::Utf16 => ErrorBody::new(PARSE_ERROR, "Parse error: the line looks like UTF-16; send UTF-8"),
            Refusal::Invalid => ErrorBody::new(INVALID_REQUEST, "Invalid Request: not a JSON-RPC 2.0 request"),
            Refusal::LongId(bytes) => {
                let message = format!("Invalid Request: the id has {bytes} bytes, it may have {MAX_ID_BYTES}; send a shorter id");
                ErrorBody::new(INVALID_REQUEST, message)
            }
        }
    }
}

/// The members of `params` that the protocol reads, as raw JSON. Each is `None` unless `params` is an object that contains it.
#[derive(Debug, Default)]
pub struct Params<'a> {
    /// Whether the parameters are not an object.
    pub not_an_object: bool,
    /// `_meta`, which contains the envelope of the stateless era, and progress tokens.
    pub meta: Option<&'a str>,
    /// `protocolVersion` of `initialize`.
    pub protocol_version: Option<&'a str>,
    /// `name` of `tools/call`.
    pub name: Option<&'a str>,
    /// `arguments` of `tools/call`.
    pub arguments: Arguments<'a>,
    /// `requestId` of `notifications/cancelled`.
    pub request_id: Option<&'a str>,
    /// Whether a key was duplicated, which makes the message ambiguous.
    has_duplicate_key: bool,
}

/// `params.arguments` of a tool call: the members of an object in order, as raw JSON.
#[derive(Debug, Default)]
pub struct Arguments<'a> {
    /// The members. Of a duplicated name the last one counts here; other code reports duplicates as an error.
    pub members: Vec<(Cow<'a, str>, &'a str)>,
    /// The JSON type of the arguments if they are not an object.
    pub invalid_arguments_type: Option<&'static str>,
    /// Whether the call has more than [`MAX_ARGUMENTS`] arguments. Then `members` has only the first ones.
    pub has_too_many: bool,
}

impl<'a> Arguments<'a> {
    /// Returns the raw JSON of a member.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.members.iter().rev().find(|(n, _)| n == name).map(|(_, raw)| *raw)
    }

    /// Checks that they are an object or missing, and not too many.
    ///
    /// # Errors
    ///
    /// Returns a sentence if they are neither an object nor missing, or more than [`MAX_ARGUMENTS`].
    pub fn check(&self) -> Result<(), String> {
        if self.has_too_many {
            return Err(format!("`arguments` may have at most {MAX_ARGUMENTS} members"));
        }
        self.invalid_arguments_type.map_or(Ok(()), |found| Err(format!("`arguments` must be an object, got {found}")))
    }
}

/// Parses a line. Batches are rejected, since only the oldest supported revision has them.
///
/// # Errors
///
/// Returns [`Refusal::Parse`], [`Refusal::Marked`] or [`Refusal::Utf16`] if the line is not JSON in UTF-8, [`Refusal::LongId`]
/// for an id of more than [`MAX_ID_BYTES`], and [`Refusal::Invalid`] for other JSON that is neither a request nor a
/// notification of JSON-RPC 2.0. A message that repeats a member that the protocol reads is invalid too.
pub fn parse(line: &[u8]) -> Result<Message<'_>, Refusal> {
    // Ignored members must be valid UTF-8 too.
    let text = std::str::from_utf8(line).map_err(|_| unreadable(line))?;
    let mut wire = Wire::default();
    let mut walk = Walk::new(text);
    let is_object = walk.peek() == Some(b'{');
    let read = if is_object { walk.object(|walk, name| wire.read(walk, &name)) } else { walk.pass().map(drop) };
    read.and_then(|()| walk.end()).map_err(|_| unreadable(line))?;
    if !is_object || wire.has_duplicate_key || wire.jsonrpc != Some("\"2.0\"") {
        return Err(Refusal::Invalid);
    }
    // A message without a method is an answer, but the server sends no requests.
    let method = wire.method.ok_or(Refusal::Invalid)?;
    let method = string(method).ok_or(Refusal::Invalid)?;
    let params = wire.params.unwrap_or_default();
    if params.has_duplicate_key {
        return Err(Refusal::Invalid);
    }
    match wire.id {
        None => Ok(Message::Notification { method, params }),
        Some(id) if id.len() > MAX_ID_BYTES => Err(Refusal::LongId(id.len())),
        Some(id) if id == "null" || id.starts_with(['"', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) => {
            Ok(Message::Request { id, method, params })
        }
        Some(_) => Err(Refusal::Invalid),
    }
}

/// The members of a message that the protocol reads.
#[derive(Default)]
struct Wire<'a> {
    jsonrpc: Option<&'a str>,
    id: Option<&'a str>,
    method: Option<&'a str>,
    params: Option<Params<'a>>,
    /// Whether a key was duplicated, which makes the message ambiguous.
    has_duplicate_key: bool,
}

impl<'a> Wire<'a> {
    fn read(&mut self, walk: &mut Walk<'a>, name: &str) -> Result<(), DecodeError> {
        let place = match name {
            "jsonrpc" => &mut self.jsonrpc,
            "id" => &mut self.id,
            "method" => &mut self.method,
            "params" => {
                self.has_duplicate_key |= self.params.replace(Params::read(walk)?).is_some();
                return Ok(());
            }
            _ => return walk.pass().map(drop),
        };
        self.has_duplicate_key |= place.replace(walk.pass()?).is_some();
        Ok(())
    }
}

impl<'a> Params<'a> {
    fn read(walk: &mut Walk<'a>) -> Result<Params<'a>, DecodeError> {
        let mut params = Params::default();
        if walk.peek() != Some(b'{') {
            params.not_an_object = walk.pass()? != "null";
            return Ok(params);
        }
        let mut has_arguments = false;
        walk.object(|walk, name| {
            let place = match &*name {
                "_meta" => &mut params.meta,
                "protocolVersion" => &mut params.protocol_version,
                "name" => &mut params.name,
                "requestId" => &mut params.request_id,
                "arguments" => {
                    params.arguments = Arguments::read(walk)?;
                    params.has_duplicate_key |= std::mem::replace(&mut has_arguments, true);
                    return Ok(());
                }
                _ => return walk.pass().map(drop),
            };
            params.has_duplicate_key |= place.replace(walk.pass()?).is_some();
            Ok(())
        })?;
        Ok(params)
    }
}

impl<'a> Arguments<'a> {
    fn read(walk: &mut Walk<'a>) -> Result<Arguments<'a>, DecodeError> {
        let mut arguments = Arguments::default();
        if walk.peek() == Some(b'{') {
            walk.object(|walk, name| {
                let json = walk.pass()?;
                arguments.has_too_many |= arguments.members.len() >= MAX_ARGUMENTS;
                if !arguments.has_too_many {
                    arguments.members.push((name, json));
                }
                Ok(())
            })?;
        } else {
            arguments.invalid_arguments_type = Some(kind(walk.pass()?)).filter(|found| *found != "null");
        }
        Ok(arguments)
    }
}

/// Returns why a line is not JSON. The first bytes may show another encoding. The newline of UTF-16 leaves its second byte at the
/// start of the next line.
fn unreadable(line: &[u8]) -> Refusal {
    match line {
        [0xEF, 0xBB, 0xBF, ..] => Refusal::Marked,
        [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => Refusal::Utf16,
        _ if line.iter().take(4).any(|byte| *byte == 0) => Refusal::Utf16,
        _ => Refusal::Parse,
    }
}

/// Decodes a raw JSON string. Returns `None` for other types and for a string with a lone surrogate.
pub fn string(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str(raw).ok().map(Cow::Owned)
}

/// Returns the JSON type of a raw value for error messages.
pub fn kind(raw: &str) -> &'static str {
    match raw.as_bytes().first() {
        Some(b'"') => "string",
        Some(b'{') => "object",
        Some(b'[') => "array",
        Some(b't' | b'f') => "boolean",
        Some(b'n') => "null",
        _ if raw.contains(['.', 'e', 'E']) => "number",
        _ => "integer",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_are_not_parsed() {
        let line = br#"{"jsonrpc":"2.0","id":12345678901234567890123,"method":"tools/call","params":{"name":"t","arguments":{"n":1.50,"o":{"b":1,"a":2}}}}"#;
        let Ok(Message::Request { id, method, params }) = parse(line) else { panic!("a request") };
        assert_eq!((id, &*method, params.name), ("12345678901234567890123", "tools/call", Some("\"t\"")));
        assert_eq!(params.arguments.get("n"), Some("1.50"));
        assert_eq!(params.arguments.get("o"), Some(r#"{"b":1,"a":2}"#));
    }

    #[test]
    fn deep_nesting_does_not_recurse() {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let deep = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
            let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"q":{deep},"arguments":{{"c":{deep}}}}}}}"#);
            assert!(parse(line.as_bytes()).is_ok());
        }
    }

    #[test]
    fn other_encodings_are_named() {
        let line = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let wide =
            |bytes: fn(u16) -> [u8; 2]| format!("\u{feff}{line}\n{line}\n").encode_utf16().flat_map(bytes).collect::<Vec<u8>>();
        for stream in [wide(u16::to_le_bytes), wide(u16::to_be_bytes)] {
            for line in stream.split(|byte| *byte == b'\n').take(2) {
                assert_eq!(parse(line).err(), Some(Refusal::Utf16), "{line:?}");
            }
        }
        assert_eq!(parse(format!("\u{feff}{line}").as_bytes()).err(), Some(Refusal::Marked));
        assert_eq!(parse(b"\xff{}").err(), Some(Refusal::Parse));
        assert!(parse(line.as_bytes()).is_ok());
    }

    #[test]
    fn id_above_the_limit_is_refused() {
        for (length, refusal) in [(MAX_ID_BYTES, None), (MAX_ID_BYTES + 1, Some(Refusal::LongId(MAX_ID_BYTES + 1)))] {
            for id in ["1".repeat(length), format!("\"{}\"", "x".repeat(length - 2))] {
                let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
                assert_eq!(parse(line.as_bytes()).err(), refusal, "{line}");
            }
        }
    }

    #[test]
    fn json_types_are_named_and_strings_decoded() {
        for (raw, name) in
            [("\"a\"", "string"), ("1", "integer"), ("1.5", "number"), ("null", "null"), ("true", "boolean"), ("{}", "object")]
        {
            assert_eq!(kind(raw), name);
        }
        assert_eq!(string(r#""a\nb""#).as_deref(), Some("a\nb"));
        assert_eq!(string(r#""\ud800""#), None);
        assert_eq!(string("5"), None);
    }
}
