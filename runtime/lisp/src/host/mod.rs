//! The interface between programs and the outside world.
//!
//! The interpreter starts an upstream call with [`Host::submit`] and waits on the returned [`PendingReply`], on its own thread
//! and with its own deadline. The host keeps the other half, a [`ReplySender`]. When an evaluation stops waiting because of its
//! deadline or a cancellation, the pending reply is dropped and the answering side is notified.

mod account;
mod pending_reply;

use std::sync::{Arc, OnceLock};
use std::time::Instant;

pub(crate) use self::account::out_of_memory;
pub use self::account::{Account, Reservation};
pub use self::pending_reply::{PendingReply, ReplySender, WaitOutcome};
use crate::list_uses::TrackedList;
use crate::print::excerpt;
use crate::{ErrorKind, Value};

/// The environment of a program. All methods may be called from several threads at once (`pmap`).
pub trait Host: Send + Sync {
    /// Called once by each run before its program starts, with the account of the run's memory. A host that stores bytes for the
    /// program outside of the evaluation's threads, such as the encoded arguments of pending calls, reserves them there.
    fn begin_run(&self, account: &Account) {
        let _ = account;
    }

    /// Starts `(tool/call request)` without blocking. A failure of the upstream is a [`Reply::Failed`] on the pending reply.
    ///
    /// # Errors
    ///
    /// Returns a fault of the program, which ends it.
    fn submit(&self, request: &Value) -> Result<PendingReply, Fault>;

    /// Like [`Host::submit`], but stores the `Link` header of the response in `link` before the pending reply is answered.
    ///
    /// # Errors
    ///
    /// Returns a fault of the program, which ends it.
    fn submit_with_link(&self, request: &Value, link: &Arc<OnceLock<String>>) -> Result<PendingReply, Fault> {
        let _ = link;
        self.submit(request)
    }

    /// Called with the answer to `(tool/call request)` or `(tool/value request)` and its `Link` header, before the program
    /// continues. Returns the list in the answer if its use is to be tracked.
    fn received(&self, request: &Value, answer: &Value, link: Option<&str>) -> Option<TrackedList> {
        let _ = (request, answer, link);
        None
    }

    /// Starts `(tool/all request)`. The request has no `:max`, which is passed as `max`. May block until an upstream has listed
    /// its tools.
    ///
    /// # Errors
    ///
    /// Returns a fault of the program, which ends it.
    fn pages(&self, request: &Value, max: Option<usize>) -> Result<Box<dyn Pages>, Fault> {
        let _ = (request, max);
        Err(Fault::new(ErrorKind::UnknownTool, "tool/all is not available: no upstreams are configured"))
    }

    /// Starts `(tool/NAME …)`, a call of a tool of the embedding program, without blocking. `args` is a map with the keys that
    /// the program wrote. The answer is the value of the form. A [`Reply::Failed`] ends the program, like `Err`.
    ///
    /// # Errors
    ///
    /// Returns a fault of the program, which ends it.
    fn submit_tool(&self, tool: &str, args: &Value) -> Result<PendingReply, Fault> {
        let _ = args;
        Err(Fault::new(ErrorKind::UnknownTool, format!("there is no tool/{}", excerpt(tool))))
    }

    /// Called with the result of such a call, on the evaluation's thread, before the program gets it. Returns the value for the
    /// program.
    ///
    /// # Errors
    ///
    /// Returns a fault of the program, which ends it.
    fn receive_tool(&self, tool: &str, value: Value) -> Result<Value, Fault> {
        let _ = tool;
        Ok(value)
    }

    /// The tools of the embedding program, as one line `name - description` each, for `(dir 'tool)`.
    fn tool_lines(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether [`Host::discover`] would block on this query. Then the interpreter releases its processor for other threads.
    fn discovery_waits(&self, query: Discovery<'_>) -> bool {
        let _ = query;
        false
    }

    /// Answers a discovery form from the catalog. `Ok(nil)` reports a failure of an upstream.
    ///
    /// # Errors
    ///
    /// Returns a fault of the program, which ends it.
    fn discover(&self, query: Discovery<'_>) -> Result<Value, Fault>;

    /// Milliseconds since the Unix epoch.
    fn now_ms(&self) -> i64 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX))
    }

    /// Seconds by which the local clock is ahead of UTC at an instant, given in milliseconds since the Unix epoch. Programs can
    /// observe the offset only in the current local date and time.
    fn utc_offset_s(&self, at_ms: i64) -> i32 {
        let _ = at_ms;
        0
    }

    /// Nanoseconds of a monotonic clock with an arbitrary origin.
    fn monotonic_ns(&self) -> i64 {
        static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
        i64::try_from(START.elapsed().as_nanos()).unwrap_or(i64::MAX)
    }

    /// 64 random bits, for `rand` and similar functions.
    fn random(&self) -> u64;

    /// Called with each line that the program prints, as in [`Outcome::prints`](crate::run::Outcome::prints). Output inside of
    /// `pmap` and `pcalls` is discarded, as specified.
    fn printed(&self, line: &str) {
        let _ = line;
    }

    /// The result of `(budget/remaining)` as JSON-shaped data. `nil` if the host has no budget.
    fn budget(&self) -> Value {
        Value::nil()
    }
}

/// The paging strategy of one list. The interpreter makes the calls.
pub trait Pages {
    /// Returns the arguments of the first call.
    fn first(&mut self) -> Value;

    /// Processes an answer with its `Link` header. Answers are passed in the order of the requests.
    ///
    /// # Errors
    ///
    /// Returns a fault of the program, which ends it.
    fn receive(&mut self, answer: &Value, link: Option<&str>) -> Result<NextPages, Fault>;

