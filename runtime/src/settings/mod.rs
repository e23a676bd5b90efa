//! What an operator can set, read once at start: command line before environment before default.
//!
//! - [`feature`]: features that a binary may have been built without.
//! - [`agentic`]: the planner behind `lisp_task`.
//! - [`flag`]: what a row of it says, and how a value is read.
//! - [`flags`](mod@flags): the one table of settings; parsing, help and tests derive from it.
//! - [`http`]: the HTTP listener.
//! - `otlp`: the collector that spans go to, where the feature of that name is on.
//! - [`store`]: where sessions live.
//! - [`read`]: from arguments and environment to [`Settings`].

#[cfg(feature = "agentic")]
pub mod agentic;
pub mod feature;
pub mod flag;
pub mod flags;
pub mod http;
#[cfg(feature = "otlp")]
pub mod otlp;
pub mod read;
pub mod store;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ptc_lisp::limits::Limits;

#[cfg(feature = "agentic")]
pub use agentic::AgenticSettings;
pub use feature::FEATURES;
pub use flag::{Flag, Group, Kind, Purpose};
pub use flags::{REPL_NAMES, REPL_VARIABLES, flags, unknown_env_vars};
pub use http::HttpSettings;
#[cfg(feature = "otlp")]
pub use otlp::OtlpSettings;
pub use read::{Fault, SettingsParser};
pub use store::StoreUrl;

use crate::diagnostics::DiagnosticsSettings;
use crate::log::Level;
use crate::profile::Profile;
use crate::schedule::ScheduleLimits;
use crate::session::SessionLimits;
use crate::upstream::OnDrift;

/// Every setting, with a value.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Bytes of one NDJSON frame.
    pub max_frame_bytes: usize,
    /// Bytes of the `program` argument.
    pub max_program_bytes: usize,
    /// Bytes of the `context` argument, as JSON.
    pub max_context_bytes: usize,
    /// What the scheduler allows.
    pub schedule: ScheduleLimits,
    /// What is logged.
    pub log_level: Level,
    /// Wall clock of one program.
    pub program_timeout: Duration,
    /// Bytes that a program's values may occupy.
    pub program_memory_limit_bytes: u64,
    /// One call on a connected upstream.
    pub upstream_call_timeout: Duration,
    /// Bytes of one upstream answer, before decoding, where an operator lowers what the config says.
    pub max_upstream_response_bytes: Option<u64>,
    /// `tool/call`s of one program.
    pub max_upstream_calls_per_program: u32,
    /// Discovery forms of one program.
    pub max_catalog_ops_per_program: u32,
    /// Bytes of one discovery result, as JSON.
    pub max_catalog_result_bytes: usize,
    /// Shape of results.
    pub response_profile: Profile,
    /// How the tool description shows the catalog.
    pub catalog_mode: CatalogMode,
    /// Where `auto` stops to inline: characters of the rendered catalog.
    pub catalog_inline_max_chars: usize,
    /// Where `auto` stops to inline: number of tools.
    pub catalog_inline_max_tools: usize,
    /// Announce the tool as read-only although upstreams do not say so.
    pub aggregator_read_only: bool,
    /// What becomes of tools that have changed.
    pub on_drift: OnDrift,
    /// When upstreams are connected to.
    pub connect: Connect,
    /// Certificates that HTTPS trusts beside the system's.
    pub ca_file: Option<PathBuf>,
    /// Whether programs can have sessions.
    pub sessions: bool,
    /// What sessions may keep, and how many there may be.
    pub session_limits: SessionLimits,
    /// Where sessions live; `None` is the memory of the process.
    pub session_store: Option<StoreUrl>,
    /// Traces and `lisp_debug`.
    pub diagnostics: DiagnosticsSettings,
    /// The HTTP listener.
    pub http: HttpSettings,
    /// The planner behind `lisp_task`.
    #[cfg(feature = "agentic")]
    pub agentic: AgenticSettings,
    /// The conversation of `repl`.
    #[cfg(feature = "line-editing")]
    pub terminal: TerminalSettings,
    /// The config, where it is not compiled in; `None` is for whoever serves it to find.
    pub upstreams_config: Option<PathBuf>,
    /// Whether no config is looked for.
    pub plain: bool,
    /// When the upstreams of such a config are asked for their tools; `None` leaves it to the command.
    pub catalog_snapshot_mode: Option<SnapshotMode>,
    /// Folder to which relative paths of the config refer; `None` is the binary's folder.
    pub config_dir: Option<PathBuf>,
}

