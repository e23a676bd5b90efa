//! The table of settings: one row gives parsing, defaults, help and the checks of them.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use super::{CatalogMode, Connect, Settings};
use crate::log::Level;
use crate::profile::Profile;
use crate::upstream::OnDrift;

/// One setting.
#[derive(Debug)]
pub struct Flag {
    /// Its long flag, without the dashes.
    pub name: &'static str,
    /// Its environment variable.
    pub env: &'static str,
    /// What values it takes, and where they go.
    pub kind: Kind,
    /// Its default.
    pub default: Default,
    /// The heading of `--help` that it stands under.
    pub group: Group,
    /// One line for `--help`.
    pub help: &'static str,
}

/// What values a setting takes, and how one is stored.
#[derive(Debug)]
pub enum Kind {
    /// An integer within bounds.
    Integer {
        /// What is counted, for help: `bytes`, `ms`, `calls`.
        unit: &'static str,
        /// Smallest value.
        min: u64,
        /// Largest value.
        max: u64,
        /// Stores it.
        set: fn(&mut Settings, u64),
    },
    /// One of some words.
    Choice {
        /// The words.
        words: &'static [&'static str],
        /// Stores the word of that index.
        set: fn(&mut Settings, usize),
    },
    /// On or off; the flag alone turns it on.
    Switch {
        /// Stores it.
        set: fn(&mut Settings, bool),
    },
    /// A folder.
    Folder {
        /// Stores it.
        set: fn(&mut Settings, PathBuf),
    },
    /// A file.
    File {
        /// Stores it.
        set: fn(&mut Settings, PathBuf),
    },
}

/// The default of a setting, as an operator would write it.
#[derive(Debug)]
pub enum Default {
    /// Always the same.
    Fixed(&'static str),
    /// One without upstreams, one with.
    Split(&'static str, &'static str),
    /// `min(8, logical processors)`, at least 2.
    Processors,
    /// Unset; the text says what happens then.
    Unset(&'static str),
}

/// Headings of `--help`, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Frames, arguments, concurrency.
    Server,
    /// One evaluation.
    Program,
    /// Upstream calls.
    Upstreams,
    /// Results and descriptions.
    Answers,
}

impl Group {
    /// All groups with their headings.
    pub const ALL: [(Group, &'static str); 4] = [
        (Group::Server, "Server"),
        (Group::Program, "Programs"),
        (Group::Upstreams, "Upstreams"),
        (Group::Answers, "Answers and descriptions"),
    ];
}

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
];

impl Flag {
    /// The row of that name, without dashes.
    pub fn find(name: &str) -> Option<&'static Flag> {
        FLAGS.iter().find(|flag| flag.name == name)
    }

    /// Whether the flag stands without a value.
    pub fn is_switch(&self) -> bool {
        matches!(self.kind, Kind::Switch { .. })
    }

    /// The default as an operator would write it; `None` where it is unset.
    pub fn default_text(&self, with_upstreams: bool) -> Option<Cow<'static, str>> {
        match self.default {
            Default::Fixed(text) => Some(text.into()),
            Default::Split(plain, upstreams) => Some(if with_upstreams { upstreams } else { plain }.into()),
            Default::Processors => {
                let processors = std::thread::available_parallelism().map_or(2, usize::from);
                Some(processors.clamp(2, 8).to_string().into())
            }
            Default::Unset(_) => None,
        }
    }

    /// What values it takes, as a phrase: `an integer from 1 to 256`.
    pub fn expected(&self) -> String {
        match self.kind {
            Kind::Integer { min, max, unit, .. } => format!("an integer from {min} to {max} ({unit})"),
            Kind::Choice { words, .. } => format!("one of {}", words.join(", ")),
            Kind::Switch { .. } => "true or false".into(),
            Kind::Folder { .. } => "an existing folder".into(),
            Kind::File { .. } => "an existing file".into(),
        }
    }

    /// The placeholder of its value in `--help`.
    pub fn placeholder(&self) -> String {
        match self.kind {
            Kind::Integer { unit, .. } => format!("<{unit}>"),
            Kind::Choice { words, .. } => format!("<{}>", words.join("|")),
            Kind::Switch { .. } => String::new(),
            Kind::Folder { .. } => "<folder>".into(),
            Kind::File { .. } => "<file>".into(),
        }
    }

    /// Stores a value; the error is what was expected instead.
    pub fn apply(&self, settings: &mut Settings, text: &OsStr) -> Result<(), String> {
        let word = || text.to_str().ok_or_else(|| self.expected());
        match self.kind {
            Kind::Integer { min, max, set, .. } => {
                let number = word()?.parse::<u64>().ok().filter(|n| (min..=max).contains(n));
                set(settings, number.ok_or_else(|| self.expected())?);
            }
            Kind::Choice { words, set } => {
                let word = word()?;
                set(settings, words.iter().position(|w| *w == word).ok_or_else(|| self.expected())?);
            }
            Kind::Switch { set } => match word()? {
                "true" | "1" => set(settings, true),
                "false" | "0" => set(settings, false),
                _ => return Err(self.expected()),
            },
            Kind::Folder { set } => {
                let path = PathBuf::from(text);
                if !path.is_dir() {
                    return Err(self.expected());
                }
                set(settings, path);
            }
            Kind::File { set } => {
                let path = PathBuf::from(text);
                if !path.is_file() {
                    return Err(self.expected());
                }
                set(settings, path);
            }
        }
        Ok(())
    }
}

/// Settings of PtcRunner 0.12 that a pinned binary of this version does not have, by prefix of their flag. Naming one is an error
/// that says so, instead of a guess at a near name.
pub static ABSENT: &[&str] = &["agentic", "debug-", "http", "max-debug-", "max-session", "session", "trace-"];
