//! The caps of sessions.

use std::time::Duration;

use serde::Serialize;

/// What an operator set.
#[derive(Debug, Clone)]
pub struct SessionLimits {
    /// Live sessions of a server.
    pub sessions: usize,
    /// Live sessions of one owner.
    pub sessions_per_owner: usize,
    /// Longest life, and the default one.
    pub ttl: Duration,
    /// A session that nobody used for so long is closed.
    pub idle: Duration,
    /// What one session keeps.
    pub kept: StateLimits,
}

/// What one session keeps at most; clients are told.
#[derive(Debug, Clone, Serialize)]
pub struct StateLimits {
    /// Bytes of all bindings.
    pub max_memory_bytes: usize,
    /// Bytes of one binding.
    pub max_binding_bytes: usize,
    /// Bindings.
    pub max_bindings: usize,
    /// Bytes of one of `*1 *2 *3`; a preview stands for what is larger.
    pub max_history_entry_bytes: usize,
    /// Printed lines.
    pub max_print_entries: usize,
    /// Bytes of printed lines.
    pub max_print_bytes: usize,
    /// Calls of application tools.
    pub max_tool_call_entries: usize,
    /// Bytes of their records.
    pub max_tool_call_bytes: usize,
    /// Calls of upstream tools.
    pub max_upstream_call_entries: usize,
    /// Bytes of their records.
    pub max_upstream_call_bytes: usize,
}

impl SessionLimits {
    /// What a client is told when it opens a session.
    pub fn told(&self) -> serde_json::Value {
        let mut told = serde_json::json!(self.kept);
        if let Some(members) = told.as_object_mut() {
            members.insert("max_idle_ms".into(), u64::try_from(self.idle.as_millis()).unwrap_or(u64::MAX).into());
        }
        told
    }
}

impl Default for SessionLimits {
    /// Nothing allowed: every value comes from the table of settings.
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
