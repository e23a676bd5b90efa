//! Errors of upstream calls.

use std::borrow::Cow;
use std::time::Duration;

use ptc_lisp::host::HttpHead;

use super::settings::ResponseCap;

/// The documented reasons of failed calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The upstream could not be started or reached, or the connection was lost.
    UpstreamUnavailable,
    /// The upstream answered with a protocol error or an invalid message.
    UpstreamError,
    /// The tool reported a failure.
    ToolError,
    /// The upstream rejected the credential.
    AuthFailed,
    /// A person must log in, since there is no valid refresh token.
    AuthExpired,
    /// The upstream requires fewer calls.
    RateLimited,
    /// There was no answer in time.
    Timeout,
    /// The answer exceeds the size limit.
    ResponseTooLarge,
    /// The program has used its budget of calls.
    CapExhausted,
    /// The maximum number of programs waits for the upstream.
    UpstreamBusy,
    /// The policy does not permit the call. Only records have this reason, since the call ends its program.
    Forbidden,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Reason; 11] = [
        Reason::UpstreamUnavailable,
        Reason::UpstreamError,
        Reason::ToolError,
        Reason::AuthFailed,
        Reason::AuthExpired,
        Reason::RateLimited,
        Reason::Timeout,
        Reason::ResponseTooLarge,
        Reason::CapExhausted,
        Reason::UpstreamBusy,
        Reason::Forbidden,
    ];

    /// Returns the name in `:reason`.
    pub fn name(self) -> &'static str {
        match self {
            Reason::UpstreamUnavailable => "upstream_unavailable",
            Reason::UpstreamError => "upstream_error",
            Reason::ToolError => "tool_error",
            Reason::AuthFailed => "auth_failed",
            Reason::AuthExpired => "auth_expired",
            Reason::RateLimited => "rate_limited",
            Reason::Timeout => "timeout",
            Reason::ResponseTooLarge => "response_too_large",
            Reason::CapExhausted => "cap_exhausted",
            Reason::UpstreamBusy => "upstream_busy",
            Reason::Forbidden => "forbidden",
        }
    }
}

/// The error of a failed call. Its message is redacted before it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UpstreamError {
    /// The reason.
    pub reason: Reason,
    /// The message and, if known, what to do.
    pub message: Cow<'static, str>,
    /// The status of the HTTP answer, if there was one.
    pub http_status: Option<u16>,
    /// Received bytes of an answer that was rejected for its size.
    pub refused_bytes: u64,
    /// The delay that an answer with status 429 requests.
    pub(crate) retry_after: Option<Duration>,
    /// Whether the server may have lost the session, and therefore did not execute the request.
    pub(crate) session_over: bool,
    /// The head of the answer of an OpenAPI operation, and its body if that is JSON.
    pub head: Option<Box<HttpHead>>,
    /// How often the request was sent.
    pub(crate) delivery: Delivery,
}

/// How often the request of a failed call was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Delivery {
    /// At most once, as far as is known.
    #[default]
    Once,
    /// Certainly not, since no connection was made.
    Never,
    /// Twice, so that the answer to the second request does not show the outcome of the first.
    Twice,
}

impl UpstreamError {
    /// Creates an error without an HTTP status.
    pub fn new(reason: Reason, message: impl Into<Cow<'static, str>>) -> Self {
        UpstreamError {
            reason,
            message: message.into(),
            http_status: None,
            refused_bytes: 0,
            retry_after: None,
            session_over: false,
            head: None,
            delivery: Delivery::Once,
        }
    }

    /// Whether a connection was made, and lost before an answer arrived. The server may have received the request.
    pub fn is_lost_connection(&self) -> bool {
        self.reason == Reason::UpstreamUnavailable && self.http_status.is_none() && self.delivery == Delivery::Once
    }

    /// Creates an error with the reason `upstream_unavailable`.
    pub fn unavailable(message: impl Into<Cow<'static, str>>) -> Self {
        UpstreamError::new(Reason::UpstreamUnavailable, message)
    }

    /// Creates an error with the reason `upstream_error`.
    pub fn upstream(message: impl Into<Cow<'static, str>>) -> Self {
        UpstreamError::new(Reason::UpstreamError, message)
    }

    /// Creates an error with the reason `timeout`.
    pub fn timeout(message: impl Into<Cow<'static, str>>) -> Self {
        UpstreamError::new(Reason::Timeout, message)
    }

    /// Creates the error for a passed deadline. It has no message, since only the caller knows whose limit it was.
    pub(crate) fn timed_out() -> Self {
        UpstreamError::timeout("")
    }

    /// Whether this is [`UpstreamError::timed_out`], without a message.
    pub(crate) fn is_timeout(&self) -> bool {
        self.reason == Reason::Timeout && self.message.is_empty()
    }

    /// Creates the error `response_too_large` for an answer of which `seen` bytes were received.
    pub fn too_large(cap: ResponseCap, seen: u64) -> Self {
        let ResponseCap { bytes, setting } = cap;
        let message = format!("the answer is larger than {bytes} bytes ({setting}); ask for less, such as a page or a filter");
        UpstreamError { refused_bytes: seen, ..UpstreamError::new(Reason::ResponseTooLarge, message) }
    }

    /// Sets the status of the answer.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.http_status = Some(status);
        self
    }
}

impl std::fmt::Display for UpstreamError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.reason.name(), self.message)
    }
}

impl std::error::Error for UpstreamError {}

/// Returns at most `max` bytes of `text`, truncated at a character boundary, with a mark if something is omitted.
pub fn excerpt(text: &str, max: usize) -> Cow<'_, str> {
    let text = text.trim();
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}…", text.get(..text.floor_char_boundary(max)).unwrap_or_default()))
}
