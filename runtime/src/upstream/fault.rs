//! Faults of the world: why an upstream did not answer a call as hoped.

use std::borrow::Cow;
use std::time::Duration;

use super::settings::ResponseCap;

/// The documented reasons of a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// It could not be started or reached, or it went away.
    UpstreamUnavailable,
    /// It answered with a protocol error, or with something that is no answer.
    UpstreamError,
    /// The tool itself reports failure.
    ToolError,
    /// It refused the credential.
    AuthFailed,
    /// It asked to be called less often.
    RateLimited,
    /// No answer in time.
    Timeout,
    /// The answer is larger than the cap.
    ResponseTooLarge,
    /// The program has used its calls.
    CapExhausted,
    /// As many programs wait for it as may.
    UpstreamBusy,
}

impl Reason {
    /// The name that programs see in `:reason`.
    pub fn name(self) -> &'static str {
        match self {
            Reason::UpstreamUnavailable => "upstream_unavailable",
            Reason::UpstreamError => "upstream_error",
            Reason::ToolError => "tool_error",
            Reason::AuthFailed => "auth_failed",
            Reason::RateLimited => "rate_limited",
            Reason::Timeout => "timeout",
            Reason::ResponseTooLarge => "response_too_large",
            Reason::CapExhausted => "cap_exhausted",
            Reason::UpstreamBusy => "upstream_busy",
        }
    }
}

/// A failed call: its reason and what happened, for people and models. The message is redacted before anyone sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UpstreamError {
    /// The documented reason.
    pub reason: Reason,
    /// What happened and, where known, what to do.
    pub message: Cow<'static, str>,
    /// The status of the HTTP answer, where there was one.
    pub http_status: Option<u16>,
    /// Bytes of an answer that was refused for its size, as far as they were seen.
    pub refused_bytes: u64,
    /// The delay that an answer 429 asks for.
    pub(crate) retry_after: Option<Duration>,
    /// Whether it may be that the server has forgotten the session, and so carried nothing out.
    pub(crate) session_over: bool,
}

impl UpstreamError {
    /// A fault without an HTTP status.
    pub fn new(reason: Reason, message: impl Into<Cow<'static, str>>) -> Self {
        UpstreamError {
            reason,
            message: message.into(),
            http_status: None,
            refused_bytes: 0,
            retry_after: None,
            session_over: false,
        }
    }

    /// `upstream_unavailable`
    pub fn unavailable(message: impl Into<Cow<'static, str>>) -> Self {
        UpstreamError::new(Reason::UpstreamUnavailable, message)
    }

    /// `upstream_error`
    pub fn upstream(message: impl Into<Cow<'static, str>>) -> Self {
        UpstreamError::new(Reason::UpstreamError, message)
    }

    /// `timeout`
    pub fn timeout(message: impl Into<Cow<'static, str>>) -> Self {
        UpstreamError::new(Reason::Timeout, message)
    }

    /// The deadline that the caller set has passed. It has no words yet: the caller knows whose time it was.
    pub(crate) fn timed_out() -> Self {
        UpstreamError::timeout("")
    }

    /// Whether this is [`UpstreamError::late`], unexplained.
    pub(crate) fn is_timeout(&self) -> bool {
        self.reason == Reason::Timeout && self.message.is_empty()
    }

    /// `response_too_large`, of an answer of which `seen` bytes are known.
    pub fn too_large(cap: ResponseCap, seen: u64) -> Self {
        let ResponseCap { bytes, setting } = cap;
        let message = format!("the answer is larger than {bytes} bytes ({setting}); ask for less, such as a page or a filter");
        UpstreamError { refused_bytes: seen, ..UpstreamError::new(Reason::ResponseTooLarge, message) }
    }

    /// The same fault with the status of the answer that it came with.
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

/// The first `max` bytes of `text`, cut at a character, with a mark where something is left out.
pub(crate) fn excerpt(text: &str, max: usize) -> Cow<'_, str> {
    let text = text.trim();
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}…", text.get(..text.floor_char_boundary(max)).unwrap_or_default()))
}
