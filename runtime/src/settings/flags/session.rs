//! Settings of sessions.

use std::time::Duration;

use super::super::flag::{Default, Flag, Group, Kind};
use super::{DAY_MS, GIB, file_text};
use crate::settings::{SessionKeys, StoreUrl};

/// The rows of these settings.
pub(super) static ROWS: &[Flag] = &[
    Flag {
        name: "sessions",
        env: "PTC_RUNNER_MCP_SESSIONS",
        kind: Kind::Switch { set: |s, on| s.sessions = on },
        default: Default::Fixed("false"),
        group: Group::Sessions,
        help: "Offer sessions: tools `lisp_session_…`, in which definitions outlive a call",
    },
    Flag {
        name: "session-store",
        env: "PTC_RUNNER_MCP_SESSION_STORE",
        kind: Kind::Secret {
            shape: "<memory|redis[s]://…>",
            expected: "memory, or redis[s]://[[user]:password@]host[:port][/db]",
            set: |s, text| {
                s.session_store = if text == "memory" { None } else { Some(StoreUrl::parse(text)?) };
                Some(())
            },
        },
        default: Default::Fixed("memory"),
        group: Group::Sessions,
        help: "Where sessions live; replicas share those in Redis or Valkey",
    },
    Flag {
        name: "session-store-file",
        env: "PTC_RUNNER_MCP_SESSION_STORE_FILE",
        kind: Kind::Text {
            shape: "<file>",
            expected: "a readable file that holds redis[s]://[[user]:password@]host[:port][/db]",
            set: |s, path| StoreUrl::parse(&file_text(path)?).map(|url| s.session_store = Some(url)),
        },
        default: Default::Unset("--session-store"),
        group: Group::Sessions,
        help: "File that holds the address of the session store, password included",
    },
    Flag {
        name: "session-key",
        env: "PTC_RUNNER_MCP_SESSION_KEY",
        kind: Kind::Secret {
            shape: "<secret>",
            expected: "keys of at least 32 printable characters, between spaces",
            set: |s, text| SessionKeys::parse(text).map(|keys| s.session_keys = Some(keys)),
        },
        default: Default::Unset("--http-auth-token"),
        group: Group::Sessions,
        help: "Secret of the server that seals sessions in a store; replicas share it. After a space, earlier keys that still open",
    },
    Flag {
        name: "session-key-file",
        env: "PTC_RUNNER_MCP_SESSION_KEY_FILE",
        kind: Kind::Text {
            shape: "<file>",
            expected: "a readable file that holds keys of at least 32 printable characters, one per line",
            set: |s, path| SessionKeys::parse(&file_text(path)?).map(|keys| s.session_keys = Some(keys)),
        },
        default: Default::Unset("--session-key"),
        group: Group::Sessions,
        help: "File with the session keys: the first line encrypts, all lines decrypt",
    },
    Flag {
        name: "max-sessions",
        env: "PTC_RUNNER_MCP_MAX_SESSIONS",
        kind: Kind::Integer { unit: "sessions", min: 1, max: 100_000, set: |s, n| s.session_limits.sessions = n as usize },
        default: Default::Fixed("64"),
        group: Group::Sessions,
        help: "Live sessions",
    },
    Flag {
        name: "max-sessions-per-owner",
        env: "PTC_RUNNER_MCP_MAX_SESSIONS_PER_OWNER",
        kind: Kind::Integer {
            unit: "sessions",
            min: 1,
            max: 100_000,
            set: |s, n| s.session_limits.sessions_per_owner = n as usize,
        },
        default: Default::Fixed("16"),
        group: Group::Sessions,
        help: "Live sessions of one owner",
    },
    Flag {
        name: "session-ttl-ms",
        env: "PTC_RUNNER_MCP_SESSION_TTL_MS",
        kind: Kind::Integer { unit: "ms", min: 1, max: DAY_MS, set: |s, n| s.session_limits.ttl = Duration::from_millis(n) },
        default: Default::Fixed("1800000"),
        group: Group::Sessions,
        help: "Longest life of a session, and the default one",
    },
    Flag {
        name: "session-idle-timeout-ms",
        env: "PTC_RUNNER_MCP_SESSION_IDLE_TIMEOUT_MS",
        kind: Kind::Integer { unit: "ms", min: 1, max: DAY_MS, set: |s, n| s.session_limits.idle = Duration::from_millis(n) },
        default: Default::Fixed("900000"),
        group: Group::Sessions,
        help: "A session that is not used for so long is closed",
    },
    Flag {
        name: "max-session-memory-bytes",
        env: "PTC_RUNNER_MCP_MAX_SESSION_MEMORY_BYTES",
        kind: Kind::Integer { unit: "bytes", min: 0, max: GIB, set: |s, n| s.session_limits.kept.max_memory_bytes = n as usize },
        default: Default::Fixed("1048576"),
        group: Group::Sessions,
        help: "Memory that one session's bindings may occupy",
    },
    Flag {
        name: "max-session-binding-bytes",
        env: "PTC_RUNNER_MCP_MAX_SESSION_BINDING_BYTES",
        kind: Kind::Integer { unit: "bytes", min: 0, max: GIB, set: |s, n| s.session_limits.kept.max_binding_bytes = n as usize },
        default: Default::Fixed("262144"),
        group: Group::Sessions,
        help: "Memory that one binding may occupy",
    },
    Flag {
        name: "max-session-bindings",
        env: "PTC_RUNNER_MCP_MAX_SESSION_BINDINGS",
        kind: Kind::Integer {
            unit: "bindings",
            min: 0,
            max: 1_000_000,
            set: |s, n| s.session_limits.kept.max_bindings = n as usize,
        },
        default: Default::Fixed("200"),
        group: Group::Sessions,
        help: "Bindings of one session",
    },
    Flag {
        name: "max-session-history-entry-bytes",
        env: "PTC_RUNNER_MCP_MAX_SESSION_HISTORY_ENTRY_BYTES",
        kind: Kind::Integer {
            unit: "bytes",
            min: 0,
            max: GIB,
            set: |s, n| s.session_limits.kept.max_history_entry_bytes = n as usize,
        },
        default: Default::Fixed("65536"),
        group: Group::Sessions,
        help: "Memory of each of `*1 *2 *3`; a larger value is replaced by a map with a preview",
    },
    Flag {
        name: "max-session-print-entries",
        env: "PTC_RUNNER_MCP_MAX_SESSION_PRINT_ENTRIES",
        kind: Kind::Integer {
            unit: "lines",
            min: 0,
            max: 1_000_000,
            set: |s, n| s.session_limits.kept.max_print_entries = n as usize,
        },
        default: Default::Fixed("50"),
        group: Group::Sessions,
        help: "Printed lines that a session keeps",
    },
    Flag {
        name: "max-session-print-bytes",
        env: "PTC_RUNNER_MCP_MAX_SESSION_PRINT_BYTES",
        kind: Kind::Integer { unit: "bytes", min: 0, max: GIB, set: |s, n| s.session_limits.kept.max_print_bytes = n as usize },
        default: Default::Fixed("65536"),
        group: Group::Sessions,
        help: "Printed text that a session keeps",
    },
    Flag {
        name: "max-session-tool-call-entries",
        env: "PTC_RUNNER_MCP_MAX_SESSION_TOOL_CALL_ENTRIES",
        kind: Kind::Integer {
            unit: "calls",
            min: 0,
            max: 1_000_000,
            set: |s, n| s.session_limits.kept.max_tool_call_entries = n as usize,
        },
        default: Default::Fixed("50"),
        group: Group::Sessions,
        help: "Records of application tool calls that a session keeps; a server has none, so it has no effect",
    },
    Flag {
        name: "max-session-tool-call-bytes",
        env: "PTC_RUNNER_MCP_MAX_SESSION_TOOL_CALL_BYTES",
        kind: Kind::Integer {
            unit: "bytes",
            min: 0,
            max: GIB,
            set: |s, n| s.session_limits.kept.max_tool_call_bytes = n as usize,
        },
        default: Default::Fixed("131072"),
        group: Group::Sessions,
        help: "Size of the records of application tool calls; it has no effect",
    },
    Flag {
        name: "max-session-upstream-call-entries",
        env: "PTC_RUNNER_MCP_MAX_SESSION_UPSTREAM_CALL_ENTRIES",
        kind: Kind::Integer {
            unit: "calls",
            min: 0,
            max: 1_000_000,
            set: |s, n| s.session_limits.kept.max_upstream_call_entries = n as usize,
        },
        default: Default::Fixed("50"),
        group: Group::Sessions,
        help: "Records of upstream calls that a session keeps",
    },
    Flag {
        name: "max-session-upstream-call-bytes",
        env: "PTC_RUNNER_MCP_MAX_SESSION_UPSTREAM_CALL_BYTES",
        kind: Kind::Integer {
            unit: "bytes",
            min: 0,
            max: GIB,
            set: |s, n| s.session_limits.kept.max_upstream_call_bytes = n as usize,
        },
        default: Default::Fixed("131072"),
        group: Group::Sessions,
        help: "Size of the records of upstream calls that a session keeps",
    },
];
