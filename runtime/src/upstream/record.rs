//! What is remembered of a call.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use serde::Serialize;

/// One entry of `upstream_calls`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CallRecord {
    /// The upstream.
    pub server: &'static str,
    /// The tool, by its exposed name; as the program wrote it where the upstream's tools could not be listed.
    pub tool: Cow<'static, str>,
    /// `ok` or `error`.
    pub status: &'static str,
    /// Milliseconds from start to answer, with the time to connect where that was needed.
    pub duration_ms: u64,
    /// The documented reason of a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// What happened, redacted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// UTF-8 bytes, as compact JSON, of what the program was given: its payload, or the text of a failure of the tool. Of an
    /// answer that was refused for its size, the bytes that were seen.
    pub result_bytes: u64,
    /// Whether the answer was refused for its size.
    pub oversize: bool,
    /// The first credential that was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<AuthUsed>,
    /// The status of the HTTP answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    /// When it started: for timelines, which the documented entry has no room for.
    #[serde(skip)]
    pub started: Instant,
    /// What `duration_ms` is a rounding of.
    #[serde(skip)]
    pub took: Duration,
}

/// A credential, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AuthUsed {
    /// `bearer`, `basic` or `custom_header`.
    pub scheme: &'static str,
    /// The binding.
    pub binding: &'static str,
}