/// When upstreams are asked for their tools, where no binary was built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotMode {
    /// At start, those that the lock file does not cover. The catalog stays as it is then.
    Frozen,
    /// By the first form or call that needs them.
    Live,
}

/// How `repl` converses on a terminal.
#[cfg(feature = "line-editing")]
#[derive(Debug, Clone, Copy, Default)]
pub struct TerminalSettings {
    /// Whether there are colours; `None` goes by the terminal and by `NO_COLOR`.
    pub color: Option<bool>,
    /// Whether programs are forgotten with the end of the conversation.
    pub no_history: bool,
}

/// When upstreams are connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connect {
    /// Each by the first call that needs it.
    Lazy,
    /// All at start, which fails where one cannot be reached.
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
    /// The defaults of a server without, or with, upstreams.
    pub fn defaults(with_upstreams: bool) -> Settings {
        let mut settings = Settings {
            max_frame_bytes: 0,
            max_program_bytes: 0,
            max_context_bytes: 0,
            schedule: ScheduleLimits::detect(),
            log_level: Level::Info,
            program_timeout: Duration::ZERO,
            program_memory_limit_bytes: 0,
            upstream_call_timeout: Duration::ZERO,
            max_upstream_response_bytes: None,
            max_upstream_calls_per_program: 0,
            max_catalog_ops_per_program: 0,
            max_catalog_result_bytes: 0,
            response_profile: Profile::Slim,
            catalog_mode: CatalogMode::Auto,
            catalog_inline_max_chars: 0,
            catalog_inline_max_tools: 0,
            aggregator_read_only: false,
            sessions: false,
            session_limits: SessionLimits::default(),
            session_store: None,
            on_drift: OnDrift::Deny,
            connect: Connect::Lazy,
            ca_file: None,
            diagnostics: DiagnosticsSettings::default(),
            http: HttpSettings::default(),
            #[cfg(feature = "agentic")]
            agentic: AgenticSettings::default(),
            #[cfg(feature = "line-editing")]
            terminal: TerminalSettings::default(),
            upstreams_config: None,
            plain: false,
            catalog_snapshot_mode: None,
            config_dir: None,
        };
        for flag in flags() {
            let text = flag.default_text(with_upstreams);
            if let Some(Err(expected)) = text.map(|text| flag.apply(&mut settings, OsStr::new(&*text))) {
                // A row that contradicts itself; the test over all rows keeps this from being reached.
                debug_assert!(false, "default of --{}: expected {expected}", flag.name);
            }
        }
        settings
    }

    /// The limits of one evaluation.
    pub fn limits(&self) -> Limits {
        Limits::default()
            .wall_clock(self.program_timeout)
            .memory_bytes(self.program_memory_limit_bytes)
            // Several times what an answer shows, which decides what is cut when it has all lines.
            .print_bytes(16 * self.response_profile.budget().print_bytes)
    }

    /// The folder whose traces the listener shows to people, where it does.
    pub fn traces_to_view(&self) -> Option<&Path> {
        self.diagnostics.trace_dir.as_deref().filter(|_| self.http.viewer)
    }

    /// The folder to which relative paths of the config refer.
    pub fn config_dir(&self) -> PathBuf {
        let beside = || std::env::current_exe().ok()?.parent().map(PathBuf::from);
        self.config_dir.clone().or_else(beside).unwrap_or_else(|| PathBuf::from("."))
    }
}
