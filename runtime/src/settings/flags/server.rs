//! Settings of the server, of programs, upstreams and answers.

use std::time::Duration;

use super::super::flag::{Default, Flag, Group, Kind};
use super::super::{CatalogMode, Connect, Isolate};
use super::{DAY_MS, GIB, MIB};
use crate::log::Level;
use crate::upstream::OnDrift;
use ptc_engine::response::Profile;

const PROFILES: &[&str] = &["slim", "structured", "debug"];
const CATALOG_MODES: &[&str] = &["auto", "inline", "lazy"];
const LEVELS: &[&str] = &["debug", "info", "warn", "error"];

/// The rows of these settings.
pub(super) static ROWS: &[Flag] = &[
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
        kind: Kind::Integer { unit: "calls", min: 1, max: 10_000, set: |s, n| s.schedule.in_flight.value = n as usize },
        default: Default::Fixed("1000"),
        group: Group::Server,
        help: "Programs in flight, whether they run or wait; a call beyond it waits for a place",
    },
    Flag {
        name: "queue-timeout-ms",
        env: "PTC_RUNNER_MCP_QUEUE_TIMEOUT_MS",
        kind: Kind::Integer { unit: "ms", min: 1, max: DAY_MS, set: |s, n| s.schedule.queue_timeout_ms.value = n },
        default: Default::Fixed("2000"),
        group: Group::Server,
        help: "How long a call may wait for a place; after that it is answered `busy`",
    },
    Flag {
        name: "memory-budget-bytes",
        env: "PTC_RUNNER_MCP_MEMORY_BUDGET_BYTES",
        kind: Kind::Integer {
            unit: "bytes",
            min: 16 * MIB,
            max: 1024 * GIB,
            set: |s, n| s.schedule.memory_budget_bytes.value = n,
        },
        default: Default::Unset("half of the container's memory, or of the machine's"),
        group: Group::Server,
        help: "Memory of all programs, sessions and queued requests together",
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
        help: "What goes to standard error; program, context and result of each call only at `debug`",
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
        help: "Time for one call to a connected upstream",
    },
    Flag {
        name: "allow-missing-secrets",
        env: "PTC_RUNNER_MCP_ALLOW_MISSING_SECRETS",
        kind: Kind::Switch { set: |s, on| s.allow_missing_secrets = on },
        default: Default::Fixed("false"),
        group: Group::Upstreams,
        help: "Starts without the secrets; calls to upstreams that need them fail",
    },
    Flag {
        name: "max-upstream-response-bytes",
        env: "PTC_RUNNER_MCP_MAX_UPSTREAM_RESPONSE_BYTES",
        kind: Kind::Integer { unit: "bytes", min: 1, max: GIB, set: |s, n| s.max_upstream_response_bytes = Some(n) },
        default: Default::Unset("the `max_response_bytes` of each upstream, 2097152 unless the config says otherwise"),
        group: Group::Upstreams,
        help: "Largest answer of any upstream, before decoding; lowers `max_response_bytes` of an upstream and never raises it",
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
        name: "max-writes-per-program",
        env: "PTC_RUNNER_MCP_MAX_WRITES_PER_PROGRAM",
        kind: Kind::Integer { unit: "writes", min: 0, max: 100_000, set: |s, n| s.max_writes_per_program = n as u32 },
        default: Default::Fixed("10"),
        group: Group::Upstreams,
        help: "Calls of OpenAPI operations in one program that do not only read",
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
        name: "isolate",
        env: "PTC_RUNNER_MCP_ISOLATE",
        kind: Kind::Choice {
            words: &["thread", "process", "process-unconfined"],
            set: |s, at| {
                s.isolate = [Isolate::Thread, Isolate::Process, Isolate::ProcessUnconfined].get(at).copied();
            },
        },
        default: Default::Unset("process for a compiled config with --http, otherwise thread"),
        group: Group::Program,
        help: "Run programs on threads, or each in a process without secrets, sockets and files",
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
        help: "Connect to an upstream at its first call, or to all MCP upstreams at start, which fails if one is down",
    },
    Flag {
        name: "connect-concurrency",
        env: "PTC_RUNNER_MCP_CONNECT_CONCURRENCY",
        kind: Kind::Integer { unit: "upstreams", min: 1, max: 1000, set: |s, n| s.connect_concurrency = Some(n as usize) },
        default: Default::Unset("2 processes for each processor, 32 connections over HTTP"),
        group: Group::Upstreams,
        help: "Upstreams that start at the same time; others wait",
    },
    Flag {
        name: "connect-timeout-ms",
        env: "PTC_RUNNER_MCP_CONNECT_TIMEOUT_MS",
        kind: Kind::Integer { unit: "ms", min: 1, max: DAY_MS, set: |s, n| s.connect_timeout = Duration::from_millis(n) },
        default: Default::Fixed("180000"),
        group: Group::Upstreams,
        help: "Time for all upstreams together to start, with --connect eager",
    },
    Flag {
        name: "max-children",
        env: "PTC_RUNNER_MCP_MAX_CHILDREN",
        kind: Kind::Integer { unit: "processes", min: 1, max: 10_000, set: |s, n| s.max_children = Some(n as usize) },
        default: Default::Unset("no limit"),
        group: Group::Upstreams,
        help: "Processes of stdio upstreams at the same time; the one idle longest is ended for another",
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
        help: "If a tool is gone, may reject arguments it accepted, or is unlisted: refuse its calls, log, or do not compare",
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
        name: "token-store",
        env: "PTC_RUNNER_MCP_TOKEN_STORE",
        kind: Kind::Folder { made: true, set: |s, path| s.token_store = Some(path) },
        default: Default::Unset("$XDG_STATE_HOME/ptc-compile/tokens"),
        group: Group::Upstreams,
        help: "Folder with the tokens of `ptc-compile login`, or `keyring` for the keyring of the system",
    },
    Flag {
        name: "config-dir",
        env: "PTC_RUNNER_MCP_CONFIG_DIR",
        kind: Kind::Folder { made: false, set: |s, path| s.config_dir = Some(path) },
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
        help: "Declare that all upstream tools only read, so that `lisp_eval` is announced as read-only; not enforced",
    },
];
