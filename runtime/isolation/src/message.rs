//! The messages between the server and a worker. On the socket each is its length (`u32`, little-endian) and its encoding by
//! `postcard`.

use std::io::{self, Read};
use std::time::Duration;

use postcard::ser_flavors::Flavor;
use ptc_engine::evaluation::isolation::{PortableEvaluation, bounded_list};
use ptc_lisp::host::{Fault, HttpHead, Reply};
use ptc_lisp::{ErrorKind, Value, image};
use ptc_upstream::fault::Reason;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

/// Bytes of the length in front of a message.
pub(crate) const HEAD_BYTES: usize = 4;

/// A message of the server to a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToWorker {
    /// The first message.
    Settings(Settings),
    /// Begins a program.
    Run(Box<Assignment>),
    /// The answer to a call of an upstream's tool, with its `Link` header.
    Reply { id: u64, reply: WireReply, link: Option<String> },
    /// The answer to a question.
    Answer { id: u64, answer: Answer },
    /// Cancels the program.
    Cancel,
    /// Ends the program, for this reason.
    End(String),
}

/// A message of a worker to the server.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FromWorker {
    /// The worker is confined, or cannot be, for this reason.
    Ready(Result<(), String>),
    /// Asks a question, which has one answer.
    Ask { id: u64, question: Question },
    /// Makes a call with a request, which is an image. Its reply has the same id.
    Call { id: u64, request: ByteBuf, wants_link: bool },
    /// The program does not wait for the answer to this call any more.
    Abandon { id: u64 },
    /// The program waits, and uses no processor.
    Release,
    /// The memory of the program has changed by this number of bytes.
    Changed(i64),
    /// The program has ended.
    Done(Box<Done>),
}

/// The settings of a worker.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Settings {
    /// The process of the server.
    pub(crate) server: u32,
    pub(crate) is_confined: bool,
    pub(crate) memory_bytes: u64,
    pub(crate) preview_bytes: usize,
    pub(crate) max_calls_per_program: u32,
}

/// A program, with what it needs.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Assignment {
    pub(crate) program: String,
    pub(crate) context: Option<String>,
    pub(crate) output_schema: Option<String>,
    /// The name of the stored program.
    pub(crate) stored: Option<String>,
    pub(crate) limits: WireLimits,
    /// The time that the program has used before.
    pub(crate) elapsed: Duration,
    /// The image of the definitions and results of earlier programs.
    pub(crate) past: Option<ByteBuf>,
    /// What the caller may do, as `Access::state` returns it. `None` without a policy.
    pub(crate) access: Option<Vec<u16>>,
    /// Pairs of upstream and tool whose answers earlier programs received.
    pub(crate) called: Vec<(String, String)>,
    /// Whether the worker sends the definitions and the value back.
    pub(crate) is_kept: bool,
}

/// The limits of a program.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WireLimits {
    pub(crate) wall_clock: Duration,
    pub(crate) memory_bytes: u64,
    pub(crate) call_depth: u32,
    pub(crate) steps: Option<u64>,
    pub(crate) loop_iterations: Option<u64>,
    pub(crate) parallel_workers: usize,
    pub(crate) tool_calls: Option<u64>,
    pub(crate) print_bytes: usize,
}

/// A question of a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Question {
    /// A discovery form.
    Discover(Discovery),
    /// `(budget/remaining)`
    Budget,
    /// A processor. One that the program has is released first.
    Processor,
    /// This number of bytes.
    Memory(i64),
    /// The server's record of the program's calls.
    Report { has_failed: bool },
}

/// The answer to a question.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// A value, as an image.
    Value(Result<ByteBuf, WireFault>),
    /// Whether the program gets what it asked for.
    Granted(bool),
    Report {
        calls: Vec<CalledTool>,
        misspelt: Vec<String>,
        notes: Vec<String>,
    },
}

/// A call in a report.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CalledTool {
    pub(crate) server: String,
    pub(crate) tool: String,
    pub(crate) is_ok: bool,
}

/// A discovery form.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Discovery {
    Servers,
    Apropos { query: String, limit: usize, load: bool },
    Dir { reference: String, limit: usize, offset: usize },
    Doc { reference: String },
    Meta { reference: String },
}

/// The end of a program.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Done {
    pub(crate) evaluation: PortableEvaluation,
    /// The image of the definitions and the value, or why there is none. `None` if the server does not keep them.
    pub(crate) state: Option<Result<ByteBuf, String>>,
    /// The names whose definitions have changed.
    #[serde(deserialize_with = "bounded_list")]
    pub(crate) changed: Vec<String>,
    /// Whether the program has run, so that it may have made calls.
    pub(crate) has_run: bool,
    /// The message of a panic.
    pub(crate) panic: Option<String>,
}

