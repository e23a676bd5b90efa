//! The record of a call.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use serde::Serialize;

/// One entry of `upstream_calls`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct CallRecord {
    /// The name of the upstream.
    pub server: &'static str,
    /// The exposed name of the tool, or the name in the program if the upstream's tools could not be listed.
    pub tool: Cow<'static, str>,
    /// `ok` or `error`.
    pub status: &'static str,
    /// Milliseconds from start to answer, including the time to connect.
    pub duration_ms: u64,
    /// The documented reason of a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// The redacted message of a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Bytes of the payload as compact JSON in UTF-8, or of the text of the tool's failure. For an answer that was rejected for
    /// its size, the bytes that were received.
    pub result_bytes: u64,
    /// Whether the answer was rejected for its size.
    pub oversize: bool,
    /// The first credential that was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<AuthUsed>,
    /// The status of the HTTP answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    /// The rule of the policy that decided about the call, if there is one. A refused call has no rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<&'static str>,
    /// The start of the call, for timelines. It is not part of the documented record.
    #[serde(skip)]
    pub started: Instant,
    /// The exact duration, which `duration_ms` rounds.
    #[serde(skip)]
    pub took: Duration,
}

impl CallRecord {
    /// Makes the record of a call that starts now and has status `ok`, no answer and no duration.
    pub fn new(server: &'static str, tool: impl Into<Cow<'static, str>>) -> CallRecord {
        CallRecord {
            server,
            tool: tool.into(),
            status: "ok",
            duration_ms: 0,
            reason: None,
            error: None,
            result_bytes: 0,
            oversize: false,
            auth: None,
            http_status: None,
            rule: None,
            started: Instant::now(),
            took: Duration::ZERO,
        }
    }
}

/// What the host of a program has recorded about its calls.
#[derive(Debug, Clone, Default)]
pub struct CallReport {
    /// The calls, in the order of their start.
    pub calls: Vec<CallRecord>,
    /// Notes on arguments with names similar to declared ones.
    pub misspelt: Vec<String>,
    /// Notes on exhausted budgets and on writes.
    pub notes: Vec<String>,
}

/// A credential, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct AuthUsed {
    /// `bearer`, `basic` or `custom_header`.
    pub scheme: &'static str,
    /// The name of the binding.
    pub binding: &'static str,
}
