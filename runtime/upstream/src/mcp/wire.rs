//! JSON-RPC frames: encodes requests, and classifies answers without decoding payloads.

use std::borrow::Cow;
use std::fmt::Write;

use bytes::Bytes;
use ptc_catalog::Era;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Name of the client in the handshake.
pub(crate) const CLIENT_NAME: &str = "ptc_lisp";
/// Version of the client.
pub(crate) const CLIENT_VERSION: &str = env!("CARGO_PKG_VERSION");

/// Error codes that only servers of the stateless era use: header mismatch, missing capability, unsupported revision.
pub(crate) const MODERN_CODES: [i64; 3] = [-32020, -32021, UNSUPPORTED_REVISION];
/// The server does not support the requested revision.
pub(crate) const UNSUPPORTED_REVISION: i64 = -32022;

/// A frame in either direction, borrowed from its bytes.
#[derive(Deserialize)]
pub(crate) struct Frame<'a> {
    #[serde(borrow, default)]
    pub(crate) id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(crate) result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) error: Option<&'a RawValue>,
}

/// The meaning of a frame for a client.
pub(crate) enum ServerMessage<'a> {
    /// The response to the request with this id.
    Response(u64, super::Response),
    /// An error without an id, since the server could not parse the request.
    Unaddressed(RpcError),
    /// A request of the server. The id is returned unchanged.
    Request(&'a RawValue, Cow<'a, str>),
    /// A notification, or an unknown message.
    Other,
}

impl<'a> Frame<'a> {
    /// Parses the frames in `bytes`: one, or several if the server sends a batch, which revision 2025-03-26 permits.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Vec<Frame<'a>>, serde_json::Error> {
        if bytes.trim_ascii_start().first() == Some(&b'[') {
            return serde_json::from_slice(bytes);
        }
        Ok(vec![serde_json::from_slice(bytes)?])
    }

    /// Classifies the frame.
    pub(crate) fn classify(self) -> ServerMessage<'a> {
        match (self.method, self.id) {
            (Some(method), Some(id)) => ServerMessage::Request(id, method),
            (Some(_), None) => ServerMessage::Other,
            (None, id) => {
                let response = match (self.error, self.result) {
                    (Some(error), _) => super::Response::Error(RpcError::read(error)),
                    (None, Some(result)) => super::Response::Result(result.to_owned()),
                    (None, None) => super::Response::Result(RawValue::NULL.to_owned()),
                };
                match (id.and_then(|id| parse_id(id.get())), response) {
                    (Some(id), response) => ServerMessage::Response(id, response),
                    (None, super::Response::Error(error)) => ServerMessage::Unaddressed(error),
                    (None, super::Response::Result(_)) => ServerMessage::Other,
                }
            }
        }
    }
}

/// Parses a body as a JSON-RPC error for any request.
#[cfg(feature = "http")]
pub(crate) fn error_in(body: &str) -> Option<RpcError> {
    #[derive(Deserialize)]
    struct Version<'a> {
        #[serde(borrow)]
        jsonrpc: Cow<'a, str>,
    }
    let single = body.trim_start().strip_prefix('[').is_none();
    if single && serde_json::from_str::<Version<'_>>(body).ok()?.jsonrpc != "2.0" {
        return None;
    }
    let frames = Frame::parse(body.as_bytes()).ok()?;
    let errors = frames.into_iter().filter_map(|frame| Some(RpcError::read(frame.error?)));
    errors.into_iter().find(|error| error.code != 0)
}

/// Parses a raw id. Ours are numbers, which some servers return as strings.
pub(crate) fn parse_id(id: &str) -> Option<u64> {
    id.trim_matches('"').parse().ok()
}

/// A JSON-RPC error.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct RpcError {
    #[serde(default)]
    pub(crate) code: i64,
    #[serde(default)]
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) data: Option<Box<RawValue>>,
}

impl RpcError {
    fn read(raw: &RawValue) -> RpcError {
        serde_json::from_str(raw.get()).unwrap_or_else(|_| RpcError { code: 0, message: raw.get().to_owned(), data: None })
    }

    /// Formats the error as `Invalid arguments (JSON-RPC error -32602)`, with short string data.
    pub(crate) fn describe(&self) -> String {
        let mut text = crate::fault::excerpt(&self.message, 2000).into_owned();
        if text.is_empty() {
            "the server reports an error without a message".clone_into(&mut text);
        }
        let _ = write!(text, " (JSON-RPC error {})", self.code);
        if let Some(data) = self.data.as_deref().filter(|d| d.get() != "null") {
            let _ = write!(text, ": {}", crate::fault::excerpt(data.get(), 500));
        }
        text
    }

    /// Returns the revisions that a server of the stateless era reports as supported.
    pub(crate) fn supported_revisions(&self) -> Vec<String> {
        #[derive(Deserialize)]
        struct Data {
            #[serde(default)]
            supported: Vec<String>,
        }
        let data = self.data.as_deref().and_then(|d| serde_json::from_str::<Data>(d.get()).ok());
        data.map(|d| d.supported).unwrap_or_default()
    }
}

/// A frame to a server, without a line end. The arguments of a call may be large and are not copied into it.
#[derive(Debug, Clone, Default)]
pub struct OutgoingFrame {
    /// The part before the arguments, or the whole frame if there are none.
    pub(crate) head: Bytes,
    /// JSON text of the arguments.
    pub(crate) arguments: Bytes,
    /// The part after the arguments.
    pub(crate) tail: &'static [u8],
}

impl OutgoingFrame {
    /// Returns the parts in order, without copying them.
    pub(crate) fn parts(&self) -> [Bytes; 3] {
        [self.head.clone(), self.arguments.clone(), Bytes::from_static(self.tail)]
    }
}

