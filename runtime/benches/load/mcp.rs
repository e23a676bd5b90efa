//! MCP over HTTP as bytes: sessions, requests that are built once, and classification of answers.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};

use memchr::memmem;

use crate::connection::Connection;
use crate::record::Class;

/// Bearer token of the server under test; the peers ignore it.
pub(crate) const TOKEN: &str = "fake-token-of-the-load-benchmark-0123456789";

const INITIALIZE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"#,
    r#""clientInfo":{"name":"load","version":"1"}}}"#
);
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// All request ids have ten digits, so that a request can be reused by overwriting its id.
const FIRST_ID: u32 = 1_000_000_000;
const ID_DIGITS: usize = 10;

/// The next request number. No id is used twice in a session.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// Reasons with which a server refuses a request.
const REFUSALS: [&str; 4] = ["busy", "session_busy", "shutting_down", "upstream_busy"];
/// Maximum bytes of a recorded reason.
const MAX_REASON: usize = 60;

/// Returns the number for the next request.
pub(crate) fn next_number() -> u32 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A protocol session of a server.
pub(crate) struct Session {
    address: SocketAddr,
    /// `None` if the server assigned no id.
    id: Option<String>,
}

/// A tool call.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) tool: &'a str,
    /// Arguments as a JSON object.
    pub(crate) arguments: &'a str,
    /// Bytes that a successful answer contains.
    pub(crate) expected: &'static str,
}

/// A request as bytes, of which only the id changes.
pub(crate) struct Request {
    bytes: Vec<u8>,
    id_at: usize,
    expected: &'static str,
}

/// The classified answer.
pub(crate) struct Outcome<'a> {
    pub(crate) class: Class,
    pub(crate) reason: &'a str,
    /// Delay in milliseconds after which the server asks to be called again.
    pub(crate) retry_after_ms: Option<u64>,
}

impl Session {
    /// Performs the handshake and opens a session.
    pub(crate) async fn open(address: SocketAddr) -> Session {
        let mut connection = Connection::open(address).await.unwrap();
        let mut session = Session { address, id: None };
        let reply = connection.exchange(session.post(INITIALIZE).as_bytes()).await.unwrap();
        assert!(reply.status == 200, "initialize: {} {}", reply.status, String::from_utf8_lossy(reply.body));
        session.id = reply.session.map(str::to_owned);
        let status = connection.exchange(session.post(INITIALIZED).as_bytes()).await.unwrap().status;
        assert!((200..300).contains(&status), "notifications/initialized: {status}");
        session
    }

    pub(crate) async fn open_many(address: SocketAddr, count: usize) -> Vec<Session> {
        let mut sessions = Vec::with_capacity(count);
        for _ in 0..count {
            sessions.push(Session::open(address).await);
        }
        sessions
    }

    pub(crate) fn request(&self, call: Call<'_>) -> Request {
        let Call { tool, arguments, expected } = call;
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{FIRST_ID},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
        );
        let bytes = self.post(&body).into_bytes();
        let id_at = memmem::find(&bytes, br#""id":"#).unwrap() + br#""id":"#.len();
        Request { bytes, id_at, expected }
    }

    fn post(&self, body: &str) -> String {
        let session = self.id.as_ref().map_or_else(String::new, |id| format!("Mcp-Session-Id: {id}\r\n"));
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-11-25\r\n{session}\
             Content-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )
    }
}

impl Request {
    /// Returns the bytes of the request with this number.
    pub(crate) fn bytes(&mut self, number: u32) -> &[u8] {
        let id = (FIRST_ID + number).to_string();
        self.bytes[self.id_at..self.id_at + ID_DIGITS].copy_from_slice(id.as_bytes());
        &self.bytes
    }

    /// Classifies the answer to the request with this number.
    pub(crate) fn classify<'a>(&self, number: u32, status: u16, body: &'a [u8]) -> Outcome<'a> {
        let outcome = |class, reason| Outcome { class, reason, retry_after_ms: retry_after_ms(body) };
        match status {
            200 => {}
            429 => return outcome(Class::Refused, "HTTP 429"),
            503 => return outcome(Class::Refused, "HTTP 503"),
            _ => return outcome(Class::Failed, "another HTTP status"),
        }
        let id = format!(r#""id":{}"#, FIRST_ID + number);
        let mut found = memmem::find_iter(body, id.as_bytes());
        match (found.next(), found.next()) {
            (Some(_), None) => {}
            (None, _) => return outcome(Class::Failed, "an answer without the id of its request"),
            (Some(_), Some(_)) => return outcome(Class::Failed, "two answers in one"),
        }
        if memmem::find(body, self.expected.as_bytes()).is_some() {
            return outcome(Class::Answered, "");
        }
        let Some(text) = text(body) else { return outcome(Class::Failed, "an answer without text") };
        let reason = text.strip_prefix("user=> ").or_else(|| text.split(':').next()).unwrap_or(text);
        let is_refusal = REFUSALS.iter().any(|name| reason.trim_matches(|c| matches!(c, ':' | '\\' | '"')) == *name);
        outcome(if is_refusal { Class::Refused } else { Class::Ended }, reason)
    }
}

/// Returns the text of the first content block, still escaped and truncated.
fn text(body: &[u8]) -> Option<&str> {
    let begin = memmem::find(body, br#""text":""#)? + br#""text":""#.len();
    let rest = &body[begin..];
    let quote = (0..rest.len()).find(|at| rest[*at] == b'"' && (*at == 0 || rest[at - 1] != b'\\'))?;
    let text = std::str::from_utf8(&rest[..quote]).ok()?;
    Some(&text[..text.floor_char_boundary(MAX_REASON)])
}

fn retry_after_ms(body: &[u8]) -> Option<u64> {
    let at = memmem::find(body, b"retry_after_ms")? + b"retry_after_ms".len();
    let digits = body[at..].iter().skip_while(|byte| matches!(byte, b'"' | b'\\' | b':' | b' '));
    let digits: String = digits.take_while(|byte| byte.is_ascii_digit()).map(|byte| char::from(*byte)).collect();
    digits.parse().ok()
}
