//! Settings of the operator, read once at start. The command line has precedence over the environment, and the environment over
//! defaults.
//!
//! - [`feature`]: features and crates that a binary may have been built without.
//! - [`agentic`]: the planner of `lisp_task`.
//! - [`flag`]: a row of the table of settings, and the parsing of its value.
//! - [`flags`](mod@flags): the table of settings, from which parsing, help and tests are derived.
//! - `contradictions`: settings that contradict each other, or have no effect.
//! - `interception`: the replay and the recording of answers, with the feature of that name.
//! - [`http`]: the HTTP listener. [`oauth`]: the access tokens that it accepts.
//! - `proxy`: the proxy of the planner and of the collector that receives spans, with the feature of that name.
//! - [`session_key`]: the secrets that seal sessions in a store.
//! - [`store`]: the URL of the session store.
//! - [`read`]: parses arguments and environment into [`Settings`].

#[cfg(feature = "agentic")]
pub mod agentic;
mod contradictions;
pub mod diagnostics;
pub mod feature;
pub mod flag;
pub mod flags;
pub mod http;
#[cfg(feature = "interception")]
pub mod interception;
#[cfg(feature = "http-oauth")]
pub mod oauth;
#[cfg(feature = "proxy")]
pub mod proxy;
pub mod read;
pub mod session_key;
pub mod session_limits;
pub mod store;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ptc_lisp::limits::Limits;

#[cfg(feature = "agentic")]
pub use agentic::AgenticSettings;
pub use diagnostics::{DiagnosticsSettings, Payloads};
pub use feature::{FEATURES, LinkedParts};
pub use flag::{Flag, Group, Kind, Purpose};
pub use flags::{REPL_NAMES, REPL_VARIABLES, flags, unknown_env_vars};
pub use http::HttpSettings;
#[cfg(feature = "interception")]
pub use interception::{CassetteMode, InterceptionSettings, ScrubPath};
#[cfg(feature = "http-oauth")]
pub use oauth::OauthSettings;
#[cfg(feature = "proxy")]
pub use proxy::ProxySettings;
use ptc_engine::evaluation::ArgumentLimits;
use ptc_engine::response::Profile;
pub use read::{Fault, SettingsParser};
pub use session_key::SessionKeys;
pub use session_limits::{SessionLimits, StateLimits};
pub use store::StoreUrl;

use crate::log::Level;
use crate::schedule::ScheduleLimits;
use crate::upstream::OnDrift;

