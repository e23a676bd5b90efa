//! What the operator of a server sets for its upstreams.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

/// What becomes of tools that are not what they were when the catalog was frozen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDrift {
    /// A call to a tool that is missing, or that may refuse what it took, fails; other changes are logged.
    Deny,
    /// Every change is logged.
    Warn,
    /// Tools are not compared, and not listed.
    Off,
}

/// Limits and surroundings of upstream calls.
#[derive(Debug, Clone)]
pub struct UpstreamSettings {
    /// Time of one call on a connected upstream; an entry's `request_timeout_ms` lowers it.
    pub call_timeout: Duration,
    /// Largest answer in bytes for upstreams whose entry leaves it at the default of 2 MiB; `None` leaves it to the entries.
    pub max_response_bytes: Option<u64>,
    /// Calls of one program.
    pub max_calls_per_program: u32,
    /// Discovery forms of one program.
    pub max_catalog_ops: u32,
    /// Bytes of one discovery answer, as JSON.
    pub max_catalog_result_bytes: usize,
    /// What becomes of tools that are not what they were when the catalog was frozen.
    pub on_drift: OnDrift,
    /// Certificates that HTTPS trusts beside the system's, as PEM.
    pub extra_roots: Option<Arc<[u8]>>,
    /// Where relative paths of the config start.
    pub config_dir: PathBuf,
    /// The runtime that upstream clients run on.
    pub handle: Handle,
}

/// What an entry's `max_response_bytes` is when the config says nothing.
const DEFAULT_RESPONSE_BYTES: u64 = 2 * 1024 * 1024;

impl UpstreamSettings {
    /// The documented defaults: 5 s, 50 calls, 25 discovery forms, 256 KiB of discovery.
    pub fn new(config_dir: impl Into<PathBuf>, handle: Handle) -> Self {
        UpstreamSettings {
            call_timeout: Duration::from_secs(5),
            max_response_bytes: None,
            max_calls_per_program: 50,
            max_catalog_ops: 25,
            max_catalog_result_bytes: 256 * 1024,
            on_drift: OnDrift::Deny,
            extra_roots: None,
            config_dir: config_dir.into(),
            handle,
        }
    }

    /// The cap that holds for an upstream whose entry says `entry`.
    pub(crate) fn response_cap(&self, entry: u64) -> u64 {
        self.max_response_bytes.filter(|_| entry == DEFAULT_RESPONSE_BYTES).unwrap_or(entry)
    }
}
