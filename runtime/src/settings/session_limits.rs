//! Limits of sessions.

use std::time::Duration;

use serde::Serialize;

/// Limits that the operator configured.
#[derive(Debug, Clone)]
pub struct SessionLimits {
    /// Maximum number of live sessions of a server.
    pub sessions: usize,
    /// Maximum number of live sessions of one owner.
    pub sessions_per_owner: usize,
    /// Maximum and default lifetime of a session.
    pub ttl: Duration,
    /// Time without use after which a session is closed.
    pub idle: Duration,
    /// Limits of the state of one session.
    pub kept: StateLimits,
}

/// Limits of the state of one session. Clients receive them.
#[derive(Debug, Clone, Serialize)]
pub struct StateLimits {
    /// Maximum bytes of all bindings.
    pub max_memory_bytes: usize,
    /// Maximum bytes of one binding.
    pub max_binding_bytes: usize,
    /// Maximum number of bindings.
    pub max_bindings: usize,
    /// Maximum bytes of each of `*1 *2 *3`. A preview replaces a larger value.
    pub max_history_entry_bytes: usize,
    /// Maximum number of printed lines.
    pub max_print_entries: usize,
    /// Maximum bytes of all printed lines.
    pub max_print_bytes: usize,
    /// Maximum number of calls of application tools.
    pub max_tool_call_entries: usize,
    /// Maximum bytes of their records.
    pub max_tool_call_bytes: usize,
    /// Maximum number of calls of upstream tools.
    pub max_upstream_call_entries: usize,
    /// Maximum bytes of their records.
    pub max_upstream_call_bytes: usize,
}

impl SessionLimits {
    /// Returns the limits that a client receives when it opens a session.
    pub fn told(&self) -> serde_json::Value {
        let mut told = serde_json::json!(self.kept);
        if let Some(members) = told.as_object_mut() {
            members.insert("max_idle_ms".into(), u64::try_from(self.idle.as_millis()).unwrap_or(u64::MAX).into());
        }
        told
    }
}

impl Default for SessionLimits {
    /// Returns limits of zero. The table of settings sets every value.
    fn default() -> Self {
        let kept = StateLimits {
            max_memory_bytes: 0,
            max_binding_bytes: 0,
            max_bindings: 0,
            max_history_entry_bytes: 0,
            max_print_entries: 0,
            max_print_bytes: 0,
            max_tool_call_entries: 0,
            max_tool_call_bytes: 0,
            max_upstream_call_entries: 0,
            max_upstream_call_bytes: 0,
        };
        SessionLimits { sessions: 0, sessions_per_owner: 0, ttl: Duration::ZERO, idle: Duration::ZERO, kept }
    }
}