/// All settings with their values.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is independent of the others")]
pub struct Settings {
    /// Maximum bytes of one NDJSON frame.
    pub max_frame_bytes: usize,
    /// Maximum bytes of the `program` argument.
    pub max_program_bytes: usize,
    /// Maximum bytes of the `context` argument, as JSON.
    pub max_context_bytes: usize,
    /// Limits of the scheduler.
    pub schedule: ScheduleLimits,
    /// The minimum level of log lines.
    pub log_level: Level,
    /// Time limit of one program.
    pub program_timeout: Duration,
    /// Maximum bytes of a program's values.
    pub program_memory_limit_bytes: u64,
    /// Where programs run. Without a value: in processes if a pinned binary serves HTTP, otherwise on threads.
    pub isolate: Option<Isolate>,
    /// Time limit of one call of an upstream.
    pub upstream_call_timeout: Duration,
    /// Maximum bytes of one upstream answer before decoding. It can only lower the limit in the config.
    pub max_upstream_response_bytes: Option<u64>,
    /// Maximum number of `tool/call`s of one program.
    pub max_upstream_calls_per_program: u32,
    /// `--max-writes-per-program`
    pub max_writes_per_program: u32,
    /// Maximum number of discovery forms of one program.
    pub max_catalog_ops_per_program: u32,
    /// Maximum bytes of one discovery result, as JSON.
    pub max_catalog_result_bytes: usize,
    /// The format of results.
    pub response_profile: Profile,
    /// How the tool description shows the catalog.
    pub catalog_mode: CatalogMode,
    /// In the mode `auto`, the maximum characters of an inlined catalog.
    pub catalog_inline_max_chars: usize,
    /// In the mode `auto`, the maximum number of tools of an inlined catalog.
    pub catalog_inline_max_tools: usize,
    /// Whether to announce the tool as read-only even if upstreams do not declare that.
    pub aggregator_read_only: bool,
    /// How to treat tools that differ from the catalog.
    pub on_drift: OnDrift,
    /// When to connect to upstreams.
    pub connect: Connect,
    /// How many upstreams start at the same time. `None` uses the defaults.
    pub connect_concurrency: Option<usize>,
    /// Maximum number of child processes of upstreams at the same time.
    pub max_children: Option<usize>,
    /// Time limit for connecting to all upstreams at start.
    pub connect_timeout: Duration,
    /// The folder with the tokens of logins, or `keyring` for the keyring of the system. `None` means the default of the OAuth client.
    pub token_store: Option<PathBuf>,
    /// Path of certificates that HTTPS trusts in addition to the system's.
    pub ca_file: Option<PathBuf>,
    /// The proxy of the planner and of the collector.
    #[cfg(feature = "proxy")]
    pub proxy: ProxySettings,
    /// Whether the process serves clients. Then all secrets must be available, and failures of upstreams are logged.
    pub serves: bool,
    /// Whether the process may serve clients although secrets are missing.
    pub allow_missing_secrets: bool,
    /// Whether sessions are enabled.
    pub sessions: bool,
    /// Limits of sessions.
    pub session_limits: SessionLimits,
    /// URL of the session store. `None` means the memory of the process.
    pub session_store: Option<StoreUrl>,
    /// The secrets that seal sessions in the store. [`Settings::sealing_keys`] has the default.
    pub session_keys: Option<SessionKeys>,
    /// Traces and `lisp_debug`.
    pub diagnostics: DiagnosticsSettings,
    /// The HTTP listener.
    pub http: HttpSettings,
    /// The planner of `lisp_task`.
    #[cfg(feature = "agentic")]
    pub agentic: AgenticSettings,
    /// `repl` on a terminal.
    #[cfg(feature = "line-editing")]
    pub terminal: TerminalSettings,
    /// Path of a config that is not compiled in. `None` lets the command search for it.
    pub upstreams_config: Option<PathBuf>,
    /// Whether to ignore configs.
    pub plain: bool,
    /// When to fetch the tools of the upstreams in such a config. `None` uses the default of the command.
    pub catalog_snapshot_mode: Option<SnapshotMode>,
    /// The replay and the recording of answers.
    #[cfg(feature = "interception")]
    pub interception: InterceptionSettings,
    /// Folder for relative paths in the config. `None` means the binary's folder.
    pub config_dir: Option<PathBuf>,
}

/// When to fetch the tools of upstreams without a compiled binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotMode {
    /// At start, for upstreams that the lock file does not cover. The catalog does not change afterwards.
    Frozen,
    /// At the first form or call that needs them.
    Live,
}

/// Settings of `repl` on a terminal.
#[cfg(feature = "line-editing")]
#[derive(Debug, Clone, Copy, Default)]
pub struct TerminalSettings {
    /// Whether to use colours. `None` depends on the terminal and `NO_COLOR`.
    pub color: Option<bool>,
    /// Whether to discard the history at the end of the session.
    pub no_history: bool,
}

/// Where programs run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolate {
    /// On threads of the server.
    Thread,
    /// Each in a process without secrets, sockets and files.
    Process,
    /// Each in a process that the kernel does not confine.
    ProcessUnconfined,
}

/// When to connect to upstreams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connect {
    /// Each at the first call that needs it.
    Lazy,
    /// All at start, which fails if one cannot be reached.
    Eager,
}