/// A fault of a program.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WireFault {
    kind: String,
    message: String,
    hint: Option<String>,
}

/// The reply to a call.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum WireReply {
    Json(ByteBuf),
    Text(String),
    Plain(String),
    None,
    Failed { reason: String, message: String },
    Refused(WireFault),
    Http { status: u16, headers: Vec<(String, String)>, failed_body: Option<ByteBuf>, reply: Box<WireReply> },
}

impl From<Fault> for WireFault {
    fn from(fault: Fault) -> WireFault {
        WireFault { kind: fault.kind.name().to_owned(), message: fault.message, hint: fault.hint }
    }
}

impl From<WireFault> for Fault {
    fn from(fault: WireFault) -> Fault {
        let kind = ErrorKind::ALL.iter().copied().find(|kind| kind.name() == fault.kind).unwrap_or(ErrorKind::ToolError);
        Fault { kind, message: fault.message, hint: fault.hint }
    }
}

impl From<Reply> for WireReply {
    fn from(reply: Reply) -> WireReply {
        match reply {
            Reply::Json(bytes) => WireReply::Json(ByteBuf::from(bytes)),
            Reply::Text(text) => WireReply::Text(text),
            Reply::Plain(text) => WireReply::Plain(text),
            Reply::None => WireReply::None,
            Reply::Failed { reason, message } => WireReply::Failed { reason: reason.to_owned(), message },
            Reply::Refused(fault) => WireReply::Refused(fault.into()),
            Reply::Http(head, reply) => WireReply::Http {
                status: head.status,
                headers: head.headers,
                failed_body: head.failed_body.map(ByteBuf::from),
                reply: Box::new((*reply).into()),
            },
        }
    }
}

impl From<WireReply> for Reply {
    fn from(reply: WireReply) -> Reply {
        match reply {
            WireReply::Json(bytes) => Reply::Json(bytes.into_vec()),
            WireReply::Text(text) => Reply::Text(text),
            WireReply::Plain(text) => Reply::Plain(text),
            WireReply::None => Reply::None,
            WireReply::Failed { reason, message } => {
                let known = Reason::ALL.into_iter().map(Reason::name).find(|known| *known == reason);
                Reply::Failed { reason: known.unwrap_or("upstream_error"), message }
            }
            WireReply::Refused(fault) => Reply::Refused(fault.into()),
            WireReply::Http { status, headers, failed_body, reply } => {
                let head = HttpHead { status, headers, failed_body: failed_body.map(ByteBuf::into_vec) };
                Reply::Http(Box::new(head), Box::new((*reply).into()))
            }
        }
    }
}

/// Encodes a message with its length.
pub(crate) fn encode(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let buffer = Buffer(vec![0; HEAD_BYTES]);
    let mut bytes = postcard::serialize_with_flavor(message, buffer).map_err(io::Error::other)?;
    let length = u32::try_from(bytes.len() - HEAD_BYTES).map_err(io::Error::other)?;
    if let Some(head) = bytes.get_mut(..HEAD_BYTES) {
        head.copy_from_slice(&length.to_le_bytes());
    }
    Ok(bytes)
}

/// Appends to a vector. `postcard::to_extend` appends each byte by itself, which takes long for the images of large values.
struct Buffer(Vec<u8>);

impl Flavor for Buffer {
    type Output = Vec<u8>;

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<Vec<u8>> {
        Ok(self.0)
    }
}

/// Decodes a message without its length.
pub(crate) fn decode<M: DeserializeOwned>(bytes: &[u8]) -> io::Result<M> {
    postcard::from_bytes(bytes).map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))
}

/// Reads the next message. `None` at the end of the stream.
pub(crate) fn read<M: DeserializeOwned>(mut from: impl Read) -> io::Result<Option<M>> {
    let mut head = [0; HEAD_BYTES];
    match from.read_exact(&mut head) {
        Err(fault) if fault.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let mut bytes = vec![0; u32::from_le_bytes(head) as usize];
    from.read_exact(&mut bytes)?;
    decode(&bytes).map(Some)
}

/// Encodes a value as an image. The error names what an image cannot hold.
pub(crate) fn image_of(value: &Value) -> Result<ByteBuf, &'static str> {
    image::encode(&ptc_lisp::Bindings::default(), std::slice::from_ref(value)).map(ByteBuf::from).map_err(|error| error.what)
}

/// Decodes the only value of an image.
pub(crate) fn value_of(bytes: &[u8], limits: &image::DecodeLimits) -> Result<Value, image::DecodeError> {
    let (_, values) = image::decode_within(bytes, limits)?;
    Ok(values.into_iter().next().unwrap_or_default())
}
