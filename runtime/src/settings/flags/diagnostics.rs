//! Settings of diagnostics.

use super::super::flag::{Default, Flag, Group, Kind, base_url};
use super::GIB;
use crate::settings::Payloads;

/// Minimum size of an answer of `lisp_debug` in bytes. A smaller one has no room for a summary.
const LEAST_RESPONSE: u64 = 4096;

/// The rows of these settings.
pub(super) static ROWS: &[Flag] = &[
    Flag {
        name: "trace-dir",
        env: "PTC_RUNNER_MCP_TRACE_DIR",
        kind: Kind::Folder { made: true, set: |s, path| s.diagnostics.trace_dir = Some(path) },
        default: Default::Unset("no traces"),
        group: Group::Diagnostics,
        help: "Folder in which each call writes a trace file of JSON lines; created if it does not exist",
    },
    Flag {
        name: "trace-payloads",
        env: "PTC_RUNNER_MCP_TRACE_PAYLOADS",
        kind: Kind::Choice {
            words: &["none", "summary", "full"],
            set: |s, at| {
                s.diagnostics.payloads = [Payloads::None, Payloads::Summary].get(at).copied().unwrap_or(Payloads::Full);
            },
        },
        default: Default::Fixed("summary"),
        group: Group::Diagnostics,
        help: "What traces and `lisp_debug` show of programs, contexts and results",
    },
    Flag {
        name: "trace-max-files",
        env: "PTC_RUNNER_MCP_TRACE_MAX_FILES",
        kind: Kind::Integer { unit: "files", min: 1, max: 10_000_000, set: |s, n| s.diagnostics.trace_max_files = n as usize },
        default: Default::Fixed("1000"),
        group: Group::Diagnostics,
        help: "Trace files that stay; the oldest go",
    },
    Flag {
        name: "otlp-endpoint",
        env: "PTC_RUNNER_MCP_OTLP_ENDPOINT",
        kind: Kind::Text {
            shape: "<url>",
            expected: "a URL of http or https, without user, query and fragment",
            set: |s, text| base_url(text).map(|url| s.diagnostics.otlp_endpoint = Some(url)),
        },
        default: Default::Unset("$OTEL_EXPORTER_OTLP_ENDPOINT"),
        group: Group::Diagnostics,
        help: "An OpenTelemetry collector for spans of calls",
    },
    Flag {
        name: "debug-tool",
        env: "PTC_RUNNER_MCP_DEBUG_TOOL",
        kind: Kind::Switch { set: |s, on| s.diagnostics.tool = on },
        default: Default::Fixed("false"),
        group: Group::Diagnostics,
        help: "Offer `lisp_debug`; the response profile is `debug` then unless set",
    },
    Flag {
        name: "debug-ring-size",
        env: "PTC_RUNNER_MCP_DEBUG_RING_SIZE",
        kind: Kind::Integer { unit: "calls", min: 0, max: GIB, set: |s, n| s.diagnostics.ring_size = n.clamp(10, 5000) as usize },
        default: Default::Fixed("500"),
        group: Group::Diagnostics,
        help: "Calls that `lisp_debug` remembers: 10 to 5000",
    },
    Flag {
        name: "max-debug-response-bytes",
        env: "PTC_RUNNER_MCP_MAX_DEBUG_RESPONSE_BYTES",
        kind: Kind::Integer {
            unit: "bytes",
            min: 0,
            max: GIB,
            set: |s, n| s.diagnostics.max_response_bytes = n.max(LEAST_RESPONSE) as usize,
        },
        default: Default::Fixed("65536"),
        group: Group::Diagnostics,
        help: "Longest answer of `lisp_debug`: 4096 or more",
    },
];