impl From<Vec<u8>> for OutgoingFrame {
    fn from(whole: Vec<u8>) -> OutgoingFrame {
        OutgoingFrame { head: whole.into(), ..OutgoingFrame::default() }
    }
}

impl From<String> for OutgoingFrame {
    fn from(whole: String) -> OutgoingFrame {
        whole.into_bytes().into()
    }
}

/// Encodes a request. `params` is the JSON text of an object, to which `arguments` are added as the last member. In the stateless
/// era `_meta` is inserted as the first member.
pub(crate) fn request(
    id: u64,
    method: &str,
    params: &str,
    arguments: Option<&Bytes>,
    negotiated: Option<(Era, &str)>,
) -> OutgoingFrame {
    let mut head = request_head(id, method, params, negotiated);
    let Some(arguments) = arguments else {
        head.push('}');
        return head.into();
    };
    let open = head.trim_end().strip_suffix('}').unwrap_or(&head).trim_end().len();
    head.truncate(open);
    head.push_str(if head.ends_with('{') { r#""arguments":"# } else { r#","arguments":"# });
    OutgoingFrame { head: head.into(), arguments: arguments.clone(), tail: b"}}" }
}

/// Encodes a request without the closing bracket.
fn request_head(id: u64, method: &str, params: &str, negotiated: Option<(Era, &str)>) -> String {
    let mut frame = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":"#);
    frame.reserve(params.len() + 256);
    match negotiated {
        Some((Era::Stateless, revision)) => {
            let rest = params.trim_start().strip_prefix('{').unwrap_or("}").trim_start();
            let comma = if rest.starts_with('}') { "" } else { "," };
            let _ = write!(
                frame,
                r#"{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"{revision}","io.modelcontextprotocol/clientInfo":{{"name":"{CLIENT_NAME}","version":"{CLIENT_VERSION}"}},"io.modelcontextprotocol/clientCapabilities":{{}}}}{comma}{rest}"#
            );
        }
        _ => frame.push_str(params),
    }
    frame
}

/// Encodes a notification without parameters.
pub(crate) fn notification(method: &str) -> Vec<u8> {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#).into_bytes()
}

/// Encodes `notifications/cancelled` for a request of this client.
pub(crate) fn cancelled(id: u64) -> Vec<u8> {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"the caller stopped waiting"}}}}"#
    )
    .into_bytes()
}

/// Encodes the answer to a request of the server. The client declares no capabilities, so that only `ping` and an empty list of
/// roots have a result.
pub(crate) fn answer(id: &RawValue, method: &str) -> Vec<u8> {
    let id = id.get();
    match method {
        "ping" => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#),
        "roots/list" => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"roots":[]}}}}"#),
        _ => format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"this client does not implement that method"}}}}"#
        ),
    }
    .into_bytes()
}

/// Formats `text` as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_metadata_in_the_stateless_era_only() {
        let stateless = |params| request(7, "tools/call", params, None, Some((Era::Stateless, "2026-07-28")));
        for params in ["{}", r#"{"name":"x","arguments":{}}"#, " { } "] {
            let value: serde_json::Value = serde_json::from_slice(&stateless(params).head).unwrap();
            assert_eq!(value["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28", "{params}");
        }
        let plain = request(7, "ping", "{}", None, None);
        assert_eq!(&plain.parts().concat(), br#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{}}"#);
    }

    #[test]
    fn arguments_are_the_last_member_of_params_and_are_not_copied() {
        let arguments = Bytes::from_static(br#"{"a":[1]}"#);
        for negotiated in [None, Some((Era::Handshake, "2025-11-25")), Some((Era::Stateless, "2026-07-28"))] {
            for params in ["{}", " { } ", r#"{"name":"x"}"#, r#"{"name":"x"} "#] {
                let frame = request(7, "tools/call", params, Some(&arguments), negotiated);
                assert_eq!(frame.arguments.as_ptr(), arguments.as_ptr());
                let value: serde_json::Value = serde_json::from_slice(&frame.parts().concat()).unwrap();
                assert_eq!(value["params"]["arguments"]["a"][0], 1, "{params}");
                assert_eq!(value["params"].get("name").is_some(), params.contains("name"), "{params}");
            }
        }
    }

    #[test]
    fn frames_are_classified() {
        let sort = |text: &str| match Frame::parse(text.as_bytes()).unwrap().remove(0).classify() {
            ServerMessage::Response(id, super::super::Response::Result(raw)) => format!("{id} {}", raw.get()),
            ServerMessage::Response(id, super::super::Response::Error(error)) => format!("{id} {}", error.describe()),
            ServerMessage::Unaddressed(error) => format!("- {}", error.describe()),
            ServerMessage::Request(id, method) => format!("{} asks {method}", id.get()),
            ServerMessage::Other => "other".to_owned(),
        };
        let cases = [
            (r#"{"jsonrpc":"2.0","id":1,"result":{"a": 1e400}}"#, r#"1 {"a": 1e400}"#),
            (r#"{"result":null,"id":"2"}"#, "2 null"),
            (r#"{"id":3,"error":{"code":-32602,"message":"no"}}"#, "3 no (JSON-RPC error -32602)"),
            (
                r#"{"id":null,"error":{"code":-32700,"message":""}}"#,
                "- the server reports an error without a message (JSON-RPC error -32700)",
            ),
            (r#"{"id":"a\"b","method":"ping"}"#, r#""a\"b" asks ping"#),
            (r#"{"method":"notifications/message","params":{}}"#, "other"),
        ];
        for (text, expected) in cases {
            assert_eq!(sort(text), expected);
        }
    }
}