    /// Processes the failure of the outstanding request, if its reason only shows that there are no more pages. Otherwise returns
    /// `None`, and the failure ends the program. `status` is the status of the HTTP answer.
    fn end_with_failure(&mut self, reason: &str, message: &str, status: Option<u16>) -> Option<Result<NextPages, Fault>> {
        let _ = (reason, message, status);
        None
    }

    /// Describes how many pages and items were received, to be appended to a message: `after 3 pages with 300 items`.
    fn arrived(&self) -> String;

    /// Returns the received items.
    fn into_items(self: Box<Self>) -> Vec<Value>;
}

/// The continuation after a page.
#[derive(Debug)]
pub enum NextPages {
    /// The list is complete.
    Done,
    /// The arguments of the next calls, to be made in parallel. Empty if answers to earlier calls are outstanding.
    Requests(Vec<Value>),
}

/// A host without tools. Programs cannot reach anything outside of it.
#[derive(Debug, Default)]
pub struct NoHost;

impl Host for NoHost {
    fn submit(&self, _: &Value) -> Result<PendingReply, Fault> {
        Err(Fault::new(ErrorKind::UnknownTool, "tool/call is not available: no upstreams are configured"))
    }

    fn discover(&self, query: Discovery<'_>) -> Result<Value, Fault> {
        match query {
            Discovery::Servers | Discovery::Apropos { .. } => Ok(Value::vector(Vec::new())),
            Discovery::Dir { reference, .. } | Discovery::Doc { reference } | Discovery::Meta { reference } => {
                let message = format!("no namespace, function or upstream named '{}'", excerpt(reference));
                Err(Fault::new(ErrorKind::UnknownTool, message))
            }
        }
    }

    fn random(&self) -> u64 {
        use std::hash::{BuildHasher, Hasher};
        std::collections::hash_map::RandomState::new().build_hasher().finish()
    }
}

/// A discovery form with a subject outside of the interpreter. Names are as written, without a quote.
#[derive(Debug, Clone, Copy)]
pub enum Discovery<'a> {
    /// `(tool/servers)`
    Servers,
    /// `(apropos query opts)`. The interpreter appends its own matches to those of the host.
    Apropos {
        /// The words to search, not empty.
        query: &'a str,
        /// Maximum number of entries: 1 to 50.
        limit: usize,
        /// Whether to query upstreams for their tools first.
        load: bool,
    },
    /// `(dir reference opts)`
    Dir {
        /// The name of an upstream.
        reference: &'a str,
        /// Maximum number of entries: 1 to 200.
        limit: usize,
        /// Number of entries to skip.
        offset: usize,
    },
    /// `(doc reference)`
    Doc {
        /// The tool, as `server/tool`.
        reference: &'a str,
    },
    /// `(meta reference)`
    Meta {
        /// The tool, as `server/tool`.
        reference: &'a str,
    },
}

/// A fault of the program that the host detected. It ends the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The kind of the error.
    pub kind: ErrorKind,
    /// What was expected and what was found.
    pub message: String,
    /// How to fix the program, if known.
    pub hint: Option<String>,
}

impl Fault {
    /// Makes a fault without a hint.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Fault { kind, message: message.into(), hint: None }
    }

    /// Adds a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// The answer to a call. The interpreter converts it to the tagged map that programs receive.
#[derive(Debug)]
pub enum Reply {
    /// JSON text, decoded on the evaluation's thread: `{:ok true :value … :value_kind :json}`.
    Json(Vec<u8>),
    /// Text. It is decoded as JSON if it parses (`:json`), otherwise it stays text (`:text`).
    Text(String),
    /// Text that stays text, also if it parses as JSON: `{:ok true :value … :value_kind :text}`.
    Plain(String),
    /// Success without a payload: `{:ok true :value nil :value_kind :none}`.
    None,
    /// A failure of the upstream: `{:ok false :reason … :message …}`.
    Failed {
        /// One of the documented reasons, such as `timeout`.
        reason: &'static str,
        /// A description of the failure.
        message: String,
    },
    /// A fault of the program that was detected only after a wait. It ends the program, like `Err` of a submission.
    Refused(Fault),
    /// One of the other replies, with the head of the HTTP answer that it came with.
    Http(Box<HttpHead>, Box<Reply>),
}

/// What a program sees of the head of an HTTP answer, and the body of a failed one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HttpHead {
    /// `:status`
    pub status: u16,
    /// `:headers`: names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// `:body` of a failure: JSON text.
    pub failed_body: Option<Vec<u8>>,
}

impl Reply {
    /// Separates the head of an HTTP answer from the reply.
    pub(crate) fn split(self) -> (Option<HttpHead>, Reply) {
        match self {
            Reply::Http(head, reply) => (Some(*head), reply.split().1),
            reply => (None, reply),
        }
    }

    /// Returns the bytes of its payload and of its headers.
    pub fn payload_bytes(&self) -> usize {
        match self {
            Reply::Json(bytes) => bytes.capacity(),
            Reply::Text(text) | Reply::Plain(text) => text.capacity(),
            Reply::Http(head, reply) => {
                let headers = head.headers.iter().map(|(name, value)| name.capacity() + value.capacity()).sum::<usize>();
                headers + head.failed_body.as_ref().map_or(0, Vec::capacity) + reply.payload_bytes()
            }
            Reply::Failed { message, .. } => message.capacity(),
            Reply::None | Reply::Refused(_) => 0,
        }
    }
}
