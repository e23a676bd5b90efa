//! The operator's settings of upstreams.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use super::children::Children;
#[cfg(feature = "http")]
use super::http::access_token::AccessTokens;
use super::start_limits::StartLimits;

/// How to treat tools that differ from the frozen catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnDrift {
    /// Calls of a tool that is missing, or that may reject previously valid calls, fail. Other changes are logged.
    Deny,
    /// All changes are logged.
    Warn,
    /// Tools are neither listed nor compared.
    Off,
}

/// Settings of upstream calls.
#[derive(Debug, Clone)]
pub struct UpstreamSettings {
    /// Time limit of one call on a connected upstream. The `request_timeout_ms` of a config entry can lower it.
    pub call_timeout: Duration,
    /// Maximum bytes of an answer of any upstream. It can only lower the `max_response_bytes` of a config entry. `None` uses the
    /// entries alone.
    pub max_response_bytes: Option<u64>,
    /// Maximum number of calls of one program.
    pub max_calls_per_program: u32,
    /// `--max-writes-per-program`
    pub max_writes_per_program: u32,
    /// Maximum number of discovery forms of one program.
    pub max_catalog_ops: u32,
    /// Maximum bytes of one discovery answer, as JSON.
    pub max_catalog_result_bytes: usize,
    /// How to treat tools that differ from the frozen catalog.
    pub on_drift: OnDrift,
    /// PEM certificates that HTTPS trusts in addition to the system's.
    pub extra_roots: Option<Arc<[u8]>>,
    /// How many upstreams start at the same time.
    pub start_limits: StartLimits,
    /// How many child processes run at the same time.
    pub children: Children,
    /// Time limit for connecting to all upstreams.
    pub connect_timeout: Duration,
    /// Whether starts, failures and recoveries of upstreams are logged.
    pub logs_health: bool,
    /// The folder for relative paths of the config.
    pub config_dir: PathBuf,
    /// The access tokens of upstreams whose `auth` has the scheme `oauth2`.
    #[cfg(feature = "http")]
    pub access_tokens: AccessTokens,
    /// The runtime of upstream clients.
    pub handle: Handle,
    /// Answers calls in place of the upstreams, or observes them.
    #[cfg(feature = "interception")]
    pub interceptor: Option<Arc<dyn crate::intercept::Interceptor>>,
}

/// The maximum size of an answer, and the setting from which it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseCap {
    /// Maximum bytes of the answer before decoding.
    pub bytes: u64,
    /// The name of the setting, for messages.
    pub setting: &'static str,
}

impl From<u64> for ResponseCap {
    /// Creates the limit of a config entry.
    fn from(bytes: u64) -> ResponseCap {
        ResponseCap { bytes, setting: "max_response_bytes" }
    }
}

impl UpstreamSettings {
    /// Creates the documented defaults: 5 s, 50 calls, 25 discovery forms, 256 KiB of discovery.
    pub fn new(config_dir: impl Into<PathBuf>, handle: Handle) -> Self {
        UpstreamSettings {
            call_timeout: Duration::from_secs(5),
            max_response_bytes: None,
            max_calls_per_program: 50,
            max_writes_per_program: 10,
            max_catalog_ops: 25,
            max_catalog_result_bytes: 256 * 1024,
            on_drift: OnDrift::Deny,
            extra_roots: None,
            start_limits: StartLimits::new(None),
            children: Children::new(None),
            connect_timeout: Duration::from_mins(3),
            logs_health: false,
            config_dir: config_dir.into(),
            #[cfg(feature = "http")]
            access_tokens: AccessTokens::default(),
            handle,
            #[cfg(feature = "interception")]
            interceptor: None,
        }
    }

    /// Whether an interceptor answers all calls, so that no upstream is contacted and no secret is needed.
    pub fn is_offline(&self) -> bool {
        #[cfg(feature = "interception")]
        return self.interceptor.as_ref().is_some_and(|interceptor| interceptor.is_offline());
        #[cfg(not(feature = "interception"))]
        false
    }

    /// Returns the limit for an upstream: the lower one of `entry` and the setting.
    pub(crate) fn response_cap(&self, entry: u64) -> ResponseCap {
        match self.max_response_bytes {
            Some(bytes) if bytes < entry => ResponseCap { bytes, setting: "--max-upstream-response-bytes" },
            _ => entry.into(),
        }
    }
}
