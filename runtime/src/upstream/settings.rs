//! What the operator of a server sets for its upstreams.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

/// What becomes of tools that are not what they were when the catalog was frozen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
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
#[non_exhaustive]
pub struct UpstreamSettings {
    /// Time of one call on a connected upstream; an entry's `request_timeout_ms` lowers it.
    pub call_timeout: Duration,
    /// Largest answer in bytes of any upstream. It lowers an entry's `max_response_bytes` and never raises it; `None` leaves it to the
    /// entries.
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

/// Largest answer of an upstream, and the setting that says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseCap {
    /// Bytes of the answer, before it is decoded.
    pub bytes: u64,
    /// The setting that an operator changes, as messages name it.
    pub setting: &'static str,
}

impl From<u64> for ResponseCap {
    /// The cap of an entry.
    fn from(bytes: u64) -> ResponseCap {
        ResponseCap { bytes, setting: "max_response_bytes" }
    }
}

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

    /// The cap of an upstream whose entry says `entry`: the lower of the two.
    pub(crate) fn response_cap(&self, entry: u64) -> ResponseCap {
        match self.max_response_bytes {
            Some(bytes) if bytes < entry => ResponseCap { bytes, setting: "--max-upstream-response-bytes" },
            _ => entry.into(),
        }
    }
}
