//! The table of settings: one row gives parsing, defaults, help and the checks of them.

use std::time::Duration;

use super::flag::{Default, Flag, Group, Kind};
use super::{CatalogMode, Connect};
use crate::log::Level;
use crate::profile::Profile;
use crate::upstream::OnDrift;

const PROFILES: &[&str] = &["slim", "structured", "debug"];
const CATALOG_MODES: &[&str] = &["auto", "inline", "lazy"];
const LEVELS: &[&str] = &["debug", "info", "warn", "error"];

const GIB: u64 = 1 << 30;
const DAY_MS: u64 = 86_400_000;

/// Every setting, in the order of `--help`.
pub static FLAGS: &[Flag] = &[
    Flag {
        name: "max-frame-bytes",
        env: "PTC_RUNNER_MCP_MAX_FRAME_BYTES",
        kind: Kind::Integer { unit: "bytes", min: 1024, max: GIB, set: |s, n| s.max_frame_bytes = n as usize },
        default: Default::Fixed("8388608"),
        group: Group::Server,
        help: "Longest line that is read from the client",
    },
    Flag {
        name: "max-program-bytes",
        env: "PTC_RUNNER_MCP_MAX_PROGRAM_BYTES",
        kind: Kind::Integer { unit: "bytes", min: 1, max: GIB, set: |s, n| s.max_program_bytes = n as usize },
        default: Default::Fixed("65536"),
        group: Group::Server,
        help: "Longest `program` argument",
    },
    Flag {
        name: "max-context-bytes",
        env: "PTC_RUNNER_MCP_MAX_CONTEXT_BYTES",
        kind: Kind::Integer { unit: "bytes", min: 2, max: GIB, set: |s, n| s.max_context_bytes = n as usize },
        default: Default::Fixed("4194304"),
        group: Group::Server,
        help: "Longest `context` argument, as JSON",
    },
    Flag {
        name: "max-concurrent-calls",
        env: "PTC_RUNNER_MCP_MAX_CONCURRENT_CALLS",
        kind: Kind::Integer { unit: "calls", min: 1, max: 256, set: |s, n| s.max_concurrent_calls = n as usize },
        default: Default::Processors,
        group: Group::Server,
        help: "Evaluations at a time; beyond it a call is answered `busy`",
    },
    Flag {
        name: "log-level",
        env: "PTC_RUNNER_MCP_LOG_LEVEL",
        kind: Kind::Choice {
            words: LEVELS,
            set: |s, at| s.log_level = [Level::Debug, Level::Info, Level::Warn].get(at).copied().unwrap_or(Level::Error),
        },
        default: Default::Fixed("info"),
        group: Group::Server,
        help: "What goes to standard error; payloads only at `debug`",
    },
    Flag {
        name: "program-timeout-ms",
        env: "PTC_RUNNER_MCP_PROGRAM_TIMEOUT_MS",
        kind: Kind::Integer { unit: "ms", min: 1, max: DAY_MS, set: |s, n| s.program_timeout = Duration::from_millis(n) },
        default: Default::Split("1000", "10000"),
        group: Group::Program,
        help: "Wall clock of one program",
    },
    Flag {
        name: "program-memory-limit-bytes",
        env: "PTC_RUNNER_MCP_PROGRAM_MEMORY_LIMIT_BYTES",
        kind: Kind::Integer { unit: "bytes", min: 64 * 1024, max: 64 * GIB, set: |s, n| s.program_memory_limit_bytes = n },
        default: Default::Split("10485760", "104857600"),
        group: Group::Program,
        help: "Memory that one program's values may occupy",
    },
    Flag {
        name: "upstream-call-timeout-ms",
        env: "PTC_RUNNER_MCP_UPSTREAM_CALL_TIMEOUT_MS",
        kind: Kind::Integer { unit: "ms", min: 1, max: DAY_MS, set: |s, n| s.upstream_call_timeout = Duration::from_millis(n) },
        default: Default::Fixed("5000"),
        group: Group::Upstreams,
        help: "One call on a connected upstream",
    },
    Flag {
        name: "max-upstream-response-bytes",
        env: "PTC_RUNNER_MCP_MAX_UPSTREAM_RESPONSE_BYTES",
        kind: Kind::Integer { unit: "bytes", min: 1, max: GIB, set: |s, n| s.max_upstream_response_bytes = n },
        default: Default::Fixed("2097152"),
        group: Group::Upstreams,
        help: "Largest answer of an upstream, before decoding",
    },
    Flag {
        name: "max-upstream-calls-per-program",
        env: "PTC_RUNNER_MCP_MAX_UPSTREAM_CALLS_PER_PROGRAM",
        kind: Kind::Integer { unit: "calls", min: 0, max: 100_000, set: |s, n| s.max_upstream_calls_per_program = n as u32 },
        default: Default::Fixed("50"),
        group: Group::Upstreams,
        help: "Calls of upstream tools in one program",
    },
    Flag {
        name: "max-catalog-ops-per-program",
        env: "PTC_RUNNER_MCP_MAX_CATALOG_OPS_PER_PROGRAM",
        kind: Kind::Integer { unit: "forms", min: 0, max: 100_000, set: |s, n| s.max_catalog_ops_per_program = n as u32 },
        default: Default::Fixed("25"),
        group: Group::Upstreams,
        help: "Discovery forms in one program",
    },
    Flag {
        name: "max-catalog-result-bytes",
        env: "PTC_RUNNER_MCP_MAX_CATALOG_RESULT_BYTES",
        kind: Kind::Integer { unit: "bytes", min: 256, max: GIB, set: |s, n| s.max_catalog_result_bytes = n as usize },
        default: Default::Fixed("262144"),
        group: Group::Upstreams,
        help: "Largest result of one discovery form, as JSON",
    },
    Flag {
        name: "connect",
        env: "PTC_RUNNER_MCP_CONNECT",
        kind: Kind::Choice {
            words: &["lazy", "eager"],
            set: |s, at| s.connect = [Connect::Lazy].get(at).copied().unwrap_or(Connect::Eager),
        },
        default: Default::Fixed("lazy"),
        group: Group::Upstreams,
        help: "Connect by the first call, or to all at start and fail where one is down",
    },
    Flag {
        name: "on-drift",
        env: "PTC_RUNNER_MCP_ON_DRIFT",
        kind: Kind::Choice {
            words: &["deny", "warn", "off"],
            set: |s, at| s.on_drift = [OnDrift::Deny, OnDrift::Warn].get(at).copied().unwrap_or(OnDrift::Off),
        },
        default: Default::Fixed("deny"),
        group: Group::Upstreams,
        help: "Tools that are gone or may refuse what they took: deny calls, log, or do not look",
    },
    Flag {
        name: "ca-file",
        env: "PTC_RUNNER_MCP_CA_FILE",
        kind: Kind::File { set: |s, path| s.ca_file = Some(path) },
        default: Default::Unset("the system's certificates alone"),
        group: Group::Upstreams,
        help: "Certificates (PEM) that HTTPS trusts beside the system's",
    },
    Flag {
        name: "config-dir",
        env: "PTC_RUNNER_MCP_CONFIG_DIR",
        kind: Kind::Folder { set: |s, path| s.config_dir = Some(path) },
        default: Default::Unset("the binary's folder"),
        group: Group::Upstreams,
        help: "Where relative paths of the config lead to",
    },
    Flag {
        name: "response-profile",
        env: "PTC_RUNNER_MCP_RESPONSE_PROFILE",
        kind: Kind::Choice {
            words: PROFILES,
            set: |s, at| s.response_profile = [Profile::Slim, Profile::Structured].get(at).copied().unwrap_or(Profile::Debug),
        },
        default: Default::Fixed("slim"),
        group: Group::Answers,
        help: "Shape of results: text, compact data, or everything",
    },
    Flag {
        name: "catalog-mode",
        env: "PTC_RUNNER_MCP_CATALOG_MODE",
        kind: Kind::Choice {
            words: CATALOG_MODES,
            set: |s, at| s.catalog_mode = [CatalogMode::Auto, CatalogMode::Inline].get(at).copied().unwrap_or(CatalogMode::Lazy),
        },
        default: Default::Fixed("auto"),
        group: Group::Answers,
        help: "Whether the tool description lists every upstream tool",
    },
    Flag {
        name: "catalog-inline-max-chars",
        env: "PTC_RUNNER_MCP_CATALOG_INLINE_MAX_CHARS",
        kind: Kind::Integer { unit: "characters", min: 0, max: GIB, set: |s, n| s.catalog_inline_max_chars = n as usize },
        default: Default::Fixed("800"),
        group: Group::Answers,
        help: "`auto` lists tools up to this length of the list",
    },
    Flag {
        name: "catalog-inline-max-tools",
        env: "PTC_RUNNER_MCP_CATALOG_INLINE_MAX_TOOLS",
        kind: Kind::Integer { unit: "tools", min: 0, max: 1_000_000, set: |s, n| s.catalog_inline_max_tools = n as usize },
        default: Default::Fixed("8"),
        group: Group::Answers,
        help: "`auto` lists tools up to this number",
    },
    Flag {
        name: "aggregator-read-only",
        env: "PTC_RUNNER_MCP_AGGREGATOR_READ_ONLY",
        kind: Kind::Switch { set: |s, on| s.aggregator_read_only = on },
        default: Default::Fixed("false"),
        group: Group::Answers,
        help: "Announce the tool as read-only: the upstreams enforce it themselves",
    },
    Flag {
        name: "sessions",
        env: "PTC_RUNNER_MCP_SESSIONS",
        kind: Kind::Switch { set: |s, on| s.sessions = on },
        default: Default::Fixed("false"),
        group: Group::Sessions,
        help: "Offer sessions: tools `lisp_session_…`, in which definitions outlive a call",
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
        help: "One of `*1 *2 *3`; a preview stands for what is larger",
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
        help: "Records of application tool calls that a session keeps",
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
        help: "Their size",
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
        help: "Their size",
    },
];

/// Settings of PtcRunner 0.12 that a pinned binary of this version does not have, by prefix of their flag. Naming one is an error
/// that says so, instead of a guess at a near name.
pub static ABSENT: &[&str] = &["agentic", "debug-", "http", "max-debug-", "trace-"];