/// How the tool description shows the catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CatalogMode {
    /// Inline below the thresholds, otherwise lazy.
    Auto,
    /// Every tool is listed.
    Inline,
    /// Upstream names only.
    Lazy,
}

impl Settings {
    /// Returns the defaults of a server with or without upstreams.
    pub fn defaults(with_upstreams: bool) -> Settings {
        let mut settings = Settings {
            max_frame_bytes: 0,
            max_program_bytes: 0,
            max_context_bytes: 0,
            schedule: ScheduleLimits::detect(),
            log_level: Level::Info,
            program_timeout: Duration::ZERO,
            program_memory_limit_bytes: 0,
            isolate: None,
            upstream_call_timeout: Duration::ZERO,
            max_upstream_response_bytes: None,
            max_upstream_calls_per_program: 0,
            max_writes_per_program: 0,
            max_catalog_ops_per_program: 0,
            max_catalog_result_bytes: 0,
            response_profile: Profile::Slim,
            catalog_mode: CatalogMode::Auto,
            catalog_inline_max_chars: 0,
            catalog_inline_max_tools: 0,
            aggregator_read_only: false,
            serves: false,
            allow_missing_secrets: false,
            sessions: false,
            session_limits: SessionLimits::default(),
            session_store: None,
            session_keys: None,
            on_drift: OnDrift::Deny,
            connect: Connect::Lazy,
            connect_concurrency: None,
            max_children: None,
            connect_timeout: Duration::from_mins(3),
            token_store: None,
            ca_file: None,
            #[cfg(feature = "proxy")]
            proxy: ProxySettings::default(),
            diagnostics: DiagnosticsSettings::default(),
            http: HttpSettings::default(),
            #[cfg(feature = "agentic")]
            agentic: AgenticSettings::default(),
            #[cfg(feature = "line-editing")]
            terminal: TerminalSettings::default(),
            upstreams_config: None,
            plain: false,
            catalog_snapshot_mode: None,
            #[cfg(feature = "interception")]
            interception: InterceptionSettings::default(),
            config_dir: None,
        };
        for flag in flags() {
            let text = flag.default_text(with_upstreams);
            if let Some(Err(expected)) = text.map(|text| flag.apply(&mut settings, OsStr::new(&*text))) {
                // A row whose default is invalid. The test of all rows makes sure that there is none.
                debug_assert!(false, "default of --{}: expected {expected}", flag.name);
            }
        }
        settings
    }

    /// Returns the limits of one evaluation.
    pub fn limits(&self) -> Limits {
        Limits::default()
            .wall_clock(self.program_timeout)
            .memory_bytes(self.program_memory_limit_bytes)
            // A multiple of the lines that an answer shows, since truncation is decided with all lines available.
            .print_bytes(16 * self.response_profile.budget().print_bytes)
    }

    /// Returns the limits of the arguments of `lisp_eval`.
    pub fn argument_limits(&self) -> ArgumentLimits {
        ArgumentLimits { program_bytes: self.max_program_bytes, context_bytes: self.max_context_bytes }
    }

    /// Returns the folder of traces if the listener serves the trace viewer.
    pub fn traces_to_view(&self) -> Option<&Path> {
        self.diagnostics.trace_dir.as_deref().filter(|_| self.http.viewer)
    }

    /// Whether recorded answers replace the upstreams, so that none is contacted and no secret is needed.
    pub fn is_offline(&self) -> bool {
        #[cfg(feature = "interception")]
        return self.interception.is_offline();
        #[cfg(not(feature = "interception"))]
        false
    }

    /// Returns the folder for relative paths in the config.
    pub fn config_dir(&self) -> PathBuf {
        let beside = || std::env::current_exe().ok()?.parent().map(PathBuf::from);
        self.config_dir.clone().or_else(beside).unwrap_or_else(|| PathBuf::from("."))
    }
}
