//! Settings of traces, `lisp_debug` and metrics.

/// How much of programs, contexts and results is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payloads {
    /// Only sizes, and digests of programs.
    None,
    /// Also digests of the other payloads. `lisp_debug` additionally shows the beginning of programs and the shape of contexts,
    /// files do not.
    Summary,
    /// Everything.
    Full,
}

impl Payloads {
    /// Returns its name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Payloads::None => "none",
            Payloads::Summary => "summary",
            Payloads::Full => "full",
        }
    }
}

/// Settings of diagnostics.
#[derive(Debug, Clone)]
pub struct DiagnosticsSettings {
    /// Whether `lisp_debug` is offered.
    pub tool: bool,
    /// Number of calls that it remembers.
    pub ring_size: usize,
    /// Maximum size of one of its answers, in bytes.
    pub max_response_bytes: usize,
    /// Whether calls are counted for Prometheus.
    pub counted: bool,
    /// Folder for the trace file of each call.
    pub trace_dir: Option<std::path::PathBuf>,
    /// Maximum number of trace files.
    pub trace_max_files: usize,
    /// Which payloads are recorded.
    pub payloads: Payloads,
    /// The collector of `--otlp-endpoint`.
    pub otlp_endpoint: Option<String>,
}

impl Default for DiagnosticsSettings {
    /// Returns settings with everything off. The table of settings sets every value.
    fn default() -> Self {
        DiagnosticsSettings {
            tool: false,
            counted: false,
            ring_size: 0,
            max_response_bytes: 0,
            trace_dir: None,
            trace_max_files: 0,
            payloads: Payloads::Summary,
            otlp_endpoint: None,
        }
    }
}
